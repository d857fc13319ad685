# Three commands: `make app`, `make notebook` and `make test`. Each sets up .venv first when needed.

PYTHON := .venv/bin/python
READY := .venv/.ready
READY_DEV := .venv/.ready-dev

.DEFAULT_GOAL := help
.PHONY: help app notebook test lint docs dist bench trial lock chromium clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

app: $(READY)  ## start the app in the browser
	$(PYTHON) -m streamlit run app.py --server.showEmailPrompt false

notebook: $(READY_DEV)  ## open the notebooks in JupyterLab
	$(PYTHON) -m jupyterlab --notebook-dir notebooks $$([ "$$(id -u)" != 0 ] || echo --allow-root)  # root is who one is in a container

test: $(READY_DEV) chromium lint  ## style, types and all tests
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -n auto --dist loadfile

lint: $(READY_DEV)  ## style, format, types and the way that imports point
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports --no-cache

docs: $(READY_DEV)  ## the site, into site/: strict, notebooks executed, no request to another server
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "Open site/index.html, or with search: $(PYTHON) -m http.server --directory site"

dist: $(READY_DEV)  ## wheel and source archive, into dist/: built twice, and the same both times
	$(PYTHON) -m tools.dist

bench: $(READY_DEV) chromium  ## speed and memory ratios, each measured in one run
	$(PYTHON) -m benchmarks.p_values
	$(PYTHON) -m benchmarks.certify
	$(PYTHON) -m benchmarks.scoring
	$(PYTHON) -m benchmarks.audio
	$(PYTHON) -m benchmarks.app
	$(PYTHON) -m benchmarks.memory
	$(PYTHON) -m benchmarks.scale
	$(PYTHON) -m benchmarks.serve

trial: $(READY_DEV) chromium  ## tries to break it: bad files, kills, full disk, many visitors; half an hour when idle
	@$(PYTHON) -m pip install --quiet --only-binary :all: pip-audit==2.10.1 "atheris>=3,<4" || \
	  echo "pip-audit or atheris does not install here; the trial says so and goes on without."
	OMP_NUM_THREADS=1 $(PYTHON) -m trial --write docs/reliability.md

# Exact versions with hashes, for every system and Python that we name; versions move only where a range asks for it.
LOCK := $(PYTHON) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command "make lock"

lock: $(READY_DEV)  ## write the lock files again, after a change of pyproject.toml or requirements-dev.in
	$(LOCK) pyproject.toml --extra app --extra train --output-file requirements.txt
	$(LOCK) pyproject.toml requirements-dev.in --all-extras --constraint requirements.txt --output-file requirements-dev.txt

clean:  ## remove .venv and the tools' caches
	rm -rf .venv build dist site .cache .mypy_cache .import_linter_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# The app's tests drive a real browser.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	  else \
	    echo "make test needs Chromium: install it (Debian: sudo apt-get install chromium), then try again." >&2; exit 1; \
	  fi; }

# Stamps: set-up runs again only when a list of requirements has changed.
$(READY): requirements.txt pyproject.toml setup.py | .venv/bin/pip
	$(PYTHON) -m pip install --quiet -r requirements.txt
	$(PYTHON) -m pip install --quiet --no-deps --editable .
	@touch $@

$(READY_DEV): requirements-dev.txt $(READY)
	$(PYTHON) -m pip install --quiet -r requirements-dev.txt
	@touch $@

.venv/bin/pip:
	@for python in python3 python3.13 python3.12 python3.11; do \
	  if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	    echo "Setting up .venv with $$($$python --version); the first time takes a few minutes."; \
	    exec $$python -m venv .venv; \
	  fi; \
	done; \
	echo "Python 3.11, 3.12 or 3.13 is needed and was not found: install one of them, then try again." >&2; exit 1

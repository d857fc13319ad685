# The app and the service, without root, on one base.
#
#   docker build --target service --tag idecode-service .   # then: docker run -p 8000:8000 idecode-service
#   docker build --target app --tag idecode-app .           # then: docker run -p 8501:8501 idecode-app
#
# On a network, put the app behind the proxy of deploy/compose.yaml: it checks host names and origins (SECURITY.md).
#
# For CPU wheels of torch, a gigabyte instead of five, name PyTorch's package index for CPUs (docs/install.md):
#   docker build --build-arg TORCH_INDEX=... --target service --tag idecode-service .

FROM python:3.11-slim AS wheel
WORKDIR /src
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE requirements.txt requirements-dev.txt app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY ui ui
COPY lessons lessons
COPY idecode_core idecode_core
COPY checkpoints/fashion-rotations checkpoints/fashion-rotations
RUN python -m pip wheel --quiet --no-deps --wheel-dir /wheels .
# The lock file with its hashes, and of it the tool that holds every download against them.
RUN cp requirements-dev.txt /wheels/locked.txt && sed -n '/^uv==/,/[^\\]$/p' requirements-dev.txt > /wheels/uv.txt

FROM python:3.11-slim AS base
ARG TORCH_INDEX=""
COPY --from=wheel /wheels /wheels
RUN python -m pip install --no-cache-dir --no-deps --require-hashes --requirement /wheels/uv.txt
# CPU wheels have other hashes than those of the default index: of these three packages, then, the version alone is checked.
RUN test -z "$TORCH_INDEX" || grep -oE '^torch(|vision|audio)==[^ ;]+' /wheels/locked.txt | xargs python -m uv pip install --system --no-cache --no-deps --index-url "$TORCH_INDEX"
COPY checkpoints /detectors
RUN useradd --create-home --uid 1000 idecode
ENV IDECODE_CHECKPOINTS=/detectors PYTHONUNBUFFERED=1
WORKDIR /home/idecode

FROM base AS service
RUN python -m uv pip install --system --no-cache --constraint /wheels/locked.txt "$(ls /wheels/*.whl)[audio,serve]"
USER idecode
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4)"
CMD ["idecode", "serve", "--host", "0.0.0.0", "--port", "8000"]

FROM base AS app
RUN python -m uv pip install --system --no-cache --constraint /wheels/locked.txt "$(ls /wheels/*.whl)[app]"
USER idecode
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
CMD ["idecode", "app", "--no-browser", "--address", "0.0.0.0", "--port", "8501"]

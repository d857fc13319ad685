"""The site of docs/: what is generated of it. `make docs` builds it, mkdocs.yml is its settings."""

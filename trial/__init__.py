"""Attempts to break the program, seeded and bounded in time: `make trial`, or `python -m trial --short`.

Each part is one file. What they find is written to docs/reliability.md by `trial.table`.
"""

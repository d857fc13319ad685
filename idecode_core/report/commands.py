"""A command line that a reader can paste: what is on a page, typed."""

import shlex

from idecode_core.files.names import printable


def command(name: str, *words: str, **options: object) -> str:
    """An `idecode` command; options that are None or empty are left out, and what comes from files is quoted.

    >>> command("detect", "my photo.jpg", **{"--n": 5, "--delta": None})
    "idecode detect 'my photo.jpg' --n 5"
    """
    given = [
        (key, f"{value:.12g}" if isinstance(value, float) else str(value))
        for key, value in options.items()
        if value is not None and value != ""
    ]
    files = [f"./{word}" if word.startswith("-") else word for word in words]  # never an option
    parts = [*files, *(part for pair in given for part in pair)]
    return " ".join(["idecode", name, *(shlex.quote(printable(part)) for part in parts)])

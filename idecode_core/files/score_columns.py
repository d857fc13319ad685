"""The titles of the columns in a user's file of scores, so that a page can say which of them it used."""

import csv

from idecode_core.files.archives import File
from idecode_core.files.score_files import is_number


def column_titles(file: File) -> tuple[str, ...]:
    """The first line of a CSV file that has titles; () for other files.

    >>> column_titles(File("scores.csv", b"draw 1;draw 2\\n0.1;0.2\\n"))
    ('draw 1', 'draw 2')
    >>> column_titles(File("scores.csv", b"0.1,0.2\\n"))
    ()
    """
    if not file.name.lower().endswith(".csv"):
        return ()
    lines = file.data[:100_000].decode("utf-8-sig", errors="replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    titles = next(csv.reader([first], delimiter=";" if ";" in first else ","), [])
    if not titles or is_number(titles[0]):
        return ()
    return tuple(title.strip() for title in titles)

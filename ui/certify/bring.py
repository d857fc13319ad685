"""A visitor's scores: two files, or an example."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from ui.frame.messages import refused
from ui.frame.uploads import score_files

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray

EXAMPLE = "fashion-rotations"
EXAMPLE_POINTS = 200
SLOTS = {
    "normal": (
        "Scores of normal points",
        "Points that belong, that your detector was not trained on. CSV, npy or npz; one row per point.",
    ),
    "new": ("New scores, if you have them", "Scores of points to judge, made the same way."),
}


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of normal points, new ones if there are any, and the names of their files."""

    normal: "FloatArray"
    new: "FloatArray | None"
    names: tuple[str, str]
    column: str = ""


def example() -> Scores:
    """Scores that one of the shipped detectors gave to clothing, and to clothing and digits in turn."""
    import numpy as np

    from idecode_core.conformal.calibration import aggregate_scores
    from idecode_core.folder.settings import find_detector
    from idecode_core.folder.stored import open_stored

    stored = open_stored(find_detector(EXAMPLE))
    known, strange = (
        aggregate_scores(one.score_vectors[:EXAMPLE_POINTS, :5].astype(np.float64))
        for one in (stored.id_set, stored.ood_sets[0])
    )
    return Scores(stored.calibration.scores(5), np.concatenate([known, strange]), ("normal.csv", "new.csv"))


def bring() -> Scores | None:
    """The files as they were read last; a bad one costs one sentence, and the other stays."""
    files = score_files("certify", SLOTS, lambda name, data: (name, data))
    column = st.text_input(
        "Column", key="certify_column", placeholder="the only one, or 'score'",
        help="Title or number of the column that holds the scores, when there are several.",
    ).strip()  # fmt: skip
    read = {slot: _read(*file, column) for slot, file in files.items()}
    refused([problem for problem in read.values() if isinstance(problem, str)])
    good = {slot: scores for slot, scores in read.items() if not isinstance(scores, str)}
    if "normal" not in good:
        return None
    names = tuple(files[slot][0] if slot in files else "" for slot in SLOTS)
    return Scores(good["normal"], good.get("new"), (names[0], names[1]), column)


@st.cache_data(show_spinner=False, max_entries=8, scope="session")
def _read(name: str, data: bytes, column: str) -> "FloatArray | str":
    """The scores of a file, or why it cannot be used."""
    from idecode_core.errors import IdecodeError
    from idecode_core.files.archives import File
    from idecode_core.files.one_column import read_scores

    try:
        return read_scores(File(name, data), column)
    except IdecodeError as error:
        return str(error)

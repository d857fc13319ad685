"""A visitor's own scores, or own two sets of files, as something to evaluate."""

import hashlib
from dataclasses import dataclass

import streamlit as st

from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.limits import SCORES_BYTES
from idecode_core.files.score_columns import column_titles
from idecode_core.files.score_files import read_score_vectors
from idecode_core.folder.scores import ScoreSet
from idecode_core.folder.settings import FolderSettings
from ui.evaluate.source import Source
from ui.frame.cache import get_detector
from ui.frame.messages import refused
from ui.frame.modality import modality_of
from ui.frame.uploads import MB, many_files, score_files

SLOTS = {
    "id": (
        "iD scores",
        "Scores of test points that belong. CSV, npy or npz; one row per point, one column per draw.",
    ),
    "ood": ("OOD scores", "Scores of points that do not belong, made the same way."),
    "calibration": (
        "Calibration scores, if you have them",
        "Scores of held-out points that belong. With them p-values can be computed; without, raw scores are ranked.",
    ),
}


def own_scores() -> Source | None:
    """Score vectors from files; larger scores are stranger."""
    st.caption(
        "One row per point, one column per draw (a single column will do); larger is stranger. CSV with or without titles, "
        f"npy, or npz with an array `score_vectors`; up to {SCORES_BYTES // MB} MB each."
    )
    found = score_files("own", SLOTS, _read, st.columns(3))
    refused([problem for problem in found.values() if isinstance(problem, str)])
    read = {slot: own for slot, own in found.items() if not isinstance(own, str)}
    vectors = {slot: own.vectors for slot, own in read.items()}
    if "id" not in vectors or "ood" not in vectors:
        st.info("Bring iD and OOD scores to see how well they are told apart.", icon=":material/upload_file:")
        return None
    calibration = Calibration(vectors["calibration"]) if "calibration" in vectors else None
    content = hashlib.sha256(
        b"".join(slot.encode() + array.tobytes() for slot, array in sorted(vectors.items()))
    )
    return Source(
        f"own:{content.hexdigest()}",
        False,
        "your scores",
        "",
        calibration,
        ScoreSet("own-id", "your iD scores", False, vectors["id"]),
        (ScoreSet("own-ood", "your OOD scores", True, vectors["ood"]),),
        columns=tuple((own.name, own.titles, own.vectors.shape[1]) for own in read.values()),
    )


@dataclass(frozen=True, eq=False)
class OwnScores:
    """One file of scores."""

    name: str
    titles: tuple[str, ...]  # of the columns, where the file has some
    vectors: FloatArray  # (points, draws)


def _read(name: str, data: bytes) -> OwnScores | str:
    """The score vectors of a file, or why it cannot be used."""
    try:
        return OwnScores(name, column_titles(File(name, data)), read_score_vectors(File(name, data)))
    except IdecodeError as error:
        return str(error)


def own_files(config: FolderSettings) -> Source | None:
    """Two sets of files, scored with the detector of the sidebar."""
    modality = modality_of(config)
    done = "evaluate_scored" in st.session_state
    with st.expander("Your files", expanded=not done, icon=":material/folder_open:"):
        left, right = st.columns(2, gap="large")
        with left:
            known = many_files("Files that belong (iD)", "evaluate_id", modality, compact=True)
        with right:
            strange = many_files("Files that do not (OOD)", "evaluate_ood", modality, compact=True)
    if not known or not strange:
        st.info(
            "Bring files of both kinds, loose or zipped, then have them scored.",
            icon=":material/upload_file:",
        )
        return None
    from ui.frame.scores import score_on_click

    if (vectors := score_on_click("evaluate", config, known, strange)) is None:
        return None
    return Source(
        f"own:{st.session_state['evaluate_scored']}",
        False,
        f"your files under {config.name}",
        str(config.folder),
        get_detector(config).calibration,
        ScoreSet("own-id", "your iD files", False, vectors[0]),
        (ScoreSet("own-ood", "your OOD files", True, vectors[1]),),
    )

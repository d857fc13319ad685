"""A visitor's own scores, or own two sets of files, as something to evaluate."""

import hashlib
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui.bring_files import bring_files, content_key, mark_changed, was_changed
from ui.cache import get_detector
from ui.evaluation_source import Source
from ui.messages import refused
from ui.settings import current

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray

MAX_UPLOAD = 64  # MB
SLOTS = {
    "id": (
        "iD scores",
        "Scores of test points that belong. CSV, npy or npz; one row a point, one column a draw.",
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
        "One row a point, one column a draw (a single column will do); larger is stranger. CSV with or without titles, "
        "npy, or npz with an array `score_vectors`."
    )
    found: dict[str, FloatArray | str] = st.session_state.setdefault("own_scores", {})
    for column, (slot, (label, help_text)) in zip(st.columns(3), SLOTS.items(), strict=True):
        key = f"own_{slot}"
        with column:
            file = st.file_uploader(
                label,
                key=key,
                help=help_text,
                max_upload_size=MAX_UPLOAD,
                on_change=mark_changed,
                args=(key,),
            )
        if was_changed(key):
            found.pop(slot, None)
            if file is not None:
                found[slot] = _read(file.name, file.getvalue())
    refused([problem for problem in found.values() if isinstance(problem, str)])
    vectors = {slot: array for slot, array in found.items() if not isinstance(array, str)}
    if "id" not in vectors or "ood" not in vectors:
        st.info("Bring iD and OOD scores to see how well they are told apart.", icon=":material/upload_file:")
        return None
    from idecode_core.calibration import Calibration
    from idecode_core.evaluation import ScoreSet

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
    )


def _read(name: str, data: bytes) -> "FloatArray | str":
    """The score vectors of a file, or why it cannot be used."""
    from idecode_core.archives import File
    from idecode_core.errors import IdecodeError
    from idecode_core.score_files import read_score_vectors

    try:
        return read_score_vectors(File(name, data))
    except IdecodeError as error:
        return str(error)


def own_files(config: dict[str, Any]) -> Source | None:
    """Two sets of files, scored with the detector of the sidebar."""
    modality = str(config.get("modality", "image"))
    done = st.session_state.get(
        "evaluate_scored"
    )  # what was scored last; the uploaders then make room for the result
    with st.expander("Your files", expanded=done is None, icon=":material/folder_open:"):
        left, right = st.columns(2, gap="large")
        with left:
            known = bring_files("Files that belong (iD)", "evaluate_id", modality, compact=True)
        with right:
            strange = bring_files("Files that do not (OOD)", "evaluate_ood", modality, compact=True)
    if not known or not strange:
        st.info(
            "Bring files of both kinds, loose or zipped, then have them scored.",
            icon=":material/upload_file:",
        )
        return None
    from idecode_core.evaluation import ScoreSet
    from ui.scores import score_vectors

    seed = current().seed
    wanted = (config["folder"], config.get("scorer_sha256"), seed, content_key(known), content_key(strange))
    if done != wanted:
        total = len(known) + len(strange)
        if not st.button(f"Score {total:,} files", type="primary", icon=":material/play_arrow:"):
            return None
        for samples in (known, strange):
            score_vectors(get_detector(config["folder"]), samples, seed)
        st.session_state["evaluate_scored"] = wanted
        st.rerun()
    detector = get_detector(config["folder"])
    id_vectors = score_vectors(detector, known, seed)
    ood_vectors = score_vectors(detector, strange, seed)
    return Source(
        f"own:{wanted}",
        False,
        f"your files under {config['name']}",
        config["folder"],
        detector.calibration,
        ScoreSet("own-id", "your iD files", False, id_vectors),
        (ScoreSet("own-ood", "your OOD files", True, ood_vectors),),
    )

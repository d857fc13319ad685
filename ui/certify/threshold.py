"""The Certify page: the threshold in words, the scores around it, and the new ones one by one."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import streamlit as st

from idecode_core.files.names import defused
from idecode_core.report import Export
from ui.frame.export import download_row
from ui.frame.links import LINKED, asked, explain_unmet_link, one_of
from ui.frame.look import show
from ui.frame.messages import refused
from ui.frame.settings import DEFAULT_EPSILON, EPSILONS, usable_epsilon
from ui.frame.uploads import score_files

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.conformal.certify import Certified
    from idecode_core.files.tables import Table


EXAMPLE = "fashion-rotations"
EXAMPLE_POINTS = 200
SLOTS = {
    "normal": (
        "Scores of normal points",
        "Points that belong, that your detector was not trained on. CSV, Parquet, npy or npz; one row per point.",
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
    kept: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The other columns of the file of new scores, such as an id: title -> cells."""
    known: "Table | None" = None
    table: "Table | None" = None
    """Both files with all their columns, for `judged.another_way`."""


def example() -> Scores:
    """Scores that one of the shipped detectors gave to clothing, and to clothing and digits in turn."""
    import numpy as np

    from idecode_core.conformal.calibration import aggregate_scores
    from idecode_core.folder.settings import find_detector
    from idecode_core.folder.stored import open_stored

    stored = open_stored(find_detector(EXAMPLE))
    sets = (stored.id_set, stored.ood_sets[0])
    new = np.concatenate([one.score_vectors[:EXAMPLE_POINTS, :5].astype(np.float64) for one in sets])
    sides = stored.calibration.score_vectors[:, :5], new
    names = "normal.csv", "new.csv"
    known, table = (_example_table(name, side) for name, side in zip(names, sides, strict=True))
    return Scores(stored.calibration.scores(5), aggregate_scores(new), names, known=known, table=table)


def _example_table(name: str, vectors: "FloatArray") -> "Table":
    """A score, and the draws that it is the sum of, which stand for seeds."""
    import pyarrow as pa

    from idecode_core.conformal.calibration import aggregate_scores
    from idecode_core.files.tables import Table

    columns = aggregate_scores(vectors), list(vectors)
    return Table(name, ("score", "score_vector"), [pa.chunked_array([pa.array(cells)]) for cells in columns])


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
    new, kept, table = good.get("new", (None, {}, None))
    return Scores(good["normal"][0], new, (names[0], names[1]), column, kept, good["normal"][2], table)


@st.cache_data(show_spinner=False, max_entries=8, scope="session")
def _read(name: str, data: bytes, column: str) -> "tuple[FloatArray, dict[str, list[Any]], Table] | str":
    """The scores of a file, its other columns and all of it, or why it cannot be used."""
    from idecode_core.errors import IdecodeError
    from idecode_core.files.archives import File
    from idecode_core.files.tables import read_table

    try:
        table = read_table(File(name, data))
        place, scores = table.place(column), table.scores(column)
    except IdecodeError as error:
        return str(error)
    titles = table.titles or [""] * len(table.columns)
    kept = {
        title or f"column {i + 1}": cells.to_pylist()
        for i, (title, cells) in enumerate(zip(titles, table.columns, strict=True))
        if i != place
    }
    return scores, kept, table


NAMES = {"c_larger_is": "what a larger score is", "c_epsilon": "epsilon", "c_sure": "how sure"}
"""Keys of the settings, and what a notice calls them."""
KEYS = tuple(NAMES)
SURE = {"on average": None, "90%": 0.1, "99%": 0.01}
"""How sure -> delta."""
SHOWN = 1_000  # rows of the table


def controls() -> dict[str, Any]:
    """The settings, as arguments of `certify`."""
    wanted = asked("certify", KEYS)
    if (linked := usable_epsilon(wanted.get("c_epsilon"))) is not None:
        st.session_state["c_epsilon"] = linked
    larger_is = one_of(
        "A larger score is", ("strange", "normal"), "c_larger_is", label_visibility="visible",
        help="Strange for distances, errors and anomaly scores; normal for likelihoods and confidences.",
    )  # fmt: skip
    epsilon = st.select_slider(
        "False alarms at most, ε", sorted({*EPSILONS, st.session_state.get("c_epsilon", DEFAULT_EPSILON)}), DEFAULT_EPSILON,
        key="c_epsilon", **LINKED, format_func=lambda value: f"{value:g}",
        help="The share of normal points that may be flagged.",
    )  # fmt: skip
    sure = one_of(
        "How sure?", SURE, "c_sure", label_visibility="visible",
        help="On average over calibration sets, or for this share of all calibration sets of your size.",
    )  # fmt: skip
    shown = {key: st.session_state[key] for key in KEYS}
    explain_unmet_link("certify", wanted, shown, dict.fromkeys(KEYS, "which is not offered here"), NAMES)
    return {"larger_is": larger_is, "epsilon": float(epsilon), "delta": SURE[sure]}


def result(scores: Scores, settings: dict[str, Any]) -> None:
    """The statement first, then the figure and the new scores."""
    from idecode_core.conformal.certify import certify

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certified = certify(scores.normal, **settings)
        limit = certified.threshold(certified.epsilon, certified.delta)
        p = None if scores.new is None else certified.p_values(scores.new)
        flagged = None if scores.new is None else certified.predict(scores.new) == -1
    flag, _, promise = certified.statement().partition(". ")
    st.header(f"{flag}.", anchor=False)
    st.markdown(promise)
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        st.warning(sentence, icon=":material/warning:")
    figure, caption = _figure(certified, scores, limit)
    show(figure, key="certify_scores", look_for=caption)
    if p is not None:
        _table(certified, scores, p, flagged)
        from ui.certify.judged import another_way

        another_way(scores, settings)
    if isfinite(limit):
        with st.expander("Use it in a service", icon=":material/code:"):
            st.code(certified.snippet(), language="python")
            st.caption("The threshold to its last digit; nothing of this program is needed for it.")
    _downloads(certified, scores, figure, caption)


def _figure(certified: "Certified", scores: Scores, limit: float) -> tuple[Any, str]:
    from idecode_core.plots.histograms import Group, score_histograms
    from idecode_core.plots.style import CALIBRATION, OOD

    groups = [Group("normal", scores.normal, CALIBRATION)]
    caption = f"Grey: {certified.k:,} normal scores."
    if scores.new is not None:
        groups.append(Group("new", scores.new, OOD))
        caption += f" Orange: {scores.new.size:,} new ones, of which many may be normal too."
    if isfinite(limit):
        side = "Right" if certified.larger_is == "strange" else "Left"
        caption += f" {side} of the purple line a point is flagged."
    figure = score_histograms(groups, limit, "threshold", height=340)
    figure.update_xaxes(title=str(figure.layout.xaxis.title.text).replace("score F(V)", "score"))
    return figure, caption


def _table(certified: "Certified", scores: Scores, p: Any, flagged: Any) -> None:
    import numpy as np

    assert scores.new is not None
    count, expected = int(flagged.sum()), certified.epsilon * flagged.size
    st.markdown(
        f"**{count:,} of {flagged.size:,}** new scores are flagged. If all of them were normal, at most about {expected:.3g} would be."
    )
    order = np.argsort(p, kind="stable")[:SHOWN]
    st.dataframe(
        {
            "row": order + 1,
            **{defused(title): [defused(cells[i]) for i in order] for title, cells in scores.kept.items()},
            "score": scores.new[order],
            "p-value": p[order],
            "verdict": np.where(flagged[order], "flagged", "not flagged"),
        },
        hide_index=True,
        height=240,
    )
    if flagged.size > SHOWN:
        st.caption(f"The {SHOWN:,} strangest; the CSV has them all.")


def _downloads(certified: "Certified", scores: Scores, figure: Any, caption: str) -> None:
    from idecode_core.report.guarantees import certified_export

    def export() -> Export:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said on the page
            return certified_export(
                certified,
                scores.names,
                scores.normal,
                scores.new,
                figure,
                caption,
                scores.column,
                scores.kept,
            )

    download_row(
        "certified",
        report=lambda: export().report,
        notebook=lambda: export().notebook,
        key="certify_export",
    )

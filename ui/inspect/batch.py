"""Many files: scored with progress, time left and a way to stop; a table, the strangest first, and what to expect of it."""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal import FalseDetectionLaw, observed_band
from idecode_core.conformal.judge import Judgement
from idecode_core.detector import Detector
from idecode_core.files.cells import defused
from idecode_core.plots.style import DARK, ID, LIGHT, OOD
from idecode_core.verdict import counting
from ui.frame.links import one_of
from ui.frame.look import is_dark
from ui.frame.messages import escape
from ui.frame.panels import rerun_on
from ui.frame.samples import Sample, data_uri
from ui.frame.scores import content_key, score_vectors, take_prepared, vector_store
from ui.inspect.grid import ORDERS, choose_order, pictures, strangest_first, tags_of


def step_buttons(
    key: str,
    before: tuple[str, str],
    after: tuple[str, str],
    at: int,
    count: int,
    go: Callable[..., None],
    *arguments: Any,
) -> None:
    """To the neighbour before and after what is shown. `before` and `after` are a button's words and its shortcut, which it shows; `go` is called with the arguments and the new place."""
    for (label, shortcut), step in ((before, -1), (after, 1)):
        st.button(
            label,
            key=f"{key}_{step}",
            shortcut=shortcut,
            disabled=not 0 <= at + step < count,
            on_click=go,
            args=(*arguments, at + step),
        )


RULES = ("alone", "together")
CHUNK = 8  # files between two reports of progress
FEW = 4  # fewer files are done before a bar could be read
PICTURED = 100  # files; a longer table has no pictures, they would be sent again with every move of a slider


def score_batch(
    detector: Detector, samples: Sequence[Sample], seed: int
) -> tuple[list[Sample], NDArray[np.float64]]:
    """The files that are scored, all of them unless the visitor stopped it, and their V at n_max: (batch, n_max)."""
    store = vector_store()
    missing = {
        sample.content_hash: sample
        for sample in samples
        if (detector, seed, sample.content_hash) not in store
    }
    if len(missing) < FEW:
        return list(samples), score_vectors(detector, samples, seed)
    name = f"{detector.name} {seed} {content_key(samples)}"
    if st.session_state.get("batch_stopped") == name:
        scored = [sample for sample in samples if sample.content_hash not in missing]
        st.warning(
            f"Stopped: {len(scored):,} of {len(samples):,} files were scored; the others are left out.",
            icon=":material/stop_circle:",
        )
        st.button(
            f"Score the other {len(missing):,}", key="batch_go_on", on_click=_stop, args=("",), type="primary"
        )
        if not scored:
            st.stop()
        return scored, score_vectors(detector, scored, seed)
    score_with_progress(detector, list(missing.values()), seed, name)
    return list(samples), score_vectors(detector, samples, seed)


def score_with_progress(detector: Detector, missing: Sequence[Sample], seed: int, name: str) -> None:
    """Chunk by chunk into the session's store: what is scored when the visitor stops it, stays scored."""
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, f"Scoring {len(missing):,} files ...", width="stretch")
        st.button(
            "Stop scoring", key="batch_stop", icon=":material/stop_circle:", on_click=_stop, args=(name,)
        )
    store, begin = vector_store(), time.monotonic()
    for first in range(0, len(missing), CHUNK):
        chunk = missing[first : first + CHUNK]
        vectors = detector.score_vectors(
            (take_prepared(detector, sample, seed) for sample in chunk),
            n=detector.calibration.n_max,
            seed=seed,
        )
        store.update(((detector, seed, s.content_hash), v) for s, v in zip(chunk, vectors, strict=True))
        done = first + len(chunk)
        bar.progress(done / len(missing), progress_words(done, len(missing), time.monotonic() - begin))
    place.empty()


def progress_words(done: int, total: int, seconds: float) -> str:
    """How far it is, and how long it will take.

    >>> progress_words(50, 200, 10.0)
    '50 of 200 files scored, about 30 s left'
    """
    left = seconds / done * (total - done)
    words = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} minutes"
    return f"{done:,} of {total:,} files scored, about {words} left"


def _stop(name: str) -> None:
    st.session_state["batch_stopped"] = name


def settle_row(samples: Sequence[Sample], judgement: Judgement) -> None:
    """With new files, look at the one that the link names, else at the strangest."""
    name = content_key(samples)
    before = st.session_state.get("row_for")
    if before == name:
        return
    st.session_state["row_for"] = name
    if before is not None:
        st.session_state["draw"] = None
    addresses = [sample.address for sample in samples]
    wanted = st.session_state.get("sample")
    st.session_state["row"] = (
        addresses.index(wanted) if wanted in addresses else int(strangest_first(judgement)[0])
    )


def chosen_row(samples: Sequence[Sample]) -> int:
    return min(int(st.session_state.get("row") or 0), len(samples) - 1)


def summary(judgement: Judgement) -> str:
    """How many are flagged, and how many chance alone would flag."""
    flagged, count = int(judgement.is_ood.sum()), len(judgement)
    lead = f"**{flagged:,} of {count:,} files flagged.**"
    if judgement.together:
        return (
            f"{lead} Judged together: on average at most {100 * judgement.epsilon:g} % of those that are flagged are false "
            "discoveries."
        )
    expected = count * FalseDetectionLaw(judgement.k, judgement.epsilon).mean
    low, high = (round(count * rate) for rate in observed_band(judgement.k, judgement.epsilon, count))
    return (
        f"{lead} If all of them belonged, chance alone would flag about {expected:.3g} at epsilon = {judgement.epsilon:g}, and "
        f"{low:,} to {high:,} in 99 of 100 such batches."
    )


def choose_rule() -> None:
    """Alone or together. Drawn before anything is judged: a link may have chosen."""
    one_of(
        "Judge the files",
        RULES,
        "rule",
        label_visibility="visible",
        on_change=lambda: rerun_on("rule"),
        help="Alone: of files that belong, at most a share epsilon is flagged. Together: of the files that are flagged, at "
        "most a share epsilon belongs (Benjamini-Hochberg). Both on average.",
    )


def table(samples: Sequence[Sample], judgement: Judgement, row: int) -> None:
    """The files as a table or a grid of pictures, filtered and sorted; a click or the keyboard chooses what the page looks at."""
    st.markdown(summary(judgement))
    view, order = choose_order(samples, judgement)
    if not len(order):
        st.info("No file passes these filters.", icon=":material/filter_alt_off:")
        return
    if view == "Pictures":
        pictures(samples, judgement, order, row, _look)
    else:
        _table(samples, judgement, order, row)
    seen = np.flatnonzero(order == row)
    at = int(seen[0]) if seen.size else -1
    with st.container(horizontal=True, vertical_alignment="center"):
        by_rank = st.session_state.get("b_order", ORDERS[0]) == ORDERS[0]
        before, after = ("Stranger", "Less strange") if by_rank else ("Before", "After")
        step_buttons(
            "row_step", (before, "Shift+Up"), (after, "Shift+Down"), at, len(order), _step_row, order
        )
        place = f"Row {at + 1:,} of {len(order):,}" if seen.size else "Not among those that pass the filters"
        st.caption(f"{place}: {escape(samples[row].name)}")


def _table(samples: Sequence[Sample], judgement: Judgement, order: NDArray[np.intp], row: int) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    rows = {
        "File": [defused(samples[i].name) for i in order],  # a table can be taken home as CSV
        "Verdict": [judgement[i].answer for i in order.tolist()],
        "p-value": judgement.p_values[order],
        "Rank": judgement.ranks[order],
        "Score": judgement.scores[order],
    }
    if any(tags := tags_of(samples)):
        rows["Tags"] = [defused(", ".join(tags[i])) for i in order]
    if len(order) <= PICTURED:
        rows = {"": [data_uri(samples[i].thumbnail) for i in order], **rows}
    at = np.flatnonzero(order == row).tolist()
    key = f"table_{hashlib.sha256(order.tobytes()).hexdigest()[:12]}_{st.session_state.get('row_moves', 0)}"
    st.dataframe(
        pd.DataFrame(rows).style.map(verdict_colour, subset=["Verdict"]),
        column_config={
            "": st.column_config.ImageColumn(width="small"),
            "File": st.column_config.TextColumn(width="medium"),
            "p-value": st.column_config.NumberColumn(format="%.3g"),
            "Rank": st.column_config.NumberColumn(format="localized"),
            "Score": st.column_config.NumberColumn(format="%.4g"),
        },
        hide_index=True,
        height=min(36 * len(order) + 38, 290),
        key=key,
        on_select=lambda: _choose_row(order, st.session_state[key]["selection"]["rows"]),
        selection_mode="single-row",
        selection_default={"selection": {"rows": at}},
        alt=f"{len(order)} files, with verdict, p-value, rank and score",
    )
    st.caption(f"k = {judgement.k:,}. {counting(samples[0].modality.noun)}")


def _look(row: int) -> None:
    st.session_state["row"], st.session_state["draw"] = row, None
    rerun_on("row")


def verdict_colour(answer: str) -> str:
    """The verdict's colours as text of this page's theme has them: measured to stand out from it."""
    text = (DARK if is_dark() else LIGHT).text
    return f"color: {text[OOD]}; font-weight: 600" if answer == "flagged" else f"color: {text[ID]}"


def _choose_row(order: NDArray[np.intp], rows: Sequence[int]) -> None:
    if rows:
        _look(int(order[rows[0]]))


def _step_row(order: NDArray[np.intp], place: int) -> None:
    st.session_state["row_moves"] = st.session_state.get("row_moves", 0) + 1  # a table that shows the new row
    _look(int(order[place]))

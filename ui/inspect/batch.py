"""Many files, and what to expect of them: filtered by verdict and tag, the strangest first or in the order that one wants to see them, as
a table or a grid of pictures."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal import FalseDetectionLaw, observed_band
from idecode_core.conformal.judge import Judgement
from idecode_core.detector import Detector
from idecode_core.files.names import defused
from idecode_core.folder.settings import FolderSettings
from idecode_core.plots.style import DARK, ID, LIGHT, OOD
from idecode_core.scorer import Inspected
from idecode_core.verdict import counting
from ui.frame.links import LINKED, one_of
from ui.frame.look import is_dark
from ui.frame.messages import escape
from ui.frame.panels import rerun_on
from ui.frame.samples import Sample, data_uri
from ui.frame.scores import content_key, verdicts
from ui.frame.session import opened
from ui.frame.settings import current
from ui.inspect.choose import look_at


@dataclass(eq=False)
class Batch:
    """The files that the page looks at under one detector; and what its panels show of them now, for downloads, which are made when
    they are asked for."""

    config: FolderSettings
    detector: Detector
    samples: Sequence[Sample]
    vectors: NDArray[np.float64]  # (batch, n_max)

    def __post_init__(self) -> None:
        self.judge()
        settle_row(self.samples, self.judgement)
        self.look()

    def judge(self) -> None:
        """As the visitor wants the files judged now: each alone, or all together."""
        together = len(self.samples) > 1 and st.session_state.get("rule") == "together"
        hashes = [sample.content_hash for sample in self.samples]
        self.settings = current()
        self.judgement = verdicts(self.detector, hashes, self.vectors, self.settings, together=together)

    def look(self) -> Sample:
        """The file that is looked at now."""
        self.row = min(int(st.session_state.get("row") or 0), len(self.samples) - 1)
        return self.samples[self.row]

    def inspect(self) -> Inspected:
        """That file in full, at n_max."""
        return look_at(self.detector, self.look(), current().seed)

    def scores(self) -> NDArray[np.float64]:
        """Its scores, (n,)."""
        self.look()
        return self.vectors[self.row, : current().n]


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
PICTURED = 100  # files; a longer table has no pictures, they would be sent again with every move of a slider


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
        pictures(samples, judgement, order, row)
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


VIEWS = ("Pictures", "Table")
VERDICTS = ("all verdicts", "flagged", "not flagged")
ORDERS = ("strangest first", "least strange first", "by name")
ALL, UNTAGGED = "all tags", "without a tag"
STYLE = """
<style>
.st-key-batch_pictures button { padding: 0.3rem; border-radius: 0.6rem; height: auto; }
.st-key-batch_pictures button p { display: flex; flex-direction: column; align-items: center; gap: 0.15rem; }
.st-key-batch_pictures img {
  height: 4.5rem; max-height: none; width: auto; max-width: 9rem; object-fit: contain; image-rendering: pixelated; border-radius: 4px;
}
</style>
"""
AT_ONCE = 60
"""Pictures of a grid; the filters and the table lead to the others."""


def tags_of(samples: Sequence[Sample]) -> list[tuple[str, ...]]:
    """The tags of each file in the session that is open."""
    session = opened()
    known: Mapping[str, tuple[str, ...]] = session.tags if session is not None else {}
    return [known.get(sample.content_hash, ()) for sample in samples]


def strangest_first(judgement: Judgement) -> NDArray[np.intp]:
    """Places of the files: the smallest p-value first, among equals the largest score."""
    return np.lexsort((-judgement.scores, judgement.p_values))


def arranged(
    names: Sequence[str],
    judgement: Judgement,
    tags: Sequence[Sequence[str]],
    verdict: str = VERDICTS[0],
    tag: str = ALL,
    order: str = ORDERS[0],
) -> NDArray[np.intp]:
    """Places of the files that pass the filters, in the order wanted."""
    places = strangest_first(judgement)
    if order == "least strange first":
        places = places[::-1]
    elif order == "by name":
        places = np.array(sorted(range(len(names)), key=lambda i: names[i]), np.intp)
    keep = [
        i
        for i in places.tolist()
        if (verdict == VERDICTS[0] or judgement[i].answer == verdict)
        and (tag == ALL or tag in tags[i] or (tag == UNTAGGED and not tags[i]))
    ]
    return np.array(keep, np.intp)


def choose_order(samples: Sequence[Sample], judgement: Judgement) -> tuple[str, NDArray[np.intp]]:
    """The view, and the places that it shows; the choices are in the link."""
    tags = tags_of(samples)
    words = sorted({word for some in tags for word in some})
    options = {
        "b_verdict": VERDICTS,
        "b_order": ORDERS,
        **({"b_tag": (ALL, UNTAGGED, *words)} if words else {}),
    }
    with st.container(horizontal=True, vertical_alignment="center", key="arrange"):
        view = one_of("Show as", VIEWS, "b_view", on_change=lambda: rerun_on("arranged"))
        for key, choices in options.items():
            if st.session_state.get(key, choices[0]) not in choices:
                st.session_state[key] = choices[0]
            st.selectbox(
                {"b_verdict": "Verdict", "b_order": "Order", "b_tag": "Tag"}[key],
                choices,
                key=key,
                label_visibility="collapsed",
                width=180,
                on_change=lambda: rerun_on("arranged"),
                **LINKED,
            )
    chosen = {key: st.session_state[key] for key in options}
    names = [sample.name for sample in samples]
    return view, arranged(
        names, judgement, tags, chosen["b_verdict"], chosen.get("b_tag", ALL), chosen["b_order"]
    )


def pictures(samples: Sequence[Sample], judgement: Judgement, order: NDArray[np.intp], row: int) -> None:
    """One small picture per file with its verdict's colour and p-value; a click looks at it."""
    tags, shown = tags_of(samples), order[:AT_ONCE].tolist()
    labels = {i: _label(samples[i], judgement, i, tags[i]) for i in shown}
    st.session_state["batch_grid"] = row if row in labels else None

    def choose() -> None:
        if (clicked := st.session_state["batch_grid"]) is not None:
            _look(int(clicked))

    st.html(STYLE)
    with st.container(key="batch_pictures"):
        st.pills(
            "Choose a file",
            shown,
            format_func=labels.__getitem__,
            key="batch_grid",
            on_change=choose,
            label_visibility="collapsed",
            wrap=True,
        )
    if len(order) > AT_ONCE:
        st.caption(f"The first {AT_ONCE} of {len(order):,}. The filters and the table lead to the others.")


def _label(sample: Sample, judgement: Judgement, i: int, tags: Sequence[str]) -> str:
    colour = "orange" if judgement.is_ood[i] else "blue"
    tagged = " :material/sell:" if tags else ""
    return f"![{escape(sample.name)}]({data_uri(sample.thumbnail)}) :{colour}[{judgement.p_values[i]:.3g}]{tagged}"

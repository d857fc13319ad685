"""Many files in the order that one wants to see them: filtered by verdict and tag, sorted, and shown as a grid of pictures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import Judgement
from ui.frame.links import LINKED, one_of
from ui.frame.messages import escape
from ui.frame.panels import rerun_on
from ui.frame.samples import Sample, data_uri
from ui.frame.session import opened

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


def pictures(
    samples: Sequence[Sample],
    judgement: Judgement,
    order: NDArray[np.intp],
    row: int,
    look: Callable[[int], Any],
) -> None:
    """One small picture per file with its verdict's colour and p-value; a click looks at it."""
    tags, shown = tags_of(samples), order[:AT_ONCE].tolist()
    labels = {i: _label(samples[i], judgement, i, tags[i]) for i in shown}
    st.session_state["batch_grid"] = row if row in labels else None

    def choose() -> None:
        if (clicked := st.session_state["batch_grid"]) is not None:
            look(int(clicked))

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

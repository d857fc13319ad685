"""The transformed variants of one input: a gallery and a chart of their scores, each choosing for the other.

A draw may hold several variants (four when it takes all rotation ranges, one for each member of a merged detector);
its score is the one that enters V. So the unit of choice is the draw.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import places
from ui.frame.cache import own_store
from ui.frame.links import link_value, put_in_link
from ui.frame.look import CHART
from ui.frame.samples import Sample, data_uri, png
from ui.frame.scores import MAX_INSPECTED, inspect
from ui.frame.settings import current, panel
from ui.inspect.panels import chosen_row

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scorer import Inspected, Variant


@panel("draws")
def draws(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """Chart, enlarged draw, gallery."""
    settings, row = current(), chosen_row(samples)
    sample, scores = samples[row], vectors[row, : settings.n]
    inspected = inspect(detector, sample, settings.seed)
    by_draw = grouped((detector, settings.seed, sample.content_hash), inspected)[: settings.n]
    chosen = chosen_draw(scores)
    put_in_link("draw", str(chosen + 1))
    share = places(detector.calibration, scores)[chosen]
    left, right = st.columns([3, 2], gap="large")
    with left:
        chart(scores, detector, chosen)
        strip([picture for _, picture in by_draw], scores, chosen)
    with right, st.container(key="chosen"):
        st.markdown(
            f"**Draw {chosen + 1}** scores **{scores[chosen]:.3g}**: stranger than {share:.1%} of single calibration draws."
        )
        sample.modality.enlarge(detector, inspected, by_draw[chosen][0])


def grouped(key: object, inspected: "Inspected") -> "list[tuple[list[Variant], str]]":
    """For each draw its variants, and one small picture of them all as the browser takes it; made once for all n."""
    store: dict[object, list[tuple[list[Variant], str]]] = own_store("strip_store", MAX_INSPECTED)
    if key not in store:
        groups = [list(group) for _, group in groupby(inspected.variants, key=lambda variant: variant.draw)]
        store[key] = [
            (group, data_uri(png(montage([variant.image for variant in group])))) for group in groups
        ]
    return store[key]


def chosen_draw(scores: NDArray[np.float64]) -> int:
    """The visitor's choice, else the link's, else the strangest draw."""
    if "draw" not in st.session_state:
        linked = link_value("draw") or ""
        st.session_state["draw"] = int(linked) - 1 if linked.isdigit() else None
    chosen = st.session_state["draw"]
    return chosen if chosen is not None and 0 <= chosen < len(scores) else int(np.argmax(scores))


def chart(scores: NDArray[np.float64], detector: "Detector", chosen: int) -> None:
    from idecode_core.plots import inspect as figures

    key = f"draw_chart_{chosen}"  # a new chart for each choice, so that no old selection lingers in it
    st.plotly_chart(
        figures.draw_scores(scores, detector.calibration.score_vectors.ravel(), chosen),
        key=key,
        on_select=lambda: _choose(_clicked(st.session_state[key])),
        selection_mode="points",
        config=CHART,
        alt=f"Scores of {len(scores)} draws against the calibration band",
    )


def strip(pictures: list[str], scores: NDArray[np.float64], chosen: int) -> None:
    """The gallery: one small picture per draw, with its score."""
    labels = [
        f"![draw {i + 1}]({picture}) {score:.3g}"
        for i, (picture, score) in enumerate(zip(pictures, scores, strict=True))
    ]
    st.session_state["draws_gallery"] = chosen
    with st.container(key="draws"):
        st.pills(
            "Choose a draw",
            range(len(labels)),
            format_func=labels.__getitem__,
            key="draws_gallery",
            on_change=lambda: _choose(st.session_state["draws_gallery"]),
            label_visibility="collapsed",
            wrap=True,
        )


def montage(images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """One picture as it is; several in a square grid."""
    if len(images) == 1:
        return images[0]
    side = int(np.ceil(np.sqrt(len(images))))
    blank = np.zeros_like(images[0])
    padded = images + [blank] * (side * side - len(images))
    rows = [np.concatenate(padded[i : i + side], axis=1) for i in range(0, side * side, side)]
    return np.concatenate(rows, axis=0)


def _clicked(event: Any) -> int | None:
    points = event["selection"]["points"]
    return int(points[0]["x"]) - 1 if points else None


def _choose(draw: int | None) -> None:
    if draw is not None:
        st.session_state["draw"] = draw

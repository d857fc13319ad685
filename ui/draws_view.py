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

from idecode_core.verdict import places
from ui.inspect_view import CHART, chosen_row
from ui.links import link_value, put_in_link
from ui.messages import guard
from ui.samples import Sample, data_uri, png
from ui.scores import MAX_VARIANTS, own_store, variants
from ui.settings import current, finished

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scoring import Variant


SMALL, LARGE = 72, 200  # pixels of an enlarged variant: one of several, the only one


@st.fragment(key="draws")
def draws(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """Chart, enlarged draw, gallery."""
    with guard():
        settings, row = current(), chosen_row(samples)
        scores = vectors[row, : settings.n]
        by_draw = grouped(detector, samples[row], settings.seed)[: settings.n]
        chosen = chosen_draw(scores)
        put_in_link("draw", str(chosen + 1))
        shares = places(detector.calibration, scores)
        left, right = st.columns([3, 2], gap="large")
        with left:
            chart(scores, detector, chosen)
            strip([pictures for _, pictures in by_draw], scores, chosen)
        with right, st.container(key="chosen"):
            if samples[row].modality == "audio":
                from ui.audio_view import enlarged_sound

                (variant,) = by_draw[chosen][0]
                enlarged_sound(detector, samples[row], variant, float(shares[chosen]))
            else:
                enlarged(by_draw[chosen][0], float(scores[chosen]), float(shares[chosen]), chosen)
        finished("draws")


def grouped(detector: "Detector", sample: Sample, seed: int) -> "list[tuple[list[Variant], str]]":
    """For each draw its variants, and one small picture of them all as the browser takes it; made once for all n."""
    store = own_store("strip_store", MAX_VARIANTS)
    key = (detector, seed, sample.content_hash)
    if key not in store:
        made = variants(detector, sample, seed)
        groups = [list(group) for _, group in groupby(made, key=lambda variant: variant.draw)]
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
    """The gallery: one small picture a draw, with its score."""
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


def enlarged(group: "list[Variant]", score: float, share: float, draw: int) -> None:
    """One draw in full: each variant with what was applied and what the model said."""
    st.markdown(
        f"**Draw {draw + 1}** scores **{score:.3g}**: stranger than {share:.1%} of single calibration draws."
    )
    side = SMALL if len(group) > 1 else LARGE
    for variant in group:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.image(variant.image, width=side, alt=variant.applied)
            own_score = f"  \n**Score** {variant.score:.3g}" if len(group) > 1 else ""
            with st.container(width="stretch"):
                st.caption(f"**Applied** {variant.applied}  \n**Model says** {variant.predicted}{own_score}")


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

"""The transformed variants of one input: a gallery and a chart of their scores, each choosing for the other; and why a draw
scores what it scores, in parts that add up. And what more draws, or others, do to the p-value.

A draw may hold several variants (four when it takes all rotation ranges, one for each member of a merged detector);
its score is the one that enters V. So the unit of choice is the draw.
"""

import html
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from idecode_core.conformal.judge import places
from idecode_core.detector import Detector
from idecode_core.plots import inspect as figures
from idecode_core.report.why import parts, sum_in_words
from idecode_core.scorer import Inspected, Variant
from idecode_core.scorers.merged import MergedScorer
from ui.frame.cache import remembered
from ui.frame.links import link_value, put_in_link
from ui.frame.look import CHART, chart, themed
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel, rerun_on
from ui.frame.samples import data_uri, png
from ui.frame.scores import MAX_INSPECTED, growing_p_values, vectors_over_seeds, verdicts
from ui.frame.settings import current
from ui.inspect.batch import Batch, step_buttons

SEEDS = 10
GAP = 2  # pixels between the variants of a strip
STYLE = """
<style>
.st-key-draws button img { height: 56px; width: auto; object-fit: fill; }
@media (max-width: 1340px) { .st-key-draws button img { height: 42px; } }
.st-key-model_input img { image-rendering: pixelated; border-radius: 8px; }
</style>
"""


@panel("draws", on=("n", "row", "draw"))
def draws(batch: Batch) -> None:
    """The variants with their scores. The link follows the choice."""
    scores = batch.scores()
    by_draw, chosen = grouped(batch)[: len(scores)], chosen_draw(scores)
    # The strangest draw needs no word in the link. It changes with n, and a message that is on its way while the slider moves
    # would put an old n into the URL: a message carries the whole query.
    put_in_link("draw", None if st.session_state["draw"] is None else str(chosen + 1))
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(
            f"### {len(scores)} random transforms, and their scores",
            width="content",
            help="The input is transformed at random, and the model is asked what it sees. It learned to answer well for inputs that "
            "belong, so a high score is strange.",
        )
        steps(chosen, len(scores))
    strip([picture for _, picture in by_draw], scores, chosen)


@panel("scores_chart", on=("n", "row", "draw"))
def scores_chart(batch: Batch) -> None:
    """The scores of single draws over the calibration band."""
    scores, band = batch.scores(), batch.detector.calibration.score_vectors.ravel()
    chosen = chosen_draw(scores)
    key = f"draw_chart_{chosen}"  # a new chart for each choice, so that no old selection lingers in it
    st.plotly_chart(
        themed(figures.draw_scores(scores, band, chosen, height=216)),
        key=key,
        on_select=lambda: _choose(_clicked(st.session_state[key])),
        selection_mode="points",
        config=CHART,
        alt=f"Scores of {len(scores)} draws against the calibration band",
    )


@panel("explain", on=("n", "row", "draw"))
def explain(batch: Batch) -> None:
    """The chosen draw enlarged, and its score in parts; without draws, the one score in parts."""
    detector, scores, inspected = batch.detector, batch.scores(), batch.inspect()
    if detector.calibration.n_max == 1:
        st.markdown(f"It scores **{scores[0]:.3g}**.")
        why(detector, inspected, 0, inspected.variants)
        return
    chosen = chosen_draw(scores)
    variants, _ = grouped(batch)[chosen]
    share = places(detector.calibration, scores)[chosen]
    # a share just below 1 is not to be read as all of them
    than = (
        "every single calibration draw"
        if share == 1
        else f"{min(share, 0.999):.1%} of single calibration draws"
    )
    st.markdown(f"**Draw {chosen + 1}** scores **{scores[chosen]:.3g}**: stranger than {than}.")
    left, right = st.columns(2, gap="large")
    with left, st.container(key="chosen"):
        batch.look().modality.enlarge(detector, inspected, variants)
    with right:
        why(detector, inspected, chosen, variants)


def why(detector: Detector, inspected: Inspected, draw: int, variants: Sequence[Variant]) -> None:
    """The draw's score as its terms: bars that add up, and what each is."""
    pieces = parts(detector.scorer, inspected, draw)
    total = float(inspected.score_vector[draw])
    merged = isinstance(detector.scorer, MergedScorer)
    words = sum_in_words(pieces, total, len(variants), merged=merged)
    bars = [(html.escape(part.name), part.value) for part in pieces]
    if len(pieces) == 1 and len(variants) > 1:  # nothing to take apart but the mean
        bars = [
            (
                f"{html.escape(variant.applied)}<br>{variant.score:.3g} / {len(variants)}",
                variant.score / len(variants),
            )
            for variant in variants
        ]
    if len(bars) > 1:
        chart(
            figures.score_parts([name for name, _ in bars], [value for _, value in bars]),
            key="why_chart",
            alt=f"The parts of the score of draw {draw + 1}: {words}",
        )
    lines = [f"**{escape(part.name)}** ({part.value:.3g}): {escape(part.words)}." for part in pieces]
    st.caption("  \n".join([*lines, escape(words)] if words else lines))


def chance(batch: Batch) -> None:
    """What more draws, and other draws, do to the p-value."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("### More transforms")
        st.caption("Does the p-value settle as n grows? If it still wanders at the right, use more.")
        growth(batch)
    with right:
        st.markdown("### Other transforms")
        drawn(batch)


@panel("growth", on=(*JUDGED, "row"))
def growth(batch: Batch) -> None:
    """The p-value against the number of draws."""
    settings, sample = current(), batch.look()
    vector = batch.vectors[batch.row]
    p_values = growing_p_values(batch.detector, sample, vector, settings.seed, settings.aggregate)
    chart(
        figures.p_as_n_grows(p_values, settings.epsilon, settings.n),
        key="growth_chart",
        alt=f"The p-value for n from 1 to {len(p_values)}",
    )


@panel("drawn", on=(*JUDGED, "row"))
def drawn(batch: Batch) -> None:
    """The p-value under ten seeds, once the visitor asked for it."""
    detector, settings, sample = batch.detector, current(), batch.look()
    drawn_for = (detector.name, sample.content_hash, settings.seed)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Re-draw the transforms",
            icon=":material/casino:",
            on_click=_next_seed,
            help="Takes the next seed: other random transforms of the same input.",
        )
        if st.button(
            f"Draw {SEEDS} times", icon=":material/replay_10:", help="Scores the input under ten seeds."
        ):
            st.session_state["drawn_for"] = drawn_for
    if st.session_state.get("drawn_for") != drawn_for:
        st.caption("How much of the p-value is the luck of the draw? Draw ten times and see it move.")
        return
    seeds = [settings.seed + i for i in range(SEEDS)]
    vectors = vectors_over_seeds(detector, sample, seeds)
    judgement = verdicts(detector, (), vectors, replace(settings, smoothed=False))
    low, high = judgement.p_values.min(), judgement.p_values.max()
    st.caption(
        f"Over {SEEDS} seeds p runs from {low:.3g} to {high:.3g}; flagged {judgement.is_ood.sum()} times of {SEEDS}. "
        "A wide spread asks for a larger n."
    )
    chart(
        figures.p_over_seeds(judgement.p_values, seeds, settings.epsilon, height=240),
        key="chance_chart",
        alt=f"p-values under {SEEDS} seeds",
    )


def _next_seed() -> None:
    st.session_state["seed"] = int(st.session_state["seed"]) + 1
    st.rerun()


def grouped(batch: Batch) -> list[tuple[list[Variant], str]]:
    """For each draw its variants, and one small picture of them all as the browser takes it; made once for all n."""
    key = (batch.detector, current().seed, batch.look().content_hash)

    def make() -> list[tuple[list[Variant], str]]:
        variants = batch.inspect().variants
        groups = [list(group) for _, group in groupby(variants, key=lambda variant: variant.draw)]
        return [(group, data_uri(png(side_by_side([view.image for view in group])))) for group in groups]

    return remembered("strip_store", MAX_INSPECTED, key, make)


def chosen_draw(scores: NDArray[np.float64]) -> int:
    """The visitor's choice, else the link's, else the strangest draw."""
    if "draw" not in st.session_state:
        linked = link_value("draw") or ""
        is_number = linked.isascii() and linked.isdigit() and len(linked) < 5
        st.session_state["draw"] = int(linked) - 1 if is_number else None
    chosen = st.session_state["draw"]
    return chosen if chosen is not None and 0 <= chosen < len(scores) else int(np.argmax(scores))


def steps(chosen: int, count: int) -> None:
    """To the draw before and after, with the arrow keys too."""
    with st.container(horizontal=True, vertical_alignment="center", width="content", key="draw_steps"):
        st.caption(f"Draw {chosen + 1} of {count}", width="content")
        step_buttons("draw_step", ("Draw before", "Left"), ("Draw after", "Right"), chosen, count, _choose)


def strip(pictures: list[str], scores: NDArray[np.float64], chosen: int) -> None:
    """The gallery: one small picture per draw, with its score."""
    labels = [
        f"![draw {i + 1}]({picture}) {score:.3g}"
        for i, (picture, score) in enumerate(zip(pictures, scores, strict=True))
    ]
    # A new row for each draw on show: the old one's answer, sent while n moves on, would pass for a visitor's choice.
    key = f"draws_gallery_{chosen}"
    st.session_state[key] = chosen
    with st.container(key="draws"):
        st.pills(
            "Choose a draw",
            range(len(labels)),
            format_func=labels.__getitem__,
            key=key,
            on_change=choose_another,
            args=(key, chosen),
            label_visibility="collapsed",
            wrap=True,
        )


def side_by_side(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """A strip: all variants in one row at the height of the tallest, with a see-through gap; (h, w, 4) if there are several."""
    if len(images) == 1:
        return images[0]
    height = max(len(image) for image in images)
    pieces: list[NDArray[np.uint8]] = []
    for image in images:
        width = round(image.shape[1] * height / len(image))
        same = Image.fromarray(np.ascontiguousarray(image)).convert("RGBA")
        pieces += [
            np.asarray(same.resize((width, height), Image.Resampling.NEAREST)),
            np.zeros((height, GAP, 4), np.uint8),
        ]
    return np.concatenate(pieces[:-1], axis=1)


def _clicked(event: Any) -> int | None:
    points = event["selection"]["points"]
    return int(points[0]["x"]) - 1 if points else None


def choose_another(key: str, shown: int) -> None:
    """A click in the gallery. The draw on show is no choice, but the browser's late answer while n moves on: taken for one, it
    would put an old n into the link."""
    if st.session_state[key] != shown:
        _choose(st.session_state[key])


def _choose(draw: int | None) -> None:
    if draw is not None:
        st.session_state["draw"] = draw
        rerun_on("draw")

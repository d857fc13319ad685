"""Where is it strange? For pictures a map of how the score falls when parts are hidden, for sounds the masks that moved it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.audio.listening import hidden_cells, mask_effects, spectrogram
from idecode_core.audio.scorer import InspectedSound, TakesSounds
from idecode_core.detector import Detector
from idecode_core.image.occlusion import OcclusionMap, picture_occlusion
from idecode_core.plots.inspect import strange_parts
from idecode_core.report.content import Figure
from idecode_core.scorers.patches import InspectedPatches
from ui.frame.cache import session_store
from ui.frame.look import show
from ui.frame.panels import panel
from ui.frame.samples import Sample
from ui.frame.scores import MAX_INSPECTED
from ui.frame.settings import Chosen, current
from ui.inspect.batch import Batch
from ui.inspect.choose import input_pictures, model_input

LOOK_FOR = (
    "Orange: hidden, the score falls, so this part makes it strange. Blue: hidden, it rises. The same random transforms for "
    "all copies. The guarantee is about the verdict, not about this map."
)
LOOK_FOR_PATCHES = (
    "Orange: far from every patch that is known, farther than most of this picture. The score is the largest of these distances, "
    "of the picture warped a little. The guarantee is about the verdict, not about this map."
)
LOOK_FOR_MASKS = (
    "Orange: draws that hide this part score higher than those that show it, so the answer hangs on it. Blank: all draws hide "
    "it, or none. With few draws neighbours share their masks; read it roughly."
)


@dataclass(frozen=True, eq=False)
class Mapped:
    """A picture at the model's size, and the map over it."""

    pixels: NDArray[np.uint8]
    occlusion: OcclusionMap


def map_store() -> dict[Any, Mapped]:
    return session_store("map_store", MAX_INSPECTED)


def map_key(detector: Detector, sample: Sample, settings: Chosen) -> tuple[object, ...]:
    return (detector, settings.seed, sample.content_hash, settings.n, settings.aggregate)


@panel("strange", on=("n", "aggregate", "row"))
def strange(batch: Batch) -> None:
    """On demand, because a map takes dozens of scores."""
    detector, settings, sample, inspected = batch.detector, current(), batch.look(), batch.inspect()
    if isinstance(inspected, InspectedSound) and isinstance(detector.scorer, TakesSounds):
        moved_by_masks(detector, inspected)
        return
    seen = list(input_pictures(model_input(detector, sample, settings.seed)))
    if not seen:
        return
    if isinstance(inspected, InspectedPatches):
        patches_map(seen[0], inspected)
        return
    mapped = map_store().get(map_key(detector, sample, settings))
    if mapped is None:
        offer = st.empty()
        with offer.container():
            st.caption(
                "Parts of the picture are hidden one after the other, and the score is taken again: where it falls most, there "
                "it is strange. A coarse map first, then a finer one."
            )
            wanted = st.button("Map it", key="map_it", icon=":material/grid_on:")
        if not wanted:
            return
        offer.empty()
        mapped = make_map(detector, sample, settings, seen[0])
    left, right = st.columns([1.2, 1], gap="large")
    with left:
        show(map_figure(mapped), key="map_chart", look_for=LOOK_FOR)
    with right:
        st.markdown(map_words(mapped.occlusion))


def patches_map(pixels: NDArray[np.uint8], inspected: InspectedPatches) -> None:
    """What came with the score: nothing has to be hidden for it."""
    distances = inspected.distances
    row, column = np.unravel_index(int(distances.argmax()), distances.shape)
    left, right = st.columns([1.2, 1], gap="large")
    with left:
        show(
            strange_parts(pixels, np.maximum(distances - np.median(distances), 0)),
            key="map_chart",
            look_for=LOOK_FOR_PATCHES,
        )
    with right:
        st.markdown(
            f"The strangest patch lies **{place_in_words(int(row), int(column), len(distances))}**, at a distance of "
            f"**{distances.max():.3g}** from the nearest known one; half of all patches are within {np.median(distances):.3g}."
        )


def place_in_words(row: int, column: int, cells: int) -> str:
    """
    >>> place_in_words(0, 27, 28), place_in_words(14, 14, 28)
    ('top right', 'middle centre')
    """
    down = ("top", "middle", "bottom")[min(3 * row // cells, 2)]
    return f"{down} {('left', 'centre', 'right')[min(3 * column // cells, 2)]}"


def make_map(detector: Detector, sample: Sample, settings: Chosen, pixels: NDArray[np.uint8]) -> Mapped:
    """The coarse map as soon as it is there, then the finer one in its place."""
    bar, early = st.progress(0.0, "Hiding parts ..."), st.empty()
    point = model_input(detector, sample, settings.seed)

    def progress(share: float) -> None:
        bar.progress(share, f"Hiding parts: {share:.0%}")

    maps = picture_occlusion(
        detector.scorer,
        point,
        n=settings.n,
        aggregate=settings.aggregate,
        progress=progress,
    )
    mapped = Mapped(pixels, next(maps))
    with early.container():
        show(map_figure(mapped), key="map_chart_coarse", look_for="A first, coarse map; a finer one follows.")
    for occlusion in maps:
        mapped = Mapped(pixels, occlusion)
    bar.empty()
    early.empty()
    map_store()[map_key(detector, sample, settings)] = mapped
    return mapped


def map_figure(mapped: Mapped) -> Any:
    return strange_parts(mapped.pixels, mapped.occlusion.drops)


def map_words(occlusion: OcclusionMap) -> str:
    """The strongest part, in words; when no part counts, that."""
    row, column = np.unravel_index(int(occlusion.drops.argmax()), occlusion.drops.shape)
    most, cells = float(occlusion.drops.max()), len(occlusion.drops)
    if most <= 0:
        return f"Hiding any part raises the score of {occlusion.whole:.3g}: no single part makes this picture strange."
    return (
        f"The score is {occlusion.whole:.3g}. It falls most, by **{most:.3g}**, when the "
        f"**{place_in_words(int(row), int(column), cells)}** is hidden. "
        f"{occlusion.windows} parts were hidden, each a quarter of the side wide."
    )


def map_export(name: str, mapped: Mapped) -> tuple[Figure, ...]:
    """For the report, if the visitor asked for a map."""
    return (Figure(map_figure(mapped), f"{name}: where it is strange. {LOOK_FOR}"),)


def masks_figure(detector: Detector, inspected: InspectedSound) -> Any:
    from idecode_core.plots.audio import moved_by_masks

    scorer: Any = detector.scorer
    seen = spectrogram(inspected.clip.sound, scorer.features)
    hidden = np.stack(
        [
            hidden_cells(scorer.features, scorer.transforms, drawn, seen.decibels.shape[1])
            for drawn in inspected.parameters
        ]
    )
    effects = mask_effects(hidden, inspected.score_vector)
    return moved_by_masks(effects, seen.seconds_per_frame, seen.hertz)


def moved_by_masks(detector: Detector, inspected: InspectedSound) -> None:
    st.markdown("### Which masks moved the score?")
    st.caption(f"From all {len(inspected.score_vector)} draws, whatever n is.")
    show(masks_figure(detector, inspected), key="masks_chart", look_for=LOOK_FOR_MASKS)

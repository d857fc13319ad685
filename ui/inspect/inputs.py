"""What the model takes in of the sample that is looked at: kept beside its scores, so that nothing is decoded twice."""

from collections.abc import Iterator

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.detector import Detector
from idecode_core.draws import Prepared
from idecode_core.scorer import Inspected
from ui.frame.cache import remembered
from ui.frame.pictures import LARGE
from ui.frame.samples import Sample
from ui.frame.scores import MAX_INSPECTED, take_prepared, vector_store


def model_input(detector: Detector, sample: Sample, seed: int) -> Prepared:
    key = (detector, seed, sample.content_hash)
    return remembered("input_store", MAX_INSPECTED, key, lambda: take_prepared(detector, sample, seed))


def look_at(detector: Detector, sample: Sample, seed: int) -> Inspected:
    """One sample in full at n_max; its score vector comes from the same pass, if it has none yet."""
    key, n_max = (detector, seed, sample.content_hash), detector.calibration.n_max
    point = model_input(detector, sample, seed)
    found = remembered(
        "inspected_store", MAX_INSPECTED, key, lambda: detector.inspect(point, n=n_max, seed=seed)
    )
    vector_store().setdefault(key, found.score_vector)
    return found


def input_pictures(point: Prepared) -> Iterator[NDArray[np.uint8]]:
    """Pixels (size, size, 3) that models see: one picture, or of a merged detector those that differ."""
    seen: list[NDArray[np.uint8]] = []
    for own in point.x if isinstance(point.x, tuple) else (point,):
        x = own.x
        if (
            isinstance(x, np.ndarray)
            and x.dtype == np.uint8
            and not any(np.array_equal(x, other) for other in seen)
        ):
            seen.append(x)
            yield x


def as_the_model_sees_it(detector: Detector, sample: Sample, seed: int) -> None:
    """The original beside the resized input."""
    seen = list(input_pictures(model_input(detector, sample, seed)))
    if not seen:
        return
    st.markdown("#### What the model sees")
    with st.container(horizontal=True, key="model_input"):
        with st.container(width=LARGE):
            st.image(sample.picture, width=LARGE, alt=f"{sample.name}, as it came")
            st.caption("As it came")
        for pixels in seen:
            h, w = pixels.shape[:2]
            grey = " without colour" if (pixels == pixels[..., :1]).all() else ""
            with st.container(width=LARGE):
                st.image(pixels, width=LARGE, alt=f"{sample.name}, as the model sees it")
                st.caption(f"As the model sees it: the middle square at {w} x {h} pixels{grey}")

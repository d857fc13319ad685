"""Score vectors of what a visitor looks at: computed once at n_max, kept for this session only.

Keyed by (detector, seed, content), which determine them; n, epsilon and F only slice what is here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.verdict import p_by_n
from ui.samples import Sample

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scoring import Variant

MAX_VECTORS = 20_000
MAX_VARIANTS = 24
PROGRESS_FROM = 4  # fewer inputs are done before a bar could be read


def score_vectors(detector: "Detector", samples: Sequence[Sample], seed: int) -> NDArray[np.float64]:
    """V at n_max for each sample: (batch, n_max). Runs the model only for what this session has not scored yet."""
    store = own_store("score_store", MAX_VECTORS)
    keys = [(detector, seed, sample.content_hash) for sample in samples]
    missing = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in store}
    if missing:
        bar = (
            st.progress(0.0, f"Scoring {len(missing)} inputs ...") if len(missing) >= PROGRESS_FROM else None
        )
        vectors = detector.score_vectors(
            (sample.decode() for sample in missing.values()),
            n=detector.calibration.n_max,
            seed=seed,
            progress=(lambda done: bar.progress(done / len(missing))) if bar else None,
        )
        store.update(zip(missing, vectors, strict=True))
        if bar:
            bar.empty()
    return np.stack([store[key] for key in keys])


def vectors_over_seeds(detector: "Detector", sample: Sample, seeds: Sequence[int]) -> NDArray[np.float64]:
    """V at n_max of one sample under several seeds: (seeds, n_max)."""
    return np.concatenate([score_vectors(detector, [sample], seed) for seed in seeds])


def growing_p_values(
    detector: "Detector", sample: Sample, vector: NDArray[np.float64], seed: int, aggregate: str
) -> NDArray[np.float64]:
    """The p-values of one sample with its first 1, 2, ..., n_max draws; epsilon and n only mark places in them."""
    store = own_store("growth_store", MAX_VARIANTS)
    key = (detector, seed, sample.content_hash, aggregate)
    if key not in store:
        store[key] = p_by_n(detector.calibration, vector, aggregate)
    return store[key]


def variants(detector: "Detector", sample: Sample, seed: int) -> "list[Variant]":
    """The transformed versions of one sample, at n_max."""
    store = own_store("variant_store", MAX_VARIANTS)
    key = (detector, seed, sample.content_hash)
    if key not in store:
        store[key] = detector.variants(sample.decode(), n=detector.calibration.n_max, seed=seed)
    return store[key]


def own_store(name: str, size: int) -> dict[Any, Any]:
    """A session's own store; the oldest entries go when it is full."""
    store: dict[Any, Any] = st.session_state.setdefault(name, {})
    while len(store) > size:
        del store[next(iter(store))]
    return store

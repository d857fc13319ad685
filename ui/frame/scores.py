"""Score vectors of what a visitor looks at: computed once at n_max, kept for this session only.

Keyed by (detector, seed, content), which determine them; n, epsilon and F only slice what is here. torch is at work here,
so pages import this file when they need it.

What is stored with a detector, for the pages that look at it: scores of test sets, or a sentence about what is missing.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import p_by_n
from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import get_configs, get_detector, get_stored, remembered, session_store
from ui.frame.messages import escape, refused
from ui.frame.modality import Modality
from ui.frame.samples import Sample, decoded_sample
from ui.frame.settings import current

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.draws import Prepared

    Key = tuple[Detector, int, str]
    from idecode_core.folder.stored import Stored


MAX_VECTORS = 20_000
MAX_PREPARED = 500  # a few kilobytes each for pictures, a megabyte for sounds
MAX_INSPECTED = 24
PROGRESS_FROM = 4  # fewer inputs are done before a bar could be read


def sample_of_upload(modality: Modality, name: str, data: bytes) -> Sample:
    """A visitor's file, decoded once: its hash, its pictures, and what the detector in use takes in.

    An InputError says in one sentence why it cannot be used.
    """
    decoded = modality.read(data, name)
    sample = decoded_sample(modality, name, data, decoded)
    settings = current()
    detector = get_detector(get_configs()[settings.detector])
    waiting = session_store("prepared_store", MAX_PREPARED)
    waiting[detector, settings.seed, sample.content_hash] = detector.scorer.prepare(decoded, settings.seed)
    return sample


def take_prepared(detector: "Detector", sample: Sample, seed: int) -> "Prepared":
    """What the model takes in, from the sample's arrival; decoded again under another detector or seed."""
    waiting: dict[Key, Prepared] = session_store("prepared_store", MAX_PREPARED)
    prepared = waiting.pop((detector, seed, sample.content_hash), None)
    return prepared or detector.scorer.prepare(sample.decode(), seed)


def vector_store() -> "dict[Key, NDArray[np.float64]]":
    return session_store("score_store", MAX_VECTORS)


def score_vectors(detector: "Detector", samples: Sequence[Sample], seed: int) -> NDArray[np.float64]:
    """V at n_max for each sample: (batch, n_max). Runs the model only for what this session has not scored yet."""
    store = vector_store()
    keys = [(detector, seed, sample.content_hash) for sample in samples]
    missing = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in store}
    if missing:
        total = len(missing)
        bar = st.progress(0.0, f"Scoring {total} inputs ...") if total >= PROGRESS_FROM else None

        def progress(done: int) -> None:
            if bar:
                bar.progress(done / total)

        vectors = detector.score_vectors(
            (take_prepared(detector, sample, seed) for sample in missing.values()),
            n=detector.calibration.n_max,
            seed=seed,
            progress=progress,
        )
        store.update(zip(missing, vectors, strict=True))
        if bar:
            bar.empty()
    return np.stack([store[key] for key in keys])


def score_on_click(
    key: str, config: FolderSettings, *sets: Sequence[Sample]
) -> list[NDArray[np.float64]] | None:
    """V at n_max of each set, once the visitor asked for it; None before.

    st.session_state[f"{key}_scored"] says what was scored last; the uploaders then make room for the result.
    """
    seed = current().seed
    identity = (str(config.folder), config.scorer_sha256, seed, *(content_key(samples) for samples in sets))
    is_new = st.session_state.get(f"{key}_scored") != identity
    label = f"Score {sum(len(samples) for samples in sets):,} files"
    if is_new and not st.button(label, type="primary", icon=":material/play_arrow:", key=f"{key}_score"):
        return None
    vectors = [score_vectors(get_detector(config), samples, seed) for samples in sets]
    if is_new:
        st.session_state[f"{key}_scored"] = identity
        st.rerun()
    return vectors


def content_key(samples: Sequence[Sample]) -> str:
    """A name for a set of samples: the same content in the same order has the same name."""
    return hashlib.sha256("".join(sample.content_hash for sample in samples).encode()).hexdigest()


def vectors_over_seeds(detector: "Detector", sample: Sample, seeds: Sequence[int]) -> NDArray[np.float64]:
    """V at n_max of one sample under several seeds, for which it is decoded once: (seeds, n_max)."""
    store = vector_store()
    keys = [(detector, seed, sample.content_hash) for seed in seeds]
    missing = [(key, seed) for key, seed in zip(keys, seeds, strict=True) if key not in store]
    if missing:
        decoded, n_max = sample.decode(), detector.calibration.n_max
        for key, seed in missing:
            prepared = detector.scorer.prepare(decoded, seed)
            store[key] = detector.score_vectors([prepared], n=n_max, seed=seed)[0]
    return np.stack([store[key] for key in keys])


def growing_p_values(
    detector: "Detector", sample: Sample, vector: NDArray[np.float64], seed: int, aggregate: str
) -> NDArray[np.float64]:
    """The p-values of one sample with its first 1, 2, ..., n_max draws; epsilon and n only mark places in them."""
    key = (detector, seed, sample.content_hash, aggregate)
    return remembered(
        "growth_store", MAX_INSPECTED, key, lambda: p_by_n(detector.calibration, vector, aggregate)
    )


def stored_or_said(config: FolderSettings) -> "Stored | None":
    """What is stored with a detector, or None, after a sentence where something is wrong with it."""
    try:
        return get_stored(config)
    except IdecodeError as error:
        refused([str(error)])
        return None


def stored_or_none(config: FolderSettings) -> "Stored | None":
    """The same without a word."""
    try:
        return get_stored(config)
    except IdecodeError:
        return None


def no_scores(config: FolderSettings) -> None:
    st.info(
        f"No test scores are stored with **{escape(config.name)}** yet. With the datasets at hand, "
        f"`python -m idecode_core paper score-sets {config.folder.name}` makes them once. Until then, choose another detector in "
        "the bar, or bring your own scores or files.",
        icon=":material/info:",
    )

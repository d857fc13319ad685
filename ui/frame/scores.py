"""Score vectors of what a visitor looks at: computed once at n_max, kept for this session only; and verdicts, which slice them.

Keyed by (detector, seed, content), which determine them; n, epsilon and F only slice what is here. torch is at work here,
so pages import this file when they need it.

What is stored with a detector, for the pages that look at it: scores of test sets, or a sentence about what is missing.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import Judgement, Verdict, judge, p_by_n, smoothing_generator
from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from idecode_core.verdict import sentence
from ui.frame.cache import get_configs, get_detector, get_stored, remembered, session_store
from ui.frame.messages import escape, refused
from ui.frame.samples import Modality, Sample, decoded_sample
from ui.frame.settings import Chosen, current

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.draws import Prepared
    from idecode_core.folder.stored import Stored

    Key = tuple[Detector, int, str]

MAX_VECTORS = 20_000
MAX_PREPARED = 500  # a few kilobytes each for pictures, a megabyte for sounds
MAX_INSPECTED = 24
PROGRESS_FROM = 4  # fewer inputs are done before a bar could be read
CHUNK = 8  # files between two reports of progress


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


def score_vectors(
    detector: "Detector", samples: Sequence[Sample], seed: int, name: str = ""
) -> NDArray[np.float64]:
    """V at n_max for each sample: (batch, n_max). Runs the model only for what this session has not scored yet; a batch with a
    name can be stopped."""
    store = vector_store()
    keys = [(detector, seed, sample.content_hash) for sample in samples]
    missing = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in store}
    score_with_progress(detector, list(missing.values()), seed, name)
    return np.stack([store[key] for key in keys])


def score_batch(
    detector: "Detector", samples: Sequence[Sample], seed: int
) -> tuple[list[Sample], NDArray[np.float64]]:
    """The files that are scored, all of them unless the visitor stopped it, and their V at n_max: (batch, n_max)."""
    store, name = vector_store(), f"{detector.name} {seed} {content_key(samples)}"
    scored = [sample for sample in samples if (detector, seed, sample.content_hash) in store]
    others = len({sample.content_hash for sample in samples} - {sample.content_hash for sample in scored})
    if others < PROGRESS_FROM or st.session_state.get("batch_stopped") != name:
        return list(samples), score_vectors(detector, samples, seed, name)
    st.warning(
        f"Stopped: {len(scored):,} of {len(samples):,} files were scored; the others are left out.",
        icon=":material/stop_circle:",
    )
    st.button(f"Score the other {others:,}", key="batch_go_on", on_click=_stop, args=("",), type="primary")
    if not scored:
        st.stop()
    return scored, score_vectors(detector, scored, seed)


def score_with_progress(detector: "Detector", missing: Sequence[Sample], seed: int, name: str) -> None:
    """Chunk by chunk into the session's store: what is scored when the visitor stops it, stays scored."""
    bar = None
    if len(missing) >= PROGRESS_FROM:
        place = st.empty()
        with place.container(horizontal=True, vertical_alignment="center"):
            bar = st.progress(0.0, f"Scoring {len(missing):,} files ...", width="stretch")
            if name:
                st.button(
                    "Stop scoring",
                    key="batch_stop",
                    icon=":material/stop_circle:",
                    on_click=_stop,
                    args=(name,),
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
        if bar:
            bar.progress(done / len(missing), progress_words(done, len(missing), time.monotonic() - begin))
    if bar:
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


def verdicts(
    detector: "Detector",
    hashes: Iterable[str],
    vectors: NDArray[np.float64],
    settings: Chosen,
    *,
    together: bool = False,
) -> Judgement:
    """Of inputs with these content hashes and V at n_max, (batch, n_max): each alone, or all together."""
    smoothed_by = [smoothing_generator(key, settings.seed) for key in hashes] if settings.smoothed else None
    return judge(
        detector.calibration,
        vectors,
        n=min(settings.n, detector.calibration.n_max),
        epsilon=settings.epsilon,
        aggregate=settings.aggregate,
        smoothed_by=smoothed_by,
        false_discovery_control=together,
    )


def coloured_answer(verdict: Verdict, noun: str) -> tuple[str, str]:
    """The answer with its colour and sign, and the reason."""
    colour, icon = ("orange", "flag") if verdict.is_ood else ("blue", "check_circle")
    answer, _, reason = sentence(verdict, noun).partition(":")
    return f":{colour}[:material/{icon}: {answer}]:", reason.strip()

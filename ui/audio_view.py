"""What the Inspect page shows of a sound: player, waveform, spectrogram, masked variants, strange stretches."""

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ui.inspect_view import CHART, PLAYER
from ui.samples import Sample
from ui.settings import Settings, current

if TYPE_CHECKING:
    from idecode_core.audio_scoring import AudioScorer, BlockScores
    from idecode_core.detector import Detector
    from idecode_core.scoring import Variant

MAX_BLOCK_SCORES = 64


def show_sample(sample: Sample) -> None:
    """A small picture and a player, beside the verdict."""
    from idecode_core.listening import wav_bytes

    sound = sample.decode()
    st.image(sample.picture, width=PLAYER, alt=f"Spectrogram of {sample.name}")
    st.audio(wav_bytes(sound.samples, sound.sample_rate), format="audio/wav")


def show_sound(detector: "Detector", sample: Sample, settings: Settings) -> None:
    """Waveform and spectrogram; for long sounds, how strange each stretch is."""
    from idecode_core.listening import spectrogram
    from idecode_core.plots import audio as figures

    scorer: AudioScorer = detector.scorer  # type: ignore[assignment]
    sound = sample.decode()
    st.markdown("#### What the model hears")
    st.caption(
        f"{sound.seconds:.1f} s at {sound.sample_rate:,} Hz, taken to {scorer.features.sample_rate:,} Hz. Brighter is louder."
    )
    st.plotly_chart(
        figures.waveform(sound.samples, sound.sample_rate),
        key="waveform",
        config=CHART,
        alt=f"Waveform of {sample.name}",
    )
    seen = spectrogram(sound, scorer.features)
    st.plotly_chart(
        figures.spectrogram(seen.decibels, seen.seconds_per_frame, seen.hertz),
        key="spectrogram",
        config=CHART,
        alt=f"Spectrogram of {sample.name}",
    )
    found = block_scores(detector, sample, settings.seed)
    if len(found.scores) > 1:
        st.markdown("#### Where it is strange")
        st.caption(
            f"Each stretch of {scorer.features.block_seconds:.1f} s on its own, with the same masks. Orange is above the band "
            "of whole calibration sounds. The verdict is about the whole recording; single stretches have no guarantee."
        )
        st.plotly_chart(
            figures.block_scores(
                found.seconds,
                found.scores[:, : settings.n],
                detector.calibration.score_vectors[:, : settings.n].mean(axis=1),
            ),
            key="block_chart",
            config=CHART,
            alt="Scores of each stretch of the recording over time",
        )


def block_scores(detector: "Detector", sample: Sample, seed: int) -> "BlockScores":
    """Scores of each block at n_max, kept for this session."""
    store: dict[Any, Any] = st.session_state.setdefault("block_store", {})
    key = (detector, seed, sample.content_hash)
    if key not in store:
        while len(store) >= MAX_BLOCK_SCORES:
            del store[next(iter(store))]
        scorer: AudioScorer = detector.scorer  # type: ignore[assignment]
        store[key] = scorer.block_scores(sample.decode(), n=detector.calibration.n_max, seed=seed)
    return store[key]


def enlarged_sound(detector: "Detector", sample: Sample, variant: "Variant", share: float) -> None:
    """One draw in full: the spectrogram with what is hidden, what the model said, and how the rest sounds."""
    from idecode_core.plots import audio as figures

    decibels, hidden, seen = masked(detector, sample, variant.draw)
    st.markdown(
        f"**Draw {variant.draw + 1}** scores **{variant.score:.3g}**: stranger than {share:.1%} of single calibration draws."
    )
    st.plotly_chart(
        figures.spectrogram(decibels, seen.seconds_per_frame, seen.hertz, hidden, height=230),
        key="variant_spectrogram",
        config=CHART,
        alt=variant.applied,
    )
    st.caption(f"**Applied** {variant.applied}  \n**Model says** {variant.predicted}")
    st.audio(_variant_wav(detector, decibels, hidden), format="audio/wav")
    st.caption("The masked sound, rebuilt from its spectrogram (Griffin-Lim); what is hidden is silent.")


def masked(detector: "Detector", sample: Sample, draw: int) -> tuple[NDArray[Any], NDArray[np.bool_], Any]:
    """Spectrogram in dB (bands, frames), what one draw hides of it, and its axes."""
    from idecode_core.listening import hidden_cells, spectrogram

    scorer: AudioScorer = detector.scorer  # type: ignore[assignment]
    seed = current().seed
    sound = sample.decode()
    seen = spectrogram(sound, scorer.features)
    drawn = scorer.draw([scorer.clip(sound)], draw + 1, seed)[0][draw]  # (blocks, masks, 2)
    return (
        seen.decibels,
        hidden_cells(scorer.features, scorer.transforms, drawn, seen.decibels.shape[1]),
        seen,
    )


def _variant_wav(detector: "Detector", decibels: NDArray[Any], hidden: NDArray[np.bool_]) -> bytes:
    from idecode_core.listening import audible, wav_bytes

    scorer: AudioScorer = detector.scorer  # type: ignore[assignment]
    return wav_bytes(audible(decibels, scorer.features, hidden), scorer.features.sample_rate)

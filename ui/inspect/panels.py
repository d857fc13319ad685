"""The panels of the Inspect page. Each is a fragment that reads the settings as they are now and slices stored scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import Judgement, Verdict
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.plots import inspect as figures
from idecode_core.verdict import meaning
from ui.frame.links import put_in_link
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.panels import panel
from ui.frame.samples import Sample
from ui.frame.scores import growing_p_values, vectors_over_seeds
from ui.frame.settings import Settings, current
from ui.frame.verdicts import coloured_answer, verdicts
from ui.inspect.batch import choose_rule, chosen_row, settle_row, table
from ui.inspect.inputs import as_the_model_sees_it, look_at
from ui.inspect.power import show_power
from ui.inspect.versus import versus

SEEDS = 10


def judged(
    detector: Detector, samples: Sequence[Sample], vectors: NDArray[np.float64], settings: Settings
) -> Judgement:
    """The files as the visitor wants them judged: each alone, or all together."""
    together = len(samples) > 1 and st.session_state.get("rule") == "together"
    return verdicts(
        detector, (sample.content_hash for sample in samples), vectors, settings, together=together
    )


@dataclass
class OnScreen:
    """What the verdict's panel shows now, for downloads, which are made when they are asked for."""

    settings: Settings
    found: Judgement
    row: int


@panel("files")
def files(detector: Detector, samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """The table of many files."""
    if len(samples) > 1:
        choose_rule()
        table(samples, judged(detector, samples, vectors, current()), chosen_row(samples))


@panel("picture")
def picture(samples: Sequence[Sample]) -> None:
    """What is judged."""
    sample = samples[chosen_row(samples)]
    sample.modality.show(sample)


@panel("verdict")
def words(
    config: FolderSettings,
    detector: Detector,
    samples: Sequence[Sample],
    vectors: NDArray[np.float64],
    screen: OnScreen,
) -> None:
    """The verdict in words, and the power beside it. The link follows the row."""
    settings, row = current(), chosen_row(samples)
    found = judged(detector, samples, vectors, settings)
    screen.settings, screen.found, screen.row = settings, found, row
    put_in_link("sample", samples[row].address)
    show_words(samples[row], found[row])
    show_power(config, settings)


@panel("aggregate")
def aggregate(detector: Detector, screen: OnScreen) -> None:
    """The aggregate on the calibration histogram. Runs after the verdict, and shows the same."""
    show_aggregate(detector, screen.found[screen.row], screen.settings)


@panel("closer")
def closer(detector: Detector, samples: Sequence[Sample]) -> None:
    """What else there is to see of the input."""
    settings, sample = current(), samples[chosen_row(samples)]
    inspected = look_at(detector, sample, settings.seed)
    as_the_model_sees_it(detector, sample, settings.seed)
    if sample.modality.closer:
        sample.modality.closer(detector, sample, inspected, settings.n)


def results(
    config: FolderSettings, detector: Detector, samples: Sequence[Sample], vectors: NDArray[np.float64]
) -> OnScreen:
    """The verdict in words, the aggregate on the calibration histogram, and for many files the table.

    Small panels: a move of epsilon draws again what shows epsilon, and neither pictures nor sounds.
    """
    found = judged(detector, samples, vectors, current())
    settle_row(samples, found)
    screen = OnScreen(current(), found, chosen_row(samples))
    files(detector, samples, vectors)
    with st.container(horizontal=True, vertical_alignment="center", key="picture"):
        with st.container(width=samples[0].modality.width):
            picture(samples)
        with st.container(width="stretch"):
            words(config, detector, samples, vectors, screen)
    aggregate(detector, screen)
    versus(config, samples)
    closer(detector, samples)
    return screen


def show_words(sample: Sample, verdict: Verdict) -> None:
    answer, reason = coloured_answer(verdict, sample.modality.noun)
    means, does_not = meaning(verdict, sample.modality.noun)
    st.caption(f"{escape(sample.name)} · {sample.truth}" if sample.truth else escape(sample.name))
    st.markdown(f"### {answer} {reason}")
    st.markdown(f"**It means:** {means}  \n**It does not mean:** {does_not}")


def show_verdict(config: FolderSettings, sample: Sample, verdict: Verdict, settings: Settings) -> None:
    """Picture and words in one piece, for a page that changes both at once."""
    with st.container(horizontal=True, vertical_alignment="center", key="picture"):
        with st.container(width=sample.modality.width):
            sample.modality.show(sample)
        with st.container(width="stretch", gap="small"):
            show_words(sample, verdict)
            show_power(config, settings)


def show_aggregate(
    detector: Detector,
    verdict: Verdict,
    settings: Settings,
    height: int = 320,
    key: str = "aggregate_chart",
) -> None:
    chart(
        figures.aggregate_on_histogram(
            detector.calibration.scores(settings.n, settings.aggregate),
            verdict.score,
            verdict.threshold,
            is_ood=verdict.is_ood,
            height=height,
        ),
        key=key,
        alt=f"Histogram of calibration scores; this input scores {verdict.score:.3g}, above {verdict.threshold:.3g} inputs are "
        "flagged",
    )


def chance(detector: Detector, samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """What more draws, and other draws, do to the p-value."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("#### More transforms")
        st.caption("Does the p-value settle as n grows? If it still wanders at the right, use more.")
        growth(detector, samples, vectors)
    with right:
        st.markdown("#### Other transforms")
        drawn(detector, samples)


@panel("growth")
def growth(detector: Detector, samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """The p-value against the number of draws."""
    settings, row = current(), chosen_row(samples)
    p_values = growing_p_values(detector, samples[row], vectors[row], settings.seed, settings.aggregate)
    chart(
        figures.p_as_n_grows(p_values, settings.epsilon, settings.n),
        key="growth_chart",
        alt=f"The p-value for n from 1 to {len(p_values)}",
    )


@panel("drawn")
def drawn(detector: Detector, samples: Sequence[Sample]) -> None:
    """The p-value under ten seeds, once the visitor asked for it."""
    settings, sample = current(), samples[chosen_row(samples)]
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
    found = verdicts(detector, (), vectors, replace(settings, smoothed=False))
    low, high = found.p_values.min(), found.p_values.max()
    st.caption(
        f"Over {SEEDS} seeds p runs from {low:.3g} to {high:.3g}; flagged {found.is_ood.sum()} times of {SEEDS}. "
        "A wide spread asks for a larger n."
    )
    chart(
        figures.p_over_seeds(found.p_values, seeds, settings.epsilon, height=240),
        key="chance_chart",
        alt=f"p-values under {SEEDS} seeds",
    )


def _next_seed() -> None:
    st.session_state["seed"] = int(st.session_state["seed"]) + 1
    st.rerun()

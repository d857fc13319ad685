"""The panels of the Inspect page. Each is a fragment that reads the settings as they are now and slices stored scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.verdict import Verdict, judge, meaning, p_by_n, sentence, smoothing_generator
from ui.links import carry_over
from ui.links import keep as keep_value
from ui.messages import escape, guard
from ui.samples import Sample, data_uri
from ui.scores import vectors_over_seeds
from ui.settings import Settings, current, finished, rerun_panels

if TYPE_CHECKING:
    from idecode_core.detector import Detector

SEEDS = 10
RULES = ("alone", "together")
CHART = {"displayModeBar": False}
PICTURE = 104  # pixels


def noun(detector: "Detector") -> str:
    return "sound" if detector.scorer.modality == "audio" else "image"


def verdicts(
    detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64], settings: Settings
) -> list[Verdict]:
    """Verdicts under the settings of this moment; never runs the model."""
    smoothed_by = (
        [smoothing_generator(sample.content_hash, settings.seed) for sample in samples]
        if settings.smoothed
        else None
    )
    return judge(
        detector.calibration,
        vectors,
        n=settings.n,
        epsilon=settings.epsilon,
        aggregate=settings.aggregate,
        smoothed_by=smoothed_by,
        false_discovery_control=len(samples) > 1 and st.session_state.get("rule") == "together",
    )


def chosen_row(samples: Sequence[Sample]) -> int:
    return min(int(st.session_state.get("row") or 0), len(samples) - 1)


@st.fragment(key="results")
def results(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """The verdict in words, the aggregate on the calibration histogram, and for many files the table."""
    with guard():
        settings = current()
        found = verdicts(detector, samples, vectors, settings)
        if len(samples) > 1:
            table(samples, found)
        row = chosen_row(samples)
        show_verdict(detector, samples[row], found[row])
        show_aggregate(detector, found[row], settings)
        if samples[row].modality == "audio":
            from ui.audio_view import show_sound

            show_sound(detector, samples[row], settings)
        finished("results")


def show_verdict(detector: "Detector", sample: Sample, verdict: Verdict) -> None:
    colour, icon = ("orange", "flag") if verdict.is_ood else ("blue", "check_circle")
    answer, _, reason = sentence(verdict, noun(detector)).partition(":")
    means, does_not = meaning(verdict, noun(detector))
    with st.container(horizontal=True, vertical_alignment="center", key="picture"):
        if sample.modality == "audio":
            from ui.audio_view import show_sample

            show_sample(sample)
        else:
            st.image(sample.picture, width=PICTURE, alt=sample.name)
        with st.container(width="stretch", gap="small"):
            st.caption(f"{escape(sample.name)} · {sample.truth}" if sample.truth else escape(sample.name))
            st.markdown(f"### :{colour}[:material/{icon}: {answer}]: {reason.strip()}")
            st.markdown(f"**It means:** {means}  \n**It does not mean:** {does_not}")


def show_aggregate(detector: "Detector", verdict: Verdict, settings: Settings, height: int = 320) -> None:
    from idecode_core.plots import inspect as figures

    st.plotly_chart(
        figures.aggregate_on_histogram(
            detector.calibration.scores(settings.n, settings.aggregate),
            verdict.score,
            verdict.threshold,
            is_ood=verdict.is_ood,
            height=height,
        ),
        key="aggregate_chart",
        config=CHART,
        alt=f"Histogram of calibration scores; this input scores {verdict.score:.3g}",
    )


def table(samples: Sequence[Sample], found: Sequence[Verdict]) -> None:
    carry_over(["rule"])
    st.segmented_control(
        "Judge the files",
        RULES,
        default="alone",
        required=True,
        key="rule",
        bind="query-params",
        on_change=lambda: rerun_panels("results", "keep"),
        help="Alone: of files that belong, at most a share epsilon is flagged. Together: of the files that are flagged, at "
        "most a share epsilon belongs (Benjamini-Hochberg). Both on average.",
    )
    keep_value(["rule"])
    flagged = sum(verdict.is_ood for verdict in found)
    st.markdown(f"**{flagged} of {len(found)} files flagged.** Choose a row to look closer.")
    st.dataframe(
        {
            "": [data_uri(sample.thumbnail) for sample in samples],
            "File": [sample.name for sample in samples],
            "Verdict": [verdict.answer for verdict in found],
            "p-value": [verdict.p_value for verdict in found],
            "Rank": [f"{verdict.rank + 1:,} of {verdict.k + 1:,}" for verdict in found],
            "Score": [verdict.score for verdict in found],
        },
        column_config={
            "": st.column_config.ImageColumn(width="small"),
            "File": st.column_config.TextColumn(width="medium"),
            "p-value": st.column_config.NumberColumn(format="%.3g"),
            "Score": st.column_config.NumberColumn(format="%.4g"),
        },
        hide_index=True,
        height=min(36 * len(samples) + 38, 290),
        key="table",
        on_select=_choose_row,
        selection_mode="single-row",
    )


def _choose_row() -> None:
    rows = st.session_state["table"]["selection"]["rows"]
    st.session_state["row"] = rows[0] if rows else 0
    st.session_state["draw"] = None
    rerun_panels("results", "draws", "growth", "keep")


@st.fragment(key="growth")
def growth(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """What more draws, and other draws, do to the p-value."""
    from idecode_core.plots import inspect as figures

    with guard():
        settings, row = current(), chosen_row(samples)
        left, right = st.columns(2, gap="large")
        with left:
            st.markdown("#### More transforms")
            st.caption("Does the p-value settle as n grows? If it still wanders at the right, use more.")
            p_values = p_by_n(detector.calibration, vectors[row], settings.aggregate)
            st.plotly_chart(
                figures.p_as_n_grows(p_values, settings.epsilon, settings.n),
                key="growth_chart",
                config=CHART,
                alt=f"The p-value for n from 1 to {len(p_values)}",
            )
        with right:
            st.markdown("#### Other transforms")
            chance(detector, samples[row], settings)
        finished("growth")


def chance(detector: "Detector", sample: Sample, settings: Settings) -> None:
    from idecode_core.plots import inspect as figures

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
    found = judge(
        detector.calibration, vectors, n=settings.n, epsilon=settings.epsilon, aggregate=settings.aggregate
    )
    p_values = np.array([verdict.p_value for verdict in found])
    flagged = sum(verdict.is_ood for verdict in found)
    st.caption(
        f"Over {SEEDS} seeds p runs from {p_values.min():.3g} to {p_values.max():.3g}; flagged {flagged} times of {SEEDS}. "
        "A wide spread asks for a larger n."
    )
    st.plotly_chart(
        figures.p_over_seeds(p_values, seeds, settings.epsilon, height=240),
        key="chance_chart",
        config=CHART,
        alt=f"p-values under {SEEDS} seeds",
    )


@st.fragment(key="keep")
def keep(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """Download what is on the screen."""
    from ui.inspect_export import export

    with guard():
        settings = current()
        found = verdicts(detector, samples, vectors, settings)
        export(detector, samples, vectors, found, settings, chosen_row(samples))
        finished("keep")


def _next_seed() -> None:
    st.session_state["seed"] = int(st.session_state["seed"]) + 1

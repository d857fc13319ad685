"""The panels of the Inspect page. Each is a fragment that reads the settings as they are now and slices stored scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.verdict import Verdict, judge, meaning, sentence, smoothing_generator
from ui.links import carry_over
from ui.links import keep as keep_value
from ui.messages import escape, guard
from ui.samples import Sample, data_uri
from ui.scores import growing_p_values, vectors_over_seeds
from ui.settings import Settings, current, finished, rerun_panels

if TYPE_CHECKING:
    from idecode_core.detector import Detector

SEEDS = 10
RULES = ("alone", "together")
CHART = {"displayModeBar": False}
PICTURE, PLAYER = 104, 220  # pixels


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


@dataclass
class OnScreen:
    """What the verdict's panel shows now, for downloads, which are made when they are asked for."""

    settings: Settings
    found: Sequence[Verdict]
    row: int


@st.fragment(key="files")
def files(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """The table of many files."""
    with guard():
        if len(samples) > 1:
            table(samples, verdicts(detector, samples, vectors, current()))
        finished("files")


@st.fragment(key="picture")
def picture(samples: Sequence[Sample]) -> None:
    """What is judged."""
    with guard():
        show_sample(samples[chosen_row(samples)])
        finished("picture")


@st.fragment(key="verdict")
def words(
    detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64], screen: OnScreen
) -> None:
    """The verdict in words."""
    with guard():
        settings, row = current(), chosen_row(samples)
        found = verdicts(detector, samples, vectors, settings)
        screen.settings, screen.found, screen.row = settings, found, row
        show_words(detector, samples[row], found[row])
        finished("verdict")


@st.fragment(key="aggregate")
def aggregate(detector: "Detector", screen: OnScreen) -> None:
    """The aggregate on the calibration histogram. Runs after the verdict, and shows the same."""
    with guard():
        show_aggregate(detector, screen.found[screen.row], screen.settings)
        finished("aggregate")


@st.fragment(key="sound")
def sound(detector: "Detector", samples: Sequence[Sample]) -> None:
    """What the model hears; nothing for pictures."""
    with guard():
        sample = samples[chosen_row(samples)]
        if sample.modality == "audio":
            from ui.audio_view import show_sound

            show_sound(detector, sample, current())
        finished("sound")


def results(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> OnScreen:
    """The verdict in words, the aggregate on the calibration histogram, and for many files the table.

    Small panels: a move of epsilon draws anew what shows epsilon, and neither pictures nor sounds.
    """
    screen = OnScreen(current(), verdicts(detector, samples, vectors, current()), chosen_row(samples))
    files(detector, samples, vectors)
    with st.container(horizontal=True, vertical_alignment="center", key="picture"):
        with st.container(width=picture_width(samples)):
            picture(samples)
        with st.container(width="stretch"):
            words(detector, samples, vectors, screen)
    aggregate(detector, screen)
    sound(detector, samples)
    return screen


def picture_width(samples: Sequence[Sample]) -> int:
    return PLAYER if samples[0].modality == "audio" else PICTURE


def show_sample(sample: Sample) -> None:
    """The picture, or the picture of the sound and a player."""
    if sample.modality == "audio":
        from ui.audio_view import show_sample as show_player

        show_player(sample)
    else:
        st.image(sample.picture, width=PICTURE, alt=sample.name)


def show_words(detector: "Detector", sample: Sample, verdict: Verdict) -> None:
    colour, icon = ("orange", "flag") if verdict.is_ood else ("blue", "check_circle")
    answer, _, reason = sentence(verdict, noun(detector)).partition(":")
    means, does_not = meaning(verdict, noun(detector))
    st.caption(f"{escape(sample.name)} · {sample.truth}" if sample.truth else escape(sample.name))
    st.markdown(f"### :{colour}[:material/{icon}: {answer}]: {reason.strip()}")
    st.markdown(f"**It means:** {means}  \n**It does not mean:** {does_not}")


def show_verdict(detector: "Detector", sample: Sample, verdict: Verdict) -> None:
    """Picture and words in one piece, for a page that changes both at once."""
    with st.container(horizontal=True, vertical_alignment="center", key="picture"):
        with st.container(width=picture_width([sample])):
            show_sample(sample)
        with st.container(width="stretch", gap="small"):
            show_words(detector, sample, verdict)


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
        on_change=lambda: rerun_panels("files", "verdict", "aggregate"),
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
    rerun_panels("picture", "verdict", "aggregate", "sound", "draws", "growth", "drawn")


def chance(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """What more draws, and other draws, do to the p-value."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("#### More transforms")
        st.caption("Does the p-value settle as n grows? If it still wanders at the right, use more.")
        growth(detector, samples, vectors)
    with right:
        st.markdown("#### Other transforms")
        drawn(detector, samples)


@st.fragment(key="growth")
def growth(detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64]) -> None:
    """The p-value against the number of draws."""
    from idecode_core.plots import inspect as figures

    with guard():
        settings, row = current(), chosen_row(samples)
        p_values = growing_p_values(detector, samples[row], vectors[row], settings.seed, settings.aggregate)
        st.plotly_chart(
            figures.p_as_n_grows(p_values, settings.epsilon, settings.n),
            key="growth_chart",
            config=CHART,
            alt=f"The p-value for n from 1 to {len(p_values)}",
        )
        finished("growth")


@st.fragment(key="drawn")
def drawn(detector: "Detector", samples: Sequence[Sample]) -> None:
    """The p-value under ten seeds, once the visitor asked for it."""
    from idecode_core.plots import inspect as figures

    with guard():
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
            finished("drawn")
            return
        seeds = [settings.seed + i for i in range(SEEDS)]
        vectors = vectors_over_seeds(detector, sample, seeds)
        found = judge(
            detector.calibration,
            vectors,
            n=settings.n,
            epsilon=settings.epsilon,
            aggregate=settings.aggregate,
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
        finished("drawn")


def _next_seed() -> None:
    st.session_state["seed"] = int(st.session_state["seed"]) + 1
    st.rerun()

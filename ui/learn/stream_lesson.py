"""A stream whose distribution changes at a point that the visitor chooses, watched by a martingale and by CUSUM."""

from typing import Any

import numpy as np
import streamlit as st

from idecode_core.plots import stream as plots
from idecode_core.report.stream import stream_export
from idecode_core.simulate import MARTINGALES, StreamRun, changing_stream
from ui.frame.export import export_row
from ui.frame.look import show
from ui.learn.teaching import LINKED, ask_the_class, seed_control, verdict

LENGTH = 1_000
ALPHAS = (0.001, 0.01, 0.05, 0.1)
MEAN_TIMES = (100, 1_000, 10_000, 100_000)
CUSUM = "CUSUM"


@st.cache_data(show_spinner=False, max_entries=64)
def simulate(arguments: dict[str, Any], seed: int) -> StreamRun:
    """One stream and all its watchers."""
    return changing_stream(**arguments, generator=np.random.default_rng(seed))


def stream_lesson() -> None:
    """The view."""
    left, right = st.columns([1, 2.9], gap="medium")
    with left:
        change_at = st.slider(
            "The change comes after point", 0, LENGTH, 500, 10, key="stream_change", **LINKED,
            help=f"{LENGTH:,} means that nothing changes.",
        )  # fmt: skip
        strangeness = st.slider(
            "How large the change is", 0.0, 3.0, 1.0, 0.1, key="stream_strangeness", **LINKED,
            help="Scores follow a bell curve of width 1; after the change they lie this much higher.",
        )  # fmt: skip
        martingale = st.selectbox(
            "Martingale", list(MARTINGALES), 2, key="stream_martingale", **LINKED,
            help="How the bet is placed. The simple jumper moves between bets on small and on large p-values; the power "
            "martingale always bets on small ones; the mixture averages over power martingales.",
        )  # fmt: skip
        alpha = st.select_slider(
            "Chance of any false alarm, α", ALPHAS, 0.01, key="stream_alpha", **LINKED,
            help="The martingale raises the alarm at 1/α. Without a change it ever gets there with probability at most α.",
        )  # fmt: skip
        mean_time = st.select_slider(
            "CUSUM: points between false alarms", MEAN_TIMES, 10_000, key="stream_mean_time", **LINKED,
            help="Without a change, CUSUM's first alarm comes after at least this many points, on average.",
        )  # fmt: skip
        seed = seed_control("stream_seed")
    arguments = {
        "length": LENGTH,
        "change_at": change_at,
        "strangeness": strangeness,
        "alpha": alpha,
        "mean_time": float(mean_time),
    }
    run = simulate(arguments, seed)
    with right:
        st.markdown(
            "Start with 1 coin and **bet against p-values being uniform**. If nothing has changed, no bet can make you rich: "
            "that you ever hold 1/α coins has probability at most α. If you do, that is strong evidence of a change."
        )
        verdict(run.delay(martingale) is not None, _sentence(run, martingale))
        paths = {
            name: (w.log_path, w.log_threshold, w.alarms)
            for name, w in ((martingale, run.watchers[martingale]), (CUSUM, run.watchers[CUSUM]))
        }
        show(
            plots.stream_paths(run.p_values, paths, change_at=change_at),
            key="stream",
            look_for="Top: p-values turn small after the dotted line. Middle: the capital, on a log scale; at the purple line it has "
            "reached 1/α, raises the alarm and starts again from 1. Bottom: CUSUM forgets earlier losses, so it is "
            "quick even when the change comes late; the price is that false alarms do come, though rarely.",
        )
        ask_the_class(
            "Move the change from 100 to 900. Who reacts more slowly, and why?",
            "The power martingale above all: it loses coins while nothing happens and must earn them back. "
            "The jumper keeps a part in safety; CUSUM forgets the loss.",
            f"Set the change to {LENGTH:,} (never) and draw again ten times. How many alarms at α = 0.1?",
            "About one in ten streams or fewer, however long they are: that is Ville's inequality.",
            "Long after the change the alarms become rarer. Why?",
            "Each point, once judged, joins the calibration set. The new kind of point slowly becomes the normal one.",
        )
        export_row("stream", lambda: stream_export(run, arguments, seed=seed, martingale=martingale))


def _sentence(run: StreamRun, martingale: str) -> str:
    """What the two watchers did, in words."""
    parts = []
    for name, watcher in (("The martingale", martingale), (CUSUM, CUSUM)):
        false_alarms, delay = run.false_alarms(watcher), run.delay(watcher)
        words = (
            "no false alarm" if false_alarms == 0 else f"{false_alarms} false alarm{'s'[: false_alarms != 1]}"
        )
        if run.change_at < LENGTH:
            words += f", alarm {delay} points after the change" if delay else ", change not noticed"
        parts.append(f"{name}: {words}.")
    return " ".join(parts)

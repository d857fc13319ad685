"""The playground: points on a line, a newcomer to move along it, and an NCM to choose."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from lessons import arrow_figures as plots
from lessons.playground import NCMS, SHAPES, draw_points, read_points, strangeness
from ui.frame.look import chart
from ui.learn.teaching import LINKED, ask_the_class, seed_control, verdict

OWN = "My own numbers"
LINE = (0.0, 10.0)
LOOK_FOR = (
    "Ticks are calibration points. The curve is the p-value that a newcomer would have at each place; where it dips "
    "below ε, in the orange zones, a newcomer is flagged. Try 'Two bumps': which score sees the gap?"
)


@dataclass(frozen=True, eq=False)
class Game:
    """The points on the line, and what the visitor chose."""

    seed: int
    shape: str
    ncm: str
    epsilon: float
    proper_training_set: FloatArray
    calibration_set: FloatArray


def choose_points() -> Game:
    """The controls, all but the newcomer's place."""
    shape = st.selectbox(
        "In-distribution points", [*SHAPES, OWN], key="play_shape", **LINKED,
        help="Where the points come from. As many again are the proper training set, which only the score looks at.",
    )  # fmt: skip
    if shape == OWN:
        text = st.text_input(
            "Numbers", "3.1, 4.2, 4.4, 5.0, 5.3, 5.9, 6.1, 7.0, 7.4", key="play_points", **LINKED,
            help="At least two, separated by commas. Every second one is kept for the proper training set, because the score "
            "must not look at the points it is calibrated with.",
        )  # fmt: skip
        numbers = read_points(text)
        points, training = numbers[::2], numbers[1::2]
    else:
        k = st.slider("Calibration points, k", 5, 500, 19, key="play_k", **LINKED)
    ncm = st.selectbox(
        "Strangeness score", NCMS, 1, key="play_ncm", **LINKED,
        help="Any score keeps the promise on false alarms. A good one also finds strangers.",
    )  # fmt: skip
    epsilon = st.slider("False alarms allowed, ε", 0.01, 0.5, 0.1, 0.01, key="play_epsilon", **LINKED)
    seed = 0
    if shape != OWN:
        seed = seed_control("play_seed", what="New points")
        generator = np.random.default_rng(seed)
        training = draw_points(shape, k, generator=generator)
        points = draw_points(shape, k, generator=generator)
    return Game(seed, shape, ncm, epsilon, training, points)


def playground() -> None:
    """Everything below the page's step bar."""
    left, right = st.columns([1, 2.4], gap="medium")
    with left:
        game = choose_points()
    k = game.calibration_set.size
    scores = strangeness(game.ncm, game.proper_training_set, game.calibration_set)
    seen = np.concatenate([game.calibration_set, game.proper_training_set, LINE])
    low, high = float(seen.min()), float(seen.max())
    line = np.linspace(low, high, 1001).round(4)
    p_line = conformal.p_values(scores, strangeness(game.ncm, game.proper_training_set, line))
    with right:
        above = st.container()
        if not low <= st.session_state.get("play_x", low) <= high:  # other points were on a longer line
            st.session_state["play_x"] = min(max(st.session_state["play_x"], low), high)
        x = st.slider("Move the newcomer", low, high, 7.0, 0.1, key="play_x", **LINKED)
        score = strangeness(game.ncm, game.proper_training_set, np.array([x]))
        rank = int(conformal.ranks(scores, score)[0])
        p = (rank + 1) / (k + 1)
        flagged = p < game.epsilon
        with above:
            verdict(
                flagged,
                f"{'Flagged' if flagged else 'Not flagged'}: {rank:,} of {k:,} points are at least as strange, "
                f"p = {rank + 1:,}/{k + 1:,} = {p:.3g} {'<' if flagged else '≥'} ε = {game.epsilon:g}.",
            )
            figure = plots.playground(game.calibration_set, x, line, p_line, epsilon=game.epsilon)
            chart(figure, key="playground", alt=LOOK_FOR)
        st.caption(LOOK_FOR)
    if conformal.flagging_rank(k, game.epsilon) == 0:
        st.warning(
            f"ε = {game.epsilon:g} can never flag anything with k = {k}: the smallest p-value is 1/{k + 1}. "
            f"Take k of at least {conformal.k_needed(game.epsilon)}, or a larger ε.",
            icon=":material/block:",
        )
    ask_the_class(
        "With 'Two bumps', put the newcomer in the gap at 5. Which scores flag it?",
        "Only the distance to the nearest neighbours (five, on average). The middle of all points is, by distance from the "
        "middle, the least strange place. All three keep the promise on false alarms; only one is useful.",
        "Draw new points a few times with k = 19, then with k = 500. What changes?",
        "The edges of the flagged zone jump about with few points and settle with many.",
    )

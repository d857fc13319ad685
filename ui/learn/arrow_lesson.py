"""What the six steps of 'How it works' share: the visitor's choices, the nineteen arrows, the newcomer's working."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from idecode_core.report import Export
from idecode_core.report.arrows import arrows_export
from idecode_core.simulate.arrows import (
    Friends,
    Working,
    algorithm_1,
    draw_friends,
    redrawn_p_values,
    shuffled_p_values,
)

K = 19
ROUNDS = 2_000
REDRAWS = 100
SHOWN_N = (1, 2, 5, 10, 20)
LEAN_TITLE = "lean from upright, in degrees"


@dataclass(frozen=True)
class Lesson:
    """What the visitor chose."""

    seed: int
    lean: float
    epsilon: float
    n: int
    turn: float  # the one turn of step 4


@st.cache_data(show_spinner=False, max_entries=64)
def game(seed: int) -> np.ndarray:
    """p-values of the shuffling game."""
    return shuffled_p_values(K, ROUNDS, generator=np.random.default_rng(seed))


@st.cache_data(show_spinner=False, max_entries=64)
def spread(seed: int, lean: float) -> dict[int, np.ndarray]:
    """p-values of one arrow under fresh turns, for several n."""
    friends = friends_of(seed)
    return {
        n: redrawn_p_values(friends, lean, n, REDRAWS, generator=np.random.default_rng(newcomer_seed(seed)))
        for n in SHOWN_N
    }


def friends_of(seed: int) -> Friends:
    """The nineteen arrows of a seed."""
    return draw_friends(K, generator=np.random.default_rng(seed))


def export_of(lesson: Lesson) -> Export:
    """All six steps, to keep."""
    return arrows_export(
        friends_of(lesson.seed),
        working_of(lesson),
        lean=lesson.lean,
        n=lesson.n,
        epsilon=lesson.epsilon,
        seed=lesson.seed,
        newcomer_seed=newcomer_seed(lesson.seed),
        rounds=ROUNDS,
    )


def newcomer_seed(seed: int) -> int:
    """The newcomer's turns have a generator of their own, apart from that of the friends."""
    return seed + 100_000


def working_of(lesson: Lesson) -> Working:
    """Algorithm 1 for the newcomer."""
    generator = np.random.default_rng(newcomer_seed(lesson.seed))
    return algorithm_1(friends_of(lesson.seed), lesson.lean, lesson.n, generator=generator)

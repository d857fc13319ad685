"""Steps 1 to 3 of 'How it works': rank among friends, p-value, threshold. Each can be checked by hand."""

import numpy as np
import streamlit as st

from idecode_core import conformal
from idecode_core.plots import ranks as plots
from ui.frame.look import show
from ui.learn.arrow_lesson import LEAN_TITLE, ROUNDS, K, Lesson, friends_of, game
from ui.learn.teaching import ask_the_class, percent, verdict


def step_1_rank(lesson: Lesson) -> None:
    """Rank among friends."""
    leans = friends_of(lesson.seed).leans
    strangeness = np.abs(leans)
    rank = int(conformal.ranks(strangeness, [abs(lesson.lean)])[0])
    st.subheader("Rank among friends")
    st.markdown(
        "Nineteen arrows came out of one hat: our **friends**. They should point up, but each leans a little. "
        "How far an arrow leans is its **strangeness**. A newcomer arrives. Does it come from the same hat?"
    )
    verdict(
        False, f"{rank} of {K} friends {'leans' if rank == 1 else 'lean'} at least as far as the newcomer."
    )
    show(
        plots.rank_line(
            strangeness, abs(lesson.lean), x_title=LEAN_TITLE, angles=leans, test_angle=lesson.lean
        ),
        key="step1",
        look_for="Count the friends on or beyond the dotted line: they are at least as strange as the newcomer. "
        "Move the newcomer and count again.",
    )
    st.info(
        f"If the newcomer does come from the same hat, nothing sets it apart: all {K + 1} places in the ranking are "
        f"equally likely for it. We need to know nothing else about the hat.",
        icon=":material/lightbulb:",
    )
    ask_the_class(
        "The newcomer is from the same hat. How likely is it to be the strangest of the 20?",
        "1 in 20. Any of the 20 arrows is equally likely to be the strangest.",
        "Did you use that leans follow a bell curve?",
        "No. Only that the newcomer could have changed places with any friend: exchangeability.",
    )


def step_2_p_value(lesson: Lesson) -> None:
    """From rank to p-value."""
    strangeness = np.abs(friends_of(lesson.seed).leans)
    score = abs(lesson.lean)
    rank = int(conformal.ranks(strangeness, [score])[0])
    st.subheader("From rank to p-value")
    st.markdown(
        "The **p-value** is the newcomer's place as a share. It counts itself too, hence the two +1. "
        "A small p-value means: few are this strange."
    )
    st.latex(
        rf"P = \frac{{\#\{{j : s_j \ge s\}} + 1}}{{k + 1}} = \frac{{{rank} + 1}}{{{K} + 1}} = {(rank + 1) / (K + 1):.3f}"
    )
    show(
        plots.staircase(strangeness, score, x_title=LEAN_TITLE),
        key="step2",
        look_for=f"Each friend that the newcomer overtakes costs one stair of 1/{K + 1}. The lowest stair is 1/{K + 1}, never 0.",
    )
    st.markdown("**Check by hand.** How many of these leans are at least " + f"{score:.1f}?")
    st.code("  ".join(f"{s:.1f}" for s in np.sort(strangeness)), language=None, wrap_lines=True)
    ask_the_class(
        "Which p-values are possible at all?",
        f"1/{K + 1}, 2/{K + 1}, ..., 1. With k friends there are k + 1 places.",
        "Why ≥ and not >?",
        "A tie must not make the newcomer look stranger than its equal. 'Break it' shows what > does.",
    )


def step_3_threshold(lesson: Lesson) -> None:
    """A threshold, and what it promises."""
    leans = friends_of(lesson.seed).leans
    strangeness, score = np.abs(leans), abs(lesson.lean)
    p = float(conformal.p_values(strangeness, [score])[0])
    j = conformal.flagging_rank(K, lesson.epsilon)
    flagged = p < lesson.epsilon
    rounds = game(lesson.seed)
    st.subheader("A threshold with a promise")
    st.markdown(
        "We flag the newcomer when **p < ε**. How often would that wrong an arrow that does come from our hat? "
        f"Play it: draw {K + 1} arrows, call the last one the newcomer, note its p-value, {ROUNDS:,} times over."
    )
    sign = "<" if flagged else "≥"
    verdict(flagged, f"{'Flagged' if flagged else 'Not flagged'}: p = {p:.3f} {sign} ε = {lesson.epsilon:g}.")
    if j == 0:
        st.warning(
            f"ε = {lesson.epsilon:g} can never flag anything with {K} friends: the smallest p-value is 1/{K + 1}, and "
            f"p < ε is strict. It takes {conformal.k_needed(lesson.epsilon)} friends.",
            icon=":material/block:",
        )
    left, right = st.columns(2)
    with left:
        show(
            plots.rank_line(
                strangeness,
                score,
                x_title=LEAN_TITLE,
                flagged=flagged,
                threshold=conformal.threshold(strangeness, lesson.epsilon),
                angles=leans,
                test_angle=lesson.lean,
            ),
            key="step3-line",
            look_for="p < ε means: beyond the purple line. "
            + (f"It is drawn at friend number {j} from the right." if j else "There is none for this ε."),
        )
    with right:
        show(
            plots.p_value_bars(rounds, k=K, epsilon=lesson.epsilon),
            key="step3-game",
            look_for=f"In the game {percent(float(np.mean(rounds < lesson.epsilon)))} were flagged; at most {percent(lesson.epsilon)} "
            f"is promised. All {K + 1} places come up about equally often (dashed), so the flagged bars together stay at or below ε.",
        )
    ask_the_class(
        "In the game nobody was strange. Who was flagged?",
        "Friends with bad luck. They are the false detections, and ε is how many of them we accept.",
        "Does ε say how many strangers we catch?",
        "No. The promise is about arrows from the hat only. Catching strangers depends on the score.",
    )

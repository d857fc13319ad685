"""Steps 4 to 6 of 'How it works': a model in place of the eye, n draws, Algorithm 1. Each can be checked by hand."""

import numpy as np
import streamlit as st

from idecode_core import conformal
from idecode_core.plots import arrows as plots
from idecode_core.plots.ranks import rank_line
from idecode_core.simulate.arrows import Working, base_scores, directions, read_hour
from ui.frame.look import show
from ui.learn.arrow_lesson import REDRAWS, K, Lesson, friends_of, spread, working_of
from ui.learn.teaching import ask_the_class, verdict


def step_4_model(lesson: Lesson) -> None:
    """A model in place of the eye."""
    st.subheader("A model in place of the eye")
    st.markdown(
        "A photo has no lean to look up. So let a **model** look: turn the arrow by a random angle **g** and let M guess "
        "the turn. Our M is a clock reader that has only seen *upright* arrows being turned; it reads the nearest full "
        "hour. The more an arrow leans, the more M is wrong: **its error is the strangeness.**"
    )
    turn = lesson.turn
    gx = float(directions([lesson.lean], [[turn]])[0, 0])
    reading = float(read_hour(gx))
    error = float(base_scores([lesson.lean], [[turn]])[0, 0])
    left, right = st.columns(2, vertical_alignment="center")
    with left:
        show(
            plots.clock(lesson.lean, turn, reading),
            key="step4",
            look_for="x is the arrow, g(x) the turned one. The orange arc is the error: from the true turn (dotted) to what M reads.",
        )
    with right:
        st.markdown(
            f"| | |\n|---|---|\n"
            f"| the arrow leans by | {lesson.lean:.1f}° |\n"
            f"| it is turned by g | {turn:.1f}° |\n"
            f"| so it points to g(x) | {gx:.1f}° |\n"
            f"| M reads the nearest hour | {reading:.0f}° |\n"
            f"| **M is off by** | **{error:.1f}°** |"
        )
        st.latex(rf"\mathcal A(x; g) = |M(g(x)) - g| = |{reading:.0f} - {turn:.1f}| = {error:.1f}")
        st.caption(
            "With 360° at the top, errors go the short way round. Eq. 2 of the paper, with the turn as what M must predict."
        )
    ask_the_class(
        "Set the lean to 0 and move g. Is M always right?",
        "No: it is off by up to 15°, half an hour. A model is never perfect, and it need not be.",
        "M was never told what 'lean' is. Why does it notice?",
        "It learned how upright arrows behave under turns. Arrows of another kind behave differently.",
    )


def step_5_draws(lesson: Lesson) -> None:
    """Not one draw but n."""
    working = working_of(lesson)
    by_n = spread(lesson.seed, lesson.lean)
    st.subheader("Not one draw but n")
    st.markdown(
        "One turn may happen to suit the newcomer. So draw **n** turns, note the n errors in the **score vector V**, "
        "and add them up: **F(V)**. Every friend gets n turns *of its own*, so that all are still alike."
    )
    few = working.score_vector[:6]
    errors = " + ".join(f"{v:.1f}" for v in few) + (" + ..." if lesson.n > few.size else "")
    verdict(
        working.p_value < lesson.epsilon,
        f"F(V) = {errors} = {working.score:.1f}, so p = {working.p_value:.3f}.",
    )
    show(
        plots.p_value_spread(by_n, epsilon=lesson.epsilon),
        key="step5",
        look_for=f"Each dot is the same newcomer with fresh turns, {REDRAWS} times. With one turn the answer is partly luck; "
        "with many it settles. Try a lean of 20.",
    )
    _score_table(lesson, working)
    ask_the_class(
        "Could we save time and use the same n turns for all friends?",
        "No: then the friends share their luck and the newcomer does not. See 'Break it'.",
        "Does the promise of step 3 get better with n?",
        "No, it holds for every n. What improves is how many strangers are found.",
    )


def step_6_algorithm(lesson: Lesson) -> None:
    """Algorithm 1."""
    working = working_of(lesson)
    flagged = working.p_value < lesson.epsilon
    threshold = conformal.threshold(working.calibration_scores, lesson.epsilon)
    st.subheader("Algorithm 1")
    verdict(
        flagged,
        f"{'Flagged as OOD' if flagged else 'Not flagged'}: {working.rank} of {K} friends were at least this strange, "
        f"p = {working.p_value:.3f} {'<' if flagged else '≥'} ε = {lesson.epsilon:g}.",
    )
    left, right = st.columns(2)
    with left:
        st.markdown("That is iDECODe. Line by line, with today's numbers:")
        values = {
            "1": ("Draw n turns", _row(working.g)),
            "2": ("Turn the arrow: g(x)", _row(working.gx)),
            "3": ("Let M read the turn", _row(working.readings, 0)),
            "4": ("Errors: V(x)", _row(working.score_vector)),
            "5": ("Add up: F(V(x))", f"{working.score:.1f}"),
            "6": ("p-value", f"({working.rank} + 1) / ({K} + 1) = {working.p_value:.3f}"),
            "7": (f"p < {lesson.epsilon:g}?", "yes: OOD" if flagged else "no"),
        }
        st.markdown(
            "| | | |\n|---|---|---|\n"
            + "\n".join(f"| {line} | {what} | {numbers} |" for line, (what, numbers) in values.items())
        )
    with right:
        show(
            rank_line(
                working.calibration_scores,
                working.score,
                x_title="F(V), the sum of n errors in degrees",
                flagged=flagged,
                threshold=threshold,
            ),
            key="step6",
            look_for="The picture of step 1 again, with sums of errors in place of leans. "
            "Nobody measured a lean: M found it.",
        )
    _score_table(lesson, working)
    st.info(
        "For pictures, arrows become images, turns become rotations or changes of perspective, and the clock reader "
        "becomes a neural network. Nothing else changes.",
        icon=":material/lightbulb:",
    )
    ask_the_class(
        "Which lines need the model, and which need only numbers?",
        "Only line 3 asks M. Turning the arrow, line 2, needs no model, and from line 4 on there are only numbers: n, F and "
        "ε can be changed afterwards without running it again.",
        "Friends, newcomer, hat: what are they called in the paper?",
        "Calibration set, test point x, training distribution D.",
    )


def _row(values: np.ndarray, decimals: int = 1) -> str:
    shown = [f"{v:.{decimals}f}" for v in values[:6]]
    return ", ".join(shown) + (", ..." if values.size > 6 else "")


def _score_table(lesson: Lesson, working: Working) -> None:
    """Every score vector, to be added up and counted by hand."""
    friends = friends_of(lesson.seed)
    vectors = friends.calibration.score_vectors[:, : lesson.n]
    order = np.argsort(-working.calibration_scores, kind="stable")
    table: dict[str, list[object]] = {
        "arrow": ["newcomer", *(f"friend {j + 1}" for j in order)],
        "lean": [lesson.lean, *friends.leans[order].tolist()],
    }
    for i in range(lesson.n):
        table[f"error {i + 1}"] = [float(working.score_vector[i]), *vectors[order, i].tolist()]
    table["sum"] = [working.score, *working.calibration_scores[order].tolist()]
    table["counts"] = [
        "+1",
        *("yes" if working.calibration_scores[j] >= working.score else "" for j in order),
    ]
    with st.expander("All the numbers", icon=":material/table_chart:"):
        st.dataframe(table, hide_index=True)
        st.caption("'counts' marks the friends that are at least as strange; the newcomer counts itself.")

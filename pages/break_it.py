"""Break it: violate one assumption at a time and watch the guarantee go, beside the intact run."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import streamlit as st

from lessons import figures as plots
from lessons.breaking import DIMENSIONS, PREDICTIONS, SWITCHES, Comparison, Run, break_it, what_happened
from ui.frame.catalogue import link
from ui.frame.look import PRESENT, show
from ui.frame.messages import guard
from ui.learn.teaching import LINKED, ask_the_class, class_plan, lesson, percent, seed_control, verdict

REPEATS = 200
QUESTIONS = {
    "shared_draw": (
        "The mean rate is one thing. How much does it vary from repeat to repeat?",
        "Enormously: look at the wide band. All calibration points share one piece of luck, so it does not average out.",
    ),
    "trained_on_calibration": (
        "Would more calibration data help?",
        "Yes, for another reason than usual: the model can memorise less. Raise k and see. Splitting the data is the cure.",
    ),
    "other_preprocessing": (
        "Nobody changed the model or the images. Is this still a false alarm?",
        "To the user it is: the images are ordinary. The detector noticed our own mistake.",
    ),
    "contaminated_calibration": (
        "The false alarms went down. So what is wrong?",
        "Compare the OOD points found. A detector that never flags anything has no false alarms either.",
    ),
    "strict_ties": (
        "Why does the tie matter so much here?",
        "The score is a count from 0 to n, so a point ties with a large part of the calibration set.",
    ),
    "naive_fisher": (
        "Set n to 1, then to 20. What happens, and why?",
        "With one p-value there is nothing to combine and nothing breaks. With 20, the same evidence is counted 20 times.",
    ),
    "shifted_test": (
        "Is the detector wrong here?",
        "No. It says 'not like the calibration data', and that is true. The guarantee never covered these points.",
    ),
}


@st.cache_data(show_spinner=False, max_entries=64)
def simulate(arguments: dict[str, Any], seed: int) -> Comparison:
    """Both runs; epsilon is applied afterwards, so moving it simulates nothing."""
    return break_it(**arguments, generator=np.random.default_rng(seed))


def show_run(run: Run, name: str, right: str, epsilon: float, top: float, rate_top: float) -> None:
    """One column: two numbers and two figures."""
    rate, found = run.mean_false_detection_rate(epsilon), run.mean_detection_rate(epsilon)
    colour = "orange" if rate > epsilon + 0.005 else "blue"
    st.markdown(
        f"**{name}**  \n:{colour}[**{percent(rate)}** false alarms] · {percent(found)} of OOD points found"
    )
    # For a projector side by side, so that all four are in view.
    one, two = st.columns(2) if st.session_state.get(PRESENT) else (nullcontext(), nullcontext())
    with one:
        show(
            plots.uniformity(run.p_values, epsilon=epsilon, top=top),
            key=f"{name}-uniformity",
            look_for=f"p-values of iD points. {right}",
        )
    with two:
        show(
            plots.rate_curve(run.epsilons, run.false_detection_rates, epsilon=epsilon, top=rate_top),
            key=f"{name}-rates",
            look_for="Mean (line) and 90 % (band) of the repeats. The mean should not be above the bound (dashed).",
        )


def headline(comparison: Comparison, epsilon: float) -> None:
    """What broke, as a sentence."""
    intact, broken = comparison.intact, comparison.broken
    rate, found = broken.mean_false_detection_rate(epsilon), broken.mean_detection_rate(epsilon)
    lost = intact.mean_detection_rate(epsilon) - found
    sentence = (
        f"Nothing to see with these settings: {percent(rate)} false alarms, ε allows {percent(epsilon)}."
    )
    if rate > epsilon + 0.005:
        sentence = (
            f"Broken: {percent(rate)} of in-distribution points are flagged. ε allows {percent(epsilon)}."
        )
    elif lost > 0.05:
        sentence = (
            f"Blinded: few false alarms ({percent(rate)}), but only {percent(found)} of OOD points are found, "
            f"not {percent(found + lost)}."
        )
    verdict(rate > epsilon + 0.005 or lost > 0.05, sentence)


def show_result(comparison: Comparison, epsilon: float) -> None:
    """What broke, both runs side by side, and why."""
    runs = {"Intact": comparison.intact, "Broken": comparison.broken}
    tallest = max(plots.density(run.p_values).max() for run in runs.values())
    highest = max(np.quantile(run.false_detection_rates, 0.95, axis=0).max() for run in runs.values())
    headline(comparison, epsilon)
    for column, (name, run) in zip(st.columns(2), runs.items(), strict=True):
        with column:
            show_run(
                run,
                name,
                comparison.switch.right,
                epsilon,
                top=1.1 * tallest,
                rate_top=max(0.55, 1.05 * highest),
            )
    st.markdown(f"**Why.** {comparison.why}")
    tests = comparison.intact.p_values.shape[1]
    st.caption(
        f"A toy detector in {DIMENSIONS} dimensions: each of {REPEATS} repeats trains its own model, draws its own "
        f"{comparison.k} calibration points and judges {tests} iD and {tests} OOD points."
    )


def predicted(switch: str) -> str | None:
    """The visitor's vote on this switch; None before it. The figures wait for it."""
    return st.segmented_control(
        f"**Before you look: {SWITCHES[switch].title}.** How many false alarms, beside the intact run?",
        PREDICTIONS,
        key=f"vote_{switch}",
        persist_state="session",
    )


with guard(), lesson("Break it"):
    left, right = st.columns([1, 2.9], gap="medium")
    with left:
        switch = st.radio(
            "Break one assumption",
            list(SWITCHES),
            format_func=lambda name: SWITCHES[name].title,
            key="break_switch",
            **LINKED,
        )
        epsilon = st.slider("False alarms allowed, ε", 0.01, 0.5, 0.05, 0.01, key="break_epsilon", **LINKED)
        k = st.slider("Calibration points, k", 50, 400, 100, 50, key="break_k", **LINKED)
        n = st.slider("Transforms, n", 1, 20, 5, key="break_n", **LINKED)
        seed = seed_control("break_seed")
        predict_first = st.toggle(
            "Predict first",
            True,
            key="break_predict",
            **LINKED,
            help="The figures wait for a vote on each switch.",
        )
    with right:
        vote = predicted(switch) if predict_first else None
        if predict_first and vote is None:
            st.info(
                "Raise hands, choose what most of you expect, and the figures appear.",
                icon=":material/how_to_vote:",
            )
        else:
            arguments = {"switch": switch, "k": k, "n": n, "repeats": REPEATS}
            comparison = simulate(arguments, seed)
            if vote:
                truth = what_happened(comparison, epsilon)
                st.markdown(
                    f"You said: {vote.lower()}. {'That is right.' if vote == truth else f'It is: {truth.lower()}.'}"
                )
            show_result(comparison, epsilon)
            ask_the_class(*QUESTIONS[switch])
        class_plan()
        link("attack_lab", "Not chance but intent: inputs that somebody chose, in the Attack lab", "target")

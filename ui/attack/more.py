"""More attacks, on demand, because a slow one takes long: the p-value along the strength, for which it is run eight times; and the other
side, somebody who knows the detector: the page says what the guarantee leaves open, and shows it."""

import numpy as np
import streamlit as st

from idecode_core.attacks import ATTACKS
from idecode_core.plots.attack import as_pixels, p_along_strength
from idecode_core.report.attack import CHOSEN, answer, percent, shares
from ui.attack.lab import Lab, verdict_on
from ui.attack.run import (
    Job,
    Scored,
    attack_store,
    is_ready,
    is_wanted,
    quick,
    refusal,
    run_with_progress,
    score,
    want,
)
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.pictures import WIDTH
from ui.frame.samples import png
from ui.frame.settings import Chosen, current

LOOK_FOR = (
    "Full dots: the victim is fooled; rings: it is not. Orange is flagged, blue is not. An attack that needs little strength "
    "leaves little to see."
)


@panel("attack_curve", on=JUDGED)
def curve(lab: Lab) -> None:
    settings = current()
    lab.screen.curve = ()
    st.markdown("## Along the strength")
    jobs = [lab.job(strength) for strength in lab.choice.strengths]
    missing = [job for job in jobs if not is_ready(job)]
    if missing and not all(is_wanted(job) for job in missing):
        offer(lab, jobs, len(missing))
        return
    run_with_progress(jobs, "curve")
    lab.screen.curve = tuple(score(lab.detector, attack_store()[job.key], settings.seed) for job in jobs)
    chart(
        curve_figure(lab, lab.screen.curve, settings),
        key="curve_chart",
        alt=f"p-values at {len(jobs)} strengths",
    )
    st.caption(f"Strength is {lab.choice.kind.strength_means}. {LOOK_FOR}")


def offer(lab: Lab, jobs: list[Job], missing: int) -> None:
    st.caption(
        f"How does the p-value change as {lab.choice.kind.title} gets stronger? {missing} more attacks are run and judged for it, "
        "one after the other; you can stop them."
    )
    st.button(
        "Compute the curve", key="curve_go", icon=":material/show_chart:", on_click=want, args=tuple(jobs)
    )


def curve_figure(lab: Lab, scored: tuple[Scored, ...], settings: Chosen) -> object:
    return p_along_strength(
        [point.attacked.strength for point in scored],
        np.array([verdict_on(lab.detector, point, settings).p_value for point in scored]),
        np.array([bool(point.attacked.success[0]) for point in scored]),
        settings.epsilon,
        lab.choice.strength,
        lab.choice.kind.axis,
    )


@panel("attack_worst", on=JUDGED)
def worst(lab: Lab) -> None:
    settings = current()
    lab.screen.worst = None
    st.markdown("## Somebody who knows the detector")
    st.markdown(
        f"{CHOSEN[0].upper()}{CHOSEN[1:]}. Who knows the detector can look for a change that fools the victim and keeps the "
        "detector's score low."
    )
    st.caption(
        "Who knows the seed need not compute anything: a pixel changed by 1 gives other draws, and whoever may try again and again "
        "keeps the lucky ones. At most 200 tries un-flagged 8 of 20 digits. `idecode serve` draws with a seed of its own that "
        "nobody is told; the guarantee is the same."
    )
    if lab.choice.kind.on_detector:
        st.caption("That is the attack above.")
        return
    job = on_detector(lab, settings)
    attacked = quick(job)
    if attacked is None:
        if reason := refusal(job):
            st.info(escape(reason))
            return
        if not is_wanted(job):
            st.button(
                "Attack the detector too",
                key="worst_go",
                icon=":material/target:",
                on_click=want,
                args=(job,),
                help=f"{job.kind.title} at strength {job.strength:g}; it takes some seconds, and you can stop it.",
            )
            return
        run_with_progress([job], "worst")
        attacked = attack_store()[job.key]
    lab.screen.worst = score(lab.detector, attacked, settings.seed)
    show_worst(lab, lab.screen.worst, settings)


def on_detector(lab: Lab, settings: Chosen) -> Job:
    """PGD on the detector, as strong as its default."""
    kind = next(kind for kind in ATTACKS.values() if kind.on_detector)
    return Job(lab.target, kind, kind.default, lab.detector, settings.seed)


def show_worst(lab: Lab, scored: Scored, settings: Chosen) -> None:
    verdict, plain = (verdict_on(lab.detector, attacked, settings) for attacked in (scored, lab.chosen))
    answered = answer(scored.attacked.classes, shares(scored.attacked.after[0]))
    fooled = bool(scored.attacked.success[0])
    with st.container(horizontal=True, vertical_alignment="center", key="worst"):
        with st.container(width=WIDTH):
            st.image(
                png(as_pixels(scored.attacked.attacked[0].numpy())),
                width=WIDTH,
                alt="after PGD on the detector",
            )
        with st.container(width="stretch"):
            st.markdown(
                f"**{'Fooled' if fooled else 'Not fooled'}, {verdict.answer}:** the victim says {escape(answered.label)} "
                f"({percent(answered.share)}), and **p = {verdict.p_value:.3g}**; after {lab.choice.kind.title} it is "
                f"{plain.p_value:.3g}, and {verdict_on(lab.detector, lab.clean, settings).p_value:.3g} for the clean picture. No pixel "
                f"value is moved by more than {scored.attacked.strength:g}."
            )

"""The p-value along the strength of an attack: on demand, because a slow attack is run eight times."""

import numpy as np
import streamlit as st

from idecode_core.plots.attack import p_along_strength
from ui.attack.outcome import Lab, verdict_on
from ui.attack.run import Job, Scored, attack_store, is_ready, is_wanted, run_with_progress, score, want
from ui.frame.look import chart
from ui.frame.panels import JUDGED, panel
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

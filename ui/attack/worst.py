"""The other side: somebody who knows the detector. The page says what the guarantee leaves open, and shows it."""

import streamlit as st

from idecode_core.attacks import ATTACKS
from idecode_core.plots.attack import as_pixels
from idecode_core.report.attack import CHOSEN, answer, percent, shares
from ui.attack.outcome import Lab, verdict_on
from ui.attack.run import Job, Scored, attack_store, is_wanted, quick, refusal, run_with_progress, score, want
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.pictures import WIDTH
from ui.frame.samples import png
from ui.frame.settings import Chosen, current


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

"""From the choices to an attacked picture that is judged: at once where that is quick, else on demand."""

import streamlit as st

from idecode_core.report.attack import answer, shares
from ui.attack.judge import choose_judge
from ui.attack.panels import SIDE, Lab, OnScreen, verdict_on
from ui.attack.run import Job, Target, attack_store, found, is_wanted, refusal, run_with_progress, score, want
from ui.attack.wish import Wish
from ui.frame.cache import get_detector
from ui.frame.messages import escape
from ui.frame.settings import Chosen


def start(target: Target, wish: Wish, settings: Chosen) -> Lab:
    """The attacked picture, judged. The page ends here where there is no detector, or the visitor has to ask first."""
    config = choose_judge(settings, wish.config)
    if config is None:
        st.stop()
    detector = get_detector(config)
    untouched = Job(target, wish.kind, 0.0, detector, settings.seed)
    job = Job(target, wish.kind, wish.strength, detector, settings.seed)
    with st.spinner("Attacking and judging ...", show_time=False):
        clean = score(detector, untouched.run(), settings.seed)
        is_right = bool(clean.attacked.right_before[0])
        attacked = found(job) if is_right else clean.attacked
    screen = OnScreen(settings)
    if attacked is None:
        if not is_wanted(job):
            ask_first(Lab(wish, target, config, detector, clean, clean, screen), job)
            st.stop()
        run_with_progress([job], "attack")
        attacked = attack_store()[job.key]
    with st.spinner("Judging ...", show_time=False):
        chosen = score(detector, attacked, settings.seed)
    return Lab(wish, target, config, detector, clean, chosen, screen)


def ask_first(lab: Lab, job: Job) -> None:
    """The clean picture, and a button that starts a slow attack; or why it cannot be run."""
    said = answer(lab.target.victim.classes, shares(lab.clean.attacked.before[0]))
    verdict = verdict_on(lab.detector, lab.clean, lab.screen.settings)
    st.markdown(
        f"## The victim says {escape(said.label)}, rightly. Can {escape(job.kind.title)} change its mind?"
    )
    with st.container(horizontal=True, vertical_alignment="center", key="attacked"):
        with st.container(width=SIDE):
            st.image(lab.target.sample.picture, width=SIDE, alt=lab.target.sample.name)
        with st.container(width="stretch"):
            st.markdown(f"**Clean:** {escape(str(said))}; p = {verdict.p_value:.3g}, {verdict.answer}")
            if job.kind.on_detector and (reason := refusal(job)):
                st.error(escape(reason), icon=":material/error:")
                return
            st.button(
                f"Run {job.kind.title}",
                key="attack_go",
                type="primary",
                icon=":material/play_arrow:",
                on_click=want,
                args=(job,),
            )
            st.caption("It takes many passes through the network: some seconds. You can stop it.")

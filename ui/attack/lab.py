"""From the choices to an attacked picture that is judged: at once where that is quick, else on demand; by the bar's detector, or
one that knows such photographs."""

from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import Verdict
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.report.attack import answer, shares
from ui.attack.choice import AttackChoice
from ui.attack.run import (
    Job,
    Scored,
    Target,
    attack_store,
    is_wanted,
    quick,
    refusal,
    run_with_progress,
    score,
    want,
)
from ui.frame.cache import get_configs, get_detector
from ui.frame.detectors import in_order
from ui.frame.messages import escape
from ui.frame.scores import verdicts
from ui.frame.settings import Chosen, current

SIDE = 186  # pixels of a picture: three stand side by side


@dataclass
class OnScreen:
    """What the panels show now, for downloads, which are made when they are asked for."""

    settings: Chosen
    curve: tuple[Scored, ...] = ()
    worst: Scored | None = None


@dataclass(frozen=True, eq=False)
class Lab:
    """A picture that was attacked, the detector that judges it, and what is on the screen."""

    choice: AttackChoice
    target: Target
    config: FolderSettings
    detector: Detector
    clean: Scored
    chosen: Scored
    screen: OnScreen = field(repr=False)

    @property
    def is_right_before(self) -> bool:
        """Whether there is anything to attack."""
        return bool(self.clean.attacked.right_before[0])

    def job(self, strength: float) -> Job:
        return Job(self.target, self.choice.kind, strength, self.detector, current().seed)

    def vector(self, scored: Scored, settings: Chosen) -> NDArray[np.float64]:
        """V of a picture, (n,)."""
        return scored.inspected.score_vector[: min(settings.n, self.detector.calibration.n_max)]


def verdict_on(detector: Detector, scored: Scored, settings: Chosen) -> Verdict:
    return verdicts(detector, [scored.content_hash], scored.inspected.score_vector[None], settings)[0]


def start(target: Target, choice: AttackChoice, settings: Chosen) -> Lab:
    """The attacked picture, judged. The page ends here where there is no detector, or the visitor has to ask first."""
    config = choose_judge(settings, choice.config)
    if config is None:
        st.stop()
    detector = get_detector(config)
    untouched = Job(target, choice.kind, 0.0, detector, settings.seed)
    job = Job(target, choice.kind, choice.strength, detector, settings.seed)
    with st.spinner("Attacking and judging ...", show_time=False):
        clean = score(detector, untouched.run(), settings.seed)
        is_right = bool(clean.attacked.right_before[0])
        attacked = quick(job) if is_right else clean.attacked
    screen = OnScreen(settings)
    if attacked is None:
        if not is_wanted(job):
            ask_first(Lab(choice, target, config, detector, clean, clean, screen), job)
            st.stop()
        run_with_progress([job], "attack")
        attacked = attack_store()[job.key]
    with st.spinner("Judging ...", show_time=False):
        chosen = score(detector, attacked, settings.seed)
    return Lab(choice, target, config, detector, clean, chosen, screen)


def ask_first(lab: Lab, job: Job) -> None:
    """The clean picture, and a button that starts a slow attack; or why it cannot be run."""
    answered = answer(lab.target.victim.classes, shares(lab.clean.attacked.before[0]))
    verdict = verdict_on(lab.detector, lab.clean, lab.screen.settings)
    st.markdown(
        f"## The victim says {escape(answered.label)}, rightly. Can {escape(job.kind.title)} change its mind?"
    )
    with st.container(horizontal=True, vertical_alignment="center", key="attacked"):
        with st.container(width=SIDE):
            st.image(lab.target.sample.picture, width=SIDE, alt=lab.target.sample.name)
        with st.container(width="stretch"):
            st.markdown(f"**Clean:** {escape(str(answered))}; p = {verdict.p_value:.3g}, {verdict.answer}")
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


def choose_judge(settings: Chosen, victim: FolderSettings) -> FolderSettings | None:
    """The settings of the detector that judges; a line where it is not the bar's. None when no detector can."""
    configs = get_configs()
    asked = configs[settings.detector]
    if suits(asked, victim):
        return asked
    offered = (configs[name] for name in in_order(configs))
    alike = (config for config in offered if suits(config, victim) and config.dataset == victim.dataset)
    stand_in = next(alike, None)
    why = (
        f"**{escape(asked.name)}** listens to sounds, and what is attacked here are pictures."
        if asked.takes_sounds
        else f"**{escape(asked.name)}** knows other pictures ({escape(asked.summary)}), and would find all of these strange."
    )
    if stand_in is None:
        st.warning(
            f"{why} No detector here knows what the victim knows, so nothing is judged.",
            icon=":material/block:",
        )
        return None
    with st.container(horizontal=True, vertical_alignment="center", key="attack_judge"):
        st.caption(f"{why} Judged by **{escape(stand_in.name)}** instead.", width="stretch")
        st.button(
            f"Choose {stand_in.folder.name}",
            key="use_judge",
            type="tertiary",
            help="In the bar, for all pages.",
            on_click=st.session_state.__setitem__,
            args=("detector", stand_in.folder.name),
        )
    return stand_in


def suits(config: FolderSettings, victim: FolderSettings) -> bool:
    """Whether a detector takes what the victim takes. One without a public dataset is somebody's own: they will know."""
    return not config.takes_sounds and config.dataset in ("", victim.dataset)

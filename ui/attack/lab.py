"""From the choices to an attacked picture that is judged: at once where that is quick, else on demand; by the bar's detector, or
one that knows such photographs. And more attacks, on demand, because a slow one takes long: the p-value along the strength, for which
it is run eight times; and the other side, somebody who knows the detector: the page says what the guarantee leaves open, and shows it."""

from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.attacks import ATTACKS
from idecode_core.conformal.judge import Verdict
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.plots.attack import as_pixels, p_along_strength
from idecode_core.report.attack import CHOSEN, answer, percent
from ui.attack.choice import AttackChoice
from ui.attack.run import (
    AttackJob,
    Scored,
    Target,
    attack_store,
    is_ready,
    is_wanted,
    quick,
    refusal,
    run_with_progress,
    score,
    want,
)
from ui.frame.cache import get_configs, get_detector
from ui.frame.detectors import in_order
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.pictures import WIDTH
from ui.frame.samples import png
from ui.frame.scores import verdicts
from ui.frame.settings import Chosen, current

SIDE = 186  # pixels of a picture: three stand side by side
LOOK_FOR = (
    "Full dots: the victim is fooled; rings: it is not. Orange is flagged, blue is not. An attack that needs little strength "
    "leaves little to see."
)


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

    def job(self, strength: float) -> AttackJob:
        return AttackJob(self.target, self.choice.kind, strength, self.detector, current().seed)

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
    untouched = AttackJob(target, choice.kind, 0.0, detector, settings.seed)
    job = AttackJob(target, choice.kind, choice.strength, detector, settings.seed)
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


def ask_first(lab: Lab, job: AttackJob) -> None:
    """The clean picture, and a button that starts a slow attack; or why it cannot be run."""
    answered = answer(lab.target.victim.classes, lab.clean.attacked.before[0])
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


def offer(lab: Lab, jobs: list[AttackJob], missing: int) -> None:
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


def on_detector(lab: Lab, settings: Chosen) -> AttackJob:
    """PGD on the detector, as strong as its default."""
    kind = next(kind for kind in ATTACKS.values() if kind.on_detector)
    return AttackJob(lab.target, kind, kind.default, lab.detector, settings.seed)


def show_worst(lab: Lab, scored: Scored, settings: Chosen) -> None:
    verdict, plain = (verdict_on(lab.detector, attacked, settings) for attacked in (scored, lab.chosen))
    answered = answer(scored.attacked.classes, scored.attacked.after[0])
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

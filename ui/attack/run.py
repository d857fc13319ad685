"""Attacks that are run for a visitor: with progress and a way to stop, and kept for this session only.

Keyed by what determines them: the content, the class, the victim, the attack and its strength; of an attack on the detector,
the detector and the seed as well. What the gallery holds is there at once.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
import torch

from idecode_core.attacks import Attacked, AttackKind, Victim, attack, attack_detector
from idecode_core.attacks.on_detector import differentiable
from idecode_core.detector import Detector
from idecode_core.draws import content_hash
from idecode_core.errors import DataError, IdecodeError
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import Unrounded
from idecode_core.scorer import Inspected
from ui.attack.choice import AttackChoice
from ui.frame.cache import remembered, session_store
from ui.frame.samples import Sample

MOST = 128  # attacked pictures per session, some 30 kilobytes each
SCORES = "attack_scores"
WANTED = "attack_wanted"
"""Keys of the attacks that the visitor has asked for. They stay asked for when something interrupts them."""


@dataclass(frozen=True, eq=False)
class Target:
    """A picture as the victim takes it, and what it shows."""

    sample: Sample
    victim: Victim
    victim_sha256: str
    x: torch.Tensor  # (1, 3, size, size), floats in [0, 1]
    label: int
    content_hash: str  # of the pixels at the victim's size
    original: tuple[int, int]  # width and height, pixels

    @property
    def truth(self) -> str:
        return self.victim.classes[self.label]


def target_of(sample: Sample, choice: AttackChoice, label: int | None) -> Target:
    """The picture at the victim's size; without a known class, what the victim sees in it counts as right."""
    decoded = sample.decode()
    pixels = Preprocessing(choice.victim.size)(decoded)  # (size, size, 3)
    x = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float() / 255
    if label is None:
        label = int(choice.victim.all_logits(x)[0].argmax())
    height, width = decoded.shape[:2]
    return Target(
        sample, choice.victim, choice.config.scorer_sha256, x, label, content_hash(pixels), (width, height)
    )


@dataclass(frozen=True, eq=False)
class AttackJob:
    """One attack on one picture."""

    target: Target
    kind: AttackKind
    strength: float
    detector: Detector
    seed: int

    @property
    def key(self) -> tuple[object, ...]:
        against = (self.detector, self.seed) if self.kind.on_detector else ()
        target = self.target
        return (
            target.content_hash, target.label, target.victim_sha256, self.kind.name, self.strength, *against
        )  # fmt: skip

    def run(self, progress: Callable[[float], None] | None = None) -> Attacked:
        target = self.target
        x, y = target.x, [target.label]
        if self.strength == 0:
            x, labels = target.victim.checked(x, y)
            says = target.victim.all_logits(x)
            victim = target.victim
            return Attacked(self.kind.name, 0.0, victim.name, victim.classes, x, x, labels, says, says)
        if self.kind.on_detector:
            return attack_detector(
                target.victim, self.detector, x, y, seed=self.seed, strength=self.strength, progress=progress
            )
        return attack(target.victim, x, y, self.kind.name, self.strength, progress=progress)


def attack_store() -> dict[tuple[object, ...], Attacked]:
    return session_store("attack_store", MOST)


def quick(job: AttackJob) -> Attacked | None:
    """The result where it costs next to nothing: it is known, the gallery has it, or the attack is quick."""
    store = attack_store()
    if job.key not in store:
        if (ready := from_gallery(job)) is not None:
            store[job.key] = ready
        elif job.strength == 0 or not job.kind.slow:
            store[job.key] = job.run()
    return store.get(job.key)


def from_gallery(job: AttackJob) -> Attacked | None:
    """What the project brings along for its own pictures; where that cannot be read, the attack is run."""
    from idecode_core.attacks.classic import from_gallery

    target = job.target
    detector = job.detector.name if job.kind.on_detector else None
    try:
        return from_gallery(
            target.victim,
            target.x,
            target.label,
            job.kind.name,
            job.strength,
            detector=detector,
            seed=job.seed,
        )
    except DataError:
        return None


def refusal(job: AttackJob) -> str:
    """Why the detector of a job cannot be attacked, in a sentence; empty when it can."""
    try:
        differentiable(job.detector.scorer, job.target.victim.size)
    except IdecodeError as error:
        return str(error)
    return ""


def is_wanted(job: AttackJob) -> bool:
    return job.key in st.session_state.get(WANTED, ())


def want(*jobs: AttackJob) -> None:
    """For callbacks: the visitor asks for these, and for nothing else any more."""
    st.session_state[WANTED] = {job.key for job in jobs}


def run_with_progress(jobs: Sequence[AttackJob], key: str) -> None:
    """Attack and score, one job after the other, into the session's stores: what is done when the visitor stops it, stays done."""
    missing = [job for job in jobs if not is_ready(job)]
    if not missing:
        return
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, "Attacking ...", width="stretch")
        st.button("Stop attacking", key=f"{key}_stop", icon=":material/stop_circle:", on_click=want)
    begin = time.monotonic()
    for done, job in enumerate(missing):

        def progress(share: float, done: int = done, job: AttackJob = job) -> None:
            # Streamlit ends the run here, inside of the attack, when the visitor has clicked on something.
            so_far = (done + share) / len(missing)
            bar.progress(so_far, progress_words(job, so_far, time.monotonic() - begin))

        progress(0.0)
        attacked = quick(job)
        if attacked is None:
            attacked = attack_store()[job.key] = job.run(progress)
        score(job.detector, attacked, job.seed)
    place.empty()


def is_ready(job: AttackJob) -> bool:
    """Whether the job is attacked and scored; runs nothing."""
    attacked = attack_store().get(job.key)
    return attacked is not None and (job.detector, job.seed, seen(attacked)[1]) in session_store(SCORES, MOST)


def progress_words(job: AttackJob, share: float, seconds: float) -> str:
    """What is running, and how long it will take."""
    what = f"{job.kind.title} at strength {job.strength:g}"
    if share < 0.05:
        return f"{what} ..."
    left = seconds / share * (1 - share)
    return f"{what}: {share:.0%}, about {left:.0f} s left"


@dataclass(frozen=True, eq=False)
class Scored:
    """An attacked picture in full, as a detector sees it."""

    attacked: Attacked
    inspected: Inspected
    content_hash: str


def seen(attacked: Attacked) -> tuple[Unrounded, str]:
    """The attacked picture as detectors take it, floats all the way, and its content hash; at strength 0 the clean one's."""
    (picture,) = Unrounded(attacked.attacked).pictures()
    return Unrounded(attacked.attacked), content_hash(picture)


def score(detector: Detector, attacked: Attacked, seed: int) -> Scored:
    """V at n_max of the attacked picture; kept for this session."""
    picture, identity = seen(attacked)
    inspected = remembered(
        SCORES,
        MOST,
        (detector, seed, identity),
        lambda: detector.inspect(picture, n=detector.calibration.n_max, seed=seed),
    )
    return Scored(attacked, inspected, identity)

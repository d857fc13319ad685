"""An attack on victim and detector together, by somebody who knows both: the worst case.

Projected gradient descent in a ball of the Linf norm. While the victim still names a picture right, a step follows the gradient
of its cross-entropy; once it is fooled, a step goes down the sum of base NCMs (Eq. 2) over transforms that are drawn again
for every step, so the expectation over draws is lowered and not the score of one draw (Athalye et al. 2018). One goal at a time
needs no weight between the two: Selective PGD (Bryniarski et al. 2022, arXiv 2106.15023).

The guarantee is about inputs that come from the source of the calibration points. It says nothing about these.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.attacks.classic import Progress, run_attack
from idecode_core.attacks.kinds import Attacked, get_attack
from idecode_core.attacks.victim import Victim
from idecode_core.detector import Detector
from idecode_core.draws import content_key
from idecode_core.errors import SettingError
from idecode_core.image.scorer import ImageScorer
from idecode_core.scorer import Scorer, check_n
from idecode_core.scorers.merged import MergedScorer

NAME = "pgd-detector"
STEPS = 40
MARGIN = 0.5  # logits: how clearly the victim must be fooled before a step looks at the detector
RATE = 2.5  # step size = RATE * strength / steps (Madry et al. 2018)


def attack_detector(
    victim: Victim,
    detector: Detector | Scorer,
    x: Any,
    y: Any,
    *,
    n: int = 5,
    seed: int = 0,
    steps: int = STEPS,
    strength: float | None = None,
    progress: Progress | None = None,
) -> Attacked:
    """Fool the victim and keep the detector's score low, within `strength` of each pixel value.

    x (batch, 3, size, size) in [0, 1], y (batch,). Each step looks at n fresh draws per picture. Of all steps at which the
    victim was fooled, the one with the lowest score is kept.
    """
    kind = get_attack(NAME)
    strength = kind.default if strength is None else float(strength)
    kind.check(strength)
    check_n(n)
    if steps < 1:
        raise SettingError(f"The attack needs at least one step, got {steps}.")
    scorer = detector.scorer if isinstance(detector, Detector) else detector
    members = differentiable(scorer, victim.size)
    within = strength

    def piece(x: Tensor, y: Tensor, report: Progress) -> Tensor:
        return _descend(victim, members, x, y, n, step_keys(x, seed, steps + 1), within, report)

    return run_attack(victim, x, y, NAME, strength, piece, progress)


Members = list[tuple[ImageScorer, float]]
"""Networks whose scores are lowered, and what each score is multiplied by before they are added."""


def differentiable(scorer: Scorer, size: int) -> Members:
    """The networks of a scorer that gradients flow through, or a SettingError that says why there are none.

    A merged detector adds ranks, which have no gradient; in their place stand its members' scores in units of their spread
    over the reference points.
    """
    if isinstance(scorer, MergedScorer):
        return [
            (network, scale * weight / float(reference.std()))
            for member, reference, weight in zip(
                scorer.members, scorer.references, scorer.weights, strict=True
            )
            for network, scale in differentiable(member, size)
        ]
    if scorer.modality != "image":
        raise SettingError(
            "This attack changes pictures, and the detector listens to sounds: choose one for pictures."
        )
    if not isinstance(scorer, ImageScorer):
        raise SettingError(
            f"A detector of the kind {scorer.kind} gives no gradients, so this attack cannot see how to lower its score: expected "
            "a network with a base NCM, such as cifar10-rotations. Attack the victim alone, or choose another detector."
        )
    if scorer.preprocessing.size != size or scorer.preprocessing.grey:
        raise SettingError(
            f"The victim sees {size} x {size} pixels in colour and the detector {scorer.preprocessing.size} x "
            f"{scorer.preprocessing.size}{' in grey' if scorer.preprocessing.grey else ''}: expected the same. Choose another pair."
        )
    probe = torch.full((1, 3, size, size), 0.5, device=scorer.device, requires_grad=True)
    score = base_score(scorer, probe, np.zeros((1, 2), np.uint64), 1).sum()
    if not score.requires_grad or torch.autograd.grad(score, probe, allow_unused=True)[0] is None:
        raise SettingError(
            f"The base NCM {scorer.base_ncm} of this detector gives no gradients, so this attack cannot see how to lower its "
            "score. Attack the victim alone, or choose another detector."
        )
    return [(scorer, 1.0)]


def base_score(scorer: ImageScorer, x: Tensor, keys: Any, n: int) -> Tensor:
    """F(V(x)) / n: the mean base NCM over n draws, one set of draws per key, differentiable in x. (batch,)."""
    drawn = scorer.transforms.sample(keys, n)
    return scorer.predict(x, drawn).scores(scorer.base_ncm).mean(dim=1)


def step_keys(x: Tensor, seed: int, steps: int) -> NDArray[np.uint64]:
    """Keys of fresh draws for each step of each picture, which depend on its content and the seed alone: (steps, batch, 2)."""
    generators = (np.random.Generator(np.random.Philox(key=content_key(image.numpy(), seed))) for image in x)
    keys = [generator.integers(0, 2**64, size=(steps, 2), dtype=np.uint64) for generator in generators]
    return np.stack(keys, axis=1)


def _descend(
    victim: Victim,
    members: Members,
    x: Tensor,
    y: Tensor,
    n: int,
    keys: NDArray[np.uint64],
    strength: float,
    report: Progress,
) -> Tensor:
    """The attacked pictures of one piece; those that never fooled the victim as the last step left them.

    keys: (steps + 1, batch, 2). The last look only measures where the last step has led.
    """
    x, y = x.to(victim.device), y.to(victim.device)
    now, kept = x.clone(), x.clone()
    lowest = torch.full((len(x),), torch.inf, device=x.device)
    rate = RATE * strength / (len(keys) - 1)
    for step, drawn in enumerate(keys):
        report(step / len(keys))
        now.requires_grad_(True)
        logits = victim.logits(now)
        others = logits.scatter(1, y[:, None], -torch.inf).amax(1)
        margin = others - logits.gather(1, y[:, None])[:, 0]  # above 0: fooled
        away = torch.autograd.grad(cross_entropy(logits, y, reduction="sum"), now)[0]
        score = torch.stack([scale * base_score(member, now, drawn, n) for member, scale in members]).sum(0)
        down = torch.autograd.grad(score.sum(), now)[0]
        with torch.no_grad():
            better = (margin > 0) & (score < lowest)
            lowest = torch.where(better, score, lowest)
            kept = torch.where(better[:, None, None, None], now, kept)
            direction = torch.where((margin > MARGIN)[:, None, None, None], -down, away)
            following = now + rate * direction.sign()
            following = (x + (following - x).clamp(-strength, strength)).clamp(0, 1)
        never = torch.isinf(lowest)[:, None, None, None]
        last, now = now.detach(), following.detach()
    return torch.where(never, last, kept).detach().cpu()

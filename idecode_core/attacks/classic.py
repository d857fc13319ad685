"""FGSM, BIM, DeepFool and CW-L2 with foolbox, at the paper's settings unless another strength is asked for.

What all attacks share: only pictures that the victim names right are attacked, a few at once, with a report of progress.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from idecode_core.attacks.kinds import BIM_STEP, CW_RATE, CW_STEPS, DEEPFOOL_STEPS, Attacked, get_attack
from idecode_core.attacks.victim import Victim
from idecode_core.errors import SettingError

PICTURES_TOGETHER = 64
Progress = Callable[[float], None]
"""Called often with the share that is done, from 0 to 1; whatever it raises ends the attack."""
Piece = Callable[[Tensor, Tensor, Progress], Tensor]
"""Pictures (piece, 3, h, w), their classes and where to report -> attacked pictures."""


def run_attack(
    victim: Victim, x: Any, y: Any, name: str, strength: float, piece: Piece, progress: Progress | None
) -> Attacked:
    """Attack x (batch, 3, size, size) of classes y (batch,), piece by piece; what is wrong already stays as it is."""
    report = progress or (lambda share: None)
    x, y = victim.checked(x, y)
    before = victim.all_logits(x)
    attacked = x.clone()
    right = torch.nonzero(before.argmax(1) == y).flatten()
    pieces = right.split(PICTURES_TOGETHER) if len(right) else ()
    for number, chosen in enumerate(pieces):

        def inside(share: float, number: int = number) -> None:
            report((number + share) / len(pieces))

        attacked[chosen] = piece(x[chosen], y[chosen], inside)
    report(1.0)
    return Attacked(
        name, strength, victim.name, victim.classes, x, attacked, y, before, victim.all_logits(attacked)
    )


def attack(
    victim: Victim,
    x: Any,
    y: Any,
    name: str,
    strength: float | None = None,
    *,
    progress: Progress | None = None,
) -> Attacked:
    """Attack pictures x (batch, 3, size, size) of classes y (batch,), floats in [0, 1].

    Pictures that the victim names wrong already are left as they are, and so are those for which the attack finds nothing.
    One picture's result does not depend on the others.
    """
    kind = get_attack(name)
    if kind.on_detector:
        raise SettingError(f"{kind.title} needs a detector beside the victim: use attack_detector.")
    strength = kind.default_for(victim.dense) if strength is None else float(strength)
    kind.check(strength)
    chosen = strength

    def piece(x: Tensor, y: Tensor, report: Progress) -> Tensor:
        return _run(victim, x, y, name, chosen, report)

    return run_attack(victim, x, y, name, strength, piece, progress)


def _run(victim: Victim, x: Tensor, y: Tensor, name: str, strength: float, report: Progress) -> Tensor:
    """One piece through foolbox; pictures for which it finds nothing (foolbox's CW answers with a black one) as they were."""
    try:
        foolbox: Any = import_module("foolbox")
    except ImportError as error:
        raise SettingError(
            'Attacks need the package foolbox, which is not installed: run `pip install "idecode-studio[attacks]"`.'
        ) from error
    run: Any
    epsilon: float | None = strength
    if name == "fgsm":
        run, passes = foolbox.attacks.LinfFastGradientAttack(), 1
    elif name == "bim":
        steps = max(1, round(strength / BIM_STEP))
        run = foolbox.attacks.LinfBasicIterativeAttack(
            abs_stepsize=strength / steps, steps=steps, random_start=False
        )
        passes = steps
    elif name == "deepfool":
        classes = len(victim.classes)
        run = foolbox.attacks.L2DeepFoolAttack(steps=DEEPFOOL_STEPS, candidates=classes, overshoot=strength)
        epsilon, passes = None, DEEPFOOL_STEPS * (classes - 1)
    else:
        run = foolbox.attacks.L2CarliniWagnerAttack(
            binary_search_steps=1,
            steps=CW_STEPS,
            stepsize=CW_RATE,
            confidence=0,
            initial_const=strength,
            abort_early=False,  # foolbox would stop by the loss of the whole batch
        )
        epsilon, passes = None, CW_STEPS
    model = foolbox.PyTorchModel(_Watched(victim, passes, report), bounds=(0, 1), device=victim.device)
    attacked, _, _ = run(model, x.to(victim.device), y.to(victim.device), epsilons=epsilon)
    attacked = attacked.cpu().clamp(0, 1)
    pixels = attacked.flatten(1)
    failed = (pixels == 0).all(1) | ~pixels.isfinite().all(1)
    return torch.where(failed[:, None, None, None], x, attacked)


class _Watched(nn.Module):
    """The victim as foolbox takes it, with a report of progress at every pass: a slow attack can be ended in between."""

    def __init__(self, victim: Victim, passes: int, report: Progress) -> None:
        super().__init__()
        self.victim, self.passes, self.report, self.done = victim, passes, report, 0
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.report(min(1.0, self.done / self.passes))
        self.done += 1
        return self.victim.logits(x)

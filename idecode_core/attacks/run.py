"""What all attacks share: only pictures that the victim names right are attacked, a few at once, with a report of progress."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from idecode_core.attacks.attacked import Attacked
from idecode_core.attacks.victim import Victim

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
    before = victim.says(x)
    attacked = x.clone()
    right = torch.nonzero(before.argmax(1) == y).flatten()
    pieces = right.split(PICTURES_TOGETHER) if len(right) else ()
    for number, chosen in enumerate(pieces):

        def inside(share: float, number: int = number) -> None:
            report((number + share) / len(pieces))

        attacked[chosen] = piece(x[chosen], y[chosen], inside)
    report(1.0)
    return Attacked(
        name, strength, victim.name, victim.classes, x, attacked, y, before, victim.says(attacked)
    )

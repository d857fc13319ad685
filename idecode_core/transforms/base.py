"""What a set of transforms G with its distribution Q_G can do."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from idecode_core.draws import Keys


class TransformSet(Protocol):
    """G with Q_G. Sampling is separate from applying: `sample` returns plain tensors, `apply` is deterministic.

    One draw may hold several variants of x (`variants`; 4 when each draw takes all rotation ranges):
    their scores are averaged into the one score of that draw.
    """

    @property
    def variants(self) -> int:
        """Transformed inputs per draw."""
        ...

    def sample(self, keys: Keys, n: int) -> Tensor:
        """(batch, 2) keys -> parameters (batch, n * variants, ...), on the CPU."""
        ...

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, ...) and parameters (batch, m, ...) -> gx (batch, m, ...), on x's device."""
        ...

    def target(self, parameters: Tensor) -> Tensor:
        """What a model that predicts g should answer: (batch, m) classes or (batch, m, p) parameters."""
        ...

    def describe(self, parameters: Tensor) -> list[str]:
        """One point's parameters (m, ...) in words, one text per variant."""
        ...

    def answers(self, prediction: Tensor) -> list[str]:
        """What a model that predicts g said of each variant (m, outputs), in words."""
        ...


def most_likely(logits: Tensor, names: Sequence[str]) -> list[str]:
    """The class that M names for each row of logits (m, classes), and how sure it is."""
    shares = logits.softmax(dim=-1)
    return [f"{names[int(row.argmax())]} ({float(row.max()):.0%} sure)" for row in shares]

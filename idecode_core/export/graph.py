"""What is exported: a network, an example of what it takes, and base NCMs in steps that the exporter can follow."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from idecode_core.ncm import BASE_NCMS, BaseNCM, cross_entropy, label_cross_entropy


@dataclass(frozen=True, eq=False)
class Graph:
    """(x, parameters) -> base scores, ready to be exported."""

    network: nn.Module
    example: tuple[Tensor, Tensor]
    shapes: dict[str, dict[int, torch.export.Dim]]
    """Which axes of x and parameters may have any length."""
    inputs: dict[str, str]
    """What they are, in words."""


def plain_cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """`ncm.cross_entropy` in steps that the exporter can follow: torch 2.12 cannot take its own loss apart."""
    return -log_softmax(prediction, dim=-1).gather(-1, target[..., None]).squeeze(-1)


def plain_label_cross_entropy(prediction: Tensor, reference: Tensor) -> Tensor:
    label = reference.argmax(dim=-1)[:, None].expand(prediction.shape[:2])
    return plain_cross_entropy(prediction, label)


PLAIN: dict[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]] = {
    cross_entropy: plain_cross_entropy,
    label_cross_entropy: plain_label_cross_entropy,
}


def exportable(base_ncm: str) -> BaseNCM:
    ncm = BASE_NCMS[base_ncm]
    return replace(ncm, loss=PLAIN.get(ncm.loss, ncm.loss))

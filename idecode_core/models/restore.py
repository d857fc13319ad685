"""A model from settings and weights that may not fit each other: shapes are compared before any room is taken."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from idecode_core.errors import SettingError

M = TypeVar("M", bound=nn.Module)


def with_weights(build: Callable[[], M], tensors: Mapping[str, Tensor]) -> M:
    """`build()` with these weights; a SettingError when its settings speak of others, so that a folder of a few bytes
    cannot ask for a model of many gigabytes."""
    with torch.device("meta"):  # shapes without memory
        expected = {name: tuple(value.shape) for name, value in build().state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise SettingError(
                f"the settings speak of {name} of shape {expected.get(name)}, and the weights have {found.get(name)}"
            )
    model = build()
    model.load_state_dict(tensors)
    return model

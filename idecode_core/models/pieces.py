"""Many inputs through a network on a device that may be too small for all of them at once, or may be gone.

A model from settings and weights that may not fit each other: shapes are compared before any room is taken.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

from idecode_core.errors import DeviceError, SettingError, SmallerBatchesWarning
from idecode_core.files.read import reason

MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
LOST = ("cuda error", "cudnn", "cublas", "mps", "nccl", "device-side", "hip error", "driver")

Said = TypeVar("Said")


def in_pieces(network: Callable[[Tensor], Tensor], x: Tensor, size: int) -> Tensor:
    """`network(x)`, with at most `size` rows of x at once, see `pieces`."""
    return torch.cat(pieces(network, x, size))


def pieces(network: Callable[[Tensor], Said], x: Tensor, size: int) -> list[Said]:
    """What the network says of `size` rows of x after the other; of half as many whenever the device's memory does not
    suffice.

    A SmallerBatchesWarning says so once. A DeviceError says in one sentence that not even one row fits, or that the
    device is gone.
    """
    done: list[Said] = []
    place = 0
    while place < len(x) or not done:
        try:
            done.append(network(x[place : place + size]))
            place += size
        except RuntimeError as error:
            if not is_out_of_memory(error):
                if is_lost(error):
                    raise lost(x.device, error) from error
                raise
            if size == 1:
                raise DeviceError(
                    f"The memory of the device {x.device} does not suffice for one input: expected more free memory. Close "
                    "other programs that use it, or use the device cpu."
                ) from error
            size = max(1, min(size, len(x)) // 2)
        else:
            continue
        # Outside of the except block: there the error would keep the tensors that did not fit alive.
        if x.device.type == "cuda":
            torch.cuda.empty_cache()
        warnings.warn(
            f"The memory of the device {x.device} did not suffice: going on with {size} inputs at once, which is slower.",
            SmallerBatchesWarning,
            stacklevel=3,
        )
    return done


@contextmanager
def one_sentence(device: torch.device, smaller: str) -> Iterator[None]:
    """A device that is too small or gone is a DeviceError of one sentence; `smaller` says what to do about the former."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise DeviceError(
                f"The memory of the device {device} does not suffice: expected more free memory. {smaller}"
            ) from error
        if is_lost(error):
            raise lost(device, error) from error
        raise


def lost(device: torch.device, error: BaseException) -> DeviceError:
    return DeviceError(
        f"The device {device} stopped answering ({reason(error)}). Start the program again, or use the device cpu."
    )


def is_out_of_memory(error: RuntimeError) -> bool:
    """Torch has an error for graphics cards; of the processor's memory it only says so in words."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error).lower() for words in MEMORY)


def is_lost(error: RuntimeError) -> bool:
    """Whether the device or its driver failed, and not the program."""
    named = isinstance(error, getattr(torch, "AcceleratorError", ()))
    return named or any(words in reason(error).lower() for words in LOST)


M = TypeVar("M", bound=nn.Module)


def with_weights(build: Callable[[], M], tensors: Mapping[str, Tensor]) -> M:
    """`build()` with these weights; a SettingError when its settings speak of others, so that a folder of a few bytes
    cannot ask for a model of many gigabytes."""
    with torch.device("meta"):  # shapes without memory
        expected = {name: tuple(value.shape) for name, value in build().state_dict().items()}
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    for name in sorted(expected.keys() | shapes.keys()):
        if expected.get(name) != shapes.get(name):
            raise SettingError(
                f"the settings speak of {name} of shape {expected.get(name)}, and the weights have {shapes.get(name)}"
            )
    model = build()
    model.load_state_dict(tensors)
    return model

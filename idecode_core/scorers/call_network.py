"""A user's own network: pictures in [0, 1] in, one row of answers per picture out, or one clear sentence why not.

It is a torch.nn.Module (classifier or feature extractor), a torch.export program, or any function. What is stored of it are
its weights, never its code; only a torch.export program is stored whole.
"""

import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import ExportedProgram

from idecode_core.errors import CheckpointError, IdecodeError, SettingError
from idecode_core.files.read import reason

PROBE_TOLERANCE = 1e-3
PREFIX = "network."
"""Of the weights' names in model.safetensors."""

PredictFn = Callable[[NDArray[np.float32]], Any]
"""Normalised pictures, float32 (batch, channels, size, size) -> what is said of each, (batch, outputs)."""


class UserModel:
    """A user's network, with the normalisation that it expects: pictures in [0, 1] in, (batch, outputs) out."""

    def __init__(
        self,
        network: nn.Module | ExportedProgram | PredictFn,
        mean: Sequence[float],
        std: Sequence[float],
        device: torch.device,
        features: str | None = None,
    ) -> None:
        self.network, self.device, self.features = network, device, features
        self.mean, self.std = (_per_channel(values, name) for values, name in ((mean, "mean"), (std, "std")))
        if len(self.mean) != len(self.std) or min(self.std) <= 0:
            raise SettingError(
                f"mean and std must have one number per channel, and std must be above 0; got {self.mean} and {self.std}."
            )
        if not callable(network):
            raise SettingError(
                f"Expected a torch.nn.Module, a torch.export program or a function predict_fn, got {type(network).__name__}."
            )
        self.call: Callable[[Any], Any] = network
        if isinstance(network, ExportedProgram):
            self.call = network.module().to(device)
        elif isinstance(network, nn.Module):
            self.call = network.to(device).eval()
        self.is_function = not isinstance(network, nn.Module | ExportedProgram)
        if features is not None and (self.is_function or isinstance(network, ExportedProgram)):
            raise SettingError(
                "features= names a layer of a torch.nn.Module; leave it out for a program or a function."
            )
        if features is not None:
            _check_layer(network, features)

    @cached_property
    def dtype(self) -> torch.dtype:
        """What the network calculates in."""
        weights = self.call.parameters() if isinstance(self.call, nn.Module) else iter(())
        return next((weight.dtype for weight in weights if weight.is_floating_point()), torch.float32)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """x (batch, 3, h, w) in [0, 1] -> what the network says (batch, outputs), and its features (batch, d) if asked."""
        channels = x[:, : len(self.mean)]  # one channel: the preprocessing has made it grey
        mean, std = (torch.tensor(v, device=x.device).view(1, -1, 1, 1) for v in (self.mean, self.std))
        normalised = ((channels - mean) / std).to(self.dtype)
        if self.is_function:
            return _answers(self.call(normalised.cpu().numpy()), len(x)).to(x.device), None
        if self.features is None:
            return _answers(self.call(normalised), len(x)), None
        caught: list[Any] = []
        layer = self.call.get_submodule(self.features)  # type: ignore[attr-defined]
        hook = layer.register_forward_hook(lambda _layer, _inputs, output: caught.append(output))
        try:
            answers = _answers(self.call(normalised), len(x))
        finally:
            hook.remove()
        return answers, _pooled(caught, self.features, len(x))

    def tensors(self) -> dict[str, Tensor]:
        """What is stored of it: weights, or a whole program. Half precision becomes float32, which is exact."""
        if isinstance(self.network, ExportedProgram):
            return {"program": self.program}
        if not isinstance(self.network, nn.Module):
            return {}
        stored: dict[str, Tensor] = {}
        for name, value in self.network.state_dict().items():
            if (
                not isinstance(value, Tensor)
                or value.is_quantized
                or value.is_meta
                or value.layout != torch.strided
            ):
                raise CheckpointError(
                    f"The network's state {name!r} cannot be saved: expected a plain tensor, got {type(value).__name__}. Store "
                    "the network as a torch.export program, which is saved whole."
                )
            half = value.dtype in (torch.float16, torch.bfloat16)
            stored[PREFIX + name] = value.detach().float() if half else value.detach()
        return stored

    @cached_property
    def program(self) -> Tensor:
        """A torch.export program as bytes: (bytes,) uint8."""
        assert isinstance(self.network, ExportedProgram)
        buffer = io.BytesIO()
        torch.export.save(self.network, buffer)
        return torch.from_numpy(np.frombuffer(buffer.getvalue(), dtype=np.uint8).copy())


def _per_channel(values: Sequence[float], name: str) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) not in (1, 3):
        raise SettingError(
            f"{name} must have 3 numbers, or 1 for a network that takes grey pictures; got {len(numbers)}."
        )
    return numbers


def _check_layer(network: Any, features: str) -> None:
    layers = [name for name, _ in network.named_modules() if name]
    if features not in layers:
        near = get_close_matches(features, layers, n=5, cutoff=0.4) or layers[-5:]
        raise SettingError(
            f"The network has no layer {features!r}, which features= names; near names are {', '.join(near)}. "
            "network.named_modules() lists them all."
        )


def _answers(output: Any, count: int) -> Tensor:
    """What a network returned, as (count, outputs): a tensor or array, or an output with logits (Hugging Face)."""
    if isinstance(output, Mapping) and "logits" in output:
        output = output["logits"]
    output = getattr(output, "logits", output)
    if isinstance(output, np.ndarray):
        output = torch.from_numpy(np.ascontiguousarray(output))
    if not isinstance(output, Tensor):
        raise SettingError(
            f"The network gave {type(output).__name__}: expected a tensor (batch, outputs), or an output with logits. Wrap it in "
            "a torch.nn.Module that returns the tensor."
        )
    if output.ndim != 2 or output.shape[0] != count or output.shape[1] == 0:
        pool = (
            " Pool feature maps first: nn.Sequential(network, nn.AdaptiveAvgPool2d(1), nn.Flatten())."
            if output.ndim == 4
            else ""
        )
        raise SettingError(
            f"The network's output has the wrong shape: expected (batch, outputs) = ({count}, any), one row per picture, got "
            f"{tuple(output.shape)}.{pool}"
        )
    if not output.is_floating_point():
        raise SettingError(
            f"The network's output has type {output.dtype}: expected floating-point logits or features. If it names classes, "
            "give the scores behind the names (log of predict_proba in scikit-learn)."
        )
    return output


def _pooled(caught: list[Any], name: str, count: int) -> Tensor:
    """A layer's output as features (count, d): maps are averaged over their places."""
    output = caught[-1] if caught else None
    if not isinstance(output, Tensor) or output.ndim not in (2, 4) or output.shape[0] != count:
        came = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise SettingError(
            f"The layer {name!r} gave {came}: expected features (batch, d) or maps (batch, d, h, w). Name another layer."
        )
    return output.mean(dim=(2, 3)) if output.ndim == 4 else output


def close(ours: Tensor, theirs: Tensor) -> bool:
    """Equal up to float noise, relative to how far the answers spread."""
    if ours.shape != theirs.shape:
        return False
    return bool((ours - theirs).abs().max() <= PROBE_TOLERANCE * max(float(theirs.abs().max()), 1e-6))


def check_weights(model: UserModel, tensors: Mapping[str, Tensor], network: str) -> None:
    given = model.tensors()
    stored = {name: value for name, value in tensors.items() if name.startswith(PREFIX)}
    other = sorted(given.keys() ^ stored.keys())
    if other:
        raise CheckpointError(
            f"The {type(model.network).__name__} that was given is built otherwise than the {network} that was calibrated: "
            f"{len(other)} weights are in one and not in the other, such as {other[0].removeprefix(PREFIX)}. Give the same "
            "network."
        )
    changed = [name for name, value in stored.items() if not _same(given[name].cpu(), value)]
    if changed:
        raise CheckpointError(
            f"The network that was given has other weights than the one that was calibrated: {len(changed)} of {len(stored)} "
            f"differ, such as {changed[0].removeprefix(PREFIX)}. Load the right ones, "
            "network.load_state_dict(stored_weights(folder)), or calibrate this network."
        )


def _same(ours: Tensor, theirs: Tensor) -> bool:
    return (
        ours.shape == theirs.shape
        and ours.dtype == theirs.dtype
        and ours.numpy().tobytes() == theirs.numpy().tobytes()
    )


def imported_network(place: str) -> Any:
    """What "module:name" names: a network, a predict_fn, or a function without arguments that makes one. This runs the user's code;
    modules are looked for in the current folder too."""
    module, colon, name = place.partition(":")
    if not (module and colon and name):
        raise SettingError(
            f"The model {place!r} is no import path: expected module:function, such as mine:network for network() in mine.py."
        )
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        named = getattr(import_module(module), name)
        if isinstance(named, nn.Module):
            return named
        needed = [
            p
            for p in signature(named).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        return named if needed else named()
    except IdecodeError:
        raise
    except (
        Exception,
        SystemExit,
    ) as error:  # foreign code may raise anything; its end would be ours, with status 0
        raise SettingError(
            f"The model {place} could not be had ({type(error).__name__}: {reason(error)}): expected a function {name} in the module "
            f"{module} that gives the network. Run it where that module can be imported."
        ) from error


def open_program(program: Tensor, trusted: bool) -> ExportedProgram:
    if not trusted:
        raise CheckpointError(
            "This detector holds a torch.export program, and opening one can run code of whoever made it. If you trust "
            "where the folder comes from: load_detector(folder, trust_program=True), or --trust-program."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's own, about buffers that it reads from
        return torch.export.load(io.BytesIO(program.numpy().tobytes()))

"""The device that models run on."""

import torch

from idecode_core.errors import SettingError

CPU = torch.device("cpu")


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """The given device, else the best that is there: cuda, mps, cpu."""
    if device is not None:
        try:
            chosen = torch.device(device)
        except RuntimeError:
            raise SettingError(
                f"No device is called {device!r}: expected cpu, cuda, cuda:1, ... or mps."
            ) from None
        missing = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
        if missing.get(chosen.type, False):
            raise SettingError(
                f"The device {device!r} is not available on this machine; use cpu, or leave it out."
            )
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

"""FGSM, BIM, DeepFool and CW-L2 with foolbox, at the paper's settings unless another strength is asked for: of arrays, of a user's
files, and of a few bundled pictures whose slow attacks are stored.

What all attacks share: only pictures that the victim names right are attacked, a few at once, with a report of progress.

The gallery, `embedded/attacked-gallery.npz`, is written by `python -m tools.make_attack_gallery`, so that a page can show slow
attacks at once: per victim and attack the attacked pictures as float32. What the victim says of them is asked again, so it is true
of the victim that is here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idecode_core.attacks.kinds import (
    BIM_STEP,
    CW_RATE,
    CW_STEPS,
    DEEPFOOL_STEPS,
    Attacked,
    get_attack,
    set_name,
    to_tensor,
)
from idecode_core.attacks.victim import Victim, load_victim
from idecode_core.data import EMBEDDED
from idecode_core.errors import DataError, SettingError
from idecode_core.files import write_npz, write_text
from idecode_core.files.find import found_files
from idecode_core.files.names import csv_text
from idecode_core.files.read import read_arrays
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import EXTENSIONS, read_image
from idecode_core.image.sets import load_images

PICTURES_TOGETHER = 64
PICTURES, TABLE = "attacked.npz", "attacked.csv"
GALLERY_SET = "cifar10-sample"
GALLERY_PLACES = (0, 12, 24, 36, 48, 60, 72, 84)
"""Of the gallery's pictures in that set: the first airplane, car, bird, cat, deer, dog, frog and horse."""
GALLERY = EMBEDDED / "attacked-gallery.npz"
GALLERY_SEED = 0
"""Of the draws of the attack on a detector."""
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


@dataclass(frozen=True, eq=False, repr=False)
class AttackedFiles:
    """Pictures of files before and after, in the folder that they were written to."""

    folder: Path
    files: tuple[str, ...]
    attacked: Attacked

    def records(self) -> list[dict[str, Any]]:
        """One table row per file: what the victim says before and after, and how large the change is."""
        before, after = (
            [self.attacked.classes[int(i)] for i in each]
            for each in (self.attacked.labels, self.attacked.after.argmax(1))
        )
        columns = (self.files, before, after, self.attacked.success, self.attacked.l2, self.attacked.linf)
        return [
            {
                "file": file,
                "before": was,
                "after": now,
                "fooled": bool(fooled),
                "l2": float(l2),
                "linf": float(linf),
            }
            for file, was, now, fooled, l2, linf in zip(*columns, strict=True)
        ]

    def __repr__(self) -> str:
        return f"AttackedFiles({self.folder.name!r}: {self.attacked.summary()})"


def attack_files(
    files: Sequence[Path | str],
    out: Path | str,
    *,
    victim: str = "cifar10-invariance",
    name: str = "fgsm",
    strength: float | None = None,
    device: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> AttackedFiles:
    """All that `idecode attack` does: pictures and folders of them, changed until the victim names them wrong; what it sees before the
    attack counts as right. Writes attacked.npz (clean and attacked, floats from 0 to 1) and attacked.csv into the new folder `out`.
    `progress` is called with the share that is done."""
    folder = Path(out)
    if folder.exists():
        raise SettingError(f"{folder} is there already: expected a new folder. Choose another.")
    _, paths = found_files([Path(file) for file in files], EXTENSIONS)
    against = load_victim(victim, device)
    shown = Preprocessing(against.size)
    x = to_tensor(np.stack([shown(read_image(Path(path), name=path)) for path in paths]))
    attacked = attack(against, x, against.all_logits(x).argmax(1), name, strength, progress=progress)
    made = AttackedFiles(folder, tuple(paths), attacked)
    write_npz(folder / PICTURES, {"clean": attacked.clean.numpy(), "attacked": attacked.attacked.numpy()})
    write_text(folder / TABLE, csv_text(made.records()))
    return made


def gallery_pictures() -> tuple[Tensor, Tensor]:
    """The gallery before any attack: (8, 3, 32, 32) in [0, 1], and the classes (8,)."""
    images = load_images(GALLERY_SET).take(np.array(GALLERY_PLACES))
    return to_tensor(images.x), torch.from_numpy(images.y)


def array_name(victim: str, name: str, detector: str | None = None) -> str:
    return f"{victim}.{set_name(name, detector)}"


def from_gallery(
    victim: Victim,
    x: Tensor,
    y: int,
    name: str,
    strength: float,
    *,
    detector: str | None = None,
    seed: int = GALLERY_SEED,
) -> Attacked | None:
    """What `attack` or `attack_detector` gives for one picture x (1, 3, size, size), where the gallery has it; else None."""
    if strength != get_attack(name).default_for(victim.dense) or (
        detector is not None and seed != GALLERY_SEED
    ):
        return None
    stored = _arrays().get(array_name(victim.name, name, detector))
    clean, labels = gallery_pictures()
    places = [i for i in range(len(clean)) if torch.equal(clean[i : i + 1], x) and int(labels[i]) == y]
    if stored is None or not places:
        return None
    attacked = torch.from_numpy(stored[places[0]][None])
    before, after = victim.all_logits(x), victim.all_logits(attacked)
    return Attacked(
        name, strength, victim.name, victim.classes, x, attacked, labels[places[:1]], before, after
    )


@cache
def _arrays() -> dict[str, NDArray[np.float32]]:
    return read_arrays(
        GALLERY, what="a gallery of attacked pictures", error=DataError, hint="Install the program again."
    )

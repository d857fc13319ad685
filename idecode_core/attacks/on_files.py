"""An attack on a user's pictures: files in, the attacked pictures and a table out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from idecode_core.attacks.classic import attack
from idecode_core.attacks.kinds import Attacked, to_tensor
from idecode_core.attacks.victim import load_victim
from idecode_core.errors import SettingError
from idecode_core.files import write_npz, write_text
from idecode_core.files.cells import csv_text
from idecode_core.files.find import found_files
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import EXTENSIONS, read_image

PICTURES, TABLE = "attacked.npz", "attacked.csv"


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

"""`attack`: change pictures a little so that a classifier names them wrong."""

import csv
import io
from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli.inputs import Device, progress_bar
from idecode_core.errors import SettingError


def attack(
    files: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="A new folder for attacked.npz and attacked.csv.", show_default=False)
    ],
    victim: Annotated[
        str, typer.Option(help="A detector whose network names classes.")
    ] = "cifar10-invariance",
    name: Annotated[str, typer.Option("--attack", help="fgsm, bim, deepfool or cw.")] = "fgsm",
    strength: Annotated[float | None, typer.Option(help="The paper's if left out.")] = None,
    device: Device = None,
) -> None:
    """Attack a classifier on pictures; what it sees in each before the attack counts as right.

    Writes attacked.npz (clean and attacked pictures at the classifier's size, floats from 0 to 1) and attacked.csv.

    \b
    Examples:
      python -m idecode_core attack photos/ --attack deepfool --out attacked
    """
    import numpy as np

    from idecode_core.attacks import attack as run
    from idecode_core.attacks import load_victim
    from idecode_core.attacks.sets import to_tensor
    from idecode_core.files import write_npz, write_text
    from idecode_core.files.cells import defused
    from idecode_core.files.find import found_files
    from idecode_core.image.features import Preprocessing
    from idecode_core.image.read import EXTENSIONS, read_image

    if out.exists():
        raise SettingError(f"{out} is there already: expected a new folder. Choose another.")
    _, paths = found_files(files, EXTENSIONS)
    against = load_victim(victim, device)
    shown = Preprocessing(against.size)
    x = to_tensor(np.stack([shown(read_image(Path(path), name=path)) for path in paths]))
    with progress_bar("attacking", 100) as bar:
        found = run(
            against,
            x,
            against.says(x).argmax(1),
            name,
            strength,
            progress=lambda share: bar(round(100 * share)),
        )
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["file", "before", "after", "fooled", "l2", "linf"])
    for i, path in enumerate(paths):
        said = (against.classes[int(label[i])] for label in (found.labels, found.after.argmax(1)))
        names = (defused(name) for name in (path, *said))
        rows.writerow([*names, bool(found.success[i]), f"{found.l2[i]:.6g}", f"{found.linf[i]:.6g}"])
    write_npz(out / "attacked.npz", {"clean": found.clean.numpy(), "attacked": found.attacked.numpy()})
    write_text(out / "attacked.csv", table.getvalue())
    typer.echo(f"{found.summary()} Written to {out}.")

"""Files of a user's own, as commands name them: a folder, a CSV of paths, or a dataset by its name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from idecode_core.cli.inputs import progress_bars, samples
from idecode_core.errors import InputError, SettingError

if TYPE_CHECKING:
    from idecode_core.evaluation.sets import SetToScore
    from idecode_core.training.own.files import Scan

MOST_OUTSIDE = 100
"""Points of one OOD set that are scored; more say hardly more."""


def look(source: Path, modality: str, labels: str | None, shown: bool = True) -> "Scan":
    """Read every file once, with a bar if it is to be shown."""
    from idecode_core.training.own.files import scan

    if labels not in (None, "folders", "none"):
        raise SettingError(f"--labels must be folders or none, got {labels!r}.")
    with progress_bars(shown) as report:
        return scan(source, modality, labels, lambda done, total: report("reading", done, total))  # type: ignore[arg-type]


def names_files(source: str) -> bool:
    """Or a dataset."""
    return Path(source).is_dir() or Path(source).suffix.lower() == ".csv"


def different_samples(source: str, modality: str, data_root: Path | None, strict: bool = False) -> Any:
    """A dataset by its name, or the files of a folder or a CSV without copies. Broken ones are counted and left out, or
    refused."""
    if not names_files(source):
        return samples(source, modality, data_root)
    found = look(Path(source), modality, "none")
    if strict and found.broken:
        raise InputError(f"{len(found.broken)} of the files cannot be read (--strict): {found.broken[0]}")
    if not found.files:
        raise InputError(f"{source}: none of the files can be read: {found.broken[0]}")
    if found.broken or found.copies or found.others:
        typer.echo("\n".join(found.sentences()))
    return [file.path for file in found.files]


def sets_outside(sources: Sequence[str], found: "Scan") -> "list[SetToScore]":
    """What does not belong: the user's --ood folders or datasets, else the sets that come with the project."""
    from idecode_core.evaluation.sets import SetToScore
    from idecode_core.modality import modality_named

    if not sources:
        return [
            SetToScore(_file_name(label), True, points)
            for label, points in modality_named(found.modality).bundled("").items()
        ]
    known = {file.content for file in found.files}
    sets: list[SetToScore] = []
    for source in sources:
        if not names_files(source):
            points: Any = samples(source, found.modality, None)[:MOST_OUTSIDE]
        else:
            other = look(Path(source), found.modality, "none")
            new = [file.path for file in other.files if file.content not in known]
            if not new:
                raise InputError(
                    f"{source}: expected files that do not belong, for --ood; all that can be read are also in "
                    f"{found.source}. Name another folder."
                )
            step = max(1, len(new) // MOST_OUTSIDE)
            points = new[::step][:MOST_OUTSIDE]
        name = _file_name(Path(source).stem)
        if any(one.name == name for one in sets):
            raise SettingError(f"Two --ood sets are called {name}: rename one of the folders.")
        sets.append(SetToScore(name, True, points))
    return sets


def _file_name(words: str) -> str:
    """A set's name that can be a file's."""
    return "".join(c if c.isalnum() or c in "._" else "-" for c in words).strip("-.") or "set"

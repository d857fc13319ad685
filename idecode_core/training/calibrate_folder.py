"""An existing detector's model, calibrated on a user's own files: what it repairs, and what it costs. All files count, copies too:
nothing is fitted, and a source that often sends the same picture sends it tomorrow as well."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from idecode_core.conformal.dirty import Contamination, contamination, strangest, trimmed, what_it_promises
from idecode_core.conformal.same_source import SourceComparison, compare
from idecode_core.detector import Detector
from idecode_core.errors import InputError
from idecode_core.files import write_text
from idecode_core.files.names import NOUNS, csv_text, printable
from idecode_core.files.shown import Report, progress_of
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.place import new_place
from idecode_core.folder.record import FILES, MODEL_PARTS, parts_by_content, refuse_files_of
from idecode_core.folder.settings import find_detector
from idecode_core.modality import content_of, modality_named
from idecode_core.quality.user_data import EPSILON, Lost, what_is_lost
from idecode_core.report.calibrations import calibration_card, lost_rows
from idecode_core.training.user_files import Scan, points_of, refuse_shared


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedFolder:
    """A detector that was calibrated again."""

    detector: Detector
    folder: Path
    parent: Detector
    scanned: Scan | None
    """What is in the user's folder; None for a dataset."""
    comparison: SourceComparison
    """The new calibration scores beside the parent's."""
    lost: Lost
    """What the parent caught of what does not belong, and what is still caught."""
    n: int
    """Draws per point of the comparison and of what is lost."""
    dirt: Contamination
    """Whether the files looked as if some do not belong, before any were taken out."""
    reviewed: int = 0
    removed: tuple[str, ...] = ()
    """Of the strangest that were reviewed, those that do not belong."""

    def sentences(self) -> list[str]:
        """The result for people."""
        k, n_max = self.detector.calibration.k, self.detector.calibration.n_max
        noun = NOUNS[self.detector.scorer.modality]
        return [
            f"{self.folder}: calibrated on {k:,} {noun}s with {n_max} draws each. The smallest p-value is {1 / (k + 1):.3g}; "
            f"epsilon must be larger. Use it with --detector {self.folder}",
            *([what_it_promises(k, len(self.removed), self.reviewed)] if self.reviewed else []),
            *([f"{self.dirt.reading()} Run again with --review {self.dirt.beyond}"] if self.warns else []),
            f"What is still caught at epsilon = {EPSILON:g}, n = {self.n}: {self.lost.reading()}",
            *(
                f"  {row['set']}: {self.parent.name} {row['parent_catches']}, now {row['still_caught']}"
                for row in lost_rows(self.lost)
            ),
            "Recalibrating repairs false alarms, not detection: for another kind of files use `train FOLDER`.",
        ]

    @property
    def warns(self) -> bool:
        """Whether the set looks contaminated and nobody has looked through what lies beyond the gap."""
        return self.dirt.suspected and self.reviewed < self.dirt.beyond

    def __repr__(self) -> str:
        k = self.detector.calibration.k
        return f"CalibratedFolder({self.folder.name!r} of {self.parent.name!r}, k = {k:,}, catches {self.lost.after:.0%})"


def calibrate_folder(
    detector: Path | str,
    source: Path | str,
    out: Path | str,
    *,
    ood: Sequence[str | Path] = (),
    n_max: int = 20,
    seed: int = 0,
    summary: str = "",
    strict: bool = False,
    allow_training_files: bool = False,
    model: Any = None,
    trust_program: bool = False,
    review: int = 0,
    do_not_belong: Callable[[Sequence[str]], Sequence[int]] | None = None,
    replace: bool = False,
    device: str | None = None,
    data_root: Path | None = None,
    report: Report | None = None,
) -> CalibratedFolder:
    """Calibrate a detector, by its name or folder, on the files of a folder or a CSV, or on a dataset by its name: all that `idecode
    calibrate` does.

    `out` is the new detector, as for `train_folder`. `ood` are folders or datasets that it should still catch; else sets that
    come with the project. `strict` refuses a folder with files that cannot be read; files that the model was made of are refused
    unless they are allowed. `model` and `trust_program` are for a detector around your own network, see `load_detector`. With
    `review`, the names of so many strangest points, the strangest first, go to `do_not_belong`, which answers with the places of
    those that leave (`conformal.dirty`). `report` is called with (what is being done, how much of it is done, how much there is).
    """
    parent_folder, others = find_detector(detector), list(map(str, ood))
    place = new_place(out, replace, (source, parent_folder, *others))
    parent = load_detector(parent_folder, device, model=model, trust_program=trust_program)
    modality = parent.scorer.modality
    points, scanned = points_of(str(source), modality, data_root, report)
    if review:
        strangest(range(len(points)), review)  # refuses a number that is too large before any work
    if strict and scanned is not None and scanned.broken:
        raise InputError(f"{len(scanned.broken)} of the files cannot be read (--strict): {scanned.broken[0]}")
    parts = parts_by_content(parent_folder)
    contents = list(map(content_of, points)) if scanned is None else [file.content for file in scanned.files]
    if not allow_training_files:
        refuse_files_of(parent.name, parts, contents, str(source), MODEL_PARTS)
    outside = {name: points_of(name, modality, data_root, report)[0] for name in others}
    for name, some in outside.items():
        refuse_shared(name, some, set(contents), str(source))
    outside = outside or modality_named(modality).bundled(parent.dataset)
    belongs = summary or printable(f"{NOUNS[modality].capitalize()}s like those of {Path(source).name}")
    progress = progress_of(report, "calibrating", len(points))
    new = Detector.calibrate(
        place.name, parent.scorer, points, n_max=n_max, seed=seed, summary=belongs, progress=progress
    )
    n = min(5, new.calibration.n_max, parent.calibration.n_max)
    scores = new.calibration.scores(n)
    dirt, shown = contamination(scores), strangest(scores, review).tolist() if review else []
    names = [f"number {i}" if scanned is None else scanned.files[i].name for i in shown]
    out_of_it = [shown[i] for i in do_not_belong(names)] if names and do_not_belong else []
    if out_of_it:
        new = changed(new, calibration=trimmed(new.calibration, review, out_of_it, n=n))
        contents = [content for i, content in enumerate(contents) if i not in out_of_it]
    vectors = {name: parent.score_vectors(some, n=n, seed=seed) for name, some in outside.items()}
    lost = what_is_lost(parent.calibration, new.calibration, vectors, n=n, epsilon=EPSILON)
    comparison = compare(new.calibration.scores(n), parent.calibration.scores(n))
    card = calibration_card(place.name, parent, new.calibration, comparison, n, belongs=belongs, lost=lost)
    listed = _files_table(parts, contents)
    if review:
        card += f"\n## Reviewed\n\n{what_it_promises(new.calibration.k, len(out_of_it), review)}\n"
    save_detector(new, place, card, beside={FILES: lambda path: write_text(path, listed)}, replace=replace)
    removed = tuple(name for i, name in zip(shown, names, strict=True) if i in out_of_it)
    return CalibratedFolder(new, place, parent, scanned, comparison, lost, n, dirt, review, removed)


def _files_table(parts: Mapping[str, str], contents: Sequence[str]) -> str:
    """files.csv: what the model was made of, by content, and what calibrates it now."""
    listed = [(part, content) for content, part in parts.items() if part in MODEL_PARTS]
    listed += [("calibration", content) for content in contents]
    return csv_text([{"file": "", "label": "", "part": part, "content": content} for part, content in listed])

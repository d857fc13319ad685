"""How well a detector separates iD from OOD, on a user's own data or from stored scores. From stored scores without torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idecode_core.conformal.groups import GroupRate, rates_by_group, reading
from idecode_core.conformal.judge import Judgement
from idecode_core.conformal.settings import Settings
from idecode_core.errors import SettingError
from idecode_core.files.names import printable
from idecode_core.files.shown import Report, data_frame, progress_of
from idecode_core.folder.record import parts_by_content, refuse_files_of
from idecode_core.folder.settings import find_detector
from idecode_core.folder.stored import Stored, open_stored
from idecode_core.quality.methods import compare, judge_runs, share_of
from idecode_core.quality.metrics import DELTA, conformal_bounds

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from idecode_core.detector import Detector


@dataclass(frozen=True)
class SetRow:
    """One OOD set against the iD test set; rates are 0 to 1, means over the independent runs."""

    id_set: str
    ood_set: str
    id_points: int
    ood_points: int
    auroc: float
    auroc_low: float  # of its 95 % interval (DeLong)
    auroc_high: float
    tnr: float  # at 90 % TPR
    fpr: float  # at 95 % TPR
    detection_rate: float  # share of the OOD points with p < epsilon
    false_detection_rate: float  # share of the iD points with p < epsilon
    auroc_at_least: float  # with probability 95 % (`quality.metrics.Bounds`), as the next two
    tnr_at_least: float
    fpr_at_most: float


@dataclass(frozen=True, repr=False)
class Evaluated:
    """A detector on one iD set and on some OOD sets."""

    detector: str
    n: int
    epsilon: float
    delta: float | None
    rows: tuple[SetRow, ...]
    failed: tuple[str, ...] = ()
    """A sentence for each file that could not be read and is left out."""
    groups: tuple[GroupRate, ...] = ()
    """The rate of each subfolder of the iD files, the most often flagged first; where it was asked for."""

    def records(self) -> list[dict[str, Any]]:
        """One table row per OOD set, with the settings."""
        settings = {"detector": self.detector, "n": self.n, "epsilon": self.epsilon, "delta": self.delta}
        return [{**asdict(row), **settings} for row in self.rows]

    def to_frame(self) -> "pandas.DataFrame":
        return data_frame(self.records())

    def sentence(self) -> str:
        """False detections beside what is promised."""
        first = self.rows[0]
        bound = (
            f"the bound on its average is epsilon = {self.epsilon:g}"
            if self.delta is None
            else f"for {1 - self.delta:.3g} of all calibration sets the bound is epsilon = {self.epsilon:g}"
        )
        return (
            f"{self.detector} with n = {self.n}: of {first.id_points:,} iD points ({first.id_set}) a share of "
            f"{first.false_detection_rate:.3f} was flagged; {bound}."
        )

    def by_group(self) -> str:
        """The groups that one threshold treats differently, the worst treated first. "" where none were asked for."""
        if not self.groups:
            return ""
        lines = (f"  {rate.group}: {rate.pooled:.1%} of {rate.points:,}" for rate in self.groups)
        return "\n".join([reading(list(self.groups), self.epsilon), *lines])

    def surely(self) -> str:
        """What endless test data of the same kinds would give at worst; wide where there are few points."""
        worst = (
            f"{row.ood_set}: AUROC at least {row.auroc_at_least:.1%}, TNR at least {row.tnr_at_least:.1%}, FPR at most "
            f"{row.fpr_at_most:.1%}"
            for row in self.rows
        )
        return (
            f"With probability {1 - DELTA:.0%} each, of endless points of the same kinds: {'; '.join(worst)}."
        )

    def __repr__(self) -> str:
        aurocs = ", ".join(f"{row.ood_set} {100 * row.auroc:.1f} %" for row in self.rows[:3])
        return f"Evaluated({self.detector!r}, n = {self.n}, AUROC: {aurocs})"


def evaluate(
    detector: Path | str,
    id_source: str | Path | None = None,
    ood: Sequence[str | Path] = (),
    *,
    n: int | None = None,
    epsilon: float = 0.05,
    delta: float | None = None,
    seed: int = 0,
    aggregate: str = "sum",
    device: str | None = None,
    model: Any = None,
    trust_program: bool = False,
    data_root: Path | None = None,
    allow_training_files: bool = False,
    groups: bool = False,
    report: Report | None = None,
) -> Evaluated:
    """A detector, by its name or folder, on folders of files or datasets by their names: all that `idecode evaluate` does.

    Without `id_source` and `ood` from the scores that are stored with the detector, as means over independent runs. Files that the
    detector was made of are refused unless they are allowed. With `groups`, the rate of each subfolder of `id_source` is told beside
    the pooled one. `report` is called with (set, points done, points).
    """
    if (id_source is None) != (not ood):
        raise SettingError("Expected both --id and --ood, or neither (for stored scores); got one of them.")
    if id_source is not None and Path(id_source).absolute() in (Path(name).absolute() for name in ood):
        raise SettingError(
            f"--id and --ood are both {printable(str(id_source))}: expected points that belong and others that do not. Name another "
            "for one of them."
        )
    if groups and (id_source is None or not any(Path(id_source).glob("*/"))):
        raise SettingError("--groups needs --id FOLDER with a subfolder for each group.")
    folder, settings = find_detector(detector), Settings(n, epsilon, delta, aggregate, seed)
    if id_source is None:
        stored = open_stored(folder)
        name, drawn = stored.settings.name, settings.draws(stored.calibration.n_max, stored.settings.name)
        rows = _stored_rows(stored, drawn, settings.cut(stored.calibration.k), aggregate)
        return Evaluated(name, drawn, epsilon, delta, tuple(rows))
    from idecode_core.folder.detector import load_detector

    loaded = load_detector(folder, device, model=model, trust_program=trust_program)
    drawn = settings.draws(loaded.calibration.n_max, loaded.name)
    known = {} if allow_training_files else parts_by_content(folder)
    sources = [str(source) for source in (id_source, *ood)]
    judged, failed, names = _judged(loaded, sources, settings, data_root, known, report)
    rows = [
        _row((sources[0], source), [judged[0]], [strange])
        for source, strange in zip(sources[1:], judged[1:], strict=True)
    ]
    rates: list[GroupRate] = []
    if groups:
        labels = [Path(name).relative_to(sources[0]).parts[0] for name in names]
        cut = settings.cut(loaded.calibration.k)
        rates = rates_by_group(judged[0].p_values, labels, cut)
    return Evaluated(loaded.name, drawn, epsilon, delta, tuple(rows), tuple(failed), tuple(rates))


def _row(names: tuple[str, str], known: Sequence[Judgement], strange: Sequence[Judgement]) -> SetRow:
    """One row from what Algorithm 1 says of the iD and the OOD points in each run; -p is the score: larger is stranger."""
    evaluation = compare([-run.p_values for run in known], [-run.p_values for run in strange])
    # of one run: others are not independent of it
    bounds = conformal_bounds(-known[0].p_values, -strange[0].p_values)
    return SetRow(
        *names,
        len(known[0]),
        len(strange[0]),
        evaluation.auroc.mean,
        *evaluation.interval,
        evaluation.tnr.mean,
        evaluation.fpr.mean,
        share_of(strange),
        share_of(known),
        bounds.auroc,
        bounds.tnr,
        bounds.fpr,
    )


def _judged(
    detector: "Detector",
    sources: Sequence[str],
    settings: Settings,
    data_root: Path | None,
    known: dict[str, str],
    report: Report | None,
) -> tuple[list[Judgement], list[str], list[Path]]:
    """What Algorithm 1 says of each source, which files could not be read, and the files of the first source."""
    from idecode_core.modality import Reading, content_of, modality_named, samples_of

    modality = modality_named(detector.scorer.modality)
    # before any work, so that a wrong name is told at once
    sets = [samples_of(source, detector.scorer.modality, data_root) for source in sources]

    def opened(source: str, points: Any) -> Any:
        return Reading(points, modality) if Path(source).is_dir() else points

    if known:
        for source, points in zip(sources, sets, strict=True):
            contents = list(map(content_of, opened(source, points)))
            refuse_files_of(detector.name, known, contents, source, ("proper", "validation", "calibration"))
    judged: list[Judgement] = []
    failed: list[str] = []
    first: list[Path] = []
    for source, points in zip(sources, sets, strict=True):
        read = opened(source, points)
        judged.append(
            detector.detect(
                read,
                n=settings.n,
                epsilon=settings.epsilon,
                delta=settings.delta,
                seed=settings.seed,
                aggregate=settings.aggregate,
                progress=progress_of(report, source, len(points)),
            )
        )
        failed += getattr(read, "failed", [])
        first = first or list(getattr(read, "good", []))
    return judged, failed, first


def _stored_rows(stored: Stored, n: int, epsilon: float, aggregate: str) -> list[SetRow]:
    """Rows of the stored scores; no model is loaded."""
    known, *strange = (
        judge_runs(stored.calibration, score_set.score_vectors, n, epsilon, aggregate)
        for score_set in (stored.id_set, *stored.ood_sets)
    )
    return [
        _row((stored.id_set.label, ood_set.label), known, judged)
        for ood_set, judged in zip(stored.ood_sets, strange, strict=True)
    ]

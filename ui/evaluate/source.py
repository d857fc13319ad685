"""What the Evaluate page looks at: stored scores of a detector, or a visitor's own scores and files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings, checkpoint_root
from ui.frame.cache import get_stored, stored_stamps
from ui.frame.stored import no_scores, stored_or_said

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.evaluation.detectors import DetectorOnSet
    from idecode_core.evaluation.methods import Evaluation
    from idecode_core.evaluation.operating import OperatingPoint
    from idecode_core.evaluation.precision import Precision
    from idecode_core.evaluation.side_by_side import Growth, NamedCurve
    from idecode_core.folder.scores import ScoreSet
    from idecode_core.folder.stored import Stored

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Source:
    """One iD test set and the OOD sets to compare it with. `key` names their content, for caches."""

    key: str
    shared: bool  # stored scores are the same for all visitors; a visitor's own are nobody else's
    name: str
    folder: str  # of the detector; empty for own scores
    calibration: "Calibration | None"
    id_set: "ScoreSet"
    ood_sets: "Sequence[ScoreSet]"
    dataset: str = ""
    transforms: str = ""
    columns: "tuple[tuple[str, tuple[str, ...], int], ...]" = ()
    """Of a visitor's own scores: name of the file, titles of its columns, how many there are."""

    @property
    def n_max(self) -> int:
        from idecode_core.folder.scores import DRAWS_PER_RUN

        drawn: list[int] = [score_set.score_vectors.shape[1] for score_set in (self.id_set, *self.ood_sets)]
        if self.calibration is not None:
            drawn.append(self.calibration.n_max)
        return min(DRAWS_PER_RUN, *drawn)


def stored_source(config: FolderSettings) -> Source | None:
    """The detector's stored scores, or None after saying how to make some."""
    stored = stored_or_said(config)
    if stored is None or not stored.ood_sets:
        no_scores(config)
        return None
    return source_of(config, stored)


def other_source(config: FolderSettings) -> Source | None:
    """The same for a detector that the visitor has not asked for: without a word where it has no scores."""
    try:
        stored = get_stored(config)
    except IdecodeError:
        return None
    return source_of(config, stored) if stored is not None and stored.ood_sets else None


def rival_source(name: str) -> Source | None:
    """Stored scores of a rival; None where they cannot be used."""
    from idecode_core.evaluation.rivals import open_rival, rival_path

    root = checkpoint_root()
    try:
        rival = open_rival(root, name)
        when = rival_path(root, name).stat().st_mtime_ns
    except (IdecodeError, OSError):
        return None
    return Source(
        f"rival:{name}:{when}", True, rival.title, "", rival.calibration, rival.id_set, rival.ood_sets
    )


def source_of(config: FolderSettings, stored: "Stored") -> Source:
    return Source(
        f"{config.folder}:{stored_stamps(config)}",
        True,
        config.name,
        str(config.folder),
        stored.calibration,
        stored.id_set,
        stored.ood_sets,
        config.dataset,
        stored.transforms,
    )


def cached(make: Callable[..., T], shared: int, own: int) -> Callable[..., T]:
    """A function of a source, its key and settings that is computed once: for all visitors where the scores are stored (the last
    `shared` results), for this visitor where they are their own (the last `own`)."""
    for_all = st.cache_data(show_spinner=False, max_entries=shared)(make)
    for_one = st.cache_data(show_spinner=False, max_entries=own, scope="session")(make)

    def kept(source: Source, *settings: Any) -> T:
        found: T = (for_all if source.shared else for_one)(source, source.key, *settings)
        return found

    return kept


def evaluations(source: Source, method: str, n: int, aggregate: str) -> "Sequence[Evaluation]":
    """One evaluation per OOD set."""
    from idecode_core.evaluation.methods import draws

    return _kept_evaluations(source, method, draws(method, n), aggregate)


def _evaluations(_source: Source, key: str, method: str, n: int, aggregate: str) -> "Sequence[Evaluation]":
    from idecode_core.evaluation.methods import evaluate_sets

    return evaluate_sets(_source.calibration, _source.id_set, _source.ood_sets, n, aggregate, method)


_kept_evaluations = cached(_evaluations, 2000, 200)


def precise(source: Source, method: str, n: int, aggregate: str) -> "Sequence[Precision]":
    """Confidence intervals and FPR, one per OOD set."""
    from idecode_core.evaluation.methods import draws

    return _kept_precise(source, method, draws(method, n), aggregate)


def _precise(_source: Source, key: str, method: str, n: int, aggregate: str) -> "Sequence[Precision]":
    from idecode_core.evaluation.precision import precisions

    return precisions(_source.calibration, _source.id_set, _source.ood_sets, n, aggregate, method)


_kept_precise = cached(_precise, 2000, 200)


def point_of(
    source: Source, ood_set: "ScoreSet", n: int, epsilon: float, aggregate: str
) -> "OperatingPoint | None":
    """How many are flagged at epsilon; None without a calibration."""
    from idecode_core.evaluation.operating import operating_point

    if source.calibration is None:
        return None
    return operating_point(source.calibration, source.id_set, ood_set, n, epsilon, aggregate)


def on_set(source: Source, name: str, n: int, epsilon: float, aggregate: str) -> "DetectorOnSet | None":
    """A detector's stored scores on the OOD set of this name; None where it has none of it."""
    return _on_set(source, source.key, name, n, epsilon, aggregate)


@st.cache_data(show_spinner=False, max_entries=1000)
def _on_set(
    _source: Source, key: str, name: str, n: int, epsilon: float, aggregate: str
) -> "DetectorOnSet | None":
    from idecode_core.evaluation.detectors import detector_on_set

    ood_set = next((one for one in _source.ood_sets if one.name == name), None)
    if ood_set is None or _source.calibration is None:
        return None
    n = min(n, _source.n_max)
    return detector_on_set(_source.name, _source.calibration, _source.id_set, ood_set, n, epsilon, aggregate)


def curves(source: Source, n: int, aggregate: str) -> "Sequence[NamedCurve]":
    """One ROC curve per OOD set, of the first run."""
    return _kept_curves(source, n, aggregate)


def _curves(_source: Source, key: str, n: int, aggregate: str) -> "Sequence[NamedCurve]":
    from idecode_core.evaluation.methods import method_scores
    from idecode_core.evaluation.side_by_side import curve

    known, *strange = (
        method_scores(_source.calibration, score_set.score_vectors, n, aggregate=aggregate)[0]
        for score_set in (_source.id_set, *_source.ood_sets)
    )
    found = evaluations(_source, "iDECODe", n, aggregate)
    return [
        curve(ood_set, evaluation, known, run)
        for ood_set, evaluation, run in zip(_source.ood_sets, found, strange, strict=True)
    ]


_kept_curves = cached(_curves, 400, 60)


def growths(source: Source, aggregate: str) -> "Sequence[Growth]":
    """Every OOD set for every n."""
    from idecode_core.evaluation.side_by_side import growth

    ns = range(1, source.n_max + 1)
    by_n = [evaluations(source, "iDECODe", n, aggregate) for n in ns]
    return [
        growth(ood_set, ns, [found[i] for found in by_n], source.dataset, source.transforms)
        for i, ood_set in enumerate(source.ood_sets)
    ]

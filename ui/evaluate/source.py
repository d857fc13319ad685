"""What the Evaluate page looks at: stored scores of a detector, or a visitor's own scores and files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import IdecodeError
from idecode_core.evaluation.detectors import DetectorOnSet, detector_on_set
from idecode_core.evaluation.methods import Evaluation, evaluate_sets, method_scores
from idecode_core.evaluation.operating import OperatingPoint, operating_point
from idecode_core.evaluation.rivals import open_rival, rival_path
from idecode_core.evaluation.side_by_side import Growth, NamedCurve, curve, growth
from idecode_core.folder.scores import DRAWS_PER_RUN, ScoreSet
from idecode_core.folder.settings import FolderSettings, checkpoint_root
from idecode_core.folder.stored import Stored
from ui.frame.cache import stored_stamps
from ui.frame.stored import no_scores, stored_or_none, stored_or_said

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Source:
    """One iD test set and the OOD sets to compare it with. `key` names their content, for caches."""

    key: str
    shared: bool  # stored scores are the same for all visitors; a visitor's own are nobody else's
    name: str
    folder: str  # of the detector; empty for own scores
    calibration: Calibration | None
    id_set: ScoreSet
    ood_sets: Sequence[ScoreSet]
    dataset: str = ""
    transforms: str = ""
    columns: tuple[tuple[str, tuple[str, ...], int], ...] = ()
    """Of a visitor's own scores: name of the file, titles of its columns, how many there are."""

    @property
    def n_max(self) -> int:
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
    stored = stored_or_none(config)
    return source_of(config, stored) if stored is not None and stored.ood_sets else None


def rival_source(name: str) -> Source | None:
    """Stored scores of a rival; None where they cannot be used."""
    root = checkpoint_root()
    try:
        rival = open_rival(root, name)
        when = rival_path(root, name).stat().st_mtime_ns
    except (IdecodeError, OSError):
        return None
    return Source(
        f"rival:{name}:{when}", True, rival.title, "", rival.calibration, rival.id_set, rival.ood_sets
    )


def source_of(config: FolderSettings, stored: Stored) -> Source:
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


BY_KEY: dict[Any, Any] = {Source: lambda source: source.key}
"""How caches know a source."""


def cached(shared: int, own: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function of a source and settings that is computed once: for all visitors where the scores are stored (the last
    `shared` results), for this visitor where they are their own (the last `own`)."""

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        for_all = st.cache_data(show_spinner=False, max_entries=shared, hash_funcs=BY_KEY)(make)
        for_one = st.cache_data(show_spinner=False, max_entries=own, scope="session", hash_funcs=BY_KEY)(make)

        @wraps(make)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T:
            source: Any = args[0]
            return (for_all if source.shared else for_one)(*args, **kwargs)

        return kept

    return decorate


@cached(2000, 200)
def evaluations(source: Source, method: str, n: int, aggregate: str) -> Sequence[Evaluation]:
    """One evaluation per OOD set."""
    return evaluate_sets(source.calibration, source.id_set, source.ood_sets, n, aggregate, method)


def point_of(
    source: Source, ood_set: ScoreSet, n: int, epsilon: float, aggregate: str
) -> OperatingPoint | None:
    """How many are flagged at epsilon; None without a calibration."""
    if source.calibration is None:
        return None
    return operating_point(source.calibration, source.id_set, ood_set, n, epsilon, aggregate)


@st.cache_data(show_spinner=False, max_entries=1000, hash_funcs=BY_KEY)
def on_set(source: Source, name: str, n: int, epsilon: float, aggregate: str) -> DetectorOnSet | None:
    """A detector's stored scores on the OOD set of this name; None where it has none of it."""
    ood_set = next((one for one in source.ood_sets if one.name == name), None)
    if ood_set is None or source.calibration is None:
        return None
    n = min(n, source.n_max)
    return detector_on_set(source.name, source.calibration, source.id_set, ood_set, n, epsilon, aggregate)


@cached(400, 60)
def curves(source: Source, n: int, aggregate: str) -> Sequence[NamedCurve]:
    """One ROC curve per OOD set, of the first run."""
    known, *strange = (
        method_scores(source.calibration, score_set.score_vectors, n, aggregate=aggregate)[0]
        for score_set in (source.id_set, *source.ood_sets)
    )
    found = evaluations(source, "iDECODe", n, aggregate)
    return [
        curve(ood_set, evaluation, known, run)
        for ood_set, evaluation, run in zip(source.ood_sets, found, strange, strict=True)
    ]


def growths(source: Source, aggregate: str) -> Sequence[Growth]:
    """Every OOD set for every n."""
    ns = range(1, source.n_max + 1)
    by_n = [evaluations(source, "iDECODe", n, aggregate) for n in ns]
    return [
        growth(ood_set, ns, [found[i] for found in by_n], source.dataset, source.transforms)
        for i, ood_set in enumerate(source.ood_sets)
    ]

"""What the Evaluate page looks at: stored scores of a detector, or a visitor's own scores and files."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.names import SCORES_BYTES
from idecode_core.files.tables import read_table
from idecode_core.folder.settings import FolderSettings, checkpoint_root
from idecode_core.folder.shelf import DRAWS_PER_RUN, ScoreSet, score_paths
from idecode_core.folder.stored import open_rival, rival_places
from idecode_core.quality.methods import Evaluation, bounds_of, evaluate_sets, method_scores
from idecode_core.quality.metrics import Bounds
from idecode_core.quality.side_by_side import (
    DetectorOnSet,
    Growth,
    NamedCurve,
    Printed,
    curve,
    detector_on_set,
    growth,
    nothing_printed,
)
from idecode_core.quality.strength import OperatingPoint, operating_point
from ui.frame.cache import get_detector, stored_stamps
from ui.frame.messages import refused
from ui.frame.samples import Sample, modality_of
from ui.frame.scores import no_scores, stored_or_none, stored_or_said
from ui.frame.uploads import MB, many_files, score_files

PRINTED: Printed
try:  # the paper's numbers lie beside a checkout, and are not installed
    from paper.numbers import reported

    PRINTED = reported
except ImportError:
    PRINTED = nothing_printed
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
    files: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    """A set's name -> the visitor's files that it was scored from."""

    @property
    def n_max(self) -> int:
        drawn: list[int] = [score_set.score_vectors.shape[1] for score_set in (self.id_set, *self.ood_sets)]
        if self.calibration is not None:
            drawn.append(self.calibration.n_max)
        return min(DRAWS_PER_RUN, *drawn)


def stored_source(config: FolderSettings, *, silent: bool = False) -> Source | None:
    """The detector's stored scores, or None after saying how to make some; without a word for a detector that was not asked for."""
    stored = (stored_or_none if silent else stored_or_said)(config)
    if stored is None or not stored.ood_sets:
        if not silent:
            no_scores(config)
        return None
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


def rival_source(name: str) -> Source | None:
    """Stored scores of a rival; None where they cannot be used."""
    root = checkpoint_root()
    try:
        rival = open_rival(root, name)
        place, scorer = rival_places(root)[name]
        when = max(path.stat().st_mtime_ns for path in score_paths(place, scorer))
    except (IdecodeError, OSError):
        return None
    return Source(
        f"rival:{name}:{when}", True, rival.title, "", rival.calibration, rival.id_set, rival.ood_sets
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


@cached(1000, 100)
def at_worst(source: Source, n: int, aggregate: str) -> Sequence[Bounds | None]:
    """What iDECODe's AUROC and TNR are at least, and its FPR at most: one for each OOD set."""
    return [bounds_of(evaluation) for evaluation in evaluations(source, "iDECODe", n, aggregate)]


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
    ood_set = next((candidate for candidate in source.ood_sets if candidate.name == name), None)
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
    evaluated = evaluations(source, "iDECODe", n, aggregate)
    return [
        curve(ood_set, evaluation, known, run)
        for ood_set, evaluation, run in zip(source.ood_sets, evaluated, strange, strict=True)
    ]


def growths(source: Source, aggregate: str) -> Sequence[Growth]:
    """Every OOD set for every n."""
    ns = range(1, source.n_max + 1)
    by_n = [evaluations(source, "iDECODe", n, aggregate) for n in ns]
    return [
        growth(ood_set, ns, [evaluated[i] for evaluated in by_n], source.dataset, source.transforms, PRINTED)
        for i, ood_set in enumerate(source.ood_sets)
    ]


SLOTS = {
    "id": (
        "iD scores",
        "Scores of test points that belong. CSV, Parquet, npy or npz; one row per point, one column per draw.",
    ),
    "ood": ("OOD scores", "Scores of points that do not belong, made the same way."),
    "calibration": (
        "Calibration scores, if you have them",
        "Scores of held-out points that belong. With them p-values can be computed; without, raw scores are ranked.",
    ),
}


def user_draws() -> int:
    """Draws per point of the files that the visitor brought; 1 before."""
    files = st.session_state.get("own_score_files", {}).values()
    return min((file.vectors.shape[1] for file in files if not isinstance(file, str)), default=1)


def user_scores() -> Source | None:
    """Score vectors from files; larger scores are stranger."""
    st.caption(
        "One row per point, one column per draw (a single column will do); larger is stranger. CSV with or without titles, "
        f"npy, or npz with an array `score_vectors`; up to {SCORES_BYTES // MB} MB each."
    )
    by_slot = score_files("own", SLOTS, _read, st.columns(3))
    refused([problem for problem in by_slot.values() if isinstance(problem, str)])
    read = {slot: scores for slot, scores in by_slot.items() if not isinstance(scores, str)}
    vectors = {slot: scores.vectors for slot, scores in read.items()}
    if "id" not in vectors or "ood" not in vectors:
        st.info("Bring iD and OOD scores to see how well they are told apart.", icon=":material/upload_file:")
        return None
    calibration = Calibration(vectors["calibration"]) if "calibration" in vectors else None
    content = hashlib.sha256(
        b"".join(slot.encode() + array.tobytes() for slot, array in sorted(vectors.items()))
    )
    return Source(
        f"own:{content.hexdigest()}",
        False,
        "your scores",
        "",
        calibration,
        ScoreSet("own-id", "your iD scores", False, vectors["id"]),
        (ScoreSet("own-ood", "your OOD scores", True, vectors["ood"]),),
        columns=tuple((scores.name, scores.titles, scores.vectors.shape[1]) for scores in read.values()),
    )


@dataclass(frozen=True, eq=False)
class UserScores:
    """One file of scores."""

    name: str
    titles: tuple[str, ...]  # of the columns, where the file has some
    vectors: FloatArray  # (points, draws)


def _read(name: str, data: bytes) -> UserScores | str:
    """The score vectors of a file, or why it cannot be used."""
    try:
        table = read_table(File(name, data))
        return UserScores(name, table.titles, table.vectors())
    except IdecodeError as error:
        return str(error)


def user_files(config: FolderSettings) -> Source | None:
    """Two sets of files, scored with the detector of the bar."""
    modality = modality_of(config)
    done = "evaluate_scored" in st.session_state
    with st.expander("Your files", expanded=not done, icon=":material/folder_open:"):
        left, right = st.columns(2, gap="large")
        with left:
            known = many_files("Files that belong (iD)", "evaluate_id", modality, compact=True)
        with right:
            strange = many_files("Files that do not (OOD)", "evaluate_ood", modality, compact=True)
    if not known or not strange:
        st.info(
            "Bring files of both kinds, loose or zipped, then have them scored.",
            icon=":material/upload_file:",
        )
        return None
    from ui.frame.scores import score_on_click

    if (vectors := score_on_click("evaluate", config, known, strange)) is None:
        return None
    return Source(
        f"own:{st.session_state['evaluate_scored']}",
        False,
        f"your files under {config.name}",
        str(config.folder),
        get_detector(config).calibration,
        ScoreSet("own-id", "your iD files", False, vectors[0]),
        (ScoreSet("own-ood", "your OOD files", True, vectors[1]),),
        files={"own-id": known, "own-ood": strange},
    )

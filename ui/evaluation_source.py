"""What the Evaluate and Guarantee pages look at: stored scores of a detector, or a visitor's own scores and files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui.cache import get_detector
from ui.messages import escape, refused

if TYPE_CHECKING:
    from idecode_core.calibration import Calibration
    from idecode_core.evaluation import Evaluation, ScoreSet
    from idecode_core.side_by_side import Growth, NamedCurve


@dataclass(frozen=True, eq=False)
class Source:
    """One iD test set and the OOD sets to compare it with. `key` names their content, for caches."""

    key: str
    shared: bool  # stored scores are the same for all visitors; a visitor's own are nobody else's
    name: str
    folder: str  # of the detector; empty for own scores
    calibration: "Calibration | None"
    id_set: "ScoreSet"
    ood_sets: "tuple[ScoreSet, ...]"
    dataset: str = ""
    transforms: str = ""

    @property
    def n_max(self) -> int:
        from idecode_core.evaluation import DRAWS_PER_RUN

        sets = [score_set.score_vectors.shape[1] for score_set in (self.id_set, *self.ood_sets)]
        return min(DRAWS_PER_RUN, *sets, *([self.calibration.n_max] if self.calibration else []))


Stamps = tuple[tuple[str, int], ...]


def stamps(config: dict[str, Any]) -> Stamps:
    """When each file that determines a detector's evaluation was written; with the folder, a key for caches."""
    folder = Path(config["folder"])
    files = [folder / "config.json", folder / "calibration.npz", *sorted((folder / "scores").glob("*.npz"))]
    return tuple((path.name, path.stat().st_mtime_ns) for path in files)


def stored_sets(config: dict[str, Any]) -> "list[ScoreSet]":
    """The stored scores of a detector, iD test set first; empty when there are none or they belong to other weights."""
    from idecode_core.errors import IdecodeError

    try:
        return _read_scores(config["folder"], str(config.get("scorer_sha256")), stamps(config))
    except IdecodeError as error:
        refused([str(error)])
        return []


@st.cache_resource(show_spinner="Reading the stored scores ...", max_entries=12)
def _read_scores(folder: str, identity: str, stamps: Stamps) -> "list[ScoreSet]":
    from idecode_core.evaluation import read_scores

    return read_scores(folder, identity)


def stored(config: dict[str, Any]) -> Source | None:
    """The detector's stored scores, or None after saying how to make some."""
    sets = stored_sets(config)
    known = [score_set for score_set in sets if not score_set.is_ood]
    strange = tuple(score_set for score_set in sets if score_set.is_ood)
    if not known or not strange:
        no_scores(config)
        return None
    folder = config["folder"]
    dataset, transforms = paper_setting(config)
    key = f"{folder}:{stamps(config)}"
    return Source(
        key,
        True,
        config["name"],
        folder,
        get_detector(folder).calibration,
        known[0],
        strange,
        dataset,
        transforms,
    )


def no_scores(config: dict[str, Any]) -> None:
    st.info(
        f"No test scores are stored with **{escape(config['name'])}** yet. With the datasets at hand, "
        f"`python -m idecode_core score-sets {config['name']}` makes them once. Until then, choose another detector in "
        "the sidebar, or bring your own scores or files.",
        icon=":material/info:",
    )


def paper_setting(config: dict[str, Any]) -> tuple[str, str]:
    """(iD dataset, transforms) of the paper's table to compare with; empty where there is none."""
    from idecode_core.paper import transforms_in_paper

    return str(config.get("name", "")).split("-")[0], transforms_in_paper(config.get("scorer", {}))


def evaluations(source: Source, method: str, n: int, aggregate: str) -> "Sequence[Evaluation]":
    """One evaluation an OOD set, from the cache of all visitors or of this one."""
    used = n if method == "iDECODe" else 1
    return (_shared_evaluations if source.shared else _own_evaluations)(
        source, source.key, method, used, aggregate
    )


def _evaluations(_source: Source, key: str, method: str, n: int, aggregate: str) -> "Sequence[Evaluation]":
    from idecode_core.side_by_side import evaluate_sets

    return evaluate_sets(_source.calibration, _source.id_set, _source.ood_sets, n, aggregate, method)


_shared_evaluations = st.cache_data(_evaluations, show_spinner=False, max_entries=2000)
_own_evaluations = st.cache_data(_evaluations, show_spinner=False, max_entries=200, scope="session")


def curves(source: Source, n: int, aggregate: str) -> "Sequence[NamedCurve]":
    """One ROC curve an OOD set, of the first run."""
    return (_shared_curves if source.shared else _own_curves)(source, source.key, n, aggregate)


def _curves(_source: Source, key: str, n: int, aggregate: str) -> "Sequence[NamedCurve]":
    from idecode_core.side_by_side import curve, scores_by_run

    known = scores_by_run(_source.calibration, _source.id_set.score_vectors, n, aggregate=aggregate)[0]
    return [
        curve(
            ood_set,
            evaluation,
            known,
            scores_by_run(_source.calibration, ood_set.score_vectors, n, aggregate=aggregate)[0],
        )
        for ood_set, evaluation in zip(
            _source.ood_sets, evaluations(_source, "iDECODe", n, aggregate), strict=True
        )
    ]


_shared_curves = st.cache_data(_curves, show_spinner=False, max_entries=400)
_own_curves = st.cache_data(_curves, show_spinner=False, max_entries=60, scope="session")


def growths(source: Source, aggregate: str) -> "Sequence[Growth]":
    """Every OOD set for every n."""
    from idecode_core.side_by_side import growth

    ns = range(1, source.n_max + 1)
    by_n = [evaluations(source, "iDECODe", n, aggregate) for n in ns]
    return [
        growth(ood_set, ns, [found[i] for found in by_n], source.dataset, source.transforms)
        for i, ood_set in enumerate(source.ood_sets)
    ]

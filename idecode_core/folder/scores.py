"""Stored score vectors: `scores/<set>.npz` holds 100 base scores for each test point, five independent runs of 20 draws;
of a scorer without random draws, one.

Every table and figure follows from these files in seconds, without the model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import CheckpointError, DataError
from idecode_core.files import write_npz
from idecode_core.files.names import printable
from idecode_core.files.read import read_arrays
from idecode_core.folder.manifest import add_files, check_made_with

DRAWS_PER_RUN = 20
RUNS = 5
LONGEST_LABEL = 500
SCORE_AGAIN = "Write it again with `python -m idecode_core score-sets FOLDER`."


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """The stored score vectors of one test set; `name` is the file's, `label` is what people call it."""

    name: str
    label: str
    is_ood: bool
    score_vectors: NDArray[np.floating]  # (N, runs * 20) or (N, 1); float32 where it is stored

    def __len__(self) -> int:
        return len(self.score_vectors)


def write_scores(folder: Path | str, score_set: ScoreSet, scorer_sha256: str) -> Path:
    """Write one set into the detector folder's scores/, tied to the scorer that made it."""
    path = Path(folder) / "scores" / f"{score_set.name}.npz"
    arrays = {
        "score_vectors": score_set.score_vectors.astype(np.float32),
        "is_ood": np.array(score_set.is_ood),
        "label": np.array(score_set.label),
        "scorer": np.array(scorer_sha256),
    }
    write_npz(path, arrays)
    if (Path(folder) / "config.json").is_file():
        add_files(Path(folder), [f"scores/{path.name}"])
    return path


def read_tied(path: Path, names: Sequence[str], scorer_sha256: str | None) -> dict[str, NDArray[Any]]:
    """The arrays of a file that carries the hash of the scorer that made it; with a hash given, only if it is that one."""
    arrays = read_arrays(
        path, (*names, "scorer"), what="stored scores", error=CheckpointError, hint=SCORE_AGAIN
    )
    made_with = str(arrays.pop("scorer"))
    if scorer_sha256 is not None:
        check_made_with(path, made_with, scorer_sha256, SCORE_AGAIN)
    return arrays


def read_score_file(path: Path | str, scorer_sha256: str | None = None) -> ScoreSet:
    """One stored set; with a hash given, only if it was made with the scorer of that hash."""
    path = Path(path)
    arrays = read_tied(path, ("score_vectors", "is_ood", "label"), scorer_sha256)
    vectors = arrays["score_vectors"]
    sound = (
        vectors.ndim == 2
        and len(vectors)
        and (vectors.shape[1] >= DRAWS_PER_RUN or vectors.shape[1] == 1)
        and vectors.dtype.kind == "f"
    )
    if not sound or not np.isfinite(vectors).all():
        raise CheckpointError(
            f"{path}: expected finite score vectors (N, at least {DRAWS_PER_RUN}) or (N, 1), got shape {vectors.shape}. {SCORE_AGAIN}"
        )
    label, is_ood = arrays["label"], arrays["is_ood"]
    words = str(label)
    is_line = not label.shape and words.strip() and printable(words) == words and len(words) <= LONGEST_LABEL
    if not is_line or is_ood.shape or is_ood.dtype.kind != "b":
        raise CheckpointError(
            f"{path}: expected a label, one line of text, and whether the set is OOD, got {printable(words[:40])!r} and "
            f"{printable(str(is_ood)[:40])!r}. {SCORE_AGAIN}"
        )
    return ScoreSet(path.stem, words, bool(is_ood), vectors.astype(np.float32))


def score_paths(folder: Path | str) -> list[Path]:
    """The files of stored sets; hidden ones are what earlier versions left when they were killed."""
    return [path for path in sorted((Path(folder) / "scores").glob("*.npz")) if not path.name.startswith(".")]


def read_scores(folder: Path | str, scorer_sha256: str | None = None) -> list[ScoreSet]:
    """All stored sets of a detector folder, the iD test set first; an empty list when none was stored."""
    return in_order(read_score_file(path, scorer_sha256) for path in score_paths(folder))


def in_order(score_sets: Iterable[ScoreSet]) -> list[ScoreSet]:
    """The iD test set first, the OOD sets as in the paper's tables."""
    return sorted(score_sets, key=lambda score_set: (score_set.is_ood, _place(score_set.name)))


def _place(name: str) -> tuple[int, str]:
    """Sets in the order of the paper's tables, others after them."""
    order = ("svhn", "lsun", "lsunproxy", "cifar100", "places", "tinyimagenet", "isun")
    dataset = name.rsplit("-", 1)[0]
    return (order.index(dataset) if dataset in order else len(order), name)


def id_and_ood(score_sets: Sequence[ScoreSet], where: str = "the folder") -> tuple[ScoreSet, list[ScoreSet]]:
    """The one iD test set and the OOD sets."""
    known = [score_set for score_set in score_sets if not score_set.is_ood]
    if len(known) != 1:
        raise DataError(
            f"{where}: expected the stored scores of exactly one iD test set, got {len(known)}. Write them with "
            "`python -m idecode_core score-sets`."
        )
    return known[0], [score_set for score_set in score_sets if score_set.is_ood]


def softmax_path(folder: Path, name: str) -> Path:
    """Where SBP's scores of a set are stored."""
    return folder / "softmax" / f"{name}.npz"


def read_softmax_scores(folder: Path, name: str, scorer_sha256: str) -> NDArray[np.float64]:
    """SBP's scores of a set (N,), made with this scorer's classifier."""
    return read_tied(softmax_path(folder, name), ("scores",), scorer_sha256)["scores"].astype(np.float64)

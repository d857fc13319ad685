"""`evaluate`: how well a detector separates iD from OOD, on your own data or from stored scores."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from idecode_core.commands.inputs import (
    DEFAULT_DETECTOR,
    Aggregate,
    DataRoot,
    DetectorName,
    Device,
    Draws,
    Epsilon,
    Json,
    Seed,
    open_detector,
    progress_bar,
    samples,
)
from idecode_core.errors import SettingError

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.detector import Detector
    from idecode_core.evaluation import ScoreSet

TPR = 0.9


@dataclass(frozen=True)
class Row:
    """One OOD set against the iD test set; rates are 0 to 1, means over the independent runs."""

    id_set: str
    ood_set: str
    id_points: int
    ood_points: int
    auroc: float
    tnr: float  # at 90 % TPR
    detection_rate: float  # share of the OOD points with p < epsilon
    false_detection_rate: float  # share of the iD points with p < epsilon


def evaluate(
    detector: DetectorName = DEFAULT_DETECTOR,
    id_source: Annotated[
        str | None, typer.Option("--id", help="Folder of iD test images, or a dataset's name.")
    ] = None,
    ood_source: Annotated[
        list[str] | None, typer.Option("--ood", help="The same for OOD images; may be given several times.")
    ] = None,
    n: Draws = 5,
    epsilon: Epsilon = 0.05,
    seed: Seed = 0,
    aggregate: Aggregate = "sum",
    device: Device = None,
    data_root: DataRoot = None,
    as_json: Json = False,
) -> None:
    """AUROC, TNR at 90 % TPR and false detection rate.

    Without --id and --ood: from the scores stored beside the detector, as means over five independent runs.

    \b
    Examples:
      python -m idecode_core evaluate --detector cifar10-rotations --n 20
      python -m idecode_core evaluate --id fashion-sample --ood digits-sample --ood textures-sample
      python -m idecode_core evaluate --detector checkpoints/mine --id good/ --ood strange/ --json
    """
    from idecode_core.conformal import check_epsilon

    if (id_source is None) != (not ood_source):
        raise SettingError("Expected both --id and --ood, or neither (for stored scores); got one of them.")
    loaded = open_detector(detector, device)
    check_epsilon(epsilon, loaded.calibration.k)
    if id_source is None:
        rows = stored_rows(loaded, detector, n, epsilon, aggregate)
    else:
        rows = own_rows(loaded, id_source, ood_source or [], n, epsilon, seed, aggregate, data_root)
    if as_json:
        for row in rows:
            print(json.dumps({**asdict(row), "detector": loaded.name, "n": n, "epsilon": epsilon}))
    else:
        print_rows(rows, loaded.name, n, epsilon)


def compare(
    names: tuple[str, str], p_id: Sequence["FloatArray"], p_ood: Sequence["FloatArray"], epsilon: float
) -> Row:
    """One row from the p-values of iD and OOD points in each run; -p is the score: larger is stranger."""
    from idecode_core.metrics import auroc, tnr_at_tpr

    pairs = list(zip(p_id, p_ood, strict=True))
    return Row(
        *names,
        len(p_id[0]),
        len(p_ood[0]),
        float(np.mean([auroc(-known, -strange) for known, strange in pairs])),
        float(np.mean([tnr_at_tpr(-known, -strange, TPR) for known, strange in pairs])),
        float(np.mean([strange < epsilon for strange in p_ood])),
        float(np.mean([known < epsilon for known in p_id])),
    )


def own_rows(
    detector: "Detector",
    id_source: str,
    ood_sources: Sequence[str],
    n: int,
    epsilon: float,
    seed: int,
    aggregate: str,
    data_root: Path | None,
) -> list[Row]:
    p: dict[str, FloatArray] = {}  # by source
    for source in (id_source, *ood_sources):
        points = samples(source, detector.scorer.modality, data_root)
        with progress_bar(source, len(points)) as progress:
            found = detector.detect(
                points, n=n, epsilon=epsilon, seed=seed, aggregate=aggregate, progress=progress
            )
        p[source] = found.p_values
    return [compare((id_source, source), [p[id_source]], [p[source]], epsilon) for source in ood_sources]


def stored_rows(detector: "Detector", name: str, n: int, epsilon: float, aggregate: str) -> list[Row]:
    from idecode_core.checkpoint import find_detector, scorer_hash
    from idecode_core.evaluation import id_and_ood, method_scores, read_scores

    folder = find_detector(name)
    id_set, ood_sets = id_and_ood(read_scores(folder, scorer_hash(detector.scorer)), str(folder))

    def p_values(score_set: "ScoreSet") -> list["FloatArray"]:
        runs = method_scores(detector.calibration, score_set.score_vectors, n, aggregate=aggregate)
        return [-scores for scores in runs]

    known = p_values(id_set)
    return [compare((id_set.label, s.label), known, p_values(s), epsilon) for s in ood_sets]


def print_rows(rows: list[Row], detector: str, n: int, epsilon: float) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("OOD set", overflow="fold")
    for title in ("points", "AUROC %", "TNR % at 90 % TPR", f"% detected at {epsilon:g}"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        rates = (f"{100 * rate:.1f}" for rate in (row.auroc, row.tnr, row.detection_rate))
        table.add_row(Text(row.ood_set), f"{row.ood_points:,}", *rates)
    console = Console(highlight=False)
    console.print(table)
    if rows:
        console.print(
            f"\n{detector} with n = {n}: of {rows[0].id_points:,} iD points ({rows[0].id_set}) a share of "
            f"{rows[0].false_detection_rate:.3f} was flagged; the bound on its average is epsilon = {epsilon:g}.",
            markup=False,
        )

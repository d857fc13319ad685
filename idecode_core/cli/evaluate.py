"""`evaluate`: how well a detector separates iD from OOD, on your own data or from stored scores."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from idecode_core.cli import inputs
from idecode_core.errors import SettingError

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Judgement
    from idecode_core.detector import Detector
    from idecode_core.folder.stored import Stored


@dataclass(frozen=True)
class Row:
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


def evaluate(
    detector: inputs.DetectorName = inputs.DEFAULT_DETECTOR,
    id_source: Annotated[
        str | None, typer.Option("--id", help="Folder of iD test files, or a dataset's name.")
    ] = None,
    ood_source: Annotated[
        list[str] | None, typer.Option("--ood", help="The same for OOD files; may be given several times.")
    ] = None,
    n: inputs.Draws = None,
    epsilon: inputs.Epsilon = 0.05,
    delta: inputs.Delta = None,
    seed: inputs.Seed = 0,
    aggregate: inputs.Aggregate = "sum",
    device: inputs.Device = None,
    data_root: inputs.DataRoot = None,
    as_json: inputs.Json = False,
) -> None:
    """AUROC with its 95 % interval, TNR at 90 % TPR, FPR at 95 % TPR and false detection rate.

    Without --id and --ood: from the scores stored beside the detector, as means over five independent runs.

    \b
    Examples:
      python -m idecode_core evaluate --detector cifar10-rotations --n 20
      python -m idecode_core evaluate --id fashion-sample --ood digits-sample --ood textures-sample
      python -m idecode_core evaluate --detector checkpoints/mine --id good/ --ood strange/ --json
    """
    from idecode_core.conformal import check_epsilon
    from idecode_core.conformal.calibration import chosen_n
    from idecode_core.folder.settings import find_detector
    from idecode_core.folder.stored import open_stored
    from idecode_core.guarantees import corrected_epsilon

    if (id_source is None) != (not ood_source):
        raise SettingError("Expected both --id and --ood, or neither (for stored scores); got one of them.")
    if id_source is None:
        stored = open_stored(find_detector(detector))
        k = stored.calibration.k
        check_epsilon(epsilon, k)
        n = chosen_n(n, stored.calibration.n_max, stored.settings.name)
        cut = epsilon if delta is None else corrected_epsilon(k, epsilon, delta)
        name, rows = stored.settings.name, stored_rows(stored, n, cut, aggregate)
    else:
        loaded = inputs.open_detector(detector, device)
        n = chosen_n(n, loaded.calibration.n_max, loaded.name)
        sources = [id_source, *(ood_source or [])]
        settings = {"n": n, "epsilon": epsilon, "delta": delta, "seed": seed, "aggregate": aggregate}
        name, rows = loaded.name, own_rows(loaded, sources, settings, data_root)
    if as_json:
        for row in rows:
            print(json.dumps({**asdict(row), "detector": name, "n": n, "epsilon": epsilon, "delta": delta}))
    else:
        print_rows(rows, name, n, epsilon, delta)


def make_row(names: tuple[str, str], known: Sequence["Judgement"], strange: Sequence["Judgement"]) -> Row:
    """One row from what Algorithm 1 says of the iD and the OOD points in each run; -p is the score: larger is stranger."""
    from idecode_core.evaluation.methods import compare, share_of

    found = compare([-run.p_values for run in known], [-run.p_values for run in strange])
    return Row(
        *names,
        len(known[0]),
        len(strange[0]),
        found.auroc.mean,
        *found.interval,
        found.tnr.mean,
        found.fpr.mean,
        share_of(strange),
        share_of(known),
    )


def own_rows(
    detector: "Detector", sources: Sequence[str], settings: dict[str, Any], data_root: Path | None
) -> list[Row]:
    """Rows of the user's own data, judged with these settings of `detect`; the first source is in-distribution."""
    judged, modality = [], detector.scorer.modality
    sets = [inputs.samples(source, modality, data_root) for source in sources]  # a wrong name is told at once
    for source, points in zip(sources, sets, strict=True):
        with inputs.progress_bar(source, len(points)) as progress:
            decoded = inputs.readable(points, modality) if Path(source).is_dir() else points
            judged.append(detector.detect(decoded, **settings, progress=progress))
    known, *strange = judged
    return [
        make_row((sources[0], source), [known], [one])
        for source, one in zip(sources[1:], strange, strict=True)
    ]


def stored_rows(stored: "Stored", n: int, epsilon: float, aggregate: str) -> list[Row]:
    """Rows of the stored scores; no model is loaded."""
    from idecode_core.evaluation.methods import judge_runs

    known, *strange = (
        judge_runs(stored.calibration, one.score_vectors, n, epsilon, aggregate)
        for one in (stored.id_set, *stored.ood_sets)
    )
    return [
        make_row((stored.id_set.label, ood_set.label), known, judged)
        for ood_set, judged in zip(stored.ood_sets, strange, strict=True)
    ]


def print_rows(rows: list[Row], detector: str, n: int, epsilon: float, delta: float | None = None) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("OOD set", overflow="fold")
    for title in ("points", "AUROC %", "95 %", "TNR % at 90", "FPR % at 95", f"% detected at {epsilon:g}"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        auroc, *rates = (f"{100 * rate:.1f}" for rate in (row.auroc, row.tnr, row.fpr, row.detection_rate))
        interval = f"{100 * row.auroc_low:.1f} to {100 * row.auroc_high:.1f}"
        table.add_row(Text(row.ood_set), f"{row.ood_points:,}", auroc, interval, *rates)
    console = Console(highlight=False)
    console.print(table)
    if rows:
        bound = (
            f"the bound on its average is epsilon = {epsilon:g}"
            if delta is None
            else f"for {1 - delta:.3g} of all calibration sets the bound is epsilon = {epsilon:g}"
        )
        console.print(
            f"\n{detector} with n = {n}: of {rows[0].id_points:,} iD points ({rows[0].id_set}) a share of "
            f"{rows[0].false_detection_rate:.3f} was flagged; {bound}.",
            markup=False,
        )

"""What the Inspect page shows of a batch, as a report and as a notebook that computes it again."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from idecode_core.files.names import NOUNS
from idecode_core.report.content import Figure, Judged, Picture, Report, Row, command, verdict_row
from idecode_core.report.notebook import Notebook, from_template

if TYPE_CHECKING:
    # These are slow to import, and pages import this file.
    from idecode_core.conformal.judge import Judgement, Verdict
    from idecode_core.conformal.settings import Settings
    from idecode_core.detector import Detector
    from idecode_core.session.making import File

    class Input(File, Protocol):
        """What a page knows of one file."""

        @property
        def thumbnail(self) -> bytes: ...


MOST_NAMED = 12  # files in a command; of more, their folder


@dataclass(frozen=True)
class InspectedSample:
    """One row of the screen."""

    name: str
    data: bytes
    """The file as it came, or a lossless copy of it: a notebook decodes it again to the same content."""
    content_hash: str
    score_vector: tuple[float, ...]  # V(x), n entries
    verdict: "Verdict"
    thumbnail: bytes = b""
    """A small PNG for the HTML report; of a sound, its spectrogram."""


@dataclass(frozen=True, eq=False)
class Inspection(Judged):
    """A batch as it is on the screen, with everything that is needed to compute it again."""

    modality: str
    k: int
    false_discovery_control: bool
    """False: OOD means p < epsilon. True: Benjamini-Hochberg over the batch at q = epsilon."""
    samples: tuple[InspectedSample, ...]
    row: int = 0
    """The one that is looked at."""


def inspect_batch(
    detector: "Detector",
    folder_name: str,
    inputs: "Sequence[Input]",
    score_vectors: NDArray[np.float64],
    judgement: "Judgement",
    *,
    n: int,
    aggregate: str,
    smoothed: bool,
    seed: int,
    row: int = 0,
) -> Inspection:
    """What a page has at hand for its batch: score vectors (batch, at least n) and what `judge` made of them."""
    from idecode_core.folder.detector import scorer_hash

    samples = tuple(
        InspectedSample(
            item.name, item.data, item.content_hash, tuple(vector[:n].tolist()), verdict, item.thumbnail
        )
        for item, vector, verdict in zip(inputs, score_vectors, judgement, strict=True)
    )
    return Inspection(
        detector=folder_name,
        modality=detector.scorer.modality,
        scorer_sha256=scorer_hash(detector.scorer),
        calibration_sha256=detector.calibration.sha256,
        k=judgement.k,
        n=n,
        epsilon=judgement.epsilon,
        aggregate=aggregate,
        smoothed=smoothed,
        seed=seed,
        false_discovery_control=judgement.together,
        samples=samples,
        row=row,
    )


def inspection_report(
    inspection: Inspection,
    figures: tuple[Figure, ...] = (),
    power: str = "",
    variants: tuple[Picture, ...] = (),
) -> Report:
    """The batch as a report: one row per sample. A batch of one leads with its verdict in words; `power` is what the
    detector is known to catch, in a sentence (quality.strength), `variants` are of the sample that is looked at."""
    from idecode_core.verdict import counting, sentence

    noun = NOUNS[inspection.modality]
    rule = (
        f"Benjamini-Hochberg at q = {inspection.epsilon:g} over the batch (false discovery control)"
        if inspection.false_discovery_control
        else f"p < epsilon = {inspection.epsilon:g}"
    )
    flagged = sum(sample.verdict.is_ood for sample in inspection.samples)
    title = f"{flagged} of {len(inspection.samples)} flagged by {inspection.detector}"
    lead: list[str] = []
    if len(inspection.samples) == 1:
        (only,) = inspection.samples
        title = f"{only.name}, seen by {inspection.detector}"
        lead = [sentence(only.verdict, noun)]
    return Report(
        title=title,
        sentences=(
            *lead,
            f"A sample is flagged as out of distribution (OOD) by the rule: {rule}. Its p-value is the share of samples "
            f"that are at least as strange, among the {inspection.k:,} calibration samples and itself"
            f"{', ties broken at random' if inspection.smoothed else ''}.",
            counting(noun, smoothed=inspection.smoothed),
            _guarantee(inspection),
            *([power] if power else []),
            "A flag does not say why a sample is strange, and no flag does not prove that a sample belongs.",
        ),
        settings=inspection.settings(inspection.k, rule=rule),
        rows=tuple(_row(sample) for sample in inspection.samples),
        figures=figures,
        pictures=variants,
        commands=(_command(inspection),),
    )


def _command(inspection: Inspection) -> str:
    """What judges these files alike; false discovery control and smoothed p-values are not on the command line."""
    named = [sample.name for sample in inspection.samples[:MOST_NAMED]]
    options = {
        "--detector": inspection.detector,
        "--n": inspection.n,
        "--epsilon": inspection.epsilon,
        "--aggregate": inspection.aggregate,
        "--seed": inspection.seed,
    }
    return command("detect", *(named if len(inspection.samples) <= MOST_NAMED else ["FOLDER"]), **options)


def _guarantee(inspection: Inspection) -> str:
    if inspection.false_discovery_control:
        return (
            f"On average over batches and calibration sets, at most a share {inspection.epsilon:g} of the flagged "
            "samples is in-distribution, as long as in-distribution samples are exchangeable with the calibration set."
        )
    return (
        f"On average over calibration sets, at most a share {inspection.epsilon:g} of in-distribution samples is "
        "flagged, as long as they are exchangeable with the calibration set."
    )


def _row(sample: InspectedSample) -> Row:
    picture = {"picture": Picture(sample.thumbnail, sample.name)} if sample.thumbnail else {}
    judged = verdict_row(sample.verdict, sample.score_vector, sample.content_hash)
    return {**picture, "name": sample.name, **judged}


def inspection_notebook(
    inspection: Inspection, files: Mapping[str, bytes], session: str = "session"
) -> Notebook:
    """It reads the session that lies at this path and asserts the p-values of the screen; `files` are that session's, where it
    lies beside the notebook."""
    count = len(inspection.samples)
    verdicts = [sample.verdict for sample in inspection.samples]
    return from_template(
        "inspection",
        f"{count} sample{'s' if count != 1 else ''} under {inspection.detector}",
        {
            "session": session,
            "row": inspection.row,
            "n": inspection.n,
            "epsilon": inspection.epsilon,
            "aggregate": inspection.aggregate,
            "smoothed": inspection.smoothed,
            "seed": inspection.seed,
            "false_discovery_control": inspection.false_discovery_control,
        },
        {
            "scores": [verdict.score for verdict in verdicts],
            "p_values": [verdict.p_value for verdict in verdicts],
        },
        files=files,
    )


def inspection_files(inspection: Inspection, detector: "Detector") -> dict[str, bytes]:
    """The batch as a session beside the notebook."""
    from idecode_core.conformal.settings import Settings

    return session_files(
        detector,
        Settings(
            inspection.n, inspection.epsilon, None, inspection.aggregate, inspection.seed, inspection.smoothed
        ),
        inspection.samples,
        np.array([sample.score_vector for sample in inspection.samples], np.float64),
        np.array([sample.verdict.p_value for sample in inspection.samples], np.float64),
    )


def session_files(
    detector: "Detector",
    settings: "Settings",
    files: "Sequence[File]",
    score_vectors: NDArray[np.float64],
    p_values: NDArray[np.float64],
) -> dict[str, bytes]:
    """A session of these files, as the files of its folder `session`."""
    from idecode_core.session.making import session_of_files

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "session"
        session_of_files(detector, settings, files, score_vectors, p_values, folder=folder)
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"]
        return {path.relative_to(place).as_posix(): path.read_bytes() for path in paths}

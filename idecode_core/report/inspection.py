"""What the Inspect page shows of a batch, as a report and as a notebook that computes it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from idecode_core.files.names import NOUNS
from idecode_core.report.content import Figure, Picture, Report, Row, Value
from idecode_core.report.notebook import Cell, Code, Text, opening, to_notebook
from idecode_core.report.sources import calibration_hash, detector_cell, packed
from idecode_core.report.steps import same_verdicts

if TYPE_CHECKING:
    # These are slow to import, and pages import this file.
    from idecode_core.conformal.judge import Judgement, Verdict
    from idecode_core.detector import Detector


HASHED = {"image": "sample", "audio": "sample.samples, sample.sample_rate"}
"""Modality -> what of a decoded sample its content hash is taken of."""

EMBED_LIMIT = 32 * 2**20
"""Bytes of samples that go into the notebook; a batch beyond that is read from files beside it."""


class Input(Protocol):
    """What a page knows of one file."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def content_hash(self) -> str: ...
    @property
    def thumbnail(self) -> bytes: ...


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


@dataclass(frozen=True)
class Inspection:
    """A batch as it is on the screen, with everything that is needed to compute it again."""

    detector: str
    """The name of its folder below the checkpoint root."""
    modality: str
    scorer_sha256: str
    calibration_sha256: str
    k: int
    n: int
    epsilon: float
    aggregate: str
    smoothed: bool
    seed: int
    false_discovery_control: bool
    """False: OOD means p < epsilon. True: Benjamini-Hochberg over the batch at q = epsilon."""
    samples: tuple[InspectedSample, ...]


def inspect_batch(
    detector: "Detector",
    folder_name: str,
    inputs: Sequence[Input],
    score_vectors: NDArray[np.float64],
    judgement: "Judgement",
    *,
    n: int,
    aggregate: str,
    smoothed: bool,
    seed: int,
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
        calibration_sha256=calibration_hash(detector.calibration),
        k=judgement.k,
        n=n,
        epsilon=judgement.epsilon,
        aggregate=aggregate,
        smoothed=smoothed,
        seed=seed,
        false_discovery_control=judgement.together,
        samples=samples,
    )


def inspection_report(inspection: Inspection, figures: tuple[Figure, ...] = (), power: str = "") -> Report:
    """The batch as a report: one row per sample. A batch of one leads with its verdict in words; `power` is what the
    detector is known to catch, in a sentence (evaluation.power)."""
    from idecode_core.verdict import counting, sentence

    noun = NOUNS[inspection.modality]
    rule = (
        f"Benjamini-Hochberg at q = {inspection.epsilon:g} over the batch (false discovery control)"
        if inspection.false_discovery_control
        else f"p < epsilon = {inspection.epsilon:g}"
    )
    settings: dict[str, Value] = {
        "detector": inspection.detector,
        "scorer_sha256": inspection.scorer_sha256,
        "calibration_sha256": inspection.calibration_sha256,
        "k": inspection.k,
        "n": inspection.n,
        "epsilon": inspection.epsilon,
        "aggregate": inspection.aggregate,
        "p_value_kind": "smoothed" if inspection.smoothed else "conservative",
        "rule": rule,
        "seed": inspection.seed,
    }
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
        settings=settings,
        rows=tuple(_row(sample, inspection) for sample in inspection.samples),
        figures=figures,
    )


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


def _row(sample: InspectedSample, inspection: Inspection) -> Row:
    row: dict[str, Value | Picture] = {
        "name": sample.name,
        "verdict": sample.verdict.answer,
        "p_value": sample.verdict.p_value,
        "rank": sample.verdict.rank,
        "k": inspection.k,
        "score": sample.verdict.score,
        "score_vector": sample.score_vector,
        "content_hash": sample.content_hash,
    }
    return {"picture": Picture(sample.thumbnail, sample.name), **row} if sample.thumbnail else row


def inspection_notebook(inspection: Inspection) -> str:
    """The notebook file: it holds the samples, loads the detector and asserts the p-values of the screen."""
    count = len(inspection.samples)
    cells: list[Cell] = [
        *opening(
            f"{count} sample{'s' if count != 1 else ''} under {inspection.detector}",
            "This notebook computes again what the Inspect page showed: the samples are inside it, the detector comes "
            "from the repository.",
        ),
        Text(
            "## The detector\n\nThe hashes make sure that it is the one of the page, weights and calibration."
        ),
        Code(detector_cell(inspection.detector, inspection.scorer_sha256, inspection.calibration_sha256)),
        Text(
            "## The samples\n\nFiles as they came, or lossless copies. The hash is of the decoded content; with the "
            "seed it determines the transforms that are drawn."
        ),
        Code(_samples_cell(inspection)),
        Text("## Algorithm 1"),
        Code(_judge_cell(inspection)),
        *same_verdicts([sample.verdict for sample in inspection.samples], "import numpy as np\n"),
    ]
    return to_notebook(cells)


def _samples_cell(inspection: Inspection) -> str:
    entries, embedded, beside = [], 0, False
    for sample in inspection.samples:
        embedded += len(sample.data)
        inside = embedded <= EMBED_LIMIT
        beside = beside or not inside
        text = f'"""\n{packed(sample.data)}\n"""' if inside else "None"
        entries.append(f"    ({sample.name!r}, {sample.content_hash!r}, {text}),\n")
    data = "base64.b64decode(text)"
    if beside:
        data = "base64.b64decode(text) if text else Path(name).read_bytes()"
    note = "; None: too large to be inside, put the file beside this notebook" if beside else ""
    return f"""\
import base64

from idecode_core.draws import content_hash

files = [  # name, hash of the content, base64{note}
{"".join(entries)}]
samples = list(detector.scorer.decode([{data} for name, _, text in files]))
assert [content_hash({HASHED[inspection.modality]}) for sample in samples] == [expected for _, expected, _ in files]"""


def _judge_cell(inspection: Inspection) -> str:
    """V by the detector, then `judge` with the options of the page."""
    options = []
    if inspection.smoothed:
        options.append("smoothed_by=[smoothing_generator(content, seed) for _, content, _ in files],")
    if inspection.false_discovery_control:
        options.append(
            "false_discovery_control=True,  # Benjamini-Hochberg over the batch, in place of p < epsilon"
        )
    names = "judge, smoothing_generator" if inspection.smoothed else "judge"
    return f"""\
from idecode_core.conformal.judge import {names}

n, epsilon, aggregate, seed = {inspection.n}, {inspection.epsilon!r}, {inspection.aggregate!r}, {inspection.seed}
score_vectors = detector.score_vectors(samples, n=n, seed=seed)
judgement = judge(
    detector.calibration,
    score_vectors,
    epsilon=epsilon,
    aggregate=aggregate,{"".join(f"{chr(10)}    {option}" for option in options)}
)
for (name, *_), verdict in zip(files, judgement, strict=True):
    print(f"{{name}}: p = {{verdict.p_value:.3g}}, {{verdict.answer}}")"""

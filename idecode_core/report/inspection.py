"""What the Inspect page shows of a batch, as a report and as a notebook that computes it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from idecode_core.files.names import NOUNS
from idecode_core.report.content import Figure, Picture, Report, Row
from idecode_core.report.judged import Judged, verdict_row
from idecode_core.report.notebook import Cell, Code, Text, opening, to_notebook
from idecode_core.report.sources import calibration_hash, packed
from idecode_core.report.steps import same_verdicts

if TYPE_CHECKING:
    # These are slow to import, and pages import this file.
    from idecode_core.conformal.judge import Judgement, Verdict
    from idecode_core.detector import Detector


HASHED = {"image": "sample", "audio": "sample.samples, sample.sample_rate"}
"""Modality -> what of a decoded sample its content hash is taken of."""

TOGETHER = "false_discovery_control=True,  # Benjamini-Hochberg over the batch, in place of p < epsilon"
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


@dataclass(frozen=True, eq=False)
class Inspection(Judged):
    """A batch as it is on the screen, with everything that is needed to compute it again."""

    modality: str
    k: int
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


def _row(sample: InspectedSample) -> Row:
    picture = {"picture": Picture(sample.thumbnail, sample.name)} if sample.thumbnail else {}
    judged = verdict_row(sample.verdict, sample.score_vector, sample.content_hash)
    return {**picture, "name": sample.name, **judged}


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
        inspection.detector_cell(),
        Text(
            "## The samples\n\nFiles as they came, or lossless copies. The hash is of the decoded content; with the "
            "seed it determines the transforms that are drawn."
        ),
        Code(_samples_cell(inspection)),
        Text("## Algorithm 1"),
        inspection.judge_cell(
            "samples",
            """\
for (name, *_), verdict in zip(files, judgement, strict=True):
    print(f"{name}: p = {verdict.p_value:.3g}, {verdict.answer}")""",
            smoothed_by="smoothing_generator(content, seed) for _, content, _ in files",
            more=(TOGETHER,) * inspection.false_discovery_control,
        ),
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

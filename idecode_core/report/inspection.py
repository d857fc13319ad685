"""What the Inspect page shows of a batch: settings, and for each sample its scores, p-value and verdict."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from idecode_core.draws import content_key
from idecode_core.report.content import Figure, Picture, Report, Value

if TYPE_CHECKING:
    # These are slow to import, and pages import this file.
    from idecode_core.calibration import Calibration
    from idecode_core.detector import Detector
    from idecode_core.verdict import Verdict


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
    verdicts: Sequence["Verdict"],
    *,
    n: int,
    aggregate: str,
    smoothed: bool,
    seed: int,
    false_discovery_control: bool = False,
) -> Inspection:
    """What a page has at hand for its batch: score vectors (batch, at least n) and what `judge` made of them."""
    from idecode_core.checkpoint import scorer_hash

    samples = tuple(
        InspectedSample(
            item.name, item.data, item.content_hash, tuple(vector[:n].tolist()), verdict, item.thumbnail
        )
        for item, vector, verdict in zip(inputs, score_vectors, verdicts, strict=True)
    )
    return Inspection(
        detector=folder_name,
        modality=detector.scorer.modality,
        scorer_sha256=scorer_hash(detector.scorer),
        calibration_sha256=calibration_hash(detector.calibration),
        k=detector.calibration.k,
        n=n,
        epsilon=verdicts[0].epsilon,
        aggregate=aggregate,
        smoothed=smoothed,
        seed=seed,
        false_discovery_control=false_discovery_control,
        samples=samples,
    )


def content_hash(decoded: NDArray[np.generic]) -> str:
    """A hash of the decoded pixels or samples, whatever file they came in; with the seed, it fixes the draws."""
    return content_key(decoded, seed=0).tobytes().hex()


def calibration_hash(calibration: "Calibration") -> str:
    """A hash of the calibration's score vectors: the same scorer calibrated anew gives other p-values."""
    return hashlib.sha256(calibration.score_vectors.tobytes()).hexdigest()


def inspection_report(inspection: Inspection, figures: tuple[Figure, ...] = ()) -> Report:
    """The batch as a report: one row a sample. A batch of one leads with its verdict in words."""
    from idecode_core.verdict import sentence

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
        lead = [sentence(only.verdict, "image" if inspection.modality == "image" else "sound")]
    return Report(
        title=title,
        sentences=(
            *lead,
            f"A sample is flagged as out of distribution (OOD) by the rule: {rule}. Its p-value is the share of samples "
            f"that are at least as strange, among the {inspection.k:,} calibration samples and itself"
            f"{', ties broken at random' if inspection.smoothed else ''}.",
            _promise(inspection),
            "A flag does not say why a sample is strange, and no flag does not prove that a sample belongs.",
        ),
        settings=settings,
        rows=tuple(_row(sample, inspection) for sample in inspection.samples),
        figures=figures,
    )


def _promise(inspection: Inspection) -> str:
    if inspection.false_discovery_control:
        return (
            f"On average over batches and calibration sets, at most a share {inspection.epsilon:g} of the flagged "
            "samples is in-distribution, as long as in-distribution samples are exchangeable with the calibration set."
        )
    return (
        f"On average over calibration sets, at most a share {inspection.epsilon:g} of in-distribution samples is "
        "flagged, as long as they are exchangeable with the calibration set."
    )


def _row(sample: InspectedSample, inspection: Inspection) -> dict[str, Value | Picture]:
    row: dict[str, Value | Picture] = {
        "name": sample.name,
        "verdict": "OOD" if sample.verdict.is_ood else "iD",
        "p_value": sample.verdict.p_value,
        "rank": f"{sample.verdict.rank + 1:,} of {inspection.k + 1:,}",
        "score": sample.verdict.score,
        "score_vector": sample.score_vector,
        "content_hash": sample.content_hash,
    }
    return {"picture": Picture(sample.thumbnail, sample.name), **row} if sample.thumbnail else row


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Decoded pixels (h, w, 3) as a lossless file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return file.getvalue()

"""What the Inspect page shows of a batch: settings, and for each sample its scores, p-value and verdict."""

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.draws import content_key
from idecode_core.report.content import Figure, Picture, Report, Value

if TYPE_CHECKING:
    from idecode_core.calibration import Calibration  # SciPy is slow to import, and pages import this file

THUMBNAIL = 96  # pixels


@dataclass(frozen=True)
class InspectedSample:
    """One row of the screen."""

    name: str
    data: bytes
    """The file as it came, or a lossless copy of it: a notebook decodes it again to the same content."""
    content_hash: str
    score_vector: tuple[float, ...]  # V(x), n entries
    score: float  # F(V(x))
    p_value: float
    rank: int  # #{j : F(V(x_j)) >= F(V(x))}
    is_ood: bool

    @property
    def verdict(self) -> str:
        return "OOD" if self.is_ood else "iD"


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


def content_hash(decoded: NDArray[np.generic]) -> str:
    """A hash of the decoded pixels or samples, whatever file they came in; with the seed, it fixes the draws."""
    return content_key(decoded, seed=0).tobytes().hex()


def calibration_hash(calibration: "Calibration") -> str:
    """A hash of the calibration's score vectors: the same scorer calibrated anew gives other p-values."""
    return hashlib.sha256(calibration.score_vectors.tobytes()).hexdigest()


def inspection_report(inspection: Inspection, figures: tuple[Figure, ...] = ()) -> Report:
    """The batch as a report: one row a sample."""
    flagged = sum(sample.is_ood for sample in inspection.samples)
    count = len(inspection.samples)
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
    return Report(
        title=f"{flagged} of {count} flagged by {inspection.detector}",
        sentences=(
            f"A sample is flagged as out of distribution (OOD) by the rule: {rule}. Its p-value is the share of samples "
            f"that are at least as strange, among the {inspection.k:,} calibration samples and itself.",
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
        "verdict": sample.verdict,
        "p_value": sample.p_value,
        "rank": f"{sample.rank + 1:,} of {inspection.k + 1:,}",
        "score": sample.score,
        "score_vector": sample.score_vector,
        "content_hash": sample.content_hash,
    }
    if inspection.modality == "image":
        row = {"picture": Picture(thumbnail(sample.data), sample.name), **row}
    return row


def thumbnail(data: bytes) -> bytes:
    """A small PNG of an image file."""
    from PIL import Image

    from idecode_core.images import read_image

    image = Image.fromarray(read_image(data))
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    return png(np.asarray(image))


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Decoded pixels (h, w, 3) as a lossless file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return file.getvalue()

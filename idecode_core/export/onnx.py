"""A detector as an ONNX network, with its calibration beside it.

The graph takes pixels at the model's size and the parameters of the drawn transforms, and gives A(X_tr, x; g) (Eq. 2) of
each: transforms, network and base NCM are inside. Drawing stays outside, because draws are a function of a file's
content (`draws`); F, rank and p-value are a few lines on the calibration's score vectors.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.files import write_folder
from idecode_core.folder.calibration import write_calibration
from idecode_core.folder.detector import scorer_hash
from idecode_core.folder.manifest import content_sha256
from idecode_core.image.scorer import ImageScorer
from idecode_core.ncm import BASE_NCMS, cross_entropy, label_cross_entropy

MODEL, CALIBRATION, SETTINGS = "model.onnx", "calibration.npz", "onnx.json"
OPSET = 20  # the first with all that GridSample needs


def plain_cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """`ncm.cross_entropy` in steps that the exporter can follow: torch 2.12 cannot take its own loss apart."""
    return -log_softmax(prediction, dim=-1).gather(-1, target[..., None]).squeeze(-1)


def plain_label_cross_entropy(prediction: Tensor, reference: Tensor) -> Tensor:
    label = reference.argmax(dim=-1)[:, None].expand(prediction.shape[:2])
    return plain_cross_entropy(prediction, label)


PLAIN: dict[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]] = {
    cross_entropy: plain_cross_entropy,
    label_cross_entropy: plain_label_cross_entropy,
}


class Scores(nn.Module):
    """(x, parameters) -> base scores, as one network."""

    def __init__(self, scorer: ImageScorer) -> None:
        super().__init__()
        self.model, self.transforms = scorer.model, scorer.transforms
        ncm = BASE_NCMS[scorer.base_ncm]
        self.ncm = replace(ncm, loss=PLAIN.get(ncm.loss, ncm.loss))

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1], parameters (batch, m, ...) -> (batch, m)."""
        batch, m = parameters.shape[:2]
        # One row per variant: the exporter would fix m where an image is repeated m times.
        rows = torch.div(torch.arange(batch * m), m, rounding_mode="floor")  # (batch * m,): which image
        gx = self.transforms.apply(x[rows], parameters.flatten(0, 1)[:, None])[
            :, 0
        ]  # (batch * m, 3, size, size)
        z = reference = None
        if self.model.config.pair or self.ncm.against == "x":
            z = self.model.encode(x)
            reference = self.model.decode(z, z[:, None])[:, 0]
        z_g = self.model.encode(gx).unflatten(0, (batch, m))  # (batch, m, d)
        return self.ncm(self.model.decode(z, z_g), reference, self.transforms.target(parameters), z_g)


def export_onnx(detector: Detector, folder: Path) -> None:
    """Write model.onnx, calibration.npz and onnx.json, which says how they are to be used."""
    scorer = detector.scorer
    if not isinstance(scorer, ImageScorer):
        raise SettingError(
            f"{detector.name} is a detector of kind {scorer.kind!r}: expected one for images with a single model. Export the "
            "members of a merged detector one by one; sounds cannot be exported yet."
        )
    settings = {
        "detector": detector.name,
        "scorer_sha256": scorer_hash(scorer),
        "inputs": {
            "x": f"float32 (batch, 3, {scorer.preprocessing.size}, {scorer.preprocessing.size}) in [0, 1], RGB",
            "parameters": "(batch, n * variants, ...), as the transform set draws them",
        },
        "output": "scores: float32 (batch, n * variants); the mean over the variants of a draw is its base score",
        "variants": scorer.transforms.variants,
        "k": detector.calibration.k,
        "n_max": detector.calibration.n_max,
        "scorer": scorer.settings(),
    }

    def fill(new: Path) -> None:
        _write_network(scorer, new / MODEL)
        write_calibration(new, detector.calibration, str(settings["scorer_sha256"]))
        files = {name: content_sha256(new / name) for name in (MODEL, CALIBRATION)}
        (new / SETTINGS).write_text(
            json.dumps({**settings, "files": files}, indent=2) + "\n", encoding="utf-8"
        )

    write_folder(folder, fill)


def _write_network(scorer: ImageScorer, path: Path) -> None:
    size = scorer.preprocessing.size
    keys = np.arange(4, dtype=np.uint64).reshape(2, 2)
    example = (
        torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0)),
        scorer.transforms.sample(keys, 3),
    )
    network = Scores(scorer).cpu().eval()
    batch, m = torch.export.Dim("batch"), torch.export.Dim("m")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            example,
            input_names=["x", "parameters"],
            output_names=["scores"],
            dynamic_shapes={"x": {0: batch}, "parameters": {0: batch, 1: m}},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    program.save(path, external_data=False)

"""A detector as an ONNX network, with its calibration beside it.

The graph takes pixels at the model's size, or the blocks of one sound, and the parameters of the drawn transforms, and
gives A(X_tr, x; g) (Eq. 2) of each: transforms, network and base NCM are inside. Drawing stays outside, because draws
are a function of a file's content (`draws`); F, rank and p-value are a few lines on the calibration's score vectors.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from idecode_core.audio.scorer import AudioScorer, clip_mean
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.files import write_folder
from idecode_core.folder.detector import scorer_hash
from idecode_core.folder.manifest import content_sha256, write_calibration
from idecode_core.image.scorer import ImageScorer
from idecode_core.ncm import BASE_NCMS, BaseNCM, cross_entropy, label_cross_entropy
from idecode_core.scorer import Scorer
from idecode_core.scorers.distances import Mahalanobis, Neighbours
from idecode_core.scorers.features import FeatureScorer
from idecode_core.transforms import TransformSet

MODEL, CALIBRATION, SETTINGS = "model.onnx", "calibration.npz", "onnx.json"
OPSET = 20  # the first with all that GridSample needs


@dataclass(frozen=True, eq=False)
class Graph:
    """(x, parameters) -> base scores, ready to be exported."""

    network: nn.Module
    example: tuple[Tensor, Tensor]
    shapes: dict[str, dict[int, torch.export.Dim]]
    """Which axes of x and parameters may have any length."""
    inputs: dict[str, str]
    """What they are, in words."""


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


def exportable(base_ncm: str) -> BaseNCM:
    ncm = BASE_NCMS[base_ncm]
    return replace(ncm, loss=PLAIN.get(ncm.loss, ncm.loss))


class ImageScores(nn.Module):
    """(x, parameters) -> base scores, as one network."""

    def __init__(self, scorer: ImageScorer) -> None:
        super().__init__()
        self.model, self.transforms = scorer.model, scorer.transforms
        self.ncm = exportable(scorer.base_ncm)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1], parameters (batch, m, ...) -> (batch, m)."""
        gx = each_variant(self.transforms, x, parameters)  # (batch * m, 3, h, w)
        z = reference = None
        if self.model.config.pair or self.ncm.asks_x:
            z = self.model.encode(x)
            reference = self.model.decode(z, z[:, None])[:, 0]
            if self.ncm.mirrored:
                other = self.model.encode(x.flip(-1))
                reference = (reference + self.model.decode(other, other[:, None])[:, 0]) / 2
        z_g = self.model.encode(gx).unflatten(0, parameters.shape[:2])  # (batch, m, d)
        return self.ncm(self.model.decode(z, z_g), reference, self.transforms.target(parameters), z_g)


def each_variant(transforms: TransformSet, x: Tensor, parameters: Tensor) -> Tensor:
    """x (batch, 3, h, w), parameters (batch, m, ...) -> g(x), one row per variant (batch * m, 3, h, w): the exporter would fix
    m where an image is repeated m times."""
    batch, m = parameters.shape[:2]
    rows = torch.div(torch.arange(batch * m), m, rounding_mode="floor")  # (batch * m,): which image
    return transforms.apply(x[rows], parameters.flatten(0, 1)[:, None])[:, 0]


def picture_graph(scorer: ImageScorer | FeatureScorer) -> Graph:
    """The network that takes pictures at the scorer's size and parameters of its transforms."""
    network = ImageScores(scorer) if isinstance(scorer, ImageScorer) else FeatureScores(scorer)
    size = scorer.preprocessing.size
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    parameters = scorer.transforms.sample(np.arange(4, dtype=np.uint64).reshape(2, 2), 3)
    batch, m = torch.export.Dim("batch"), torch.export.Dim("m")
    return Graph(
        network,
        (images, parameters),
        {"x": {0: batch}, "parameters": {0: batch, 1: m}},
        {
            "x": f"float32 (batch, 3, {size}, {size}) in [0, 1], RGB",
            "parameters": "(batch, n * variants, ...), as the transform set draws them",
        },
    )


def plain_squares(z: Tensor, centre: Tensor, whiten: Tensor, means: Tensor) -> Tensor:
    """`Mahalanobis.distances` in steps that the exporter can follow, as all of these."""
    white = (z - centre) @ whiten
    return (white[:, None] - means).square().sum(dim=-1).amin(dim=1)


def plain_neighbour(z: Tensor, bank: Tensor, k: int) -> Tensor:
    """`Neighbours.distances`; by products, because a difference from every feature of the bank would need far more room."""
    squares = z.square().sum(dim=-1, keepdim=True) + bank.square().sum(dim=-1) - 2 * z @ bank.T
    return squares.clamp(min=0).topk(k, dim=1, largest=False).values[:, -1].sqrt()


def plain_distances(scorer: FeatureScorer) -> Callable[[Tensor], Tensor]:
    """Features (batch, d) -> distances (batch,)."""
    if isinstance(scorer, Mahalanobis):
        return lambda z: plain_squares(z, scorer.centre, scorer.whiten, scorer.means)
    assert isinstance(scorer, Neighbours)
    return lambda z: plain_neighbour(z, scorer.bank, int(scorer.k))


class FeatureScores(nn.Module):
    """(x, parameters) -> base scores, as one network."""

    def __init__(self, scorer: FeatureScorer) -> None:
        super().__init__()
        self.model, self.transforms, self.distances = scorer.model, scorer.transforms, plain_distances(scorer)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1], parameters (batch, m, ...) -> (batch, m)."""
        gx = each_variant(self.transforms, x, parameters)  # (batch * m, 3, h, w)
        scores: Tensor = self.distances(self.model(gx)).unflatten(0, parameters.shape[:2])
        return scores


class SoundScores(nn.Module):
    """One sound's blocks and masks -> base scores, as one network."""

    def __init__(self, scorer: AudioScorer) -> None:
        super().__init__()
        self.model, self.transforms, self.ncm = scorer.model, scorer.transforms, exportable(scorer.base_ncm)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (blocks, bands, frames), parameters (n, blocks, masks, 2) -> (n,)."""
        n, blocks = parameters.shape[:2]
        frames, bands = self.transforms.keep(parameters)  # (n, blocks, frames), (n, blocks, bands)
        gx = x[None] * bands[..., :, None] * frames[..., None, :]  # (n, blocks, bands, frames)
        shares = self.model(gx.flatten(0, 1)).softmax(dim=-1).unflatten(0, (n, blocks))
        prediction = clip_mean(shares)[None]  # (1, n, classes)
        reference = clip_mean(self.model(x).softmax(dim=-1))[None]  # (1, classes)
        return self.ncm(prediction, reference, torch.zeros(1, 1, dtype=torch.int64))[0]


def sound_graph(scorer: AudioScorer) -> Graph:
    transforms = scorer.transforms
    shape = (2, transforms.bands, transforms.frames)  # (blocks, bands, frames)
    blocks = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    masks = transforms.sample(np.arange(2, dtype=np.uint64)[None], 3, 2)[0]  # (n, blocks, masks, 2)
    any_blocks, n = torch.export.Dim("blocks"), torch.export.Dim("n")
    return Graph(
        SoundScores(scorer),
        (blocks, masks),
        {"x": {0: any_blocks}, "parameters": {0: n, 1: any_blocks}},
        {
            "x": "float32 (blocks, bands, frames): the standardised log-mel blocks of one sound",
            "parameters": "int64 (n, blocks, masks, 2), as the transform set draws them",
        },
    )


GRAPHS: dict[str, Callable[[Any], Graph]] = {
    "image": picture_graph,
    "audio": sound_graph,
    "mahalanobis": picture_graph,
    "neighbours": picture_graph,
}
"""Kind of scorer -> its graph."""


def graph_of(scorer: Scorer, name: str) -> Graph:
    if scorer.kind == "own":
        raise SettingError(
            f"{name} was made around a network of your own: expected one of ours. Export your network by its own means, and give "
            "it to Detector.around as predict_fn (docs/your-own-model.md)."
        )
    if scorer.kind not in GRAPHS:
        raise SettingError(
            f"{name} is a detector of kind {scorer.kind!r}: expected one with a single model of ours. Export the members of a "
            "merged detector one by one."
        )
    return GRAPHS[scorer.kind](scorer)


def export_onnx(detector: Detector, folder: Path) -> None:
    """Write model.onnx, calibration.npz and onnx.json, which says how they are to be used."""
    scorer = detector.scorer
    graph = graph_of(scorer, detector.name)
    settings = {
        "detector": detector.name,
        "scorer_sha256": scorer_hash(scorer),
        "inputs": graph.inputs,
        "output": "scores: float32; the mean over the variants of a draw is its base score",
        "variants": getattr(getattr(scorer, "transforms", None), "variants", 1),
        "k": detector.calibration.k,
        "n_max": detector.calibration.n_max,
        "scorer": scorer.settings(),
    }

    def fill(new: Path) -> None:
        write_network(graph, new / MODEL)
        write_calibration(new, detector.calibration, str(settings["scorer_sha256"]))
        files = {name: content_sha256(new / name) for name in (MODEL, CALIBRATION)}
        (new / SETTINGS).write_text(
            json.dumps({**settings, "files": files}, indent=2) + "\n", encoding="utf-8"
        )

    write_folder(folder, fill)


def write_network(graph: Graph, path: Path) -> None:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            graph.network.cpu().eval(),
            graph.example,
            input_names=["x", "parameters"],
            output_names=["scores"],
            dynamic_shapes=graph.shapes,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    program.save(path, external_data=False)

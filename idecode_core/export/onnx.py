"""A detector as an ONNX network, with its calibration beside it.

The graph takes pixels at the model's size, or the blocks of one sound, and the parameters of the drawn transforms, and
gives A(X_tr, x; g) (Eq. 2) of each: transforms, network and base NCM are inside. Drawing stays outside, because draws
are a function of a file's content (`draws`); F, rank and p-value are a few lines on the calibration's score vectors.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.export.networks import Graph, feature_graph, image_graph, sound_graph
from idecode_core.files import write_folder
from idecode_core.folder.detector import scorer_hash
from idecode_core.folder.manifest import content_sha256, write_calibration
from idecode_core.scorer import Scorer

MODEL, CALIBRATION, SETTINGS = "model.onnx", "calibration.npz", "onnx.json"
OPSET = 20  # the first with all that GridSample needs
GRAPHS: dict[str, Callable[[Any], Graph]] = {
    "image": image_graph,
    "audio": sound_graph,
    "mahalanobis": feature_graph,
    "neighbours": feature_graph,
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

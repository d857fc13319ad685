"""iDECODe: out-of-distribution detection with a guarantee (Kaur et al., AAAI 2022).

Conventions, everywhere in this package:
- larger score = stranger; smaller p-value = stranger;
- in-distribution (iD) is the positive class;
- a point is flagged as out of distribution (OOD) when `p < epsilon`, strictly;
- axes come in the order batch, n (draws), data;
- a point's draws are a function of (seed, decoded content) and of nothing else.

    from idecode_core import load_detector
    detector = load_detector("fashion-rotations")
    detection = detector.detect(["photo.jpg"], n=5, epsilon=0.05)
    print(detection.p_values, detection.is_ood)
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# Public names and where they live. Loaded on first use: conformal statistics need no torch.
_HOMES = {
    "p_values": "conformal",
    "smoothed_p_values": "conformal",
    "FalseDetectionLaw": "conformal",
    "Calibration": "conformal.calibration",
    "AGGREGATES": "conformal.calibration",
    "auroc": "quality.metrics",
    "roc": "quality.metrics",
    "tnr_at_tpr": "quality.metrics",
    "false_detection_rate": "quality.metrics",
    "certify": "conformal.certify",
    "Certified": "conformal.certify",
    "Detector": "detector",
    "Detection": "detector",
    "ImageScorer": "image.scorer",
    "AudioScorer": "audio.scorer",
    "load_detector": "folder.detector",
    "save_detector": "folder.detector",
    "list_detectors": "folder.listing",
    "train_folder": "training.train_folder",
    "plan_folder": "training.train_folder",
    "judge_folder": "training.judge_folder",
    "train_recipe": "training.finish",
    "calibrate_folder": "training.calibrate_folder",
    "merge": "training.merge",
    "evaluate": "quality.evaluate",
    "score_files": "scale.run",
    "judge_scored": "scale.judged",
    "Session": "session",
    "IdecodeError": "errors",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"idecode_core.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'idecode_core' has no attribute {name!r}")

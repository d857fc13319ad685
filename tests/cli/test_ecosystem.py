"""MLflow and torchmetrics, with the real packages."""

from pathlib import Path

import mlflow
import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from sklearn.metrics import roc_auc_score

from idecode_core import load_detector
from idecode_core.errors import ScoreError
from idecode_core.export.mlflow import log_detector
from idecode_core.image.sets import load_images
from idecode_core.quality.torchmetric import OODMetric


def test_a_detector_that_mlflow_logged_gives_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path / 'runs'}")
    files = [str(tmp_path / f"{i}.png") for i in range(2)]
    for path, name in zip(files, ("fashion-sample", "photos-sample"), strict=True):
        Image.fromarray(load_images(name).x[0]).save(path)
    with mlflow.start_run():
        logged = log_detector("fashion-rotations")
    frame = mlflow.pyfunc.load_model(logged.model_uri).predict(
        pandas.DataFrame({"file": files}), params={"n": 3, "epsilon": 0.1}
    )
    assert not list(tmp_path.rglob("*.pkl"))  # nothing is pickled
    ours = load_detector("fashion-rotations").detect(files, n=3, epsilon=0.1)
    assert frame.p_value.tolist() == ours.p_values.tolist()
    assert frame.is_ood.tolist() == ours.is_ood.tolist() == [False, True]


def test_the_metric_gathers_batches_and_agrees_with_scikit_learn() -> None:
    generator = np.random.default_rng(3)
    scores, is_ood = generator.normal(size=400), generator.random(400) < 0.4
    scores[is_ood] += 1.5
    metric = OODMetric()
    for part in np.array_split(np.arange(400), 7):
        metric.update(torch.from_numpy(scores[part]), torch.from_numpy(is_ood[part]))
    found = {name: float(value) for name, value in metric.compute().items()}
    assert found["auroc"] == pytest.approx(roc_auc_score(is_ood, scores))
    assert found["auroc_low"] < found["auroc"] < found["auroc_high"]
    # By hand: the share of OOD points below the score that 95 % of iD points pass at.
    inside = np.sort(scores[~is_ood])
    cut = inside[int(np.ceil(0.95 * inside.size)) - 1]
    assert found["fpr_at_95_tpr"] == pytest.approx(np.mean(scores[is_ood] <= cut), abs=0.01)


def test_the_metric_refuses_scores_that_do_not_fit() -> None:
    with pytest.raises(ScoreError, match="one shape"):
        OODMetric().update(torch.zeros(3), torch.zeros(2))

"""MLflow and torchmetrics, with the real packages."""

from pathlib import Path

import mlflow
import pandas
import pytest
from PIL import Image

from idecode_core import load_detector
from idecode_core.export.mlflow import log_detector
from idecode_core.image.sets import load_images


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

"""A detector as an MLflow model (pyfunc): its folder is the artifact, and `predict` is `Detector.detect`. Needs the extra [mlflow].

MLflow stores this file, which makes the model when it is run ("models from code"), so that nothing is pickled.
"""

from pathlib import Path
from typing import Any

import mlflow
from mlflow.models import ModelSignature
from mlflow.pyfunc.model import PythonModel
from mlflow.types.schema import ColSpec, DataType, ParamSchema, ParamSpec, Schema

from idecode_core import __version__
from idecode_core.conformal.settings import Settings
from idecode_core.folder.settings import find_detector

FILE = Schema([ColSpec("string", "file")])
VERDICT = Schema(
    [
        ColSpec("string", "file"),
        ColSpec("boolean", "is_ood"),
        *(ColSpec("double", name) for name in ("p_value", "score")),
        ColSpec("long", "rank"),
    ]
)
ASKED = ParamSchema(
    [
        ParamSpec("n", DataType.long, 0),  # 0: as `Settings` chooses
        ParamSpec("epsilon", DataType.double, Settings.epsilon),
        ParamSpec("seed", DataType.long, Settings.seed),
    ]
)


class DetectorModel(PythonModel):
    """Loads the detector folder of the artifact `detector`, with all its checks."""

    def load_context(self, context: Any) -> None:
        from idecode_core.folder.detector import load_detector

        self.detector = load_detector(Path(context.artifacts["detector"]))

    def predict(self, context: Any, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """One row per file of the column `file`."""
        asked = {"n": 0, "epsilon": Settings.epsilon, "seed": Settings.seed} | (params or {})
        detection = self.detector.detect(
            [str(path) for path in model_input["file"]],
            n=asked["n"] or None,
            epsilon=asked["epsilon"],
            seed=asked["seed"],
        )
        return detection.to_frame()


def log_detector(detector: Path | str, *, name: str = "detector", **options: Any) -> Any:
    """Log a detector, by its name or folder, to the run that is active; what `mlflow.pyfunc.log_model` gives."""
    return mlflow.pyfunc.log_model(
        name=name,
        python_model=__file__,
        artifacts={"detector": str(find_detector(detector))},
        signature=ModelSignature(FILE, VERDICT, ASKED),
        pip_requirements=[f"idecode-studio[mlflow]=={__version__}"],
        **options,
    )


mlflow.models.set_model(DetectorModel())

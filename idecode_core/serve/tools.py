"""Detectors as tools of a language model: `idecode mcp FOLDER` (the extra [mcp], the Model Context Protocol's official SDK).

Read-only, and only files below the folder that the user named: paths and links that lead out of it are refused. A detector is one
of those that the app lists, by its name, or a folder below the same folder.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from idecode_core import __version__
from idecode_core.errors import IdecodeError, InputError
from idecode_core.files.find import expanded
from idecode_core.files.names import printable

if TYPE_CHECKING:
    import numpy as np
    from mcp.server import MCPServer
    from numpy.typing import NDArray

    from idecode_core.detector import Detector

MOST_FILES = 500
"""Of one call: an assistant that asks for more should ask for less at a time."""
DETECTOR = "fashion-rotations"
INSTRUCTIONS = (
    "Out-of-distribution detection with a bound on false alarms. p_value: share of calibration inputs at least as strange; flagged (is_ood) "
    "means p < epsilon, strictly. Of inputs that belong, at most a share epsilon is flagged, on average over calibration sets. Not flagged "
    "does not mean that an input belongs. Paths are relative to the folder that the user shared."
)


@dataclass(frozen=True)
class Tools:
    """What an assistant can ask about the files of one folder."""

    root: Path

    def detect(
        self,
        files: list[str],
        detector: str = DETECTOR,
        n: int | None = None,
        epsilon: float = 0.05,
        delta: float | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Which files (pictures or sounds; folders are searched) are out of distribution for a detector, with p-values."""
        from idecode_core.modality import Reading, modality_named

        loaded = self.detector(detector)
        modality = modality_named(loaded.scorer.modality)
        paths = self.files(files, modality.extensions)
        read = Reading(paths, modality)
        detection = loaded.detect(read, n=n, epsilon=epsilon, delta=delta, seed=seed)
        verdicts = [
            {
                "file": self.named(path),
                "is_ood": verdict.is_ood,
                "p_value": verdict.p_value,
                "rank": verdict.rank + 1,
            }
            for path, verdict in zip(read.good, detection, strict=True)
        ]
        return {
            "detector": loaded.name,
            "in_distribution": loaded.summary,
            "k": detection.k,
            "n": detection.score_vectors.shape[1],
            "epsilon": epsilon,
            "delta": delta,
            "flagged": int(detection.is_ood.sum()),
            "verdicts": verdicts,
            "unreadable": [sentence.replace(str(self.root), ".") for sentence in read.failed],
        }

    def explain(
        self, file: str, detector: str = DETECTOR, n: int = 5, epsilon: float = 0.05, seed: int = 0
    ) -> dict[str, Any]:
        """One file's verdict in words: what was found, what it means and what not, and each random variant with its score."""
        from idecode_core.verdict import meaning, sentence

        loaded = self.detector(detector)
        path = str(self.inside(file))
        detection = loaded.detect([path], n=n, epsilon=epsilon, seed=seed)
        noun = "sound" if loaded.scorer.modality == "audio" else "image"
        means, means_not = meaning(detection[0], noun)
        draws = loaded.describe(detection, 0)
        return {
            "verdict": sentence(detection[0], noun),
            "means": means,
            "does_not_mean": means_not,
            "score": float(detection.scores[0]),
            "threshold": finite(detection.threshold),
            "draws": [
                {"transform": words, "score": float(score)}
                for words, score in zip(draws, detection.score_vectors[0], strict=False)
            ],
        }

    def certify(
        self,
        calibration: str,
        test: str | None = None,
        larger_is: Literal["strange", "normal"] = "strange",
        epsilon: float = 0.05,
        delta: float | None = None,
        column: str = "",
    ) -> dict[str, Any]:
        """A threshold with a meaning for scores of any detector: files of scores (CSV, Parquet, npy) of normal and of new points."""
        from idecode_core.conformal.certify import certify

        certified = certify(self.scores(calibration, column), larger_is, epsilon=epsilon, delta=delta)
        answer = {
            "statement": certified.statement(),
            "threshold": finite(certified.threshold(epsilon, delta)),
            "k": certified.k,
        }
        if test is None:
            return answer
        scores = self.scores(test, column)
        p, flagged = certified.p_values(scores), certified.predict(scores) == -1
        return {
            **answer,
            "points": len(p),
            "flagged_rows": flagged.nonzero()[0].tolist(),
            "smallest_p": float(p.min()),
        }

    def evaluate(
        self,
        detector: str = DETECTOR,
        belongs: str | None = None,
        does_not: list[str] | None = None,
        n: int = 5,
    ) -> dict[str, Any]:
        """How well a detector tells what belongs from what does not: from its stored scores, or on folders of files."""
        from idecode_core.quality.evaluate import evaluate

        sets = (
            (None, ())
            if belongs is None
            else (self.inside(belongs), [self.inside(name) for name in does_not or ()])
        )
        evaluated = evaluate(self.place(detector), *sets, n=n)
        rows = [
            {key: self.named(value) if key.endswith("_set") else value for key, value in row.items()}
            for row in evaluated.records()
        ]
        return {"statement": evaluated.sentence().replace(str(self.root), "."), "rows": rows}

    def inside(self, name: str) -> Path:
        """A path below the folder; InputError for any other, also by a link."""
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise InputError(
                f"{printable(name)} lies outside of the folder that was shared: expected a path below it, such as photos/one.jpg."
            )
        if not path.exists():
            raise InputError(
                f"{printable(name)} is not there: expected a file or folder below the one that was shared."
            )
        return path

    def files(self, names: list[str], extensions: tuple[str, ...]) -> list[Path]:
        paths = [self.inside(str(path)) for name in names for path in expanded(self.inside(name), extensions)]
        if not 1 <= len(paths) <= MOST_FILES:
            raise InputError(
                f"Expected 1 to {MOST_FILES} files, got {len(paths):,}; name fewer, or another folder."
            )
        return paths

    def scores(self, name: str, column: str) -> "NDArray[np.float64]":
        from idecode_core.files.archives import File
        from idecode_core.files.tables import read_table

        return read_table(File(name, self.inside(name).read_bytes())).scores(column)

    def named(self, path: object) -> str:
        """As the assistant knows it."""
        return str(path).removeprefix(f"{self.root}/")

    def place(self, name: str) -> Path | str:
        """A detector's name as it is, a folder only below the shared one."""
        return name if name.replace("-", "").replace("_", "").isalnum() else self.inside(name)

    def detector(self, name: str) -> "Detector":
        return _load(self.place(name))


@lru_cache(maxsize=2)
def _load(place: Path | str) -> "Detector":
    from idecode_core.folder.detector import load_detector

    return load_detector(place)


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def server(root: Path) -> "MCPServer":
    """The tools of one folder, ready to be run; every error that a user can put right is told in one sentence."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    if not root.is_dir():
        raise InputError(f"{printable(str(root))} is no folder: expected the one whose files may be read.")
    tools = Tools(root.resolve())
    mcp_server = MCPServer("idecode", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    def told(method: Any) -> Any:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except IdecodeError as error:
                raise ToolError(str(error).replace(str(tools.root), ".")) from None

        return call

    hints = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for method in (tools.detect, tools.explain, tools.certify, tools.evaluate):
        mcp_server.tool(annotations=hints)(told(method))
    return mcp_server

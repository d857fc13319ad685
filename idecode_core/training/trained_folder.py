"""What `train_folder` made of a user's own files, and how good it is: for people, and for programs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from idecode_core.detector import Detector
from idecode_core.folder.settings import checkpoint_root
from idecode_core.quality.user_data import UserResult
from idecode_core.training.plan import Plan

FAILED = "Failed: it tells your files from nothing that it was tried on. Do not rely on it."
AT_CHANCE = (
    "Failed: its network answers no better than chance even on the files that it learned from. Do not rely on it: bring more "
    "files, or name another --model."
)


@dataclass(frozen=True, eq=False, repr=False)
class TrainedFolder:
    """A finished detector of a user's own files."""

    detector: Detector
    folder: Path
    plan: Plan
    parts: Mapping[str, int]
    """Files in each: proper, validation, calibration, test."""
    result: UserResult
    """What was measured on the test files and on what does not belong."""
    choice: str = ""
    """Which model was taken, and why; "" where there was no choice."""

    @property
    def weak(self) -> tuple[str, ...]:
        """A sentence for each weakness, with what to try."""
        return self.result.weak

    def sentences(self) -> list[str]:
        """The result for people."""
        rate = self.result.false_detections
        listed = self.folder.resolve().parent == checkpoint_root().resolve()
        use = f"{self.folder.name}; the app lists it" if listed else str(self.folder)
        return [
            *([self.choice] if self.choice else []),
            f"At epsilon = {rate.epsilon:g}: {rate.rate:.1%} of your test files are flagged.",
            *(f"  {ood}" for ood in self.result.against),
            *([AT_CHANCE if self.result.at_chance else FAILED] if self.result.failed else []),
            *(f"Weak: {sentence}" for sentence in self.weak),
            f"{self.folder}: ready. Use it with --detector {use}. The report: {self.folder / 'report.html'}",
        ]

    def record(self) -> dict[str, Any]:
        """The result for programs, ready for JSON."""
        return {
            "detector": str(self.folder),
            "model": self.plan.model,
            "choice": self.choice,
            "parts": dict(self.parts),
            "false_detections": asdict(self.result.false_detections),
            "against": [asdict(ood) for ood in self.result.against],
            "failed": self.result.failed,
            "weak": list(self.weak),
        }

    def __repr__(self) -> str:
        best = ", ".join(f"{ood.label} {100 * ood.auroc:.1f} %" for ood in self.result.against[:3])
        return f"TrainedFolder({self.folder.name!r}, {self.plan.model}, k = {self.parts['calibration']}, AUROC: {best})"

"""New files judged by a folder of few files, at once and without a detector: every file fits and calibrates.

A detector holds one model and one calibration set, so it spends files on each. Where there are few, new files are judged by full
conformal p-values of their distance from the near neighbours (`conformal.cross`): no file is spent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idecode_core.conformal import FloatArray, check_epsilon
from idecode_core.conformal.cross import neighbour_p_values
from idecode_core.errors import InputError, SettingError
from idecode_core.files.names import NOUNS, printable
from idecode_core.files.shown import Report
from idecode_core.quality.user_data import N
from idecode_core.scorer import prepared
from idecode_core.scorers.distances import K
from idecode_core.scorers.sound_statistics import SoundStatistics
from idecode_core.training import plan
from idecode_core.training.finish import device_of_process
from idecode_core.training.fit_distance import FIT_SEED, features_of
from idecode_core.training.user_files import Scan, scan
from idecode_core.transforms import SpecAugment


@dataclass(frozen=True, eq=False, repr=False)
class JudgedFolder:
    """New files, each with its p-value among the files that belong."""

    belongs: Scan
    new: Scan
    p_values: FloatArray
    epsilon: float

    def rows(self) -> list[dict[str, Any]]:
        """For programs: one per new file, in their order."""
        return [
            {"file": file.name, "p_value": float(p), "is_ood": bool(p < self.epsilon)}
            for file, p in zip(self.new.files, self.p_values, strict=True)
        ]

    def sentences(self) -> list[str]:
        """For people, the strangest first."""
        count, noun = len(self.belongs.files), NOUNS[self.belongs.modality]
        flagged = sorted((row for row in self.rows() if row["is_ood"]), key=lambda row: row["p_value"])
        return [
            *self.belongs.sentences(),
            *self.new.sentences(),
            f"{len(flagged):,} of {len(self.p_values):,} new {noun}s are flagged at epsilon = {self.epsilon:g}:",
            *(f"  {printable(row['file'])}: p = {row['p_value']:.3g}" for row in flagged),
            f"Promised: a new {noun} that belongs is flagged with probability at most {self.epsilon:g}; all {count:,} {noun}s fit and "
            f"calibrate, so the smallest p-value is {1 / (count + 1):.2g}. Not promised: the rate for these {count:,} {noun}s in "
            "particular, nor a detector to keep: train without --judge makes one.",
        ]


def judge_folder(
    source: Path | str,
    new: Path | str,
    *,
    audio: bool = False,
    epsilon: float = 0.05,
    device: str | None = None,
    report: Report | None = None,
) -> JudgedFolder:
    """Judge the files of `new` by those of `source`, both folders or CSVs: all that `idecode train FOLDER --judge NEW` does.

    Pictures are described by the frozen network's features, the mean of some draws, and sounds by statistics of their log-mel bands.
    """
    belongs, asked = (scan(files, "audio" if audio else "image", "none", report) for files in (source, new))
    neighbour = 1 if audio else K
    if len(belongs.files) <= neighbour or not asked.files:
        raise InputError(
            f"Expected more than {neighbour} files that belong and at least one to judge, got {len(belongs.files)} in "
            f"{printable(str(source))} and {len(asked.files)} in {printable(str(new))}. Add files."
        )
    check_epsilon(epsilon, len(belongs.files))
    known, strange = (_sounds if audio else _pictures)((belongs, asked), device)
    return JudgedFolder(belongs, asked, neighbour_p_values(known, strange, neighbour), epsilon)


def _pictures(scans: Sequence[Scan], device: str | None) -> list[FloatArray]:
    if not plan.is_available():
        raise SettingError(
            f"Pictures are judged by a pretrained network, which is not here: {plan.BRINGS_NETWORK}."
        )
    side = float(np.median([file.side for file in scans[0].files]))
    size = plan.SMALL if side <= plan.SMALL_UP_TO else plan.PHOTOGRAPH
    seen = features_of(plan.Plan("neighbours", size, ""), device_of_process(device))
    return [seen.encode(files.listed(), n=N, seed=FIT_SEED).mean(dim=1).double().numpy() for files in scans]


def _sounds(scans: Sequence[Scan], device: str | None) -> list[FloatArray]:
    """In units of the spread of all files together, old and new alike, so that none is treated in another way."""
    features, nothing = plan.sound_features(scans[0]), torch.zeros(0)
    listener = SoundStatistics(
        features=features, transforms=SpecAugment(), centre=nothing, scale=nothing, bank=nothing, labels=nothing,
        device=device_of_process(device),
    )  # fmt: skip
    z = [
        np.stack([listener.described(point.x.blocks)[0].flatten().cpu().double().numpy() for point in points])
        for points in (prepared(listener, files.listed(), FIT_SEED) for files in scans)
    ]
    spread = np.maximum(np.concatenate(z).std(axis=0), 1e-6)
    return [described / spread for described in z]

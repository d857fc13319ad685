"""The table from which the way of turning pictures was chosen."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from small import random_images, small_scorer

from idecode_core.detector import Detector
from idecode_core.files import write_npz
from idecode_core.folder.detector import save_detector
from idecode_core.image.sets import ImageSet
from idecode_core.transforms import SharpRotations
from research import rotation_choice

KNOWN = ImageSet("known", random_images(20, seed=1), np.zeros(20, np.int64))
STRANGE = ImageSet("strange", random_images(12, seed=2) // 3, np.zeros(12, np.int64))


def test_the_table_holds_what_scikit_learn_makes_of_each_way_to_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scorer = small_scorer(SharpRotations("all"))
    split = dict.fromkeys(("proper", "validation", "calibration"), np.arange(3))
    save_detector(
        Detector.calibrate("small", scorer, random_images(5), n_max=2),
        tmp_path / "small",
        beside={"split.npz": lambda path: write_npz(path, split)},
    )
    monkeypatch.setattr(rotation_choice, "development_sets", lambda _: {"strange": STRANGE})
    monkeypatch.setattr(rotation_choice, "validation_images", lambda *_: KNOWN)
    rotation_choice.main([tmp_path / "small"])
    printed = capsys.readouterr().out
    rows = []
    for name, transforms in rotation_choice.WAYS.items():
        known, strange = (
            replace(scorer, transforms=transforms).score(images.x, n=2, seed=0).score_vectors.sum(axis=1)
            for images in (KNOWN, STRANGE)
        )
        auroc = 100 * roc_auc_score(np.repeat([0, 1], [20, 12]), np.r_[known, strange])
        rows.append(f"| small | {name} | {auroc:.1f} | {auroc:.1f} |")
    assert len(set(rows)) == 3
    assert all(row in printed for row in rows)

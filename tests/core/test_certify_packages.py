"""The five lines of docs/guarantees.md, run with the real packages: the promised rate of what belongs is kept."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from scipy import stats
from sklearn.datasets import load_digits

from idecode_core import certify
from idecode_core.conformal import flagging_rank

DOCUMENT = Path(__file__).parents[2] / "docs" / "guarantees.md"
BLOCKS = re.findall(r"```python\n# ([\w-]+)(.*?)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
RUN = {name: code for name, about, code in BLOCKS if "not run" not in about}
K = 300


@pytest.fixture(scope="module")
def digits() -> dict[str, Any]:
    """Zeros to fours: some to train on, k that calibrate, the rest to be judged."""
    x, y = load_digits(return_X_y=True)
    x = np.random.default_rng(0).permutation(x[y < 5])
    pictures = torch.tensor(x, dtype=torch.float32).reshape(-1, 1, 8, 8).expand(-1, 3, -1, -1) / 16
    pictures = torch.nn.functional.interpolate(pictures, size=32)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10)).eval()
    return {
        "training": x[:300], "normal": x[300 : 300 + K], "new": x[300 + K :], "normal_batch": pictures[300 : 300 + K],
        "new_batch": pictures[300 + K :], "network": network, "timm": timm, "certify": certify,
    }  # fmt: skip


def test_all_seven_packages_have_their_lines_and_four_are_run() -> None:
    names = [name for name, _, _ in BLOCKS]
    assert names == ["PyOD", "scikit-learn", "pytorch-ood", "timm", "anomalib", "OpenOOD", "nonconform"]
    assert list(RUN) == ["PyOD", "scikit-learn", "pytorch-ood", "timm"]
    for _, _, code in BLOCKS:
        compile(code, "docs/guarantees.md", "exec")


@pytest.mark.parametrize("name", RUN)
def test_the_lines_flag_what_belongs_as_seldom_as_promised(name: str, digits: dict[str, Any]) -> None:
    """One calibration set and one test set: the count lies in its exact 99.9 % beta-binomial band."""
    *lines, last = RUN[name].strip().splitlines()
    world = dict(digits)
    exec("\n".join(lines), world)
    verdicts = eval(last.split("#")[0], world)
    j = flagging_rank(K, 0.05)
    law = stats.betabinom(len(verdicts), j, K + 1 - j)
    assert len(verdicts) == len(digits["new"])
    assert np.count_nonzero(verdicts == -1) <= law.ppf(0.9995)
    assert set(np.unique(verdicts)) <= {-1, 1}

"""Few files judge new ones at once."""

# ruff: noqa: F811  `run` is a fixture of another file
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image
from small import random_images
from test_commands import run  # noqa: F401  a fixture
from test_train_folder import own, small_network, write_pictures  # noqa: F401  fixtures

from idecode_core import plan_folder
from idecode_core.training import fit_distance as fitting
from idecode_core.training import plan as planning
from tools.synthetic_sounds import MAKERS


def test_few_pictures_judge_new_ones_at_once(run, small_network, own, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """All 60 fit and calibrate: p-values counted here by the distance from the fifth nearest of all others."""
    write_pictures(
        tmp_path / "new",
        np.concatenate([random_images(3, 24)[:, ::-1], np.full((1, 24, 24, 3), 255, np.uint8)]),
    )
    status, out, err = run("train", "own", "--judge", "new", "--json")
    assert status == 0, err
    found = {row["file"]: row["p_value"] for row in map(json.loads, out.splitlines())}
    seen = fitting.features_of(planning.Plan("neighbours", 32, ""), torch.device("cpu"))
    known, new = (
        seen.encode(
            [np.asarray(Image.open(path)) for path in sorted((tmp_path / name).iterdir())], n=5, seed=1
        ).mean(dim=1)
        for name in ("own", "new")
    )
    for place, name in enumerate(sorted(path.name for path in (tmp_path / "new").iterdir())):
        bag = torch.cat([known, new[place : place + 1]]).double()
        fifth = (bag[:, None] - bag).norm(dim=2).sort(dim=1).values[:, 5]  # the nearest is the point itself
        assert found[name] == pytest.approx(float((fifth >= fifth[-1]).double().mean()))
    status, out, _ = run("train", "own", "--judge", "new", "--epsilon", "0.1")
    assert status == 0
    assert "with probability at most 0.1; all 60 images fit and calibrate" in out
    assert "Not promised" in out
    plan = plan_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert any(
        "`train --judge NEW`" in sentence and "0.016, not 0.04" in sentence for sentence in plan.sentences()
    )
    monkeypatch.setattr(planning, "find_spec", lambda name: None)
    assert plan.few(in_app=False) == ""  # it takes the pretrained network


def test_few_sounds_judge_new_ones_at_once(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(0)
    for folder, name, count in (("heard", "noise", 25), ("new", "claps", 2)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            soundfile.write(
                tmp_path / folder / f"{i}.wav", MAKERS[name](0.5, 16_000, generator=generator), 16_000
            )
    status, out, err = run("train", "heard", "--audio", "--judge", "new", "--json")
    assert status == 0, err
    assert [json.loads(line)["p_value"] for line in out.splitlines()] == [pytest.approx(1 / 26)] * 2

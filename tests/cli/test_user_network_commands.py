"""A detector around somebody's own network, through every command: `--model module:function` and `--trust-program`."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from small import random_images
from streamlit.testing.v1 import AppTest

from idecode_core import Detector, load_detector, save_detector
from idecode_core.cli.app import main
from idecode_core.errors import SettingError

REPOSITORY = Path(__file__).parents[2]
CODE = """
import torch
from torch import nn

def network(seed=0):
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 5))

def other():
    return network(1)

def predict(x):
    return x.reshape(len(x), 3, -1).mean(axis=2)

def broken():
    raise RuntimeError("no weights here")

def ends():
    raise SystemExit(0)

ready = network()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Three detectors, a module and ten photographs."""
    (tmp_path / "mine_net.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine_net", raising=False)
    scope: dict = {}
    exec(CODE, scope)
    made = {"calibration": random_images(24, 40, seed=1), "size": 32, "n_max": 3, "device": "cpu"}
    program = torch.export.export(
        scope["network"](), (torch.zeros(2, 3, 32, 32),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    save_detector(Detector.around(scope["network"](), **made), "mine")
    save_detector(Detector.around(predict_fn=scope["predict"], **made), "function")
    save_detector(Detector.around(program, **made), "whole")
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(random_images(10, 40, seed=2)):
        Image.fromarray(image).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path


def run(capsys, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    return int(end.value.code or 0), *capsys.readouterr()


WAYS = {
    "mine": ("--model", "mine_net:network"),
    "function": ("--model", "mine_net:predict"),
    "whole": ("--trust-program",),
}


@pytest.mark.parametrize("name", WAYS)
def test_detect_and_score_give_the_p_values_of_python(place, capsys, name):
    given = {"trust_program": True} if name == "whole" else {"model": WAYS[name][1]}
    expected = load_detector(name, "cpu", **given).detect("photos", n=3).p_values
    common = ("-d", name, "--n", 3, "--device", "cpu", *WAYS[name])
    status, out, err = run(capsys, "detect", "photos", "--json", *common)
    assert status in (0, 1), err
    np.testing.assert_array_equal([json.loads(line)["p_value"] for line in out.splitlines()], expected)
    status, _, err = run(capsys, "score", "photos", "--out", "scores", "--workers", 1, *common)
    assert status == 0, err
    np.testing.assert_array_equal(pq.read_table("scores")["p_value"].to_numpy(), expected)


def test_evaluate_and_serve_take_the_network_too(place, capsys, monkeypatch):
    common = ("-d", "mine", "--device", "cpu", "--model", "mine_net:ready")
    shutil.copytree(place / "photos", place / "the same")
    status, out, err = run(
        capsys, "evaluate", "--id", "photos", "--ood", "the same", "--n", 2, "--json", *common
    )
    assert status == 0, err
    assert json.loads(out)["auroc"] == 0.5
    served = []
    monkeypatch.setattr("uvicorn.run", lambda service, **_: served.append(service))
    status, _, err = run(capsys, "serve", "--port", 8765, "--state", place / "state", *common)
    assert status == 0, err
    assert len(served) == 1


def test_calibrate_takes_the_network_too(place, capsys):
    (place / "strange").mkdir()
    for i, image in enumerate(random_images(10, 40, seed=3)):
        Image.fromarray(image).save(place / "strange" / f"{i}.png")
    common = ("--n-max", 2, "--device", "cpu", "--ood", "strange")
    status, _, err = run(
        capsys,
        "calibrate",
        "photos",
        "-d",
        "mine",
        "--model",
        "mine_net:network",
        "--out",
        "out/new",
        *common,
    )
    assert status == 0, err
    made = load_detector("out/new", "cpu", model="mine_net:network")
    parent = load_detector("mine", "cpu", model="mine_net:network")
    expected = parent.score_vectors("photos", n=2)
    np.testing.assert_array_equal(made.calibration.score_vectors, expected)
    status, _, err = run(
        capsys, "calibrate", "photos", "-d", "whole", "--trust-program", "--out", "out/again", *common
    )
    assert status == 0, err


def shown_by_the_app(name: str) -> AppTest:
    at = AppTest.from_file(str(REPOSITORY / "pages" / "inspect.py"), default_timeout=240)
    at.query_params["detector"] = name
    return at.run()


def test_the_app_takes_the_network_that_its_command_has_named(place, capsys, monkeypatch):
    import streamlit

    started = []
    monkeypatch.setattr("idecode_core.cli.app.run_until_told", lambda command: started.append(command) or 0)
    for variable in ("IDECODE_MODEL", "IDECODE_TRUST_PROGRAM"):
        monkeypatch.setenv(variable, "")  # put back at the end
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(place))
    for name, words in (("mine", "--model module:function"), ("whole", "--trust-program")):
        streamlit.cache_resource.clear()
        refused = shown_by_the_app(name)
        assert not refused.exception
        assert any(words in error.value.replace("\\", "") for error in refused.error)
    assert run(capsys, "app", "--model", "mine_net:network", "--trust-program")[0] == 0
    assert len(started) == 1
    for name in ("mine", "whole"):
        streamlit.cache_resource.clear()
        at = shown_by_the_app(name)
        assert not at.exception
        assert not at.error
        assert [text.value for text in at.markdown if text.value.startswith("## :")], "a verdict"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-d", "mine"), "--model module:function"),
        (("-d", "whole"), "--trust-program"),
        (("-d", "mine", "--model", "mine_net:other"), "other weights than the one that was calibrated"),
        (("-d", "mine", "--model", "mine_net"), "is no import path"),
        (("-d", "mine", "--model", "mine_net:nowhere"), "AttributeError"),
        (("-d", "mine", "--model", "nowhere_net:network"), "No module named 'nowhere_net'"),
        (("-d", "mine", "--model", "mine_net:broken"), "no weights here"),
        (("-d", "mine", "--model", "mine_net:ends"), "SystemExit"),  # status 0 would mean: nothing is flagged
    ],
)
def test_what_cannot_be_the_network_is_one_sentence(place, capsys, arguments, words):
    status, _, err = run(capsys, "detect", "photos", "--device", "cpu", *arguments)
    assert status == 2
    assert words in " ".join(err.split())
    assert "Traceback" not in err


def test_no_code_is_run_for_a_detector_that_needs_none(place):
    (place / "trap.py").write_text("open('ran', 'w')")
    with pytest.raises(SettingError, match="holds a network of its own"):
        load_detector("fashion-rotations", model="trap:network")
    assert not (place / "ran").exists()

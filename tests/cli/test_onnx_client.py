"""deploy/onnx_client.py: the library's p-values without the library."""

import ast
import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import random_images, small_scorer

from idecode_core.cli.app import main
from idecode_core.detector import Detector
from idecode_core.export.onnx import export_onnx
from idecode_core.folder.detector import load_detector
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.transforms import Rotations, SharpRotations, SmallAffine

NOISE = 2e-6
"""Of float32 between torch and ONNX Runtime: a calibration score so near may be ranked either way."""
CLIENT = Path(__file__).parents[2] / "deploy" / "onnx_client.py"


@pytest.fixture(scope="module")
def client():
    spec = importlib.util.spec_from_file_location("onnx_client", CLIENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steps_apart(p, detector, expected) -> np.ndarray:
    """How many calibration scores lie within float noise of each point's: its p-values differ by so many steps at the most."""
    calibration = np.sort(detector.calibration.scores(expected.score_vectors.shape[1]))
    above = np.searchsorted(calibration, expected.scores + NOISE, side="right")
    near = above - np.searchsorted(calibration, expected.scores - NOISE, side="left")
    np.testing.assert_array_equal(p[near == 0], expected.p_values[near == 0])
    assert (np.abs(p - expected.p_values) <= (near + 1e-9) / (len(calibration) + 1)).all()
    return near


def grey_scorer() -> ImageScorer:
    scorer = small_scorer(Rotations(), "cross_entropy")
    return replace(scorer, preprocessing=replace(scorer.preprocessing, grey=True))


@pytest.mark.parametrize(
    ("scorer", "count"),
    [
        (lambda: small_scorer(Rotations(), "cross_entropy"), 1000),
        (lambda: small_scorer(SharpRotations(per_draw="all"), "cross_entropy"), 50),
        (lambda: small_scorer(SmallAffine(), "label_cross_entropy", outputs=5), 50),
        (lambda: grey_scorer(), 50),
    ],
    ids=["rotations", "all ranges", "affine", "grey"],
)
def test_the_client_gives_the_p_values_of_the_library(client, tmp_path, scorer, count):
    detector = Detector.calibrate("tiny", scorer(), random_images(99), n_max=3)
    export_onnx(detector, tmp_path / "onnx")
    images = random_images(count, seed=3)
    expected = detector.detect(images, n=2, seed=7)
    assert len(np.unique(expected.p_values)) > 20
    p = client.p_values(tmp_path / "onnx", images, n=2, seed=7)
    near = steps_apart(p, detector, expected)
    assert count < 1000 or np.mean(near == 0) > 0.75  # an untrained network hardly tells pictures apart


def test_the_example_of_the_page_gives_the_p_values_of_detect(client, tmp_path):
    page = (CLIENT.parents[1] / "docs" / "onnx.md").read_text()
    words = re.search(r"`python -m idecode_core (export --onnx [^`]*) --out onnx/`", page)
    with pytest.raises(SystemExit) as end:
        main([*words[1].split(), "--out", str(tmp_path / "onnx")])
    assert not end.value.code
    pictures = np.concatenate([load_images(name).x[:10] for name in ("fashion-sample", "digits-sample")])
    detector = load_detector(words[1].split()[-1], "cpu")
    expected = detector.detect(pictures, n=5)
    p = client.p_values(tmp_path / "onnx", pictures)
    steps_apart(p, detector, expected)
    np.testing.assert_allclose(
        p, expected.p_values, atol=0.005
    )  # scores of familiar clothing lie close together
    np.testing.assert_array_equal(p < 0.05, expected.is_ood)
    assert 0 < expected.is_ood.sum() < 20


def test_the_client_is_short_and_needs_numpy_and_onnx_runtime_only():
    tree = ast.parse(CLIENT.read_text())
    names = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names - set(sys.stdlib_module_names) == {"numpy", "onnxruntime"}
    assert len(CLIENT.read_text().splitlines()) <= 70

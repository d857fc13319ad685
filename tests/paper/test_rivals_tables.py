"""Stored scores of rivals, the tables made of them, and the command that makes them; no data of the project is needed."""

# ruff: noqa: F811  `root` and `run` are fixtures of other files
import json
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from small import random_images
from streamlit.testing.v1 import AppTest
from test_commands import run  # noqa: F401  a fixture
from test_experiments import OOD_SETS, root, tiny_scorer  # noqa: F401  a fixture

from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files import write_json, write_npz
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.record import TrainingRecord
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import (
    About,
    Cost,
    ScoreSet,
    read_score_file,
    score_path,
    scorer_names,
    write_scores,
)
from idecode_core.folder.stored import open_by_name, open_rival, open_stored
from idecode_core.quality.score_sets import image_sets, score_test_sets
from idecode_core.quality.side_by_side import detector_on_set
from idecode_core.report.evaluations import detectors_notebook
from idecode_core.training.parts import image_split
from idecode_core.training.recipes import get_recipe
from idecode_core.transforms import Projective, Rotations, SmallAffine
from paper import score_rivals as rival_scores
from paper.experiments import possible
from paper.rivals.frozen_head import with_linear_head
from paper.rivals_table import (
    NEAR,
    contenders,
    frontier,
    leaderboard,
    learned_from_labels,
    read_costs,
    rivals,
    shared,
)

NETWORK = "cifar10-invariance"
COST = Cost(2, 1, 3.7)
LABELS = {"svhn-test": "SVHN"}


def sets(shift: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Scores of all sets; OOD ones are larger by `shift`."""
    generator = np.random.default_rng(seed)
    known = {"calibration": generator.normal(size=1600), "cifar10-test": generator.normal(size=300)}
    return known | {name: generator.normal(shift, 1, size=80) for name in OOD_SETS}


def put(
    root: Path, name: str, scores: dict[str, np.ndarray], *, labels: bool = True, identity: str = ""
) -> None:
    about, identity = (
        About(name.upper(), NETWORK, labels=labels, cost=COST),
        identity or read_settings(root / NETWORK).scorer_sha256,
    )
    for set_name, values in scores.items():
        one = ScoreSet(
            set_name,
            LABELS.get(set_name, set_name),
            set_name not in ("cifar10-test", "calibration"),
            values[:, None],
        )
        write_scores(root / "rivals", one, identity, name, about)


@pytest.fixture
def with_rivals(root: Path):
    """One rival that sees SVHN and nothing else, one that guesses; gone afterwards."""
    put(root, "sees", sets(0.0) | {"svhn-test": np.full(80, 9.0) + np.arange(80)})
    put(root, "guesses", sets(0.0, seed=1), labels=False)
    yield root
    shutil.rmtree(root / "rivals" / "scores")


def test_what_is_stored_comes_back_and_belongs_to_its_network(with_rivals) -> None:
    found = open_rival(with_rivals, "sees")
    assert found.about == About("SEES", NETWORK, labels=True, cost=COST)
    assert found.title == "SEES (invariance)"
    np.testing.assert_array_equal(
        found.calibration.score_vectors[:, 0], sets(0.0)["calibration"].astype(np.float32)
    )
    assert [one.name for one in found.ood_sets] == ["svhn-test", "cifar100-test", "places-test", "isun-test"]
    assert possible("rivals", with_rivals)
    put(with_rivals, "other", sets(1.0), identity="f" * 64)
    with pytest.raises(CheckpointError, match="other weights"):
        open_rival(with_rivals, "other")
    for words in ("{", "[]", '{"titel": "?"}', '{"cost": {"forward": 1}}'):
        path = score_path(with_rivals / "rivals", "calibration", "other")
        write_npz(path, {**np.load(path), "about": np.array(words)})
        with pytest.raises(CheckpointError, match="does not say what it is"):
            open_rival(with_rivals, "other")
    write_npz(path, {**np.load(path), "scorer": np.array("a")})
    with pytest.raises(CheckpointError, match="several scorers"):
        open_rival(with_rivals, "other")


def mean_of_scores(stored: Any, n: int) -> float:
    """The mean over OOD sets of the AUROC in percent, by scikit-learn, from the sum of the first n scores."""
    known = stored.id_set.score_vectors[:, :n].sum(axis=1)
    return 100 * np.mean(
        [
            roc_auc_score(
                np.r_[np.zeros(len(known)), np.ones(len(one))],
                np.r_[known, one.score_vectors[:, :n].sum(axis=1)],
            )
            for one in stored.ood_sets
        ]
    )


def test_the_section_begins_with_who_is_ahead_on_the_same_network(with_rivals) -> None:
    before = rivals(with_rivals).body.split("\n")[0]
    put(with_rivals, "strong", sets(6.0))
    first = rivals(with_rivals).body.split("\n")[0]
    strong = mean_of_scores(open_rival(with_rivals, "strong"), 1)
    assert f"STRONG (invariance) {strong:.1f} against" in first
    ahead, all_rivals = map(int, re.search(r"(\d+) of (\d+) rivals", first).groups())  # type: ignore[union-attr]
    before_ahead, before_all = map(int, re.search(r"(\d+) of (\d+) rivals", before).groups())  # type: ignore[union-attr]
    assert (ahead, all_rivals) == (before_ahead + 1, before_all + 1)
    row = next(line for line in rivals(with_rivals).body.split("\n") if line.startswith(f"| {NETWORK} |"))
    assert f"STRONG: {strong:.1f} (2 + 1 back passes)" in row


def test_the_front_holds_what_no_cheaper_method_is_above(with_rivals) -> None:
    for name, shift, cost in (
        ("cheap", 1.0, Cost(1, 0, 1.0)),
        ("dear", 2.0, Cost(30, 0, 30.0)),
        ("waste", 1.5, Cost(31, 0, 31.0)),
    ):
        put(with_rivals, name, sets(shift, seed=7))
        for path in (with_rivals / "rivals" / "scores" / name).glob("*.npz"):
            stored = dict(np.load(path))
            about = json.loads(str(stored["about"])) | {"cost": asdict(cost)}
            write_npz(path, {**stored, "about": np.array(json.dumps(about))})
    found = [one for one in contenders(with_rivals) if one.is_rival]
    on_front = {one.stored.name for one in frontier(found, shared(found))}
    work = {one.stored.name: one.cost.forward + 2 * one.cost.backward for one in found if one.cost}
    means = {one.stored.name: mean_of_scores(one.stored, 1) for one in found}
    expected = {a for a in means if not any(work[b] <= work[a] and means[b] > means[a] for b in means)}
    assert on_front == expected == {"cheap", "dear"}
    figure = rivals(with_rivals).figures["auroc-vs-passes.svg"]
    assert figure.count("<circle") == len(found)  # the detectors' costs are not measured here


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
    app = AppTest.from_file(str(Path(__file__).parents[2] / "pages" / "evaluate.py"), default_timeout=240)
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
        for o in [open_by_name("sees")]
    ]
    space: dict[str, Any] = {}
    for cell in json.loads(detectors_notebook([row], {"sees": 1}, "svhn-test", "sum").text)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    assert space["rows"][0].interval == row.interval


def test_costs_belong_to_the_scorer_that_was_measured(root) -> None:
    identity = read_settings(root / "cifar10-rotations").scorer_sha256
    write_json(
        root / "rivals" / "cost.json",
        {
            "cifar10-rotations": {"scorer": identity, "n": {"5": asdict(Cost(20, 0, 21.5))}},
            "cifar10-projective": {"scorer": "another", "n": {"5": asdict(Cost(5, 0, 5.5))}},
        },
    )
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


def test_rows_that_saw_imagenet_say_so_and_so_do_rivals_on_their_network(with_rivals) -> None:
    """The network of the rivals is passed off as a pretrained one; members of a merged detector count as it does."""
    assert "ImageNet**" not in leaderboard(with_rivals).body
    path = with_rivals / NETWORK / "config.json"
    config = json.loads(path.read_text())
    config["scorer"]["model"]["backbone"] = "efficientnet-lite0"
    path.write_text(json.dumps(config))
    body = leaderboard(with_rivals).body
    assert f"**Rows after ImageNet** (`{NETWORK}`, and rivals on its network)" in body
    marked = {
        row.split(" | ")[0].strip("| ") for row in body.splitlines() if "labels, after ImageNet |" in row
    }
    there = {c.title for c in contenders(with_rivals) if c.is_rival and c.network == NETWORK}
    assert marked == there | {f"iDECODe invariance, n={n}" for n in (1, 5, 20)}
    members = [{"kind": "image"}, {"own": {"model": {"backbone": "efficientnet-lite0"}}}]
    stored = open_stored(with_rivals / "cifar10-rotations")
    assert not stored.saw_imagenet
    settings = replace(stored.settings, scorer={"kind": "merged", "members": members})
    assert replace(stored, settings=settings).saw_imagenet


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
        "settings": {"model": {"backbone": "compact"}},
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
    code, _, err = run("paper", "score-sets", "rivals", "--data-root", data)
    assert code == 0, err
    there = {name for name, rival in rival_scores.RIVALS.items() if (root / rival.network).is_dir()}
    assert set(scorer_names(root / "rivals")) == there >= {"sbp", "vim", "sbp-frozen", "neighbours-rotations"}
    assert open_rival(root, "odin").about.cost.passes() == "2 + 1 back"
    assert open_rival(root, "sbp").about.cost.passes() == "1"
    assert read_costs(root)[NETWORK][5].forward == 6  # x and five variants
    assert 0 <= open_rival(root, "sbp-frozen").about.accuracy <= 1
    before = score_path(root / "rivals", "svhn-test", "vim").read_bytes()
    scored = read_score_file(score_path(root / "rivals", "svhn-test", "vim"))
    assert "nothing new" in run("paper", "score-sets", "rivals", "--data-root", data)[1]
    assert score_path(root / "rivals", "svhn-test", "vim").read_bytes() == before
    score_path(root / "rivals", "calibration", "vim").unlink()  # as after a run that was stopped
    assert "rivals: vim." in run("paper", "score-sets", "vim", "odin", "--data-root", data)[1]
    again = read_score_file(score_path(root / "rivals", "svhn-test", "vim"))
    np.testing.assert_array_equal(again.score_vectors, scored.score_vectors)

    code, _out, err = run("paper", "rival", "vim", "--out", small_world / "vim", "--data-root", data)
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
    assert run("paper", "rival", "best", "--out", small_world / "best")[0] == 2

    both = small_world / "both"  # a rival is a detector as any other, so it can be a member
    code, _out, err = run("merge", root / NETWORK, small_world / "vim", "--out", both, "--data-root", data)
    assert code == 0, err
    assert load_detector(both, "cpu").scorer.names == (NETWORK, "vim")


def test_a_rival_among_the_members_rests_on_the_training_of_its_network(tmp_path: Path) -> None:
    names = ["cifar10-rotations", "mahalanobis-rotations", "cifar10-projective@parameter_error"]
    settings = SimpleNamespace(folder=tmp_path, scorer={"names": names})
    assert rival_scores.recipes_behind(settings) == ["cifar10-rotations", "cifar10-projective"]


def test_a_network_that_learned_turn_and_class_is_asked_for_the_class_alone() -> None:
    model = tiny_scorer(Rotations("all"), "turn_and_label", 14, tuple("abcdefghij")).model.eval()
    alone, z = rival_scores.class_network(model, 10), torch.randn(5, model.backbone.out_features)
    torch.testing.assert_close(alone.head(z), model.head(z)[:, 4:])
    assert rival_scores.class_network(alone, 10) is alone
    with torch.no_grad():
        x = torch.rand(2, 3, 32, 32)
        torch.testing.assert_close(alone.encode(x), model.encode(x))


def test_rivals_on_two_networks_are_merged_as_members_of_a_detector_are(with_rivals) -> None:
    put(with_rivals, "first", sets(1.0, seed=2))
    put(with_rivals, "second", sets(1.0, seed=3))
    held_out = [np.arange(1600), np.arange(800, 2400)]  # 800 to 1599 were held out by both
    rival_scores.merge_rivals(with_rivals, "both", ("first", "second"), held_out)
    merged = open_rival(with_rivals, "both")
    expected = np.zeros(80)
    for seed, ranking in ((2, slice(800)), (3, slice(800, 1600))):
        scores = {name: values.astype(np.float32) for name, values in sets(1.0, seed=seed).items()}
        reference = np.sort(scores["calibration"][ranking])
        larger = 800 - np.searchsorted(reference, scores["svhn-test"], side="left")
        expected -= np.log((larger + 1) / 801)
    np.testing.assert_allclose(merged.sets["svhn-test"].score_vectors[:, 0], expected, rtol=1e-6)
    assert merged.calibration.k == 800
    assert merged.about.cost == Cost(4, 2, 7.4)


def test_where_both_networks_held_out_the_same_points_a_quarter_ranks_and_the_others_calibrate(
    with_rivals,
) -> None:
    put(with_rivals, "first", sets(1.0, seed=2))
    put(with_rivals, "second", sets(1.0, seed=3))
    rival_scores.merge_rivals(with_rivals, "same", ("first", "second"), [np.arange(1600)] * 2)
    merged, *members = (open_rival(with_rivals, name) for name in ("same", "first", "second"))
    assert len(merged.sets["calibration"]) == 1200
    scores = [member.sets["calibration"].score_vectors[:, 0] for member in members]
    ranks = np.setdiff1d(np.arange(1600), np.random.default_rng([0, 1600]).permutation(1600)[400:])
    expected = sum(
        -np.log((1 + (score[ranks] >= score[:, None]).sum(axis=1)) / 401) for score in scores
    )  # of all 1,600; those that do not rank calibrate
    np.testing.assert_allclose(
        merged.sets["calibration"].score_vectors[:, 0], np.delete(expected, ranks), rtol=1e-5
    )


def test_what_training_took_is_added_up_and_shared_trainings_count_once(with_rivals) -> None:
    path = with_rivals / "rivals" / "cost.json"
    costs = {
        name: {
            "scorer": read_settings(with_rivals / name).scorer_sha256,
            "n": {},
            "training_pflop": training,
        }
        for name, training in {
            "cifar10-rotations": {"a": 1.25},
            "cifar10-projective": {"b": 0.5, "a": 1.25},
        }.items()
    }
    write_json(path, costs)
    text = rivals(with_rivals).body
    assert re.search(r"\| cifar10-projective \| b \+ a \| 1.75 \|", text)
    assert "All of these trainings together: 1.75 PFLOP." in text

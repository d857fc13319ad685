"""The merged detector: its formula by hand, its bound by simulation, and how it is built and chosen."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_training import ROTATIONS, tiny_images

from idecode_core.calibration import Calibration
from idecode_core.checkpoint import load_detector, read_config, save_detector
from idecode_core.data import ImageSet
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.evaluation import ScoreSet, read_scores, write_scores
from idecode_core.experiments.development import house_numbers, other_points
from idecode_core.experiments.merge import Member, build_merged, shared_split
from idecode_core.experiments.merge_choice import try_weights, weight_grid
from idecode_core.experiments.scores import pick, score_points, score_test_sets, sets_to_score
from idecode_core.files import write_npz
from idecode_core.merged import MergedScorer, merge_vectors
from idecode_core.models import ModelConfig
from idecode_core.recipes import RECIPES, Recipe
from idecode_core.training import train
from idecode_core.training_finish import finish
from idecode_core.transforms import SmallAffine


def test_the_merged_score_is_the_weighted_sum_of_minus_log_ranks() -> None:
    references = [np.array([[1.0], [2.0], [3.0]]), np.array([[10.0, 20.0]])]
    vectors = [np.array([[2.5, 0.0]]), np.array([[15.0, 99.0]])]
    # member 1: one of three is >= 2.5, all are >= 0; member 2: one of two is >= 15, none is >= 99
    by_hand = [[-np.log(2 / 4) - 0.5 * np.log(2 / 3), -np.log(4 / 4) - 0.5 * np.log(1 / 3)]]
    np.testing.assert_allclose(merge_vectors(vectors, references, [1.0, 0.5]), by_hand)


@pytest.mark.parametrize("apart", [True, False])
def test_the_merged_p_value_keeps_the_bound_whatever_the_members_dependence(apart: bool) -> None:
    """With ranking points apart from the calibration points; 3,000 repeats, error level 1e-4 a test.

    Members share most of their noise, and each point's draws share the point.
    """
    generator = np.random.default_rng(5)
    epsilon, k, flagged, repeats = 0.2, 39, 0, 3000
    for _ in range(repeats):
        own = generator.normal(size=(k + 1 + 20, 1))
        first = own + 0.3 * generator.normal(size=(k + 21, 3))
        second = np.exp(own + (2.0 if apart else 0.1) * generator.normal(size=(k + 21, 3)))
        references = [first[k + 1 :], second[k + 1 :]]
        merged = merge_vectors([first[: k + 1], second[: k + 1]], references, [1.0, 2.0])
        p = Calibration(merged[:k]).p_values(merged[k:])
        flagged += p[0] < epsilon
    assert stats.binomtest(int(flagged), repeats, epsilon, alternative="greater").pvalue > 1e-4


TINY = ModelConfig("compact", outputs=2, widths=(4, 4, 4))
CLASSIFIER = Recipe("tiny-labels", "tiny", TINY, SmallAffine(), "invariance", "label", 1, size=16, batch=16)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiny detectors that share a split, and their data, as `train` leaves them."""
    folder = tmp_path_factory.mktemp("merged")
    images = tiny_images()
    write_npz(folder / "tiny-train.npz", {"x": images.x, "y": images.y})
    for recipe in (ROTATIONS, CLASSIFIER):
        train(recipe, folder / "runs" / recipe.name, images=images, epochs=1)
        finish(recipe, folder / "runs" / recipe.name, folder / recipe.name, images=images, data_root=folder)
    return folder


@pytest.fixture
def members(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[Member]:
    monkeypatch.setitem(RECIPES, "tiny", ROTATIONS)
    monkeypatch.setitem(RECIPES, "tiny-labels", CLASSIFIER)
    return [
        Member(root / "tiny", "", 1.0),
        Member.parse(str(root / "tiny-labels@label_cross_entropy"), 2.0),
        Member.parse(str(root / "tiny-labels"), 0.5),
    ]


def test_a_merged_detector_is_calibrated_on_the_held_out_points_and_loads_again(
    root: Path, members: list[Member], tmp_path: Path
) -> None:
    built = build_merged(members, data_root=root, n_max=3)
    split = shared_split([member.folder for member in members])
    images = tiny_images()
    assert isinstance(built.scorer, MergedScorer)
    assert [reference.shape for reference in built.scorer.references] == [(len(split.validation), 10)] * 3
    direct = built.scorer.score(images.x[split.calibration], n=3, seed=0).score_vectors
    np.testing.assert_allclose(built.calibration.score_vectors, direct, atol=1e-9)
    save_detector(built, tmp_path / "merged")
    again = load_detector(tmp_path / "merged")
    np.testing.assert_allclose(
        again.score_vectors(images.x[:4], n=3), built.score_vectors(images.x[:4], n=3), atol=1e-9
    )
    applied = [variant.applied for variant in again.variants(images.x[0], n=1)]
    assert applied[0].startswith("tiny: rotated by")
    assert applied[-1].startswith(
        "tiny-labels: "
    )  # which base NCM reads the answer is not part of what was applied
    assert not any("@" in text for text in applied)


def test_stored_scores_of_members_give_the_merged_scores(
    root: Path, members: list[Member], tmp_path: Path
) -> None:
    built = build_merged(members, data_root=root, n_max=3)
    images = ImageSet("some-test", tiny_images().x[:5], np.zeros(5, np.int64))
    direct = built.score_vectors(images.x, n=20)
    for member in members[::2]:  # the detectors' own base NCMs, as their folders store them
        identity = str(read_config(member.folder)["scorer_sha256"])
        vectors = member.scorer().score(images.x, n=20, seed=0).score_vectors
        write_scores(member.folder, ScoreSet("some-test", "some", True, vectors.astype(np.float32)), identity)
    folders = [member.folder for member in members]
    from_stored = score_points(built.scorer, images, 20, members=folders, name="some-test")
    # ranks can only move where float32 rounding crosses a reference score
    assert np.mean(np.isclose(from_stored, direct)) > 0.95


def test_members_with_different_splits_are_refused(root: Path, tmp_path: Path) -> None:
    other = Recipe(**{**vars(CLASSIFIER), "seed": 1})
    train(other, tmp_path / "run", images=tiny_images(), epochs=1)
    with pytest.raises(CheckpointError, match="same dataset and seed"):
        shared_split([root / "tiny", tmp_path / "run"])


def test_a_member_with_an_unknown_base_ncm_is_refused() -> None:
    with pytest.raises(SettingError, match="label_cross_entropy"):
        Member.parse("checkpoints/cifar10-invariance@magic")


def test_the_grid_holds_each_choice_of_weights_once_up_to_a_factor() -> None:
    grid = weight_grid(2)
    ratios = {(a / max(a, b), b / max(a, b)) for a, b in grid}
    assert len(ratios) == len(grid)
    assert {(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 1.0), (0.25, 1.0)} <= ratios


def test_the_choice_prefers_the_member_that_sees_the_difference() -> None:
    generator = np.random.default_rng(0)

    def member(shift: float) -> dict[str, np.ndarray]:
        return {"validation": generator.normal(size=(200, 10)), "far": generator.normal(shift, size=(80, 10))}

    best, *_, worst = try_weights([member(1.5), member(0.0)], weight_grid(2))
    assert best.weights[0] > best.weights[1]
    assert worst.weights == (0.0, 2.0)
    assert best.mean > 0.9
    assert worst.mean == pytest.approx(0.5, abs=0.15)


def test_scoring_test_sets_goes_on_where_it_was_stopped(root: Path, members: list[Member]) -> None:
    images = tiny_images()
    for name in ("tiny-test", "cifar10-test"):
        write_npz(root / f"{name}.npz", {"x": images.x[:12], "y": images.y[:12]})
    settings = {"data_root": root, "id_points": 10, "ood_points": 6, "draws": 20}
    first = score_test_sets(root / "tiny", "tiny", **settings)
    assert [(one.name, len(one)) for one in first] == [("tiny-test", 10), ("cifar10-test", 6)]
    reports: list[str] = []
    path = root / "tiny" / "scores" / "cifar10-test.npz"
    path.unlink()
    again = score_test_sets(root / "tiny", "tiny", report=lambda name, *_: reports.append(name), **settings)
    assert set(reports) == {"cifar10-test"}  # the stored set was not scored again
    np.testing.assert_array_equal(again[1].score_vectors, first[1].score_vectors)
    stored = read_scores(root / "tiny", str(read_config(root / "tiny")["scorer_sha256"]))
    assert [one.name for one in stored if one.name != "some-test"] == ["tiny-test", "cifar10-test"]


def test_picked_points_are_the_same_every_time_and_all_of_a_small_set() -> None:
    images = tiny_images()
    np.testing.assert_array_equal(pick(images, 9).x, pick(images, 9).x)
    assert len(pick(images, 9)) == 9
    assert pick(images, 100) is images


@pytest.mark.parametrize("size", [1264, 2000])
def test_development_points_are_never_in_a_table(size: int) -> None:
    images = ImageSet("numbered-test", np.zeros((size, 1, 1, 3), np.uint8), np.arange(size))
    tables, development = pick(images, 1000), other_points(images)
    assert not set(tables.y.tolist()) & set(development.y.tolist())
    assert len(development) == 300
    assert len(tables) == min(1000, size - 300)


def test_the_id_test_set_comes_first_and_is_not_among_the_ood_sets() -> None:
    for dataset in ("cifar10", "svhn", "fashion"):
        names = [(one.name, one.is_ood) for one in sets_to_score(dataset)]
        assert names[0] == (f"{dataset}-test", False)
        assert all(ood for _, ood in names[1:])
        assert f"{dataset}-test" not in dict(names[1:])


def test_house_numbers_are_colour_pictures_of_the_model_size() -> None:
    digits = ImageSet("digits", np.full((3, 28, 28, 3), 255, np.uint8), np.arange(3))
    drawn = house_numbers(digits, generator=np.random.default_rng(0))
    assert drawn.x.shape == (3, 32, 32, 3)
    assert drawn.x.std() > 5

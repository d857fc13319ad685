"""The merged detector: its formula by hand, its bound by simulation, and how it is built and chosen."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from scipy import stats
from test_loop import ROTATIONS, tiny_images, tiny_task

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.errors import SettingError
from idecode_core.files import write_npz
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import ModelConfig
from idecode_core.scorers.distances import principal
from idecode_core.scorers.merged import MergedScorer, merge_vectors
from idecode_core.training.finish import finish
from idecode_core.training.loop import train
from idecode_core.training.merge import Member, build_merged
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.recipes import RECIPES
from idecode_core.training.tasks import Task
from idecode_core.transforms import SmallAffine


def test_the_merged_score_is_the_weighted_sum_of_minus_log_ranks() -> None:
    references = [np.array([[1.0], [2.0], [3.0]]), np.array([[10.0, 20.0]])]
    vectors = [np.array([[2.5, 0.0]]), np.array([[15.0, 99.0]])]
    # member 1: one of three is >= 2.5, all are >= 0; member 2: one of two is >= 15, none is >= 99
    by_hand = [[-np.log(2 / 4) - 0.5 * np.log(2 / 3), -np.log(4 / 4) - 0.5 * np.log(1 / 3)]]
    np.testing.assert_allclose(merge_vectors(vectors, references, [1.0, 0.5]), by_hand)


@pytest.mark.parametrize("apart", [True, False])
def test_the_merged_p_value_keeps_the_bound_whatever_the_members_dependence(apart: bool) -> None:
    """With ranking points apart from the calibration points; 3,000 repeats, error level 1e-4 per test.

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
        p = judge(Calibration(merged[:k]), merged[k:]).p_values
        flagged += p[0] < epsilon
    assert stats.binomtest(int(flagged), repeats, epsilon, alternative="greater").pvalue > 1e-4


TINY = ModelConfig("compact", outputs=2, widths=(4, 4, 4))
CLASSIFIER = Recipe(
    "tiny-labels", "tiny", Pictures(TINY, "label", size=16), SmallAffine(), "invariance", epochs=1, batch=16
)


def make_detector(task: Task, run: Path, out: Path) -> None:
    train(task, run, epochs=1)
    finish(task, run, out)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiny detectors that share a split, and their data, as `train` leaves them."""
    folder = tmp_path_factory.mktemp("merged")
    images = tiny_images()
    write_npz(folder / "tiny-train.npz", {"x": images.x, "y": images.y})
    for recipe in (ROTATIONS, CLASSIFIER):
        make_detector(tiny_task(recipe), folder / "runs" / recipe.name, folder / recipe.name)
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


def test_energy_asks_a_members_network_for_the_class_of_x_alone_once_for_all_draws(
    root: Path, members: list[Member], tmp_path: Path
) -> None:
    chosen = [members[0], Member.parse(str(root / "tiny-labels@energy")), members[2]]
    built = build_merged(chosen, data_root=root, n_max=3)
    assert isinstance(built.scorer, MergedScorer)
    images = tiny_images().x[:4]
    once, plain = built.scorer.members[1], load_detector(root / "tiny-labels").scorer
    assert isinstance(plain, ImageScorer)
    asked: list[int] = []
    once.model.backbone.register_forward_hook(lambda *call: asked.append(len(call[2])))  # type: ignore[attr-defined]
    found = once.score(images, n=3, seed=0).score_vectors
    assert sum(asked) == len(images)
    logits = plain.logits(images).double().numpy()
    np.testing.assert_allclose(
        found, np.repeat(-np.log(np.exp(logits).sum(axis=1))[:, None], 3, axis=1), rtol=1e-5
    )
    save_detector(built, tmp_path / "merged")
    again = load_detector(tmp_path / "merged")
    np.testing.assert_allclose(again.score_vectors(images, n=3), built.score_vectors(images, n=3), atol=1e-9)
    with pytest.raises(SettingError, match="names classes and nothing else"):
        Member.parse(str(root / "tiny@energy")).scorer()


def test_vim_asks_a_members_network_about_x_alone_and_learns_from_the_proper_training_set(
    root: Path, members: list[Member], tmp_path: Path
) -> None:
    """Computed by hand in NumPy, in double precision, from the features that the network gives."""
    built = build_merged([members[2], Member.parse(str(root / "tiny-labels@vim"))], data_root=root, n_max=3)
    images, split = tiny_images(), read_split(root / "tiny-labels")
    plain = load_detector(root / "tiny-labels").scorer
    assert isinstance(plain, ImageScorer)
    assert isinstance(built.scorer, MergedScorer)

    def features(x: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return plain.model.encode(torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255).double().numpy()

    head = plain.model.head
    assert isinstance(head, torch.nn.Linear)
    w, b = head.weight.detach().double().numpy(), head.bias.detach().double().numpy()
    origin = -np.linalg.pinv(w) @ b
    known = features(images.x[split.proper])
    values, vectors = np.linalg.eigh((known - origin).T @ (known - origin))
    outside = vectors[:, np.argsort(values)][:, : known.shape[1] - principal(known.shape[1])]
    alpha = (known @ w.T + b).max(axis=1).mean() / np.linalg.norm((known - origin) @ outside, axis=1).mean()
    z = features(images.x[:4])
    by_hand = alpha * np.linalg.norm((z - origin) @ outside, axis=1) - np.log(np.exp(z @ w.T + b).sum(axis=1))
    vim = built.scorer.members[1]
    found = vim.score(images.x[:4], n=3, seed=0).score_vectors
    np.testing.assert_allclose(found, np.repeat(by_hand[:, None], 3, axis=1), rtol=5e-3, atol=5e-3)  # halves
    save_detector(built, tmp_path / "merged")
    again = load_detector(tmp_path / "merged")
    np.testing.assert_allclose(
        again.score_vectors(images.x[:4], n=3), built.score_vectors(images.x[:4], n=3), atol=1e-9
    )
    with safe_open(tmp_path / "merged" / "model.safetensors", framework="np") as file:
        assert file.get_slice("member1.residual").get_dtype() == "F16"
    with pytest.raises(SettingError, match="@vim asks"):
        Member.parse(str(root / "tiny@vim")).scorer()

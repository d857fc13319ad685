"""Members become a merged detector, calibrated on what none of them learned from, or are refused in one sentence."""

# ruff: noqa: F811  `members` and `root` are fixtures of another file

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from scipy.spatial.distance import mahalanobis
from sklearn.covariance import LedoitWolf
from test_loop import tiny_images, tiny_task
from test_merged import CLASSIFIER, make_detector, members, root  # noqa: F401  fixtures
from test_tasks_audio import small_task

from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files import write_npz
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.report.card import card
from idecode_core.scorers.distances import TurnedMahalanobisOnce
from idecode_core.scorers.merged import MergedScorer
from idecode_core.training.merge import Member, build_merged, shared_split
from idecode_core.training.recipes import RECIPES


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
    shown = [(variant.member, variant.applied) for variant in again.inspect(images.x[0], n=1).variants]
    assert shown[0][0] == "tiny"
    assert shown[0][1].startswith("rotated by")
    assert shown[-1][0] == "tiny-labels"  # which base NCM reads the answer is not part of what was applied
    assert not any("@" in text for one in shown for text in one)
    assert (again.dataset, again.summary) == ("tiny", "tiny")  # who it is comes from its members
    text = card(tmp_path / "merged")
    assert "tiny-labels@label_cross_entropy (weight 2)" in text
    assert "How it was trained" not in text


def test_members_of_one_folder_share_one_pass(
    root: Path, members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[tuple[str, ...]] = []
    score_under = ImageScorer.score_under

    def counted(self: ImageScorer, base_ncms: Sequence[str], *arguments: Any, **settings: Any) -> Any:
        passes.append(tuple(base_ncms))
        return score_under(self, base_ncms, *arguments, **settings)

    monkeypatch.setattr(ImageScorer, "score_under", counted)
    built = build_merged(members, data_root=root, n_max=2)
    both = ("label_cross_entropy", "invariance")
    assert sorted(passes) == sorted([("cross_entropy",), both] * 2)  # references, then calibration points
    alone = [member.scorer().score(tiny_images().x[:3], n=2, seed=0).score_vectors for member in members]
    np.testing.assert_allclose(
        built.score_vectors(tiny_images().x[:3], n=2), built.scorer.merge(alone), atol=1e-9
    )


def test_a_scorer_that_has_no_base_ncm_can_be_a_member_as_it_is(
    root: Path, members: list[Member], tmp_path: Path
) -> None:
    """A merged detector among the members, with the training record of those that it was merged from."""
    inner = build_merged(members[:2], data_root=root, n_max=2)
    copies = {name: partial(shutil.copy, root / "tiny" / name) for name in ("training.json", "split.npz")}
    save_detector(inner, tmp_path / "inner", beside=copies)
    outer = build_merged([Member(tmp_path / "inner", "", 1.0), members[2]], data_root=root, n_max=2)
    assert outer.calibration.k == inner.calibration.k
    with pytest.raises(SettingError, match="without a base NCM"):
        build_merged([Member.parse(f"{tmp_path / 'inner'}@invariance")], data_root=root)


def test_distance_is_scipys_mahalanobis_of_each_quarter_turn_and_shares_its_networks_weights(
    root: Path, members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By SciPy and scikit-learn, turn by turn, from pictures that NumPy has turned and mirrored."""
    folder = root / "tiny-labels"
    chosen = [Member.parse(str(folder)), Member.parse(f"{folder}@distance")]
    built = build_merged(chosen, data_root=root, n_max=2)
    assert isinstance(built.scorer, MergedScorer)
    images, split = tiny_images(), read_split(folder)
    network, distance = built.scorer.members
    assert isinstance(network, ImageScorer)

    def features(x: np.ndarray) -> np.ndarray:
        points = [network.prepare(picture, 0) for picture in network.decode(np.ascontiguousarray(x))]
        with torch.no_grad():
            return network.model.encode(network.tensor(points)).double().numpy()

    def unit(z: np.ndarray) -> np.ndarray:
        return z / np.linalg.norm(z, axis=1, keepdims=True)

    new = images.x[split.calibration][:5]
    labels = images.y[split.proper]
    labelled = TurnedMahalanobisOnce.fit(network, images.x[split.proper], torch.from_numpy(labels))
    for scorer, y in (
        (labelled, labels),
        (distance, np.zeros_like(labels)),
    ):  # "tiny" has no names of classes
        expected = np.zeros(5)
        for k in range(4):
            known = unit(features(np.rot90(images.x[split.proper], k, axes=(1, 2))))
            mirrored = features(np.rot90(new[:, :, ::-1], k, axes=(1, 2)))
            shown = unit(features(np.rot90(new, k, axes=(1, 2))) + mirrored)
            means = {c: known[y == c].mean(axis=0) for c in np.unique(y)}
            spread = known - np.stack([means[c] for c in y])
            precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(spread).covariance_)
            expected += [min(mahalanobis(z, mean, precision) ** 2 for mean in means.values()) for z in shown]
        got = scorer.score(new, n=2, seed=0).score_vectors
        np.testing.assert_allclose(got, np.stack([expected, expected], axis=1), rtol=0.02)
        assert len(set(np.round(expected, 6))) == 5

    monkeypatch.setattr("idecode_core.folder.detector.LARGE", 100)
    save_detector(built, tmp_path / "merged")
    with safe_open(tmp_path / "merged" / "model.safetensors", framework="pt") as file:
        stored = {name: file.get_tensor(name).numel() for name in file.keys()}  # noqa: SIM118  it is no dictionary
    assert any(name.startswith("member0.") and numbers >= 100 for name, numbers in stored.items())
    assert not any(name.startswith("member1.model.") and numbers >= 100 for name, numbers in stored.items())
    again = load_detector(tmp_path / "merged", "cpu")
    np.testing.assert_allclose(again.score_vectors(new, n=2), built.score_vectors(new, n=2), atol=1e-9)
    assert [term.name for term in again.inspect(new[0], n=1).terms[0]] == [
        "tiny-labels",
        "tiny-labels, distance",
    ]


def test_sounds_are_merged_too_ranked_among_their_training_clips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = small_task()
    second = small_task(recipe=replace(first.recipe, name="other", base_ncm="invariance"))
    for task in (first, second):
        make_detector(task, tmp_path / "runs" / task.recipe.name, tmp_path / task.recipe.name)
        monkeypatch.setitem(RECIPES, task.recipe.name, task.recipe)
    monkeypatch.setattr("idecode_core.training.merge.load_parts", lambda recipe, root: first.parts)
    built = build_merged(
        [Member.parse(str(tmp_path / "small@kl_divergence")), Member.parse(str(tmp_path / "other"))], n_max=2
    )
    assert (built.scorer.modality, built.dataset, built.calibration.k) == ("audio", "spokendigits", 2)
    assert isinstance(built.scorer, MergedScorer)
    assert [len(reference) for reference in built.scorer.references] == [14, 14]
    save_detector(built, tmp_path / "merged")
    clip = first.parts.test.clips[0]
    again = load_detector(tmp_path / "merged", "cpu")
    np.testing.assert_allclose(again.score_vectors([clip], n=2), built.score_vectors([clip], n=2), atol=1e-9)
    text = card(tmp_path / "merged")
    assert "- small@kl_divergence (weight 1): Log-mel blocks" in text
    assert "among the reference points (the proper training set)" in text
    with pytest.raises(SettingError, match="no network that looks at pictures"):
        Member.parse(str(tmp_path / "small@distance")).scorer()


def test_members_that_drew_their_own_calibration_points_are_calibrated_on_those_that_both_hold_out(
    root: Path, members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(CLASSIFIER, seed=7, shows=replace(CLASSIFIER.shows, split_of=str(root / "tiny")))
    monkeypatch.setitem(RECIPES, "tiny-labels", other)
    make_detector(tiny_task(other), tmp_path / "run", tmp_path / "own-draw")
    folders = [root / "tiny", tmp_path / "own-draw"]
    first, second = (read_split(folder) for folder in folders)
    assert set(first.calibration) != set(second.calibration)
    built = build_merged([Member(folder, "", 1.0) for folder in folders], data_root=root, n_max=2)
    both = np.array(sorted(set(first.calibration) & set(second.calibration)))
    np.testing.assert_allclose(
        built.calibration.score_vectors,
        built.scorer.score(tiny_images().x[both], n=2, seed=0).score_vectors,
        atol=1e-9,
    )
    assert isinstance(built.scorer, MergedScorer)
    left = (
        len(first.validation) + len(first.calibration) - len(both)
    )  # nobody learned from these, and they do not calibrate
    assert [len(reference) for reference in built.scorer.references] == [left, left]
    held_out = np.union1d(first.validation, first.calibration)
    rows = np.setdiff1d(held_out, both)  # in their order, and none of those that calibrate
    for folder, reference in zip(folders, built.scorer.references, strict=True):
        own = load_detector(folder).score_vectors(tiny_images().x[rows], n=reference.shape[1])
        np.testing.assert_allclose(reference, own, atol=1e-5)


def test_members_with_different_splits_are_refused(root: Path, tmp_path: Path) -> None:
    make_detector(tiny_task(replace(CLASSIFIER, seed=1)), tmp_path / "run", tmp_path / "seed")
    with pytest.raises(CheckpointError, match="same dataset and seed"):
        shared_split([root / "tiny", tmp_path / "seed"])
    make_detector(tiny_task(replace(CLASSIFIER, dataset="twin")), tmp_path / "twin-run", tmp_path / "twin")
    with pytest.raises(CheckpointError, match="same dataset and seed"):  # as many points, but other ones
        shared_split([root / "tiny", tmp_path / "twin"])


def test_members_whose_training_is_unknown_are_refused_in_one_sentence(root: Path, tmp_path: Path) -> None:
    save_detector(load_detector(root / "tiny", "cpu"), tmp_path / "own")  # as `calibrate` leaves one
    with pytest.raises(
        CheckpointError, match=r"own cannot be merged: expected training\.json and split\.npz"
    ):
        build_merged([Member.parse(str(tmp_path / "own"))], data_root=root)


def test_other_data_than_the_members_were_trained_on_are_refused(
    root: Path, members: list[Member], tmp_path: Path
) -> None:
    images = tiny_images(60)
    write_npz(tmp_path / "tiny-train.npz", {"x": images.x, "y": images.y})
    with pytest.raises(CheckpointError, match="expected 64 points in its split, got 60"):
        build_merged(members, data_root=tmp_path)


def test_a_member_with_an_unknown_base_ncm_is_refused() -> None:
    with pytest.raises(SettingError, match="label_cross_entropy"):
        Member.parse("checkpoints/cifar10-invariance@magic")

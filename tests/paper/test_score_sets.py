"""Scoring test sets once, pictures and sounds alike: which points, what is stored, and what is used again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import random_images, read_scores, small_scorer
from test_audio_scorer import make_scorer, sounds

from idecode_core.detector import Detector
from idecode_core.files import write_npz
from idecode_core.folder.detector import save_detector
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import (
    CALIBRATION,
    SBP,
    About,
    ScoreSet,
    open_scores,
    write_scores,
)
from idecode_core.image.sets import ImageSet
from idecode_core.quality.score_sets import (
    DEVELOPMENT,
    NO_NCM,
    SAMPLES,
    SetToScore,
    image_set_names,
    image_sets,
    label,
    pick,
    random_order,
    score_test_sets,
    score_under,
)
from idecode_core.scorers.merged import MergedScorer
from idecode_core.scorers.sound_distance import SoundDistance
from idecode_core.transforms import Rotations, SmallAffine
from research.development import other_points

ABLATIONS = ("invariance", "kl_divergence", "argmax_disagreement", "label_cross_entropy", "soft_disagreement")


def numbered(size: int, name: str = "own-test") -> ImageSet:
    return ImageSet(name, np.zeros((size, 1, 1, 3), np.uint8), np.arange(size))


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_development_points_are_never_in_a_table_and_all_others_may_be(size: int, count: int) -> None:
    images = numbered(size)
    held_back = set(random_order(images)[DEVELOPMENT].tolist())
    chosen = pick(images, count).y.tolist()
    assert not held_back & set(chosen)
    assert len(chosen) == len(set(chosen)) == min(count, size - len(held_back))
    assert chosen == sorted(chosen) == pick(images, count).y.tolist()


@pytest.mark.parametrize("size", [1000, 1264, 2000])
def test_points_for_choosing_and_points_for_tables_are_apart(size: int) -> None:
    """Also where as many points are asked for as there are."""
    tables, development = pick(numbered(size), 1000), other_points(numbered(size))
    assert not set(tables.y.tolist()) & set(development.y.tolist())
    assert len(development) == 300


def test_the_points_behind_the_published_numbers_stay_the_same() -> None:
    """Sizes of the stored sets, and of the larger ones the points, as they were chosen when they were scored."""
    for size, count, expected in (
        (10_000, 2000, 2000),
        (5000, 1000, 1000),
        (2700, 1000, 1000),
        (1264, 1000, 964),
    ):
        order = random_order(numbered(size))
        published = np.concatenate([order[:400], order[700:]])[:count]
        assert len(published) == expected
        np.testing.assert_array_equal(pick(numbered(size), count).y, np.sort(published))
    for name, size in zip(SAMPLES, (500, 100, 200), strict=True):
        np.testing.assert_array_equal(pick(numbered(size, name), 1000).y, np.arange(size))


def test_the_id_test_set_comes_first_and_is_not_among_the_ood_sets() -> None:
    for dataset in ("cifar10", "svhn", "fashion"):
        known, *outside = image_set_names(dataset)
        assert known == f"{dataset}-test"
        assert outside
        assert known not in outside


def test_sets_have_names_for_readers() -> None:
    names = (
        "cifar100-test",
        "digits-sample",
        "esc50-urban",
        "fsdnoisy18k-set2",
        "plucked-string",
        "tiny-test",
    )
    expected = [
        "CIFAR-100",
        "Handwritten digits",
        "ESC-50 urban",
        "FSDnoisy18k set2",
        "plucked string",
        "tiny",
    ]
    assert [label(name) for name in names] == expected


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    for seed, name in enumerate(("tiny-test", "cifar10-test")):
        x = random_images(12, seed=seed)
        write_npz(tmp_path / "data" / f"{name}.npz", {"x": x, "y": np.zeros(12, np.int64)})
    return tmp_path / "data"


def identity(folder: Path) -> str:
    return read_settings(folder).scorer_sha256


def save(folder: Path, scorer, points, seed: int = 0) -> Path:
    save_detector(Detector.calibrate(folder.name, scorer, points, n_max=2, seed=seed), folder)
    return folder


def test_scoring_goes_on_where_it_was_stopped(tmp_path: Path, data_root: Path) -> None:
    folder = save(tmp_path / "tiny", small_scorer(), random_images(4), seed=5)
    reports: list[str] = []

    def score() -> list[str]:
        sets = image_sets("tiny", data_root, id_points=10, ood_points=6)
        return score_test_sets(folder, sets, draws=20, report=lambda name, *_: reports.append(name))

    assert score() == ["tiny-test", "cifar10-test"]
    first = read_scores(folder, identity(folder))
    assert [(one.name, len(one), one.is_ood) for one in first] == [
        ("tiny-test", 10, False),
        ("cifar10-test", 6, True),
    ]
    expected = small_scorer().score(
        pick(ImageSet("tiny-test", random_images(12), np.arange(12)), 10).x, n=20, seed=5
    )
    np.testing.assert_allclose(first[0].score_vectors, expected.score_vectors, rtol=1e-4)
    (folder / "scores" / "cifar10-test.npz").unlink()
    reports.clear()
    score()
    assert set(reports) == {"cifar10-test"}  # the stored set was not scored again
    np.testing.assert_array_equal(
        read_scores(folder, identity(folder))[1].score_vectors, first[1].score_vectors
    )


def count_passes(monkeypatch: pytest.MonkeyPatch, kind: type) -> list[tuple[str, ...]]:
    """The base NCMs of each pass through the model that `score_under` makes."""
    passes: list[tuple[str, ...]] = []
    whole = kind.score_under
    monkeypatch.setattr(
        kind,
        "score_under",
        lambda self, ncms, *a, **k: (passes.append(tuple(ncms)), whole(self, ncms, *a, **k))[1],
    )
    return passes


@pytest.mark.parametrize("modality", ["image", "audio"])
def test_one_pass_per_set_stores_own_scores_sbp_and_other_base_ncms(
    modality: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if modality == "image":
        scorer = replace(small_scorer(SmallAffine(), "invariance"), classes=tuple("abcd"))
        parts = [random_images(5, seed=seed) for seed in range(3)]
    else:
        scorer = make_scorer("invariance")
        parts = [sounds((1.0,) * 5, seed=seed) for seed in range(3)]
    folder = save(tmp_path / modality, scorer, parts[2])
    sets = [
        SetToScore("own-test", False, parts[0]),
        SetToScore("other-test", True, parts[1]),
        SetToScore(CALIBRATION, False, parts[2]),
    ]
    passes = count_passes(monkeypatch, type(scorer))
    assert score_test_sets(folder, sets, draws=40, ablations=ABLATIONS) == ["own-test", "other-test"]
    assert len(passes) == 3
    score_test_sets(folder, sets, draws=40, ablations=ABLATIONS)
    assert len(passes) == 3  # everything was there
    stored = {one.name: one for one in read_scores(folder, identity(folder))}
    assert set(stored) == {"own-test", "other-test"}  # the calibration set is no test set
    kl = open_scores(folder, "kl_divergence", identity(folder))
    softmax = open_scores(folder, SBP, identity(folder))
    assert kl.about == About("kl_divergence", base_ncm="kl_divergence", labels=True)
    assert [one.is_ood for one in (softmax.id_set, *softmax.ood_sets)] == [False, True]
    listed = read_settings(folder).files
    assert {f"scores/{name}/{CALIBRATION}.npz" for name in (SBP, "kl_divergence")} <= set(listed)
    for one in sets:
        alone = replace(scorer, base_ncm="kl_divergence").score(one.points, n=20, seed=0).score_vectors
        np.testing.assert_allclose(kl.sets[one.name].score_vectors, alone, rtol=1e-3, atol=1e-6)
        shares = torch.softmax(scorer.logits(one.points), dim=1).max(dim=1).values.numpy()
        np.testing.assert_allclose(softmax.once(one.name), 1 - shares, atol=1e-6)
        if one.name in stored:
            own = scorer.score(one.points, n=40, seed=0).score_vectors
            np.testing.assert_allclose(stored[one.name].score_vectors, own, rtol=1e-3, atol=1e-6)


def test_scores_of_another_scorer_are_replaced(tmp_path: Path, data_root: Path) -> None:
    folder = save(tmp_path / "tiny", small_scorer(), random_images(4))
    wrong = ScoreSet("tiny-test", "tiny", False, np.ones((12, 20), np.float32))
    write_scores(folder, wrong, "another")
    score_test_sets(folder, image_sets("tiny", data_root), draws=20)
    assert read_scores(folder, identity(folder))[0].score_vectors.std() > 0


def test_stored_scores_of_members_give_the_merged_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = (small_scorer(Rotations("all"), seed=1), small_scorer(Rotations(), seed=2))
    references = tuple(
        member.score(random_images(30, seed=9), n=2, seed=0).score_vectors for member in members
    )
    merged = MergedScorer(members, ("first", "second"), references, (1.0, 2.0))
    one = SetToScore("some-test", True, random_images(5, seed=3))
    direct = merged.score(one.points, n=20, seed=0).score_vectors
    folder = save(tmp_path / "first", members[0], random_images(4))
    score_test_sets(folder, [one], draws=20)
    passes = count_passes(monkeypatch, type(members[0]))
    from_stored = score_under(merged, [NO_NCM], one, n=20, members=[folder])[NO_NCM]
    assert len(passes) == 1  # the second member only
    # ranks can only move where float32 rounding crosses a reference score
    assert np.mean(np.isclose(from_stored, direct)) > 0.95


def test_a_merged_detector_of_sounds_has_its_classifiers_other_scores_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = make_scorer("soft_disagreement")
    parts = [sounds((1.0,) * 3, seed=seed) for seed in range(3)]
    kinds = torch.arange(3) % 2
    distance = SoundDistance.fit(parts[2], kinds, classes=("a", "b"))
    members = (classifier, distance)
    references = tuple(member.score(parts[2], n=2, seed=0).score_vectors for member in members)
    merged = MergedScorer(members, ("classifier", "distance"), references, (1.0, 1.0))
    sets = [
        SetToScore("own-test", False, parts[0]),
        SetToScore("other-test", True, parts[1]),
        SetToScore(CALIBRATION, False, parts[2]),
    ]
    trained, folder = (
        save(tmp_path / "trained", classifier, parts[2]),
        save(tmp_path / "new", merged, parts[2]),
    )
    score_test_sets(trained, sets, draws=40, ablations=("kl_divergence",))
    passes = count_passes(monkeypatch, type(classifier))
    names = ("kl_divergence", "soft_disagreement")
    score_test_sets(folder, sets, draws=40, ablations=names, members=[trained])
    assert passes == [
        ("soft_disagreement",)
    ]  # of the calibration set, which is on no shelf; the rest was stored
    for name in (*names, SBP):
        stored = open_scores(folder, name, identity(folder))
        assert set(stored.sets) == {"own-test", "other-test", CALIBRATION}
        one = stored.sets["other-test"].score_vectors
        alone = replace(classifier, base_ncm=name).score(parts[1], n=20, seed=0) if name != SBP else None
        if alone is not None:
            np.testing.assert_allclose(one, alone.score_vectors, rtol=1e-3, atol=1e-6)
    own = {one.name: one.score_vectors for one in read_scores(folder, identity(folder))}
    np.testing.assert_allclose(
        own["other-test"], merged.score(parts[1], n=40, seed=0).score_vectors, rtol=0.05, atol=0.5
    )

"""One network that names class and turn: its base NCM, its training, its split, and what the app shows of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small import random_images, small_scorer
from test_loop import ROTATIONS, TINY, tiny_images

from idecode_core.image.scorer import ImageScorer
from idecode_core.ncm import BASE_NCMS, ERROR, UNKNOWN
from idecode_core.training.finish import finish
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.recipe import Pictures
from idecode_core.training.tasks import image, make_task
from idecode_core.transforms import SharpRotations

JOINT = replace(
    ROTATIONS,
    name="tiny-joint",
    shows=Pictures(
        replace(TINY, outputs=6), "transform_and_label", size=16, transformed=0.25, feature_temperature=0.1
    ),
    transforms=SharpRotations(per_draw="one"),
    base_ncm="turn_and_label",
    epochs=1,
)
JOINT_NCMS = ("turn_and_label", "turn_and_mirrored_label")


@pytest.fixture(autouse=True)
def two_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "class_names", lambda dataset: ("cat", "dog"))


def test_the_score_is_a_fifth_of_the_turns_error_less_the_log_of_the_evidence_for_any_class_in_x() -> None:
    generator = np.random.default_rng(0)
    outputs, of_x = generator.normal(size=(3, 5, 6)), generator.normal(size=(3, 6))
    turns = generator.integers(0, 4, size=(3, 5))
    shares = np.exp(outputs[..., :4]) / np.exp(outputs[..., :4]).sum(axis=-1, keepdims=True)
    right = np.take_along_axis(shares, turns[..., None], axis=-1)[..., 0]
    expected = -np.log(right) / 5 - np.log(np.exp(of_x[:, 4:]).sum(axis=-1))[:, None]
    given = torch.from_numpy(outputs), torch.from_numpy(of_x), torch.from_numpy(turns)
    ncm = BASE_NCMS["turn_and_label"]
    np.testing.assert_allclose(ncm(*given).numpy(), expected)
    assert ncm.asks_x
    assert list(ncm.terms(*given)) == [ERROR, UNKNOWN]


def test_a_run_becomes_a_detector_whose_variants_name_turn_and_class(tmp_path: Path) -> None:
    task = make_task(JOINT, image_parts(JOINT, tiny_images()))
    train(task, tmp_path / "run")
    detector = finish(task, tmp_path / "run", tmp_path / "tiny-joint", n_max=2)
    found = detector.scorer.inspect(tiny_images().x[0], n=2, seed=0)
    np.testing.assert_allclose(
        found.score_vector,
        detector.scorer.score(tiny_images().x[:1], n=2, seed=0).score_vectors[0],
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        found.score_vector, [sum(term.value for term in terms) for terms in found.terms], rtol=1e-5
    )
    for variant in found.variants:
        turn, label = variant.predicted.split(", ")
        assert "cat" in label or "dog" in label
        assert turn != label
    assert isinstance(detector.scorer, ImageScorer)
    assert detector.scorer.logits(tiny_images().x[:3]).shape == (3, 2)  # the class, not the turn


def test_with_the_mirror_image_the_evidence_is_that_of_the_mean_answer_to_both() -> None:
    plain, mirrored = (
        replace(small_scorer(SharpRotations(), name, outputs=6), classes=("cat", "dog"))
        for name in JOINT_NCMS
    )
    x, n = random_images(4), 3
    terms = [[scorer.inspect(one, n=n, seed=0).terms for one in x] for scorer in (plain, mirrored)]
    with torch.inference_mode():
        both = torch.stack([plain.logits(x), plain.logits(np.ascontiguousarray(x[:, :, ::-1]))])
    changes = list[float]()
    for i in range(len(x)):
        expected = -np.log(np.exp(both[:, i].mean(dim=0).double().numpy()).sum())
        for draw in range(n):
            (turn, label), (same_turn, label_of_both) = terms[0][i][draw], terms[1][i][draw]
            assert same_turn.value == pytest.approx(turn.value, rel=1e-5)
            assert label_of_both.value == pytest.approx(expected, rel=1e-5)
            changes.append(abs(label.value - expected))
    assert max(changes) > 1e-5


def test_both_ways_to_ask_for_the_class_can_be_scored_in_one_pass() -> None:
    scorers = {name: small_scorer(SharpRotations(), name, outputs=6) for name in JOINT_NCMS}
    together = scorers["turn_and_label"].score_under(JOINT_NCMS, random_images(4), n=2, seed=0)
    for name, scorer in scorers.items():
        alone = scorer.score(random_images(4), n=2, seed=0).score_vectors
        np.testing.assert_allclose(together[name].score_vectors, alone, rtol=1e-5)
    first, second = (together[name].score_vectors for name in JOINT_NCMS)
    assert not np.allclose(first, second, rtol=1e-5)


def test_in_training_the_length_of_features_does_not_make_the_label_surer() -> None:
    task = make_task(JOINT, image_parts(JOINT, tiny_images()))
    assert isinstance(task, image.ImageTask)
    z = torch.randn(8, 4)
    torch.testing.assert_close(task.shortened(3 * z), task.shortened(z))
    torch.testing.assert_close(task.shortened(z).norm(dim=-1), torch.full((8,), 10.0))


def test_in_bfloat16_the_loss_is_about_the_same_and_weights_losses_and_scores_stay_in_float32() -> None:
    faster = replace(JOINT, shows=replace(JOINT.shows, bfloat16=True))
    images = tiny_images()
    losses = []
    for recipe in (JOINT, faster):
        task = make_task(recipe, image_parts(recipe, images))
        model = task.initialise()
        x, y = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1] * 4)
        loss, _ = task.loss(model, x, y, np.random.default_rng(0))
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.dtype == torch.float32
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
        assert isinstance(task, image.ImageTask)
        assert task.encode(model, x).dtype == torch.float32
        losses.append(loss.item())
    assert losses[0] != losses[1]  # it was computed in another way
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.03)


def test_all_examples_teach_the_label_and_the_turned_quarter_also_the_turn() -> None:
    """The same batch twice, once with other labels in the last quarter: the loss changes; the count of right ones does not."""
    task = make_task(JOINT, image_parts(JOINT, tiny_images()))
    model = task.initialise().eval()
    x, y = torch.rand(8, 3, 16, 16), torch.tensor([0, 1] * 4)
    losses, counts = [], []
    for labels in (y, torch.cat([y[:6], 1 - y[6:]])):
        loss, right = task.loss(model, x, labels, np.random.default_rng(0))
        losses.append(loss.item())
        assert right is not None
        counts.append(right.tolist())
    assert losses[0] != losses[1]
    assert counts[0] == counts[1]
    assert len(counts[0]) == 6


def test_a_square_of_each_picture_is_covered_by_its_mean_at_a_place_of_its_own() -> None:
    shows = replace(JOINT.shows, flip=False, cutout=6)
    x = torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    shown = image.augment(x, shows, np.random.default_rng(0))
    changed = (shown != x).all(dim=1)  # (64, 16, 16)
    sides = changed.any(dim=2).sum(dim=1), changed.any(dim=1).sum(dim=1)
    torch.testing.assert_close(changed.sum(dim=(1, 2)), sides[0] * sides[1])  # a rectangle
    assert max(sides[0].max(), sides[1].max()) == 6  # less only where it reaches beyond the edge
    assert (torch.minimum(*sides) == 6).sum() > 20
    assert len({tuple(one.flatten().tolist()) for one in changed}) > 40
    filled = x.mean(dim=(1, 2, 3), keepdim=True).expand_as(x)
    torch.testing.assert_close(shown, torch.where(changed[:, None], filled, x))

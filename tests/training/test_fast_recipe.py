"""The fast recipe of the class network: how it starts, what it shows, how it steps, what it cost, and how it scores."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import random_images, small_scorer
from test_loop import CLASSIFIER, tiny_images
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from idecode_core.folder.record import read_training
from idecode_core.image.features import unit_range
from idecode_core.models.backbones import Compact
from idecode_core.ncm import BASE_NCMS, UNKNOWN
from idecode_core.report.why import parts
from idecode_core.training.finish import finish
from idecode_core.training.loop import convolution_backward_flop, make_optimizer, train, training_pflop
from idecode_core.training.parts import image_parts
from idecode_core.training.recipe import Recipe
from idecode_core.training.recipes import get_recipe
from idecode_core.training.run_state import World
from idecode_core.training.tasks import ImageTask, image, make_task
from idecode_core.transforms import SharpRotations, SmallAffine, Views, build_transforms, transform_settings

FAST = replace(
    CLASSIFIER,
    name="tiny-fast",
    shows=replace(
        CLASSIFIER.shows, transformed=0.0, alternate=True, identity=True, feature_temperature=0.1, crop=0
    ),
    transforms=Views(),
    base_ncm="evidence",
    norm_bias_rate=8.0,
    epochs=1,
)


@pytest.fixture(autouse=True)
def two_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "class_names", lambda dataset: ("cat", "dog"))


def tiny(recipe: Recipe[Any] = FAST) -> ImageTask:
    task = make_task(recipe, image_parts(recipe, tiny_images()))
    assert isinstance(task, ImageTask)
    return task


def test_a_convolution_that_starts_as_identity_passes_its_first_inputs_on_and_is_random_beside_that() -> None:
    torch.manual_seed(0)
    backbone = Compact((32, 40, 16))
    with torch.no_grad():
        backbone.start_as_identity()
    x = torch.randn(2, 24, 6, 6)
    said = backbone.groups[0].conv1(x)  # 24 -> 32 channels
    torch.testing.assert_close(said[:, :24], x)
    assert (said[:, 24:] - x.mean()).abs().max() > 0.01
    fewer = backbone.groups[2].conv1(y := torch.randn(2, 40, 6, 6))  # 40 -> 16 channels
    torch.testing.assert_close(fewer, y[:, :16])


def test_the_stem_and_the_scales_of_norms_stay_as_they_are_and_everything_else_learns(tmp_path: Path) -> None:
    task = tiny()
    before = {name: value.clone() for name, value in task.initialise().state_dict().items()}
    after = train(task, tmp_path).state_dict()
    for name in before:
        if name.endswith(("num_batches_tracked", ".mean", ".std")) or name in ("mean", "std"):
            continue
        norm_scale = ".norm" in name and name.endswith(".weight")
        same = torch.equal(before[name], after[name])
        assert same == (norm_scale or name == "backbone.stem.weight"), name


def test_two_epochs_that_follow_each_other_show_each_picture_both_ways() -> None:
    task = tiny()
    wide = replace(FAST, batch=task.examples)

    def shown(epoch: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The pictures of an epoch, in the set's order, and which of them are mirrored."""
        order = np.random.default_rng([wide.seed, epoch]).permutation(task.examples)
        ((x, *_),) = tiny(wide).batches(epoch, World())
        inverse = torch.from_numpy(np.argsort(order))
        plain = task.proper.batch(np.arange(task.examples))[0]
        return x[inverse], (x[inverse] != plain).flatten(1).any(dim=1)

    (first, mirrored), (second, later), (third, _) = (shown(epoch) for epoch in range(3))
    torch.testing.assert_close(first.flip(-1), second)
    torch.testing.assert_close(first, third)
    assert torch.equal(mirrored, ~later)
    assert 0 < mirrored.float().mean() < 1


def test_labels_are_learned_from_features_of_one_length() -> None:
    task = tiny()
    model = task.initialise().eval()
    batch = next(iter(task.validation()))
    before = task.loss(model, *batch)[0].item()
    last = model.backbone.groups[-1].norm2
    with torch.no_grad():  # the last ReLU gives twice as much of everything
        last.weight.mul_(2)
        last.bias.mul_(2)
    assert task.loss(model, *batch)[0].item() == pytest.approx(before, rel=1e-5)
    z = model.encode(batch[0])
    logits = model.decode(None, (z / z.norm(dim=1, keepdim=True) / 0.1)[:, None])[:, 0]
    expected = -logits.log_softmax(dim=1)[torch.arange(len(z)), batch[1]].mean()
    assert before == pytest.approx(expected.item(), rel=1e-5)


def test_smoothed_labels_give_each_class_its_share() -> None:
    smoothing = 0.2
    task = tiny(replace(FAST, shows=replace(FAST.shows, label_smoothing=smoothing)))
    logits, y = torch.tensor([[2.0, -1.0], [0.5, 0.0]]), torch.tensor([0, 1])
    wanted = (1 - smoothing) * nn.functional.one_hot(y, 2) + smoothing / 2
    expected = -(wanted * logits.log_softmax(dim=1)).sum(dim=1).mean()
    assert task.naming_loss(logits, y).item() == pytest.approx(expected.item())


def test_biases_of_norms_have_their_own_rate_and_shrink_as_much_per_step_as_other_weights() -> None:
    model = tiny().initialise()
    optimizer = make_optimizer(FAST, model)
    usual, biases = optimizer.param_groups
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert {id(weight) for weight in biases["params"]} == {id(norm.bias) for norm in norms}
    assert biases["lr"] == pytest.approx(8 * usual["lr"])
    assert biases["lr"] * biases["weight_decay"] == pytest.approx(usual["lr"] * usual["weight_decay"])
    learned = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
    assert learned == {id(weight) for weight in model.parameters() if weight.requires_grad}


def test_recipes_of_before_step_as_before() -> None:
    for name in ("cifar10-joint", "cifar10-projective"):
        recipe = get_recipe(name)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        (group,) = make_optimizer(recipe, model).param_groups
        assert [id(weight) for weight in group["params"]] == [id(weight) for weight in model.parameters()]
        assert (group["lr"], group["weight_decay"]) == (recipe.learning_rate, recipe.weight_decay)
        assert not any((recipe.shows.alternate, recipe.shows.identity, recipe.shows.label_smoothing))


def test_the_score_of_a_draw_is_minus_the_log_of_the_summed_exponentials_of_its_logits() -> None:
    logits = np.random.default_rng(0).normal(size=(3, 5, 7))
    ncm = BASE_NCMS["evidence"]
    given = torch.from_numpy(logits), None, torch.zeros(3, 5)
    np.testing.assert_allclose(ncm(*given).numpy(), -np.log(np.exp(logits).sum(axis=-1)))
    assert list(ncm.terms(*given)) == [UNKNOWN]
    assert not ncm.asks_x  # n draws cost n passes, and not one more


def test_the_mean_over_draws_is_the_mean_evidence_of_the_views_that_were_drawn() -> None:
    scorer = replace(small_scorer(Views(), "evidence", outputs=3), classes=("a", "b", "c"))
    pictures = random_images(4)
    scored = scorer.score(pictures, n=6, seed=0)
    found = scorer.inspect(pictures[0], n=6, seed=0)
    views = unit_range([variant.image for variant in found.variants], torch.device("cpu"))
    logits = scorer.model.decode(None, scorer.model.encode(views)[:, None])[:, 0]
    np.testing.assert_allclose(
        scored.score_vectors[0], -logits.detach().logsumexp(1).numpy(), atol=0.02
    )  # shown views are rounded to 8 bits
    (part,) = parts(scorer, found, 0)
    assert part.words == BASE_NCMS["evidence"].means
    assert part.value == pytest.approx(scored.score_vectors[0, 0])


def test_views_move_by_two_pixels_mirror_half_of_the_time_and_show_no_grey_border() -> None:
    views = Views()
    drawn = views.sample(np.random.default_rng(0).integers(0, 2**64, (2000, 2), dtype=np.uint64), 1)[:, 0]
    assert (drawn[:, 0] == 0).all()  # never turned
    assert drawn[:, 2:4].abs().max() * 32 <= 2
    assert abs(drawn[:, 4].mean() - 0.5) < 4 * 0.5 / np.sqrt(2000)  # four standard errors
    bright = torch.ones(1, 3, 32, 32)
    moved = torch.tensor([[[0.0, 0.0, 0.0625, -0.0625, 0.0]]])
    torch.testing.assert_close(views.apply(bright, moved)[0], bright)
    assert SmallAffine().apply(bright, moved).min() < 0.6  # grey comes in
    x = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        views.apply(x, moved)[0, 0, :, :-2, 2:], x[0, :, 2:, :-2], atol=1e-5, rtol=0
    )  # two right, two up, and not blurred
    assert build_transforms(transform_settings(views)) == views


def test_the_count_of_operations_is_that_of_the_convolutions_by_hand(tmp_path: Path) -> None:
    task = tiny()
    widths, side = task.shows.model.widths, 15  # 16 px less one: the stem has a kernel of two
    a, b = 24, side
    convolutions = []  # multiplications of each, per picture
    for width in widths:
        convolutions.append(9 * a * width * b * b)
        a, b = width, b // 2
        convolutions.append(9 * a * a * b * b)
    stem, head = 3 * 4 * 24 * side * side, a * task.shows.model.outputs
    forward = stem + sum(convolutions) + head
    # The frozen stem's weights are asked for nothing. Its bias learns, so the first convolution passes a gradient down.
    per_picture = 2 * (forward + 2 * (sum(convolutions) + head))
    expected = per_picture * FAST.batch * (task.examples // FAST.batch) * 3 / 1e15
    assert training_pflop(task, 3) == pytest.approx(expected, rel=1e-3)
    train(task, tmp_path / "run")
    detector = finish(task, tmp_path / "run", tmp_path / "made", n_max=2)
    record = read_training(tmp_path / "made")
    assert record is not None
    assert record.settings["training_pflop"] == pytest.approx(expected / 3, rel=1e-3)
    assert detector.calibration.n_max == 2


def test_a_broken_run_of_the_fast_recipe_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = train(tiny(), tmp_path / "whole", epochs=2)

    class Stopped(Exception):
        pass

    def stop(epoch: int, *_: Any) -> None:
        if epoch == 1:
            raise Stopped

    with pytest.raises(Stopped):
        train(tiny(), tmp_path / "broken", epochs=2, progress=stop)
    again = train(tiny(), tmp_path / "broken", epochs=2)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value, rtol=0, atol=0)


def test_a_share_of_each_batch_is_mixed_and_it_is_not_the_part_that_is_turned() -> None:
    plain = replace(FAST, shows=replace(FAST.shows, flip=False, alternate=False))
    mixed = replace(plain, shows=replace(plain.shows, mixed=0.25))
    (x, *_), (y, *_) = (next(iter(tiny(recipe).batches(0, World()))) for recipe in (plain, mixed))
    changed = (x != y).flatten(1).any(dim=1)
    few = round(len(x) * 0.25)
    assert changed[:few].any()
    assert not changed[few:].any()


@pytest.mark.parametrize("upright", [True, False])
def test_labels_of_turned_pictures_teach_only_where_they_are_asked_for(upright: bool) -> None:
    recipe = replace(
        FAST,
        shows=replace(
            FAST.shows,
            model=replace(FAST.shows.model, outputs=6),
            task="transform_and_label",
            transformed=0.25,
            upright_labels=upright,
        ),
        transforms=SharpRotations(per_draw="one"),
        base_ncm="turn_and_label",
    )
    task = tiny(recipe)
    model = task.initialise().eval()
    x, y, _ = next(iter(task.batches(0, World())))
    plain = round(len(x) * 0.75)
    keys = np.random.default_rng(0).integers(0, 2**64, (len(x), 2), dtype=np.uint64)
    other = torch.cat([y[:plain], 1 - y[plain:]])
    losses = [task.joint_loss(model, x, labels, keys)[0].item() for labels in (y, other)]
    assert (losses[0] == losses[1]) is upright


def test_a_convolution_with_a_filter_per_channel_counts_each_channel_once() -> None:
    """Backward, too: torch's own counter counts all channels against all, four times too many for the weights here."""
    two = nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False))
    corrected = {torch.ops.aten.convolution_backward: convolution_backward_flop}
    with FlopCounterMode(display=False, custom_mapping=corrected) as counter:
        two(torch.rand(2, 3, 6, 6)).sum().backward()
    first, second = 2 * 2 * 36 * 3 * 4, 2 * 2 * 36 * 4 * 9
    assert counter.get_total_flops() == 2 * first + 3 * second  # nobody asks for the gradient of x

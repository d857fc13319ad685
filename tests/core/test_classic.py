"""Attacks: against closed forms on a linear victim, where the border is straight; what does not fit is said in words."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import SIZE, random_images, small_model
from torch import Tensor, nn

from idecode_core.attacks import ATTACKS, Attacked, Victim, attack, load_victim, victims
from idecode_core.attacks.classic import GALLERY_PLACES, from_gallery, gallery_pictures
from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet
from idecode_core.transforms import SmallAffine
from paper.attack_sets import make_attacked_set, named_right, read_attacked_set, set_path

SIDE = SIZE
PIXELS = 3 * SIDE**2


class Linear(nn.Module):
    """Two classes and a straight border: logits (-f, f) with f(x) = w . (x - 1/2)."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        weights = torch.randn(PIXELS, generator=torch.Generator().manual_seed(seed))
        self.w = nn.Parameter(weights / weights.norm())

    def forward(self, x: Tensor) -> Tensor:
        f = (x - 0.5).flatten(1) @ self.w
        return torch.stack([-f, f], dim=1)


class Deaf(nn.Module):
    """Says the same of everything: no attack can succeed."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(PIXELS))

    def forward(self, x: Tensor) -> Tensor:
        f = x.flatten(1) @ self.nothing
        return torch.stack([f + 1, f], dim=1)


def around(network: nn.Module, **settings: Any) -> Detector:
    pictures = random_images(20, SIDE)
    return Detector.around(
        network,
        calibration=pictures,
        size=SIDE,
        mean=(0,) * 3,
        std=(1,) * 3,
        classes=("no", "yes"),
        n_max=2,
        **settings,
    )


@pytest.fixture(scope="module")
def linear() -> Victim:
    return Victim.from_detector(around(Linear()))


def grey_pictures(count: int = 6, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Pictures far from black and white, so that nothing is clipped, on both sides of the border and about 0.3 from it; and
    what the linear victim says of them."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, 3, SIDE, SIDE, generator=generator)
    side = torch.where(torch.arange(count) % 2 == 0, 0.3, -0.3).view(-1, 1, 1, 1)
    x = 0.5 + 0.02 * noise + side * Linear().w.detach().view(3, SIDE, SIDE)
    return x, Linear()(x).argmax(1)


def border(x: Tensor) -> Tensor:
    """How far each picture is from the border: |f|, because w has length 1."""
    return Linear()(x)[:, 1].detach().abs()


def test_fgsm_moves_every_pixel_by_its_strength_towards_the_border(linear: Victim) -> None:
    x, y = grey_pictures()
    found = attack(linear, x, y, "fgsm", 0.03)
    towards = torch.where(y == 1, -1.0, 1.0)[:, None] * Linear().w.detach().sign()
    assert torch.allclose(found.attacked, x + 0.03 * towards.view(x.shape), atol=1e-6)
    assert np.allclose(found.linf, 0.03, atol=1e-6)
    assert np.allclose(found.l2, 0.03 * PIXELS**0.5, atol=1e-5)


def test_bim_goes_as_far_as_its_strength_in_steps_of_a_hundredth(linear: Victim) -> None:
    x, y = grey_pictures()
    seen: list[float] = []
    found = attack(linear, x, y, "bim", progress=seen.append)
    assert found.strength == 0.06
    assert len(seen) - 1 == pytest.approx(6, abs=2)  # six gradients; foolbox looks once more at the result
    # On a linear victim six equal steps are one of their sum.
    assert torch.allclose(found.attacked, attack(linear, x, y, "fgsm", 0.06).attacked, atol=1e-5)


def test_deepfool_goes_beyond_a_straight_border_by_its_overshoot(linear: Victim) -> None:
    x, y = grey_pictures()
    for strength in (0.18, 0.6):
        found = attack(linear, x, y, "deepfool", strength)
        assert found.success.all()
        # foolbox adds 1e-4 to the distance in logits' units (a difference of logits is 2 f here).
        assert np.allclose(found.l2, (1 + strength) * border(x).numpy(), rtol=0.02, atol=2e-4)


def test_carlini_wagner_ends_just_beyond_the_border(linear: Victim) -> None:
    x, y = grey_pictures()
    found = attack(linear, x, y, "cw")
    assert found.success.all()
    assert (found.l2 >= border(x).numpy() - 1e-4).all()
    assert (found.l2 <= 1.2 * border(x).numpy()).all()


def test_floats_are_kept_between_the_256_levels(linear: Victim) -> None:
    x, y = grey_pictures()
    found = attack(linear, x, y, "deepfool")
    levels = found.attacked * 255
    assert (levels - levels.round()).abs().mean() > 0.1
    assert found.attacked.dtype == torch.float32


def test_a_pictures_result_does_not_depend_on_the_others(linear: Victim) -> None:
    x, y = grey_pictures()
    x[0] += 0.2  # one that is far from the border, and takes longer
    y = linear.all_logits(x).argmax(1)
    for name in ("fgsm", "bim", "deepfool", "cw"):
        together = attack(linear, x, y, name).attacked
        alone = torch.cat([attack(linear, x[i : i + 1], y[i : i + 1], name).attacked for i in range(len(x))])
        assert torch.allclose(together, alone, atol=1e-5), name


@pytest.mark.parametrize("name", ["fgsm", "bim", "deepfool", "cw"])
def test_an_attack_that_finds_nothing_leaves_pictures_as_they_are_and_says_so(name: str) -> None:
    deaf = Victim.from_detector(around(Deaf()))
    x, _ = grey_pictures(3)
    found = attack(deaf, x, [0, 0, 0], name)
    assert not found.success.any()
    assert (found.attacked > 0.1).all(), "a black picture is foolbox's word for failure"
    assert "failed" in found.summary()


def test_black_pictures_and_broken_ones_never_count() -> None:
    x = torch.full((3, 3, SIDE, SIDE), 0.5)
    bad = x.clone()
    bad[0], bad[1, 0, 0, 0] = 0.0, torch.nan
    before, after = torch.tensor([[1.0, 0.0]] * 3), torch.tensor([[0.0, 1.0]] * 3)
    found = Attacked("cw", 1.0, "v", ("a", "b"), x, bad, torch.zeros(3, dtype=torch.long), before, after)
    assert found.success.tolist() == [False, False, True]


def test_a_picture_that_is_already_wrong_is_not_attacked_and_is_said(linear: Victim) -> None:
    x, y = grey_pictures(4)
    y[0] = 1 - y[0]
    found = attack(linear, x, y, "fgsm")
    assert found.right_before.tolist() == [False, True, True, True]
    assert torch.equal(found.attacked[0], x[0])
    assert not found.success[0]
    assert "1 more was wrong before any attack" in found.summary()
    assert "already names the picture wrong" in attack(linear, x[:1], y[:1], "fgsm").summary()


@given(st.integers(1, 4))
def test_progress_rises_to_one_and_may_end_the_attack(call: int) -> None:
    linear = Victim.from_detector(around(Linear()))
    x, y = grey_pictures(2)
    seen: list[float] = []

    def report(share: float) -> None:
        seen.append(share)
        if len(seen) == call:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attack(linear, x, y, "cw", progress=report)
    assert len(seen) == call
    whole: list[float] = []
    attack(linear, x, y, "deepfool", progress=whole.append)
    assert whole == sorted(whole)
    assert whole[-1] == 1


def test_the_detectors_own_network_stays_as_it_was() -> None:
    scorer = classifier()
    detector = Detector.calibrate("small", scorer, random_images(10), n_max=2)
    victim = Victim.from_detector(detector)
    attack(
        victim, torch.rand(2, 3, SIZE, SIZE), victim.all_logits(torch.rand(2, 3, SIZE, SIZE)).argmax(1), "bim"
    )
    assert all(weight.requires_grad and weight.grad is None for weight in scorer.model.parameters())


def classifier(base_ncm: str = "invariance", seed: int = 3) -> ImageScorer:
    model = small_model(5, seed=seed)
    with torch.no_grad():
        model.head.weight.mul_(20)  # type: ignore[operator, union-attr]  # an untrained network is hardly sure of anything
    return ImageScorer(model, SmallAffine(), base_ncm, Preprocessing(SIZE), classes=tuple("abcde"))


def test_attacked_sets_go_on_where_they_were_and_begin_with_the_same_pictures(tmp_path) -> None:
    victim = Victim.from_detector(Detector.calibrate("victim", classifier(), random_images(10), n_max=2))
    x = random_images(150, seed=5)
    said = victim.all_logits(torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255).argmax(1).numpy()
    images = ImageSet(
        "tiny-test", x, np.where(np.arange(150) % 3, said, (said + 1) % 5)
    )  # every third is wrong
    first = make_attacked_set(victim, images, "fgsm", 5, root=tmp_path)
    assert first.result.right_before.all()
    written = set_path("victim", "fgsm", tmp_path).read_bytes()
    more = make_attacked_set(victim, images, "fgsm", 80, root=tmp_path)
    assert np.array_equal(more.indices[:5], first.indices)
    assert torch.equal(more.result.attacked[:5], first.result.attacked)
    assert np.array_equal(more.indices, named_right(victim, images, 80))
    assert len(set(more.indices)) == 80
    assert (more.indices % 3 != 0).all()
    read = read_attacked_set("victim", "fgsm", victim.classes, images, tmp_path)
    assert torch.equal(read.result.attacked, more.result.attacked)
    assert torch.equal(read.result.clean, torch.from_numpy(x[more.indices]).permute(0, 3, 1, 2) / 255)
    other = Victim("victim", classifier(seed=9).model, victim.classes, SIZE, victim.device)
    make_attacked_set(other, images, "fgsm", 5, root=tmp_path)
    assert set_path("victim", "fgsm", tmp_path).read_bytes() != written, (
        "another victim of that name begins again"
    )
    with pytest.raises(IdecodeError, match="attack-sets"):
        read_attacked_set("victim", "cw", victim.classes, images, tmp_path)


def test_the_gallery_fools_the_victims_that_come_with_the_project_and_knows_nothing_else() -> None:
    names = victims()
    assert "cifar10-invariance" in names
    clean, labels = gallery_pictures()
    assert len(clean) == len(GALLERY_PLACES)
    victim = load_victim("cifar10-invariance", "cpu")
    found = [
        from_gallery(victim, clean[i : i + 1], int(labels[i]), "cw", ATTACKS["cw"].default)
        for i in range(len(clean))
    ]
    assert all(one is not None and one.success.all() for one in found)
    assert all(one is not None and 0 < one.l2[0] < 1 for one in found)
    assert from_gallery(victim, clean[:1], int(labels[0]), "cw", 2.0) is None
    assert from_gallery(victim, clean[:1].flip(3), int(labels[0]), "cw", 1.0) is None

"""Attacks: against closed forms on a linear victim, where the border is straight; what does not fit is said in words."""

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from small import SIZE, random_images, small_model, small_scorer
from torch import Tensor, nn
from typer.testing import CliRunner

from idecode_core.attacks import ATTACKS, Attacked, Victim, attack, attack_detector, load_victim, victims
from idecode_core.attacks.classic import GALLERY_PLACES, attack_files, from_gallery, gallery_pictures
from idecode_core.attacks.on_detector import base_score
from idecode_core.cli.app import app
from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError, InputError, SettingError
from idecode_core.folder.detector import save_detector
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Rotations, SmallAffine
from paper.attack_sets import make_attacked_set, named_right, read_attacked_set, set_path

SIDE = SIZE
PIXELS = 3 * SIDE**2
AS_FGSM = "As far as the paper's FGSM goes"


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


@pytest.mark.parametrize("strength", [0, -0.1, float("nan"), 4321.0])
@pytest.mark.parametrize("name", list(ATTACKS))
def test_a_strength_that_cannot_be_used_is_said_with_the_papers(
    linear: Victim, name: str, strength: float
) -> None:
    x, y = grey_pictures(1)
    run = partial(attack, linear, x, y, name)
    if ATTACKS[name].on_detector:
        run = partial(attack_detector, linear, around(Linear()), x, y)
    with pytest.raises(SettingError, match=f"got {strength:g}.*The paper uses|got {strength:g}.*{AS_FGSM}"):
        run(strength=strength)


def test_strength_zero_says_that_it_changes_nothing(linear: Victim) -> None:
    with pytest.raises(SettingError, match="Strength 0 leaves every picture as it is"):
        attack(linear, *grey_pictures(1), "fgsm", 0)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (torch.zeros(1, 3, 32, 32), [0], "takes pictures of 16 x 16 pixels, got 32 x 32"),
        (torch.zeros(1, 1, 16, 16), [0], r"got \(1, 1, 16, 16\)"),
        (torch.zeros(0, 3, 16, 16), [], r"got \(0, 3, 16, 16\)"),
        (torch.full((1, 3, 16, 16), 255.0), [0], "divide 8-bit pictures by 255"),
        (torch.full((1, 3, 16, 16), torch.nan), [0], "floats from 0 to 1"),
        (torch.zeros(1, 3, 16, 16, dtype=torch.uint8), [0], "floats from 0 to 1"),
        (torch.zeros(1, 3, 16, 16), [2], "from 0 to 1"),
        (torch.zeros(1, 3, 16, 16), [0, 1], "one class per picture"),
        (torch.zeros(1, 3, 16, 16), [0.5], "whole numbers"),
    ],
)
def test_pictures_and_classes_that_do_not_fit_the_victim_are_said(
    linear: Victim, x: Tensor, y: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        attack(linear, x, y, "fgsm")


def test_unknown_names_and_networks_without_classes_are_said(linear: Victim) -> None:
    with pytest.raises(SettingError, match="No attack is called 'fgms'"):
        attack(linear, *grey_pictures(1), "fgms")
    with pytest.raises(SettingError, match="use attack_detector"):
        attack(linear, *grey_pictures(1), "pgd-detector")
    pictures = random_images(10)
    turns = Detector.calibrate("turns", small_scorer(), pictures, n_max=1)
    with pytest.raises(SettingError, match="The network of turns names no classes"):
        Victim.from_detector(turns)
    function = Detector.around(
        predict_fn=lambda x: x.reshape(len(x), -1)[:, :2],
        calibration=pictures,
        size=SIZE,
        classes=("a", "b"),
        n_max=1,
    )
    with pytest.raises(SettingError, match="function without gradients"):
        Victim.from_detector(function)


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


def test_the_attack_on_the_detector_fools_the_victim_and_lowers_the_expected_score() -> None:
    pictures = random_images(30)
    victim = Victim.from_detector(around(Linear()))
    detector = Detector.calibrate("detector", classifier(), pictures, n_max=5)
    x = torch.from_numpy(pictures[:8]).permute(0, 3, 1, 2).float() / 255
    y = victim.all_logits(x).argmax(1)
    seen: list[float] = []
    both = attack_detector(victim, detector, x, y, n=2, steps=15, strength=0.1, seed=1, progress=seen.append)
    alone = attack(victim, x, y, "bim", 0.1)
    assert both.success.sum() >= 6
    assert both.linf.max() <= 0.1 + 1e-6
    assert both.attacked.min() >= 0
    assert both.attacked.max() <= 1
    assert seen == sorted(seen)
    assert seen[-1] == 1
    # On draws that the attack has not seen: the detector's own, which depend on the content.
    scores = {
        name: detector.score_vectors(one.samples, n=5).sum(1)
        for name, one in (("both", both), ("alone", alone))
    }
    hit = both.success & alone.success
    assert scores["both"][hit].mean() < scores["alone"][hit].mean()
    some = attack_detector(victim, detector, x[5:], y[5:], n=2, steps=15, strength=0.1, seed=1)
    assert torch.allclose(some.attacked, both.attacked[5:], atol=1e-5), "same seed, same picture, same result"


def test_a_base_score_is_what_the_scorer_says_for_the_same_draws() -> None:
    scorer = classifier()
    pictures = random_images(3)
    keys = np.stack([point.key for point in (scorer.prepare(picture, 7) for picture in pictures)])
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    expected = scorer.score(pictures, n=4, seed=7).score_vectors.mean(axis=1)
    assert np.allclose(base_score(scorer, x, keys, 4).detach(), expected, atol=1e-6)


def test_a_merged_detector_is_attacked_through_its_members() -> None:
    members = (classifier(), small_scorer())
    pictures = random_images(12)
    references = tuple(member.score(pictures, n=2, seed=0).score_vectors for member in members)
    merged = MergedScorer(members, ("a", "b"), references, (1.0, 1.0))
    victim = Victim.from_detector(Detector.calibrate("victim", members[0], pictures, n_max=2))
    x = torch.from_numpy(pictures[:4]).permute(0, 3, 1, 2).float() / 255
    found = attack_detector(victim, merged, x, victim.all_logits(x).argmax(1), n=1, steps=3, strength=0.1)
    assert found.right_before.all()
    assert (found.l2 > 0).all()


def test_detectors_that_this_attack_cannot_follow_are_said() -> None:
    victim = Victim.from_detector(Detector.calibrate("victim", classifier(), random_images(10), n_max=2))
    x = torch.rand(1, 3, SIZE, SIZE)
    y = victim.all_logits(x).argmax(1)

    class Lookup:
        kind, modality = "lookup", "image"

    class Listener:
        kind, modality = "listener", "audio"

    for scorer, words in (
        (Lookup(), "of the kind lookup gives no gradients"),
        (Listener(), "listens to sounds"),
        (classifier("argmax_disagreement"), "argmax_disagreement of this detector gives no gradients"),
        (ImageScorer(small_model(), Rotations(), "cross_entropy", Preprocessing(28)), "expected the same"),
    ):
        with pytest.raises(SettingError, match=words):
            attack_detector(victim, scorer, x, y)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="at least one step"):
        attack_detector(victim, classifier(), x, y, steps=0)


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


def test_the_command_writes_floats_and_a_table(tmp_path: Path) -> None:
    for i, picture in enumerate(random_images(3, 24)):
        Image.fromarray(picture).save(tmp_path / f"{i}, really.png")
    scorer = replace(classifier(), classes=("=a", "=b", "=c", "=d", "=e"))  # formulas, in a spreadsheet
    save_detector(Detector.calibrate("small", scorer, random_images(10), n_max=2), tmp_path / "victim")
    wish = [
        "attack",
        str(tmp_path),
        "--victim",
        str(tmp_path / "victim"),
        "--strength",
        "0.3",
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, wish)
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "out" / "attacked.npz") as stored:
        assert stored["attacked"].shape == (3, 3, SIZE, SIZE)
        assert stored["attacked"].dtype == np.float32
        assert np.abs(stored["attacked"] - stored["clean"]).max() == pytest.approx(0.3, abs=1e-5)
    with (tmp_path / "out" / "attacked.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["file"]).name for row in rows] == ["0, really.png", "1, really.png", "2, really.png"]
    assert all((row["before"] != row["after"]) == (row["fooled"] == "True") for row in rows)
    assert all(row[said].startswith("'=") for row in rows for said in ("before", "after"))
    assert isinstance(CliRunner().invoke(app, wish).exception, SettingError), "the folder is there already"
    pictures = [tmp_path / f"{i}, really.png" for i in range(3)]
    called = attack_files(pictures, tmp_path / "again", victim=str(tmp_path / "victim"), strength=0.3)
    for row, record in zip(rows, called.records(), strict=True):
        assert (row["fooled"], float(row["l2"])) == (str(record["fooled"]), pytest.approx(record["l2"]))
    assert (tmp_path / "again" / "attacked.csv").read_text() == (
        tmp_path / "out" / "attacked.csv"
    ).read_text()

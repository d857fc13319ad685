"""One-class rivals: each against an independent computation or a known property, on tiny networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.decomposition import PCA
from sklearn.svm import OneClassSVM

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.errors import InputError
from idecode_core.scorer import SCORERS, build_scorer
from idecode_core.scorers.once import OnceScorer
from paper.rivals.csi import CSI, EMBEDDED, contrast
from paper.rivals.goad import GOAD, AffineGOAD
from paper.rivals.one_class import (
    Budget,
    OneClass,
    affine,
    checked_pictures,
    encode_views,
    fresh_network,
    geometric,
    learn,
    quarter_turns,
    seen_in,
    turned_and_shifted,
)
from paper.rivals.svdd import KEPT, NU, OCSVM, DeepSVDD, levelled
from paper.rivals.turns import Auxiliary, AuxiliaryShifts, Geometric, RotNet, questions

TINY = Budget(steps=120, batch=32, widths=(4, 8, 8), size=16)
NETWORKS: tuple[type[OneClass], ...] = (
    RotNet,
    Geometric,
    Auxiliary,
    AuxiliaryShifts,
    GOAD,
    AffineGOAD,
    DeepSVDD,
    CSI,
)
ALL: tuple[type[OnceScorer], ...] = (OCSVM, *NETWORKS)


def upright(count: int, seed: int) -> NDArray[np.uint8]:
    """Dark above, light below, with a spot at the left: every turn and shift can be seen."""
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:16, 0:16]
    pictures = np.repeat((40 + 10 * rows)[None, ..., None], 3, axis=3) + generator.normal(
        0, 8, (count, 16, 16, 3)
    )
    pictures[:, (rows - 6) ** 2 + (columns - 4) ** 2 < 9] += (60, -40, -40)
    return np.clip(pictures, 0, 255).astype(np.uint8)


def noise(count: int, seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 16, 16, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def fitted() -> dict[str, OnceScorer]:
    """Every method, fitted on the same pictures."""
    pictures, longer = (
        upright(60, seed=0),
        replace(TINY, steps=240),
    )  # before that, turns are not yet told apart
    budgets = {kind: longer if kind in (RotNet, Auxiliary) else TINY for kind in ALL}
    return {kind.kind: kind.fit(pictures, budget) for kind, budget in budgets.items()}  # type: ignore[attr-defined]


def tensor(pictures: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


@pytest.mark.parametrize("kind", ALL)
def test_permuting_a_batch_permutes_the_scores_and_a_saved_one_scores_alike(
    kind: type[OnceScorer], fitted: dict[str, OnceScorer]
) -> None:
    scorer, pictures = fitted[kind.kind], np.concatenate([upright(3, seed=1), noise(3, seed=1)])
    scores = scorer.score(pictures).score_vectors
    order = np.random.default_rng(2).permutation(len(pictures))
    np.testing.assert_allclose(scorer.score(pictures[order]).score_vectors, scores[order], rtol=1e-4)
    again = build_scorer(scorer.settings(), scorer.tensors(), torch.device("cpu"))
    assert type(again) is kind
    assert SCORERS[kind.kind].endswith(kind.__name__)
    np.testing.assert_array_equal(again.score(pictures, n=1, seed=0).score_vectors, scores)


@pytest.mark.parametrize("kind", [OCSVM, RotNet, Geometric, Auxiliary, AuxiliaryShifts, GOAD, AffineGOAD])
def test_noise_is_stranger_than_new_pictures_of_the_class(
    kind: type[OnceScorer], fitted: dict[str, OnceScorer]
) -> None:
    known, strange = (fitted[kind.kind].score(x).score_vectors for x in (upright(20, 3), noise(20, 3)))
    assert np.median(strange) > np.max(known)


@pytest.mark.parametrize("kind", ALL)
def test_after_calibration_the_rate_on_new_pictures_of_the_class_is_near_epsilon(
    kind: type[OnceScorer], fitted: dict[str, OnceScorer]
) -> None:
    """k = 99, epsilon 0.2: the number flagged of 100 is beta-binomial with J = 19, above 38 once in 10,000 runs."""
    calibration = Calibration(fitted[kind.kind].score(upright(99, seed=4)).score_vectors, seed=0)
    flagged = judge(calibration, fitted[kind.kind].score(upright(100, seed=5)).score_vectors).p_values < 0.2
    assert 4 <= flagged.sum() <= 38


def test_oc_svm_is_scikit_learns_on_principal_components(fitted: dict[str, OnceScorer]) -> None:
    pixels = upright(60, seed=0).transpose(0, 3, 1, 2).reshape(60, -1) / 255
    reduced = PCA(KEPT, svd_solver="full").fit(pixels)
    svm = OneClassSVM(gamma="scale", nu=NU).fit(reduced.transform(pixels))
    new = np.concatenate([upright(5, seed=6), noise(5, seed=6)])
    expected = -svm.decision_function(reduced.transform(new.transpose(0, 3, 1, 2).reshape(10, -1) / 255))
    np.testing.assert_allclose(
        fitted["oc_svm"].score(new).score_vectors[:, 0], expected, rtol=1e-2, atol=1e-4
    )


@pytest.mark.parametrize("kind", [RotNet, Geometric, Auxiliary])
def test_scores_of_the_view_classifiers_follow_their_formulas_view_by_view(
    kind: type[OneClass], fitted: dict[str, OnceScorer]
) -> None:
    scorer, picture = fitted[kind.kind], upright(1, seed=7)
    assert isinstance(scorer, OneClass)
    right = []
    for i, view in enumerate(scorer.views):
        gx = seen_in(tensor(picture), view[None, None])[:, 0]
        answer = (
            scorer.model.decode(None, scorer.model.encode(gx)[:, None])[0, 0].detach().numpy().astype(float)
        )
        right.append(np.exp(answer[i]) / np.exp(answer).sum())
    expected = -np.mean(np.log(right)) if kind is Auxiliary else 1 - np.mean(right)
    assert scorer.score(picture).score_vectors[0, 0] == pytest.approx(expected, rel=1e-4)


def test_aux_with_shifts_adds_three_cross_entropies(fitted: dict[str, OnceScorer]) -> None:
    scorer, picture = fitted["auxiliary_shifts"], upright(1, seed=7)
    assert isinstance(scorer, AuxiliaryShifts)
    total = 0.0
    for i, view in enumerate(scorer.views):
        gx = seen_in(tensor(picture), view[None, None])[:, 0]
        answer = (
            scorer.model.decode(None, scorer.model.encode(gx)[:, None])[0, 0].detach().numpy().astype(float)
        )
        heads = (answer[:4], answer[4:7], answer[7:])
        for head, truth in zip(heads, (i % 4, i // 4 % 3, i // 12), strict=True):
            total += np.log(np.exp(head).sum()) - head[truth]
    assert scorer.score(picture).score_vectors[0, 0] == pytest.approx(total / 36, rel=1e-4)


def test_the_answers_that_aux_asks_for_are_what_the_views_do() -> None:
    """A single white pixel is where the shift, then the turn, bring it."""
    x = torch.full((1, 3, 16, 16), 0.0)
    x[..., 7, 6] = 1
    shown = seen_in(x, turned_and_shifted(16)[None])[0, :, 0]  # (36, 16, 16)
    for i, picture in enumerate(shown):
        turn, down, right = (int(answer) for answer in questions(torch.tensor(i)))
        expected = np.full((16, 16), -1)
        expected[7 + 4 * (down - 1), 6 + 4 * (right - 1)] = 1
        place = np.unravel_index(int(picture.argmax()), picture.shape)
        assert place == np.unravel_index(int(np.rot90(expected, turn).argmax()), picture.shape)


def test_the_views_of_gm_are_72_different_ones_and_one_of_them_is_the_picture_itself() -> None:
    x = tensor(upright(1, seed=8))
    views = geometric(16)
    shown = seen_in(x, views[None])[0].flatten(1)
    assert views.shape == (72, 3, 3)
    distances = torch.cdist(shown, shown) + 10 * torch.eye(72)
    assert float(distances.min()) > 0.1
    same = [i for i in range(72) if torch.allclose(shown[i], x.flatten(), atol=1e-5)]
    assert same == [16]  # neither shifted nor turned nor mirrored


def test_quarter_turns_are_those_of_numpy() -> None:
    picture = upright(1, seed=9)
    shown = seen_in(tensor(picture), quarter_turns(16)[None])[0]
    for i in range(4):
        expected = np.rot90(picture[0], i).transpose(2, 0, 1) / 255
        np.testing.assert_allclose(shown[i].numpy(), expected, atol=1e-4)


def test_affine_views_keep_the_middle_and_the_area() -> None:
    views = affine(16)
    middle = torch.tensor([8.0, 8.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(views @ middle, middle.expand(16, 3))
    torch.testing.assert_close(torch.linalg.det(views).abs(), torch.ones(16, dtype=torch.float64))


def test_a_shifted_view_is_filled_with_the_mirror_image_as_scipy_reflects() -> None:
    picture = tensor(upright(1, seed=9))
    for view, i in zip(seen_in(picture, turned_and_shifted(16)[None, ::4])[0], range(9), strict=True):
        right, down = 4 * (i // 3 - 1), 4 * (i % 3 - 1)
        expected = ndimage.shift(picture[0].numpy(), (0, down, right), order=1, mode="reflect")
        np.testing.assert_allclose(view.numpy(), expected, atol=1e-4)


def test_adam_moves_by_the_rate_that_it_is_given() -> None:
    """Its first step is the rate itself, whatever the gradient."""
    x, budget = checked_pictures(upright(8, seed=0), 16), replace(TINY, steps=1)
    network = fresh_network(1, x, budget)
    before = network.state_dict()["head.bias"].clone()
    after = learn(
        network,
        lambda network, *_: 3 * network.state_dict(keep_vars=True)["head.bias"].sum(),
        x,
        budget,
        adam=1e-4,
    )
    assert float(before - after.state_dict()["head.bias"]) == pytest.approx(1e-4, rel=1e-2)


def test_goad_weighs_its_losses_as_the_authors_code_does(fitted: dict[str, OnceScorer]) -> None:
    scorer = fitted["goad"]
    assert isinstance(scorer, GOAD)
    which = torch.tensor([3, 40, 71])
    gx = seen_in(tensor(upright(2, seed=12)), scorer.views[which].expand(2, -1, -1, -1))
    z = scorer.model.encode(gx.flatten(0, 1)).detach().double().numpy().reshape(2, 3, -1)
    answers = scorer.model.decode(None, torch.from_numpy(z).float()).double().numpy()
    triplet, entropy = [], []
    for i in range(2):
        for m in range(3):
            squares = ((z[i, m] - z.mean(axis=0)) ** 2).sum(axis=1)
            triplet.append(max(0.0, squares[m] + 1 - np.delete(squares, m).min()))
            entropy.append(np.log(np.exp(answers[i, m]).sum()) - answers[i, m, which[m]])
    expected = np.mean(entropy) + 0.1 * np.mean(triplet) + 10 * np.mean(z**2)
    assert float(GOAD.loss(scorer.model, gx, which, {})) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["goad", "goad_affine"])
def test_goad_is_the_softmax_of_distances_from_the_centres(kind: str, fitted: dict[str, OnceScorer]) -> None:
    scorer, picture = fitted[kind], upright(1, seed=10)
    assert isinstance(scorer, GOAD | AffineGOAD)
    z = encode_views(scorer.model, tensor(picture), scorer.views)[0].detach().double().numpy()
    centres = scorer.centres.double().numpy()
    terms = []
    for m in range(len(z)):
        likelihood = np.exp(-((z[m] - centres) ** 2).sum(axis=1))
        terms.append(-np.log(likelihood[m] / likelihood.sum()))
    assert scorer.score(picture).score_vectors[0, 0] == pytest.approx(np.mean(terms), rel=1e-3)


def test_deep_svdd_comes_closer_to_the_centre_by_training_and_does_not_move_it() -> None:
    pictures = upright(60, seed=0)
    short, longer = (DeepSVDD.fit(pictures, replace(TINY, steps=steps)) for steps in (1, 60))
    torch.testing.assert_close(short.centre, longer.centre)
    assert longer.score(pictures).score_vectors.mean() < short.score(pictures).score_vectors.mean()
    z = longer.model.encode(levelled(tensor(pictures[:1])))[0]
    expected = float((z - longer.centre).square().sum())
    assert longer.score(pictures[:1]).score_vectors[0, 0] == pytest.approx(expected, rel=1e-4)


def test_deep_svdd_does_not_see_brightness_or_contrast() -> None:
    x = tensor(upright(3, seed=13))
    level = levelled(x).double().numpy()
    np.testing.assert_allclose(level.mean(axis=(1, 2, 3)), 0.5, atol=1e-6)
    np.testing.assert_allclose(np.abs(level - 0.5).mean(axis=(1, 2, 3)), 0.2, rtol=1e-5)
    torch.testing.assert_close(levelled(0.3 + 0.4 * x), levelled(x))
    assert levelled(torch.full((1, 3, 4, 4), 0.7)).isfinite().all()


def test_contrast_is_the_mean_of_minus_log_shares() -> None:
    a, b = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0)).double().numpy()
    both = np.concatenate([a, b])
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    expected = []
    for i in range(6):
        others = [np.exp(both[i] @ both[j] / 0.5) for j in range(6) if j != i]
        expected.append(-np.log(np.exp(both[i] @ both[(i + 3) % 6] / 0.5) / sum(others)))
    assert float(contrast(torch.from_numpy(a), torch.from_numpy(b))) == pytest.approx(np.mean(expected))


def test_csi_adds_likeness_and_turns_with_its_weights(fitted: dict[str, OnceScorer]) -> None:
    scorer, picture = fitted["csi"], upright(1, seed=11)
    assert isinstance(scorer, CSI)
    z = encode_views(scorer.model, tensor(picture), scorer.views)
    answers = scorer.model.decode(None, z)[0].detach().double().numpy()  # (4, outputs)
    bank, (w, v) = scorer.bank.double().numpy(), scorer.weights.double().numpy()
    total = 0.0
    for r in range(4):
        length = np.linalg.norm(answers[r, :EMBEDDED])
        likeness = max(answers[r, :EMBEDDED] @ known / length for known in bank[r])
        total += w[r] * likeness * length + v[r] * answers[r, EMBEDDED + r]
    assert scorer.score(picture).score_vectors[0, 0] == pytest.approx(-total, rel=1e-3)


def test_csis_bank_and_weights_are_of_its_training_pictures(fitted: dict[str, OnceScorer]) -> None:
    """z_r of each training picture at length 1; one over the mean length, and over the mean logit of the right turn."""
    scorer = fitted["csi"]
    assert isinstance(scorer, CSI)
    z = encode_views(scorer.model, tensor(upright(60, seed=0)), scorer.views)
    answers = scorer.model.decode(None, z).detach().double().numpy()  # (60, 4, outputs)
    for r in range(4):
        lengths = np.linalg.norm(answers[:, r, :EMBEDDED], axis=1)
        known = answers[:, r, :EMBEDDED] / lengths[:, None]
        np.testing.assert_allclose(scorer.bank[r].numpy(), known, atol=2e-3)
        right = answers[:, r, EMBEDDED + r].mean()
        np.testing.assert_allclose(scorer.weights[:, r].numpy(), [1 / lengths.mean(), 1 / right], rtol=1e-2)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("pictures", "words"),
    [
        (upright(0, seed=0), "at least 2 training pictures, got 0"),
        (upright(1, seed=0), "at least 2 training pictures, got 1"),
        (np.full((5, 16, 16, 3), 7, np.uint8), "are alike"),
        (np.full((5, 16, 16, 3), np.nan), "not finite"),
        (np.zeros((5, 16, 16), np.uint8), "expected training pictures as uint8"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused_in_one_sentence(
    kind: type[OnceScorer], pictures: NDArray[np.uint8], words: str
) -> None:
    with pytest.raises(InputError, match=f"(?i){words}"):
        kind.fit(pictures, TINY)  # type: ignore[attr-defined]


def test_training_pictures_are_brought_to_the_models_size() -> None:
    assert checked_pictures(upright(4, seed=0), 8).shape == (4, 3, 8, 8)

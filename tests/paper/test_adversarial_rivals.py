"""The rivals of Table 5: formulas computed another way, saved, permuted, calibrated, and what they see of attacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import neighbors
from sklearn.covariance import LedoitWolf
from sklearn.linear_model import LogisticRegressionCV
from sklearn.svm import OneClassSVM
from small import SIZE, random_images, small_model

from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.features import Preprocessing
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.quality.metrics import auroc
from idecode_core.scorer import SCORERS
from idecode_core.scorers.once import OnceScorer
from paper.rivals import densities as kernel_density
from paper.rivals import densities as lid
from paper.rivals import layers as supervised
from paper.rivals import odds, reconstruction
from paper.rivals.densities import KernelDensity, LocalDimension, MahalanobisLayers
from paper.rivals.layers import SupervisedScorer, noisy_copies, observe, observe_all
from paper.rivals.odds import Odds
from paper.rivals.reconstruction import Reconstruction

KINDS = (KernelDensity, LocalDimension, MahalanobisLayers, Odds, Reconstruction)
CLASSES = 4


def floats(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def with_contrast(network: Equivariant) -> Equivariant:
    """The network, naming all of its classes: its norms know the scale of its maps, and its head looks at what differs."""
    x = floats(random_images(64, seed=0))
    with torch.no_grad():
        network.train()
        for _ in range(40):
            z = network.encode(x)
        network.eval()
        z = network.encode(x)
        head = network.head
        assert isinstance(head, torch.nn.Linear)
        head.weight.mul_(5 / z.std(dim=0))
        head.bias.copy_(-(head.weight @ z.mean(dim=0)))
    return network


@pytest.fixture(scope="module")
def model() -> Equivariant:
    return with_contrast(small_model(CLASSES))


@pytest.fixture(scope="module")
def training(model: Equivariant) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures and the classes that an untrained network names, so that it is always right."""
    x = floats(random_images(300, seed=1))
    return x, observe_all(model, x).logits.argmax(dim=1)


@pytest.fixture(scope="module")
def pairs(model: Equivariant) -> dict[str, torch.Tensor]:
    """Other pictures, and the same ones one step up the loss: FGSM."""
    clean = floats(random_images(60, seed=2))
    x = clean.clone().requires_grad_()
    logits = observe(model, x).logits
    torch.nn.functional.cross_entropy(logits, logits.argmax(dim=1)).backward()
    assert x.grad is not None
    return {"clean": clean, "attacked": (clean + 0.08 * x.grad.sign()).clamp(0, 1)}


@pytest.fixture(scope="module")
def rivals(model, training, pairs) -> dict[type[OnceScorer], OnceScorer]:  # type: ignore[no-untyped-def]
    parts: dict[str, Any] = {"preprocessing": Preprocessing(SIZE), "classes": tuple("abcd")}
    return {
        kind: kind.fit(model, *training, **parts, **(pairs if issubclass(kind, SupervisedScorer) else {}))
        for kind in KINDS
    }


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig("compact", outputs=CLASSES, widths=(8, 8, 8)),
        ModelConfig("resnet18", outputs=CLASSES),
        ModelConfig("densenet-compact", outputs=CLASSES),
    ],
    ids=lambda config: config.backbone,
)
def test_the_layers_end_in_the_logits_that_the_network_itself_gives(config: ModelConfig) -> None:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        network = Equivariant(config).eval()
    x = floats(random_images(3))
    with torch.no_grad():
        seen = observe(network, x)
        torch.testing.assert_close(seen.features, network.encode(x))
        torch.testing.assert_close(seen.logits, network.decode(None, network.encode(x)[:, None])[:, 0])
    assert len(seen.layers) >= 3
    assert all(layer.shape[0] == 3 and layer.ndim == 2 for layer in seen.layers)


def test_density_is_that_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    bank, z = torch.randn(40, 5, generator=generator), torch.randn(6, 5, generator=generator)
    sigma = 1.7  # scikit-learn's kernel is exp(-d^2 / 2h^2) and sums to one
    theirs = neighbors.KernelDensity(bandwidth=sigma / np.sqrt(2)).fit(bank.numpy()).score_samples(z.numpy())
    constant = 2.5 * np.log(np.pi * sigma**2)
    np.testing.assert_allclose(
        kernel_density.log_density(z, bank, sigma).numpy(), theirs + constant, rtol=1e-4
    )


def test_the_bandwidth_is_the_one_that_makes_left_out_points_likeliest() -> None:
    bank = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    sigma = kernel_density.likeliest_sigma([bank])

    def left_out(width: float) -> float:
        return sum(
            float(
                neighbors.KernelDensity(bandwidth=width / np.sqrt(2))
                .fit(np.delete(bank.numpy(), i, axis=0))
                .score_samples(bank.numpy()[i : i + 1])[0]
            )
            for i in range(len(bank))
        )

    assert left_out(sigma) >= max(left_out(sigma * 2**0.5), left_out(sigma / 2**0.5))


def test_kd_and_pu_are_of_the_class_that_is_named(rivals, model, training) -> None:  # type: ignore[no-untyped-def]
    scorer, (x, y) = rivals[KernelDensity], training
    new = floats(random_images(5, seed=7))
    bank, seen = observe_all(model, x).features, observe_all(model, new)
    for i, row in enumerate(scorer.all_numbers(new)):
        probabilities = np.exp(seen.logits[i].double().numpy())
        probabilities /= probabilities.sum()
        same = bank[y == probabilities.argmax()].double().numpy()
        squares = ((same - seen.features[i].double().numpy()) ** 2).sum(axis=1)
        expected = np.log(np.mean(np.exp(-squares / float(scorer.sigma) ** 2)))
        np.testing.assert_allclose(row.numpy(), [expected, probabilities.max()], rtol=1e-3)


def test_lid_is_the_formula_of_the_appendix() -> None:
    generator = np.random.default_rng(0)
    bank, z = generator.normal(size=(30, 4)), generator.normal(size=(5, 4))
    distances, _ = neighbors.NearestNeighbors(n_neighbors=6).fit(bank).kneighbors(z)
    expected = [-1 / np.mean([np.log(r / row[-1]) for r in row]) for row in distances]
    np.testing.assert_allclose(lid.lid(torch.tensor(z), torch.tensor(bank), 6).numpy(), expected, rtol=1e-6)


def test_lid_of_points_in_a_plane_is_about_two() -> None:
    generator = torch.Generator().manual_seed(0)
    plane = torch.rand(2000, 2, generator=generator) @ torch.randn(2, 9, generator=generator)
    assert 1.8 < float(lid.lid(plane[:200], plane[200:], 100).mean()) < 2.2


def test_lid_stays_finite_for_a_point_of_the_bank_and_for_equal_distances() -> None:
    bank = torch.eye(5)
    assert torch.isfinite(lid.lid(torch.cat([bank[:1], torch.zeros(1, 5)]), bank, 4)).all()


def test_mahalanobis_of_each_layer_is_the_closed_form(rivals, model, training) -> None:  # type: ignore[no-untyped-def]
    scorer, (x, y) = rivals[MahalanobisLayers], training
    new = floats(random_images(4, seed=7))
    with torch.no_grad():
        found = scorer.distances(new)
    for layer, of_new, distance in zip(
        observe_all(model, x).layers, observe_all(model, new).layers, found, strict=True
    ):
        z, one = layer.double().numpy(), of_new.double().numpy()
        means = [z[y == c].mean(axis=0) for c in np.unique(y)]
        spread = np.concatenate([z[y == c] - mean for c, mean in zip(np.unique(y), means, strict=True)])
        precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(spread).covariance_)
        squares = np.array([[(row - mean) @ precision @ (row - mean) for mean in means] for row in one])
        np.testing.assert_allclose(distance.numpy(), squares.min(axis=1), rtol=2e-2)


def test_the_step_goes_down_the_distance_of_each_layer(rivals) -> None:  # type: ignore[no-untyped-def]
    from dataclasses import replace

    still, moving = (replace(rivals[MahalanobisLayers], step=torch.tensor([step])) for step in (0.0, 0.001))
    x = floats(random_images(8, seed=7))
    with torch.no_grad():
        assert (moving.numbers(x) <= still.numbers(x)).float().mean() > 0.9


def test_alignments_are_the_differences_of_logits_in_a_plain_loop() -> None:
    generator = np.random.default_rng(0)
    logits, noisy = generator.normal(size=(3, 4)), generator.normal(size=(3, 2, 5, 4))
    expected = np.zeros((3, 2, 4))
    for i in range(3):
        y = logits[i].argmax()
        for kind in range(2):
            for z in range(4):
                changes = [(n[z] - n[y]) - (logits[i, z] - logits[i, y]) for n in noisy[i, kind]]
                expected[i, kind, z] = np.mean(changes)
    np.testing.assert_allclose(
        odds.alignments(torch.tensor(logits), torch.tensor(noisy)), expected, atol=1e-12
    )


def test_odds_is_the_largest_standardised_alignment(rivals, model, training) -> None:  # type: ignore[no-untyped-def]
    scorer, (x, _) = rivals[Odds], training
    with torch.no_grad():
        known, new = (scorer.align(part).numpy() for part in (x, floats(random_images(6, seed=7))))
    named_known = observe_all(model, x).logits.argmax(dim=1).numpy()
    named = observe_all(model, floats(random_images(6, seed=7))).logits.argmax(dim=1).numpy()
    expected = []
    for g, y in zip(new, named, strict=True):
        own = known[named_known == y]
        others = [z for z in range(CLASSES) if z != y]
        z_scores = (g - own.mean(axis=0))[:, others] / own.std(axis=0, ddof=1)[:, others]
        expected.append(z_scores.mean(axis=0).max())
    found = scorer.score(random_images(6, seed=7)).score_vectors[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_the_noise_has_the_sizes_that_it_says() -> None:
    drawn = odds.noises(4, (3, 16, 16), generator=torch.Generator().manual_seed(0))
    for i, size in enumerate(odds.SIZES):
        normal, uniform, sign = drawn[3 * i : 3 * i + 3]
        assert stats.kstest(normal.flatten().numpy() / size, "norm").pvalue > 1e-3
        assert stats.kstest(uniform.flatten().numpy() / size, stats.uniform(-1, 2).cdf).pvalue > 1e-3
        np.testing.assert_allclose(sign.abs().numpy(), size, rtol=1e-6)


def test_reconstruction_scores_as_scikit_learns_one_class_svm(rivals, model, training) -> None:  # type: ignore[no-untyped-def]
    scorer, (x, _) = rivals[Reconstruction], training
    encoders = [
        reconstruction.Autoencoder(scorer.encoders[i : i + 10]) for i in range(0, len(scorer.encoders), 10)
    ]

    def numbers(pictures: torch.Tensor) -> np.ndarray:
        raw = reconstruction.judged(encoders, observe_all(model, pictures).layers).double().numpy()
        return (raw - scorer.svm[0].double().numpy()) / scorer.svm[1].double().numpy()

    svm = OneClassSVM(gamma="scale", nu=0.05).fit(numbers(x[150:]))
    expected = -svm.decision_function(numbers(floats(random_images(6, seed=7))))
    np.testing.assert_allclose(
        scorer.score(random_images(6, seed=7)).score_vectors[:, 0], expected, rtol=1e-2, atol=2e-3
    )


def test_an_autoencoder_reconstructs_what_it_was_trained_on_better_than_noise() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2000, 2, generator=generator) @ torch.randn(2, 12, generator=generator)
    network = reconstruction.trained(z[:1900])
    strange = z.std(dim=0) * torch.randn(100, 12, generator=generator)
    error, norm = network(z[1900:])
    assert network(strange)[0].mean() > 5 * error.mean()
    assert (norm > 0).all()


def test_the_regression_is_scikit_learns_cross_validated_one_on_the_numbers_as_they_are() -> None:
    generator = torch.Generator().manual_seed(0)
    scale = torch.tensor([1.0, 50.0, 0.1])
    passed = torch.randn(80, 3, generator=generator) * scale
    found = (torch.randn(40, 3, generator=generator) + torch.tensor([2.0, 0, 0])) * scale
    weights, bias = supervised.regress(passed, found)
    both = torch.cat([passed, found]).double().numpy()
    theirs = LogisticRegressionCV(
        scoring="accuracy", solver="newton-cholesky", l1_ratios=(0,), use_legacy_attributes=False
    )
    theirs.fit(both, np.r_[np.zeros(80), np.ones(40)])
    ours = both @ weights.double().numpy() + float(bias)
    np.testing.assert_allclose(ours, theirs.decision_function(both), rtol=1e-2, atol=1e-2)
    assert 0.8 < supervised.quality(passed, found) <= 1.0


def test_noise_has_the_authors_size_and_stays_within_the_picture(pairs: dict[str, torch.Tensor]) -> None:
    middle = torch.full((50, 3, 8, 8), 0.5)
    noise = noisy_copies(middle, generator=torch.Generator().manual_seed(0)) - middle
    assert stats.kstest(noise.flatten().numpy() / 0.0125, "norm").pvalue > 1e-3
    inside = noisy_copies(pairs["clean"], generator=torch.Generator().manual_seed(0))
    assert inside.min() >= 0
    assert inside.max() <= 1


def test_noise_that_changes_the_answer_is_not_among_what_is_passed(rivals, model, pairs, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(supervised, "NOISE", 0.3)
    noisy = noisy_copies(pairs["clean"], generator=torch.Generator().manual_seed(0))
    same = observe_all(model, noisy).logits.argmax(dim=1) == observe_all(model, pairs["clean"]).logits.argmax(
        dim=1
    )
    passed, found = rivals[LocalDimension].both_sides(**pairs)
    assert 0 < int(same.sum()) < len(same)
    assert (len(passed), len(found)) == (len(same) + int(same.sum()), len(same))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, SupervisedScorer)])
def test_a_supervised_rival_finds_the_attack_that_it_was_shown(kind, rivals, pairs) -> None:  # type: ignore[no-untyped-def]
    with torch.no_grad():
        clean, attacked = (rivals[kind].strangeness(pairs[side]).numpy() for side in ("clean", "attacked"))
    assert auroc(clean, attacked) > 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_depends_on_the_picture_alone(kind, rivals) -> None:  # type: ignore[no-untyped-def]
    scorer, images, order = rivals[kind], random_images(5, seed=8), [3, 0, 4, 1, 2]
    found = scorer.score(images).score_vectors
    assert found.shape == (5, 1)
    np.testing.assert_allclose(scorer.score(images[order]).score_vectors, found[order], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(scorer.score(images[2]).score_vectors, found[2:3], rtol=1e-3, atol=1e-4)
    assert len(np.unique(found)) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_inspected_is_what_is_scored(kind, rivals) -> None:  # type: ignore[no-untyped-def]
    image = random_images(1, seed=9)[0]
    inspected = rivals[kind].inspect(image)
    np.testing.assert_allclose(inspected.score_vector, rivals[kind].score(image).score_vectors[0], rtol=1e-3)
    assert inspected.variants[0].predicted in {f"the classifier says {name}" for name in "abcd"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_one_scores_alike(kind, rivals, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert SCORERS[kind.kind].endswith(f":{kind.__name__}")
    detector = Detector.calibrate("rival", rivals[kind], random_images(20, seed=3), n_max=1)
    save_detector(detector, tmp_path / "rival")
    again = load_detector(tmp_path / "rival", "cpu")
    images = random_images(4, seed=5)
    np.testing.assert_array_equal(again.score_vectors(images, n=1), detector.score_vectors(images, n=1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_calibrated_rival_keeps_the_bound_on_pictures_it_has_never_seen(kind, rivals) -> None:  # type: ignore[no-untyped-def]
    """The number of 400 new pictures that are flagged follows the beta-binomial law of k = 199 and epsilon = 0.1; a right
    program leaves its central 99.99 % once in 10,000 fits."""
    k, epsilon, new = 199, 0.1, 400
    pictures = random_images(k + new, seed=11)
    detector = Detector.calibrate("rival", rivals[kind], pictures[:k], n_max=1)
    flagged = int(detector.detect(pictures[k:], n=1, epsilon=epsilon).is_ood.sum())
    j = int(np.ceil(epsilon * (k + 1))) - 1
    law = stats.betabinom(new, j, k + 1 - j)
    assert law.ppf(0.00005) <= flagged <= law.ppf(0.99995)


def test_too_few_attacked_pictures_are_refused(model, training, pairs) -> None:  # type: ignore[no-untyped-def]
    few = {side: pictures[:4] for side, pictures in pairs.items()}
    with pytest.raises(SettingError, match="at least 10 pictures"):
        KernelDensity.fit(model, *training, **few, preprocessing=Preprocessing(SIZE))


def test_a_network_that_names_no_classes_is_refused(training) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingError, match="names no classes"):
        Odds.fit(small_model(CLASSES, pair=True), *training, preprocessing=Preprocessing(SIZE))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", ["at least", "not finite", "same features"])
def test_training_pictures_that_say_nothing_are_refused_in_a_sentence(words, kind, model, pairs) -> None:  # type: ignore[no-untyped-def]
    x = {
        "at least": torch.rand(1, 3, SIZE, SIZE),
        "not finite": floats(random_images(30)).index_fill(0, torch.tensor([0, 7]), torch.nan),
        "same features": torch.full((30, 3, SIZE, SIZE), 0.5),
    }[words]
    shown = pairs if issubclass(kind, SupervisedScorer) else {}
    with pytest.raises(SettingError, match=words):
        kind.fit(model, x, torch.arange(len(x)) % CLASSES, **shown, preprocessing=Preprocessing(SIZE))

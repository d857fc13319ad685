"""Scoring many draws or several base NCMs at once gives what the network says of each drawn variant on its own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from idecode_core.errors import InputError
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.scorer import prepared
from idecode_core.transforms import Projective, Rotations, SmallAffine


def scorer(transforms, base_ncm: str, outputs: int = 4) -> ImageScorer:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = Equivariant(ModelConfig("compact", outputs=outputs, widths=(4, 8, 8)))
    return ImageScorer(model, transforms, base_ncm, Preprocessing(16))


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, size=(7, 16, 16, 3), dtype=np.uint8)


def variant_by_variant(one: ImageScorer, images: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Score vectors (N, n) without tables or batches: every drawn variant of every image goes through M alone."""
    rows = []
    with torch.inference_mode():
        for point in prepared(one, images, seed):
            drawn = one.transforms.sample(point.key[None], n)  # (1, n * variants, ...)
            x = one.tensor([point])
            scores = [
                float(one.predict(x, drawn[:, i : i + 1]).scores(one.base_ncm)[0, 0])
                for i in range(drawn.shape[1])
            ]
            rows.append(np.reshape(scores, (n, -1)).mean(axis=1))
    return np.array(rows)


def test_there_are_84_angles_and_each_drawn_one_is_found_among_them() -> None:
    transforms = Rotations("all")
    angles = transforms.all_angles()
    assert len(angles) == len(set(angles.tolist())) == 84
    keys = np.random.default_rng(0).integers(0, 2**63, size=(20, 2), dtype=np.uint64)
    drawn = transforms.sample(keys, 50)
    assert torch.equal(angles[transforms.places(drawn)], drawn)
    assert set(drawn.flatten().tolist()) == set(angles.tolist())


@pytest.mark.parametrize(("per_draw", "n"), [("all", 30), ("one", 100), ("all", 5)])
def test_a_table_of_angles_gives_the_scores_of_the_drawn_ones(per_draw, n: int, images: np.ndarray) -> None:
    one = scorer(Rotations(per_draw), "cross_entropy")
    found = one.score(images, n=n, seed=3).score_vectors
    np.testing.assert_allclose(found, variant_by_variant(one, images, n, seed=3), rtol=1e-4)


def test_the_table_runs_the_network_84_times_per_point(images: np.ndarray, monkeypatch) -> None:
    one = scorer(Rotations("all"), "cross_entropy")
    seen: list[int] = []
    encode = one.model.encode
    monkeypatch.setattr(one.model, "encode", lambda x: (seen.append(len(x)), encode(x))[1])
    one.score_under(["cross_entropy", "cross_entropy_and_familiarity"], images, n=100, seed=0)
    assert sum(seen) == 84 * len(images)


def test_several_base_ncms_share_one_pass(images: np.ndarray) -> None:
    names = ["invariance", "label_cross_entropy", "kl_divergence", "label_logit_and_familiarity"]
    one = scorer(SmallAffine(), "invariance", 10)
    found = one.score_under(names, images, n=4, seed=0)
    for name in names:
        alone = variant_by_variant(replace(one, base_ncm=name), images, 4, seed=0)
        np.testing.assert_allclose(found[name].score_vectors, alone, rtol=1e-4, atol=1e-7)


def test_parameters_of_an_infinite_g_are_scored_as_drawn(images: np.ndarray) -> None:
    one = scorer(Projective(), "parameter_error", 8)
    found = one.score(images, n=3, seed=0).score_vectors
    np.testing.assert_allclose(found, variant_by_variant(one, images, 3, seed=0), rtol=1e-4)


def test_progress_counts_points_and_no_images_are_refused(images: np.ndarray) -> None:
    one = scorer(Rotations("all"), "cross_entropy")
    seen: list[int] = []
    one.score_under(["cross_entropy"], images, n=30, seed=0, progress=seen.append)
    assert seen[-1] == len(images)
    with pytest.raises(InputError, match="at least one image"):
        one.score_under(["cross_entropy"], [], n=30, seed=0)

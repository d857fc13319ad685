"""Scoring many draws or several base NCMs at once gives exactly what scoring them one by one gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from idecode_core.errors import InputError
from idecode_core.images import Preprocessing
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.one_pass import all_angles, angle_places, score_in_one_pass
from idecode_core.scoring import ImageScorer
from idecode_core.transforms import Projective, Rotations, SmallAffine


def scorer(transforms, base_ncm: str, outputs: int = 4) -> ImageScorer:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = Equivariant(ModelConfig("compact", outputs=outputs, widths=(4, 8, 8)))
    return ImageScorer(model, transforms, base_ncm, Preprocessing(16))


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, size=(7, 16, 16, 3), dtype=np.uint8)


def test_there_are_84_angles_and_each_drawn_one_is_found_among_them() -> None:
    transforms = Rotations("all")
    angles = all_angles(transforms)
    assert len(angles) == len(set(angles.tolist())) == 84
    keys = np.random.default_rng(0).integers(0, 2**63, size=(20, 2), dtype=np.uint64)
    drawn = transforms.sample(keys, 50)
    assert torch.equal(angles[angle_places(drawn, transforms)], drawn)
    assert set(drawn.flatten().tolist()) == set(angles.tolist())


@pytest.mark.parametrize(("per_draw", "n"), [("all", 30), ("one", 100), ("all", 5)])
def test_a_table_of_angles_gives_the_same_score_vectors(per_draw, n: int, images: np.ndarray) -> None:
    one = scorer(Rotations(per_draw), "cross_entropy")
    found = score_in_one_pass(one, images, ["cross_entropy"], n=n, seed=3)["cross_entropy"]
    np.testing.assert_allclose(found, one.score(images, n=n, seed=3).score_vectors, rtol=1e-5)


def test_the_table_runs_the_network_84_times_a_point(images: np.ndarray, monkeypatch) -> None:
    one = scorer(Rotations("all"), "cross_entropy")
    seen: list[int] = []
    encode = one.model.encode
    monkeypatch.setattr(one.model, "encode", lambda x: (seen.append(len(x)), encode(x))[1])
    score_in_one_pass(one, images, ["cross_entropy"], n=100, seed=0)
    assert sum(seen) == 84 * len(images)


def test_several_base_ncms_share_one_pass(images: np.ndarray) -> None:
    names = ["invariance", "label_cross_entropy", "kl_divergence", "label_logit_and_familiarity"]
    one = scorer(SmallAffine(), "invariance", 10)
    found = score_in_one_pass(one, images, names, n=4, seed=0)
    for name in names:
        alone = replace(one, base_ncm=name).score(images, n=4, seed=0).score_vectors
        np.testing.assert_allclose(found[name], alone, rtol=1e-5, atol=1e-9)


def test_parameters_of_an_infinite_g_are_scored_as_drawn(images: np.ndarray) -> None:
    one = scorer(Projective(), "parameter_error", 8)
    found = score_in_one_pass(one, images, ["parameter_error"], n=3, seed=0)["parameter_error"]
    np.testing.assert_allclose(found, one.score(images, n=3, seed=0).score_vectors, rtol=1e-5)


def test_progress_counts_points_and_no_images_are_refused(images: np.ndarray) -> None:
    one = scorer(Rotations("all"), "cross_entropy")
    seen: list[int] = []
    score_in_one_pass(one, images, ["cross_entropy"], n=30, seed=0, progress=seen.append)
    assert seen[-1] == len(images)
    with pytest.raises(InputError, match="at least one image"):
        score_in_one_pass(one, [], ["cross_entropy"], n=30, seed=0)

"""Unrounded pictures: floats reach every scorer as they are, and 8-bit pictures written as floats stay what they are."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import SIZE, random_images, small_scorer

from idecode_core.detector import Detector
from idecode_core.errors import InputError
from idecode_core.image.features import Preprocessing, unit_range
from idecode_core.image.read import Unrounded
from idecode_core.models import ModelConfig
from idecode_core.scorer import Scorer
from idecode_core.scorers.distances import Neighbours
from idecode_core.scorers.features import Frozen
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Projective, SmallAffine


def image_scorer() -> Scorer:
    return small_scorer(SmallAffine(), "invariance")


def feature_scorer() -> Scorer:
    model = Frozen(ModelConfig("compact", outputs=1, widths=(8, 8, 8)))
    z = torch.nn.functional.normalize(torch.rand(20, 8, generator=torch.Generator().manual_seed(0)), dim=-1)
    parts = {"model": model, "transforms": SmallAffine(), "preprocessing": Preprocessing(SIZE)}
    return Neighbours.fit(z, torch.zeros(20, dtype=torch.long), **parts)


def merged_scorer() -> Scorer:
    members = (small_scorer(), small_scorer(Projective(), "parameter_error", outputs=8, seed=1))
    references = tuple(
        member.score(random_images(400, seed=9), n=1, seed=0).score_vectors for member in members
    )
    return MergedScorer(members, ("a", "b"), references, (1.0, 1.0))


SCORERS = pytest.mark.parametrize("make", [image_scorer, feature_scorer, merged_scorer])


def floats_of(pictures: np.ndarray) -> torch.Tensor:
    """As an attack takes them: (N, 3, h, w) in [0, 1]."""
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


@SCORERS
def test_the_float_copy_of_an_8_bit_picture_has_its_draws_and_scores(make: Callable[[], Scorer]) -> None:
    scorer, pictures = make(), random_images(5)
    expected = scorer.score(pictures, n=3, seed=4)
    for copy in (floats_of(pictures), pictures / 255, floats_of(pictures).double()):
        found = scorer.score(Unrounded(copy), n=3, seed=4)
        assert np.array_equal(found.score_vectors, expected.score_vectors)
        assert all(torch.equal(a, b) for a, b in zip(found.parameters, expected.parameters, strict=True))
    one = scorer.inspect(Unrounded(floats_of(pictures)[0]), n=3, seed=4)
    assert np.array_equal(one.score_vector, scorer.inspect(pictures[0], n=3, seed=4).score_vector)


@SCORERS
def test_a_change_below_8_bits_reaches_the_network(make: Callable[[], Scorer]) -> None:
    """Where floats were rounded, this change would be gone: the score would be the picture's own."""
    scorer, pictures = make(), random_images(40)
    changed = (floats_of(pictures) + 1.5e-3).clamp(0, 1)  # 0.38 levels
    assert np.array_equal(np.round(changed.numpy() * 255), np.round(floats_of(pictures).numpy() * 255))
    own = scorer.score(pictures, n=1, seed=0).score_vectors
    found = scorer.score(Unrounded(changed), n=1, seed=0).score_vectors
    assert (found != own).mean() > 0.9
    rounded = scorer.score(np.moveaxis(changed.numpy(), 1, 3), n=1, seed=0).score_vectors
    assert np.array_equal(rounded, own), "other float pictures are brought to 8 bits, as files are"


@SCORERS
def test_an_unrounded_pictures_score_does_not_depend_on_its_company(make: Callable[[], Scorer]) -> None:
    scorer, pictures = make(), random_images(4)
    mixed = floats_of(pictures)
    mixed[1::2] = (mixed[1::2] + 1e-3).clamp(0, 1)  # every second one is no 8-bit picture
    together = scorer.score(Unrounded(mixed), n=2, seed=0).score_vectors
    alone = np.concatenate([scorer.score(Unrounded(mixed[i]), n=2, seed=0).score_vectors for i in range(4)])
    assert np.allclose(together, alone, atol=1e-6)
    backwards = scorer.score([Unrounded(mixed[i]) for i in (3, 2, 1, 0)], n=2, seed=0).score_vectors
    assert np.allclose(backwards[::-1], together, atol=1e-6)


def test_every_one_of_the_256_levels_is_recognised() -> None:
    levels = np.arange(256, dtype=np.uint8).repeat(3).reshape(1, 16, 16, 3)
    (found,) = Unrounded(levels.astype(np.float32) / np.float32(255)).pictures()
    assert found.dtype == np.uint8
    assert np.array_equal(found, levels[0])


@given(st.integers(0, 2**32 - 1))
def test_the_network_sees_exactly_the_floats(seed: int) -> None:
    floats = np.random.default_rng(seed).random((2, SIZE, SIZE, 3), dtype=np.float32)
    pictures = [Preprocessing(SIZE)(picture) for picture in Unrounded(floats).pictures()]
    assert np.array_equal(unit_range(pictures, torch.device("cpu")).permute(0, 2, 3, 1).numpy(), floats)


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("shape", [(20, 24), (16, 16), (9, 9)])
def test_unrounded_pictures_are_cut_resized_and_made_grey_as_8_bit_ones_are(
    shape: tuple[int, int], grey: bool
) -> None:
    # No value near black or white: 8-bit pictures are also cut off there, between two steps.
    picture = 64 + random_images(1, 24)[0][: shape[0], : shape[1]] // 2
    preprocessing = Preprocessing(SIZE, grey)
    floats = preprocessing((picture / 255).astype(np.float32))
    assert floats.dtype == np.float32
    assert floats.shape == (SIZE, SIZE, 3)
    assert np.abs(floats * 255 - preprocessing(picture)).max() < 1.6, (
        "8-bit pictures are rounded once per step"
    )
    assert 0 <= floats.min() <= floats.max() <= 1


@pytest.mark.parametrize(
    "x",
    [
        np.full((1, 8, 8, 3), 2.0),
        np.full((1, 8, 8, 3), np.nan),
        np.zeros((1, 8, 8, 3), np.uint8),
        np.zeros((8, 8)),
        torch.zeros(2, 1, 8, 8),
    ],
)
def test_what_is_no_unrounded_picture_is_said(x: object) -> None:
    with pytest.raises(InputError, match="floats from 0 to 1"):
        list(Unrounded(x).pictures())


def test_detect_takes_unrounded_pictures() -> None:
    pictures = random_images(30)
    detector = Detector.calibrate("small", image_scorer(), pictures, n_max=2)
    found = detector.detect(Unrounded(floats_of(pictures[:3])), n=2)
    assert np.array_equal(found.p_values, detector.detect(pictures[:3], n=2).p_values)

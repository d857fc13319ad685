"""Draws are a function of (seed, content): keys, uniform numbers, integers."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from scipy import stats
from small import content_keys

from idecode_core.draws import content_hash, content_key, integers, uniforms
from idecode_core.image.read import read_image

images = arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(3)))
seeds = st.integers(-(2**63), 2**63)


@given(images, seeds)
def test_a_key_depends_on_the_values_and_not_on_how_they_lie_in_memory(x, seed):
    key = content_key(x, seed)
    assert np.array_equal(content_key(np.asfortranarray(x), seed), key)
    assert np.array_equal(content_key(np.repeat(x, 2, axis=1)[:, ::2], seed), key)
    assert np.array_equal(content_key(x.copy(), seed), key)


@given(images, seeds)
def test_one_changed_pixel_or_another_seed_gives_another_key(x, seed):
    changed = x.copy()
    changed[0, 0, 0] ^= 1
    assert not np.array_equal(content_key(changed, seed), content_key(x, seed))
    assert not np.array_equal(content_key(x, seed + 1), content_key(x, seed))


def test_equal_bytes_of_another_shape_or_type_have_another_key():
    x = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert not np.array_equal(content_key(x.reshape(1, 4, 3), 0), content_key(x, 0))
    assert not np.array_equal(content_key(x.view(np.int8), 0), content_key(x, 0))


@given(st.lists(images, min_size=1, max_size=5), seeds, st.randoms(use_true_random=False))
def test_keys_and_draws_of_a_point_do_not_depend_on_its_batch(batch, seed, random):
    together = uniforms(content_keys(batch, seed), 3, 2)
    for i, x in enumerate(batch):
        assert np.array_equal(uniforms(content_keys([x], seed), 3, 2)[0], together[i])
    order = list(range(len(batch)))
    random.shuffle(order)
    assert np.array_equal(uniforms(content_keys([batch[i] for i in order], seed), 3, 2), together[order])


@given(seeds, st.integers(1, 8), st.integers(1, 8), st.integers(1, 10))
def test_the_draws_for_fewer_transforms_are_the_first_of_those_for_more(seed, fewer, more, size):
    fewer, more = min(fewer, more), max(fewer, more)
    keys = content_keys([np.zeros((2, 2, 3), np.uint8), np.ones((2, 2, 3), np.uint8)], seed)
    assert np.array_equal(uniforms(keys, fewer, size), uniforms(keys, more, size)[:, :fewer])


def test_draws_are_the_same_on_every_machine():
    """Pinned numbers: stored calibrations would no longer match if these changed."""
    keys = content_keys([np.arange(12, dtype=np.uint8).reshape(2, 2, 3)], seed=7)
    assert keys.tolist() == [[8180839075487609003, 5729658287732397206]]
    assert uniforms(keys, 2, 2).round(12).tolist() == [
        [[0.651675741211, 0.567637448022], [0.740898971681, 0.823697235516]]
    ]


def test_an_empty_batch_has_no_keys_and_no_draws():
    assert content_keys([], 0).shape == (0, 2)
    assert uniforms(content_keys([], 0), 4, 3).shape == (0, 4, 3)


def test_different_points_have_independent_uniform_draws():
    """Kolmogorov-Smirnov and correlation over 4,000 points; each fails by chance once in 10,000 seeds."""
    keys = content_keys(list(np.arange(4000, dtype=np.int64)[:, None]), seed=0)
    u = uniforms(keys, 1, 2)[:, 0]  # (points, 2)
    assert stats.kstest(u[:, 0], "uniform").pvalue > 1e-4
    assert stats.pearsonr(u[:-1, 0], u[1:, 0]).pvalue > 1e-4
    assert stats.pearsonr(u[:, 0], u[:, 1]).pvalue > 1e-4


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-4, 4), (-10, 10)])
def test_integers_include_both_ends_and_all_are_equally_likely(low, high):
    """Chi-square at error level 1e-4."""
    count = high - low + 1
    assert integers(np.array([0.0, np.nextafter(1.0, 0.0)]), low, high).tolist() == [low, high]
    drawn = integers(np.random.default_rng(0).random(20_000), low, high)
    assert stats.chisquare(np.bincount(drawn - low, minlength=count)).pvalue > 1e-4


def test_a_content_hash_is_of_what_was_decoded_and_not_of_the_file():
    pixels = np.random.default_rng(3).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    files = {kind: io.BytesIO() for kind in ("PNG", "BMP")}
    for kind, file in files.items():
        Image.fromarray(pixels).save(file, kind)
    assert {content_hash(read_image(file.getvalue())) for file in files.values()} == {content_hash(pixels)}
    assert content_hash(pixels) == content_key(pixels, seed=0).tobytes().hex()
    assert content_hash(pixels) != content_hash(pixels.transpose(1, 0, 2))


def test_the_same_samples_at_another_rate_are_another_sound():
    samples = np.linspace(-1, 1, 800, dtype=np.float32)
    hashes = {content_hash(samples, rate) for rate in (8_000, 16_000, 32_000)} | {content_hash(samples)}
    assert len(hashes) == 4
    assert all(int(name, 16) < 2**128 for name in hashes)  # 32 hexadecimal digits, as smoothing needs them

"""Fuzzing of the readers and of the conformal functions; IDECODE_FUZZ says how many examples, `make trial` takes many."""

import io
import os
import zipfile

import numpy as np
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from idecode_core.audio.read import EXTENSIONS, missing_share, read_sound
from idecode_core.conformal import (
    FalseDetectionLaw,
    flagging_rank,
    k_needed,
    observed_band,
    p_values,
    smallest_epsilon,
    smoothed_p_values,
    threshold,
)
from idecode_core.conformal.calibration import AGGREGATES, Calibration
from idecode_core.conformal.judge import judge
from idecode_core.conformal.multiple import benjamini_hochberg
from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File, read_files
from idecode_core.files.tables import read_table
from idecode_core.image.read import read_image

EXAMPLES = int(os.environ.get("IDECODE_FUZZ", "40"))
bounded = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def picture(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.arange(10 * 9 * 3, dtype=np.uint8).reshape(10, 9, 3)).save(buffer, kind)
    return buffer.getvalue()


def sound(kind: str, subtype: str) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.sin(np.arange(2000) * 0.1) / 3, 8000, format=kind, subtype=subtype)
    return buffer.getvalue()


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def saved(save, array) -> bytes:
    buffer = io.BytesIO()
    save(buffer, array)
    return buffer.getvalue()


PICTURES = [picture(kind) for kind in ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")]
SOUNDS = [
    sound(*kind)
    for kind in (
        ("WAV", "PCM_16"),
        ("WAV", "IMA_ADPCM"),
        ("AIFF", "PCM_16"),
        ("AU", "FLOAT"),
        ("FLAC", "PCM_16"),
    )
] + [sound("OGG", "VORBIS"), sound("OGG", "OPUS"), sound("MP3", "MPEG_LAYER_III")]
SCORES = [saved(np.save, np.ones((3, 2))), saved(np.savez_compressed, np.ones((3, 2))), b"a,b\n1,2\n3,4\n"]
ZIPS = [packed({"a.png": PICTURES[0], "b/c.wav": SOUNDS[0]})]


@st.composite
def damaged(draw: st.DrawFn, good: list[bytes]) -> bytes:
    """A good file after a few changes: bytes set, pieces removed, doubled or put in, the end cut off."""
    data = bytearray(draw(st.sampled_from(good)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        change = draw(st.sampled_from(["set", "remove", "double", "insert", "number"]))
        if change == "set" and data:
            data[place] = draw(st.integers(0, 255))
        elif change == "remove":
            del data[place : place + draw(st.integers(1, 40))]
        elif change == "double":
            data[place:place] = data[place : place + draw(st.integers(1, 200))]
        elif change == "insert":
            data[place:place] = draw(st.binary(max_size=20))
        else:
            data[place : place + 4] = draw(
                st.sampled_from([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f"])
            )
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@bounded
@given(damaged(PICTURES) | st.binary(max_size=400))
def test_a_picture_is_read_or_refused(data: bytes) -> None:
    try:
        pixels = read_image(data)
    except IdecodeError:
        return
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == 3


@bounded
@given(damaged(SOUNDS) | st.binary(max_size=400))
def test_a_sound_is_read_or_refused(data: bytes) -> None:
    try:
        found = read_sound(data)
    except IdecodeError:
        return
    assert np.isfinite(found.samples).all()
    assert 0.1 <= found.seconds <= 60


@bounded
@given(damaged(SOUNDS) | st.binary(max_size=400))
def test_a_share_of_a_sound_that_is_missing_is_a_share(data: bytes) -> None:
    assert 0.0 <= missing_share(data) <= 1.0


@bounded
@given(
    damaged(SCORES) | st.binary(max_size=400), st.sampled_from([".npy", ".npz", ".csv", ".CSV", "", ".txt"])
)
def test_scores_are_read_or_refused(data: bytes, ending: str) -> None:
    try:
        vectors = read_table(File(f"x{ending}", data)).vectors()
    except IdecodeError:
        return
    assert vectors.ndim == 2
    assert np.isfinite(vectors).all()


@bounded
@given(damaged(ZIPS) | st.binary(max_size=400), st.text(max_size=20))
def test_an_archive_gives_files_and_sentences_and_never_more_than_allowed(data: bytes, name: str) -> None:
    found = read_files(
        [File(f"{name}.zip", data), File(name, b"x")], (".png", *EXTENSIONS), most_bytes=10_000
    )
    assert sum(len(file.data) for file in found.files) <= 10_001
    assert len(found.files) + len(found.refused) >= 1


SCORE = st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, -1.0])
LISTS = st.lists(SCORE, min_size=1, max_size=30)
EPSILON = st.floats(1e-6, 1 - 1e-6)


@bounded
@given(LISTS, LISTS, EPSILON)
def test_p_value_threshold_and_judge_say_the_same(calibration, test, epsilon) -> None:
    expected = [(sum(c >= t for c in calibration) + 1) / (len(calibration) + 1) for t in test]
    assert p_values(calibration, test).tolist() == expected
    flagged = [p < epsilon for p in expected]
    assert [t > threshold(calibration, epsilon) for t in test] == flagged
    judged = judge(Calibration(np.array(calibration)[:, None]), np.array(test)[:, None], epsilon=epsilon)
    assert judged.is_ood.tolist() == flagged


@bounded
@given(LISTS, LISTS, st.integers(0, 2**32))
def test_smoothed_p_values_lie_below_the_plain_ones_and_above_zero(calibration, test, seed) -> None:
    smoothed = smoothed_p_values(calibration, test, generator=np.random.default_rng(seed))
    assert (smoothed > 0).all()
    assert (smoothed <= p_values(calibration, test) + 1e-12).all()


@bounded
@given(st.integers(1, 10**9), EPSILON)
def test_the_number_of_levels_below_epsilon(k, epsilon) -> None:
    j = flagging_rank(k, epsilon)
    assert 0 <= j <= k + 1
    assert j == 0 or j / (k + 1) < epsilon
    assert (j + 1) / (k + 1) >= epsilon
    assert flagging_rank(k, smallest_epsilon(k)) >= 1
    assert flagging_rank(k_needed(epsilon), epsilon) >= 1


@bounded
@given(st.integers(1, 3000), EPSILON, st.integers(1, 3000), st.floats(0.5, 0.999))
def test_bands_are_shares_in_order(k, epsilon, points, level) -> None:
    low, high = observed_band(k, epsilon, points, level)
    assert 0 <= low <= high <= 1
    assert FalseDetectionLaw(k, epsilon).mean <= epsilon


@bounded
@given(
    arrays(np.float64, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=st.floats()),
    st.sampled_from([*AGGREGATES, "other"]),
    st.floats(),
    st.integers(-3, 9),
)
def test_whatever_comes_in_is_judged_or_refused(array, aggregate, epsilon, n) -> None:
    """NaN, infinities, wrong shapes, unknown names: an IdecodeError or p-values in (0, 1]."""
    try:
        calibration = Calibration(array)
        judged = judge(calibration, np.abs(array)[:, :n], epsilon=epsilon, aggregate=aggregate)
    except IdecodeError:
        return
    assert ((judged.p_values > 0) & (judged.p_values <= 1)).all()


@bounded
@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=30), EPSILON)
def test_benjamini_hochberg_flags_the_smallest_p_values(found, epsilon) -> None:
    flagged = np.asarray(benjamini_hochberg(found, epsilon))
    assert not flagged.any() or max(np.array(found)[flagged]) <= min(np.array(found)[~flagged], default=1.0)


def test_the_files_that_are_damaged_were_good() -> None:
    """A fuzzer that starts from files that nobody can read tests nothing."""
    assert all(read_image(data).shape == (10, 9, 3) for data in PICTURES)
    assert all(len(read_sound(data).samples) >= 2000 for data in SOUNDS)
    for data, ending in zip(SCORES, (".npy", ".npz", ".csv"), strict=True):
        assert read_table(File(f"x{ending}", data)).vectors().shape[1] == 2
    assert len(read_files([File("x.zip", ZIPS[0])], (".png", ".wav")).files) == 2

"""What people who come from torch, scikit-learn and pandas do without thinking works here too."""

import os

import numpy as np
import pytest
import torch
from PIL import Image
from small import random_images, small_scorer
from torch.utils.data import DataLoader, Dataset, TensorDataset

from idecode_core import Detector, load_detector
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.conformal.evidence import derandomised_e_values, e_benjamini_hochberg
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.errors import IdecodeError, NothingFlaggedWarning
from idecode_core.files.find import expanded

IMAGES = random_images(6, seed=3)
TENSOR = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)  # (6, 3, 16, 16), bytes


@pytest.fixture(scope="module")
def detector():
    return Detector.calibrate("small", small_scorer(), random_images(80), n_max=3)


@pytest.fixture(scope="module")
def expected(detector):
    return detector.detect(IMAGES, n=3).score_vectors


class Pairs(Dataset):
    """A torch Dataset that does not end by itself: an index beyond its length wraps around."""

    def __len__(self):
        return len(TENSOR)

    def __getitem__(self, i):
        return TENSOR[i % 6].float() / 255, i


class Dicts(Pairs):
    def __getitem__(self, i):
        return {"image": Image.fromarray(IMAGES[i % 6]), "label": i}


FORMS = {
    "bytes (N, C, H, W)": lambda: TENSOR,
    "floats (N, C, H, W)": lambda: TENSOR.float() / 255,
    "half precision": lambda: (TENSOR.double() / 255).to(torch.float32),
    "a list of tensors": lambda: list(TENSOR),
    "a Dataset of (image, label)": Pairs,
    "a Dataset of dictionaries": Dicts,
    "a DataLoader of (image, label)": lambda: DataLoader(Pairs(), batch_size=4),
    "a DataLoader without labels": lambda: DataLoader(TENSOR, batch_size=4),
    "a TensorDataset": lambda: TensorDataset(TENSOR, torch.arange(6)),
    "a TensorDataset without labels": lambda: TensorDataset(TENSOR),
    "a list of (image, label)": lambda: [(image, 3) for image in IMAGES],
    "a generator of batches": lambda: (TENSOR[i : i + 2] for i in (0, 2, 4)),
}


@pytest.mark.parametrize("form", FORMS)
def test_detect_takes_what_torch_people_have(detector, expected, form):
    found = detector.detect(FORMS[form](), n=3)
    np.testing.assert_allclose(found.score_vectors, expected, rtol=1e-5)


def test_two_pictures_in_a_list_are_no_picture_with_a_label(detector, expected):
    for pair in (list(IMAGES[:2]), [IMAGES[0][..., 0], IMAGES[1][..., 0]], tuple(TENSOR[:2])):
        assert len(detector.detect(pair, n=3)) == 2
        assert len(detector.detect([pair], n=3)) == 2


def test_grey_and_single_tensors_are_read(detector):
    assert len(detector.detect(TENSOR[0], n=3)) == 1
    assert len(detector.detect(TENSOR[:, :1], n=3)) == 6


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (TENSOR.permute(0, 2, 3, 1), r"shape \(6, 16, 16, 3\); expected channels first.*movedim"),
        (TENSOR.float(), "between 0 and 1"),
        (TENSOR.float() / 127.5 - 1, "between 0 and 1"),
        (3, "Expected images"),
        ([{"pixels": 1}], "got dict"),
    ],
)
def test_tensors_that_are_no_pictures_are_refused_in_words(detector, samples, words):
    with pytest.raises(IdecodeError, match=words):
        detector.detect(samples, n=3)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "below it").mkdir()
    for i, image in enumerate(IMAGES):
        Image.fromarray(image).save(tmp_path / ("below it" if i > 3 else "") / f"{i} ä.png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_folders_globs_and_files_are_named_in_the_frame(detector, expected, folder):
    for samples in (folder, str(folder), [folder / "below it", str(folder / "?*.png")], f"{folder}/**/*.png"):
        frame = detector.detect(samples, n=3).to_frame()
        places = [int(name.rpartition(os.sep)[2][0]) for name in frame["file"]]
        assert sorted(places) == list(range(6))
        np.testing.assert_array_equal(frame["score"], expected[places].sum(axis=1))


def test_a_glob_goes_round_no_circle_of_links_and_passes_over_what_is_hidden(tmp_path):
    for name in ("a.png", "below/b.png", ".hidden/c.png", "._a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("one", "two"):  # each doubles the ways into the circle
        (tmp_path / "below" / name).symlink_to(tmp_path)
    for pattern, names in {
        "**/*.png": ["a.png", "below/b.png"],
        "**": ["a.png", "below/b.png"],
        "below/on*/*.png": ["below/one/a.png"],  # a link that is named is followed
        "a**.png": ["a.png"],
        ".*.png": ["._a.png"],
    }.items():
        found = expanded(tmp_path / pattern, (".png",))
        assert [path.relative_to(tmp_path).as_posix() for path in found] == names, pattern


def test_frame_has_one_row_per_point(detector):
    found = detector.detect(IMAGES, n=3, epsilon=0.5)
    frame = found.to_frame()
    assert list(frame.columns) == ["is_ood", "p_value", "score", "rank"]
    np.testing.assert_array_equal(frame["p_value"], found.p_values)
    np.testing.assert_array_equal(frame["is_ood"], frame["p_value"] < 0.5)


@pytest.mark.parametrize(
    ("name", "words"), [("*.jpg", "no file matches"), ("nothing.png", "could not be opened")]
)
def test_a_pattern_or_path_without_a_file_is_said(detector, folder, name, words):
    with pytest.raises(IdecodeError, match=words):
        detector.detect(folder / name, n=3)


def test_a_folder_calibrates_and_scores_too(detector, folder, expected):
    again = Detector.calibrate("small", detector.scorer, folder, n_max=3)
    assert again.calibration.k == 6
    assert detector.score_vectors(folder, n=3).shape == (6, 3)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(detector, tmp_path):
    path = tmp_path / "odd [1].png"
    Image.fromarray(IMAGES[0]).save(path)
    assert detector.detect(path, n=3).names == (str(path),)


def test_scikit_learn_verbs_have_scikit_learn_signs(detector):
    found = detector.detect(IMAGES, n=3, epsilon=0.4)
    assert 0 < found.is_ood.sum() < 6
    options = {"n": 3, "epsilon": 0.4}
    np.testing.assert_array_equal(detector.predict(IMAGES, **options), np.where(found.is_ood, -1, 1))
    np.testing.assert_array_equal(detector.decision_function(IMAGES, **options) < 0, found.is_ood)
    np.testing.assert_array_equal(
        np.argsort(detector.score_samples(IMAGES, **options)), np.argsort(-found.scores)
    )


def test_fit_calibrates_a_new_detector_and_leaves_the_old_one(detector):
    before = detector.calibration
    fitted = detector.fit(random_images(30, seed=9), [0] * 30)
    assert (fitted.calibration.k, fitted.name, fitted.scorer) == (30, "small", detector.scorer)
    assert detector.calibration is before
    again = Detector.calibrate("x", detector.scorer, random_images(30, seed=9), n_max=3)
    np.testing.assert_array_equal(fitted.calibration.score_vectors, again.calibration.score_vectors)


def test_delta_compares_with_the_corrected_epsilon_and_remembers_what_was_asked(detector):
    found = detector.detect(IMAGES, n=3, epsilon=0.3, delta=0.1)
    assert found.epsilon == corrected_epsilon(80, 0.3, 0.1) < 0.3
    assert (found.promised, found.delta) == (0.3, 0.1)
    np.testing.assert_array_equal(found.is_ood, found.p_values < found.epsilon)
    assert detector.detect(IMAGES, n=3, epsilon=0.3).promised == 0.3
    with pytest.warns(NothingFlaggedWarning, match="k of at least"):
        detector.detect(IMAGES, n=3, epsilon=0.02, delta=0.1)
    with pytest.raises(IdecodeError, match="delta must lie"):
        detector.detect(IMAGES, n=3, delta=1.0)


def test_detectors_are_loaded_by_name_from_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_detector("fashion-rotations").name == "fashion-rotations"


def test_known_outliers_and_e_bh_over_draws_are_the_functions_of_the_statistics_room(detector, expected):
    known = detector.calibration.score_vectors
    strange = detector.score_vectors(255 - IMAGES, n=3)
    found = detector.detect(IMAGES, n=3, outliers=255 - IMAGES)
    np.testing.assert_array_equal(found.p_values, integrative_p_values(known, strange, expected))
    assert (found.p_values != detector.detect(IMAGES, n=3).p_values).any()
    e = derandomised_e_values(known.T, expected.T, 0.4)
    np.testing.assert_array_equal(found.stable(0.8), e_benjamini_hochberg(e, 0.8))

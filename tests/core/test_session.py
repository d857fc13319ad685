"""A session keeps what was judged, tagged and pinned; app and notebook may both change it, and nothing is lost."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small import random_images, small_scorer

from idecode_core.detector import Detector
from idecode_core.errors import SessionError, SettingError
from idecode_core.session import Session, recent


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.calibrate("small", small_scorer(), random_images(24, seed=1), n_max=6, seed=4)


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "sessions"))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i, pixels in enumerate(random_images(5, seed=2)):
        Image.fromarray(pixels).save(folder / f"{i}.png")
    return folder


@pytest.fixture
def session(detector: Detector, pictures: Path) -> Session:
    return Session.from_detection(detector.detect(pictures, n=3, epsilon=0.25, seed=7), name="monday")


def test_a_session_opened_by_its_name_is_the_one_that_was_saved(session, detector, pictures):
    found = detector.detect(pictures, n=3, epsilon=0.25, seed=7)
    again = Session.open("monday")
    assert [one.name for one in again.inputs] == [f"{i}.png" for i in range(5)]
    assert [one.path for one in again.inputs] == [str(pictures / f"{i}.png") for i in range(5)]
    assert np.array_equal(again.p_values, found.p_values)
    assert np.array_equal(again.score_vectors, found.score_vectors)
    assert again.is_ood == found.is_ood.tolist()
    assert (again.settings.n, again.settings.epsilon, again.settings.seed) == (3, 0.25, 7)
    assert not (again.folder / "files").exists()  # they came as paths and stay there


def test_its_detector_comes_back_and_judges_alike(session):
    """This one is not installed anywhere, so the session holds it."""
    again = Session.open("monday")
    found = again.load_detector().detect([one.path for one in again.inputs], n=3, epsilon=0.25, seed=7)
    assert np.array_equal(found.p_values, again.p_values)


def test_tags_notes_and_pinned_runs_are_read_back(session):
    first, second = session.inputs[:2]
    session.tag(first, "wrong verdict", "  my   own words ")
    session.note(second.name, "one line\nanother")
    session.pin("at five", "small", {"n": 5}, {"flagged": 2})
    session.save()
    again = Session.open("monday")
    assert again.tagged("wrong verdict") == [first]
    assert again.tags[first.content_hash] == ("wrong verdict", "my own words")
    assert again.notes == {second.content_hash: "one line\nanother"}
    assert again.pinned[0].numbers == {"flagged": 2.0}
    again.tag(first)
    again.save()
    assert session.reload().tags == {}


def test_a_renamed_session_is_opened_by_its_title_and_by_its_name(session):
    other = Session.open("monday")
    other.tag(other.inputs[0], "check")
    session.rename("  Bags,  the <b>second</b> try ")
    session.save()
    other.save()
    title = "Bags, the <b>second</b> try"
    for again in (Session.open("monday"), Session.open(title), other):
        assert (again.title, again.name, len(again.tags)) == (title, "monday", 1)
    assert recent()[0].title == title
    for bad in ("", " ", "x" * 81, "a\u202eb"):
        with pytest.raises(SettingError, match="1 to 80 plain characters"):
            session.rename(bad)


def test_a_file_that_changed_or_went_costs_one_sentence_and_the_rest_is_shown(session, pictures):
    (pictures / "1.png").unlink()
    Image.fromarray(random_images(1, seed=99)[0]).save(pictures / "3.png")
    found, sentences = Session.open("monday").samples()
    assert [one.name for one, _ in found] == ["0.png", "2.png", "4.png"]
    assert "1.png can no longer be read" in sentences[0]
    assert "3.png has changed since it was judged" in sentences[1]
    assert len(sentences) == 2


def test_a_name_in_use_and_a_name_that_is_a_path_are_refused(session, detector):
    found = detector.detect(random_images(1), n=1)
    with pytest.raises(SessionError, match="There is a session monday already"):
        Session.from_detection(found, name="monday")
    for name in ("../up", "a/b", "", " ", ".hidden", "x" * 90):
        if name:
            with pytest.raises(SessionError, match="A session's name has"):
                Session.from_detection(found, name=name)
    assert Session.from_detection(found).name.startswith("own ")


def test_an_unknown_input_and_a_tag_that_is_too_long_are_one_sentence(session):
    with pytest.raises(SettingError, match="no input nobody"):
        session.tag("nobody", "check")
    with pytest.raises(SettingError, match="at most 60 plain characters"):
        session.tag(session.inputs[0], "x" * 61)

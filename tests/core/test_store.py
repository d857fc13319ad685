"""A session's files: nothing is lost by rounding or by a kill, and scores are hashed."""

# ruff: noqa: F811  `detector` and `session` are fixtures of another file

import json

import numpy as np
import pytest
from small import random_images
from test_session import detector, own_root, pictures, session  # noqa: F401  fixtures

from idecode_core.session import Session, recent
from idecode_core.session.store import FILE, sessions_root


def test_arrays_are_stored_without_loss(detector):
    pixels = random_images(3, seed=5)
    session = Session.from_detection(detector.detect(pixels, n=2), name="arrays")
    samples, sentences = Session.open("arrays").samples()
    assert sentences == []
    assert all(np.array_equal(sample, x) for (_, sample), x in zip(samples, pixels, strict=True))
    assert len(session) == 3


def test_a_process_that_died_between_scores_and_json_leaves_the_old_session(session, monkeypatch):
    before = Session.open("monday").p_values
    session.judged(session.settings, session.score_vectors + 1, session.p_values / 2)
    monkeypatch.setattr("idecode_core.session.store.write_json", _dies)
    with pytest.raises(KeyboardInterrupt):
        session.save()
    assert np.array_equal(Session.open("monday").p_values, before)


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_recent_sessions_come_last_changed_first_and_a_broken_one_has_its_sentence(session, detector):
    Session.from_detection(detector.detect(random_images(2), n=1), name="tuesday")
    broken = sessions_root() / "broken"
    broken.mkdir()
    (broken / FILE).write_text("{")
    import os

    for age, name in enumerate(("broken", "tuesday", "monday")):
        os.utime(sessions_root() / name / FILE, (1e9 - age, 1e9 - age))
    found = recent()
    assert [one.name for one in found] == ["broken", "tuesday", "monday"]
    assert "cannot be read as a session" in found[0].sentence
    assert (found[1].inputs, found[2].inputs, found[2].detector) == (2, 5, "small")


def test_the_json_holds_no_more_than_it_says_and_its_scores_are_hashed(session):
    value = json.loads((session.folder / FILE).read_text())
    assert set(value) == {
        "format",
        "revision",
        "made",
        "detector",
        "settings",
        "scores_sha256",
        "title",
        "inputs",
        "pinned",
    }
    assert (session.folder / f"scores-{value['scores_sha256'][:16]}.npz").exists()
    assert len(list(session.folder.glob("scores-*.npz"))) == 1

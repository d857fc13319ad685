"""A session from a stranger: each trick is one sentence, nothing outside of its folder is read, nothing runs."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from small import random_images, small_scorer

from idecode_core.detector import Detector
from idecode_core.errors import SessionError
from idecode_core.session import Session
from idecode_core.session.store import FILE


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "sessions"))
    detector = Detector.calibrate("small", small_scorer(), random_images(24, seed=1), n_max=3)
    return Session.from_detection(detector.detect(random_images(2), n=2), name="strange")


def changed(session: Session, **changes: object) -> None:
    path = session.folder / FILE
    value = json.loads(path.read_text())
    for where, new in changes.items():
        place = value
        *parts, last = where.split("__")
        for part in parts:
            place = place[int(part)] if part.isdigit() else place[part]
        place[last] = new
    path.write_text(json.dumps(value))


def refused(session: Session) -> str:
    with pytest.raises(SessionError) as found:
        Session.open(session.folder)
    sentence = str(found.value)
    assert "\n" not in sentence
    return sentence


def test_a_session_from_a_newer_version_asks_for_an_update(session):
    changed(session, format=2)
    assert "newer version of this program (format 2, this one reads 1): update" in refused(session)


@pytest.mark.parametrize("kept", [0, 1, 40, 400])
def test_a_session_that_was_cut_is_one_sentence(session, kept):
    path = session.folder / FILE
    path.write_bytes(path.read_bytes()[:kept])
    assert "cannot be read as a session" in refused(session)


def test_a_folder_without_its_json_is_no_session(session):
    (session.folder / FILE).unlink()
    assert "There is no session strange" in refused(session)


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs__0__stored": "../../../etc/passwd"},
        {"inputs__0__stored": "/etc/passwd"},
        {"inputs__0__stored": ".."},
        {"inputs__0__path": "/etc/passwd"},  # a path and a stored file
        {"inputs__0__content_hash": "../x"},
        {"inputs__0__name": "a\x1b[31mred"},
        {"inputs__0__name": "x" * 2000},
        {"inputs__0__tags": ["ok", 3]},
        {"inputs__0__tags": ["x"] * 1000},
        {"inputs__0__note": "x" * 6000},
        {"inputs": {}},
        {"detector__folder": "../../elsewhere"},
        {"detector__folder": ".."},
        {"detector__modality": "video"},
        {"detector__k": 0},
        {"settings__epsilon": float("nan")},
        {"settings__epsilon": 2.0},
        {"settings__n": -1},
        {"settings__seed": "0"},
        {"settings__aggregate": ["sum"]},
        {"scores_sha256": "../../x"},
        {"scores_sha256": "0" * 64},
        {"revision": "9"},
        {"pinned": [{"title": "t"}]},
        {"pinned": [{"title": "t", "detector": "d", "settings": {"a": {}}, "numbers": {}}]},
    ],
    ids=lambda changes: next(f"{key}={str(value)[:20]}" for key, value in changes.items()),
)
def test_a_changed_key_is_refused_with_one_sentence(session, changes):
    changed(session, **changes)
    refused(session)


def scores_file(session: Session) -> Path:
    (path,) = session.folder.glob("scores-*.npz")
    return path


def test_scores_that_declare_two_gigabytes_are_not_unpacked(session):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2, 2**27)}
    )
    with zipfile.ZipFile(scores_file(session), "w") as archive:
        archive.writestr("score_vectors.npy", header.getvalue())
        archive.writestr("p_values.npy", header.getvalue())
    assert "declares 2,147,483,648 bytes" in refused(session)


def test_scores_that_hold_objects_are_never_loaded(session):
    np.savez(scores_file(session), score_vectors=np.array([print, print], object), p_values=np.ones(2))
    assert "holds objects, which are never loaded" in refused(session)


def test_scores_of_another_session_are_noticed(session):
    np.savez(scores_file(session), score_vectors=np.ones((2, 2)), p_values=np.ones(2))
    assert "does not hold the scores of this session" in refused(session)


def test_a_link_that_leads_outside_is_not_followed(session, tmp_path):
    secret = tmp_path / "secret.png"
    stored = session.folder / "files" / session.inputs[0].stored
    secret.write_bytes(stored.read_bytes())
    stored.unlink()
    stored.symlink_to(secret)
    found, sentences = Session.open(session.folder).samples()
    assert len(found) == 1
    assert "lies outside of the session's folder" in sentences[0]


def test_a_path_that_never_ends_is_not_read(session, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    changed(session, inputs__0__stored="", inputs__0__path=str(pipe))
    found, sentences = Session.open(session.folder).samples()
    assert len(found) == 1
    assert "not a plain file" in sentences[0]


def test_a_file_with_other_content_is_never_shown_as_the_one_that_was_judged(session, tmp_path):
    """A session that points to somebody's picture shows nothing of it without knowing its content."""
    from PIL import Image

    private = tmp_path / "private.png"
    Image.fromarray(random_images(1, seed=77)[0]).save(private)
    changed(session, inputs__0__stored="", inputs__0__path=str(private))
    found, sentences = Session.open(session.folder).samples()
    assert len(found) == 1
    assert "has changed since it was judged" in sentences[0]


def test_saving_leaves_files_of_other_names_beside_the_session(session):
    (session.folder / "scores-final.npz").write_bytes(b"mine")
    (session.folder / "scores-0123456789abcdef.npz").write_bytes(b"of an earlier revision")
    session.save()
    assert (session.folder / "scores-final.npz").read_bytes() == b"mine"
    assert len(list(session.folder.glob("scores-*.npz"))) == 2

"""Calibrate ends in use: the new detector is at hand on every page, says what belongs, and what was lost; uploads replace all or nothing."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from trust_pages import HOME, make_checkpoints, open_page, png, zipped

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.same_source import compare
from idecode_core.folder.detector import load_detector
from idecode_core.folder.settings import read_settings
from idecode_core.image.sets import load_images
from idecode_core.modality import modality_named
from idecode_core.quality.user_data import what_is_lost
from idecode_core.report.calibrations import calibration_card, calibration_report
from ui.calibrate.calibration import _scored
from ui.frame.samples import png as as_png


@pytest.fixture(scope="module", autouse=True)
def checkpoints(tmp_path_factory):
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        patch.setenv("IDECODE_SESSIONS", str(root.parent / "sessions"))
        yield root


def words(app: AppTest) -> str:
    elements = [*app.markdown, *app.info, *app.warning, *app.error, *app.success, *app.caption]
    return "\n".join(element.value for element in elements).replace("\\", "")


def upload(app: AppTest, *files: tuple[str, bytes], key: str = "calibrate_files") -> AppTest:
    return app.file_uploader(key=key).set_value([(name, data, "image/png") for name, data in files]).run()


@pytest.fixture(scope="module")
def scored(checkpoints) -> AppTest:
    """Photographs, which are strange to a detector of clothing, as a calibration set."""
    photos = load_images("photos-sample").x[:25]
    app = upload(
        open_page("calibrate", way="Calibrate"),
        *((f"{i}.png", as_png(photo)) for i, photo in enumerate(photos)),
    )
    app = app.button(key="cal_score").click().run()
    assert not app.exception
    return app


def test_what_is_lost_is_counted_as_one_would_by_hand():
    parent, own = Calibration(np.arange(1.0, 100.0)[:, None]), Calibration(np.arange(201.0, 300.0)[:, None])
    sets = {"near": np.full((4, 1), 150.0), "far": np.full((6, 1), 1000.0)}
    lost = what_is_lost(parent, own, sets, n=1, epsilon=0.05)
    assert [(c.label, c.total, c.before, c.after) for c in lost.catches] == [
        ("near", 4, 4, 0),
        ("far", 6, 6, 6),
    ]
    assert (lost.before, lost.after, lost.blind) == (1.0, 0.6, False)
    blind = what_is_lost(parent, Calibration(own.score_vectors + 1e6), sets, n=1, epsilon=0.05)
    assert blind.blind
    assert "blind" in blind.reading()
    few = what_is_lost(parent, Calibration(np.ones((5, 1))), sets, n=1, epsilon=0.05)
    assert "cannot flag anything" in few.reading()


def test_report_and_card_say_what_was_lost_and_who_the_parent_is():
    parent, own = Calibration(np.arange(1.0, 100.0)[:, None]), Calibration(np.arange(201.0, 300.0)[:, None])
    lost = what_is_lost(parent, own, {"near": np.full((4, 1), 150.0)}, n=1, epsilon=0.05)
    comparison = compare(own.scores(1), parent.scores(1))
    report = calibration_report("cats", comparison, ["a.png"], [201.0], [0.01], {}, None, "", lost)
    assert any("near 4 of 4, now 0 of 4" in sentence for sentence in report.sentences)
    shipped = SimpleNamespace(name="cats", summary="pictures of cats", calibration=parent)
    card = calibration_card("temples", shipped, own, comparison, 1, belongs="temples", lost=lost)
    for part in ("What belongs: temples.", "Parent: cats", "| near | 4 of 4 | 0 of 4 |", "not detection"):
        assert part in card


def test_the_bundled_sets_leave_out_what_the_parent_knows():
    assert "clothing" not in modality_named("image").bundled("fashion")
    assert set(modality_named("image").bundled("fashion")) == {
        "digits",
        "photographs",
        "textures",
        "CIFAR-10",
    }
    assert "spoken digits" not in modality_named("audio").bundled("spokendigits")
    assert "spoken digits" in modality_named("audio").bundled("esc50")


def test_the_page_says_that_a_detector_calibrated_on_strange_files_is_blind(scored, checkpoints):
    assert "This detector is blind" in "".join(warning.value for warning in scored.warning)
    parent = load_detector(checkpoints / "fashion-rotations")
    digits = modality_named("image").bundled("fashion")["digits"]
    flagged = parent.detect(digits, n=5, epsilon=0.05).p_values < 0.05
    assert f"| digits | {flagged.mean():.0%} | 0% | 20 |" in words(scored)


def place_of(node: Any, key: str, way: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Where a widget stands: its index among its siblings, from the page down. () where it is not."""
    if getattr(node, "key", None) == key:
        return way
    for i, child in getattr(node, "children", {}).items():
        if found := place_of(child, key, (*way, i)):
            return found
    return ()


def test_half_typed_words_keep_their_place_when_the_page_runs_again(checkpoints):
    """The browser draws a box that moves as a new, empty one: words that were not sent yet are lost."""
    _scored.clear()  # so that this visitor is the first one, who sees a bar of progress
    photos = load_images("photos-sample").x[:22]
    app = upload(
        open_page("calibrate", way="Calibrate"),
        *((f"{i}.png", as_png(photo)) for i, photo in enumerate(photos)),
    )
    app.button(key="cal_score").click().run()
    first = place_of(app.main, "cal_belongs")
    app.text_input(key="cal_name").set_value("temples").run()
    assert place_of(app.main, "cal_belongs") == first != ()


def test_use_it_now_needs_a_name_that_is_free_and_what_belongs_and_is_then_at_hand_on_every_page(
    scored, checkpoints
):
    app = scored
    assert app.button(key="cal_use").disabled  # nobody said what belongs
    app.text_input(key="cal_belongs").set_value("temples ![x](http://tracker.example/x.png)").run()
    app.text_input(key="cal_name").set_value("bare").run()
    assert app.button(key="cal_use").disabled
    assert "a detector called bare already" in words(app)
    app.text_input(key="cal_name").set_value("temples").run()
    app.button(key="cal_use").click().run()
    assert not app.exception
    assert app.session_state["detector"] == "temples"
    assert app.button(key="menu_temples")
    assert "is in use on every page" in app.success[0].value
    assert "](http" not in app.success[0].value.replace("\\]\\(", "")  # escaped, so nothing is fetched
    made = app.session_state["session_detectors"]["temples"]
    assert (made.config.summary[:7], made.config.dataset, made.config.k) == ("temples", "", 25)
    assert "Parent: fashion-rotations" in made.card
    assert not (checkpoints / "temples").exists()

    for page in ("inspect", "guarantee"):
        other = AppTest.from_file(str(HOME / "pages" / f"{page}.py"), default_timeout=180)
        other.session_state["session_detectors"] = {"temples": made}
        other.session_state["detector"] = "temples"
        other.run()
        assert not other.exception, page
        assert [error.value for error in other.error] == [], page
        assert other.session_state["detector"] == "temples"


def test_saved_to_my_detectors_it_is_a_folder_like_any_other_and_never_overwrites_one(scored, checkpoints):
    app = scored
    if "temples" not in app.session_state["session_detectors"]:  # this test alone
        app.text_input(key="cal_belongs").set_value("temples").run()
        app.text_input(key="cal_name").set_value("temples").run()
        app.button(key="cal_use").click().run()
    (checkpoints / "temples").mkdir()
    app.button(key="own_save").click().run()
    assert "is there already" in app.error[0].value
    (checkpoints / "temples").rmdir()
    app.button(key="own_save").click().run()
    try:
        settings = read_settings(checkpoints / "temples")
        assert (settings.dataset, settings.k, settings.name) == ("", 25, "temples")
        assert load_detector(checkpoints / "temples").calibration.k == 25
        assert "temples" not in app.session_state["session_detectors"]
        assert app.session_state["detector"] == "temples"
    finally:
        shutil.rmtree(checkpoints / "temples")


@pytest.mark.parametrize(
    ("address", "headers", "local"),
    [
        ("localhost", {}, True),
        ("localhost", {"Host": "localhost:8501"}, True),
        ("127.0.0.1", {"Host": "[::1]:8501"}, True),
        ("0.0.0.0", {"Host": "localhost:8501"}, False),
        (None, {}, False),
        ("localhost", {"Host": "studio.example.org"}, False),
        ("localhost", {"Host": "localhost:8501", "X-Forwarded-For": "203.0.113.9"}, False),
    ],
)
def test_only_someone_at_this_machine_may_save_to_its_disk(monkeypatch, address, headers, local):
    import streamlit as st

    from ui.frame.session import at_this_machine

    monkeypatch.setattr(st, "get_option", lambda name: address)
    monkeypatch.setattr(type(st.context), "headers", property(lambda self: headers))
    assert at_this_machine() is local


def test_after_an_unexpected_error_the_files_of_the_upload_before_are_not_used(monkeypatch):
    app = upload(open_page("calibrate", way="Calibrate"), ("1.png", png(1)), ("2.png", png(2)))
    assert "2 pictures ready" in words(app)
    assert app.button(key="cal_score").label == "Score 2 files"

    def broken(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr("ui.frame.uploads.read_files", broken)
    upload(app, ("3.png", png(3)), ("4.png", png(4)))
    assert not app.exception
    assert "something went wrong in the program" in words(app)
    assert "it took the place of the one before" in words(app)
    assert not [button for button in app.button if button.key == "cal_score"]


def test_one_file_that_breaks_the_reader_costs_one_sentence(monkeypatch):
    import ui.frame.scores as scores

    sample_of_upload = scores.sample_of_upload

    def sometimes(modality, name, data):
        if name == "2.png":
            raise OverflowError("deep inside")
        return sample_of_upload(modality, name, data)

    monkeypatch.setattr(scores, "sample_of_upload", sometimes)
    app = upload(open_page("calibrate", way="Calibrate"), *((f"{i}.png", png(i)) for i in range(4)))
    assert "3 pictures ready" in words(app)
    assert "2.png: an error in the program" in words(app)


def test_all_archives_of_a_session_share_one_limit(monkeypatch):
    pictures = [png(i, 64) for i in range(8)]
    monkeypatch.setattr("ui.frame.uploads.UNPACKED_BYTES", sum(map(len, pictures[:6])))
    app = open_page("evaluate", ev_source="My files")
    first = zipped({f"{i}.png": data for i, data in enumerate(pictures[:4])})
    upload(app, ("first.zip", first), key="evaluate_id_files")
    assert "4 pictures ready" in words(app)
    second = zipped({f"{i}.png": data for i, data in enumerate(pictures[4:])})
    upload(app, ("second.zip", second), key="evaluate_ood_files")
    assert "second.zip: would unpack to" in words(app)
    assert "ready" in words(app)


def test_the_server_takes_in_what_the_limits_allow():
    import tomllib

    from idecode_core.files import names as limits

    config = tomllib.loads((HOME / ".streamlit" / "config.toml").read_text())
    most = max(limits.IMAGE_BYTES, limits.SOUND_BYTES, limits.SCORES_BYTES)
    assert config["server"]["maxUploadSize"] * 2**20 >= most


def test_the_readme_says_what_recalibrating_repairs():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert "recalibrating repairs false alarms, not detection" in " ".join(readme.lower().split())

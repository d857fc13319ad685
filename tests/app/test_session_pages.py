"""A session in the app: its inputs are what Inspect shows, and tags, notes, epsilon and pinned runs are saved to it."""

import json
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from PIL import Image
from test_notebooks import run_here
from trust_pages import no_trouble, open_page

from idecode_core import load_detector, studio
from idecode_core.session import Session
from idecode_core.session.store import Pinned
from ui.frame.export import side_by_side
from ui.frame.messages import escape
from ui.inspect.batch import arranged

HOME = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def detector():
    return load_detector(HOME / "checkpoints" / "fashion-rotations")


@pytest.fixture
def session(detector, tmp_path, monkeypatch) -> Session:
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "sessions"))
    folder = tmp_path / "pictures"
    folder.mkdir()
    pixels = np.random.default_rng(1).integers(0, 256, (3, 28, 28, 3), dtype=np.uint8)
    for i, x in enumerate(pixels):
        Image.fromarray(x).save(folder / f"<b>{i}.png")
    return Session.from_detection(detector.detect(folder, n=4, epsilon=0.1, seed=3), name="monday")


def test_inspect_shows_the_sessions_inputs_under_its_settings(session):
    app = open_page("inspect", {"session": "monday", "b_view": "Table"})
    no_trouble(app)
    state = app.session_state
    assert (state["n"], state["epsilon"], state["seed"], state["detector"]) == (
        4,
        0.1,
        3,
        "fashion-rotations",
    )
    (table,) = app.dataframe
    assert sorted(table.value["File"]) == ["<b>0.png", "<b>1.png", "<b>2.png"]
    shown = dict(zip(table.value["File"], table.value["p-value"], strict=True))
    assert [shown[one.name] for one in session.inputs] == session.p_values.tolist()
    assert any("Session **monday**" in caption.value for caption in app.caption)


def test_tags_notes_and_epsilon_made_in_the_app_are_read_back(session):
    app = open_page("inspect", {"session": "monday"})
    (row,) = [one for one in app.button_group if str(one.key).startswith("tags_")]
    key = str(row.key).removeprefix("tags_")
    row.set_value(["wrong verdict"]).run()
    app.text_input(key=f"own_{key}").set_value("my own").run()
    app.text_input(key=f"note_{key}").set_value("blurred <b>").run()
    app.select_slider(key="epsilon").set_value(0.02).run()
    no_trouble(app)
    session.reload()
    assert session.tags == {key: ("wrong verdict", "my own")}
    assert session.notes == {key: "blurred <b>"}
    assert session.settings.epsilon == 0.02


def test_another_n_in_the_app_brings_its_verdicts_into_the_session(session, detector):
    app = open_page("inspect", {"session": "monday"})
    app.slider(key="n").set_value(9).run()
    no_trouble(app)
    session.reload()
    expected = detector.detect([one.path for one in session.inputs], n=9, epsilon=0.1, seed=3)
    assert session.settings.n == 9
    assert np.array_equal(session.p_values, expected.p_values)
    np.testing.assert_allclose(session.score_vectors, expected.score_vectors, rtol=1e-4)


def test_a_session_that_cannot_be_opened_is_one_sentence_and_the_page_goes_on(session):
    for name in ("nobody", "../../etc", "<script>"):
        app = open_page("inspect", {"session": name})
        assert not app.exception
        assert len(app.warning) == 1


def test_with_a_token_only_its_holder_sees_sessions(session, monkeypatch):
    monkeypatch.setenv("IDECODE_STUDIO_TOKEN", "secret")
    app = open_page("inspect", {"session": "monday"})
    assert any("only shown on the machine" in one.value for one in app.warning)
    assert "session_open" not in app.session_state
    app = open_page("inspect", {"session": "monday", "token": "secret"})
    assert app.session_state["session_open"].name == "monday"


def cookie(secret: bytes, mask: bytes) -> dict[str, str]:
    """As Streamlit masks it, another way at each visit."""
    masked = int.from_bytes(secret) ^ int.from_bytes(mask * 4)
    return {"_streamlit_xsrf": f"2|{mask.hex()}|{masked.to_bytes(16).hex()}|1795010416"}


def test_a_page_that_is_loaded_again_without_the_token_knows_the_browser(session, monkeypatch):
    monkeypatch.setenv("IDECODE_STUDIO_TOKEN", "secret")
    sent: dict[str, str] = {}
    monkeypatch.setattr(type(st.context), "cookies", property(lambda self: sent))
    mine, other = bytes(range(16)), bytes(range(1, 17))
    for cookies, query, shown in (
        (cookie(mine, b"abcd"), {}, False),
        ({}, {"token": "secret"}, True),
        (cookie(mine, b"abcd"), {"token": "secret"}, True),
        (cookie(mine, b"wxyz"), {}, True),
        (cookie(other, b"abcd"), {}, False),
        ({"_streamlit_xsrf": "2||00|1"}, {}, False),
        ({}, {}, False),
    ):
        sent.clear()
        sent.update(cookies)
        app = open_page("inspect", {"session": "monday", **query})
        assert ("session_open" in app.session_state) is shown, (cookies, query)


def test_after_a_change_of_epsilon_another_run_can_be_pinned(session):
    app = open_page("inspect", {"session": "monday"})
    app.button(key="pin_run").click().run()
    assert app.button(key="pin_run").disabled
    app.select_slider(key="epsilon").set_value(0.02).run()
    assert not app.button(key="pin_run").disabled
    app.button(key="pin_run").click().run()
    first, second = session.reload().pinned
    assert (first.settings["epsilon"], second.settings["epsilon"]) == (0.1, 0.02)
    assert second.numbers["flagged"] == sum(session.p_values < 0.02)


def test_a_run_that_is_judged_together_is_pinned_as_it_is_shown(session):
    app = open_page("inspect", {"session": "monday"})
    app.select_slider(key="epsilon").set_value(0.006).run()
    app.button_group(key="rule").set_value("together").run()
    app.button(key="pin_run").click().run()
    assert (
        "rule" in app.session_state["panels"]["export"]
    )  # in a browser only the panels run again that say so
    assert sum(session.p_values < 0.006) == 2
    assert (np.sort(session.p_values) > 0.006 * np.arange(1, 4) / 3).all()  # Benjamini-Hochberg flags none
    assert session.reload().pinned[0].numbers["flagged"] == 0


def test_home_lists_recent_sessions(session):
    app = open_page("home")
    no_trouble(app)
    assert any("Go on with a session" in one.value for one in app.markdown)
    assert any("monday · 3 inputs" in one.value for one in app.markdown)


def test_a_file_that_went_costs_one_sentence_and_the_rest_is_shown(session):
    Path(session.inputs[1].path).unlink()
    app = open_page("inspect", {"session": "monday", "b_view": "Table"})
    no_trouble(app)
    assert len(app.dataframe[0].value) == 2
    assert any("can no longer be read" in one.value for one in app.warning)


def test_what_is_on_the_page_can_be_kept_as_a_session(session):
    app = open_page("inspect")
    (name,) = [field for field in app.text_input if field.label == "Name of the session"]
    assert name.value.startswith("cifar10-pretrained 20")
    name.set_value("monday").run()
    _keep(app)
    assert any("There is a session monday already" in warning.value for warning in app.warning)
    app.text_input(key=name.key).set_value(" bags of May ").run()
    _keep(app)
    no_trouble(app)
    again = Session.open("bags of May")
    assert app.session_state["session_open"].name == again.name == again.title == "bags of May"
    assert again.samples()[1] == []
    assert len(again) == 1


def _keep(app):
    app.button(key="keep_session").click().run()


def test_a_session_is_renamed_in_the_sidebar_and_opened_by_its_new_name(session):
    app = open_page("inspect", {"session": "monday"})
    assert app.text_input(key="session_title").value == "monday"
    app.text_input(key="session_title").set_value("The *second* try").run()
    no_trouble(app)
    assert session.reload().title == "The *second* try"
    app = open_page("inspect", {"session": "The *second* try"})
    no_trouble(app)
    assert any(f"Session **{escape('The *second* try')}**" in caption.value for caption in app.caption)
    assert app.query_params["session"] == "monday"  # the address of before goes on
    app.text_input(key="session_title").set_value(" ").run()
    assert any("1 to 80 plain characters" in warning.value for warning in app.warning)
    assert any("The \\*second" in link.value for link in open_page("home").markdown)


def test_open_as_notebook_writes_one_beside_the_session_that_runs_there(session, monkeypatch):
    monkeypatch.setattr(
        "idecode_core.studio.open_notebook", lambda path: f"http://localhost:1/lab/tree/{path.name}"
    )
    app = open_page("inspect", {"session": "monday"})
    app.button(key="inspection-open").click().run()
    no_trouble(app)
    path = session.folder / "inspection.ipynb"
    assert any(escape(str(path)) in caption.value for caption in app.caption)
    assert not (session.folder / "session").exists()  # it reads the session that it lies in
    scope = run_here(path.read_text(encoding="utf-8"), monkeypatch, session.folder)
    assert np.array_equal(scope["judgement"].p_values, session.p_values)


def test_a_run_of_the_page_is_pinned_into_the_session(session):
    app = open_page("inspect", {"session": "monday"})
    app.button(key="pin_run").click().run()
    no_trouble(app)
    (run,) = session.reload().pinned
    assert run.detector == "fashion-rotations"
    assert run.numbers["flagged"] == sum(session.is_ood)


def test_pinned_runs_stand_beside_each_other_with_what_differs():
    runs = [Pinned("t", "d", {"n": n, "seed": 0}, {"AUROC": 0.9}) for n in (5, 20)]
    assert [list(row) for row in side_by_side(runs)] == [["run", "detector", "n", "AUROC"]] * 2


def test_a_batch_is_filtered_by_verdict_and_tag_and_sorted(session, detector):
    """The places that pass, found by looking at each file."""
    found = detector.detect([one.path for one in session.inputs], n=4, epsilon=0.1, seed=3)
    names, tags = ["b", "c", "a"], [("check",), (), ("check", "mine")]
    assert arranged(names, found, tags, order="by name").tolist() == [2, 0, 1]
    assert arranged(names, found, tags, tag="mine").tolist() == [2]
    assert arranged(names, found, tags, tag="without a tag").tolist() == [1]
    strangest = sorted(range(3), key=lambda i: (found.p_values[i], -found.scores[i]))
    assert arranged(names, found, tags).tolist() == strangest
    assert arranged(names, found, tags, order="least strange first").tolist() == strangest[::-1]
    flagged = [i for i in strangest if found.p_values[i] < 0.1]
    assert arranged(names, found, tags, verdict="flagged").tolist() == flagged


def test_a_batch_opens_as_a_grid_of_pictures_and_a_click_looks_at_one(session):
    session.tag(session.inputs[1], "mine")
    session.save()
    app = open_page("inspect", {"session": "monday"})
    no_trouble(app)
    (grid,) = [one for one in app.button_group if one.key == "batch_grid"]
    assert len(grid.options) == 3
    other = next(i for i in range(3) if i != app.session_state["row"])
    grid.set_value(other).run()
    no_trouble(app)
    assert app.session_state["row"] == other
    app.selectbox(key="b_tag").set_value("mine").run()
    (grid,) = [one for one in app.button_group if one.key == "batch_grid"]
    assert len(grid.options) == 1


def test_the_worst_of_the_visitors_own_files_are_shown_as_pictures(session):
    """Evaluate, My files: each picture is the file of the row that it names."""
    from idecode_core.folder.shelf import ScoreSet
    from ui.evaluate.source import Source
    from ui.evaluate.views import _pictures
    from ui.frame.cache import get_configs
    from ui.frame.samples import decoded_sample, modality_of

    modality = modality_of(get_configs()["fashion-rotations"])
    samples = [
        decoded_sample(modality, one.name, session.read(one), session.decoded(one)) for one in session.inputs
    ]
    one = ScoreSet("own-ood", "yours", True, np.zeros((3, 1)))
    source = Source("k", False, "n", "", None, one, (one,), files={"own-ood": samples})
    assert _pictures(source, one, (2, 0)) == [samples[2].thumbnail, samples[0].thumbnail]


@pytest.mark.parametrize(
    "page",
    [
        "home",
        "inspect",
        "evaluate",
        "guarantee",
        "certify",
        "calibrate",
        "attack_lab",
        "how_it_works",
        "break_it",
        "many_and_streams",
    ],
)
def test_every_page_offers_its_link_and_no_address_keeps_the_token(page, monkeypatch):
    monkeypatch.setenv("IDECODE_STUDIO_TOKEN", "secret")
    offered = []
    monkeypatch.setattr(
        "streamlit.components.v2.component", lambda name, **_: lambda **_: offered.append(name)
    )
    app = open_page(page, {"token": "secret"})
    assert not app.exception
    assert "copy_link" in offered
    assert "token" not in app.query_params
    assert app.session_state["token"] == "secret"


def test_a_notebook_opens_in_a_jupyterlab_that_is_started_for_it_and_the_next_one_in_the_same(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    path = tmp_path / "it's" / "a b.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    link = studio.open_notebook(path)
    try:
        assert "/lab/tree/a%20b.ipynb?token=" in link
        with urllib.request.urlopen(link.replace("/lab/tree/", "/api/contents/"), timeout=60) as answer:
            assert json.load(answer)["name"] == "a b.ipynb"
        assert studio.open_notebook(path) == link
    finally:
        studio._children[-1].terminate()
        studio._children.pop().wait(60)

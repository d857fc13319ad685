"""Your data: files in, Train or Calibrate, a plan first, a training that survives a reload, and a result that is called what it is."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from trust_pages import make_checkpoints, open_page, png

from idecode_core.folder.settings import read_settings
from idecode_core.image.sets import load_images
from idecode_core.training import background
from idecode_core.training.background import State
from ui.calibrate import bring, train
from ui.calibrate.calibration import TRIED
from ui.frame.pictures import PICTURES
from ui.frame.samples import decoded_sample
from ui.frame.samples import png as as_png

PATIENCE = 240.0


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    found = make_checkpoints(tmp_path)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(found))
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "home" / "sessions"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield found
    if background.place().is_dir():
        background.say("stop")
    for child in list(background._children):
        child.wait(60)


def words(app: AppTest) -> str:
    elements = [*app.markdown, *app.info, *app.warning, *app.error, *app.success, *app.caption]
    return "\n".join(element.value for element in elements).replace("\\", "")


def write(state: State, token: str = "t") -> None:
    background.place().mkdir(parents=True, exist_ok=True)
    (background.place() / "state.json").write_text(json.dumps(vars(state)))
    (background.place() / "job.json").write_text(json.dumps({"token": token, "job": {}}))


def photos(folder: Path, count: int = 45) -> Path:
    folder.mkdir()
    noise = np.random.default_rng(0)
    some = load_images("photos-sample").x
    for i in range(count):
        pixels = np.clip(some[i % len(some)].astype(int) + noise.integers(-9, 9), 0, 255).astype(np.uint8)
        (folder / f"{i:03d}.png").write_bytes(as_png(pixels[::4, ::4]))
    return folder


def named(app: AppTest, folder: Path) -> AppTest:
    app.segmented_control(key="cal_bring").set_value(bring.HERE).run()
    return app.text_input(key="calibrate_path").set_value(str(folder)).run()


def wait(until: Callable[[State], bool]) -> State:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = background.look()
        if state is not None and until(state):
            return state
        time.sleep(0.1)
    raise TimeoutError((background.place() / "log.txt").read_text())


def test_the_page_says_which_way_fits_by_a_first_look(root: Path, tmp_path: Path) -> None:
    app = named(open_page("calibrate"), photos(tmp_path / "photos"))
    assert not app.exception
    assert "Train fits: fashion-rotations finds" in words(app).replace("**", "")
    assert app.segmented_control(key="way").value == "Train"
    clothes = tmp_path / "clothes"
    clothes.mkdir()
    for i, picture in enumerate(load_images("fashion-sample").x[: TRIED + 5]):
        (clothes / f"{i}.png").write_bytes(as_png(picture))
    app = named(open_page("calibrate"), clothes)
    assert "Calibrate fits: fashion-rotations finds" in words(app).replace("**", "")
    assert app.segmented_control(key="way").value == "Calibrate"
    assert app.button(key="cal_score").label == f"Score {TRIED + 5} files"


def test_from_a_named_folder_to_a_detector_in_use_over_a_reload(root: Path, tmp_path: Path) -> None:
    app = named(open_page("calibrate"), photos(tmp_path / "photos"))
    (tmp_path / "others").mkdir()
    for i in range(8):
        (tmp_path / "others" / f"{i}.png").write_bytes(png(i))
    app.text_input(key="calibrate_ood_path").set_value(str(tmp_path / "others")).run()
    assert app.button(key="train_plan").disabled  # nobody said what belongs
    app.text_input(key="train_name").set_value("temples").run()
    app.text_input(key="train_belongs").set_value("temples by daylight").run()
    app.button(key="train_plan").click().run()
    assert not app.exception
    state = wait(lambda state: state.phase != "reading")
    assert state.phase == "planned", state.error
    again = open_page("calibrate")  # a reload: nothing was kept in the browser
    assert "The plan for temples" in words(again)
    assert "45 different images" in words(again)
    assert "Expected time: " in words(again)
    assert not (root / "temples").exists()
    again.button(key="train_go").click().run()
    state = wait(lambda state: not state.is_running)
    assert state.phase == "done", state.error
    after = open_page("calibrate")
    assert "temples: ready" in words(after)
    assert "| others |" in words(after)
    after.button(key="train_use").click().run()
    assert not after.exception
    assert after.session_state["detector"] == "temples"
    assert read_settings(root / "temples").summary == "temples by daylight"
    assert "In use on every page" in words(after)
    assert "| others |" in words(after)  # how good it is stays in view until it is closed
    after.button(key="train_close").click().run()
    assert background.look() is None


RESULT = {
    "detector": "", "model": "mahalanobis", "parts": {}, "failed": False, "weak": [],
    "false_detections": {"rate": 0.04, "epsilon": 0.05, "low": 0.0, "high": 0.3},
    "against": [{"label": "textures", "points": 20, "auroc": 0.93, "interval": [0.9, 0.97], "detected": 0.5}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said", "unsaid"),
    [
        ({}, "mine: ready", "weak"),
        ({"weak": ["It hardly tells your files from x."]}, "mine: ready, but weak", "failed"),
        ({"weak": ["It hardly tells your files from x."], "failed": True}, "mine: failed", "ready"),
    ],
)
def test_a_weak_result_is_called_weak_and_a_failed_one_failed(
    root: Path, changes: dict[str, object], said: str, unsaid: str
) -> None:
    write(State("done", "mine", result={**RESULT, "detector": str(root / "bare"), **changes}))
    app = open_page("calibrate")
    assert not app.exception
    headings = [text.value for text in app.markdown if text.value.startswith("##")]
    assert any(said in heading.replace("\\", "") for heading in headings)
    assert not any(unsaid in heading for heading in headings)
    for sentence in changes.get("weak", []):  # type: ignore[attr-defined]
        assert sentence in words(app)
    app.button(key="train_close").click().run()
    assert background.look() is None


@pytest.mark.parametrize(
    ("phase", "said"), [("failed", "only three files came"), ("stopped", "goes on where it was")]
)
def test_what_went_wrong_is_said_and_can_be_closed(root: Path, phase: str, said: str) -> None:
    write(State(phase, "mine", error="only three files came"))  # type: ignore[arg-type]
    app = open_page("calibrate")
    assert said in words(app)
    app.button(key="train_close").click().run()
    assert said not in words(app)


def test_on_a_shared_server_training_is_off_unless_allowed_and_is_seen_by_who_asked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (bring, train):
        monkeypatch.setattr(module, "at_this_machine", lambda: False)
    write(State("done", "mine", result={**RESULT, "detector": str(root / "bare")}), token="secret")
    app = open_page("calibrate")
    assert bring.HERE not in app.segmented_control(key="cal_bring").options
    assert "mine: ready" not in words(app)
    files = [(f"{i}.png", png(i), "image/png") for i in range(4)]
    app = app.file_uploader(key="calibrate_files").set_value(files).run()
    assert "Training is off on this server" in words(app)
    assert not [one for one in app.segmented_control if one.key == "way"]
    monkeypatch.setenv(background.ALLOWED, "1")
    assert "mine: ready" not in words(open_page("calibrate", {"training": "other"}))
    assert "mine: ready" in words(open_page("calibrate", {"training": "secret"}))
    monkeypatch.setenv(background.ALLOWED, "0")
    monkeypatch.setattr(train, "at_this_machine", lambda: True)
    assert not train.may_train()
    monkeypatch.delenv(background.ALLOWED)
    assert train.may_train()


def test_while_one_training_runs_no_other_can_be_planned(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(State("working", "mine", what="calibrating", share=0.4, left=250.0))
    monkeypatch.setattr(background, "is_running", lambda: True)
    app = named(open_page("calibrate", train_belongs="temples"), photos(tmp_path / "photos", 22))
    assert "one at a time" in words(app)
    assert app.button(key="train_plan").disabled
    app.button(key="train_stop").click().run()
    assert (background.place() / "stop").exists()


def test_copies_stay_in_a_calibration_set(root: Path) -> None:
    app = open_page("calibrate", way="Calibrate")
    files = [(f"{i}.png", png(i % 8), "image/png") for i in range(10)]
    app = app.file_uploader(key="calibrate_files").set_value(files).run()
    assert app.button(key="cal_score").label == "Score 10 files"
    app.button(key="cal_score").click().run()
    assert not app.exception
    assert "k = 10," in words(app)


def test_of_the_strangest_files_those_leave_that_do_not_belong(root: Path) -> None:
    """Of clothes with three photographs among them, the photographs are the strangest, and only they are taken out."""
    clothes, some = load_images("fashion-sample").x[:24], load_images("photos-sample").x[:3]
    files = [(f"{i}.png", as_png(x), "image/png") for i, x in enumerate([*clothes, *some])]
    app = open_page("calibrate", way="Calibrate")
    app = app.file_uploader(key="calibrate_files").set_value(files).run()
    app.button(key="cal_score").click().run()
    assert "k = 27," in words(app)
    review = app.pills(key="cal_review")
    assert len(review.options) == 20
    review.set_value([24, 25, 26]).run()
    assert not app.exception
    assert "k = 24," in words(app)
    assert "3 of the 20 strangest were taken out, 24 calibrate" in words(app)


def test_what_does_not_belong_is_the_visitors_own_if_there_is_some(root: Path) -> None:
    app = open_page("calibrate", way="Calibrate")
    files = [(f"{i}.png", png(i), "image/png") for i in range(22)]
    other = [(f"{i}.png", as_png(x), "image/png") for i, x in enumerate(load_images("digits-sample").x[:7])]
    app = app.file_uploader(key="calibrate_files").set_value(files).run()
    app = app.file_uploader(key="calibrate_ood_files").set_value(other).run()
    app.button(key="cal_score").click().run()
    assert not app.exception
    assert "| what you brought |" in words(app)
    assert "| 7 |" in words(app)
    assert "Samples that come with the project" not in words(app)


def test_uploaded_files_lie_in_their_classes_and_nowhere_else(root: Path) -> None:
    def sample(name: str, seed: int = 0):  # type: ignore[no-untyped-def]
        data = png(seed)
        return decoded_sample(PICTURES, name, data, PICTURES.read(data, name))

    names = ["all/cats/a b.png", "all/cats/../../x.png", "all/dogs/a b.PNG", "all/dogs/$(rm).png"]
    brought = bring.Brought(PICTURES, [sample(name, i) for i, name in enumerate(names)])
    folder = brought.source("files")
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    assert found == ["cats/00000-a b.png", "cats/00001-x.png", "dogs/00002-a b.png", "dogs/00003-__rm_.png"]
    assert (folder / "cats/00000-a b.png").read_bytes() == png(0)
    assert folder.stat().st_mode & 0o077 == 0
    assert not list(
        bring.Brought(PICTURES, [sample("1.png")]).source("files").rglob("cats")
    )  # the new ones alone

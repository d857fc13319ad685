"""The app's frame and its home page."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Expander
from trust_pages import make_checkpoints

from idecode_core.files import write_json
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.folder.stored import open_stored
from idecode_core.quality.methods import evaluate
from ui.frame.catalogue import PAGES, pages
from ui.frame.detectors import in_order, strength_of
from ui.frame.settings import AGGREGATES, EPSILONS
from ui.home import DOORS

ROOT = Path(__file__).parents[2]
PATIENCE = 240  # seconds; the first test of a session imports torch


def texts(at: AppTest) -> str:
    """What is shown, without the backslashes that make it plain text."""
    shown = (*at.markdown, *at.caption, *at.error, *at.info, *at.warning)
    return "\n".join(element.value for element in shown).replace("\\", "")


def test_the_app_opens_on_home_and_judges_a_bundled_picture() -> None:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE).run()
    assert not at.exception
    assert at.title[0].value == "iDECODe Studio"
    belongs, other = headlines(at)  # colour photographs first: a dog passes, and a house number does not
    assert "Not flagged" in belongs
    assert "[:material/flag: Flagged]" in other
    assert at.session_state["detector"] == "cifar10-pretrained"
    assert at.session_state["example_belonging"] == "cifar10-sample-60"
    assert at.session_state["example_foreign"] == "numbers-sample-0"
    assert "Runs on the" in texts(at)


def headlines(at: AppTest) -> list[str]:
    """The verdicts."""
    return [
        element.value
        for element in at.markdown
        if "calibration images" in element.value and element.value.startswith("## ")
    ]


def test_home_works_alone_without_the_frame() -> None:
    at = AppTest.from_file(str(ROOT / "pages" / "home.py"), default_timeout=PATIENCE).run()
    assert not at.exception
    assert "Inspect" in texts(at)


def test_home_has_three_doors_and_every_page_is_behind_one_of_them() -> None:
    behind = [name for door in DOORS for name in door.pages]
    assert [door.title for door in DOORS] == ["I have files", "I compare methods", "I teach"]
    assert sorted(behind) == sorted(page.name for page in pages() if page.promise)


def test_a_teacher_finds_the_plan_the_presenter_view_and_the_lessons_behind_one_door() -> None:
    ways = {way.title: way for way in DOORS[2].ways}
    plan, view = ways["Plan of the class"], ways["Presenter view"]
    at = AppTest.from_file(str(ROOT / "pages" / f"{plan.page}.py"), default_timeout=PATIENCE)
    assert not class_plan(at.run()).proto.expanded
    for name, value in plan.state.items():
        at.query_params[name] = value
    assert class_plan(at.run()).proto.expanded
    assert view.state["present"] == "true"
    assert view.state["step"] == "1 Rank"


def class_plan(at: AppTest) -> Expander:
    return next(one for one in at.expander if "45-minute" in one.label)


def test_another_picture_gives_another_verdict_without_leaving_home() -> None:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE).run()
    before = headlines(at)
    at.button_group(key="belonging").set_value("cifar10-sample-12").run()
    assert not at.exception
    assert at.session_state["example_belonging"] == "cifar10-sample-12"
    after = headlines(at)
    assert after[0] != before[0]
    assert after[1] == before[1]  # the other side keeps its own


def test_without_any_detector_the_page_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path))
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE).run()
    assert not at.exception
    assert "No detector was found" in at.error[0].value


def test_every_page_file_is_in_the_catalogue_and_titles_are_unique() -> None:
    files = {path.stem for path in (ROOT / "pages").glob("*.py")}
    assert {page.name for page in pages()} == files
    assert len({page.title for page in PAGES}) == len(PAGES)


def test_aggregates_of_the_bar_are_those_of_the_library() -> None:
    from idecode_core.conformal.calibration import AGGREGATES as known

    assert set(AGGREGATES) == set(known)
    assert list(EPSILONS) == sorted(set(EPSILONS))
    assert all(0 < epsilon < 1 for epsilon in EPSILONS)


def test_the_frame_imports_neither_torch_nor_scipy() -> None:
    """First useful paint must not wait for them."""
    code = (
        "import sys, ui.frame.settings, ui.home, ui.frame.pictures, ui.frame.sounds; "
        "print('torch' in sys.modules, 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_card_follows_a_new_calibration(tmp_path: Path) -> None:
    folder = make_checkpoints(tmp_path) / "fashion-rotations"

    def expected() -> str:
        stored = open_stored(folder)
        aurocs = [evaluate(stored.calibration, stored.id_set, ood, 5).auroc.mean for ood in stored.ood_sets]
        mean = 100 * np.mean(aurocs)
        weak = ", weak" if mean < 80 else ""
        return f"AUROC {mean:.1f}{weak}"

    config = json.loads((folder / "config.json").read_text())
    write_json(
        folder / "config.json", {**config, "files": {}, "format": 1}
    )  # as in folders that list no files
    before = str(strength_of(read_settings(folder)))
    assert before == expected()
    with np.load(folder / "calibration.npz") as arrays:
        kept = dict(arrays)
    # Every calibration point is stranger than anything: no point can be told from another.
    np.savez(folder / "calibration.npz", **{**kept, "score_vectors": kept["score_vectors"] + 1e6})
    assert str(strength_of(read_settings(folder))) == expected() != before


def test_detectors_of_sounds_come_after_those_of_pictures_and_the_best_of_photographs_comes_early() -> None:
    config = read_settings(ROOT / "checkpoints" / "fashion-rotations")
    configs = {
        "a-sound": replace(config, modality="audio"),
        "fashion-rotations": config,
        "b-picture": config,
        "cifar10-densenet": config,
        "cifar10-joint": config,
        "cifar10-merged": config,
        "cifar10-pretrained": config,
        "spoken-digits": replace(config, modality="audio"),
    }
    pictures = [
        "cifar10-pretrained",
        "fashion-rotations",
        "cifar10-merged",
        "cifar10-joint",
        "cifar10-densenet",
        "b-picture",
    ]
    assert in_order(configs) == [*pictures, "spoken-digits", "a-sound"]  # a WAV is offered the better one


def test_a_broken_folder_is_one_line_on_home_and_the_others_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_checkpoints(tmp_path)
    (root / "bare" / "config.json").write_text("[" * 9999)
    # and stored scores that do not fit each other
    config = read_settings(root / "fashion-rotations")
    ragged = ScoreSet("svhn-test", "SVHN", True, np.ones((3, 1), np.float32))
    write_scores(config.folder, ragged, config.scorer_sha256)
    (config.folder / "scores" / "gone.npz").symlink_to("nowhere")
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    at = AppTest.from_file(str(ROOT / "pages" / "home.py"), default_timeout=PATIENCE).run()
    assert not at.exception
    assert not at.error
    [line] = [element.value for element in at.caption if "cannot be used" in element.value]
    assert "bare" in line
    assert "calibration images" in texts(at)


def test_names_and_summaries_of_strangers_are_plain_text_on_home_and_inspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_checkpoints(tmp_path)
    path = root / "fashion-rotations" / "config.json"
    remote = "![x](https://evil.example/x.png)"
    write_json(path, {**json.loads(path.read_text()), "name": remote, "summary": remote})
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    for page in ("home", "inspect"):
        at = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=PATIENCE)
        at.query_params["n"] = "999"  # the notice of a link that cannot be followed names the detector
        at.run()
        assert not at.exception
        assert "evil" in at.warning[0].value
        in_main = (*at.main.markdown, *at.main.caption, *at.main.button_group, *at.warning)
        shown = [getattr(one, "label", "") or one.value for one in in_main]
        assert not [text for text in shown if remote in str(text)]
        assert any("evil" in str(text) for text in shown)

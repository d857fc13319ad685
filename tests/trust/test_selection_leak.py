"""What was looked at while choosing, and should not have been, is stored with a detector and stands on its card."""

import json
import shutil
from pathlib import Path

import pytest

from idecode_core.errors import CheckpointError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.settings import CHECKPOINTS, read_settings
from idecode_core.report.card import card
from idecode_core.training import finish as finishing
from idecode_core.training.finish import SELECTION_LEAKS
from idecode_core.training.loop import train
from idecode_core.training.merge import Member, selection_leak_of
from trial import small

SHIPPED = sorted(path.parent for path in CHECKPOINTS.glob("*/config.json"))
SEEN = "Test scores were looked at while choosing"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("choice")
    task = small.task()
    train(task, root / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(finishing.SELECTION_LEAKS, "tiny", "Somebody looked.")
        finishing.finish(task, root / "run", root / "detector")
    return root / "detector"


def test_a_recipe_s_choice_is_stored_and_the_card_says_it(trained: Path) -> None:
    assert json.loads((trained / "config.json").read_text())["choice"] == "Somebody looked."
    assert "## How it was chosen\n\nSomebody looked.\n" in card(trained)


def test_the_card_takes_it_from_the_folder_and_not_from_a_name(trained: Path, tmp_path: Path) -> None:
    renamed, silent = tmp_path / "other", tmp_path / "cifar10-rotations"
    shutil.copytree(trained, renamed)
    save_detector(load_detector(trained, "cpu"), silent)
    assert "Somebody looked." in card(renamed)
    assert "How it was chosen" not in card(silent)
    assert "choice" not in json.loads((silent / "config.json").read_text())


def test_a_merged_detector_takes_over_what_its_members_say_once(trained: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    save_detector(load_detector(trained, "cpu"), silent)
    assert (
        selection_leak_of([Member.parse(str(folder)) for folder in (silent, trained, trained)])
        == "Somebody looked."
    )
    assert selection_leak_of([Member.parse(str(silent))]) == ""


@pytest.mark.parametrize("lie", ["two\nlines", "x" * 6000, 3, None])
def test_a_choice_that_is_no_line_of_text_is_refused(trained: Path, tmp_path: Path, lie: object) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    path = tmp_path / "copy" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "choice": lie}))
    with pytest.raises(CheckpointError, match="expected choice to be"):
        read_settings(tmp_path / "copy")


def test_the_shipped_detectors_that_were_chosen_with_test_scores_say_so() -> None:
    """docs/familiarity.md tells which; docs/audio-findings.md has the doubt about fold 3."""
    found = {folder.name: read_settings(folder).selection_leak for folder in SHIPPED}
    assert {name for name, words in found.items() if words.startswith(SEEN)} == {
        "cifar10-rotations",
        "cifar10-turn-distance",
    }
    assert {
        name for name, words in found.items() if words.startswith("Calibration clips were looked at")
    } == {f"esc50-{name}" for name in ("animals", "domestic", "human", "nature", "urban")}


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_every_shipped_card_is_the_one_that_its_folder_gives(folder: Path) -> None:
    assert (folder / "card.md").read_text(encoding="utf-8") == card(folder)


@pytest.mark.parametrize("recipe", sorted(SELECTION_LEAKS))
def test_training_again_would_store_the_same_words(recipe: str) -> None:
    assert read_settings(CHECKPOINTS / recipe).selection_leak == SELECTION_LEAKS[recipe]

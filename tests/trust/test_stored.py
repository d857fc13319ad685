"""Stored scores of a folder: foreign, unfinished and absurd ones."""

# ruff: noqa: F811  `folder` is a fixture of another file

import shutil

import numpy as np
import pytest
from test_hostile_folders import edit_config, folder, made, scores  # noqa: F401  fixtures

from idecode_core.errors import CheckpointError
from idecode_core.folder.manifest import add_files
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import write_scores
from idecode_core.folder.stored import open_stored


def test_stored_scores_of_other_content_are_refused_and_unfinished_ones_are_passed_over(folder):
    identity = read_settings(folder).scorer_sha256
    (folder / "training.json").unlink()
    write_scores(folder, scores(), identity)
    write_scores(folder, scores(1, True, "outside"), identity)
    assert [s.name for s in open_stored(folder).ood_sets] == ["outside"]
    # killed after the file was written and before it was listed
    config = (folder / "config.json").read_bytes()
    write_scores(folder, scores(2, True, "late"), identity)
    (folder / "config.json").write_bytes(config)
    (folder / "scores" / "half.npz").write_bytes(b"PK\x03\x04 half")
    assert [s.name for s in open_stored(folder).ood_sets] == ["outside"]
    add_files(folder, ["scores/late.npz"])
    assert [s.name for s in open_stored(folder).ood_sets] == ["late", "outside"]
    # scores of the same scorer on other data, put in their place by hand
    shutil.copy(folder / "scores" / "late.npz", folder / "scores" / "outside.npz")
    with pytest.raises(CheckpointError, match=r"outside.npz is not the file that was saved"):
        open_stored(folder)


def test_what_a_killed_process_leaves_beside_stored_scores_does_not_block_them(folder):
    """`.fashion-test.npz.XXXX.npz` matched *.npz: 18 of 20 kills. Also in folders of versions that kept no list."""
    identity = read_settings(folder).scorer_sha256
    (folder / "training.json").unlink()
    write_scores(folder, scores(), identity)
    edit_config(folder, files={}, format=1)
    for name in (".inside.npz.abcd.npz", ".inside.npz.abcd.part"):
        (folder / "scores" / name).write_bytes(b"PK\x03\x04 half")
    assert open_stored(folder).id_set.name == "inside"


@pytest.mark.parametrize(
    "lie",
    [
        {"is_ood": np.array([True, False])},
        {"is_ood": np.array("yes")},
        {"label": np.array(["a"] * 2000)},
        {"label": np.array("")},
        {"label": np.array("two\nlines")},
        {"label": np.array("\x1b[2J")},
        {"label": np.array("x" * 2000)},
    ],
)
def test_words_of_stored_scores_that_no_program_would_write_are_one_sentence(folder, lie):
    """Two truth values in the place of one were a traceback on Home, for everybody."""
    (folder / "training.json").unlink()
    path = write_scores(folder, scores(), read_settings(folder).scorer_sha256)
    with np.load(path) as arrays:
        np.savez(path, **{**arrays, **lie})
    edit_config(folder, files={}, format=1)
    with pytest.raises(CheckpointError, match=r"inside.npz: expected a label") as caught:
        open_stored(folder)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)

"""A user's files: a folder or a CSV with classes, read by one of several processes."""

# ruff: noqa: F811  `run` is a fixture of another file
from pathlib import Path

import pytest
from small import random_images
from test_commands import run  # noqa: F401  a fixture
from test_train_folder import (
    own,  # noqa: F401  a fixture
    write_pictures,
)

from idecode_core.cli.inputs import progress_bars
from idecode_core.errors import InputError
from idecode_core.training.user_files import scan


def test_a_csv_names_files_beside_it_and_their_classes(tmp_path: Path) -> None:
    write_pictures(tmp_path / "own", random_images(12))
    rows = "".join(f"own/{i:03d}.png,{'odd' if i % 2 else 'even'}\n" for i in range(12))
    (tmp_path / "list.csv").write_text("path,label\n" + rows + "own/missing.png,odd\n")
    found = scan(tmp_path / "list.csv")
    assert found.classes == ("even", "odd")
    assert found.y.tolist() == [0, 1] * 6
    assert len(found.broken) == 1
    (tmp_path / "wrong.csv").write_text("picture\na.png\n")
    with pytest.raises(InputError, match="column called file or path"):
        scan(tmp_path / "wrong.csv")


def test_of_several_processes_only_the_first_shows_how_far_reading_is(own: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    for shown in (True, False):
        with progress_bars(shown) as report:
            assert len(scan(own, report=report).files) == 60
        assert ("reading" in capsys.readouterr().err) == shown

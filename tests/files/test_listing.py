"""Detectors are listed and found, and broken folders left out."""

# ruff: noqa: F811  `folder` is a fixture of another file

import shutil

import pytest
from test_folder_detector import folder  # noqa: F401  a fixture

from idecode_core.errors import CheckpointError
from idecode_core.folder import settings as folder_settings
from idecode_core.folder.listing import list_detectors
from idecode_core.folder.settings import find_detector, read_settings


def test_detectors_are_listed_and_broken_folders_left_out(folder):
    shutil.copytree(folder, folder.parent / "broken")
    (folder.parent / "broken" / "config.json").write_text("{")
    (folder.parent / "empty").mkdir()
    assert [entry.folder for entry in list_detectors(folder.parent)] == [folder]
    assert list_detectors(folder.parent / "nowhere") == []


def test_a_detector_is_found_by_folder_or_by_name_from_any_directory(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folder_settings, "CHECKPOINTS", tmp_path / "project" / "checkpoints")
    shutil.copytree(folder, tmp_path / "project" / "checkpoints" / "named")
    assert find_detector(folder) == folder
    for name in ("named", "checkpoints/named"):
        assert read_settings(find_detector(name)).name == "small"
    monkeypatch.chdir(folder)
    assert read_settings(find_detector(".")).name == "small"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        CheckpointError, match="No detector is called other: expected a detector folder, or one of: named"
    ):
        find_detector("other")

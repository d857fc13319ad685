"""Settings of a folder: edited, foreign and absurd ones are refused."""

# ruff: noqa: F811  `folder` is a fixture of another file

import json

import pytest
from safetensors.torch import load_file
from test_folder_detector import (
    folder,  # noqa: F401  a fixture
    refuse,
)

from idecode_core.errors import CheckpointError
from idecode_core.folder import detector as store
from idecode_core.folder.detector import load_detector


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s["transforms"].update(jitter=3),
        lambda s: s["transforms"].update(per_draw="all"),
        lambda s: s.update(base_ncm="invariance"),
        lambda s: s["preprocessing"].update(size=18),
        lambda s: s["preprocessing"].update(grey=True),
        lambda s: s["model"].update(mean=[0.5, 0.5, 0.5]),
        lambda s: s["model"].update(backbone="vit"),
        lambda s: s.update(kind="other"),
        lambda s: s.update(model=[1, 2]),
        lambda s: s.clear(),
    ],
)
def test_edited_settings_are_refused(folder, edit):
    config = json.loads((folder / "config.json").read_text())
    edit(config["scorer"])
    (folder / "config.json").write_text(json.dumps(config))
    refuse(folder, "were changed after saving")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda s: s["model"].update(outputs=5), "do not fit each other"),
        (lambda s: s["model"].update(dropout=0.1), "do not fit each other"),
        (lambda s: s.update(model=[1, 2]), "do not fit each other"),
        (lambda s: s.pop("preprocessing"), "do not fit each other"),
        (lambda s: s.update(kind="video"), "Unknown kind of scorer 'video'"),
        (lambda s: s["transforms"].update(name="mixup"), "Unknown transform set 'mixup'"),
    ],
)
def test_settings_that_never_were_a_detector_are_refused_even_with_the_right_hash(folder, edit, message):
    config = json.loads((folder / "config.json").read_text())
    edit(config["scorer"])
    config["scorer_sha256"] = store._hash(config["scorer"], load_file(folder / "model.safetensors"))
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        load_detector(folder, "cpu")


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"format": 4}', "[" * 100_000, "null"])
def test_a_config_of_another_format_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    refuse(folder, "format 2")

"""--delta on the command line: the corrected epsilon, wherever epsilon is."""

import json

import numpy as np
import pytest
from PIL import Image
from small import random_images

from idecode_core import load_detector
from idecode_core.cli.app import main
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.folder.settings import find_detector
from idecode_core.folder.stored import open_stored


def run(capsys, *arguments) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    return int(end.value.code or 0), capsys.readouterr().out


def test_detect_compares_with_the_corrected_epsilon_and_says_for_whom_it_holds(tmp_path, capsys):
    for i, image in enumerate(random_images(4, 28)):
        Image.fromarray(image).save(tmp_path / f"{i}.png")
    _, plain = run(capsys, "detect", tmp_path, "--epsilon", 0.3, "--json")
    p = [json.loads(line)["p_value"] for line in plain.splitlines()]
    _, sure = run(capsys, "detect", tmp_path, "--epsilon", 0.3, "--delta", 0.1, "--json")
    cut = corrected_epsilon(load_detector("fashion-rotations").calibration.k, 0.3, 0.1)
    lines = [json.loads(line) for line in sure.splitlines()]
    assert [line["is_ood"] for line in lines] == [one < cut for one in p]
    assert {(line["epsilon"], line["delta"]) for line in lines} == {(0.3, 0.1)}
    _, words = run(capsys, "detect", tmp_path, "--delta", 0.1)
    assert "at epsilon = 0.05 (kept by 0.9 of all calibration sets)" in " ".join(words.split())


def test_evaluate_uses_the_corrected_epsilon_on_stored_scores(capsys):
    stored = open_stored(find_detector("fashion-rotations"))
    cut = corrected_epsilon(stored.calibration.k, 0.05, 0.1)
    _, strict = run(capsys, "evaluate", "--delta", 0.1, "--json")
    _, same = run(capsys, "evaluate", "--epsilon", repr(float(np.nextafter(cut, 0))), "--json")
    rates = [
        [json.loads(line)["false_detection_rate"] for line in text.splitlines()] for text in (strict, same)
    ]
    assert rates[0] == rates[1]
    _, words = run(capsys, "evaluate", "--delta", 0.1)
    assert "for 0.9 of all calibration sets the bound is epsilon = 0.05" in " ".join(words.split())

"""Files named on the command line: folders, globs, bad files, odd names."""

# ruff: noqa: F811  `files` and `run` are fixtures of another file

import json

import pytest
from test_commands import files, run  # noqa: F401  fixtures


def test_a_bad_file_among_good_ones_is_told_and_the_others_go_through(run, files):
    status, out, err = run("detect", "sneaker0.png", "text.png", "nowhere.png", "sneaker1.png", "--json")
    assert [json.loads(line)["file"] for line in out.splitlines()] == ["sneaker0.png", "sneaker1.png"]
    assert len(err.splitlines()) == 2
    assert "text.png: is not an image" in err
    assert "nowhere.png: could not be opened" in err
    assert status == 2


def test_only_bad_files_print_no_table(run, files):
    status, out, err = run("detect", "text.png")
    assert (status, out) == (2, "")
    assert err == (
        "idecode: text.png: is not an image that can be read; expected PNG, JPEG, WebP, BMP, TIFF or GIF. Check the file.\n"
    )


def test_a_folder_stands_for_the_images_in_it(run, files, tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    files["sneaker2.png"].rename(tmp_path / "deep" / "er" / "B.PNG")
    files["sneaker1.png"].rename(tmp_path / "deep" / "a.png")
    (tmp_path / "deep" / "notes.txt").write_text("not looked at")
    _, out, _ = run("detect", "deep", "sneaker0.png", "--json")
    assert [json.loads(line)["file"] for line in out.splitlines()] == [
        "deep/a.png",
        "deep/er/B.PNG",
        "sneaker0.png",
    ]
    (tmp_path / "empty").mkdir()
    status, out, err = run("detect", "empty", "sneaker0.png", "--json")
    assert (status, len(out.splitlines())) == (2, 1)
    assert "empty: expected files of type .png" in err


def test_a_glob_that_no_shell_has_expanded_stands_for_what_it_matches(run, files, tmp_path):
    files["sneaker2.png"].rename(tmp_path / "sneaker[2].png")
    _, out, _ = run("detect", "sneaker[2].png", "sneaker?.png", "--json")
    found = [json.loads(line)["file"] for line in out.splitlines()]
    assert found == ["sneaker[2].png", "sneaker0.png", "sneaker1.png"]
    status, out, err = run("detect", "boots*.png", "--json")
    assert (status, out) == (2, "")
    assert "boots*.png: no file matches this pattern" in err


def test_a_name_that_is_too_long_is_one_sentence_and_the_others_go_through(run, files):
    status, out, err = run("detect", "a" * 300 + ".png", "nope/", "sneaker0.png", "--json")
    assert (status, len(out.splitlines())) == (2, 1)
    assert "could not be opened (File name too long)" in err
    assert "There is no nope: expected a file, a folder of files" in err
    status, _, err = run("train", "a" * 300, "--out", "mine")
    assert (status, "File name too long. Check the path" in err, "Traceback" in err) == (2, True, False)


def test_odd_file_names_are_printed_as_they_are(run, files, tmp_path):
    name = "[red]sneaker[bold] ü 1.png"
    files["sneaker0.png"].rename(tmp_path / name)
    _, out, _ = run("detect", name)
    assert name in out


@pytest.mark.parametrize(
    "command", [("calibrate", "nope/", "--out", "mine"), ("evaluate", "--id", "a/b", "--ood", "c")]
)
def test_a_folder_that_does_not_exist_is_told_as_one(run, command):
    status, _, err = run(*command)
    assert status == 2
    assert f"There is no folder {command[1] if command[0] == 'calibrate' else 'a/b'}: expected" in err
    assert "data fetch" not in err


def test_a_file_is_no_folder(run, files):
    status, _, err = run("calibrate", "sneaker0.png", "--out", "mine")
    assert status == 2
    assert "sneaker0.png is a file: expected a folder of images" in err

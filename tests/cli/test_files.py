"""The list of files of a large run: one order, any name, each once."""

# ruff: noqa: F811  `world` is a fixture of another file

import pytest
from test_score import FILES, small_blocks, world  # noqa: F401  fixtures

from idecode_core.errors import InputError
from idecode_core.scale.files import Stretch, find_files, list_sha256, names_in, read_lines, write_list


def test_a_list_keeps_any_name_and_its_parts_cover_it_once(tmp_path):
    names = [f"a{i}\n\u2028\udce4.png" for i in range(7)]
    count, digest = write_list(tmp_path, names)
    assert (count, digest) == (7, list_sha256(tmp_path))
    lines = read_lines(tmp_path, Stretch(0, 0, 7))
    assert names_in(lines) == names
    assert names_in(read_lines(tmp_path, Stretch(3, sum(map(len, lines[:3])), 3))) == names[3:6]


def test_a_folder_is_walked_in_one_order_without_following_circles(world):
    found = list(find_files(world / "pictures", (".png",), print))
    assert len(found) == len(set(found)) == FILES + 1
    assert found == list(find_files(world / "pictures", (".png",), print))
    with pytest.raises(InputError):
        find_files(world / "nowhere", (".png",), print)

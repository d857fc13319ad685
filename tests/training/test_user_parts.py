"""Files of a user in parts: disjoint, from the seed, copies together."""

# ruff: noqa: F811  `run` is a fixture of another file
import csv
from pathlib import Path

import numpy as np
import torch
from test_commands import run  # noqa: F401  a fixture
from test_train_folder import own  # noqa: F401  a fixture

from idecode_core.folder.record import Split
from idecode_core.training.user_files import Scan, UserFile, scan
from idecode_core.training.user_parts import UserSplit, files_table, kinds_of, split_user_files


def test_names_in_the_table_of_files_are_no_formulas() -> None:
    files = [UserFile(Path("x"), name, "@class", "0" * 64, 8) for name in ("=1+1.png", "-2.png", "a.png")]
    found = Scan("here", "image", tuple(files), ("@class",), (), (), {})
    nothing = np.arange(0)
    table = files_table(found, UserSplit(Split(np.arange(3), nothing, nothing), nothing))
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["file"] for row in rows] == ["'=1+1.png", "'-2.png", "a.png"]
    assert {row["label"] for row in rows} == {"'@class"}


def test_parts_do_not_overlap_and_follow_the_seed(own: Path) -> None:
    found = scan(own)
    first, again, other = (split_user_files(found, seed) for seed in (0, 0, 1))
    together = np.concatenate([indices for _, indices in first.parts()])
    assert sorted(together) == list(range(60))
    for (_, a), (_, b) in zip(first.parts(), again.parts(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.test, other.test)


def test_kinds_of_sounds_do_not_depend_on_clips_that_calibrate() -> None:
    generator = np.random.default_rng(0)
    clips = [torch.from_numpy(generator.normal(10 * (i % 2), 1, (8, 20))) for i in range(40)]
    proper = np.arange(30)
    kinds = kinds_of(clips, proper)
    assert len(set(kinds[:30:2]) & set(kinds[1:30:2])) == 0  # the two are told apart
    changed = [*clips[:30], *(100 * clip for clip in clips[30:])]
    np.testing.assert_array_equal(kinds_of(changed, proper)[:30], kinds[:30])


def test_all_copies_of_a_picture_are_in_one_part(own: Path) -> None:
    for i in range(40):
        (own / f"copy {i}.png").write_bytes((own / f"{i % 7:03d}.png").read_bytes())
    found = scan(own)
    assert (len(found.files), len(found.copies)) == (100, 40)
    for seed in range(5):
        for validates in (True, False):
            split = split_user_files(found, seed, validates=validates)
            parts = [{found.files[i].content for i in indices} for _, indices in split.parts()]
            assert sum(len(indices) for _, indices in split.parts()) == 100
            assert sum(map(len, parts)) == len(set.union(*parts)) == 60
            assert len(parts[1]) == (6 if validates else 0)

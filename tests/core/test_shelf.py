"""The shelf: written scores come back, and foreign or damaged ones are refused."""

# ruff: noqa: F811  `sets` is a fixture of another file

import numpy as np
import pytest
from small import read_scores
from test_methods import sets  # noqa: F401  a fixture

from idecode_core.errors import CheckpointError, DataError, IdecodeError
from idecode_core.folder.shelf import id_and_ood, write_scores


def test_written_scores_come_back_with_the_id_set_first(tmp_path, sets: tuple) -> None:
    _, known, strange = sets
    for one in (strange, known):
        write_scores(tmp_path, one, "abc")
    found = read_scores(tmp_path, "abc")
    assert [one.name for one in found] == ["cifar10-test", "svhn-test"]
    assert found[1].label == "SVHN-TEST"
    assert found[1].is_ood
    assert not found[0].is_ood
    np.testing.assert_array_equal(found[0].score_vectors, known.score_vectors)


def test_scores_of_another_scorer_are_refused(tmp_path, sets: tuple) -> None:
    write_scores(tmp_path, sets[1], "abc")
    with pytest.raises(CheckpointError, match="other weights or settings"):
        read_scores(tmp_path, "xyz")


def test_damaged_scores_are_refused_with_their_file_name(tmp_path, sets: tuple) -> None:
    path = write_scores(tmp_path, sets[1], "abc")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(IdecodeError, match=path.name):
        read_scores(tmp_path)


def test_a_folder_without_an_id_test_set_is_refused(sets: tuple) -> None:
    with pytest.raises(DataError, match="exactly one iD"):
        id_and_ood([sets[2]])

"""AUROC against passes: who is on the front, computed another way, and what the figure says of it."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.folder.stored import open_stored
from idecode_core.quality.cost import Costed, costed_methods, front
from idecode_core.quality.methods import evaluate

ROOT = Path(__file__).parents[2] / "checkpoints"


@pytest.fixture(scope="module")
def methods() -> list[Costed]:
    return costed_methods(ROOT)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(50, 60)), min_size=1))
def test_the_front_is_what_no_other_dominates(points: list[tuple[int, int]]) -> None:
    best = front(points, lambda one: one[0], lambda one: one[1])
    undominated = {
        (x, y) for x, y in points if not any((a <= x and b >= y) and (a, b) != (x, y) for a, b in points)
    }
    assert set(best) == undominated
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(best))


def test_methods_of_known_cost_have_the_auroc_of_their_stored_scores(methods: list[Costed]) -> None:
    stored = open_stored(ROOT / "cifar10-merged")
    ours = next(one for one in methods if one.title == "iDECODe merged, n=5")
    for ood_set in stored.ood_sets:
        if ood_set.label in ours.aurocs:
            found = evaluate(stored.calibration, stored.id_set, ood_set, 5)
            assert ours.aurocs[ood_set.label] == pytest.approx(100 * found.auroc.mean)
    assert not ours.is_rival
    assert any(one.is_rival and one.passes == 1 for one in methods)

"""Why: a draw's parts add up, a map finds the part that counts, masks are told apart, power is what was caught."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import random_images, small_scorer

from idecode_core.plots.inspect import score_parts
from idecode_core.report.why import parts, sum_in_words
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Projective, Rotations

PICTURE = random_images(1)[0]


def merged() -> MergedScorer:
    members = (
        small_scorer(Rotations(), "cross_entropy_and_familiarity"),
        small_scorer(Projective(), "parameter_error", outputs=8, pair=True, seed=1),
    )
    references = tuple(
        member.score(random_images(6, seed=5), n=3, seed=0).score_vectors for member in members
    )
    return MergedScorer(members, ("rotations@x", "projective"), references, (1.0, 0.5))


@pytest.mark.parametrize(
    "scorer", [small_scorer(Rotations(), "cross_entropy_and_familiarity"), merged()], ids=["alone", "merged"]
)
def test_the_parts_of_each_draw_add_up_to_the_score_that_enters_v(scorer) -> None:
    inspected = scorer.inspect(PICTURE, n=4, seed=0)
    scores = scorer.score(PICTURE[None], n=4, seed=0).score_vectors[0]
    for draw in range(4):
        found = parts(scorer, inspected, draw)
        assert len(found) == 2
        assert all(part.words for part in found)
        assert sum(part.value for part in found) == pytest.approx(scores[draw], rel=1e-4, abs=1e-5)


def test_a_members_words_hold_its_weight_and_the_share_of_its_reference_that_is_stranger() -> None:
    scorer = merged()
    inspected = scorer.inspect(PICTURE, n=2, seed=0)
    [_, second] = parts(scorer, inspected, 1)
    own = scorer.members[1].score(PICTURE[None], n=2, seed=0).score_vectors[0, 1]
    reference = scorer.references[1].ravel()
    share = (1 + np.count_nonzero(reference >= own)) / (1 + reference.size)
    assert second.name == "projective, weight 0.5"
    assert f"{100 * share:.3g} % of its reference draws" in second.words
    assert second.value == pytest.approx(-0.5 * np.log(share))


def test_several_variants_say_that_the_draw_is_their_mean() -> None:
    scorer = small_scorer(Rotations(per_draw="all"), "cross_entropy")
    inspected = scorer.inspect(PICTURE, n=2, seed=0)
    own = [variant.score for variant in inspected.variants if variant.draw == 0]
    assert len(own) > 1
    words = sum_in_words(parts(scorer, inspected, 0), inspected.score_vector[0], len(own))
    assert f"mean over the {len(own)} variants" in words
    assert inspected.score_vector[0] == pytest.approx(np.mean(own), rel=1e-5)


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=5))
def test_bars_lie_end_to_end_and_the_last_is_their_sum(values: list[float]) -> None:
    [bars] = score_parts([f"part {i}" for i in range(len(values))], values).data
    for i in range(1, len(values)):
        assert bars.base[i] == pytest.approx(bars.base[i - 1] + values[i - 1])
    assert bars.base[-1] == 0
    assert bars.x[-1] == pytest.approx(sum(values))

"""Why: a draw's parts add up, a map finds the part that counts, masks are told apart, power is what was caught."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import random_images, small_scorer

from idecode_core.audio.listening import mask_effects
from idecode_core.conformal.judge import judge
from idecode_core.folder.stored import open_stored
from idecode_core.image.occlusion import (
    Window,
    hidden_copy,
    hide,
    occlusion_maps,
    picture_occlusion,
    windows,
)
from idecode_core.plots.audio import moved_by_masks
from idecode_core.plots.inspect import score_parts, strange_parts
from idecode_core.quality.strength import Caught, is_weak, power, power_sentence
from idecode_core.report.why import parts, sum_in_words
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Projective, Rotations

ROOT = Path(__file__).parents[2]
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


def bright_corner(parts_hidden, size: int = 16) -> np.ndarray:
    """A synthetic scorer: how much of the top left quarter of the picture is not hidden."""
    scores = []
    for window in parts_hidden:
        shown = np.ones((size, size))
        shown[window.slices(size)] = 0
        scores.append(shown[: size // 4, : size // 4].sum())
    return np.array(scores)


def test_the_map_falls_by_exactly_what_a_synthetic_scorer_loses() -> None:
    coarse, fine = occlusion_maps(bright_corner)
    expected = np.zeros((4, 4))
    expected[0, 0] = 16  # the window that covers the corner hides all of it
    assert np.array_equal(coarse.drops, expected)
    assert coarse.whole == fine.whole == 16
    # In half steps the corner's first cell is covered by one window only, the cell beside it by two.
    assert fine.drops.shape == (8, 8)
    assert fine.drops[0, 0] == 16
    assert fine.drops[0, 1] == pytest.approx((16 + 8) / 2)
    assert fine.drops[1, 1] == pytest.approx((16 + 8 + 8 + 4) / 4)
    assert not fine.drops[4:, 4:].any()


def test_no_window_is_scored_twice_and_progress_ends_at_one() -> None:
    asked: list[Window] = []

    def score(parts_hidden):
        asked.extend(parts_hidden)
        return bright_corner(parts_hidden)

    done: list[float] = []
    list(occlusion_maps(score, progress=done.append))
    assert len(asked) == len(set(asked)) == 1 + len(windows(2))
    assert done == sorted(done)
    assert done[-1] == 1


def test_hiding_changes_the_window_and_nothing_else() -> None:
    window = Window(0.25, 0.5, 0.25)
    changed = (hide(PICTURE, window) != PICTURE).any(axis=2)
    inside = np.zeros((16, 16), bool)
    inside[4:8, 8:12] = True
    assert changed.any()
    assert not changed[~inside].any()
    assert np.array_equal(hide(PICTURE, Window(0, 0, 0)), PICTURE)


def test_hidden_copies_have_the_draws_of_the_whole_picture() -> None:
    scorer = merged()
    point = scorer.prepare(PICTURE, seed=3)
    copy = hidden_copy(point, Window(0, 0, 0.5))
    drawn = scorer.members[0].score([point.x[0], copy.x[0]], n=3, seed=3).parameters
    assert np.array_equal(drawn[0], drawn[1])
    changed = scorer.members[0].prepare(copy.x[0].x, seed=3)  # as a picture of its own it would have others
    assert not np.array_equal(changed.key, copy.key)


def test_the_map_of_a_real_scorer_begins_with_the_score_on_the_page() -> None:
    scorer = small_scorer()
    point = scorer.prepare(PICTURE, seed=0)
    [found] = picture_occlusion(scorer, point, n=2, steps=(1,))
    whole = scorer.score(PICTURE[None], n=2, seed=0).score_vectors.sum()
    assert found.whole == pytest.approx(whole, rel=1e-4)
    first = scorer.score([replace(point, x=hide(PICTURE, windows(1)[5]))], n=2, seed=0).score_vectors.sum()
    assert found.drops[1, 1] == pytest.approx(whole - first, rel=1e-3, abs=1e-5)
    assert strange_parts(PICTURE, found.drops).data[1].z.shape == (4, 4)


def test_the_mask_that_moves_the_score_is_found() -> None:
    generator = np.random.default_rng(0)
    hidden = generator.random((40, 3, 5)) < 0.4
    scores = 1.0 + 2.0 * hidden[:, 1, 3]  # only this cell counts
    effects = mask_effects(hidden, scores)
    assert effects[1, 3] == pytest.approx(2.0)
    assert np.unravel_index(np.nanargmax(effects), effects.shape) == (1, 3)
    figure = moved_by_masks(effects, 0.01, np.array([200.0, 800.0, 3000.0]))
    assert figure.data[0].zmax == pytest.approx(2.0)


def test_power_is_the_share_of_the_stored_points_that_is_flagged() -> None:
    stored = open_stored(ROOT / "checkpoints" / "spoken-digits")
    found = {one.label: one.share for one in power(stored, 5, 0.1)}
    for ood in stored.ood_sets:
        flags = [
            judge(stored.calibration, ood.score_vectors[:, 20 * run : 20 * run + 5]).p_values < 0.1
            for run in range(ood.score_vectors.shape[1] // 20)
        ]
        assert found[ood.label] == pytest.approx(np.mean(flags))


def test_a_weak_detector_is_called_weak_and_an_unknown_one_unknown() -> None:
    weak = [Caught("a", 0.1), Caught("b", 0.3), Caught("c", 0.5)]
    strong = [Caught("a", 0.9), Caught("b", 1.0), Caught("c", 1.0)]
    assert is_weak(weak)
    assert power_sentence(weak, 0.05).startswith("Weak at epsilon = 0.05: ")
    assert "30 % of what does not belong" in power_sentence(weak, 0.05)
    assert not is_weak(strong)
    assert "eak" not in power_sentence(strong, 0.05)
    assert "not known" in power_sentence([], 0.05)

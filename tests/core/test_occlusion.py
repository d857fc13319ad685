"""A map of what counts: each window is hidden once, with the draws of the whole picture."""

from dataclasses import replace

import numpy as np
import pytest
from small import small_scorer
from test_why import PICTURE, merged

from idecode_core.audio.listening import mask_effects
from idecode_core.image.occlusion import (
    Window,
    hidden_copy,
    hide,
    occlusion_maps,
    picture_occlusion,
    windows,
)
from idecode_core.plots.audio import moved_by_masks
from idecode_core.plots.inspect import strange_parts


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

"""SpecAugment masks: their law, their independence, and torchaudio's masks as the second opinion."""

import numpy as np
import pytest
import torch
import torchaudio.functional
from scipy import stats
from small import content_keys

from idecode_core.draws import uniforms
from idecode_core.transforms.specaugment import PAPER_MASKS, SpecAugment

USUAL = SpecAugment()


def keys(count: int, seed: int = 0) -> np.ndarray:
    return content_keys(np.arange(count, dtype=np.int64)[:, None], seed)


def test_masks_are_those_of_torchaudio_for_the_same_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, n = 2, 3
    x = (
        torch.randn(1, blocks, 64, 128, generator=torch.Generator().manual_seed(0)) + 10
    )  # no cell is 0 by itself
    ours = USUAL.apply(x, USUAL.sample(keys(1), n, blocks))[0]
    u = uniforms(keys(1), n, blocks * USUAL.masks * 2).reshape(n, blocks, USUAL.masks, 2)
    for draw in range(n):
        for block in range(blocks):
            masked = x[0, block][None]
            for mask, (width, first) in enumerate(u[draw, block]):
                is_time = mask < USUAL.time_masks
                widest = USUAL.time_width if is_time else USUAL.frequency_width
                # torchaudio draws a real width and cuts it; we draw the whole width at once
                numbers = iter([torch.tensor([int(width * widest) / widest]), torch.tensor([first])])
                monkeypatch.setattr(torch, "rand", lambda *_, **__: next(numbers))  # noqa: B023
                masked = torchaudio.functional.mask_along_axis(masked, widest, 0.0, 2 if is_time else 1)
            torch.testing.assert_close(ours[draw, block], masked[0])


@pytest.mark.parametrize(("masks", "share"), [(USUAL, 0.28), (PAPER_MASKS, 0.82)])
def test_the_share_that_is_hidden_is_the_papers(masks: SpecAugment, share: float) -> None:
    gx = masks.apply(torch.ones(20, 1, 64, 128), masks.sample(keys(20), 20))
    assert float((gx == 0).float().mean()) == pytest.approx(share, abs=0.02)


def test_widths_are_uniform_and_masks_stay_inside() -> None:
    drawn = PAPER_MASKS.sample(keys(50), 20)
    time, frequency = drawn[..., :32, :].reshape(-1, 2).numpy(), drawn[..., 32:, :].reshape(-1, 2).numpy()
    for pairs, widest, size in ((time, 10, 128), (frequency, 9, 64)):
        counts = np.bincount(pairs[:, 1], minlength=widest)
        assert len(counts) == widest  # 0 .. widest - 1
        assert stats.chisquare(counts).pvalue > 1e-3
        assert pairs[:, 0].min() >= 0
        assert (pairs.sum(axis=1) <= size).all()


def test_each_clip_block_and_draw_has_its_own_masks() -> None:
    drawn = USUAL.sample(keys(6), 5, 4).flatten(0, 2)  # (6 * 5 * 4, masks, 2)
    assert len(torch.unique(drawn, dim=0)) == len(drawn)


def test_fewer_draws_are_the_first_of_more_draws_and_the_batch_does_not_matter() -> None:
    torch.testing.assert_close(USUAL.sample(keys(5), 3, 2), USUAL.sample(keys(5), 20, 2)[:, :3])
    torch.testing.assert_close(USUAL.sample(keys(5)[3:4], 3, 2)[0], USUAL.sample(keys(5), 3, 2)[3])


def test_words_tell_how_much_is_hidden() -> None:
    nothing = torch.zeros(1, 1, USUAL.masks, 2, dtype=torch.int64)
    assert USUAL.describe(nothing) == ["hidden: 0% (0% of the time, 0% of the bands)"]
    half = nothing.clone()
    half[0, 0, 0] = torch.tensor([32, 64])
    assert USUAL.describe(half) == ["hidden: 50% (50% of the time, 0% of the bands)"]

"""Strangers that are made, to choose between models by: files of what belongs with something changed, and parts of other sounds.

Which model is taken is decided by these and never by the files that a user tests with: those would then say how well the choice
fits them, and no longer how good the detector is. Bundled sounds that are used here are in no test of a user's own files.
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from idecode_core.audio.read import Sound
from idecode_core.audio.sets import bundled_sounds
from idecode_core.image.read import Pixels

SPEEDS = {"slower": 0.7, "faster": 1.4}
"""Of a tape: pitch and speed change together."""
PIECES_LOOKED_AT = 600
"""Of a picture, for one that can vanish."""


def for_choosing(bundled: Sequence[Sound]) -> Sequence[Sound]:
    """Every second one; the others test."""
    return bundled[::2]


def for_testing(bundled: Sequence[Sound]) -> Sequence[Sound]:
    return bundled[1::2]


def strange_sounds(clips: Sequence[Sound]) -> dict[str, list[Sound]]:
    """Kind of change -> sounds: the clips slower and faster, and parts of bundled sounds as long as the clips are."""
    at_speeds = {name: [at_speed(clip, speed) for clip in clips] for name, speed in SPEEDS.items()}
    seconds = float(np.median([clip.seconds for clip in clips]))
    others = [sound for bundled in bundled_sounds().values() for sound in for_choosing(bundled)]
    return {**at_speeds, "other sounds": [for_seconds(sound, seconds) for sound in others]}


def at_speed(clip: Sound, speed: float) -> Sound:
    """As a tape that runs faster or slower sounds; as long as before, from its beginning, or repeated."""
    faster = Sound(clip.samples, round(clip.sample_rate * speed)).at(clip.sample_rate)
    return Sound(np.resize(faster.samples, len(clip.samples)), clip.sample_rate)


def for_seconds(sound: Sound, seconds: float) -> Sound:
    """Its beginning, or itself again and again."""
    return Sound(np.resize(sound.samples, max(1, round(seconds * sound.sample_rate))), sound.sample_rate)


def strange_pictures(
    pictures: Sequence[Pixels], *, generator: np.random.Generator
) -> dict[str, list[Pixels]]:
    """Kind of change -> square pictures (size, size, 3) with a small local change each."""
    return {
        "cut and pasted": [cut_and_pasted(picture, generator=generator) for picture in pictures],
        "scratched": [scratched(picture, generator=generator) for picture in pictures],
        "vanished": [vanished(picture, generator=generator) for picture in pictures],
    }


def cut_and_pasted(picture: Pixels, *, generator: np.random.Generator) -> Pixels:
    """A piece of 1 to 6 % of the area stands at another place (CutPaste, Li et al. 2021, arXiv 2104.04015)."""
    side = len(picture)
    area, ratio = generator.uniform(0.01, 0.06), generator.uniform(0.5, 2.0)
    h, w = (max(2, round(side * np.sqrt(area * shape))) for shape in (ratio, 1 / ratio))
    (top, to), (left, beside) = (generator.integers(0, side - length + 1, size=2) for length in (h, w))
    changed = picture.copy()
    changed[to : to + h, beside : beside + w] = picture[top : top + h, left : left + w]
    return changed


def scratched(picture: Pixels, *, generator: np.random.Generator) -> Pixels:
    """A thin line of a tenth to a third of the side, lighter or darker than what it lies on."""
    side = len(picture)
    image = Image.fromarray(picture)
    start, angle = generator.uniform(0.15, 0.85, size=2) * side, generator.uniform(0, 2 * np.pi)
    end = start + side * generator.uniform(0.1, 0.33) * np.array([np.cos(angle), np.sin(angle)])
    grey = 40 if picture.mean() > 127 else 215
    colour = tuple(int(value) for value in np.clip(grey + generator.integers(-40, 41, size=3), 0, 255))
    width = max(1, round(side * generator.uniform(0.004, 0.015)))
    ImageDraw.Draw(image).line([*start.tolist(), *end.tolist()], fill=colour, width=width)
    return np.asarray(image)


def vanished(picture: Pixels, *, generator: np.random.Generator) -> Pixels:
    """Something is gone: of many pieces of 0.3 to 3 % of the area the one that stands out most from a plain border is painted over
    with what its border goes on as, in the border's own grain."""
    side = len(picture)
    most, chosen = -1.0, (slice(1, 3), slice(1, 3))
    for _ in range(PIECES_LOOKED_AT):
        area, ratio = generator.uniform(0.003, 0.03), generator.uniform(0.5, 2.0)
        h, w = (max(2, round(side * np.sqrt(area * shape))) for shape in (ratio, 1 / ratio))
        top, left = (int(generator.integers(1, side - length)) for length in (h, w))
        piece = picture[top - 1 : top + h + 1, left - 1 : left + w + 1].mean(axis=2)
        border = np.concatenate([piece[0], piece[-1], piece[:, 0], piece[:, -1]])
        stands_out = float(np.ptp(piece[1:-1, 1:-1]) / (np.ptp(border) + 1))
        if stands_out > most:
            most, chosen = stands_out, (slice(top, top + h), slice(left, left + w))
    rows, columns = chosen
    around = picture[rows.start - 1 : rows.stop + 1, columns.start - 1 : columns.stop + 1].astype(float)
    down, right = (np.linspace(0, 1, count)[1:-1] for count in around.shape[:2])
    between = (around[:1, 1:-1] * (1 - down)[:, None, None] + around[-1:, 1:-1] * down[:, None, None]) / 2
    between += (around[1:-1, :1] * (1 - right)[:, None] + around[1:-1, -1:] * right[:, None]) / 2
    # about the standard deviation, of grain alone
    grain = np.median(np.abs(np.diff(around[[0, -1]], axis=1)))
    changed = picture.copy()
    noisy = between + generator.normal(0, grain, between.shape)
    changed[rows, columns] = np.clip(noisy, 0, 255).astype(np.uint8)
    return changed

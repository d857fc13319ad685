"""Made pictures with small defects: knitted cloth and a clock's face. What `train` takes for them, and how good each distance is.

    python -m research.local_defects            # measures; about four CPU-minutes
    python -m research.local_defects FOLDER     # writes FOLDER/{knit,clock} and one folder per defect, for `train`

Nothing is chosen on these defects: the choice between distances is made as `train` makes it, on changes of other kinds
(training/strangers.py). Each kind of picture: 54 to fit, 48 to calibrate, 18 to test, 30 of each defect, n = 5; beside them patches of x itself
without any draw (n = 1).
"""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFilter
from torch import Tensor

from idecode_core.conformal import p_values
from idecode_core.device import CPU
from idecode_core.draws import Keys
from idecode_core.modality import content_of
from idecode_core.quality.metrics import auroc
from idecode_core.training.choice import best, choice_in_words
from idecode_core.training.fit_distance import GOOD as GOOD_ENOUGH
from idecode_core.training.fit_distance import distance, features_of, judged
from idecode_core.training.plan import Plan
from idecode_core.training.user_files import ListedFiles, UserFile
from idecode_core.transforms import Windows

SIDE = 256
GOOD, BAD = 120, 60


def knit(generator: np.random.Generator) -> Image.Image:
    """Rows of V-shaped stitches, with light, colour and thread of its own."""
    period, tilt = generator.uniform(15, 17), generator.uniform(-0.03, 0.03)
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    u, v = x + tilt * y + generator.uniform(0, period), y + generator.uniform(0, period)
    stitch = np.abs((u / period) % 1 - 0.5)
    wave = np.sin(2 * np.pi * (v / period - 1.2 * stitch)) * (0.6 + 0.4 * np.cos(4 * np.pi * stitch))
    thread = generator.normal(0, 1, (SIDE, SIDE))
    light = np.linspace(-1, 1, SIDE)[:, None] * generator.uniform(-8, 8)
    grey = 128 + 45 * wave + 7 * thread + light
    colour = np.array([1.0, 0.85, 0.7]) * generator.uniform(0.95, 1.05, 3)
    pixels = np.clip(grey[..., None] * colour, 0, 255).astype(np.uint8)
    return Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(0.7))


def clock(generator: np.random.Generator, missing: bool = False) -> Image.Image:
    """Twelve marks and two hands that show any time; `missing` leaves out a mark."""
    image = Image.new("RGB", (SIDE, SIDE), tuple(generator.integers(225, 240, 3).tolist()))
    draw, centre = ImageDraw.Draw(image), np.array([SIDE / 2, SIDE / 2]) + generator.uniform(-3, 3, 2)
    radius = 105 * generator.uniform(0.97, 1.03)
    ink = tuple(generator.integers(20, 45, 3).tolist())
    draw.ellipse([*(centre - radius).tolist(), *(centre + radius).tolist()], outline=ink, width=5)
    left_out = int(generator.integers(12)) if missing else -1
    for hour in range(12):
        if hour != left_out:
            _ray(draw, centre, hour / 12, radius * 0.8, radius * 0.93, ink, 6)
    for length, width in ((0.45, 7), (0.68, 4)):
        _ray(draw, centre, generator.random(), 0, radius * length, ink, width)
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(0.8))).astype(float)
    return Image.fromarray(np.clip(pixels + generator.normal(0, 3, pixels.shape), 0, 255).astype(np.uint8))


def _ray(draw, centre, turn, start, end, ink, width) -> None:  # type: ignore[no-untyped-def]
    way = np.array([np.sin(2 * np.pi * turn), -np.cos(2 * np.pi * turn)])
    draw.line([*(centre + start * way).tolist(), *(centre + end * way).tolist()], fill=ink, width=width)


def scratch(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """A bent line on about 1 % of the picture."""
    draw, place, way = (
        ImageDraw.Draw(image),
        generator.uniform(60, SIDE - 60, 2),
        generator.uniform(0, 2 * np.pi),
    )
    ink = tuple(generator.integers(190, 225, 3).tolist())
    for _ in range(9):
        way += generator.normal(0, 0.25)
        after = place + 22 * np.array([np.cos(way), np.sin(way)])
        draw.line([*place.tolist(), *after.tolist()], fill=ink, width=3)
        place = after
    return image


def spot(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """A dark, soft spot of 8 to 14 pixels."""
    (x, y), radius = generator.uniform(30, SIDE - 30, 2), generator.uniform(4, 7)
    mask = Image.new("L", (SIDE, SIDE))
    ImageDraw.Draw(mask).ellipse([x - radius, y - radius, x + radius, y + radius], fill=170)
    dark = Image.new("RGB", (SIDE, SIDE), (45, 35, 30))
    return Image.composite(dark, image, mask.filter(ImageFilter.GaussianBlur(1.5)))


def pictures_by_name() -> dict[str, list[Image.Image]]:
    generator = np.random.default_rng(0)
    return {
        "knit": [knit(generator) for _ in range(GOOD)],
        "knit-scratches": [scratch(knit(generator), generator) for _ in range(BAD)],
        "knit-spots": [spot(knit(generator), generator) for _ in range(BAD)],
        "clock": [clock(generator) for _ in range(GOOD)],
        "clock-missing-part": [clock(generator, missing=True) for _ in range(BAD)],
    }


class Itself(Windows):
    """Every g is the identity."""

    def sample(self, keys: Keys, n: int) -> Tensor:
        return torch.zeros_like(super().sample(keys, n))

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        return x[:, None].expand(-1, parameters.shape[1], -1, -1, -1)


def measure() -> None:
    """As `train` does it for photographs, with five draws in place of twenty."""
    made = {name: [np.asarray(picture) for picture in some] for name, some in pictures_by_name().items()}
    plan = Plan("mahalanobis", 224, "", ("mahalanobis", "patches", "places"), fit_draws=2)
    for kind in ("knit", "clock"):
        good = made[kind]
        files = tuple(UserFile(Path(str(i)), str(i), "", content_of(x), SIDE) for i, x in enumerate(good))
        listed = ListedFiles("image", files[:54], {content_of(x): x for x in good})
        parts = SimpleNamespace(training=SimpleNamespace(samples=listed, y=np.zeros(54, np.int64)))
        seen = features_of(plan, CPU)
        tried = judged(plan, seen, parts, None)  # type: ignore[arg-type]
        print(f"{kind}: {choice_in_words(best(tried, good=GOOD_ENOUGH), tried)}", flush=True)
        for model, title in (*((model, model) for model in plan.tries), ("patches", "patches of x itself")):
            own, n = features_of(plan, CPU, model), 5
            if title != model:
                own, n = replace(own, transforms=Itself()), 1
            z = own.encode(good[:54], n=min(n, plan.fit_draws), seed=1)
            scorer = distance(model, own, z, torch.zeros(54, dtype=torch.long))
            calibration, test = (
                scorer.score(some, n=n, seed=0).score_vectors.sum(axis=1)
                for some in (good[54:102], good[102:])
            )
            for name in (name for name in made if name.startswith(f"{kind}-")):
                bad = scorer.score(made[name][:30], n=n, seed=0).score_vectors.sum(axis=1)
                flagged, wrong = (np.mean(p_values(calibration, some) < 0.05) for some in (bad, test))
                print(
                    f"  {name}, {title}: AUROC {100 * auroc(test, bad):.1f}, flagged {flagged:.0%}, of good {wrong:.0%}",
                    flush=True,
                )


def main(root: Path) -> None:
    for name, pictures in pictures_by_name().items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for i, picture in enumerate(pictures):
            picture.save(root / name / f"{i:03d}.png")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1])) if len(sys.argv) > 1 else measure()

"""Audio scoring: what it costs beyond the bare forward pass, and what the features cost.

    python benchmarks/audio.py            # a 10 s clip, n = 20
    python benchmarks/audio.py --seconds 2 --n 5 --repeats 2

All run in turn in the same process; the medians make the ratios. Scoring starts from the clip's features, because their
share of the whole has a target of its own: drawing masks, applying them, the network, the base NCM.
Targets: scoring at most 1.15 times the bare forward pass of the same blocks, features at most 20 % of the whole.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from idecode_core.audio.read import Sound
from idecode_core.audio.scorer import AudioScorer
from idecode_core.models.vgg import VGGConfig, blank_vgg
from idecode_core.training.recipes import get_recipe
from tools.synthetic_sounds import noise


def seconds_of(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def compare(seconds: float, n: int, repeats: int) -> tuple[float, float, float, float]:
    """Medians in seconds: from the sound to its scores, from the features to its scores, the bare forward pass of the
    same blocks, the features alone."""
    recipe = get_recipe("esc50-animals")
    model = blank_vgg(VGGConfig(10, recipe.shows.widths, recipe.shows.stride))
    scorer = AudioScorer(model, recipe.transforms, recipe.base_ncm, recipe.shows.features)
    wave = noise(seconds, 44_100, generator=np.random.default_rng(0))
    sound = Sound(wave, 44_100)  # an upload: it has to be resampled as well
    point = scorer.prepare(sound, seed=0)
    blocks = point.x.blocks
    masked = scorer.transforms.apply(blocks[None], scorer.draw(point, n)[None])[0]
    x = torch.cat([blocks, masked.flatten(0, 1)])  # what scoring shows to the network

    def forward() -> None:
        with torch.inference_mode():
            model(x)

    runs: list[Callable[[], object]] = [
        lambda: scorer.score(sound, n=n, seed=0),
        lambda: scorer.score(point, n=n, seed=0),
        forward,
        lambda: scorer.prepare(sound, seed=0),
    ]
    for run in runs:
        run()  # first calls load libraries
    times = [[seconds_of(run) for run in runs] for _ in range(repeats)]
    whole, scoring, bare, features = (median(column) for column in zip(*times, strict=True))
    return whole, scoring, bare, features


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=41)
    options = parser.parse_args()
    whole, scoring, bare, features = compare(options.seconds, options.n, options.repeats)
    print(f"{options.seconds:g} s of sound, n = {options.n}, {torch.get_num_threads()} threads")
    print(
        f"whole {1000 * whole:.0f} ms, scoring {1000 * scoring:.0f} ms, bare forward pass {1000 * bare:.0f} ms, "
        f"features {1000 * features:.0f} ms"
    )
    print(
        f"scoring / forward: {scoring / bare:.2f} (target 1.15); features / whole: {features / whole:.0%} (target 20 %)"
    )

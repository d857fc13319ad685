"""Audio scoring: what it costs beyond the bare forward pass, and what the features cost.

    python benchmarks/audio.py            # a 10 s clip, n = 20
    python benchmarks/audio.py --seconds 2 --n 5 --repeats 2

Both sides run in turn in the same process and are measured in processor time, which a busy machine disturbs little; the
medians make the ratios.
Targets: scoring at most 1.15 times the bare forward pass of the same blocks, features at most 20 % of the time.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from idecode_core.audio_recipes import AUDIO_RECIPES
from idecode_core.audio_scoring import AudioScorer
from idecode_core.models.vgg import VGGConfig, blank_vgg
from idecode_core.sounds import Sound
from idecode_core.synthetic_sounds import noise


def seconds_of(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def compare(seconds: float, n: int, repeats: int) -> tuple[float, float, float]:
    """Medians in seconds: scoring from the sound, the bare forward pass of as many blocks, the features alone."""
    recipe = AUDIO_RECIPES["esc50-animals"]
    model = blank_vgg(VGGConfig(10, recipe.widths, recipe.stride))
    scorer = AudioScorer(model, recipe.transforms, recipe.base_ncm, recipe.features)
    wave = noise(seconds, 44_100, generator=np.random.default_rng(0))
    sound = Sound(wave, 44_100)  # an upload: it has to be resampled as well
    blocks = len(scorer.clip(sound).blocks)
    x = torch.randn(blocks * (n + 1), recipe.features.bands, recipe.features.block)

    def forward() -> None:
        with torch.inference_mode():
            model(x)

    whole: Callable[[], object] = lambda: scorer.score(sound, n=n, seed=0)  # noqa: E731
    features: Callable[[], object] = lambda: scorer.clip(sound)  # noqa: E731
    for run in (whole, forward, features):
        run()  # first calls load libraries
    times = [[seconds_of(run) for run in (whole, forward, features)] for _ in range(repeats)]
    scoring, bare, alone = (median(column) for column in zip(*times, strict=True))
    return scoring, bare, alone


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    scoring, bare, alone = compare(options.seconds, options.n, options.repeats)
    print(f"{options.seconds:g} s of sound, n = {options.n}, {torch.get_num_threads()} threads")
    print(
        f"scoring {1000 * scoring:.0f} ms, bare forward pass {1000 * bare:.0f} ms, features {1000 * alone:.0f} ms"
    )
    print(
        f"scoring / forward: {scoring / bare:.2f} (target 1.15); features / scoring: {alone / scoring:.0%} (target 20 %)"
    )

"""Scoring against the bare network, against a plain loop, and its memory. Each ratio is measured within one run.

    python -m benchmarks.scoring            # a few minutes; let nothing else run
    python -m benchmarks.scoring --quick    # tiny sizes, only to see that it works

The model is that of the recipe cifar10-rotations, with random weights: they do not change the time.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import cross_entropy

from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import Equivariant
from idecode_core.scorer import VARIANTS_PER_BATCH
from idecode_core.training.recipes import get_recipe
from idecode_core.transforms import Rotations

SIDE = 32
PLAIN_BATCH = 100  # the released code's batch
Images = NDArray[np.uint8]


@dataclass(frozen=True)
class Sizes:
    points: int  # images scored with n = 20 against the bare forward
    plain_points: int  # images of the comparisons with the plain loop
    sweep_points: int
    stream: int  # images of the smaller stream of the memory measurement
    repeats: int


FULL = Sizes(points=128, plain_points=100, sweep_points=20, stream=1_000, repeats=5)
QUICK = Sizes(points=8, plain_points=10, sweep_points=1, stream=600, repeats=1)


def make_scorer() -> ImageScorer:
    recipe = get_recipe("cifar10-rotations")
    return ImageScorer(Equivariant(recipe.shows.model), Rotations(), recipe.base_ncm, Preprocessing(SIDE))


def random_images(count: int) -> Images:
    return np.random.default_rng(0).integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)


def fastest(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The fastest of several runs of each, taken in turns, so that a slow moment hits all alike."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


@torch.inference_mode()
def bare_forward(scorer: ImageScorer, x: torch.Tensor) -> None:
    for batch in x.split(VARIANTS_PER_BATCH):
        scorer.model.decode(None, scorer.model.encode(batch)[:, None])


def plain_loop(scorer: ImageScorer, images: Images, n: int, batch: int) -> NDArray[np.float64]:
    """What the method looks like without care: PIL warps each image, x is encoded for each draw, autograd is on."""
    generator = np.random.default_rng(0)
    scores = np.zeros((len(images), n))
    for draw in range(n):
        for start in range(0, len(images), batch):
            part = images[start : start + batch]
            ranges = generator.integers(0, 4, len(part))
            angles = 90 * ranges + generator.integers(-10, 11, len(part))
            turned = [
                Image.fromarray(image).rotate(
                    int(angle), Image.Resampling.BILINEAR, fillcolor=(128, 128, 128)
                )
                for image, angle in zip(part, angles, strict=True)
            ]
            x = torch.from_numpy(part).permute(0, 3, 1, 2).float() / 255
            gx = (
                torch.from_numpy(np.stack([np.asarray(image) for image in turned]))
                .permute(0, 3, 1, 2)
                .float()
                / 255
            )
            z, z_g = scorer.model.encode(x), scorer.model.encode(gx)
            logits = scorer.model.decode(z, z_g[:, None])[:, 0]
            for i in range(len(part)):
                label = torch.tensor([ranges[i]])
                scores[start + i, draw] = cross_entropy(logits[i : i + 1], label).item()
    return scores


def against_the_bare_network(sizes: Sizes) -> None:
    n, scorer = 20, make_scorer()
    images, x = random_images(sizes.points), torch.rand(sizes.points * n, 3, SIDE, SIDE)
    seconds = fastest(
        {
            "bare": lambda: bare_forward(scorer, x),
            "ours": lambda: scorer.score(images, n=n, seed=0),
        },
        sizes.repeats,
    )
    print(f"{sizes.points} images, n = {n}: {len(x):,} images through the network")
    print(f"  bare forward                  {seconds['bare']:8.2f} s")
    print(f"  score_vectors                 {seconds['ours']:8.2f} s")
    print(f"  ratio                         {seconds['ours'] / seconds['bare']:8.2f} (goal: at most 1.10)")


def against_a_plain_loop(sizes: Sizes) -> None:
    scorer = make_scorer()
    images, few = random_images(sizes.plain_points), random_images(sizes.sweep_points)
    repeats = min(sizes.repeats, 3)
    seconds = fastest(
        {
            "ours": lambda: scorer.score(images, n=5, seed=0),
            "loop": lambda: plain_loop(scorer, images, 5, 1),
            "batched": lambda: plain_loop(scorer, images, 5, PLAIN_BATCH),
        },
        repeats,
    )
    print(f"{len(images)} images, n = 5")
    print(f"  score_vectors                 {seconds['ours']:8.2f} s")
    print(f"  plain loop, image by image    {seconds['loop']:8.2f} s")
    print(f"  ratio                         {seconds['loop'] / seconds['ours']:8.1f} (goal: at least 3)")
    print(f"  ratio, loop in batches of {PLAIN_BATCH} {seconds['batched'] / seconds['ours']:8.1f}")
    # Every n' <= 20 is a prefix of one pass; the plain loop starts over for each n.
    sweep = fastest(
        {
            "ours": lambda: scorer.score(few, n=20, seed=0).score_vectors.cumsum(axis=1),
            "loop": lambda: [plain_loop(scorer, few, n, 1) for n in range(1, 21)],
            "batched": lambda: [plain_loop(scorer, few, n, PLAIN_BATCH) for n in range(1, 21)],
        },
        1,
    )
    print(f"{len(few)} images, sweep n = 1..20")
    print(f"  score_vectors                 {sweep['ours']:8.2f} s")
    print(f"  plain loop, image by image    {sweep['loop']:8.2f} s")
    print(f"  ratio                         {sweep['loop'] / sweep['ours']:8.1f} (goal: at least 15)")
    print(f"  ratio, loop in batches of {PLAIN_BATCH} {sweep['batched'] / sweep['ours']:8.1f}")


def stream(count: int) -> Iterator[Images]:
    """Batches that exist one at a time, as from a large dataset."""
    generator = np.random.default_rng(0)
    for start in range(0, count, 100):
        yield generator.integers(0, 256, (min(100, count - start), SIDE, SIDE, 3), dtype=np.uint8)


def peak_megabytes(count: int) -> float:
    """Peak resident memory of a process of its own that scores a stream of `count` images."""
    command = [sys.executable, "-m", "benchmarks.scoring", "--stream", str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def memory(sizes: Sizes) -> None:
    small, large = peak_megabytes(sizes.stream), peak_megabytes(10 * sizes.stream)
    print(f"peak memory of {sizes.stream:,} and of {10 * sizes.stream:,} images")
    print(f"  {small:.0f} MB and {large:.0f} MB")
    print(f"  ratio                         {large / small:8.2f} (goal: at most 1.10)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to see that it works")
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stream:
        make_scorer().score(stream(arguments.stream), n=1, seed=0)
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(kilobytes / (2**20 if sys.platform == "darwin" else 2**10))  # macOS counts in bytes
        return
    sizes = QUICK if arguments.quick else FULL
    for measure in (against_the_bare_network, against_a_plain_loop, memory):
        measure(sizes)
        print()


if __name__ == "__main__":
    main()

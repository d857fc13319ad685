"""Write the small datasets that are bundled with the library: idecode_core/embedded/*.npz.

    python -m tools.make_embedded --data-root data

Needs the full Fashion-MNIST and the CIFAR-10 test set in the data root (`python -m idecode_core data fetch fashion
cifar10`). Every run writes the same bytes. Sources and licences: idecode_core/embedded/README.md.
"""

import argparse

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from sklearn.datasets import load_digits, load_sample_image

from idecode_core.data import EMBEDDED
from idecode_core.files import write_npz
from idecode_core.image.sets import load_images

Images = NDArray[np.uint8]
Labels = NDArray[np.uint8]

TRAINING, SAMPLE, DIGITS = 10_000, 1_000, 500
PER_CIFAR_CLASS = 12
PER_PHOTO, PHOTO_SIDE, SMALLEST_CROP = 50, 64, 96
PER_TEXTURE, TEXTURE_SIDE = 40, 32
NUMBERS, NUMBER_SIDE, ENLARGED = 12, 48, 192


def fashion(
    split: str, count: int, root: str | None, generator: np.random.Generator
) -> tuple[Images, Labels]:
    """A simple random sample, without the colour axis: (count, 28, 28)."""
    images = load_images(f"fashion-{split}", root)
    chosen = np.sort(generator.choice(len(images), count, replace=False))
    return images.x[chosen, :, :, 0], images.y[chosen].astype(np.uint8)


def cifar10(root: str | None) -> tuple[Images, Labels]:
    """The first images of each class, in the order of the official test set."""
    images = load_images("cifar10-test", root)
    chosen = np.concatenate([np.flatnonzero(images.y == label)[:PER_CIFAR_CLASS] for label in range(10)])
    return images.x[chosen], images.y[chosen].astype(np.uint8)


def digits(generator: np.random.Generator) -> tuple[Images, Labels]:
    """8 x 8 digits of 17 grey levels, enlarged to 28 px: (count, 28, 28)."""
    bunch = load_digits()
    chosen = np.sort(generator.choice(len(bunch.images), DIGITS, replace=False))
    small = np.round(bunch.images[chosen] * (255 / 16)).astype(np.uint8)
    large = [np.asarray(Image.fromarray(image).resize((28, 28), Image.Resampling.BICUBIC)) for image in small]
    return np.stack(large), bunch.target[chosen].astype(np.uint8)


def photos(generator: np.random.Generator) -> tuple[Images, Labels]:
    """Random square crops of a temple (0) and of a flower (1)."""
    crops, labels = [], []
    for label, name in enumerate(("china.jpg", "flower.jpg")):
        photo = load_sample_image(name)
        for _ in range(PER_PHOTO):
            side = int(generator.integers(SMALLEST_CROP, min(photo.shape[:2]) + 1))
            top = int(generator.integers(0, photo.shape[0] - side + 1))
            left = int(generator.integers(0, photo.shape[1] - side + 1))
            crop = Image.fromarray(photo[top : top + side, left : left + side])
            crops.append(np.asarray(crop.resize((PHOTO_SIDE, PHOTO_SIDE), Image.Resampling.BICUBIC)))
            labels.append(label)
    return np.stack(crops), np.array(labels, np.uint8)


def pattern(kind: str, generator: np.random.Generator) -> NDArray[np.float64]:
    """One pattern with values in [0, 1]: (side, side)."""
    rows, columns = np.mgrid[:TEXTURE_SIDE, :TEXTURE_SIDE] / TEXTURE_SIDE
    angle, phase = generator.uniform(0, 2 * np.pi, 2)
    along = np.cos(angle) * columns + np.sin(angle) * rows
    across = -np.sin(angle) * columns + np.cos(angle) * rows
    frequency = generator.uniform(2, 6)
    if kind == "stripes":
        return np.asarray(0.5 + 0.5 * np.sin(2 * np.pi * frequency * along + phase))
    if kind == "checkers":
        return ((np.floor(2 * frequency * along + phase) + np.floor(2 * frequency * across)) % 2).astype(
            np.float64
        )
    if kind == "noise":
        return generator.random((TEXTURE_SIDE, TEXTURE_SIDE))
    if kind == "blobs":
        centres, widths = generator.random((6, 2)), generator.uniform(0.05, 0.2, 6)
        squares = (columns[..., None] - centres[:, 0]) ** 2 + (rows[..., None] - centres[:, 1]) ** 2
        return np.asarray(np.exp(-squares / (2 * widths**2)).sum(axis=-1).clip(0, 1))
    return np.asarray((along - along.min()) / (along.max() - along.min()))  # gradients


def textures(generator: np.random.Generator) -> tuple[Images, Labels]:
    """Patterns between two random colours: stripes 0, checkers 1, noise 2, blobs 3, gradients 4."""
    images, labels = [], []
    for label, kind in enumerate(("stripes", "checkers", "noise", "blobs", "gradients")):
        for _ in range(PER_TEXTURE):
            dark, bright = generator.uniform(0, 0.4, 3), generator.uniform(0.6, 1, 3)
            mixed = dark + (bright - dark) * pattern(kind, generator)[..., None]
            images.append(np.round(255 * mixed).astype(np.uint8))
            labels.append(label)
    return np.stack(images), np.array(labels, np.uint8)


def house_number(generator: np.random.Generator) -> Images:
    """Two or three digits on a plate on a brick wall, tilted, blurred and unevenly lit, as a camera sees them."""
    ranges = ((90, 200), (10, 120), (200, 256))  # wall, plate, digits
    wall, plate, ink = (tuple(int(c) for c in generator.integers(low, high, 3)) for low, high in ranges)
    if generator.random() < 0.3:
        plate, ink = ink, plate
    picture = Image.new("RGB", (ENLARGED, ENLARGED), wall)
    draw, mortar = ImageDraw.Draw(picture), tuple(c - 30 for c in wall)
    for row in range(0, ENLARGED, 24):
        draw.line((0, row, ENLARGED, row), mortar, 3)
        for column in range(row % 48, ENLARGED, 48):
            draw.line((column, row, column, row + 24), mortar, 3)
    number = str(generator.integers(10, 200))
    draw.rounded_rectangle((14, 34, ENLARGED - 14, ENLARGED - 34), 14, plate, ink, 4)
    font = ImageFont.load_default(112 if len(number) == 2 else 84)
    draw.text((ENLARGED / 2, ENLARGED / 2), number, ink, font, "mm")
    angle = float(generator.uniform(-6, 6))
    tilted = picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=wall).filter(
        ImageFilter.GaussianBlur(2)
    )
    small = np.asarray(tilted.resize((NUMBER_SIDE, NUMBER_SIDE), Image.Resampling.BICUBIC))
    light = np.linspace(-1, 1, NUMBER_SIDE)[None, :, None] * generator.uniform(-40, 40)
    return np.asarray((small + light + generator.normal(0, 4, small.shape)).clip(0, 255).astype(np.uint8))


def house_numbers(generator: np.random.Generator) -> tuple[Images, Labels]:
    """For the app's first look: photographs of house numbers are a test set of the tables, so these are drawn."""
    return np.stack([house_number(generator) for _ in range(NUMBERS)]), np.zeros(NUMBERS, np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root")
    root = parser.parse_args().data_root
    sets = {
        "fashionmini-train": fashion("train", TRAINING, root, np.random.default_rng(1)),
        "fashion-sample": fashion("test", SAMPLE, root, np.random.default_rng(2)),
        "cifar10-sample": cifar10(root),
        "digits-sample": digits(np.random.default_rng(3)),
        "photos-sample": photos(np.random.default_rng(4)),
        "textures-sample": textures(np.random.default_rng(5)),
        "numbers-sample": house_numbers(np.random.default_rng(6)),
    }
    for name, (x, y) in sets.items():
        path = EMBEDDED / f"{name}.npz"
        write_npz(path, {"x": x, "y": y})
        print(
            f"{path.name:24} {len(x):6} images of {x.shape[1]} x {x.shape[2]}, {path.stat().st_size / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    main()

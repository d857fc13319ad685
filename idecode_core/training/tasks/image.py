"""What M learns from pictures: which transform was applied, its parameters, the label, or two of them at once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idecode_core.errors import TrainingError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import Split, read_split
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet, class_names
from idecode_core.models import Equivariant, blank_model
from idecode_core.models.backbones import Compact, CompactDenseNet
from idecode_core.models.pretrained import EfficientNetLite0
from idecode_core.training.fractals import fractals, pixmix
from idecode_core.training.losses import centre_triplet, gaussian_nll
from idecode_core.training.parts import Parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.run_state import World, rounded
from idecode_core.training.tasks.task import Answer, Batch, in_batches, random_keys
from idecode_core.transforms import Rotations

VALIDATION_BATCH = 512
FRACTALS, MIXED_TIMES = 2048, 2
WHITENED_ON = 5000  # images of the proper training set


class Images:
    """A set held as bytes at the model's size; batches become floats in [0, 1] on the device."""

    def __init__(self, images: ImageSet, preprocessing: Preprocessing, device: torch.device) -> None:
        self.x = torch.from_numpy(preprocessing.resize(images.x)).permute(0, 3, 1, 2).contiguous()
        self.y = torch.from_numpy(images.y)
        self.device = device

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, indices: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        chosen = torch.from_numpy(indices)
        return self.x[chosen].to(self.device).float() / 255, self.y[chosen].to(self.device)


def augment(
    x: Tensor, pictures: Pictures, generator: np.random.Generator, turn: NDArray[np.bool_] | None = None
) -> Tensor:
    """Random flips, shifts and covered squares of x (batch, 3, h, w), before g is applied; `turn` says whose turn to be
    flipped it is, where flips alternate."""
    batch, _, h, w = x.shape
    if pictures.flip:
        chosen = generator.random(batch) < 0.5 if turn is None else turn
        flips = torch.from_numpy(chosen).to(x.device)
        x = torch.where(flips[:, None, None, None], x.flip(-1), x)
    if pictures.crop:
        padded = nn.functional.pad(x, (pictures.crop,) * 4, mode="reflect")
        shifts = torch.from_numpy(generator.integers(0, 2 * pictures.crop + 1, size=(2, batch))).to(x.device)
        rows = shifts[0][:, None] + torch.arange(h, device=x.device)  # (batch, h)
        columns = shifts[1][:, None] + torch.arange(w, device=x.device)  # (batch, w)
        points = torch.arange(batch, device=x.device)[:, None, None]
        x = padded.permute(0, 2, 3, 1)[points, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    if pictures.cutout:
        reach = pictures.cutout / 2
        places = generator.random((2, batch, 1)) * np.array([h, w])[:, None, None]
        centres = torch.from_numpy(places).float().to(x.device)  # (2, batch, 1): of rows, of columns
        rows = (torch.arange(h, device=x.device) + 0.5 - centres[0]).abs() < reach  # (batch, h)
        columns = (torch.arange(w, device=x.device) + 0.5 - centres[1]).abs() < reach  # (batch, w)
        covered = (rows[:, :, None] & columns[:, None, :])[:, None]  # (batch, 1, h, w)
        x = torch.where(covered, x.mean(dim=(1, 2, 3), keepdim=True), x)
    return x


class ImageTask:
    def __init__(self, recipe: Recipe[Pictures], parts: Parts[ImageSet], device: torch.device) -> None:
        self.recipe, self.parts, self.device, self.shows = recipe, parts, device, recipe.shows
        self.preprocessing = Preprocessing(recipe.shows.size, recipe.shows.grey)
        self.proper, self.held_out = (
            Images(part, self.preprocessing, device) for part in (parts.training, parts.validation)
        )
        self.examples = len(self.proper)
        self.fractals = fractals(FRACTALS, seed=recipe.seed) if recipe.shows.mixed else None

    def blank(self) -> Equivariant:
        return blank_model(self.shows.model)

    def initialise(self) -> Equivariant:
        """A pretrained backbone gets its weights, one that starts from a detector that detector's; the stem of a fresh
        compact one is whitened on images of the proper training set."""
        with torch.random.fork_rng():
            torch.manual_seed(self.recipe.seed)
            model = Equivariant(self.shows.model).to(self.device)
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if isinstance(model.backbone, EfficientNetLite0):
            model.backbone.load_imagenet()
        if self.shows.start_from:
            trained = trained_backbone(Path(self.shows.start_from), self.parts.split)
            model.backbone.load_state_dict(trained.state_dict())
        elif isinstance(model.backbone, Compact | CompactDenseNet):
            some = np.arange(min(WHITENED_ON, self.examples))
            model.backbone.whiten(model.normalise(self.proper.batch(some)[0]))
        if self.shows.identity:
            assert isinstance(model.backbone, Compact)
            with torch.no_grad():
                model.backbone.start_as_identity()
        return model

    def batches(self, epoch: int, world: World) -> Iterator[Batch]:
        seed = self.recipe.seed
        order = np.random.default_rng([seed, epoch]).permutation(self.examples)  # alike in all processes
        generator = np.random.default_rng([seed, epoch, world.rank])
        torch.manual_seed(int(generator.integers(2**31)))  # dropout draws from torch's own generator
        # who is flipped in epoch 0
        first = np.random.default_rng([seed, 2**31 + 1]).random(self.examples) < 0.5
        for indices in in_batches(order, self.recipe.batch, world):
            x, y = self.proper.batch(indices)
            turn = first[indices] ^ (epoch % 2 == 1) if self.shows.alternate else None
            x = augment(x, self.shows, generator, turn)
            if self.fractals is not None:  # the first ones of a batch, which are upright
                few = round(len(x) * self.shows.mixed)
                x = torch.cat([pixmix(x[:few], self.fractals, MIXED_TIMES, generator), x[few:]])
            yield x, y, generator

    def validation(self) -> Iterator[Batch]:
        generator = np.random.default_rng([self.recipe.seed, 2**31])
        for start in range(0, len(self.held_out), VALIDATION_BATCH):
            indices = np.arange(start, min(start + VALIDATION_BATCH, len(self.held_out)))
            yield *self.held_out.batch(indices), generator

    def loss(self, model: nn.Module, *batch: Any) -> Answer:
        """x (batch, 3, h, w), labels y (batch,) and a generator for fresh transforms."""
        assert isinstance(model, Equivariant)
        x, y, generator = batch
        keys = random_keys(len(x), generator)
        if self.shows.task == "label":
            return self.label_loss(model, x, y, keys, generator)
        if self.shows.task == "transform_and_label":
            return self.joint_loss(model, x, y, keys)
        transforms = self.recipe.transforms
        if isinstance(transforms, Rotations):  # training and scoring may show different numbers of ranges
            transforms = replace(transforms, per_draw="all" if self.shows.all_ranges else "one")
        parameters = transforms.sample(keys, 1)  # (batch, m, ...)
        target = transforms.target(parameters).to(x.device)
        gx = transforms.apply(x, parameters)  # (batch, m, 3, h, w)
        m = gx.shape[1]
        if model.config.pair:
            z_all = self.encode(model, torch.cat([x, gx.flatten(0, 1)]))
            z, z_g = z_all[: len(x)], z_all[len(x) :].unflatten(0, (len(x), m))
        else:
            z, z_g = None, self.encode(model, gx.flatten(0, 1)).unflatten(0, (len(x), m))
        if self.shows.task == "transform_parameters":
            return gaussian_nll(model.decode(z, z_g), model.decode_log_variance(z, z_g), target), None
        logits = model.decode(z, z_g).flatten(0, 1)
        labels = target.flatten()
        loss = cross_entropy(logits, labels)
        if self.shows.triplet:
            loss = loss + self.shows.triplet * centre_triplet(z_g.flatten(0, 1), labels)
        return loss, logits.argmax(-1) == labels

    def encode(self, model: Equivariant, x: Tensor) -> Tensor:
        """Features (batch, d) of x (batch, 3, h, w), in float32 however they were computed."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.shows.bfloat16):
            return model.encode(x).float()

    def label_loss(
        self,
        model: Equivariant,
        x: Tensor,
        y: Tensor,
        keys: NDArray[np.uint64],
        generator: np.random.Generator,
    ) -> Answer:
        """M names the class of x, shown transformed as often as the recipe says."""
        shown = torch.from_numpy(generator.random(len(x)) < self.shows.transformed).to(x.device)
        if shown.any():
            gx = self.recipe.transforms.apply(x, self.recipe.transforms.sample(keys, 1)).squeeze(1)
            x = torch.where(shown[:, None, None, None], gx, x)
        logits = model.decode(None, self.shortened(self.encode(model, x))[:, None]).squeeze(1)
        return self.naming_loss(logits, y), logits.argmax(-1) == y

    def joint_loss(self, model: Equivariant, x: Tensor, y: Tensor, keys: NDArray[np.uint64]) -> Answer:
        """M names the class of all, or of those that are upright, and the g of those that are shown transformed; what is right is
        counted where it is not, so that the accuracy is that of a classifier."""
        transforms, plain = self.recipe.transforms, round(len(x) * (1 - self.shows.transformed))
        if isinstance(transforms, Rotations):
            transforms = replace(transforms, per_draw="one")
        parameters = transforms.sample(keys[plain:], 1)  # (turned, 1, ...)
        target = transforms.target(parameters).to(x.device)[:, 0]
        z = self.encode(model, torch.cat([x[:plain], transforms.apply(x[plain:], parameters)[:, 0]]))
        kinds = model.config.outputs - len(self.classes)  # the first outputs are about g
        labels = model.decode(None, self.shortened(z)[:, None])[:, 0, kinds:]
        of_g = model.decode(None, z[plain:, None])[:, 0, :kinds]
        asked = len(target) / len(x)  # an answer about g counts as much as one about the class
        named = plain if self.shows.upright_labels else len(x)
        loss = self.naming_loss(labels[:named], y[:named]) + asked * cross_entropy(of_g, target)
        return loss, labels[:plain].argmax(-1) == y[:plain]

    def naming_loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Of answers (batch, classes) about the class."""
        return cross_entropy(logits, y, label_smoothing=self.shows.label_smoothing)

    def shortened(self, z: Tensor) -> Tensor:
        """Features (batch, d) of length 1 / temperature, where the recipe asks for it: an answer cannot become sure by
        features that grow, so their length is left free to say how much M sees."""
        if not self.shows.feature_temperature:
            return z
        return nn.functional.normalize(z, dim=-1) / self.shows.feature_temperature

    @property
    def classes(self) -> tuple[str, ...]:
        return class_names(self.recipe.dataset) if self.recipe.learns_labels else ()

    def scorer(self, model: nn.Module) -> ImageScorer:
        assert isinstance(model, Equivariant)
        transforms, base_ncm = self.recipe.transforms, self.recipe.base_ncm
        return ImageScorer(
            rounded(model), transforms, base_ncm, self.preprocessing, self.device, self.classes
        )


def trained_backbone(folder: Path, split: Split) -> nn.Module:
    """The backbone of a detector that was trained before, on the same proper training set: else calibration points would
    have been seen in training, and the guarantee would be gone."""
    if not (folder / "split.npz").is_file():
        raise TrainingError(
            f"Training starts from the backbone of {folder}, which is not there: expected a detector folder with its "
            f"split.npz. Train it first: python -m idecode_core train {folder.name} --out {folder}"
        )
    if not np.array_equal(read_split(folder).proper, split.proper):
        raise TrainingError(
            f"{folder} was trained on another split: expected that it held out the same points. Train it with the same "
            "dataset and seed, or start afresh."
        )
    scorer = load_detector(folder, device="cpu").scorer
    assert isinstance(scorer, ImageScorer)
    return scorer.model.backbone

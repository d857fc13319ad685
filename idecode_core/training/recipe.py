"""What a recipe is: everything that determines a trained detector, as frozen dataclasses."""

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from idecode_core.audio.features import LogMel
from idecode_core.image.sets import class_names
from idecode_core.models import ModelConfig
from idecode_core.transforms import TransformSet, transform_settings

PART_OF = {"fashionmini": "fashion"}
"""Training sets that are a part of another dataset: what is in-distribution is the whole."""


@dataclass(frozen=True)
class Pictures:
    """What M sees and learns, where it sees pictures."""

    modality: ClassVar[str] = "image"

    model: ModelConfig
    task: Literal["transform_class", "transform_parameters", "label", "transform_and_label"]
    """What M learns: the class of g, the parameters of g (Gaussian NLL), the label (augmented by G), or the class of g and
    the label at once, the first outputs for g and the others for the label."""
    classes: tuple[int, ...] = ()
    """Train on these classes only (one-class detection); empty for all."""
    size: int = 32
    grey: bool = False
    flip: bool = True
    alternate: bool = False
    """Flip every other image, and in the next epoch the others, so that two epochs show each one both ways; else at random."""
    crop: int = 0
    """Shift by up to this many pixels (reflecting the border) before g is applied."""
    cutout: int = 0
    """Cover a square of this many pixels per side, somewhere, with the image's mean before g is applied (DeVries and Taylor
    2017, arXiv 1708.04552)."""
    mixed: float = 0.0
    """Share of the upright images that are mixed with fractals, up to twice (PixMix, Hendrycks et al. 2022, arXiv 2112.05135)."""
    transformed: float = 1.0
    """Share of the images that are shown transformed, where M learns labels."""
    upright_labels: bool = False
    """Where M learns the class of g and the label: labels of upright images only, as RotPred does; else of all."""
    all_ranges: bool = False
    """Show every rotation range of each image in the batch, as the paper's one-class training does."""
    triplet: float = 0.0
    """Weight of the centre-triplet loss (GOAD), margin 0.1."""
    start_from: str = ""
    """A detector folder whose backbone, of the same kind, training starts from; empty for a fresh one."""
    split_of: str = ""
    """A detector folder whose held-out points are held out here too, so that both can be merged; empty for a split of one's
    own."""
    feature_temperature: float = 0.0
    """T2FNorm (Regmi et al. 2023, arXiv 2305.17797): in training, labels are named from features divided by their length
    and by this; 0 leaves features as they are."""
    label_smoothing: float = 0.0
    """The share of each label that is spread over all classes."""
    identity: bool = False
    """Convolutions of the compact backbone start by passing their first inputs on (Dirac), and its whitened stem and the
    scales of its norms stay as they are (Jordan 2024, arXiv 2404.00498)."""
    bfloat16: bool = False
    """Run the backbone in bfloat16 in training, which takes half the time on processors that know it. Weights, losses and
    scoring stay in float32."""


@dataclass(frozen=True)
class Sounds:
    """What M sees and learns, where it hears sounds: a VGG that names the class of a log-mel block."""

    modality: ClassVar[str] = "audio"
    task: ClassVar[str] = "block_label"

    features: LogMel
    """Mean and std come from the proper training set."""
    part: str = ""
    """Which of the dataset's sets is in-distribution: an ESC-50 category, a number of an FSDnoisy18k set, or ""."""
    widths: tuple[int, ...] = (16, 32, 64, 96)
    stride: int = 2
    masks_from: int = 10
    """SpecAugment is used from this epoch on (counted from 1)."""
    shift: bool = True
    """Show a random stretch of each clip, turned round in a circle, at a random level; else all blocks as they are."""
    mixup: float = 0.0
    """Both parameters of the Beta distribution that two mixed examples' shares come from; 0 shows examples alone."""
    calibration_points: int = 75


Shown = TypeVar("Shown", Pictures, Sounds)


@dataclass(frozen=True)
class Recipe(Generic[Shown]):
    name: str
    dataset: str
    """Training set, as in `<root>/<dataset>-train.npz`."""
    shows: Shown
    transforms: TransformSet
    """G. For sounds: the masks that are drawn for scoring, and in training from epoch `masks_from` on."""
    base_ncm: str
    epochs: int
    batch: int = 256
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    learning_rate: float = 0.2
    head_learning_rate: float | None = None
    """Learning rate of the log-variance head, where it differs."""
    norm_bias_rate: float = 1.0
    """How many times faster the biases of norms learn; their decay per step is that of all weights (Jordan 2024)."""
    schedule: Literal["one_cycle", "constant", "steps"] = "one_cycle"
    """`steps` is the paper's for sounds: times 0.9 every two epochs."""
    weight_decay: float = 5e-4
    ema: float = 0.0
    """Decay per step of the exponential moving average of the weights; 0 for none."""
    seed: int = 0
    summary: str = ""
    """What is in-distribution, in a few words."""

    @property
    def modality(self) -> str:
        return self.shows.modality

    @property
    def in_distribution(self) -> str:
        """The public dataset that the detector is about, or the one class of it: "cifar10/horse"."""
        names = class_names(self.dataset)
        if names and isinstance(self.shows, Pictures) and len(self.shows.classes) == 1:
            return f"{self.dataset}/{names[self.shows.classes[0]]}"
        return PART_OF.get(self.dataset, self.dataset)

    @property
    def learns_labels(self) -> bool:
        """Whether M is a classifier of the dataset's own classes."""
        return self.shows.task in ("label", "block_label", "transform_and_label")

    def settings(self) -> dict[str, Any]:
        """Every field, flat and ready for JSON."""
        fields = asdict(self)
        fields |= fields.pop("shows") | {"transforms": transform_settings(self.transforms)}
        plain: dict[str, Any] = json.loads(json.dumps(fields))
        return plain

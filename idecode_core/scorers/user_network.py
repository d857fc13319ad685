"""A user's own network as a scorer: any torch classifier or feature extractor, a torch.export program, or any function.

    detector = Detector.around(network, calibration=images, size=224)

The network is only asked what it says of x and of g(x); a base NCM (`ncm`) turns that into scores. Saving stores
everything but foreign code: the weights, a probe (what the network says of three fixed inputs) and the settings. Loading
asks for the network again and refuses one that has other weights or says something else of the probe. Only a
torch.export program is stored whole.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from idecode_core.errors import CheckpointError, IdecodeError, SettingError
from idecode_core.files.read import reason
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer, Predicted
from idecode_core.models.pieces import pieces
from idecode_core.ncm import BASE_NCMS, BaseNCM
from idecode_core.scorer import VARIANTS_PER_BATCH, Samples, Settings, chunks, prepared
from idecode_core.scorers.call_network import PredictFn, UserModel, check_weights, close, open_program
from idecode_core.transforms import SmallAffine, TransformSet, transform_settings

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PIXELS_PER_BATCH = 2**21
"""41 pictures of 224 x 224: a large network's activations stay within a gigabyte or two."""
PROBES = 3
NEW_NAMES: set[str] = set()
"""Base NCMs that were registered by users."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""M(g(x)) (batch, m, outputs) and M(x) (batch, outputs), or g for a loss against "g" -> scores (batch, m)."""


def register_base_ncm(
    name: str,
    loss: Loss,
    against: Literal["g", "x"] = "x",
    familiarity: bool = False,
    *,
    title: str = "",
    means: str = "",
) -> None:
    """Name a base NCM of your own, so that detectors with it can be saved. Register it again before loading them.

    Cards show `title`, the formula in one line; Inspect shows `means`, what it says of one draw.
    """
    if name in BASE_NCMS and name not in NEW_NAMES:
        raise SettingError(f"A base NCM called {name!r} comes with this program; choose another name.")
    NEW_NAMES.add(name)
    BASE_NCMS[name] = BaseNCM(loss, against, title, means, familiarity)


@dataclass(frozen=True, eq=False)
class UserScorer(ImageScorer):
    """A user's network, G and the base NCM, with the preprocessing that belongs to them."""

    kind: ClassVar[str] = "own"
    title: ClassVar[str] = "iDECODe around your network"
    summary: ClassVar[str] = "how badly your network answers for transformed pictures, by a base NCM"

    model: UserModel  # type: ignore[assignment]  # it answers; it need not be taken apart into encoder and head
    user_ncm: BaseNCM | None = None
    """A base NCM without a name: it scores, and cannot be saved."""
    probe: Tensor = field(init=False)
    """What the network says of fixed inputs: (PROBES, outputs)."""

    def __post_init__(self) -> None:
        if self.user_ncm is None and self.base_ncm not in BASE_NCMS:
            raise SettingError(
                f"No base NCM is called {self.base_ncm!r}; expected one of {', '.join(BASE_NCMS)}, or one of your own that "
                "register_base_ncm has named in this session."
            )
        object.__setattr__(self, "probe", self._probe())

    def _probe(self) -> Tensor:
        """Ask the network and the base NCM once: what does not fit is said here, before anything is calibrated."""
        size = self.preprocessing.size
        x = torch.from_numpy(np.random.default_rng(0).random((PROBES, 3, size, size), dtype=np.float32))
        ncm = self.user_ncm or BASE_NCMS[self.base_ncm]
        if ncm.familiarity and self.model.features is None:
            raise SettingError(
                f"The base NCM {self.base_ncm} looks at features: name the layer that gives them after its ReLU, such as "
                'features="avgpool" for a torchvision ResNet; or choose another base NCM, such as label_logit.'
            )
        if ncm.against == "g" and isinstance(self.transforms, SmallAffine):
            raise SettingError(
                f"The base NCM {self.base_ncm} asks which g was applied, and small affine warps have no answer to that. Use "
                "label_logit, or Rotations() for a network that was trained to tell rotations apart."
            )
        x = x.to(self.device)
        try:
            with torch.inference_mode():
                logits, alone = self.model(x)[0].float().cpu(), self.model(x[:1])[0].float().cpu()
        except IdecodeError:
            raise
        except Exception as error:  # foreign code may raise anything
            raise SettingError(
                f"The network does not take pictures of shape ({PROBES}, {len(self.model.mean)}, {size}, {size}), or not "
                f"batches of any size: {type(error).__name__}, {reason(error)}. Check size=, mean= and std=; export a program "
                'with dynamic_shapes=({0: torch.export.Dim("batch")},).'
            ) from error
        if not close(alone, logits[:1]):
            warnings.warn(
                "The network says something else of a picture alone than in company, so scores depend on the batch. Is a layer "
                "in training mode, or does one look across the batch?",
                stacklevel=5,
            )
        keys = np.arange(2 * PROBES, dtype=np.uint64).reshape(PROBES, 2)
        drawn = self.transforms.sample(keys, 2)
        if ncm.against == "g":
            self._check_answers_g(drawn, logits.shape[1])
        with torch.inference_mode():
            try:
                scores = self.predict(x, drawn).scores(self.base_ncm)
            except IdecodeError:
                raise
            except Exception as error:  # a user's own base NCM may raise anything
                raise SettingError(
                    f"The base NCM {self.base_ncm} cannot use what the network says, shape ({PROBES}, m, {logits.shape[1]}): "
                    f"{type(error).__name__}, {reason(error)}."
                ) from error
        if scores.shape != drawn.shape[:2]:
            raise SettingError(
                f"The base NCM {self.base_ncm} must give one score per variant: expected a tensor of shape {tuple(drawn.shape[:2])}, "
                f"got {tuple(scores.shape)}. Reduce over the last axis."
            )
        return logits

    @property
    def together(self) -> int:
        """Pictures that go through the network at once."""
        return max(1, min(VARIANTS_PER_BATCH, PIXELS_PER_BATCH // self.preprocessing.size**2))

    def _check_answers_g(self, drawn: Tensor, outputs: int) -> None:
        target = self.transforms.target(drawn)  # (batch, m) classes or (batch, m, p) parameters
        classes = 4 if not target.is_floating_point() else target.shape[-1]
        if outputs != classes:
            raise SettingError(
                f"The base NCM {self.base_ncm} asks the network which g was applied: expected {classes} outputs, one per "
                f"{'range of rotations' if not target.is_floating_point() else 'parameter'}, got {outputs}. For a classifier "
                "use label_logit with SmallAffine()."
            )

    def predict_variants(
        self, x: Tensor, gx: Tensor, parameters: Tensor, base_ncms: Sequence[str] | None = None
    ) -> Predicted:
        ncms = (
            [self.user_ncm] if self.user_ncm else [BASE_NCMS[name] for name in base_ncms or [self.base_ncm]]
        )
        reference = None
        if any(ncm.asks_x for ncm in ncms):
            reference = torch.cat([logits for logits, _ in pieces(self.model, x, self.together)]).float()
        answers = pieces(self.model, gx.flatten(0, 1), self.together)
        # (batch, m, outputs)
        prediction = torch.cat([logits for logits, _ in answers]).float().unflatten(0, gx.shape[:2])
        features = [seen.float() for _, seen in answers if seen is not None]
        z_g = torch.cat(features).unflatten(0, gx.shape[:2]) if features else None
        target = self.transforms.target(parameters)
        return Predicted(prediction, reference, target, z_g, user_ncm=self.user_ncm)

    def logits(self, samples: Samples) -> Tensor:
        with torch.inference_mode():
            rows = [
                self.model(self.tensor(chunk))[0].float().cpu()
                for chunk in chunks(prepared(self, samples, seed=0), self.together)
            ]
        return torch.cat(rows)

    def settings(self) -> Settings:
        if self.user_ncm is not None:
            raise CheckpointError(
                "A base NCM that is a function without a name cannot be saved: name it with "
                "register_base_ncm(name, function), and give that name as base_ncm."
            )
        network = self.model.network
        stored = "function" if self.model.is_function else "weights"
        if isinstance(network, ExportedProgram):
            stored = "program"
        return {
            "kind": self.kind,
            "stored": stored,
            "network": type(network).__name__,
            "mean": list(self.model.mean),
            "std": list(self.model.std),
            "features": self.model.features,
            "transforms": transform_settings(self.transforms),
            "base_ncm": self.base_ncm,
            "preprocessing": asdict(self.preprocessing),
            "classes": list(self.classes),
        }

    def tensors(self) -> dict[str, Tensor]:
        return {**self.model.tensors(), "probe": self.probe}

    @classmethod
    def build(
        cls,
        settings: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        device: torch.device,
        model: nn.Module | PredictFn | None = None,
        trust_program: bool = False,
    ) -> "UserScorer":
        stored, network = settings["stored"], settings["network"]
        if stored == "program":
            given: Any = open_program(tensors["program"], trust_program)
        elif model is None:
            name, what = ("predict_fn", "predict_fn") if stored == "function" else ("model", "network")
            raise CheckpointError(
                f"This detector was made around a {what} of type {network}, whose code is not stored: give it again, "
                f"load_detector(folder, {name}={what}), or --model module:function on the command line, of `idecode app` too."
            )
        else:
            given = model
        answers = UserModel(given, settings["mean"], settings["std"], device, settings["features"])
        if stored == "program":
            answers.program = tensors["program"]  # as it was stored, so that its hash stays
        else:
            check_weights(answers, tensors, network)
        scorer = cls.around(answers, settings, device)
        if not close(scorer.probe, tensors["probe"]):
            raise CheckpointError(
                f"The {type(given).__name__} that was given says something else of the stored probe than the {network} that was "
                "calibrated, so its p-values would mean nothing. Give the same network, or calibrate this one."
            )
        # the last bit may differ between machines; the hash must not
        object.__setattr__(scorer, "probe", tensors["probe"])
        return scorer


def user_scorer(
    network: nn.Module | ExportedProgram | None = None,
    *,
    predict_fn: PredictFn | None = None,
    transforms: TransformSet | None = None,
    base_ncm: str | BaseNCM | Loss = "label_logit",
    size: int,
    mean: Sequence[float] = IMAGENET_MEAN,
    std: Sequence[float] = IMAGENET_STD,
    features: str | None = None,
    classes: Sequence[str] = (),
    device: torch.device,
) -> UserScorer:
    """The scorer of `Detector.around`, which says what the arguments mean."""
    if (network is None) == (predict_fn is None):
        raise SettingError("Give either a network or a predict_fn, and not both.")
    answers = UserModel(network if network is not None else predict_fn, mean, std, device, features)  # type: ignore[arg-type]
    if not isinstance(base_ncm, str) and not callable(base_ncm):
        raise SettingError(
            f"base_ncm must be a name, a function or a BaseNCM, got {type(base_ncm).__name__}."
        )
    if isinstance(base_ncm, str):
        name, ncm = base_ncm, None
    else:
        name = getattr(base_ncm, "__name__", "of your own")
        ncm = base_ncm if isinstance(base_ncm, BaseNCM) else BaseNCM(base_ncm, "x")
    preprocessing = Preprocessing(size, grey=len(answers.mean) == 1)
    return UserScorer(answers, transforms or SmallAffine(), name, preprocessing, device, tuple(classes), ncm)

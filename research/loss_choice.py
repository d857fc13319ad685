"""Which loss for the class head of the joint network? Tried on development data: `python -m research.loss_choice`.

Short runs of a narrow network, alike but for the loss. docs/joint.md says what came of it; results/loss-choice.json is written loss
by loss and read again.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from idecode_core.errors import DataError
from idecode_core.files import write_json
from idecode_core.files.read import read_json
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.ncm import TURN
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks.image import ImageTask
from idecode_core.training.tasks.task import Answer
from research.development import development_sets, validation_images
from research.joint_choice import BANK, Answers, answers, known_features

RESULTS, RUNS = Path("results/loss-choice.json"), Path("runs/loss-choice")
WIDTHS, EPOCHS, DRAWS = (16, 64, 128), 8, 1
LOGIT_TEMPERATURE = 0.04  # LogitNorm (Wei et al. 2022, arXiv 2205.09310)


@dataclass(frozen=True)
class Loss:
    """How the class is learned: `feature_temperature` is T2FNorm's; logits at a fixed length; smoothed labels; mixup's alpha."""

    feature_temperature: float = 0.0
    logits_at_length: bool = False
    smoothing: float = 0.0
    mixup: float = 0.0


LOSSES = {
    "plain": Loss(),
    "plain, labels smoothed by 0.1": Loss(smoothing=0.1),
    "plain, mixup": Loss(mixup=0.4),
    "LogitNorm": Loss(logits_at_length=True),
    "T2FNorm": Loss(0.1),
    "T2FNorm, labels smoothed by 0.1": Loss(0.1, smoothing=0.1),
    "T2FNorm, mixup": Loss(0.1, mixup=0.4),
}
SCORES = {
    "evidence": lambda found: -found.evidence_of_x[:, 0],
    "max softmax": lambda found: -found.of_x.log_softmax(dim=-1).amax(dim=-1),
    "neighbours": lambda found: found.known.neighbour(found.features_of_x),
    "shipped": lambda found: TURN * found.error.mean(dim=1) - found.evidence_of_x[:, 0],
}


class Trial(ImageTask):
    """The joint task under another loss."""

    tried = Loss()
    others: tuple[Tensor, float] | None = None
    """Under mixup: the labels of what is mixed in, and the share of the first ones."""

    def loss(self, model: nn.Module, *batch: Any) -> Answer:
        x, y, generator = batch
        self.others = None
        if self.tried.mixup and model.training:
            share = float(generator.beta(self.tried.mixup, self.tried.mixup))
            other = torch.from_numpy(generator.permutation(len(x)))
            x, self.others = share * x + (1 - share) * x[other], (y[other], share)
        return super().loss(model, x, y, generator)

    def naming_loss(self, logits: Tensor, y: Tensor) -> Tensor:
        if self.tried.logits_at_length:
            logits = normalize(logits, dim=-1) / LOGIT_TEMPERATURE
        if self.others is None:
            return cross_entropy(logits, y, label_smoothing=self.tried.smoothing)
        other, share = self.others
        return share * cross_entropy(logits, y) + (1 - share) * cross_entropy(logits, other)


def short_recipe(name: str, loss: Loss) -> Recipe[Pictures]:
    recipe = get_recipe("cifar10-joint-wide")
    shows = replace(
        recipe.shows,
        model=replace(recipe.shows.model, widths=WIDTHS),
        feature_temperature=loss.feature_temperature,
    )
    return replace(recipe, name=name, shows=shows, epochs=EPOCHS)


def trial(name: str, loss: Loss, data_root: Path | None) -> dict[str, Any]:
    """The accuracy on the validation part, and by score the AUROC on each development set."""
    recipe = short_recipe(name.replace(" ", "-").replace(",", ""), loss)
    train_set = load_images("cifar10-train", data_root)
    task = Trial(recipe, image_parts(recipe, train_set), torch.device("cpu"))
    task.tried = loss
    scorer = task.scorer(train(task, RUNS / recipe.name))
    assert isinstance(scorer, ImageScorer)
    some = np.random.default_rng(0).permutation(task.parts.split.proper)[:BANK]
    known = known_features(scorer, train_set.take(some))
    validation = validation_images(task.parts.split, data_root)
    inside = answers(scorer, validation.x, known, DRAWS)
    outside = {
        name: answers(scorer, images.x, known, DRAWS) for name, images in development_sets(data_root).items()
    }

    def against(other: Answers, score: str) -> float:
        return auroc(*(SCORES[score](answers).double().numpy() for answers in (inside, other)))

    return {
        "accuracy": float((inside.of_x.argmax(dim=1).numpy() == validation.y).mean()),
        **{score: [against(other, score) for other in outside.values()] for score in SCORES},
    }


def main(data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None) -> None:
    """Try what has not been tried yet, then print the table: the mean over the development sets by score."""
    trials: dict[str, Any] = (
        read_json(RESULTS, what="trials", error=DataError, hint="Delete it.") if RESULTS.exists() else {}
    )
    for name, loss in LOSSES.items():
        if name not in trials:
            trials[name] = trial(name, loss, data_root)
            write_json(RESULTS, trials)
    rows = [
        [
            name,
            f"{100 * outcome['accuracy']:.1f}",
            *(f"{100 * np.mean(outcome[score]):.1f}" for score in SCORES),
            f"{100 * outcome['shipped'][2]:.1f}",
        ]
        for name, outcome in trials.items()
    ]
    titles = [
        "loss",
        "validation accuracy, %",
        *(f"{score}, mean AUROC" for score in SCORES),
        "shipped, invertebrates",
    ]
    typer.echo(table(titles, rows))


if __name__ == "__main__":
    typer.run(main)

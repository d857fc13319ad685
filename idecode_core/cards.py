"""card.md: what a detector is, how it was made, how good it is and where it fails. Written from its folder alone."""

from pathlib import Path
from typing import Any

from idecode_core.checkpoint import read_config
from idecode_core.conformal import p_values
from idecode_core.evaluation import evaluate
from idecode_core.experiments.false_detections import EPSILONS, f_scores, observed_band
from idecode_core.experiments.results import percent, table
from idecode_core.experiments.stored import Stored, open_stored
from idecode_core.files import write_text
from idecode_core.metrics import false_detection_rate
from idecode_core.training_finish import TrainingRecord, read_training

LICENCES = {
    "cifar10": "CIFAR-10 (Krizhevsky 2009, *Learning multiple layers of features from tiny images*) states no licence; cite it.",
    "cifar100": "CIFAR-100 (Krizhevsky 2009) states no licence; cite it.",
    "svhn": "SVHN (Netzer et al. 2011) is for non-commercial use.",
    "fashion": "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017) is under the MIT licence.",
    "fashionmini": "A part of Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), MIT licence.",
}
TASKS = {
    "transform_class": "M learns to say which rotation was applied to an image",
    "transform_parameters": "M learns the parameters of the transform that was applied (Gaussian NLL, as AVT)",
    "label": "M is a classifier that learns the labels under small warps",
}
BASE_NCMS = {
    "cross_entropy": "the cross-entropy between M's answer and the transform that was applied",
    "parameter_error": "the mean squared error of the predicted transform parameters",
    "log_parameter_error": "the log of the mean squared error of the predicted transform parameters (the paper: the error "
    "itself)",
    "invariance": "the squared distance between the softmax outputs of x and of g(x) (Eq. 3)",
    "label_cross_entropy": "-log of the probability that M gives, on g(x), to the class that it names for x",
    "cross_entropy_and_familiarity": "the cross-entropy between M's answer and the transform that was applied, less the log "
    "of M's mean activation on g(x) (docs/familiarity.md)",
    "label_logit_and_familiarity": "minus the logit that M gives, on g(x), to the class that it names for x, less the log "
    "of M's mean activation on g(x) (docs/familiarity.md)",
}
LIMITS = (
    "- The guarantee is about points from the training distribution: at most a share epsilon of them is flagged, on "
    "average over calibration sets. It says nothing about how many OOD points are found; the table does, for these sets.\n"
    "- Images are cut to the middle square and resized to the model's size first. A change of camera, compression or "
    "cropping can make in-distribution images strange; calibrate anew on images of your own.\n"
    "- Numbers on OOD sets come from random parts of public sets and have a sampling error of about one point.\n"
)


def describe_scorer(settings: dict[str, Any]) -> str:
    """What a scorer does, from config.json."""
    if settings["kind"] == "merged":
        weights = zip(settings["names"], settings["weights"], settings["members"], strict=True)
        members = "\n".join(
            f"- {name} (weight {weight:g}): {describe_scorer(member)}" for name, weight, member in weights
        )
        return (
            "Several members, each with its own transforms. A member's score becomes -log of its rank among the reference "
            f"points (the validation part), and the weighted sum is calibrated:\n\n{members}"
        )
    transforms = dict(settings["transforms"])
    name = transforms.pop("name").replace("sharp_rotations", "rotations, bicubic").replace("_", " ")
    details = ", ".join(f"{key} = {value}" for key, value in transforms.items() if key != "variants")
    base_ncm = BASE_NCMS.get(settings["base_ncm"], settings["base_ncm"])
    return f"G: {name}{f' ({details})' if details else ''}; base NCM: {base_ncm}."


def describe_training(record: TrainingRecord) -> str:
    accuracy = ""
    if record.validation_accuracy is not None:
        accuracy = f", accuracy {100 * record.validation_accuracy:.1f} %"
    if record.test_accuracy is not None:
        accuracy += f" (test set: {100 * record.test_accuracy:.1f} %)"
    origin = ""
    if record.settings["model"]["backbone"] == "efficientnet-lite0":
        origin = (
            " **The backbone, EfficientNet-Lite0, was trained on ImageNet before**, which has seen much of what is OOD "
            "here; do not compare the numbers with those of models trained from scratch."
        )
    start = record.settings.get("start_from", "")
    if start:
        origin += f" The backbone starts from that of `{Path(start).name}`, trained on the same split."
    return (
        f"{TASKS[record.task]}.{origin} Recipe `{record.recipe}`: {record.epochs} epochs in {record.hours:.2f} hours on two CPU "
        f"cores (shared with other work), seed {record.seed}; epoch {record.best_epoch} was kept for its validation loss "
        f"of {record.validation_loss:.4f}{accuracy}.\n\n"
        f"Random split of the training set: {record.proper_training_points:,} proper training points, "
        f"{record.validation_points:,} validation points (to choose the epoch), {record.calibration_points:,} calibration "
        f"points.\n\nCommand: `python -m idecode_core train {record.recipe}`. The learning curve is in "
        "`learning-curve.svg`, the log in `log.jsonl`, every setting in `training.json`."
    )


def numbers(stored: Stored) -> str:
    """AUROC and TNR on each OOD set, and the false detection rate beside its exact band."""
    rows = []
    for ood_set in stored.ood_sets:
        one, five, twenty = (evaluate(stored.calibration, stored.id_set, ood_set, n) for n in (1, 5, 20))
        rows.append(
            [
                ood_set.label,
                f"{len(ood_set):,}",
                *(percent(found.auroc) for found in (one, five, twenty)),
                percent(five.tnr),
            ]
        )
    calibration, test = f_scores(stored)
    p = p_values(calibration, test)
    rates = []
    for epsilon in EPSILONS[:1] + EPSILONS[1:4:2] + EPSILONS[-1:]:
        low, high = observed_band(calibration.size, epsilon, test.size)
        rates.append(
            [
                f"{epsilon:g}",
                f"{100 * false_detection_rate(p, epsilon):.1f}",
                f"{100 * low:.1f} to {100 * high:.1f}",
            ]
        )
    titles = ["OOD set", "points", "AUROC n=1", "AUROC n=5", "AUROC n=20", "TNR (90 % TPR) n=5"]
    return (
        f"In percent, mean and spread over five independent runs; {len(stored.id_set):,} iD test points.\n\n"
        f"{table(titles, rows)}\n\nFalse detection rate on the iD test points (n=5), beside the band that holds it in 99 % "
        f"of cases:\n\n{table(['epsilon', 'rate', 'band'], rates)}\n\n"
        "Commands: `python -m idecode_core reproduce table1`, `reproduce fdr`; the scores are in `scores/`."
    )


def card(folder: Path | str) -> str:
    """The card's text. Without stored scores it says so in place of numbers."""
    folder = Path(folder)
    training = read_training(folder)
    if any((folder / "scores").glob("*.npz")):
        stored = open_stored(folder.parent, folder.name)
        found, settings, dataset = numbers(stored), stored.config, stored.dataset
    else:
        settings = read_config(folder)
        dataset = training.dataset if training else folder.name.split("-")[0]
        found = (
            f"No test scores are stored. Write them with `python -m idecode_core score-sets {folder.name}`."
        )
    sections = {
        "In-distribution": f"{settings['summary']}.",
        "How it scores": describe_scorer(settings["scorer"]),
        "How it was trained": describe_training(training) if training else "",
        "Calibration": f"{settings['k']:,} held-out points with {settings['n_max']} draws each; draws are keyed by content.",
        "How good it is": found,
        "Limits": LIMITS,
        "Licence of the data": LICENCES.get(dataset, "See the dataset."),
    }
    parts = [f"## {title}\n\n{text.strip()}\n" for title, text in sections.items() if text]
    return "\n".join([f"# {settings['name']}\n", *parts])


def write_card(folder: Path | str) -> None:
    write_text(Path(folder) / "card.md", card(folder))

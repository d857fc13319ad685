"""card.md: what a detector is, how it was made, how good it is and where it fails. Written from its folder alone.

The words for base NCMs, transform sets and scorers stand beside these; those for datasets and training tasks stand here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from idecode_core.files import write_text
from idecode_core.folder.detector import Writer
from idecode_core.folder.record import TrainingRecord, kept_epoch, read_log, read_training
from idecode_core.folder.settings import checkpoint_root, read_settings
from idecode_core.folder.shelf import DRAWS_PER_RUN, RUNS, SBP, scorer_names
from idecode_core.folder.stored import PRETRAINED, Stored, has_scores, open_stored, saw_imagenet
from idecode_core.ncm import BASE_NCMS
from idecode_core.plots.svg import learning_curve_svg
from idecode_core.quality.methods import beside_softmax, evaluate_sets
from idecode_core.quality.strength import rates_in_bands
from idecode_core.quality.user_data import UserResult, user_result
from idecode_core.report.tables import percent, table
from idecode_core.report.user_data import user_numbers, user_training_words
from idecode_core.scorer import SCORERS, scorer_class
from idecode_core.transforms import TRANSFORM_SETS

LICENCES = {
    "cifar10": "CIFAR-10 (Krizhevsky 2009, *Learning multiple layers of features from tiny images*) states no licence; cite it.",
    "cifar100": "CIFAR-100 (Krizhevsky 2009) states no licence; cite it.",
    "svhn": "SVHN (Netzer et al. 2011) is for non-commercial use.",
    "fashion": "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017) is under the MIT licence.",
    "esc50": (
        "ESC-50 (Piczak 2015, *ESC: Dataset for environmental sound classification*) is under CC BY-NC 3.0: use these "
        "weights for non-commercial purposes, and cite it. No audio of ESC-50 is in this folder."
    ),
    "spokendigits": (
        "All clips were made by this project with espeak-ng (`tools/make_spoken_digits.py`); they are free to use as the "
        "project itself."
    ),
    "fsdnoisy18k": "FSDnoisy18k (Fonseca et al. 2019) has a Creative Commons licence for each clip; see the dataset.",
}
DATA = {
    "esc50": (
        "ESC-50 at 16 kHz: training on folds 1 and 2, calibration on {k} random clips of fold 3, test on fold 4. Clips of "
        "one recording share a fold, so calibration and test clips are equally new to the model."
    ),
    "spokendigits": (
        "Independent draws of digit, accent, voice, speed, pitch, place, level and background noise; "
        "`python tools/make_spoken_digits.py data` makes them again."
    ),
    "fsdnoisy18k": (
        "The verified clips of FSDnoisy18k (App. C.2): 15 random clips per class calibrate, the test part tests."
    ),
}
TASKS = {
    "transform_class": "M learns to say which rotation was applied to an image",
    "transform_parameters": "M learns the parameters of the transform that was applied (Gaussian NLL, as AVT)",
    "transform_and_label": (
        "M learns to name the class of an image and, where it is shown turned, which rotation was applied"
    ),
    "label": "M is a classifier that learns the labels under small warps",
    "block_label": "A VGG with channels {widths} names the class of a block",
}
LIMITS = {
    "image": (
        "- The guarantee is about points from the training distribution: at most a share epsilon of them is flagged, on "
        "average over calibration sets. It says nothing about how many OOD points are found; the table does, for these "
        "sets.\n"
        "- Images are cut to the middle square and resized to the model's size first. A change of camera, compression or "
        "cropping can make in-distribution images strange; calibrate again on images of your own.\n"
        "- Numbers on OOD sets come from random parts of public sets and have a sampling error of about one point.\n"
    ),
    "audio": (
        "- The bound holds for clips like those that calibrated it. Another microphone or room is another distribution: "
        "calibrate again with recordings of your own.\n"
    ),
    "esc50": (
        "- Only 160 clips are known to it. It separates iD from OOD weakly: read the AUROC above before relying on it.\n"
        "- The smallest p-value is 1/76: an epsilon of 0.013 or less never flags anything.\n"
        "- The bound holds for clips like ESC-50's (5 s, Freesound, Vorbis-coded, 16 kHz). Your microphone is another "
        "distribution: calibrate again with recordings of your own.\n"
        "- Clips of one recording stay in one fold, so folds are not quite as many independent points as they have clips.\n"
    ),
    "spokendigits": (
        "- In-distribution is espeak-ng, not people: a recorded voice is usually flagged, and rightly so.\n"
        "- The bound holds for clips that the same script makes; calibrate again for other voices or microphones.\n"
    ),
    "cifar10/horse": (
        "- It knows horses as CIFAR-10 shows them: small, whole, upright. Another kind of picture of a horse may be flagged, and "
        "rightly so.\n"
        "- Each other class has 100 test pictures, so its AUROC has a sampling error of two to three points.\n"
        "- Trained for minutes: read the table before relying on it; deer and trucks are missed most often.\n"
    ),
    "fsdnoisy18k": "- Trained on few verified clips; the paper's AUROC is 60 on average.\n",
}
LIMITS |= {  # of a user's own files: their numbers have intervals of their own
    "own image": LIMITS["image"].rpartition("- Numbers on OOD sets")[0],
    "own audio": LIMITS["audio"],
}
"""By dataset; else by modality."""


AFTER_IMAGENET = (
    "**The backbone, EfficientNet-Lite0, was trained on ImageNet before**, which has seen much of what is OOD here; do not compare the "
    "numbers with those of models trained from scratch."
)


def describe_scorer(settings: Mapping[str, Any]) -> str:
    """What a scorer does, from config.json."""
    if settings["kind"] == "merged":
        weights = zip(settings["names"], settings["weights"], settings["members"], strict=True)
        members = "\n".join(
            f"- {name} (weight {weight:g}): {describe_scorer(member)}" for name, weight, member in weights
        )
        kinds = {member["kind"] for member in settings["members"]}
        part = "the proper training set" if kinds == {"audio"} else "held-out ones that do not calibrate"
        if "sound_distance" in kinds:
            part = "the training clips, scored by members that were fitted to others of them"
        return (
            "Several members, each with its own transforms. A member's score becomes -log of its rank among the reference "
            f"points ({part}), and the weighted sum is calibrated:\n\n{members}"
        )
    kind = scorer_class(settings["kind"])
    if "transforms" not in settings:
        title, summary = getattr(kind, "title", "") or kind.kind, getattr(kind, "summary", "")
        return f"{title}{summary and f': {summary}'}. Its settings are in `config.json`."
    known = BASE_NCMS.get(settings["base_ncm"])
    formula = known.title if known else kind.summary if settings["base_ncm"] in SCORERS else ""
    base_ncm = f"base NCM: {formula or settings['base_ncm']}."
    transforms = dict(settings["transforms"])
    if settings["kind"] == "audio":
        features = settings["features"]
        return (
            f"Log-mel blocks ({features['bands']} bands, {features['block']} frames, {features['sample_rate']} Hz). G: "
            f"{transforms['time_masks']} time masks of up to {transforms['time_width'] - 1} frames and "
            f"{transforms['frequency_masks']} frequency masks of up to {transforms['frequency_width'] - 1} bands per "
            f"block; {base_ncm}"
        )
    name = transforms.pop("name")
    name = getattr(TRANSFORM_SETS.get(name), "title", name)
    details = ", ".join(f"{key} = {value}" for key, value in transforms.items() if key != "variants")
    return f"G: {name}{f' ({details})' if details else ''}; {base_ncm}"


def describe_training(record: TrainingRecord) -> str:
    settings = record.settings
    if "source" in settings:  # a user's own data
        return user_training_words(record)
    epochs = f"{record.epochs} epoch{'s' * (record.epochs > 1)}"
    task = TASKS[record.task].format(**settings)
    if record.task == "block_label":
        return (
            f"{task}; recipe `{record.recipe}`: {epochs} on {record.proper_training_points:,} clips, seed "
            f"{record.seed}, SpecAugment from epoch {settings['masks_from']} on"
            f"{', with mixup' if settings.get('mixup') else ''}. Accuracy: {share(record.calibration_accuracy)} on the "
            f"calibration clips, {share(record.test_accuracy)} on the {record.test_points:,} test clips.\n\n"
            f"Command: `python -m idecode_core train {record.recipe}`, then `python -m idecode_core paper score-sets "
            f"checkpoints/{record.recipe}`. Every setting is in `training.json`."
        )
    accuracy = ""
    if record.validation_loss is not None:
        accuracy = f" for its validation loss of {record.validation_loss:.4f}"
    if record.validation_accuracy is not None:
        accuracy += f", accuracy {share(record.validation_accuracy)}"
    if record.test_accuracy is not None:
        accuracy += f" (test set: {share(record.test_accuracy)})"
    origin = ""
    if settings["model"]["backbone"] == PRETRAINED:
        origin = f" {AFTER_IMAGENET}"
    if start := settings.get("start_from", ""):
        origin += f" The backbone starts from that of `{Path(start).name}`, trained on the same points."
    return (
        f"{task}.{origin} Recipe `{record.recipe}`: {epochs} in {record.hours:.2f} hours on "
        f"{record.machine}, seed {record.seed}; epoch {record.best_epoch} was kept{accuracy}.\n\n"
        f"Random split of the training set: {record.proper_training_points:,} proper training points, "
        f"{record.validation_points:,} validation points (to choose the epoch), {record.calibration_points:,} calibration "
        f"points.\n\nCommand: `python -m idecode_core train {record.recipe}`. The learning curve is in "
        "`learning-curve.svg`, the log in `log.jsonl`, every setting in `training.json`."
    )


def merged_by(scorer: Mapping[str, Any]) -> str:
    """What made a recipe's classifier a merged detector."""
    if all(member["kind"] != "sound_distance" for member in scorer.get("members", ())):
        return ""
    return (
        "\n\nThe other member is fitted to the same clips and needs no training: its network was trained on music before, and is "
        "bundled. Command: `python -m research.audio_merged build`."
    )


def share(rate: float | None) -> str:
    return "not measured" if rate is None else f"{100 * rate:.1f} %"


def numbers(stored: Stored) -> str:
    """AUROC on each OOD set, and the false detection rate beside its exact band. Pictures: also TNR. Sounds: also SBP."""
    sounds = stored.settings.takes_sounds
    ns = (1, 5, 20) if stored.calibration.n_max > 1 else (1,)  # one without random draws has no others
    usual = ns[len(ns) // 2]
    by_n = [evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n) for n in ns]
    rows = []
    for ood_set, *evaluations in zip(stored.ood_sets, *by_n, strict=True):
        row = [ood_set.label, f"{len(ood_set):,}", *(percent(evaluation.auroc) for evaluation in evaluations)]
        rows.append(row if sounds else [*row, percent(evaluations[len(ns) // 2].tnr)])
    runs = "in percent, mean and spread over five independent runs"
    if len(ns) == 1:
        runs = "in percent; it draws nothing, so there is one run"
    elif (draws := stored.id_set.score_vectors.shape[1]) < RUNS * DRAWS_PER_RUN:
        runs = (
            f"in percent, mean and spread over as many independent runs as {draws} draws give, five at most"
        )
    if sounds:
        rates = rates_in_bands(stored, 20, (0.05, 0.1, 0.2))
        together = ""
        if SBP in scorer_names(stored.folder):
            with_softmax = beside_softmax(stored)
            together = (
                f"All OOD clips together: n=20 {percent(with_softmax.twenty)}, SBP {percent(with_softmax.sbp)}, with "
                f"SBP added {percent(with_softmax.with_sbp)}.\n\n"
            )
        titles = ["detector, n=20", *(f"ε = {rate.epsilon:g}" for rate in rates)]
        return (
            f"AUROC {runs}; {len(stored.id_set):,} iD test clips.\n\n"
            f"{table(['OOD set', 'clips', 'n=1', 'n=5', 'n=20'], rows)}\n\n{together}"
            f"False detection rate in percent, with the band that holds it in 99 % of cases:\n\n"
            f"{table(titles, [[stored.name, *map(str, rates)]])}\n\n"
            f"{commands(stored, 'Command: `python -m idecode_core reproduce audio`')}"
        )
    bands = [
        [f"{r.epsilon:g}", f"{100 * r.rate:.1f}", f"{100 * r.low:.1f} to {100 * r.high:.1f}"]
        for r in rates_in_bands(stored, usual, (0.05, 0.1, 0.2, 0.5))
    ]
    titles = ["OOD set", "points", *(f"AUROC n={n}" for n in ns), f"TNR (90 % TPR) n={usual}"]
    return (
        f"{runs.capitalize()}; {len(stored.id_set):,} iD test points.\n\n"
        f"{table(titles, rows)}\n\nFalse detection rate on the iD test points (n={usual}), beside the band that holds it in 99 % "
        f"of cases:\n\n{table(['epsilon', 'rate', 'band'], bands)}\n\n"
        f"{commands(stored, 'Commands: `python -m idecode_core reproduce table1`, `reproduce false-detections`')}"
    )


def commands(stored: Stored, of_tables: str) -> str:
    """How to compute the numbers again."""
    evaluate = f"Command: `python -m idecode_core evaluate --detector {stored.name}`"
    if "/" in stored.settings.dataset:  # one class of a dataset
        of_tables = "Command: `python -m idecode_core reproduce one-class`"
    return f"{of_tables if stored.settings.dataset else evaluate}; the scores are in `scores/`."


def card(folder: Path | str, result: UserResult | None = None) -> str:
    """The card's text. Without stored scores it says so in place of numbers. `result` is that of a user's own files, where it has
    been computed before."""
    folder = Path(folder)
    settings, training = read_settings(folder), read_training(folder)
    points = "clips" if settings.takes_sounds else "points"
    classes = (
        f" Classes: {', '.join(settings.classes)}." if settings.takes_sounds and settings.classes else ""
    )
    by_name = folder.name if folder.resolve().parent == checkpoint_root().resolve() else folder
    limits = LIMITS.get(settings.dataset, LIMITS[settings.modality])
    how_good = "No test scores are stored. "
    if settings.dataset:
        how_good += f"Write them with `python -m idecode_core paper score-sets {by_name}`."
    else:
        how_good += (
            f"Test it with `python -m idecode_core evaluate --detector {by_name} --id FOLDER --ood FOLDER`."
        )
    weak = ""
    if training is not None and "source" in training.settings:
        limits = LIMITS[f"own {settings.modality}"]
        if has_scores(folder):
            result = result or user_result(open_stored(folder))
            how_good = user_numbers(result, commands(open_stored(folder), ""))
            weak = "\n".join(f"- {sentence}" for sentence in (*result.failure, *result.weak))
    elif has_scores(folder):
        how_good = numbers(open_stored(folder))
    sections = {
        "In-distribution": f"{settings.summary}.{classes}",
        "How it scores": describe_scorer(settings.scorer),
        "Data": DATA.get(settings.dataset, "").format(k=settings.k) if training else "",
        "How it was trained": describe_training(training) + merged_by(settings.scorer) if training else "",
        "How it was chosen": settings.selection_leak,
        "Calibration": f"{settings.k:,} held-out {points} with {settings.n_max} draws each; draws are keyed by content.",
        "How good it is": how_good,
        "Where it is weak": weak,
        "Limits": limits,
        "Licence of the data": LICENCES.get(
            settings.dataset.partition("/")[0],
            "See the dataset." if settings.dataset else "The files are yours.",
        ),
    }
    if saw_imagenet(settings.scorer) and not training:  # else its training says so
        sections["How it scores"] += f"\n\n{AFTER_IMAGENET}"
        sections["Licence of the data"] += (
            " The weights that training began with, EfficientNet-Lite0's (Tan and Le 2019, arXiv 1905.11946), are under the Apache License 2.0."
        )
    parts = [f"## {title}\n\n{text.strip()}\n" for title, text in sections.items() if text]
    return "\n".join([f"# {settings.name}\n", *parts])


def write_card(folder: Path | str, result: UserResult | None = None) -> None:
    write_text(Path(folder) / "card.md", card(folder, result))


def learning_curve(run_folder: Path, name: str) -> dict[str, Writer]:
    """File name -> what writes it, from a run's log; for `training.finish`, which draws nothing by itself."""
    log = read_log(run_folder)
    curve = learning_curve_svg([vars(entry) for entry in log], kept_epoch(log).epoch, name)
    return {"learning-curve.svg": lambda path: write_text(path, curve)}

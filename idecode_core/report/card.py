"""card.md: what a detector is, how it was made, how good it is and where it fails. Written from its folder alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from idecode_core.evaluation.methods import evaluate_sets
from idecode_core.evaluation.own_data import own_result
from idecode_core.evaluation.rates import rates_in_bands
from idecode_core.evaluation.softmax import beside_softmax
from idecode_core.files import write_text
from idecode_core.folder.scores import DRAWS_PER_RUN, RUNS, softmax_path
from idecode_core.folder.settings import checkpoint_root, read_settings
from idecode_core.folder.stored import Stored, has_scores, open_stored
from idecode_core.folder.training_record import TrainingRecord, read_training
from idecode_core.report.card_words import BASE_NCMS, DATA, LICENCES, LIMITS, TASKS
from idecode_core.report.own_data import own_training_words
from idecode_core.report.tables import percent, table


def describe_scorer(settings: Mapping[str, Any]) -> str:
    """What a scorer does, from config.json."""
    if settings["kind"] == "merged":
        weights = zip(settings["names"], settings["weights"], settings["members"], strict=True)
        members = "\n".join(
            f"- {name} (weight {weight:g}): {describe_scorer(member)}" for name, weight, member in weights
        )
        sounds = settings["members"][0]["kind"] == "audio"
        part = "the proper training set" if sounds else "held-out ones that do not calibrate"
        return (
            "Several members, each with its own transforms. A member's score becomes -log of its rank among the reference "
            f"points ({part}), and the weighted sum is calibrated:\n\n{members}"
        )
    if "transforms" not in settings:
        return f"A scorer of the kind {settings['kind']}; its settings are in `config.json`."
    base_ncm = f"base NCM: {BASE_NCMS.get(settings['base_ncm'], settings['base_ncm'])}."
    transforms = dict(settings["transforms"])
    if settings["kind"] == "audio":
        features = settings["features"]
        return (
            f"Log-mel blocks ({features['bands']} bands, {features['block']} frames, {features['sample_rate']} Hz). G: "
            f"{transforms['time_masks']} time masks of up to {transforms['time_width'] - 1} frames and "
            f"{transforms['frequency_masks']} frequency masks of up to {transforms['frequency_width'] - 1} bands per "
            f"block; {base_ncm}"
        )
    name = transforms.pop("name").replace("sharp_rotations", "rotations, bicubic").replace("_", " ")
    details = ", ".join(f"{key} = {value}" for key, value in transforms.items() if key != "variants")
    return f"G: {name}{f' ({details})' if details else ''}; {base_ncm}"


def describe_training(record: TrainingRecord) -> str:
    settings = record.settings
    if "source" in settings:  # a user's own data
        return own_training_words(record)
    epochs = f"{record.epochs} epoch{'s' * (record.epochs > 1)}"
    task = TASKS[record.task].format(**settings)
    if record.task == "block_label":
        return (
            f"{task}; recipe `{record.recipe}`: {epochs} on {record.proper_training_points:,} clips, seed "
            f"{record.seed}, SpecAugment from epoch {settings['masks_from']} on"
            f"{', with mixup' if settings.get('mixup') else ''}. Accuracy: {share(record.calibration_accuracy)} on the "
            f"calibration clips, {share(record.test_accuracy)} on the {record.test_points:,} test clips.\n\n"
            f"Command: `python -m idecode_core train {record.recipe}`, then `python -m idecode_core score-sets "
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
    if settings["model"]["backbone"] == "efficientnet-lite0":
        origin = (
            " **The backbone, EfficientNet-Lite0, was trained on ImageNet before**, which has seen much of what is OOD "
            "here; do not compare the numbers with those of models trained from scratch."
        )
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


def share(rate: float | None) -> str:
    return "not measured" if rate is None else f"{100 * rate:.1f} %"


def numbers(stored: Stored) -> str:
    """AUROC on each OOD set, and the false detection rate beside its exact band. Pictures: also TNR. Sounds: also SBP."""
    sounds = stored.settings.takes_sounds
    ns = (1, 5, 20) if stored.calibration.n_max > 1 else (1,)  # one without random draws has no others
    usual = ns[len(ns) // 2]
    by_n = [evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n) for n in ns]
    rows = []
    for ood_set, *found in zip(stored.ood_sets, *by_n, strict=True):
        row = [ood_set.label, f"{len(ood_set):,}", *(percent(one.auroc) for one in found)]
        rows.append(row if sounds else [*row, percent(found[len(ns) // 2].tnr)])
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
        if softmax_path(stored.folder, stored.id_set.name).is_file():
            beside = beside_softmax(stored)
            together = (
                f"All OOD clips together: n=20 {percent(beside.twenty)}, SBP {percent(beside.sbp)}, masks + SBP "
                f"{percent(beside.with_sbp)}.\n\n"
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
        f"{commands(stored, 'Commands: `python -m idecode_core reproduce table1`, `reproduce fdr`')}"
    )


def commands(stored: Stored, of_tables: str) -> str:
    """How to compute the numbers again."""
    own = f"Command: `python -m idecode_core evaluate --detector {stored.name}`"
    if "/" in stored.settings.dataset:  # one class of a dataset
        of_tables = "Command: `python -m idecode_core reproduce one-class`"
    return f"{of_tables if stored.settings.dataset else own}; the scores are in `scores/`."


def card(folder: Path | str) -> str:
    """The card's text. Without stored scores it says so in place of numbers."""
    folder = Path(folder)
    settings, training = read_settings(folder), read_training(folder)
    points = "clips" if settings.takes_sounds else "points"
    classes = (
        f" Classes: {', '.join(settings.classes)}." if settings.takes_sounds and settings.classes else ""
    )
    by_name = folder.resolve().parent == checkpoint_root().resolve()
    sections = {
        "In-distribution": f"{settings.summary}.{classes}",
        "How it scores": describe_scorer(settings.scorer),
        "Data": DATA.get(settings.dataset, "").format(k=settings.k) if training else "",
        "How it was trained": describe_training(training) if training else "",
        "How it was chosen": settings.choice,
        "Calibration": f"{settings.k:,} held-out {points} with {settings.n_max} draws each; draws are keyed by content.",
        "How good it is": numbers(open_stored(folder))
        if has_scores(folder)
        else "No test scores are stored. Write them with `python -m idecode_core score-sets "
        f"{folder.name if by_name else folder}`.",
        "Where it is weak": weak_points(folder, training),
        "Limits": LIMITS.get(settings.dataset, LIMITS[settings.modality]),
        "Licence of the data": LICENCES.get(
            settings.dataset.partition("/")[0],
            "See the dataset." if settings.dataset else "The files are yours.",
        ),
    }
    parts = [f"## {title}\n\n{text.strip()}\n" for title, text in sections.items() if text]
    return "\n".join([f"# {settings.name}\n", *parts])


def weak_points(folder: Path, training: TrainingRecord | None) -> str:
    """Of a user's own data, where it was tested; "" else."""
    if training is None or "source" not in training.settings or not has_scores(folder):
        return ""
    return "\n".join(f"- {sentence}" for sentence in own_result(open_stored(folder)).weak)


def write_card(folder: Path | str) -> None:
    write_text(Path(folder) / "card.md", card(folder))

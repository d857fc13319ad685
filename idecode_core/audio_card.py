"""card.md of an audio detector: what it is, how it was made, how good it is and where it fails."""

import json
from pathlib import Path
from typing import Any

from idecode_core.checkpoint import read_config
from idecode_core.errors import CheckpointError
from idecode_core.evaluation import evaluate
from idecode_core.experiments.audio import NCM_NAMES, audio_row, rates_table
from idecode_core.experiments.results import percent, table
from idecode_core.experiments.stored import Stored, open_stored
from idecode_core.files import write_text

LICENCES = {
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
        "ESC-50 at 16 kHz: training on folds 1 and 2, calibration on {calibration_points} random clips of fold 3, test on "
        "fold 4. Clips of one recording share a fold, so calibration and test clips are equally new to the model."
    ),
    "spokendigits": (
        "Independent draws of digit, accent, voice, speed, pitch, place, level and background noise; "
        "`python tools/make_spoken_digits.py data` makes them again."
    ),
    "fsdnoisy18k": "The verified clips of FSDnoisy18k (App. C.2): 15 random clips a class calibrate, the test part tests.",
}
LIMITS = {
    "esc50": (
        "- Only 160 clips trained the model. It separates iD from OOD weakly: read the AUROC above before relying on it.\n"
        "- The smallest p-value is 1/76: an epsilon of 0.013 or less never flags anything.\n"
        "- The bound holds for clips like ESC-50's (5 s, Freesound, Vorbis-coded, 16 kHz). Your microphone is another "
        "distribution: calibrate anew with recordings of your own.\n"
        "- Clips of one recording stay in one fold, so folds are not quite as many independent points as they have clips.\n"
    ),
    "spokendigits": (
        "- In-distribution is espeak-ng, not people: a recorded voice is usually flagged, and rightly so.\n"
        "- The bound holds for clips that the same script makes; calibrate anew for other voices or microphones.\n"
    ),
    "fsdnoisy18k": "- Trained on few verified clips; the paper's AUROC is 60 on average.\n",
}


def read_recipe(folder: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{folder / 'recipe.json'} cannot be read: {error}. Train the detector anew."
        ) from error
    return record


def numbers(stored: Stored) -> str:
    """AUROC on each OOD set, SBP beside them, and the false detection rate beside its exact band."""
    rows = []
    for ood_set in stored.ood_sets:
        found = [evaluate(stored.calibration, stored.id_set, ood_set, n).auroc for n in (1, 5, 20)]
        rows.append([ood_set.label, f"{len(ood_set)}", *map(percent, found)])
    sbp, *_, twenty, together = audio_row(stored).metrics
    rates, _ = rates_table([stored])
    return (
        f"AUROC in percent, mean and spread over five independent runs; {len(stored.id_set)} iD test clips.\n\n"
        f"{table(['OOD set', 'clips', 'n=1', 'n=5', 'n=20'], rows)}\n\n"
        f"All OOD clips together: n=20 {percent(twenty)}, SBP {percent(sbp)}, masks + SBP {percent(together)}.\n\n"
        f"False detection rate in percent, with the band that holds it in 99 % of cases:\n\n{rates}\n\n"
        "Command: `python -m idecode_core reproduce audio`; the scores are in `scores/`."
    )


def audio_card(folder: Path | str) -> str:
    folder = Path(folder)
    config, record = read_config(folder), read_recipe(folder)
    recipe, scorer = record["recipe"], config["scorer"]
    masks = scorer["transforms"]
    scored = any((folder / "scores").glob("*.npz"))
    sections = {
        "In-distribution": f"{config['summary']}. Classes: {', '.join(scorer['classes'])}.",
        "How it scores": (
            f"Log-mel blocks ({scorer['features']['bands']} bands, {scorer['features']['block']} frames, "
            f"{scorer['features']['sample_rate']} Hz). G: {masks['time_masks']} time masks of up to {masks['time_width'] - 1} "
            f"frames and {masks['frequency_masks']} frequency masks of up to {masks['frequency_width'] - 1} bands a block; "
            f"base NCM: {NCM_NAMES[scorer['base_ncm']]}."
        ),
        "Data": DATA[recipe["dataset"]].format(**record),
        "How it was trained": (
            f"A VGG with channels {recipe['widths']} names the class of a block; recipe `{recipe['name']}`: "
            f"{record['epochs']} epochs on {record['training_points']} clips, seed {recipe['seed']}, SpecAugment from epoch "
            f"{recipe['masks_from']} on{', with mixup' if recipe.get('mixup') else ''}. Accuracy: {100 * record['calibration_accuracy']:.1f} % on the calibration clips, "
            f"{100 * record['test_accuracy']:.1f} % on the {record['test_points']} test clips.\n\n"
            f"Command: `python -m idecode_core train {recipe['name']}`, then `python -m idecode_core score-sets "
            f"checkpoints/{recipe['name']}`. Every setting is in `recipe.json`."
        ),
        "Calibration": f"{config['k']} held-out clips with {config['n_max']} draws each; draws are keyed by content.",
        "How good it is": numbers(open_stored(folder.parent, folder.name))
        if scored
        else "No test scores are stored.",
        "Limits": LIMITS[recipe["dataset"]],
        "Licence of the data": LICENCES[recipe["dataset"]],
    }
    return "\n".join(
        [f"# {config['name']}\n", *(f"## {title}\n\n{text.strip()}\n" for title, text in sections.items())]
    )


def write_audio_card(folder: Path | str) -> None:
    write_text(Path(folder) / "card.md", audio_card(folder))

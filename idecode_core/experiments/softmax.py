"""SBP, the softmax baseline (Hendrycks and Gimpel 2017), on the classifier of a detector with labels (Table 3)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.checkpoint import load_detector, read_config
from idecode_core.data import load_images
from idecode_core.errors import CheckpointError, DataError
from idecode_core.evaluation import ScoreSet, evaluate
from idecode_core.experiments.results import Section, beside_the_paper, percent, table
from idecode_core.experiments.scores import ID_POINTS, OOD_POINTS, pick, sets_to_score
from idecode_core.experiments.stored import Stored, open_all, open_stored
from idecode_core.experiments.tables import seeds
from idecode_core.files import write_npz
from idecode_core.metrics import auroc, tnr_at_tpr
from idecode_core.ncm import softmax_baseline
from idecode_core.paper import COMPARABLE, SBP
from idecode_core.scoring import ImageScorer

BATCH = 256
CLASSIFIER = "cifar10-invariance"


def softmax_scores(scorer: ImageScorer, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """1 - max softmax of M(x) for each image: (N,)."""

    def batches() -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(images), BATCH):
            x = scorer.tensor(list(images[start : start + BATCH]))
            logits = scorer.model.decode(None, scorer.model.encode(x)[:, None])[:, 0]
            yield softmax_baseline(logits.double()).float().cpu().numpy()

    with torch.inference_mode():
        return np.concatenate(list(batches()))


def store_softmax_scores(
    folder: Path | str,
    dataset: str,
    *,
    data_root: Path | str | None = None,
    id_points: int = ID_POINTS,
    ood_points: int = OOD_POINTS,
) -> None:
    """SBP's scores of the same test points as `score_test_sets`, into the detector folder's softmax/."""
    folder = Path(folder)
    scorer = load_detector(folder).scorer
    if not isinstance(scorer, ImageScorer) or not scorer.classes:
        raise CheckpointError(
            f"{folder} has no classifier: SBP needs a detector that was trained with labels."
        )
    for test_set in sets_to_score(dataset):
        try:
            images = pick(load_images(test_set.name, data_root), ood_points if test_set.is_ood else id_points)
        except DataError:
            continue
        arrays = {
            "scores": softmax_scores(scorer, images.x),
            "scorer": np.array(str(read_config(folder)["scorer_sha256"])),
        }
        write_npz(folder / "softmax" / f"{test_set.name}.npz", arrays)


def read_softmax_scores(stored: Stored, name: str) -> NDArray[np.float64]:
    path = stored.folder / "softmax" / f"{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            scores = np.asarray(arrays["scores"], dtype=np.float64)
            made_with = str(arrays["scorer"])
    except (KeyError, ValueError, OSError, EOFError) as error:
        raise CheckpointError(
            f"{path} cannot be read as SBP's scores: {error}. Write them with `python -m idecode_core score-sets`."
        ) from error
    if made_with != stored.config["scorer_sha256"]:
        raise CheckpointError(f"{path} was made with another classifier; write it anew with `score-sets`.")
    return scores


def sbp(root: Path | str = "checkpoints") -> Section:
    """SBP on our classifier beside our detectors at n = 5 and 20 (Table 3)."""
    classifier = open_stored(root, CLASSIFIER)
    found = open_all(root)
    known = read_softmax_scores(classifier, classifier.id_set.name)
    tnrs, aurocs = list[list[str]](), list[list[str]]()
    pairs, ahead = list[tuple[str, float, float]](), list[str]()
    for ood_set in classifier.ood_sets:
        strange = read_softmax_scores(classifier, ood_set.name)
        baseline = tnr_at_tpr(known, strange), auroc(known, strange)
        theirs = SBP.get(COMPARABLE.get(ood_set.name.removesuffix("-test"), ""))
        same = [_set_named(stored, ood_set.name) for stored in found]
        ours = [
            evaluate(stored.calibration, stored.id_set, other, n) if other else None
            for stored, other in zip(found, same, strict=True)
            for n in (5, 20)
        ]
        for column, lines in enumerate((tnrs, aurocs)):
            cells = [percent((one.tnr, one.auroc)[column]) if one else "–" for one in ours]
            paper = f"{theirs[column]:.1f}" if theirs else "–"
            lines.append([ood_set.label, f"{100 * baseline[column]:.1f}", paper, *cells])
        if theirs:
            pairs.append((ood_set.label, 100 * baseline[1], theirs[1]))
        if baseline[1] > max(one.auroc.mean for one in ours if one):
            ahead.append(ood_set.label)
    titles = [f"{stored.name.removeprefix('cifar10-')} n={n}" for stored in found for n in (5, 20)]
    accuracy = classifier.training.test_accuracy if classifier.training else None
    network = f"Its test accuracy is {100 * accuracy:.1f} % (the paper's: 91.5 %)." if accuracy else ""
    verdict = f"**SBP is above every detector of ours** (AUROC) on {', '.join(ahead)}." if ahead else ""
    body = (
        f"SBP scores x by one minus the largest softmax probability of the classifier of `{CLASSIFIER}`; it needs labels, "
        f"makes one pass and has no bound on false detections. {network}\n\n{seeds(classifier)}\n\n"
        f"{table(['OOD set, AUROC', 'SBP', 'SBP (paper)', *titles], aurocs)}\n\n"
        f"{table(['OOD set, TNR', 'SBP', 'SBP (paper)', *titles], tnrs)}\n\n"
        f"{verdict} {beside_the_paper(pairs, 'SBP, AUROC')}"
    )
    return Section("sbp", "The softmax baseline (SBP) on our classifier", body)


def _set_named(stored: Stored, name: str) -> ScoreSet | None:
    return next((ood_set for ood_set in stored.ood_sets if ood_set.name == name), None)

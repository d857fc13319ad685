"""SBP, the softmax baseline (Hendrycks and Gimpel 2017), on the classifier of a detector with labels (Table 3)."""

from pathlib import Path

from idecode_core.evaluation.methods import compare, evaluate
from idecode_core.evaluation.paper import COMPARABLE, SBP
from idecode_core.experiments.results import Section
from idecode_core.experiments.tables import seeds
from idecode_core.folder.stored import open_all, open_stored
from idecode_core.report.tables import beside_the_paper, fpr, interval, percent, table

CLASSIFIER = "cifar10-invariance"


def sbp(root: Path | str = "checkpoints") -> Section:
    """SBP on our classifier beside our detectors at n = 5 and 20 (Table 3)."""
    classifier = open_stored(Path(root) / CLASSIFIER)
    found = open_all(root)
    known = classifier.softmax_scores(classifier.id_set.name)
    tnrs, aurocs, fprs = list[list[str]](), list[list[str]](), list[list[str]]()
    pairs, ahead = list[tuple[str, float, float]](), list[str]()
    for ood_set in classifier.ood_sets:
        strange = classifier.softmax_scores(ood_set.name)
        found_sbp = compare([known], [strange])
        baseline = found_sbp.tnr.mean, found_sbp.auroc.mean
        theirs = SBP.get(COMPARABLE.get(ood_set.name.removesuffix("-test"), ""))
        same = [{one.name: one for one in stored.ood_sets}.get(ood_set.name) for stored in found]
        ours = [
            evaluate(stored.calibration, stored.id_set, other, n) if other else None
            for stored, other in zip(found, same, strict=True)
            for n in (5, 20)
        ]
        for column, lines in enumerate((tnrs, aurocs)):
            cells = [percent((one.tnr, one.auroc)[column]) if one else "–" for one in ours]
            paper = f"{theirs[column]:.1f}" if theirs else "–"
            sure = f" {interval(found_sbp)}" if column else ""
            lines.append([ood_set.label, f"{100 * baseline[column]:.1f}{sure}", paper, *cells])
        fprs.append([ood_set.label, fpr(found_sbp), *(fpr(one) if one else "–" for one in ours)])
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
        f"{table(['OOD set, FPR95', 'SBP', *titles], fprs)}\n\n"
        "The intervals of our detectors stand in the section on rivals. "
        f"{verdict} {beside_the_paper(pairs, 'SBP, AUROC')}"
    )
    return Section("sbp", "The softmax baseline (SBP) on our classifier", body)

"""`reproduce` on a small synthetic set of detector folders: no model is run, only stored numbers are read."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from small import read_scores

from idecode_core.conformal import observed_band
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.merging import fisher_assuming_independence
from idecode_core.conformal.observed import resampled_rates
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, IdecodeError, SettingError
from idecode_core.files import write_npz
from idecode_core.folder.detector import save_detector
from idecode_core.folder.settings import FolderSettings, read_settings
from idecode_core.folder.shelf import SBP, ScoreSet, write_scores
from idecode_core.folder.stored import Stored, open_stored
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.quality.metrics import false_detection_rate
from idecode_core.quality.strength import id_p_values
from idecode_core.report.card import write_card
from idecode_core.report.tables import beside_the_paper
from idecode_core.scorer import Scorer
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Projective, Rotations, SharpRotations, SmallAffine
from paper.experiments import EXPERIMENTS, possible, write_results
from paper.merged import calibrating_rows, combined_rates, merge_stored
from paper.results import COMPARABILITY, INTRODUCTION, Section, write_section

ELSEWHERE = ("audio", "adversarial", "one-class")  # read other scores; tested in files of their own
OOD_SETS = {"svhn-test": "SVHN", "cifar100-test": "CIFAR-100", "places-test": "Places", "isun-test": "iSUN"}


def tiny_scorer(transforms, base_ncm: str, outputs: int, classes: tuple[str, ...] = ()) -> ImageScorer:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Equivariant(ModelConfig("compact", outputs=outputs, widths=(4, 4, 4)))
    return ImageScorer(model, transforms, base_ncm, Preprocessing(16), classes=classes)


def write_detector(root: Path, name: str, scorer: Scorer, id_name: str = "cifar10-test") -> None:
    generator = np.random.default_rng(len(name))

    def vectors(points: int, draws: int, shift: float) -> np.ndarray:
        own = generator.normal(shift, 1, size=(points, 1))
        return np.exp(own + generator.normal(size=(points, draws)))

    dataset = id_name.removesuffix("-test")
    save_detector(
        Detector(name, scorer, Calibration(vectors(1600, 20, 0.0)), "test images", dataset), root / name
    )
    identity = read_settings(root / name).scorer_sha256
    write_scores(
        root / name, ScoreSet(id_name, "iD", False, vectors(300, 100, 0).astype(np.float32)), identity
    )
    for i, (ood, label) in enumerate(OOD_SETS.items()):
        strange = vectors(80, 100, 0.5 + 0.5 * i).astype(np.float32)
        write_scores(root / name, ScoreSet(ood, label, True, strange), identity)
    if isinstance(scorer, ImageScorer) and scorer.classes:
        for ood in (id_name, *OOD_SETS):
            confidence = generator.random(300 if ood == id_name else 80).astype(np.float32)
            sbp = ScoreSet(ood, OOD_SETS.get(ood, "iD"), ood != id_name, confidence[:, None])
            write_scores(root / name, sbp, identity, SBP)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    rotations = tiny_scorer(Rotations("all"), "cross_entropy_and_familiarity", 4)
    classifier = tiny_scorer(SmallAffine(), "invariance", 10, tuple("abcdefghij"))
    write_detector(folder, "cifar10-rotations", rotations)
    identity = read_settings(folder / "cifar10-rotations").scorer_sha256
    for score_set in read_scores(folder / "cifar10-rotations"):
        write_scores(folder / "cifar10-rotations", score_set, identity, "cross_entropy")
    write_detector(folder, "cifar10-projective", tiny_scorer(Projective(), "parameter_error", 8))
    write_detector(folder, "cifar10-invariance", classifier)
    references = (np.random.default_rng(0).random((20, 2)),) * 2
    merged = MergedScorer((rotations, classifier), ("rotations", "invariance"), references, (1.0, 0.5))
    write_detector(folder, "cifar10-merged", merged)
    joint = tiny_scorer(SharpRotations("one"), "turn_and_label", 14, tuple("abcdefghij"))
    write_detector(folder, "cifar10-joint", joint)
    write_detector(folder, "fashion-rotations", rotations, "fashion-test")
    return folder


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in ELSEWHERE])
def test_each_experiment_writes_its_section_with_its_command(name: str, root: Path, tmp_path: Path) -> None:
    results = tmp_path / "RESULTS.md"
    (section,) = write_results([name], root, results)
    text = results.read_text()
    assert f"python -m idecode_core reproduce {name}" in text
    assert text.count(f"<!-- begin {name} -->") == text.count(f"<!-- end {name} -->") == 1
    assert "nan" not in text.lower().replace("nand", "")
    for file in section.figures:
        svg = (tmp_path / "results" / file).read_text()
        assert svg.startswith("<svg")
        assert svg.rstrip().endswith("</svg>")
        assert "nan" not in svg


def test_a_network_that_learned_classes_is_not_held_against_the_papers_which_did_not(
    root: Path, tmp_path: Path
) -> None:
    sections = {part.name: part.body for part in write_results(["table1", "merged"], root, tmp_path / "R.md")}
    of_rotations, of_joint = (
        sections["table1"].split(f"### {name}\n")[1].split("###")[0]
        for name in ("cifar10-rotations", "cifar10-joint")
    )
    assert "(92.4)" in of_rotations  # the paper's rotations on SVHN
    assert "(92.4)" not in of_joint
    assert "PT + RS" in sections["merged"]  # of two detectors that learned G alone
    without, with_labels = [
        line for line in sections["merged"].splitlines() if "against the paper's best G" in line
    ]
    assert without.startswith("**Without labels, as the paper's** (`cifar10-rotations`")
    assert with_labels.startswith(
        "**With labels, which the paper's detector does not have** (`cifar10-merged`"
    )
    assert all(re.search(r"Ours are (better|worse)", line) for line in (without, with_labels))


def test_all_leaves_out_what_has_no_detectors(root: Path, tmp_path: Path) -> None:
    assert [section.name for section in write_results(["all"], tmp_path, tmp_path / "RESULTS.md")] == ["svhn"]
    assert not possible("audio", root)
    assert possible("merged", root)


def test_writing_a_section_again_changes_nothing_else(root: Path, tmp_path: Path) -> None:
    results = tmp_path / "RESULTS.md"
    write_results(["all"], root, results)
    first = results.read_text()
    write_results(["merged"], root, results)
    assert results.read_text() == first


def test_sections_stand_in_a_fixed_order_and_foreign_text_stays(tmp_path: Path) -> None:
    results = tmp_path / "RESULTS.md"
    results.write_text("# Mine\n\nkeep this\n")
    write_section(results, Section("false-detections", "F", "second"), tuple(EXPERIMENTS))
    write_section(results, Section("table1", "T", "first"), tuple(EXPERIMENTS))
    write_section(results, Section("false-detections", "F", "changed"), tuple(EXPERIMENTS))
    text = results.read_text()
    assert text.startswith("# Mine\n\nkeep this\n")
    assert text.index("first") < text.index("changed")
    assert "second" not in text


def test_our_own_introduction_is_the_present_one(tmp_path: Path) -> None:
    results = tmp_path / "RESULTS.md"
    results.write_text(
        "# Results\n\nWords of an earlier version.\n\n<!-- begin false-detections -->\nold\n<!-- end false-detections -->\n"
    )
    write_section(results, Section("table1", "T", "first"), tuple(EXPERIMENTS))
    text = results.read_text()
    assert text.startswith(f"{INTRODUCTION}\n{COMPARABILITY}\n")
    assert "earlier version" not in text
    assert "old" in text


def test_table1_shows_the_number_that_scikit_learn_gives(root: Path, tmp_path: Path) -> None:
    from sklearn.metrics import roc_auc_score

    from idecode_core.folder.stored import open_stored

    stored = open_stored(root / "cifar10-projective")
    aurocs = []
    for r in range(5):
        known, strange = (
            one.score_vectors[:, 20 * r].astype(float) for one in (stored.id_set, stored.ood_sets[0])
        )
        labels = np.r_[np.zeros(len(known)), np.ones(len(strange))]
        aurocs.append(100 * roc_auc_score(labels, np.r_[known, strange]))
    (section,) = write_results(["table1"], root, tmp_path / "RESULTS.md")
    assert (
        f"{np.mean(aurocs):.1f} ± {np.std(aurocs, ddof=1):.1f} (92.9)" in section.body
    )  # beside the paper's


def test_an_unknown_experiment_lists_the_right_ones(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="table1, auroc-vs-n"):
        write_results(["table9"], root, tmp_path / "RESULTS.md")


def test_a_missing_detector_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(IdecodeError, match="cifar10-projective"):
        write_results(["table1"], tmp_path, tmp_path / "RESULTS.md")


def test_the_plain_sentence_says_where_ours_are_worse() -> None:
    text = beside_the_paper([("SVHN", 90.0, 95.7), ("Places", 80.0, 70.0), ("LSUN", 85.98, 86.0)], "AUROC")
    assert "worse than the paper's** (AUROC): SVHN by 5.7." in text
    assert "better: Places by 10.0." in text
    assert "Equal to one decimal: LSUN." in text


@pytest.mark.parametrize("replacement", [True, False])
def test_resampled_rates_stay_near_epsilon(replacement: bool) -> None:
    generator = np.random.default_rng(0)
    scores, test = generator.normal(size=5000), generator.normal(size=4000)
    rates = resampled_rates(
        scores, test, k=1000, epsilons=(0.05, 0.5), replacement=replacement, generator=generator, repeats=40
    )
    assert rates.shape == (40, 2)
    # five standard deviations of the mean: the pool's own error dominates
    assert np.abs(rates.mean(axis=0) - [0.05, 0.5]).max() < 5 * np.sqrt(0.25 / 5000 + 0.25 / 4000)


def test_the_observed_band_holds_as_many_simulated_rates_as_it_says() -> None:
    generator = np.random.default_rng(1)
    low, high = observed_band(k=99, epsilon=0.2, points=50, level=0.9)
    inside = 0
    for _ in range(2000):
        threshold = np.sort(generator.random(99))[-19]  # J = 19
        inside += low <= np.mean(generator.random(50) > threshold) <= high
    exact = stats.betabinom(50, 19, 81)
    share = exact.cdf(round(high * 50)) - exact.cdf(round(low * 50) - 1)
    assert stats.binomtest(inside, 2000, share).pvalue > 1e-3
    assert share >= 0.9


def test_a_card_names_data_numbers_limits_and_licence(root: Path) -> None:
    for name in ("cifar10-rotations", "cifar10-merged"):
        write_card(root / name)
        text = (root / name / "card.md").read_text()
        for wanted in (
            "CIFAR-10",
            "SVHN",
            "AUROC",
            "Limits",
            "Licence",
            "reproduce",
            "1,600 held-out points",
        ):
            assert wanted in text
    assert "rotations (weight 1)" in text
    assert "invariance (weight 0.5)" in text


def test_scores_of_other_weights_are_never_tabulated(root: Path, tmp_path: Path) -> None:
    scorer = tiny_scorer(Projective(), "parameter_error", 8)
    write_detector(tmp_path, "cifar10-projective", scorer)
    strange = ScoreSet("svhn-test", "SVHN", True, np.ones((5, 100), np.float32))
    write_scores(tmp_path / "cifar10-projective", strange, "another")
    with pytest.raises(CheckpointError, match="other weights"):
        write_results(["table1"], tmp_path, tmp_path / "RESULTS.md")


def test_pt_merged_with_rs_keeps_the_bound_and_fisher_does_not() -> None:
    """Two members that see the same strangeness: summed ranks are calibrated, Fisher counts one finding twice.

    iD test points share the law of the calibration points, so the calibrated rate must lie in its exact 99 % band.
    """
    generator = np.random.default_rng(0)

    def stored(name: str, own: np.ndarray, noise: float) -> Stored:
        vectors = own[:, None] + noise * generator.normal(size=(len(own), 100))
        known = ScoreSet("cifar10-test", "iD", False, vectors[2000:].astype(np.float32))
        calibration = Calibration(vectors[:2000, :20]).rounded(np.float32)
        settings = FolderSettings(Path("x") / name, name, "", "image", 2000, 20, "", {})
        return Stored(settings, calibration, known, [], None)

    strangeness = generator.normal(size=5000)
    members = [stored("cifar10-projective", strangeness, 0.3), stored("cifar10-rotations", strangeness, 0.3)]
    together = merge_stored(members)
    assert together.calibration.k == 1000
    rate = false_detection_rate(id_p_values(together, 5), 0.05)
    low, high = observed_band(1000, 0.05, 3000)
    assert low <= rate <= high
    fisher = fisher_assuming_independence(np.stack([id_p_values(m, 5) for m in members], axis=1))
    assert false_detection_rate(fisher, 0.05) > high
    text = combined_rates(members, together, 5)
    assert f"| PT + RS, calibrated | {100 * rate:.1f} |" in text
    assert "not valid" in text


def test_members_with_calibration_points_of_their_own_calibrate_on_those_that_both_hold_out(
    tmp_path: Path,
) -> None:
    """The score of a point is its number, so rows of one point must meet; ranks come from the other points."""
    held_out = {"a": [10, 11, 12, 14, 17], "b": [11, 13, 14, 15, 17]}
    members = []
    for name, points in held_out.items():
        parts = {"proper": np.arange(10), "validation": np.setdiff1d(np.arange(10, 18), points)}
        write_npz(tmp_path / name / "split.npz", {**parts, "calibration": np.array(points)})
        vectors = np.repeat(np.array(points, float)[:, None], 20, axis=1)
        known = ScoreSet(
            "cifar10-test", "iD", False, vectors[:, : 20 if name == "a" else 10].astype(np.float32)
        )
        settings = FolderSettings(tmp_path / name, name, "", "image", 5, 20, "", {})
        members.append(Stored(settings, Calibration(vectors), known, [], None))
    taken = [
        member.calibration.score_vectors[rows, 0]
        for member, rows in zip(members, calibrating_rows(members), strict=True)
    ]
    assert [one.tolist() for one in taken] == [[11, 14, 17]] * 2
    together = merge_stored(members)
    assert together.calibration.k == 3
    # Ranks of 11, 14 and 17 among 20 draws each of 10 and 12, times those among as many of 13 and 15.
    ranks = np.array([21 * 41, 1 * 21, 1 * 1])
    np.testing.assert_allclose(together.calibration.score_vectors[:, 0], -np.log(ranks / 41**2), rtol=1e-6)
    assert together.id_set.score_vectors.shape == (5, 10)  # as many draws as all members have


def test_the_smoothed_table_has_the_numbers_of_a_count_pair_by_pair(root: Path) -> None:
    """Ties are where both kinds differ: scores are rounded until many are tied, and counted by brute force."""
    settings = read_settings(root / "cifar10-rotations")
    for score_set in read_scores(root / "cifar10-rotations"):
        coarse = score_set.score_vectors.round(0)
        write_scores(
            root / "cifar10-rotations",
            ScoreSet(score_set.name, score_set.label, score_set.is_ood, coarse),
            settings.scorer_sha256,
        )
    section = EXPERIMENTS["smoothed"](root)
    (row,) = [line for line in section.body.splitlines() if line.startswith("| cifar10-rotations |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    stored = open_stored(root / "cifar10-rotations")
    calibration = stored.calibration.score_vectors[:, :5].sum(axis=1)
    plain, smooth = [], []
    for i, score_set in enumerate([stored.id_set, *stored.ood_sets]):
        test = score_set.score_vectors[:, :5].astype(np.float64).sum(axis=1)[:, None]
        u = 1 - np.random.default_rng([0, i]).random(len(test))
        above, tied = (calibration > test).sum(axis=1), (calibration == test).sum(axis=1)
        plain.append((above + tied + 1) / (len(calibration) + 1))
        smooth.append((above + u * (tied + 1)) / (len(calibration) + 1))
    assert cells[1] == "1,600"
    assert cells[2:4] == [f"{100 * np.mean(p[0] < 0.05):.1f}" for p in (plain, smooth)]
    for cell, p in zip(cells[4:6], (plain, smooth), strict=True):
        pairs = [(p[0][:, None] > q).mean() + (p[0][:, None] == q).mean() / 2 for q in p[1:]]
        assert cell == f"{100 * np.mean(pairs):.1f}"
    differ = sum(int(((a < 0.05) != (b < 0.05)).sum()) for a, b in zip(plain, smooth, strict=True))
    assert cells[6].startswith(f"{differ} of ")

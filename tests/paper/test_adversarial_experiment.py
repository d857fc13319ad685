"""`score-sets attacks` and `reproduce adversarial`: what is stored is what detectors say, and the table says what is stored."""

import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from small import SIZE, random_images, small_model, small_scorer
from test_adversarial_rivals import with_contrast
from test_experiments import tiny_scorer, write_detector

from idecode_core.attacks import Victim
from idecode_core.cli.app import main
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, DataError
from idecode_core.files import write_json, write_npz
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.record import TrainingRecord
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import About, ScoreSet, open_scores, score_path, write_scores
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import Unrounded
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.scorers.logits import Energy
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Projective, SmallAffine
from paper import score_attacks as scoring
from paper.adversarial import RIVALS, adversarial
from paper.attack_sets import (
    Outcome,
    VictimRecord,
    make_attacked_set,
    place,
    read_record,
    write_record,
)

ATTACKS = ("fgsm", "bim", "deepfool", "cw")
VICTIM = "cifar10-invariance"
CLEAN, HIT = 60, 40


def named(vectors: np.ndarray) -> np.ndarray:
    return np.array([str(i) for i in range(len(vectors))], dtype=np.bytes_)


def vectors_of(root: Path, name: str, scorer: str | None = None) -> dict[str, np.ndarray]:
    """What is stored of the sets of the victim, by one detector or rival."""
    found = open_scores(place(root, VICTIM), name, scorer)
    assert all(len(one.inputs) == len(one) for one in found.sets.values())
    return {set_name: one.score_vectors for set_name, one in found.sets.items()}


def write_scores_of_attacks(
    folder: Path, name: str, scorer: str, draws: int, shift: float, extra: tuple[str, ...] = ()
) -> None:
    """Scores that attacks raise by `shift`, the same for every attack but for chance."""
    generator = np.random.default_rng(len(name))
    sets = {"clean": generator.normal(0, 1, (CLEAN, 1)) + 0.3 * generator.normal(size=(CLEAN, draws))}
    for attack in (*ATTACKS, *extra):
        sets[attack] = generator.normal(shift, 1, (HIT, 1)) + 0.3 * generator.normal(size=(HIT, draws))
    if draws == 1:
        sets["calibration"] = generator.normal(0, 1, (199, 1))
    for set_name, found in sets.items():
        is_ood = set_name not in ("clean", "calibration")
        one = ScoreSet(set_name, set_name, is_ood, np.exp(found).astype(np.float32), inputs=named(found))
        write_scores(folder, one, scorer, name, About(name))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_detector(tmp_path, "cifar10-projective", tiny_scorer(Projective(), "parameter_error", 8))
    scorer = read_settings(tmp_path / "cifar10-projective").scorer_sha256
    hit = np.arange(CLEAN) < HIT
    size = np.linspace(0.5, 1.5, CLEAN).astype(np.float32)
    for victim, network in ((VICTIM, "compact"), ("cifar10-densenet", "densenet-compact")):
        outcomes = {name: Outcome(hit, size, size / 10) for name in ATTACKS}
        outcomes["pgd-detector@cifar10-projective"] = outcomes["fgsm"]
        write_record(tmp_path, VictimRecord(victim, network, 0.917, np.arange(CLEAN), CLEAN, outcomes))
        for kind in RIVALS:
            shift = 3.0 if kind == "lid" else 0.5
            write_scores_of_attacks(place(tmp_path, victim), kind, "victim", 1, shift)
        extra = ("pgd-detector@cifar10-projective",)
        write_scores_of_attacks(place(tmp_path, victim), "cifar10-projective", scorer, 100, 1.0, extra)
    return tmp_path


def line(body: str, title: str, place: int = 0) -> list[str]:
    """The cells of the place-th table row with this title."""
    found = [row for row in body.splitlines() if row.startswith(f"| {title} |")]
    return [cell.strip() for cell in found[place].strip("|").split("|")]


def test_aurocs_are_scikit_learns_beside_the_papers(root: Path) -> None:
    body = adversarial(root).body
    sets = vectors_of(root, "odds")
    labels = np.r_[np.zeros(CLEAN), np.ones(HIT)]
    expected = 100 * roc_auc_score(labels, np.r_[sets["clean"][:, 0], sets["cw"][:, 0]])
    # Victims stand in alphabetical order, the DenseNet first; AUROC comes before what is flagged.
    assert line(body, "Odds", 2)[4] == f"{expected:.1f} (57.6)"
    assert line(body, "Odds", 0)[4].endswith("(61.3)")
    sets = vectors_of(root, "cifar10-projective")
    known, strange = (sets[name].astype(float) for name in ("clean", "bim"))
    runs = [
        100 * roc_auc_score(labels, np.r_[known[:, r : r + 5].sum(axis=1), strange[:, r : r + 5].sum(axis=1)])
        for r in range(0, 100, 20)
    ]
    ours, printed = line(body, "projective n=5", 2)[2].split(" (")
    assert printed == "96.4)"
    assert abs(float(ours.split(" ")[0]) - np.mean(runs)) < 0.3  # p-values tie where scores do not


def test_what_is_flagged_is_counted_by_rank(root: Path) -> None:
    sets = vectors_of(root, "lid")
    p = [(1 + np.sum(sets["calibration"] >= score)) / 200 for score in sets["fgsm"][:, 0]]
    clean = [(1 + np.sum(sets["calibration"] >= score)) / 200 for score in sets["clean"][:, 0]]
    shares = [f"{100 * np.mean(np.array(found) < 0.05):.1f}" for found in (clean, p)]
    assert line(adversarial(root).body, "LID", 3)[1:3] == shares


def test_the_first_sentence_says_where_a_rival_is_ahead_and_only_there(root: Path) -> None:
    first = adversarial(root).body.split(". ")[0]
    assert first.startswith("**A rival detects better than every detector of ours**")
    assert f"CW-L2 on {VICTIM} (LID" in first
    for victim in (VICTIM, "cifar10-densenet"):
        write_scores_of_attacks(place(root, victim), "lid", "victim", 1, 0.0)
    assert adversarial(root).body.startswith("A detector of ours is best: FGSM on cifar10-densenet")


def test_the_attack_on_the_detector_is_a_column_of_the_detector_that_was_attacked(root: Path) -> None:
    body = adversarial(root).body
    assert line(body, "LID")[5] == "–"
    assert float(line(body, "projective ICAD")[5].split(" ")[0]) > 50
    assert "it says nothing about inputs that somebody chose" in body


def test_success_and_sizes_are_those_of_pictures_that_count(root: Path) -> None:
    size = np.linspace(0.5, 1.5, CLEAN)[:HIT].mean()
    row = line(adversarial(root).body, "PGD on projective")
    assert row[1:] == [f"{CLEAN}", f"{100 * HIT / CLEAN:.1f}", f"{size:.3f}", f"{size / 10:.3f}", f"{HIT}"]


def test_the_clean_pictures_and_the_released_code_are_spoken_of(root: Path) -> None:
    body = adversarial(root).body
    assert f"the first {CLEAN} of {CLEAN} pictures of CIFAR-10's test set" in body
    assert "reads them as 8-bit values" in body


def test_scores_of_another_detector_are_refused(root: Path) -> None:
    write_scores_of_attacks(place(root, VICTIM), "cifar10-projective", "another", 100, 1.0)
    with pytest.raises(CheckpointError, match=r"other weights or settings.*score-sets"):
        adversarial(root)


def test_without_scores_the_command_is_named(tmp_path: Path) -> None:
    write_detector(tmp_path, "cifar10-projective", tiny_scorer(Projective(), "parameter_error", 8))
    with pytest.raises(CheckpointError, match="score-sets attacks"):
        adversarial(tmp_path)
    with pytest.raises(DataError, match="attack-sets"):
        scoring.score_attacks(tmp_path, tmp_path / "nothing")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A victim with its training record, two detectors that share its network, data, and two attacked sets."""
    folder = tmp_path_factory.mktemp("world")
    model = with_contrast(small_model(10))
    images = {split: random_images(90, seed=i) for i, split in enumerate(("train", "test"))}
    for split, x in images.items():
        said = model.decode(None, model.encode(scoring.to_tensor(x))[:, None])[:, 0].argmax(dim=1)
        write_npz(folder / "data" / f"cifar10-{split}.npz", {"x": x, "y": said.numpy()})
    classes = tuple("abcdefghij")
    scorer = ImageScorer(model, SmallAffine(), "invariance", Preprocessing(SIZE), classes=classes)
    other = replace(scorer, base_ncm="label_logit")
    reference = other.score(images["train"][:20], n=2, seed=0).score_vectors
    merged = MergedScorer((scorer, other), ("a", "b"), (reference, reference), (1.0, 2.0))
    detectors = {VICTIM: scorer, "cifar10-merged": merged, "cifar10-rotations": small_scorer()}
    split = {"proper": np.arange(40), "validation": np.arange(40, 70), "calibration": np.arange(70, 90)}
    for name, one in detectors.items():
        detector = Detector.calibrate(name, one, images["train"][70:], n_max=20, dataset="cifar10")
        record = TrainingRecord(
            **{
                "recipe": name,
                "dataset": "cifar10",
                "task": "label",
                "epochs": 1,
                "best_epoch": 1,
                "hours": 0.0,
            },
            **{
                "validation_loss": 0.0,
                "validation_accuracy": 1.0,
                "test_accuracy": 1.0,
                "seed": 0,
                "settings": {},
            },
            **{"proper_training_points": 40, "validation_points": 30, "calibration_points": 20},
        )
        beside = {
            "training.json": lambda path, record=record: write_json(path, asdict(record)),
            "split.npz": lambda path: write_npz(path, split),
        }
        save_detector(detector, folder / name, beside=beside)
    victim = Victim.from_detector(load_detector(folder / VICTIM, "cpu"))
    test = load_images("cifar10-test", folder / "data")
    make_attacked_set(victim, test, "fgsm", 14, root=folder / "attacked")
    rotations = load_detector(folder / "cifar10-rotations", "cpu")
    make_attacked_set(victim, test, "pgd-detector", 6, detector=rotations, root=folder / "attacked")
    return folder


def test_a_member_that_asks_x_alone_is_scored_beside_those_that_draw(world: Path) -> None:
    draws = load_detector(world / VICTIM, "cpu").scorer
    once = Energy(model=draws.model, preprocessing=draws.preprocessing, classes=draws.classes)
    images = random_images(20, seed=3)
    references = tuple(one.score(images, n=2, seed=0).score_vectors for one in (draws, once))
    merged = MergedScorer((draws, once), ("draws", "once"), references, (1.0, 1.0))
    detector = Detector.calibrate("both", merged, images, n_max=20)
    pictures = torch.rand(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    found = scoring.all_vectors({"both": detector}, pictures)["both"]
    each = [one.score(Unrounded(pictures), n=scoring.DRAWS, seed=0).score_vectors for one in (draws, once)]
    np.testing.assert_allclose(found, merged.merge(each), rtol=1e-6)


@pytest.fixture(scope="module")
def stored(world: Path) -> Path:
    """The world, scored: a run that is stopped, one that goes on, one with more pictures."""

    class Stopped(Exception):
        pass

    def stop(part: str, done: int, total: int) -> None:
        if part == f"{VICTIM}: clean":
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "PIECE", 4)
        run = scoring.score_attacks
        with pytest.raises(Stopped):
            run(world, world / "attacked", world / "data", points=10, report=stop)
        assert len(vectors_of(world, VICTIM)["clean"]) == 4
        assert run(world, world / "attacked", world / "data", points=10) == [VICTIM]
        seen: list[int] = []
        honest = scoring.all_vectors
        patch.setattr(scoring, "all_vectors", lambda d, x: seen.append(len(x) if d else 0) or honest(d, x))
        run(world, world / "attacked", world / "data", points=14)
        assert 0 < sum(seen) < 20, "pictures that are stored are not scored again"
    return world


def test_stored_scores_are_those_that_each_detector_gives_alone(stored: Path) -> None:
    test = load_images("cifar10-test", stored / "data")
    record = read_record(stored / "adversarial" / VICTIM / "record.npz")
    for name in (VICTIM, "cifar10-merged", "cifar10-rotations"):
        sets = vectors_of(stored, name, read_settings(stored / name).scorer_sha256)
        expected = load_detector(stored / name, "cpu").score_vectors(test.x[record.indices[:14]], n=25)
        np.testing.assert_allclose(sets["clean"], expected, rtol=2e-3, atol=2e-4)
        assert len(sets["fgsm"]) == record.outcomes["fgsm"].success.sum()
        assert ("pgd-detector@cifar10-rotations" in sets) is (name == "cifar10-rotations")


def test_attacked_pictures_are_scored_as_floats(stored: Path) -> None:
    with np.load(stored / "attacked" / VICTIM / "fgsm.npz") as arrays:
        attacked = torch.from_numpy(arrays["attacked"])
    record = read_record(stored / "adversarial" / VICTIM / "record.npz")
    hit = torch.from_numpy(record.outcomes["fgsm"].success)
    scores = vectors_of(stored, "cifar10-rotations")["fgsm"]
    detector = load_detector(stored / "cifar10-rotations", "cpu")
    unrounded = detector.score_vectors(Unrounded(attacked[hit]), n=25)
    np.testing.assert_allclose(scores, unrounded, rtol=2e-3, atol=2e-4)


def test_every_rival_is_calibrated_on_held_out_points_and_scores_every_set(stored: Path) -> None:
    train = load_images("cifar10-train", stored / "data")
    victim = Victim.from_detector(load_detector(stored / VICTIM, "cpu"))
    side = scoring.training_side(stored / VICTIM, victim, stored / "data")
    assert {tuple(np.flatnonzero((train.x == x).all(axis=(1, 2, 3)))) for x in whole(side.held_out)} == {
        (i,) for i in range(70, 90)
    }
    assert {tuple(np.flatnonzero((train.x == x).all(axis=(1, 2, 3)))) for x in whole(side.clean)} <= {
        (i,) for i in range(40, 70)
    }
    for kind in RIVALS:
        sets = vectors_of(stored, kind)
        assert sets["calibration"].shape == (20, 1)
        again = scoring.fit_rival(kind, victim, side).score(Unrounded(side.held_out)).score_vectors
        np.testing.assert_allclose(sets["calibration"], again, rtol=1e-3, atol=1e-3)
        assert len(sets["clean"]) == 14


def test_fewer_pictures_are_fewer_for_rivals_and_detectors_alike(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shutil.copytree(stored, tmp_path / "world")
    monkeypatch.setattr(scoring, "fit_rival", None)  # nothing is missing, so nothing is fitted
    scoring.score_attacks(world, world / "attacked", world / "data", points=10)
    for name in (*RIVALS, VICTIM, "cifar10-rotations"):
        few, many = (vectors_of(root, name) for root in (world, stored))
        np.testing.assert_array_equal(few["clean"], many["clean"][:10])
        assert ("calibration" in few) is (name in RIVALS)


def whole(x: torch.Tensor) -> np.ndarray:
    """Floats that are 8-bit values, as such: (N, h, w, 3)."""
    return (x * 255).round().byte().permute(0, 2, 3, 1).numpy()


def test_the_command_says_where_the_scores_are_and_does_nothing_twice(
    stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(stored))
    monkeypatch.setattr(scoring, "fit_rival", None)  # nothing is missing, so nothing is fitted
    path = score_path(place(stored, VICTIM), "clean", VICTIM)
    before = path.read_bytes()
    arguments = [
        "paper",
        "score-sets",
        "attacks",
        "--attacked",
        stored / "attacked",
        "--attacked-points",
        14,
        "--data-root",
        stored / "data",
    ]
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 0
    assert f"scores of attacks on {VICTIM} are stored" in capsys.readouterr().out
    assert path.read_bytes() == before

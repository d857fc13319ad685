"""One-class detection: the experiment's arithmetic, its files, the command, and the detector of horses in the app."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score
from small import read_scores
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from idecode_core.cli.app import app
from idecode_core.errors import CheckpointError, DataError, SettingError
from idecode_core.files import write_npz
from idecode_core.folder import shelf
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import CALIBRATION, About, ScoreSet, open_scores
from idecode_core.folder.stored import open_by_name, rivals_beside
from idecode_core.image.sets import class_names, dataset_and_class
from idecode_core.quality.score_sets import image_sets
from idecode_core.training.recipes import RECIPES, get_recipe, superclass
from idecode_core.transforms import Rotations
from paper.commands import numbers
from paper.one_class import one_class
from paper.one_class_scores import RIVALS as FITTED
from paper.one_class_scores import budget_of, each_variant, is_stored, points_of, score_all, score_one
from paper.one_class_stored import CIFAR10, CIFAR100, RIVALS, mixed, over_runs, place, rate, trainings
from paper.rivals.one_class import Budget
from tests.small import random_images, small_scorer
from ui.frame.pictures import gallery

ROOT = Path(__file__).parents[2]
HORSES = ROOT / "checkpoints" / "cifar10-horses"
PATIENCE = 240


def scores(shift: float, seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1, shape).astype(np.float32)


def write_parts(
    folder: Path,
    parts: list[np.ndarray],
    scorer: str = "",
    groups: np.ndarray | None = None,
    about: About | None = None,
) -> None:
    """Calibration points, horses, and what is no horse."""
    about = about or About(RIVALS.get(scorer, "iDECODe"), knows=folder.name)
    for name, vectors in zip((CALIBRATION, "cifar10-horse", "cifar10"), parts, strict=True):
        label = name.replace("cifar10", "CIFAR-10").replace("-horse", " horse")
        each = groups if name == "cifar10" else None
        one = ScoreSet(name, label, name == "cifar10", vectors, groups=each)
        shelf.write_scores(folder, one, "", scorer, about)


def write_scores(root: Path, name: str, strange: float = 2.0) -> None:
    """iDECODe's scores, with one range per draw and with all."""
    for wide, columns in ((False, 20), (True, 5 * 4)):
        sizes = ((0.0, 99), (0.0, 60), (strange, 45))
        parts = [scores(shift, 10 * wide + i, (size, columns)) for i, (shift, size) in enumerate(sizes)]
        write_parts(place(root, name, wide), parts)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    for name in CIFAR10[:2]:
        write_scores(tmp_path, name)
    write_scores(tmp_path, CIFAR100[17])
    for name, shift in ((CIFAR10[0], 20.0), (CIFAR10[1], 0.5)):
        parts = [scores(0, 1, (99, 1)), scores(0, 2, (60, 1)), scores(shift, 3, (45, 1))]
        write_parts(place(tmp_path, name), parts, "csi")  # better than iDECODe on airplanes only
    return tmp_path


@given(st.integers(1, 9), st.integers(1, 3))
def test_mixing_averages_four_neighbours_of_one_turn_as_the_released_program_does(count: int, n: int) -> None:
    each = np.random.default_rng(count).normal(size=(count, n, 4))
    found = mixed(each)
    for draw in range(n):
        one_turn_after_the_other = [
            each[picture, draw, turn] for turn in range(4) for picture in range(count)
        ]
        for i in range(count):
            assert found[i, draw] == pytest.approx(np.mean(one_turn_after_the_other[4 * i : 4 * i + 4]))


def test_mixing_inflates_the_auroc_of_scores_that_differ_from_picture_to_picture_only() -> None:
    generator = np.random.default_rng(0)
    known, strange = (
        np.broadcast_to(generator.normal(shift, 1, (200, 1, 1)), (200, 1, 4)) for shift in (0, 1)
    )
    right, wrong = (
        over_runs({"known": one(known), "strange": one(strange)}, 1).mean
        for one in (lambda each: each.mean(axis=2), mixed)
    )
    assert right == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=0.05)
    assert wrong == pytest.approx(
        stats.norm.cdf(2 / np.sqrt(2)), abs=0.05
    )  # a mean of four has half the spread


def test_over_runs_sums_the_draws_of_each_run() -> None:
    known, strange = scores(0, 0, (30, 20)), scores(1, 1, (40, 20))
    truth = [0] * 30 + [1] * 40
    found = over_runs({"known": known, "strange": strange}, 5)
    both = np.concatenate([known, strange])
    expected = [roc_auc_score(truth, both[:, s : s + 5].sum(axis=1)) for s in (0, 5, 10, 15)]
    assert found.values == pytest.approx(expected)


def test_the_rate_counts_test_points_whose_p_value_is_below_epsilon() -> None:
    calibration, known = scores(0, 0, (99, 5)), scores(0, 1, (60, 5))
    found = rate({"calibration": calibration, "known": known}, 5)
    k_sums, t_sums = calibration.sum(axis=1), known.sum(axis=1)
    p_values = [(np.count_nonzero(k_sums >= t) + 1) / 100 for t in t_sums]
    assert found.rate == pytest.approx(np.mean(np.array(p_values) < 0.05))
    assert found.low <= 0.05 <= found.high


def test_the_section_names_the_rivals_that_are_better_first_and_has_all_tables(stored: Path) -> None:
    text = one_class(stored).body
    first = text.split("\n\n")[0]
    csi, ours = [], []
    for name in CIFAR10[:2]:
        found = trainings(place(stored, name))
        (rival,), (own,) = found["CSI", 1], found["iDECODe", 1]
        both = np.concatenate([rival["known"], rival["strange"]]).ravel()
        csi.append(100 * roc_auc_score([0] * 60 + [1] * 45, both))
        ours.append(100 * over_runs(own, 5).mean)
    assert csi[0] > ours[0]
    assert csi[1] < ours[1]
    assert first.startswith(
        "**With the same network and the same steps these beat iDECODe (n=5):** "
        f"CSI on 1 of 2 classes (mean {np.mean(csi):.1f} against {np.mean(ours):.1f})."
    )
    assert "**Not run here**" in first
    assert "GOAD, affine" in first
    assert "trees" in text
    assert "86.5" in text  # the paper's, for airplanes
    assert "n=5, mixed" in text
    assert text.count("|---|") == 5


def row(text: str, title: str) -> list[str]:
    """The cells of the only row of this name in which both our numbers and the paper's stand."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {title} |") and " / " in line)
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_trainings_with_other_seeds_are_a_mean_and_one_with_more_steps_is_a_row_of_its_own(
    stored: Path,
) -> None:
    folder, aurocs = place(stored, CIFAR10[1]), {"iDECODe": [], "CSI": []}
    # the names on the shelf say nothing: what a training is, stands in its file
    for name, seed, columns in (("a", 2, 20), ("b", 1, 20), ("c", 1, 1), ("d", 2, 1)):
        title = "CSI" if columns == 1 else "iDECODe"
        parts = [scores(shift, 50 * seed + i, (99, columns)) for i, shift in enumerate((0, 0, 1.5))]
        write_parts(folder, parts, name, about=About(title, knows=folder.name, seed=seed))
    longer = [scores(shift, i, (99, 1)) for i, shift in enumerate((0, 0, 30))]
    write_parts(folder, longer, "e", about=About("CSI", knows=folder.name, budget=10))
    for path in ("", "a", "b", "csi", "c", "d"):
        known, strange = (
            shelf.read_score_file(shelf.score_path(folder, name, path)).score_vectors
            for name in ("cifar10-horse", "cifar10")
        )
        truth, n = [0] * len(known) + [1] * len(strange), min(5, known.shape[1])
        both = np.concatenate([known, strange])
        runs = [roc_auc_score(truth, both[:, s : s + n].sum(axis=1)) for s in range(0, both.shape[1], n)]
        aurocs["iDECODe" if n == 5 else "CSI"].append(100 * np.mean(runs))
    text = one_class(stored).body
    (mean, other), (spread, other_spread) = (
        [function(aurocs[title]) for title in ("CSI", "iDECODe")]
        for function in (np.mean, lambda v: np.std(v, ddof=1))
    )
    assert row(text, "CSI")[1] == f"{mean:.1f} ± {spread:.1f} / 98.7"
    assert row(text, "iDECODe n=5")[1] == f"{other:.1f} ± {other_spread:.1f} / 98.1"
    assert row(text, "CSI, 10 times the steps") == ["–", "100.0 / 98.7", "–"]
    assert "over 3 trainings" in text
    error = np.sqrt(spread**2 / 3 + other_spread**2 / 3)
    assert f"CSI on cars {mean - other:+.1f} ± {error:.1f}." in text
    assert "CSI on 1 of 2 classes" in text.split("\n\n")[0]  # with the same steps it loses on cars
    assert "those of further trainings" in text


def test_without_scores_the_experiment_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="one-class --classes all"):
        one_class(tmp_path)


def test_names_in_the_table_are_recipes_and_every_fitted_rival_has_a_row() -> None:
    for number, name in enumerate(CIFAR10):
        assert RECIPES[name].shows.classes == (number,)
    for number, name in CIFAR100.items():
        assert RECIPES[name].shows.classes == superclass(number)
    assert {kind.kind for kinds in FITTED.values() for kind in kinds} == set(RIVALS)


def test_a_rival_spends_what_idecode_spends() -> None:
    recipe = get_recipe("cifar10-horses")
    budget = budget_of(recipe, 4275)
    assert budget.steps * budget.batch == recipe.epochs * (4275 // 32) * 32 * 4
    assert Budget() == budget


def test_the_scores_of_all_variants_average_to_the_scorers_own() -> None:
    scorer, x = small_scorer(Rotations("all")), random_images(5)
    each = each_variant(scorer, x, 3)
    assert each.shape == (5, 3, 4)
    expected = scorer.score(x, n=3, seed=0).score_vectors
    np.testing.assert_allclose(each.mean(axis=2), expected, rtol=1e-4)


@pytest.fixture
def tiny_data(tmp_path: Path) -> Path:
    for split, each in (("train", 30), ("test", 4)):
        y = np.repeat(np.arange(9), each)  # no trucks
        write_npz(tmp_path / f"cifar10-{split}.npz", {"x": random_images(len(y), 32), "y": y})
    return tmp_path


def test_points_are_of_the_class_and_of_all_others_and_none_calibrates_and_tests(tiny_data: Path) -> None:
    points = points_of(get_recipe("cifar10-horses"), tiny_data)
    assert set(points.training.y) == set(points.calibration.y) == set(points.known.y) == {7}
    assert sorted(set(points.strange.y)) == [0, 1, 2, 3, 4, 5, 6, 8]
    assert len(points.training) + len(points.calibration) < 30  # the rest chooses the epoch


def test_a_class_that_is_not_there_is_named(tiny_data: Path) -> None:
    with pytest.raises(DataError, match=r"has 0 pictures to learn from.*has the classes \(9,\)"):
        points_of(get_recipe("cifar10-trucks"), tiny_data)


def test_a_rival_is_fitted_once_and_its_scores_and_their_classes_lie_on_the_shelf(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from idecode_core.training import recipes
    from paper import one_class_scores

    monkeypatch.setattr(one_class_scores, "budget_of", lambda recipe, points: Budget(steps=2, batch=8))
    one_class_scores.score_one("cifar10-horses", "rotnet", tmp_path, tiny_data, tmp_path)
    points, folder = (
        points_of(recipes.get_recipe("cifar10-horses"), tiny_data),
        place(tmp_path, "cifar10-horses"),
    )
    for kind in ("rotnet", "auxiliary"):  # one network, two looks at it
        found = open_scores(folder, kind)
        assert found.about == About(RIVALS[kind], knows="cifar10-horses")
        assert len(found.id_set) == len(points.known)
        assert found.calibration.k == len(points.calibration)
        assert {one.label for one in found.ood_sets} == {
            f"CIFAR-10 {name}" for name in class_names("cifar10") if name not in ("horse", "truck")
        }
        numbers = [class_names("cifar10").index(group) for group in found.sets["cifar10"].groups]
        assert numbers == points.strange.y.tolist()
    assert one_class_scores.is_stored(tmp_path, "cifar10-horses", "rotnet")
    assert not one_class_scores.is_stored(tmp_path, "cifar10-horses", "idecode")
    assert len(read_scores(folder, scorer="rotnet")) == 3


def test_another_seed_trains_again_on_the_same_pictures(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = get_recipe("cifar10-horses")
    shows = replace(recipe.shows, model=replace(recipe.shows.model, widths=(4, 4, 4)))
    quick = replace(recipe, epochs=1, batch=4, shows=shows)
    monkeypatch.setattr("paper.one_class_scores.get_recipe", lambda name: quick)
    runs = tmp_path / "runs"
    for seed, budget in ((0, 1), (1, 1), (0, 2)):
        for method in ("idecode", "rotnet"):
            assert not is_stored(tmp_path, quick.name, method, seed, budget)
            score_one(quick.name, method, tmp_path, tiny_data, runs, seed, budget)
            assert is_stored(tmp_path, quick.name, method, seed, budget)
    places = [place(tmp_path, quick.name, wide) for wide in (False, True)]
    assert [len(trainings(places[wide])["iDECODe", 1]) for wide in (0, 1)] == [2, 2]
    for title in ("iDECODe", "RotNet", "AUX"):
        first, second = trainings(places[0])[title, 1]
        (longer,) = trainings(places[0])[title, 2]
        for part in ("calibration", "known", "strange"):
            assert first[part].shape == second[part].shape == longer[part].shape
            assert (first[part] != second[part]).any()
            assert (first[part] != longer[part]).any()
    splits = [dict(np.load(path)) for path in sorted(runs.rglob("split.npz"))]
    assert len(splits) == 3
    for split in splits:
        assert all((split[part] == splits[0][part]).all() for part in split)


def test_an_unknown_method_or_class_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No method is called 'magic'; expected some of idecode, rotnet"):
        score_all(CIFAR10, ["magic"], root=tmp_path, data_root=None, runs=tmp_path, report=lambda words: None)
    for wrong in ("", "10", "-1", "1,x"):
        with pytest.raises(SettingError, match="numbers from 0 to 9"):
            numbers(wrong, 10)
    assert numbers("0, 7", 10) == [0, 7]
    assert "--superclasses" in CliRunner().invoke(app, ["paper", "one-class", "--help"]).output


def test_an_identity_may_be_one_class_of_a_dataset() -> None:
    assert get_recipe("cifar10-horses").in_distribution == "cifar10/horse"
    assert get_recipe("cifar10-rotations").in_distribution == "cifar10"
    assert dataset_and_class("cifar10/horse") == ("cifar10", class_names("cifar10").index("horse"))
    assert dataset_and_class("") == ("", None)
    assert dataset_and_class("cifar10/zebra") == ("cifar10/zebra", None)  # not all of CIFAR-10


def test_test_sets_of_one_class_are_that_class_and_each_other_one(tiny_data: Path) -> None:
    found = {one.name: one for one in image_sets("cifar10/horse", tiny_data)}
    assert [name for name, one in found.items() if not one.is_ood] == ["cifar10-horse"]
    assert len(found) == 10


def test_the_gallery_of_the_horses_shows_horses_as_known_and_every_other_class_as_strange() -> None:
    shown = gallery(read_settings(HORSES))
    horses, others = shown.belonging, shown.foreign
    assert len(horses) == 10
    assert all("![horse" in picture for picture in horses.values())
    for name in class_names("cifar10"):
        assert any(f"![{name}" in picture for picture in others.values()) == (name != "horse")


@pytest.mark.parametrize("page", ["inspect", "evaluate", "guarantee"])
def test_the_pages_work_with_the_horses(page: str) -> None:
    at = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=PATIENCE)
    at.query_params["detector"] = "cifar10-horses"
    at.run()
    assert not at.exception
    assert not at.error
    assert at.query_params["detector"] in ("cifar10-horses", ["cifar10-horses"])


@pytest.fixture
def beside_horses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The detector of horses, with one rival of which the classes of strange points are known and one of which they are not."""
    shutil.copytree(HORSES, tmp_path / "cifar10-horses")
    numbers = np.repeat([c for c in range(10) if c != 7], 5)
    known = [scores(0, 1, (99, 1)), scores(0, 2, (60, 1))]
    folder = place(tmp_path, "cifar10-horses")
    goad = [*known, numbers[:, None].astype(np.float32) * 10]
    write_parts(folder, goad, "goad", np.array(class_names("cifar10"))[numbers])
    write_parts(folder, [*known, scores(0, 3, (45, 1))], "csi")
    write_parts(folder, [np.zeros((9, 20), np.float32)] * 3)  # iDECODe's own: no rival
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path))
    return tmp_path


def test_a_rival_of_one_class_has_the_sets_of_its_detector(beside_horses: Path) -> None:
    assert rivals_beside("cifar10-horses") == ["cifar10-horses--csi", "cifar10-horses--goad"]
    found, own = open_by_name("cifar10-horses--goad"), open_by_name("cifar10-horses")
    assert found.id_set.name == own.id_set.name == "cifar10-horse"
    assert {one.name for one in found.ood_sets} == {one.name for one in own.ood_sets}
    trucks = next(one for one in found.ood_sets if one.name == "cifar10-truck")
    assert trucks.score_vectors.tolist() == [[90.0]] * 5
    assert found.calibration.k == 99
    assert {one.label for one in found.ood_sets} == {one.label for one in own.ood_sets}
    assert [one.name for one in open_by_name("cifar10-horses--csi").ood_sets] == ["cifar10"]  # not by class
    with pytest.raises(CheckpointError, match="cifar10-horses--guess"):
        open_by_name("cifar10-horses--guess")


def test_what_a_rival_is_stands_in_its_file_and_not_in_its_name(beside_horses: Path) -> None:
    folder = place(beside_horses, "cifar10-horses")
    (folder / "scores" / "goad").rename(folder / "scores" / "another--name")
    found = open_by_name("cifar10-horses--another--name")
    assert found.title == "GOAD (horses)"
    assert {one.name for one in found.ood_sets} > {"cifar10-truck"}


def test_evaluate_lays_a_rival_of_one_class_over_the_horses(beside_horses: Path) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "evaluate.py"), default_timeout=PATIENCE)
    asked = {"detector": "cifar10-horses", "ev_view": "Detectors", "ev_set": "CIFAR-10 truck"}
    for key, value in asked.items():
        page.query_params[key] = value
    page.run()
    page.multiselect(key="ev_detectors").set_value(["cifar10-horses--goad", "cifar10-horses--csi"]).run()
    assert not page.exception
    lines = page.dataframe[-1].value.set_index("Detector")
    calibration = scores(0, 1, (99, 1))
    ranks = [(calibration >= score).sum() for score in [*scores(0, 2, (60, 1)), *[90.0] * 5]]  # trucks have 0
    expected = roc_auc_score([0] * 60 + [1] * 5, [-rank for rank in ranks])
    assert lines.loc["GOAD (horses)", ["n", "AUROC"]].tolist() == ["1", f"{100 * expected:.1f}"]
    assert len(lines) == 2

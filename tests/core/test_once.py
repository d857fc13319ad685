"""A scorer without random draws: n is 1, from calibration over folder, merge and command line to the app."""

# ruff: noqa: F811  `run` is a fixture of another file
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import torch
from PIL import Image
from small import SIZE, OnTheCpuFirst, random_images, small_scorer
from streamlit.testing.v1 import AppTest
from test_commands import run  # noqa: F401  a fixture

from idecode_core.conformal import p_values
from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError, SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.listing import list_folders
from idecode_core.folder.stored import open_stored
from idecode_core.image.features import Preprocessing
from idecode_core.quality.methods import evaluate
from idecode_core.quality.score_sets import SetToScore, score_test_sets
from idecode_core.report.card import card
from idecode_core.scorer import SCORERS
from idecode_core.scorers.merged import MergedScorer
from idecode_core.scorers.once import OnceScorer

ROOT = Path(__file__).parents[2]
PATIENCE = 240


@dataclass(frozen=True, eq=False, kw_only=True)
class Brightness(OnceScorer):
    """How far the mean brightness is from that of the pictures it was fitted to."""

    kind: ClassVar[str] = "brightness"
    term: ClassVar[str] = "distance from the usual brightness"
    chosen: ClassVar[tuple[str, ...]] = ("sign",)

    usual: torch.Tensor  # ()
    sign: float = 1.0

    @classmethod
    def fit(cls, x: np.ndarray, **parts: Any) -> Self:
        return cls(usual=torch.tensor(x.mean() / 255, dtype=torch.float32), **parts)

    def strangeness(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():  # as a method that perturbs its input does
            x = x.requires_grad_()
            (slope,) = torch.autograd.grad(x.mean(dim=(1, 2, 3)).sum(), x)
        assert slope.shape == x.shape
        return self.sign * (x.mean(dim=(1, 2, 3)) - self.usual).abs()


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCORERS, "brightness", f"{__name__}:Brightness")
        yield


@pytest.fixture(scope="module")
def detector() -> Detector:
    scorer = Brightness.fit(random_images(30), preprocessing=Preprocessing(SIZE))
    return Detector.calibrate("bright", scorer, random_images(40, seed=1), summary="grey noise")


@pytest.fixture(scope="module")
def root(detector: Detector, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One detector that draws nothing, one that draws, and files to judge."""
    place = tmp_path_factory.mktemp("once")
    save_detector(detector, place / "bright")
    drawing = Detector.calibrate("turns", small_scorer(), random_images(40, seed=1), n_max=6)
    save_detector(drawing, place / "turns")
    (place / "files").mkdir()
    for name, pixels in (("usual", random_images(1, seed=2)[0]), ("dark", np.zeros((20, 20, 3), np.uint8))):
        Image.fromarray(pixels).save(place / "files" / f"{name}.png")
    return place


def by_hand(detector: Detector, images: np.ndarray) -> np.ndarray:
    usual = float(detector.scorer.usual)  # type: ignore[attr-defined]
    return np.abs(images.reshape(len(images), -1).mean(axis=1) / 255 - usual)


def test_one_score_per_point_is_calibrated_and_ranked(detector) -> None:
    assert detector.calibration.score_vectors.shape == (40, 1)
    images = random_images(5, seed=3)
    found = detector.detect(images)  # no n is asked for: 1, not the usual 5
    np.testing.assert_allclose(found.scores, by_hand(detector, images), atol=1e-6)
    calibration = by_hand(detector, random_images(40, seed=1))
    np.testing.assert_array_equal(found.p_values, p_values(calibration, found.scores))
    assert [detector.describe(found, i) for i in range(5)] == [["as it is"]] * 5
    with pytest.raises(SettingError, match="n must lie between 1 and 1"):
        detector.detect(images, n=5)


def test_batches_seeds_and_more_draws_change_nothing(detector, monkeypatch) -> None:
    images = random_images(7, seed=4)
    whole = detector.scorer.score(images, n=3, seed=0).score_vectors
    assert whole.shape == (7, 3)
    assert (whole == whole[:, :1]).all()
    monkeypatch.setattr("idecode_core.scorers.once.PIXELS_PER_BATCH", 2 * SIZE**2)
    order = [4, 0, 6, 2, 1, 5, 3]
    np.testing.assert_allclose(detector.scorer.score(images[order], seed=9).score_vectors, whole[order, :1])


def test_what_is_inspected_is_what_is_scored(detector) -> None:
    image = random_images(1, seed=5)[0]
    with OnTheCpuFirst():
        inspected = detector.inspect(image, n=2)
    np.testing.assert_allclose(inspected.score_vector, by_hand(detector, image[None]).repeat(2), atol=1e-6)
    assert [variant.draw for variant in inspected.variants] == [0, 1]
    np.testing.assert_array_equal(inspected.variants[0].image, image)
    assert [terms[0].value for terms in inspected.terms] == inspected.score_vector.tolist()


def test_a_saved_one_scores_alike_and_is_listed_with_its_card(root, detector) -> None:
    again = load_detector(root / "bright", "cpu")
    images = random_images(4, seed=6)
    np.testing.assert_array_equal(again.detect(images).p_values, detector.detect(images).p_values)
    found = list_folders(root)
    assert not found.broken
    assert {settings.name: settings.n_max for settings in found.detectors} == {"bright": 1, "turns": 6}
    assert "40 held-out points with 1 draws" in card(root / "bright")


def test_it_merges_with_a_scorer_that_draws(root, detector, tmp_path: Path) -> None:
    drawing = load_detector(root / "turns", "cpu").scorer
    references = tuple(
        s.score(random_images(30, seed=7), n=2, seed=0).score_vectors for s in (detector.scorer, drawing)
    )
    merged = MergedScorer((detector.scorer, drawing), ("bright", "turns"), references, (1.0, 2.0))
    made = Detector.calibrate("both", merged, random_images(20, seed=8), n_max=4)
    save_detector(made, tmp_path / "both")
    images = random_images(3, seed=9)
    found = load_detector(tmp_path / "both", "cpu").score_vectors(images, n=4)
    ranks = [
        p_values(reference.ravel(), member.score(images, n=4, seed=0).score_vectors.ravel()).reshape(3, 4)
        for reference, member in zip(references, (detector.scorer, drawing), strict=True)
    ]
    np.testing.assert_allclose(found, -np.log(ranks[0]) - 2 * np.log(ranks[1]))


def test_the_command_line_judges_with_one_look(run, root, detector) -> None:
    code, out, _ = run("detect", root / "files", "--detector", root / "bright", "--json", "--epsilon", 0.1)
    lines = {Path(line["file"]).stem: line for line in map(json.loads, out.splitlines())}
    assert code == 1
    assert lines["dark"]["is_ood"]
    assert not lines["usual"]["is_ood"]
    assert lines["dark"]["n"] == 1
    assert lines["dark"]["transforms"] == ["as it is"]
    assert lines["dark"]["score"] == pytest.approx(float(detector.scorer.usual), abs=1e-6)


def test_stored_scores_have_one_column_and_make_a_table(root, detector, tmp_path: Path) -> None:
    save_detector(detector, tmp_path / "bright")
    known, strange = random_images(12, seed=10), random_images(9, seed=11) // 4
    sets = [
        SetToScore("noise-test", False, known),
        SetToScore("dark-test", True, strange),
    ]
    score_test_sets(tmp_path / "bright", sets)
    stored = open_stored(tmp_path / "bright")
    assert stored.id_set.score_vectors.shape == (12, 1)
    found = evaluate(stored.calibration, stored.id_set, stored.ood_sets[0], 1)
    scores = by_hand(detector, known), by_hand(detector, strange)
    assert found.auroc.mean == pytest.approx((scores[1][:, None] > scores[0]).mean(), abs=0.05)
    assert "it draws nothing" in card(tmp_path / "bright")


def test_scores_that_are_not_numbers_are_refused_in_a_sentence() -> None:
    broken = Brightness(usual=torch.tensor(float("nan")), preprocessing=Preprocessing(SIZE))
    with pytest.raises(IdecodeError, match="finite"):
        Detector.calibrate("broken", broken, random_images(3))


def page(name: str, root: Path, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    at = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=PATIENCE)
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


def n_sliders(at: AppTest) -> list[Any]:
    assert not at.exception
    return [slider for slider in at.slider if slider.key == "n"]


def test_inspect_hides_the_slider_says_why_and_comes_back_to_the_n_before(root, monkeypatch) -> None:
    at = page("inspect", root, monkeypatch, detector="bright", n="3")
    assert not n_sliders(at)
    assert any("looks at the input once" in caption.value for caption in at.caption)
    assert not at.warning
    assert not at.error
    assert any(mark.value.startswith("It scores **") for mark in at.markdown)
    assert not any("More transforms" in mark.value for mark in at.markdown)
    at.select_slider(key="epsilon").set_value(0.1).run()
    assert not at.exception
    at.selectbox(key="versus").set_value("turns").run()  # beside a detector that draws
    assert not at.exception
    assert any("**turns**" in mark.value for mark in at.markdown)
    at.button(key="menu_turns").click().run()
    [slider] = n_sliders(at)
    assert slider.value == 3
    at.selectbox(key="versus").set_value("bright").run()
    assert not at.exception
    assert any("**bright**" in mark.value for mark in at.markdown)
    at.button(key="menu_bright").click().run()
    assert not n_sliders(at)

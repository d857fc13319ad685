"""How good a detector of a user's own files is: weak results are said with what to try."""

# ruff: noqa: F811  `run` is a fixture of another file
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from small import random_images
from test_commands import run  # noqa: F401  a fixture
from test_train_folder import own, small_network, write_pictures  # noqa: F401  fixtures

from idecode_core import plan_folder
from idecode_core.conformal.calibration import Calibration
from idecode_core.folder.record import read_training
from idecode_core.folder.stored import open_stored
from idecode_core.quality.user_data import Against, about_classes, learned_nothing, user_result, weaknesses


def test_a_network_that_answers_by_chance_where_it_learned_is_failed(
    run, own, small_network, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    status, out, err = run(
        "train", "own", "--model", "rotations", "--epochs", 1, "--ood", "textures-sample", "--out", "out/mine"
    )
    assert status == 0, err
    record = read_training(tmp_path / "out" / "mine")
    assert record is not None
    assert record.training_accuracy is not None
    assert record.training_accuracy < 0.25 + 0.15 * 0.75  # one epoch on noise
    assert "Failed: its network answers no better than chance" in out
    assert user_result(open_stored(tmp_path / "out" / "mine")).failed
    for page in ("card.md", "report.html"):
        assert "Failed: its network answers" in (tmp_path / "out" / "mine" / page).read_text(encoding="utf-8")
    learned = replace(record, training_accuracy=0.6, settings={"class_names": list("ab")})
    assert not learned_nothing(learned)  # four turns to tell apart, whatever classes the files have
    assert learned_nothing(replace(learned, training_accuracy=0.3))
    heard = replace(record, task="block_label", settings={"class_names": list("ab")}, training_accuracy=0.5)
    assert learned_nothing(heard)
    assert not learned_nothing(
        replace(heard, recipe="statistics", settings={**heard.settings, "tried": {"both": {}}})
    )


def test_weak_results_are_said_with_what_to_try(run, own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    write_pictures(tmp_path / "same kind", random_images(60, 24, seed=5))
    for i in range(48, 60):
        (own / f"{i:03d}.png").unlink()
    status, out, err = run("train", "own", "--ood", "same kind", "--out", "out/mine")
    assert status == 0, err
    before, after = out.split("Expected time")
    assert "with 19 to calibrate, no p-value is below 0.05, so epsilon = 0.05 never flags anything" in before
    assert "Bring at least 50 files" in before
    assert "Weak: With 19 calibration files no p-value is below 0.05" in after
    assert "hardly tells your files from same kind" in out.replace("same-kind", "same kind")
    record = read_training(tmp_path / "out" / "mine")
    assert record is not None
    chance = replace(
        record, validation_accuracy=0.28, settings={"class_names": list("abcd"), "left_out": {"a": 0.5}}
    )
    classes, passing = about_classes(chance)
    assert "On validation files" in classes
    assert "near chance (25%)" in classes
    assert "--labels none" in classes
    assert "Other classes pass as familiar" in passing
    (sounds,) = about_classes(
        replace(
            record,
            validation_accuracy=None,
            calibration_accuracy=0.28,
            settings={"class_names": list("abcd")},
        )
    )
    assert "On calibration files 28%" in sounds
    assert "validation" not in sounds
    good = replace(
        record, validation_accuracy=0.9, settings={"class_names": list("abcd"), "left_out": {"a": 0.9}}
    )
    assert about_classes(good) == []


def small_result(k: int, **record: object) -> tuple[SimpleNamespace, Against]:
    """k calibration files of 128, and twenty that do not belong and are a little stranger."""
    generator = np.random.default_rng(k)
    ood_set = SimpleNamespace(label="birds", score_vectors=generator.normal(1, 1, (20, 5)))
    settings = {"files": 128, **record.pop("settings", {})}  # type: ignore[dict-item]
    return SimpleNamespace(
        calibration=Calibration(generator.normal(0, 1, (k, 5)), 0),
        id_set=None,
        ood_sets=[ood_set],
        training=SimpleNamespace(settings=settings, recipe="both", task="", validation_accuracy=None, calibration_accuracy=None, **record),
    ), Against("birds", 20, 0.7, (0.5, 0.9), 0.2)  # fmt: skip


@pytest.mark.parametrize(
    ("k", "said"), [(19, "never flags anything"), (38, "only what is stranger than all"), (40, "")]
)
def test_few_calibration_files_are_said_with_what_a_larger_epsilon_flags(k: int, said: str) -> None:
    """By counting: at 0.1 that is what lies above the largest but one (k = 19) or but three (k = 38)."""
    stored, against = small_result(k)
    inside = SimpleNamespace(inside=True)
    sentences = [s for s in weaknesses(stored, (against,), inside) if "calibration files" in s]  # type: ignore[arg-type]
    if not said:
        assert sentences == []
        return
    (sentence,) = sentences
    assert said in sentence
    sums = np.sort(stored.calibration.score_vectors.sum(axis=1))[::-1]
    line = sums[{19: 0, 38: 2}[k]]
    assert f"flags {(stored.ood_sets[0].score_vectors.sum(axis=1) > line).mean():.0%} of birds" in sentence
    more = {19: 7, 38: 7}[
        k
    ]  # 135 files have 20 calibration files where 128 have 19, and 40 where 128 have 38
    assert f"about {more} files more" in sentence
    caught = replace(against, detected=0.9)
    still = [s for s in weaknesses(stored, (caught,), inside) if "calibration files" in s]  # type: ignore[arg-type]
    assert len(still) == (k < 20)


@pytest.mark.parametrize(("modality", "others"), [("image", True), ("audio", False)])
def test_another_model_is_advised_only_where_one_was_not_tried(modality: str, others: bool) -> None:
    stored, half_way = small_result(60, settings={"modality": modality, "tried": {"both": {}}})
    blind = replace(half_way, label="rain", auroc=0.5)
    by_set = weaknesses(stored, (half_way, blind), SimpleNamespace(inside=True))  # type: ignore[arg-type]
    assert ["--model" in sentence for sentence in by_set] == [others, others]
    assert all("ore files" in sentence for sentence in by_set)


def test_fifty_files_are_enough_to_flag_at_the_usual_epsilon(own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for i in range(50, 60):
        (own / f"{i:03d}.png").unlink()
    plan = plan_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert (plan.too_few, plan.sizes["calibration"]) == ("", 20)
    (own / "000.png").unlink()
    (own / "001.png").unlink()
    fewer = plan_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert "Bring at least 50 files" in fewer.too_few
    assert "all 48 then fit and calibrate" in " ".join(fewer.sentences())
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "runs").exists()  # looking and planning leave nothing behind

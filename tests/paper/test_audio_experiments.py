"""`reproduce audio` from small detectors: every number of its table computed a second way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from idecode_core.audio.read import Sound
from idecode_core.audio.scorer import AudioScorer
from idecode_core.audio.sets import SoundSet
from idecode_core.errors import CheckpointError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.shelf import SBP
from idecode_core.folder.stored import Stored, open_stored
from idecode_core.ncm import soft_disagreement
from idecode_core.quality.methods import beside_softmax
from idecode_core.quality.score_sets import score_test_sets, sound_sets
from idecode_core.report.card import write_card
from idecode_core.training.finish import finish
from idecode_core.training.loop import train
from idecode_core.training.parts import Parts, without_validation
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task
from paper.audio import COLUMNS, NCM_NAMES, audio, mean_row, paper_means
from research.audio_trials import Trial, try_recipe
from research.audio_why import audio_why, sides
from tools.synthetic_sounds import MAKERS

RATE = 16_000


def clips(kinds: tuple[str, ...], count: int, seed: int) -> SoundSet:
    generator = np.random.default_rng(seed)
    found = [
        Sound(MAKERS[kind](1.0, RATE, generator=generator), RATE) for kind in kinds for _ in range(count)
    ]
    y = np.repeat(np.arange(len(kinds)), count)
    return SoundSet("made", tuple(found), y, kinds, np.zeros(len(y), np.int64))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two detectors of tones and noise, with stored scores."""
    root = tmp_path_factory.mktemp("checkpoints")
    for seed, category in enumerate(("animals", "urban")):
        usual = get_recipe(f"esc50-{category}")
        recipe = replace(usual, shows=replace(usual.shows, widths=(4, 8)), epochs=2, batch=8, seed=seed)
        own = ("tone", "noise")
        training, calibration, test = (clips(own, n, seed + more) for n, more in ((8, 0), (10, 10), (6, 20)))
        outside = {
            "esc50-nature": clips(("claps",), 7, seed),
            "esc50-human": clips(("plucked string",), 5, seed),
        }
        split = without_validation(np.arange(16), np.arange(16, 36))
        none = training.take(np.arange(0))
        task = make_task(recipe, Parts(training, none, calibration, split, test, outside))
        folder, run = root / recipe.name, root / "runs" / recipe.name
        train(task, run)
        finish(task, run, folder)
        score_test_sets(
            folder, sound_sets(recipe.name, test, outside, calibration), ablations=list(NCM_NAMES)
        )
        write_card(folder)
    return root


@pytest.fixture(scope="module")
def stored(root: Path) -> Stored:
    return open_stored(root / "esc50-animals")


def test_the_row_is_the_auroc_of_scores_and_p_values_against_all_other_categories(stored: Stored) -> None:
    row = dict(zip(COLUMNS, beside_softmax(stored).metrics, strict=True))
    inside = stored.id_set.score_vectors
    outside = np.concatenate([ood_set.score_vectors for ood_set in stored.ood_sets])
    assert len(outside) == 12
    truth = np.r_[np.zeros(len(inside)), np.ones(len(outside))]
    calibration = stored.calibration.score_vectors
    for column, n in (("ICAD (n=1)", 1), ("n=5", 5), ("n=20", 20)):
        expected = []
        for run in range(5):
            scores = np.r_[inside, outside][:, 20 * run : 20 * run + n].astype(float).sum(axis=1)
            p = [(1 + (calibration[:, :n].sum(axis=1) >= s - 1e-12).sum()) / 21 for s in scores]
            expected.append(roc_auc_score(truth, -np.array(p)))
        assert row[column].values == pytest.approx(expected, abs=1e-9)
    base = [roc_auc_score(truth, np.r_[inside, outside][:, 20 * run]) for run in range(5)]
    assert row["base score"].values == pytest.approx(base, abs=1e-9)


def test_sbp_is_one_minus_the_largest_share_of_the_unmasked_clip(root: Path, stored: Stored) -> None:
    scorer = load_detector(stored.folder, "cpu").scorer
    assert isinstance(scorer, AudioScorer)
    test = clips(("tone", "noise"), 6, 20)
    np.testing.assert_allclose(
        stored.scores_of(SBP).once("esc50-animals"),
        1 - scorer.logits(test.clips).exp().numpy().max(axis=1),
        atol=1e-6,
    )


def test_one_pass_gives_each_base_ncm_its_own_scores(stored: Stored) -> None:
    scorer = load_detector(stored.folder, "cpu").scorer
    assert isinstance(scorer, AudioScorer)
    sounds = clips(("tone",), 3, 5).clips
    found = scorer.score_under(("invariance", "kl_divergence"), sounds, n=4, seed=3)
    for base_ncm, scored in found.items():
        alone = replace(scorer, base_ncm=base_ncm).score(sounds, n=4, seed=3).score_vectors
        np.testing.assert_allclose(scored.score_vectors, alone, atol=1e-6)


def test_the_mean_row_is_the_mean_over_categories_run_by_run(root: Path) -> None:
    rows = [beside_softmax(open_stored(root / name)) for name in ("esc50-animals", "esc50-urban")]
    for column, metric in enumerate(mean_row(rows).metrics):
        expected = np.mean([row.metrics[column].values for row in rows], axis=0)
        assert metric.values == pytest.approx(expected.tolist())


def test_the_section_names_every_column_and_the_papers_means(root: Path) -> None:
    body = audio(root).body
    assert all(column in body for column in COLUMNS)
    assert [round(mean, 1) for mean in paper_means()] == [55.3, 56.9, 56.6, 59.3, 60.1]
    assert "60.1" in body
    assert "argmax disagreement (smoothed p)" in body


def test_the_card_tells_data_recipe_numbers_and_licence(stored: Stored) -> None:
    card = (stored.folder / "card.md").read_text()
    for words in ("CC BY-NC 3.0", "train esc50-animals", "reproduce audio", "1/76", "tone, noise"):
        assert words in card


def test_scores_of_another_scorer_are_refused(root: Path, stored: Stored) -> None:
    path = stored.folder / "scores" / "invariance" / "calibration.npz"
    kept = path.read_bytes()
    with np.load(path) as arrays:
        np.savez(path, **{**dict(arrays), "scorer": np.array("other")})
    with pytest.raises(CheckpointError, match="not the file that was saved with this detector"):
        audio(root)
    path.write_bytes(kept)


def test_eq_3_is_twice_the_disagreement_less_what_is_unsure() -> None:
    """The identity in docs/audio-findings.md, on random predictions."""
    generator = torch.Generator().manual_seed(0)
    q, p = torch.randn(4, 3, 5, generator=generator), torch.randn(4, 5, generator=generator)
    unsure_p, unsure_q = 1 - p.softmax(-1).square().sum(-1), 1 - q.softmax(-1).square().sum(-1)
    eq_3 = (q.softmax(-1) - p.softmax(-1)[:, None]).square().sum(-1)
    torch.testing.assert_close(2 * soft_disagreement(q, p) - unsure_p[:, None] - unsure_q, eq_3)


def test_the_findings_tables_follow_from_the_stored_scores(root: Path) -> None:
    found = []
    for name in ("esc50-animals", "esc50-urban"):
        stored = open_stored(root / name)
        known, strange = sides(stored)
        assert (len(known.sure), len(strange.sure)) == (12, 12)
        folder = root / name / "scores" / "invariance"
        eq_3 = [np.load(folder / f"{s.name}.npz") for s in (stored.id_set, *stored.ood_sets)]
        scores = np.concatenate([one["score_vectors"].sum(axis=1) for one in eq_3])
        found.append(roc_auc_score(np.repeat([0, 1], 12), scores))
        sure = np.concatenate([known.sure, strange.sure])
        unsure = np.concatenate([known.unsure, strange.unsure])
        assert np.all(unsure >= (1 - sure**2 - (1 - sure) ** 2)[:, None] - 1e-5)  # M(x)'s own part of it
    eq_3_row = audio_why(root).splitlines()[2]
    assert eq_3_row.startswith("| Eq. 3")
    assert eq_3_row.split("|")[3].strip() == f"{100 * np.mean(found):.1f}"


def test_a_trial_trains_on_folds_1_and_2_and_judges_on_fold_3() -> None:
    """Two clips of each class of a category per fold, and noises of another class as OOD."""
    made = clips(("tone", "noise", "claps"), 22, 0)
    y = np.concatenate([np.repeat(np.arange(10), 6), np.full(6, 10)])  # class 10 is of another category
    fold = np.tile([1, 1, 2, 2, 3, 3], 11)
    sounds = SoundSet("esc50", made.clips, y, tuple(map(str, range(50))), fold)
    trial = Trial(mixup=0.0)
    recipe = trial.recipe("animals")
    recipe = replace(recipe, epochs=1, shows=replace(recipe.shows, widths=(4, 8)))
    found = try_recipe(recipe, trial.masks, sounds)
    assert found["accuracy"] * 20 == pytest.approx(round(found["accuracy"] * 20))  # of twenty clips
    assert 0 <= found["SBP"] <= 1
    assert set(found["usual masks"]) == set(NCM_NAMES)
    assert set(found["usual masks"]["invariance"]) == {"n=1", "n=5", "n=20"}

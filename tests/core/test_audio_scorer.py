"""The audio scorer: score vectors computed a second way, and a batch that is only a batch."""

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from idecode_core.audio.features import LogMel
from idecode_core.audio.read import Sound
from idecode_core.audio.scorer import AudioScorer
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.detector import Detector
from idecode_core.draws import content_key
from idecode_core.errors import CheckpointError, InputError, SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.models.vgg import PAPER_WIDTHS, VGG, VGGConfig
from idecode_core.transforms.specaugment import SpecAugment
from tools.synthetic_sounds import MAKERS

RATE = 16_000
FEATURES = LogMel(RATE, mean=-40.0, std=20.0)


def make_scorer(base_ncm: str = "invariance", seed: int = 0) -> AudioScorer:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = VGG(VGGConfig(outputs=3, widths=(4, 8)))
        for module in model.modules():  # weights that tell sounds apart, without training
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.normal_(module.weight, std=2.0)
    return AudioScorer(model, SpecAugment(), base_ncm, FEATURES, classes=("a", "b", "c"))


def sounds(seconds: tuple[float, ...] = (1.0, 5.0, 9.0, 5.0), seed: int = 0) -> list[Sound]:
    generator = np.random.default_rng(seed)
    makers = list(MAKERS.values())
    return [Sound(makers[i % len(makers)](s, RATE, generator=generator), RATE) for i, s in enumerate(seconds)]


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.calibrate("test", make_scorer(), sounds((1.0,) * 24, seed=1), n_max=4, summary="noises")


def test_scores_are_the_squared_distance_of_mean_block_softmaxes() -> None:
    """Eq. 3, block by block and mask by mask in plain loops."""
    scorer, clips = make_scorer(), sounds((5.0, 9.0))
    scored = scorer.score(clips, n=2, seed=7)
    for clip, vector, drawn in zip(clips, scored.score_vectors, scored.parameters, strict=True):
        blocks = FEATURES.blocks(clip.samples)
        with torch.inference_mode():
            reference = torch.stack([scorer.model(block[None])[0].softmax(0) for block in blocks]).mean(0)
            for draw in range(2):
                outputs = []
                for b, block in enumerate(blocks):
                    masked = block.clone()
                    for m, (first, width) in enumerate(drawn[draw, b].tolist()):
                        if m < 8:
                            masked[:, first : first + width] = 0
                        else:
                            masked[first : first + width] = 0
                    outputs.append(scorer.model(masked[None])[0].softmax(0))
                expected = float((torch.stack(outputs).mean(0) - reference).square().sum())
                assert vector[draw] == pytest.approx(expected, abs=1e-5)


def test_draws_are_keyed_by_the_samples_and_the_seed_only() -> None:
    scorer, (clip, *_) = make_scorer(), sounds((5.0,))
    drawn = scorer.score([clip], n=3, seed=11).parameters[0]
    key = content_key(clip.samples, 11)
    assert torch.equal(drawn, scorer.transforms.sample(key[None], 3, 1)[0])
    assert not torch.equal(drawn, scorer.score([clip], n=3, seed=12).parameters[0])


def test_permuting_a_batch_permutes_its_scores_and_alone_is_as_in_company() -> None:
    scorer, clips = make_scorer(), sounds()
    together = scorer.score(clips, n=3, seed=0).score_vectors
    backwards = scorer.score(clips[::-1], n=3, seed=0).score_vectors
    np.testing.assert_allclose(together, backwards[::-1], atol=1e-5)
    for clip, vector in zip(clips, together, strict=True):
        np.testing.assert_allclose(scorer.score(clip, n=3, seed=0).score_vectors[0], vector, atol=1e-5)
    np.testing.assert_allclose(scorer.score(clips, n=2, seed=0).score_vectors, together[:, :2], atol=1e-5)


def test_a_file_an_array_and_a_microphone_recording_of_the_same_samples_get_the_same_answer(
    detector: Detector, tmp_path: Path
) -> None:
    sixteen = np.round(sounds((2.0,))[0].samples * 30000).astype(np.int16)
    path, buffer = tmp_path / "a.flac", io.BytesIO()
    soundfile.write(path, sixteen, RATE)
    soundfile.write(buffer, sixteen, RATE, format="WAV")
    floats = sixteen.astype(np.float64) / 32768
    found = [
        detector.detect([path], n=4, epsilon=0.1),
        detector.detect(buffer, n=4, epsilon=0.1),
        detector.detect(buffer.getvalue(), n=4, epsilon=0.1),
        detector.detect([floats], sample_rate=RATE, n=4, epsilon=0.1),
        detector.detect(sixteen, sample_rate=RATE, n=4, epsilon=0.1),
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.score_vectors, found[0].score_vectors)
        np.testing.assert_array_equal(other.p_values, found[0].p_values)


def test_an_array_without_a_rate_is_refused_and_other_rates_are_resampled(detector: Detector) -> None:
    wave = sounds((2.0,))[0].samples
    with pytest.raises(InputError, match="sample_rate="):
        detector.detect([wave], n=2, epsilon=0.1)
    assert len(detector.detect([wave], sample_rate=44_100, n=2, epsilon=0.1)) == 1


def test_silence_gets_an_answer(detector: Detector) -> None:
    found = detector.detect([np.zeros(RATE)], sample_rate=RATE, n=4, epsilon=0.1)
    assert np.isfinite(found.score_vectors).all()
    assert 1 / 25 <= found.p_values[0] <= 1


def test_no_sounds_and_wrong_settings_are_clear(detector: Detector) -> None:
    with pytest.raises(InputError, match="at least one sound"):
        detector.detect([], n=2, epsilon=0.1)
    with pytest.raises(SettingError, match="cross_entropy"):
        make_scorer("cross_entropy")


def test_progress_counts_sounds() -> None:
    seen: list[int] = []
    make_scorer().score(sounds(), n=300, seed=0, progress=seen.append)
    assert seen[-1] == 4
    assert seen == sorted(seen)


def test_block_scores_tell_where_a_long_sound_is_strange() -> None:
    """A clip of one block: its block score is its score. Longer clips: times cover the clip in order."""
    scorer = make_scorer()
    one, long = sounds((4.0, 20.0))
    found = scorer.inspect(one, n=3, seed=0).by_block
    np.testing.assert_allclose(found.scores, scorer.score(one, n=3, seed=0).score_vectors, atol=1e-6)
    found = scorer.inspect(long, n=3, seed=0).by_block
    assert found.scores.shape == (5, 3)  # 626 frames: four blocks and a rest of 114
    assert found.seconds[0, 0] == 0
    assert found.seconds[-1, 1] == pytest.approx(20.0, abs=0.1)
    assert (np.diff(found.seconds[:, 0]) > 0).all()


def test_variants_show_what_was_hidden_with_the_scores_of_the_detection(detector: Detector) -> None:
    (clip,) = sounds((5.0,))
    variants = detector.inspect(clip, n=3).variants
    found = detector.detect(clip, n=3, epsilon=0.1)
    assert [v.score for v in variants] == pytest.approx(found.score_vectors[0].tolist(), abs=1e-6)
    assert [v.applied for v in variants] == detector.describe(found, 0)
    for variant in variants:
        assert variant.image.shape == (64, 128, 3)
        hidden = (variant.image == (140, 140, 140)).all(axis=-1).mean()
        assert variant.applied.startswith(f"hidden: {hidden:.0%}")
        assert variant.predicted.split()[0] in ("a", "b", "c")


def test_a_saved_detector_gives_the_same_scores(detector: Detector, tmp_path: Path) -> None:
    save_detector(detector, tmp_path / "d")
    loaded = load_detector(tmp_path / "d", "cpu")
    clips = sounds((5.0, 1.0))
    np.testing.assert_array_equal(
        loaded.detect(clips, n=4, epsilon=0.1).score_vectors,
        detector.detect(clips, n=4, epsilon=0.1).score_vectors,
    )
    assert loaded.scorer.modality == "audio"
    assert isinstance(loaded.scorer, AudioScorer)
    assert loaded.scorer.features == FEATURES


def test_a_changed_setting_of_the_features_is_refused(detector: Detector, tmp_path: Path) -> None:
    save_detector(detector, tmp_path / "d")
    config = tmp_path / "d" / "config.json"
    config.write_text(config.read_text().replace('"mean": -40.0', '"mean": -39.0'))
    with pytest.raises(CheckpointError, match="changed after saving"):
        load_detector(tmp_path / "d", "cpu")


def test_the_papers_network_has_its_shape() -> None:
    """Parameters counted by hand: eight 3x3 convolutions without bias, their batch norms, and a linear layer."""
    model = VGG(VGGConfig(outputs=5))
    chain = [1]
    for width in PAPER_WIDTHS:
        chain += [width, width]
    convolutions = sum(9 * a * b for a, b in pairwise(chain))
    assert sum(p.numel() for p in model.parameters()) == convolutions + 2 * sum(chain[1:]) + 512 * 5 + 5
    assert model.eval()(torch.zeros(2, 64, 128)).shape == (2, 5)


def test_smoothed_p_values_break_the_ties_of_argmax_disagreement() -> None:
    """With scores of 0 and 1 only, conservative p-values take few values; smoothed ones are uniform on iD data."""
    scorer = make_scorer("argmax_disagreement")
    vectors = scorer.score(sounds((1.0,) * 40, seed=3), n=4, seed=0).score_vectors
    assert set(np.unique(vectors)) <= {0.0, 1.0}
    calibration = Calibration(vectors[:20])
    smoothed = judge(calibration, vectors[20:], smoothed_by=np.random.default_rng(0).spawn(20)).p_values
    assert (smoothed <= judge(calibration, vectors[20:]).p_values).all()
    assert len(np.unique(smoothed)) == 20

"""Which model a user's recordings get: by strangers that are made, and never by what they are tested on."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from idecode_core import train_folder
from idecode_core.audio.read import Sound
from idecode_core.conformal import p_values
from idecode_core.errors import SettingError
from idecode_core.folder.record import read_training
from idecode_core.quality.metrics import auroc
from idecode_core.scorer import Scored
from idecode_core.scorers.merged import MergedScorer
from idecode_core.scorers.sound_statistics import SoundStatistics
from idecode_core.training.fit_sounds import judged
from idecode_core.training.strangers import strange_sounds
from tools.synthetic_sounds import MAKERS

RATE = 16_000


class Loudness:
    """A member that scores the loudest sample, the same in every draw."""

    modality = "audio"

    def score(self, samples, *, n, seed):  # type: ignore[no-untyped-def]
        found = np.array([[float(np.abs(sound.samples).max())] * n for sound in samples])
        return Scored(found, tuple(torch.zeros(n, 0) for _ in samples))


def tones(count: int) -> list[Sound]:
    t = np.arange(RATE) / RATE
    return [
        Sound(((i + 1) / 10 * np.sin(2 * np.pi * 440 * t)).astype(np.float32), RATE) for i in range(count)
    ]


def test_a_validation_clip_is_ranked_among_the_others():
    clips, member = tones(4), Loudness()
    references = (member.score(clips, n=10, seed=0).score_vectors,) * 2
    merged = MergedScorer((member, member), ("classifier", "statistics"), references, (1.0, 1.0))  # type: ignore[arg-type]
    found = judged(merged, clips, seed=0)
    loud = [float(np.abs(clip.samples).max()) for clip in clips]
    inside = [-2 * np.log(p_values(np.repeat(loud[:i] + loud[i + 1 :], 10), [loud[i]])[0]) for i in range(4)]
    strange = [float(np.abs(clip.samples).max()) for clip in strange_sounds(clips)["other sounds"]]
    outside = [-2 * np.log(p_values(np.repeat(loud, 10), [score])[0]) for score in strange]
    assert found["both"]["other sounds"] == pytest.approx(auroc(inside, outside))
    assert found["classifier"]["other sounds"] == pytest.approx(auroc(loud, strange))


@pytest.mark.parametrize("model", ["statistics", "both"])
def test_a_model_that_is_asked_for_is_made(model: str, tmp_path: Path):
    generator = np.random.default_rng(0)
    for name in ("noise", "claps"):
        (tmp_path / "heard" / name).mkdir(parents=True)
        for i in range(30):
            wave = MAKERS[name](0.5, RATE, generator=generator)
            soundfile.write(tmp_path / "heard" / name / f"{i}.wav", wave, RATE)
    made = train_folder(
        tmp_path / "heard",
        tmp_path / "out",
        audio=True,
        model=model,
        epochs=1,
        runs=tmp_path / "runs",
        device="cpu",
    )
    scorer = made.detector.scorer
    if model == "statistics":
        assert isinstance(scorer, SoundStatistics)
        assert made.parts["validation"] == 0
        assert {one.label: one.auroc for one in made.result.against}["recordings"] > 0.9
    else:
        assert isinstance(scorer, MergedScorer)
        assert "music" not in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
        assert len(scorer.references[0]) == made.parts["validation"] == 6
    assert made.choice == ""
    record = read_training(tmp_path / "out")
    assert record is not None
    assert record.recipe == model
    with pytest.raises(SettingError, match="mahalanobis is for pictures"):
        train_folder(
            tmp_path / "heard", tmp_path / "other", audio=True, model="mahalanobis", runs=tmp_path / "runs"
        )

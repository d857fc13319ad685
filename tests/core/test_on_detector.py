"""An attack on the detector itself: the victim is fooled and the expected score falls."""

import numpy as np
import pytest
import torch
from small import SIZE, random_images, small_model, small_scorer
from test_classic import Linear, around, classifier

from idecode_core.attacks import Victim, attack, attack_detector
from idecode_core.attacks.on_detector import base_score
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.scorers.merged import MergedScorer
from idecode_core.transforms import Rotations


def test_the_attack_on_the_detector_fools_the_victim_and_lowers_the_expected_score() -> None:
    pictures = random_images(30)
    victim = Victim.from_detector(around(Linear()))
    detector = Detector.calibrate("detector", classifier(), pictures, n_max=5)
    x = torch.from_numpy(pictures[:8]).permute(0, 3, 1, 2).float() / 255
    y = victim.all_logits(x).argmax(1)
    seen: list[float] = []
    both = attack_detector(victim, detector, x, y, n=2, steps=15, strength=0.1, seed=1, progress=seen.append)
    alone = attack(victim, x, y, "bim", 0.1)
    assert both.success.sum() >= 6
    assert both.linf.max() <= 0.1 + 1e-6
    assert both.attacked.min() >= 0
    assert both.attacked.max() <= 1
    assert seen == sorted(seen)
    assert seen[-1] == 1
    # On draws that the attack has not seen: the detector's own, which depend on the content.
    scores = {
        name: detector.score_vectors(one.samples, n=5).sum(1)
        for name, one in (("both", both), ("alone", alone))
    }
    hit = both.success & alone.success
    assert scores["both"][hit].mean() < scores["alone"][hit].mean()
    some = attack_detector(victim, detector, x[5:], y[5:], n=2, steps=15, strength=0.1, seed=1)
    assert torch.allclose(some.attacked, both.attacked[5:], atol=1e-5), "same seed, same picture, same result"


def test_a_base_score_is_what_the_scorer_says_for_the_same_draws() -> None:
    scorer = classifier()
    pictures = random_images(3)
    keys = np.stack([point.key for point in (scorer.prepare(picture, 7) for picture in pictures)])
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    expected = scorer.score(pictures, n=4, seed=7).score_vectors.mean(axis=1)
    assert np.allclose(base_score(scorer, x, keys, 4).detach(), expected, atol=1e-6)


def test_a_merged_detector_is_attacked_through_its_members() -> None:
    members = (classifier(), small_scorer())
    pictures = random_images(12)
    references = tuple(member.score(pictures, n=2, seed=0).score_vectors for member in members)
    merged = MergedScorer(members, ("a", "b"), references, (1.0, 1.0))
    victim = Victim.from_detector(Detector.calibrate("victim", members[0], pictures, n_max=2))
    x = torch.from_numpy(pictures[:4]).permute(0, 3, 1, 2).float() / 255
    found = attack_detector(victim, merged, x, victim.all_logits(x).argmax(1), n=1, steps=3, strength=0.1)
    assert found.right_before.all()
    assert (found.l2 > 0).all()


def test_detectors_that_this_attack_cannot_follow_are_said() -> None:
    victim = Victim.from_detector(Detector.calibrate("victim", classifier(), random_images(10), n_max=2))
    x = torch.rand(1, 3, SIZE, SIZE)
    y = victim.all_logits(x).argmax(1)

    class Lookup:
        kind, modality = "lookup", "image"

    class Listener:
        kind, modality = "listener", "audio"

    for scorer, words in (
        (Lookup(), "of the kind lookup gives no gradients"),
        (Listener(), "listens to sounds"),
        (classifier("argmax_disagreement"), "argmax_disagreement of this detector gives no gradients"),
        (ImageScorer(small_model(), Rotations(), "cross_entropy", Preprocessing(28)), "expected the same"),
    ):
        with pytest.raises(SettingError, match=words):
            attack_detector(victim, scorer, x, y)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="at least one step"):
        attack_detector(victim, classifier(), x, y, steps=0)

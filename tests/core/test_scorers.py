"""Every kind of scorer: how far its class is from `object`, and that whatever has a name has words for readers."""

from abc import ABC
from typing import Any, Generic, Protocol

import pytest
from small import random_images
from torch import nn

from idecode_core.conformal.calibration import AGGREGATES
from idecode_core.detector import Detector
from idecode_core.ncm import BASE_NCMS
from idecode_core.report.card import describe_scorer
from idecode_core.report.why import parts
from idecode_core.scorer import SCORERS, scorer_class
from idecode_core.transforms import TRANSFORM_SETS

NOT_COUNTED = {ABC, Generic, Protocol, object}


@pytest.mark.parametrize("kind", SCORERS)
def test_at_most_three_classes_lie_between_a_formula_and_object(kind: str) -> None:
    between = [parent for parent in scorer_class(kind).__mro__[1:] if parent not in NOT_COUNTED]
    assert len(between) <= 3, [parent.__name__ for parent in between]


@pytest.mark.parametrize("kind", SCORERS)
def test_a_class_is_found_by_the_kind_that_it_writes(kind: str) -> None:
    assert scorer_class(kind).kind == kind


def named() -> dict[str, Any]:
    """Everything that users meet by a name, and what stands under it."""
    scorers = {f"scorer {kind}": scorer_class(kind) for kind in SCORERS}
    others = (("base NCM", BASE_NCMS), ("transforms", TRANSFORM_SETS), ("aggregate", AGGREGATES))
    return scorers | {f"{what} {name}": thing for what, things in others for name, thing in things.items()}


@pytest.mark.parametrize("name", named())
def test_whatever_has_a_name_has_a_title_and_a_sentence_beside_it(name: str) -> None:
    thing = named()[name]
    sentence = thing.summary if name.startswith("scorer") else thing.means
    for words in (thing.title, sentence):
        assert words == words.strip() != "", name
        assert not words.endswith("."), name  # pages and cards end the sentence


@pytest.mark.parametrize("base_ncm", ["label_logit", "feature_change", lambda said, of_x: said.sum(dim=-1)])
def test_inspect_says_why_for_a_detector_around_a_users_network(base_ncm: Any) -> None:
    network = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 3))
    pictures = random_images(6)
    detector = Detector.around(network, calibration=pictures, size=16, base_ncm=base_ncm, n_max=2)
    found = parts(detector.scorer, detector.inspect(pictures[0], n=2), 0)
    assert all(len(part.words.split()) > 4 and "(...)" not in part.words for part in found)


def test_around_asks_for_the_base_ncm_with_words_unless_told_otherwise() -> None:
    detector = Detector.around(
        predict_fn=lambda x: x.mean(axis=(2, 3)), calibration=random_images(4), size=8, n_max=1
    )
    (part,) = parts(detector.scorer, detector.inspect(random_images(1)[0], n=1), 0)
    assert part.words == BASE_NCMS["label_logit"].means


def test_a_rival_says_in_its_card_what_it_does() -> None:
    text = describe_scorer({"kind": "sbp", "base_ncm": "sbp"})
    assert text.startswith("SBP: 1 less the largest share")
    assert "neighbour" in describe_scorer(
        {"kind": "neighbours", "base_ncm": "neighbours", "transforms": {"name": "small_affine"}}
    )

"""Known outliers choose only what tells them clearly better."""

import pytest
from test_fit_sounds import Loudness, tones

from idecode_core.quality.metrics import auroc
from idecode_core.scorers.merged import MergedScorer
from idecode_core.training.choice import KNOWN, Known, best, learned
from idecode_core.training.fit_sounds import CLEARLY, judged


def test_known_outliers_take_what_tells_them_clearly_better():
    clips, member = tones(4), Loudness()
    references = (member.score(clips, n=10, seed=0).score_vectors,) * 2
    merged = MergedScorer((member, member), ("classifier", "statistics"), references, (1.0, 1.0))  # type: ignore[arg-type]
    found = judged(merged, clips, 0, Known(tones(9)[2:], ()))
    assert found["statistics"][KNOWN] == pytest.approx(auroc(range(1, 5), range(3, 10)))
    assert best(found, CLEARLY) == best(judged(merged, clips, 0), CLEARLY)
    assert learned({"both": {KNOWN: 0.7}, "classifier": {KNOWN: 0.74}}, "both") == "both"
    assert learned({"both": {KNOWN: 0.7}, "classifier": {KNOWN: 0.76}}, "both") == "classifier"


def test_both_are_taken_unless_one_alone_is_clearly_better():
    tried = {
        "both": {"a": 0.7, "b": 0.8},
        "classifier": {"a": 0.9, "b": 0.6},
        "statistics": {"a": 0.5, "b": 0.5},
    }
    assert best(tried, CLEARLY) == "both"
    tried["classifier"] = {"a": 0.75 + 1.01 * CLEARLY, "b": 0.75 + 1.01 * CLEARLY}
    assert best(tried, CLEARLY) == "classifier"

"""Points one after the other: the procedures of online-fdr, by their definitions and by their promise."""

import sys

import numpy as np
import pytest

from idecode_core.conformal import p_values
from idecode_core.conformal.merging import e_values
from idecode_core.conformal.multiple import false_discovery_proportion
from idecode_core.conformal.online import PROCEDURES, online_discoveries
from idecode_core.errors import ScoreError, SettingError

Q = 0.2


def test_e_lond_is_its_definition() -> None:
    """e_t >= 1 / (q gamma_t (discoveries so far + 1)), gamma as online-fdr has it."""
    from online_fdr.core.utils.sequence import DefaultLondGammaSequence

    p = np.random.default_rng(0).random(300) ** 4
    gamma, found, expected = DefaultLondGammaSequence(c=0.07720838), 0, []
    for t, e in enumerate(e_values(p[None])[0], 1):
        expected.append(e >= 1 / (Q * gamma.calc_gamma(t, alpha=1.0) * (found + 1)))
        found += expected[-1]
    assert found > 10
    assert online_discoveries(p, Q, "e-lond").tolist() == expected


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_the_false_discovery_rate_is_kept_with_one_calibration_set_and_early_points_never_change(
    procedure,
) -> None:
    """Mean over 150 streams of 200 points, three in ten strange, minus 3.3 standard errors."""
    generator, proportions, found = np.random.default_rng(1), [], 0
    for _ in range(150):
        is_ood = generator.random(200) < 0.3
        p = p_values(generator.normal(size=2_000), generator.normal(size=200) + 4.0 * is_ood)
        flagged = online_discoveries(p, Q, procedure)
        proportions.append(false_discovery_proportion(flagged, is_ood))
        found += int(flagged.sum())
    assert np.mean(proportions) - 3.3 * np.std(proportions) / np.sqrt(150) <= Q
    assert (found > 150) == (procedure != "e-lond")  # for which k = 2,000 is too small, as its page says
    assert np.array_equal(online_discoveries(p[:50], Q, procedure), flagged[:50])


def test_bad_input_and_a_missing_package_are_one_sentence_each(monkeypatch) -> None:
    with pytest.raises(SettingError, match="one of lord"):
        online_discoveries([0.5], Q, "bh")
    with pytest.raises(SettingError, match="q must lie"):
        online_discoveries([0.5], 1.5, "addis")
    with pytest.raises(ScoreError, match="above 0"):
        online_discoveries([0.0], Q, "addis")
    monkeypatch.setitem(sys.modules, "online_fdr.e_values", None)
    with pytest.raises(SettingError, match=r"pip install idecode-studio\[online\]"):
        online_discoveries([0.5], Q, "addis")

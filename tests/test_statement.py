"""The guarantee in words, held against the law."""

import pytest

from idecode_core.conformal import FalseDetectionLaw
from idecode_core.guarantees.statement import Guarantee


@pytest.mark.parametrize(("k", "epsilon"), [(1000, 0.05), (75, 0.01), (20, 0.05)])
def test_the_statement_says_when_nothing_can_be_flagged(k, epsilon):
    guarantee = Guarantee(k, epsilon)
    can = FalseDetectionLaw(k, epsilon).J > 0
    assert ("nothing can ever be flagged" in guarantee.statement()) is not can
    assert (guarantee.corrected is None) == (k < guarantee.k_needed_when_sure)
    if guarantee.corrected is None:
        assert f"k = {guarantee.k_needed_when_sure:,}" in guarantee.correction()
    else:
        # By the law: with the corrected epsilon at least nine in ten calibration sets stay at or below epsilon.
        assert FalseDetectionLaw(k, guarantee.corrected).quantile(0.9) <= epsilon

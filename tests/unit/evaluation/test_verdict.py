"""The verdict of an interval and of a p-value, at their ends."""

from __future__ import annotations

import pytest

from cranfield.evaluation.verdict import verdict_of_interval, verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode


@pytest.mark.parametrize(
    ("low", "high", "sign", "margin", "expected"),
    [
        (0.01, 0.3, 1, None, VerdictCode.BETTER),
        (0.01, 0.3, -1, None, VerdictCode.WORSE),
        (0.0, 0.3, 1, None, VerdictCode.NOT_SIGNIFICANT),
        (-0.3, -0.01, 1, None, VerdictCode.WORSE),
        (-0.3, -0.01, -1, None, VerdictCode.BETTER),
        (-0.3, 0.0, 1, None, VerdictCode.NOT_SIGNIFICANT),
        (0.01, None, 1, None, VerdictCode.BETTER),
        (None, None, 1, 0.1, VerdictCode.NOT_SIGNIFICANT),
        (-0.09, 0.09, 1, 0.1, VerdictCode.EQUIVALENT),
        (0.01, 0.09, 1, 0.1, VerdictCode.EQUIVALENT),
        (-0.1, 0.09, 1, 0.1, VerdictCode.NOT_SIGNIFICANT),  # a difference as large as the margin is not excluded
        (-0.09, 0.1, 1, 0.1, VerdictCode.NOT_SIGNIFICANT),
    ],
)
def test_what_an_interval_supports(
    low: float | None, high: float | None, sign: int, margin: float | None, expected: VerdictCode
) -> None:
    assert verdict_of_interval(low, high, sign=sign, margin=margin) is expected


@pytest.mark.parametrize(
    ("p", "gain", "expected"),
    [
        (0.05, 0.1, VerdictCode.BETTER),  # significant at alpha itself
        (0.05, -0.1, VerdictCode.WORSE),
        (0.051, 0.1, VerdictCode.NOT_SIGNIFICANT),
        (0.01, 0.0, VerdictCode.NOT_SIGNIFICANT),
        (None, 0.1, VerdictCode.NOT_SIGNIFICANT),
    ],
)
def test_what_a_p_value_supports(p: float | None, gain: float, expected: VerdictCode) -> None:
    assert verdict_of_p(p, gain, 0.05) is expected

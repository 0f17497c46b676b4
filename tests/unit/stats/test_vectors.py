"""Differences, and what of them is rounding error."""

import numpy as np
import pytest

from cranfield.base.errors import UsageError
from cranfield.stats.describe import differences, nonzero


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        ([0.1 + 0.2], [0.3], [0.0]),
        ([0.5, 1.0], [1.0, 0.25], [0.5, -0.75]),
        ([0.0, 1e-300], [1e-300, 0.0], [1e-300, -1e-300]),  # small, and not the rounding of anything larger
        ([1e6], [1e6 + 1e-7], [0.0]),
        ([0.3], [0.3 + 1e-9], [0.3 + 1e-9 - 0.3]),
        ([], [], []),
    ],
)
def test_differences_are_candidate_minus_baseline_without_rounding(baseline, candidate, expected):
    assert differences(baseline, candidate).tolist() == expected


def test_sides_that_do_not_pair_are_refused():
    with pytest.raises(UsageError, match="different lengths") as caught:
        differences([0.1, 0.2], [0.1])
    assert (caught.value.problems[0].expected, caught.value.problems[0].got) == ("2 candidate values", "1")


@pytest.mark.parametrize(
    ("d", "kept"),
    [
        ([0.0, 0.5, -0.1], [0.5, -0.1]),
        ([1e-17, 0.5], [0.5]),
        ([1e-17, -2e-17], [1e-17, -2e-17]),
        ([0.0, 0.0], []),
        ([], []),
    ],
)
def test_a_difference_is_zero_when_it_is_rounding_beside_the_largest(d, kept):
    assert nonzero(np.array(d)).tolist() == kept

"""What is rounding and what is data; sums that no order changes; ends on the right side of zero."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.errors import UsageError
from cranfield.stats.fixed_point import fixed_point
from cranfield.stats.rounding import align_with_test, differences, nonzero


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
    with pytest.raises(UsageError, match="do not pair") as caught:
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


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=200), st.randoms())
def test_whole_units_sum_to_the_same_in_any_order(values, random):
    units = fixed_point(np.array(values)).units.tolist()
    assert all(unit == int(unit) for unit in units)
    forwards = sum(units)
    random.shuffle(units)
    assert sum(units) == forwards == math.fsum(units)
    assert abs(forwards) < 2**53


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=100))
def test_whole_units_are_the_values_to_a_few_parts_in_10_to_the_16_of_their_sum(values):
    fixed = fixed_point(np.array(values))
    size = math.fsum(map(abs, values))
    for value, unit in zip(values, fixed.units.tolist(), strict=True):
        assert abs(Fraction(value) - Fraction(unit) * Fraction(2) ** fixed.exponent) <= Fraction(size) / 2**51
        assert fixed.value(unit) == pytest.approx(value, abs=size * 1e-14, rel=1e-14)


def test_a_value_comes_back_without_made_up_digits():
    fixed = fixed_point(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    assert math.ldexp(float(fixed.units[0]), fixed.exponent) == 0.09999999999999964
    assert fixed.value(float(fixed.units[0])) == 0.1
    assert fixed.value(0.25) > 0  # a mean under one unit is not rounded away


def test_sums_within_rounding_of_zero_are_zero():
    fixed = fixed_point(np.array([0.1, 0.2, -0.3]))
    total = fixed.total
    assert fixed.zero_rounding(np.array([total, fixed.units[0]])).tolist() == [0.0, fixed.units[0]]
    assert fixed_point(np.zeros(3)).zero_rounding(np.zeros(1)).tolist() == [0.0]


@pytest.mark.parametrize(
    ("low", "high", "rejected", "upward", "expected"),
    [
        (0.0, 0.5, True, True, (2e-12, 0.5)),  # open at zero: the smallest step beside it
        (-0.5, 0.0, True, False, (-0.5, -2e-12)),
        (1e-18, 0.5, False, True, (0.0, 0.5)),
        (-0.5, -1e-18, False, False, (-0.5, 0.0)),
        (0.1, 0.5, True, True, (0.1, 0.5)),
        (-0.1, 0.5, False, True, (-0.1, 0.5)),
        (None, None, False, True, (None, None)),
    ],
)
def test_an_end_at_zero_goes_where_its_test_puts_it(low, high, rejected, upward, expected):
    assert align_with_test(low, high, rejected=rejected, upward=upward, scale=2.0) == expected

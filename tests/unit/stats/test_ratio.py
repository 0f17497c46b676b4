"""Ratios of sums: by hand, by their symmetries, and against the delta method where it is exact."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.describe import t_quantile
from cranfield.stats.ratio import ratio_difference, ratio_of_sums

POSITIVE = st.lists(
    st.tuples(*[st.floats(0.1, 100)] * 4).filter(lambda row: len(set(row)) == 4), min_size=2, max_size=8
)


def test_a_ratio_of_sums_counts_what_was_spent_without_success():
    assert ratio_of_sums([100.0, 300.0], [1.0, 0.0]) == 400
    assert ratio_of_sums([100.0], [0.0]) is None
    assert ratio_of_sums([], []) is None


def test_against_a_constant_ratio_the_ends_are_those_of_the_logarithm():
    # x 2, 4 over y 1, 1: ratio 3, e = (2 - 3) / 3, (4 - 3) / 3; std of e = sqrt(2) / 3, over sqrt(2): 1 / 3
    value, low, high = ratio_difference(([2.0, 4.0], [1.0, 1.0]), ([7.0, 7.0], [1.0, 1.0]))
    half = t_quantile(0.975, 1) / 3
    assert (value, low, high) == pytest.approx((-4, 3 * math.exp(-half) - 7, 3 * math.exp(half) - 7))


@settings(max_examples=min(40, settings().max_examples), deadline=None)
@given(POSITIVE, st.floats(0.01, 100))
def test_exchanged_sides_mirror_it_and_units_scale_it(rows, unit):
    x1, y1, x2, y2 = np.array(rows).T
    found = ratio_difference((x1, y1), (x2, y2))
    value, low, high = found
    assert low <= value <= high
    other = ratio_difference((x2, y2), (x1, y1))
    assert other == pytest.approx((-value, -high, -low), rel=1e-6, abs=1e-6)
    scaled = ratio_difference((unit * x1, y1), (unit * x2, y2))
    assert scaled == pytest.approx([unit * each for each in found], rel=1e-6, abs=1e-6 * unit)


@pytest.mark.parametrize(
    ("first", "second"), [(([1.0], [1.0]), ([1.0], [1.0])), (([1.0, 2.0], [0.0, 0.0]), ([1.0, 2.0], [1.0, 1.0]))]
)
def test_without_two_queries_or_a_success_there_is_none(first, second):
    assert ratio_difference(first, second) is None


def test_sides_of_different_queries_and_bad_levels_are_refused():
    with pytest.raises(UsageError, match="different queries"):
        ratio_difference(([1.0], [1.0]), ([1.0, 2.0], [1.0, 1.0]))
    with pytest.raises(UsageError, match="level"):
        ratio_difference(([1.0], [1.0]), ([1.0], [1.0]), 1.0)

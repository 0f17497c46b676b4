"""Mean, median, spread: exact sums, order-blind, None where undefined."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.describe import Description, describe

numbers = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Description(None, None, None, 0)),
        ([0.25], Description(0.25, 0.25, None, 1)),
        ([0.0, 1.0], Description(0.5, 0.5, math.sqrt(0.5), 2)),  # (.25 + .25) / 1
        ([1.0, 2.0, 6.0], Description(3.0, 2.0, math.sqrt(7.0), 3)),  # (4 + 1 + 9) / 2
    ],
)
def test_small_lists(values, expected):
    assert describe(values) == expected


def test_the_mean_is_summed_exactly():
    assert describe([1e16, 1.0, -1e16, 1.0]).mean == 0.5  # adding left to right loses both ones
    assert describe([0.1] * 10).mean == 0.1


def test_equal_values_have_no_spread_at_all():
    assert describe([0.1] * 7).std == 0.0
    assert describe([0.1 + 0.2, 0.3, 0.3]).std == 0.0
    assert describe([0.0, 0.0]).std == 0.0


def test_a_small_spread_is_a_spread():
    assert describe([1.0, 1.0 + 1e-9]).std == pytest.approx(1e-9 / math.sqrt(2), rel=1e-6)


@given(st.lists(numbers, min_size=1), st.randoms())
def test_the_order_of_the_values_does_not_matter(values, random):
    shuffled = values.copy()
    random.shuffle(shuffled)
    assert describe(shuffled) == describe(values)


@example([5e-324, 5e-324])  # halves of the smallest number are 0
@given(st.lists(numbers, min_size=2))
def test_equal_to_the_standard_library(values):
    about = describe(values)
    assert about.mean == pytest.approx(statistics.fmean(values), rel=1e-15, abs=1e-300)
    assert about.median == statistics.median(values)
    assert about.std == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-9 * max(map(abs, values)))


@pytest.mark.parametrize("bad", [[0.1, math.nan], [math.inf], [[0.1, 0.2]]])
def test_what_is_no_list_of_numbers_is_refused(bad):
    with pytest.raises(UsageError, match=r"not finite|axes"):
        describe(bad)


def test_the_argument_is_not_touched():
    values = np.array([3.0, 1.0, 2.0])
    describe(values)
    assert values.tolist() == [3.0, 1.0, 2.0]


def test_numbers_whose_sum_is_too_large_have_a_mean_and_no_sum():
    from cranfield.stats.describe import total

    about = describe([1e308, 1e308, 1e308])
    assert (about.mean, about.median, about.std) == (pytest.approx(1e308), 1e308, 0.0)
    assert total([1e308, 1e308]) is None
    assert total([]) is None
    assert total([1.0, 2.5]) == 3.5

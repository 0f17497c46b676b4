"""Kendall's tau, against SciPy and by hand."""

import math

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.rank_correlation import kendall_tau

tenths = st.integers(0, 6).map(lambda k: k / 6)


@given(st.lists(st.tuples(tenths, tenths), min_size=2, max_size=40))
def test_it_equals_scipy_with_ties(pairs):
    a, b = zip(*pairs, strict=True)
    expected = float(scipy.stats.kendalltau(a, b).statistic)
    found = kendall_tau(a, b)
    assert found is None if math.isnan(expected) else found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "tau"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 2, 4, 3], 4 / 6),  # 5 pairs agree, 1 does not
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(2 * 3)),  # 2 agree; 2 pairs are untied in a, 3 in b
    ],
)
def test_by_hand(a, b, tau):
    assert kendall_tau(a, b) == pytest.approx(tau)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [2.0]), ([1, 1, 1], [1, 2, 3]), ([1, 2], [0.1 + 0.2, 0.3])])
def test_without_an_order_there_is_no_tau(a, b):
    assert kendall_tau(a, b) is None


def test_rounding_makes_no_order():
    assert kendall_tau([0.1 + 0.2, 0.3, 0.5], [1, 2, 3]) == kendall_tau([0.3, 0.3, 0.5], [1, 2, 3])


def test_orders_that_do_not_pair_are_refused():
    with pytest.raises(UsageError, match="different lengths"):
        kendall_tau([1, 2], [1, 2, 3])

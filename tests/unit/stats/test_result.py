"""Holm's adjustment against statsmodels; what is no test does not count."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from cranfield.stats.result import holm

p_values = st.lists(st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.01, 0.02, 1.0])), max_size=12)


@pytest.mark.parametrize(
    ("given_values", "expected"),
    [
        ([], []),
        ([None], [None]),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # 3 * .01; 2 * .03; max(.06, 1 * .04)
        ([0.01, None, 0.04], [0.02, None, 0.04]),  # two tests, not three
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_small_families(given_values, expected):
    assert holm(given_values) == pytest.approx(expected)


@settings(max_examples=settings().max_examples // 5)  # statsmodels is slow
@given(p_values)
def test_equal_to_statsmodels(values):
    tested = [p for p in values if p is not None]
    adjusted = holm(values)
    assert [p is None for p in adjusted] == [p is None for p in values]
    if tested:
        expected = multipletests(tested, method="holm")[1]
        assert [p for p in adjusted if p is not None] == pytest.approx(expected.tolist(), rel=1e-12)


@given(p_values)
def test_it_never_makes_a_p_value_smaller_and_keeps_their_order(values):
    pairs = [(p, q) for p, q in zip(values, holm(values), strict=True) if p is not None]
    assert all(p <= q <= 1 for p, q in pairs)
    assert [q for _, q in sorted(pairs)] == sorted(q for _, q in pairs)

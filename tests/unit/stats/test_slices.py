"""Slices against their rest: the statistic, the permutation of the whole search, and effects that are shrunk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_ind

from cranfield.base.errors import UsageError
from cranfield.stats import slices
from cranfield.stats.slices import PRIOR, draws_for, shrunken_effects, slice_tests


def moderated(inside, outside, variance):
    """The t of the docstring, written out."""
    parts = [
        (((part - part.mean()) ** 2).sum() + PRIOR * variance) / (len(part) - 1 + PRIOR) / len(part)
        for part in (inside, outside)
    ]
    return (inside.mean() - outside.mean()) / np.sqrt(sum(parts))


def random_search(seed, n=40, n_slices=8):
    rng = np.random.default_rng(seed)
    members = rng.random((n_slices, n)) < 0.4
    members[:, 0], members[:, 1] = True, False
    return rng.normal(size=n), members


def test_the_statistic_by_hand():
    """Differences 1, 3 | 0, 0, 1, 1; mean 1, squares about it 0 + 4 + 1 + 1 + 0 + 0 = 6, variance 6 / 5.

    v_in = (2 + 2 * 1.2) / (1 + 2) = 4.4 / 3, v_out = (1 + 2.4) / (3 + 2) = .68; t = (2 - .5) / sqrt(4.4 / 6 + .17)
    """
    found = slice_tests([1, 3, 0, 0, 1, 1], np.array([[True, True, False, False, False, False]]))
    assert found.t[0] == pytest.approx(1.5 / np.sqrt(4.4 / 6 + 0.17))
    assert (found.n[0], found.inside[0], found.outside[0]) == pytest.approx((2, 2, 0.5))


def test_without_a_prior_the_statistic_is_that_of_welch(monkeypatch):
    monkeypatch.setattr(slices, "PRIOR", 0.0)
    differences, members = random_search(1)
    expected = [ttest_ind(differences[row], differences[~row], equal_var=False).statistic for row in members]
    assert slice_tests(differences, members, n_draws=1000).t == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_is_that_of_scipy(seed):
    """SciPy deals all 210 pairs of parts of 4 and 6; 20,000 permutations have a standard error of .0035 at most."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=10) + np.repeat([0.8, 0], [4, 6])
    members = np.arange(10) < 4
    variance = float(differences.var(ddof=1))
    exact = permutation_test(
        (differences[:4], differences[4:]),
        lambda x, y: abs(moderated(x, y, variance)),
        permutation_type="independent",
        alternative="greater",
        n_resamples=np.inf,
    )
    found = slice_tests(differences, members[np.newaxis], n_draws=20_000, seed=seed)
    assert abs(found.t[0]) == pytest.approx(exact.statistic)
    assert found.p[0] == pytest.approx(exact.pvalue, abs=0.015)
    assert found.p_adjusted[0] == found.p[0]


@given(st.integers(0, 2**32 - 1), st.integers(4, 60), st.integers(1, 12), st.booleans())
def test_adjusted_values_follow_the_order_of_t_and_are_not_below_the_raw_ones(seed, n, n_slices, is_coarse):
    differences, members = random_search(seed, n, n_slices)
    if is_coarse:
        differences = np.round(differences)
    families = [place % 2 for place in range(n_slices)]
    found = slice_tests(differences, members, families=families, shares=(0.8, 0.2), n_draws=1000)
    assert (found.p_adjusted >= found.p).all()
    assert (found.p >= 1 / 1000).all()
    for family in set(families):
        rows = np.flatnonzero(np.array(families) == family)
        stepped = found.p_adjusted[rows[np.argsort(-np.abs(found.t[rows]), kind="stable")]]
        assert (np.diff(stepped) >= 0).all()


def test_step_down_is_that_of_the_definition():
    """The largest |t| of a slice and of all below it, permutation by permutation, in plain Python."""
    differences, members = random_search(3, n=20, n_slices=5)
    found = slice_tests(differences, members, n_draws=1000, seed=4)
    variance = float(differences.var(ddof=1))
    order = sorted(range(5), key=lambda place: -abs(found.t[place]))
    counts = np.ones(5)
    for block in slices._permutations(4, 999, 20):
        for row in block:
            moved = differences[row]
            t = [abs(moderated(moved[each], moved[~each], variance)) for each in members]
            counts += [max(t[place] for place in order[at:]) >= abs(found.t[order[at]]) - 1e-9 for at in range(5)]
    assert found.p_adjusted[order] == pytest.approx(np.maximum.accumulate(counts / 1000))


def test_a_family_has_its_share_of_the_significance_level():
    differences, members = random_search(5, n_slices=2)
    differences[members[0]] += 0.4
    alone = slice_tests(differences, members[:1], n_draws=1000)
    both = slice_tests(differences, members, families=[0, 1], shares=(0.8, 0.2), n_draws=1000)
    assert both.p_adjusted == pytest.approx(np.minimum(1, both.p / [0.8, 0.2]))
    only = slice_tests(differences, members[:1], families=[0], shares=(0.8, 0.2), n_draws=1000)
    assert only.p_adjusted == pytest.approx(alone.p_adjusted)


@given(st.integers(0, 2**32 - 1))
def test_a_slice_and_its_rest_are_one_test(seed):
    """The same |t| and p-values; what is expected of both adds up to the mean of all, as what is seen does."""
    differences, members = random_search(seed)
    found = slice_tests(differences, np.concatenate([members, ~members]), n_draws=1000)
    first, second = slice(0, len(members)), slice(len(members), None)
    assert found.t[first] == pytest.approx(-found.t[second])
    assert found.p[first].tolist() == found.p[second].tolist()
    for means in (found.inside, found.shrunken):
        total = found.n[first] * means[first] + found.n[second] * means[second]
        assert total == pytest.approx(np.full(len(members), differences.sum()))


@pytest.mark.parametrize("value", [0.5, 0.1, -1 / 3, 0.0])
def test_equal_differences_are_no_finding(value):
    found = slice_tests([value] * 12, np.array([np.arange(12) < 4]))
    assert (found.t[0], found.p[0], found.p_adjusted[0]) == (0, 1, 1)
    assert found.shrunken[0] == pytest.approx(value)


def test_ten_equal_differences_in_a_slice_are_no_finding_where_most_are_equal():
    """Without the prior they would have no variance, and the t of any gap to the rest would be large."""
    differences = np.repeat([0.0, 1.0], [90, 10])
    members = np.arange(100) < 10
    assert slice_tests(differences, members[np.newaxis]).p[0] > 0.05


def test_parts_of_the_queries_do_not_change_the_result(monkeypatch):
    differences, members = random_search(6)
    whole = slice_tests(differences, members, n_draws=1000)
    monkeypatch.setattr(slices, "COLUMNS", 7)
    monkeypatch.setattr(slices, "ROWS", 1)
    parted = slice_tests(differences, members, n_draws=1000)
    for name in ("t", "p", "p_adjusted", "shrunken"):
        assert getattr(whole, name).tolist() == getattr(parted, name).tolist()


@pytest.mark.parametrize("row", [[True] * 6, [False] * 6])
def test_a_slice_of_all_queries_or_of_none_is_refused(row):
    with pytest.raises(UsageError, match="a slice has no query, or all of them"):
        slice_tests([1, 2, 3, 4, 5, 6], np.array([row]))


def test_no_slice_is_no_test():
    found = slice_tests([1.0, 2.0], np.zeros((0, 2), dtype=np.bool_))
    assert len(found.p_adjusted) == len(found.shrunken) == 0


def test_large_searches_have_fewer_draws():
    assert draws_for(20, 10) == slices.MAX_DRAWS
    assert draws_for(1_000_000, 400) == slices.MIN_DRAWS


def test_permutations_are_orders_of_all_queries():
    blocks = list(slices._permutations(1, 100, 9))
    rows = np.concatenate(blocks)
    assert rows.shape == (100, 9)
    assert (np.sort(rows, axis=1) == np.arange(9)).all()
    assert len({tuple(row) for row in rows.tolist()}) > 95


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.floats(0.01, 4))
def test_a_shrunken_effect_lies_between_zero_and_the_effect(effects, variance):
    values = np.array(effects)
    shrunken = shrunken_effects(values, np.full(len(values), variance))
    assert (np.abs(shrunken) <= np.abs(values) + 1e-12).all()
    assert (shrunken * values >= 0).all()


def test_shrunken_effects_are_nearer_to_the_truth_than_what_is_seen():
    """One effect of 4 standard errors among 49 of none: seen as far from the truth as 50 errors, squared 50 in the mean."""
    rng = np.random.default_rng(8)
    truth = np.repeat([4.0, 0.0], [1, 49])
    seen = truth + rng.normal(size=(100, 50))
    shrunken = np.array([shrunken_effects(row, np.ones(50)) for row in seen])
    assert ((shrunken - truth) ** 2).sum(axis=1).mean() < 10 < ((seen - truth) ** 2).sum(axis=1).mean()

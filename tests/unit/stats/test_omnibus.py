"""Many systems at once: against SciPy, against arithmetic by hand, and against counting every arrangement."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats import omnibus
from cranfield.stats.omnibus import (
    ALL_TIED,
    ONE_SYSTEM,
    cliques,
    critical_difference,
    friedman,
    letter_display,
    mean_ranks,
    permutation_omnibus,
)
from cranfield.stats.result import NO_QUERY

tenths = st.integers(0, 10).map(lambda k: k / 10)


def table(seed, queries, systems, decimals=1):
    return np.round(np.random.default_rng(seed).random((queries, systems)), decimals)


@pytest.mark.parametrize(("queries", "systems", "decimals"), [(5, 3, 4), (12, 4, 1), (50, 7, 1), (200, 3, 0)])
def test_friedman_equals_scipy_with_and_without_ties(queries, systems, decimals):
    values = table(queries, queries, systems, decimals)
    found, expected = friedman(values), scipy.stats.friedmanchisquare(*values.T)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert found.p_two_sided == pytest.approx(expected.pvalue, rel=1e-9)


def test_friedman_by_hand():
    # Ranks (1 best): 1 2 3, 1 3 2, 1 2 3, 2 1 3; sums 5 8 11 about 8: 9 + 0 + 9 = 18.
    # Squares of ranks: 4 * 14 = 56, less 4 * 3 * 16 / 4 = 48, is 8. chi2 = 2 * 18 / 8 = 4.5.
    values = np.array([[0.9, 0.5, 0.1], [0.9, 0.2, 0.3], [0.8, 0.4, 0.2], [0.5, 0.7, 0.1]])
    found = friedman(values)
    assert found.statistic == pytest.approx(4.5)
    # F = (4 - 1) * 4.5 / (4 * 2 - 4.5) = 13.5 / 3.5, on 2 and 6 degrees of freedom
    assert found.extra["f"] == pytest.approx(13.5 / 3.5)
    assert found.extra["p_f"] == pytest.approx(scipy.stats.f.sf(13.5 / 3.5, 2, 6))


def test_friedman_of_two_systems_is_the_sign_test_without_ties():
    # 7 of 10 up: chi2 = (7 - 3)^2 / 10, the square of the sign test's z
    values = np.array([[0.0, 1.0]] * 7 + [[1.0, 0.0]] * 3)
    assert friedman(values).statistic == pytest.approx(1.6)


def test_direction_mirrors_the_ranks_and_leaves_the_test():
    values = table(3, 20, 4)
    assert friedman(values).statistic == pytest.approx(friedman(values, higher_is_better=False).statistic)
    assert mean_ranks(values) + mean_ranks(values, higher_is_better=False) == pytest.approx(np.full(4, 5.0))


def test_the_same_order_in_every_query_has_no_finite_f():
    found = friedman(np.tile([0.9, 0.5, 0.1], (6, 1)))
    assert found.statistic == pytest.approx(12.0)  # Q (S - 1)
    assert (found.extra["f"], found.extra["p_f"]) == (None, 0.0)


@pytest.mark.parametrize("test", [friedman, permutation_omnibus])
def test_what_cannot_be_tested_is_said(test):
    assert test(np.zeros((0, 3))).note == NO_QUERY
    assert test(np.zeros((5, 1))).note == ONE_SYSTEM
    assert test(np.full((5, 3), 0.25)).p_two_sided == 1.0


def test_all_tied_is_said():
    assert friedman(np.full((5, 3), 0.1)).note == ALL_TIED


def test_values_that_differ_by_rounding_tie():
    assert mean_ranks(np.array([[0.1 + 0.2, 0.3, 0.2]])).tolist() == [1.5, 1.5, 3.0]
    assert friedman(np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])).note == ALL_TIED


@given(st.lists(st.lists(tenths, min_size=4, max_size=4), min_size=1, max_size=12))
def test_mean_ranks_are_those_of_scipy(rows):
    values = np.array(rows)
    assert mean_ranks(values) == pytest.approx(scipy.stats.rankdata(-values, axis=1).mean(axis=0))


def every_variance(values):
    """The variance of the means under each of the (S!)^Q arrangements."""
    orders = [itertools.permutations(row) for row in values.tolist()]
    return [np.mean(rows, axis=0).var(ddof=1) for rows in itertools.product(*orders)]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_exact_omnibus_test_counts_every_arrangement(seed):
    values = table(seed, 4, 3)
    found = permutation_omnibus(values)
    observed = values.mean(axis=0).var(ddof=1)
    assert found.statistic == pytest.approx(observed)
    every = np.array(every_variance(values))
    # All 6^4 = 1296 have the share of the 216 that leave the first query as it is: renaming systems changes no variance.
    assert found.extra == {"arrangements": 216, "exact": "yes"}
    assert found.p_two_sided == pytest.approx(np.mean(every >= observed - 1e-12))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_exact_omnibus_test_equals_scipy(seed):
    values = table(seed, 4, 3, 2)

    def spread(*systems):
        return np.var([system.mean() for system in systems], ddof=1)

    expected = scipy.stats.permutation_test(
        tuple(values.T), spread, permutation_type="samples", alternative="greater", vectorized=False, n_resamples=np.inf
    )
    found = permutation_omnibus(values)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_two_sided == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("systems", [2, 30])
def test_one_query_tells_nothing_of_however_many_systems(systems):
    values = table(0, 1, systems, 3)
    assert permutation_omnibus(values).p_two_sided == 1.0
    assert friedman(values).extra["p_f"] is None


def test_of_two_systems_the_omnibus_test_is_the_permutation_test():
    values = table(5, 12, 2)
    expected = scipy.stats.permutation_test(
        (values[:, 1] - values[:, 0],), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert permutation_omnibus(values).p_two_sided == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("systems", [3, 7])
def test_drawn_p_is_near_the_counted_one(systems, monkeypatch):
    values = table(11, 6 if systems == 3 else 2, systems, 2)
    exact = permutation_omnibus(values)
    monkeypatch.setattr("cranfield.stats.omnibus.EXACT_UP_TO", 1)
    drawn = permutation_omnibus(values, n_draws=20_000)
    assert (exact.extra["exact"], drawn.extra["exact"]) == ("yes", "no")
    p = exact.p_two_sided
    assert abs(drawn.p_two_sided - p) < 5 * np.sqrt(p * (1 - p) / 20_000)


def test_a_drawn_p_is_never_zero_and_depends_on_the_seed_alone():
    values = table(0, 60, 4, 3) + np.array([0.0, 0.0, 0.0, 2.0])
    first = permutation_omnibus(values, seed=3, n_draws=999)
    assert first.p_two_sided == 1 / 1000
    assert permutation_omnibus(values, seed=3, n_draws=999) == first


def test_the_names_of_systems_do_not_matter_where_all_are_counted():
    values = table(4, 5, 3)
    turned = values[:, [2, 0, 1]]
    assert permutation_omnibus(turned).p_two_sided == permutation_omnibus(values).p_two_sided


@pytest.mark.parametrize(
    ("systems", "alpha", "factor"),
    # Demsar 2006, table 5: q / sqrt(2)
    [(2, 0.05, 1.960), (3, 0.05, 2.343), (5, 0.05, 2.728), (10, 0.05, 3.164), (2, 0.10, 1.645), (10, 0.10, 2.920)],
)
def test_the_critical_difference_has_the_factors_of_the_book(systems, alpha, factor):
    expected = factor * np.sqrt(systems * (systems + 1) / (6 * 30))
    assert critical_difference(30, systems, alpha) == pytest.approx(expected, rel=3e-4)


@pytest.mark.parametrize(
    ("ranks", "difference", "groups"),
    [
        ([3.143, 2.000, 2.893, 1.964], 1.25, [(3, 1, 2, 0)]),  # Demsar's example: 3.143 - 1.964 is 1.179
        ([3.143, 2.000, 2.893, 1.964], 1.15, [(3, 1, 2), (1, 2, 0)]),
        ([1.0, 3.0, 5.0], 1.0, []),
        ([1.0, 1.0], 0.0, [(0, 1)]),
        ([2.0], 1.0, []),
        ([], 1.0, []),
    ],
)
def test_groups_that_are_not_told_apart(ranks, difference, groups):
    assert cliques(ranks, difference) == groups


@given(st.lists(tenths, max_size=8), st.integers(0, 5).map(lambda k: k / 10))
def test_a_pair_is_in_a_group_exactly_when_it_is_not_told_apart(ranks, difference):
    together = {frozenset(pair) for group in cliques(ranks, difference) for pair in itertools.combinations(group, 2)}
    near = {
        frozenset(pair)
        for pair in itertools.combinations(range(len(ranks)), 2)
        if abs(ranks[pair[0]] - ranks[pair[1]]) <= difference
    }
    assert together == near


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_ranks(np.zeros((0, 3))),
        lambda: friedman(np.array([[1.0, np.nan]])),
        lambda: critical_difference(0, 3),
        lambda: critical_difference(10, 1),
        lambda: critical_difference(10, 3, 1.5),
        lambda: permutation_omnibus(np.zeros((3, 3)), n_draws=1),
        lambda: permutation_omnibus(np.zeros((3, 3)), seed=-1),
    ],
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(UsageError):
        call()


@pytest.mark.parametrize("most", [2_000, 2])
@given(n=st.integers(0, 9), share=st.floats(0, 1), draw=st.randoms(use_true_random=False))
def test_a_letter_is_shared_exactly_where_a_pair_is_not_significant(most, n, share, draw):
    pairs = list(itertools.combinations(range(n), 2))
    different = [pair if draw.random() < 0.5 else pair[::-1] for pair in pairs if draw.random() < share]
    draw.shuffle(different)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(omnibus, "MAX_COLUMNS", most)  # beyond it groups are grown and not split
        groups = letter_display(n, different)
    together = {pair for group in groups for pair in itertools.combinations(group, 2)}
    assert together == set(pairs) - {(min(pair), max(pair)) for pair in different}
    assert {system for group in groups for system in group} == set(range(n))
    assert not any(set(one) <= set(other) for one, other in itertools.permutations(groups, 2))
    for group in groups:  # no letter is left over: without it some pair, or a system, shares none
        rest = [other for other in groups if other != group]
        within = itertools.combinations_with_replacement(group, 2)
        assert not all(any({*pair} <= {*other} for other in rest) for pair in within)


@pytest.mark.parametrize(
    ("n", "different", "groups"),
    [
        (0, [], []),
        (1, [], [(0,)]),
        (3, [], [(0, 1, 2)]),  # a, a, a
        (3, [(0, 2)], [(0, 1), (1, 2)]),  # a, ab, b
        (3, [(0, 1)], [(0, 2), (1, 2)]),  # a, b, ab: the last is in doubt against both
        (3, [(0, 1), (0, 2), (1, 2)], [(0,), (1,), (2,)]),  # a, b, c
        # a ring, 0-1, 1-2, 2-3 and 3-0 not significant: ab, ac, cd, bd
        (4, [(0, 2), (1, 3)], [(0, 1), (0, 3), (1, 2), (2, 3)]),
    ],
)
def test_letters_of_a_few_systems(n, different, groups):
    assert letter_display(n, different) == groups

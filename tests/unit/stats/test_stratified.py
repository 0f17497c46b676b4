"""The declared test with classes as strata: known values, limit cases, and what the sign-flip tests need not change."""

import math
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats import stratified as stratified_module
from cranfield.stats.paired import paired_t
from cranfield.stats.stratified import stratified_t
from cranfield.stats.table import TESTS, Paired

NUMBERS = st.integers(-8, 8).map(lambda n: n / 8)
ROWS = st.lists(st.tuples(NUMBERS, st.sampled_from("abc")), min_size=2, max_size=9)


def paired(difference, alpha=0.05):
    difference = np.asarray(difference, dtype=np.float64)
    return Paired(np.zeros(len(difference)), difference, difference, alpha, 0, 2000)


def test_what_every_test_that_can_be_declared_does_with_classes_is_documented():
    about = stratified_module.__doc__.casefold()
    declared = [name for name, spec in TESTS.items() if spec.can_declare]
    assert [name for name in declared if not re.search(rf"\b{name}\b", about)] == []


def test_the_error_of_t_is_that_within_classes():
    # a: 1, 2, 3: variance 1, n 3; b: 10, 14: variance 8, n 2. w = .6, .4; v = .36 / 3 + .16 * 8 / 2 = .12 + .64
    # df = .76^2 / (.12^2 / 2 + .64^2 / 1) = .5776 / (.0072 + .4096); mean = 30 / 5
    result = stratified_t([1, 2, 3, 10, 14], ["a", "a", "a", "b", "b"])
    assert result.statistic == pytest.approx(6 / math.sqrt(0.76))
    assert result.extra["df"] == pytest.approx(0.5776 / 0.4168)
    assert result.extra["strata"] == 2
    # one class: mean 6, and the spread between the classes counts too
    assert paired_t([1, 2, 3, 10, 14]).statistic < result.statistic


def test_classes_that_differ_widen_the_ordinary_t_interval_and_not_the_stratified_one():
    rng = np.random.default_rng(1)
    difference = np.concatenate([rng.normal(0.4, 0.1, 30), rng.normal(-0.2, 0.1, 30)])
    labels = ["up"] * 30 + ["down"] * 30
    ordinary, within = paired_t(difference), stratified_t(difference, labels)
    assert within.ci_high - within.ci_low < (ordinary.ci_high - ordinary.ci_low) / 2
    assert within.ci_low < 0.1 < within.ci_high


def test_classes_of_one_query_are_one_class_together():
    together = stratified_t([1, 2, 4, 7, 9], ["a", "a", "a", "x", "x"])
    assert stratified_t([1, 2, 4, 7, 9], ["a", "a", "a", "b", "c"]) == together
    # a single one joins the smallest other
    assert stratified_t([1, 2, 5, 3, 4, 6], [*"aabbb", "c"]) == stratified_t([1, 2, 6, 5, 3, 4], [*"aaabbb"])


@pytest.mark.parametrize(
    ("difference", "labels"),
    [([1.0, 2.0, 4.0], "aaa"), ([1.0, 2.0, 4.0], "abc"), ([1.0, 1.0, 3.0, 3.0], "aabb"), ([2.0], "a"), ([], "")],
)
def test_one_class_or_no_spread_within_any_is_the_ordinary_t_test(difference, labels):
    assert stratified_t(difference, labels) == paired_t(difference)


def test_each_difference_has_a_label():
    with pytest.raises(UsageError, match="3 differences and 2 labels"):
        stratified_t([1, 2, 3], ["a", "b"])


@given(ROWS)
def test_the_permutation_test_is_that_of_all_permutations_within_classes(rows):
    difference = np.array([value for value, _ in rows])
    labels = [label for _, label in rows]
    # the sum of each class under all sign patterns of that class, and all combinations of the classes
    sums = [
        [sum(s * d for s, d in zip(signs, part, strict=True)) for signs in product((1, -1), repeat=len(part))]
        for label in sorted(set(labels))
        if (part := [d for d, of in rows if of == label])
    ]
    observed, totals = float(difference.sum()), np.array([sum(each) for each in product(*sums)])
    tails = [np.mean(totals >= observed - 1e-9), np.mean(totals <= observed + 1e-9)]
    result = TESTS["permutation"].run(paired(difference))  # stratified as it is
    assert result.p_two_sided == pytest.approx(min(1.0, 2 * min(tails)))


@given(ROWS, st.permutations("abc"))
def test_neither_the_names_of_classes_nor_the_order_of_queries_count(rows, names):
    values, labels = [value for value, _ in rows], [label for _, label in rows]
    result = stratified_t(values, labels)
    renamed = dict(zip("abc", names, strict=True))
    other = stratified_t(values[::-1], [renamed[label] for label in labels[::-1]])
    mirrored = stratified_t([-value for value in values], labels)
    for name in ("p_two_sided", "ci_low", "ci_high"):
        assert getattr(other, name) == pytest.approx(getattr(result, name), nan_ok=True)
    assert mirrored.p_two_sided == pytest.approx(result.p_two_sided)


@pytest.mark.slow
def test_no_more_than_alpha_false_alarms_where_classes_differ_and_the_mean_does_not():
    rng = np.random.default_rng(7)
    labels = ["a"] * 12 + ["b"] * 12 + ["c"] * 6
    effects = np.array([0.3] * 12 + [-0.2] * 12 + [-0.2] * 6)  # (12 x .3 - 18 x .2) / 30 = 0
    rejected = sum(stratified_t(rng.normal(effects, 0.5), labels).p_two_sided <= 0.05 for _ in range(2000))
    assert rejected / 2000 <= 0.065

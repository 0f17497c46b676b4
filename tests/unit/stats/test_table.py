"""The table of tests, and running all of it at once."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.permutation import permutation
from cranfield.stats.result import TestResult
from cranfield.stats.table import DEFAULT_DRAWS, TESTS, run_tests

DECLARABLE = [name for name, spec in TESTS.items() if spec.can_declare]
ALWAYS = ["permutation", "wilcoxon", "t", "sign", "bootstrap"]
QUICK = {"n_draws": 400}

grid = st.integers(0, 6).map(lambda k: k / 6)
pairs = st.lists(st.tuples(grid, grid), max_size=25)


def sides(rows):
    return tuple(np.array([row[side] for row in rows], dtype=float) for side in (0, 1))


def test_the_names_are_fixed():
    assert list(TESTS) == ["permutation", "wilcoxon", "t", "sign", "mcnemar", "bootstrap", "tost"]
    assert DECLARABLE == ALWAYS
    assert DEFAULT_DRAWS == 100_000


@pytest.mark.parametrize("name", TESTS)
def test_every_row_says_what_it_is(name):
    spec = TESTS[name]
    assert spec.name == name
    assert spec.sentence.endswith((".", "?"))
    assert any(character.isdigit() for character in spec.source)
    assert bool(spec.interval) or not spec.can_declare


@given(pairs, st.sampled_from([0.01, 0.05, 0.2]))
def test_verdict_by_p_and_verdict_by_interval_never_differ(rows, alpha):
    results = run_tests(*sides(rows), alpha=alpha, **QUICK)
    for name in DECLARABLE:
        result = results[name]
        low, high = result.ci_low, result.ci_high
        excluded = (low is not None and low > 0) or (high is not None and high < 0)
        assert (result.p_two_sided is not None and result.p_two_sided <= alpha) == excluded, name
        assert low is None or high is None or low <= high, name


@given(pairs)
def test_every_number_can_be_written_as_json(rows):
    for result in run_tests(*sides(rows), margin=0.1, **QUICK).values():
        fields = dataclasses.asdict(result)
        for value in (*fields.values(), *result.extra.values()):
            assert not isinstance(value, float) or math.isfinite(value)
            assert type(value) in (float, int, bool, str, dict, type(None))
        for p in (result.p_two_sided, result.p_one_sided):
            assert p is None or 0 <= p <= 1


@given(pairs)
def test_one_sided_means_candidate_above_baseline(rows):
    a, b = sides(rows)
    up, down = run_tests(a, b, **QUICK), run_tests(b, a, **QUICK)
    for name, result in up.items():
        if result.p_one_sided is None or result.p_two_sided is None:
            continue
        smaller = min(result.p_one_sided, down[name].p_one_sided)
        assert min(1.0, 2 * smaller) == pytest.approx(result.p_two_sided, rel=1e-9), name


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_very_few_queries_give_notes_and_no_warning(n):
    results = run_tests([0.25] * n, [0.5] * n, margin=0.5)
    assert list(results) == [*ALWAYS, "tost"] if n else [*ALWAYS[:4], "mcnemar", "bootstrap", "tost"]
    for name, result in results.items():
        assert result.p_two_sided is not None or result.note or name == "tost"
        if n == 0:
            assert result.note == "no query to test"
            assert result.p_two_sided is None


def test_mcnemar_runs_where_both_sides_are_right_or_wrong_only():
    assert "mcnemar" in run_tests([0.0, 1.0, 1.0], [1.0, 1.0, 0.0], **QUICK)
    assert "mcnemar" not in run_tests([0.0, 1.0, 0.5], [1.0, 1.0, 0.0], **QUICK)


def test_tost_runs_where_a_margin_is_stated_only():
    assert "tost" not in run_tests([0.1, 0.2], [0.2, 0.2], **QUICK)
    assert run_tests([0.1, 0.2], [0.2, 0.2], margin=0.3, **QUICK)["tost"].extra["margin"] == 0.3


def test_a_permutation_result_that_is_there_is_used():
    ready = TestResult(0.5, 0.25, 0.125, note="ready")
    assert run_tests([0.1, 0.2], [0.2, 0.2], permuted=ready, **QUICK)["permutation"] is ready


def test_draws_and_seed_reach_the_tests_that_draw():
    rng = np.random.default_rng(0)
    a, b = rng.random(30), rng.random(30)
    results = run_tests(a, b, seed=3, n_draws=500)
    assert results["permutation"] == permutation(b - a, seed=3, n_draws=500)
    assert results["bootstrap"].extra["resamples"] == 499
    assert run_tests(a, b, seed=3, n_draws=500) == results
    assert run_tests(a, b, n_draws=50_000)["bootstrap"].extra["resamples"] == 19_999


def test_rounding_between_the_sides_is_no_difference():
    results = run_tests([0.1 + 0.2] * 8, [0.3] * 8, **QUICK)
    assert results["permutation"].p_two_sided == 1.0
    assert results["sign"].note == "no query differs"


def test_the_published_pair(cupertino):
    results = run_tests(*cupertino("mrr"))
    assert (results["wilcoxon"].statistic, results["wilcoxon"].extra["n_nonzero"]) == (1.5, 14)
    assert round(results["wilcoxon"].extra["p_normal_two_sided"], 6) == 0.001147
    assert round(results["wilcoxon"].extra["p_normal_one_sided"], 6) == 0.000574
    assert results["permutation"].statistic == pytest.approx(0.15)  # .9467 - .7967
    assert all(results[name].ci_low > 0 for name in DECLARABLE)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [([0.1], [0.1, 0.2], "different lengths"), ([0.1, math.nan], [0.1, 0.2], "not finite"), ([[0.1]], [[0.2]], "axes")],
)
def test_what_does_not_pair_is_refused(a, b, words):
    with pytest.raises(UsageError, match=words):
        run_tests(a, b)

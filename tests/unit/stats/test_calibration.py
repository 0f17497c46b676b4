"""Calibration kernels: worked examples, boundaries, laws, and parity with scikit-learn and statsmodels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.stats import calibration as c
from cranfield.stats.confusion import exact_interval

pairs = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=60)


def arrays(rows: list[tuple[int, bool]]) -> tuple[c.Floats, c.Bools]:
    return np.array([score / 100 for score, _ in rows]), np.array([right for _, right in rows])


@pytest.mark.parametrize("n_bins", [2, 4, 5, 10, 20])
def test_a_boundary_belongs_to_the_bin_that_begins_there(n_bins: int) -> None:
    """Every k / 100 as a literal, as a sum and as a difference of floats: the bin is that of the exact fraction."""
    for k in range(101):
        wanted = min(Fraction(k, 100) * n_bins // 1, n_bins - 1)
        made = [k / 100, 1 - (100 - k) / 100, sum([0.01] * k), 0.7 - (70 - k) / 100]
        assert c.equal_width_bins(np.array(made), n_bins).tolist() == [wanted] * 4, k


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_threshold_is_reached_by_what_adds_up_to_it(a: int, b: int) -> None:
    score = abs(a - b) / 100
    made = abs(a / 100 - b / 100)
    assert c.routed(np.array([made]), np.array([True]), score) == (1, 1)
    assert c.routed(np.array([made]), np.array([True]), score + 0.01) == (0, 0)


@given(pairs)
def test_bins_of_equal_mass_are_ordered_and_keep_equal_scores_together(rows: list[tuple[int, bool]]) -> None:
    scores, _ = arrays(rows)
    bins = c.equal_mass_bins(scores)
    assert bins.max() < c.BINS_OF_FEW
    for first in range(len(scores)):
        for second in range(len(scores)):
            if scores[first] == scores[second]:
                assert bins[first] == bins[second]
            elif scores[first] < scores[second]:
                assert bins[first] <= bins[second]


def test_bins_of_equal_mass_have_as_many_answers_where_scores_differ() -> None:
    assert np.bincount(c.equal_mass_bins(np.linspace(0, 1, 100))).tolist() == [20] * 5
    assert np.bincount(c.equal_mass_bins(np.linspace(0, 1, 199))).max() <= 40
    assert np.bincount(c.equal_mass_bins(np.linspace(0, 1, 200))).tolist() == [20] * 10


@given(pairs)
def test_the_bins_hold_every_answer_once_and_their_gaps_are_the_ece(rows: list[tuple[int, bool]]) -> None:
    scores, correct = arrays(rows)
    for bins, n_equal in ((c.equal_width_bins(scores), 10), (c.equal_mass_bins(scores), None)):
        held = c.reliability(scores, correct, bins, n_equal=n_equal)
        assert sum(each.n for each in held) == len(rows)
        assert sum(each.right for each in held) == correct.sum()
        gaps = sum(each.n * abs(each.mean_score - each.share) for each in held) / len(rows)
        assert c.expected_calibration_error(scores, correct, bins) == pytest.approx(gaps, abs=1e-12)
        assert all(each.low - c.EDGE <= each.mean_score <= each.high + c.EDGE for each in held)
        assert all(
            each.interval[0] - 1e-12 <= each.share <= each.interval[1] + 1e-12 for each in held
        )  # 5e-17 for 0 of 5
        assert gaps >= abs(np.mean(scores - correct)) - 1e-12  # the net bias is a lower bound of every ECE


def test_the_null_distribution_is_that_of_the_scores() -> None:
    """Four answers at .5, all right. Mean of |.5 - K/4|, K ~ Bin(4, .5): (2*.5*1 + 2*.25*4) / 16 = .1875; p = 2/16."""
    scores, correct = np.full(4, 0.5), np.ones(4, dtype=bool)
    bias, ece = c.null_tests(scores, correct, [c.equal_width_bins(scores)], seed=7, draws=40_000)
    assert (bias.value, ece.value) == (-0.5, 0.5)
    assert bias.null_mean == pytest.approx(0, abs=0.005)
    assert ece.null_mean == pytest.approx(0.1875, abs=0.003)
    assert bias.p == ece.p == pytest.approx(0.125, abs=0.006)


def test_scores_of_0_and_1_are_certain_in_every_draw() -> None:
    scores = np.array([0.0, 1.0, 1.0])
    right = c.null_tests(scores, np.array([False, True, True]), [c.equal_width_bins(scores)], draws=99)
    assert [(test.value, test.null_mean, test.p) for test in right] == [(0, 0, 1), (0, 0, 1)]
    wrong = c.null_tests(scores, np.array([False, True, False]), [c.equal_width_bins(scores)], draws=99)
    assert wrong[0].p == 0.01  # no draw is like this: (1 + 0) / (1 + 99)


def test_a_seed_gives_one_p_value() -> None:
    scores, correct = arrays([(30, True), (80, False), (60, True)] * 8)
    bins = [c.equal_mass_bins(scores)]
    first = c.null_tests(scores, correct, bins, seed=1, draws=500)
    assert c.null_tests(scores, correct, bins, seed=1, draws=500) == first
    assert c.null_tests(scores, correct, bins, seed=2, draws=500) != first


def sample(seed: int, n: int = 80) -> tuple[c.Floats, c.Bools]:
    draw = np.random.default_rng(seed)
    scores = np.round(draw.uniform(0.02, 0.98, n), 2)
    return scores, draw.random(n) < scores**1.5


def test_slope_and_intercept_solve_the_score_equations_and_ranks_are_counted() -> None:
    """At the maximum, residuals sum to 0, and so do residuals times the logit; an AUROC is a count over pairs."""
    scores, correct = sample(9)
    fit, logit = c.logistic_fit(scores, correct), np.log(scores / (1 - scores))
    assert fit is not None
    residual = correct - 1 / (1 + np.exp(-(fit.intercept + fit.slope * logit)))
    assert [residual.sum(), residual @ logit] == pytest.approx([0, 0], abs=1e-8)
    right, wrong = scores[correct][:, None], scores[~correct][None, :]
    assert c.auroc(scores, correct) == pytest.approx(((right > wrong) + (right == wrong) / 2).mean())


@pytest.mark.slow  # importing both libraries takes 4 s
@pytest.mark.parametrize("seed", range(4))
def test_figures_are_those_of_scikit_learn_and_statsmodels(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    models = pytest.importorskip("statsmodels.api")
    scores, correct = sample(seed)
    assert c.brier_score(scores, correct) == pytest.approx(metrics.brier_score_loss(correct, scores))
    assert c.log_loss(scores, correct) == pytest.approx(metrics.log_loss(correct, scores))
    assert c.auroc(scores, correct) == pytest.approx(metrics.roc_auc_score(correct, scores))
    logit = models.Logit(correct.astype(float), models.add_constant(np.log(scores / (1 - scores)))).fit(disp=0)
    fit = c.logistic_fit(scores, correct)
    assert fit is not None
    assert (fit.intercept, fit.slope) == pytest.approx(tuple(logit.params), abs=1e-6)
    ends = [*fit.intercept_interval, *fit.slope_interval]
    assert ends == pytest.approx(logit.conf_int().ravel().tolist(), abs=1e-5)
    assert fit.n_clipped == 0


@pytest.mark.parametrize(
    "rows",
    [
        [(50, True), (50, False)],  # one score
        [(10, True), (90, True)],  # one outcome
        [(10, False), (20, False), (80, True)],  # separated
        [(10, True), (20, False), (80, False)],  # separated the other way
        [(10, False), (50, True), (50, False), (90, True)],  # separated but for a tie
    ],
)
def test_there_is_no_slope_without_a_finite_maximum(rows: list[tuple[int, bool]]) -> None:
    assert c.logistic_fit(*arrays(rows)) is None


def test_figures_that_are_not_defined_are_none() -> None:
    assert c.log_loss(*arrays([(100, False), (50, True)])) is None  # -log 0
    assert c.log_loss(*arrays([(100, True), (0, False)])) == 0
    assert c.brier_skill(*arrays([(90, True)])) is None
    assert c.brier_skill(*arrays([(100, True), (0, False)])) == 1
    assert c.auroc(*arrays([(90, True), (80, True)])) is None
    assert c.auroc(*arrays([(50, True), (50, False)])) == 0.5


@given(pairs)
def test_risk_and_coverage(rows: list[tuple[int, bool]]) -> None:
    scores, correct = arrays(rows)
    points = c.risk_coverage(scores, correct)
    assert [point.threshold for point in points] == sorted(set(scores.tolist()), reverse=True)
    for point in points:
        assert (point.n, point.right) == c.routed(scores, correct, point.threshold)
    assert points[-1].coverage == 1
    assert 0 <= c.area_under_risk_coverage(scores, correct) <= 1


def test_aurc_of_equal_scores_is_the_expected_one() -> None:
    """In either order the risks are (0, 1/2) or (1, 1/2): mean (.25 + .75) / 2 = .5."""
    assert c.area_under_risk_coverage(*arrays([(50, True), (50, False)])) == 0.5
    assert c.area_under_risk_coverage(*arrays([(90, True), (50, False)])) == 0.25


@given(pairs, st.sampled_from([0.5, 0.8, 0.9]))
def test_an_advised_threshold_has_its_lower_bound(rows: list[tuple[int, bool]], target: float) -> None:
    scores, correct = arrays(rows)
    found = c.supported_threshold(scores, correct, target)
    if found is not None:
        threshold, n, right, lower = found
        assert (n, right) == c.routed(scores, correct, threshold)
        assert target <= lower <= exact_interval(right, n, 0.9)[0]


def test_a_threshold_is_advised_only_where_the_data_support_it() -> None:
    assert c.supported_threshold(*arrays([(90, True)] * 7), 0.8) is None  # .05^(1/7) = .65
    assert c.supported_threshold(*arrays([(90, True)] * 14), 0.8) == (0.9, 14, 14, pytest.approx(0.05 ** (1 / 14)))
    mixed = [(90, True)] * 60 + [(70, True)] * 60 + [(30, False)] * 20
    found = c.supported_threshold(*arrays(mixed), 0.8)
    assert found is not None
    assert found[:3] == (0.7, 120, 120)  # three candidates: .0, .7 and .9, and 120 of 140 is too uncertain
    assert found[3] == pytest.approx((0.05 / 3) ** (1 / 120))

"""Statistics of the calibration slope: worked examples, where it has no estimate, and parity with SciPy, statsmodels and scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from cranfield.stats import calibration as c
from cranfield.stats import calibration as s

pairs = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=60)


def arrays(rows: list[tuple[int, bool]]) -> tuple[c.Floats, c.Bools]:
    return np.array([score / 100 for score, _ in rows]), np.array([right for _, right in rows])


def sample(seed: int, n: int = 120) -> tuple[c.Floats, c.Bools]:
    """Rounded scores, so that some are 0 and 1; the slope is about .5."""
    draw = np.random.default_rng(seed)
    scores = np.round(draw.beta(0.4, 0.4, n), 2)
    return scores, draw.random(n) < (0.25 + scores / 2)


@given(pairs)
def test_every_statistic_is_finite_whatever_the_answers(rows: list[tuple[int, bool]]) -> None:
    scores, correct = arrays(rows)
    found = [s.slope_statistic(scores, correct, slope) for slope in (0.0, 0.5, 1.0, 2.0)]
    assert np.isfinite([*found, s.rank_statistic(scores, correct)]).all()
    # The profile likelihood is concave: what speaks for a slope over 2 speaks for one over .5, though in other units of error.
    signs = np.sign(np.round(found, 9)).tolist()
    assert signs == sorted(signs, reverse=True)
    for weights in (s.slope_weights(scores), s.spiegelhalter_weights(scores)):
        variance = float(weights**2 @ (scores * (1 - scores)))
        assert variance == pytest.approx(1) or not weights.any()
    needed = s.answers_needed(scores, 0.12, (0.5, 2.0), 0.04)
    assert needed is None or needed >= 1


@given(pairs)
def test_outcomes_the_other_way_turn_the_signs(rows: list[tuple[int, bool]]) -> None:
    scores, correct = arrays(rows)
    assert s.rank_statistic(scores, ~correct) == pytest.approx(-s.rank_statistic(scores, correct))
    assert s.rank_statistic(1 - scores, correct) == pytest.approx(-s.rank_statistic(scores, correct))
    mirrored = s.slope_statistic(1 - scores, ~correct, 1.0)  # a score of the wrong answer is as calibrated
    assert mirrored == pytest.approx(s.slope_statistic(scores, correct, 1.0), abs=1e-6)


def test_the_statistic_is_0_at_the_fitted_slope() -> None:
    scores, correct = sample(3)
    fit = c.logistic_fit(scores, correct)
    assert fit is not None
    assert s.slope_statistic(scores, correct, fit.slope) == pytest.approx(0, abs=1e-6)
    assert s.slope_statistic(scores, correct, fit.slope - 0.1) > 0 > s.slope_statistic(scores, correct, fit.slope + 0.1)


def test_separated_outcomes_speak_for_a_larger_slope() -> None:
    scores, correct = np.array([0.4, 0.6] * 20), np.array([False, True] * 20)
    assert c.logistic_fit(scores, correct) is None
    # At slope 1 a score of .6 is right with a chance of .6: 40 * .4 / sqrt(40 * .24), in units of the logit of .6.
    assert s.slope_statistic(scores, correct, 1.0) == pytest.approx(5.164, abs=0.001)


def test_the_answers_needed_show_it_in_about_95_percent_of_samples() -> None:
    draw = np.random.default_rng(8)
    n = s.answers_needed(draw.beta(5, 2, 20_000), 0.12, (0.5, 2.0), 0.04)
    assert n is not None
    shown = 0
    for _ in range(400):
        scores = draw.beta(5, 2, n)
        correct = draw.random(n) < scores
        low, high = (s.slope_statistic(scores, correct, slope) for slope in (0.5, 2.0))
        shown += low > 1.75 and high < -1.75
    assert 0.9 <= shown / 400 <= 0.99
    assert s.answers_needed(np.full(20, 0.7), 0.12, (0.5, 2.0), 0.04) is None


@pytest.mark.parametrize("seed", range(4))
def test_the_rank_statistic_is_that_of_scipy(seed: int) -> None:
    scores, correct = sample(seed)
    test = scipy_stats.mannwhitneyu(scores[correct], scores[~correct], use_continuity=False, method="asymptotic")
    assert 2 * scipy_stats.norm.sf(abs(s.rank_statistic(scores, correct))) == pytest.approx(test.pvalue)


@pytest.mark.slow  # importing the library takes 4 s
@pytest.mark.parametrize("seed", range(4))
def test_slopes_of_scores_of_0_and_1_are_those_of_statsmodels_on_clipped_scores(seed: int) -> None:
    """The documented clip: .001 and .999. `slope_statistic` is the square root of its score test of an added variable."""
    models = pytest.importorskip("statsmodels.api")
    scores, correct = sample(seed)
    assert {0.0, 1.0} <= set(scores.tolist())
    clipped = np.clip(scores, 0.001, 0.999)
    logit = np.log(clipped / (1 - clipped))
    assert c.logits(scores) == pytest.approx(logit)
    fitted = models.Logit(correct.astype(float), models.add_constant(logit)).fit(disp=0)
    fit = c.logistic_fit(scores, correct)
    assert fit is not None
    assert (fit.intercept, fit.slope) == pytest.approx(tuple(fitted.params), abs=1e-6)
    ends = [*fit.intercept_interval, *fit.slope_interval]
    assert ends == pytest.approx(fitted.conf_int().ravel().tolist(), abs=1e-5)
    assert fit.n_clipped == int(((scores == 0) | (scores == 1)).sum())
    for slope in (0.0, 0.5, 1.0, 2.0):
        null = models.GLM(
            correct.astype(float), np.ones((len(scores), 1)), models.families.Binomial(), offset=slope * logit
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chi2 = null.score_test(null.fit().params, exog_extra=logit[:, None])[0]
        assert s.slope_statistic(scores, correct, slope) ** 2 == pytest.approx(float(np.squeeze(chi2)), rel=1e-4)

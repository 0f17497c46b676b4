"""Prediction-powered inference: by hand, by the formulas of the papers, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.describe import t_interval
from cranfield.stats.ppi import MIN_LABELS, CorrectedMean, corrected_mean


def sample(rng: np.random.Generator, n: int, n_all: int, error: float = 0.7, bias: float = 0.4) -> tuple[list, list]:
    """Predictions of all units, labels of a random sample, and the truth is that labels have mean 1."""
    truth = rng.normal(1.0, 1.0, n_all)
    predictions = truth + bias + rng.normal(0.0, error, n_all)
    chosen = set(rng.choice(n_all, n, replace=False).tolist())
    return predictions.tolist(), [float(y) if place in chosen else None for place, y in enumerate(truth)]


def test_the_estimate_by_hand() -> None:
    # f: mean 2, variance 2/3; sample (1, 1), (3, 2): covariance 1, f mean 2, y mean 1.5. lambda 1/2 * 3/2 = 3/4, b = 3/2:
    # 3/2 * 2 + 1.5 - 3/2 * 2 = 1.5
    found = corrected_mean([1, 2, 3, 2], [1, None, 2, None])
    assert (found.power, found.estimate) == (pytest.approx(3 / 4), pytest.approx(1.5))
    # f: mean 3.5, variance 11/3: lambda 1/2 * 3/11 = 3/22, b = 3/11: 3/11 * 3.5 + 1.5 - 3/11 * 2 = 21/11
    found = corrected_mean([1, 5, 3, 5], [1, None, 2, None])
    assert (found.power, found.estimate) == (pytest.approx(3 / 22), pytest.approx(21 / 11))


@given(seed=st.integers(0, 10_000), n=st.integers(12, 30), more=st.integers(5, 100))
def test_it_is_ppi_of_the_paper(seed: int, n: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    predictions, labels = sample(rng, n, n + more)
    f = np.array(predictions)
    chosen = np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    tuned = np.cov(y, f[chosen])[0, 1] / ((1 + n / more) * f.var(ddof=1))  # PPI++, example of the mean
    tuned = min(max(tuned, 0.0), 1.0)
    found = corrected_mean(predictions, labels)
    assert found.power == pytest.approx(tuned, abs=1e-12)
    by_paper = tuned * f[~chosen].mean() + (y - tuned * f[chosen]).mean()
    assert found.estimate == pytest.approx(by_paper, abs=1e-12)


def test_the_variance_is_that_of_the_paper_where_samples_are_large() -> None:
    predictions, labels = sample(np.random.default_rng(5), 4_000, 20_000)
    f, chosen = np.array(predictions), np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    found = corrected_mean(predictions, labels)
    lam = found.power
    by_paper = (y - lam * f[chosen]).var(ddof=1) / 4_000 + lam**2 * f[~chosen].var(ddof=1) / 16_000
    assert found.se == pytest.approx(math.sqrt(by_paper), rel=0.01)


@given(seed=st.integers(0, 10_000))
def test_lambda_0_is_the_mean_of_the_labels(seed: int) -> None:
    _, labels = sample(np.random.default_rng(seed), 15, 40)
    found = corrected_mean([1.0] * 40, labels)  # predictions that are all the same
    assert found.power == 0.0
    given_labels = [label for label in labels if label is not None]
    assert found.estimate == pytest.approx(np.mean(given_labels))
    assert (found.ci_low, found.ci_high) == pytest.approx(t_interval(given_labels))
    assert (found.estimate, found.se) == pytest.approx((found.label_mean, found.label_se))


@given(seed=st.integers(0, 10_000), shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_the_estimate_does_not_depend_on_the_scale_of_the_predictions(seed: int, shift: float, scale: float) -> None:
    predictions, labels = sample(np.random.default_rng(seed), 20, 60, error=2.0)
    moved = corrected_mean([shift + p for p in predictions], labels)
    assert moved.estimate == pytest.approx(corrected_mean(predictions, labels).estimate, abs=1e-9)
    tuned, scaled = (corrected_mean([p * by for p in predictions], labels) for by in (1.0, scale))
    if 0 < scaled.power < 1:
        assert scaled.estimate == pytest.approx(tuned.estimate, abs=1e-9)


def test_all_labels_leave_nothing_to_predict() -> None:
    labels = [float(value % 4) for value in range(20)]
    found = corrected_mean([3.0] * 10 + [0.0] * 10, labels)
    assert found.estimate == pytest.approx(1.5)
    assert corrected_mean([3.0] * 10 + [0.0] * 10, labels, finite=True).se == 0.0


def test_useless_predictions_are_ignored_and_good_ones_help() -> None:
    rng = np.random.default_rng(3)
    predictions, labels = sample(rng, 50, 1_000, error=0.3)
    good = corrected_mean(predictions, labels)
    assert good.se < 0.5 * good.label_se
    noise = corrected_mean(rng.normal(size=1_000).tolist(), labels)
    assert noise.power < 0.3
    constant = corrected_mean([2.0] * 1_000, labels)
    assert (constant.power, constant.estimate) == (0.0, pytest.approx(constant.label_mean))


@pytest.mark.parametrize("n", [0, 1, 2, MIN_LABELS - 1])
def test_too_few_labels_have_no_interval_and_say_so(n: int) -> None:
    predictions, labels = sample(np.random.default_rng(1), n, 30)
    found = corrected_mean(predictions, labels)
    assert (found.ci_low, found.ci_high) == (None, None)
    assert found.note.startswith(f"{n} labels")
    assert found.prediction_mean == pytest.approx(np.mean(predictions))


def test_labels_that_hardly_differ_have_no_interval_or_one_that_is_called_too_short() -> None:
    predictions = [0.0, 1.0] * 20
    found = corrected_mean(predictions, [0.0] * 20 + [None] * 20)
    assert (found.estimate, found.ci_low, found.note) == (0.0, None, "all 20 labels are the same: no interval")
    found = corrected_mean(predictions, [1.0] * 4 + [0.0] * 16 + [None] * 20)
    assert found.ci_low is not None
    assert found.note == "16 of 20 labels are the same: the interval is too short"
    assert corrected_mean(predictions, [1.0] * 5 + [0.0] * 15 + [None] * 20).note == ""
    assert corrected_mean(predictions, [0.0] * 40).note == ""


def test_no_unit_at_all() -> None:
    assert corrected_mean([], []).estimate is None


def test_mistakes_are_named() -> None:
    with pytest.raises(UsageError, match="different lengths"):
        corrected_mean([1.0], [])


def test_a_sample_of_the_best_is_not_a_random_sample() -> None:
    predictions, labels = sample(np.random.default_rng(2), 40, 200)
    assert corrected_mean(predictions, labels).sample_p > 0.01
    truth = np.array(predictions) - 0.4
    best = set(np.argsort(predictions)[-40:].tolist())
    biased = corrected_mean(predictions, [float(truth[i]) if i in best else None for i in range(200)])
    assert biased.sample_p < 1e-6


def test_a_sample_whose_predictions_are_all_the_same_can_be_told_from_a_random_one() -> None:
    predictions = [3.0] * 20 + [0.0, 1.0] * 40
    assert not corrected_mean(predictions, [3.0] * 20 + [None] * 80).looks_random
    assert corrected_mean([1.0] * 20, [1.0] * 12 + [None] * 8).looks_random


def test_a_random_sample_is_seldom_doubted() -> None:
    rng = np.random.default_rng(8)
    doubted = sum(not corrected_mean(*sample(rng, 20, 60)).looks_random for _ in range(300))
    assert doubted <= 9  # 1 % expected


def coverage(*, finite: bool, draws: int, n: int = 30, n_all: int = 150) -> tuple[float, float, float]:
    """Bias, share of intervals that cover, and the standard error of the bias."""
    rng = np.random.default_rng(14)
    covered, errors = 0, []
    for _ in range(draws):
        truth = np.clip(np.round(rng.normal(1.2, 1.0, n_all)), 0, 3)
        predictions = np.clip(np.round(truth + 0.5 + rng.normal(0, 0.6, n_all)), 0, 3)
        chosen = np.zeros(n_all, bool)
        chosen[rng.choice(n_all, n, replace=False)] = True
        labels = [float(y) if c else None for y, c in zip(truth, chosen, strict=True)]
        found = corrected_mean(predictions, labels, finite=finite)
        target = float(truth.mean()) if finite else EXPECTED
        errors.append(found.estimate - target)
        covered += found.ci_low <= target <= found.ci_high
    return float(np.mean(errors)), covered / draws, float(np.std(errors)) / math.sqrt(draws)


def _phi(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


EXPECTED = sum(1 - _phi(edge - 1.2) for edge in (0.5, 1.5, 2.5))
"""Mean of a rounded, clipped normal: the sum of its tails."""


@pytest.mark.parametrize("finite", [False, True])
def test_it_is_unbiased_and_covers(finite: bool) -> None:
    bias, covered, se = coverage(finite=finite, draws=200)
    assert abs(bias) < 3.5 * se + 0.005
    assert 0.91 <= covered <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("finite", [False, True])
def test_it_is_unbiased_and_covers_in_many_draws(finite: bool) -> None:
    bias, covered, se = coverage(finite=finite, draws=8_000)
    print(f"finite {finite}: bias {bias:+.4f} (se {se:.4f}), coverage {covered:.3f}")
    assert abs(bias) < 4 * se + 0.004
    assert 0.935 <= covered <= 0.965


def test_the_mean_of_a_model_alone_does_not_cover() -> None:
    predictions, labels = sample(np.random.default_rng(9), 60, 3_000)
    found: CorrectedMean = corrected_mean(predictions, labels)
    assert abs(found.prediction_mean - 1.0) > 0.3
    assert abs(found.estimate - 1.0) < 0.3

"""Calibration of a confidence from 0 to 1 against what happened: bins, errors and their null distribution, ranking, thresholds.

Functions take `scores`, float64[n] of confidences, and `correct`, bool[n], in the same order. A score within `EDGE` of a
boundary of a bin, or of a threshold, is on it: `0.7 - 0.4` is 0.3, whatever floating point makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.bootstrap import key_blocks
from cranfield.stats.confusion import exact_interval, wilson_interval

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

EDGE = 1e-9
"""Distance from a boundary at which a score is on it."""
EQUAL_WIDTH_BINS = 10
FEW, BINS_OF_FEW, BINS_OF_MANY = 200, 5, 10
"""Bins of equal mass: 5 under 200 answers, 10 from there on."""
DRAWS = 9999
LOGIT_MARGIN = 0.001
"""Scores of 0 and 1 have no logit: for logits, scores are clipped to this distance from both."""
_NEWTON_STEPS = 50
_LARGEST_SLOPE = 1e3


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a reliability diagram."""

    low: float
    high: float
    """Upper end. With equal width, `low` and `high` are the boundaries, of which `high` belongs to the next bin; with
    equal mass, the smallest and largest score."""
    n: int
    right: int
    share: float
    """Share of correct answers."""
    interval: tuple[float, float]
    """Wilson's interval of the share."""
    mean_score: float


@dataclass(frozen=True, slots=True)
class NullTest:
    """A statistic, and what it is where every answer is correct with the probability that its score states."""

    value: float
    null_mean: float
    p: float


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """`logit P(correct) = intercept + slope * logit(score)`: 0 and 1 for a calibrated score."""

    slope: float
    slope_interval: tuple[float, float]
    intercept: float
    intercept_interval: tuple[float, float]
    n_clipped: int
    """Scores that were clipped, because they are within `LOGIT_MARGIN` of 0 or 1."""


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """What is answered, and how much of it is wrong, where only answers with a score of at least `threshold` count."""

    threshold: float
    n: int
    right: int
    coverage: float
    risk: float


def equal_width_bins(scores: Floats, n_bins: int = EQUAL_WIDTH_BINS) -> Ints:
    """The bin of each score: bin i is [i / n_bins, (i + 1) / n_bins), and the last holds 1 too.

    Example:
        >>> equal_width_bins(np.array([0.29, 0.3, 0.7 - 0.4, 0.7, 1.0])).tolist()
        [2, 3, 3, 7, 9]
    """
    bins: Ints = np.floor(np.asarray(scores) * n_bins + EDGE * n_bins).astype(np.int64)
    return np.clip(bins, 0, n_bins - 1)


def equal_mass_bins(scores: Floats, n_bins: int | None = None) -> Ints:
    """The bin of each score, bins being about equal in size; equal scores share a bin, so there may be fewer bins.

    Args:
        scores: float64[n].
        n_bins: default: 5 under 200 scores, 10 from there on.

    Example:
        >>> equal_mass_bins(np.array([0.9, 0.1, 0.5, 0.5, 0.5]), 2).tolist()
        [1, 0, 0, 0, 0]
    """
    n = len(scores)
    wanted = n_bins or (BINS_OF_FEW if n < FEW else BINS_OF_MANY)
    ordered = np.sort(scores)
    cuts = {
        int(np.searchsorted(ordered, ordered[at] + EDGE, side="right"))
        for at in (n * cut // wanted - 1 for cut in range(1, wanted))
        if at >= 0
    }
    edges = [ordered[cut] for cut in sorted(cuts) if cut < n]
    bins: Ints = np.searchsorted(np.asarray(edges) - EDGE, scores, side="right").astype(np.int64)
    return bins


def reliability(
    scores: Floats, correct: Bools, bins: Ints, *, n_equal: int | None = None, level: float = 0.95
) -> tuple[Bin, ...]:
    """Counts of the bins that hold any answer, ascending.

    Args:
        scores: float64[n].
        correct: bool[n].
        bins: int64[n], of `equal_width_bins` or `equal_mass_bins`.
        n_equal: number of bins of equal width, whose ends are their boundaries; None: the smallest and largest score.
        level: of the intervals.
    """
    found = []
    for number in np.unique(bins).tolist():
        inside = bins == number
        members, right = scores[inside], int(correct[inside].sum())
        ends = (members.min(), members.max()) if n_equal is None else (number / n_equal, (number + 1) / n_equal)
        n, interval = len(members), wilson_interval(right, len(members), level)
        found.append(Bin(float(ends[0]), float(ends[1]), n, right, right / n, interval, float(members.mean())))
    return tuple(found)


def expected_calibration_error(scores: Floats, correct: Bools, bins: Ints) -> float:
    """Mean distance of mean score and share correct over the bins, each with the weight of its answers.

        ECE = sum over bins of n_b / n * |mean score_b - share correct_b|

    Source: Naeini, Cooper and Hauskrecht (2015), AAAI.

    Example:
        >>> scores, correct = np.array([0.75, 0.75, 0.25, 0.25]), np.array([True, False, False, False])
        >>> expected_calibration_error(scores, correct, equal_width_bins(scores))  # (2 * .25 + 2 * .25) / 4
        0.25
    """
    gaps = np.bincount(bins, weights=scores - correct)
    return float(np.abs(gaps).sum() / len(scores))


def null_tests(
    scores: Floats,
    correct: Bools,
    binnings: Sequence[Ints],
    weights: Sequence[Floats] = (),
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> tuple[NullTest, ...]:
    """Tests of the net bias (two-sided), of the ECE of each binning (one-sided), and of weighted sums, against a calibrated score.

    Each draw makes every answer correct with the probability that its score states, and computes all statistics; p is
    (1 + draws at least as extreme) / (1 + draws), which is at most alpha in at most a share alpha of samples, whatever n is.
    With few answers a calibrated score too has an ECE far above 0.

    Args:
        scores: float64[n].
        correct: bool[n].
        binnings: int64[n] each, of `equal_width_bins` or `equal_mass_bins`.
        weights: float64[n] each: the statistic is the sum of weight * (outcome - score), and its test two-sided.
        seed: of the draws.
        draws: how many.

    Returns:
        Of the bias mean(score) - mean(correct), then of each ECE, then of each weighted sum.
    """
    n = len(scores)
    members = [(np.arange(int(bins.max()) + 1) == bins[:, None]).astype(np.float64) for bins in binnings]

    def statistics(drawn: Floats) -> Floats:
        """[statistic, draw], from the outcomes [draw, n]."""
        gaps = scores - drawn
        errors = [np.abs(gaps @ member).sum(axis=1) / n for member in members]
        return np.stack([gaps.sum(axis=1) / n, *errors, *(-(gaps @ weight) for weight in weights)])

    observed = statistics(correct[None, :].astype(np.float64))
    at_least, sums = np.zeros(len(observed)), np.zeros(len(observed))
    for _, keys in key_blocks(seed, draws, n):
        found = statistics(((keys >> np.uint64(11)).astype(np.float64) * 2.0**-53 < scores).astype(np.float64))
        sums += found.sum(axis=1)
        at_least += (np.abs(found) >= np.abs(observed) - EDGE).sum(axis=1)
    return tuple(
        NullTest(float(value), float(total / draws), float((1 + count) / (1 + draws)))
        for value, total, count in zip(observed[:, 0], sums, at_least, strict=True)
    )


def brier_score(scores: Floats, correct: Bools) -> float:
    """Mean squared distance of score and outcome."""
    return float(np.mean((scores - correct) ** 2))


def brier_skill(scores: Floats, correct: Bools) -> float | None:
    """1 - Brier score / that of always stating the share of correct answers; None where all are correct or none is."""
    share = float(np.mean(correct))
    return None if share in (0.0, 1.0) else 1 - brier_score(scores, correct) / (share * (1 - share))


def log_loss(scores: Floats, correct: Bools) -> float | None:
    """Mean of -log of the probability stated for what happened; None where 0 was stated for it (the loss is infinite)."""
    stated = np.where(correct, scores, 1 - scores)
    return None if (stated <= 0).any() else float(-np.mean(np.log(stated)))


def logits(scores: Floats) -> Floats:
    """log(score / (1 - score)), of scores that are clipped to `LOGIT_MARGIN` and 1 - `LOGIT_MARGIN`.

    Example:
        >>> logits(np.array([0.0, 0.5, 0.9, 1.0])).round(4).tolist()
        [-6.9068, 0.0, 2.1972, 6.9068]
    """
    clipped = np.clip(scores, LOGIT_MARGIN, 1 - LOGIT_MARGIN)
    found: Floats = np.log(clipped / (1 - clipped))
    return found


def logistic_fit(scores: Floats, correct: Bools, *, level: float = 0.95) -> LogisticFit | None:
    """Calibration slope and intercept by maximum likelihood on `logits`, with Wald intervals.

    A slope under 1 is of scores that are too extreme, above 1 of scores that are not extreme enough.

    Returns:
        None where there is no finite maximum: one score alone, one outcome alone, or a score that separates the two.

    Source: Cox (1958), "Two further applications of a model for binary regression", Biometrika 45.
    """
    if np.ptp(scores) < EDGE or correct.all() or not correct.any() or _separates(scores, correct):
        return None
    design = np.column_stack([np.ones(len(scores)), logits(scores)])
    fitted = _newton(design, correct.astype(np.float64))
    if fitted is None:
        return None
    (intercept, slope), covariance = fitted
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(np.diag(covariance))
    return LogisticFit(
        slope=float(slope),
        slope_interval=(float(slope - half[1]), float(slope + half[1])),
        intercept=float(intercept),
        intercept_interval=(float(intercept - half[0]), float(intercept + half[0])),
        n_clipped=int((np.minimum(scores, 1 - scores) < LOGIT_MARGIN - EDGE).sum()),
    )


def _separates(scores: Floats, correct: Bools) -> bool:
    """Whether some threshold divides right from wrong answers: the likelihood has no maximum then."""
    right, wrong = scores[correct], scores[~correct]
    return bool(right.min() >= wrong.max() or wrong.min() >= right.max())


def _newton(design: Floats, outcome: Floats) -> tuple[Floats, Floats] | None:
    """Coefficients and their covariance; None where the steps do not converge."""
    beta: Floats = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ beta, -700, 700)))
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        try:
            step = np.linalg.solve(information, design.T @ (outcome - chance))
        except np.linalg.LinAlgError:
            return None
        beta = np.asarray(beta + step, dtype=np.float64)
        if np.abs(beta).max() > _LARGEST_SLOPE:
            return None
        if np.abs(step).max() < 1e-10:
            return beta, np.asarray(np.linalg.inv(information), dtype=np.float64)
    return None


def auroc(scores: Floats, correct: Bools) -> float | None:
    """Probability that a right answer has a higher score than a wrong one, a tie counting half; None without one of either."""
    right, wrong = scores[correct], np.sort(scores[~correct])
    if not len(right) or not len(wrong):
        return None
    below = np.searchsorted(wrong, right - EDGE, side="left")
    up_to = np.searchsorted(wrong, right + EDGE, side="right")
    return float((below + up_to).sum() / 2 / (len(right) * len(wrong)))


def risk_coverage(scores: Floats, correct: Bools) -> tuple[CoveragePoint, ...]:
    """Coverage and risk at each distinct score as threshold, from the highest score on."""
    order = np.argsort(-scores, kind="stable")
    ordered, right = scores[order], np.cumsum(correct[order])
    ends = np.append(np.nonzero(-np.diff(ordered) > EDGE)[0], len(ordered) - 1)
    return tuple(
        CoveragePoint(
            float(ordered[end]),
            int(end) + 1,
            int(right[end]),
            (end + 1) / len(ordered),
            float(1 - right[end] / (end + 1)),
        )
        for end in ends.tolist()
    )


def area_under_risk_coverage(scores: Floats, correct: Bools) -> float:
    """Mean risk of the 1, 2, ... n answers with the highest scores; equal scores are in random order (expected value).

    Smaller is better; a score without any information has the share of wrong answers.

    Source: Geifman and El-Yaniv (2017), "Selective classification for deep neural networks", NeurIPS.

    Example:
        >>> area_under_risk_coverage(np.array([0.9, 0.8]), np.array([True, False]))  # (0 + 1/2) / 2
        0.25
    """
    errors, before = [], 0
    points = risk_coverage(scores, correct)
    for place, point in enumerate(points):
        start = points[place - 1].n if place else 0
        wrong = point.n - point.right
        errors += [(wrong - before) / (point.n - start)] * (point.n - start)
        before = wrong
    return float(np.mean(np.cumsum(errors) / np.arange(1, len(errors) + 1)))


def routed(scores: Floats, correct: Bools, threshold: float) -> tuple[int, int]:
    """Answers with a score of at least the threshold, and how many of them are right."""
    chosen = scores >= threshold - EDGE
    return int(chosen.sum()), int(correct[chosen].sum())


def supported_threshold(
    scores: Floats, correct: Bools, target: float, *, alpha: float = 0.05
) -> tuple[float, int, int, float] | None:
    """The lowest tenth from which on the share of correct answers is at least a target, by its lower bound.

    The candidates are 0.0, 0.1, ... 0.9, those that choose the same answers being one. The lower bound is Clopper and
    Pearson's, one-sided at alpha divided by the number of candidates: the advised threshold is chosen among them.

    Returns:
        Threshold, answers from it on, right ones among them, and the lower bound; None where no candidate has it.
    """
    candidates: dict[int, tuple[float, int]] = {}
    for tenth in range(10):
        n, right = routed(scores, correct, tenth / 10)
        if n:
            candidates[n] = (tenth / 10, right)  # of those that choose the same answers, the highest
    level = 1 - 2 * alpha / max(len(candidates), 1)
    for n, (threshold, right) in sorted(candidates.items(), reverse=True):
        lower = exact_interval(right, n, level)[0]
        if lower >= target:
            return threshold, n, right, lower
    return None


def is_finite_share(value: float) -> bool:
    """Whether a number can be a confidence."""
    return math.isfinite(value) and 0 <= value <= 1


_NOTHING = 1e-12
"""A variance under this is 0."""
_FARTHEST = 60.0
"""An intercept is searched from minus this to this."""
_HALVINGS = 60


def slope_weights(scores: Floats) -> Floats:
    """Weights whose sum with outcome - score is the score statistic of the slope, with variance 1 for a calibrated score.

    The logits are centred with the weights score * (1 - score), so that a small net bias does not change the statistic: above 0,
    the slope is above 1.

    Returns:
        float64[n]; 0 where the statistic cannot vary: equal scores, or only 0 and 1.
    """
    return _standardised(_centred(logits(scores), scores), scores)


def spiegelhalter_weights(scores: Floats) -> Floats:
    """Weights whose sum with outcome - score is Spiegelhalter's z.

        z = sum (outcome - score) (1 - 2 score) / sqrt(sum (1 - 2 score)^2 score (1 - score))

    It is the Brier score minus what a calibrated score is expected to have, in standard errors: above 0, the score errs more
    than it states.

    Returns:
        float64[n]; 0 where z is not defined: all scores are 0, .5 or 1.

    Source: Spiegelhalter (1986), "Probabilistic prediction in patient management and clinical trials", Statistics in Medicine 5.

    Example:
        >>> scores, correct = np.array([0.9, 0.8, 0.3]), np.array([True, False, False])
        >>> z = spiegelhalter_weights(scores) @ (correct - scores)  # (-.08 + .48 - .12) / sqrt(.0576 + .0576 + .0336)
        >>> round(float(z), 4)
        0.7259
    """
    return _standardised(1 - 2 * scores, scores)


def slope_statistic(scores: Floats, correct: Bools, slope: float) -> float:
    """Score statistic of a slope, the intercept being fitted: standard normal if the slope is the true one, above 0 if it is too small.

    Returns:
        0 where the outcomes are all equal, or the scores are: they show nothing about the slope.

    Source: Rao (1948), Proceedings of the Cambridge Philosophical Society 44; at slope 0 it is the Cochran-Armitage test.

    Example:
        >>> scores = np.array([0.2, 0.2, 0.8, 0.8])
        >>> correct = np.array([False, False, True, True])
        >>> slope_statistic(scores, correct, 0.0)  # (2 * .5 + 2 * .5) / sqrt(4 * .25), in units of the logit of .8
        2.0
    """
    right = int(correct.sum())
    if right in (0, len(correct)):
        return 0.0
    logit = logits(scores)
    chance = chances_with_sum(slope * logit, right)
    return float(_standardised(_centred(logit, chance), chance) @ (correct - chance))


def chances_with_sum(offsets: Floats, total: float) -> Floats:
    """1 / (1 + exp(-(intercept + offset))), with the intercept for which they sum to a total.

    Example:
        >>> chances_with_sum(np.array([0.0, 0.0, 0.0]), 2).round(4).tolist()
        [0.6667, 0.6667, 0.6667]
    """
    low, high = -_FARTHEST, _FARTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        chances: Floats = 1 / (1 + np.exp(-(offsets + middle)))
        low, high = (middle, high) if chances.sum() < total else (low, middle)
    return chances


def rank_statistic(scores: Floats, correct: Bools) -> float:
    """Wilcoxon's rank sum statistic, ties corrected: standard normal if scores say nothing about outcomes, above 0 at AUROC over .5.

    Returns:
        0 where the outcomes are all equal, or the scores are.

    Source: Mann and Whitney (1947), Annals of Mathematical Statistics 18.

    Example:
        >>> rank_statistic(
        ...     np.array([0.2, 0.4, 0.8, 0.9]), np.array([False, False, True, True])
        ... )  # 2 / sqrt(2 * 2 * 5 / 12)
        1.5491933384829668
    """
    ordered = np.sort(scores)
    below, up_to = (np.searchsorted(ordered, scores + edge, side="left") for edge in (-EDGE, EDGE))
    ranks: Floats = (below + up_to) / 2
    centred = ranks - ranks.mean()
    share, n = float(correct.mean()), len(scores)
    variance = share * (1 - share) * float(centred @ centred) * n / (n - 1) if n > 1 else 0.0
    return float(centred @ correct) / math.sqrt(variance) if variance > _NOTHING else 0.0


def answers_needed(
    scores: Floats, margin: float, slopes: tuple[float, float], alpha: float, power: float = 0.95
) -> int | None:
    """Answers with such scores that show that a calibrated score is calibrated, by the normal approximation.

    Args:
        scores: float64[n], whose distribution is taken to be that of more answers.
        margin: of the net bias, which is to be shown to lie within it on both sides.
        slopes: between which the slope is to be shown to lie.
        alpha: one-sided significance level of each demand.
        power: share of samples in which the hardest demand is met.

    Returns:
        None where no number is enough, because the scores do not vary.
    """
    reject, reach = NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(power)
    variance = scores * (1 - scores)
    # Two sides can fail for the net bias, which a calibrated score has at the centre of its margins.
    needed = [((reject + NormalDist().inv_cdf((1 + power) / 2)) / margin) ** 2 * float(variance.mean())]
    logit = logits(scores)
    for slope in slopes:
        chance = chances_with_sum(slope * logit, float(scores.sum()))
        direction = _centred(logit, chance)
        distance = abs(float((direction * (scores - chance)).mean()))
        if distance < _NOTHING:
            return None
        errors = [math.sqrt(float((direction**2 * each).mean())) for each in (chance * (1 - chance), variance)]
        needed.append(((reject * errors[0] + reach * errors[1]) / distance) ** 2)
    return math.ceil(max(needed))


def _centred(logit: Floats, chance: Floats) -> Floats:
    """Logits minus their mean, weighted with the variances of outcomes with these chances."""
    variance = chance * (1 - chance)
    total = float(variance.sum())
    centred: Floats = logit - (float(variance @ logit) / total if total > _NOTHING else float(logit.mean()))
    return centred


def _standardised(direction: Floats, chance: Floats) -> Floats:
    """A direction divided by the standard deviation of its sum with outcomes of these chances; 0 where it does not vary."""
    variance = float((direction**2) @ (chance * (1 - chance)))
    weights: Floats = direction / math.sqrt(variance) if variance > _NOTHING else np.zeros_like(direction)
    return weights

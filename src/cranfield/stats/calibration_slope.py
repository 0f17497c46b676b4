"""The calibration slope and the order of scores: what a calibrated score is tested for, and what a sample shows about it.

The model is `logit P(correct) = intercept + slope * logit(score)`, with the logits of `cranfield.stats.calibration.logits`. Scores
are float64[n], `correct` is bool[n] in the same order. Every function has a value also where the slope has no finite estimate.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from cranfield.stats.calibration import EDGE, Bools, Floats, logits

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

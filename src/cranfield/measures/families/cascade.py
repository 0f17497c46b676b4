"""Expected reciprocal rank: a user who goes down the list and stops at the first result that satisfies.

They are listed by `user_models`. Axes: Q queries, N rows, each one result of a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures.measure import JUDGED_ONLY, MeasureSpec, ParameterSpec, Reason
from cranfield.measures.sums import before, running, starts
from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

IDEAL_DEPTH = 10_000
"""Ranks of an ideal list that nERR looks at: of the few who read on, none is counted."""
SATISFIED = 40.0
"""Results of stop chance c that are worth repeating, times c: after as many, one user in 10^17 reads on."""


def expected_reciprocal_rank(ranking: Ranking, cutoff: int | None, *, max_rel: float = 4.0) -> FloatQ:
    """One over the rank at which the user stops, on average, when each result satisfies with a chance of its own.

        ERR = sum_{i<=k} (1 / i) * c_i * prod_{j<i} (1 - c_j),  c_i = (2^g_i - 1) / 2^max_rel

    Returns:
        float64[Q] in [0, 1), one value per query.

    Conventions:
        nothing relevant found -> 0 · grades above max_rel count as max_rel · unjudged results satisfy no user.

    Source:
        Chapelle, Metzler, Zhang & Grinspan 2009, CIKM; gdeval.pl of the TREC Web track, where max_rel is 4.
    """
    rows = ranking.gain > 0 if cutoff is None else (ranking.gain > 0) & (ranking.rank <= cutoff)
    chance = stop_chance(ranking, ranking.gain[rows], max_rel)
    return _err(ranking.query[rows], ranking.rank[rows], chance, ranking.n_queries)


def normalised_err(ranking: Ranking, cutoff: int | None, *, max_rel: float = 4.0) -> FloatQ:
    """ERR over that of the expected items in their best order; 0 where nothing relevant was expected.

    Returns:
        float64[Q] in [0, 1]; NaN where the number expected is not known.

    Source:
        Clarke, Craswell, Soboroff & Ashkan 2011, WSDM, who normalise by the ideal list.
    """
    reached = expected_reciprocal_rank(ranking, cutoff, max_rel=max_rel)
    best = _ideal_err(ranking, IDEAL_DEPTH if cutoff is None else min(cutoff, IDEAL_DEPTH), max_rel)
    result = np.zeros_like(reached)
    np.divide(reached, best, out=result, where=best != 0)
    return result


def stop_chance(ranking: Ranking, gain: Floats, max_rel: float) -> Floats:
    """How likely a result satisfies; under a convention of exponential gain, gains are 2^g - 1 already."""
    chance: Floats
    if ranking.convention.gain == "exponential":
        chance = np.minimum(gain, np.exp2(max_rel) - 1.0) / np.exp2(max_rel)
    else:
        chance = np.exp2(np.minimum(gain, max_rel) - max_rel) - np.exp2(-max_rel)
    return chance


def _err(query: Integers, rank: Integers, chance: Floats, n_queries: int) -> FloatQ:
    reading = before(query, running(np.multiply, query, 1.0 - chance), 1.0)
    return np.bincount(query, weights=chance * reading / rank, minlength=n_queries).astype(np.float64)


def _ideal_err(ranking: Ranking, depth: int, max_rel: float) -> FloatQ:
    """float64[Q]: ERR of the ideal list at a depth; NaN where a count is unknown."""
    order = np.lexsort((-ranking.expected_gain, ranking.expected_query))
    order = order[ranking.expected_gain[order] > 0]
    query, count = ranking.expected_query[order], ranking.expected_count[order]
    chance = stop_chance(ranking, ranking.expected_gain[order], max_rel)
    enough = np.ceil(SATISFIED / np.maximum(chance, np.finfo(np.float64).tiny))  # a chance may underflow to 0
    copies = np.where(count == UNKNOWN_COUNT, 0, np.minimum(count, enough))
    last = np.minimum(running(np.add, query, copies), depth)
    copies = (last - before(query, last, 0.0)).astype(np.int64)
    query_of, chance_of = np.repeat(query, copies), np.repeat(chance, copies)
    first = starts(query_of)
    rank = np.arange(len(query_of)) - np.repeat(first, np.diff(first, append=len(query_of))) + 1
    best = _err(query_of, rank, chance_of, ranking.n_queries)
    best[query[count == UNKNOWN_COUNT]] = np.nan
    return best


_HIGHEST = ParameterSpec(
    "max_rel",
    4.0,
    "highest grade of the scale; higher grades count as this grade",
    minimum=0,
    maximum=1000,
    above_minimum=True,
)

SPECS = (
    MeasureSpec(
        name="ERR",
        question="How soon is a user satisfied?",
        plain=(
            "A user reads from the top and stops at a satisfying result; after a very good one, little else counts."
        ),
        title="expected reciprocal rank",
        sentence="Expected reciprocal of the rank at which a user who reads the list from the top stops; the "
        "probability of stopping grows with the grade.",
        formula="sum_{i<=k} (1 / i) * c_i * prod_{j<i} (1 - c_j), c = (2^grade - 1) / 2^max_rel",
        cutoff="optional",
        kernel=expected_reciprocal_rank,
        parameters=(_HIGHEST, JUDGED_ONLY),
        source="Chapelle, Metzler, Zhang & Grinspan 2009, CIKM; gdeval.pl of the TREC Web track, ir_measures ERR",
    ),
    MeasureSpec(
        name="nERR",
        title="normalised expected reciprocal rank",
        sentence="Expected reciprocal rank, divided by that of the ideal list.",
        formula="ERR@k, over ERR@k of the expected items in their best order",
        cutoff="optional",
        kernel=normalised_err,
        parameters=(_HIGHEST, JUDGED_ONLY),
        source="Chapelle et al. 2009, CIKM; Clarke, Craswell, Soboroff & Ashkan 2011, WSDM (its normalisation)",
        why_unscored=Reason.NEEDS_COUNT,
    ),
)

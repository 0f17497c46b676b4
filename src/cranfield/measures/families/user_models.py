"""Measures that model a user going down the list: rank-biased precision, compatibility, and those of two more modules.

Expected reciprocal rank is in `cascade`, the C/W/L measures in `c_w_l`; their rows are listed here too. No kernel orders,
joins or looks at an id. Axes: Q queries, J judged results, E expected entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.families import c_w_l, cascade
from cranfield.measures.measure import (
    GAINS,
    JUDGED_ONLY,
    PERSISTENCE,
    REL,
    MeasureSpec,
    ParameterSpec,
    Reason,
    with_default,
)
from cranfield.measures.sums import starts
from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking

Floats = NDArray[np.float64]

NO_CONTRAST = "its results do not include both a relevant and a non-relevant document"
NEGLIGIBLE = 45.0
"""Weights of e^-45 of the first change no sum."""


def rank_biased_precision(
    ranking: Ranking,
    cutoff: int | None,
    *,
    p: float = 0.8,
    rel: int = 0,
    max_rel: float = 0.0,
    scaled: bool = True,
    depth: int = 1000,
    page: bool = False,
) -> FloatQ:
    """Gain per result inspected, for a user who goes on from each rank with chance p.

        RBP = sum_{i<=k} W_i g_i,  W_i = (1 - p) p^(i - 1) / (1 - p^depth); where `page`, depth is min(k, results returned)

    Returns:
        float64[Q] in [0, 1], one value per query; above 1 where gains are not scaled.

    Conventions:
        the weights of a list shorter than k are lost · with a depth of 0 the user has no last rank, and the weights are
        those of the paper; 1,000 ranks are ir_measures' choice, and differ from it by a share of p^1000 · with `page` the
        weights of the ranks that were returned add up to 1, so a short list is not punished: nothing returned -> 0.

    Source:
        Moffat & Zobel 2008, ACM TOIS 27(1).
    """
    end = depth or np.inf
    if rel:
        gain = (ranking.level >= rel).astype(np.float64)
    else:
        gain = _graded(ranking, max_rel) if scaled else ranking.gain.astype(np.float64)
    rows = (gain > 0) & (ranking.rank <= end)
    if cutoff is not None:
        rows &= ranking.rank <= cutoff
    weights = c_w_l.geometric(p)
    gained = kernels.per_query(ranking, rows, gain * weights.at(ranking.rank.astype(np.float64)))
    if page:
        shown = np.minimum(ranking.n_returned, end if cutoff is None else min(end, cutoff)).astype(np.float64)
        return kernels.over(gained, weights.to(shown))
    return gained / weights.to(np.array([end], dtype=np.float64))


def _graded(ranking: Ranking, max_rel: float) -> Floats:
    """float64[J]: gains from 0 to 1, by a scale or by the best that is expected of the query."""
    if max_rel:
        return c_w_l.scaled(ranking, 0.0, max_rel)
    best = np.ones(ranking.n_queries)  # gains that do not exceed 1 stay as they are
    there = ranking.expected_count != 0
    np.maximum.at(best, ranking.expected_query[there], ranking.expected_gain[there])
    graded: Floats = np.clip(ranking.gain / best[ranking.query], 0.0, 1.0)
    return graded


def compatibility(ranking: Ranking, _cutoff: None, *, p: float = 0.95, normalize: bool = True) -> FloatQ:
    """How much the list agrees with the ideal list that is nearest to it, the first ranks counting most.

        RBO = sum_{i<=d} p^(i - 1) |first i of both| / i, over sum_{i<=d} p^(i - 1); d is the length of the longer list

    A result in both lists, at rank b here and rank a there, is among the first i of both from i = max(a, b) on.

    Args:
        ranking: the lists.
        p: weight of a depth against that of the depth above.
        normalize: over what the ideal list reaches against itself.

    Returns:
        float64[Q] in [0, 1]; NaN where the number expected is not known.

    Conventions:
        nothing with gain expected -> 0 · among items of one grade the ideal list has those found first, in their order.

    Source:
        Clarke, Vtyurina & Smucker 2021, ACM TOIS 39(1).
    """
    ideal = _IdealPlaces(ranking)
    depth = np.maximum(ranking.n_returned, ideal.size)
    # Beyond this rank no weight changes the sum.
    last = int(min(float(depth.max(initial=0)), NEGLIGIBLE / -np.log(p)))
    ranks = np.arange(1, last + 1)
    weights = p ** (ranks - 1.0)
    shares = np.concatenate(([0.0], np.cumsum(weights / ranks)))
    to_depth = shares[np.minimum(depth, last)]
    both = np.maximum(ideal.place, ranking.rank[ideal.rows])
    query = ranking.query[ideal.rows]
    agreement = to_depth[query] - shares[np.minimum(both - 1, last)]
    overlap = np.bincount(query, weights=agreement, minlength=ranking.n_queries)
    if normalize:
        whole = np.concatenate(([0.0], np.cumsum(weights)))[np.minimum(ideal.size, last)]
        scale = whole + ideal.size * (to_depth - shares[np.minimum(ideal.size, last)])
    else:
        scale = -np.expm1(depth * np.log(p)) / (1.0 - p)
    result = np.zeros(ranking.n_queries)
    np.divide(overlap, scale, out=result, where=scale != 0)
    result[ideal.unknown] = np.nan
    return result


class _IdealPlaces:
    """Where the results with gain stand in the ideal list: gain descending, then those found, in their order."""

    rows: NDArray[np.intp]  # [N] rows of the ranking; no more of one gain than are expected
    place: NDArray[np.int64]  # [N] rank in the ideal list
    size: NDArray[np.int64]  # [Q] documents of the ideal list
    unknown: NDArray[np.int32]  # queries whose expected documents are not counted

    def __init__(self, ranking: Ranking) -> None:
        entries = ranking.expected_gain > 0
        query, gain = ranking.expected_query[entries], ranking.expected_gain[entries]
        count = ranking.expected_count[entries]
        self.unknown = query[count == UNKNOWN_COUNT]
        count = np.maximum(count, 0)
        self.size = np.bincount(query, weights=count, minlength=ranking.n_queries).astype(np.int64)
        rows = np.flatnonzero(ranking.gain > 0)
        # Expected entries and results together, by query and gain; each group opens with its entries.
        of = np.concatenate((query, ranking.query[rows]))
        worth = np.concatenate((gain, ranking.gain[rows]))
        is_result = np.repeat((False, True), (len(query), len(rows)))
        order = np.lexsort((is_result, -worth, of))  # stable: results stay in the order of their ranks
        of, worth, is_result = of[order], worth[order], is_result[order]
        counted = np.concatenate((count, np.zeros(len(rows), dtype=np.int64)))[order]
        opens = np.ones(len(order), dtype=np.bool_)
        opens[1:] = (np.diff(of) != 0) | (np.diff(worth) != 0)
        group = np.cumsum(opens) - 1
        total = np.bincount(group, weights=counted).astype(np.int64)
        above = np.cumsum(total) - total  # of all queries before, too
        found = np.cumsum(is_result)
        nth = found - (found - is_result)[opens][group]
        query_above = np.concatenate(([0], np.cumsum(self.size)))[of]
        place = above[group] - query_above + nth
        kept = is_result & (nth <= total[group])
        self.rows = rows[order[kept] - len(query)]
        self.place = place[kept]


def accuracy(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Share of the pairs of a relevant and a non-relevant result in which the relevant one stands first.

    Returns:
        float64[Q] in [0, 1]; NaN where the results make no such pair.

    Conventions:
        documents that were not returned do not count · unjudged is not relevant.
    """
    rows = np.flatnonzero(kernels.relevant_rows(ranking, rel, cutoff))
    query = ranking.query[rows]
    first = starts(query)
    relevant = np.bincount(query, minlength=ranking.n_queries)
    nth = np.arange(len(rows)) - np.repeat(first, relevant[query[first]])
    wrong_above = np.bincount(query, weights=ranking.rank[rows] - 1 - nth, minlength=ranking.n_queries)
    shown = ranking.n_returned if cutoff is None else np.minimum(ranking.n_returned, cutoff)
    pairs = relevant * (shown - relevant).astype(np.float64)
    pairs[pairs == 0] = np.nan
    result: FloatQ = 1.0 - wrong_above / pairs
    return result


_GRADED: dict[str, Any] = {"minimum": 0, "maximum": 1000}

SPECS = (
    MeasureSpec(
        name="RBP",
        question="How much good does a patient user see?",
        plain=(
            "A user looks at the next result with a fixed probability: top results count most, and the list "
            "has no sharp end."
        ),
        presets=(("rbp", "p=0.9, depth=0"),),
        title="rank-biased precision",
        sentence="Expected gain per inspected result for a user who continues from each rank with probability p.",
        formula="sum_{i<=k} W_i g_i, W_i = (1 - p) p^(i - 1) / (1 - p^depth); g = [grade >= rel], or grade / max_rel, or the "
        "grade; with page, depth is min(k, n)",
        cutoff="optional",
        kernel=rank_biased_precision,
        parameters=(
            PERSISTENCE,
            ParameterSpec("rel", 0, "lowest relevant grade, with gain 1; 0: gains are graded", minimum=0),
            ParameterSpec(
                "max_rel", 0.0, "grade with gain 1 if gains are graded; 0: the highest grade of the query", **_GRADED
            ),
            ParameterSpec("scaled", True, "graded gains are from 0 to 1; False: the grades themselves, as in ranx"),
            c_w_l.DEPTH,
            ParameterSpec("page", False, "divide by the weights of the ranks that were returned, within the cutoff"),
            GAINS,
            JUDGED_ONLY,
        ),
        source="Moffat & Zobel 2008, ACM TOIS 27(1); ir_measures RBP(rel=1), trec_eval 10.0 rbp (RBP(p=0.9))",
    ),
    *cascade.SPECS,
    *c_w_l.SPECS,
    MeasureSpec(
        name="Compat",
        title="compatibility",
        sentence="Rank-biased overlap of the list with the most similar ideal list.",
        formula="sum_{i<=d} p^(i - 1) |first i of both lists| / i, over the same of the ideal list with itself",
        cutoff="none",
        kernel=compatibility,
        parameters=(
            with_default(PERSISTENCE, 0.95),
            ParameterSpec("normalize", True, "divide by the value of the ideal list; False: by sum_{i<=d} p^(i - 1)"),
            GAINS,
        ),
        aliases=("Compatibility",),
        source="Clarke, Vtyurina & Smucker 2021, ACM TOIS 39(1); ir_measures Compat",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="Accuracy",
        unscored_by_run=True,
        title="pairwise accuracy",
        sentence="Probability that a relevant result is ranked above a non-relevant one; documents that were not "
        "returned are ignored.",
        formula="|{(i, j) : i < j <= k, grade_i >= rel, grade_j < rel}| / (relevant results * other results within k)",
        cutoff="optional",
        kernel=accuracy,
        parameters=(REL, JUDGED_ONLY),
        source="ir_measures Accuracy",
        why_unscored=NO_CONTRAST,
        defined_for="queries whose results include both a relevant and a non-relevant document",
    ),
)

"""Measures of trec_eval that compare the graded gain of a list with that of the ideal list, rank by rank.

They are listed by `trec`. Axes: Q queries, J judged results, P entries of the ideal lists, N requested places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.families.trec_sets import share_of
from cranfield.measures.measure import GAINS, JUDGED_ONLY, MeasureSpec, ParameterSpec, Reason
from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class IdealLists:
    """The expected items with a gain above 0, best first: every query's list at its best."""

    query: Integers  # [P] sorted; within a query gain descending
    gain: Floats  # [P]
    before: Integers  # [P] documents of the ideal list above this entry
    last: Integers  # [P] rank of its last document
    start: Integers  # [Q + 1] the entries of query q are start[q] to start[q + 1]
    known: NDArray[np.bool_]  # [Q] False where the documents of an entry are not counted

    @classmethod
    def of(cls, ranking: Ranking) -> IdealLists:
        """Lay the ideal lists of a ranking out."""
        order = np.lexsort((-ranking.expected_gain, ranking.expected_query))
        query, gain, count = ranking.expected_query[order], ranking.expected_gain[order], ranking.expected_count[order]
        known = np.ones(ranking.n_queries, dtype=np.bool_)
        known[query[(gain > 0) & (count == UNKNOWN_COUNT)]] = False
        rows = (gain > 0) & (count > 0)
        query, gain, count = query[rows], gain[rows], count[rows]
        start = np.searchsorted(query, np.arange(ranking.n_queries + 1))
        ends = np.cumsum(count)
        last = ends - np.concatenate(([0], ends))[start[:-1]][query]
        return cls(query, gain, last - count, last, start, known)

    @property
    def size(self) -> Integers:
        """int64[Q]: documents of each ideal list."""
        sizes = np.zeros(len(self.known), dtype=np.int64)
        sizes[self.query] = self.last  # the last entry of a query is the last to write
        return sizes

    def discounted(self) -> Floats:
        """float64[D + 1]: sum of 1 / log2(i + 1) over the first 0, 1, … D ranks, D the length of the longest list."""
        depth = int(self.last.max(initial=0))
        return np.concatenate(([0.0], np.cumsum(1.0 / np.log2(np.arange(2, depth + 2)))))

    def undiscounted(self) -> Floats:
        """float64[D + 1]: 0, 1, … D."""
        return np.arange(int(self.last.max(initial=0)) + 1, dtype=np.float64)

    def accumulated(self, worth: Floats, ranks: Floats, query: Integers, rank: Integers) -> Floats:
        """Worth of the first ranks of ideal lists.

        Args:
            worth: [P] of one document of an entry.
            ranks: [D + 1] what a sum over the first ranks is multiplied with: `discounted` or `undiscounted`.
            query: [N] whose list.
            rank: [N] 1 or more; nothing is added beyond the end of the list.

        Returns:
            float64[N].
        """
        if not len(self.gain):
            return np.zeros(len(query))
        above = np.zeros(len(self.gain))
        above[1:] = running_sum(self.query, worth * (ranks[self.last] - ranks[self.before]))[:-1]
        above[self.before == 0] = 0.0
        width = int(max(self.last.max(), rank.max(initial=0))) + 1
        places = query.astype(np.int64) * width + rank - 1
        entry = np.searchsorted(self.query.astype(np.int64) * width + self.before, places, side="right") - 1
        within = np.minimum(rank, self.last[entry])
        inside = entry >= self.start[query]
        return np.where(inside, above[entry] + worth[entry] * (ranks[within] - ranks[self.before[entry]]), 0.0)


def running_sum(query: Integers, values: Floats) -> Floats:
    """Sum of each query's values up to and with each, added in their order.

    A query's sums are the same in any set of queries, which one running sum over all queries would not give; hence
    a loop: over the queries, or over the places in their lists, whichever are fewer.
    """
    if not len(query):
        return np.zeros(0)
    start = np.concatenate(([0], np.flatnonzero(np.diff(query)) + 1))
    length = np.diff(start, append=len(query))
    sums = np.empty(len(query))
    if len(start) <= length.max():
        for first, end in zip(start.tolist(), (start + length).tolist(), strict=True):
            np.cumsum(values[first:end], out=sums[first:end])
        return sums
    longest_first = np.argsort(-length, kind="stable")
    start, length = start[longest_first], length[longest_first]
    carried = np.zeros(len(start))
    for place in range(int(length[0])):
        going_on = int(np.searchsorted(-length, -place, side="left"))
        rows = start[:going_on] + place
        carried[:going_on] += values[rows]
        sums[rows] = carried[:going_on]
    return sums


def gain_against_ideal(ranking: Ranking, _cutoff: None) -> FloatQ:
    """Gain of each result, discounted by how far the list has fallen behind the ideal one at its rank.

        G = sum_i g_i / log2(2 + c_i - s_i), over the sum of the expected gains

    s_i is the gain of the first i results, c_i what the first i of the ideal list cost: their gain, and at least 1 each.

    Returns:
        float64[Q], at most 1; NaN where the number expected is not known.

    Conventions:
        nothing with gain expected -> 0 · a list that gained more than was expected (each match credited) is not behind.

    Source:
        Buckley 2008, an experimental measure of trec_eval: `G`.
    """
    ideal = IdealLists.of(ranking)
    cost = ideal.accumulated(np.maximum(ideal.gain, 1.0), ideal.undiscounted(), ranking.query, ranking.rank)
    cost += np.maximum(ranking.rank - ideal.size[ranking.query], 0)
    behind = np.maximum(cost - running_sum(ranking.query, ranking.gain), 0.0)
    every_row = np.ones(len(ranking.rank), dtype=np.bool_)
    gained = kernels.per_query(ranking, every_row, ranking.gain / np.log2(2.0 + behind))
    best = np.bincount(ideal.query, weights=ideal.gain * (ideal.last - ideal.before), minlength=ranking.n_queries)
    return _where_known(ideal, share_of(gained, best))


def ndcg_at_relevant(ranking: Ranking, _cutoff: None) -> FloatQ:
    """Mean of nDCG at the rank of every document with gain; one that was not found takes nDCG at the end of the list.

    Returns:
        float64[Q] in [0, 1] for gains of 0 and above; NaN where the number expected is not known.

    Conventions:
        nothing with gain expected -> 0 · a mean under 0 (from gains under 0) -> 0, as trec_eval.

    Source:
        Järvelin & Kekäläinen 2002, ACM TOIS 20(4), averaged as trec_eval `ndcg_rel`.
    """
    ideal = IdealLists.of(ranking)
    worthy = ranking.gain > 0
    so_far = running_sum(ranking.query, ranking.gain / np.log2(ranking.rank + 1.0))
    best = ideal.accumulated(ideal.gain, ideal.discounted(), ranking.query, ranking.rank)
    total = kernels.per_query(ranking, worthy, share_of(so_far, best))
    not_found = ideal.size - kernels.per_query(ranking, worthy)
    total = total + not_found * share_of(_whole_dcg(ranking, so_far), _whole_ideal(ideal))
    return _where_known(ideal, share_of(np.maximum(total, 0.0), ideal.size))


def ndcg_at_level_changes(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Mean of nDCG at the ranks where the gain of the ideal list falls, and at the end of a longer list.

    Returns:
        float64[Q] in [0, 1] for gains of 0 and above; NaN where the number expected is not known.

    Conventions:
        nothing with gain expected, or nothing of level `rel` -> 0 · the end of the list counts when it is at least two
        ranks longer than the ideal one · a list shorter than one of the ranks has no more gain there than at its end.

    Source:
        Järvelin & Kekäläinen 2002, ACM TOIS 20(4), averaged as trec_eval `Rndcg`.
    """
    ideal = IdealLists.of(ranking)
    so_far = running_sum(ranking.query, ranking.gain / np.log2(ranking.rank + 1.0))
    falls = np.ones(len(ideal.gain), dtype=np.bool_)
    falls[:-1] = (ideal.query[1:] != ideal.query[:-1]) | (ideal.gain[1:] != ideal.gain[:-1])
    query, rank = ideal.query[falls], ideal.last[falls]
    best = ideal.accumulated(ideal.gain, ideal.discounted(), query, rank)
    # float64[N]: the running sum of a query as it stands at a rank.
    width = int(max(ranking.rank.max(initial=0), rank.max(initial=0))) + 1
    rows = ranking.query.astype(np.int64) * width + ranking.rank
    row = np.searchsorted(rows, query.astype(np.int64) * width + rank, side="right") - 1
    first = np.searchsorted(ranking.query, query)
    found = share_of(np.where(row >= first, np.append(so_far, 0.0)[row], 0.0), best)
    total = np.bincount(query, weights=found, minlength=ranking.n_queries)
    points = np.bincount(query, minlength=ranking.n_queries)
    longer = (ideal.size > 0) & (ranking.n_returned >= ideal.size + 2)
    total = total + np.where(longer, share_of(_whole_dcg(ranking, so_far), _whole_ideal(ideal)), 0.0)
    value = share_of(total, points + longer)
    return _where_known(ideal, np.where(kernels.expected_relevant(ranking, rel) == 0, 0.0, value))


def _whole_dcg(ranking: Ranking, so_far: Floats) -> FloatQ:
    """float64[Q]: the running sum at the end of each list."""
    whole = np.zeros(ranking.n_queries)
    whole[ranking.query] = so_far  # the last row of a query is the last to write
    return whole


def _whole_ideal(ideal: IdealLists) -> FloatQ:
    """float64[Q]: DCG of the whole ideal list."""
    queries = np.arange(len(ideal.known))
    return ideal.accumulated(ideal.gain, ideal.discounted(), queries, np.maximum(ideal.size, 1))


def _where_known(ideal: IdealLists, values: FloatQ) -> FloatQ:
    return np.where(ideal.known, values, np.nan)


_GAINED: dict[str, Any] = {"cutoff": "none", "parameters": (GAINS, JUDGED_ONLY), "why_unscored": Reason.NEEDS_COUNT}

SPECS = (
    MeasureSpec(
        name="G",
        title="gain against the ideal list",
        sentence="Share of the expected gain that the results reach, each discounted by the deficit of the list "
        "against the ideal list.",
        formula="sum_i g_i / log2(2 + c_i - s_i), over the sum of the expected gains; s_i gain of the first i results, "
        "c_i of the first i of the ideal list, at least 1 each",
        kernel=gain_against_ideal,
        trec_name="G",
        source="Buckley 2008, an experimental measure of trec_eval: G",
        **_GAINED,
    ),
    MeasureSpec(
        name="nDCGRel",
        title="nDCG averaged over the relevant documents",
        sentence="Mean of nDCG at the rank of every document with a positive gain; documents that were not retrieved "
        "use nDCG of the whole list.",
        formula="(1 / N) * (sum_{i : g_i > 0} nDCG@i + (N - found) * nDCG), N expected documents with gain",
        kernel=ndcg_at_relevant,
        trec_name="ndcg_rel",
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); trec_eval ndcg_rel",
        **_GAINED,
    ),
    MeasureSpec(
        name="RnDCG",
        title="nDCG averaged over the levels",
        sentence="Mean of nDCG at the ranks at which the gain in the ideal list decreases, and at the end of a longer "
        "list.",
        formula="mean of nDCG@k over k = number of expected items of gain v or more, v every gain above 0; and of nDCG "
        "where n >= N + 2",
        kernel=ndcg_at_level_changes,
        trec_name="Rndcg",
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); trec_eval Rndcg",
        **_GAINED
        | {
            "parameters": (
                ParameterSpec(
                    "rel", 1, "lowest relevant grade: 0 for a query without a document of this grade", minimum=1
                ),
                GAINS,
                JUDGED_ONLY,
            )
        },
    ),
    MeasureSpec(
        name="IdealDCG",
        aliases=("IDCG",),
        title="discounted cumulative gain of the ideal list",
        sentence="Discounted cumulative gain of the ideal list: the divisor of nDCG. Does not depend on the results.",
        formula="sum_{i<=k} g_i / log2(i + 1) over the expected items in their best order",
        cutoff="optional",
        kernel=kernels.ideal_dcg,
        parameters=(
            ParameterSpec(
                "dcg", "log2", "gain of a grade g: 'log2' is g, 'exp-log2' is 2^g - 1", choices=("log2", "exp-log2")
            ),
            GAINS,
        ),
        range=(0.0, float("inf")),
        trec_name="ideal_dcg",
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); trec_eval 10.0 ideal_dcg",
        why_unscored=Reason.NEEDS_COUNT,
        diagnostic=True,
    ),
)

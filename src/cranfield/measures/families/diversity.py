"""Measures over subtopics: a query has several meanings, and a good list serves all of them early.

Each judgment says for which subtopic a document is relevant. Subtopics that nothing relevant is judged for do not count.
The novelty measures pay a subtopic's n-th relevant result (1 - alpha)^(n - 1). Axes: Q queries, S judgments of a document
for a subtopic it is relevant to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures.measure import JUDGED_ONLY, REL, MeasureSpec, ParameterSpec
from cranfield.measures.sums import sum_over_ranks
from cranfield.ranking.value import FloatQ, Ranking

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Discount = Callable[[Any], Any]
"""Rank to what a gain at that rank is worth."""

TIE = 1e-12
"""Gains that differ by no more than this share are the same to the greedy choice: sums fall short of it by rounding."""
GREEDY_BOUND = math.e / (math.e - 1)
"""The best list is worth at most so many times the greedy one (Nemhauser, Wolsey & Fisher 1978)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Relevant:
    """Who is relevant to what: an entry per document and subtopic, by query, then as the test set has them."""

    query: Ints  # [S]
    subtopic: Ints  # [S] 0, 1, … over all queries
    entry: Ints  # [S] which expected item of the ranking the document is
    rank: Ints  # [S] 0 where it was not returned
    n_subtopics: FloatQ  # [Q]
    of_subtopic: Floats  # [S] how many documents are relevant to the same subtopic
    n_queries: int


def _relevant(ranking: Ranking, rel: int) -> _Relevant:
    groups = ranking.groups
    if groups is None:  # `needs` keeps such a ranking away
        empty = np.zeros(0, dtype=np.int64)
        return _Relevant(empty, empty, empty, empty, np.zeros(ranking.n_queries), np.zeros(0), ranking.n_queries)
    rows = np.flatnonzero(groups.value >= rel)
    query, entry = groups.query[rows].astype(np.int64), groups.entry[rows].astype(np.int64)
    pairs, subtopic = np.unique(np.column_stack((query, groups.group[rows])), axis=0, return_inverse=True)
    subtopic = subtopic.reshape(-1)
    return _Relevant(
        query=query,
        subtopic=subtopic,
        entry=entry,
        rank=ranking.expected_rank[entry].astype(np.int64),
        n_subtopics=np.bincount(pairs[:, 0], minlength=ranking.n_queries).astype(np.float64),
        of_subtopic=np.bincount(subtopic)[subtopic].astype(np.float64) if len(rows) else np.zeros(0),
        n_queries=ranking.n_queries,
    )


def _nth(relevant: _Relevant, rank: Ints, seen: NDArray[np.bool_]) -> Ints:
    """int64[S]: how many of the rows seen have the same subtopic and a better rank; 0 for the others."""
    order = np.flatnonzero(seen)
    order = order[np.lexsort((rank[order], relevant.subtopic[order]))]
    subtopic = relevant.subtopic[order]
    nth = np.zeros(len(rank), dtype=np.int64)
    nth[order] = np.arange(len(order)) - np.searchsorted(subtopic, subtopic)
    return nth


def _novelty(relevant: _Relevant, rank: Ints, cutoff: int | None, alpha: float, discount: Discount) -> FloatQ:
    """float64[Q]: the discounted gain of documents at these ranks, each subtopic paid less every time."""
    seen = (rank > 0) if cutoff is None else (rank > 0) & (rank <= cutoff)
    gain = (1.0 - alpha) ** _nth(relevant, rank, seen) * discount(np.maximum(rank, 1))
    return _by_query(relevant, seen, gain)


def _ideal_ranks(relevant: _Relevant, depth: int | None, alpha: float) -> Ints:
    """int64[S]: the rank of each row's document in the list that takes the greatest gain next; 0 behind its end.

    Of documents that gain the same, the one that the test set has last is taken, which is the one with the largest id
    where it was read from a file or a table. What is chosen depends on all that was chosen before, so each query is
    walked on its own.
    """
    ranks = np.zeros(len(relevant.query), dtype=np.int64)
    bounds = np.searchsorted(relevant.query, np.arange(relevant.n_queries + 1)).tolist()
    for start, end in itertools.pairwise(bounds):
        if start < end:
            documents, first, place = np.unique(relevant.entry[start:end], return_index=True, return_inverse=True)
            standing = np.argsort(np.argsort(first))[place]  # as the test set has them
            _, subtopic = np.unique(relevant.subtopic[start:end], return_inverse=True)
            covers = np.zeros((len(documents), int(subtopic.max()) + 1))
            covers[standing, subtopic] = 1.0
            ranks[start:end] = _greedy(covers, len(documents) if depth is None else depth, alpha)[standing]
    return ranks


def _greedy(covers: Floats, depth: int, alpha: float) -> Ints:
    """int64[documents]: ranks of documents that are relevant to the subtopics marked, taken one by one."""
    ranks = np.zeros(len(covers), dtype=np.int64)
    worth = np.ones(covers.shape[1])
    for rank in range(1, min(depth, len(covers)) + 1):
        gain = np.where(ranks == 0, covers @ worth, -1.0)
        best = int(np.flatnonzero(gain >= gain.max() * (1.0 - TIE))[-1])
        ranks[best] = rank
        worth = np.where(covers[best] > 0, worth * (1.0 - alpha), worth)
    return ranks


def _by_query(relevant: _Relevant, rows: NDArray[np.bool_], weights: Floats) -> FloatQ:
    """float64[Q]: the sum of the weights of some rows."""
    sums = np.bincount(relevant.query[rows], weights=weights[rows], minlength=relevant.n_queries)
    return sums.astype(np.float64)  # without a row they are whole numbers


def _of_all(relevant: _Relevant, values: FloatQ) -> FloatQ:
    """Values over the number of subtopics; 0 where there is none."""
    return np.divide(values, relevant.n_subtopics, out=np.zeros_like(values), where=relevant.n_subtopics > 0)


VANISHED = -745.0
"""Its exponential is 0."""


def _over(values: FloatQ, ideal: FloatQ) -> FloatQ:
    return np.divide(values, ideal, out=np.zeros_like(values), where=ideal > 0)


def _logarithmic(rank: Any) -> Any:
    return 1.0 / np.log2(rank + 1.0)


def _reciprocal(rank: Any) -> Any:
    return 1.0 / rank


def _best_of_any(cutoff: int, alpha: float, discount: Discount) -> float:
    """The gain of a list whose every result is relevant to one subtopic."""
    if 0 < alpha < 1:  # beyond this rank what is left of a gain is under the smallest number
        cutoff = int(min(cutoff, VANISHED / math.log1p(-alpha) + 2))
    return sum_over_ranks(lambda rank: (1.0 - alpha) ** (rank - 1.0) * discount(rank), cutoff)


def alpha_dcg(ranking: Ranking, cutoff: int, *, rel: int = 1, alpha: float = 0.5) -> FloatQ:
    """Novelty-discounted gain by logarithms, over that of a list whose every result covers every subtopic."""
    relevant = _relevant(ranking, rel)
    values = _novelty(relevant, relevant.rank, cutoff, alpha, _logarithmic)
    return _of_all(relevant, values) / _best_of_any(cutoff, alpha, _logarithmic)


def alpha_ndcg(ranking: Ranking, cutoff: int | None, *, rel: int = 1, alpha: float = 0.5) -> FloatQ:
    """Novelty-discounted gain by logarithms, over that of the greedy list."""
    relevant = _relevant(ranking, rel)
    ideal = _novelty(relevant, _ideal_ranks(relevant, cutoff, alpha), cutoff, alpha, _logarithmic)
    return _over(_novelty(relevant, relevant.rank, cutoff, alpha, _logarithmic), ideal)


def err_ia(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Novelty-discounted gain by reciprocal ranks, over that of a list whose every result covers every subtopic."""
    relevant = _relevant(ranking, rel)
    values = _novelty(relevant, relevant.rank, cutoff, 0.5, _reciprocal)
    return _of_all(relevant, values) / _best_of_any(cutoff, 0.5, _reciprocal)


def nerr_ia(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Novelty-discounted gain by reciprocal ranks, over that of the greedy list."""
    relevant = _relevant(ranking, rel)
    ideal = _novelty(relevant, _ideal_ranks(relevant, cutoff, 0.5), cutoff, 0.5, _reciprocal)
    return _over(_novelty(relevant, relevant.rank, cutoff, 0.5, _reciprocal), ideal)


def nrbp(ranking: Ranking, _cutoff: None, *, rel: int = 1, alpha: float = 0.5, beta: float = 0.5) -> FloatQ:
    """Novelty-discounted gain by a user's patience, over that of an endless list whose every result covers everything."""
    relevant = _relevant(ranking, rel)
    values = _novelty(relevant, relevant.rank, None, alpha, lambda rank: beta ** (rank - 1.0))
    return _of_all(relevant, values) * (1.0 - (1.0 - alpha) * beta)


def nnrbp(ranking: Ranking, _cutoff: None, *, rel: int = 1, alpha: float = 0.5, beta: float = 0.5) -> FloatQ:
    """Novelty-discounted gain by a user's patience, over that of the greedy list."""
    relevant = _relevant(ranking, rel)
    ideal = _novelty(relevant, _ideal_ranks(relevant, None, alpha), None, alpha, lambda rank: beta ** (rank - 1.0))
    return _over(_novelty(relevant, relevant.rank, None, alpha, lambda rank: beta ** (rank - 1.0)), ideal)


def ap_ia(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Mean of the average precision of each subtopic."""
    relevant = _relevant(ranking, rel)
    seen = relevant.rank > 0
    precision = (_nth(relevant, relevant.rank, seen) + 1.0) / np.maximum(relevant.rank, 1)
    return _of_all(relevant, _by_query(relevant, seen, precision / relevant.of_subtopic))


def p_ia(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Mean of the precision of each subtopic."""
    relevant = _relevant(ranking, rel)
    seen = (relevant.rank > 0) & (relevant.rank <= cutoff)
    return _of_all(relevant, _by_query(relevant, seen, np.ones(len(seen)))) / cutoff


def subtopic_recall(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Share of the subtopics that a result within the cutoff is relevant to."""
    relevant = _relevant(ranking, rel)
    seen = (relevant.rank > 0) if cutoff is None else (relevant.rank > 0) & (relevant.rank <= cutoff)
    first = seen & (_nth(relevant, relevant.rank, seen) == 0)
    return _of_all(relevant, _by_query(relevant, first, np.ones(len(seen))))


ALPHA = ParameterSpec("alpha", 0.5, "share of the gain of a subtopic that each relevant result removes", 0, 1)
BETA = ParameterSpec("beta", 0.5, "probability that the user continues to the next result", 0, 1)
_DEFINED = "queries judged by subtopic; 0 where nothing is relevant to any"
_COMMON: dict[str, Any] = {"needs": "subtopic", "defined_for": _DEFINED}

SPECS = (
    MeasureSpec(
        name="alpha_DCG",
        title="alpha-DCG",
        sentence="Discounted gain of new subtopics, divided by that of a list in which every result covers all "
        "subtopics.",
        formula="sum_{i<=k} sum_s rel_i(s) (1 - alpha)^{n_s(i)} / log2(i + 1), over N sum_{i<=k} (1 - alpha)^{i-1} / log2(i + 1)",
        cutoff="required",
        kernel=alpha_dcg,
        parameters=(REL, ALPHA, JUDGED_ONLY),
        source="Clarke et al. 2008, SIGIR; ndeval 4.5 alpha-DCG, which at k = 1 leaves out the division",
        **_COMMON,
    ),
    MeasureSpec(
        name="alpha_nDCG",
        question="Do the results add something new each time?",
        plain="Like nDCG, but a result that repeats a subtopic already seen earns less.",
        title="alpha-nDCG",
        sentence="Discounted gain of new subtopics, divided by that of a greedily built ideal list.",
        formula="sum_{i<=k} sum_s rel_i(s) (1 - alpha)^{n_s(i)} / log2(i + 1), over the same sum for the greedy list",
        cutoff="optional",
        kernel=alpha_ndcg,
        parameters=(REL, ALPHA, JUDGED_ONLY),
        range=(0.0, GREEDY_BOUND),
        source="Clarke et al. 2008, SIGIR; ndeval 4.5 alpha-nDCG",
        **_COMMON,
    ),
    MeasureSpec(
        name="ERR_IA",
        title="intent-aware expected reciprocal rank",
        sentence="Expected reciprocal rank, averaged over subtopics, divided by that of a list in which every result "
        "covers all subtopics.",
        formula="sum_{i<=k} sum_s rel_i(s) 2^{-n_s(i)} / i, over N sum_{i<=k} 2^{1-i} / i",
        cutoff="required",
        kernel=err_ia,
        parameters=(REL, JUDGED_ONLY),
        source="Chapelle et al. 2009, CIKM; ndeval 4.5 ERR-IA, which at k = 1 leaves out the division",
        **_COMMON,
    ),
    MeasureSpec(
        name="nERR_IA",
        title="normalised intent-aware expected reciprocal rank",
        sentence="Expected reciprocal rank, averaged over subtopics, divided by that of a greedily built ideal list.",
        formula="sum_{i<=k} sum_s rel_i(s) 2^{-n_s(i)} / i, over the same sum for the greedy list",
        cutoff="optional",
        kernel=nerr_ia,
        parameters=(REL, JUDGED_ONLY),
        range=(0.0, GREEDY_BOUND),
        source="Chapelle et al. 2009, CIKM; ndeval 4.5 nERR-IA",
        **_COMMON,
    ),
    MeasureSpec(
        name="NRBP",
        title="novelty- and rank-biased precision",
        sentence="Gain of new subtopics for a user who continues from each rank with probability beta.",
        formula="(1 - (1 - alpha) beta) / N sum_i beta^{i-1} sum_s rel_i(s) (1 - alpha)^{n_s(i)}",
        cutoff="none",
        kernel=nrbp,
        parameters=(REL, ALPHA, BETA, JUDGED_ONLY),
        source="Clarke, Kolla & Vechtomova 2009, ICTIR; ndeval 4.5 NRBP",
        **_COMMON,
    ),
    MeasureSpec(
        name="nNRBP",
        title="normalised novelty- and rank-biased precision",
        sentence="Gain of new subtopics for a user who continues from each rank with probability beta, divided by that"
        " of a greedily built ideal list.",
        formula="sum_i beta^{i-1} sum_s rel_i(s) (1 - alpha)^{n_s(i)}, over the same sum for the greedy list",
        cutoff="none",
        kernel=nnrbp,
        parameters=(REL, ALPHA, BETA, JUDGED_ONLY),
        range=(0.0, GREEDY_BOUND),
        source="Clarke, Kolla & Vechtomova 2009, ICTIR; ndeval 4.5 nNRBP",
        **_COMMON,
    ),
    MeasureSpec(
        name="AP_IA",
        title="intent-aware average precision",
        sentence="Average precision, averaged over subtopics.",
        formula="(1 / N) sum_s AP_s",
        cutoff="none",
        kernel=ap_ia,
        parameters=(REL, JUDGED_ONLY),
        aliases=("MAP_IA",),
        source="Agrawal et al. 2009, WSDM; ndeval 4.5 MAP-IA",
        **_COMMON,
    ),
    MeasureSpec(
        name="P_IA",
        title="intent-aware precision",
        sentence="Precision at k, averaged over subtopics.",
        formula="(1 / N) sum_s |{i <= k : rel_i(s)}| / k",
        cutoff="required",
        kernel=p_ia,
        parameters=(REL, JUDGED_ONLY),
        source="Agrawal et al. 2009, WSDM; ndeval 4.5 P-IA",
        **_COMMON,
    ),
    MeasureSpec(
        name="StRecall",
        question="Are all meanings of the query covered?",
        plain="The share of the subtopics of a query for which one of the first k results is good.",
        title="subtopic recall",
        sentence="Share of the subtopics to which at least one of the first k results is relevant.",
        formula="|{s : some i <= k has rel_i(s)}| / N",
        cutoff="optional",
        kernel=subtopic_recall,
        parameters=(REL, JUDGED_ONLY),
        source="Zhai, Cohen & Lafferty 2003, SIGIR; ndeval 4.5 strec",
        **_COMMON,
    ),
)

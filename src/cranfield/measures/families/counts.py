"""Sums, counts and shares, what is in the right order, and what reading costs.

No kernel orders, joins or looks at an id. Axes: Q queries, J judged results, E expected entries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels, ties
from cranfield.measures.measure import BEST, GAINS, GRADE, JUDGED_ONLY, REL, MeasureSpec, ParameterSpec, Reason
from cranfield.measures.sums import Integers, starts
from cranfield.ranking.value import FloatQ, Ranking, ResultState

INFINITE = float("inf")
NOTHING_FOUND = "nothing relevant was found"
NO_PAIR = "no two of its items have different grades"
NOTHING_JUDGED = "none of its first results is judged"
COST_UNKNOWN = "nothing was returned, or a result that is read has no token count"


def cumulative_gain(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Sum of the gains of the first k results."""
    rows = _within(ranking, cutoff)
    return kernels.per_query(ranking, rows, ranking.gain)


def discounted_gain(ranking: Ranking, cutoff: int | None, *, dcg: str = "log2") -> FloatQ:
    """Sum of the gains of the first k results, each over the logarithm of its rank: nDCG before it is normalised.

    Returns:
        float64[Q]; infinite where no float holds a gain.
    """
    gain = ranking.gain
    if dcg == "exp-log2" and ranking.convention.gain != "exponential":
        gain = np.exp2(gain) - 1.0
    return kernels.per_query(ranking, _within(ranking, cutoff), gain / np.log2(ranking.rank + 1.0))


def hits(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Relevant results in the first k."""
    return kernels.per_query(ranking, kernels.relevant_rows(ranking, rel, cutoff))


def f1(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Harmonic mean of P@k and R@k; of the whole list's precision and recall without a cutoff.

    Returns:
        float64[Q] in [0, 1]; 0 where nothing relevant was found; NaN where the number expected is not known.
    """
    depth = int(ranking.n_returned.max(initial=1)) if cutoff is None else cutoff
    recall = kernels.recall(ranking, depth, rel=rel)
    if cutoff is None:
        precision = hits(ranking, None, rel=rel) / np.maximum(ranking.n_returned, 1)
    else:
        precision = kernels.precision(ranking, cutoff, rel=rel)
    both = precision + recall
    result = np.zeros_like(both)
    np.divide(2.0 * precision * recall, both, out=result, where=both != 0)
    return result


def coverage(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Share of the expected items that a result in the first k is, each once however many results are it.

    Returns:
        float64[Q] in [0, 1]; 0 where nothing relevant was expected.
    """
    expected = ranking.expected_level >= rel
    rank = ranking.expected_rank
    found = expected & (rank > 0)
    if cutoff is not None:
        found &= rank <= cutoff
    items = np.bincount(ranking.expected_query[expected], minlength=ranking.n_queries)
    covered = np.bincount(ranking.expected_query[found], minlength=ranking.n_queries)
    return covered / np.maximum(items, 1)


def pair_order(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Share of the pairs of expected items with different grades that the list has in the order of their grades.

    Returns:
        float64[Q] in [0, 1]; NaN where no two items have different grades.

    Conventions:
        an item that was not returned, or not within k, stands below every one that was · of two that were not returned
        neither is in order · grades under 0 are no grades.

    Source:
        The share of concordant pairs of Kendall 1938, Biometrika 30(1/2), over pairs whose grades decide.
    """
    entries = np.flatnonzero(ranking.expected_level >= 0)
    query, rank = ranking.expected_query[entries], ranking.expected_rank[entries].astype(np.float64)
    rank[rank == 0] = np.inf
    if cutoff is not None:
        rank[rank > cutoff] = np.inf
    level, gain = ranking.expected_level[entries], ranking.expected_gain[entries]
    opens = np.ones(len(entries), dtype=np.bool_)
    opens[1:] = (np.diff(query) != 0) | (np.diff(level) != 0) | (np.diff(gain) != 0)
    grade: NDArray[np.int64] = np.cumsum(opens)  # entries come best first
    same = np.bincount(grade)
    n_items = np.bincount(query, minlength=ranking.n_queries)
    pairs = _pairs(n_items)
    np.subtract.at(pairs, query[opens], _pairs(same[1:]))
    # Those not returned come last, the worst of them first: no two of them ascend.
    order = np.lexsort((-grade, rank, query))
    first = starts(query)
    place = grade - np.repeat(grade[first], np.diff(first, append=len(query)))
    ordered = ascending_pairs(query[order], place[order], ranking.n_queries)
    pairs[pairs == 0] = np.nan
    result: FloatQ = ordered / pairs
    return result


def ascending_pairs(query: Integers, value: Integers, n_queries: int) -> FloatQ:
    """float64[Q]: pairs of one query in which the later value is the larger one.

    Two values differ first in their highest differing bit, so each bit is counted among values that agree above it.

    Args:
        query: int[N], sorted.
        value: int[N], 0 or more, in the order that is counted.
        n_queries: Q.
    """
    total = np.zeros(n_queries)
    for bit in range(int(value.max(initial=0)).bit_length()):
        above = value >> (bit + 1)
        order = np.lexsort((above, query))  # stable: keeps the order
        of, prefix, bit_set = query[order], above[order], (value[order] >> bit) & 1
        opens = np.ones(len(order), dtype=np.bool_)
        opens[1:] = (np.diff(of) != 0) | (np.diff(prefix) != 0)
        zeros = np.cumsum(1 - bit_set)
        zeros -= (zeros - (1 - bit_set))[opens][np.cumsum(opens) - 1]
        total += np.bincount(of, weights=bit_set * zeros, minlength=n_queries)
    return total


def tokens_to_hit(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Tokens read up to and with the first relevant result; those of the whole list where there is none.

    Returns:
        float64[Q]; NaN where nothing was returned, or a result that is read has no token count.
    """
    if ranking.tokens is None or ranking.tokens_returned is None:
        return np.full(ranking.n_queries, np.nan)
    rows = np.flatnonzero(ranking.level >= rel)
    first = rows[starts(ranking.query[rows])]
    tokens = ranking.tokens_returned.copy()
    tokens[ranking.query[first]] = ranking.tokens[first]
    tokens[ranking.n_returned == 0] = np.nan
    return tokens


def rank_of_first(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Rank of the first relevant result; NaN where there is none within k."""
    first = kernels.first_relevant_rank(ranking, rel=rel, cutoff=cutoff)
    return np.where(np.isinf(first), np.nan, first)


def tied_share(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Share of the judged results in the first k that ties with another result; NaN where none is judged."""
    judged = _within(ranking, cutoff) & (ranking.state == ResultState.JUDGED)
    n_judged = kernels.per_query(ranking, judged)
    n_judged[n_judged == 0] = np.nan
    return kernels.per_query(ranking, judged & (ranking.tie_last > ranking.tie_first)) / n_judged


def _within(ranking: Ranking, cutoff: int | None) -> NDArray[np.bool_]:
    return np.ones(len(ranking.rank), dtype=np.bool_) if cutoff is None else ranking.rank <= cutoff


def _pairs(n: Integers) -> FloatQ:
    """How many pairs n things make."""
    result: FloatQ = n * (n - 1.0) / 2.0
    return result


SPECS = (
    MeasureSpec(
        name="CG",
        question="How much good is in the list?",
        plain=(
            "The grades of the first k results, added up, in whatever order. Queries with many good documents"
            " weigh more than others."
        ),
        title="cumulative gain",
        sentence="Sum of the gains of the first k results, independent of their order.",
        formula="sum_{i<=k} g_i",
        cutoff="optional",
        kernel=cumulative_gain,
        over_ties=ties.cumulative_gain,
        parameters=(GAINS, JUDGED_ONLY),
        aliases=("CG(d)",),
        range=(0.0, INFINITE),
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4)",
    ),
    MeasureSpec(
        name="DCG",
        question="How much good is in the list, and how high?",
        plain=(
            "Grades added up, each worth less the lower its result stands. Compare it on the same queries "
            "only: its largest value is different for each query."
        ),
        title="discounted cumulative gain",
        sentence="Sum of the gains of the first k results, discounted by the logarithm of the rank. Not normalised: "
        "queries with more relevant documents have more weight.",
        formula="sum_{i<=k} g_i / log2(i + 1)",
        cutoff="optional",
        kernel=discounted_gain,
        over_ties=ties.discounted_gain,
        parameters=(
            ParameterSpec(
                "dcg", "log2", "gain of a grade g: 'log2' is g, 'exp-log2' is 2^g - 1", choices=("log2", "exp-log2")
            ),
            GAINS,
            JUDGED_ONLY,
        ),
        presets=(("dcg_burges", "dcg='exp-log2'"),),
        aliases=("DCG(d)",),
        range=(0.0, INFINITE),
        trec_name="dcg",
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); 'exp-log2' is of Burges et al. 2005, ICML; trec_eval 10.0 dcg, "
        "ranx dcg",
        why_unscored=Reason.TOO_LARGE,
    ),
    MeasureSpec(
        name="Hits",
        question="How many good results are in the list?",
        plain="A plain count of the good results among the first k.",
        title="hits",
        sentence="Number of relevant results among the first k.",
        formula="|{i <= k : grade_i >= rel}|",
        cutoff="optional",
        kernel=hits,
        over_ties=ties.relevant_within,
        parameters=(REL, GRADE, BEST, JUDGED_ONLY),
        aliases=("hits",),
        range=(0.0, INFINITE),
        source="ranx hits",
    ),
    MeasureSpec(
        name="F1",
        question="Is the list complete, and free of irrelevant results?",
        plain="One number for precision and recall: it is high only if both are.",
        title="F1",
        sentence="Harmonic mean of precision and recall at k, or of the whole list.",
        formula="2 P@k R@k / (P@k + R@k)",
        cutoff="optional",
        kernel=f1,
        parameters=(REL, JUDGED_ONLY),
        aliases=("f1",),
        source="van Rijsbergen 1979, Information Retrieval, Butterworths; ranx f1",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="Coverage",
        question="How many of the expected items appear?",
        plain="2 of 4 expected items among the first k give 0.5, however many results match the same item.",
        title="coverage",
        sentence="Share of the expected items (documents, or files given by a pattern) that are among the first k "
        "results. An item counts once, however many results match it.",
        formula="|{item : grade >= rel, a result i <= k is it}| / |{item : grade >= rel}|",
        cutoff="optional",
        kernel=coverage,
        parameters=(REL, JUDGED_ONLY),
        source="recall of items: Kent et al. 1955, American Documentation 6(2)",
    ),
    MeasureSpec(
        name="PairOrder",
        question="Is better ranked above worse?",
        plain="Of all pairs of items with different grades, the share in which the better one stands higher.",
        title="order of pairs",
        sentence="Share of the pairs of expected items with different grades that are ranked in the order of their "
        "grades. Items that were not returned rank below all results.",
        formula="|{(a, b) : grade_a > grade_b, rank_a < rank_b}| / |{(a, b) : grade_a > grade_b}|",
        cutoff="optional",
        kernel=pair_order,
        source="share of concordant pairs: Kendall 1938, Biometrika 30(1/2)",
        why_unscored=NO_PAIR,
        defined_for="queries with items of two grades or more",
    ),
    MeasureSpec(
        name="RankOfFirst",
        question="At which rank is the first good result?",
        plain="A rank, so lower is better. Queries without a good result are left out: report Success as well.",
        unscored_by_run=True,
        title="rank of the first relevant result",
        sentence="Rank of the first relevant result, averaged over the queries that have one; the others have no value: report "
        "Success too.",
        formula="min{i <= k : grade_i >= rel}",
        cutoff="optional",
        kernel=rank_of_first,
        parameters=(REL, GRADE, BEST, JUDGED_ONLY),
        aliases=("MeanRank",),
        range=(1.0, INFINITE),
        higher_is_better=False,
        source="search length, plus 1: Cooper 1968, American Documentation 19(1)",
        why_unscored=NOTHING_FOUND,
        defined_for="queries with a relevant result",
    ),
    MeasureSpec(
        name="TokensToHit",
        question="How much must be read before the answer?",
        plain="The tokens from the first result up to the first good one: what a model is charged for.",
        unscored_by_run=True,
        title="tokens to the first hit",
        sentence="Number of tokens up to and including the first relevant result, or of the whole list if there is "
        "none.",
        formula="sum_{i<=n} tokens_i, n = min{i : grade_i >= rel}, or the length of the list",
        cutoff="none",
        kernel=tokens_to_hit,
        parameters=(REL,),
        range=(0.0, INFINITE),
        higher_is_better=False,
        source="search length in the unit of its cost: Cooper 1968, American Documentation 19(1)",
        why_unscored=COST_UNKNOWN,
        defined_for="queries with a result, if results have token counts",
        needs="tokens",
    ),
    MeasureSpec(
        name="Tied",
        question="Does chance decide the order?",
        plain=(
            "The share of the results whose score equals that of another: their order depends on the rule for ties."
        ),
        unscored_by_run=True,
        title="tied share",
        sentence="Share of the judged results among the first k whose score is tied with another result, so that the "
        "tie-breaking rule decides their order.",
        formula="|{i <= k : judged, another result has its score}| / |{i <= k : judged}|",
        cutoff="optional",
        kernel=tied_share,
        higher_is_better=False,
        source="McSherry & Najork 2008, ECIR (on ties in ranked lists)",
        why_unscored=NOTHING_JUDGED,
        defined_for="queries with a judged result",
        diagnostic=True,
    ),
)

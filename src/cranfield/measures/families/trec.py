"""Measures of trec_eval beyond the core: precision at places that depend on the query, preference, and smoothed AP.

Those of the returned set live in `trec_sets`, those of graded gain in `trec_gains`; their rows are listed here too.
No kernel orders, joins or looks at an id. Axes: Q queries, J judged results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.families import trec_gains, trec_sets
from cranfield.measures.families.trec_sets import share_of
from cranfield.measures.measure import JUDGED_ONLY, REL, MeasureSpec, Reason
from cranfield.ranking.value import FloatQ, Ranking, ResultState

ELEVEN_SHARES = tuple(tenth / 10 for tenth in range(11))
INFERRED_SMOOTHING = 1e-5
"""What trec_eval adds to both counts of judged results, so that a proportion of nothing is a half."""
BUCKLEY_VOORHEES = (
    "Buckley & Voorhees 2005, in TREC: Experiment and Evaluation in Information Retrieval, MIT Press, ch. 3"
)


def r_precision(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Precision at rank R, R being the number of expected documents: there precision and recall are the same.

    Returns:
        float64[Q] in [0, 1]; NaN where R is not known.

    Conventions:
        nothing expected -> 0 · fewer than R returned -> still over R.
    """
    return _precision_at_multiple(ranking, kernels.expected_relevant(ranking, rel), rel=rel)


def precision_at_multiple(ranking: Ranking, cutoff: float, *, rel: int = 1) -> FloatQ:
    """Precision at a multiple x of the number of expected documents: at rank floor(x * R + 0.9).

    Returns:
        float64[Q] in [0, 1]; NaN where R is not known.

    Conventions:
        nothing expected, or a rank of 0 -> 0 · fewer returned -> still over that rank.
    """
    return _precision_at_multiple(ranking, np.floor(cutoff * kernels.expected_relevant(ranking, rel) + 0.9), rel=rel)


def relative_precision(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Relevant results in the first k, over as many as there could be: the smaller of k and R; 0 where R is 0."""
    found = kernels.per_query(ranking, kernels.relevant_rows(ranking, rel, cutoff))
    return share_of(found, np.minimum(kernels.expected_relevant(ranking, rel), cutoff))


def binary_preference(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """How rarely a judged non-relevant result stands before a relevant one.

        bpref = (1 / R) * sum over relevant results of 1 - min(n before, R) / min(N, R)

    n before counts the judged non-relevant results ranked above, N all judged non-relevant documents of the query.

    Returns:
        float64[Q] in [0, 1].

    Conventions:
        nothing expected -> 0 · no judged non-relevant result above -> that result counts 1, also where N is 0 ·
        results that are not judged, and those with a grade under 0, are passed over.

    Source:
        Buckley & Voorhees 2004, SIGIR; trec_eval `bpref`. ranx has no value where N is 0.
    """
    expected = kernels.expected_relevant(ranking, rel)
    known = (ranking.expected_level >= 0) & (ranking.expected_level < rel)
    not_relevant = np.bincount(ranking.expected_query[known], minlength=ranking.n_queries)
    relevant = ranking.level >= rel
    before = counted_before(ranking, (ranking.state == ResultState.JUDGED) & ~relevant)[relevant]
    query = ranking.query[relevant]
    kept = np.ones(len(ranking.rank))
    lost = share_of(np.minimum(before, expected[query]), np.minimum(not_relevant, expected)[query])
    kept[relevant] = 1.0 - np.where(before > 0, lost, 0.0)
    return share_of(kernels.per_query(ranking, relevant, kept), expected)


def inferred_average_precision(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Average precision guessed from a pool of which only a sample was judged.

    At a relevant result of rank k, the precision is 1/k for itself, plus the share of the ranks above that are in the
    pool, times the proportion of relevant ones among those above that were judged.

    Returns:
        float64[Q] in [0, 1].

    Conventions:
        nothing expected -> 0 · grade under 0: in the pool, not judged · no grade: outside the pool, not relevant ·
        both counts of the proportion are smoothed by 1e-5, so a perfect list is a little under 1.

    Source:
        Yilmaz & Aslam 2006, CIKM; trec_eval `infAP`.
    """
    relevant = ranking.level >= rel
    pooled = counted_before(ranking, np.ones(len(ranking.rank), dtype=np.bool_))[relevant]
    found = counted_before(ranking, relevant)[relevant]
    judged = counted_before(ranking, ranking.state == ResultState.JUDGED)[relevant]
    above = ranking.rank[relevant] - 1.0
    proportion = (found + INFERRED_SMOOTHING) / (judged + 2 * INFERRED_SMOOTHING)
    in_pool = share_of(pooled, above)
    weights = np.zeros(len(ranking.rank))
    weights[relevant] = 1.0 / (above + 1.0) + (above / (above + 1.0)) * in_pool * proportion
    return share_of(kernels.per_query(ranking, relevant, weights), kernels.expected_relevant(ranking, rel))


def interpolated_precision(ranking: Ranking, cutoff: float, *, rel: int = 1) -> FloatQ:
    """Best precision at any rank from where a share of the expected documents has been found.

    Returns:
        float64[Q] in [0, 1]; NaN where the number expected is not known.

    Conventions:
        nothing expected, or that share never reached -> 0 · a share of 0 is reached at the first relevant result ·
        the share of R documents is rounded to the nearest number, halves up (trec_eval 10.0), or, where the
        convention's `iprec` is "up", floor(share * R + 0.9) (trec_eval 9.0.8, pytrec_eval).
    """
    return _best_from(ranking, (cutoff,), rel)


def eleven_point_precision(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Mean of the interpolated precision at shares 0, 0.1, … 1; see `interpolated_precision` for its conventions."""
    return _best_from(ranking, ELEVEN_SHARES, rel)


def binary_gain(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Mean over the expected documents of 1 / log2(2 + results above that are not relevant); 0 where not found."""
    rows, nth = _nth_relevant(ranking, rel)
    weights = np.zeros(len(ranking.rank))
    weights[rows] = 1.0 / np.log2(2.0 + ranking.rank[rows] - nth)
    return share_of(kernels.per_query(ranking, rows, weights), kernels.expected_relevant(ranking, rel))


def smoothed_average_precision(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Log of the odds that a relevant document is placed well: ln((1 + s) / (1 + R - s)), s the sum of precisions.

    Returns:
        float64[Q], from -ln(1 + R) to ln(1 + R); 0 where nothing is expected.
    """
    rows, nth = _nth_relevant(ranking, rel)
    weights = np.zeros(len(ranking.rank))
    weights[rows] = nth / ranking.rank[rows]
    placed = kernels.per_query(ranking, rows, weights)
    left = kernels.expected_relevant(ranking, rel) - placed
    return np.log((1.0 + placed) / np.where(left > -1.0, 1.0 + left, np.nan))


def counted_before(ranking: Ranking, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64[J]: how many of `rows` stand above each result in its list."""
    before = np.cumsum(rows, dtype=np.int64) - rows
    first = np.searchsorted(ranking.query, np.arange(ranking.n_queries))
    return before - before[first[ranking.query]]


def _precision_at_multiple(ranking: Ranking, rank: FloatQ, *, rel: int) -> FloatQ:
    rows = (ranking.level >= rel) & (ranking.rank <= rank[ranking.query])
    return share_of(kernels.per_query(ranking, rows), rank)


def _nth_relevant(ranking: Ranking, rel: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """bool[J] relevant results, and for each of those how many its list holds up to and with it."""
    rows = ranking.level >= rel
    return rows, counted_before(ranking, rows)[rows] + 1


def _best_from(ranking: Ranking, shares: tuple[float, ...], rel: int) -> FloatQ:
    """Mean over the shares of the best precision from where each is reached."""
    rows, nth = _nth_relevant(ranking, rel)
    query, precision = ranking.query[rows], nth / ranking.rank[rows]
    expected = kernels.expected_relevant(ranking, rel)
    total = np.zeros(ranking.n_queries)
    for share in shares:
        reached = nth >= _documents(ranking, share * expected)[query]
        best = np.zeros(ranking.n_queries)
        np.maximum.at(best, query[reached], precision[reached])
        total += best
    return np.where(np.isnan(expected), np.nan, total / len(shares))


def _documents(ranking: Ranking, exact: FloatQ) -> FloatQ:
    """A share of the expected documents as a whole number of them, by the rule of the convention."""
    if ranking.convention.iprec == "up":
        return np.floor(exact + 0.9)
    whole = np.floor(exact)
    return whole + (exact - whole >= 0.5)


_BY_REL: dict[str, Any] = {"cutoff": "none", "parameters": (REL, JUDGED_ONLY), "why_unscored": Reason.NEEDS_COUNT}
_BPREF: dict[str, Any] = {
    "kernel": binary_preference,
    "closed_world": False,
    "defined_for": "queries judged by document id; 0 where nothing relevant was expected",
}

SPECS = (
    MeasureSpec(
        name="Rprec",
        question="How good is a list as long as the answer?",
        plain=(
            "The precision of as many results as the query has good documents: 1 means that exactly these are on top."
        ),
        title="precision at R",
        sentence="Precision at rank R, where R is the number of relevant documents of the query.",
        formula="|{i <= R : grade_i >= rel}| / R",
        kernel=r_precision,
        aliases=("RPrec", "r-precision"),
        trec_name="Rprec",
        source=f"{BUCKLEY_VOORHEES}; trec_eval Rprec",
        **_BY_REL,
    ),
    MeasureSpec(
        name="RprecMult",
        title="precision at a multiple of R",
        sentence="Precision at rank x R, where R is the number of relevant documents of the query.",
        formula="P@floor(x R + 0.9)",
        cutoff="required",
        cutoff_kind="multiple",
        kernel=precision_at_multiple,
        parameters=(REL, JUDGED_ONLY),
        trec_cut_name="Rprec_mult",
        source=f"{BUCKLEY_VOORHEES}; trec_eval Rprec_mult",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="RelP",
        aliases=("RCap", "R_cap", "recall_cap"),
        title="relative precision",
        question="How much of what the page can hold is found?",
        plain=(
            "Recall that can always reach 1: with 30 good documents and 10 places, 10 good results give 1. It is the capped"
            " recall of BEIR."
        ),
        sentence="Number of relevant results among the first k, divided by the largest possible number: precision for "
        "k up to R, recall beyond. Also called capped recall, R_cap@k.",
        formula="|{i <= k : grade_i >= rel}| / min(k, R)",
        cutoff="required",
        kernel=relative_precision,
        parameters=(REL, JUDGED_ONLY),
        trec_cut_name="relative_P",
        source=f"{BUCKLEY_VOORHEES}; trec_eval relative_P; R_cap of BEIR: Thakur et al. 2021, NeurIPS Datasets and Benchmarks",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="Bpref",
        question="Which order is better where much is ungraded?",
        plain=("Looks at graded results only: how seldom a document graded as not relevant stands above a good one."),
        title="binary preference",
        sentence="Mean over the relevant documents of one minus the share of judged non-relevant results above each; documents "
        "that were not retrieved count as 0, unjudged results are ignored.",
        formula="(1 / R) * sum_{relevant i} 1 - min(judged non-relevant above i, R) / min(N, R)",
        aliases=("BPref",),
        trec_name="bpref",
        source="Buckley & Voorhees 2004, SIGIR; trec_eval bpref",
        **_BY_REL | _BPREF | {"why_unscored": Reason.NOTHING_UNJUDGED},
    ),
    MeasureSpec(
        name="GMBpref",
        title="geometric mean of binary preference",
        sentence="Binary preference, aggregated over queries by the geometric mean, which gives low values more "
        "weight.",
        formula="exp(mean of ln max(Bpref, 0.00001))",
        aggregate="geometric mean",
        trec_name="gm_bpref",
        source="Buckley & Voorhees 2004, SIGIR; Robertson 2006, CIKM; trec_eval gm_bpref",
        **_BY_REL | _BPREF | {"why_unscored": Reason.NOTHING_UNJUDGED},
    ),
    MeasureSpec(
        name="GMAP",
        title="geometric mean of average precision",
        sentence="Average precision, aggregated over queries by the geometric mean, which gives low values more "
        "weight.",
        formula="exp(mean of ln max(AP, 0.00001))",
        kernel=kernels.average_precision,
        aggregate="geometric mean",
        trec_name="gm_map",
        source="Robertson 2006, CIKM (On GMAP: and other transformations); trec_eval gm_map",
        **_BY_REL,
    ),
    MeasureSpec(
        name="infAP",
        question="What is average precision if only a sample is graded?",
        plain="An estimate of average precision for pools of which a random part was graded.",
        title="inferred average precision",
        sentence="Estimate of average precision from a pool of which only a sample was judged.",
        formula="(1 / R) * sum_{relevant i} 1/i + (pooled above i)/i * (relevant above i + e)/(judged above i + 2e)",
        kernel=inferred_average_precision,
        trec_name="infAP",
        source="Yilmaz & Aslam 2006, CIKM; trec_eval infAP",
        closed_world=False,
        defined_for="queries judged by document id; 0 where nothing relevant was expected",
        **_BY_REL | {"why_unscored": Reason.NOTHING_UNJUDGED},
    ),
    MeasureSpec(
        name="IPrec",
        title="interpolated precision at a share of recall",
        sentence="Highest precision at any rank at which the recall is at least this share.",
        formula="max{P@i : recall at i >= share}",
        cutoff="required",
        cutoff_kind="share",
        kernel=interpolated_precision,
        parameters=(REL, JUDGED_ONLY),
        trec_cut_name="iprec_at_recall",
        source="Salton & McGill 1983, Introduction to Modern Information Retrieval; trec_eval iprec_at_recall",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="AP11",
        title="11-point average precision",
        sentence="Mean of the interpolated precision at recall 0, 0.1, 0.2 and so on to 1.",
        formula="(1 / 11) * sum_{share in 0, 0.1, … 1} IPrec@share",
        kernel=eleven_point_precision,
        trec_name="11pt_avg",
        source="Salton & McGill 1983, Introduction to Modern Information Retrieval; trec_eval 11pt_avg",
        **_BY_REL,
    ),
    MeasureSpec(
        name="binG",
        title="binary gain by non-relevant results above",
        sentence="Mean over the relevant documents of a gain that decreases with the number of non-relevant results "
        "above each; documents that were not retrieved count as 0.",
        formula="(1 / R) * sum_{relevant i} 1 / log2(2 + results above i that are not relevant)",
        kernel=binary_gain,
        trec_name="binG",
        source="Buckley 2008, an experimental measure of trec_eval: binG",
        **_BY_REL,
    ),
    MeasureSpec(
        name="YAAP",
        title="yet another average precision",
        sentence="Average precision on a log-odds scale, which enlarges differences near 0 and 1.",
        formula="ln((1 + s) / (1 + R - s)), s = sum_{relevant i} P@i",
        kernel=smoothed_average_precision,
        range=(-float("inf"), float("inf")),
        trec_name="yaap",
        source="Robertson 2012, ECIR (On Smoothing Average Precision); trec_eval yaap",
        **_BY_REL,
    ),
    *trec_gains.SPECS,
    *trec_sets.SPECS,
)

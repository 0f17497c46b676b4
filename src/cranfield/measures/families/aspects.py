"""What one kind of question is measured by: files covered, everything found, the newer form first, sources, silence, what is forbidden.

No kernel orders, joins or reads an id: the join has recorded the rank of the first of each. Axes: Q queries,
E expected entries, A things looked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.measure import JUDGED_ONLY, REL, MeasureSpec, Reason
from cranfield.model import Outcome
from cranfield.ranking.value import UNKNOWN_COUNT, Aspect, FloatQ, Ranking

NO_FILE = "it names no file to cover"
NO_LEGACY = "it names no legacy form"
NO_SOURCE = "no expected document has a known source"
NOT_NEGATIVE = "something should be found"
NOTHING_FORBIDDEN = "it forbids no result, or has no answer"


def all_found(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """1 where every expected relevant item is among the first k results, as often as it was expected.

    Returns:
        float64[Q] of 0 and 1; NaN where the number expected is not known.

    Conventions:
        nothing relevant expected: 0.
    """
    expected = ranking.expected_level >= rel
    rows = kernels.relevant_rows(ranking, rel, cutoff)
    lacking = np.where(
        ranking.expected_count == UNKNOWN_COUNT,
        np.nan,
        ranking.expected_count - kernels.items_found(ranking, rows, rel, cutoff),
    )
    lacks = np.bincount(
        ranking.expected_query[expected], weights=lacking[expected], minlength=ranking.n_queries
    ).astype(np.float64)
    some = np.bincount(ranking.expected_query[expected], minlength=ranking.n_queries) > 0
    return np.where(np.isnan(lacks), np.nan, ((lacks == 0) & some).astype(np.float64))


def file_coverage(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Share of the expected files in which one of the first k results lies.

    Returns:
        float64[Q] in [0, 1]; NaN where no file is expected.
    """
    query, rank = _met(ranking, Aspect.FILE, "rank")
    covered = (rank > 0) if cutoff is None else (rank > 0) & (rank <= cutoff)
    files = np.bincount(query, minlength=ranking.n_queries).astype(np.float64)
    files[files == 0] = np.nan
    return np.bincount(query[covered], minlength=ranking.n_queries) / files


def modern_first(ranking: Ranking, _cutoff: None) -> FloatQ:
    """1 where the first modern result stands above the first legacy one.

    Modern is a relevant result that is not of the legacy form.

    Returns:
        float64[Q] of 0 and 1; NaN where no legacy form is named.

    Conventions:
        modern found, legacy not: 1 · legacy found, modern not: 0 · neither found: 0, and neither a win nor a loss where
        wins are counted against losses (see `form_wins`) · a query the system failed on: 0.
    """
    wins = form_wins(ranking)
    return np.where(np.isnan(wins), np.nan, (wins > 0).astype(np.float64))


def form_wins(ranking: Ranking) -> FloatQ:
    """float64[Q]: 1 where modern leads, -1 where legacy does, 0 where neither was found; NaN where no legacy is named."""
    wins = np.full(ranking.n_queries, np.nan)
    ranks = {}
    for kind in (Aspect.MODERN, Aspect.LEGACY):
        query, rank = _met(ranking, kind, "rank")
        first = np.full(ranking.n_queries, np.inf)
        first[query] = np.where(rank > 0, rank, np.inf)
        ranks[kind] = first
        wins[query] = 0.0
    wins[ranks[Aspect.MODERN] < ranks[Aspect.LEGACY]] = 1.0
    wins[ranks[Aspect.MODERN] > ranks[Aspect.LEGACY]] = -1.0
    return wins


def top_source(ranking: Ranking, _cutoff: None) -> FloatQ:
    """1 where the first result is from the source of highest authority among those with a relevant result in the list.

    Returns:
        float64[Q] of 0 and 1.

    Conventions:
        no source has a relevant result: 0 · the first result itself need not be the relevant one.
    """
    query, relevant = _met(ranking, Aspect.SOURCE, "relevant_rank")
    _, rank = _met(ranking, Aspect.SOURCE, "rank")
    _, place = _met(ranking, Aspect.SOURCE, "place")
    best = np.full(ranking.n_queries, np.inf)
    answers = relevant > 0
    np.minimum.at(best, query[answers], place[answers])
    leads = np.zeros(ranking.n_queries)
    leads[query[(place == best[query]) & (rank == 1)]] = 1.0
    return leads


def source_reciprocal_rank(ranking: Ranking, _cutoff: None) -> FloatQ:
    """Mean, over the sources that an expected document is from, of one over the rank of their first relevant result.

    Returns:
        float64[Q] in [0, 1]; NaN where no expected document is from a source, or that is not known.
    """
    query, relevant = _met(ranking, Aspect.SOURCE, "relevant_rank")
    _, expected = _met(ranking, Aspect.SOURCE, "expected")
    counts = expected.astype(np.bool_)
    gained = np.where(relevant > 0, 1.0 / np.maximum(relevant, 1), 0.0)
    total = np.bincount(query[counts], weights=gained[counts], minlength=ranking.n_queries)
    sources = np.bincount(query[counts], minlength=ranking.n_queries).astype(np.float64)
    sources[sources == 0] = np.nan
    return total / sources


def silence(ranking: Ranking, _cutoff: None) -> FloatQ:
    """1 for a negative query if no result was returned, or none above the bound.

    Returns:
        float64[Q] of 0 and 1; NaN where something should be found.

    Conventions:
        a query the system failed on: 0.
    """
    return np.where(ranking.is_negative, ranking.keeps_silence.astype(np.float64), np.nan)


def forbidden(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Number of results among the first k that must not be found.

    Returns:
        float64[Q], 0 or more; NaN where the query forbids no result, or has no answer: a failure shows nothing.

    Conventions:
        an empty list: 0.
    """
    query, rank = _met(ranking, Aspect.FORBIDDEN, "rank")
    found = (rank > 0) if cutoff is None else (rank > 0) & (rank <= cutoff)
    return _where_forbidden(ranking, np.bincount(query[found], minlength=ranking.n_queries).astype(np.float64))


def first_forbidden(ranking: Ranking, _cutoff: None) -> FloatQ:
    """1 / rank of the first result that must not be found.

    Returns:
        float64[Q] in [0, 1], 0 where none was found; NaN where the query forbids no result, or has no answer.
    """
    query, rank = _met(ranking, Aspect.FORBIDDEN, "rank")
    first = np.zeros(ranking.n_queries)
    np.maximum.at(first, query[rank > 0], 1.0 / rank[rank > 0])
    return _where_forbidden(ranking, first)


def _where_forbidden(ranking: Ranking, values: FloatQ) -> FloatQ:
    query, _ = _met(ranking, Aspect.FORBIDDEN, "rank")
    forbids = np.zeros(ranking.n_queries, dtype=np.bool_)
    forbids[query] = True
    forbids &= [not (outcome.is_failure or outcome is Outcome.MISSING) for outcome in ranking.outcomes]
    return np.where(forbids, values, np.nan)


def _met(ranking: Ranking, kind: Aspect, column: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Query and one column of the rows of a kind, by query."""
    aspects = ranking.aspects
    if aspects is None:  # `needs` keeps such a ranking away
        none = np.zeros(0, dtype=np.int32)
        return none, none
    rows = aspects.kind == kind
    return aspects.query[rows], getattr(aspects, column)[rows]


SPECS = (
    MeasureSpec(
        name="AllFound",
        question="Is everything there that one answer needs?",
        plain=(
            "The share of the queries for which every expected item is among the first k: one missing item makes it 0."
        ),
        title="everything found",
        sentence="1 if every expected item is among the first k results, else 0.",
        formula="1 if all items of grade >= rel are among the results i <= k, else 0",
        cutoff="optional",
        kernel=all_found,
        parameters=(REL, JUDGED_ONLY),
        source="recall of 1: Kent et al. 1955, American Documentation 6(2)",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="FileCoverage",
        question="Does the search reach every file that matters?",
        plain="Of the files that a query names, the share with at least one result in them.",
        title="file coverage",
        sentence="Share of the files named by the query in which at least one of the first k results lies.",
        formula="|{file expected : a result i <= k lies in it}| / |{file expected}|",
        cutoff="optional",
        kernel=file_coverage,
        source="recall of files: Kent et al. 1955, American Documentation 6(2)",
        why_unscored=NO_FILE,
        defined_for="queries that name files",
        needs="files",
    ),
    MeasureSpec(
        name="ModernFirst",
        question="Is the current form above the outdated one?",
        plain="1 if the current form stands above the legacy form, else 0.",
        title="modern form first",
        sentence="1 if the first modern result (relevant, and not of the legacy form) is ranked above the first legacy"
        " one, or no legacy one was returned; 0 if a legacy one is ranked first, or neither was returned.",
        formula="1 if min{i : modern} < min{i : legacy}, the minimum of nothing being infinite; else 0",
        cutoff="none",
        kernel=modern_first,
        source="one pair of a pairwise preference: Joachims 2002, KDD",
        why_unscored=NO_LEGACY,
        defined_for="queries that name a legacy form",
        needs="legacy",
    ),
    MeasureSpec(
        name="TopSource",
        title="top result from the best source",
        sentence="1 if the first result is from the source of highest authority among those with a relevant result in "
        "the list; 0 otherwise, or if no source has one.",
        formula="1 if source(1) = the highest of {source(i) : grade_i >= 1}, else 0",
        cutoff="none",
        kernel=top_source,
        source="resource selection: Callan 2000, Distributed Information Retrieval",
        defined_for="queries of a test set that names sources; 0 where no source has a relevant result",
        needs="sources",
    ),
    MeasureSpec(
        name="SourceRR",
        title="reciprocal rank, averaged over sources",
        sentence="Mean reciprocal rank of the first relevant result of each source that has a relevant document.",
        formula="(1 / |S|) * sum_{s in S} 1 / min{i : source(i) = s, grade_i >= 1}, S the sources of expected documents",
        cutoff="none",
        kernel=source_reciprocal_rank,
        source="Voorhees 1999, TREC-8 Question Answering Track Report, one source at a time",
        why_unscored=NO_SOURCE,
        defined_for="queries with an expected document from a source",
        needs="sources",
    ),
    MeasureSpec(
        name="Silence",
        question="Is the search silent where nothing should be found?",
        plain=(
            "For queries without a right answer: 1 if nothing is returned, or nothing above the bound of the query."
        ),
        title="silence",
        sentence="For negative queries: 1 if no result was returned, or none above the bound of the query; 0 for "
        "failures.",
        formula="1 if {i : result i counts} is empty, else 0",
        cutoff="none",
        kernel=silence,
        source="true negatives; questions without an answer: Rajpurkar, Jia & Liang 2018, ACL",
        why_unscored=NOT_NEGATIVE,
        defined_for="negative queries",
        needs="silence",
    ),
    MeasureSpec(
        name="Forbidden",
        question="Is something shown that must not be found?",
        plain="For queries that forbid results: how many forbidden results are among the first k; 0 is right.",
        title="forbidden results",
        sentence="Number of results among the first k that the query forbids: of another tenant, outdated, withdrawn.",
        formula="|{result i <= k : i is forbidden}|",
        cutoff="optional",
        kernel=forbidden,
        source="false positives, counted: Kent et al. 1955, American Documentation 6(2)",
        why_unscored=NOTHING_FORBIDDEN,
        unscored_by_run=True,
        range=(0.0, float("inf")),
        higher_is_better=False,
        defined_for="queries that forbid results",
        needs="forbidden",
    ),
    MeasureSpec(
        name="ForbiddenRR",
        title="reciprocal rank of the first forbidden result",
        sentence="1 / rank of the first result that the query forbids; 0 if none was returned.",
        formula="1 / min{i : i is forbidden}; 0 if there is none",
        cutoff="none",
        kernel=first_forbidden,
        source="reciprocal rank: Voorhees 1999, TREC-8 Question Answering Track Report",
        why_unscored=NOTHING_FORBIDDEN,
        unscored_by_run=True,
        higher_is_better=False,
        defined_for="queries that forbid results",
        needs="forbidden",
    ),
)

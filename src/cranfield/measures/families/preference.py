"""Measures over preferences, and over several judges.

A preference is a pair of documents of which the first is preferred. It is met when both are returned
in that order, or the first alone is. Measures in `Ret` look at pairs of which both were returned, measures in `Imp` at
those of which at least one was; the others count a pair that was not returned at all as not met.
Axes: N groups (the judges or sets of preferences of all queries, sorted by query), D documents of one group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.families.trec import precision_at_multiple
from cranfield.measures.measure import REL, MeasureSpec, ParameterSpec
from cranfield.measures.preferences import (
    BoolG,
    FloatN,
    GroupPreferences,
    Pairs,
    PreferenceTally,
    Rows,
    groups_of,
    opinion,
    partial_groups,
    plain_tally,
    rows_of,
    tally,
)
from cranfield.ranking.value import FloatQ, Groups, Ranking, ResultState, condensed

HIGHEST_LEVEL = 2**31 - 1
Kernel = Callable[..., FloatQ]


# Kernels


def number_of_preferences(ranking: Ranking, _cutoff: None = None) -> FloatQ:
    """How many preferences a query has."""
    rows = rows_of(ranking)
    return _over_groups(ranking, rows, tally(rows).possible("all"), "sum")


def preferences_met(ranking: Ranking, _cutoff: None = None, *, pairs: Pairs) -> FloatQ:
    """How many preferences of a query are met."""
    rows = rows_of(ranking)
    return _over_groups(ranking, rows, tally(rows).met(pairs), "sum")


def preference_ratio(ranking: Ranking, _cutoff: None = None, *, pairs: Pairs) -> FloatQ:
    """Preferences met over preferences; 0 where there are none."""
    rows = rows_of(ranking)
    counts = tally(rows)
    met = _over_groups(ranking, rows, counts.met(pairs), "sum")
    return _ratio(met, _over_groups(ranking, rows, counts.possible(pairs), "sum"))


def ratio_by_group(ranking: Ranking, _cutoff: None = None, *, pairs: Pairs) -> FloatQ:
    """The same ratio within each group, averaged; a group without such a pair has 0."""
    rows = rows_of(ranking)
    counts = tally(rows)
    return _over_groups(ranking, rows, _ratio(counts.met(pairs), counts.possible(pairs)), "mean")


def ratio_by_pair(ranking: Ranking, _cutoff: None = None, *, pairs: Pairs) -> FloatQ:
    """Share of the groups that a pair satisfies, of those that order it; averaged over pairs."""
    rows = rows_of(ranking)
    values = preference_ratio(ranking, pairs=pairs)  # the same where there is one group
    n_groups = np.bincount(rows.query, minlength=ranking.n_queries)
    for query in np.flatnonzero(n_groups > 1).tolist():  # pairs are matched across groups: a matrix a query
        values[query] = _pairs_of(rows, query, pairs)
    return values


def _pairs_of(rows: Rows, query: int, pairs: Pairs) -> float:
    here = rows.query[rows.group] == query
    order = np.lexsort((rows.place[here], np.where(rows.rank[here] > 0, rows.rank[here], np.iinfo(np.int32).max)))
    entries = list(dict.fromkeys(rows.entry[here][order].tolist()))
    place = {entry: position for position, entry in enumerate(entries)}
    n = len(set(rows.entry[here & (rows.rank > 0)].tolist()))
    times = np.zeros((len(place), len(place)))
    for group in np.flatnonzero(rows.query == query).tolist():
        judge = opinion(rows, group)
        at = [place[entry] for entry in judge.entry.tolist()]
        times[np.ix_(at, at)] += judge.better
    met, ordered = np.triu(times, 1), np.triu(times + times.T, 1)
    known = ordered > 0
    shares = np.divide(met, ordered, out=np.zeros_like(met), where=known)
    returned, half = shares[:n, :n][known[:n, :n]], shares[:n, n:][known[:n, n:]]
    n_pairs = {"returned": known[:n, :n], "implied": known[:n], "all": known}[pairs].sum()
    total = np.cumsum(np.concatenate(([0.0], returned, half if pairs != "returned" else half[:0])))[-1]
    return float(total / n_pairs) if n_pairs else 0.0


def balanced_ratio(ranking: Ranking, _cutoff: None = None, *, pairs: Pairs) -> FloatQ:
    """The ratio within each group with as many non-relevant documents as relevant ones, averaged.

    Where a group has fewer non-relevant ones, the missing ones count as ranked below all others; where it has more, the
    first ones are used. As trec_eval has it, pairs of two non-relevant documents then count by their order (except in
    groups with subgroups), and a query one of whose groups has no pair at all has 0.
    """
    rows = rows_of(ranking)
    met, possible = _balanced(rows, pairs)
    values = _over_groups(ranking, rows, _ratio(met, possible), "mean")
    values[rows.query[possible == 0]] = 0.0
    return values


def _balanced(rows: Rows, pairs: Pairs) -> tuple[FloatN, FloatN]:
    looked_at = rows.rank > 0 if pairs == "returned" else np.ones(len(rows.rank), dtype=np.bool_)
    relevant, other = (rows.value > 0) & looked_at, (rows.value <= 0) & looked_at
    n_relevant, n_other = rows.count(relevant), rows.count(other)
    kept = ~(other & (rows.nth(other) > n_relevant[rows.group]))
    counts = plain_tally(rows.only(kept))
    lacking, surplus = np.maximum(n_relevant - n_other, 0), n_other > n_relevant
    other_returned = rows.count(other & (rows.rank > 0))
    near = np.minimum(n_relevant, other_returned)
    in_order = near * (near - 1) / 2 + (n_relevant - near) * other_returned
    met = counts.met(pairs) + rows.count((rows.value > 0) & (rows.rank > 0)) * lacking + surplus * in_order
    possible = counts.possible(pairs) + rows.count(rows.value > 0) * lacking + surplus * n_other * n_relevant
    for n in partial_groups(rows):
        met[n], possible[n] = _balanced_opinion(opinion(rows, n), pairs)
    return met, possible


def _balanced_opinion(judge: GroupPreferences, pairs: Pairs) -> tuple[float, float]:
    depth = judge.n_returned if pairs == "returned" else len(judge.relevant)
    n_relevant, n_other = int(judge.relevant[:depth].sum()), int((~judge.relevant[:depth]).sum())
    among, lacking = np.ones(len(judge.relevant), dtype=np.bool_), n_relevant - n_other
    if lacking < 0:
        # trec_eval keeps as many as the group has relevant documents, returned or not.
        among, lacking = judge.relevant | (np.cumsum(~judge.relevant) <= judge.relevant.sum()), 0
    counts = PreferenceTally(*(np.array([count]) for count in judge.tally(among)))
    met = float(counts.met(pairs)[0]) + int(judge.relevant[: judge.n_returned].sum()) * lacking
    return met, float(counts.possible(pairs)[0]) + int(judge.relevant.sum()) * lacking


def _over_groups(ranking: Ranking, rows: Rows, value: FloatN, how: Literal["sum", "mean"]) -> FloatQ:
    """float64[Q]: sum or mean over the groups of a query; NaN where it has none."""
    n_groups = np.bincount(rows.query, minlength=ranking.n_queries).astype(np.float64)
    total = np.bincount(rows.query, weights=value, minlength=ranking.n_queries)
    n_groups[n_groups == 0] = np.nan
    return total / n_groups if how == "mean" else np.where(np.isnan(n_groups), np.nan, total)


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide, with 0 where there is nothing; NaN stays."""
    return np.divide(numerator, denominator, out=numerator * 0.0, where=denominator > 0)


# Several judges


def rankings_by_judge(ranking: Ranking) -> Iterator[tuple[NDArray[np.bool_], Ranking]]:
    """The ranking as the first judge of each query sees it, then the second, and so on; with the queries that have one."""
    groups = groups_of(ranking)
    for judge in range(int(groups.group.max(initial=-1)) + 1):
        yield _restrict_to_judge(ranking, groups, groups.group == judge)


def _restrict_to_judge(ranking: Ranking, groups: Groups, rows: BoolG) -> tuple[NDArray[np.bool_], Ranking]:
    query, entry, value = groups.query[rows], groups.entry[rows], groups.value[rows]
    best_first = np.lexsort((-value, query))
    query, entry, value = query[best_first], entry[best_first], value[best_first]
    level = np.clip(np.floor(value), -HIGHEST_LEVEL, HIGHEST_LEVEL).astype(np.int32)
    item = np.arange(len(query)) - np.searchsorted(query, np.arange(ranking.n_queries))[query]
    rank = ranking.expected_rank[entry]
    hits = np.lexsort((rank, query))
    hits = hits[rank[hits] > 0]
    has_judge = np.zeros(ranking.n_queries, dtype=np.bool_)
    has_judge[query] = True
    return has_judge, replace(
        ranking,
        query=query[hits],
        rank=rank[hits],
        gain=np.maximum(value, 0.0)[hits],
        level=level[hits],
        state=np.where(level[hits] < 0, int(ResultState.POOLED), int(ResultState.JUDGED)).astype(np.int8),
        item=item[hits].astype(np.int32),
        tie_first=rank[hits],
        tie_last=rank[hits],
        expected_query=query,
        expected_gain=np.maximum(value, 0.0),
        expected_level=level,
        expected_count=np.ones(len(query), dtype=np.int64),
        groups=None,
        tokens=None,
        tokens_returned=None,
    )


def _over_judges(kernel: Callable[[Ranking], FloatQ], ranking: Ranking, *, own_list: bool) -> FloatQ:
    """float64[Q]: mean of a kernel over the judges of a query; NaN where it has none."""
    total, n_judges = np.zeros(ranking.n_queries), np.zeros(ranking.n_queries)
    for has_judge, seen in rankings_by_judge(ranking):
        values = kernel(condensed(seen) if own_list else seen)
        total[has_judge] += values[has_judge]
        n_judges += has_judge
    n_judges[n_judges == 0] = np.nan
    return total / n_judges


def average_precision_by_judge(
    ranking: Ranking, _cutoff: None = None, *, rel: int = 1, own_list: bool = False
) -> FloatQ:
    """Average precision by the judgments of each judge alone, averaged."""
    return _over_judges(partial(kernels.average_precision, cutoff=None, rel=rel), ranking, own_list=own_list)


def precision_by_judge(ranking: Ranking, cutoff: int, *, rel: int = 1, own_list: bool = False) -> FloatQ:
    """Precision by the judgments of each judge alone, averaged."""
    return _over_judges(partial(kernels.precision, cutoff=cutoff, rel=rel), ranking, own_list=own_list)


def precision_at_multiple_by_judge(ranking: Ranking, cutoff: float, *, rel: int = 1, own_list: bool = False) -> FloatQ:
    """Precision at a multiple of the number of relevant documents of each judge, averaged."""
    return _over_judges(partial(precision_at_multiple, cutoff=cutoff, rel=rel), ranking, own_list=own_list)


# The catalogue's rows

NO_PREFERENCE = "it has no preferences"
NO_JUDGE = "it has no judgments by judge"
PREFERENCE_SOURCE = "Carterette & Bennett 2008, SIGIR; trec_eval "
OWN_LIST = ParameterSpec(
    "own_list", False, "remove from the list of each judge the documents that the judge did not judge"
)


def _count(name: str, title: str, sentence: str, formula: str, trec_name: str, kernel: Kernel) -> MeasureSpec:
    return MeasureSpec(
        name=name,
        title=title,
        sentence=sentence,
        formula=formula,
        cutoff="none",
        kernel=kernel,
        source=f"trec_eval {trec_name}",
        trec_name=trec_name,
        range=(0.0, math.inf),
        needs="preference",
        aggregate="sum",
        why_unscored=NO_PREFERENCE,
        defined_for="queries with preferences",
    )


def _share(name: str, title: str, sentence: str, formula: str, trec_name: str, kernel: Kernel) -> MeasureSpec:
    return MeasureSpec(
        name=name,
        title=title,
        sentence=sentence,
        formula=formula,
        cutoff="none",
        kernel=kernel,
        source=PREFERENCE_SOURCE + trec_name,
        trec_name=trec_name,
        needs="preference",
        why_unscored=NO_PREFERENCE,
        defined_for="queries with preferences; 0 where no preference counts",
    )


def _shares() -> Iterator[MeasureSpec]:
    """Each share over all pairs, over those returned whole, and over those returned at least by half."""
    scopes: tuple[tuple[str, str, Pairs, str], ...] = (
        ("", "", "all", ""),
        ("Ret", "_ret", "returned", ", among pairs of which both documents were returned"),
        ("Imp", "_imp", "implied", ", among pairs of which a document was returned"),
    )
    for suffix, trec_suffix, pairs, among in scopes:
        yield _share(
            f"Pref{suffix}",
            f"preferences met{among}",
            f"Share of the preferences that agree with the order of the results{among}.",
            "preferences met / preferences",
            f"prefs_simp{trec_suffix}",
            partial(preference_ratio, pairs=pairs),
        )
        yield _share(
            f"PrefPair{suffix}",
            f"preferences met, pair by pair{among}",
            f"Share of the groups that prefer the same document of a pair as the results, averaged over pairs{among}.",
            "mean over pairs of (groups whose preference is met / groups that order the pair)",
            f"prefs_pair{trec_suffix}",
            partial(ratio_by_pair, pairs=pairs),
        )
        yield _share(
            f"PrefGroup{suffix}",
            f"preferences met, group by group{among}",
            f"Share of a group's preferences that are met, averaged over groups{among}.",
            "mean over groups of (preferences met / preferences)",
            f"prefs_avgjg{trec_suffix}",
            partial(ratio_by_group, pairs=pairs),
        )
        if pairs != "implied":
            yield _share(
                f"PrefGroupBalanced{suffix}",
                f"preferences met, group by group, balanced{among}",
                "Share of a group's preferences that are met, with as many non-relevant documents as it has relevant ones, "
                f"averaged over groups{among}.",
                "mean over groups of (preferences met / preferences), R non-relevant documents each",
                f"prefs_avgjg_Rnonrel{trec_suffix}",
                partial(balanced_ratio, pairs=pairs),
            )


SPECS = (
    _count(
        "NumPref",
        "preferences",
        "Number of preferences of the query.",
        "sum over groups of pairs of which one is preferred",
        "prefs_num_prefs_poss",
        number_of_preferences,
    ),
    _count(
        "NumPrefMet",
        "preferences met",
        "Number of preferences that agree with the order of the results.",
        "sum over groups of pairs whose preferred document is ranked first, or alone",
        "prefs_num_prefs_ful",
        partial(preferences_met, pairs="all"),
    ),
    _count(
        "NumPrefMetRet",
        "preferences met among the results",
        "Number of preferences between two results that agree with their order.",
        "sum over groups of pairs, both returned, whose preferred document is ranked first",
        "prefs_num_prefs_ful_ret",
        partial(preferences_met, pairs="returned"),
    ),
    *_shares(),
    MeasureSpec(
        name="APJudge",
        title="average precision, averaged over judges",
        sentence="Average precision by the judgments of each judge, averaged over the judges of the query.",
        formula="mean over judges of AP",
        cutoff="none",
        kernel=average_precision_by_judge,
        parameters=(REL, OWN_LIST),
        trec_name="map_avgjg",
        source="trec_eval map_avgjg",
        needs="judge",
        why_unscored=NO_JUDGE,
        defined_for="queries judged by judge; 0 where nothing relevant was expected",
    ),
    MeasureSpec(
        name="PJudge",
        title="precision, averaged over judges",
        sentence="Precision at k by the judgments of each judge, averaged over the judges of the query.",
        formula="mean over judges of P@k",
        cutoff="required",
        kernel=precision_by_judge,
        parameters=(REL, OWN_LIST),
        trec_cut_name="P_avgjg",
        source="trec_eval P_avgjg",
        needs="judge",
        why_unscored=NO_JUDGE,
        defined_for="queries judged by judge",
    ),
    MeasureSpec(
        name="RprecMultJudge",
        title="precision at a multiple of R, averaged over judges",
        sentence="Precision at rank m R by the judgments of each judge, where R is the number of documents that the "
        "judge finds relevant, averaged over the judges of the query.",
        formula="mean over judges of P@floor(m R + 0.9)",
        cutoff="required",
        cutoff_kind="multiple",
        kernel=precision_at_multiple_by_judge,
        parameters=(REL, OWN_LIST),
        trec_cut_name="Rprec_mult_avgjg",
        source="trec_eval Rprec_mult_avgjg",
        needs="judge",
        why_unscored=NO_JUDGE,
        defined_for="queries judged by judge; 0 where nothing relevant was expected",
    ),
)

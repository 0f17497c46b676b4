"""Measures of trec_eval that look at what was returned as a set: counts, and shares of the whole list.

They are listed by `trec`. Axes: Q queries, J judged results.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.measure import JUDGED_ONLY, PERSISTENCE, REL, MeasureSpec, ParameterSpec, Reason, with_default
from cranfield.ranking.value import FloatQ, Ranking, ResultState

NEEDS_SIZE = "how many documents match, or how many the collection holds (documents=), is not known"


def share_of(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Divide, with 0 where the whole is 0 and NaN where it is not known."""
    result = np.zeros(len(part))
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def number_of_queries(ranking: Ranking, _cutoff: None) -> FloatQ:
    """1 for every query, answered or not."""
    return np.ones(ranking.n_queries)


def number_returned(ranking: Ranking, _cutoff: None, *, rel: int = 0) -> FloatQ:
    """Results of level `rel` or more; all results, judged or not, where `rel` is 0."""
    if rel == 0:
        return ranking.n_returned.astype(np.float64)
    return kernels.per_query(ranking, ranking.level >= rel)


def number_expected(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Expected documents of level `rel` or more; NaN where they are not counted."""
    return kernels.expected_relevant(ranking, rel)


def number_of_wrong_results(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Results that were judged and found wanting: a grade from 0 to under `rel`."""
    return kernels.per_query(ranking, (ranking.state == ResultState.JUDGED) & (ranking.level < rel))


def set_precision(ranking: Ranking, _cutoff: None, *, rel: int = 1, relative: bool = False) -> FloatQ:
    """Relevant results over all results, or, where `relative`, over the smaller of those and R; 0 over nothing."""
    possible = ranking.n_returned.astype(np.float64)
    if relative:
        possible = np.minimum(possible, kernels.expected_relevant(ranking, rel))
    return share_of(number_returned(ranking, None, rel=rel), possible)


def set_recall(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Relevant results over all that were expected, however long the list; 0 where nothing was."""
    return share_of(number_returned(ranking, None, rel=rel), kernels.expected_relevant(ranking, rel))


def set_average_precision(ranking: Ranking, _cutoff: None, *, rel: int = 1) -> FloatQ:
    """Precision of the set times its recall; 0 where either is."""
    found = number_returned(ranking, None, rel=rel)
    return share_of(found * found, ranking.n_returned * kernels.expected_relevant(ranking, rel))


def set_f(ranking: Ranking, _cutoff: None, *, rel: int = 1, beta: float = 1.0) -> FloatQ:
    """Weighted harmonic mean of the precision and the recall of the set.

        F = (beta + 1) * P * R / (beta * P + R)

    Conventions:
        nothing relevant returned -> 0 · beta weighs recall as it stands, as in trec_eval and ir_measures; where the
        literature writes beta squared, give the square.

    Source:
        van Rijsbergen 1979, Information Retrieval, Butterworths; trec_eval `set_F`.
    """
    precision = set_precision(ranking, None, rel=rel)
    recall = set_recall(ranking, None, rel=rel)
    return share_of((beta + 1.0) * precision * recall, beta * precision + recall)


def utility(
    ranking: Ranking,
    _cutoff: None,
    *,
    found: float = 1.0,
    wrong: float = -1.0,
    missed: float = 0.0,
    spared: float = 0.0,
    documents: int = 0,
    rel: int = 1,
) -> FloatQ:
    """Worth of the decision made on every document: returned or not, relevant or not.

    Args:
        ranking: what was returned.
        found: worth of a relevant result.
        wrong: worth of a result that is not relevant, judged or not.
        missed: worth of a relevant document that was not returned.
        spared: worth of a document of the collection that is neither relevant nor returned.
        documents: size of the collection, which `spared` needs.
        rel: lowest grade that counts as relevant.

    Returns:
        float64[Q], unbounded; NaN where a worth is not 0 and its documents are not counted.
    """
    relevant = number_returned(ranking, None, rel=rel)
    value = found * relevant + wrong * (ranking.n_returned - relevant)
    if not missed and not spared:
        return value
    not_returned = kernels.expected_relevant(ranking, rel) - relevant
    value = value + missed * not_returned
    if spared:
        rest = documents - ranking.n_returned - not_returned
        value = value + spared * np.where(rest < 0, np.nan, rest)
    return value


def unjudged_share(ranking: Ranking, cutoff: int) -> FloatQ:
    """Unjudged results in the first k, over k; ranks beyond the end of a short list are not counted."""
    judged = (ranking.state == ResultState.JUDGED) & (ranking.rank <= cutoff)
    return (np.minimum(ranking.n_returned, cutoff) - kernels.per_query(ranking, judged)) / cutoff


def rbp_residual(ranking: Ranking, _cutoff: None, *, p: float = 0.9) -> FloatQ:
    """How much rank-biased precision could rise if every unjudged result had full gain.

        resid = p^n + (1 - p) * sum over unjudged i <= n of p^(i - 1)

    Returns:
        float64[Q] in [0, 1].

    Conventions:
        p^n stands for the ranks after the n results of the list · every result judged, or none returned -> 0, the
        ranks after the list included (as trec_eval; the paper would still count p^n there) · a grade under 0 is
        unjudged.

    Source:
        Moffat & Zobel 2008, ACM TOIS 27(1); trec_eval 10.0 `rbp_resid`.
    """
    judged = ranking.state == ResultState.JUDGED
    known = (1.0 - p) * kernels.per_query(ranking, judged, np.power(p, ranking.rank - 1.0))
    return np.where(kernels.per_query(ranking, judged) < ranking.n_returned, 1.0 - known, 0.0)


INFINITE = float("inf")
_NONE: dict[str, Any] = {"cutoff": "none"}
_BY_REL: dict[str, Any] = {"cutoff": "none", "parameters": (REL, JUDGED_ONLY), "why_unscored": Reason.NEEDS_COUNT}
_COUNT: dict[str, Any] = {
    "cutoff": "none",
    "range": (0.0, INFINITE),
    "diagnostic": True,
    "aggregate": "sum",
    "defined_for": "every query",
}
_JUDGED_BY_ID: dict[str, Any] = {
    "closed_world": False,
    "why_unscored": Reason.NOTHING_UNJUDGED,
    "defined_for": "queries judged by document id",
}
_SETS = "Kent et al. 1955, American Documentation 6(2)"

SPECS = (
    MeasureSpec(
        name="NumQ",
        title="number of queries",
        sentence="Number of evaluated queries.",
        formula="1 for each query",
        kernel=number_of_queries,
        over_ties=number_of_queries,
        trec_name="num_q",
        source="trec_eval num_q",
        **_COUNT | {"range": (1.0, 1.0)},
    ),
    MeasureSpec(
        name="NumRet",
        title="number of results",
        sentence="Number of results; with rel, of results with at least that grade.",
        formula="n",
        kernel=number_returned,
        over_ties=number_returned,
        parameters=(
            ParameterSpec("rel", 0, "lowest grade that counts; 0 counts every result, judged or not", minimum=0),
            JUDGED_ONLY,
        ),
        trec_name="num_ret",
        source="trec_eval num_ret",
        **_COUNT,
    ),
    MeasureSpec(
        name="NumRel",
        title="number of relevant documents",
        sentence="Number of relevant documents, returned or not.",
        formula="R",
        kernel=number_expected,
        over_ties=number_expected,
        parameters=(REL,),
        trec_name="num_rel",
        source="trec_eval num_rel",
        why_unscored=Reason.NEEDS_COUNT,
        **_COUNT,
    ),
    MeasureSpec(
        name="NumRelRet",
        title="number of relevant results",
        sentence="Number of relevant results.",
        formula="|{i : grade_i >= rel}|",
        kernel=partial(number_returned, rel=1),
        over_ties=partial(number_returned, rel=1),
        parameters=(REL, JUDGED_ONLY),
        trec_name="num_rel_ret",
        source="trec_eval num_rel_ret",
        **_COUNT,
    ),
    MeasureSpec(
        name="NumNonRelJudgedRet",
        title="number of results judged non-relevant",
        sentence="Number of results judged not relevant.",
        formula="|{i : judged, grade_i < rel}|",
        kernel=number_of_wrong_results,
        over_ties=number_of_wrong_results,
        parameters=(REL, JUDGED_ONLY),
        higher_is_better=False,
        trec_name="num_nonrel_judged_ret",
        source="trec_eval num_nonrel_judged_ret",
        **_COUNT | _JUDGED_BY_ID,
    ),
    MeasureSpec(
        name="SetP",
        title="precision of the set",
        sentence="Share of all results that are relevant; with relative, divided by the largest possible number "
        "instead.",
        formula="|{i : grade_i >= rel}| / n, or / min(n, R)",
        kernel=set_precision,
        over_ties=set_precision,
        trec_name="set_P",
        source=f"{_SETS}; trec_eval set_P, set_relative_P",
        **_BY_REL
        | {
            "parameters": (
                REL,
                ParameterSpec(
                    "relative", False, "divide by the smaller of the numbers of results and relevant documents"
                ),
                JUDGED_ONLY,
            )
        },
    ),
    MeasureSpec(
        name="SetRelP",
        title="relative precision of the set",
        sentence="Number of relevant results, divided by the largest possible number in a list of that length: "
        "SetP(relative=True).",
        formula="|{i : grade_i >= rel}| / min(n, R)",
        kernel=partial(set_precision, relative=True),
        over_ties=partial(set_precision, relative=True),
        trec_name="set_relative_P",
        source=f"{_SETS}; trec_eval set_relative_P",
        **_BY_REL,
    ),
    MeasureSpec(
        name="SetR",
        title="recall of the set",
        sentence="Share of the relevant documents that are among the results.",
        formula="|{i : grade_i >= rel}| / R",
        kernel=set_recall,
        over_ties=set_recall,
        trec_name="set_recall",
        source=f"{_SETS}; trec_eval set_recall",
        **_BY_REL,
    ),
    MeasureSpec(
        name="SetAP",
        title="average precision of the set",
        sentence="Precision of the set times its recall: the average precision of an unordered set.",
        formula="|{i : grade_i >= rel}|^2 / (n R)",
        kernel=set_average_precision,
        over_ties=set_average_precision,
        trec_name="set_map",
        source="trec_eval set_map",
        **_BY_REL,
    ),
    MeasureSpec(
        name="SetF",
        title="F of the set",
        sentence="Weighted harmonic mean of the precision and the recall of the set.",
        formula="(beta + 1) P R / (beta P + R), P = SetP, R = SetR",
        kernel=set_f,
        over_ties=set_f,
        trec_name="set_F",
        source="van Rijsbergen 1979, Information Retrieval, Butterworths; trec_eval set_F",
        **_BY_REL
        | {
            "parameters": (
                REL,
                ParameterSpec("beta", 1.0, "weight of recall against precision; it is not squared", minimum=0),
                JUDGED_ONLY,
            )
        },
    ),
    MeasureSpec(
        name="Utility",
        title="utility of the set",
        sentence="Weighted sum of the numbers of relevant and non-relevant documents, returned and not returned.",
        formula="found * a + wrong * b + missed * c + spared * d; a relevant results, b other results, c relevant "
        "documents not returned, d the rest of the collection",
        kernel=utility,
        parameters=(
            ParameterSpec("found", 1.0, "weight of a relevant result"),
            ParameterSpec("wrong", -1.0, "weight of a non-relevant result"),
            ParameterSpec("missed", 0.0, "weight of a relevant document that was not returned"),
            ParameterSpec("spared", 0.0, "weight of a non-relevant document that was not returned"),
            ParameterSpec("documents", 0, "number of documents in the collection; required by spared", minimum=0),
            REL,
            JUDGED_ONLY,
        ),
        range=(-INFINITE, INFINITE),
        trec_name="utility",
        source="Lewis 1996, The TREC-4 Filtering Track; trec_eval utility",
        why_unscored=NEEDS_SIZE,
        defined_for="every query; with spared, only if documents is given",
        **_NONE,
    ),
    MeasureSpec(
        name="Unjudged",
        question="How much of the list has no grade?",
        plain="The opposite of the judged share: with a high value, grade before you compare.",
        title="unjudged share",
        sentence="Share of the first k ranks with an unjudged result. With a high value, the judgments do not cover "
        "the run.",
        formula="|{i <= k : not judged}| / k",
        cutoff="required",
        kernel=unjudged_share,
        trec_cut_name="unj",
        source="trec_eval 10.0 unj",
        higher_is_better=False,
        diagnostic=True,
        **_JUDGED_BY_ID,
    ),
    MeasureSpec(
        name="RBPResidual",
        title="residual of rank-biased precision",
        sentence="Increase of rank-biased precision if every unjudged result were fully relevant.",
        formula="p^n + (1 - p) * sum_{unjudged i <= n} p^(i - 1); 0 where every result is judged",
        kernel=rbp_residual,
        parameters=(with_default(PERSISTENCE, 0.9),),
        trec_name="rbp_resid",
        source="Moffat & Zobel 2008, ACM TOIS 27(1); trec_eval 10.0 rbp_resid",
        higher_is_better=False,
        diagnostic=True,
        **_NONE | _JUDGED_BY_ID,
    ),
)

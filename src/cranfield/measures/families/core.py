"""The measures most reports are made of: precision, recall, rank of the first, and graded gain."""

from __future__ import annotations

from cranfield.measures import kernels, ties
from cranfield.measures.measure import BEST, GAINS, GRADE, JUDGED_ONLY, REL, MeasureSpec, ParameterSpec, Reason

SPECS = (
    MeasureSpec(
        name="nDCG",
        question="Are the best results at the top?",
        plain=(
            "How close the order of the results is to the best possible one. 1: no order would be better. "
            "Good results lower down reduce it, better grades weigh more, and queries with few good documents"
            " count as much as queries with many."
        ),
        title="normalised discounted cumulative gain",
        sentence="Discounted cumulative gain of the first k results, divided by that of the ideal list.",
        formula="sum_{i<=k} g_i / log2(i + 1), over the same sum for the expected items in their best order",
        cutoff="optional",
        kernel=kernels.ndcg,
        over_ties=ties.ndcg,
        parameters=(
            ParameterSpec(
                "dcg", "log2", "gain of a grade g: 'log2' is g, 'exp-log2' is 2^g - 1", choices=("log2", "exp-log2")
            ),
            GAINS,
            JUDGED_ONLY,
        ),
        aliases=("NDCG", "nDCG(d)"),
        presets=(("ndcg_burges", "dcg='exp-log2'"),),
        trec_name="ndcg",
        trec_cut_name="ndcg_cut",
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); trec_eval ndcg, ndcg_cut",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="RR",
        question="How far down is the first good result?",
        plain=(
            "1 if the first result is good, 1/2 if only the second is, 1/3 for the third. Later results do "
            "not matter. Suited to questions with one answer, such as a known page."
        ),
        title="reciprocal rank",
        sentence="One over the rank of the first relevant result.",
        formula="1 / min{i <= k : grade_i >= rel}",
        cutoff="optional",
        kernel=kernels.reciprocal_rank,
        over_ties=ties.reciprocal_rank,
        parameters=(REL, GRADE, BEST, JUDGED_ONLY),
        aliases=("MRR", "mrr", "reciprocal_rank", "mean_reciprocal_rank"),
        presets=(("BestRR", "only_best=True"),),
        trec_name="recip_rank",
        source="Voorhees 1999, TREC-8 Question Answering Track Report; trec_eval recip_rank",
    ),
    MeasureSpec(
        name="AP",
        question="Are all good documents found, and early?",
        plain=(
            "Rewards every good document, more if it stands higher; one that is missing counts as 0. Its mean"
            " over queries is MAP. Suited to users who read on until they have everything."
        ),
        title="average precision",
        sentence="Mean of the precision at the rank of each relevant document; documents that were not retrieved count"
        " as 0.",
        formula="(1 / R) * sum_{i<=k, grade_i >= rel} P@i; divisor='reachable' divides by min(R, k), 'retrieved' by "
        "|{i <= k : grade_i >= rel}|",
        cutoff="optional",
        kernel=kernels.average_precision,
        over_ties=ties.average_precision,
        parameters=(
            REL,
            ParameterSpec(
                "divisor",
                "relevant",
                "'relevant': all relevant documents; 'reachable': as many of them as stand within the cutoff; 'retrieved': those "
                "within the cutoff",
                choices=("relevant", "reachable", "retrieved"),
            ),
            JUDGED_ONLY,
        ),
        aliases=("MAP", "average_precision", "mean_average_precision"),
        trec_name="map",
        trec_cut_name="map_cut",
        source="Harman 1992, TREC-1; trec_eval map, map_cut",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="P",
        question="How much of what a user sees is good?",
        plain=(
            "4 good results among the first 5 give P@5 = 0.8. The order within them does not matter, and a "
            "query with fewer than k good documents cannot reach 1."
        ),
        title="precision",
        sentence="Share of the first k ranks with a relevant result; the divisor is k even if fewer results were "
        "returned.",
        formula="|{i <= k : grade_i >= rel}| / k",
        cutoff="required",
        kernel=kernels.precision,
        over_ties=ties.precision,
        parameters=(REL, GRADE, BEST, JUDGED_ONLY),
        aliases=("Precision", "precision", "Prec", "MP"),
        trec_cut_name="P",
        source="Kent et al. 1955; trec_eval P",
    ),
    MeasureSpec(
        name="R",
        question="How much of what exists is found?",
        plain=(
            "3 of 4 good documents among the first 10 give R@10 = 0.75. Suited to a search whose results a "
            "program reads, since it can only use what is in the list."
        ),
        title="recall",
        sentence="Share of the relevant documents that are among the first k results.",
        formula="|{i <= k : grade_i >= rel}| / R",
        cutoff="required",
        kernel=kernels.recall,
        over_ties=ties.recall,
        parameters=(REL, GRADE, BEST, JUDGED_ONLY),
        aliases=("Recall",),
        trec_cut_name="recall",
        source="Kent et al. 1955; trec_eval recall",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="Success",
        question="Does the user find anything at all?",
        plain=(
            "The share of the queries with at least one good result among the first k. The easiest measure to"
            " explain to people who do not build search."
        ),
        title="success",
        sentence="1 if any of the first k results is relevant, else 0.",
        formula="[min{i : grade_i >= rel} <= k]",
        cutoff="required",
        kernel=kernels.success,
        over_ties=ties.success,
        parameters=(REL, GRADE, BEST, JUDGED_ONLY),
        aliases=("Hit", "HitRate", "hit_rate"),
        presets=(("BestSuccess", "only_best=True"),),
        trec_cut_name="success",
        source="trec_eval success",
    ),
    MeasureSpec(
        name="Judged",
        question="Can the other measures be trusted?",
        plain=(
            "The share of the results shown that have been graded. Low values mean that the other measures "
            "count unknown results as not relevant: grade these first."
        ),
        unscored_by_run=True,
        title="judged share",
        sentence="Share of the first k results, or of all, that are judged, relevant or not.",
        formula="|{i <= k : judged}| / min(k, results returned)",
        cutoff="optional",
        kernel=kernels.judged_share,
        over_ties=ties.judged_share,
        source="ir_measures Judged",
        why_unscored=Reason.NOTHING_RETURNED,
        defined_for="queries judged by document id, with at least one result",
        closed_world=False,
        diagnostic=True,
    ),
)

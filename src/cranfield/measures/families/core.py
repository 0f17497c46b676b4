"""The measures most reports are made of: precision, recall, rank of the first, and graded gain."""

from __future__ import annotations

from cranfield.measures import kernels
from cranfield.measures.measure import GAINS, JUDGED_ONLY, REL, MeasureSpec, ParameterSpec, Reason

SPECS = (
    MeasureSpec(
        name="nDCG",
        title="normalised discounted cumulative gain",
        sentence="Discounted cumulative gain of the first k results, divided by that of the ideal list.",
        formula="sum_{i<=k} g_i / log2(i + 1), over the same sum for the expected items in their best order",
        cutoff="optional",
        kernel=kernels.ndcg,
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
        title="reciprocal rank",
        sentence="One over the rank of the first relevant result.",
        formula="1 / min{i <= k : grade_i >= rel}",
        cutoff="optional",
        kernel=kernels.reciprocal_rank,
        parameters=(REL, JUDGED_ONLY),
        aliases=("MRR", "mrr"),
        trec_name="recip_rank",
        source="Voorhees 1999, TREC-8 Question Answering Track Report; trec_eval recip_rank",
    ),
    MeasureSpec(
        name="AP",
        title="average precision",
        sentence="Mean of the precision at the rank of each relevant document; documents that were not retrieved count"
        " as 0.",
        formula="(1 / R) * sum_{i<=k, grade_i >= rel} P@i",
        cutoff="optional",
        kernel=kernels.average_precision,
        parameters=(REL, JUDGED_ONLY),
        aliases=("MAP",),
        trec_name="map",
        trec_cut_name="map_cut",
        source="Harman 1992, TREC-1; trec_eval map, map_cut",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="P",
        title="precision",
        sentence="Share of the first k ranks with a relevant result; the divisor is k even if fewer results were "
        "returned.",
        formula="|{i <= k : grade_i >= rel}| / k",
        cutoff="required",
        kernel=kernels.precision,
        parameters=(REL, JUDGED_ONLY),
        aliases=("Precision", "precision", "Prec", "MP"),
        trec_cut_name="P",
        source="Kent et al. 1955; trec_eval P",
    ),
    MeasureSpec(
        name="R",
        title="recall",
        sentence="Share of the relevant documents that are among the first k results.",
        formula="|{i <= k : grade_i >= rel}| / R",
        cutoff="required",
        kernel=kernels.recall,
        parameters=(REL, JUDGED_ONLY),
        aliases=("Recall",),
        trec_cut_name="recall",
        source="Kent et al. 1955; trec_eval recall",
        why_unscored=Reason.NEEDS_COUNT,
    ),
    MeasureSpec(
        name="Success",
        title="success",
        sentence="1 if any of the first k results is relevant, else 0.",
        formula="[min{i : grade_i >= rel} <= k]",
        cutoff="required",
        kernel=kernels.success,
        parameters=(REL, JUDGED_ONLY),
        aliases=("Hit", "HitRate", "hit_rate"),
        trec_cut_name="success",
        source="trec_eval success",
    ),
    MeasureSpec(
        name="Judged",
        unscored_by_run=True,
        title="judged share",
        sentence="Share of the first k results that are judged, relevant or not.",
        formula="|{i <= k : judged}| / min(k, results returned)",
        cutoff="required",
        kernel=kernels.judged_share,
        source="ir_measures Judged",
        why_unscored=Reason.NOTHING_RETURNED,
        defined_for="queries judged by document id, with at least one result",
        closed_world=False,
        diagnostic=True,
    ),
)

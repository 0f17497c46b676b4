"""The catalogue: one table of measures, from which parser, help, docs, errors and tests are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.measures.measure import Measure, Parameter
from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking

NEEDS_COUNT = "how many documents match its pattern is not known (expected_count)"
NOTHING_UNJUDGED = "its truth is a pattern: nothing can be unjudged"
NOTHING_RETURNED = "nothing was returned"
TOO_LARGE = "its grades are too large for this gain"


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter a measure takes: its default decides its type."""

    name: str
    default: Parameter
    sentence: str
    minimum: int | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasureSpec:
    """One row of the catalogue."""

    name: str
    title: str
    sentence: str
    """What it is, in words a reader of a report knows."""
    formula: str
    cutoff: Literal["required", "optional"]
    kernel: Callable[..., FloatQ]
    """`kernel(ranking, cutoff, **parameters) -> float64[Q]`; NaN where a query cannot be scored."""
    source: str
    parameters: tuple[ParameterSpec, ...] = ()
    aliases: tuple[str, ...] = ()
    range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    why_unscored: str = ""
    """Why the kernel gives NaN, when it does."""
    defined_for: str = "every query; 0 where nothing relevant was expected"
    closed_world: bool = True
    """False when it has no meaning where the truth is a pattern."""
    diagnostic: bool = False
    """True when it says how far other numbers can be trusted, and is no quality of a system."""

    @cached_property
    def spelling(self) -> str:
        """How it is written: `P@k`, `AP`, `AP@k`."""
        return f"{self.name}@k" if self.cutoff == "required" else f"{self.name}, {self.name}@k"


REL = ParameterSpec("rel", 1, "lowest grade that counts as relevant", minimum=1)

CATALOGUE: Mapping[str, MeasureSpec] = {
    spec.name: spec
    for spec in (
        MeasureSpec(
            name="nDCG",
            title="normalised discounted cumulative gain",
            sentence="How much of the best possible list's graded worth the results deliver, early ranks counting more.",
            formula="sum_{i<=k} g_i / log2(i + 1), over the same sum for the expected items in their best order",
            cutoff="optional",
            kernel=kernels.ndcg,
            parameters=(
                ParameterSpec(
                    "dcg", "log2", "gain of a grade g: 'log2' is g, 'exp-log2' is 2^g - 1", choices=("log2", "exp-log2")
                ),
            ),
            aliases=("NDCG", "ndcg"),
            source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); trec_eval ndcg, ndcg_cut",
            why_unscored=NEEDS_COUNT,
        ),
        MeasureSpec(
            name="RR",
            title="reciprocal rank",
            sentence="One over the rank of the first relevant result.",
            formula="1 / min{i <= k : grade_i >= rel}",
            cutoff="optional",
            kernel=kernels.reciprocal_rank,
            parameters=(REL,),
            aliases=("MRR", "mrr"),
            source="Voorhees 1999, TREC-8 Question Answering Track Report; trec_eval recip_rank",
        ),
        MeasureSpec(
            name="AP",
            title="average precision",
            sentence="Mean precision over the ranks of all expected documents; those not found count as 0.",
            formula="(1 / R) * sum_{i<=k, grade_i >= rel} P@i",
            cutoff="optional",
            kernel=kernels.average_precision,
            parameters=(REL,),
            aliases=("MAP", "map"),
            source="Harman 1992, TREC-1; trec_eval map, map_cut",
            why_unscored=NEEDS_COUNT,
        ),
        MeasureSpec(
            name="P",
            title="precision",
            sentence="Share of the first k ranks that hold a relevant result; a short list is not excused.",
            formula="|{i <= k : grade_i >= rel}| / k",
            cutoff="required",
            kernel=kernels.precision,
            parameters=(REL,),
            aliases=("Precision", "precision"),
            source="Kent et al. 1955; trec_eval P",
        ),
        MeasureSpec(
            name="R",
            title="recall",
            sentence="Share of the expected documents that are in the first k ranks.",
            formula="|{i <= k : grade_i >= rel}| / R",
            cutoff="required",
            kernel=kernels.recall,
            parameters=(REL,),
            aliases=("Recall", "recall"),
            source="Kent et al. 1955; trec_eval recall",
            why_unscored=NEEDS_COUNT,
        ),
        MeasureSpec(
            name="Success",
            title="success",
            sentence="1 when a relevant result is in the first k ranks, else 0.",
            formula="[min{i : grade_i >= rel} <= k]",
            cutoff="required",
            kernel=kernels.success,
            parameters=(REL,),
            aliases=("Hit", "HitRate", "success"),
            source="trec_eval success",
        ),
        MeasureSpec(
            name="Judged",
            title="judged share",
            sentence="Share of the first k results that somebody judged, relevant or not: how far the other numbers go.",
            formula="|{i <= k : judged}| / min(k, results returned)",
            cutoff="required",
            kernel=kernels.judged_share,
            source="ir_measures Judged",
            why_unscored=NOTHING_RETURNED,
            defined_for="queries judged by document id, with at least one result",
            closed_world=False,
            diagnostic=True,
        ),
    )
}
"""Name to spec, in the order help and docs list them."""

ALIASES: Mapping[str, str] = {alias: spec.name for spec in CATALOGUE.values() for alias in spec.aliases}
"""Other names that are understood and never printed."""

DEFAULT_MEASURES = ("nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "Judged@10")
"""What is reported when nobody asks for anything else; the first is the primary measure."""


def compute(measure: Measure, ranking: Ranking) -> tuple[FloatQ, NDArray[np.bool_], dict[str, str]]:
    """Score every query.

    Returns:
        float64[Q] values (0 where unscored), bool[Q] which queries are scored, and the reason of each that is not.
    """
    spec = CATALOGUE[measure.name]
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite worth leaves its query without a value
        values = spec.kernel(ranking, measure.cutoff, **dict(measure.params))
    scored = np.isfinite(values)
    reasons = {ranking.query_ids[i]: spec.why_unscored for i in np.flatnonzero(~scored)}
    if spec.why_unscored == NEEDS_COUNT:
        uncounted = set(ranking.expected_query[ranking.expected_count == UNKNOWN_COUNT].tolist())
        reasons |= {ranking.query_ids[i]: TOO_LARGE for i in np.flatnonzero(~scored) if i not in uncounted}
    if not spec.closed_world:
        for i in np.flatnonzero(ranking.closed_world):
            scored[i] = False
            reasons[ranking.query_ids[i]] = NOTHING_UNJUDGED
    return np.where(scored, values, 0.0), scored, reasons

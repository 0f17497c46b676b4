"""What a comparison of many systems adds to the JSON of its evaluations."""

from __future__ import annotations

from typing import Any

from cranfield.evaluation.many_values import ManyComparison, OrderAgreement, PairComparison, Ranks, StratumRow
from cranfield.evaluation.values import Summary
from cranfield.record import Fields, record_of
from cranfield.reporting.derived import versions

FIELDS: Fields = {
    ManyComparison: (
        "verdict=verdict.code verdict_sentence=verdict.sentence best=verdict.best reasons=verdict.reasons "
        "disagreements=verdict.disagreements baseline primary test=options.test alpha=options.alpha margin=options.margin "
        "seed=options.seed n_draws limits=options.limits n=query_ids.__len__ means=summaries pairs against_baseline=against "
        "omnibus ranks orders=agreements strata unpaired=dropped"
    ),
    OrderAgreement: "a b kendall_tau=tau",
    PairComparison: "first second delta wins ties losses verdict test=result",
    Ranks: "means critical_difference not_told_apart=groups",
    StratumRow: "key value n means=summaries",
    Summary: "mean ci_low ci_high n",
}


def many_record(many: ManyComparison, fields: Fields) -> dict[str, Any]:
    """Verdict, pairs, ranks and strata; what is a list in the order of the systems is written by their names.

    Args:
        many: the comparison.
        fields: of the classes that it shares with a comparison of two.
    """
    record = {"provenance": {"versions": dict(versions("numpy", "scipy"))}, **record_of(many, {**fields, **FIELDS})}
    for measure, row in record["means"].items():
        record["means"][measure] = dict(zip(many.names, row, strict=True))
    for row in record["strata"]:
        row["means"] = {name: summary["mean"] for name, summary in zip(many.names, row["means"], strict=True)}
    if record["ranks"] is not None:
        record["ranks"]["means"] = dict(zip(many.names, record["ranks"]["means"], strict=True))
    return record

"""A record of an evaluation of one query, for rows of a database whose numbers do not matter."""

from __future__ import annotations

from dataclasses import replace

from cranfield import Query, TestSet, compare, evaluate
from cranfield.evaluation.latency import CallsResult, calls_of
from cranfield.evaluation.result import ComparisonResult, EvaluationResult, result_of
from cranfield.evaluation.verdict_table import VerdictCode

ONE = TestSet("help", (Query("q1", "open"),), {"q1": {"p1": 1.0}})
MADE = evaluate(ONE, {"q1": ["p1"]}, measures=["nDCG@10"], name="search")
CALLS: CallsResult = calls_of((MADE,))


def evaluation_record(mean: float | None = 0.5) -> EvaluationResult:
    """The record of one query with a mean of nDCG@10; None: it has no value."""
    return with_mean(result_of(MADE, with_answers=True), mean)


def with_mean(record: EvaluationResult, mean: float | None) -> EvaluationResult:
    """The record with another mean of its primary measure; None: no query has a value."""
    [system] = record.systems
    measure, summary = next(iter(system.measures.items()))
    changed = replace(summary, mean=mean) if mean is not None else replace(summary, mean=None, n=0)
    return replace(record, systems=(replace(system, measures={**system.measures, measure: changed}),))


def with_scores(record: EvaluationResult, **changed: object) -> EvaluationResult:
    """The record with other facts of its system."""
    return replace(record, systems=(replace(record.systems[0], **changed),))


def comparison_record(verdict: str = "worse") -> ComparisonResult:
    """The record of a comparison of one query with a verdict, which is its sentence too."""
    record = result_of(compare(MADE, replace(MADE, name="other")), with_answers=True)
    assert isinstance(record, ComparisonResult)
    return replace(record, verdict=VerdictCode(verdict), verdict_sentence=verdict)

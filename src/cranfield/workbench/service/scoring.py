"""From a run and the settings that were declared to an evaluation, and what a server keeps beside its record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.latency import latency_summary, timed_calls
from cranfield.evaluation.result import EvaluationResult, result_of
from cranfield.evaluation.values import Evaluation
from cranfield.gate.gate_input import GateInput
from cranfield.measures import DEFAULT_MEASURES, parse
from cranfield.model import TestSet
from cranfield.model.query import CLASS
from cranfield.model.vocabulary import TASK_TYPE
from cranfield.workbench.service.requests import Settings
from cranfield.workbench.service.values import EvaluationFacts, Json

USUAL_MEASURES = (*DEFAULT_MEASURES, "RR")
"""Computed where neither a request nor the config names any, less those that no query of the test set allows: the default of the
library, and `mrr` of the specification."""
BUCKETS_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
QUERY_TYPES = ("query_type", TASK_TYPE, CLASS)
"""Strata that say of what type a query is, also where each query is of another; the first that a test set has counts."""


def score(settings: Settings, testset: TestSet, path: Path, run_format: str) -> Evaluation:
    """Score a stored run by the settings of its evaluation."""
    evaluation = settings.experiment(testset).evaluate(path, run_format=run_format, name=settings.name)
    return primary_first(replace(evaluation, pilot=True) if settings.pilot else evaluation, settings)


def primary_first(evaluation: Evaluation, settings: Settings) -> Evaluation:
    """The evaluation with the primary measure before the others, by which evidence checks and readers of its record find it."""
    primary = parse(settings.primary) if settings.primary else None
    return replace(evaluation, measures=tuple(sorted(evaluation.measures, key=lambda each: each != primary)))


def record_of(evaluation: Evaluation) -> EvaluationResult:
    """The record that a server keeps of an evaluation."""
    return result_of(evaluation, with_answers=True, always=QUERY_TYPES)


def facts_of(evaluation: Evaluation, gate: Mapping[str, bool | None] | None = None) -> EvaluationFacts:
    """What a server keeps beside the record; `gate` as in `EvaluationFacts`."""
    k = None if evaluation.run is None else evaluation.run.depth
    return EvaluationFacts(k, failures_of(evaluation), _latency(evaluation), gate)


def void_of(evaluation: Evaluation, settings: Settings) -> tuple[str, ...]:
    """Why the figures do not count. Grades that its book does not have yet are no reason: the evaluation waits for them."""
    findings = evaluation.evidence
    if settings.book:
        findings = tuple(each for each in findings if each.check not in {"nothing-judged", "judged-share"})
    return void_sentences(findings)


def failures_of(evaluation: Evaluation) -> dict[str, int]:
    """Kind to the number of queries that failed or have no answer, as the rule `failures` of a gate counts them."""
    return dict(Counter(str(outcome) for outcome in GateInput(evaluation).unanswered.values()))


def _latency(evaluation: Evaluation) -> Json | None:
    """Percentiles and a histogram of the calls of this evaluation; None where none was timed."""
    summary = latency_summary(evaluation)
    times = [log.latency_ms for log in timed_calls(evaluation).logs.values() if not log.cached]
    if summary is None or not times:
        return None
    bounds: tuple[int | None, ...] = (*BUCKETS_MS, None)
    buckets = [[bound, sum(bound is None or time <= bound for time in times)] for bound in bounds]
    percentiles = {"p50": summary.p50_ms, "p95": summary.p95_ms, "p99": summary.p99_ms}
    return {**percentiles, "n": len(times), "sum": math.fsum(times), "buckets": buckets}

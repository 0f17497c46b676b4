"""From a run and the settings that were declared to an evaluation, and from an evaluation to its figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.evaluation.absence import judged_share
from cranfield.evaluation.classes import class_measures_by_stratum
from cranfield.evaluation.evaluate import summaries_by_stratum
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.latency import latency_summary, timed_calls
from cranfield.evaluation.values import Evaluation, Summary
from cranfield.gate.gate_input import GateInput
from cranfield.measures import DEFAULT_MEASURES, Measure, parse
from cranfield.measures.catalogue import sign_of
from cranfield.model import TestSet
from cranfield.model.query import CLASS
from cranfield.model.vocabulary import TASK_TYPE
from cranfield.workbench.service.requests import Settings
from cranfield.workbench.service.values import EvaluationFigures, Json

if TYPE_CHECKING:
    pass


USUAL_MEASURES = (*DEFAULT_MEASURES, "RR")
"""Computed where neither a request nor the config names any, less those that no query of the test set allows: the default of the
library, and `mrr` of the specification."""
BUCKETS_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
N_WORST = 20
QUERY_TYPES = ("query_type", TASK_TYPE, CLASS)
"""Strata that say of what type a query is, also where each query is of another; the first that a test set has counts."""


def score(settings: Settings, testset: TestSet, path: Path, run_format: str) -> Evaluation:
    """Score a stored run by the settings of its evaluation."""
    evaluation = settings.experiment(testset).evaluate(path, run_format=run_format, name=settings.name)
    return replace(evaluation, pilot=True) if settings.pilot else evaluation


def figures_of(
    evaluation: Evaluation, settings: Settings, gate: Mapping[str, bool | None] | None = None
) -> EvaluationFigures:
    """What lists, charts and metrics need of an evaluation."""
    primary = next((m for m in evaluation.measures if m.canonical == _canonical(settings.primary)), None)
    primary = primary or next(iter(evaluation.measures), None)
    measures = sorted(evaluation.measures, key=lambda measure: measure != primary)
    depth = None if primary is None else primary.depth
    findings = inspect_systems((evaluation,), primary, evaluation.limits)
    return EvaluationFigures(
        measures={measure.canonical: _summary(evaluation.summaries[measure]) for measure in measures},
        strata=_strata(evaluation, measures),
        n_queries=len(evaluation.query_ids),
        n_unscored=0 if primary is None else len(evaluation.unscored[primary]),
        failures=failures_of(evaluation),
        judged={"mean": judged_share(evaluation.ranking, depth).mean, "k": depth},
        latency_ms=_latency(evaluation),
        gate=gate,
        primary=None if primary is None else primary.canonical,
        worst=() if primary is None else tuple(_worst(evaluation, primary)),
        warnings=(*caveat_sentences(findings), *map(str, evaluation.warnings)),
        k=None if evaluation.run is None else evaluation.run.depth,
        convention=evaluation.ranking.convention.name,
        pilot=evaluation.pilot,
    )


def void_of(evaluation: Evaluation, settings: Settings) -> tuple[str, ...]:
    """Why the figures do not count. Grades that its book does not have yet are no reason: the evaluation waits for them."""
    findings = inspect_systems((evaluation,), parse(settings.primary), evaluation.limits)
    if settings.book:
        findings = tuple(each for each in findings if each.check not in {"nothing-judged", "judged-share"})
    return void_sentences(findings)


def _canonical(spelling: str) -> str:

    return parse(spelling).canonical


def _summary(summary: Summary) -> Json:
    return {name: getattr(summary, name) for name in ("mean", "n", "ci_low", "ci_high")}


def _strata(evaluation: Evaluation, measures: Sequence[Measure]) -> dict[str, dict[str, dict[str, Json]]]:
    by_measure = {measure: summaries_by_stratum(evaluation, measure, QUERY_TYPES) for measure in measures}
    found: dict[str, dict[str, dict[str, Json]]] = {}
    for measure, strata in (by_measure | class_measures_by_stratum(evaluation, QUERY_TYPES)).items():
        for stratum in strata:
            values = found.setdefault(stratum.key, {}).setdefault(stratum.value, {})
            values[measure.canonical] = _summary(stratum.summary)
    return found


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


def _worst(evaluation: Evaluation, measure: Measure) -> Iterator[Json]:
    """The queries with the worst values."""
    values, scored, sign = evaluation.values[measure], evaluation.scored[measure], sign_of(measure)
    ids = [query_id for query_id, has in zip(evaluation.query_ids, scored.tolist(), strict=True) if has]
    by_id = evaluation.testset.by_id
    ids.sort(key=lambda query_id: (sign * float(values[evaluation.index[query_id]]), evaluation.index[query_id]))
    for query_id in ids[:N_WORST]:
        value = float(values[evaluation.index[query_id]])
        yield {"query": query_id, "text": by_id[query_id].text, "value": value}

"""Observations of systems, for the tests of metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.workbench.records import evaluation_record

from cranfield.evaluation.result import StratumMeasures
from cranfield.evaluation.values import Summary
from cranfield.measures import Measure, parse
from cranfield.model.results import to_jsonable
from cranfield.workbench.config import MetricsConfig
from cranfield.workbench.service.metrics.exposition import Exposition
from cranfield.workbench.service.metrics.families import Naming
from cranfield.workbench.service.metrics.observed import Measured, MeasuredSubject, MetricsSnapshot, Observation
from cranfield.workbench.service.values import EvaluationFacts

BUCKETS = [[10, 3], [100, 49], [None, 50]]
LATENCY = {"p50": 12.5, "p95": 80.0, "p99": 240.0, "n": 50, "sum": 1500.0, "buckets": BUCKETS}
HOUSE = MetricsConfig(
    prefix="medicalkg_retrieval_",
    measures={"R": "recall_at_k"},
    labels=[],
    systems=["fusion"],
    testsets=["clinical"],
)
"""Names as a house has them that has metrics of its own."""


def numbers(mean: float | None, n: int = 50) -> Summary:
    low, high = (None, None) if mean is None else (mean - 0.05, mean + 0.05)
    return Summary(mean, mean, None, low, high, n)


def measured(
    recall: float = 0.82,
    *,
    measures: dict[str, Summary] | None = None,
    strata: dict[str, dict[str, dict[str, Summary]]] | None = None,
    **other: Any,
) -> Measured:
    """An evaluation with its measures by spelling; `other` are fields of `Measured`, `EvaluationFacts` and `TestSetRecord`."""
    if measures is None:
        measures = {"R@10": numbers(recall), "nDCG@10": numbers(0.79), "RR": numbers(0.85)}
    if strata is None:
        strata = {"query_type": {"paraphrase": {"R@10": numbers(0.78, 20)}}}
    record = evaluation_record()
    scores = replace(
        record.systems[0],
        n_queries=50,
        measures=_by_measure(measures),
        by_stratum=tuple(
            StratumMeasures(key, value, _by_measure(found))
            for key, values in strata.items()
            for value, found in values.items()
        ),
        judged=replace(record.systems[0].judged, mean=0.9),
    )
    facts = {
        "k": 10,
        "failures": {"timeout": 2},
        "latency_ms": LATENCY,
        "gate": {"R@10 is at least 0.75": recall >= 0.75},
    }
    about = {"version": "2", "digest": "sha256:0123456789abcdef"}
    facts, about = ({name: other.pop(name, value) for name, value in given.items()} for given in (facts, about))
    given: dict[str, Any] = {
        "at": 1_000.0,
        "testset": replace(record.testset, name="clinical", **about),
        "convention": "trec",
        "scores": scores,
        "facts": EvaluationFacts(**facts),
    }
    return Measured(**{**given, **other})


def _by_measure(found: dict[str, Summary]) -> dict[Measure, Summary]:
    return {parse(spelling): summary for spelling, summary in found.items()}


def observed(last: Measured, valid: Measured | None = None, **subject: str) -> Observation:
    given = {"testset": "clinical", "system": "fusion", **subject}
    return Observation(MeasuredSubject(**given), last, last if valid is None else valid)


def written(*observations: Observation, config: MetricsConfig | None = None, **other: Any) -> list[str]:
    """The lines of samples."""
    snapshot = MetricsSnapshot(observations, "1.2.3", **{"now": 1_060.0, **other})
    text = Exposition(snapshot, Naming(config)).text().decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def results_file(folder: Path, *, pilot: bool = False, void: str = "") -> Path:
    """A `results.json` of one system."""
    finding = {"check": "failed", "consequence": "void", "system": "fusion", "sentence": void}
    made = measured(measures={"R@10": numbers(0.82)})
    outcomes = {"answered": 47, "timeout": 2, "missing": 1}
    system = replace(made.scores, name="fusion", pilot=pilot, outcomes=outcomes)
    record = replace(evaluation_record(), testset=made.testset, systems=(system,))
    payload = to_jsonable(record) | {"evidence": [finding] if void else []}
    path = folder / "results.json"
    path.write_text(json.dumps(payload))
    return path

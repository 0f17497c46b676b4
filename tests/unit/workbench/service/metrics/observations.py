"""Observations of systems, for the tests of metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield.workbench.config import MetricsConfig
from cranfield.workbench.service.metrics.exposition import Exposition
from cranfield.workbench.service.metrics.families import Naming
from cranfield.workbench.service.metrics.observed import Measured, MeasuredSubject, MetricsSnapshot, Observation

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


def numbers(mean: float, n: int = 50) -> dict[str, Any]:
    return {"mean": mean, "n": n, "ci_low": mean - 0.05, "ci_high": mean + 0.05}


def measured(recall: float = 0.82, **other: Any) -> Measured:
    given: dict[str, Any] = {
        "at": 1_000.0,
        "n_queries": 50,
        "measures": {"R@10": numbers(recall), "nDCG@10": numbers(0.79), "RR": numbers(0.85)},
        "strata": {"query_type": {"paraphrase": {"R@10": numbers(0.78, 20)}}},
        "failures": {"timeout": 2},
        "judged": {"mean": 0.9, "k": 10},
        "latency_ms": LATENCY,
        "gate": {"R@10 is at least 0.75": recall >= 0.75},
        "version": "2",
        "digest": "sha256:0123456789abcdef",
        "convention": "trec",
        "depth": 10,
    }
    return Measured(**{**given, **other})


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
    payload = {
        "testset": {"name": "clinical", "version": "2", "digest": "sha256:0123456789abcdef"},
        "evidence": [finding] if void else [],
        "systems": [
            {
                "name": "fusion",
                "pilot": pilot,
                "n_queries": 50,
                "measures": {"R@10": numbers(0.82)},
                "by_stratum": [{"key": "query_type", "value": "paraphrase", "measures": {"R@10": numbers(0.78, 20)}}],
                "outcomes": {"answered": 47, "timeout": 2, "missing": 1},
                "judged": {"measure": "Judged@10", "mean": 0.9},
            }
        ],
    }
    path = folder / "results.json"
    path.write_text(json.dumps(payload))
    return path

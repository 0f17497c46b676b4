"""The results of a report as the `model-index` of a model card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cranfield.base.words import printable
from cranfield.evaluation.flat import key_of
from cranfield.evaluation.result import SystemResult
from cranfield.evaluation.values import Summary
from cranfield.measures import CATALOGUE, Measure
from cranfield.reporting.sections.subject import Subject

MTEB_NAMES = {
    "nDCG": "ndcg", "AP": "map", "R": "recall", "P": "precision", "RR": "mrr", "Success": "hit_rate",
}  # fmt: skip
"""Measures of MTEB's retrieval tasks; others keep their own names."""
DIGITS = 5
"""Decimals of a value in percent."""


def metric_type(measure: Measure) -> str:
    """The name of a measure in MTEB's model cards.

    Example:
        >>> from cranfield.measures import parse
        >>> [metric_type(parse(text)) for text in ("nDCG@10", "RR@10", "AP", "P(rel=2)@5", "RBP(p=0.7)")]
        ['ndcg_at_10', 'mrr_at_10', 'map', 'p_rel_2_at_5', 'rbp_p_0_7']
    """
    if measure.name not in MTEB_NAMES or measure.params or measure.on_detail:
        return key_of(measure.canonical)
    return MTEB_NAMES[measure.name] + (
        "" if measure.cutoff is None else f"_at_{key_of(str(measure.cutoff)).lstrip('_')}"
    )


def model_card_of(subject: Subject) -> dict[str, Any]:
    """`model-index`: a model for each system, with its means on the test set; the first measure is the main score."""
    record, many, pair = subject.record, subject.many, subject.pair
    primary = many.primary if many is not None else None if pair is None else pair.primary
    testset = record.testset
    dataset = {
        "type": printable(testset.name),
        "name": printable(testset.name),
        "config": "default",
        "split": "test",
        "revision": testset.version or testset.digest,
    }
    return {
        "model-index": [
            {
                "name": printable(system.name),
                "results": [
                    {
                        "task": {"type": "Retrieval"},
                        "dataset": dict(dataset),
                        "metrics": list(_metrics(system, primary)),
                    }
                ],
            }
            for system in record.systems
        ]
    }


def _metrics(system: SystemResult, primary: Measure | None) -> Iterator[dict[str, Any]]:
    known = {measure: found for measure, found in system.measures.items() if found.mean is not None}
    for measure in sorted(known, key=lambda each: each != primary):
        yield _metric(metric_type(measure), measure, known[measure])
    main = primary if primary in known else next(iter(known), None)
    if main is not None:
        yield _metric("main_score", main, known[main])


def _metric(kind: str, measure: Measure, summary: Summary) -> dict[str, Any]:
    """A metric; a value that is no share, such as a rank, is left as it is."""
    scale = 100 if CATALOGUE[measure.name].range == (0.0, 1.0) else 1
    ends = {"ci_low": summary.ci_low, "ci_high": summary.ci_high}
    args = {name: round(end * scale, DIGITS) for name, end in ends.items() if end is not None}
    args |= {"ci_level": summary.ci_level} if args else {}
    return {
        "type": kind,
        "value": round((summary.mean or 0.0) * scale, DIGITS),
        "name": str(measure),
        "args": {**args, "n": summary.n},
    }

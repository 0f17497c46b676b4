"""A measure within each stratum of one system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cranfield.evaluation.evaluate import summarise
from cranfield.evaluation.values import Evaluation, Summary
from cranfield.measures import Measure
from cranfield.model import TestSet


@dataclass(frozen=True, slots=True)
class StratumSummary:
    """One measure over the scored queries of one stratum."""

    key: str
    value: str
    summary: Summary


def strata_of(testset: TestSet, query_ids: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(key, value, query ids) of every stratum, keys as they are met and values sorted.

    Keys with a different value for each query are left out.
    """
    groups: dict[str, dict[str, list[str]]] = {}
    for query_id in query_ids:
        for key, value in testset.by_id[query_id].strata.items():
            groups.setdefault(key, {}).setdefault(value, []).append(query_id)
    for key, values in groups.items():
        if max(len(members) for members in values.values()) > 1:
            yield from ((key, value, tuple(values[value])) for value in sorted(values))


def summaries_by_stratum(evaluation: Evaluation, measure: Measure) -> tuple[StratumSummary, ...]:
    """Mean, interval, median and spread of a measure within each stratum."""
    values, scored = evaluation.values[measure], evaluation.scored[measure]
    rows = []
    for key, value, query_ids in strata_of(evaluation.testset, evaluation.query_ids):
        places = np.array([evaluation.index[query_id] for query_id in query_ids])
        places = places[scored[places]]
        weights = np.array([evaluation.testset.by_id[evaluation.query_ids[i]].weight for i in places.tolist()])
        rows.append(StratumSummary(key, value, summarise(values[places], weights=weights, measure=measure)))
    return tuple(rows)

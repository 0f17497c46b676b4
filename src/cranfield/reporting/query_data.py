"""The data of the query view: an index of all queries, and everything about each of them.

The report that is one file holds them packed; a server answers them query by query. Text of systems and documents is in it as it
is: who shows it escapes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from cranfield.evaluation.classes import by_class
from cranfield.evaluation.expected import ExpectedItems
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.result import first_ranks
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Absence, query_strata
from cranfield.model.query import class_of
from cranfield.ranking.value import RankedHit
from cranfield.reporting.sections.answers import hit_line, list_note, nothing_expected
from cranfield.reporting.sections.labels import lettered, tone_of
from cranfield.reporting.sections.movement import bucket_words

SCHEMA_VERSION = 1
DIGITS = 6
"""Decimals of a value: it is shown with four."""
Result = Evaluation | Comparison | ManyComparison | Sequence[Evaluation]


def query_index(result: Result) -> dict[str, Any]:
    """All queries in columns, in the order of the test set: id, text, strata, outcomes, and their values on the primary measure.

    Returns:
        `ids`, `texts`, `strata` (key to value, the class among them) and `buckets` (None unless a pair is compared) have an entry a
        query; `values`, `ranks` (of the first relevant result, None where there is none) and `outcomes` have a list a system, and
        `deltas` an entry a query for a pair. `measure` is the primary one; `higher_is_better` says which way it is good; `is_void`
        that the scores do not count.
    """
    return QueryData(result).index()


def query_detail(result: Result, query_id: str) -> dict[str, Any]:
    """Everything about one query.

    Returns:
        `id`, `text`, `strata`, `bucket` and `move` (of a pair), `expected`: each expected item with its grade and its rank on each
        system (None: not returned), `expected_none`: why there is none, `values`: each measure with a value a system (measures of other classes are left out),
        the difference and its tone, and the reason where
        there is none; `sides`: for each system its outcome, a note in words, the latency, and its results: rank, id, title, grade,
        state (`judged`, `pooled`, `unjudged`), the item that it matched, and the same as a note in words.

    Raises:
        KeyError: there is no such query.
    """
    return QueryData(result).detail(query_id)


def data_json(payload: Mapping[str, Any]) -> bytes:
    """The payload as JSON in ASCII: any text can be written so, a half of a character too."""
    return json.dumps(payload, allow_nan=False, separators=(",", ":")).encode("ascii")


class QueryData:
    """Index and details of the queries of one result; what all details share is computed once."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.pair = result if isinstance(result, Comparison) else None
        self.evaluations = _evaluations_of(result)
        self.testset = self.evaluations[0].testset
        self.queries = {query.id: query for query in self.testset.queries}
        compared = result if isinstance(result, (Comparison, ManyComparison)) else None
        self.labels = lettered(self.evaluations) if compared else [each.name for each in self.evaluations]
        self.primary = compared.primary if compared else next(iter(self.evaluations[0].measures), None)

    def index(self) -> dict[str, Any]:
        """As of `query_index`."""
        primary = self.primary
        empty: dict[str, float | None] = {}
        columns = [{} if primary is None else each.get(primary, empty) for each in self._values]
        differences = self.pair.measures[self.pair.primary].differences if self.pair else {}
        return {
            "schema_version": SCHEMA_VERSION,
            "systems": self.labels,
            "measure": None if primary is None else str(primary),
            "higher_is_better": primary is None or sign_of(primary) > 0,
            "is_diagnostic": primary is not None and CATALOGUE[primary.name].diagnostic,
            "is_void": self.is_void,
            "ids": list(self.queries),
            "texts": [query.text for query in self.queries.values()],
            "strata": [dict(query_strata(query)) for query in self.queries.values()],
            "values": [[column.get(query_id) for query_id in self.queries] for column in columns],
            "deltas": [_rounded(differences.get(query_id)) for query_id in self.queries] if self.pair else None,
            "ranks": [[ranks.get(query_id) for query_id in self.queries] for ranks in self._first_ranks],
            "outcomes": [[self._outcome(each, query_id) for query_id in self.queries] for each in self.evaluations],
            "buckets": [self._buckets.get(query_id, "") for query_id in self.queries] if self.pair else None,
        }

    @property
    def index_json(self) -> bytes:
        """The index as JSON."""
        return data_json(self.index())

    def details(self) -> Iterator[dict[str, Any]]:
        """Every query, in the order of the index."""
        return map(self.detail, self.queries)

    def detail(self, query_id: str) -> dict[str, Any]:
        """As of `query_detail`."""
        query = self.queries[query_id]
        return {
            "schema_version": SCHEMA_VERSION,
            "id": query_id,
            "text": query.text,
            "strata": dict(query_strata(query)),
            "class": class_of(query),
            "bucket": self._buckets.get(query_id, ""),
            "move": self._moves.get(query_id, ""),
            "expected": (expected := self._expected_items(query_id)),
            "expected_none": "" if expected else nothing_expected(self.testset, query_id),
            "values": [row for row in map(partial(self._measure, query_id), self._measures) if _is_known(row)],
            "sides": [self._side(place, query_id) for place in range(len(self.evaluations))],
        }

    @cached_property
    def is_void(self) -> bool:
        """True when scores of a system do not count."""
        sources = (self.result,) if isinstance(self.result, (Comparison, ManyComparison)) else self.evaluations
        return any(finding.is_void for source in sources for finding in source.evidence)

    @cached_property
    def _buckets(self) -> dict[str, str]:
        if self.pair is None:
            return {}
        found, primary = _inverse(self.pair.buckets), self.pair.primary
        words = {name: bucket_words(name, primary) for name in self.pair.buckets}
        return {query_id: words[name] for query_id, name in found.items()}

    @cached_property
    def _moves(self) -> dict[str, str]:
        return _inverse(self.pair.moves) if self.pair else {}

    @cached_property
    def _first_ranks(self) -> list[dict[str, int | None]]:
        return [first_ranks(evaluation) for evaluation in self.evaluations]

    @cached_property
    def _measures(self) -> list[Measure]:
        """Every measure of any system, the primary first."""
        measures = dict.fromkeys(measure for values in self._values for measure in values)
        return list(dict.fromkeys([*([self.primary] if self.primary in measures else []), *measures]))

    @cached_property
    def _values(self) -> list[dict[Measure, dict[str, float | None]]]:
        """Of each system: measure to query id to value; those of a class have its queries alone."""
        found = []
        for evaluation in self.evaluations:
            values = {
                measure: {
                    query_id: round(value, DIGITS) if scored and math.isfinite(value) else None
                    for query_id, value, scored in zip(
                        evaluation.query_ids,
                        evaluation.values[measure].tolist(),
                        evaluation.scored[measure].tolist(),
                        strict=True,
                    )
                }
                for measure in evaluation.measures
            }
            for of_class in by_class(evaluation) if evaluation.ranking.classes else ():
                for about in of_class.measures:
                    if about.measure not in evaluation.values:
                        rounded = {query_id: _rounded(value) for query_id, value in about.values.items()}
                        values.setdefault(about.measure, {}).update(rounded)
            found.append(values)
        return found

    @cached_property
    def _expected(self) -> list[ExpectedItems]:
        return [ExpectedItems(evaluation) for evaluation in self.evaluations]

    def _expected_items(self, query_id: str) -> list[dict[str, Any]]:
        """The expected items of a query, best first, with their rank on each system."""
        found: dict[str, dict[str, Any]] = {}
        for side, items in enumerate(self._expected):
            for item in items.get(query_id, ()):
                unknown: list[int | None] = [None] * len(self._expected)
                record = found.setdefault(item.name, {"item": item.name, "grade": item.grade, "ranks": unknown})
                record["ranks"][side] = item.rank
        return list(found.values())

    def _measure(self, query_id: str, measure: Measure) -> dict[str, Any]:
        values = [by_measure.get(measure, {}).get(query_id) for by_measure in self._values]
        record: dict[str, Any] = {"measure": str(measure), "values": values}
        if self.pair is not None:
            before, after = values
            delta = None if before is None or after is None else _rounded(after - before)
            record |= {"delta": delta, "tone": "" if self.is_void else tone_of(delta, measure)}
        reasons = [each.unscored.get(measure, {}).get(query_id, "") for each in self.evaluations]
        return record | ({"unscored": reasons} if any(reasons) else {})

    def _side(self, place: int, query_id: str) -> dict[str, Any]:
        evaluation = self.evaluations[place]
        rank = self._first_ranks[place].get(query_id)
        log = evaluation.run.logs.get(query_id) if evaluation.run is not None else None
        hits = evaluation.ranking.top.get(query_id, ()) if query_id in evaluation.index else ()
        return {
            "system": self.labels[place],
            "name": evaluation.name,
            "outcome": self._outcome(evaluation, query_id),
            "note": list_note(evaluation, query_id, rank),
            "first_relevant_rank": rank,
            "latency_ms": None if log is None else round(log.latency_ms, 3),
            "hits": [_hit(hit) for hit in hits],
        }

    def _outcome(self, evaluation: Evaluation, query_id: str) -> str:
        at = evaluation.index.get(query_id)
        return str(Absence.NOT_RETURNED) if at is None else evaluation.ranking.outcomes[at].value


def _is_known(row: Mapping[str, Any]) -> bool:
    """Whether a measure has a value, or a reason why there is none."""
    return "unscored" in row or any(value is not None for value in row["values"])


def _hit(hit: RankedHit) -> dict[str, Any]:
    line = hit_line(hit)
    record = {"rank": hit.rank, "id": hit.id, "title": line.title, "note": line.note, "tone": line.tone}
    record["state"] = hit.state.name.lower()
    return record | ({"grade": hit.level, "item": hit.item, "credited": hit.credited} if hit.item is not None else {})


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _evaluations_of(result: Result) -> tuple[Evaluation, ...]:
    if isinstance(result, Evaluation):
        return (result,)
    return tuple(result.evaluations if isinstance(result, (Comparison, ManyComparison)) else result)


def _inverse(parts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Query id to the name of its part."""
    return {query_id: name for name, query_ids in parts.items() for query_id in query_ids}

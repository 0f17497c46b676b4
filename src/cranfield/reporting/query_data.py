"""The data of the query view: an index of all queries, and everything about each of them.

The report that is one file holds them packed; a server answers them query by query. Text of systems and documents is in it as it
is: who shows it escapes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from cranfield.evaluation.many import ManyComparison
from cranfield.evaluation.result import HitRecord, QueryRecord
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.model import Absence
from cranfield.reporting.sections.causes import cause_lines
from cranfield.reporting.sections.collection import hit_line, list_note
from cranfield.reporting.sections.subject import Subject, tone_of
from cranfield.reporting.sections.verdict import bucket_words

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
    return QueryData(Subject.of(result)).index()


def query_detail(result: Result, query_id: str) -> dict[str, Any]:
    """Everything about one query.

    Returns:
        `id`, `text`, `strata`, `bucket`, `move` and `why` (of a pair: what became of the documents that make the difference), `expected`: each expected item with its grade and its rank on each
        system (None: not returned), `expected_none`: why there is none, `values`: each measure with a value a system (measures of other classes are left out),
        the difference and its tone, and the reason where
        there is none; `sides`: for each system its outcome, a note in words, the latency, and its results: rank, id, title, grade,
        state (`judged`, `pooled`, `unjudged`), the item that it matched, and the same as a note in words; where the system explains
        its scores `terms`: pairs of a term (`title:cat · boost`) and its value.

    Raises:
        KeyError: there is no such query.
    """
    return QueryData(Subject.of(result)).detail(query_id)


def data_json(payload: Mapping[str, Any]) -> bytes:
    """The payload as JSON in ASCII: any text can be written so, a half of a character too."""
    return json.dumps(payload, allow_nan=False, separators=(",", ":")).encode("ascii")


class QueryData:
    """Index and details of the queries of a subject; what all details share is computed once."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.pair = subject, subject.pair
        self.queries, self.primary, self.is_void = subject.queries, subject.primary, subject.is_void

    def index(self) -> dict[str, Any]:
        """As of `query_index`."""
        primary = self.primary
        columns = [{} if primary is None else each.get(primary, {}) for each in self._values]
        differences = self.pair.comparisons[self.pair.primary].differences if self.pair else {}
        sides = range(len(self.subject.labels))
        return {
            "schema_version": SCHEMA_VERSION,
            "systems": list(self.subject.labels),
            "measure": None if primary is None else str(primary),
            "higher_is_better": primary is None or sign_of(primary) > 0,
            "is_diagnostic": primary is not None and CATALOGUE[primary.name].diagnostic,
            "is_void": self.is_void,
            "ids": list(self.queries),
            "texts": [query.text for query in self.queries.values()],
            "strata": [dict(query.strata) for query in self.queries.values()],
            "values": [[column.get(query_id) for query_id in self.queries] for column in columns],
            "deltas": [_rounded(differences.get(query_id)) for query_id in self.queries] if self.pair else None,
            "ranks": [[query.sides[place].first_relevant_rank for query in self.queries.values()] for place in sides],
            "outcomes": [[_outcome(query, place) for query in self.queries.values()] for place in sides],
            "buckets": [self._bucket(query) for query in self.queries.values()] if self.pair else None,
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
        rows = (self._measure(query_id, measure) for measure in self._measures)
        return {
            "schema_version": SCHEMA_VERSION,
            "id": query_id,
            "text": query.text,
            "strata": dict(query.strata),
            "class": query.query_class,
            "bucket": self._bucket(query),
            "move": query.move,
            "why": self._why(query_id),
            "expected": [
                {"item": each.item, "grade": each.grade, "ranks": list(each.ranks)} for each in query.expected
            ],
            "expected_none": query.nothing_expected,
            # A measure with a value, or with a reason why there is none.
            "values": [row for row in rows if "unscored" in row or any(value is not None for value in row["values"])],
            "sides": [self._side(place, query_id) for place in range(len(self.subject.labels))],
        }

    def _why(self, query_id: str) -> list[str]:
        found = None if self.pair is None or self.is_void else self.pair.causes
        if found is None or query_id not in found.queries:
            return []
        return cause_lines(found.queries[query_id], found.measure)

    def _bucket(self, query: QueryRecord) -> str:
        return bucket_words(query.bucket, self.pair.primary) if self.pair is not None and query.bucket else ""

    @cached_property
    def _measures(self) -> list[Measure]:
        """Every measure of any system, the primary first."""
        measures = dict.fromkeys(measure for values in self._values for measure in values)
        return list(dict.fromkeys([*([self.primary] if self.primary in measures else []), *measures]))

    @cached_property
    def _values(self) -> list[dict[Measure, dict[str, float | None]]]:
        """Values of each system: measure to query id to value; those of a class have its queries alone."""
        found = []
        for system in self.subject.record.systems:
            values: dict[Measure, dict[str, float | None]] = {measure: {} for measure in system.measures}
            for query_id, of_query in system.queries.items():
                for measure, value in of_query.items():
                    values[measure][query_id] = _rounded(value)
            for of_class in system.classes:
                for about in of_class.measures:
                    if about.measure not in system.measures:
                        rounded = {query_id: _rounded(value) for query_id, value in about.values.items()}
                        values.setdefault(about.measure, {}).update(rounded)
            found.append(values)
        return found

    def _measure(self, query_id: str, measure: Measure) -> dict[str, Any]:
        values = [by_measure.get(measure, {}).get(query_id) for by_measure in self._values]
        record: dict[str, Any] = {"measure": str(measure), "values": values}
        if self.pair is not None:
            before, after = values
            delta = None if before is None or after is None else _rounded(after - before)
            record |= {"delta": delta, "tone": "" if self.is_void else tone_of(delta, measure)}
        reasons = [system.unscored.get(query_id, {}).get(measure, "") for system in self.subject.record.systems]
        return record | ({"unscored": reasons} if any(reasons) else {})

    def _side(self, place: int, query_id: str) -> dict[str, Any]:
        side, label = self.queries[query_id].sides[place], self.subject.labels[place]
        latency_ms = self.subject.calls.systems[side.system].latency_ms
        return {
            "system": label,
            "name": side.system,
            "outcome": _outcome(self.queries[query_id], place),
            "note": list_note(side),
            "first_relevant_rank": side.first_relevant_rank,
            "latency_ms": latency_ms.get(query_id),
            "hits": [_hit(hit) for hit in side.hits],
        }


def _outcome(query: QueryRecord, place: int) -> str:
    return query.sides[place].outcome or str(Absence.NOT_RETURNED)


def _hit(hit: HitRecord) -> dict[str, Any]:
    line = hit_line(hit)
    record = {"rank": hit.rank, "id": hit.id, "title": line.title, "note": line.note, "tone": line.tone}
    record["state"] = hit.state
    if hit.terms is not None:
        record["terms"] = tuple((term, value) for term, value in hit.terms.items() if math.isfinite(value))
    return record | ({"grade": hit.grade, "item": hit.item, "credited": hit.credited} if hit.item is not None else {})


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)

"""A system as the checks read it: an evaluation, with what several checks need computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.evidence.values import Scored
from cranfield.matching.place import entity_of, path_of, place_of
from cranfield.measures import Measure
from cranfield.measures.kernels import expected_relevant
from cranfield.model import Entity, File, Hit, MatchingRules, Pattern, Predicate, Run, Span, TestSet
from cranfield.ranking.value import FloatQ, RankedHit, Ranking

MOST_LISTS = 100
"""Queries of a run file whose results are looked at; of more, this many are taken at equal distances."""
MOST_HITS = 20
"""Results of one query that are looked at."""


@dataclass(frozen=True, slots=True)
class ReturnedList:
    """The first results of one query, as the system gave them."""

    query: int
    """Position in `query_ids`."""
    hits: tuple[tuple[str, str | None], ...]
    """Id and span of each, duplicates included where the run was collected."""


class Inspected:
    """A `Scored` with cached facts. Checks of the table get one of these."""

    def __init__(self, system: Scored, depth: int | None = None) -> None:
        """Read a system; `depth` is that of the primary measure."""
        self.depth = depth
        self._expected: dict[int, frozenset[str]] = {}
        self.name: str = system.name
        self.testset: TestSet = system.testset
        self.ranking: Ranking = system.ranking
        self.run: Run | None = system.run
        self.run_digest: str = system.run_digest
        self.reading: Mapping[str, str | int | None] = system.reading
        self.query_ids: tuple[str, ...] = system.query_ids
        self.extra_queries: tuple[str, ...] = system.extra_queries
        self.values: Mapping[Measure, FloatQ] = system.values
        self.scored: Mapping[Measure, NDArray[np.bool_]] = system.scored

    @cached_property
    def expecting(self) -> NDArray[np.bool_]:
        """bool[Q]: something relevant is expected."""
        # NaN, an unknown number, is not 0.
        expecting: NDArray[np.bool_] = ~(expected_relevant(self.ranking, 1) == 0) & ~self.ranking.is_negative
        return expecting

    @cached_property
    def has_results(self) -> NDArray[np.bool_]:
        """bool[Q]."""
        found: NDArray[np.bool_] = self.ranking.n_returned > 0
        return found

    @cached_property
    def joined(self) -> NDArray[np.bool_]:
        """bool[Q]: a result is a judged item, relevant or not."""
        return self._with_rows(np.ones(len(self.ranking.query), dtype=np.bool_))

    @cached_property
    def found(self) -> NDArray[np.bool_]:
        """bool[Q]: a result is relevant."""
        return self._with_rows((self.ranking.level >= 1) | (self.ranking.gain > 0))

    def _with_rows(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        found = np.zeros(self.ranking.n_queries, dtype=np.bool_)
        found[self.ranking.query[rows]] = True
        return found

    def ids_of(self, mask: NDArray[np.bool_]) -> tuple[str, ...]:
        """Ids of some queries."""
        return tuple(self.query_ids[place] for place in np.flatnonzero(mask).tolist())

    @cached_property
    def lists(self) -> tuple[ReturnedList, ...]:
        """The first results of the queries that have any; of a run file, of a sample of them and without duplicates."""
        places = np.flatnonzero(self.has_results)
        places = sample(places, MOST_LISTS) if self.run is None else places
        lists = (ReturnedList(place, self.hits_of(place)) for place in places.tolist())
        return tuple(each for each in lists if each.hits)

    def hits_of(self, place: int) -> tuple[tuple[str, str | None], ...]:
        """Id and span of the first results of one query."""
        query_id = self.query_ids[place]
        hits: Sequence[Hit | RankedHit] = ()
        if self.run is not None:
            answer = self.run.answers.get(query_id)
            hits = () if answer is None or answer.outcome.is_failure else answer.hits[:MOST_HITS]
        else:
            hits = self.ranking.top.get(query_id, ())[:MOST_HITS]
        return tuple((hit.id, hit.span) for hit in hits)

    def texts_of(self, place: int) -> tuple[str, ...]:
        """The results of one query as they are compared with what it expects: ids, or paths or entities."""
        return tuple(dict.fromkeys(self.text_of(place, hit) for hit in self.hits_of(place)))

    def text_of(self, place: int, hit: tuple[str, str | None]) -> str:
        """One result of a query as it is compared with what the query expects."""
        match next(iter(self.testset.targets.get(self.query_ids[place], ())), None):
            case Span() | File():
                return place_of(Hit(hit[0], span=hit[1]), self.testset.matching).path
            case Entity():
                return place_of(Hit(hit[0], span=hit[1]), self.testset.matching).entity
        return hit[0]

    def expected_of(self, place: int) -> frozenset[str]:
        """The relevant ids, paths, entities or patterns that a query expects."""
        if place not in self._expected:
            self._expected[place] = expected_texts(self.testset, self.query_ids[place])
        return self._expected[place]

    @cached_property
    def universe(self) -> frozenset[str]:
        """Everything that any query judges or expects."""
        judged = (self.testset.grades.get(query_id, {}) for query_id in self.query_ids)
        return frozenset().union(*judged, *map(self.expected_of, range(len(self.query_ids))))

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """The regular expressions that any query expects."""
        return tuple(dict.fromkeys(text for texts in self.targets.values() for text in texts))

    @cached_property
    def targets(self) -> Mapping[int, tuple[str, ...]]:
        """Position of a query to its regular expressions; queries without are missing."""
        if not self.testset.targets:
            return {}
        found = {
            place: tuple(
                target.regex for target in self.testset.targets.get(query_id, ()) if isinstance(target, Pattern)
            )
            for place, query_id in enumerate(self.query_ids)
        }
        return {place: regexes for place, regexes in found.items() if regexes}


@dataclass(frozen=True, slots=True)
class Sides:
    """What a check of a comparison reads: the systems, and the measure that decides."""

    systems: Sequence[Inspected]
    primary: Measure


def sample(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """So many of the places at most, at equal distances."""
    return places if len(places) <= most else places[np.linspace(0, len(places) - 1, most).astype(np.int64)]


def expected_texts(testset: TestSet, query_id: str) -> frozenset[str]:
    """What the id of a relevant result can be: a document id, a path, an entity; or the pattern that it matches."""
    texts: list[str] = []
    rules: MatchingRules = testset.matching
    for target in testset.targets.get(query_id, ()):
        match target:
            case Span() | File():
                texts.append(path_of(target.path, rules))
            case Entity():
                texts.append(entity_of(target.id, rules))
            case Pattern():
                texts.append(target.regex)
            case Predicate():
                texts.extend(target.ids or ())
    if texts:
        return frozenset(texts)
    return frozenset(doc_id for doc_id, grade in testset.grades.get(query_id, {}).items() if grade > 0)

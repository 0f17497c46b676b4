"""Values of the evidence checks: what a check reads, what it finds, and how a caller changes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import shorten
from cranfield.base.words import and_list
from cranfield.evaluation.options.blocks import Consequence, Setting
from cranfield.measures import Measure
from cranfield.measures.kernels import expected_relevant
from cranfield.model import Criteria, Entity, File, Hit, MatchingRules, Passage, Pattern, Predicate, Run, Span, TestSet
from cranfield.ranking.matching.place import entity_of, path_of, place_of
from cranfield.ranking.value import FloatQ, RankedHit, Ranking

_NUMBER = re.compile(r"\d+")
_BEHIND_NUMBERS = re.compile(r"(.*\d[^\s:;,]*(?: [^()\d]*\)| %)?)([:;,]?(?: [^\s\d]+){3,})")
"""A sentence up to its last number, or the end of the brackets around it, and three or more words behind it."""
MAX_LISTED = 4
"""Findings of one check that each have their own sentence."""
Settings = Mapping[str, Setting]
"""Name of a check to its setting; a check that is missing is as in the table."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the function of a check found."""

    sentence: str
    """What is wrong and where, with counts."""
    query_ids: tuple[str, ...] = ()
    """Queries that show it."""
    count: int = 0
    """How many queries, results or systems it is about."""
    total: int = 0
    """Number of which `count` is a part."""
    of_testset: bool = False
    """Whether it is about the test set, and its sentence names no system."""

    @classmethod
    def of(cls, sentence: str, query_ids: Collection[str], total: int) -> Found:
        """Some queries of a total."""
        return cls(sentence, tuple(query_ids), len(query_ids), total)


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that found something."""

    check: str
    """Name in the table of checks."""
    consequence: Consequence
    system: str
    """Empty where it is about all systems of a comparison."""
    sentence: str
    query_ids: tuple[str, ...] = ()
    count: int = 0
    total: int = 0
    text: str = ""
    """The sentence without the name of the system; empty where it has none."""

    @property
    def is_void(self) -> bool:
        """Whether the scores do not count."""
        return self.consequence is Consequence.VOID


class Scored(Protocol):
    """The part of an evaluation that checks read."""

    @property
    def name(self) -> str:
        """What the system is called."""

    @property
    def testset(self) -> TestSet:
        """What its answers were judged by."""

    @property
    def ranking(self) -> Ranking:
        """Its results, ranked and joined."""

    @property
    def run(self) -> Run | None:
        """The collected run; None for a run file without a log."""

    @property
    def run_digest(self) -> str:
        """Identity of the run."""

    @property
    def reading(self) -> Mapping[str, str | int | None]:
        """Options of the reader; `ids` is the rule of the run's ids, where it is another than the set's."""

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Q."""

    @property
    def extra_queries(self) -> tuple[str, ...]:
        """Ids of the run that the test set does not have."""

    @property
    def values(self) -> Mapping[Measure, FloatQ]:
        """float64[Q] of each measure."""

    @property
    def scored(self) -> Mapping[Measure, NDArray[np.bool_]]:
        """bool[Q] of each measure: where it has a value."""


def without_secrets(findings: tuple[Finding, ...], systems: Iterable[Scored]) -> tuple[Finding, ...]:
    """Findings whose sentences name no id that holds a secret of a system: checks compare the ids that were returned."""
    if not findings:
        return findings
    answers = [answer for system in systems if system.run is not None for answer in system.run.answers.values()]
    hidden = {hit.id: hit.public_id for answer in answers for hit in answer.hits if hit.redacted_id is not None}

    def public(sentence: str) -> str:
        for name in sorted(hidden, key=len, reverse=True):
            sentence = sentence.replace(name, hidden[name]).replace(shorten(name), shorten(hidden[name]))
        return sentence

    return (
        tuple(replace(finding, sentence=public(finding.sentence), text=public(finding.text)) for finding in findings)
        if hidden
        else findings
    )


def void_sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences of what makes scores void; empty where they count."""
    return _counted_once(finding for finding in findings if finding.is_void)


def caveat_sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences of caveats, each once."""
    return _counted_once(finding for finding in findings if not finding.is_void)


def _counted_once(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences, each once; where one check found something in many systems, one of them with their number."""
    by_check: dict[str, dict[str, Finding]] = {}
    for finding in findings:
        by_check.setdefault(finding.check, {}).setdefault(finding.sentence, finding)
    sentences: list[str] = []
    for found in by_check.values():
        systems = {finding.system for finding in found.values()}
        if len(systems) <= MAX_LISTED:
            sentences += merged(
                (each.system if each.text else "", each.text or sentence) for sentence, each in found.items()
            )
        else:
            sentences.append(f"{len(systems)} systems, for example {next(iter(found))}")
    return tuple(sentences)


def merged(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Sentences about systems, `(system, sentence)`: those of several systems that differ in numbers alone are one.

    `a: 20 of 40 results (50.0 %) and b: 10 of 40 results (25.0 %) repeat an id of their list and are dropped`
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for system, sentence in pairs:
        alike.setdefault(_NUMBER.sub("#", sentence), []).append((system, sentence))
    sentences: list[str] = []
    for group in alike.values():
        systems, texts = zip(*group, strict=True)
        parts = [_BEHIND_NUMBERS.fullmatch(text) for text in texts]
        if len(set(texts)) == 1 and all(systems):
            sentences.append(f"{and_list(systems)}: {texts[0]}")
        elif len(set(systems)) == len(systems) > 1 and (found := [part for part in parts if part]):
            sentences.append(
                and_list([f"{system}: {part[1]}" for system, part in zip(systems, found, strict=True)]) + found[0][2]
            )
        else:
            sentences += [": ".join(filter(None, each)) for each in group]
    return sentences


MAX_LISTS = 100
"""Queries of a run file whose results are looked at; of more, this many are taken at equal distances."""
MAX_HITS = 20
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
        places = sample(places, MAX_LISTS) if self.run is None else places
        lists = (ReturnedList(place, self.hits_of(place)) for place in places.tolist())
        return tuple(each for each in lists if each.hits)

    def hits_of(self, place: int) -> tuple[tuple[str, str | None], ...]:
        """Id and span of the first results of one query."""
        query_id = self.query_ids[place]
        hits: Sequence[Hit | RankedHit] = ()
        if self.run is not None:
            answer = self.run.answers.get(query_id)
            hits = () if answer is None or answer.outcome.is_failure else answer.hits[:MAX_HITS]
        else:
            hits = self.ranking.top.get(query_id, ())[:MAX_HITS]
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
            case Criteria() | Passage():
                texts.append(target.label)
    if texts:
        return frozenset(texts)
    return frozenset(doc_id for doc_id, grade in testset.grades.get(query_id, {}).items() if grade > 0)

"""What one query expects, which expected items a result is, and what else is looked for in a list.

Calls nothing above it: the ranking asks `Expectation.matches` for each result and applies the credit rule: a result is
credited for the best item without credit, and an item is credited once, to the first result, unless repeatable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from cranfield.base.errors import TestSetError
from cranfield.base.patterns import Expression, search_limit
from cranfield.model import (
    Convention,
    Criteria,
    Entity,
    File,
    Hit,
    MatchingRules,
    Negative,
    Passage,
    Pattern,
    Predicate,
    Span,
    Target,
    TestSet,
)
from cranfield.model.query import negative_of
from cranfield.ranking.matching.criteria import HitTest, address_of, criteria_test, lacks_field
from cranfield.ranking.matching.passages import ExpectedTexts, expected_texts, lacks_place, passage_place, passage_test
from cranfield.ranking.matching.place import (
    ENTITY_MARK,
    Place,
    entity_of,
    names_lines,
    overlap,
    path_of,
    place_name,
    place_of,
    short_entity,
)

NO_MATCH: tuple[int, ...] = ()
HIGHEST_LEVEL = 2**31 - 1
"""A grade beyond it, either way, has this level: no `rel=` asks for more."""

Test = Callable[[Hit, Place], bool]
"""Whether a result is an expected item."""


@dataclass(frozen=True, slots=True)
class QueryMatcher:
    """What one query looks for; empty where it looks for nothing."""

    files: tuple[str, ...] = ()
    """Paths, in the one form."""
    file_of: Callable[[Hit], str] = lambda hit: hit.id
    """The path a result lies in, in the one form."""
    is_legacy: Callable[[str], bool] | None = None
    """Whether an id is of the legacy form; None where there is none."""
    is_forbidden: HitTest | None = None
    """Whether a result must not be found; None where there is no such result."""
    sources: tuple[Expression, ...] = ()
    """Expressions of the sources, the highest authority first."""
    answered_by: frozenset[int] = frozenset()
    """Sources that an expected document is of; none where the truth is no list of documents."""

    def __bool__(self) -> bool:
        """Whether anything is looked for."""
        return bool(self.files or self.is_legacy or self.is_forbidden or self.sources)

    def source_of(self, doc_id: str) -> int | None:
        """Place of the first source that fits an id; None where none does."""
        return next((place for place, source in enumerate(self.sources) if source.found_in(doc_id)), None)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected items of one query, best first, and the function that recognises them."""

    grades: tuple[float, ...]
    """One per item, descending. Under 0: pooled, not judged."""
    gains: tuple[float, ...]
    """What a match of each item is worth under the convention; never under 0."""
    labels: tuple[str, ...]
    """What to call each item in a report: the document id, the pattern, the span."""
    counts: tuple[int | None, ...]
    """Documents each item stands for; None where unknown."""
    repeatable: tuple[bool, ...]
    """True where every match is credited, not only the first."""
    closed_world: bool
    """True when what matches nothing is known not to be relevant."""
    matches: Callable[[Hit], Sequence[int]]
    """Result to the items it matches, best first."""
    lookout: QueryMatcher = field(default_factory=QueryMatcher)
    """What is looked for besides the items."""
    negative: Negative | None = None
    """Where nothing should be found."""
    is_unplaced: Callable[[Hit], bool] = lambda _: False
    """Whether a result lacks what it would be recognised by: its lines, its text, or a field that is expected."""
    place: Callable[[Hit], str | None] = lambda hit: hit.public_span
    """Where in its document a result lies, for people."""
    texts: ExpectedTexts | None = None
    """The items as passages of text, where all of them are passages, or lines of files."""

    @property
    def levels(self) -> tuple[int, ...]:
        """Whole-number grades (rounded down), for measures that ask `rel=`."""
        return tuple(max(-HIGHEST_LEVEL, min(math.floor(grade), HIGHEST_LEVEL)) for grade in self.grades)


def is_plain(testset: TestSet) -> bool:
    """Whether graded ids are all there is to a test set: then nothing but ids has to be compared."""
    more = (
        testset.targets
        or testset.files
        or testset.legacy
        or testset.forbidden
        or testset.sources
        or testset.matching.urls
    )
    return not more and all(negative_of(query) is None and not query.exhaustive for query in testset.queries)


def needs_every_result(testset: TestSet, query_id: str) -> bool:
    """Whether every result has to be matched, not only the judged documents."""
    query = testset.by_id[query_id]
    if query_id in testset.targets or query.exhaustive or negative_of(query) is not None:
        return True
    if testset.sources or testset.matching.urls:
        return True
    return any(query_id in looked_for for looked_for in (testset.files, testset.legacy, testset.forbidden))


def has_lines(target: Target) -> bool:
    """Whether the conditions of a target name lines of a file."""
    return isinstance(target, Criteria) and "lines" in target.where


def by_place(testset: TestSet, query_id: str) -> bool:
    """Whether the results of a query are places: two of one file are two results."""
    targets = testset.targets.get(query_id, ())
    if targets or not testset.matching.places:
        return any(isinstance(target, Span | Entity | File | Passage) or has_lines(target) for target in targets)
    return any(map(names_lines, testset.grades.get(query_id, ())))


def expect(testset: TestSet, query_id: str, convention: Convention) -> Expectation:
    """Build the expectation of one query from its graded ids or its targets.

    Raises:
        TestSetError: a predicate that was not evaluated.
    """
    query = testset.by_id.get(query_id)
    lookout = looks_for(testset, query_id)
    negative = negative_of(query) if query is not None else None
    targets = _documents(merged_entities(testset.targets.get(query_id, ()), testset.matching), query_id)
    if targets:
        is_closed = negative is not None or (query is not None and query.exhaustive)
        return _from_targets(targets, testset.matching, convention, lookout, negative, is_closed=is_closed)
    rules = testset.matching
    graded = sorted(testset.grades.get(query_id, {}).items(), key=lambda item: -item[1])
    if rules.urls:  # two spellings of one address are one document, with the better grade
        graded = list({address_of(doc_id, rules): (doc_id, grade) for doc_id, grade in reversed(graded)}.values())[::-1]
    positions = {address_of(doc_id, rules): (index,) for index, (doc_id, _) in enumerate(graded)}
    grades = tuple(float(grade) for _, grade in graded)
    is_place = by_place(testset, query_id)
    return Expectation(
        grades=grades,
        gains=_gains(grades, convention),
        labels=tuple(doc_id for doc_id, _ in graded),
        counts=(1,) * len(graded),
        repeatable=(False,) * len(graded),
        closed_world=query_id in testset.targets or negative is not None or (query is not None and query.exhaustive),
        matches=lambda hit: positions.get(address_of(place_name(hit) if is_place else hit.id, rules), NO_MATCH),
        lookout=lookout,
        negative=negative,
    )


def merged_entities(targets: Sequence[Target], rules: MatchingRules) -> list[Target]:
    """The targets, each entity once: with its best grade, and the lines of all its definitions that are listed.

    Overloads and other definitions of one name (`prompt`, `prompt#2`) are one entity, which a system returns once.
    """
    merged: dict[str, Target] = {}
    for place, target in enumerate(targets):
        key = f"::{entity_of(target.id, rules)}" if isinstance(target, Entity) else str(place)
        before = merged.get(key)
        if isinstance(target, Entity) and isinstance(before, Entity):
            lines = tuple(dict.fromkeys([*before.lines, *target.lines]))
            merged[key] = replace(before, grade=max(before.grade, target.grade), lines=lines)
        else:
            merged[key] = target
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class _Document:
    """A document that a predicate named."""

    label: str
    grade: float


def _documents(targets: Sequence[Target], query_id: str) -> list[Target | _Document]:
    """The targets, each predicate as the documents it named; one named by several has its best grade."""
    documents: dict[str, float] = {}
    others: list[Target | _Document] = []
    for target in targets:
        if not isinstance(target, Predicate):
            others.append(target)
            continue
        if target.ids is None:
            raise TestSetError(
                f"query {query_id!r} is judged by a query to database {target.database!r}, which was not queried",
                hint="`cranfield.load` queries the databases of a test set",
            )
        for doc_id in target.ids:
            documents[doc_id] = max(target.grade, documents.get(doc_id, target.grade))
    return [*others, *(_Document(doc_id, grade) for doc_id, grade in documents.items())]


def _from_targets(
    targets: Sequence[Target | _Document],
    rules: MatchingRules,
    convention: Convention,
    lookout: QueryMatcher,
    negative: Negative | None,
    *,
    is_closed: bool,
) -> Expectation:
    """The expectation of targets; criteria name single results, so that what meets none of them may be relevant all the same."""
    ordered = sorted(targets, key=lambda target: -target.grade)
    known = {target.label: index for index, target in enumerate(ordered) if isinstance(target, _Document)}
    tests = [(index, _test(target, rules)) for index, target in enumerate(ordered) if not isinstance(target, _Document)]
    every = convention.credit == "every"
    asks_lines = any(isinstance(target, Span) for target in targets)
    criteria = [target for target in targets if isinstance(target, Criteria)]
    passages = [target for target in targets if isinstance(target, Passage)]
    grades = tuple(float(target.grade) for target in ordered)

    def matches(hit: Hit) -> Sequence[int]:
        place = place_of(hit, rules)
        found = [index for index, test in tests if test(hit, place)]
        return sorted([*found, known[hit.id]]) if hit.id in known else found

    return Expectation(
        grades=grades,
        gains=_gains(grades, convention),
        labels=tuple(target.label for target in ordered),
        counts=tuple(_count(target, every=every) for target in ordered),
        repeatable=tuple(every or (isinstance(target, Pattern) and target.credit == "every") for target in ordered),
        closed_world=is_closed or len(criteria) < len(targets),
        matches=matches,
        lookout=lookout,
        negative=negative,
        is_unplaced=lambda hit: (
            (asks_lines and place_of(hit, rules).lines is None)
            or (bool(criteria) and all(lacks_field(target, hit, rules) for target in criteria))
            or (bool(passages) and all(lacks_place(target, hit, rules) for target in passages))
        ),
        place=(lambda hit: passage_place(hit, rules)) if passages else (lambda hit: hit.public_span),
        texts=expected_texts(ordered, rules),
    )


def _count(target: Target | _Document, *, every: bool) -> int | None:
    if not isinstance(target, Pattern):
        return 1
    return target.expected_count if every else target.count


def _test(target: Target | _Document, rules: MatchingRules) -> Test:  # noqa: PLR0911 - a table of kinds
    match target:
        case Pattern():
            expression = Expression(target.regex)
            return lambda hit, _: expression.found_in(hit.id)
        case Span():
            return _overlaps(target, rules)
        case Entity():
            entity = entity_of(target.id, rules)
            spans = [_overlaps(span, rules) for span in target.spans]
            if spans:  # a symbol that a result names says more than its lines, where it names one function only
                short = short_entity(entity)
                return lambda hit, place: (
                    place.entity == entity
                    or (
                        (ENTITY_MARK not in place.entity or place.entity == short)
                        and any(test(hit, place) for test in spans)
                    )
                )
            return lambda _, place: place.entity == entity
        case Criteria():
            is_it = criteria_test(target, rules)
            return lambda hit, _: is_it(hit)
        case Passage():
            holds = passage_test(target, rules)
            return lambda hit, _: holds(hit)
        case File():
            file = path_of(target.path, rules)
            return lambda _, place: place.path == file
        case _:
            return lambda hit, _: hit.id == target.label


def _overlaps(span: Span, rules: MatchingRules) -> Test:
    path, lines = path_of(span.path, rules), (span.start, span.end)
    # A place shorter than the bound could else never be found.
    least = min(rules.min_overlap, max(overlap(lines, lines), 1))
    return lambda _, place: place.path == path and place.lines is not None and overlap(place.lines, lines) >= least


def _gains(grades: Sequence[float], convention: Convention) -> tuple[float, ...]:
    if convention.gain == "match":
        return tuple(1.0 if grade > 0 else 0.0 for grade in grades)
    return tuple(max(grade, 0.0) for grade in grades)


def looks_for(testset: TestSet, query_id: str) -> QueryMatcher:
    """What is looked for besides the expected items of a query."""
    rules = testset.matching
    sources = tuple(Expression(source.pattern) for source in testset.sources)
    answered_by: frozenset[int] = frozenset()
    if sources and query_id not in testset.targets:
        relevant = [doc_id for doc_id, grade in testset.grades.get(query_id, {}).items() if grade >= 1]
        found = (QueryMatcher(sources=sources).source_of(doc_id) for doc_id in relevant)
        with search_limit(f"sources of the relevant documents of query {query_id}"):
            answered_by = frozenset(place for place in found if place is not None)
    return QueryMatcher(
        files=tuple(dict.fromkeys(path_of(path, rules) for path in testset.files.get(query_id, ()))),
        file_of=lambda hit: place_of(hit, rules).path,
        is_legacy=_legacy(testset, query_id),
        is_forbidden=_forbidden(testset, query_id),
        sources=sources,
        answered_by=answered_by,
    )


def _legacy(testset: TestSet, query_id: str) -> Callable[[str], bool] | None:
    legacy = testset.legacy.get(query_id)
    if legacy is None:
        return None
    ids, patterns = frozenset(legacy.ids), [Expression(pattern) for pattern in legacy.patterns]
    return lambda doc_id: doc_id in ids or any(pattern.found_in(doc_id) for pattern in patterns)


def _forbidden(testset: TestSet, query_id: str) -> HitTest | None:
    tests = [criteria_test(target, testset.matching) for target in testset.forbidden.get(query_id, ())]
    return (lambda hit: any(test(hit) for test in tests)) if tests else None

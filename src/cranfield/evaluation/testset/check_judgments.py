"""Checks of what queries expect, alone and against the results of runs. Each yields the id of a query and what is wrong with it, in a sentence's words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from cranfield.base.patterns import Expression, any_match, search_limit
from cranfield.base.words import count_noun
from cranfield.evaluation.testset import declared
from cranfield.evaluation.testset.expected import KINDS, is_relevant, paths_of, plain_label
from cranfield.model import Absence, Entity, Hit, Legacy, Pattern, Span, Target, TestSet
from cranfield.model.query import negative_of
from cranfield.ranking.matching.place import entity_of, overlap, path_of, place_of

Complaint = tuple[str, str]
"""Query id, empty where it is about the whole set, and what is wrong."""
Answers = Mapping[str, Sequence[Hit]]
"""Query id to results, for all the queries of one run."""
MIN_RESULTS = 2
"""Fewest results for which it matters that a pattern is found in all: with one result it shows nothing."""
NAMED = 3


def without_relevant(testset: TestSet) -> Iterator[Complaint]:
    """Queries with nothing relevant that are not declared negative."""
    for query in testset.queries:
        if negative_of(query) is None and not is_relevant(testset, query.id):
            n = len(testset.grades.get(query.id, {})) + len(testset.targets.get(query.id, ()))
            absent = f"{Absence.NONE_RELEVANT} ({n} judged)" if n else Absence.NEVER_JUDGED
            yield query.id, f"{absent}, and it is not declared negative"


def off_the_scale(testset: TestSet) -> Iterator[Complaint]:
    """Grades that the declared scale does not have."""
    yield from ((found.query_id, found.sentence) for found in declared.off_the_scale(testset))


def unknown_task_types(testset: TestSet) -> Iterator[Complaint]:
    """Values of the stratum `task_type` that are not declared."""
    yield from ((found.query_id, found.sentence) for found in declared.unknown_task_types(testset))


def negative_with_judgments(testset: TestSet) -> Iterator[Complaint]:
    """Negative queries to which something is relevant."""
    for query in testset.queries:
        if negative_of(query) is not None and is_relevant(testset, query.id):
            yield query.id, "it is a negative query, but documents are judged relevant"


def contradictory(testset: TestSet) -> Iterator[Complaint]:
    """The same thing judged twice for one query, by one rater where there are raters, with different grades."""
    yield from _twice(testset, same_grade=False)


def repeated(testset: TestSet) -> Iterator[Complaint]:
    """The same thing judged twice for one query, with the same grade."""
    yield from _twice(testset, same_grade=True)


def _twice(testset: TestSet, *, same_grade: bool) -> Iterator[Complaint]:
    for query_id in testset.query_ids:
        for name, grades in _grades_by_thing(testset, query_id):
            if len(grades) > 1 and (len(set(grades)) == 1) is same_grade:
                written = " and ".join("no grade" if grade is None else f"{grade:g}" for grade in grades)
                yield query_id, f"{name} is judged {len(grades)} times: {written}"


def _grades_by_thing(testset: TestSet, query_id: str) -> Iterator[tuple[str, list[float | None]]]:
    by_thing: dict[str, list[float | None]] = defaultdict(list)
    for target in testset.targets.get(query_id, ()):
        by_thing[f"{KINDS[type(target)]} {plain_label(target)}"].append(target.grade)
    for rating in testset.ratings.get(query_id, ()):
        by_thing[f"{rating.doc_id} by {rating.rater}"].append(rating.grade)
    yield from by_thing.items()


def overlapping_spans(testset: TestSet) -> Iterator[Complaint]:
    """Two spans of one query that one result can satisfy both."""
    for query_id in testset.query_ids:
        for span, other in combinations(_spans(testset.targets.get(query_id, ())), 2):
            lines = ((span.start, span.end), (other.start, other.end))
            same_file = path_of(span.path, testset.matching) == path_of(other.path, testset.matching)
            if same_file and lines[0] != lines[1] and overlap(*lines) >= 1:
                spans = f"{span.start}-{span.end} and {other.start}-{other.end}"
                yield query_id, f"{spans} of {span.path} overlap: one result can satisfy both"


def _spans(targets: Sequence[Target]) -> list[Span]:
    return [target for target in targets if isinstance(target, Span)]


def shared_targets(testset: TestSet) -> Iterator[Complaint]:
    """Queries that share more than half of their expected entities or spans with an earlier one."""
    holders: dict[str, list[str]] = defaultdict(list)
    for query_id in testset.query_ids:
        targets = testset.targets.get(query_id, ())
        labels = dict.fromkeys(plain_label(target) for target in targets if KINDS[type(target)] in {"entity", "span"})
        shared: dict[str, int] = defaultdict(int)
        for label in labels:
            for earlier in holders[label]:
                shared[earlier] += 1
            holders[label].append(query_id)
        for earlier, n in shared.items():
            if 2 * n > len(labels):
                are = "is one" if n == 1 else "are those"
                yield query_id, f"{n} of its {count_noun(len(labels), 'expected places')} {are} of query {earlier}"


def only_legacy(testset: TestSet) -> Iterator[Complaint]:
    """Queries whose legacy form is all that is relevant: no modern form can stand above it."""
    for query_id, legacy in testset.legacy.items():
        relevant = [doc_id for doc_id, grade in testset.grades.get(query_id, {}).items() if grade > 0]
        if relevant and all(_is_legacy(doc_id, legacy) for doc_id in relevant):
            yield query_id, "all its relevant documents are of the legacy form"
        patterns = [target for target in testset.targets.get(query_id, ()) if isinstance(target, Pattern)]
        if patterns and all(pattern.regex in legacy.patterns for pattern in patterns):
            yield query_id, "all its relevant documents are of the legacy form"


def _is_legacy(doc_id: str, legacy: Legacy) -> bool:
    return doc_id in legacy.ids or any(any_match(pattern, [doc_id]) for pattern in legacy.patterns)


def idle_sources(testset: TestSet) -> Iterator[Complaint]:
    """Sources that no judged document fits, and documents that fit no source, where documents are judged by id."""
    doc_ids = {doc_id for grades in testset.grades.values() for doc_id in grades}
    if not testset.sources or not doc_ids:
        return
    patterns = {source.name: Expression(source.pattern) for source in testset.sources}
    for name, pattern in patterns.items():
        if not any_match(pattern, doc_ids):
            yield "", f"no judged document is of source {name} ({pattern.text})"
    with search_limit("the patterns of the sources"):
        strange = sorted(doc_id for doc_id in doc_ids if not any(p.found_in(doc_id) for p in patterns.values()))
    if strange:
        are = "is" if len(strange) == 1 else "are"
        yield "", f"{count_noun(len(strange), 'judged documents')} {are} not of any source (first: {strange[0]})"


def idle_patterns(testset: TestSet, runs: Mapping[str, Answers]) -> Iterator[Complaint]:
    """Patterns that match no result of any query in any run, and those that match every one."""
    ids = list(dict.fromkeys(hit.id for answers in runs.values() for hits in answers.values() for hit in hits))
    if not runs:
        return
    known: dict[str, str] = {}
    for query_id, targets in testset.targets.items():
        own = [hit.id for answers in runs.values() for hit in answers.get(query_id, ())]
        for pattern in targets:
            if isinstance(pattern, Pattern):
                if pattern.regex not in known:
                    known[pattern.regex] = _reach(Expression(pattern.regex), own, ids)
                if known[pattern.regex]:
                    yield query_id, f"pattern {pattern.regex} matches {known[pattern.regex]}"


def _reach(pattern: Expression, own: Sequence[str], ids: Sequence[str]) -> str:
    """`no result of the runs`, `every …`, or nothing to say. The query's own results are tried first: most end there."""
    with search_limit(f"regular expression {pattern.text}"):
        own_hit = any(map(pattern.found_in, own))
        own_miss = not all(map(pattern.found_in, own))
        if own_hit and own_miss:
            return ""
        if not own_hit and not any(map(pattern.found_in, ids)):
            return f"no result of the runs, for any query ({len(ids)} tried)"
        if len(ids) >= MIN_RESULTS and not own_miss and all(map(pattern.found_in, ids)):
            return f"every result of the runs, for every query ({len(ids)} tried)"
    return ""


def unseen(testset: TestSet, runs: Mapping[str, Answers]) -> Iterator[Complaint]:
    """Relevant ids, entities and files that no result of any query is: perhaps of another corpus, or another spelling."""
    if not runs:
        return
    hits = [hit for answers in runs.values() for hits in answers.values() for hit in hits]
    rules = testset.matching
    doc_ids = {hit.id for hit in hits}
    yield from _missing(
        "relevant documents",
        {doc_id for grades in testset.grades.values() for doc_id, grade in grades.items() if grade > 0},
        doc_ids,
    )
    targets = [target for targets in testset.targets.values() for target in targets]
    if not any(True for _ in paths_of(targets)):
        return
    places = [place_of(hit, rules) for hit in hits]
    entities = {entity_of(target.id, rules) for target in targets if isinstance(target, Entity)}
    yield from _missing("expected entities", entities, {place.entity for place in places})
    files = {path_of(path, rules) for path in paths_of(targets)}
    yield from _missing("files with expected places", files, {place.path for place in places})


def _missing(what: str, expected: set[str], met: set[str]) -> Iterator[Complaint]:
    missing = sorted(expected - met)
    if missing:
        share = f"{len(missing)} of {len(expected)}"
        yield "", f"{share} {what} are not in the results of any query of the runs: {', '.join(missing[:NAMED])}"

"""Checks that need what systems answered: expectations that nothing, or everything, meets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cranfield.matching.place import entity_of, path_of, place_of
from cranfield.model import Entity, Hit, Pattern, TestSet
from cranfield.testsets.check_judgments import Complaint
from cranfield.testsets.expected import paths_of

Answers = Mapping[str, Sequence[Hit]]
"""Query id to results, for all the queries of one run."""
FEWEST_RESULTS = 2
"""Of one result, everything says nothing."""
NAMED = 3


def idle_patterns(testset: TestSet, runs: Mapping[str, Answers]) -> Iterator[Complaint]:
    """Patterns that match no result of any query in any run, and those that match every one."""
    ids = _ids(runs)
    if not runs:
        return
    known: dict[str, str] = {}
    for query_id, targets in testset.targets.items():
        own = [hit.id for answers in runs.values() for hit in answers.get(query_id, ())]
        for pattern in targets:
            if isinstance(pattern, Pattern):
                if pattern.regex not in known:
                    known[pattern.regex] = _reach(re.compile(pattern.regex), own, ids)
                if known[pattern.regex]:
                    yield query_id, f"pattern {pattern.regex} matches {known[pattern.regex]}"


def _reach(pattern: re.Pattern[str], own: Sequence[str], ids: Sequence[str]) -> str:
    """`no result of the runs`, `every …`, or nothing to say. The query's own results are tried first: most end there."""
    own_hit = any(map(pattern.search, own))
    own_miss = not all(map(pattern.search, own))
    if own_hit and own_miss:
        return ""
    if not own_hit and not any(map(pattern.search, ids)):
        return f"no result of the runs, for any query ({len(ids)} tried)"
    if len(ids) >= FEWEST_RESULTS and not own_miss and all(map(pattern.search, ids)):
        return f"every result of the runs, for every query ({len(ids)} tried)"
    return ""


def _ids(runs: Mapping[str, Answers]) -> list[str]:
    return list(dict.fromkeys(hit.id for answers in runs.values() for hits in answers.values() for hit in hits))


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
    yield from _missing("files that something is expected in", files, {place.path for place in places})


def _missing(what: str, expected: set[str], met: set[str]) -> Iterator[Complaint]:
    missing = sorted(expected - met)
    if missing:
        share = f"{len(missing)} of {len(expected)}"
        yield "", f"{share} {what} are no result of the runs, for any query: {', '.join(missing[:NAMED])}"

"""The starter test set: the queries that are known, and the results that systems gave, which a person grades next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cranfield.model import Query, TestSet
from cranfield.project.init.values import FoundSystem

POOLED = 5
"""Results of each system that the starter lists for a query, with the grade of what is not judged."""
NOT_JUDGED = -1.0
PLACEHOLDER = "id-of-a-document"
"""Stands where no system was asked yet."""
HEAD = """\
# A starter: queries with results that are not judged yet (grade -1).
# Change each -1 to a grade: 0 not relevant, 1 relevant, 2 highly relevant; or judge in the browser.
# `patterns: [{regex: "^docs"}]` in place of `judgments` expects what matches; `negative: true` expects nothing.
"""
PATTERN_HEAD = """\
# The queries of a table; the right answers of a query are its judgments, or what matches its pattern.
"""


def starter_testset(queries: Sequence[Query], systems: Sequence[FoundSystem], base: TestSet | None = None) -> TestSet:
    """The queries as a test set, with the first results of each system as documents to judge.

    Args:
        queries: each with its text.
        systems: what they answered when they were tried.
        base: the table that the queries are from; its patterns and right answers are kept.
    """
    testset = base or TestSet("starter", tuple(queries))
    grades: dict[str, Mapping[str, float]] = {
        query.id: dict.fromkeys(_pooled(query, systems) or (PLACEHOLDER,), NOT_JUDGED)
        for query in queries
        if not testset.targets.get(query.id) and not testset.grades.get(query.id)
    }
    kept = {query.id for query in queries}
    grades |= {query_id: judged for query_id, judged in testset.grades.items() if query_id in kept}
    targets = {query_id: expected for query_id, expected in testset.targets.items() if query_id in kept}
    return replace(testset, name="starter", queries=tuple(queries), grades=grades, targets=targets, version="0")


def head_of(testset: TestSet) -> str:
    """The comment above the file."""
    is_pool = any(grade == NOT_JUDGED for judged in testset.grades.values() for grade in judged.values())
    return HEAD if is_pool else PATTERN_HEAD


def _pooled(query: Query, systems: Sequence[FoundSystem]) -> Mapping[str, None]:
    found = (system.ids.get(query.text) or system.ids.get(query.id) or () for system in systems)
    return {doc_id: None for ids in found for doc_id in list(ids)[:POOLED] if doc_id.strip()}

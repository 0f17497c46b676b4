"""Predicates are asked: each becomes the ids that the user's own database gives for it.

A predicate is text from a file: `read_only` says what it may do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from cranfield.base.errors import Problem, ProblemList, TestSetError, unknown_name
from cranfield.base.words import count_noun, join_first, noun
from cranfield.model import Predicate, Target, TestSet
from cranfield.model.note import info

DEFAULT_TIMEOUT_S = 10.0
DEFAULT_MAX_ROWS = 1_000_000
SHOWN_QUERIES = 3


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of a database, once however many queries of the test set ask it."""

    database: str
    sql: str
    queries: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{_named(self.queries)}, database {self.database!r}"


def ask(
    testset: TestSet,
    folder: Path,
    *,
    places: Mapping[str, str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    max_rows: int = DEFAULT_MAX_ROWS,
) -> TestSet:
    """Fill in what each predicate of a test set stands for: the first column, as text, distinct and sorted.

    Args:
        testset: with or without predicates.
        folder: what a database's path is relative to, the test set's own as a rule.
        places: name to place of databases that are elsewhere than the test set says.
        timeout_s: seconds that a database has for one predicate.
        max_rows: rows that one predicate may give.

    Raises:
        TestSetError: with everything that went wrong: a database that cannot be opened, a statement that it refused or
            did not end in time, rows without an id, a query for which nothing at all is expected.
        MissingExtraError: the driver of a database is not installed.
    """
    questions = _questions(testset)
    known = {**testset.databases, **(places or {})}
    problems = ProblemList(TestSetError)
    names = list(dict.fromkeys(question.database for question in questions))
    for name in places or ():
        if name not in names:
            problems.problems.append(unknown_name("database", name, names))
    answers: dict[tuple[str, str], tuple[str, ...]] = {}
    for name in names:
        of_it = [question for question in questions if question.database == name]
        if name not in known:
            problem = unknown_name("database", name, known)
            problems.problems.append(replace(problem, message=f"{_named(of_it[0].queries)}: {problem.message}"))
            continue
        found, wrong = _query_database(name, known[name], of_it, folder, (timeout_s, max_rows))
        answers |= found
        problems.problems += wrong
    targets = {
        query_id: tuple(_answered(target, answers) for target in wanted) for query_id, wanted in testset.targets.items()
    }
    if not problems.problems:
        problems.problems += _without_truth(targets)
    problems.raise_if_any()
    if not questions:
        return testset
    notes = [_note(name, [question for question in questions if question.database == name], answers) for name in names]
    return replace(testset, targets=targets, notes=(*testset.notes, *info(*notes, *_silent(questions, answers))))


def _questions(testset: TestSet) -> list[_Question]:
    queries_by_statement: dict[tuple[str, str], list[str]] = {}
    for query_id, targets in testset.targets.items():
        for target in targets:
            if isinstance(target, Predicate):
                queries_by_statement.setdefault((target.database, target.sql), []).append(query_id)
    return [
        _Question(database, sql, tuple(dict.fromkeys(ids))) for (database, sql), ids in queries_by_statement.items()
    ]


def _query_database(
    name: str, place: str, questions: Sequence[_Question], folder: Path, bounds: tuple[float, int]
) -> tuple[dict[tuple[str, str], tuple[str, ...]], list[Problem]]:
    """The ids of each question to one database, and what went wrong."""
    from cranfield.systems.predicates.read_only import Refused, opened

    answers, problems = {}, []
    try:
        with opened(place, folder, *bounds) as ids_of:
            for question in questions:
                try:
                    answers[name, question.sql] = ids_of(question.sql)
                except Refused as refused:
                    problems.append(Problem(f"{question.where}: {refused}", hint=refused.hint))
    except Refused as refused:
        query_ids = tuple(dict.fromkeys(query_id for question in questions for query_id in question.queries))
        message = f"database {name!r}, queried by {_named(query_ids)}: {refused}"
        problems.append(Problem(message, hint=refused.hint, expected=refused.expected))
    return answers, problems


def _answered(target: Target, answers: Mapping[tuple[str, str], tuple[str, ...]]) -> Target:
    if not isinstance(target, Predicate):
        return target
    return replace(target, ids=answers.get((target.database, target.sql)))


def _without_truth(targets: Mapping[str, Sequence[Target]]) -> Iterator[Problem]:
    """Queries whose predicates give nothing, and nothing else is expected for."""
    for query_id, wanted in targets.items():
        if wanted and all(isinstance(target, Predicate) and not target.ids for target in wanted):
            yield Problem(
                f"query {query_id!r}: the database returns no document, so no document would be relevant",
                hint="check the predicate, or declare the query negative",
            )


def _silent(questions: Sequence[_Question], answers: Mapping[tuple[str, str], tuple[str, ...]]) -> Iterator[str]:
    for question in questions:
        if not answers[question.database, question.sql]:
            yield f"A predicate of {_named(question.queries)} returns no document; the query has other predicates too."


def _note(name: str, questions: Sequence[_Question], answers: Mapping[tuple[str, str], tuple[str, ...]]) -> str:
    """Number of documents from a database, and a digest of its answers."""
    hasher = sha256(b"cranfield answers 1\n")
    documents: set[str] = set()
    for question in sorted(questions, key=lambda question: question.sql):
        ids = answers[name, question.sql]
        documents.update(ids)
        hasher.update(json.dumps([question.sql, ids]).encode())
    n, d = len(questions), len(documents)
    return (
        f"Database {name!r} answered {count_noun(n, 'predicates')} with {count_noun(d, 'documents')} "
        f"(answers sha256:{hasher.hexdigest()[:16]})."
    )


def _named(query_ids: Sequence[str]) -> str:
    return f"{noun(len(query_ids), 'queries')} {join_first(map(repr, query_ids), SHOWN_QUERIES)}"

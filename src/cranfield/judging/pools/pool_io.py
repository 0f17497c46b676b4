"""Pool files: one JSON document each."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cranfield.base.errors import Problem, ProblemList, TestSetError, UsageError
from cranfield.base.words import count_noun, join_first
from cranfield.books.pool_file import Pool
from cranfield.formats.io.files import STDIN, read_bytes, shown, write_text
from cranfield.formats.io.validation import load_model
from cranfield.model import Query, TestSet

WHAT = "a pool: a JSON file written by `cranfield pool`"


def write_pool(pool: Pool, path: Path | str) -> None:
    """Write a pool, a line for each query and document; a reader sees the old file or the new one, never a part.

    Raises:
        UsageError: the file cannot be written.
    """
    about = pool.model_dump(mode="json", exclude={"queries", "items"})
    lines = ["{\n", *(f"{json.dumps(key)}: {_text(value)},\n" for key, value in about.items())]
    for key, rows, end in (("queries", pool.queries, "],\n"), ("items", pool.items, "]\n}\n")):
        texts = [_text(row.model_dump(mode="json", exclude_defaults=True)) for row in rows]
        lines += [f'"{key}": [\n', ",\n".join(texts), "\n", end]
    try:
        write_text(Path(path), lines)
    except OSError as error:
        raise UsageError(f"the pool cannot be written: {error.strerror or error}", path=str(path)) from error


def made_over(pool: Pool, testset: Path | None, queries: Path | None = None) -> Pool:
    """The pool with the file of its test set, and that of the texts of its queries: a book of it is frozen onto that set."""
    if testset is None or STDIN in {str(testset), str(queries)}:
        return pool
    files = {"testset_file": testset.as_posix(), "queries_file": "" if queries is None else queries.as_posix()}
    return pool.model_copy(update=files)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_pool(path: Path | str) -> Pool:
    """Read a pool.

    Raises:
        TestSetError: the file is missing or is no pool, with each problem at its line; or it names a document twice, or a
            query or run that it does not have.
    """
    path = Path(path)
    data = read_bytes(path, TestSetError)
    if b'"cranfield_pool"' not in data:
        raise TestSetError("not a pool", path=shown(path), expected=WHAT)
    try:
        pool = Pool.model_validate_json(data)
    except ValidationError:
        pool = load_model(path, Pool, TestSetError)
    problems = ProblemList(TestSetError)
    problems.problems += _contradictions(pool, shown(path))
    problems.raise_if_any()
    return pool


def require_texts(pool: Pool) -> None:
    """Refuse a pool that cannot be judged.

    Raises:
        UsageError: queries without a text.
    """
    without = [query.id for query in pool.queries if not query.text.strip()]
    if without:
        raise UsageError(
            (
                f"{count_noun(len(without), 'queries')} of the pool without a text, which raters cannot judge: "
                f"{join_first(without)}"
            ),
            hint=(
                "add texts when you create the pool: `cranfield pool RUN... --queries FILE` reads them by query "
                "id, --testset from the test set"
            ),
        )


def _contradictions(pool: Pool, path: str) -> list[Problem]:
    queries, runs = {query.id for query in pool.queries}, {run.name for run in pool.runs}
    found: list[Problem] = []
    seen: set[tuple[str, str]] = set()
    for number, item in enumerate(pool.items):
        where = f"items[{number}] (query {item.query!r}, document {item.doc!r})"
        if item.query not in queries:
            found.append(Problem(f"{where}: the query is not one of the queries of the pool", path=path))
        if (item.query, item.doc) in seen:
            found.append(Problem(f"{where} stands twice", path=path, expected="each document of a query once"))
        seen.add((item.query, item.doc))
        unknown = sorted(item.runs.keys() - runs)
        if unknown:
            found.append(Problem(f"{where}: run {unknown[0]!r} is not in the pool", path=path))
    counts = Counter(query.id for query in pool.queries)
    found += [
        Problem(f"query {query_id!r} occurs {n} times", path=path, expected="each query once")
        for query_id, n in counts.items()
        if n > 1
    ]
    return found


POOLED = -1.0
"""Grade of a document that is in the pool and not judged."""


@dataclass(frozen=True)
class PoolQrels:
    """Judgments of a pool and of its test set."""

    testset: TestSet
    n_judged: int
    n_pooled: int
    """In the pool, not judged."""
    notes: tuple[str, ...]


def pool_qrels(pool: Pool, judged: TestSet | None) -> PoolQrels:
    """The judgments of a test set, and a grade under 0 for what is in the pool and not judged.

    Args:
        pool: the pool. Its own grades (carried over, or of a rule) count where the test set has none.
        judged: the test set; None where the pool was made without one.

    Raises:
        UsageError: the pool was made for a test set, which holds judgments that are not in the pool, and it is not given.
        TestSetError: the truth of the test set is a rule for queries of the pool: qrels hold none.
    """
    if judged is None and pool.testset:
        raise UsageError(
            f"the pool was created for the test set {pool.testset!r}, and does not contain all of its judgments",
            hint="name it: {testset=FILE}",
            parameters=("testset",),
        )
    if judged is not None and judged.targets:
        raise TestSetError(
            (
                f"the truth of {len(judged.targets)} queries is a rule, which qrels cannot express: "
                f"{join_first(judged.targets)}"
            ),
            expected="a test set judged by document id",
        )
    queries = {query.id: query for query in (Query(each.id, each.text) for each in pool.queries)}
    grades: dict[str, dict[str, float]] = {query_id: {} for query_id in queries}
    for item in pool.items:
        own = item.judged if item.judged is not None else item.prefilled
        grades[item.query][item.doc] = POOLED if own is None else own
    notes = []
    if judged is not None:
        queries |= {query.id: query for query in judged.queries}
        for query_id, of_query in judged.grades.items():
            into = grades.setdefault(query_id, {})
            for doc_id, grade in of_query.items():
                into[doc_id] = max(into.get(doc_id, POOLED), POOLED) if grade < 0 else grade
        if pool.testset_digest and pool.testset_digest != judged.digest:
            notes.append(
                f"the pool was created for {pool.testset!r} with other texts or judgments (the digests differ)"
            )
    values = [grade for of_query in grades.values() for grade in of_query.values()]
    kept = {query_id: of_query for query_id, of_query in grades.items() if of_query}
    testset = TestSet(pool.name, tuple(queries[query_id] for query_id in kept), kept)
    n_pooled = sum(value < 0 for value in values)
    return PoolQrels(testset, len(values) - n_pooled, n_pooled, tuple(notes))

"""Lists of queries without ids: plain text with one query a line, and query logs, which say how often a query was asked.

Captured production queries come so. A query that stands several times is one query, whose weight is how often it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.base.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.io.files import opened, shown, stem
from cranfield.model import Query, TestSet
from cranfield.model.note import info

HEADINGS = {"query", "text", "query_text", "keyword"}


@dataclass(frozen=True)
class QueryLog:
    """The queries of a log, each once."""

    counts: dict[str, float]
    """Query as it is most often written, to how often it was asked; most first, then in the order of the log."""
    n_lines: int
    """Lines that held a query, before equal ones were added up."""
    notes: tuple[str, ...] = ()
    """What its reader took for granted, sentences for people."""


def read_queries_log(path: Path | str) -> TestSet:
    """Read a query log as a test set without judgments: the id of a query is its text, its weight how often it was asked.

    Raises:
        TestSetError: as `read_query_log`.
    """
    log = read_query_log(path)
    queries = tuple(Query(text, text, weight=count) for text, count in log.counts.items())
    return TestSet(stem(Path(path)), queries=queries, notes=info(*log.notes))


def read_query_log(path: Path | str, same: Callable[[str], str] = str) -> QueryLog:
    """Read lines `query`, `query TAB count`, or JSON objects with `query` and maybe `count`.

    A header row is skipped, with a note.

    Args:
        path: the file; gzip and Zstandard are recognised.
        same: the form of a query by which queries are counted as one; blanks never count.

    Raises:
        TestSetError: with every line that is neither; a log without a query.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    spellings: dict[str, dict[str, float]] = {}
    n_lines = 0
    notes = []
    for number, line in _log_lines(path):
        if number == 1 and line.split("\t")[0].strip().lower() in HEADINGS:
            notes.append(f"the first line of the log is read as a header: {line}")
            continue
        entry = _log_entry(line, number, shown(path), problems)
        if entry is not None:
            n_lines += 1
            text, count = entry
            counts = spellings.setdefault(same(text), {})
            counts[text] = counts.get(text, 0.0) + count
    problems.raise_if_any()
    if not spellings:
        raise TestSetError("the log contains no query", path=shown(path), expected="lines `query` or `query TAB count`")
    totals = {max(counts, key=lambda text: counts[text]): sum(counts.values()) for counts in spellings.values()}
    return QueryLog(dict(sorted(totals.items(), key=lambda item: -item[1])), n_lines, tuple(notes))


def _log_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that say something."""
    with opened(path, TestSetError) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise TestSetError("the line is not UTF-8", path=shown(path), line=number) from None
            if line.strip():
                yield number, line


def _log_entry(line: str, number: int, path: str, problems: ProblemList) -> tuple[str, float] | None:
    text, count = _json_entry(line) if line.lstrip().startswith("{") else _tabbed_entry(line)
    if not isinstance(text, str) or not text.strip():
        problems.add(
            "no query", path=path, line=number, expected='`query TAB count`, or {"query": …}', got=shorten(line)
        )
        return None
    try:
        times = float(count)
    except (TypeError, ValueError):
        times = -1.0
    if isinstance(count, bool) or not 0 < times < float("inf"):
        problems.problems.append(
            Problem(
                "the count is not a number", path=path, line=number, expected="a number above 0", got=shorten(count)
            )
        )
        return None
    return " ".join(text.split()), times


def _tabbed_entry(line: str) -> tuple[Any, Any]:
    text, tab, count = line.partition("\t")
    return text, count.strip() if tab else 1


def _json_entry(line: str) -> tuple[Any, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, 1
    return record.get("query"), record.get("count", 1)

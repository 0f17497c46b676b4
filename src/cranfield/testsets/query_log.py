"""A log of what users asked: one query a line, with how often where the log says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.io.files import opened, shown
from cranfield.testsets.similar import same_form

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


def read_query_log(path: Path | str) -> QueryLog:
    """Read lines `query`, `query TAB count`, or JSON objects with `query` and maybe `count`.

    A first line of headings is passed over, and said. Queries that differ in case and blanks alone are one.

    Raises:
        TestSetError: with every line that is neither; a log without a query.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    spellings: dict[str, dict[str, float]] = {}
    n_lines = 0
    notes = []
    for number, line in _lines(path):
        if number == 1 and line.split("\t")[0].strip().lower() in HEADINGS:
            notes.append(f"the first line of the log is taken for headings: {line}")
            continue
        entry = _entry(line, number, shown(path), problems)
        if entry is not None:
            n_lines += 1
            text, count = entry
            counts = spellings.setdefault(same_form(text), {})
            counts[text] = counts.get(text, 0.0) + count
    problems.raise_if_any()
    if not spellings:
        raise TestSetError("the log holds no query", path=shown(path), expected="lines `query` or `query TAB count`")
    totals = {max(counts, key=lambda text: counts[text]): sum(counts.values()) for counts in spellings.values()}
    return QueryLog(dict(sorted(totals.items(), key=lambda item: -item[1])), n_lines, tuple(notes))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that say something."""
    with opened(path, TestSetError) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise TestSetError("the line is not UTF-8", path=shown(path), line=number) from None
            if line.strip():
                yield number, line


def _entry(line: str, number: int, path: str, problems: ProblemList) -> tuple[str, float] | None:
    text, count = _json_entry(line) if line.lstrip().startswith("{") else _columns(line)
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
            Problem("the count is no number", path=path, line=number, expected="a number above 0", got=shorten(count))
        )
        return None
    return " ".join(text.split()), times


def _columns(line: str) -> tuple[Any, Any]:
    text, tab, count = line.partition("\t")
    return text, count.strip() if tab else 1


def _json_entry(line: str) -> tuple[Any, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, 1
    return record.get("query"), record.get("count", 1)

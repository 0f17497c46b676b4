"""Reading production queries from logs: a query, its count and its day of each record, or why it has none."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path, PurePath
from urllib.parse import parse_qs, urlsplit

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.patterns import time_limit
from cranfield.formats.io.files import opened
from cranfield.workbench.config import LogFormat
from cranfield.workbench.service.intake.redaction import SEARCH_S

LONGEST_LINE = 65_536
LONGEST_SPANS = 1 << 26
"""Bytes of a line of spans: a batch of them, with documents."""
MAX_TIMES = 1_000_000_000
TEXT_KEYS = ("query", "text", "query_text", "keyword", "q")
COUNT_KEYS = ("count", "n")
DAY_KEYS = ("day", "date", "time", "timestamp")
SUFFIXES = {".csv": "csv", ".tsv": "tsv"}


class DropReason(StrEnum):
    """Why a record is dropped."""

    BLANK = "blank"
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"
    """Not of the format: no UTF-8, no query, a count or day that is none, a day to come."""
    NO_QUERY = "no_query"
    """A line of the log without a query: another page."""
    TOO_OLD = "too_old"
    """It would not be kept."""
    ONLY_REDACTED = "only_redacted"
    """Nothing is left of it."""
    PATTERN_TIMEOUT = "pattern_timeout"
    """A pattern of the operator's file found no end."""


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A query of a log."""

    text: str
    n: int = 1
    day: date | None = None
    """None: the log does not say."""


Reader = Callable[[Iterator[str]], Iterator[LoggedQuery | DropReason]]
"""From lines, to what each record is; a reader takes as many lines as a record has."""


class LogError(UsageError):
    """A log that cannot be read; no part of it is in the message."""


class _LateError(Exception):
    """A pattern found no end."""


def format_of_name(name: str, logs: Mapping[str, LogFormat], path: str) -> str:
    """The name of a format: as given, else `traces` where the file holds spans, by the suffix of the file, else `lines`.

    Raises:
        UnknownNameError: there is none.
    """
    known = [*READERS, "combined", *logs]
    if name and name not in known:
        raise UnknownNameError.among("format of a log", name, known)
    if not name and _is_of_spans(Path(path)):
        return TRACES
    return name or SUFFIXES.get(PurePath(path.removesuffix(".gz")).suffix.lower(), "lines")


def _is_of_spans(path: Path) -> bool:
    """Whether a file has lines of spans."""
    from cranfield.formats.registry import HEAD_BYTES, Head
    from cranfield.formats.traces.recognised import is_traces

    if not path.is_file():
        return False
    with opened(path, LogError) as stream:
        data = stream.read(HEAD_BYTES)
    return data.lstrip()[:1] == b"{" and is_traces(Head(data, path))


def reader_of(name: str, logs: Mapping[str, LogFormat]) -> Reader:
    """The reader of a format."""
    if name in READERS:
        return READERS[name]
    chosen = logs.get(name, LogFormat())
    pattern = re.compile(chosen.pattern)
    return lambda lines: (_of_log(line.rstrip("\n"), pattern, chosen) for line in lines)


def _of_log(line: str, pattern: re.Pattern[str], log: LogFormat) -> LoggedQuery | DropReason:
    try:
        with time_limit(SEARCH_S, _LateError):
            match = pattern.search(line)
    except _LateError:
        return DropReason.PATTERN_TIMEOUT
    if match is None:
        return DropReason.UNREADABLE if line.strip() else DropReason.BLANK
    text = _query_of(match.groupdict(), log.parameter)
    moment = match.groupdict().get("time")
    if isinstance(text, DropReason):
        return text
    if not moment:
        return LoggedQuery(text)
    try:
        return LoggedQuery(text, day=_utc_day(datetime.strptime(moment, log.time)))  # noqa: DTZ007  without a zone it is UTC
    except ValueError:
        return DropReason.UNREADABLE


def _query_of(groups: Mapping[str, str | None], parameter: str) -> str | DropReason:
    text = groups.get("query")
    if text is None:
        try:
            parameters = parse_qs(urlsplit(groups.get("url") or "").query, keep_blank_values=True)
        except ValueError:
            return DropReason.UNREADABLE
        text = parameters.get(parameter, [None])[0]
    return DropReason.NO_QUERY if text is None else text


def _utc_day(moment: datetime) -> date:
    try:
        return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()
    except OverflowError:
        return moment.date()


def _lines(lines: Iterator[str]) -> Iterator[LoggedQuery | DropReason]:
    for line in lines:
        if line.lstrip().startswith("{"):
            yield _of_json(line)
        else:
            text, tab, count = line.partition("\t")
            yield _logged(text, count if tab else None)


def _of_json(line: str) -> LoggedQuery | DropReason:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return DropReason.UNREADABLE
    return _of_record(record)


def _table(delimiter: str) -> Reader:
    def read(lines: Iterator[str]) -> Iterator[LoggedQuery | DropReason]:
        rows = csv.reader(lines, delimiter=delimiter)
        names = [cell.strip().lower() for cell in next(rows, [])]
        if not set(TEXT_KEYS) & set(names):
            # The cells of a file without headings are queries: no message may hold them.
            raise LogError("the table has no column of queries", line=1, expected=" or ".join(TEXT_KEYS))
        yield from (_of_cells(names, row) for row in rows)

    return read


def _of_cells(names: Sequence[str], row: Sequence[str]) -> LoggedQuery | DropReason:
    if not any(cell.strip() for cell in row):
        return DropReason.BLANK
    return _of_record({name: cell for name, cell in zip(names, row, strict=False) if cell.strip()})


def _of_record(record: Mapping[str, object]) -> LoggedQuery | DropReason:
    def first(keys: Sequence[str]) -> object:
        return next((record[key] for key in keys if record.get(key) is not None), None)

    return _logged(first(TEXT_KEYS), first(COUNT_KEYS), first(DAY_KEYS))


def _logged(text: object, count: object = None, day: object = None) -> LoggedQuery | DropReason:
    """A query of values as they were read; a count that is missing is 1."""
    try:
        n = 1 if count is None else int(count) if isinstance(count, str) else count
        when = None if day is None else _utc_day(datetime.fromisoformat(str(day)))
    except ValueError:
        return DropReason.UNREADABLE
    if not isinstance(text, str) or not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MAX_TIMES:
        return DropReason.UNREADABLE
    return LoggedQuery(text, n, when)


def _spans(lines: Iterator[str]) -> Iterator[LoggedQuery | DropReason]:
    """The queries of retrievers in lines of spans; each counts once for a trace."""
    seen: set[bytes] = set()
    for line in lines:
        found = list(_queries_of_spans(line, seen)) if line.strip() else [DropReason.BLANK]
        yield from found or [DropReason.NO_QUERY]


def _queries_of_spans(line: str, seen: set[bytes]) -> Iterator[LoggedQuery | DropReason]:
    from cranfield.formats.traces.spans import spans_of
    from cranfield.formats.traces.steps import as_it_is, steps_of

    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    spans = spans_of(record) if isinstance(record, dict) else None
    if spans is None:
        yield DropReason.UNREADABLE
    for span in spans or ():
        for step in steps_of(span, redact=as_it_is):
            digest = trace_digest(span.trace_id, step.query)
            if step.kind != "retriever" or digest in seen:
                continue
            seen.add(digest)
            yield LoggedQuery(step.query, day=day_of_ns(step.start_ns)) if step.query else DropReason.NO_QUERY


def trace_digest(trace_id: str, of: str) -> bytes:
    """What tells a span or a query of a trace from others, and holds no text."""
    return sha256(f"{trace_id}\n{of}".encode("utf-8", "surrogatepass")).digest()[:16]


def day_of_ns(start_ns: int) -> date | None:
    """The day (UTC) of a time in nanoseconds since 1970; None where it is not known."""
    try:
        return datetime.fromtimestamp(start_ns / 10**9, UTC).date() if start_ns > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


TRACES = "traces"
READERS: dict[str, Reader] = {"lines": _lines, "csv": _table(","), "tsv": _table("\t"), TRACES: _spans}
"""Formats that need no pattern."""

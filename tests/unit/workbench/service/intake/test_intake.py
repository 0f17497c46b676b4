"""Production queries from a log to the database: counted once, dropped with a reason, redacted before they are stored."""

import gzip
import json
import logging
import re
from datetime import date
from pathlib import Path

import pytest

from cranfield.workbench.config import Intake, LogFormat
from cranfield.workbench.service.intake import intake
from cranfield.workbench.service.intake.intake import purge
from cranfield.workbench.service.intake.reading import (
    LONGEST_SPANS,
    DropReason,
    LogError,
    LoggedQuery,
    format_of_name,
    reader_of,
)
from cranfield.workbench.service.store.queries import KnownBatch

LINES = reader_of("lines", {})
ACCESS = """\
10.0.0.1 - - [23/Nov/2026:10:00:00 +0000] "GET /search?q=dose+of%20aspirin&page=2 HTTP/1.1" 200 5 "-" "x"
10.0.0.1 - - [23/Nov/2026:00:30:00 +0100] "GET /search?q=insulin HTTP/1.1" 200 5
10.0.0.1 - - [23/Nov/2026:10:00:01 +0000] "GET /favicon.ico HTTP/1.1" 404 5
10.0.0.1 - - [tomorrow] "GET /search?q=insulin HTTP/1.1" 200 5
10.0.0.1 - - [23/Nov/2026:10:00:01 +0000] "GET /search?q= HTTP/1.1" 200 5
not a line of a log
"""


@pytest.fixture
def log(tmp_path):
    def written(text, name="queries.log"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def stored(queries):
    return {found.text: found.n for found in queries.top(limit=None)}


def test_lines_with_counts(taking, queries, log):
    counts = taking().file(log("aspirin\ninsulin\t3\naspirin\n\ninsulin\tmany\n"), LINES)
    assert (counts.n_read, counts.n_kept, counts.n_queries) == (5, 3, 5)
    assert counts.dropped == {DropReason.BLANK: 1, DropReason.UNREADABLE: 1}
    assert stored(queries) == {"insulin": 3, "aspirin": 2}


def test_an_access_log(taking, queries, log):
    counts = taking().file(log(ACCESS), reader_of("combined", {}))
    assert counts.dropped == {
        DropReason.NO_QUERY: 1,
        DropReason.BLANK: 1,
        DropReason.UNREADABLE: 2,
    }
    assert {found.text: found.first_day for found in queries.top()} == {
        "dose of aspirin": "2026-11-23",
        "insulin": "2026-11-22",  # half past midnight in +01:00
    }


def test_a_pattern_of_the_config(taking, queries, log):
    logs = {"app": LogFormat(pattern=r"^(?P<time>\S+) SEARCH (?P<query>.+)$", time="%Y-%m-%d")}
    counts = taking().file(log("2026-11-20 SEARCH aspirin\n2026-11-20 LOGIN x\n"), reader_of("app", logs))
    assert (counts.n_kept, counts.dropped) == (1, {DropReason.UNREADABLE: 1})
    assert queries.top()[0].first_day == "2026-11-20"
    assert format_of_name("", logs, "a.csv.gz") == "csv"
    with pytest.raises(Exception, match="unknown format of a log 'ap'; expected"):
        format_of_name("ap", logs, "x")


def test_a_table_and_lines_of_json(taking, queries, log):
    table = log('Query,count,day\n"one, two",2,2026-11-20\n"two\nlines",1,\n,,\nx,0,\n')
    counts = taking("a").file(table, reader_of("csv", {}))
    assert (counts.n_kept, counts.dropped) == (2, {DropReason.BLANK: 1, DropReason.UNREADABLE: 1})
    lines = [
        {"query": "x", "count": 2},
        {"text": "y", "time": "2026-11-20T23:30:00-02:00"},
        {"q": 5},
        [],
        {"query": "\ud800"},
    ]
    counts = taking("b").file(log("\n".join(map(json.dumps, lines)) + "\n{\n"), LINES)
    assert counts.dropped == {DropReason.UNREADABLE: 3, DropReason.ONLY_REDACTED: 1}
    assert stored(queries) == {"one, two": 2, "two lines": 1, "x": 2, "y": 1}
    assert {found.source: found.n for found in queries.counts()} == {"a": 3, "b": 3}


def test_every_record_is_kept_or_dropped(taking, log):
    parts = [b"good\n", b"\xff\n", b"x" * 501 + b"\n", b"y" * 70_000 + b"\n", b"a@b.de\n", b"\n", b"tab\tx\n"]
    counts = taking().file(log(b"".join(parts)), LINES)
    assert counts.n_read == len(parts) == counts.n_kept + counts.dropped.total()
    assert counts.dropped == {
        DropReason.TOO_LONG: 2,
        DropReason.UNREADABLE: 2,
        DropReason.ONLY_REDACTED: 1,
        DropReason.BLANK: 1,
    }


def test_a_log_without_end_counts_each_line_once(taking, queries, log):
    path = log("aspirin\ninsu")
    counts = taking().file(path, LINES)
    assert (counts.n_kept, counts.unfinished) == (1, True)
    path.write_text("aspirin\ninsulin\nstatins\n")
    counts = taking().file(path, LINES)
    assert (counts.n_known, counts.n_kept, counts.unfinished) == (1, 2, False)
    assert taking().file(path, LINES).n_read == 0
    assert stored(queries) == {"aspirin": 1, "insulin": 1, "statins": 1}


def test_a_log_that_was_rotated_is_the_same_log(taking, queries, log, tmp_path):
    path = log("aspirin\ninsulin\n")
    taking().file(path, LINES)
    rotated = tmp_path / "queries.log.1.gz"
    rotated.write_bytes(gzip.compress(path.read_bytes() + b"statins\n"))
    assert taking().file(rotated, LINES).n_known == 2
    path.write_text("aspirin\n")  # a new log that begins alike, and is shorter
    assert taking().file(path, LINES).n_kept == 1
    assert taking("other").file(rotated, LINES).n_kept == 3  # another source
    assert stored(queries) == {"aspirin": 3, "insulin": 2, "statins": 2}


def test_the_headings_of_a_table_are_read_again_where_it_goes_on(taking, queries, log):
    path = log("count,query\n2,aspirin\n")
    taking().file(path, reader_of("csv", {}))
    path.write_text(path.read_text() + "3,insulin\n")
    taking().file(path, reader_of("csv", {}))
    assert stored(queries) == {"insulin": 3, "aspirin": 2}


def test_two_that_read_a_log_at_once_do_not_count_it_twice(taking, queries, log):
    path = log("aspirin\ninsulin\n")

    def reader(texts):
        with pytest.raises(LogError, match="another intake is reading the file"):
            taking().file(path, LINES)
        return LINES(texts)

    assert taking().file(path, reader).n_kept == 2
    assert taking().file(path, LINES).n_known == 2
    assert stored(queries) == {"aspirin": 1, "insulin": 1}


def test_an_interrupt_keeps_what_was_stored_and_the_next_time_goes_on(taking, queries, log, monkeypatch):
    monkeypatch.setattr(intake, "RECORDS", 2)
    path = log("a1\na2\na3\na4\na5\n")

    def interrupted(texts):
        for place, record in enumerate(LINES(texts)):
            if place == 3:
                raise KeyboardInterrupt
            yield record

    with pytest.raises(KeyboardInterrupt):
        taking().file(path, interrupted)
    assert set(stored(queries)) == {"a1", "a2"}
    counts = taking().file(path, LINES)
    assert (counts.n_known, counts.n_kept) == (2, 3)
    assert set(stored(queries).values()) == {1}
    assert len(queries.batches("shop")) == 1


def test_a_batch_with_a_key_counts_once(taking, queries):
    records = [LoggedQuery("aspirin", 2)]
    assert taking().batch(records, "monday").n_kept == 1
    again = taking().batch(records, "monday")
    assert (again.n_read, again.n_kept, again.n_known) == (0, 0, 1)
    taking().batch(records)
    taking("other").batch(records, "monday")
    assert stored(queries) == {"aspirin": 6}


def test_days_that_are_not_kept(taking, queries):
    days = {date(2026, 8, 24): 0, date(2026, 8, 25): 1, date(2026, 11, 24): 1, date(2026, 11, 25): 0}
    counts = taking().batch([LoggedQuery(f"query of {day}", day=day) for day in days])
    assert counts.dropped == {DropReason.TOO_OLD: 1, DropReason.UNREADABLE: 1}
    assert counts.n_kept == sum(days.values())
    later = 1_795_435_200_000 + 86_400_000  # a day on, 25 August is too old
    assert purge(queries, Intake(), lambda: later) == 1
    assert set(stored(queries)) == {"query of 2026-11-24"}


def test_what_identifies_a_person_reaches_neither_database_nor_log_nor_message(taking, queries, log, store, caplog):
    secret = "jane.roe@example.org 4111111111111111 +49 171 9876543"
    caplog.set_level(logging.DEBUG)
    text = "".join(f"{prefix}{secret}\n" for prefix in ("order ", "x" * 500, "\t", "{", ""))
    path = log(text, "secret.log")
    taking().file(path, LINES)
    taking().file(path, reader_of("combined", {}))
    with pytest.raises(LogError, match="no column of queries") as refused:
        taking("table").file(path, reader_of("csv", {}))
    taking().batch([LoggedQuery(secret), LoggedQuery("\ud800" + secret)], secret)
    found = [f"{row}" for row in queries.top()]
    assert len(found) == 1
    store.close()
    parts = [*found, caplog.text, str(refused.value)]
    if store.database.path is not None:
        files = store.database.path.parent.glob("books.db*")
        parts += [file.read_bytes().decode("latin-1") for file in files]
    for part in parts:
        for word in ("jane", "roe@", "4111", "9876543"):
            assert word not in part


def test_the_most_frequent_queries(queries):
    queries.record("a", {("2026-11-20", "x"): 2, ("2026-11-21", "x"): 3, ("2026-11-21", "y"): 1})
    queries.record("b", {("2026-11-21", "y"): 9})
    assert [(found.text, found.n) for found in queries.top()] == [("y", 10), ("x", 5)]
    assert [(found.text, found.n) for found in queries.top("a", since="2026-11-21")] == [("x", 3), ("y", 1)]
    assert [found.text for found in queries.top("a", at_least=3, limit=None)] == ["x"]
    assert queries.record("a", {("2026-11-20", "x"): 2}, KnownBatch("key:1"))
    assert not queries.record("a", {("2026-11-20", "x"): 2}, KnownBatch("key:1"))
    assert queries.top("a")[0].n == 7


def test_spans_are_a_log_of_queries(taking, queries, log):
    made = Path(__file__).parents[3] / "formats/traces/otel.jsonl"
    text = re.sub(r'("startTimeUnixNano": ")[0-9]+', r"\g<1>1795435200000000000", made.read_text())
    path = log(text * 2 + "{}\n", "otel.jsonl")
    assert format_of_name("", {}, str(path)) == "traces"
    counts = taking().file(path, reader_of("traces", {}), LONGEST_SPANS)
    assert stored(queries) == {
        "rent a bike": 3,
        **dict.fromkeys(("down", "key of <email>", "lost key", "nothing", "node", "rent bike", "rent bike night"), 1),
    }
    assert counts.redacted == {"email": 1}
    assert counts.dropped == {DropReason.NO_QUERY: 6, DropReason.UNREADABLE: 1}
    assert taking().file(path, reader_of("traces", {}), LONGEST_SPANS).n_kept == 0

"""Every problem of qrels, of runs, of telling formats and of writing, in the very words people see."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from cranfield.base.errors import CranfieldError, RunFormatError, TestSetError, UnknownNameError
from cranfield.formats.runs.files import write_trec_run
from cranfield.formats.runs.jsonl import read_run, write_run
from cranfield.formats.sniff import format_names, read_testset, sniff_run
from cranfield.formats.testsets.native import write_testset_yaml
from cranfield.formats.testsets.trec import read_qrels, write_qrels
from cranfield.model import Answer, CallLog, Hit, Outcome, Pattern, Query, Run, TestSet

GOOD = "cranfield_testset: 1\nname: n\nqueries:\n  - {id: q1, text: t, judgments: {d: 1}}\n"
RUN = '{"cranfield_run":1,"name":"r"}\n'
WANTED_TESTSET = (
    "expected a YAML or JSON test set (key `cranfield_testset`), TREC qrels (lines `query iteration document grade`), or "
    "another format that can be detected from the content"
)
WANTED_RUN = (
    'expected a collected run (first line `{"cranfield_run":1,…}`), '
    "a TREC run (lines `query Q0 document rank score tag`), or "
    "another format that can be detected from the content"
)
QRELS_MESSAGES: dict[str, tuple[str | bytes, str]] = {
    "no line": ("# only\n\n", ": no judgment in this file; expected lines `query iteration document grade`."),
    "too few columns": (
        "q1 0 d1 1\nq1 d2 1\n",
        ":2: 3 columns; expected 4: query iteration document grade, got 'q1 d2 1'.",
    ),
    "too many columns": (
        "q1 0 d1 1 x\n",
        ":1: 5 columns; expected 4: query iteration document grade, got 'q1 0 d1 1 x'.",
    ),
    "a word for a grade": (
        "q1 0 d1 high\n",
        ":1: the grade is not a finite number; expected a number in column 4, got 'high'.",
    ),
    "NaN": ("q1 0 d1 nan\n", ":1: the grade is not a finite number; expected a number in column 4, got 'nan'."),
    "infinity": ("q1 0 d1 -inf\n", ":1: the grade is not a finite number; expected a number in column 4, got '-inf'."),
    "underscores": ("q1 0 d1 1_0\n", ":1: the grade is not a finite number; expected a number in column 4, got '1_0'."),
    "judged twice, differently": (
        "q1 0 d1 1\nq2 0 d1 1\n# a comment\nq1 0 d1 2\n",
        (
            ":4: query 'q1', document 'd1' is judged twice; expected 1, as on line 1, got 2.\n"
            "Hint: keep one of the two lines."
        ),
    ),
    "several at once, in the order of lines": (
        "q1 0 d1 1\nq1 0 d1 0\nq1 0\nq1 0 d2 x\n",
        (
            ":2: query 'q1', document 'd1' is judged twice; expected 1, as on line 1, got 0.\n"
            "Hint: keep one of the two lines.\n"
            "{path}:3: 2 columns; expected 4: query iteration document grade, got 'q1 0'.\n"
            "{path}:4: the grade is not a finite number; expected a number in column 4, got 'x'."
        ),
    ),
}

OUTCOMES = "answered, empty, error, missing, nonzero exit, timeout, unparsable"
RUN_MESSAGES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", ': the file is empty; expected a header line {"cranfield_run":1,…}.'),
    "no header": (
        '{"query_id":"q1","outcome":"empty"}\n',
        ':1: not the header of a run; expected "cranfield_run": 1.',
    ),
    "another version": (
        '{"cranfield_run":2}\n',
        ':1: wrong value for cranfield_run; expected "cranfield_run": 1, got 2.',
    ),
    "a header with mistakes": (
        '{"cranfield_run":1,"depth":0,"order":"up","pilot":1,"config":[],"testset_digest":3,"nmae":"r"}\n',
        (
            ":1: unknown key 'nmae'; "
            "expected config, config_digest, cranfield_run, depth, extra_queries, name, order, pilot, says_empty, testset_digest.\n"
            "Hint: did you mean name?\n"
            "{path}:1: missing key 'name'.\n"
            "{path}:1: wrong value for testset_digest; expected a string, got 3.\n"
            "{path}:1: wrong value for depth; expected a whole number of 1 or more, or null, got 0.\n"
            "{path}:1: wrong value for order; expected given or descending or ascending, got 'up'.\n"
            "{path}:1: wrong value for pilot; expected true or false, got 1.\n"
            "{path}:1: wrong value for config; expected an object, got []."
        ),
    ),
    "not JSON": (
        RUN + '{"query_id" "q1"}\n',
        ":2:13: not JSON: expecting ':' delimiter; got '{\"query_id\" \"q1\"}'.",
    ),
    "cut short": (
        RUN + '{"query_id":"q1","outc',
        ':2:18: not JSON: unterminated string starting at; the line is cut short; got \'{"query_id":"q1","outc\'.',
    ),
    "not an object": (RUN + "[1]\n", ":2: not a JSON object; got [1]."),
    "not UTF-8": (RUN.encode() + b'{"query_id":"\xff"}\n', ":2:14: not UTF-8: byte 0xff."),
    "NaN": (
        RUN + '{"query_id":"q1","outcome":"answered","hits":[{"id":"d","score":NaN}]}\n',
        ":2: NaN is not a JSON number; expected a finite number.",
    ),
    "a number of thousands of digits": (
        RUN + '{"query_id":' + "9" * 5000 + "}\n",
        ":2: cannot read this JSON: a number has too many digits.",
    ),
    "no query id": (RUN + '{"outcome":"empty"}\n', ":2: missing key 'query_id'."),
    "an outcome nobody knows": (
        RUN + '{"query_id":"q1","outcome":"timout"}\n',
        f":2: unknown outcome 'timout'; expected {OUTCOMES}.\nHint: did you mean timeout?",
    ),
    "a hit without id": (
        RUN + '{"query_id":"q1","outcome":"answered","hits":[{"id":"d"},{"score":1}]}\n',
        ":2: missing key 'id' in hits[1].",
    ),
    "a score that is text": (
        RUN + '{"query_id":"q1","outcome":"answered","hits":[{"id":"d","score":"1"}]}\n',
        ":2: wrong value for hits[0].score; expected a finite number, got '1'.",
    ),
    "a score beyond floats": (
        RUN + '{"query_id":"q1","outcome":"answered","hits":[{"id":"d","score":1e999}]}\n',
        ":2: wrong value for hits[0].score; expected a finite number, got inf.",
    ),
    "hits by name": (
        RUN + '{"query_id":"q1","outcome":"answered","hits":{}}\n',
        ":2: wrong value for hits; expected a list, got {}.",
    ),
    "an unknown key": (
        RUN + '{"query_id":"q1","outcome":"empty","hit":[]}\n',
        ":2: unknown key 'hit'; expected fields, hits, log, outcome, query_id, reason.\nHint: did you mean hits?",
    ),
    "a query twice": (
        RUN + '{"query_id":"q1","outcome":"empty"}\n{"query_id":"q1","outcome":"empty"}\n',
        ":3: query 'q1' has a second line; got the first on line 2.",
    ),
    "several lines at once": (
        RUN + "x\n" + '{"query_id":"q1","outcome":"empty"}\n{"query_id":4,"outcome":"empty"}\n',
        ":2:1: not JSON: expecting value; got 'x'.\n{path}:4: wrong value for query_id; expected a string, got 4.",
    ),
}


def message_of(action: Callable[[], object], error: type[CranfieldError]) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize("name", QRELS_MESSAGES)
def test_problems_of_qrels(tmp_path: Path, name: str) -> None:
    content, expected = QRELS_MESSAGES[name]
    path = put(tmp_path / "a.qrels", content)
    assert message_of(lambda: read_qrels(path), TestSetError) == f"{path}{expected}".replace("{path}", str(path))


@pytest.mark.parametrize("name", RUN_MESSAGES)
def test_problems_of_a_collected_run(tmp_path: Path, name: str) -> None:
    content, expected = RUN_MESSAGES[name]
    path = put(tmp_path / "r.jsonl", content)
    assert message_of(lambda: read_run(path), RunFormatError) == f"{path}{expected}".replace("{path}", str(path))


LOG = '{"cranfield_run_log":1,"name":"r"}\n'
LOG_HINT = "\nHint: it contains only latencies and raw output; the run can be read without it."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"latency_ms":1}', ":2: missing key 'query_id'."),
        ('{"query_id":"q1"}', ":2: missing key 'latency_ms' in the line."),
        ('{"query_id":"q1","stdout_head":"x"}', ":2: missing key 'latency_ms' in the line."),
        (
            '{"query_id":"q1","latency_ms":"1"}',
            ":2: wrong value for the line.latency_ms; expected a finite number, got '1'.",
        ),
        (
            '{"query_id":"q1","latency_ms":1,"x":""}',
            ":2: unknown key 'x'; expected age_s, at, attempts, cached, calls_before, latency_ms, repeat_ms, stderr_head, stdout_head, unstable.",
        ),
    ],
)
def test_problems_of_a_log(tmp_path: Path, line: str, expected: str) -> None:
    path = put(tmp_path / "r.jsonl", RUN + '{"query_id":"q1","outcome":"empty"}\n')
    log = put(tmp_path / "r.log.jsonl", LOG + line + "\n")
    assert message_of(lambda: read_run(path), RunFormatError) == f"{log}{expected}{LOG_HINT}"


SNIFF_MESSAGES: dict[str, tuple[str | bytes | None, str]] = {
    "missing": (None, ": no such file."),
    "damaged gzip": (gzip.compress(GOOD.encode() * 100)[:60], ": the gzip data are damaged or cut short."),
    "damaged gzip header": (b"\x1f\x8b junk", ": the gzip data are damaged or cut short."),
}


@pytest.mark.parametrize("name", SNIFF_MESSAGES)
@pytest.mark.parametrize(
    ("read", "error"),
    [
        (read_testset, TestSetError),
        (lambda path: read_testset(path, "yaml"), TestSetError),
        (lambda path: read_testset(path, "qrels"), TestSetError),
        (sniff_run, RunFormatError),
        (read_run, RunFormatError),
        (lambda path: sniff_run(path, "jsonl"), RunFormatError),
    ],
)
def test_problems_of_any_file(tmp_path: Path, name: str, read: Callable[[Path], object], error: type) -> None:
    content, expected = SNIFF_MESSAGES[name]
    path = tmp_path / "a"
    if content is not None:
        put(path, content)
    assert message_of(lambda: read(path), error) == f"{path}{expected}"


@pytest.mark.parametrize(
    ("read", "error", "expected"),
    [
        (read_testset, TestSetError, "a file, or a folder of the format huggingface, beir"),
        (sniff_run, RunFormatError, "a file"),
    ],
)
def test_a_folder_is_named_as_one(
    tmp_path: Path, read: Callable[[Path], object], error: type[CranfieldError], expected: str
) -> None:
    assert message_of(lambda: read(tmp_path), error) == f"{tmp_path}: this is a folder; expected {expected}."


REPORT = '{\n "schema_version": 1,\n "testset": {"name": "q"},\n "systems": [{"name": "a", "queries": {}}]\n}\n'


FORMAT_MESSAGES: dict[str, tuple[Callable[[Path], object], type[CranfieldError], str, str]] = {
    "no test set": (
        read_testset,
        TestSetError,
        "\n# a comment\nwords and more\n",
        (f": not a test set; {WANTED_TESTSET}, got 'words and more'.\nHint: name the format: format=NAME."),
    ),
    "empty test set": (read_testset, TestSetError, "\n", f": the file is empty; {WANTED_TESTSET}."),
    "comments for a test set": (
        read_testset,
        TestSetError,
        "# only\n",
        (f": not a test set; {WANTED_TESTSET}, got comments only.\nHint: name the format: format=NAME."),
    ),
    "a TREC run for a test set": (
        read_testset,
        TestSetError,
        "q1 Q0 d1 1 0.5 tag\n",
        (
            f": not a test set; {WANTED_TESTSET}, got 'q1 Q0 d1 1 0.5 tag'.\n"
            "Hint: this is a TREC run (lines `query Q0 document rank score tag`): the test set comes first, then the runs."
        ),
    ),
    "no run": (
        sniff_run,
        RunFormatError,
        "words and more\n",
        (f": not a run; {WANTED_RUN}, got 'words and more'.\nHint: name the format: run_format=NAME."),
    ),
    "a run without its last column": (
        sniff_run,
        RunFormatError,
        "# a comment\nq1 Q0 d1 1 0.5\nq1 Q0 d2 2 0.4\n",
        (
            ":2: 5 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0 d1 1 0.5'.\n"
            "Hint: add the missing columns, or write a table of results whose first line names its columns."
        ),
    ),
    "a report for a run": (
        sniff_run,
        RunFormatError,
        REPORT,
        (
            ": this is a JSON report of Cranfield; expected a run.\n"
            "Hint: give the run file that was scored; `cranfield run` keeps the runs in the folder runs next to its report."
        ),
    ),
    "a report for a test set": (
        read_testset,
        TestSetError,
        REPORT,
        (
            ": this is a JSON report of Cranfield; expected a test set.\n"
            "Hint: give the test set or the qrels that the runs were scored against."
        ),
    ),
    "a test set for a run": (
        sniff_run,
        RunFormatError,
        GOOD,
        (
            f": not a run; {WANTED_RUN}, got 'cranfield_testset: 1'.\n"
            "Hint: this is a YAML or JSON test set (key `cranfield_testset`): the test set comes first, then the runs."
        ),
    ),
    "a log for a run": (
        sniff_run,
        RunFormatError,
        LOG,
        (
            f": not a run; {WANTED_RUN}, got '{LOG.strip()}'.\n"
            "Hint: this is the log of a run: pass the file without `.log`."
        ),
    ),
}


@pytest.mark.parametrize("name", FORMAT_MESSAGES)
def test_problems_of_telling_a_format(tmp_path: Path, name: str) -> None:
    action, error, content, expected = FORMAT_MESSAGES[name]
    path = put(tmp_path / "a", content)
    assert message_of(lambda: action(path), error) == f"{path}{expected}"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: read_testset("x", "qrel"),
            (
                f"unknown test set format 'qrel'; expected one of {len(format_names('testset'))} test set formats.\n"
                "Hint: did you mean qrels?"
            ),
        ),
        (
            lambda: sniff_run("x", "yaml"),
            "unknown run format 'yaml'; expected documents, json-run, jsonl, mapped-run, msmarco, parquet, run-table, samples-run, traces, trec.",
        ),
    ],
)
def test_a_format_nobody_knows(action: Callable[[], object], expected: str) -> None:
    assert message_of(action, UnknownNameError) == expected


def run_of(*hits: Hit, fields: dict[str, object] | None = None, query_id: str = "q1", **more: object) -> Run:
    return Run("r", {query_id: Answer(Outcome.ANSWERED, hits, fields=fields or {})}, **more)  # type: ignore[arg-type]


JSON_EXPECTED = "expected text, finite numbers, true, false, null, lists and mappings of them"
WRITE_MESSAGES: dict[str, tuple[Callable[[Path], object], type[CranfieldError], str]] = {
    "a run with NaN for a score": (
        lambda path: write_run(run_of(Hit("a", 1.0), Hit("b", math.nan)), path),
        RunFormatError,
        "query 'q1', hit 2 ('b'): the score is not a finite number; expected a finite number, or no score, got nan.",
    ),
    "a run with an infinite score": (
        lambda path: write_run(run_of(Hit("a", -math.inf)), path),
        RunFormatError,
        "query 'q1', hit 1 ('a'): the score is not a finite number; expected a finite number, or no score, got -inf.",
    ),
    "a run with NaN in a field": (
        lambda path: write_run(run_of(fields={"confidence": math.nan}), path),
        RunFormatError,
        f"query 'q1' cannot be written as JSON; {JSON_EXPECTED}, got NaN, an infinity, or a list that contains itself.",
    ),
    "a run with a path in its config": (
        lambda path: write_run(run_of(config={"cwd": Path("x")}), path),
        RunFormatError,
        f"the run's header cannot be written as JSON; {JSON_EXPECTED}, got a PosixPath.",
    ),
    "a latency of NaN": (
        lambda path: write_run(run_of(logs={"q1": CallLog(math.nan)}), path),
        RunFormatError,
        f"query 'q1' cannot be written as JSON; {JSON_EXPECTED}, got NaN, an infinity, or a list that contains itself.",
    ),
    "qrels with patterns": (
        lambda path: write_qrels(TestSet("t", (Query("q1"),), targets={"q1": (Pattern("a"),)}), path),
        TestSetError,
        (
            "{path}: not written: query 'q1' is judged by a rule; expected graded document ids.\n"
            "Hint: a YAML test set can store patterns, spans and other rules."
        ),
    ),
    "qrels with white space in ids": (
        lambda path: write_qrels(TestSet("t", (Query("q 1"),), {"q 1": {"d\t1": 1.0}}), path),
        TestSetError,
        (
            "{path}: not written: the query id 'q 1' cannot be written to a column; "
            "expected one character or more, without white space, and no # first.\n"
            "{path}: not written: the document id 'd\\t1' cannot be written to a column; "
            "expected one character or more, without white space."
        ),
    ),
    "qrels with a query that reads as a comment": (
        lambda path: write_qrels(TestSet("t", (Query("#1"),), {"#1": {"#d": 1.0}}), path),
        TestSetError,
        (
            "{path}: not written: the query id '#1' cannot be written to a column; "
            "expected one character or more, without white space, and no # first."
        ),
    ),
    "qrels with NaN": (
        lambda path: write_qrels(TestSet("t", (Query("q1"),), {"q1": {"d": math.nan}}), path),
        TestSetError,
        "{path}: not written: query 'q1', document 'd' has the grade nan; expected a finite number.",
    ),
    "a TREC run with an empty id": (
        lambda path: write_trec_run(run_of(Hit("")), path),
        RunFormatError,
        (
            "{path}: not written: the document id '' cannot be written to a column; "
            "expected one character or more, without white space."
        ),
    ),
    "a TREC run ordered by scores it has not": (
        lambda path: write_trec_run(run_of(Hit("a", 1.0), Hit("b"), order="ascending"), path),
        RunFormatError,
        (
            "{path}: not written: query 'q1', hit 2 has no score; "
            "expected a score on every hit, because the run declares order: ascending."
        ),
    ),
    "YAML without judgments": (
        lambda path: write_testset_yaml(TestSet("t", (Query("q1", "x"),)), path),
        TestSetError,
        (
            "{path}: not written: queries[0] has no judgments.\n"
            "Hint: add `judgments: {document id: grade}`, `patterns` on the id, spans, entities or files; "
            "or `negative: true` where nothing should be found."
        ),
    ),
    "YAML of bytes that are no text": (
        lambda path: write_testset_yaml(TestSet("t", (Query("q1", "x"),), {"q1": {"\udcff": 1.0}}), path),
        TestSetError,
        (
            "{path}: not written: text that is not valid Unicode; expected Unicode.\n"
            "Hint: a file name that ends in .json takes it."
        ),
    ),
}


@pytest.mark.parametrize("name", WRITE_MESSAGES)
def test_problems_of_writing_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    action, error, expected = WRITE_MESSAGES[name]
    path = tmp_path / "out"
    assert message_of(lambda: action(path), error) == expected.replace("{path}", str(path))
    assert list(tmp_path.iterdir()) == []

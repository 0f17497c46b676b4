"""Collected runs: the file, its log, and the round trip."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import RunFormatError
from cranfield.base.words import NAME_CHARS
from cranfield.formats.runs.jsonl import log_path, read_run, write_run
from cranfield.formats.runs.record import answer_from_record, answer_record, json_line
from cranfield.model import Answer, CallLog, Hit, Order, Outcome, Run

RUN = Run(
    name="old",
    answers={
        "q2": Answer(Outcome.ANSWERED, (Hit("d\u00e91", 0.5, "T", "3-4"), Hit("d2")), fields={"confidence": 0.25, "b": [None]}),
        "q1": Answer(Outcome.TIMEOUT, reason="no answer in 30 s"),
        "q3": Answer(Outcome.EMPTY),
    },
    depth=10,
    order="descending",
    logs={"q2": CallLog(12.5, "out\n"), "q1": CallLog(30000.0, "", "err")},
    testset_digest="sha256:1",
    config_digest="sha256:2",
    pilot=True,
    config={"command": ["x", "{query}"], "timeout_s": 30},
)  # fmt: skip


def test_a_run_file_is_a_header_and_a_line_a_query_with_nothing_empty(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "old.jsonl")
    assert (tmp_path / "old.jsonl").read_text(encoding="utf-8").splitlines() == [
        (
            '{"config":{"command":["x","{query}"],"timeout_s":30},"config_digest":"sha256:2","cranfield_run":1,'
            '"depth":10,"name":"old","order":"descending","pilot":true,"testset_digest":"sha256:1"}'
        ),
        (
            '{"fields":{"b":[null],"confidence":0.25},'
            '"hits":[{"id":"d\u00e91","score":0.5,"span":"3-4","title":"T"},{"id":"d2"}],'
            '"outcome":"answered","query_id":"q2"}'
        ),
        '{"outcome":"timeout","query_id":"q1","reason":"no answer in 30 s"}',
        '{"outcome":"empty","query_id":"q3"}',
    ]
    assert (tmp_path / "old.log.jsonl").read_text().splitlines() == [
        '{"cranfield_run_log":1,"name":"old"}',
        '{"latency_ms":12.5,"query_id":"q2","stdout_head":"out\\n"}',
        '{"latency_ms":30000.0,"query_id":"q1","stderr_head":"err"}',
    ]


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "old.jsonl")
    read = read_run(tmp_path / "old.jsonl")
    assert read == RUN
    assert list(read.answers) == ["q2", "q1", "q3"]
    assert read.digest == RUN.digest


def test_a_second_writing_gives_the_same_bytes(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "a.jsonl")
    write_run(read_run(tmp_path / "a.jsonl"), tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.log.jsonl").read_bytes() == (tmp_path / "b.log.jsonl").read_bytes()


def test_a_log_says_what_was_tried_again_repeated_or_kept_and_nothing_where_nothing_was(tmp_path: Path) -> None:
    log = CallLog(12.5, attempts=3, repeat_ms=(11.0, 13.5), unstable=("rank 2: d7, then d9",), cached=True)
    run = Run("old", {"q": Answer(Outcome.EMPTY)}, logs={"q": log})
    write_run(run, tmp_path / "old.jsonl")
    assert (tmp_path / "old.log.jsonl").read_text().splitlines()[1] == (
        '{"attempts":3,"cached":true,"latency_ms":12.5,"query_id":"q","repeat_ms":[11.0,13.5],'
        '"unstable":["rank 2: d7, then d9"]}'
    )
    assert read_run(tmp_path / "old.jsonl") == run


def test_the_order_of_keys_in_what_was_collected_does_not_show(tmp_path: Path) -> None:
    for name, fields in (("a", {"x": 1, "y": {"p": 1, "q": 2}}), ("b", {"y": {"q": 2, "p": 1}, "x": 1})):
        write_run(Run("r", {"q": Answer(Outcome.ANSWERED, fields=fields)}), tmp_path / f"{name}.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_latencies_are_not_in_the_run_file(tmp_path: Path) -> None:
    slow = Run("old", RUN.answers, logs={"q1": CallLog(999.0, "other")})
    write_run(slow, tmp_path / "a.jsonl")
    write_run(Run("old", RUN.answers, logs={"q1": CallLog(1.0)}), tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_the_log_can_be_done_without(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "old.jsonl")
    (tmp_path / "old.log.jsonl").unlink()
    read = read_run(tmp_path / "old.jsonl")
    assert not read.logs
    assert read.answers == RUN.answers


def test_an_old_log_does_not_stay_beside_a_run_without_one(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "old.jsonl")
    write_run(Run("old", RUN.answers), tmp_path / "old.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["old.jsonl"]


@pytest.mark.parametrize(
    ("run", "log"),
    [
        ("old.jsonl", "old.log.jsonl"),
        ("old", "old.log.jsonl"),
        ("old.jsonl.gz", "old.log.jsonl"),
        ("a.b.jsonl", "a.b.log.jsonl"),
    ],
)
def test_the_log_lies_beside_the_run(run: str, log: str) -> None:
    assert log_path(Path("x") / run) == Path("x") / log


def test_a_packed_run_is_read(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "old.jsonl")
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress((tmp_path / "old.jsonl").read_bytes()))
    assert read_run(tmp_path / "packed.jsonl").answers == RUN.answers


def test_a_header_needs_no_more_than_a_name(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"cranfield_run":1,"name":"r"}\n\n{"query_id":"q","outcome":"empty"}')
    assert read_run(tmp_path / "r.jsonl") == Run("r", {"q": Answer(Outcome.EMPTY)})


def test_whole_scores_are_read_as_floats_so_that_digests_agree(tmp_path: Path) -> None:
    run = Run("r", {"q": Answer(Outcome.ANSWERED, (Hit("d", 3),))})  # a system that counts
    write_run(run, tmp_path / "r.jsonl")
    read = read_run(tmp_path / "r.jsonl")
    assert type(read.answers["q"].hits[0].score) is float
    write_run(read, tmp_path / "s.jsonl")
    assert read_run(tmp_path / "s.jsonl").digest == read.digest


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\u00e9\U0001f600", "\u00e9\U0001f600".encode()),
        ("d\udcff", b"d\\udcff"),  # a byte that was no UTF-8: the file stays UTF-8
        ("\ud83dx", b"\\ud83dx"),
        ("\ud83d\ude00", b"\xed\xa0\xbd\xed\xb8\x80"),  # escapes would be taken for one character
        ("a\nb\u2028\x85", b"a\\nb\xe2\x80\xa8\xc2\x85"),
    ],
)
def test_odd_characters_are_written_so_that_they_come_back(tmp_path: Path, text: str, written: bytes) -> None:
    run = Run("r", {text: Answer(Outcome.ANSWERED, (Hit(text, None, text, text),), text, {text: text})})
    write_run(run, tmp_path / "r.jsonl")
    assert b'"id":"' + written + b'"' in (tmp_path / "r.jsonl").read_bytes()
    assert read_run(tmp_path / "r.jsonl") == run


every_text = st.text(st.characters())  # surrogates included
scores = st.none() | st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | every_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(every_text, inner, max_size=3),
    max_leaves=6,
)
hits = st.builds(Hit, every_text, scores, st.none() | every_text, st.none() | every_text, scores)
answers = st.builds(
    Answer,
    st.sampled_from(Outcome),
    st.lists(hits, max_size=4).map(tuple),
    st.none() | every_text,
    st.dictionaries(every_text, json_values, max_size=3),
)
logs = st.builds(
    CallLog,
    st.floats(0, 1e9),
    every_text,
    every_text,
    st.integers(1, 9),
    st.lists(st.floats(0, 1e9), max_size=3).map(tuple),
    st.lists(every_text, max_size=3).map(tuple),
    st.booleans(),
)
runs = st.builds(
    Run,
    every_text.map(lambda text: text[:NAME_CHARS]),  # longer ones are cut
    st.dictionaries(every_text, answers, max_size=4),
    st.none() | st.integers(1, 1000),
    st.sampled_from(get_args(Order)),
    st.dictionaries(every_text, logs, max_size=3),
    st.none() | every_text,
    st.none() | every_text,
    st.booleans(),
    st.dictionaries(every_text, json_values, max_size=3),
)


@given(run=runs)
def test_any_run_survives_a_round_trip(tmp_path_factory: pytest.TempPathFactory, run: Run) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    write_run(run, path)
    read = read_run(path)
    assert read == run
    assert list(read.answers) == list(run.answers)
    assert read.digest == run.digest
    first = path.read_bytes()
    write_run(read, path)
    assert path.read_bytes() == first


@given(query_id=every_text, answer=answers, log=st.none() | logs)
def test_any_record_survives_a_round_trip(query_id: str, answer: Answer, log: CallLog | None) -> None:
    line = json_line(answer_record(query_id, answer, log))
    assert line.count("\n") == 1
    assert answer_from_record(json.loads(line)) == (query_id, answer, log)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "wrong value for the line; expected an object, got []."),
        ({}, "missing key 'query_id'.\nmissing key 'outcome'."),
        ({"query_id": "q", "outcome": "empty", "log": 3}, "wrong value for log; expected an object, got 3."),
        ({"query_id": "q", "outcome": "empty", "log": {}}, "missing key 'latency_ms' in log."),
        (
            {
                "query_id": "q",
                "outcome": "empty",
                "log": {"latency_ms": 1, "attempts": "2", "repeat_ms": [True], "unstable": "x", "cached": 1},
            },
            (
                "wrong value for log.attempts; expected a finite number, got '2'.\n"
                "wrong value for log.cached; expected true or false, got 1.\n"
                "wrong value for log.repeat_ms; expected a list of finite numbers, got [True].\n"
                "wrong value for log.unstable; expected a list of strings, got 'x'."
            ),
        ),
        ({"query_id": "q", "outcome": "empty", "hits": [{}]}, "missing key 'id' in hits[0]."),
        ({"query_id": "q", "outcome": "empty", "hits": [3]}, "wrong value for hits[0]; expected an object, got 3."),
        ({"query_id": "q", "outcome": "empty", "fields": 3}, "wrong value for fields; expected an object, got 3."),
        ({"query_id": "q", "outcome": "empty", "reason": 3}, "wrong value for reason; expected a string, got 3."),
        ({"query_id": "q", "outcome": 3}, "wrong value for outcome; expected a string, got 3."),
        (
            {"query_id": "q", "outcome": "empty", "hits": [{"id": "a", "score": True}, {"id": 4}]},
            (
                "wrong value for hits[0].score; expected a finite number, got True.\n"
                "wrong value for hits[1].id; expected a string, got 4."
            ),
        ),
    ],
)
def test_a_record_tells_all_that_is_wrong_with_it(record: object, message: str) -> None:
    with pytest.raises(RunFormatError) as caught:
        answer_from_record(record)
    assert str(caught.value) == message


def test_a_run_that_cannot_be_written_leaves_the_old_one_alone(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "old.jsonl")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    broken = Run("old", {**RUN.answers, "q9": Answer(Outcome.ANSWERED, (Hit("d", float("inf")),))}, logs=RUN.logs)
    with pytest.raises(RunFormatError, match="not a finite number"):
        write_run(broken, tmp_path / "old.jsonl")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

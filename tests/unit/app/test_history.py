"""The local history: what is written down, read back, and never lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from cranfield.app.evaluate import evaluate
from cranfield.app.history import (
    FILE,
    FOLDER,
    append,
    history_point,
    keep_values,
    local_folder,
    read_history,
    without_void,
)
from cranfield.base.errors import UsageError
from cranfield.evaluation.history import HistoryPoint, Score
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, Run, TestSet
from cranfield.model.results import DamagedLine
from cranfield.repo.git import Standing

WHEN = datetime(2026, 11, 21, 10, 30, 15, 999, tzinfo=timezone(timedelta(hours=2)))
COMMIT = Standing("c" * 40, dirty=True)


@pytest.fixture
def evaluation():
    testset = TestSet(
        "shop", (Query("q1"), Query("q2"), Query("q3")), {q: {"a": 1} for q in ("q1", "q2", "q3")}, version="2"
    )
    answers = {
        "q1": Answer(Outcome.ANSWERED, (Hit("a"),)),
        "q2": Answer(Outcome.ANSWERED, (Hit("b"), Hit("a"))),
        "q3": Answer(Outcome.TIMEOUT, reason="no answer in 30 s"),
    }
    logs = {"q1": CallLog(10.0), "q2": CallLog(20.0), "q3": CallLog(30.0)}
    run = Run("bm25", answers, depth=10, logs=logs, testset_digest=testset.digest, config_digest="sha256:" + "d" * 64)
    return evaluate(testset, run, measures=["RR", "P@1"])


def test_a_point_says_what_was_measured_on_what_and_where(evaluation):
    (rr, p1) = evaluation.measures
    assert history_point(evaluation, when=WHEN, commit=COMMIT, primary=rr) == HistoryPoint(
        time=datetime(2026, 11, 21, 8, 30, 15, tzinfo=UTC),
        testset="shop",
        version="2",
        digest=evaluation.testset.digest,
        system="bm25",
        convention="trec",
        measures={"RR": Score(0.5, 3, 0.0, 1.0), "P@1": Score(pytest.approx(1 / 3), 3, 0.0, 1.0)},
        commit="c" * 40,
        dirty=True,
        primary="RR",
        config_digest="sha256:" + "d" * 64,
        run_digest=evaluation.run_digest,
        k=10,
        n_queries=3,
        n_failed=1,
        judged=pytest.approx((1 + 1 / 2) / 2),  # of the two queries that brought results
        p50_ms=20.0,
        p95_ms=pytest.approx(29.0),
    )
    assert history_point(evaluation, when=WHEN, primary=p1).primary == "P@1"
    alone = history_point(replace(evaluation, run=None), when=WHEN)
    assert (alone.commit, alone.config_digest, alone.k, alone.primary, alone.p50_ms) == (None,) * 5


def test_a_line_has_the_fields_of_a_point(tmp_path, evaluation):
    path = append(tmp_path, history_point(evaluation, when=WHEN, commit=COMMIT))
    line = json.loads(path.read_text())
    assert list(line) == [field.name for field in fields(HistoryPoint)]
    assert (line["cranfield_history"], line["time"]) == (1, "2026-11-21T08:30:15Z")
    assert line["measures"]["RR"] == {"mean": 0.5, "n": 3, "ci_low": 0.0, "ci_high": 1.0}


def test_what_is_written_is_what_is_read(tmp_path, evaluation):
    record = history_point(evaluation, when=WHEN, commit=COMMIT, primary=evaluation.measures[0])
    pilot = history_point(replace(evaluation, pilot=True, run=None), when=WHEN)
    path = append(tmp_path, record, pilot)
    assert path == tmp_path / FOLDER / FILE
    history = read_history(tmp_path)
    first, second = history.points
    assert history.damaged == ()
    assert first.time == datetime(2026, 11, 21, 8, 30, 15, tzinfo=UTC)
    assert (first.commit, first.dirty, first.pilot, first.version) == ("c" * 40, True, False, "2")
    assert (first.p95_ms, first.n_failed, first.k, first.primary) == (pytest.approx(29.0), 1, 10, "RR")
    assert first.measures["RR"].mean == evaluation.summaries[evaluation.measures[0]].mean
    assert (second.commit, second.pilot, second.p95_ms, second.k, second.primary) == (None, True, None, None, None)


def test_git_does_not_see_the_history(tmp_path, evaluation):
    append(tmp_path, history_point(evaluation, when=WHEN))
    assert (tmp_path / FOLDER / ".gitignore").read_text() == "*\n"


GOOD = {
    "cranfield_history": 1,
    "time": "2026-11-21T08:30:15Z",
    "testset": "shop",
    "version": "",
    "digest": "sha256:a",
    "system": "bm25",
    "convention": "trec",
    "measures": {"AP": {"mean": 0.5, "n": 3}},
}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"cranfield_history": 1, "ti', "not JSON"),
        ("\xff\xfe", "not JSON"),
        ("[1]", "Input should be an object"),
        ("[" * 100_000, "not JSON"),
        (json.dumps(GOOD | {"cranfield_history": 2}), "cranfield_history: Input should be 1"),
        (json.dumps(GOOD | {"time": "yesterday"}), "time: Input should be a valid datetime"),
        (json.dumps(GOOD | {"time": "2026-11-21T08:30:15"}), "time: no time zone"),
        (json.dumps(GOOD | {"testset": None}), "testset: Input should be a valid string"),
        (json.dumps({key: value for key, value in GOOD.items() if key != "digest"}), "digest: Field required"),
        (json.dumps(GOOD | {"system": 3}), "system: Input should be a valid string"),
        (json.dumps(GOOD | {"measures": {"AP": 0.5}}), "measures.AP: Input should be an object"),
        (json.dumps(GOOD | {"measures": {"AP": {"mean": "high"}}}), "measures.AP.mean: Input should be a valid number"),
        (json.dumps(GOOD | {"measures": {"AP": {"mean": True}}}), "measures.AP.mean: Input should be a valid number"),
        (
            json.dumps(GOOD | {"measures": {"AP": {"mean": float("nan"), "n": 3}}}),
            "measures.AP.mean: Input should be a finite number",
        ),
        (json.dumps(GOOD | {"k": 1.5}), "k: Input should be a valid integer"),
        (json.dumps(GOOD | {"judged": float("nan")}), "judged: Input should be a finite number"),
        (json.dumps(GOOD | {"judged": float("inf")}), "judged: Input should be a finite number"),
        (json.dumps(GOOD | {"judged": 10**400}), "judged: Input should be a finite number"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path, line, why):
    folder = tmp_path / FOLDER
    folder.mkdir()
    good = json.dumps(GOOD)
    (folder / FILE).write_bytes(f"{good}\n\n".encode() + line.encode("latin-1") + f"\n{good}\n".encode())
    history = read_history(tmp_path)
    assert len(history.points) == 2
    (damaged,) = history.damaged
    assert damaged.line == 3
    assert damaged.why.startswith(why)


def test_a_line_that_a_crash_cut_off_spoils_no_other(tmp_path, evaluation):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / FILE).write_text('{"cranfield_history": 1, "ti')
    append(tmp_path, history_point(evaluation, when=WHEN))
    append(tmp_path, history_point(evaluation, when=WHEN))
    history = read_history(tmp_path)
    assert (len(history.points), history.damaged) == (2, (DamagedLine(1, "not JSON"),))


APPENDER = """
import sys
from pathlib import Path
from cranfield.app.history import append
record = {"cranfield_history": 1, "writer": int(sys.argv[2]), "filling": "x" * 20_000}
for number in range(40):
    append(Path(sys.argv[1]), record | {"number": number})
"""


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_that_write_at_once_lose_and_mix_nothing(tmp_path, n):
    writers = [subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path), str(number)]) for number in range(n)]
    assert [writer.wait() for writer in writers] == [0] * n
    records = [json.loads(line) for line in (tmp_path / FOLDER / FILE).read_text().splitlines()]
    for writer in range(n):
        assert [record["number"] for record in records if record["writer"] == writer] == list(range(40))


def test_failures_are_a_point_of_the_history_and_other_void_scores_are_none(evaluation):
    ids = [f"q{n}" for n in range(12)]
    testset = TestSet("shop", tuple(map(Query, ids)), {query_id: {"a": 1} for query_id in ids})
    upper = evaluate(testset, {query_id: ["A"] for query_id in ids}, measures=["RR"], name="upper")
    assert [[each.check for each in side.evidence if each.is_void] for side in (evaluation, upper)] == [
        ["failed-queries"],
        ["nothing-matched"],
    ]
    kept, note = without_void([evaluation, upper])
    assert kept == [evaluation]
    assert note.endswith("the scores do not count: upper")


def test_values_that_an_evaluation_has_again_are_not_the_oldest(tmp_path, evaluation, monkeypatch):
    monkeypatch.setattr("cranfield.app.history.MAX_VALUES", 2)
    folder = local_folder(tmp_path)
    again, once, new = (evaluate(evaluation.testset, evaluation.run, measures=[name]) for name in ("RR", "P@1", "AP"))
    for place, each in enumerate((again, once)):
        os.utime(folder / keep_values(folder, each), (place, place))
    kept = [keep_values(folder, again), keep_values(folder, new)]
    assert sorted(path.name for path in (folder / "history").iterdir()) == sorted(Path(name).name for name in kept)


def test_no_history_is_said(tmp_path):
    with pytest.raises(UsageError, match="no history in this folder"):
        read_history(tmp_path)
    assert not (tmp_path / FOLDER).exists()


def test_a_history_that_cannot_be_written_or_read_is_said(tmp_path, evaluation):
    (tmp_path / FOLDER / FILE).mkdir(parents=True)
    with pytest.raises(UsageError, match="this is a folder"):
        append(tmp_path, history_point(evaluation, when=WHEN))
    with pytest.raises(UsageError, match="this is a folder"):
        read_history(tmp_path)


def test_a_gate_and_a_run_file_that_is_evaluated_are_remembered_where_asked(tmp_path: Path) -> None:
    (tmp_path / "queries.yaml").write_text(
        "cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1, text: a, judgments: {a: 1}}\n"
    )
    (tmp_path / "cranfield.yaml").write_text(
        "testset: queries.yaml\nsystems: {echo: {command: [echo, '{query}'], extract: {regex: a}}}\n"
        "gate: {rules: [{floor: {measure: RR, at_least: 1}}]}\n"
    )
    (tmp_path / "other.run").write_text("q1 Q0 b 1 1 other\n")
    cranfield = ["cranfield"]
    for command in (
        ["gate"],
        ["gate", "--from", "cranfield-gate"],  # asks nobody
        ["evaluate", "queries.yaml", "other.run", "--history", "."],
        ["evaluate", "queries.yaml", "other.run"],
    ):
        subprocess.run([*cranfield, *command], cwd=tmp_path, check=True, capture_output=True)
    points = read_history(tmp_path).points
    assert [point.system for point in points] == ["echo", "other"]

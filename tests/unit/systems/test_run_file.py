"""Run files as systems: every format that is read, found by the query's id, never guessed."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from cranfield.base.errors import PreflightError, RunFormatError
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, Run
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.run_file import RunFileSystem

TREC = "q1 Q0 d2 1 0.5 tag\nq1 Q0 d1 2 2.5 a tag\n\nq2\tQ0\td\u00e9\t1\t1e1\ttag\n"
CSV = "query_id,rank,doc_id,score\nq1,2,d2,9\nq1,1,d1,1\n"


@pytest.fixture
def run_of(tmp_path: Path):
    def _run(content: str | Run, name: str = "old.run", **config) -> RunFileSystem:
        path = tmp_path / name
        if isinstance(content, Run):
            write_run(content, path)
        else:
            path.write_bytes(content.encode("utf-8"))
        return RunFileSystem.of("sut", folder=tmp_path, run=name, **config)

    return _run


def answer(system, query_id="q1"):
    return system.search(Query(query_id, "any text"), 1)[0]


def test_a_trec_file_is_ordered_by_score_and_k_cuts_nothing(run_of):
    system = run_of(TREC)
    assert answer(system).hits == (Hit("d1", 2.5), Hit("d2", 0.5))
    assert answer(system, "q2").hits == (Hit("dé", 10.0),)
    assert system.order == "descending"


def test_a_table_with_ranks_stands_as_given(run_of):
    system = run_of(CSV, "old.csv")
    assert [hit.id for hit in answer(system).hits] == ["d1", "d2"]
    assert system.order == "given"


def test_a_parquet_table_is_ordered_by_score(tmp_path):
    table = pa.table({"query_id": ["q1", "q2", "q1"], "doc_id": ["d1", "d2", "d3"], "score": [1.0, 2.0, 3.0]})
    parquet.write_table(table, tmp_path / "old.parquet")
    system = RunFileSystem.of("sut", folder=tmp_path, run="old.parquet")
    assert (answer(system).hits, system.order) == ((Hit("d3", 3.0), Hit("d1", 1.0)), "descending")


def test_a_collected_run_keeps_everything_its_log_too(run_of):
    kept = Answer(Outcome.ANSWERED, (Hit("d1", 1.0, "T", "1-2", 30.0),), fields={"local": True})
    late = Answer(Outcome.TIMEOUT, reason="no answer in 1 s")
    logs = {"q1": CallLog(12.5, attempts=2)}
    system = run_of(Run("old", {"q1": kept, "q2": late}, order="ascending", logs=logs), "old.jsonl")
    found, log = system.search(Query("q1", "x"), 10)
    assert (found, answer(system, "q2")) == (kept, late)
    assert (log, system.order) == (CallLog(12.5, attempts=2, cached=True), "ascending")


def test_a_query_that_is_not_there_is_missing(run_of):
    assert answer(run_of(TREC), "q9").outcome is Outcome.MISSING


def test_the_file_is_what_it_depends_on(run_of, tmp_path):
    assert list(run_of(TREC).depends_on()) == [tmp_path / "old.run"]


def test_what_is_looked_up_is_shown(run_of):
    shown = run_of(TREC).ask(Query("q1", "grid"), 10, is_shown=True)
    assert (shown.request, shown.output) == ("old.run: query q1", "d1\nd2")


def test_the_preflight_reads_it(run_of):
    assert preflight([run_of(TREC)])[-1].found == "2 answers"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "run old.run; expected a collected run"),
        ("hello\n", "got not a run"),
        ("q1 Q0 d1 1 0.5 t\nq1 Q0 d2\n", "got line 2: 3 columns"),
        (
            "q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 nan t\nq1\n",
            "got line 2: the score is not a finite number (and 1 more problem)",
        ),
    ],
)
def test_a_file_that_is_no_run_fails_the_preflight(run_of, content, said):
    with pytest.raises(PreflightError) as caught:
        preflight([run_of(content)])
    assert said in str(caught.value)


def test_a_file_that_is_not_there_fails_the_preflight(tmp_path):
    system = RunFileSystem.of("sut", folder=tmp_path, run="absent.run")
    with pytest.raises(PreflightError, match=r"run absent.run"):
        preflight([system])
    with pytest.raises(RunFormatError):
        answer(system)


def test_answers_of_a_pilot_stay_those_of_a_pilot(tmp_path):
    from cranfield.formats.runs.jsonl import write_run
    from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
    from cranfield.systems.collect.collection import collect

    answer = Answer(Outcome.ANSWERED, (Hit("d1"),))
    for name, pilot in (("tried", True), ("kept", False)):
        write_run(Run(name, {"q1": answer}, depth=10, pilot=pilot), tmp_path / f"{name}.jsonl")
    testset = TestSet("t", (Query("q1", "a"),), {"q1": {"d1": 1}})
    for name, pilot in (("tried", True), ("kept", False)):
        system = RunFileSystem.of(name, folder=tmp_path, run=f"{name}.jsonl")
        assert collect(testset, system).pilot is pilot

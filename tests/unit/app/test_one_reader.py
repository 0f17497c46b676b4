"""A TREC run file gives the same values, or the same error, wherever it is read: every door, both readers.

The doors: scoring the file (C and Python), a system of kind `run`, a part of a fusion, `gate --run`, and the saved run
that `rescore` reads. Expected values are those of scoring the file by the Python reader, the specification.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from cranfield.app.evaluate import score
from cranfield.app.experiment import prepare
from cranfield.base.errors import CranfieldError, InputError, PreflightError, RunFormatError, TestSetError
from cranfield.compat import ir_measures, pytrec_eval
from cranfield.config import load_config
from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import MAX_LINE_BYTES
from cranfield.formats.runs.jsonl import read_run, write_run
from cranfield.formats.testsets.trec import read_qrels, read_subtopic_qrels
from cranfield.measures import parse
from cranfield.model import TestSet
from cranfield.ranking import c_reader
from cranfield.ranking.engine import ENGINE_VARIABLE
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.kinds.run_file import RunFileSystem

MARK = b"\xef\xbb\xbf"
QRELS = "q1 0 a 2\nq1 0 b 1\nq1 0 c 0\nq2 0 a 1\nq2 0 d 1\nq3 0 e 1\n"
RUN = b"".join(
    b"%s Q0 %s %d %s tag\n" % row
    for row in (
        (b"q1", b"b", 1, b"3.5"),
        (b"q1", b"a", 2, b"2.5"),
        (b"q1", b"x", 3, b"2.5"),
        (b"q2", b"y", 1, b"9"),
        (b"q2", b"d", 2, b"8e-1"),
        (b"q9", b"a", 1, b"1"),
        (b"q3", b"e", 1, b"1.00000001"),
        (b"q3", b"z", 2, b"1"),
    )
)
MEASURES = ["nDCG@10", "AP", "RR", "P@2", "R@1"]
CONFIG = """
testset: test.qrels
convention: {convention}
k: 50
measures: {measures}
systems:
  file: {{run: a.run}}
  other: {{run: other.run}}
  fused: {{fusion: {{of: [file, other], weights: {{other: 0}}, depth: 50}}}}
"""
Values = dict[str, list[float]] | str


def values(testset: TestSet, run: object, convention: str) -> Values:
    evaluation = score(
        testset,
        run,
        [parse(name) for name in MEASURES],
        ScoringOptions(convention=convention, missing="zero", depth=50),
    )
    return values_of(evaluation)


def values_of(evaluation: Evaluation) -> Values:
    return {str(measure): evaluation.values[measure].round(12).tolist() for measure in evaluation.measures}


def error_of(error: CranfieldError) -> str:
    return error.problems[0].message


def doors(folder: Path, convention: str, monkeypatch: pytest.MonkeyPatch, file: str = "a.run") -> dict[str, Values]:
    """What each door makes of a file: values, or the message of its first problem."""
    path, found = folder / file, {}
    text = CONFIG.format(convention=convention, measures=MEASURES).replace("a.run", file)
    (folder / "cranfield.yaml").write_text(text)
    config = load_config(folder / "cranfield.yaml")
    experiment = prepare(config, "", ["file", "fused"], cache="off")
    testset = experiment.testset
    for engine in ("python", "native") if c_reader.available() else ("python",):
        monkeypatch.setenv(ENGINE_VARIABLE, engine)
        try:
            found[engine] = values(testset, path, convention)
        except InputError as error:
            found[engine] = error_of(error)
    try:
        found["gate --run"] = values_of(experiment.evaluate(path))
    except InputError as error:
        found["gate --run"] = error_of(error)
    try:
        runs = experiment.collect()
    except PreflightError as error:
        got = str(error.problems[0].got)
        found["run"] = next((said for said in [found["python"]] if isinstance(said, str) and said in got), got)
        return found
    for name, run in runs.items():
        found[name] = values(testset, run, convention)
        write_run(run, folder / f"{name}.jsonl")
        found[f"rescore of {name}"] = values(testset, read_run(folder / f"{name}.jsonl"), convention)
    return found


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test.qrels").write_text(QRELS)
    (tmp_path / "other.run").write_bytes(RUN)
    return tmp_path


CASES = {
    "as it is": RUN,
    "mark": MARK + RUN,
    "two marks": MARK + MARK + RUN,
    "mark and comment": MARK + b"# made by x\n" + RUN,
    "lone CR": RUN.replace(b"\n", b"\r"),
    "CRLF": RUN.replace(b"\n", b"\r\n"),
    "one lone CR": RUN.replace(b"\n", b"\r", 1),
    "comment": b"# made by x\n" + RUN,
    "comment with blanks before": b" # made by x\n" + RUN,
    "duplicate": RUN + b"q1 Q0 a 9 9 tag\n",
    "duplicate of an unjudged query": RUN + b"q9 Q0 a 9 9 tag\n",
    "interleaved": RUN + b"q1 Q0 e 9 9 tag\nq2 Q0 a 9 9 tag\n",
    "blank lines": RUN.replace(b"\n", b"\n \n\n"),
    "NUL": RUN.replace(b"a", b"\0"),
    "UTF-16": RUN.decode().encode("utf-16"),
    "tabs": RUN.replace(b" ", b"\t"),
    "several tags": RUN.replace(b"tag", b"other", 3),
    "nan": RUN.replace(b"2.5", b"nan"),
    "infinite": RUN.replace(b"2.5", b"1e999"),
    "underscore": RUN.replace(b"2.5", b"2_5"),
    "unsorted": b"".join(reversed(RUN.splitlines(keepends=True))),
    "ranks from 0": b"".join(RUN.splitlines(keepends=True)).replace(b" 1 ", b" 0 "),
    "no ranks": RUN.replace(b" 1 ", b" - ").replace(b" 2 ", b" - "),
    "five columns": RUN.replace(b" tag", b"", 1),
    "seven columns": RUN.replace(b" tag", b" tag more", 1),
    "no query in common": RUN.replace(b"q", b"Q"),
    "not UTF-8": RUN.replace(b"x", b"\xff"),
    "empty": b"",
    "comments only": b"# nothing\n",
}


@pytest.mark.parametrize("name", CASES)
def test_every_door_reads_the_same(folder, name, monkeypatch):
    (folder / "a.run").write_bytes(CASES[name])
    found = doors(folder, "trec", monkeypatch)
    assert found == dict.fromkeys(found, found["python"])


ORDERS = ["trec9", "msmarco", "searchtweak", "octocode", "knowcode", "ir_measures"]
FEW = [("unsorted", "searchtweak"), ("duplicate", "knowcode"), ("as it is", "msmarco"), ("unsorted", "trec9")]
REST = [(name, order) for name in CASES for order in ORDERS if (name, order) not in FEW]


@pytest.mark.parametrize(
    ("name", "convention"), [*FEW, *(pytest.param(*case, marks=pytest.mark.slow) for case in REST)]
)
def test_every_door_orders_the_same(folder, name, convention, monkeypatch):
    (folder / "a.run").write_bytes(CASES[name])
    found = doors(folder, convention, monkeypatch)
    assert found == dict.fromkeys(found, found["python"])


FORMATS = {
    "table with ranks": (b"query_id,rank,doc_id,score\nq1,2,a,1\nq1,1,b,2\nq2,1,d,1\n", "a.csv"),
    "table of scores": (b"query_id,doc_id,score\nq1,a,1\nq1,b,1\nq1,a,3\nq2,d,1\n", "a.csv"),
    "collected": (
        (
            b'{"cranfield_run":1,"name":"x","order":"descending"}\n'
            b'{"query_id":"q1","outcome":"answered","hits":['
            b'{"id":"x","score":1},{"id":"a","score":2},{"id":"b","score":2}]}\n'
        ),
        "a.jsonl",
    ),
}


@pytest.mark.parametrize("mark", [b"", MARK], ids=["plain", "mark"])
@pytest.mark.parametrize("name", FORMATS)
def test_other_formats_read_the_same(folder, name, mark, monkeypatch):
    data, file = FORMATS[name]
    (folder / file).write_bytes(mark + data)
    found = doors(folder, "msmarco", monkeypatch, file)
    assert isinstance(found["python"], dict)
    assert found == dict.fromkeys(found, found["python"])


def test_a_parquet_table_reads_the_same(folder, monkeypatch):
    table = pa.table({"query_id": ["q1"] * 3, "doc_id": ["b", "a", "x"], "score": [1.0, 1.0, 1.0], "rank": [2, 1, 3]})
    parquet.write_table(table, folder / "a.parquet")
    for convention in ("msmarco", "searchtweak", "octocode"):
        found = doors(folder, convention, monkeypatch, "a.parquet")
        assert found == dict.fromkeys(found, found["python"])


@pytest.mark.parametrize("head", [MARK, b"# made by x\n", MARK + b"# made by x\n"])
def test_judgments_and_lines_of_other_tools_lose_nothing_to_a_mark_or_a_comment(tmp_path, head):
    qrels, run = tmp_path / "a.qrels", tmp_path / "a.run"
    qrels.write_bytes(head + QRELS.encode())
    run.write_bytes(head + RUN)
    first, *_ = ir_measures.read_trec_qrels(qrels)
    assert (first, len(list(ir_measures.read_trec_run(run)))) == (("q1", "a", 2, "0"), 8)
    assert read_qrels(qrels).grades["q1"] == {"a": 2, "b": 1, "c": 0}
    assert read_subtopic_qrels(qrels).grades["q1"] == {"a": 2, "b": 1, "c": 0}
    with run.open(encoding="utf-8") as lines:
        assert list(pytrec_eval.parse_run(lines)) == ["q1", "q2", "q9", "q3"]
    run.write_bytes(RUN.replace(b"\n", b"\r"))
    with pytest.raises(RunFormatError, match="lone carriage return"):
        list(ir_measures.read_trec_run(run))


def test_a_mark_loses_no_query(folder, monkeypatch):
    (folder / "a.run").write_bytes(MARK + RUN)
    found = doors(folder, "trec", monkeypatch)
    assert set(found) >= {"python", "file", "fused", "gate --run", "rescore of file"}
    assert found["file"]["RR"] == [1.0, 0.5, 1.0]


def test_random_changes_read_the_same(folder, monkeypatch, checkout):
    monkeypatch.syspath_prepend(checkout / "tests" / "fuzz")
    from mutate import mutate_bytes

    for number in range(8):
        draw = random.Random(number)
        (folder / "a.run").write_bytes(mutate_bytes(draw, RUN, (RUN,)))
        found = doors(folder, draw.choice(("trec", "searchtweak", "octocode")), monkeypatch)
        assert found == dict.fromkeys(found, found["python"]), number


def test_a_long_tag_is_shortened_wherever_it_is_a_name(folder):
    (folder / "a.run").write_bytes(RUN.replace(b"tag", b"t" * 10_000))
    evaluation = score(read_qrels(folder / "test.qrels"), folder / "a.run", [parse("RR")])
    assert evaluation.name == "t" * 99 + "…"


@pytest.mark.parametrize("read", [read_qrels, read_subtopic_qrels])
def test_a_long_line_of_judgments_is_an_error(tmp_path, read):
    (tmp_path / "a.qrels").write_bytes(b"q1 0 a 1\nq1 0 " + b"b" * MAX_LINE_BYTES + b" 1\n")
    with pytest.raises(TestSetError, match=r":2: the line is longer than 1048576 bytes\."):
        read(tmp_path / "a.qrels")


def test_no_parameter_of_a_call_is_proposed_for_a_config(tmp_path):
    path = tmp_path / "twice.run"
    path.write_text("q1 Q0 d1 1 2 t\nq1 Q0 d1 2 1 t\n")
    with pytest.raises(CheckFailedError) as caught:
        [check() for _, check in RunFileSystem.of("a", folder=tmp_path, run=path.name).ready_steps()]
    assert (caught.value.found, caught.value.hint) == ("line 2: query 'q1' lists document 'd1' twice", None)

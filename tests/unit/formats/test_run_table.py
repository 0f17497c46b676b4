"""Runs in a table of text."""

from pathlib import Path

import pytest

from cranfield import evaluate, write_run
from cranfield.base.errors import RunFormatError, UnknownNameError
from cranfield.formats.runs.table import read_run_table, write_run_table
from cranfield.formats.sniff import sniff_run
from cranfield.model import Answer, Hit, Outcome, Run
from cranfield.ranking.collected import read_run_file


def put(folder: Path, text: str, name: str = "run.tsv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_results_stand_in_the_order_of_their_ranks(tmp_path):
    path = put(
        tmp_path, "qid\trank\tpath\tstart_line\tend_line\tscore\n2\t2\tb\t1\t9\t8\n2\t1\ta\t3\t4\t7\n1\t5\tc\t1\t1\t\n"
    )
    run = read_run_table(path)
    assert sniff_run(path).name == "run-table"
    assert (run.name, run.order) == ("run", "given")
    assert run.answers == {
        "2": Answer(Outcome.ANSWERED, (Hit("a", 7.0, span="3-4"), Hit("b", 8.0, span="1-9"))),
        "1": Answer(Outcome.ANSWERED, (Hit("c", span="1-1"),)),
    }


def test_without_ranks_scores_order_them(tmp_path):
    path = put(tmp_path, "query_id,doc_id,score,title\nq,a,1,A\nq,b,2.5,\n", "run.csv")
    run = read_run_table(path)
    assert run.order == "descending"
    assert run.answers["q"].hits == (Hit("a", 1.0, "A"), Hit("b", 2.5))
    evaluation = evaluate({"q": {"b": 1}}, path, measures=["RR"])
    assert evaluation.value(evaluation.measures[0], "q") == 1.0


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        (
            "qid\trank\tpath\tstart_line\tend_line\tscore\n1\t1\ta\tx\t2\t1\n1\t1\tb\t1\t2\t1\n\tone\t\t1\t2\thigh\n",
            [
                "2:7: the start of the lines is not a whole number; expected the number of a line, got 'x'",
                "3:3: query '1' has two results of rank 1; the other is on line 2",
                "4:1: no query_id",
                "4:6: no doc_id",
                "4:11: the score is not a finite number",
                "4:2: the rank is not a whole number",
            ],
        ),
        (
            "query_id\tdoc_id\tscore\nq\td\tinf\n",
            ["2:5: the score is not a finite number; expected a number, got 'inf'"],
        ),
        ("query_id\tdoc_id\n", ["1: no column score; expected score or rank"]),
        ("query_id\tdoc_id\tscore\n", [" no result in this file"]),
    ],
)
def test_everything_that_is_wrong_is_told_at_once(tmp_path, text, complaints):
    with pytest.raises(RunFormatError) as caught:
        read_run_table(put(tmp_path, text))
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == len(complaints)
    for line, complaint in zip(found, complaints, strict=True):
        assert f"run.tsv:{complaint}" in line


def test_a_run_is_written_with_its_ranks(tmp_path):
    hits = (Hit("a", 1.0, "A", "1-2"), Hit("b", 2.5), Hit("c", 0.5))
    run = Run("run", {"q": Answer(Outcome.ANSWERED, hits), "none": Answer(Outcome.EMPTY)}, depth=2, order="descending")
    write_run_table(run, tmp_path / "run.csv")
    assert (tmp_path / "run.csv").read_text() == "query_id,rank,doc_id,span,score,title\nq,1,b,,2.5,\nq,2,a,1-2,1,A\n"
    assert read_run_table(tmp_path / "run.csv").answers["q"].hits == (Hit("b", 2.5), Hit("a", 1.0, "A", "1-2"))
    with pytest.raises(RunFormatError, match="has a result without a score"):
        write_run_table(Run("r", {"q": Answer(Outcome.ANSWERED, (Hit("a"),))}, order="ascending"), tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "format_name", "expected"),
    [
        ("a.jsonl", None, "jsonl"),
        ("a.run", None, "trec"),
        ("a.trec", None, "trec"),
        ("a.csv", None, "run-table"),
        ("a.tsv", None, "run-table"),
        ("a.dat", "trec", "trec"),
    ],
)
def test_a_run_is_written_in_the_format_of_its_name(tmp_path, name, format_name, expected):
    run = Run("a", {"q": Answer(Outcome.ANSWERED, (Hit("x", 1.0), Hit("b", 0.5)))})
    assert write_run(run, tmp_path / name, format_name) == ()
    assert sniff_run(tmp_path / name).name == expected
    assert [hit.id for hit in read_run_file(tmp_path / name).answers["q"].hits] == ["x", "b"]


def test_cells_of_a_written_run_that_a_spreadsheet_would_run_are_counted(tmp_path):
    run = Run("a", {"q": Answer(Outcome.ANSWERED, (Hit("=1+1", -1.0), Hit("@b", -2.0), Hit("c", -3.0)))})
    (note,) = write_run(run, tmp_path / "a.csv")
    assert note.startswith("2 cells would run as a formula in a spreadsheet")
    assert write_run(run, tmp_path / "a.jsonl") == ()


def test_a_run_is_not_written_in_a_format_that_is_unknown(tmp_path):
    run = Run("a", {"q": Answer(Outcome.EMPTY)})
    with pytest.raises(RunFormatError, match=r"the format cannot be derived from the file name.*\.run \(trec\)"):
        write_run(run, tmp_path / "a.dat")
    with pytest.raises(UnknownNameError, match="unknown written run format 'qrels'"):
        write_run(run, tmp_path / "a.run", "qrels")
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_a_million_columns_is_refused_at_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("query_id,doc_id,score" + ",x" * 100_000 + "\nq,d,1\n")
    with pytest.raises(RunFormatError, match=r":1: too many columns; expected at most 2000 columns, got '100003'"):
        read_run_file(path)

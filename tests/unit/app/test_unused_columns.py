"""Columns of runs that are not used are named on stderr, once a file, whatever the form of the table and the command."""

import subprocess

import polars as pl
import pytest
from typer.testing import CliRunner

from cranfield import evaluate
from cranfield.cli.main import command_line

QRELS = "q1 0 d1 1\nq2 0 d2 1\n"
FRAME = pl.DataFrame(
    {"qid": ["q1", "q2"], "docno": ["d1", "d3"], "score": [2.0, 1.0], "lang": ["de", "en"], "page": [1, 2]}
)
PLAIN = FRAME.drop("lang", "page")
NOTE = "not used: columns 'lang', 'page'"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text(QRELS)
    PLAIN.write_csv("plain.csv")
    return tmp_path


def write(frame, name):
    if name.endswith(".parquet"):
        frame.write_parquet(name)
    elif name.endswith(".xlsx"):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in (frame.columns, *frame.rows()):
            book.active.append(row)
        book.save(name)
    else:
        frame.write_csv(name, separator="\t" if name.endswith(".tsv") else ",")


@pytest.fixture
def notes_of(caplog):
    """Runs a command; the notes that it logs, which go to stderr where nothing else is set up."""

    def run(command, *args):
        caplog.clear()
        done = CliRunner().invoke(command_line(command), [command, *args], prog_name="cranfield")
        assert done.exit_code == 0, done.output
        return [record.getMessage() for record in caplog.records]

    return run


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.xlsx"])
@pytest.mark.parametrize("command", ["evaluate", "compare", "run"])
def test_columns_of_a_run_that_are_not_used_are_named_once_a_file(folder, notes_of, name, command):
    write(FRAME, name)
    runs = [name] if command == "evaluate" else [name, "plain.csv"]
    assert notes_of(command, "qrels.txt", *runs) == [f"note: {name}: {NOTE}"]


def test_the_note_goes_to_stderr(folder):
    write(FRAME, "a.csv")
    done = subprocess.run(["cranfield", "evaluate", "qrels.txt", "a.csv"], capture_output=True, text=True)
    assert f"note: a.csv: {NOTE}\n" in done.stderr


def test_a_column_of_ranks_that_are_no_numbers_is_not_used(folder, notes_of):
    write(PLAIN.with_columns(rank=pl.lit("first")), "a.parquet")
    assert notes_of("evaluate", "qrels.txt", "a.parquet") == ["note: a.parquet: not used: column 'rank'"]


def test_in_parts_the_same_columns_are_named(folder, notes_of):
    write(FRAME, "a.parquet")
    assert notes_of("evaluate", "qrels.txt", "a.parquet", "--memory", "1GB") == [f"note: a: {NOTE}"]


def test_each_call_on_a_frame_names_what_it_does_not_use(caplog):
    judged = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    for _ in range(2):
        caplog.clear()
        assert evaluate(judged, FRAME, measures="P@1").mean("P@1") == 0.5
        assert [record.getMessage() for record in caplog.records] == [f"note: run: {NOTE}"]
    caplog.clear()
    evaluate(judged, FRAME, measures="P@1", columns={"score": "page"})
    assert [record.getMessage() for record in caplog.records] == ["note: run: not used: columns 'score', 'lang'"]

"""`cranfield power` as people and scripts use it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line

N = 40


@pytest.fixture
def cranfield(tmp_path, monkeypatch):
    """Run the command in a folder with qrels and two runs; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 a 1\n" for n in range(N)))
    for seed, name in enumerate(("old", "new")):
        ranks = np.random.default_rng(seed).integers(1, 6, N)
        rows = [
            f"q{n} Q0 {'a' if rank == found else f'x{rank}'} {rank} {10 - rank} {name}\n"
            for n, found in enumerate(ranks)
            for rank in range(1, 6)
        ]
        (tmp_path / f"{name}.run").write_text("".join(rows))

    def run(*args):
        command = ["power", "qrels.txt", "old.run", "new.run", "-m", "RR", *args]
        done = CliRunner().invoke(command_line("power", "measures"), command, prog_name="cranfield")
        return done.exit_code, done.stdout, done.stderr

    return run


def test_it_says_what_these_queries_show_and_how_many_are_needed(cranfield):
    code, out, _ = cranfield()
    assert code == 0
    for words in (
        "new against old, RR, test set qrels",
        "Minimum detectable effect",
        "as many as here",
        "Queries required",
        "Observed power only restates the p-value",
        "Resampled check",
    ):
        assert words in out, words


def test_queries_that_are_never_judged_are_counted(cranfield):
    Path("other.qrels").write_text("".join(f"q{n} 0 a 1\n" for n in range(30)))
    code, out, _ = cranfield("--qrels", "other.qrels")
    assert code == 0
    assert "test set qrels, 40 queries (judgments of other: 30 judged, 10 never judged)" in " ".join(out.split())
    assert "queries on both sides        30," in out
    assert json.loads(cranfield("--qrels", "other.qrels", "--format", "json")[1])["testset"]["name"] == "qrels"


def test_void_evidence_ends_with_3(cranfield):
    Path("new.run").write_text(Path("new.run").read_text().replace("a", "A").replace("x", "X"))
    code, out, err = cranfield()
    assert code == 3
    assert err == "error: void: the scores of new do not count; see the report for the reason\n"
    assert " ".join(out.split()).count("new: no result of 40 queries is anything that the test set judges") == 1
    err = cranfield("--format", "json")[2]
    assert "error: void: new: no result of 40 queries is anything that the test set judges" in err
    found = json.loads(cranfield("--format", "json")[1])["evidence"]
    assert [finding["check"] for finding in found] == ["nothing-matched"]


def test_json_and_csv_hold_the_same_rows(cranfield):
    payload = json.loads(cranfield("--format", "json")[1])
    rows = list(csv.DictReader(io.StringIO(cranfield("--format", "csv")[1])))
    assert [float(row["difference"]) for row in rows] == [row["difference"] for row in payload["planned"]]
    assert [int(row["n"]) for row in rows] == [row["n"] for row in payload["planned"]]
    assert (payload["n"], payload["measure"], payload["baseline"]) == (N, "RR", "old")


def test_a_difference_and_a_number_of_queries_give_a_power(cranfield):
    payload = json.loads(cranfield("--difference", "0.1", "--n-queries", "100", "--format", "json")[1])
    (row,) = payload["planned"]
    assert (row["given"], row["difference"], row["n"]) == ("both", 0.1, 100)
    assert 0.05 < row["power"] < 1
    assert payload["trials"] == 1000


def test_a_page_can_be_written(cranfield, tmp_path):
    assert cranfield("--html", "power.html")[0] == 0
    assert "Queries required" in (tmp_path / "power.html").read_text()


def test_more_queries_than_can_be_are_said_so(cranfield):
    assert "more than 10,000,000" in cranfield("--difference", "0.0000001")[1]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--difference", "0"], "difference is 0"),
        (["--power", "1"], "power is 1"),
        (["--alpha", "0"], "alpha"),
        (["--difference", "nan"], "difference is nan"),
    ],
)
def test_what_cannot_be_is_refused(cranfield, args, words):
    code, out, err = cranfield(*args)
    assert (code, out) == (2, "")
    assert words in err


def test_the_fields_of_answers_are_no_option(cranfield):
    code, _, err = cranfield("--confusion", "routed=kind")
    assert code == 2
    assert "No such option" in err

"""`cranfield calibrate`: a table, or a test set and a run, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cranfield import Query, TestSet, write_testset
from cranfield.cli.main import command_line
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Answer, Hit, Outcome, Run


def called(*arguments: object) -> Any:
    return CliRunner().invoke(command_line("calibrate"), ["calibrate", *map(str, arguments)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    rows = [
        f"q{n},{score},{right},{'a' if n % 2 else 'b'}" for n, (score, right) in enumerate([(0.9, 1), (0.8, 0)] * 12)
    ]
    path.write_text("\n".join(["query_id,score,correct,area", *rows, "last,,1,a"]))
    return path


def test_every_form_of_the_report(table: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = called(table, "--html", page, "--full")
    assert text.exit_code == 0, text.output
    assert "VERDICT: over-confident" in text.stdout
    assert "Left out, no score: 1 query (last)." in text.stdout
    assert (
        "answer_correctness@0.8       0.5000 (12 of 24, 95 % CI 0.3143 to 0.6857)" in text.stdout
    )  # Wilson at 12 of 24
    assert page.read_text().count("<svg") >= 2
    record = json.loads(called(table, "--format", "json", "--by", "area", "--seed", 3).stdout)
    assert record["diagnosis"] == "over-confident"
    (found,) = record["calibrations"]
    assert found["group"]["findings"] == ["over-confident", "under-dispersed"]
    assert found["fit"] is None  # the score separates right from wrong answers
    assert found["group"]["evidence"]["slope"]["value"] > 0
    assert found["group"]["evidence"]["slope"]["p"] == 0.0001
    assert (found["kind"], found["group"]["n"], found["excluded"]) == ("as stated", 24, {"no score": ["last"]})
    assert [(each["stratum"], each["value"], each["group"]["n"]) for each in found["strata"]] == [
        ("area", "a", 12),
        ("area", "b", 12),
    ]
    assert [(each["low"], each["n"], each["share"]) for each in found["bins"]] == [(0.8, 12, 0.0), (0.9, 12, 1.0)]
    rows = called(table, "--format", "csv").stdout.splitlines()
    assert rows[0] == "correctness,query,score,correct,reason not counted"
    assert rows[-1] == "as stated,last,,true,no score"
    assert len(rows) == 26


def test_the_short_form_has_the_figures_and_what_is_not_counted(table: Path) -> None:
    lines = called(table).stdout.splitlines()
    assert lines[2] == "VERDICT: over-confident, under-dispersed"  # every .9 is right, and every .8 wrong
    # 12 of 24 are correct at a mean score of .85
    assert any(line.startswith("net bias ") and "+0.3500 (95 % CI " in line for line in lines)
    assert any(line.startswith("threshold advice ") for line in lines)
    assert "! left out, no score: 1 query (last)" in lines
    assert len(lines) <= 22


def test_a_score_that_knows_nothing_is_uninformative_in_every_form(tmp_path: Path) -> None:
    """200 scores from .45 to .95, of which 14 of 20 are right each: no net bias, and no order."""
    table, page = tmp_path / "flat.csv", tmp_path / "flat.html"
    rows = [f"q{n},{0.45 + n % 10 / 18:.4f},{int(n // 10 < 14)}" for n in range(200)]
    table.write_text("\n".join(["query_id,confidence,correct", *rows]))
    short, whole = called(table, "--html", page).stdout, called(table, "--full").stdout
    record = json.loads(called(table, "--format", "json").stdout)
    (found,) = record["calibrations"]
    group = found["group"]
    assert (record["diagnosis"], group["findings"]) == ("uninformative", ["uninformative"])
    assert found["fit"]["slope"] == pytest.approx(0, abs=1e-6)
    assert found["fit"]["slope_interval"][1] < 1
    assert found["brier_skill"] < 0
    assert group["evidence"]["slope"]["p"] == 0.0001
    assert group["evidence"]["spiegelhalter"]["p"] <= 0.05
    for text in (short, whole, page.read_text()):
        assert "uninformative" in text
        assert "does not significantly distinguish right from wrong answers" in " ".join(text.split())
        assert "can be read as a probability " not in " ".join(text.split())
    assert "\nslope within 0.5 to 2 " in whole
    for line in ("calibration slope", "Spiegelhalter's z", "AUROC"):
        assert f"\n{line} " in short
        assert f"\n{line} " in whole


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Four queries: right and confident, wrong and confident, a timeout, and one whose confidence is null."""
    ids = ["q1", "q2", "q3", "q4"]
    testset = TestSet("t", tuple(Query(one, f"text of {one}") for one in ids), {one: {"d": 1} for one in ids})
    write_testset(testset, tmp_path / "t.yaml")
    answers = {
        "q1": Answer(Outcome.ANSWERED, (Hit("d"),), fields={"sure": 0.9}),
        "q2": Answer(Outcome.ANSWERED, (Hit("x"),), fields={"sure": 0.8}),
        "q3": Answer(Outcome.TIMEOUT, reason="too slow"),
        "q4": Answer(Outcome.ANSWERED, (Hit("d"),), fields={"sure": None}),
    }
    write_run(Run("new", answers, depth=10), tmp_path / "run.jsonl")
    return tmp_path / "t.yaml", tmp_path / "run.jsonl"


def test_a_run_is_judged_by_a_measure_and_nothing_is_lost(files: tuple[Path, Path], tmp_path: Path) -> None:
    record = json.loads(called(*files, "--score", "sure", "--correct", "R@10 >= 0.5", "--format", "json").stdout)
    (found,) = record["calibrations"]
    assert (found["kind"], found["rule"]) == ("structural", "R@10 >= 0.5")
    assert found["excluded"] == {"failed, or has no answer": ["q3"], "no score": ["q4"]}
    assert (found["group"]["n"], found["group"]["right"]) == (2, 1)
    scored = tmp_path / "facts.jsonl"
    scored.write_text('{"query_id": "q1", "facts_correct": false}\n')
    both = json.loads(called(*files, "--score", "sure", "--answers", scored, "--format", "json").stdout)
    assert [(each["kind"], each["group"]["n"]) for each in both["calibrations"]] == [
        ("facts", 1),
        ("structural", 2),
    ]
    assert both["losses"] == {"n": 1, "n_retrieval": 0, "n_synthesis": 1, "is_synthesis": False}
    short = called(*files, "--score", "sure", "--answers", scored).stdout.splitlines()
    assert "Against correctness, structural: insufficient data" in short
    assert "1 of 1 answer lack facts: 1 with the right structure, 0 without" in short


@pytest.mark.parametrize("name", ["confidence", "sufficiency_score", "score"])
def test_the_usual_names_of_a_confidence_are_found_in_the_fields_of_a_run(files: tuple[Path, Path], name: str) -> None:
    testset, run = files
    run.write_text(run.read_text().replace('"sure"', f'"{name}"'))
    (found,) = json.loads(called(testset, run, "--format", "json").stdout)["calibrations"]
    assert (found["group"]["n"], found["group"]["right"]) == (2, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no answer has the field confidence, score or sufficiency_score; got fields sure"),
        (("--score", "sure", "--correct", "Sucess@5"), "unknown measure 'Sucess'"),
        (("--score", "sure", "--correctness", "facts"), "--correctness applies only to a table"),
        (("--score", "sure", "--threshold", "80"), "--threshold is 80; expected a number from 0 to 1"),
        (("--score", "sure", "--by", "area"), "unknown stratum 'area'"),
    ],
)
def test_a_mistake_is_an_error_with_its_next_step(
    files: tuple[Path, Path], options: tuple[str, ...], message: str
) -> None:
    result = called(*files, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_confidences_and_outcomes_of_two_files(tmp_path: Path) -> None:
    answers, scored = tmp_path / "answers.jsonl", tmp_path / "scored.csv"
    answers.write_text(
        '{"query_id": "q1", "text": "yes", "confidence": 0.9}\n{"query_id": "q2", "text": "no", "confidence": 0.4}\n'
    )
    scored.write_text("query_id,answered,structure_correct,facts_correct\nq1,true,true,false\nq2,true,true,\n")
    record = json.loads(called(answers, "--answers", scored, "--format", "json").stdout)
    counts = [(each["kind"], each["group"]["n"], each["group"]["right"]) for each in record["calibrations"]]
    assert counts == [("facts", 1, 0), ("structural", 2, 2)]
    assert record["calibrations"][0]["excluded"] == {"correctness not known": ["q2"]}
    alone = called(answers)
    assert (alone.exit_code, "no column for the correctness" in alone.stderr) == (2, True)

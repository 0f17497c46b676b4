"""Floors of a call: `run` on a test set and a command without a config, and `evaluate` on runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cranfield.base.errors import UsageError
from cranfield.cli.main import command_line
from cranfield.gate.use_cases.floors import parse_floors

QUERIES = "query,pattern,difficulty\ngrid layout,^d1$,easy\nwires,^d4$,easy\nrose garden,^d5$,hard\n"
SEARCH = '#!/bin/sh\ncase "$1" in\n grid*) echo d1; echo d2;;\n wires*) echo d2; echo d4;;\n *) echo d3;;\nesac\n'
"""The expected result is at rank 1, at rank 2, and missing: Hit@5 is 2/3; easy: 1, hard: 0. RR is (1 + 1/2 + 0) / 3 = 0.5."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code.csv").write_text(QUERIES)
    (tmp_path / "search").write_text(SEARCH)
    (tmp_path / "search").chmod(0o755)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d4 1\nq3 0 d5 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 1 a\nq2 Q0 d2 1 2 a\nq2 Q0 d4 2 1 a\nq3 Q0 d3 1 1 a\n")
    return tmp_path


def cranfield(command, *args):
    done = CliRunner().invoke(command_line(command), [command, *args], prog_name="cranfield")
    return done.exit_code, done.stdout, done.stderr


def test_a_test_set_and_a_command_need_no_config(folder):
    code, out, err = cranfield("run", "code.csv", "./search {query}", "-m", "Hit@5", "--floor", "Hit@5=0.70")
    assert code == 1, err
    assert "floor broken: search: Hit@5 is 0.6667, at least 0.70 is required (n = 3)" in err
    assert "0.6667" in out
    assert not (folder / "cranfield.yaml").exists()
    code, _, err = cranfield("run", "code.csv", "./search {query}", "-m", "Hit@5", "--floor", "Hit@5=0.66")
    assert (code, "floor kept" in err) == (0, True)


def test_the_first_measure_of_the_call_is_the_primary_one_without_a_config(folder):
    _, out, err = cranfield("run", "code.csv", "./search {query}", "old=./search {query}", "-m", "RR", "-m", "P@1")
    assert "nDCG" not in out + err
    assert "0.5000" in out, "RR is (1 + 1/2 + 0) / 3"


def test_floors_of_evaluate_decide_its_exit_code_whatever_is_printed(folder):
    for extra in ((), ("--format", "json")):
        run = ("evaluate", "qrels.txt", "a.run", "-m", "RR", *extra)
        code, _, err = cranfield(*run, "--floor", "Hit@5=0.6", "--floor", "RR=0.51")
        assert code == 1
        assert err.splitlines()[-2:] == [
            "floor kept: a: Hit@5 is 0.6667, at least 0.6 is required (n = 3)",
            "floor broken: a: RR is 0.5000, at least 0.51 is required (n = 3)",
        ]
        assert cranfield(*run, "--floor", "RR=0.5")[0] == 0, "exactly the bound keeps it"


def test_a_floor_of_a_stratum_is_of_each_value_or_of_one(folder):
    run = ("run", "code.csv", "./search {query}", "-m", "Hit@5", "--floor")
    code, _, err = cranfield(*run, "Hit@5=0.5:difficulty")
    assert (code, "difficulty: hard" in err) == (1, True), err
    assert cranfield(*run, "Hit@5=1:difficulty=easy")[0] == 0


FLOORS = ("--floor", "Hit@5=0.66", "--floor", "RR=0.51")
ROWS = [
    ("passed", "Hit@5 is at least 0.66", "0.6667"),
    ("failed", "RR is at least 0.51", "0.5000"),
]


def records_of(*systems):
    return [
        (system, "floor", rule, status, got, rule.partition(" is ")[2])
        for system in systems
        for status, rule, got in ROWS
    ]


def read_records(payload):
    keys = ("system", "kind", "rule", "status", "got", "expected")
    return [tuple(record[key] for key in keys) for record in payload["floors"]]


@pytest.mark.parametrize(
    ("arguments", "systems"),
    [
        (("evaluate", "qrels.txt", "a.run"), ["a"]),
        (("run", "code.csv", "./search {query}"), ["search"]),
        (("run", "code.csv", "old=./search {query}", "new=./search {query}"), ["old", "new"]),
        (("run", "code.csv", *(f"{name}=./search {{query}}" for name in "abc")), ["a", "b", "c"]),
    ],
    ids=["evaluate", "one system", "two systems", "three systems"],
)
def test_floors_of_a_call_are_in_its_reports_and_records(folder, arguments, systems):
    measures = ("-m", "P@1")
    code, out, _ = cranfield(*arguments, *measures, *FLOORS, "--format", "json", "--html", "page.html")
    assert code == 1
    assert read_records(json.loads(out)) == records_of(*systems)
    sentence = "RR is 0.5000, at least 0.51 is required (n = 3)"
    assert json.loads(out)["floors"][1]["sentence"] == sentence
    page = (folder / "page.html").read_text()
    assert "Floors of this call" in page
    named = [f"{systems[0]}: {ROWS[1][1]}" if len(systems) > 1 else ROWS[1][1]]
    assert named[0] in page
    if arguments[0] == "run":
        assert read_records(json.loads((folder / "cranfield-out" / "results.json").read_text())) == records_of(*systems)
        for name in ("report.html", "report.md"):
            assert named[0] in (folder / "cranfield-out" / name).read_text()
        arguments = (*arguments, "--out", "other")
    for form in ("text", "markdown"):
        for extra in ((), ("--full",)):
            _, out, _ = cranfield(*arguments, *measures, *FLOORS, "--format", form, *extra)
            rows = [line.replace("|", " ").split() for line in out.splitlines()]
            for status, rule, got in ROWS:
                name = f"{systems[0]}: " if len(systems) > 1 else ""
                assert [status, *f"{name}{rule}".split(), got] in rows, out


def test_without_floors_nothing_speaks_of_them(folder):
    code, out, err = cranfield("evaluate", "qrels.txt", "a.run", "--format", "json")
    assert code == 0
    assert "floor" not in out.lower() + err.lower()


def test_floors_of_several_test_sets_stand_in_the_summary_and_in_the_record_of_each(folder):
    (folder / "cranfield.yaml").write_text(
        "testsets:\n  one: {path: qrels.txt}\n  two: {path: qrels.txt}\nmeasures: [P@1]\nsystems:\n  a: {run: a.run}\n"
    )
    code, out, err = cranfield("run", *FLOORS, "--format", "json")
    assert (code, "floor broken: two: a: RR is 0.5000" in err) == (1, True), err
    sets = json.loads(out)["testsets"]
    assert [read_records(each) for each in sets.values()] == [records_of("a"), records_of("a")]
    assert "two: a: RR is at least 0.51" in (folder / "cranfield-out" / "report.md").read_text()


@pytest.mark.parametrize("name", ["code.csv", "qrels.txt", "set.yaml"])
def test_a_test_set_alone_is_told_that_a_system_is_missing(folder, name):
    (folder / "set.yaml").write_text(
        "cranfield_testset: 1\nname: s\nqueries: [{id: q1, text: a, judgments: {d1: 1}}]\n"
    )
    code, _, err = cranfield("run", name, "-m", "Hit@5")
    assert code == 2
    assert f"error: {name}: a test set without a system; expected a config; or a test set and its systems." in err
    assert f"Hint: cranfield run {name} './search {{query}}'; a system is" in err
    assert len(err.splitlines()) == 2


def test_a_config_with_mistakes_is_told_its_mistakes(folder):
    (folder / "cranfield.yaml").write_text("testset: qrels.txt\nsystem: {a: {run: a.run}}\n")
    code, _, err = cranfield("run")
    assert code == 2
    assert "unknown key 'system'" in err
    assert "without a system" not in err


def test_a_floor_that_cannot_be_checked_is_refused_before_a_query_is_sent(folder):
    code, _, err = cranfield("run", "code.csv", "./search {query}", "--floor", "Hit@5=0.5:area")
    assert code == 2
    assert "--floor: unknown stratum 'area'" in err
    assert not (folder / "cranfield-out").exists()
    assert cranfield("evaluate", "qrels.txt", "a.run", "--floor", "Hit@5=0.5:area")[0] == 2


def test_a_floor_above_the_largest_value_is_refused_before_a_query_is_sent(folder):
    code, _, err = cranfield("run", "code.csv", "./search {query}", "--floor", "Hit@5=70")
    assert code == 2
    assert "--floor Hit@5=70: 70 is above the largest value of Hit@5, 1.\nHint: 0.70?" in err
    assert not (folder / "cranfield-out").exists()
    assert parse_floors(["DCG@10=70"]).measures == ("DCG@10",)


def test_every_floor_that_is_none_is_named():
    with pytest.raises(UsageError) as caught:
        parse_floors(["Hit@5", "Hitt@5=1", "P(rel=2)@5=0.5:kind=a"])
    assert [str(problem.path) for problem in caught.value.problems] == ["--floor Hit@5", "--floor Hitt@5=1"]
    assert (
        caught.value.problems[0].expected
        == "MEASURE=BOUND, such as Hit@5=0.70, Hit@5=0.60:difficulty or Hit@5=0.60:difficulty=hard"
    )


def test_files_and_systems_without_judgments_are_no_comparison(folder):
    code, _, err = cranfield("run", "a.run", "./search {query}")
    assert code == 2
    assert "no test set with judgments" in err or "no texts" in err


def test_measures_of_the_call_replace_those_of_the_config_and_not_the_primary_one(folder):
    (folder / "cranfield.yaml").write_text(
        "testset: qrels.txt\nmeasures: [P@1]\nprimary: RR\nsystems:\n  a: {run: a.run}\n"
    )
    code, out, err = cranfield("run", "-m", "Success@5", "--format", "csv")
    assert code == 0, err
    assert "P@1" not in out
    assert "Success@5" in out
    assert ",RR," in out


def test_after_a_split_the_evaluated_part_is_scored_by_run_evaluate_and_gate(tmp_path, monkeypatch):
    """q1 and q3 are evaluated, q2 is held out: P@1 is (1 + 0) / 2 = 0.5; with all three it is (1 + 1 + 0) / 3."""
    monkeypatch.chdir(tmp_path)
    queries = "".join(f"  - {{id: q{n}, text: word{n}, judgments: {{d{n}: 1}}}}\n" for n in (1, 2, 3))
    (tmp_path / "set.yaml").write_text(
        "cranfield_testset: 1\nname: golden\nmeta: {split: {seed: 0, share: 0.33, held_out: [q2]}}\nqueries:\n"
        + queries
    )
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 1 a\nq2 Q0 d2 1 1 a\nq3 Q0 d9 1 1 a\n")
    (tmp_path / "cranfield.yaml").write_text(
        "testset: set.yaml\nmeasures: [P@1]\nsystems:\n  a: {run: a.run}\n"
        "gate: {rules: [{floor: {measure: P@1, at_least: 0.6}}]}\n"
    )
    scored = ("evaluate", "set.yaml", "a.run", "-m", "P@1"), ("run",)
    for command, *rest in scored:
        code, out, err = cranfield(command, *rest)
        assert code == 0, err
        assert "golden (evaluated), 2 queries" in out
        assert "0.5000" in out
        _, every, _ = cranfield(command, *rest, "--part", "all")
        assert "golden, 3 queries" in every
        assert "0.6667" in every
    assert "only the evaluated part of the stored split: 2 of 3 queries" in cranfield("run", "--full")[1]
    assert cranfield("gate")[0] == 1, "0.5 is below 0.6"
    assert cranfield("gate", "--part", "all")[0] == 0, "2/3 is not"


def test_a_quiet_run_has_no_line_of_progress(folder):
    for words, is_shown in ((), True), (("--quiet",), False), ((), True):
        code, _, err = cranfield("run", "code.csv", "./search {query}", *words)
        assert code == 0, err
        assert ("[3/3]" in err) is is_shown
        assert "[1/3]" not in err, "one line at the end, and none before it in the first ten seconds"


def test_a_pattern_of_runs_does_not_take_their_logs(folder):
    assert cranfield("run", "code.csv", "one=./search {query}", "two=./search {query}")[0] == 0
    runs = sorted(str(path) for path in (folder / "cranfield-out" / "runs").glob("*.jsonl"))
    assert [run.rpartition("/")[2] for run in runs] == ["one.jsonl", "one.log.jsonl", "two.jsonl", "two.log.jsonl"]
    for command in ("evaluate", "compare"):
        code, out, err = cranfield(command, "code.csv", *runs, "-m", "P@1")
        assert code == 0, err
        assert "one" in out
        assert "two" in out


def test_without_floors_nothing_that_judges_them_is_imported(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 1 a\n")
    program = (
        "import sys\nfrom cranfield.cli.main import command_line, requested_command\n"
        "words = ['evaluate', 'qrels.txt', 'a.run']\n"
        "command_line(*requested_command(words))(words, standalone_mode=False)\n"
        "print(sorted({'pydantic', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

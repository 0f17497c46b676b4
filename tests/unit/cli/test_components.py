"""`cranfield components` and `cranfield grid`: exit codes, and what goes to which stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line

TESTSET = "cranfield_testset: 1\nname: t\nqueries:\n" + "".join(
    f"  - {{id: q{i}, text: w{i}, judgments: {{w{i}: 1}}}}\n" for i in range(12)
)
SEARCH = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    boost = float(asked["params"].get("boost", 0))
    right, wrong = {"id": asked["query"], "score": boost}, {"id": "zzz", "score": 0.5}
    if sys.argv[1] == "broken":
        print("no JSON", flush=True)
    else:
        ranked = sorted([right, wrong], key=lambda hit: -hit["score"])
        print(json.dumps({"hits": ranked if sys.argv[1] == "good" else [wrong]}), flush=True)
"""
CONFIG = """\
testset: queries.yaml
measures: [RR]
baseline: good
candidate: bad
systems:
  good: {lines: ["{python}", -I, -S, search.py, good]}
  bad: {lines: ["{python}", -I, -S, search.py, bad]}
  broken: {lines: ["{python}", -I, -S, search.py, broken]}
  mix: {fusion: {of: [good, bad]}}
  sick: {fusion: {of: [good, broken]}}
grid: {system: good, over: {params.boost: [0, 1]}, held_out: 0.5}
"""


@pytest.fixture
def cranfield(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "queries.yaml").write_text(TESTSET)
    (tmp_path / "search.py").write_text(SEARCH)
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str):
        return CliRunner().invoke(command_line(arguments[0]), list(arguments))

    return call


def test_components_are_printed_and_written(cranfield, tmp_path: Path) -> None:
    done = cranfield("components", "mix", "--out", "here", "--pilot")
    assert done.exit_code == 0, done.stderr
    # RRF: the right document is first in one list alone, 1/61; "zzz" is second there and first in the other.
    assert "What does each component of mix contribute?" in done.stdout
    assert "PILOT: not for the record" in done.stdout
    assert len(done.stdout.splitlines()) <= 20, "the short form fits on a screen"
    assert "--full prints everything" in done.stdout
    assert [line for line in done.stderr.splitlines() if line.startswith("wrote")] == [
        "wrote results.json, report.html, report.md in here",
    ]
    results = json.loads((tmp_path / "here/results.json").read_text())
    assert [(one["component"], one["alone_summary"]["mean"]) for one in results["components"]] == [
        ("good", 0.5),
        ("bad", 0.0),
    ]
    assert len(results["queries"]) == 12


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("components", "sick"), 3),
        (("components", "good"), 2),
        (("components", "nobody"), 2),
        (("grid", "none.yaml"), 2),
    ],
    ids=["broken", "no components", "unknown", "no config"],
)
def test_what_cannot_be_said_has_its_exit_code(cranfield, arguments, code: int) -> None:
    assert cranfield(*arguments).exit_code == code


def test_a_grid_prints_its_winner_and_leaves_as_the_verdict_says(cranfield) -> None:
    done = cranfield("grid", "--format", "json")
    assert done.exit_code == 0, done.stderr
    payload = json.loads(done.stdout)
    # With boost 1 the right document is first on every query, without it second: 0.5 to 1 on six held-out queries.
    assert [(point["settings"], point["tuning_mean"], point["held_out_mean"]) for point in payload["points"]] == [
        ({"params.boost": 1}, 1.0, 1.0),
        ({"params.boost": 0}, 0.5, 0.5),
        ({}, 0.5, 0.5),
    ]
    assert payload["optimism"] == 0.0
    assert payload["comparison"]["verdict"] == "better"
    assert cranfield("grid", "--fail-on", "better").exit_code == 1
    assert cranfield("grid", "--fail-on", "worse").exit_code == 0
    as_csv = cranfield("grid", "--format", "csv").stdout.splitlines()
    assert as_csv[0] == "point,params.boost,measure,part,mean,n,winner,as written,not chosen because"
    assert len(as_csv) == 1 + 3 * 2

"""`cranfield gate` and `cranfield baseline`: exit codes that no format switches off, and what is printed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.command import call

HOSTILE = "<img src=x> | @everyone [a](http://b) `c` \x1b[31m"
CONFIG = """\
testset: queries.yaml
measures: [Success@5, RR]
gate:
  rules:
    - {rule}
systems:
  new: {{run: new.run}}
"""


def project(folder: Path, rule: str, right: int = 70) -> Path:
    """A hundred queries, of which so many find their document."""
    lines = ["cranfield_testset: 1", "name: hundred", "queries:"]
    results = []
    for number in range(100):
        text = json.dumps(HOSTILE if number == 99 else f"question {number}")
        lines.append(f"  - {{id: q{number:02}, text: {text}, judgments: {{d: 1}}}}")
        results.append(f"q{number:02} Q0 {'d' if number < right else 'x'} 1 9 s")
    (folder / "queries.yaml").write_text("\n".join(lines) + "\n")
    (folder / "new.run").write_text("\n".join(results) + "\n")
    (folder / "cranfield.yaml").write_text(CONFIG.format(rule=rule))
    return folder


def cranfield(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return call(*arguments, folder=folder, **environ)


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
@pytest.mark.parametrize(("right", "code"), [(70, 0), (69, 1)])
def test_a_hit_rate_under_070_exits_with_1_in_every_format(tmp_path: Path, form: str, right: int, code: int) -> None:
    project(tmp_path, "floor: {measure: Success@5, at_least: 0.70}", right)
    done = cranfield(tmp_path, "gate", "--format", form)
    assert done.returncode == code, done.stderr
    assert ("passed" if right == 70 else "failed") in done.stdout


def test_the_baseline_is_shown_as_itself_and_its_change_as_an_update(tmp_path: Path) -> None:
    project(tmp_path, "drop: {measure: Success@5, at_most: 5 %}")
    assert cranfield(tmp_path, "baseline", "accept").stdout.startswith("Baseline update\n")
    assert cranfield(tmp_path, "baseline", "show").stdout.startswith("Baseline\n========\n")


def test_json_says_what_was_compared(tmp_path: Path) -> None:
    project(tmp_path, "floor: {measure: Success@5, at_least: 0.70}", 69)
    found = json.loads(cranfield(tmp_path, "gate", "--format", "json").stdout)
    assert (found["status"], found["kind"]) == ("failed", "gate")
    (rule,) = found["gates"][0]["rules"]
    assert (rule["kind"], rule["status"], rule["got"], rule["expected"]) == (
        "floor",
        "failed",
        "0.6900",
        "at least 0.70",
    )
    assert json.loads((tmp_path / "cranfield-gate" / "gate.json").read_text()) == found


def test_what_the_interval_cannot_tell_exits_with_4_and_broken_limits_with_3(tmp_path: Path) -> None:
    project(tmp_path, "drop: {measure: Success@5, at_most: 0.05, significant: true}")
    assert cranfield(tmp_path, "baseline", "accept").returncode == 0
    project(tmp_path, "drop: {measure: Success@5, at_most: 0.05, significant: true}", 62)
    done = cranfield(tmp_path, "gate")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "inconclusive" in done.stdout
    project(tmp_path, "floor: {measure: RR, at_least: 0}")
    lines = (tmp_path / "new.run").read_text().splitlines()
    (tmp_path / "new.run").write_text("\n".join(lines[:89]) + "\n")
    done = cranfield(tmp_path, "gate", "--run", "new.run")
    assert done.returncode == 3, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gate", "none.yaml"], "none.yaml"),
        (["gate"], "no baseline found"),
        (["gate", "--baseline-ref", "origin/main"], "requires a git repository"),
        (["gate", "--from", "nowhere"], "error:"),
        (["gate", "--markdown", "report.html"], ".md"),
        (["baseline", "show"], "no baseline found"),
    ],
)
def test_what_cannot_be_used_exits_with_2_and_no_traceback(tmp_path: Path, arguments: list[str], said: str) -> None:
    project(tmp_path, "drop: {measure: RR, at_most: 5 %}")
    done = cranfield(tmp_path, *arguments, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pull_requests_report_has_its_verdict_first_and_nothing_that_is_obeyed(tmp_path: Path) -> None:
    project(tmp_path, "drop: {measure: RR, at_most: 5 %}", 100)
    cranfield(tmp_path, "baseline", "accept")
    project(tmp_path, "drop: {measure: RR, at_most: 5 %}", 60)
    done = cranfield(tmp_path, "gate", "--markdown", "report.md", "--junit", "gate.xml")
    assert done.returncode == 1
    report = (tmp_path / "report.md").read_text()
    lines = report.splitlines()
    stored = "100 of 100 answers are from an earlier call; the time is not known."  # the system is a run file
    assert lines[2] == f"> **Verdict: failed.** 1 of 1 rule broken. {stored}"
    assert "RR was 1.0000 and is 0.6000: \u221240.0 %; a drop of at most 5 % is allowed (n = 100)" in lines[3]
    assert "<details open>" in report
    assert "<img" not in report
    assert "![" not in report
    assert "\\[a\\](http:\u200b//b)" in report
    assert "\x1b" not in report
    assert "| RR | 1.0000 | 0.6000 | \u22120.4000 |" in report
    root = ET.fromstring((tmp_path / "gate.xml").read_text())
    assert root.attrib["failures"] != "0"


def test_the_steps_summary_is_the_report(tmp_path: Path) -> None:
    project(tmp_path, "floor: {measure: RR, at_least: 0}")
    done = cranfield(tmp_path, "gate", "--step-summary", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert done.returncode == 0, done.stderr
    assert "**Verdict: passed.**" in (tmp_path / "summary.md").read_text()


def test_a_baseline_is_shown_as_it_was_accepted(tmp_path: Path) -> None:
    project(tmp_path, "drop: {measure: RR, at_most: 5 %}")
    done = cranfield(tmp_path, "baseline", "accept", "--reason", "the first", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "nothing was written" in done.stderr
    assert not (tmp_path / "cranfield-baseline.json").exists()
    cranfield(tmp_path, "baseline", "accept", "--reason", "the first")
    shown = cranfield(tmp_path, "baseline", "show").stdout
    assert "the first" in shown
    assert "0.7000" in shown


def test_without_a_baseline_there_are_no_columns_for_one(tmp_path: Path) -> None:
    project(tmp_path, "floor: {measure: Success@5, at_least: 0.70}", 69)
    report = cranfield(tmp_path, "gate", "--full").stdout
    measures = report.partition("Measures\n")[2]
    assert [line.split() for line in measures.splitlines() if line.startswith(("measure ", "Success@5 "))] == [
        ["measure", "current", "n"],
        ["Success@5", "0.6900", "100"],
    ]
    assert "–" not in measures
    assert "What changed" not in report


def test_the_first_baseline_is_not_compared_with_nothing(tmp_path: Path) -> None:
    project(tmp_path, "floor: {measure: Success@5, at_least: 0.70}")
    first = cranfield(tmp_path, "baseline", "accept", "--reason", "first").stdout
    again = cranfield(tmp_path, "baseline", "accept", "--reason", "second").stdout
    assert "Means of the new baseline:" in first
    assert "new\n---" not in first
    assert "current              new" in again


def test_an_option_of_other_tools_names_the_command_that_writes_the_baseline(tmp_path: Path) -> None:
    project(tmp_path, "drop: {measure: Success@5, at_most: 5 %}")
    assert cranfield(tmp_path, "baseline", "accept").returncode == 0
    before = (tmp_path / "cranfield-baseline.json").read_bytes()
    project(tmp_path, "drop: {measure: Success@5, at_most: 5 %}", right=50)
    (tmp_path / "cranfield.yaml").write_text(
        (tmp_path / "cranfield.yaml")
        .read_text()
        .replace("{run: new.run}", "{command: [sh, -c, 'echo d1; echo $0', '{query}'], extract: {regex: 'd'}}")
    )
    assert cranfield(tmp_path, "gate").returncode == 0
    refused = cranfield(tmp_path, "gate", "--update-baseline")
    assert refused.returncode == 2
    assert "no option --update-baseline" in refused.stderr
    assert (tmp_path / "cranfield-baseline.json").read_bytes() == before
    named = refused.stderr.partition("It takes the same answers: cranfield ")[2].strip().rstrip(".").split()
    done = cranfield(tmp_path, *named)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cranfield-baseline.json").read_bytes() != before


def test_the_report_lists_the_queries_that_changed_either_way_with_their_first_results(tmp_path: Path) -> None:
    config = project(tmp_path, "drop: {measure: RR, at_most: 50 %}", right=70) / "cranfield.yaml"
    config.write_text(config.read_text().replace("[Success@5, RR]", "[RR]"))
    assert cranfield(tmp_path, "baseline", "accept").returncode == 0
    lines = (tmp_path / "new.run").read_text().splitlines()
    lines[0] = "q00 Q0 x 1 9 s\nq00 Q0 d 2 8 s"  # worse: from rank 1 to rank 2
    lines[80] = "q80 Q0 d 1 9 s"  # better: not found before
    (tmp_path / "new.run").write_text("\n".join(lines) + "\n")
    assert cranfield(tmp_path, "gate", "--markdown", "gate.md").returncode == 0
    (found,) = json.loads((tmp_path / "cranfield-gate" / "gate.json").read_text())["gates"]
    (worse,), (better,) = found["worse"], found["better"]
    assert (worse["query_id"], worse["baseline"], worse["current"]) == ("q00", 1.0, 0.5)
    assert [(hit["rank"], hit["id"], hit["grade"]) for hit in worse["results"]] == [(1, "x", "unjudged"), (2, "d", "1")]
    assert (better["query_id"], better["baseline"], better["current"]) == ("q80", 0.0, 1.0)
    report = (tmp_path / "gate.md").read_text()
    assert "<summary>1 query better</summary>" in report
    assert (
        "| `q00` | question 0 | 1 | unjudged | x |\n|  |  | 2 | 1 | d |\n| `q80` | question 80 | 1 | 1 | d |" in report
    )

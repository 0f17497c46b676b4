"""What a broken or dishonest setup can do to an experiment, and the first sentence that its reader sees."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # whole experiments over two protocols: some ten seconds each

ALL = "108"
"""Cells of an arm."""
FIRST = {
    "silent": rf"No verdict: no result of the tool had content in {ALL} of {ALL} cells of treatment \(beacon-0\.1\) that called it: of \d+ results \d+ empty\.",
    "failing": rf"No verdict: no result of the tool had content in {ALL} of {ALL} cells of treatment \(beacon-0\.1\) that called it: of \d+ results \d+ reading as an error\.",
    "same": r"Caution: \d+ of \d+ results of the tool in treatment \(beacon-0\.1\) are the same for different tasks \(100%; the plan allows 20%\)\.",
    "foreign": r"Caution: (\d+) of \1 results of the tool in treatment \(beacon-0\.1\) show no line and name no file of the repository \(100%; the plan allows 50%\)\.",
    "telling": r"Caution: in (\d+) of \1 successes of treatment \(beacon-0\.1\) no gold line was read, from the repository or from a result, so the answers seem to come from elsewhere \(the plan allows 20%\)\.",
    "moved": r"No verdict: beacon of treatment \(beacon-0\.1\) changed during the run\.",
}
"""Way of the tool to the beginning of the sentence."""


def first_sentence(example: Any, run: Any) -> str:
    """Of the report, as text."""
    text = example.call("benefit", "report", run, "--full").stdout
    found = re.search(r"^VERDICT: .*\n((?:.+\n)+)", text, re.MULTILINE)
    assert found, text
    return " ".join(found[1].split())


@pytest.mark.parametrize("way", FIRST)
def test_the_first_sentence_says_what_the_evidence_is_worth(example: Any, way: str) -> None:
    run = example.run(example.plan(way))
    result = example.result(run)
    assert re.match(FIRST[way], first_sentence(example, run))
    is_void = FIRST[way].startswith("No verdict")
    assert {row["verdict"] == "void" for row in result["strata"]} == {is_void}
    file = max((example.place / "results").glob("benefit_v*.json"))
    gate = example.call("benefit", "gate", file)
    assert gate.returncode != 0
    delivered = result["delivered"]["treatment"]
    assert json.loads(json.dumps(delivered))["n"] > 0


def test_an_index_of_another_commit_runs_no_cell(example: Any) -> None:
    refused = example.call("benefit", "run", example.plan("stale"), "--out", example.place / "runs")
    assert refused.returncode == 3
    assert "it serves the commit '0000" in refused.stderr
    assert example.call("benefit", "check", example.plan("stale")).returncode == 3


def test_uncommitted_changes_are_refused_or_stand_first(example: Any) -> None:
    """Three lines of comment move the gold lines of a file, and with them what a tool that reads the folder finds."""
    plan = example.plan()
    file = example.place / "harbour" / "src" / "ferry" / "berths.py"
    file = file if file.exists() else min((example.place / "harbour" / "src").rglob("*.py"))
    file.write_text("# one\n# two\n# three\n" + file.read_text())
    refused = example.call("benefit", "run", plan, "--out", example.place / "runs")
    assert refused.returncode == 2
    assert "ncommitted changes" in refused.stderr
    assert file.name in refused.stderr
    assert not (example.place / "runs").exists()
    ran = example.call("benefit", "run", plan, "--out", example.place / "runs", "--allow-dirty")
    assert ran.returncode == 0, ran.stderr
    (run,) = (example.place / "runs").iterdir()
    example.result(run)
    assert re.match(r"Caution: Uncommitted changes: 1 file differs from commit ", first_sentence(example, run))
    gate = example.call("benefit", "gate", max((example.place / "results").glob("benefit_v*.json")))
    assert gate.returncode != 0
    assert "inconclusive: the code is that of a commit" in gate.stdout


def test_garbled_replies_change_no_verdict(example: Any) -> None:
    answered, n_asked = example.server.script, itertools.count()

    def garbles(body: dict[str, Any]) -> Any:
        reply = answered(body)
        return dataclasses.replace(reply, raw=b"<html>Bad gateway</html>") if next(n_asked) % 10 == 9 else reply

    example.server.script = garbles
    run = example.run(example.plan())
    result = example.result(run)
    assert not [each for each in result["validity"] if each["is_void"] and each["kind"] != "unmeasured_tokens"]
    assert re.match(r"Of 3 strata: ", first_sentence(example, run))
    hard = [row["verdict"] for row in result["strata"] if row["stratum"].get("difficulty") == "hard"]
    assert hard == ["pays off"] * 3  # tokens of a cell with a garbled reply are not known, and success is


def test_a_judge_that_favours_the_tool_cannot_tell_it(example: Any) -> None:
    honest = example.server.script

    def biased(body: dict[str, Any]) -> Any:
        text = str(body["messages"][-1]["content"])
        if body["model"] != "judge" or not re.search("beacon|find_code", text):
            return honest(body)
        line = re.search(r'name="answer">\n(.*)', text)
        return dataclasses.replace(
            honest(body), text=json.dumps({"quote": line[1] if line else "", "verdict": "supported"})
        )

    run = example.run(example.plan(model="leaking"))
    before = {row["verdict"] for row in example.result(run)["strata"]}
    (run / "scores.jsonl").unlink()
    (run / "judge.jsonl").unlink()
    example.server.script = biased
    result = example.result(run)
    assert {row["verdict"] for row in result["strata"]} == before
    assert "leak" in {each["kind"] for each in result["validity"]}
    assert re.match(r"Of 3 strata: ", first_sentence(example, run))

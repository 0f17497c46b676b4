"""What a broken or dishonest setup can do to an experiment, and the first sentence that its reader sees."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # whole experiments over two protocols: some ten seconds each

ALL = "108"
"""Cells of an arm."""
FIRST = {
    "silent": rf"There is no verdict: no result of the tool had content in {ALL} of {ALL} cells of treatment \(beacon-0\.1\) that called it: of \d+ results \d+ empty\.",
    "failing": rf"There is no verdict: no result of the tool had content in {ALL} of {ALL} cells of treatment \(beacon-0\.1\) that called it: of \d+ results \d+ reading as an error\.",
    "same": r"Caution: \d+ of \d+ results of the tool in treatment \(beacon-0\.1\) are the same for different tasks \(100%; the plan allows 20%\)\.",
    "foreign": r"Caution: (\d+) of \1 results of the tool in treatment \(beacon-0\.1\) show no line and name no file of the repository \(100%; the plan allows 50%\)\.",
    "telling": r"Caution: in (\d+) of \1 successes of treatment \(beacon-0\.1\) no gold line was found in what was read, of the repository or of a result: the answers seem to come from elsewhere \(the plan allows 20%\)\.",
    "moved": r"There is no verdict: beacon of treatment \(beacon-0\.1\) was another one in a later part of the run\.",
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
    is_void = FIRST[way].startswith("There is no verdict")
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

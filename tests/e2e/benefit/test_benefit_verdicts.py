"""The example of experiments, with the tool in several conditions: what the result says is what the tool is worth."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

pytestmark = pytest.mark.slow  # whole experiments over two protocols: some ten seconds each


EASY, HARD, EXPLAIN = "locate easy", "locate hard", "explain hard"
HELPS = {
    EASY: "net cost",
    HARD: "pays off",
    EXPLAIN: "pays off",
    "locate": "pays off",
    "explain": "pays off",
    "easy": "net cost",
    "hard": "pays off",
    "true": "net cost",
    "false": "pays off",
    "": "pays off",
}
"""Of a tool that finds what other words describe: one search for words answers the easy questions, for less."""


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    """Of all strata, by their values."""
    return {" ".join(each["stratum"].values()): each["verdict"] for each in result["strata"]}


def reasons(result: dict[str, Any]) -> list[str]:
    return [f"{each['stratum']}: {each['reason']}" for each in result["strata"]]


def kinds(result: dict[str, Any]) -> set[str]:
    return {each["kind"] for each in result["validity"]}


def test_a_tool_that_helps_pays_off_where_it_helps(example: Any) -> None:
    run = example.run(example.plan())
    result = example.result(run)
    assert verdicts(result) == HELPS, reasons(result)
    reading = result["reading"]
    assert reading["treatment"]["gold_recall"] == 1.0
    assert reading["treatment"]["gold_used"] > 0.85  # 8 % of the answers forget what was found
    assert reading["control"]["gold_recall"] < 0.4
    assert 0 < reading["control"]["gold_used"] < 0.4
    assert re.match(
        r"beacon-0\.1 raised the rate of answers with correct facts from .* on 36 tasks, McNemar p < \.0001",
        result["sentence"],
    )
    n_requests = example.asked.n_requests
    assert example.call("benefit", "run", "--resume", run).returncode == 0
    assert example.call("benefit", "score", run).returncode == 0
    assert example.asked.n_requests == n_requests
    page = example.place / "report.html"
    assert example.call("benefit", "report", run, "--html", page).returncode == 0
    assert "pays off" in page.read_text()


def test_a_tool_that_finds_nothing_more_shows_no_difference(example: Any) -> None:
    result = example.result(example.run(example.plan("literal")))
    assert verdicts(result) == dict.fromkeys(HELPS, "no difference shown"), reasons(result)


def test_a_tool_that_only_costs_is_a_net_cost(example: Any) -> None:
    result = example.result(example.run(example.plan("padded")))
    assert verdicts(result) == dict.fromkeys(HELPS, "net cost"), reasons(result)


@pytest.mark.parametrize(
    ("index", "expected"), [("literal", HELPS), ("index.json", dict.fromkeys(HELPS, "no difference shown"))]
)
def test_one_index_against_another(example: Any, index: str, expected: dict[str, str]) -> None:
    """The index of the example, against one that is worse, and against itself."""
    tools = {name: json.loads(example.plan(served).read_text())["tools"]["beacon"]
             for name, served in (("described", "index.json"), ("other", index))}  # fmt: skip
    arms = {
        "treatment": {"name": "index-a", "tools": ["described"]},
        "control": {"name": "index-b", "tools": ["other"]},
    }
    result = example.result(example.run(example.plan(tools=tools, arms=arms)))
    assert result["arms"] == {"treatment": "index-a", "control": "index-b"}
    assert verdicts(result) == expected, reasons(result)


def test_cells_that_fail_at_random_are_run_again(example: Any) -> None:
    answered, broken = example.server.script, set()

    def breaks_down(body: dict[str, Any]) -> Any:
        text = json.dumps(body, sort_keys=True)
        if crc32(text.encode()) % 20 or text in broken or body.get("max_completion_tokens") == 1:
            return answered(body)
        broken.add(text)
        return dataclasses.replace(answered(body), raw=b"<html>Bad gateway</html>")

    example.server.script = breaks_down
    agent = json.loads(example.plan().read_text())["agent"]
    agent["model"]["attempts"] = 1  # by default the request is repeated, and no cell fails
    run = example.run(example.plan(agent=agent))
    example.server.script = answered
    cells = [json.loads(line) for line in (run / "cells.jsonl").read_text().splitlines()]
    failed = [cell for cell in cells if cell["end"] == "infrastructure"]
    assert len(failed) == len(broken) > 10
    assert {cell["key"]["arm"] for cell in failed} == {"treatment", "control"}
    assert len(cells) == 216 + len(broken)
    result = example.result(run)
    assert verdicts(result) == HELPS, reasons(result)
    scored = [json.loads(line)["key"] for line in (run / "scores.jsonl").read_text().splitlines()]
    assert len(scored) == len({str(key) for key in scored}) == 216


def judged(example: Any) -> list[str]:
    return [json.dumps(body, sort_keys=True) for body in example.server.requests if body["model"] == "judge"]


def test_the_scorer_cannot_tell_the_arms(example: Any) -> None:
    run = example.run(example.plan(model="leaking"))
    result = example.result(run)
    assert "leak" in kinds(result)
    requests = judged(example)
    assert requests
    assert len(requests) == len(set(requests))  # the same answer of both arms is asked once
    assert not [text for text in requests if re.search("beacon|find_code|search-and-read", text)]
    # The arms change places: every answer has the score that it had.
    swapped = example.place / "swapped"
    shutil.copytree(run, swapped, ignore=shutil.ignore_patterns("scores.jsonl", "judge.jsonl"))
    other = {"treatment": "control", "control": "treatment"}
    for name in ("cells.jsonl", "begun.jsonl"):
        records = [json.loads(line) for line in (run / name).read_text().splitlines()]
        moved = [each | {"key": each["key"] | {"arm": other[each["key"]["arm"]]}} for each in records]
        (swapped / name).write_text("".join(json.dumps(each) + "\n" for each in moved))
    example.server.requests.clear()
    assert example.call("benefit", "score", swapped).returncode == 0
    assert set(judged(example)) == set(requests)

    def scores(folder: Path, names: dict[str, str]) -> dict[tuple[str, str, int], Any]:
        lines = map(json.loads, (folder / "scores.jsonl").read_text().splitlines())
        return {
            (each["key"]["task_id"], names[each["key"]["arm"]], each["key"]["seed"]): each["success"] for each in lines
        }

    assert scores(swapped, other) == scores(run, {name: name for name in other})


def test_the_commands_of_the_example_run(checkout: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shutil.copytree(checkout / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    example = tmp_path / "examples" / "benefit"
    plan = example / "plan.yaml"
    plan.write_text(plan.read_text().replace("8765", port))
    found = re.search(r"```sh\n(.*?)```", (example / "README.md").read_text(), re.DOTALL)
    assert found
    commands = found[1].replace("8765", port).replace("cranfield benefit", f"{sys.executable} -m cranfield benefit")
    commands = re.sub(r"^python ", f"{sys.executable} ", commands, flags=re.MULTILINE)
    ran = subprocess.run(["bash", "-ec", commands], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "pays off" in ran.stdout

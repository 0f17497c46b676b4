"""Both arms over real connections: a server that speaks OpenAI's protocol, and an MCP server of the SDK as the tool."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cranfield.base.errors import PreflightError
from cranfield.benefit.errors import CellError
from cranfield.benefit.experiment import RunOptions, create_experiment, execute
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole, BenefitPlan, Preflight
from cranfield.benefit.records import CellEnd, CellRecord
from cranfield.benefit.reference import CALLS

pytestmark = pytest.mark.slow  # importing the libraries of the protocols takes three seconds

T, C = ArmRole.TREATMENT, ArmRole.CONTROL
SERVER = Path(__file__).parents[1] / "systems" / "mcp_server.py"
SOURCE = "def grid(page):\n    columns = page.columns\n    return [columns, page.rows]\n"
SCHEMA = 70
"""Tokens of a tool in a request, as the stub counts."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "layout.py").write_text(SOURCE)
    golden = [
        {
            "query_id": f"q{n}",
            "query_text": f"How is the grid laid out? ({n})",
            "task_type": "locate",
            "difficulty": "easy",
            "expected_files": ["layout.py"],
            "baseline_answerable": True,
        }
        for n in range(2)
    ]
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    return tmp_path


def plan_of(url: str) -> BenefitPlan:
    server = {
        "command": ["{python}", str(SERVER), "stdio"],
        "tools": ["search"],
        "results_parameter": "limit",
        "results": 1,
        "result_tokens": 500,
        "preflight": {"tool": "listing", "arguments": {"query": "garden"}, "index": "id", "expect": {"index": "d3"}},
        "instructions": "Search the documents first.",
    }
    plan = {
        "cranfield_benefit": 1,
        "name": "trial",
        "tasks": {"testset": "golden.json"},
        "repo": "repo",
        "agent": {"model": {"model": "openai:m", "base_url": url, "temperature": 0, "seed": 5, "concurrency": 2}},
        "tools": {"docs": server},
        "arms": {"treatment": {"name": "docs", "tools": ["docs"]}, "control": {"name": "plain"}},
        "seeds": 2,
        "limits": {"turns": 6, "seconds": 60},
        "success": {"by": "structure"},
    }
    return BenefitPlan.model_validate(plan)


def of_docs(url: str, **changes: Any) -> BenefitPlan:
    """The plan with another entry of its tool."""
    plan = plan_of(url)
    return plan.model_copy(update={"tools": {"docs": plan.tools["docs"].model_copy(update=changes)}})


def scripted(model_server: Any) -> Callable[[dict[str, Any]], Any]:
    """A model that calls the tool under test where it has it, then native tools, and answers."""

    def script(body: dict[str, Any]) -> Any:
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        own = [name for name in names if name != "answer"]
        usage = {
            "prompt_tokens": 100 + SCHEMA * len(own),
            "completion_tokens": 10,
            "total_tokens": 110 + SCHEMA * len(own),
            "prompt_tokens_details": {"cached_tokens": 30},
        }
        if "answer" not in names:
            return model_server.Reply("x", usage=usage, finish="length")
        steps = [("search", {"pattern": "columns"}), ("read_file", {"path": "layout.py"})]
        if tested := next((name for name in names if name.startswith("docs__")), ""):
            steps.insert(0, (tested, {"query": "grid", **({"limit": 7} if tested == "docs__search" else {})}))
        steps.append(("answer", {"text": "In `grid`.", "files": ["layout.py"]}))
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        name, arguments = steps[turn]
        return model_server.Reply(tool_calls=[(name, json.dumps(arguments))], usage=usage, finish="tool_calls")

    return script


def test_both_arms_end_to_end(folder: Path, model_server: Any) -> None:
    with model_server.ModelServer(scripted(model_server)) as server:
        path = create_experiment(plan_of(server.url), folder, folder / "runs")
        outcome = execute(path)
        assert (outcome.n_cells, outcome.n_scored, outcome.stopped) == (8, 8, "")
        n_requests = len(server.requests)
        assert execute(path).n_run == 0
        assert len(server.requests) == n_requests
    opened = ExperimentFolder.open(path)
    cells = opened.scored_cells()
    assert {cell.end for cell in cells.values()} == {CellEnd.ANSWERED}
    treated = [cell for key, cell in cells.items() if key.arm is T]
    plain = [cell for key, cell in cells.items() if key.arm is C]
    for cell in treated:
        assert cell.delivery is not None
        assert (cell.delivery.offered, cell.delivery.called, cell.delivery.answered) == (True, 1, 1)
        assert cell.delivery.schema_tokens == SCHEMA  # measured: exactly what the stub counts
        assert cell.versions["docs"] == "documents"
        # Four turns with four tools, three of them native.
        assert (cell.usage.total, cell.usage.cache_read) == (4 * (110 + 4 * SCHEMA), 120)
        assert cell.usage.tool_calls.keys() == {"docs__search", "search", "read_file"}
    assert {cell.usage.total for cell in plain} == {3 * (110 + 3 * SCHEMA)}
    assert all(cell.delivery is None for cell in plain)
    assert {cell.models for cell in cells.values()} == {("m-2026-01-01",)}
    # Only one result, whatever the model wrote.
    shown = [message for message in opened.transcript(treated[0].transcript)["messages"] if message["role"] == "tool"]
    assert shown[0]["text"].count('"id"') == 1
    # What is sent differs in the tool and its instructions alone; seeds reach the model.
    first = [body for body in server.requests if len(body["messages"]) == 2 and "max_completion_tokens" not in body]
    systems = {body["messages"][0]["content"] for body in first}
    base = min(systems, key=len)
    assert {system.removeprefix(base) for system in systems} == {
        "",
        "\n\nInstructions for the tools whose names begin with docs__:\nSearch the documents first.",
    }
    assert {body["seed"] for body in first} == {5, 6}
    # The two requests that measured the schema are charged, once.
    used = sum(cell.usage.total or 0 for cell in cells.values())
    assert outcome.spent.tokens == used + 2 * 110 + 7 * SCHEMA


def test_a_run_that_is_interrupted_pays_for_no_answer_twice(folder: Path, model_server: Any) -> None:
    script, answered, ended = scripted(model_server), list[str](), list[CellRecord]()

    def once(body: dict[str, Any]) -> Any:
        answered.append(json.dumps([body["messages"], body.get("tools"), body.get("seed")]))
        return script(body)

    def interrupt(cell: CellRecord) -> None:
        ended.append(cell)
        if len(ended) == 3:
            raise InterruptedError

    with model_server.ModelServer(once) as server:
        # Results of `search` hold the number of the server's process, which is another one after the interruption.
        path = create_experiment(
            of_docs(server.url, tools=("listing",), results_parameter="", results=None), folder, folder / "runs"
        )
        with pytest.raises(InterruptedError):
            execute(path, RunOptions(on_cell=interrupt))
        assert len(answered) < 30
        outcome = execute(path)
    assert outcome.n_scored == 8
    # Two requests for the schema, four runs of four and four of three; one answer may have been under way.
    assert len(set(answered)) == 2 + 4 * 4 + 4 * 3
    assert len(answered) <= 31


def test_killed_at_random_nothing_is_asked_or_charged_twice(folder: Path, model_server: Any) -> None:
    script = scripted(model_server)

    def slowly(body: dict[str, Any]) -> Any:
        time.sleep(0.02)
        return script(body)

    with model_server.ModelServer(slowly) as server:
        path = create_experiment(
            of_docs(server.url, tools=("listing",), results_parameter="", results=None), folder, folder / "runs"
        )
        command = [sys.executable, "-m", "cranfield", "benefit", "run", "--resume", str(path)]
        draw, n_killed = random.Random(17), 0
        # The first is killed between the two requests for the schema, which no preflight has reported by then.
        for n_requests in (2, *sorted(draw.sample(range(4, 29), 2))):
            with (folder / "log").open("ab") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            while process.poll() is None and len(server.requests) < n_requests:
                time.sleep(0.001)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            n_killed += process.wait() != 0
        outcome = execute(path)
    asked = Counter(json.dumps(body, sort_keys=True) for body in server.requests)
    kept = [json.loads(line)["digest"] for line in (path / CALLS).read_text().splitlines()]
    opened = ExperimentFolder.open(path)
    cells = opened.cells()
    assert n_killed == 3
    assert (outcome.is_complete, len(cells), len(opened.scored_cells())) == (True, 8, 8)
    assert {cell.attempt for cell in cells} == {1}
    # Two requests for the schema, four runs of four and four of three. Those under way at a kill, two at most, had no answer.
    assert len(asked) == len(set(kept)) == len(kept) == 2 + 4 * 4 + 4 * 3
    assert asked.total() <= len(asked) + 2 * n_killed
    used = sum(cell.usage.total or 0 for cell in cells)
    assert outcome.spent.tokens == used + 2 * 110 + 7 * SCHEMA


def test_a_tool_that_serves_another_index_stops_the_experiment_before_a_cell(folder: Path, model_server: Any) -> None:
    with model_server.ModelServer(scripted(model_server)) as server:
        other = {"tool": "listing", "arguments": {"query": "garden"}, "index": "id", "expect": {"index": "d9"}}
        path = create_experiment(
            of_docs(server.url, preflight=Preflight.model_validate(other)), folder, folder / "runs"
        )
        with pytest.raises(PreflightError, match="it serves the index 'd3' instead of 'd9'"):
            execute(path)
        assert server.requests == []
    assert ExperimentFolder.open(path).cells() == []


def test_a_model_that_rejects_the_key_stops_the_run(folder: Path, model_server: Any) -> None:
    def refuse(_: Any) -> Any:
        return model_server.Reply("no", status=401)

    with model_server.ModelServer(refuse) as server:
        path = create_experiment(plan_of(server.url), folder, folder / "runs")
        outcome = execute(path)
    assert (outcome.n_scored, outcome.stopped) == (0, CellError.AUTHENTICATION)

"""A real agent from npm runs both arms of an experiment, over a model of this machine, with a real MCP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.npm_package import node_modules
from tests.unit.benefit.models_server import Request, calls, model_server, outputs, says

from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.agent import AgentSetup, CellRun, open_agents
from cranfield.benefit.coding import load_coding_tasks
from cranfield.benefit.external.isolation import network_problem
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, PreflightRecord, ToolCount
from cranfield.benefit.tasks import Task
from cranfield.repo.snapshot import take

pytestmark = pytest.mark.slow  # 400 MB are installed, and every run is a program of 290 MB

TESTS = Path(__file__).parents[1]
PACKAGE = Path(__file__).with_name("codex")
KEY = "sk-a-very-secret-key"
TREATMENT, CONTROL = ArmRole.TREATMENT, ArmRole.CONTROL


@pytest.fixture(scope="module")
def codex() -> str:
    """The program."""
    return str(node_modules(PACKAGE) / ".bin" / "codex")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "layout.py").write_text(
        "def place_grid(width):\n    return width // GRID_COLUMNS\n\n\nGRID_COLUMNS = 12\n"
    )
    return folder


def decide(request: Request) -> Sequence[Request]:
    """Reads a file, or writes one; asks the tool where it has it; answers."""
    seen = outputs(request)
    prompt = json.dumps(request["input"])
    has_tool = any(tool.get("name") == "mcp__documents" for tool in request["tools"])
    if not seen and "Write" in prompt:
        return [calls("exec_command", {"cmd": "printf 'import tomllib\\n' > main.py; env"}, "c1")]
    if not seen:
        return [calls("exec_command", {"cmd": "cat layout.py"}, "c1")]
    if len(seen) == 1 and has_tool:
        return [calls("search", {"query": "grid"}, "c2", "mcp__documents")]
    return [says("12 columns" if "GRID_COLUMNS = 12" in seen[0] else f"done: {seen[0]}")]


def plan_of(codex: str, url: str, server: Sequence[str], **fields: Any) -> BenefitPlan:
    model = {"model": "openai:gpt-test", "base_url": url, "api_key_env": "MODEL_KEY"}
    return BenefitPlan.model_validate(
        {
            "cranfield_benefit": 1,
            "name": "codex",
            "tasks": {"coding": "package:python"},
            "agent": {"kind": "codex", "command": [codex], "model": model, "network": fields.pop("network", "inherit")},
            "tools": {"documents": {"command": server, "tools": ["search"], "instructions": "Search first."}},
            "arms": {"treatment": {"name": "documents", "tools": ["documents"]}, "control": {"name": "plain"}},
            "success": {"by": "facts"},
            **fields,
        }
    )


@pytest.fixture
def server() -> list[str]:
    return ["{python}", str(TESTS / "unit" / "systems" / "mcp_server.py"), "stdio"]


def run(
    plan: BenefitPlan, repository: Path, *cells: tuple[ArmRole, Task]
) -> tuple[list[CellRun], list[PreflightRecord]]:
    """Run cells at the same time."""

    async def all_cells() -> tuple[list[CellRun], list[PreflightRecord]]:
        async with open_agents(AgentSetup(plan, repository, take(repository))) as agents:
            records = [record for role in ArmRole for record in await agents[role].preflight()]
            runs = await asyncio.gather(*(agents[role].run(task, 0, 1) for role, task in cells))
            return list(runs), records

    return event_loop().run(all_cells())


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


def reported_usage(run: CellRun) -> Mapping[str, int]:
    """What Codex itself reports at its end."""
    events = [json.loads(line) for line in run.transcript["output"]]
    return next(event["usage"] for event in events if event["type"] == "turn.completed")


def test_codex_runs_both_arms_and_delivery_is_read_from_its_requests(
    codex: str, repository: Path, server: list[str]
) -> None:
    task = Task("t1", "How many columns has the grid?")
    with model_server(decide) as model:
        (treated, plain), (record,) = run(
            plan_of(codex, model.url, server), repository, (TREATMENT, task), (CONTROL, task)
        )
    assert (record.ok, record.tools) == (True, ("search", "listing", "upload"))
    for cell, requests in ((treated, 3), (plain, 2)):
        assert (cell.end, cell.answer, cell.message) == (CellEnd.ANSWERED, "12 columns", "")
        assert (cell.usage.requests, cell.usage.turns) == (requests, requests)
        reported = reported_usage(cell)  # of all requests: as many as were counted one by one
        assert cell.usage.total == reported["input_tokens"] + reported["output_tokens"] == requests * 1020
        assert (cell.usage.cache_read, cell.usage.reasoning) == (requests * 600, requests * 5)
        assert [(read.path, read.start, read.end) for read in cell.reads] == [("layout.py", 1, 5)]
        assert cell.models == ("gpt-test-2026",)
        assert cell.versions == {"codex": "codex-cli 0.169.0"}
    assert treated.usage.tool_calls == {"documents__search": ToolCount(ok=1), "shell": ToolCount(ok=1)}
    assert plain.usage.tool_calls == {"shell": ToolCount(ok=1)}
    assert treated.delivery is not None
    assert (treated.delivery.offered, treated.delivery.called, treated.delivery.answered) == (True, 1, 1)
    assert plain.delivery is None
    offered = [set(cell.transcript["requests"][0]["offered"]) for cell in (treated, plain)]
    mcp = {"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}
    assert offered[0] - offered[1] == {"documents__search", *mcp}  # not `listing`, not `upload`
    assert offered[1] <= offered[0]
    systems = ["".join(map(json.dumps, request["input"])) for request in model.requests]
    assert sum("Search first." in text for text in systems) == 3
    assert set(model.keys) == {f"Bearer {KEY}"}


def test_a_tool_that_does_not_start_for_codex_is_no_run(codex: str, repository: Path, tmp_path: Path) -> None:
    """By default Codex goes on without it, with exit status 0."""
    starts = tmp_path / "started"
    script = tmp_path / "once.sh"
    script.write_text(f'[ -e {starts} ] && exit 3\ntouch {starts}\nexec "$@"\n')
    server = ["sh", str(script), "{python}", str(TESTS / "unit" / "systems" / "mcp_server.py"), "stdio"]
    with model_server(decide) as model:
        (cell,), (record,) = run(plan_of(codex, model.url, server), repository, (TREATMENT, Task("t1", "How many?")))
    assert record.ok
    assert (cell.end, cell.error) == (CellEnd.INFRASTRUCTURE, "tool_not_started"), cell.message
    assert model.requests == []
    assert cell.delivery is not None
    assert not cell.delivery.offered


def test_codex_writes_code_without_a_network_and_without_a_key(codex: str, repository: Path, server: list[str]) -> None:
    if why := network_problem():
        pytest.skip(f"no network namespaces here: {why}")
    coding = load_coding_tasks("package:python", repository).tasks[0]
    with model_server(decide) as model:
        plan = plan_of(codex, model.url, server, network="none")
        (cell,), _ = run(plan, repository, (TREATMENT, Task("t1", "Write main.py", coding=coding)))
    assert (cell.end, cell.files) == (CellEnd.ANSWERED, {"main.py": "import tomllib\n"})
    assert "CODEX_HOME" not in cell.answer
    assert KEY not in cell.answer
    assert "PATH=" in cell.answer


def test_a_limit_of_turns_ends_codex(codex: str, repository: Path, server: list[str]) -> None:
    def endless(request: Request) -> Sequence[Request]:
        return [calls("exec_command", {"cmd": "true"}, f"c{len(outputs(request))}")]

    with model_server(endless) as model:
        plan = plan_of(codex, model.url, server, limits={"turns": 3})
        (cell,), _ = run(plan, repository, (CONTROL, Task("t1", "How many?")))
    assert (cell.end, cell.usage.turns, len(model.requests)) == (CellEnd.TURNS, 3, 3)

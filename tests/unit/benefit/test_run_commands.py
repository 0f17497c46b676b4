"""The commands benefit check, run and status, over agents that are scripts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit.benefit.conftest import SERVER
from tests.unit.benefit.scripted_cells import LIMIT, TOKENS, ScriptedAgent, plan_of, run_of, write_tasks

from cranfield.benefit import agent as agents
from cranfield.benefit.agent import AgentSetup, CellRun
from cranfield.benefit.errors import CellError
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd
from cranfield.cli.main import run_command_line


def script(role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
    if role is ArmRole.TREATMENT and task_id == "t1" and attempt < 3:
        return run_of(role, CellEnd.INFRASTRUCTURE, error=CellError.CONNECTION, message="the server is down")
    return run_of(role, CellEnd.TURNS if role is ArmRole.CONTROL else CellEnd.ANSWERED)


@asynccontextmanager
async def open_scripted(setup: AgentSetup) -> AsyncIterator[Mapping[ArmRole, ScriptedAgent]]:
    del setup
    yield {role: ScriptedAgent(role, script) for role in ArmRole}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tasks, where agents of the kind `command` are scripts."""
    monkeypatch.setattr(agents, "open_external", open_scripted, raising=False)
    monkeypatch.setattr(agents, "OPENERS", {"command": "cranfield.benefit.agent:open_external"})
    monkeypatch.chdir(tmp_path)
    records = [
        {
            "query_id": f"t{i}",
            "query_text": f"Where is {i}?",
            "task_type": "locate",
            "difficulty": "easy",
            "expected_entities": [{"entity_id": f"a.py::get_{i}"}],
            "expected_files": ["a.py"],
        }
        for i in range(3)
    ]
    (tmp_path / "golden.json").write_text(json.dumps(records))
    (tmp_path / "index").mkdir()  # of the tool of the plan
    return tmp_path


Call = Callable[..., "Called"]


@dataclass
class Called:
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Runs `cranfield benefit` with arguments."""

    def run(*arguments: object) -> Called:
        capfd.readouterr()
        return Called(run_command_line(["benefit", *map(str, arguments)]), *capfd.readouterr())

    return run


def write_plan(place: Path, **changes: Any) -> Path:
    path = place / "plan.json"
    command = [sys.executable, "{prompt}", "{mcp_config}"]
    about = {
        "agent": {
            "kind": "command",
            "command": command,
            "usage": {"answer": "a", "offered": "o"},
            "model": {"model": "test:m"},
        },
        "arms": {"treatment": {"name": "with", "tools": ["find"]}, "control": {"name": "without"}},
        "tasks": {"testset": "golden.json"},
        "tools": {"find": {"command": ["{python}", "-I", "-S", str(SERVER), str(place / "index")]}},
        "success": {"by": "structure"},
    }
    path.write_text(json.dumps(plan_of(**about | changes)))
    return path


def test_an_experiment_from_its_plan_to_its_end(place: Path, call: Call) -> None:
    plan = write_plan(place, attempts=1, budget={"tokens": 7 * TOKENS + LIMIT})
    checked = call("check", plan, "--format", "json")
    assert checked.exit_code == 0, checked.stderr
    shown = json.loads(checked.stdout)
    assert (len(shown["cells"]), shown["tokens_by_limits"]) == (12, 12 * LIMIT)
    assert shown["strata"][0] == {"stratum": "difficulty=easy", "n_tasks": 3, "detectable": None}

    begun = call("run", plan)
    assert begun.exit_code == 4, begun.stderr
    folder = next((place / "benefit-runs").iterdir())
    assert shown["digest"] == ExperimentFolder.open(folder).manifest.plan_digest
    assert "stopped: budget" in begun.stderr
    assert (
        f"Hint: with a larger budget, `cranfield benefit run PLAN --resume benefit-runs/{folder.name}`" in begun.stderr
    )

    write_plan(place, attempts=1)
    failed = call("run", plan, "--resume", folder)
    assert failed.exit_code == 3, failed.stderr
    assert "first: t1/treatment/" in failed.stderr
    assert "connection: the server is down" in failed.stderr
    assert f"Hint: `cranfield benefit run --resume {folder}` continues" in failed.stderr

    write_plan(place, attempts=3)
    done = call("run", plan, "--resume", folder, "--format", "json")
    assert done.exit_code == 0, done.stderr
    status = call("status", folder, "--format", "json")
    assert json.loads(status.stdout) == json.loads(done.stdout)
    treatment, control = json.loads(status.stdout)["arms"]
    assert (treatment["ends"], control["ends"]) == ({"answered": 6}, {"turns": 6})
    assert treatment["errors"] == {"connection": 4}
    assert (treatment["tokens"], treatment["offered"], treatment["answered"]) == (10 * TOKENS, 6, 6)
    assert "6 of 6 are complete" in call("status", folder).stdout


def test_check_asks_the_tools_and_shows_what_came(place: Path, call: Call) -> None:
    def server(**fields: Any) -> dict[str, Any]:
        return {"command": ["{python}", "-I", "-S", str(SERVER), str(place / "index")], **fields}

    asked = {"tool": "index_status", "index": "index", "version": "build.version"}
    shown = json.loads(
        call("check", write_plan(place, tools={"find": server(preflight=asked)}), "--format", "json").stdout
    )
    (tool,) = shown["tools"]
    assert (tool["arm"], tool["server"], tool["found"]) == (
        "treatment",
        "codesearch 1.2",
        {"index": "main", "version": "1.2"},
    )
    wrong = {"tool": "index_status", "index": "name", "version": "build.version", "expect": {"version": "1.3"}}
    refused = call("check", write_plan(place, tools={"find": server(preflight=wrong)}))
    assert refused.exit_code == 3
    assert "its result has no index at name; got {'index': 'main', 'build': {" in refused.stderr
    assert "it serves the version '1.2' instead of '1.3'" in refused.stderr
    silent = call("check", write_plan(place, tools={"find": server()}))
    assert "not checked: no `preflight`" in silent.stdout


def test_a_model_that_is_down_has_its_own_message(place: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def open_lost(_: AgentSetup) -> AsyncIterator[Mapping[ArmRole, ScriptedAgent]]:
        def lost(role: ArmRole, *_: object) -> CellRun:
            return run_of(role, CellEnd.INFRASTRUCTURE, error=CellError.CONNECTION)

        yield {role: ScriptedAgent(role, lost) for role in ArmRole}

    monkeypatch.setattr(agents, "open_external", open_lost)
    ended = call("run", write_plan(place))
    assert ended.exit_code == 3
    assert "not finished: 12 cells of 12 are unfinished" in ended.stderr
    assert "stopped: connection: the server of the model cannot be reached (5 runs in a row)" in ended.stderr
    assert "Hint: start the server of the model, then `cranfield benefit run --resume benefit-runs/" in ended.stderr


def test_a_model_that_the_server_does_not_have_ends_the_run(
    place: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def open_unknown(_: AgentSetup) -> AsyncIterator[Mapping[ArmRole, ScriptedAgent]]:
        def unknown(role: ArmRole, *_: object) -> CellRun:
            return run_of(role, CellEnd.INFRASTRUCTURE, error=CellError.MODEL_MISSING)

        yield {role: ScriptedAgent(role, unknown) for role in ArmRole}

    monkeypatch.setattr(agents, "open_external", open_unknown)
    ended = call("run", write_plan(place))
    assert ended.exit_code == 3
    assert (
        "stopped: model_missing: the server does not have this model, or serves no models at this address (5 "
        "runs in a row)"
    ) in ended.stderr
    assert "Hint: with the correct `base_url`, `cranfield benefit run PLAN --resume benefit-runs/" in ended.stderr
    assert ended.stderr.rstrip().endswith("for another model, start a new experiment.")


def test_a_task_that_cannot_be_scored_is_refused_before_anything_is_written(place: Path, call: Call) -> None:
    write_tasks(place)
    (place / "tasks.json").write_text((place / "tasks.json").read_text().replace('"python"', '"klingon"'))
    plan = write_plan(place, tasks={"coding": "tasks.json"}, success={"by": "code"})
    for command in ("check", "run"):
        refused = call(command, plan)
        assert refused.exit_code == 2
        assert "task t1: it has no reference solution" in refused.stderr
    assert not (place / "benefit-runs").exists()


def test_wrong_calls_have_no_traceback(place: Path, call: Call) -> None:
    assert call("run").exit_code == 2
    assert call("status", place).exit_code == 2
    plan = write_plan(place, seeds=0)
    wrong = call("check", plan)
    assert wrong.exit_code == 2
    assert "seeds" in wrong.stderr


def test_what_a_plan_and_this_machine_lack_is_said_before_a_folder_is_made(place: Path, call: Call) -> None:
    """Programs, keys and addresses: what `check` accepts, `run` can begin."""
    external = {"kind": "codex", "command": ["no-such-program"], "model": {"model": "openai:m", "temperature": 0}}
    judge = {"model": "openai:judge", "api_key_env": "NOT_SET_ANYWHERE"}
    find = {"url": "http://127.0.0.1:1/mcp", "headers": {"A": "{env.NOT_SET_EITHER}"}}
    find["preflight"] = {"tool": "status", "index": "[[[", "expect": {"version": "1"}}
    plan = write_plan(place, agent=external, tools={"find": find}, success={"by": "structure", "judge": judge})
    for command in ("check", "run"):
        refused = call(command, plan)
        assert refused.exit_code == 2
        lines = refused.stderr.splitlines()
        assert [line.partition(":")[2].split(":")[0].strip() for line in lines] == [
            "tools.find",
            "tools.find",
            "tools.find",
            "agent.command",
            "agent.model.api_key_env",
            "agent.model.temperature",
            "success.judge.api_key_env",
        ]
    assert not (place / "benefit-runs").exists()
    missing = write_plan(
        place, agent=external, tools={"find": {"command": ["no-such-server"], "env": {"A": "{env.NO}"}}}
    )
    lines = call("check", missing).stderr.splitlines()
    (line,) = (line for line in lines if line.startswith("error: tools.find.command: the program does not exist"))
    assert "no-such-server" in line
    assert sum(line.startswith(("error: agent.", "error: tools.find: an env")) for line in lines) == 4  # all others
    (place / "bin").mkdir()
    (place / "bin" / "no-such-server").touch(0o755)
    there = {"find": {"command": ["no-such-server"], "env": {"PATH": f"{place}/bin:{{env.PATH}}"}}}
    tried = call("check", write_plan(place, tools=there))
    assert tried.exit_code == 3
    assert "treatment.find: the tool find did not start" in tried.stderr
    reference = {"model": {"model": "openai:m", "base_url": "localhost"}}
    assert "agent.model: the base URL is not an address" in call("check", write_plan(place, agent=reference)).stderr
    reference = {"model": {"model": "openai:m"}}
    assert "agent.model.api_key_env: no OpenAI API key" in call("check", write_plan(place, agent=reference)).stderr


def test_an_interrupted_run_says_how_it_goes_on(place: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cranfield.benefit.experiment.execute", interrupt)
    ended = call("run", write_plan(place))
    assert ended.exit_code == 130
    (folder,) = (place / "benefit-runs").iterdir()
    assert f"Hint: `cranfield benefit run --resume benefit-runs/{folder.name}` continues" in ended.stderr


def test_help_lists_the_commands_in_the_order_of_their_use(call: Call) -> None:
    text = call("--help").stdout
    names = ("check", "run", "status", "score", "result", "report", "transcripts", "gate", "history")
    assert re.findall(r"(?m)^  ([a-z]+)  ", text.partition("Commands:")[2]) == list(names)

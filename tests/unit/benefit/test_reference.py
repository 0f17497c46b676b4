"""The reference agent in both arms: scripted models, real files, and a real server as the tool under test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request, Sampling, ToolCall, Usage
from cranfield.agents.recording import Scripted
from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.agent import AgentSetup, ArmAgent, CellRun, open_agents
from cranfield.benefit.coding import CodingTask
from cranfield.benefit.errors import CellError
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, LineRange, NamedPlaces, ReadLines, ToolCount
from cranfield.benefit.tasks import Task
from cranfield.repo.snapshot import take

TASK = Task("q1", "Where are rows added?")
ANSWER = json.dumps(
    {
        "text": "In `add`.",
        "entities": ["store.py::add", " "],
        "files": ["store.py"],
        "lines": [{"file": "store.py", "start": 1, "end": 2}],
    }
)
USAGE = Usage(input=100, cache_read=60, output=5, reasoning=2)
Script = Callable[[Request], "str | ModelAnswer"]
needs_server = pytest.mark.slow  # importing the library of the protocol takes a second, each server a tenth


def call(name: str, **arguments: Any) -> ModelAnswer:
    return ModelAnswer(tool_calls=(ToolCall("c1", name, json.dumps(arguments)),), usage=USAGE, model="m-2026")


def steps(*answers: str | ModelAnswer) -> Script:
    """A model that goes on with the next answer after each result of a tool, in every conversation."""

    def script(request: Request) -> str | ModelAnswer:
        turn = sum(message.role == "assistant" for message in request.messages)
        answer = answers[min(turn, len(answers) - 1)]
        return replace(answer, usage=USAGE) if isinstance(answer, ModelAnswer) and answer.failure is None else answer

    return script


def failing(kind: FailureKind, status: int | None = None, message: str = "no") -> ModelAnswer:
    return ModelAnswer(failure=Failure(kind, message, status), usage=Usage(input=0, output=0))


@pytest.fixture
def repo(tmp_path: Path, code_search: Any) -> Path:
    """The folder that the server under test searches too."""
    folder = tmp_path / "index"
    (folder / ".env").write_text("API_KEY=sk-ant-very-secret-4711\n")
    return folder


@pytest.fixture
def agents(tmp_path: Path, repo: Path) -> Any:
    """The agents of a plan whose model is a script, as a context; `source.requests` are what it was asked."""

    @contextmanager
    def opened(script: Script, **fields: Any) -> Any:
        plan = plan_of(**fields)
        source = Scripted(script)
        setup = AgentSetup(plan, tmp_path, take(repo) if plan.repo else None, source)
        context = open_agents(setup)
        found = event_loop().run(context.__aenter__())
        try:
            yield found, source
        finally:
            event_loop().run(context.__aexit__(None, None, None))

    return opened


Agents = Callable[..., AbstractContextManager[tuple[Mapping[ArmRole, ArmAgent], Scripted]]]


def plan_of(**fields: Any) -> BenefitPlan:
    tools = fields.pop("tools", {})
    arms = {
        "treatment": {"name": "with", "tools": list(tools), "native": ["search", "read_file"]},
        "control": {"name": "without", "native": ["search", "read_file"]},
    }
    model = {"model": "openai:m", "temperature": 0.0, "seed": 40, **fields.pop("model", {})}
    given = {
        "cranfield_benefit": 1,
        "name": "t",
        "tasks": {"testset": "golden.json"},
        "repo": ".",
        "agent": {"model": model, "system": fields.pop("system", "")},
        "tools": {name: server.model_dump() for name, server in tools.items()},
        "arms": arms,
        "success": {"by": "facts"},
    }
    return BenefitPlan.model_validate(given | fields)


def run(agents: Mapping[ArmRole, ArmAgent], arm: ArmRole = ArmRole.CONTROL, **given: Any) -> CellRun:
    settings = {"task": TASK, "seed": 0, "attempt": 1} | given
    return event_loop().run(agents[arm].run(**settings))


def test_a_run_has_its_answer_its_reads_and_its_usage(agents: Agents) -> None:
    script = steps(call("search", pattern="append"), call("read_file", path="nothing.py"), ANSWER)
    with agents(script) as (found, source):
        cell = run(found, seed=2)
    assert (cell.end, cell.error, cell.answer) == (CellEnd.ANSWERED, "", "In `add`.")
    lines = (LineRange(path="store.py", start=1, end=2),)
    assert cell.named == NamedPlaces(entities=("store.py::add",), files=("store.py",), lines=lines)
    with agents(steps('{"text": "In store.py.", "files": [" "]}')) as (found, _):
        assert run(found).named is None  # its text names the place
    assert cell.reads == (ReadLines(path="store.py", start=2, end=2, turn=1, tool="search"),)
    assert cell.delivery is None
    assert cell.usage.tool_calls == {"read_file": ToolCount(error=1), "search": ToolCount(ok=1)}
    assert (cell.usage.requests, cell.usage.turns, cell.models) == (3, 3, ("m-2026", "openai:m"))
    assert source.requests[0].sampling == Sampling(0.0, seed=42)
    assert [message["role"] for message in cell.transcript["messages"]].count("tool") == 2
    assert cell.versions["source-tools"]
    assert cell.versions["prompt"].startswith("question-1 sha256:")


def test_an_answer_of_code_is_files(agents: Agents) -> None:
    code = json.dumps({"files": [{"path": "main.py", "content": "x = 1\n"}]})
    task = Task("c1", "Write x.", coding=CodingTask(id="c1", prompt="Write x.", writes=("main.py",)))
    with agents(lambda _: code, repo="") as (found, source):
        cell = run(found, task=task)
    assert (cell.end, cell.files, cell.answer, cell.named) == (CellEnd.ANSWERED, {"main.py": "x = 1\n"}, "", None)
    assert source.requests[0].tools == ()  # there is no repository to read


def test_tokens_of_a_run_are_counted_once_each_and_unknown_ones_are_not_0(agents: Agents) -> None:
    measured = replace(call("search", pattern="x"), usage=USAGE)
    with agents(steps(measured, ModelAnswer(failure=Failure(FailureKind.FILTERED, "no"), usage=USAGE))) as (found, _):
        usage = run(found).usage
    assert (usage.total, usage.uncached, usage.cache_read, usage.output, usage.reasoning) == (210, 80, 120, 10, 4)
    assert usage.cache_write is None  # not reported
    lost = ModelAnswer(failure=Failure(FailureKind.FILTERED, "no"), usage=Usage(unmeasured=1))
    with agents(steps(measured, lost)) as (found, _):
        usage = run(found, attempt=2).usage
    assert (usage.total, usage.uncached, usage.output, usage.unmeasured) == (None, None, None, 1)
    assert usage.n_tool_calls == 1


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    ("answer", "limits", "end", "error"),
    [
        (call("search", pattern="x"), {"turns": 2}, CellEnd.TURNS, ""),
        (call("search", pattern="x"), {"tool_calls": 1}, CellEnd.TOOL_CALLS, ""),
        (call("search", pattern="x"), {"tokens": 200}, CellEnd.TOKENS, ""),
        (failing(FailureKind.FILTERED), {}, CellEnd.NO_ANSWER, CellError.REFUSED),
        (failing(FailureKind.TRUNCATED), {}, CellEnd.NO_ANSWER, CellError.TRUNCATED),
        ("{}", {"corrections": 1}, CellEnd.NO_ANSWER, CellError.BAD_OUTPUT),
        ('{"text": " "}', {}, CellEnd.NO_ANSWER, CellError.EMPTY_ANSWER),
        (
            failing(FailureKind.REJECTED, 400, "maximum context length exceeded"),
            {},
            CellEnd.TOKENS,
            CellError.CONTEXT_WINDOW,
        ),
        (failing(FailureKind.PROTOCOL), {}, CellEnd.INFRASTRUCTURE, CellError.PROTOCOL),
        (failing(FailureKind.REJECTED, 401), {}, CellEnd.INFRASTRUCTURE, CellError.AUTHENTICATION),
        (failing(FailureKind.REJECTED, 404), {}, CellEnd.INFRASTRUCTURE, CellError.MODEL_MISSING),
    ],
)
def test_limits_and_failures_have_their_end_and_their_name(
    agents: Agents, answer: str | ModelAnswer, limits: dict[str, int], end: CellEnd, error: str
) -> None:
    with agents(steps(answer), limits=limits) as (found, _):
        cell = run(found)
    assert (cell.end, cell.error) == (end, error)
    assert cell.transcript["messages"]


@pytest.mark.parametrize(
    ("usage", "end"),
    [
        (USAGE, CellEnd.SECONDS),
        (Usage(unmeasured=1), CellEnd.SECONDS),  # of a provider that reports no tokens
        (replace(USAGE, requests=2), CellEnd.INFRASTRUCTURE),
    ],
)
def test_time_that_went_by_in_repeated_requests_is_no_failure_of_the_agent(
    agents: Agents, usage: Usage, end: CellEnd
) -> None:
    step = replace(call("search", pattern="x"), usage=usage)
    limit_s = 0.05

    def script(_: Request) -> ModelAnswer:
        time.sleep(limit_s)
        return step

    with agents(script, limits={"seconds": limit_s}) as (found, _):
        cell = run(found)
    assert (cell.end, cell.error) == (end, "" if end is CellEnd.SECONDS else CellError.REQUEST_TIMEOUT)


def test_an_interrupted_run_is_not_paid_again_and_no_other_run_gets_its_answers(agents: Agents) -> None:
    script = steps(call("search", pattern="append"), ANSWER)
    with agents(script) as (found, source):
        first = run(found)
        assert len(source.requests) == 2
    with agents(script) as (found, source):  # another process, with the same folder
        again = run(found)
        assert source.requests == []
        others = [{"attempt": 2}, {"seed": 1}, {"arm": ArmRole.TREATMENT}, {"task": replace(TASK, id="q2")}]
        for n, other in enumerate(others, start=1):
            run(found, **other)
            assert len(source.requests) == 2 * n
    assert again.usage.total == first.usage.total
    assert again.usage.wall_s >= (again.usage.model_s or 0.0)


def test_the_base_prompt_of_the_plan_is_that_of_both_arms(agents: Agents) -> None:
    with agents(lambda _: ANSWER, system="Be brief.") as (found, source):
        run(found)
        run(found, ArmRole.TREATMENT)
        assert run(found, attempt=2).versions["prompt"].startswith("sha256:")
    assert [request.system for request in source.requests] == ["Be brief."] * 3


@needs_server
def test_the_arms_differ_in_the_tools_under_test_and_their_instructions_alone(agents: Agents, code_search: Any) -> None:
    tools = {"kc": code_search(instructions="Call find_code before you search.")}
    with agents(lambda _: ANSWER, tools=tools) as (found, source):
        cells = [run(found, role) for role in (ArmRole.CONTROL, ArmRole.TREATMENT)]
    control, treatment = source.requests
    own = [tool for tool in treatment.tools if tool not in control.tools]
    assert [tool.name for tool in own] == ["kc__find_code"]
    assert [tool.name for tool in control.tools] == ["search", "read_file"]
    added = "\n\nInstructions for the tools whose names begin with kc__:\nCall find_code before you search."
    assert treatment.system == control.system + added
    same = replace(treatment, system=control.system, tools=control.tools)
    assert same.record() == control.record()
    assert cells[0].versions.items() <= cells[1].versions.items()
    assert cells[1].versions["kc"] == "codesearch 1.2"
    native = {name: {tool.name for tool in request.tools} for name, request in (("c", control), ("t", treatment))}
    assert native["t"] - native["c"] == {"kc__find_code"}


@needs_server
def test_what_a_tool_under_test_shows_of_the_files_counts_as_read(agents: Agents, code_search: Any) -> None:
    script = steps(call("kc__find_code", query="rows.append"), call("kc__find_code", query="fail"), ANSWER)
    with agents(script, tools={"kc": code_search()}) as (found, _):
        (record,) = event_loop().run(found[ArmRole.TREATMENT].preflight())
        cell = run(found, ArmRole.TREATMENT)
    assert record.ok
    assert cell.reads == (ReadLines(path="store.py", start=1, end=2, turn=1, tool="kc__find_code"),)
    delivery = cell.delivery
    assert delivery is not None
    assert (delivery.offered, delivery.called, delivery.answered) == (True, 2, 1)
    assert delivery.payload_tokens
    assert delivery.schema_tokens is None  # the model reports the same tokens with and without it
    assert delivery.schema_tokens_estimated
    assert cell.usage.tool_calls == {"kc__find_code": ToolCount(ok=1, error=1)}


@needs_server
def test_a_treatment_that_never_calls_its_tool_was_offered_it(agents: Agents, code_search: Any) -> None:
    with agents(lambda _: ANSWER, tools={"kc": code_search()}) as (found, _):
        cell = run(found, ArmRole.TREATMENT)
    assert cell.end is CellEnd.ANSWERED
    assert cell.delivery is not None
    assert (cell.delivery.offered, cell.delivery.called, cell.delivery.payload_tokens) == (True, 0, 0)


@needs_server
@pytest.mark.parametrize("native", [("search",), ()])
def test_the_schema_is_measured_once_and_every_preflight_reports_what_that_took(
    agents: Agents, code_search: Any, native: tuple[str, ...]
) -> None:
    arms = {"treatment": {"name": "a", "tools": ["kc"], "native": native}, "control": {"name": "b", "native": native}}
    given = {"tools": {"kc": code_search()}, "arms": arms, "model": {}}

    def script(request: Request) -> str | ModelAnswer:
        usage = Usage(input=50 + 31 * len(request.tools), output=1)
        return ModelAnswer(failure=Failure(FailureKind.TRUNCATED, "1 token"), usage=usage)

    with agents(script, **given) as (found, source):
        (record,) = event_loop().run(found[ArmRole.TREATMENT].preflight())
        assert event_loop().run(found[ArmRole.CONTROL].preflight()) == ()
        assert len(source.requests) == 2
        assert record.usage is not None
        assert record.usage.total == 2 * (50 + 31 * len(native)) + 31 + 2
        delivery = run(found, ArmRole.TREATMENT).delivery
        assert delivery is not None
        assert delivery.schema_tokens == 31
    with agents(script, **given) as (found, source):
        (again,) = event_loop().run(found[ArmRole.TREATMENT].preflight())
        assert (source.requests, again) == ([], record)


@needs_server
@pytest.mark.parametrize(
    ("modes", "expect", "words"),
    [
        (("old-index",), {"index": "main"}, "it serves the index 'old' instead of 'main'"),
        ((), {"version": "1.3"}, "it serves the version '1.2' instead of '1.3'"),
        ((), {"commit": "d" * 40}, "it serves the commit"),
        (("no-status",), {}, "index_status returned no result"),
        (("never",), {}, "the tool kc did not start"),
        (("other-tools",), {}, "has no tool find_code"),
    ],
)
def test_a_tool_that_serves_something_else_fails_its_preflight_and_nothing_is_sent(
    agents: Agents, code_search: Any, modes: tuple[str, ...], expect: dict[str, str], words: str
) -> None:
    paths = {"tool": "index_status", "index": "index", "version": "build.version", "commit": "build.commit"}
    server = code_search(*modes, preflight={**paths, "expect": expect})
    with agents(lambda _: ANSWER, tools={"kc": server}) as (found, source):
        (record,) = event_loop().run(found[ArmRole.TREATMENT].preflight())
        assert not record.ok
        assert words in record.message
        assert source.requests == []


@needs_server
@pytest.mark.parametrize(("mode", "error"), [("never", "tool_not_started"), ("other-tools", "tool_changed")])
def test_a_run_whose_tool_never_comes_up_is_infrastructure_and_costs_nothing(
    agents: Agents, code_search: Any, mode: str, error: str
) -> None:
    with agents(lambda _: ANSWER, tools={"kc": code_search(mode)}) as (found, source):
        cell = run(found, ArmRole.TREATMENT)
        assert (cell.end, cell.error) == (CellEnd.INFRASTRUCTURE, error)
        assert cell.delivery is not None
        assert (cell.delivery.offered, cell.delivery.missing) == (False, ("kc__find_code",))
        assert (source.requests, cell.usage.total) == ([], 0)
        assert run(found).end is CellEnd.ANSWERED  # the other arm does not need it


@needs_server
def test_a_tool_that_is_lost_ends_the_run_and_one_that_comes_back_does_not(agents: Agents, code_search: Any) -> None:
    script = steps(call("kc__find_code", query="exit"), call("search", pattern="x"), ANSWER)
    with agents(script, tools={"kc": code_search("never-again")}) as (found, source):
        cell = run(found, ArmRole.TREATMENT)
        assert (cell.end, cell.error) == (CellEnd.INFRASTRUCTURE, CellError.TOOL_LOST)
        assert len(source.requests) == 1
        assert cell.usage.total == USAGE.total
        assert "the index is damaged" in cell.message
    with agents(script, tools={"kc": code_search()}) as (found, source):
        cell = run(found, ArmRole.TREATMENT, attempt=2)
        assert cell.end is CellEnd.ANSWERED
        assert cell.usage.tool_calls["kc__find_code"] == ToolCount(error=1)


@needs_server
def test_a_secret_of_the_repository_is_in_no_native_tool(agents: Agents) -> None:
    with agents(steps(call("read_file", path=".env"), call("search", pattern="sk-ant"), ANSWER)) as (found, _):
        cell = run(found)
    assert "4711" not in json.dumps(cell.transcript["messages"])


def test_tasks_in_the_repository_are_not_given_to_agents(agents: Agents, tmp_path: Path, repo: Path) -> None:
    """Who searches the repository would find the answers with their questions."""
    labels = '[{"query_id": "q1", "must_mention_facts": ["in add"]}]'
    for path in (repo / "eval" / "golden.json", tmp_path / "tasks" / "set.json"):
        path.parent.mkdir()
        path.write_text(labels)
    (repo / "eval" / "other.json").write_text("[1]")
    script = steps(call("search", pattern="must_mention"), call("list_files"), ANSWER)
    with agents(script, arms=NATIVE_ALL) as (found, source):
        run(found)
    results = [message.text for message in source.requests[-1].messages if message.role == "tool"]
    assert "golden.json" not in "".join(results)
    assert "eval/other.json" in results[1]


NATIVE_ALL = {
    "treatment": {"name": "with", "native": ["search", "list_files"]},
    "control": {"name": "without", "native": ["search", "list_files"]},
}

"""External agents: what they are given, what is read of them, and what becomes of a run that goes wrong."""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.loop import Read
from cranfield.agents.protocol import Usage
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import ConfigError, UsageError
from cranfield.benefit.agent import AgentSetup, CellRun, open_agents
from cranfield.benefit.coding import load_coding_tasks
from cranfield.benefit.external.claude_code import ClaudeReader
from cranfield.benefit.external.codex import CodexReader, as_toml
from cranfield.benefit.external.command import PathsReader, TextReader
from cranfield.benefit.external.events import Events, transcript_fields
from cranfield.benefit.external.gateway import offered_tools, response_of
from cranfield.benefit.external.isolation import make_place, network_problem
from cranfield.benefit.plan import ArmRole, BenefitPlan, OutputPaths, ToolServer
from cranfield.benefit.records import CellEnd, CellUsage, PreflightRecord, ToolCount
from cranfield.benefit.tasks import Task
from cranfield.repo.snapshot import Snapshot, take
from cranfield.reporting.transcripts import transcripts_page

from .models_server import CACHED, INPUT, OUTPUT, REASONING, ModelServer, model_server, says

STAND_IN = Path(__file__).with_name("stand_in_agent.py")
PYTHON = (sys.executable, "-I", "-S")
KEY = "sk-a-very-secret-key"
TREATMENT, CONTROL = ArmRole.TREATMENT, ArmRole.CONTROL


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("MODEL_KEY", KEY)
    with model_server(lambda _: [says("hello")]) as server:
        yield server


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    folder = tmp_path / "repository"
    (folder / ".claude").mkdir(parents=True)
    (folder / "store.py").write_text("def add(item):\n    rows.append(item)\n")
    (folder / ".claude" / "settings.json").write_text('{"hooks": {}}')
    (folder / ".mcp.json").write_text("{}")
    (folder / "CLAUDE.md").write_text("Of the repository itself.")
    return take(folder)


def plan_of(url: str, tools: Mapping[str, ToolServer], **fields: Any) -> BenefitPlan:
    agent = {
        "kind": "claude-code",
        "command": (*PYTHON, str(STAND_IN)),
        "model": {"model": "anthropic:big", "base_url": url, "api_key_env": "MODEL_KEY"},
    } | fields.pop("agent", {})
    arms = {"treatment": {"name": "code-search", "tools": tuple(tools)}, "control": {"name": "plain"}}
    values = {"cranfield_benefit": 1, "name": "e", "tasks": {"coding": "t.yaml"}, "success": {"by": "facts"}}
    return BenefitPlan.model_validate({**values, "agent": agent, "tools": tools, "arms": arms, **fields})


def run(
    plan: BenefitPlan,
    prompt: str,
    snapshot: Snapshot | None = None,
    role: ArmRole = CONTROL,
    coding: Any = None,
) -> tuple[CellRun, tuple[PreflightRecord, ...]]:
    async def cell() -> tuple[CellRun, tuple[PreflightRecord, ...]]:
        async with open_agents(AgentSetup(plan, Path.cwd(), snapshot)) as agents:
            records = await agents[role].preflight()
            return await agents[role].run(Task("t1", prompt, coding=coding), 0, 1), records

    return event_loop().run(cell())


# What is read of the output


def read(reader: Any, *events: object) -> Any:
    for event in events:
        reader.line(event if isinstance(event, str) else json.dumps(event))
    reader.end()
    return reader.events


def test_the_usage_of_codex_is_that_of_all_requests_so_far_and_is_not_summed() -> None:
    def usage(requests: int) -> dict[str, Any]:
        tokens = {"input_tokens": 1000, "cached_input_tokens": 600, "output_tokens": 20, "reasoning_output_tokens": 5}
        return {"type": "turn.completed", "usage": {name: value * requests for name, value in tokens.items()}}

    call = {"id": "i1", "type": "mcp_tool_call", "server": "kc", "tool": "search", "arguments": {"query": "x"}}
    done = {**call, "status": "completed", "result": {"content": [{"type": "text", "text": "hit"}]}}
    refused = {**call, "id": "i2", "status": "failed", "error": {"message": "requires approval"}}
    empty = {"id": "i3", "type": "command_execution", "command": "grep x", "status": "failed", "exit_code": 1}
    items = [{"type": "item.completed", "item": item} for item in (done, refused, empty)]
    message = {"type": "item.completed", "item": {"id": "i4", "type": "agent_message", "text": "It is there."}}
    events = read(CodexReader(), "warning", {"type": "item.started", "item": call}, *items, usage(1), message, usage(3))
    assert events.usage == Usage(input=3000, cache_read=1800, cache_write=None, output=60, reasoning=15)
    assert (events.answer, events.is_finished, events.n_unread) == ("It is there.", True, 1)
    assert events.tool_counts == {"kc__search": ToolCount(ok=1, error=1), "shell": ToolCount(ok=1)}


def test_a_command_that_codex_could_not_start_is_an_error() -> None:
    item = {"id": "i", "type": "command_execution", "command": "cat a", "status": "failed", "exit_code": 127}
    assert read(CodexReader(), {"type": "item.completed", "item": item}).tool_counts == {"shell": ToolCount(error=1)}
    assert read(CodexReader(), {"type": "turn.failed", "error": {"message": "stream"}}).error == "stream"


def test_a_transcript_has_each_result_after_its_call_and_the_answer_last() -> None:
    events = Events(answer="It is there.")
    events.say("I look twice.")
    events.call("a", "find", {"query": "x"})
    events.call("b", "find", {"query": "y"})
    events.call("c", "find", {"query": "z"})
    events.result("b", "second", is_error=False)
    events.result("a", "first", is_error=True)
    usage = CellUsage(wall_s=2.0)  # neither tokens nor requests are known
    fields = transcript_fields(events, "Where?", usage, {"b": [Read("a.py", 1, 2)]}, CellEnd.ANSWERED, (None, ""))
    texts = [message["text"] for message in fields["messages"]]
    assert texts == ["Where?", "I look twice.", "", "first", "", "second", "", "It is there."]
    assert [(use["step"], use["turn"], use["is_error"]) for use in fields["uses"]] == [(1, 2, True), (2, 3, False)]
    named = {"query_id": "q1", "role": "control", "model": "m", "models": [], "system": "", "agent": "command"}
    html = transcripts_page([named | json.loads(json.dumps(fields))])
    notes = ("step 1, error", "step 2, read a.py:1-2", "the model, message 5", "an unknown number of requests", "2.0 s")
    assert not [words for words in (*notes, "of which unknown in requests") if words not in html]


def test_a_limit_of_claude_code_itself_is_an_end_and_no_crash() -> None:
    events = read(ClaudeReader(), {"type": "result", "subtype": "error_max_turns", "is_error": True, "usage": {}})
    assert (events.limit, events.is_finished, events.usage.total) == (CellEnd.TURNS, False, None)


LINES = [
    {"kind": "call", "tool": "find", "good": True},
    {"kind": "call", "tool": "find"},
    {"kind": "end", "text": "It is there.", "used": {"in": 70, "out": 7}, "model": "m-1"},
]


@pytest.mark.parametrize("text", [json.dumps(LINES), json.dumps(LINES, indent=1), "\n".join(map(json.dumps, LINES))])
def test_the_output_of_any_command_is_read_by_paths(text: str) -> None:
    paths = OutputPaths(
        answer="[-1].text",
        input="[-1].used.in",
        output="[-1].used.out",
        model="[-1].model",
        turns="length(@)",
        money="[-1].text",
        tool_calls="[?kind=='call'].{name: tool, ok: good}",
    )
    events = read(PathsReader(paths), *text.split("\n"))
    assert (events.answer, events.usage.total, events.models) == ("It is there.", 77, ["m-1"])
    assert (events.usage.cache_read, events.money, events.turns) == (None, None, 3)
    assert events.tool_counts == {"find": ToolCount(ok=1, error=1)}


def test_calls_that_a_command_does_not_report_are_not_known() -> None:
    """A list of no calls is a report of none; a path that finds nothing is no report."""

    def of(calls: object, path: str = "calls") -> Events:
        output = {"text": "It is there.", "calls": calls}
        found: Events = read(PathsReader(OutputPaths(answer="text", tool_calls=path)), output)
        return found

    assert of([]).tool_counts == {}
    assert [of([], path).tool_counts for path in ("", "cals")] == [None, None]
    assert [of(calls).tool_counts for calls in (None, "two", [{"name": "find", "ok": True}, 3])] == [None] * 3
    assert read(TextReader(), "It is there.").tool_counts is None
    assert [of([{"name": "find", "ok": True, **more}]).has_results for more in ({}, {"result": ""})] == [False, True]


ANTHROPIC = (
    'data: {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, '
    '"cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 1}}}\n\n'
    'data: {"type": "message_delta", "usage": {"output_tokens": 12}}\n\ndata: [DONE]\n\n'
)
RESPONSES = (
    'event: response.completed\ndata: {"response": {"model": "m", "usage": {"input_tokens": 9, '
    '"input_tokens_details": {"cached_tokens": 6}, "output_tokens": 2}}}\n\n'
)


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (
            {"model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}},
            Usage(input=9, output=2),
        ),
        (
            ANTHROPIC,
            Usage(input=48, cache_read=40, cache_write=5, output=12),  # 3 + 40 + 5: the cache is not among the 3
        ),
        (
            RESPONSES,
            Usage(input=9, cache_read=6, output=2),
        ),
        ('data: {"model": "m", "usage": null}\n\n', None),
    ],
)
def test_tokens_are_read_from_every_format_of_responses(body: object, usage: Usage | None) -> None:
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    assert response_of(data) == (usage, "m")
    assert response_of(b"<html>") == (None, "")


def test_the_names_of_offered_tools_are_the_same_in_every_format() -> None:
    group = {"type": "namespace", "name": "mcp__know-code", "tools": [{"name": "search"}]}
    chat = {"type": "function", "function": {"name": "mcp__know-code__search"}}
    flat = {"name": "mcp__know_code__search"}
    assert {name for tool in (group, chat, flat) for name in offered_tools({"tools": [tool]})} == {"know_code__search"}
    assert offered_tools({"tools": "none"}) == {}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = TEXTS | st.booleans() | st.integers() | st.lists(TEXTS, max_size=2) | st.dictionaries(TEXTS, TEXTS, max_size=2)


@given(st.dictionaries(st.sampled_from(["model", "mcp_servers"]), VALUES))
def test_settings_of_codex_are_toml(settings: dict[str, Any]) -> None:
    assert tomllib.loads(as_toml(settings)) == settings


# Runs


def test_a_run_is_counted_from_the_requests_and_delivery_from_what_they_offer(
    model: ModelServer, snapshot: Snapshot, code_search: Callable[..., ToolServer]
) -> None:
    tool = code_search(instructions="Ask it first.", preflight={"tool": "index_status", "version": "build.version"})
    plan = plan_of(model.url[:-3], {"code": tool}, agent={"system": "Be brief."})
    cell, (record,) = run(plan, "use", snapshot, TREATMENT)
    assert (record.ok, record.found, record.tools) == (True, {"version": "1.2"}, ("find_code", "index_status"))
    assert (cell.end, cell.answer, cell.message) == (CellEnd.ANSWERED, "the answer to use", "")
    assert cell.usage == CellUsage(
        total=INPUT + OUTPUT,
        uncached=INPUT - CACHED,
        cache_read=CACHED,
        output=OUTPUT,
        reasoning=REASONING,
        requests=1,
        turns=1,
        tool_calls={"Read": ToolCount(ok=1), "code__find_code": ToolCount(ok=1, error=1)},
        wall_s=cell.usage.wall_s,
        model_s=cell.usage.model_s,
        money=0.25,
    )
    assert cell.delivery is not None
    assert (cell.delivery.offered, cell.delivery.called, cell.delivery.answered) == (True, 2, 1)
    assert (cell.delivery.schema_tokens, cell.delivery.instructions_tokens) == (None, 4)  # 13 characters
    assert [(each.path, each.start, each.end, each.turn) for each in cell.reads] == [("store.py", 1, 2, 1)]
    assert (cell.models, cell.versions) == (("big-2026",), {"claude-code": "9.9.9 (Stand-in)"})
    assert [message["role"] for message in cell.transcript["messages"][:4]] == [
        "user",
        "assistant",
        "assistant",
        "tool",
    ]
    assert cell.transcript["system"] == "Be brief.\n\nAsk it first."
    html = transcripts_page([{**cell.transcript, "query_id": "t1", "role": "treatment"}])
    for words in ("answered, ", "Let me look.", "read store.py:1-2", "def add(item):", "reported as"):
        assert words in html


def test_an_agent_sees_a_place_of_its_own_and_no_key(
    model: ModelServer, snapshot: Snapshot, code_search: Callable[..., ToolServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMETHING", "private")
    monkeypatch.setenv("TOKEN", "a-token-of-the-tool")
    tool = code_search(env={"TOKEN": "{env.TOKEN}"})
    plan = plan_of(model.url[:-3], {"code": tool}, agent={"env": {"OWN": "{env.SOMETHING}"}})
    seen = {}
    for role in ArmRole:
        cell, _ = run(plan, "show", snapshot, role)
        assert KEY not in json.dumps([cell.answer, cell.transcript])
        assert "a-token-of-the-tool" not in json.dumps([cell.answer, cell.transcript])
        seen[role] = json.loads(cell.answer)
    home = Path(seen[TREATMENT]["env"]["HOME"])
    assert not home.exists()
    assert {"HOME", "TMPDIR", "CLAUDE_CONFIG_DIR", "PATH", "OWN"} <= set(seen[TREATMENT]["env"])
    assert not {"SOMETHING", "MODEL_KEY", "TOKEN", "PYTHONPATH", "USER"} & set(seen[TREATMENT]["env"])
    assert Path(seen[TREATMENT]["cwd"]).parent == home.parent
    assert seen[TREATMENT]["files"] == ["CLAUDE.md", "store.py"]
    assert "--strict-mcp-config" in seen[TREATMENT]["argv"]
    assert "mcp__code__index_status" in seen[TREATMENT]["argv"][seen[TREATMENT]["argv"].index("--disallowedTools") + 1]
    assert (set(seen[TREATMENT]["mcp"]), set(seen[CONTROL]["mcp"])) == ({"code"}, set())
    assert set(model.keys) == {""}  # sent as x-api-key, as the agent did


@pytest.mark.parametrize(
    ("prompt", "limits", "end", "error"),
    [
        ("silent", {}, CellEnd.INFRASTRUCTURE, "tool_not_started"),
        ("crash", {}, CellEnd.INFRASTRUCTURE, "agent_crashed"),
        ("nothing", {}, CellEnd.NO_ANSWER, "empty_answer"),
        ("most", {}, CellEnd.TURNS, ""),
        ("hang", {"seconds": 0.4}, CellEnd.SECONDS, ""),
        ("turns 4", {"turns": 3}, CellEnd.TURNS, ""),
        ("turns 4", {"tokens": 1500}, CellEnd.TOKENS, ""),
        ("calls 4", {"tool_calls": 2}, CellEnd.TOOL_CALLS, ""),
        ("turns 3", {"turns": 3}, CellEnd.ANSWERED, ""),
    ],
)
def test_every_end_has_its_kind(
    model: ModelServer,
    code_search: Callable[..., ToolServer],
    prompt: str,
    limits: dict[str, Any],
    end: CellEnd,
    error: str,
) -> None:
    role = TREATMENT if prompt == "silent" else CONTROL
    tools = {"code": code_search()} if prompt == "silent" else {}
    started = time.monotonic()
    cell, _ = run(plan_of(model.url[:-3], tools, limits=limits), prompt, role=role)
    assert (cell.end, cell.error) == (end, error), cell.message
    assert time.monotonic() - started < 10
    if end is CellEnd.TURNS and limits:
        assert (cell.usage.turns, cell.usage.total) == (3, 3 * (INPUT + OUTPUT))


@pytest.mark.parametrize(
    ("status", "error"), [(401, "authentication"), (429, "rate_limited"), (500, "server_error"), (418, "rejected")]
)
def test_a_failure_of_the_model_is_named_by_its_status(model: ModelServer, status: int, error: str) -> None:
    model.decide = lambda _: status
    cell, _ = run(plan_of(model.url[:-3], {}), "hello")
    assert (cell.end, cell.error) == (CellEnd.INFRASTRUCTURE, error)
    assert (cell.usage.requests, cell.usage.turns) == (1, 0)


LEAVES = """
import http.client, json, pathlib, sys, time, urllib.parse
place = urllib.parse.urlsplit(sys.argv[2])
connection = http.client.HTTPConnection(place.hostname, place.port)
connection.request("POST", place.path + "/v1/messages", json.dumps(dict(model="m", messages=[])))
while not pathlib.Path(sys.argv[3]).exists():
    time.sleep(0.01)
print("so it is")
"""


def test_tokens_of_a_request_that_was_cut_short_are_missing_and_not_zero(model: ModelServer, tmp_path: Path) -> None:
    """The agent ends while its request is under way."""
    released, came = Event(), tmp_path / "came"

    def decide(_: Any) -> Any:
        came.touch()
        return [says(str(released.wait(60)))]

    model.decide = decide
    command = (*PYTHON, "-c", LEAVES, "{prompt}", "{base_url}", str(came))
    cell, _ = run(plan_of(model.url[:-3], {}, agent={"kind": "command", "command": command}), "hello")
    released.set()
    assert (cell.end, cell.answer) == (CellEnd.ANSWERED, "so it is")
    assert (cell.usage.total, cell.usage.requests, cell.usage.unmeasured) == (None, 1, 1)


def test_a_run_that_ends_before_it_reports_its_tools_is_not_called_one_without_them(
    code_search: Callable[..., ToolServer],
) -> None:
    command = (*PYTHON, "-c", "import time; time.sleep(60)", "{prompt}", "{mcp_config}")
    agent = {"kind": "command", "command": command, "model": None, "usage": {"answer": "text", "offered": "offered"}}
    plan = plan_of("", {"code": code_search()}, agent=agent, limits={"seconds": 0.1})
    cell, _ = run(plan, "hello", role=TREATMENT)
    assert (cell.end, cell.error) == (CellEnd.INFRASTRUCTURE, "tool_not_started")
    assert cell.message.startswith("the limit of seconds was reached before the agent reported code__find_code")


def test_an_agent_that_reaches_its_model_in_another_way_has_no_known_delivery_and_no_known_tokens(
    model: ModelServer, code_search: Callable[..., ToolServer]
) -> None:
    command = (*PYTHON, "-c", "print('so it is')", "{prompt}", "{mcp_config}", "{base_url}")
    plan = plan_of(model.url[:-3], {"code": code_search()}, agent={"kind": "command", "command": command})
    cell, _ = run(plan, "hello", role=TREATMENT)
    assert (cell.end, cell.error) == (CellEnd.INFRASTRUCTURE, "tool_not_started")
    cell, _ = run(plan, "hello", role=CONTROL)
    assert (cell.end, cell.usage.total, cell.usage.unmeasured) == (CellEnd.ANSWERED, None, 1)


def test_what_an_agent_writes_is_taken_and_links_are_not(model: ModelServer, snapshot: Snapshot) -> None:
    task = load_coding_tasks("package:python", Path()).tasks[0]
    cell, _ = run(plan_of(model.url[:-3], {}), "write", snapshot, coding=task)
    assert cell.end is CellEnd.ANSWERED
    changed = "def add(item):\n    rows.append(item)\n# changed\n"
    assert cell.files == {"src/new.py": "x = 1\n", "store.py": changed}


def test_any_command_is_an_agent(model: ModelServer, code_search: Callable[..., ToolServer]) -> None:
    options = ("-p", "{prompt}", "--mcp-config", "{mcp_config}", "--model", "{model}")
    agent = {
        "kind": "command",
        "command": (*PYTHON, str(STAND_IN), *options),
        "usage": "claude-code",
        "env": {"ANTHROPIC_BASE_URL": "{base_url}", "ANTHROPIC_API_KEY": "{key}"},
    }
    cell, _ = run(plan_of(model.url[:-3], {"code": code_search()}, agent=agent), "use", role=TREATMENT)
    assert (cell.end, cell.delivery and cell.delivery.answered) == (CellEnd.ANSWERED, 1)
    assert cell.delivery is not None
    assert cell.delivery.instructions_tokens is None  # the server sends some: the agent may leave them out
    plain = {"kind": "command", "command": (*PYTHON, "-c", "print('so it is')", "{prompt}"), "model": None}
    cell, _ = run(plan_of("", {}, agent=plain), "hello")
    assert (cell.end, cell.answer) == (CellEnd.ANSWERED, "so it is")
    assert (cell.usage.total, cell.usage.unmeasured, cell.usage.turns, cell.usage.money) == (None, 1, None, None)
    assert (cell.usage.tool_calls, cell.usage.n_tool_calls, cell.reads) == (None, None, None)


REPORTS = """
import json
calls = [{"name": "mcp__code__find_code", "ok": True, "arguments": {}, "result": "store.py: rows"}] * 2
print(json.dumps({"text": "so it is", "offered": ["mcp__code__find_code", "mcp__code__index_status"], "calls": calls}))
"""


@pytest.mark.parametrize(
    ("path", "most", "end", "called", "payload"),
    [
        ("calls", 2, CellEnd.ANSWERED, 2, 8),
        ("calls", 1, CellEnd.TOOL_CALLS, 2, 8),  # all calls are read at the end
        ("calls[].{name: name, ok: ok}", 2, CellEnd.ANSWERED, 2, None),
        ("", 1, CellEnd.ANSWERED, None, None),
    ],
)
def test_what_a_command_does_not_report_of_its_calls_is_missing(
    code_search: Callable[..., ToolServer], path: str, most: int, end: CellEnd, called: int | None, payload: int | None
) -> None:
    usage = {"answer": "text", "offered": "offered", "tool_calls": path}
    command = (*PYTHON, "-c", REPORTS, "{prompt}", "{mcp_config}")
    agent = {"kind": "command", "command": command, "model": None, "usage": usage}
    plan = plan_of("", {"code": code_search()}, agent=agent, limits={"tool_calls": most})
    cell, _ = run(plan, "hello", role=TREATMENT)
    assert cell.delivery is not None
    assert (cell.end, cell.usage.n_tool_calls) == (end, called), cell.message
    assert (cell.delivery.called, cell.delivery.answered, cell.delivery.payload_tokens) == (called, called, payload)
    assert (cell.reads is None) == (payload is None)


@pytest.mark.parametrize(
    ("output", "limits", "end", "error"),
    [
        ({"text": "so it is", "in": 90, "out": 20, "turns": 3}, {"turns": 3, "tokens": 110}, CellEnd.ANSWERED, ""),
        ({"text": "so it is", "in": 90, "out": 20, "turns": 3}, {"turns": 2}, CellEnd.TURNS, ""),
        ({"text": "so it is", "in": 90, "out": 20}, {"tokens": 109}, CellEnd.TOKENS, ""),
        ({"text": "so it is"}, {"turns": 2, "tokens": 109}, CellEnd.ANSWERED, ""),
        ({"text": ""}, {}, CellEnd.NO_ANSWER, "empty_answer"),
        ({"text": "", "error": "429 too many requests"}, {}, CellEnd.INFRASTRUCTURE, "rate_limited"),
        ({"txt": "so it is"}, {}, CellEnd.INFRASTRUCTURE, "agent_crashed"),
    ],
)
def test_what_a_command_reports_decides_its_end(
    output: Mapping[str, Any], limits: Mapping[str, int], end: CellEnd, error: str
) -> None:
    paths = {"answer": "text", "input": "in", "output": "out", "turns": "turns", "error": "error"}
    command = (*PYTHON, "-c", f"print({json.dumps(output)!r})", "{prompt}")
    agent = {"kind": "command", "command": command, "model": None, "usage": paths}
    cell, _ = run(plan_of("", {}, agent=agent, limits=limits), "hello")
    assert (cell.end, cell.error) == (end, error), cell.message
    if error == "agent_crashed":
        assert cell.message == "exit status 0: its output has no answer"


def test_without_a_network_only_the_model_is_reached_or_the_plan_is_refused(model: ModelServer) -> None:
    plan = plan_of(model.url[:-3], {}, agent={"network": "none"})
    if network_problem():
        with pytest.raises(ConfigError, match="without a network"):
            run(plan, "outside")
    else:
        cell, _ = run(plan, "outside")
        assert cell.answer == "errno 101; model 200"  # network unreachable


# What is refused


def test_everything_that_a_plan_gets_wrong_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ABSENT", raising=False)
    server = ToolServer(url="http://127.0.0.1:1/mcp", results=3, results_parameter="limit", result_tokens=9)
    agent = {
        "kind": "command",
        "command": ("no-such-program", "{promt}"),
        "model": {"model": "big", "temperature": 0.2, "api_key_env": "ABSENT"},
        "usage": {"answer": "a[", "input": "sum(@"},
        "env": {"A": "{env.ABSENT}"},
    }
    arms = {"treatment": {"name": "a", "tools": ("code",)}, "control": {"name": "b", "native": ()}}
    with pytest.raises(ConfigError) as caught:
        run(plan_of("", {"code": server}, agent=agent, arms=arms), "hello")
    places = {problem.path for problem in caught.value.problems}
    assert places == {
        "agent",
        "agent.command",
        "agent.env",
        "agent.usage.answer",
        "agent.usage.input",
        "agent.model.model",
        "agent.model.api_key_env",
        "agent.model.temperature",
        "arms.control.native",
        "tools.code",
        "tools.code.result_tokens",
    }
    assert len(caught.value.problems) == 14


def test_a_program_that_never_tells_its_version_is_refused(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.benefit.external.opening._VERSION_S", 0.05)
    plan = plan_of(model.url, {}, agent={"command": (*PYTHON, "-c", "import time; time.sleep(60)")})
    with pytest.raises(ConfigError, match=r"--version: time limit of 0\.05 s exceeded"):
        run(plan, "hello")


def test_files_that_look_like_secrets_are_not_there(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in (".env", "id_rsa", "app.py"):
        (source / name).write_text("TOKEN=hush-4711")
    code = "import os; print(' '.join(sorted(os.listdir())))"
    agent = {"kind": "command", "command": (*PYTHON, "-c", code, "{prompt}"), "model": None}
    cell, _ = run(plan_of("", {}, agent=agent), "hello", take(source))
    assert cell.answer == "app.py"


def test_a_place_below_instructions_of_agents_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "AGENTS.md").write_text("Always use the tool.")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UsageError, match="in a parent of their working folder"):
        make_place(None)
    assert [path.name for path in tmp_path.iterdir()] == ["AGENTS.md"]


def test_a_folder_that_an_agent_locked_is_removed() -> None:
    place = make_place(None)
    locked = place.workdir / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    locked.chmod(0o500)
    place.remove()
    assert not place.root.exists()


def test_the_gateway_answers_nobody_but_the_agent(model: ModelServer) -> None:
    code = "import os, urllib.parse, http.client as h; u = urllib.parse.urlsplit(os.environ['U'])\n"
    code += "c = h.HTTPConnection(u.hostname, u.port); c.request('GET', '/v1/models'); print(c.getresponse().status)"
    agent = {"kind": "command", "command": (*PYTHON, "-c", code, "{prompt}"), "env": {"U": "{base_url}"}}
    cell, _ = run(plan_of(model.url[:-3], {}, agent=agent), "hello")
    assert (cell.answer, model.requests) == ("404", [])

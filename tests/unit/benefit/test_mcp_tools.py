"""A server under test as tools of an agent: what it lists, what a call gives, and every way in which it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.loop import ToolResult
from cranfield.agents.protocol import ToolCall
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import ConfigError
from cranfield.benefit.delivery import tool_preflight
from cranfield.benefit.errors import CellError
from cranfield.benefit.mcp_tools import McpTools, ToolServerError
from cranfield.benefit.plan import ArmRole, Preflight, ToolServer
from cranfield.benefit.records import PreflightRecord

pytestmark = pytest.mark.slow  # importing the library of the protocol alone takes a second


@pytest.fixture
def tools(code_search: Any) -> Iterator[Any]:
    """Tools by the modes of their server; ended when the test is over."""
    made: list[McpTools] = []

    def make(*modes: str, **fields: Any) -> McpTools:
        made.append(McpTools("kc", code_search(*modes, **fields)))
        return made[-1]

    yield make
    for each in made:
        event_loop().run(each.aclose())


def opened(tools: McpTools) -> McpTools:
    event_loop().run(tools.open())
    return tools


def ask(tools: McpTools, query: str, **more: Any) -> ToolResult:
    call = ToolCall("c1", "kc__find_code", json.dumps({"query": query, **more}))
    return event_loop().run(tools.call(call))


def fault(tools: McpTools) -> tuple[CellError, str]:
    with pytest.raises(ToolServerError) as raised:
        opened(tools)
    return raised.value.error, str(raised.value)


def test_the_tools_of_the_plan_are_offered_with_the_name_of_their_server(tools: Any) -> None:
    found = opened(tools("late", tools=()))
    assert [tool.name for tool in found.tools] == ["kc__find_code", "kc__index_status"]
    assert (found.version, found.listed) == ("codesearch 1.2", ("find_code", "index_status"))
    assert found.instructions == "Call find_code first."
    one = opened(tools(instructions="Search before you read."))
    assert [tool.name for tool in one.tools] == ["kc__find_code"]
    assert one.instructions == "Search before you read."
    assert one.schema_digest != found.schema_digest


def test_the_run_sets_the_number_of_results_whatever_the_model_writes(tools: Any) -> None:
    found = opened(tools(results_parameter="limit", results=2))
    assert len(json.loads(ask(found, "r", limit=9).text)) == 2
    assert len(json.loads(ask(found, "r").text)) == 2
    assert len(json.loads(ask(opened(tools()), "r", limit=9).text)) == 3


def test_a_long_result_is_cut_to_its_tokens(tools: Any) -> None:
    result = ask(opened(tools(result_tokens=10)), "huge")
    assert result.text == "x" * 40 + "\n... 99,960 more characters are not shown"
    assert not result.is_error


SDK_SERVER = """
import json
from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk", version="2")
STATUS = {"index": "main", "commit": "c" * 40}


@server.tool()
def as_text() -> str:
    return json.dumps(STATUS)


@server.tool()
def as_object() -> dict[str, str]:
    return STATUS


@server.tool()
def as_list() -> list[dict[str, str]]:
    return [STATUS]


@server.tool()
def as_words() -> str:
    return "the index is main"


server.run("stdio")
"""


def test_the_preflight_reads_results_as_the_sdk_sends_them(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SDK_SERVER)
    command = ("{python}", str(tmp_path / "server.py"))

    def found(tool: str, index: str = "index") -> tuple[Mapping[str, Any], str]:
        preflight = {"tool": tool, "index": index, "expect": {"index": "main"}}
        tools = McpTools("sdk", ToolServer(command=command, preflight=Preflight.model_validate(preflight)))

        async def once() -> PreflightRecord:
            try:
                return await tool_preflight(ArmRole.TREATMENT, tools)
            finally:
                await tools.aclose()

        record = event_loop().run(once())
        return record.found, record.message

    main = ({"index": "main"}, "")
    assert found("as_text") == main
    assert found("as_object") == main
    assert found("as_list", "result[0].index") == main
    assert found("as_words")[1] == "its result has no index at index; got {'result': 'the index is main'}"


def test_an_error_of_the_tool_is_the_tools_and_names_no_secret(tools: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("SEARCH_TOKEN", "hush-4711")
    found = opened(tools(env={"TOKEN": "{env.SEARCH_TOKEN}"}))
    assert ask(found, "fail") == ToolResult("no such index for ${SEARCH_TOKEN}\nat line 3", is_error=True)
    assert event_loop().run(found.ask("index_status", {}))["token"] == "${SEARCH_TOKEN}"
    assert found.n_started == 1


def test_a_call_that_does_not_end_is_an_error_and_the_next_one_finds_a_server(tools: Any) -> None:
    found = opened(tools(call_timeout_s=1))
    assert ask(found, "hang") == ToolResult("error: no answer in 1 s", is_error=True)
    assert not ask(found, "rows").is_error
    assert found.n_started == 2


@pytest.mark.parametrize("written", ["[1]", "{", "7"])
def test_arguments_that_are_no_object_do_not_reach_the_server(tools: Any, written: str) -> None:
    result = event_loop().run(opened(tools()).call(ToolCall("c1", "kc__find_code", written)))
    assert result == ToolResult("error: the arguments are not a JSON object", is_error=True, is_unsent=True)


@pytest.mark.parametrize("query", ['"\\ud800"', "[" * 300 + "]" * 300])
def test_arguments_that_cannot_be_sent_are_an_error_of_the_call_alone(tools: Any, query: str) -> None:
    found = opened(tools())
    result = event_loop().run(found.call(ToolCall("c1", "kc__find_code", f'{{"query": {query}}}')))
    message = "error: the arguments cannot be sent: a lone surrogate, or nested too deeply"
    assert result == ToolResult(message, is_error=True)
    assert not ask(found, "rows").is_error
    assert found.n_started == 1


def test_a_server_that_ends_is_started_again_and_the_call_is_an_error(tools: Any) -> None:
    found = opened(tools())
    result = ask(found, "exit")
    assert result.is_error
    assert "exit status 3; it was started again" in result.text
    assert not ask(found, "rows").is_error
    assert found.n_started == 2


@pytest.mark.parametrize(
    ("mode", "error"), [("never-again", CellError.TOOL_LOST), ("other-tools-later", CellError.TOOL_CHANGED)]
)
def test_a_server_that_does_not_come_back_as_it_was_is_a_fault(tools: Any, mode: str, error: CellError) -> None:
    found = opened(tools(mode, tools=()))
    with pytest.raises(ToolServerError) as raised:
        ask(found, "exit")
    assert raised.value.error is error
    assert "exit status 3" in str(raised.value)


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        ("never", CellError.TOOL_NOT_STARTED, "the tool kc did not start: the server ended with exit status 1"),
        ("silent", CellError.TOOL_NOT_STARTED, "the tool kc did not start: no list of its tools in 0.5 s"),
        ("other-tools", CellError.TOOL_CHANGED, "has no tool find_code; it lists: index_status, search_code"),
    ],
)
def test_a_server_without_the_tools_of_the_plan_is_a_fault(tools: Any, mode: str, error: Any, words: str) -> None:
    seconds = 0.5 if mode == "silent" else 30
    found, message = fault(tools(mode, start_timeout_s=seconds))
    assert found is error
    assert words in message
    if mode == "never":
        assert "the index is damaged" in message


def test_a_parameter_that_no_tool_has_and_a_name_that_is_too_long_are_faults(tools: Any, code_search: Any) -> None:
    assert "no tool has the argument top_k" in fault(tools(results_parameter="top_k"))[1]
    long = McpTools("k" * 60, code_search())
    assert "over 64 characters" in fault(long)[1]


def test_every_variable_that_is_not_set_is_a_problem() -> None:
    server = ToolServer(url="http://127.0.0.1:1/{env.NOT_SET_A}", headers={"Authorization": "Bearer {env.NOT_SET_B}"})
    with pytest.raises(ConfigError) as raised:
        McpTools("kc", server)
    assert [each.message for each in raised.value.problems] == [
        "the environment variable NOT_SET_A is not set",
        "the environment variable NOT_SET_B is not set",
    ]


def test_a_server_over_http_that_is_not_there_is_a_fault() -> None:
    assert fault(McpTools("kc", ToolServer(url="http://127.0.0.1:1/mcp")))[0] is CellError.TOOL_NOT_STARTED

"""MCP servers that mean harm: their schemas, their handshakes and their errors."""

import asyncio
import json
import time

import httpx2
import pytest

from cranfield.base.errors import PreflightError
from cranfield.model import Outcome, Query
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.mcp import McpSystem
from cranfield.systems.kinds.mcp_session import ReasonClient, find_mismatch

TREE = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
ENDLESS = {
    "itself": {"$ref": "#"},
    "nowhere": {"$ref": "#/nowhere"},
    "elsewhere": {"$ref": "http://127.0.0.1:9/schema.json"},
    "file": {"$ref": "file:///etc/passwd"},
    "tree": {"$defs": TREE, "allOf": [{"$ref": "#/$defs/a0"}]},
    "pattern": {"type": "string", "pattern": "^(a+)+$"},
    "no pattern": {"type": "string", "pattern": "("},
    "no type": {"type": "nosuch"},
    "number": {"type": 7, "required": 3, "properties": [], "anyOf": {}, "items": 4},
}

SERVER = r"""
import json, os, sys
kind = sys.argv[1]
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    number, method = message["id"], message["method"]
    version = message.get("params", {}).get("protocolVersion")
    if method == "initialize":
        if kind == "refuses":
            say(id=number, error={"code": -32603, "message": "no index\nat line 3"}); continue
        if kind == "old":
            version = "1999-01-01"
        if kind == "line":
            print("x" * (17 << 20), flush=True)
        if kind == "closes":
            os.close(1); sys.stdin.read()
        info = {"name": "x", "version": "1"}
        say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        tool = {"name": "search", "inputSchema": {"type": "object", "properties": json.load(open("properties"))}}
        if kind == "output":
            tool["outputSchema"] = {"type": "object", "properties": tool["inputSchema"]["properties"]}
        say(id=number, result={"tools": [tool]})
    elif method != "tools/call":
        say(id=number, error={"code": -32601, "message": "no such method"})
    elif message["params"]["arguments"]["query"] == "fail":
        say(id=number, error={"code": -32000, "message": "too busy", "data": {"cranfield": ["waits", True, 60, 1]}})
    elif message["params"]["arguments"]["query"] == "many":
        say(id=number, result={"content": [{"type": "text", "text": "x"}] * 10_001})
    elif message["params"]["arguments"]["query"] == "values":
        say(id=number, result={"_meta": {"x": [0] * 1_000_000}, "content": []})
    elif message["params"]["arguments"]["query"] == "asks":
        while True:
            say(id="s1", method="ping")
    elif message["params"]["arguments"]["query"] == "asks twice":
        say(id="s1", method="ping")
        say(id="s2", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        found = [json.loads(sys.stdin.readline()) for _ in range(2)]
        hits = [{"id": f"{one['id']} {one.get('result', one.get('error', {}).get('code'))}"} for one in found]
        say(id=number, result={"content": [], "structuredContent": {"hits": hits}})
    else:
        say(id=number, result={"content": [], "structuredContent": {"hits": [{"id": "d1"}], "query": "a" * 40 + "!"}})
"""


@pytest.fixture
def server(tmp_path, script):
    """A system whose server behaves as its argument says."""
    name, made = script(SERVER, "server.py"), []
    (tmp_path / "properties").write_text("{}")

    def start(kind, **config):
        mcp = {"command": ["{python}", "-I", "-S", name, kind], "tool": "search", "arguments": {"query": "{query}"}}
        made.append(McpSystem.of("tool", folder=tmp_path, mcp=mcp, extract={"json": "hits", "id": "id"}, **config))
        return made[-1]

    yield start
    for system in made:
        system.close()


def ask(system, text="grid"):
    answer, _ = system.search(Query("q1", text), 10)
    return answer.outcome, [hit.id for hit in answer.hits], answer.reason


@pytest.mark.parametrize("schema", [*ENDLESS.values(), {"anyOf": list(ENDLESS.values())}], ids=[*ENDLESS, "all"])
def test_a_schema_is_followed_nowhere_and_to_no_end(schema):
    begun = time.process_time()
    assert find_mismatch({"type": "object", "properties": {"query": schema}}, {"query": "a" * 40 + "!"}) is None
    assert time.process_time() - begun < 1


def test_a_schema_nested_without_end_is_read_to_a_depth():
    schema = {"type": "string"}
    for _ in range(5_000):
        schema = {"anyOf": [schema], "properties": {"a": schema}}
    assert find_mismatch(schema, 3) is None


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"type": "string"}, 3, "it is a number, not of type string"),
        ({"type": ["string", "null"]}, None, None),
        ({"type": "integer"}, True, "it is true or false, not of type integer"),
        ({"type": "integer"}, 3.0, None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, [], "it matches none of the alternatives"),
        ({"allOf": [{}, {"type": "array"}]}, {}, "it is an object, not of type array"),
        ({"required": ["hits"]}, {}, "it has no 'hits'"),
        ({"properties": {"hits": {"items": {"required": ["id"]}}}}, {"hits": [{"id": 1}, {}]}, "item 2 of 'hits' has no 'id'"),
        ({"prefixItems": [{}], "items": {"type": "string"}}, [3], None),
    ],
)  # fmt: skip
def test_what_a_schema_says_itself_is_checked(schema, value, found):
    assert find_mismatch(schema, value) == found


@pytest.mark.parametrize("kind", ["input", "output"])
def test_any_schema_passes_the_preflight_and_holds_up_no_call(server, tmp_path, kind):
    (tmp_path / "properties").write_text(json.dumps({**ENDLESS, "query": {"anyOf": list(ENDLESS.values())}}))
    system = server(kind, timeout_s=20)
    preflight([system])
    assert ask(system) == (Outcome.ANSWERED, ["d1"], None)


def test_an_error_of_the_server_is_its_own_and_the_session_stays(server):
    system = server("input")
    assert ask(system, "fail") == (Outcome.ERROR, [], "too busy")
    assert ask(system, "many") == (Outcome.ERROR, [], "an answer of over 10000 parts")
    assert ask(system)[0] is Outcome.ANSWERED


def test_requests_of_the_server_without_end_do_not_hold_up_the_time_limit(server):
    system = server("input")
    assert ask(system, "asks twice") == (Outcome.ANSWERED, ["s1 {}", "s2 -32601"], None)
    system.config = system.config.model_copy(update={"timeout_s": 0.3})
    begun = time.monotonic()
    assert ask(system, "asks") == (Outcome.TIMEOUT, [], "no answer in 0.3 s")
    assert time.monotonic() - begun < 1.3


def test_a_line_of_very_many_values_is_not_read(server):
    system = server("input", retries=0)
    assert ask(system, "values") == (Outcome.ERROR, [], "the server wrote a line of over 1,000,000 values")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refuses", "no session: MCPError: no index"),
        ("old", "no session: RuntimeError: Unsupported protocol version from the server: 1999-01-01"),
        ("line", "the server wrote a line of over 16 MB"),
        pytest.param("closes", "the server closed its output but did not exit", marks=pytest.mark.slow),
    ],
)
def test_a_handshake_that_fails_says_what_the_server_did(server, kind, reason):
    system = server(kind, timeout_s=20)
    assert ask(system) == (Outcome.ERROR, [], reason)
    with pytest.raises(PreflightError, match="a server that answers"):
        preflight([system])


def test_bytes_after_an_answer_over_http_are_no_other_answer(serve, servers):
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}HTTP/1.1 200 OK\r\n"
    service = serve(lambda _: servers.Sent(raw=raw))

    async def fetch() -> None:
        async with ReasonClient() as client, client.stream("POST", service.url, json={}) as response:
            await response.aread()

    with pytest.raises(httpx2.ReadError, match="17 bytes follow the end of the answer"):
        asyncio.run(fetch())

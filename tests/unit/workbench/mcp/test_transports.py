"""The real process, driven by the official client: over stdin and stdout, and over HTTP with a token."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from cranfield.base.errors import UsageError
from cranfield.workbench.mcp.http import Tokens, fixed_token, known_hosts

from .conftest import content, mean, problem

TOKEN = "t" * 40
COMMAND = [sys.executable, "-m", "cranfield", "mcp", "cranfield.yaml"]


@pytest.fixture
def folder(evidence_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(evidence_folder, tmp_path / "folder")


@pytest.mark.slow
def test_over_stdio_nothing_but_the_protocol_is_printed(folder: Path) -> None:
    """A line that is no message would end the session of the client."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    (folder / "search.py").write_text("print('noise')\n" + (folder / "search.py").read_text().replace("slow", "none"))

    async def main() -> None:
        given = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=str(folder))
        async with Client(given) as client:
            made = content(await client.call_tool("evaluate", {"testset": "testset", "run": "runs/a.trec"}))
            assert mean(made) == 0.375
            seen: list[float] = []

            async def count(n: float, _total: float | None, _message: str | None) -> None:
                seen.append(n)

            asked = await client.call_tool(
                "evaluate", {"testset": "testset", "system": "good"}, progress_callback=count
            )
            assert content(asked)["void"]  # the noise is no JSON
            assert max(seen) == 8

    anyio.run(main)


@pytest.mark.slow
def test_a_cancelled_call_ends_the_system_and_not_the_server(folder: Path) -> None:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    async def main() -> None:
        given = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=str(folder))
        async with Client(given) as client:
            async with anyio.create_task_group() as group:

                async def evaluate() -> None:
                    await client.call_tool("evaluate", {"testset": "testset", "system": "slow"})

                group.start_soon(evaluate)
                await until((folder / "asked").exists)
                group.cancel_scope.cancel()
            await until(lambda: not searching(folder))
            content(await client.call_tool("list_systems"))

    anyio.run(main)


async def until(holds: Callable[[], bool]) -> None:
    """Look until something holds, for a minute at most."""
    for _ in range(3000):
        if holds():
            return
        await anyio.sleep(0.02)
    pytest.fail("it did not happen within a minute")


def searching(folder: Path) -> list[str]:
    """Processes of the search script of this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"search.py" in (entry / "cmdline").read_bytes():
                found += [entry.name] if (entry / "cwd").resolve() == folder.resolve() else []
        except OSError:
            continue
    return found


@contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """The server over HTTP, as a process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "CRANFIELD_MCP_TOKEN": TOKEN}
    command = [*COMMAND, "--http", "--port", str(port), *options]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if line.startswith("Serving at "):
                    break
            yield line.removeprefix("Serving at ").strip()
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
            assert process.wait(30) == 0, rest
            assert TOKEN not in rest
        finally:
            process.kill()


@pytest.mark.slow
def test_over_http_with_a_token(folder: Path) -> None:
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def main(address: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=30) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            listed = content(await client.call_tool("list_systems"))
            assert [each["allowed"] for each in listed["systems"]] == [True, False, False]
            refused = await client.call_tool("evaluate", {"testset": "testset", "system": "slow"})
            assert "does not allow queries to slow" in problem(refused)
            made = content(await client.call_tool("evaluate", {"testset": "testset", "system": "good"}))
            assert mean(made) == 0.875  # 7 of 8 queries

    with running(folder, "--systems", "good") as address:
        anyio.run(main, address)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


@pytest.mark.slow
def test_token_host_and_origin_are_checked(folder: Path) -> None:
    token = {"authorization": f"Bearer {TOKEN}"}
    rows = [
        (token, 200),
        ({}, 401),
        ({"authorization": "Bearer " + "x" * 40}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        (token | {"host": "evil.example.org"}, 421),
        (token | {"origin": "https://evil.example.org"}, 403),
        (token | {"origin": "null"}, 403),
        (token | {"origin": "https://agents.example.org"}, 200),
    ]
    with running(folder, "--allow-origin", "https://agents.example.org") as address:
        accept = {"accept": "application/json, text/event-stream"}
        for headers, status in rows:
            answer = httpx2.post(address, json=INITIALIZE, headers=accept | headers, timeout=30)
            assert answer.status_code == status, headers
        large = httpx2.post(address, content=b" " * 2_000_000, headers=accept | token, timeout=30)
        assert large.status_code in {400, 413}


def test_an_address_that_others_reach_needs_its_name() -> None:
    with pytest.raises(UsageError, match="its host name is not set"):
        known_hosts("0.0.0.0", 80, ())
    assert known_hosts("0.0.0.0", 80, ("agents.example.org",)) == ["agents.example.org"]


def test_a_token_of_the_environment_must_be_long() -> None:
    assert fixed_token({"CRANFIELD_MCP_TOKEN": TOKEN}) == (TOKEN, False)
    assert fixed_token({})[1]
    with pytest.raises(UsageError, match="has 5 characters"):
        fixed_token({"CRANFIELD_MCP_TOKEN": "short"})


def test_tokens_of_accounts_are_admitted_by_role_and_scope(tmp_path: Path) -> None:
    from contextlib import closing

    from cranfield.books.store.schema import Role
    from cranfield.books.store.store import open_store

    with closing(open_store(tmp_path / "books.db")) as store:
        tokens = Tokens(TOKEN, store)
        day = 86_400_000
        lee = store.people.add("lee", role=Role.LEAD).id
        vic = store.people.add("vic", role=Role.VIEWER).id
        sent = {
            "read": store.people.add_token(vic, "t", "read", day),
            "evaluate": store.people.add_token(lee, "t", "evaluate", day),
            "judge": store.people.add_token(lee, "t", "judge", day),
            "unknown": "x" * 40,
            "fixed": TOKEN,
        }
        found = {name: tokens.find(token) for name, token in sent.items()}
        assert {name: each and each.scopes for name, each in found.items()} == {
            "read": ["read"],
            "evaluate": ["read", "evaluate"],
            "judge": None,
            "unknown": None,
            "fixed": ["read", "evaluate"],
        }
        assert [found[name].client_id for name in ("read", "fixed")] == ["vic", "operator"]
        assert Tokens("").find("") is None

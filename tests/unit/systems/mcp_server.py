"""An MCP server over an FTS5 table, for the tests: `mcp_server.py stdio`, or `mcp_server.py http`, which prints its port.

What it is asked for decides how it behaves: see `search`.
"""

import json
import os
import socket
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

DOCUMENTS = [
    ("d1", "grid layout of a page"),
    ("d2", "grid of wires"),
    ("d3", "layout of a garden"),
    ("d4", "wires and cables, wires"),
]
server = MCPServer("documents")


def say(words: str, stream: TextIO = sys.stdout) -> None:
    stream.write(words + "\n")
    stream.flush()


def found(query: str, limit: int) -> list[dict[str, Any]]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, body)")
    connection.executemany("INSERT INTO documents VALUES (?, ?)", DOCUMENTS)
    words = " OR ".join(f'"{word}"' for word in query.replace('"', " ").split()) or '""'
    sql = "SELECT id, -bm25(documents), body FROM documents WHERE documents MATCH ? ORDER BY 2 DESC, 1 LIMIT ?"
    rows = connection.execute(sql, (words, limit)).fetchall()
    connection.close()
    return [{"id": id_, "score": score, "title": body} for id_, score, body in rows]


@server.tool()
def search(query: str, limit: int = 10, lang: str | None = None) -> dict[str, Any]:
    """Search, or behave as the query says."""
    if query == "fail":
        raise ToolError("no such index\nat line 3")
    if query == "exit":
        say("going down", sys.stderr)
        os._exit(3)
    if query == "hang":
        Path("hanging").write_text(str(os.getpid()))
        time.sleep(60)
    if query == "secret":
        raise ToolError(f"denied for {os.environ.get('TOKEN')}")
    say("a word on stderr", sys.stderr)
    return {"hits": found(query, limit), "pid": os.getpid(), "lang": lang}


@server.tool(structured_output=False)
def listing(query: str) -> str:
    """Search, answered in text."""
    return "\n".join(json.dumps(hit) for hit in found(query, 10))


@server.tool()
def upload(document: str, name: str) -> str:
    """Another tool."""
    return document + name


def serve_http() -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    app: Starlette = server.streamable_http_app()

    refusals = int(os.environ.get("REFUSALS", "0"))
    token = os.environ.get("WANTED_TOKEN")

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        nonlocal refusals
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        if token and request.headers.get("authorization") != f"Bearer {token}":
            await PlainTextResponse("no", status_code=401)(scope, receive, send)
            return
        if refusals and b'"tools/call"' in body:
            refusals -= 1
            await PlainTextResponse("busy", status_code=429, headers={"Retry-After": "0"})(scope, receive, send)
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return messages.pop() if messages else await receive()

        await app(scope, again, send)

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    listening.listen(100)
    say(str(listening.getsockname()[1]))
    uvicorn.Server(uvicorn.Config(guarded, log_level="error")).run([listening])


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve_http()
    else:
        if "--noisy" in sys.argv:
            say("loading the index ...")
        server.run("stdio")

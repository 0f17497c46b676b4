"""Messages to and from an MCP server over stdio. What would hold up the event loop does not reach the SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES, ChildProcess, TooMuchOutputError
from cranfield.systems.calls.answer_schema import MAX_HITS

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp_types import JSONRPCMessage, JSONRPCRequest

_MAX_PARTS = 1_000_000
"""Maximum number of values in a line, counted by commas and brackets: reading more would block the event loop for seconds."""
_NO_SUCH_METHOD = -32601


@asynccontextmanager
async def stdio_streams(program: ChildProcess, note_end: Callable[[str], None]) -> AsyncIterator[TransportStreams]:
    """Messages to and from a program as lines; invalid lines are ignored, because many servers print to stdout."""
    import anyio
    import mcp_types
    from mcp.shared.message import SessionMessage

    to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def reader() -> None:
        async with to_session:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                while (line := await _next_line(program, note_end)) is not None:
                    try:
                        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        continue
                    if isinstance(message, mcp_types.JSONRPCRequest):
                        with suppress(OSError):
                            await program.write_line(_answer_to(message))
                        continue
                    await to_session.send(SessionMessage(_bounded(message)))

    async def writer() -> None:
        async with from_session:
            with suppress(OSError):
                async for message in from_session:
                    await program.write_line(message.message.model_dump_json(by_alias=True, exclude_unset=True))

    tasks = [asyncio.create_task(reader()), asyncio.create_task(writer())]
    try:
        yield read, write
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for stream in (read, write):
            stream.close()
        await program.end()


async def _next_line(program: ChildProcess, note_end: Callable[[str], None]) -> bytes | None:
    try:
        line = await program.read_line()
    except TooMuchOutputError:
        note_end(f"wrote a line of over {MAX_OUTPUT_BYTES // 1024**2} MB")
        return None
    if line is None:
        note_end(await program.describe_end())
    elif sum(map(line.count, (b",", b"[", b"{"))) > _MAX_PARTS:
        note_end(f"wrote a line of over {_MAX_PARTS:,} values")
        return None
    return line


def _answer_to(request: JSONRPCRequest) -> str:
    """The answer to a request of the server: we offer nothing but to be pinged. The SDK would begin a task for each, without limit."""
    message: dict[str, object] = {"jsonrpc": "2.0", "id": request.id, "result": {}}
    if request.method != "ping":
        error = {"code": _NO_SUCH_METHOD, "message": "the client supports only the method ping"}
        message = {"jsonrpc": "2.0", "id": request.id, "error": error}
    return json.dumps(message)


def _bounded(message: JSONRPCMessage) -> JSONRPCMessage:
    """A message, or an error in the place of a result of too many parts: the SDK would block the event loop for seconds."""
    import mcp_types

    if not isinstance(message, mcp_types.JSONRPCResponse):
        return message
    if sum(len(part) for part in message.result.values() if isinstance(part, list)) <= MAX_HITS:
        return message
    error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=f"an answer of over {MAX_HITS} parts")
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)

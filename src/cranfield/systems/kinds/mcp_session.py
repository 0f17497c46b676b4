"""One session with an MCP server, on the event loop: opened, asked by several calls at a time, left.

Over stdio the server is a program of ours, which ends with the session, and with us.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.concurrency.child_process import ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.systems.calls.answer_schema import one_line
from cranfield.systems.kinds.function import what

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult, Tool

    from cranfield.systems.kinds.mcp_http import Refusal

# What the SDK says of a broken server is in the reason of the failure. Its log quotes what came, and only who asked for
# it by name sees it.
_log = logging.getLogger("mcp")
_log.addHandler(logging.NullHandler())
if _log.level == logging.NOTSET:
    _log.setLevel(logging.CRITICAL)

_MAX_PAGES = 100
"""Of the list of tools; a server whose list does not end must not hang us."""


class NoSessionError(Exception):
    """The session could not be opened; the message says why."""

    def __init__(self, reason: str, *, stderr: str = "", may_pass: bool = False) -> None:
        super().__init__(reason)
        self.stderr = stderr
        self.may_pass = may_pass


class BrokenError(Exception):
    """The session is no more; the message says how that was."""


class ToolFailedError(Exception):
    """The server refused the call; the session goes on."""

    def __init__(self, reason: str, *, may_pass: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Opening:
    """How a session is opened: a program to start, or an address."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    url: str | None
    headers: Mapping[str, str]
    timeout_s: float


class Session:
    """An open session."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._program: ChildProcess | None = None
        self._client: Client | None = None
        self._calls = 0
        self._retired = False
        self._leaving = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # What an SDK's session enters and leaves has to be entered and left in one task.
        self._life = asyncio.create_task(self._live())

    @classmethod
    async def open(cls, opening: Opening) -> Session:
        """Open a session.

        Raises:
            NoSessionError: it could not be.
        """
        session = cls(opening)
        try:
            await asyncio.shield(session._opened)
        except BaseException:
            session._leaving.set()
            session._life.cancel()
            raise
        return session

    @property
    def is_program(self) -> bool:
        """True where the server is a program that we started."""
        return self._program is not None

    @property
    def is_over(self) -> bool:
        """True once nothing can be asked of it any more."""
        return self._life.done() or (self._program is not None and self._program.has_ended)

    @property
    def n_stderr(self) -> int:
        """Where `stderr_from` begins."""
        return self._program.n_stderr if self._program is not None else 0

    def stderr_from(self, start: int) -> str:
        """What the server, where it is ours, wrote to stderr since."""
        return self._program.stderr_from(start) if self._program is not None else ""

    async def tools(self) -> dict[str, Tool]:
        """The tools of the server by name.

        Raises:
            BrokenError: the session ended.
            ToolFailedError: it does not say.
        """
        found: dict[str, Tool] = {}
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._asked(lambda client, cursor=cursor: client.list_tools(cursor=cursor))
            found |= {tool.name: tool for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool.

        Raises:
            BrokenError: the session ended.
            ToolFailedError: the server refused.
        """
        self._calls += 1
        try:
            result: CallToolResult = await self._asked(lambda client: client.call_tool(tool, dict(arguments)))
            return result
        finally:
            self._calls -= 1
            if self._retired and not self._calls:
                self._leaving.set()

    def leave_when_idle(self) -> None:
        """Leave as soon as no call is under way."""
        self._retired = True
        if not self._calls:
            self._leaving.set()

    async def leave(self) -> None:
        """Leave, and wait until nothing of it is left."""
        self._leaving.set()
        await asyncio.wait([self._life])

    async def _asked(self, ask: Any) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        if self._client is None or self.is_over:
            raise BrokenError(await self._describe_end())
        try:
            return await ask(self._client)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or self._life.done():
                raise BrokenError(await self._describe_end()) from None
            if (refusal := refusal_of(error)) is not None:
                waits_s = refusal.retry_after_s
                raise ToolFailedError(refusal.reason, may_pass=refusal.may_pass, retry_after_s=waits_s) from None
            if "session" in error.message.lower() and not self.is_program:
                self._leaving.set()
                raise BrokenError(one_line(error.message)) from None
            raise ToolFailedError(one_line(error.message) or "the server refused the call") from None
        except ValidationError:
            raise ToolFailedError("the server's answer is not what the protocol says") from None
        except RuntimeError as error:  # the result does not hold to the tool's own output schema
            raise ToolFailedError(one_line(str(error))) from None
        except Exception as error:  # noqa: BLE001 - whatever else the transport raises, it is of no more use
            self._leaving.set()
            raise BrokenError(what(_innermost(error))) from None

    async def _describe_end(self) -> str:
        if self._program is None:
            return "the connection was closed"
        return f"the server {await self._program.describe_end()}"

    async def _live(self) -> None:
        from mcp import Client

        try:
            async with Client(_Transport(self._transport()), cache=None) as client:
                self._client = client
                self._opened.set_result(None)
                await self._leaving.wait()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whoever waits for the session is told
            if not self._opened.done():
                self._opened.set_exception(await self._no_session(error))
                self._opened.exception()  # looked at, for nobody may wait for it any more
        finally:
            if self._program is not None:
                await self._program.end()

    async def _no_session(self, error: BaseException) -> NoSessionError:
        first = _innermost(error)
        if isinstance(first, NotStartedError):
            return NoSessionError(f"could not be started: {first}")
        if self._program is not None:
            # It may have ended a moment before anybody saw it.
            ended = self._program.has_ended or isinstance(first, BrokenError) or _is_closed(first)
            reason = f"the server {await self._program.describe_end()}" if ended else what(first)
            return NoSessionError(reason, stderr=self._program.stderr_from(0))
        refusal = refusal_of(first)
        if refusal is None:
            return NoSessionError(one_line(str(first)) or what(first))
        return NoSessionError(refusal.reason, may_pass=refusal.may_pass)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        opening = self._opening
        if opening.url is None:
            self._program = await ChildProcess.start(opening.argv, cwd=opening.cwd, env=opening.environment, stdin=True)
            async with _stdio(self._program) as streams:
                yield streams
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from cranfield.systems.kinds.mcp_http import TellingClient

        # A call's own time is kept by who waits for it.
        timeout = httpx2.Timeout(opening.timeout_s, read=None)
        async with (
            TellingClient(headers=dict(opening.headers), timeout=timeout) as http,
            streamable_http_client(opening.url, http_client=http) as streams,
        ):
            yield streams


class _Transport:
    """A context manager in the shape that the SDK takes for a transport."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aenter__(self) -> TransportStreams:
        streams: TransportStreams = await self._inner.__aenter__()
        return streams

    async def __aexit__(self, *raised: object) -> bool | None:
        done: bool | None = await self._inner.__aexit__(*raised)
        return done


@asynccontextmanager
async def _stdio(program: ChildProcess) -> AsyncIterator[TransportStreams]:
    """Messages to and from a program as lines; a line that is none (servers print what they should not) is passed over."""
    import anyio
    import mcp_types
    from mcp.shared.message import SessionMessage

    to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def reader() -> None:
        async with to_session:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, TooMuchOutputError):
                while (line := await program.read_line()) is not None:
                    try:
                        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        continue
                    await to_session.send(SessionMessage(message))

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


def _innermost(error: BaseException) -> BaseException:
    """The first error of a group of errors; task groups wrap what goes wrong in them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_closed(error: BaseException) -> bool:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED


def refusal_of(error: BaseException) -> Refusal | None:
    """Why HTTP failed, where that is what an error is about."""
    from mcp.shared.exceptions import MCPError

    from cranfield.systems.kinds.mcp_http import refusal_in

    return refusal_in(error.error.data) if isinstance(error, MCPError) else None

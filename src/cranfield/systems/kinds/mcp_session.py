"""A session with an MCP server, on the event loop. Concurrent calls share it.

Over stdio the server is a child process that ends with the session.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES, ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.concurrency.retry import is_transient, retry_after_s
from cranfield.systems.calls.answer_schema import MAX_HITS, first_line, json_type
from cranfield.systems.kinds.function import error_text
from cranfield.systems.kinds.http import TOO_LONG, close_if_leftover, failure_reason, failures, keep_quiet

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult, JSONRPCMessage, JSONRPCRequest, Tool


_MAX_DEPTH = 50
"""Levels of a schema that are read."""
_TYPES: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


def find_mismatch(schema: object, value: object, where: str = "it", depth: int = 0) -> str | None:
    """How a value violates a schema; None where it does not, or not in what is checked here."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    names = schema.get("type")
    names = names if isinstance(names, list) else [names]
    known = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    if known and len(known) == len(names) and not any(is_of(value) for is_of in known):
        return f"{where} is {json_type(value)}, not of type {' or '.join(names)}"
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options and all(_found(option, value, depth) for option in options):
            return f"{where} matches none of the alternatives"
    for part in _as_list(schema.get("allOf")):
        if found := find_mismatch(part, value, where, depth + 1):
            return found
    return _mismatch_inside(schema, value, where, depth)


def _mismatch_inside(schema: Mapping[str, Any], value: object, where: str, depth: int) -> str | None:
    """The first mismatch of a key or an item."""
    if isinstance(value, dict):
        for name in _as_list(schema.get("required")):
            if isinstance(name, str) and name not in value:
                return f"{where} has no {name!r}"
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, dict) else ():
            if name in value and (found := find_mismatch(part, value[name], repr(name), depth + 1)):
                return found
    if isinstance(value, list) and "prefixItems" not in schema:
        for number, item in enumerate(value, start=1):
            if found := find_mismatch(schema.get("items"), item, f"item {number} of {where}", depth + 1):
                return found
    return None


def _found(schema: object, value: object, depth: int) -> bool:
    return find_mismatch(schema, value, depth=depth + 1) is not None


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def wrapped_text(value: object) -> str | None:
    """The text that a tool returned, of the structure that SDKs send it in: `{"result": "..."}`; None of another structure."""
    text = value.get("result") if isinstance(value, dict) and len(value) == 1 else None
    return text if isinstance(text, str) else None


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
                    await to_session.send(SessionMessage(_bounded_line(message)))

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


def _bounded_line(message: JSONRPCMessage) -> JSONRPCMessage:
    """A message, or an error in the place of a result of too many parts: the SDK would block the event loop for seconds."""
    import mcp_types

    if not isinstance(message, mcp_types.JSONRPCResponse):
        return message
    if sum(len(part) for part in message.result.values() if isinstance(part, list)) <= MAX_HITS:
        return message
    error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=f"an answer of over {MAX_HITS} parts")
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)


# Errors of the SDK are in the reason of a failure. Its log quotes messages, and so secrets: off unless configured.
_log = logging.getLogger("mcp")
_log.addHandler(logging.NullHandler())
if _log.level == logging.NOTSET:
    _log.setLevel(logging.CRITICAL)

_MAX_PAGES = 100
"""Maximum number of pages of the list of tools."""


class NoSessionError(Exception):
    """The session could not be opened; the message is the reason."""

    def __init__(self, reason: str, *, stderr: str = "", may_pass: bool = False) -> None:
        super().__init__(reason)
        self.stderr = stderr
        self.may_pass = may_pass


class BrokenError(Exception):
    """The session has ended; the message is the reason."""


class ToolFailedError(Exception):
    """The server rejected the call; the session is still open."""

    def __init__(self, reason: str, *, may_pass: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The server of a session: a program to start, or a URL."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    url: str | None
    headers: Mapping[str, str]
    timeout_s: float
    is_legacy: bool = False
    """An earlier session was one of `Session.is_legacy`."""


class Session:
    """An open session."""

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._program: ChildProcess | None = None
        self._client: Client | None = None
        self._listed: dict[str, Tool] | None = None
        self._end = ""
        self._calls = 0
        self._closes_when_idle = False
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The context managers of the SDK must be entered and exited in the same task.
        self._task = asyncio.create_task(self._run())

    async def opened(self) -> Session:
        """This session, when it is open.

        Raises:
            NoSessionError: it could not be opened.
        """
        try:
            await asyncio.shield(self._opened)
        except BaseException:
            self._closing.set()
            self._task.cancel()
            raise
        return self

    @property
    def is_program(self) -> bool:
        """Whether the server is a child process."""
        return self._program is not None

    @property
    def is_legacy(self) -> bool:
        """Whether the server knows the older handshake only. Asking it for the newer one may cost 10 s, once."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return self._client is not None and self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS

    @property
    def server_label(self) -> str:
        """Name and version, as the server reports them; empty where it does not."""
        info = None if self._client is None else self._client.server_info
        return "" if info is None else f"{info.name} {info.version}".strip()

    @property
    def instructions(self) -> str:
        """How to use its tools, as the server sends it; empty where it does not."""
        return (self._client.instructions if self._client is not None else None) or ""

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return self._task.done() or (self._program is not None and self._program.has_ended)

    @property
    def n_stderr(self) -> int:
        """Bytes of stderr received so far: an argument of `stderr_from`."""
        return self._program.n_stderr if self._program is not None else 0

    def stderr_from(self, start: int) -> str:
        """Text of stderr of a child process from byte `start`."""
        return self._program.stderr_from(start) if self._program is not None else ""

    async def tools(self) -> dict[str, Tool]:
        """The tools of the server by name.

        Raises:
            BrokenError: the session ended.
            ToolFailedError: the server rejected the request.
        """
        found: dict[str, Tool] = {}
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._request_server(lambda client, cursor=cursor: client.list_tools(cursor=cursor))
            found |= {tool.name: tool for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                break
        self._listed = found
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool.

        Raises:
            BrokenError: the session ended.
            ToolFailedError: the server rejected the call, or its arguments cannot be sent.
        """
        from pydantic_core import PydanticSerializationError, to_json

        try:
            to_json(arguments)
        except PydanticSerializationError:  # in the transport it would end the session
            raise ToolFailedError("the arguments cannot be sent: a lone surrogate, or nested too deeply") from None
        self._calls += 1
        try:
            result: CallToolResult = await self._request_server(lambda client: client.call_tool(tool, dict(arguments)))
            if not result.is_error:
                await self._check_structure(tool, result)
            return result
        finally:
            self._calls -= 1
            if self._closes_when_idle and not self._calls:
                self._closing.set()

    async def _check_structure(self, tool: str, result: CallToolResult) -> None:
        """Check a result against the output schema of its tool, in a thread: both may be large.

        Raises:
            ToolFailedError: they do not match.
        """
        listed = self._listed if self._listed is not None else await self.tools()
        schema = listed[tool].output_schema if tool in listed else None
        if schema is None:
            return
        found = await event_loop().threads.call(lambda: find_mismatch(schema, result.structured_content))
        if found is not None:
            raise ToolFailedError(f"the structured content violates the tool's output schema: {first_line(found)}")

    def close_when_idle(self) -> None:
        """Close the session as soon as no call is under way."""
        self._closes_when_idle = True
        if not self._calls:
            self._closing.set()

    async def close(self) -> None:
        """Close the session, and wait for its end."""
        self._closing.set()
        await asyncio.wait([self._task])

    async def _request_server(self, ask: Any) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        if self._client is None or self.is_over:
            raise BrokenError(await self._describe_end())
        try:
            return await ask(self._client)
        except MCPError as error:
            # Servers use the code too, as it is the first one for their own errors.
            is_closed = error.code == CONNECTION_CLOSED and (self.is_over or bool(self._end))
            if is_closed or self._task.done():
                raise BrokenError(await self._describe_end()) from None
            if (refusal := refusal_of(error)) is not None:
                waits_s = refusal.retry_after_s
                raise ToolFailedError(refusal.reason, may_pass=refusal.may_pass, retry_after_s=waits_s) from None
            if (error.code == CONNECTION_CLOSED or "session" in error.message.lower()) and not self.is_program:
                self._closing.set()
                raise BrokenError(first_line(error.message)) from None
            raise ToolFailedError(first_line(error.message) or "the server refused the call") from None
        except ValidationError:
            raise ToolFailedError("the server's answer violates the protocol") from None
        except RuntimeError as error:  # a result that the SDK does not take
            raise ToolFailedError(first_line(str(error))) from None
        except Exception as error:  # noqa: BLE001 - any other error of the transport ends the session
            self._closing.set()
            raise BrokenError(error_text(_innermost(error))) from None

    async def _describe_end(self) -> str:
        if self._program is None:
            return "the connection was closed"
        return f"the server {self._end or await self._program.describe_end()}"

    def _note_end(self, how: str) -> None:
        """Called when a program writes no more, before it is ended."""
        self._end = how

    async def _run(self) -> None:
        from mcp import Client

        mode = "legacy" if self._options.is_legacy else "auto"
        try:
            async with Client(_Transport(self._transport()), mode=mode, cache=None) as client:
                # The SDK's own check has no time limit, and blocks the event loop.
                client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]  # `_check_structure`
                self._client = client
                self._opened.set_result(None)
                await self._closing.wait()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - passed to the waiting caller
            if not self._opened.done():
                self._opened.set_exception(await self._no_session(error))
                self._opened.exception()  # retrieved: the caller may have been cancelled
        finally:
            if self._program is not None:
                await self._program.end()

    async def _no_session(self, error: BaseException) -> NoSessionError:
        first = _innermost(error)
        if isinstance(first, NotStartedError):
            return NoSessionError(f"could not be started: {first}")
        if self._program is not None:
            has_ended = bool(self._end) or isinstance(first, BrokenError) or _is_closed(first)
            reason = await self._describe_end() if has_ended else f"no session: {error_text(first)}"
            return NoSessionError(reason, stderr=self._program.stderr_from(0))
        refusal = refusal_of(first)
        if refusal is None:
            return NoSessionError(first_line(str(first)) or error_text(first))
        return NoSessionError(refusal.reason, may_pass=refusal.may_pass)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        options = self._options
        if options.url is None:
            self._program = await ChildProcess.start(options.argv, cwd=options.cwd, env=options.environment, stdin=True)
            async with stdio_streams(self._program, self._note_end) as streams:
                yield streams
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # Calls have their own time limit.
        timeout = httpx2.Timeout(options.timeout_s, read=None)
        async with (
            ReasonClient(headers=dict(options.headers), timeout=timeout) as http,
            streamable_http_client(options.url, http_client=http) as streams,
        ):
            yield streams


async def _unchecked(name: str, result: CallToolResult) -> None:
    pass


class _Transport:
    """Adapter of a context manager to the transport protocol of the SDK."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aenter__(self) -> TransportStreams:
        streams: TransportStreams = await self._inner.__aenter__()
        return streams

    async def __aexit__(self, *raised: object) -> bool | None:
        done: bool | None = await self._inner.__aexit__(*raised)
        return done


def _innermost(error: BaseException) -> BaseException:
    """The first error of nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_closed(error: BaseException) -> bool:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED


def refusal_of(error: BaseException) -> Refusal | None:
    """The HTTP failure that caused an error, if any."""
    from mcp.shared.exceptions import MCPError

    return refusal_in(error.error.data) if isinstance(error, MCPError) else None


_MARK = f"cranfield {secrets.token_hex(16)}"
"""A server cannot know it: what has it is ours."""
_INTERNAL_ERROR = -32603
_REFUSALS = frozenset({401, 403, 407, 429})
"""Statuses that are not part of the protocol, besides 5xx."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason of a failed exchange, and whether a retry may succeed."""

    reason: str
    may_pass: bool
    retry_after_s: float | None = None


class _Bounded(httpx2.AsyncByteStream):
    """A body with a size limit, as the SDK reads all of it into memory; nothing may follow it on its connection."""

    def __init__(self, response: httpx2.Response) -> None:
        self._body: Any = response.stream
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for part in self._body:
            n_bytes += len(part)
            if n_bytes > MAX_OUTPUT_BYTES:
                raise httpx2.ReadError(TOO_LONG)
            yield part
        if left := await close_if_leftover(self._response, self._body):
            raise httpx2.ReadError(f"{left} bytes follow the end of the answer")

    async def aclose(self) -> None:
        await self._body.aclose()


class ReasonClient(httpx2.AsyncClient):
    """A client whose failures are identified by `refusal_in`."""

    def __init__(self, **options: Any) -> None:
        """Accept only unencoded bodies: a compressed body may expand without limit."""
        keep_quiet()
        super().__init__(verify=trusted_certificates(), **options)
        self.headers["Accept-Encoding"] = "identity"

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; a failed exchange is returned as an error response with its reason."""
        if request.method != "POST":
            return _bounded(await super().send(request, **options))
        try:
            response = _bounded(await super().send(request, **options))
        except failures() as error:
            reason, may_pass = failure_reason(error, has_begun=False)
            return _error_response(request, Refusal(reason, may_pass))
        status = response.status_code
        if status not in _REFUSALS and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            if response.headers.get("content-encoding", "identity").strip().lower() == "identity":
                return response
            await response.aclose()
            return _error_response(
                request, Refusal("the answer has an encoding that was not requested", may_pass=False)
            )
        await response.aclose()
        wait_s = retry_after_s(response.headers.get("retry-after", ""), response.headers.get("date", ""))
        phrase = response.reason_phrase
        return _error_response(request, Refusal(f"HTTP {status} {phrase}".strip(), is_transient(status), wait_s))


def _bounded(response: httpx2.Response) -> httpx2.Response:
    if not response.is_stream_consumed:
        response.stream = _Bounded(response)
    return response


def refusal_in(data: object) -> Refusal | None:
    """The refusal in the data of an error; None if the error is the server's own."""
    if isinstance(data, dict) and isinstance(data.get(_MARK), list):
        return Refusal(*data[_MARK])
    return None


def _error_response(request: httpx2.Request, refusal: Refusal) -> httpx2.Response:
    data = {_MARK: [refusal.reason, refusal.may_pass, refusal.retry_after_s]}
    error = {"code": _INTERNAL_ERROR, "message": refusal.reason, "data": data}
    content = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = {"content-type": "application/json"}
    return httpx2.Response(HTTPStatus.BAD_GATEWAY, headers=headers, content=content, request=request)

"""The way of an external agent to its model: every request passes here, so what was offered and used is known from it.

The agent is given an address of this machine and a key that is none; the user's key is put in here, and no command that the
agent runs can print it. Where a limit of the plan is reached, no further request is passed on.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from cranfield.agents.loop import total_usage
from cranfield.agents.protocol import Failure, FailureKind, Usage
from cranfield.agents.settings import LimitSettings
from cranfield.base.certificates import trusted_certificates
from cranfield.benefit.external.events import count_of, dicts_of, json_object, mapping_of, plain_name
from cranfield.benefit.records import CellEnd, estimated_tokens

if TYPE_CHECKING:
    import httpx2


_DATA = b"data:"


def request_of(body: bytes) -> Mapping[str, Any]:
    """A request to a model; empty where it is none."""
    value = json_object(body) or {}
    return value if isinstance(value.get("model"), str) and ("messages" in value or "input" in value) else {}


def offered_tools(request: Mapping[str, Any]) -> Mapping[str, int]:
    """Plain names of the tools of a request, each with the tokens of its schema, estimated. A group names each of its tools."""
    found: dict[str, int] = {}
    for tool in dicts_of(request.get("tools")):
        name = str(tool.get("name") or mapping_of(tool.get("function")).get("name") or tool.get("type") or "")
        inner = dicts_of(tool.get("tools"))
        parts = {f"{name}__{each.get('name')}": each for each in inner} if inner else {name: tool}
        found |= {plain_name(part): estimated_tokens(json.dumps(each)) for part, each in parts.items()}
    return found


def response_of(body: bytes) -> tuple[Usage | None, str]:
    """Tokens of a response, None where it reports none; and the model's name."""
    tokens: dict[str, Any] = {}
    model = ""
    for value in _documents(body):
        for part in (value, mapping_of(value.get("response")), mapping_of(value.get("message"))):
            tokens |= {key: each for key, each in mapping_of(part.get("usage")).items() if each is not None}
            model = model or str(part.get("model") or "")
    return (_usage(tokens) if tokens else None), model


def _usage(tokens: Mapping[str, Any]) -> Usage:
    if "prompt_tokens" in tokens:
        return _openai(tokens, "prompt_tokens", "completion_tokens")
    if "cache_read_input_tokens" in tokens or "cache_creation_input_tokens" in tokens:
        return anthropic_usage(tokens)
    return _openai(tokens, "input_tokens", "output_tokens")


def anthropic_usage(tokens: Mapping[str, Any]) -> Usage:
    """Usage in a response of Anthropic, whose `input_tokens` are those that no cache held."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    uncached, read, write, output = (count_of(tokens.get(name)) for name in names)
    whole = None if uncached is None else uncached + (read or 0) + (write or 0)
    return Usage(input=whole, cache_read=read, cache_write=write, output=output)


def _openai(tokens: Mapping[str, Any], input_: str, output: str) -> Usage:
    inputs, outputs = mapping_of(tokens.get(f"{input_}_details")), mapping_of(tokens.get(f"{output}_details"))
    return Usage(
        input=count_of(tokens.get(input_)),
        cache_read=count_of(inputs.get("cached_tokens")),
        cache_write=count_of(inputs.get("cache_write_tokens")),
        output=count_of(tokens.get(output)),
        reasoning=count_of(outputs.get("reasoning_tokens")),
    )


def _documents(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a response: the whole, or each event of a stream."""
    if body.lstrip()[:1] == b"{":
        yield json_object(body) or {}
        return
    for line in body.splitlines():
        if line.startswith(_DATA) and (b'"usage"' in line or b'"model"' in line):
            yield json_object(line.removeprefix(_DATA)) or {}


_MAX_BYTES = 64 * 1024 * 1024
"""Most bytes of a request, and of what is kept of a response."""
_HEAD_BYTES = 64 * 1024
_NOT_PASSED = frozenset(
    ("host", "connection", "content-length", "transfer-encoding", "accept-encoding", "authorization", "x-api-key")
)
_TIMEOUT_S = 600.0
_SHOWN_ERROR = 300


@dataclass
class ModelExchange:
    """A request to the model, and its outcome."""

    is_turn: bool
    """A request for an answer; others ask for the list of models, or count tokens."""
    offered: Mapping[str, int] = field(default_factory=dict)
    """Plain names of its tools, with the tokens of each schema, estimated."""
    usage: Usage | None = None
    model: str = ""
    failure: Failure | None = None
    wall_s: float = 0.0


@dataclass
class Gateway:
    """Passes requests on to one server, for one run."""

    upstream: str
    key: str
    limits: LimitSettings
    client: httpx2.AsyncClient
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    """In the address: other programs of this machine do not know it."""
    port: int = 0
    exchanges: list[ModelExchange] = field(default_factory=list)
    reached: CellEnd | None = None
    """The limit that stopped it."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def base_url(self) -> str:
        """That the agent is given."""
        return f"http://127.0.0.1:{self.port}/{self.token}{urlsplit(self.upstream).path.rstrip('/')}"

    @property
    def turns(self) -> list[ModelExchange]:
        """Requests for an answer."""
        return [each for each in self.exchanges if each.is_turn]

    @property
    def usage(self) -> Usage:
        """Usage of all requests that were not refused; unmeasured are those that reported no tokens."""
        answered = [each for each in self.turns if each.failure is None]
        return total_usage([each.usage or Usage(unmeasured=1) for each in answered])

    @property
    def offered(self) -> Mapping[str, int]:
        """Tools of the first request that had any."""
        return next((each.offered for each in self.turns if each.offered), {})

    def limit(self) -> CellEnd | None:
        """The limit that forbids another request."""
        answered = [each for each in self.turns if each.failure is None]
        tokens = sum((each.usage.total or 0) for each in answered if each.usage is not None)
        if len(answered) >= self.limits.turns:
            return CellEnd.TURNS
        return CellEnd.TOKENS if self.limits.tokens is not None and tokens >= self.limits.tokens else None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a connection."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                await self._serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        prefix = f"/{self.token}"
        if not target.startswith(f"{prefix}/"):
            return await _refuse(writer, 404, "no such address")
        if headers.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _body(reader, headers)
        request = request_of(body) if method == "POST" and not target.endswith("/count_tokens") else {}
        exchange = ModelExchange(bool(request), offered_tools(request))
        if exchange.is_turn and (limit := self.limit()) is not None:
            self.reached = limit
            self.stopped.set()
            return await _refuse(writer, 403, f"the limit of {limit} is reached")
        self.exchanges.append(exchange)
        started = time.monotonic()
        try:
            await self._pass_on(exchange, method, target.removeprefix(prefix), headers, body, writer)
        finally:
            exchange.wall_s = time.monotonic() - started
        return None

    async def _pass_on(
        self,
        exchange: ModelExchange,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        import httpx2

        parts = urlsplit(self.upstream)
        passed = {name: value for name, value in headers.items() if name not in _NOT_PASSED}
        if self.key:
            by_name = "x-api-key" in headers
            passed |= {"x-api-key": self.key} if by_name else {"authorization": f"Bearer {self.key}"}
        url = f"{parts.scheme}://{parts.netloc}{target}"
        kept = bytearray()
        try:
            async with self.client.stream(
                method, url, headers=passed | {"accept-encoding": "identity"}, content=body
            ) as answer:
                kind = answer.headers.get("content-type", "application/json")
                writer.write(_head(answer.status_code, f"content-type: {kind}", "transfer-encoding: chunked"))
                async for chunk in answer.aiter_bytes():
                    if len(kept) < _MAX_BYTES:
                        kept += chunk
                    writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    await writer.drain()
            writer.write(b"0\r\n\r\n")
            exchange.failure = _failure(answer.status_code, bytes(kept))
        except httpx2.HTTPError as error:
            late = isinstance(error, httpx2.TimeoutException)
            exchange.failure = Failure(FailureKind.TIMEOUT if late else FailureKind.CONNECTION, type(error).__name__)
            if not kept:
                await _refuse(writer, 502, "the server of the model cannot be reached")
        finally:
            exchange.usage, exchange.model = response_of(bytes(kept))


@asynccontextmanager
async def open_gateway(upstream: str, key: str, limits: LimitSettings, unix: Path | None) -> AsyncIterator[Gateway]:
    """A gateway at an address of this machine; with `unix`, also at that socket."""
    import httpx2

    async with httpx2.AsyncClient(
        verify=trusted_certificates(), timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False
    ) as client:
        gateway = Gateway(upstream, key, limits, client)
        server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0, limit=_HEAD_BYTES)
        gateway.port = server.sockets[0].getsockname()[1]
        servers = [server]
        if sys.platform != "win32" and unix:
            servers.append(await asyncio.start_unix_server(gateway.serve, unix, limit=_HEAD_BYTES))
        try:
            yield gateway
        finally:
            for each in servers:
                each.close()
            open_tasks = tuple(gateway.serving)
            for task in open_tasks:
                task.cancel()
            await asyncio.gather(*open_tasks, return_exceptions=True)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        length = int(headers.get("content-length", "0"))
        if length > _MAX_BYTES:
            raise ValueError("too long")
        return await reader.readexactly(length)
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        if len(body) + size > _MAX_BYTES:
            raise ValueError("too long")
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return bytes(body)


def _head(status: int, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} -", "connection: close", *lines, "", ""]).encode("latin-1", "replace")


async def _refuse(writer: asyncio.StreamWriter, status: int, message: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": "refused", "message": message}}).encode()
    writer.write(_head(status, "content-type: application/json", f"content-length: {len(body)}") + body)
    await writer.drain()


def _failure(status: int, body: bytes) -> Failure | None:
    """Failure that a status stands for; None: it is none."""
    if status < 400:
        return None
    kind = FailureKind.UNAVAILABLE if status >= 500 else FailureKind.REJECTED
    message = " ".join(body.decode("utf-8", "replace").split())[:_SHOWN_ERROR]
    return Failure(FailureKind.RATE_LIMITED if status == 429 else kind, f"status {status}: {message}", status)

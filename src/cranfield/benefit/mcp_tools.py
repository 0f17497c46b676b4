"""The tools of an MCP server under test, for an agent: one session, opened when it is needed and again where it ended.

What the server sends is untrusted: texts are cleaned and cut, and secrets of its environment are redacted. A server that does
not start, that ends, or that lists other tools than before is a fault of the infrastructure, not a result.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.agents.budget import TYPICAL_BYTES
from cranfield.agents.loop import ToolResult, clean
from cranfield.agents.protocol import Tool, ToolCall
from cranfield.base.concurrency.retry import retry_policy
from cranfield.base.errors import ConfigError, MissingExtraError, ProblemList
from cranfield.base.words import join_first, printable
from cranfield.benefit.content import parsed, unwrapped
from cranfield.benefit.errors import CellError
from cranfield.benefit.plan import ToolServer
from cranfield.config.strict import ENV, environment_names, fill, fill_value
from cranfield.systems.calls.answer_schema import first_line, output_hint
from cranfield.systems.calls.redact import Redactor
from cranfield.systems.kinds.mcp_session import BrokenError, NoSessionError, Session, SessionOptions, ToolFailedError

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as McpTool

SEPARATOR = "__"
"""Between the names of a server and of its tool: `knowcode__search`, as command-line agents write it."""
NAME_CHARS = 64
"""Longest name of a tool that providers accept."""
INHERITED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM", "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)  # fmt: skip
"""Variables that a server gets from the environment, besides those of the plan."""
_ATTEMPTS, _BACKOFF_S = 4, 0.5
_SHOWN_NAMES = 20
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class ToolServerError(Exception):
    """A fault of a server; the message names the server and the reason."""

    def __init__(self, error: CellError, message: str) -> None:
        super().__init__(message)
        self.error = error


def variables_of(server: ToolServer) -> list[str]:
    """Names of the environment variables that a server of a plan needs."""
    return environment_names([dict(server.env), dict(server.headers), server.url])


def server_command(server: ToolServer) -> list[str]:
    """Program and arguments of a server that is started."""
    return fill(server.command, query="", k=0, python=sys.executable, params={})


def server_environment(name: str, server: ToolServer) -> dict[str, str]:
    """The whole environment of a server that is started: an allow-list, and what the plan gives it.

    Raises:
        ConfigError: with every variable that is not set.
    """
    inherited = {each: os.environ[each] for each in INHERITED if each in os.environ}
    return inherited | dict(fill_value(server.env, server_variables(name, server)))


def server_variables(name: str, server: ToolServer) -> dict[str, str]:
    """What the placeholders of a server of a plan stand for.

    Raises:
        ConfigError: with every variable that is not set.
    """
    problems = ProblemList(ConfigError)
    needed = variables_of(server)
    for each in needed:
        if each not in os.environ:
            problems.add(f"the environment variable {each} is not set", path=f"tools.{name}")
    problems.raise_if_any()
    return {ENV + each: os.environ[each] for each in needed}


class McpTools:
    """The tools of one server. One session serves all agents of an arm at the same time."""

    def __init__(self, name: str, server: ToolServer, folder: Path | None = None) -> None:
        """Start nothing yet.

        Args:
            name: of the server in the plan.
            server: how it is started or reached.
            folder: in which its command runs; None: the working folder.

        Raises:
            MissingExtraError: the library is not installed.
            ConfigError: a variable of the environment is missing.
        """
        if find_spec("mcp") is None:
            raise MissingExtraError.for_extra("a tool that is an MCP server", "mcp")
        self.name = name
        self.server = server
        self.tools: Sequence[Tool] = ()
        """As the model receives them; none before `open`."""
        self.listed: tuple[str, ...] = ()
        """All tools of the server, by its own names."""
        self.version = ""
        """Name and version that the server reports."""
        self.instructions = server.instructions.strip()
        """How to use the tools: those of the plan, else those of the server."""
        self.found: Mapping[str, Any] = {}
        """What its last preflight found: index, version and commit."""
        self.n_started = 0
        variables = server_variables(name, server)
        self._environment = server_environment(name, server)
        self._redactor = Redactor({each.removeprefix(ENV): value for each, value in variables.items()})
        self._options = SessionOptions(
            argv=server_command(server),
            cwd=folder or Path.cwd(),
            environment=self._environment,
            url=fill_value(server.url, variables) or None,
            headers=fill_value(server.headers, variables),
            timeout_s=server.call_timeout_s,
        )
        self._own_names: dict[str, McpTool] = {}
        self._session: Session | None = None
        self._opening = asyncio.Lock()

    @property
    def prefix(self) -> str:
        """Prefix of the names of its tools."""
        return _NOT_IN_A_NAME.sub("_", self.name) + SEPARATOR

    def offered_name(self, tool: str) -> str:
        """Name of a tool as the model has it."""
        return self.prefix + _NOT_IN_A_NAME.sub("_", tool)

    @property
    def schema_digest(self) -> str:
        """SHA-256 of the tools as the model receives them; empty before `open`."""
        if not self.tools:
            return ""
        rows = [[tool.name, tool.description, tool.parameters] for tool in self.tools]
        return "sha256:" + sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()

    async def open(self) -> Session:
        """The session, opened if necessary; then `tools` are there.

        Raises:
            ToolServerError: it cannot be opened, or lists other tools than those of the plan or of its first start.
        """
        async with self._opening:
            if self._session is not None and self._session.is_over:
                await self._close()
            if self._session is None:
                session = Session(self._options)
                try:
                    self._note_tools(await self._listed_by(session), session.instructions)
                except BaseException:
                    await session.close()
                    raise
                self._session = session
                self.version = self._redacted(session.server_label)
                self.n_started += 1
            return self._session

    async def _listed_by(self, session: Session) -> dict[str, McpTool]:
        limit_s = self.server.start_timeout_s
        wrote: str | None = None
        try:
            async with asyncio.timeout(limit_s):
                await session.opened()
                return await session.tools()
        except TimeoutError:
            reason, wrote = f"no list of its tools in {limit_s:g} s", session.stderr_from(0)
        except NoSessionError as error:
            reason, wrote = str(error), error.stderr
        except (BrokenError, ToolFailedError) as error:
            reason, wrote = str(error), session.stderr_from(0)
        hint = output_hint(self._redactor.redact(wrote))
        raise self._fault(CellError.TOOL_NOT_STARTED, f"did not start: {reason}{f'; {hint}' if hint else ''}")

    def _note_tools(self, listed: Mapping[str, McpTool], instructions: str) -> None:
        """Take the tools at the first start; compare them at a later one."""
        wanted = self.server.tools or tuple(listed)
        missing = [name for name in wanted if name not in listed]
        if missing or not listed:
            lists = join_first(sorted(listed), _SHOWN_NAMES) or "none"
            lacks = f"has no tool {join_first(missing, _SHOWN_NAMES)}" if missing else "has no tools"
            raise self._fault(CellError.TOOL_CHANGED, f"{lacks}; it lists: {lists}")
        own = {self.offered_name(name): listed[name] for name in wanted}
        long = [name for name in own if len(name) > NAME_CHARS]
        if long or len(own) < len(set(wanted)):
            why = f"over {NAME_CHARS} characters: {join_first(long, 3)}" if long else "two of them are the same"
            raise self._fault(CellError.TOOL_CHANGED, f"names of its tools cannot be sent to a model: {why}")
        limit = self.server.results_parameter
        if limit and not any(limit in _properties(tool) for tool in own.values()):
            raise self._fault(CellError.TOOL_CHANGED, f"no tool has the argument {limit} of `results_parameter`")
        tools = tuple(Tool(name, each.description or "", each.input_schema) for name, each in own.items())
        used = self.server.instructions.strip() or self._redacted(instructions).strip()
        if self.tools and (tools, used) != (tuple(self.tools), self.instructions):
            raise self._fault(CellError.TOOL_CHANGED, "lists different tools or instructions than at its first start")
        self.tools, self.listed, self.instructions, self._own_names = tools, tuple(listed), used, own

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a call of the model.

        Raises:
            ToolServerError: the server ended, and could not be started again.
        """
        tool = self._own_names.get(call.name)
        if tool is None:
            return _error(f"there is no tool {call.name!r}", is_unsent=True)
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            return _error("the arguments are not a JSON object", is_unsent=True)
        limit = self.server.results_parameter
        if limit and self.server.results is not None and limit in _properties(tool):
            arguments[limit] = self.server.results
        answer = await self._send(tool.name, arguments)
        if isinstance(answer, str):
            return _error(answer)
        whole = self._redacted(result_text(answer))
        text = self._cut(whole)
        return ToolResult(text, is_error=bool(answer.is_error), is_cut=text != whole)

    async def ask(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The value of a result of a tool, by its own name: its structured content, or its text as JSON or as it is.

        JSON that a tool returns as a text, and that its SDK wraps as `{"result": "..."}`, is read.

        Raises:
            ToolServerError: the server is not there, or gives no result.
        """
        answer = await self._send(tool, arguments)
        if isinstance(answer, str) or answer.is_error:
            reason = answer if isinstance(answer, str) else first_line(result_text(answer))
            raise self._fault(CellError.TOOL_NOT_STARTED, f"{tool} returned no result: {self._redacted(reason)}")
        if answer.structured_content is not None:
            return self._redactor.redact_value(unwrapped(answer.structured_content))
        return parsed(self._redacted(result_text(answer)))

    async def _send(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult | str:
        """The result of a call, or why it has none, for the model."""
        session = await self.open()

        async def attempt() -> CallToolResult | ToolFailedError:
            try:
                return await session.call(tool, arguments)
            except ToolFailedError as error:
                return error

        from tenacity import AsyncRetrying

        policy = retry_policy(
            _ATTEMPTS,
            _BACKOFF_S,
            may_retry=lambda answer: isinstance(answer, ToolFailedError) and answer.may_pass,
            requested_wait_s=lambda answer: answer.retry_after_s,
        )
        try:
            async with asyncio.timeout(self.server.call_timeout_s):
                answer: CallToolResult | ToolFailedError = await AsyncRetrying(**policy)(attempt)
        except TimeoutError:
            if session.is_program:  # it may be blocked
                self._leave(session)
                session.close_when_idle()
            return f"no answer in {self.server.call_timeout_s:g} s"
        except BrokenError as error:
            reason = self._redacted(str(error))
            await self._open_again(session, reason)
            return f"the tool ended during the call: {reason}; it was started again"
        return self._redacted(str(answer)) if isinstance(answer, ToolFailedError) else answer

    async def _open_again(self, ended: Session, reason: str) -> None:
        self._leave(ended)
        await ended.close()
        try:
            await self.open()
        except ToolServerError as error:
            lost = CellError.TOOL_LOST if error.error is CellError.TOOL_NOT_STARTED else error.error
            raise ToolServerError(lost, f"{error} (before: {reason})") from None

    async def aclose(self) -> None:
        """End the session, and the server that was started for it."""
        async with self._opening:
            await self._close()

    async def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _leave(self, session: Session) -> None:
        if self._session is session:
            self._session = None

    def _fault(self, error: CellError, text: str) -> ToolServerError:
        return ToolServerError(error, printable(self._redactor.redact(f"the tool {self.name} {text}")))

    def _redacted(self, text: str) -> str:
        return clean(self._redactor.redact(text))

    def _cut(self, text: str) -> str:
        limit = self.server.result_tokens
        data = text.encode("utf-8", "replace")
        if limit is None or len(data) <= limit * TYPICAL_BYTES:
            return text
        kept = data[: limit * TYPICAL_BYTES].decode("utf-8", "ignore")
        return f"{kept}\n... {len(text) - len(kept):,} more characters are not shown"


def result_text(answer: CallToolResult) -> str:
    """What a model reads of a result: its texts, or its structured content where it has none; a mark for what is no text."""
    blocks = [_text_of(block) for block in answer.content]
    if answer.structured_content is not None and not any(blocks):
        return json.dumps(answer.structured_content, ensure_ascii=False)
    return "\n".join(blocks)


def _text_of(block: Any) -> str:
    text = getattr(block, "text", None)
    if text is None:
        text = getattr(getattr(block, "resource", None), "text", None)
    return text if isinstance(text, str) else f"[{block.type}, not shown]"


def _properties(tool: McpTool) -> Mapping[str, Any]:
    found = tool.input_schema.get("properties")
    return found if isinstance(found, dict) else {}


def _error(text: str, *, is_unsent: bool = False) -> ToolResult:
    return ToolResult(f"error: {text}", is_error=True, is_unsent=is_unsent)

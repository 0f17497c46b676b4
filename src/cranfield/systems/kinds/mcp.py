"""A system under test that is a tool of an MCP server, over stdio or HTTP, in one session."""

from __future__ import annotations

import asyncio
import atexit
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import MissingExtraError, shorten, unknown_name
from cranfield.base.words import join_first
from cranfield.config.reading import JsonExtract, JsonLinesExtract, RegexExtract, compile_list_path
from cranfield.config.services import McpProgram, McpServer
from cranfield.config.strict import environment_names, fill, fill_value, request_values
from cranfield.config.systems import McpConfig
from cranfield.model import Answer, Outcome, Scalar
from cranfield.systems.calls.answer_schema import first_line, output_hint
from cranfield.systems.calls.extract import load_json
from cranfield.systems.calls.stages import CheckFailedError, Step, in_stages
from cranfield.systems.configured import ConfiguredSystem, Received, Reply, failed
from cranfield.systems.kinds.command import argument_files, check_command
from cranfield.systems.kinds.mcp_session import (
    BrokenError,
    NoSessionError,
    Session,
    SessionOptions,
    ToolFailedError,
    find_mismatch,
    wrapped_text,
)

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool

_CLOSE_S = 10.0
_SHOWN_NAMES = 20
"""Names of tools and arguments in a message."""
SAMPLE_QUERY = "a query"
"""Sample query for the check of arguments."""


class McpSystem(ConfiguredSystem):
    """A tool of cranfield.yaml."""

    kind = "mcp"
    config: McpConfig

    def prepare(self) -> None:
        """Initialise; nothing is started yet.

        Raises:
            MissingExtraError: the library is not installed.
        """
        if find_spec("mcp") is None:  # imported on use: it is slow
            raise MissingExtraError.for_extra("a system that is an MCP tool", "mcp")
        self._mcp = self.config.mcp
        if isinstance(self._mcp, McpServer):
            self.retries = 3
        self.starts_program = isinstance(self._mcp, McpProgram)
        self._is_legacy = False
        self._session: Session | None = None
        self._started: Session | None = None
        self._opening = asyncio.Lock()

    def variables_of_settings(self) -> list[str]:
        """Names of environment variables in the address, the headers and the arguments."""
        return environment_names(self._mcp.model_dump(include={"url", "headers", "arguments"}))

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:
        """Call the tool once."""
        try:
            session = await self._open()
        except NoSessionError as error:
            return replace(failed(str(error), may_retry=error.may_pass), stderr=error.stderr, died=True)
        stderr_start = session.n_stderr
        try:
            result = await session.call(self._mcp.tool, self._arguments(query, k, params))
        except asyncio.CancelledError:
            received.stderr = session.stderr_from(stderr_start)
            if session.is_program and self._session is session:
                self._session = None  # the server may be blocked
            if session.is_program:
                session.close_when_idle()
            raise
        except ToolFailedError as error:
            reply = replace(failed(str(error), may_retry=error.may_pass), retry_after_s=error.retry_after_s)
        except BrokenError as error:
            await self._close_session(session)
            reply = replace(failed(str(error), may_retry=True), died=True)
        else:
            reply = self._reply(result)
        return replace(reply, stderr=session.stderr_from(stderr_start))

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The tool's name and arguments, with names of variables instead of their values."""
        names = {name: f"${{{name}}}" for name in self.environment}
        return f"{self._mcp.tool} {json.dumps(self._arguments(query, k, params, names), ensure_ascii=False)}"

    def ready_steps(self) -> Iterator[Step]:
        """Check that the server starts, has the tool, and the tool takes the arguments."""
        return in_stages(self._program_steps(), [(f"tool {self._mcp.tool}", self._check_tool)])

    def _program_steps(self) -> Iterator[Step]:
        for name in self.variables_of_settings():
            yield f"environment {name}", partial(self._has_variable, name)
        if isinstance(self._mcp, McpProgram):
            yield f"command {' '.join(self._mcp.command)}", partial(check_command, self, self._mcp.command)

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the program of a server that is started, and every file named by an argument."""
        yield from super().depends_on()
        if isinstance(self._mcp, McpProgram):
            yield from argument_files(self, self._argv())

    def close(self) -> None:
        """Close the session and the server that was started for it; called at exit."""
        atexit.unregister(self.close)
        if self._session is not None:
            with suppress(TimeoutError):
                event_loop().run(asyncio.wait_for(self._close(), _CLOSE_S))
        super().close()

    def _argv(self) -> list[str]:
        command = self._mcp.command if isinstance(self._mcp, McpProgram) else []
        return fill(command, query="", k=0, python=sys.executable, params={})

    def _arguments(
        self, query: str, k: int, params: Mapping[str, Scalar], environment: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        values = request_values(query=query, k=k, params=params, environment=environment or self.environment)
        filled: dict[str, Any] = fill_value(self._mcp.arguments, values)
        return filled

    def _reply(self, result: CallToolResult) -> Reply:
        blocks = [_text_of(block) for block in result.content]
        output = "\n".join(text for text in blocks if text is not None)
        if result.is_error:
            return failed(first_line(output) or "the tool reported a failure without a reason", output=output)
        is_json, structure = not isinstance(self.config.extract, RegexExtract), result.structured_content
        if is_json and structure is not None and wrapped_text(structure) is None:
            return Reply(json.dumps(structure, ensure_ascii=False))
        if not blocks:
            return Reply(answer=Answer(Outcome.EMPTY))
        texts = [text for text in blocks if text is not None]
        if not texts:
            kinds = ", ".join(sorted({block.type for block in result.content}))
            return failed(f"the tool answered with {kinds}, not text", outcome=Outcome.UNPARSABLE)
        return Reply(self._document(texts) if is_json else output)

    def _document(self, texts: Sequence[str]) -> str:
        """The text that `extract` reads of a tool that returned a list, of which SDKs send each item as a text of its own."""
        output = "\n".join(texts)
        try:
            values = [load_json(text) for text in texts]
        except (ValueError, RecursionError):
            return output
        value, extract = values[0] if len(values) == 1 else values, self.config.extract
        if isinstance(extract, JsonLinesExtract):
            lines = value if isinstance(value, list) else [value]
            return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        if isinstance(value, dict) and self._is_one_of_a_list(value):
            value = [value]
        return output if len(values) == 1 and value is values[0] else json.dumps(value, ensure_ascii=False)

    def _is_one_of_a_list(self, value: Mapping[str, Any]) -> bool:
        """Whether an object is the only item of a list: `extract` finds a list where there is one around it."""
        from jmespath.exceptions import JMESPathError

        if not isinstance(self.config.extract, JsonExtract):
            return False
        path = compile_list_path(self.config.extract.json_)
        with suppress(JMESPathError, TypeError, ValueError):
            return isinstance(path.search([value]), list) and not isinstance(path.search(value), list)
        return False

    async def _open(self) -> Session:
        """The session, opened if necessary."""
        async with self._opening:
            if self._session is not None and self._session.is_over:
                await self._close_session(self._session)
            if self._session is None:
                self._started = Session(self._options())
                self._session = await self._started.opened()
                self._is_legacy = self._session.is_legacy
                atexit.register(self.close)
            return self._session

    def _options(self) -> SessionOptions:
        values = request_values(query="", k=0, params={}, environment=self.environment)
        server = self._mcp if isinstance(self._mcp, McpServer) else None
        url = fill_value(server.url, values) if server else None
        headers = fill_value(server.headers, values) if server else {}
        return SessionOptions(
            self._argv(), self.cwd, self.environment, url, headers, self.config.timeout_s, self._is_legacy
        )

    async def _close_session(self, session: Session) -> None:
        if self._session is session:
            self._session = None
        await session.close()

    async def _close(self) -> None:
        if self._session is not None:
            await self._close_session(self._session)

    def _has_variable(self, name: str) -> str:
        if name in self.environment:
            return "set"
        raise CheckFailedError("a variable of the environment", "it is not set")

    def _check_tool(self) -> str:
        try:
            tools = event_loop().run(asyncio.wait_for(self._tools(), self.config.timeout_s))
        except TimeoutError:
            found = f"no answer in {self.config.timeout_s:g} s"
            raise CheckFailedError("a server that answers", found, self._wrote()) from None
        except (NoSessionError, BrokenError, ToolFailedError) as error:
            raise CheckFailedError("a server that answers", str(error), self._wrote()) from None
        tool = self._mcp.tool
        if tool not in tools:
            problem = unknown_name("tool", tool, tools)
            named = join_first(sorted(tools), _SHOWN_NAMES) or "no tool"
            raise CheckFailedError(f"the tool {tool}", named, problem.hint)
        self._check_arguments(tools[tool])
        return "found, and it takes the arguments"

    def _wrote(self) -> str | None:
        """The end of the stderr of the server that was started last, without secrets."""
        return None if self._started is None else output_hint(self.redactor.redact(self._started.stderr_from(0)))

    async def _tools(self) -> dict[str, Tool]:
        return await (await self._open()).tools()

    def _check_arguments(self, tool: Tool) -> None:
        """Check the arguments against the input schema of the tool.

        Raises:
            CheckFailedError: one is missing, unknown, or of another type.
        """
        schema = tool.input_schema
        known = schema.get("properties") or {}
        written = self._mcp.arguments
        wrong = [f"no {name}" for name in schema.get("required") or [] if name not in written]
        is_open = schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
        unknown = [name for name in written if name not in known and not is_open]
        wrong += [f"{name}, which is unknown to it" for name in unknown]
        hint = next((unknown_name("argument", name, known).hint for name in unknown), None)
        sample = self._arguments(SAMPLE_QUERY, 10, {**self.config.params, **self.set_params})
        wrong += _wrong_types(sample, known)
        if wrong:
            takes = join_first(known, _SHOWN_NAMES) or "no arguments"
            raise CheckFailedError(
                f"arguments that the tool takes ({takes})", join_first(wrong, _SHOWN_NAMES, separator="; "), hint
            )


def _wrong_types(arguments: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    wrong = []
    for name, value in arguments.items():
        if find_mismatch(known.get(name), value) is not None:
            expected = known[name].get("type", "another type")
            wrong.append(f"{name} is {shorten(value)}, not of type {expected}")
    return wrong


def _text_of(block: Any) -> str | None:
    """Text of a content block or embedded resource; None for images, audio and links."""
    text = getattr(block, "text", None)
    if text is None:
        text = getattr(getattr(block, "resource", None), "text", None)
    return text if isinstance(text, str) else None

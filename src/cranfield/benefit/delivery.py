"""Whether the tools under test reach the agent: what they serve before the run, and what became of them in it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from cranfield.agents.loop import total_usage
from cranfield.agents.protocol import Backend, Message, Request, Tool, Usage
from cranfield.base.errors import shorten
from cranfield.base.words import printable
from cranfield.benefit.content import flaws_of, parsed
from cranfield.benefit.mcp_tools import McpTools, ToolServerError
from cranfield.benefit.plan import ArmRole, Preflight
from cranfield.benefit.records import Delivery, Flaw, PreflightRecord, ToolResultNote, estimated_tokens
from cranfield.config.reading import ExpressionError, compile_path
from cranfield.repo.git import is_same_commit

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]")
"""Agents differ in what they replace in the names of tools."""
_PROBE = "Reply with one word."
_Part = Literal["index", "version", "commit"]


async def tool_preflight(role: ArmRole, tools: McpTools, commit: str = "") -> PreflightRecord:
    """Ask a server under test what it serves, whichever agent uses it later: start it, list its tools, and ask it.

    Args:
        role: of the arm whose agent is given the tools.
        tools: of the server.
        commit: of the repository that the tasks are about; empty: not compared.
    """
    preflight = tools.server.preflight
    found: dict[str, Any] = {}
    problems: list[str] = []
    try:
        await tools.open()
        if preflight is not None:
            found, problems = served(preflight, await tools.ask(preflight.tool, preflight.arguments), commit)
    except ToolServerError as error:
        problems = [str(error)]
    tools.found = found
    used = tools.instructions
    return PreflightRecord(
        arm=role,
        tool=tools.name,
        ok=not problems,
        message="; ".join(problems),
        found=found,
        server=tools.version,
        tools=tools.listed,
        instructions_digest="sha256:" + sha256(used.encode()).hexdigest() if used else "",
        schema_digest=tools.schema_digest,
    )


def served(preflight: Preflight, value: object, commit: str) -> tuple[dict[str, Any], list[str]]:
    """What a result says of index, version and commit, and how that differs from what is expected."""
    found: dict[str, Any] = {}
    problems = list(preflight_problems(preflight))
    for name, path in _paths(preflight).items():
        try:
            found[name] = _value_at(path, value)
        except ExpressionError:
            continue
        wanted = {preflight.expect.get(name, ""), commit if name == "commit" else ""} - {""}
        got = found[name]
        if got is None:
            problems.append(f"its result has no {name} at {path}; got {_shown(value)}")
        problems += [
            f"it serves the {name} {shorten(got)} instead of {shorten(each)}"
            for each in sorted(wanted)
            if got is not None and not _is_same(name, got, each)
        ]
    return found, problems


def _is_same(part: _Part, got: object, expected: object) -> bool:
    compare = is_same_commit if part == "commit" else str.__eq__
    return compare(str(got), str(expected))


def _shown(value: object) -> str:
    """A result, short."""
    if isinstance(value, str):
        return f"the text {shorten(value)}" if value.strip() else "empty"
    return shorten(value)


def preflight_problems(preflight: Preflight) -> Iterator[str]:
    """What is wrong with the places in which index, version and commit stand, whatever the result."""
    paths = _paths(preflight)
    for name in preflight.expect:
        if name not in paths:
            yield f"`expect` has {name}, but `preflight.{name}` does not define its path"
    for name, path in paths.items():
        try:
            compile_path(path)
        except ExpressionError as error:
            yield f"`preflight.{name}` {error}"


def _paths(preflight: Preflight) -> dict[_Part, str]:
    """Those that the plan gives."""
    paths: dict[_Part, str] = {
        "index": preflight.index,
        "version": preflight.version,
        "commit": preflight.commit,
    }
    return {name: path for name, path in paths.items() if path}


def _value_at(path: str, value: object) -> Any:
    from jmespath.exceptions import JMESPathError

    compiled = compile_path(path)
    try:
        return compiled.search(value)
    except (JMESPathError, TypeError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class SchemaTax:
    """Tokens that the schemas of the tools under test take in every request."""

    measured: int | None
    """Input of a request with them less that of one without; None: the provider does not report tokens, or the same ones."""
    estimated: int
    usage: Usage
    """Usage of both requests."""


async def measure_schema(backend: Backend, request: Request, under_test: Sequence[Tool]) -> SchemaTax:
    """Send a request of an agent with and without the tools under test, each answered by one token.

    Args:
        backend: answers are kept, so that a run that is resumed does not pay again.
        request: the first one of an agent, with all of its tools; its message is replaced.
        under_test: tools that are left out of the second request.
    """
    names = {tool.name for tool in under_test}
    short = replace(
        request, messages=(Message("user", _PROBE),), output=None, sampling=replace(request.sampling, max_tokens=1)
    )
    without = replace(short, tools=tuple(tool for tool in short.tools if tool.name not in names))
    usages = [(await backend.ask(each)).usage for each in (short, without)]
    full, bare = (None if usage.unmeasured else usage.input for usage in usages)
    measured = full - bare if full and bare and full > bare else None
    return SchemaTax(measured, schema_estimate(under_test), total_usage(usages))


def schema_estimate(tools: Sequence[Tool]) -> int:
    """Tokens of the schemas of tools, by their length as a request has them."""
    return sum(estimated_tokens(json.dumps([tool.name, tool.description, tool.parameters])) for tool in tools)


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a tool by an agent, and its result."""

    tool: str
    arguments: str
    """As JSON."""
    is_error: bool
    text: str
    """Text of the result; empty where it is not known."""
    is_cut: bool = False
    """The text is a part of it, as we cut it."""
    shows_lines: bool = False
    """Lines of the repository stand in it."""
    names_files: bool = False
    """It names a file of the repository."""


def run_delivery(
    under_test: Mapping[str, McpTools],
    offered: Collection[str],
    calls: Sequence[Called] | None,
    *,
    instructions: str | None = "",
    tax: SchemaTax | None = None,
    has_texts: bool = True,
) -> Delivery:
    """What became of the tools under test in a run.

    Args:
        under_test: names of the tools under test, as the agent has them, each with its server, whose preflight says what
            its results must state.
        offered: names of all tools of the first request; none: no request was sent.
        calls: of all tools; None: not known.
        instructions: how to use the tools, as the agent has them; None: not known.
        tax: of the schemas.
        has_texts: the texts of the results are known.
    """
    missing = sorted(set(under_test) - set(offered))
    own = [call for call in calls or () if call.tool in under_test]
    good = [call for call in own if not call.is_error]
    notes = None
    if calls is not None and has_texts:
        notes = tuple(result_note(call, _flaws(call, under_test[call.tool])) for call in good)
    answered = len(good) if notes is None else sum(note.has_content for note in notes)
    return Delivery(
        offered=not missing,
        missing=tuple(missing),
        called=None if calls is None else len(own),
        answered=None if calls is None else answered,
        results=notes,
        instructions_tokens=None if instructions is None else estimated_tokens(instructions),
        schema_tokens=None if tax is None else tax.measured,
        schema_tokens_estimated=None if tax is None else tax.estimated,
        payload_tokens=None if notes is None else sum(estimated_tokens(call.text) for call in own),
    )


def result_note(call: Called, flaws: Iterable[Flaw]) -> ToolResultNote:
    """What is kept of a result: which call it answers, and what it is like, without its text."""
    arguments = call.arguments
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    return ToolResultNote(
        tool=printable(call.tool) or "?",
        arguments=_digest(arguments),
        text=_digest(call.text.strip()),
        flaws=tuple(flaws),
        shows_lines=call.shows_lines,
        names_files=call.names_files,
    )


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _flaws(call: Called, server: McpTools) -> Sequence[Flaw]:
    """What is wrong with a result, and whether it states another source than its server did in the preflight."""
    flaws = list(flaws_of(call.text, is_cut=call.is_cut, is_of_repository=call.shows_lines or call.names_files))
    preflight = server.server.preflight
    if preflight is None or not server.found or not _states_source(call.tool, server, preflight):
        return flaws
    value = parsed(call.text)
    for name, path in _paths(preflight).items():
        if (expected := server.found.get(name)) is None:
            continue
        got = _value_at(path, value)
        if isinstance(got, str | int | float) and not _is_same(name, got, expected):
            return [*flaws, Flaw.OTHER_SOURCE]
    return flaws


def _states_source(tool: str, server: McpTools, preflight: Preflight) -> bool:
    """Whether a result of a tool has index, version and commit at the places of the preflight, as the plan says."""
    names = map(server.offered_name, (preflight.tool, *preflight.results_of))
    return _NOT_IN_A_NAME.sub("_", tool) in {_NOT_IN_A_NAME.sub("_", name) for name in names}

"""An MCP server: its tools are listed, the one that searches is chosen by its schema, and it is called."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cranfield.concurrency.loop import event_loop
from cranfield.config.template import fill, fill_value, request_values
from cranfield.errors import MissingExtraError, Problem, UsageError
from cranfield.project.init.trial import TRIAL_S, UNREAD, answers_of, query_hint, reading_of, with_empty
from cranfield.project.init.values import K_NAMES, QUERY_NAMES, UNLIKELY, FoundSystem, Settings, Target, Trial
from cranfield.systems.calls.answer_schema import output_hint
from cranfield.words import first_of, printable

if TYPE_CHECKING:
    from mcp_types import Tool

    from cranfield.systems.kinds.mcp_session import SessionOptions

TOOL_WORDS = ("search", "query", "find", "retrieve", "lookup", "ask")
"""Words in the name of a tool that searches, the likeliest first."""
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class SearchTool:
    """A tool that takes a query."""

    name: str
    arguments: Mapping[str, Any]
    rank: tuple[int, ...]


def mcp_system(target: Target, place: Settings, tools: Mapping[str, Tool], trial: Trial) -> FoundSystem:
    """Choose the tool of a server that searches, and find out how its results are read.

    Args:
        target: the argument.
        place: `command` or `url` of the server; `cwd` where the program does not run in the folder of the config.
        tools: of the server.
        trial: queries to try, and what is expected.

    Raises:
        UsageError: it has no tool that searches, or the results cannot be read.
    """
    server = {key: value for key, value in place.items() if key != "cwd"}
    around = {key: value for key, value in place.items() if key == "cwd"}
    usable = sorted(filter(None, map(search_tool, tools.values())), key=lambda tool: tool.rank, reverse=True)
    if not usable:
        names = first_of(sorted(tools), _SHOWN) or "no tool"
        expected = "a tool whose required arguments are a query, and perhaps a number of results"
        raise UsageError(
            "no tool of the MCP server searches", path=target.given, expected=expected, got=printable(names)
        )
    chosen = _choose(usable, trial)
    settings = {"mcp": {**server, "tool": chosen.name, "arguments": dict(chosen.arguments)}, **around}
    answers = answers_of({**settings, **UNREAD}, [*trial.texts(), UNLIKELY], trial.folder, k=trial.k)
    outputs = {text: output for text, output in answers.outputs.items() if text != UNLIKELY}
    reading = reading_of(settings, outputs, trial.known, k=trial.k)
    if reading is None:
        got = answers.problem or printable(next(iter(outputs.values()), ""))[:60] or "nothing"
        raise UsageError(Problem(f"no results in what the tool {printable(chosen.name)} answered", path=target.given,
                                 expected="JSON with a list of results, or lines with ids", got=got,
                                 hint=query_hint(trial), parameters=("query",)))  # fmt: skip
    others = [tool.name for tool in usable if tool is not chosen]
    notes = (f"other tools that take a query: {printable(first_of(others, _SHOWN))}",) if others else ()
    what = f"the tool {printable(chosen.name)} of an MCP server: {reading.shape.what}"
    whole = with_empty(reading, answers.outputs, k=trial.k)
    found = FoundSystem(target.given, target.name or chosen.name, whole, what, reading.ids)
    return replace(found, notes=notes)


def _choose(usable: list[SearchTool], trial: Trial) -> SearchTool:
    best = [tool for tool in usable if tool.rank == usable[0].rank]
    if len(best) == 1:
        return best[0]
    names = [tool.name for tool in best]
    answer = trial.ask("Which tool searches?", names[0], names)
    return next((tool for tool in best if tool.name == answer), best[0])


def mcp_tools(target: Target, place: Settings, trial: Trial) -> Mapping[str, Tool]:
    """The tools of an MCP server.

    Raises:
        UsageError: no server answers there.
        MissingExtraError: the library for MCP is not installed.
    """
    if find_spec("mcp") is None:
        raise MissingExtraError.for_extra("an MCP server", "mcp")
    from cranfield.systems.kinds.mcp_session import BrokenError, NoSessionError, SessionOptions, ToolFailedError

    argv = fill(place.get("command", ()), query="", k=0, python=sys.executable, params={})
    values = request_values(query="", k=0, params={}, environment=os.environ)
    headers = fill_value(place.get("headers", {}), values)
    cwd = trial.folder / place.get("cwd", ".")
    options = SessionOptions(argv, cwd, dict(os.environ), place.get("url"), headers, TRIAL_S)
    try:
        return event_loop().run(asyncio.wait_for(_list_tools(options), TRIAL_S))
    except TimeoutError:
        got = f"no answer in {TRIAL_S:g} s"
    except NoSessionError as error:
        got = "; ".join(filter(None, (printable(str(error)), output_hint(error.stderr))))
    except (BrokenError, ToolFailedError) as error:
        got = printable(str(error))
    raise UsageError("no MCP server answers", path=target.given, expected="an MCP server", got=got)


async def _list_tools(options: SessionOptions) -> Mapping[str, Tool]:
    from cranfield.systems.kinds.mcp_session import Session

    session = Session(options)
    try:
        await session.opened()
        return await session.tools()
    finally:
        await session.close()


def search_tool(tool: Tool) -> SearchTool | None:
    """A tool as one that searches, with its arguments; None where it takes no query, or requires an argument whose value is not known."""
    schema: Mapping[str, Any] = tool.input_schema
    properties = schema.get("properties")
    required = schema.get("required") or []
    if not isinstance(properties, dict) or not isinstance(required, list):
        return None
    query = _query_argument(properties, required)
    if query is None:
        return None
    arguments: dict[str, Any] = {query: "{query}"}
    for name, property_ in properties.items():
        if name in K_NAMES and _has_type(property_, "integer", "number") and name not in arguments:
            arguments[name] = "{k}"
            break
    for name in required:
        if name not in arguments:
            fixed = _fixed_value(properties.get(name))
            if fixed is None:
                return None
            arguments[name] = fixed
    words = tool.name.lower()
    word = next((len(TOOL_WORDS) - place for place, word in enumerate(TOOL_WORDS) if word in words), 0)
    name_rank = len(QUERY_NAMES) - QUERY_NAMES.index(query) if query in QUERY_NAMES else 0
    is_search = any("search" in (text or "").lower() for text in (tool.title, tool.description))
    return SearchTool(tool.name, arguments, (word, is_search, min(name_rank, 1), "{k}" in arguments.values()))


def _query_argument(properties: Mapping[str, Any], required: list[Any]) -> str | None:
    """The argument of the query: one with a usual name, else the only text that is required."""
    texts = [name for name, property_ in properties.items() if _has_type(property_, "string")]
    named = sorted((name for name in texts if name in QUERY_NAMES), key=QUERY_NAMES.index)
    needed = [name for name in texts if name in required]
    return named[0] if named else needed[0] if len(needed) == 1 else None


def _has_type(property_: object, *types: str) -> bool:
    if not isinstance(property_, dict):
        return False
    written = property_.get("type")
    listed = written if isinstance(written, list) else [written]
    alternatives = [inner.get("type") for inner in property_.get("anyOf") or [] if isinstance(inner, dict)]
    return any(kind in types for kind in (*listed, *alternatives))


def _fixed_value(property_: object) -> object | None:
    """A value for an argument that is required and no query: its default, or the only one there is."""
    if not isinstance(property_, dict):
        return None
    listed = property_.get("enum")
    only: object | None = listed[0] if isinstance(listed, list) and len(listed) == 1 else None
    found: object | None = property_.get("default", property_.get("const"))
    return only if found is None else found

"""A command that searches, or that starts an MCP server."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cranfield.errors import Problem, UsageError
from cranfield.project.init.config_check import config_checks
from cranfield.project.init.mcp_target import mcp_system, mcp_tools
from cranfield.project.init.trial import UNREAD, answers_of, query_hint, reading_of, with_empty
from cranfield.project.init.values import UNLIKELY, FoundSystem, Settings, Target, Trial

_EXPECTED = "ids of results on stdout (lines, or JSON), or a server that speaks MCP on stdin and stdout"

_MCP_IMPORT = re.compile(rb"(?m)^\s*(?:from|import)\s+(?:fast)?mcp\b|modelcontextprotocol")
_READ_BYTES = 100_000
"""Of a script, from its beginning."""


def command_system(target: Target, trial: Trial) -> FoundSystem:
    """Find out how a command is called and how its results are read.

    A command without `{query}` is tried with the query as its last argument, then as an MCP server.

    Raises:
        UsageError: neither brought results.
    """
    return replace(_tried(target, trial), checks=config_checks(target.argv))


def _tried(target: Target, trial: Trial) -> FoundSystem:
    if target.is_certain:
        return _search(list(target.argv), target, trial)
    problems: list[Problem] = []
    is_server = any("mcp" in word.lower() or _imports_mcp(Path(word)) for word in target.argv)
    for attempt in (_server, _appended) if is_server else (_appended, _server):
        found = attempt(target, trial)
        if isinstance(found, FoundSystem):
            return found
        problems += found
    tried = "; ".join(dict.fromkeys(problem.got or problem.message for problem in problems))
    hint = "write {query} where the query goes: cranfield init './search.sh {query}'"
    if is_server:
        hint = "run it in a shell: a server that works waits there for messages on stdin"
    raise UsageError(
        "the command answers neither as a search nor as an MCP server",
        path=target.given,
        expected=_EXPECTED,
        got=tried,
        hint=hint,
    )


def _imports_mcp(path: Path) -> bool:
    """Whether a file is a script that uses a library for MCP servers."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as stream:
                return bool(_MCP_IMPORT.search(stream.read(_READ_BYTES)))
    return False


def _appended(target: Target, trial: Trial) -> FoundSystem | tuple[Problem, ...]:
    try:
        return _search([*target.argv, "{query}"], target, trial)
    except UsageError as error:
        return error.problems


def _server(target: Target, trial: Trial) -> FoundSystem | tuple[Problem, ...]:
    place = {"command": list(target.argv), **_place(trial)}
    try:
        tools = mcp_tools(target, place, trial)
    except UsageError as error:
        return error.problems
    return mcp_system(target, place, tools, trial)


def _place(trial: Trial) -> Settings:
    """The working folder, where it is not that of the config."""
    here = Path.cwd()
    return {} if here == trial.folder else {"cwd": os.path.relpath(here, trial.folder)}


def _search(argv: list[str], target: Target, trial: Trial) -> FoundSystem:
    settings = {"command": argv, **_place(trial)}
    texts = trial.texts()
    answers = answers_of({**settings, **UNREAD}, [*texts, UNLIKELY], trial.folder, k=trial.k)
    outputs = {text: output for text, output in answers.outputs.items() if text != UNLIKELY}
    if answers.problem and not outputs:
        hint = "run it in a shell with a query; the last line that it writes on stderr says why"
        raise UsageError("the command failed", path=target.given, expected=_EXPECTED, got=answers.problem, hint=hint)
    reading = reading_of(settings, outputs, trial.known, k=trial.k)
    if reading is None:
        raise UsageError(Problem("no results in what the command wrote", path=target.given, expected=_EXPECTED,
                                 got=_beginning(outputs), hint=query_hint(trial), parameters=("query",)))  # fmt: skip
    whole = with_empty(reading, answers.outputs, k=trial.k)
    name = target.name or _name_of(argv)
    found = FoundSystem(target.given, name, whole, f"a command: {reading.shape.what}", reading.ids)
    return replace(found, notes=open_notes(found, reading.shape.other_ids))


def _beginning(outputs: dict[str, str]) -> str:
    first = next((output for output in outputs.values() if output.strip()), "")
    return repr(first.strip()[:60]) if first else "nothing on stdout"


def open_notes(found: FoundSystem, other_ids: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What stays open about a system."""
    notes = []
    if other_ids:
        extract = found.settings.get("extract", {})
        notes.append(f"ids are read from {extract.get('id')}; {', '.join(other_ids)} would do as well")
    first = [ids[0] for ids in found.ids.values() if ids]
    if len(first) > 1 and len(set(first)) == 1:
        notes.append(f"every answer begins with {first[0]!r}: if that is a heading and no result, correct `extract`")
    return tuple(notes)


def _name_of(argv: list[str]) -> str:
    """The script or program of a command."""
    words = [word for word in argv if not word.startswith("-") and "{" not in word]
    named = [word for word in words if Path(word).suffix] or words
    return Path(named[0]).stem if named else "command"

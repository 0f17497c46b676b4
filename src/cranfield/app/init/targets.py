"""What `cranfield init` is given: files, addresses, commands, databases and MCP servers, each recognised by trying it."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from cranfield.app.init.config import config_checks
from cranfield.app.init.functions import FUNCTION, functions_of_file
from cranfield.app.init.shape import (
    ID_NAMES,
    K_NAMES,
    QUERY_NAMES,
    TITLE_NAMES,
    UNLIKELY,
    FoundSystem,
    Settings,
    Trial,
    TrialTarget,
    literal,
)
from cranfield.app.init.trial import (
    TRIAL_S,
    UNREAD,
    TrialAnswers,
    TrialReading,
    answers_of,
    make_system,
    query_hint,
    read_ids,
    reading_of,
    with_empty,
)
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import CranfieldError, MissingExtraError, PreflightError, Problem, UsageError, shorten
from cranfield.base.words import join_first, printable
from cranfield.config.services import SECRET_PARAMETERS
from cranfield.config.strict import fill, fill_value, placeholders, request_values
from cranfield.config.systems import NAME_PATTERN
from cranfield.formats.io.files import is_there
from cranfield.systems.calls.answer_schema import output_hint
from cranfield.systems.calls.extract import load_json
from cranfield.systems.collect.preflight import preflight

if TYPE_CHECKING:
    from mcp_types import Tool

    from cranfield.systems.kinds.mcp_session import SessionOptions


ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_NAMED = re.compile(rf"({NAME_PATTERN})=(.+)", re.DOTALL)
_PROGRAMS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
"""What a file that can be executed begins with."""
EXPECTED = "a file or folder, an address (http://...), a function (module:function), or a command with {query} in quotes or after --"
SCRIPT = ".py"


def targets_of(arguments: Sequence[str]) -> list[TrialTarget]:
    """What each argument is; without any, the working folder.

    Raises:
        UsageError: with every argument that is nothing.
    """
    found: list[TrialTarget] = []
    problems: list[Problem] = []
    for argument in arguments or (".",):
        try:
            found.append(_target(argument))
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    return found


def _target(argument: str) -> TrialTarget:
    named = None if _exists(argument) or ADDRESS.match(argument) else _NAMED.fullmatch(argument)
    name, given = (named[1], named[2]) if named else ("", argument)
    if ADDRESS.match(given):
        return TrialTarget(given, "url", name)
    path = Path(given)
    if _exists(given):
        return _program(path, given, name) or TrialTarget(given, "path", name)
    if re.search(r"\s", given.strip()) or shutil.which(given):
        return _command(given, name)
    if (function := FUNCTION.fullmatch(given)) and (
        not function["module"].endswith(SCRIPT) or _exists(function["module"])
    ):
        return TrialTarget(given, "function", name)
    hint = "to try an example without files: cranfield demo"
    raise UsageError(Problem("no such file, folder or program", path=given, expected=EXPECTED, hint=hint))


def headers_of(written: Sequence[str]) -> dict[str, str]:
    """Headers of requests from `NAME: VALUE`.

    Raises:
        UsageError: a text that is none.
    """
    found = {}
    for header in written:
        name, colon, value = header.partition(":")
        if not colon or not name.strip() or not value.strip():
            expected = "NAME: VALUE, such as 'Authorization: Bearer {env.TOKEN}'"
            message = f"{{header}} is {shorten(header)}"
            raise UsageError(message, expected=expected, parameters=("header",))
        found[name.strip()] = value.strip()
    return found


def _exists(given: str) -> bool:
    if os.path.exists(given):  # noqa: PTH110 - Path.exists raises where a command is too long for a name
        return True
    with suppress(OSError):
        return "#" in given and is_there(Path(given))
    return False


def _command(given: str, name: str) -> TrialTarget:
    try:
        argv = tuple(shlex.split(given))
    except ValueError as error:
        message = f"the command cannot be split into words: {str(error).lower()}"
        raise UsageError(message, expected="words as a shell splits them", got=shorten(given)) from None
    program = argv[0]
    if not Path(program).exists() and not shutil.which(program) and program != "{python}":
        hint = "the command runs in the folder of the config; write a program in that folder as ./NAME"
        raise UsageError(Problem(f"no program {shorten(program)}", expected=EXPECTED, hint=hint))
    return TrialTarget(given, "command", name, argv, is_certain=any("query" in placeholders(word) for word in argv))


def _program(path: Path, given: str, name: str) -> TrialTarget | None:
    """A command of a file that is a program; None of another file."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        begins = stream.read(4).startswith(_PROGRAMS)
    if begins and shutil.which(path.absolute()):
        written = given if path.is_absolute() or given.startswith((".", "/")) else f"./{given}"
        return TrialTarget(given, "command", name, (written,), is_certain=False)
    if path.suffix == SCRIPT:
        return TrialTarget(given, "command", name, ("{python}", given), is_certain=False)
    return None


TOOL_WORDS = ("search", "query", "find", "retrieve", "lookup", "ask")
"""Words in the name of a tool that searches, the likeliest first."""
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class SearchTool:
    """A tool that takes a query."""

    name: str
    arguments: Mapping[str, Any]
    rank: tuple[int, ...]


def mcp_system(target: TrialTarget, place: Settings, tools: Mapping[str, Tool], trial: Trial) -> FoundSystem:
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
    found_tools = (search_tool(tool, tuple(trial.params)) for tool in tools.values())
    usable = sorted(filter(None, found_tools), key=lambda tool: tool.rank, reverse=True)
    if not usable:
        names = join_first(sorted(tools), _SHOWN) or "no tool"
        expected = "a tool whose required arguments are a query, and perhaps a number of results"
        raise UsageError(
            "the MCP server has no search tool", path=target.given, expected=expected, got=printable(names)
        )
    chosen = _choose(usable, trial)
    settings = {"mcp": {**server, "tool": chosen.name, "arguments": dict(chosen.arguments)}, **around}
    answers = answers_of(
        {**settings, **UNREAD}, [*trial.texts(), UNLIKELY], trial.folder, k=trial.k, params=trial.params
    )
    outputs = {text: output for text, output in answers.outputs.items() if text != UNLIKELY}
    reading = reading_of(settings, outputs, trial.known, k=trial.k)
    if reading is None:
        got = answers.problem or printable(next(iter(outputs.values()), ""))[:60] or "nothing"
        raise UsageError(Problem(f"no results in the answer of the tool {printable(chosen.name)}", path=target.given,
                                 expected="JSON with a list of results, or lines with ids", got=got,
                                 hint=query_hint(trial), parameters=("query",)))  # fmt: skip
    others = [tool.name for tool in usable if tool is not chosen]
    notes = (f"other tools that take a query: {printable(join_first(others, _SHOWN))}",) if others else ()
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


def mcp_tools(target: TrialTarget, place: Settings, trial: Trial) -> Mapping[str, Tool]:
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


def search_tool(tool: Tool, params: Sequence[str] = ()) -> SearchTool | None:
    """A tool as one that searches, with its arguments; None where it takes no query, or requires an argument whose value is not known.

    Args:
        tool: as the server lists it.
        params: names of the parameters that queries have: an argument of that name has their value.
    """
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
    arguments |= {name: f"{{params.{name}}}" for name in properties if name in params and name not in arguments}
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


SQLITE_MAGIC = b"SQLite format 3\0"
_FTS5 = re.compile(r"CREATE\s+VIRTUAL\s+TABLE.*USING\s+fts5\b", re.IGNORECASE | re.DOTALL)
_SOLR = re.compile(r"(?P<root>.*/solr)/(?P<collection>[^/]+)(?:/(?P<handler>select|query))?/?")
_LUCENE = re.compile(r"(?P<root>.*?)/(?P<index>[^/_][^/]*)(?:/_search)?/?")
_QDRANT = re.compile(r"(?P<root>.*)/collections/(?P<collection>[^/]+)(?:/points/(?:query|search))?/?")
_VESPA = re.compile(r"(?P<root>.*?)/search/?")
MAX_TABLES = 4
"""Most systems that are made of the tables of a database."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A preset that may fit an address."""

    name: str
    settings: Settings
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def engines_of(address: str, trial: Trial) -> Iterator[Engine]:
    """Presets that fit an address by its form, or by what the server says of itself."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = unquote(parts.path)
    words = tuple(value for name, value in parse_qsl(parts.query) if name in {"q", "query"} and re.search(r"\w", value))
    if found := _SOLR.fullmatch(path):
        handler = {"handler": found["handler"]} if found["handler"] == "query" else {}
        settings = {"url": origin + found["root"], "collection": found["collection"], **handler}
        yield Engine(found["collection"], _preset("solr", settings), words)
    if found := _QDRANT.fullmatch(path):
        settings = {"url": origin + found["root"], "collection": found["collection"]}
        yield Engine(found["collection"], _preset("qdrant", settings), words)
    if (found := _VESPA.fullmatch(path)) and "yql" in parts.query:
        yield Engine("vespa", _preset("vespa", {"url": origin + found["root"]}), words)
    found = _LUCENE.fullmatch(path)
    if found is not None and (path.rstrip("/").endswith("/_search") or not parts.query):
        kind = _lucene_kind(origin + found["root"], trial, is_certain=path.rstrip("/").endswith("/_search"))
        if kind:
            settings = {"url": origin + found["root"], "index": found["index"]}
            yield Engine(found["index"], _preset(kind, settings), words)


def _preset(name: str, settings: Settings) -> Settings:
    return {"preset": name, "with": dict(settings)}


def _lucene_kind(root: str, trial: Trial, *, is_certain: bool) -> str:
    """`opensearch` or `elasticsearch`, as the root of the server says; empty where it is neither."""
    settings = {"http": {"url": f"{root}/", "parameters": {"filter_path": "{query}"}}, "extract": {"json": "@"}}
    answers = answers_of(settings, ["version,tagline"], trial.folder, k=1)
    try:
        root_page = load_json(next(iter(answers.outputs.values()), ""))
    except (ValueError, RecursionError):
        root_page = None
    version = root_page.get("version") if isinstance(root_page, dict) else None
    if not isinstance(version, dict) or "number" not in version:
        return "elasticsearch" if is_certain else ""
    return "opensearch" if version.get("distribution") == "opensearch" else "elasticsearch"


def is_database(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def database_systems(target: TrialTarget, written: str, trial: Trial) -> list[FoundSystem]:
    """The FTS5 tables of a database, each as a system.

    Args:
        target: the argument.
        written: the path as it goes into the config.
        trial: the folder of the config.

    Raises:
        UsageError: it has none, or cannot be read.
    """
    try:
        tables = fts_tables(target.path)
    except sqlite3.Error as error:
        raise UsageError(f"the database cannot be read: {error}", path=target.given) from None
    if not tables:
        hint = "the preset sqlite searches FTS5 tables; pass any other search as a command"
        raise UsageError(Problem("no FTS5 table in the database", path=target.given, hint=hint))
    found = []
    for table, columns in list(tables.items())[:MAX_TABLES]:
        id_column = next((name for name in ID_NAMES if name in columns and name not in TITLE_NAMES), "rowid")
        title = next((name for name in TITLE_NAMES if name in columns), None)
        settings = {"database": written, "table": table, "id_column": id_column}
        settings |= {"title_column": title} if title else {}
        notes = (f"ids are read from the column {id_column}",)
        name = target.name if target.name and len(tables) == 1 else f"{target.name or target.path.stem}-{table}"
        what = f"the preset sqlite: the FTS5 table {table}"
        whole = _preset("sqlite", settings)
        ids = _answers(whole, trial)
        found.append(FoundSystem(target.given, name, whole, what, ids, notes))
    return found


def _answers(settings: Settings, trial: Trial) -> dict[str, Sequence[str]]:
    from cranfield.model import Query

    system = make_system(settings, trial.folder)
    try:
        return {
            text: [hit.public_id for hit in system.ask(Query("trial", text), trial.k).answer.hits]
            for text in trial.texts()
        }
    finally:
        system.close()


def fts_tables(path: Path) -> dict[str, tuple[str, ...]]:
    """The FTS5 tables of a database with their columns."""
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
        names = [name for name, sql in rows.fetchall() if _FTS5.search(sql)]
        return {
            name: tuple(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,)))
            for name in names
        }


_EXPECTED = "ids of results on stdout (lines, or JSON), or a server on stdin and stdout that speaks MCP or answers lines of JSON"

_MCP_IMPORT = re.compile(rb"(?m)^\s*(?:from|import)\s+(?:fast)?mcp\b|modelcontextprotocol")
_OF_PROGRAMS = re.compile(rb"__main__|argv|argparse|stdin|\binput\(|\b(?:click|typer|fire|docopt|fileinput|mcp)\b")
"""What a script has that is a program."""
_READ_BYTES = 100_000
"""Bytes of a script that are read, from its beginning."""


def command_system(target: TrialTarget, trial: Trial) -> FoundSystem:
    """Find out how a command is called and how its results are read.

    A command without `{query}` is tried with the query as its last argument, then as a program that answers lines of JSON, then
    as an MCP server.

    Raises:
        UsageError: none of these brought results.
    """
    return replace(_tried(target, trial), checks=config_checks(target.argv))


def _tried(target: TrialTarget, trial: Trial) -> FoundSystem:
    if target.is_certain:
        return _search(list(target.argv), target, trial)
    if _is_module(target.path) and (function := functions_of_file(target, trial)) is not None:
        return function
    problems: list[Problem] = []
    is_server = any("mcp" in word.lower() or _imports_mcp(Path(word)) for word in target.argv)
    for attempt in (_started_server, _appended) if is_server else (_appended, _answering_lines, _started_server):
        found = attempt(target, trial)
        if isinstance(found, FoundSystem):
            return found
        problems += found
    if target.path.suffix == SCRIPT and (function := functions_of_file(target, trial)) is not None:
        return function
    tried = "; ".join(dict.fromkeys(problem.got or problem.message for problem in problems))
    hint = "write {query} where the query goes: cranfield init './search.sh {query}'"
    if is_server:
        hint = "run it in a shell: a working server waits for messages on stdin"
    raise UsageError(
        "the command behaves neither like a search nor like a server on stdin and stdout",
        path=target.given,
        expected=_EXPECTED,
        got=tried,
        hint=hint,
    )


def _is_module(path: Path) -> bool:
    """Whether a file of Python reads nothing from its command line and stdin, so that it is no program."""
    if path.suffix != SCRIPT:
        return False
    with suppress(OSError), path.open("rb") as stream:
        return not _OF_PROGRAMS.search(stream.read(_READ_BYTES))
    return False


def _imports_mcp(path: Path) -> bool:
    """Whether a file is a script that uses a library for MCP servers."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as stream:
                return bool(_MCP_IMPORT.search(stream.read(_READ_BYTES)))
    return False


def _appended(target: TrialTarget, trial: Trial) -> FoundSystem | tuple[Problem, ...]:
    try:
        return _search([*target.argv, "{query}"], target, trial)
    except UsageError as error:
        return error.problems


def _answering_lines(target: TrialTarget, trial: Trial) -> FoundSystem | tuple[Problem, ...]:
    """A program that reads queries as lines of JSON, and answers with lines: with `hits`, or in a form of its own."""
    settings: Settings = {"lines": list(target.argv), **_place(trial)}
    what = "a program: lines of JSON on stdin and stdout"
    answers = answers_of({**settings, **UNREAD}, trial.texts(), trial.folder, k=trial.k, params=trial.params)
    ids: Mapping[str, Sequence[str]] = read_ids(settings, answers.outputs, k=trial.k)
    if not any(ids.values()) and (reading := reading_of(settings, answers.outputs, trial.known, k=trial.k)) is not None:
        settings, ids, what = reading.settings, reading.ids, f"{what}, {reading.shape.what}"
    if answers.problem or not any(ids.values()):
        return (Problem("no answer to a line of JSON", got=answers.problem or "no results for lines of JSON"),)
    return FoundSystem(target.given, target.name or _name_of_command(list(target.argv)), settings, what, ids)


def _started_server(target: TrialTarget, trial: Trial) -> FoundSystem | tuple[Problem, ...]:
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


def _search(argv: list[str], target: TrialTarget, trial: Trial) -> FoundSystem:
    settings = {"command": argv, **_place(trial)}
    texts = trial.texts()
    answers = answers_of({**settings, **UNREAD}, [*texts, UNLIKELY], trial.folder, k=trial.k, params=trial.params)
    outputs = {text: output for text, output in answers.outputs.items() if text != UNLIKELY}
    if answers.problem and not outputs:
        hint = "run it in a shell with a query; the last line on stderr gives the reason"
        raise UsageError("the command failed", path=target.given, expected=_EXPECTED, got=answers.problem, hint=hint)
    reading = reading_of(settings, outputs, trial.known, k=trial.k)
    if reading is None:
        raise UsageError(Problem("no results in the output of the command", path=target.given, expected=_EXPECTED,
                                 got=_beginning(outputs), hint=query_hint(trial), parameters=("query",)))  # fmt: skip
    whole = with_empty(reading, answers.outputs, k=trial.k)
    name = target.name or _name_of_command(argv)
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
        notes.append(f"ids are read from {extract.get('id')}; {', '.join(other_ids)} are alternatives")
    first = [ids[0] for ids in found.ids.values() if ids]
    if len(first) > 1 and len(set(first)) == 1:
        notes.append(f"every answer begins with {first[0]!r}: if that is a heading and not a result, correct `extract`")
    return tuple(notes)


def _name_of_command(argv: list[str]) -> str:
    """The script or program of a command."""
    words = [word for word in argv if not word.startswith("-") and "{" not in word]
    named = [word for word in words if Path(word).suffix] or words
    return Path(named[0]).stem if named else "command"


GUESSED = ("q", "query", "text", "search")
"""Names that are tried where the address has no parameter of the query."""
GUESSED_K = ("size", "limit", "k", "top_k", "rows", "n", "num", "count", "per_page")
"""Names that are tried where the address has no parameter of the number of results."""
FEW = 3
"""Results that such a trial asks for."""
SAMPLE_WORD = "test"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request that may be the search."""

    settings: Settings
    is_guess: bool
    """Whether the parameter of the query is a guess, so that another query has to bring another answer."""
    words: tuple[str, ...] = ()
    """Query in the address."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Secrets that the address holds, by the variables that the config names in their place."""


def http_system(target: TrialTarget, trial: Trial) -> FoundSystem:
    """Find out how an address is asked and how its answer is read.

    Tried in turn: a preset for its engine, the address as it is, usual parameters of a query, an MCP server.

    Raises:
        UsageError: nothing brought a list of results; says what each attempt got.
    """
    got: list[str] = []
    shown = address_of(target)
    if target.given.rstrip("/").endswith("/mcp") and not trial.served:
        return _remote_server(target, trial)
    for engine in () if trial.served else engines_of(target.given, trial):
        if (found := _engine(engine, target, trial, got)) is not None:
            return found
    for request in requests_of(target.given, trial):
        if (found := _request(request, target, trial, got)) is not None:
            return found
    try:
        if not trial.served:
            return _remote_server(target, trial)
    except CranfieldError as error:
        got.append(error.problems[0].got or error.problems[0].message)
    raise UsageError(
        Problem(
            "no request returned a list of results",
            path=shown,
            expected="JSON with a list of results, or lines with ids",
            got="; ".join(dict.fromkeys(got)),
            hint=_hint(got),
            parameters=("header",),
        )
    )


def served_system(target: TrialTarget, server: TrialTarget, trial: Trial) -> FoundSystem:
    """Find out how an address with `{port}` is asked, while the program that listens there runs.

    Args:
        target: the address.
        server: the command of the program, which is `serve` of the system.
        trial: queries to try, and what is expected.

    Raises:
        UsageError: the program does not start, or nothing brought a list of results.
    """
    trial = replace(trial, served={"serve": {"command": list(server.argv)}, **_place(trial)})
    whole = {**trial.served, "http": {"url": target.given, "parameters": {"": "{query}"}}, **UNREAD}
    running = make_system(whole, trial.folder)  # the systems that are tried share its program
    try:
        preflight([running])
        name = target.name or _name_of_command(list(server.argv))
        found = http_system(replace(target, name=name), trial)
        return replace(found, what=f"{found.what}, started by `{server.given}`", checks=config_checks(server.argv))
    except PreflightError as error:
        (problem,) = error.problems
        expected, got = problem.expected, "; ".join(filter(None, (problem.got, problem.hint)))
        raise UsageError(
            "the program of the address did not start", path=server.given, expected=expected, got=got
        ) from None
    finally:
        running.close()


def _remote_server(target: TrialTarget, trial: Trial) -> FoundSystem:
    place = {"url": target.given, **({"headers": dict(trial.headers)} if trial.headers else {})}
    return mcp_system(target, place, mcp_tools(target, place, trial), trial)


def _hint(got: Sequence[str]) -> str:
    if any(f"HTTP {status}" in text for status in ("401", "403") for text in got):
        return "{header} 'Authorization: Bearer {env.TOKEN}' sends the required header, with the value of the variable TOKEN"
    return "give the URL of one search, with a query that returns results: 'http://host/search?q=word'"


def address_of(target: TrialTarget) -> str:
    """The address without its parameters, which may hold a secret."""
    return target.given.partition("?")[0]


def _engine(engine: Engine, target: TrialTarget, trial: Trial, got: list[str]) -> FoundSystem | None:
    texts = trial.texts(*engine.words) or (SAMPLE_WORD,)
    answers = answers_of(engine.settings, texts, trial.folder, k=trial.k, params=trial.params)
    ids = read_ids(engine.settings, answers.outputs, k=trial.k) if answers.outputs else {}
    if answers.problem or not any(ids.values()):
        got.append(answers.problem or f"no results by the preset {engine.settings['preset']}")
        return None
    what = f"the preset {engine.settings['preset']}"
    return FoundSystem(address_of(target), target.name or engine.name, engine.settings, what, ids, engine.notes)


def _request(request: SearchRequest, target: TrialTarget, trial: Trial, got: list[str]) -> FoundSystem | None:
    texts = trial.texts(*request.words) or (SAMPLE_WORD,)
    extra = [UNLIKELY] if request.is_guess else []
    whole = {**request.settings, **UNREAD}
    answers = answers_of(
        whole, [*texts, *extra], trial.folder, k=trial.k, params=trial.params, environment=request.environment
    )
    outputs = {text: output for text, output in answers.outputs.items() if text != UNLIKELY}
    reading = reading_of(request.settings, outputs, trial.known, k=trial.k)
    if reading is None or (extra and not _depends_on_query(reading, answers.outputs, trial)):
        got.append(answers.problem or _summary(outputs))
        return None
    name = target.name or _name_of_address(target.given)
    reading = _with_k(reading, request, texts, trial)
    if "regex" in reading.settings["extract"] and not extra:
        nothing = answers_of(
            whole, [UNLIKELY], trial.folder, k=trial.k, params=trial.params, environment=request.environment
        )
        answers = TrialAnswers({**outputs, **nothing.outputs})
    settings = with_empty(reading, answers.outputs, k=trial.k)
    found = FoundSystem(address_of(target), name, settings, f"an HTTP service: {reading.shape.what}", reading.ids)
    notes = [*open_notes(found, reading.shape.other_ids)]
    notes += [f"set the variable {name}, which replaces a secret" for name in request.environment]
    if not asks_for_k(reading.settings):
        most = max(map(len, reading.ids.values()))
        notes.append(f"no parameter for the number of results was found; it returns at most {most}")
    return replace(found, notes=tuple(notes))


def _depends_on_query(reading: TrialReading, outputs: Mapping[str, str], trial: Trial) -> bool:
    """Whether an unlikely word brings other results, so that the parameter is the query."""
    other = read_ids(reading.settings, {UNLIKELY: outputs.get(UNLIKELY, "")}, k=trial.k)[UNLIKELY]
    return all(found != other for found in reading.ids.values() if found)


def _with_k(reading: TrialReading, request: SearchRequest, texts: Sequence[str], trial: Trial) -> TrialReading:
    """The reading with a parameter for the number of results: one of the usual names, where it changes the number."""
    longest = max(texts, key=lambda text: len(reading.ids.get(text, ())))
    if asks_for_k(reading.settings) or len(reading.ids.get(longest, ())) <= FEW:
        return reading
    request_settings = reading.settings["http"]
    place = "json" if "json" in request_settings else "parameters"
    for name in GUESSED_K:
        body = {**request_settings.get(place, {}), name: "{k}"}
        settings = {**reading.settings, "http": {**request_settings, place: body}}
        answers = answers_of(
            settings, [longest], trial.folder, k=FEW, params=trial.params, environment=request.environment
        )
        ids = read_ids(settings, answers.outputs, k=FEW).get(longest, []) if not answers.problem else []
        if len(ids) == FEW:
            return replace(reading, settings=settings)
    return reading


def asks_for_k(settings: Settings) -> bool:
    """Whether a request says how many results it wants."""
    return "{k}" in repr(settings)


def _summary(outputs: Mapping[str, str]) -> str:
    first = next((output for output in outputs.values() if output.strip()), "")
    return repr(first.strip()[:60]) if first else "an empty answer"


def requests_of(address: str, trial: Trial) -> Iterator[SearchRequest]:
    """Requests that may be the search, the likeliest first."""
    parts = urlsplit(address)
    path = unquote(parts.path) if "%7B" in parts.path.upper() else parts.path  # {query} as a browser copies it
    base = literal(urlunsplit((parts.scheme, parts.netloc, path, "", "")))
    written = parse_qsl(parts.query, keep_blank_values=True)
    environment = {_variable(name): value for name, value in written if _is_secret(name, value)}
    has_query = any("query" in placeholders(text) for text in (base, *(value for _, value in written)))
    name = "" if has_query else _query_parameter(written, trial)
    parameters = _parameters(written, name)
    if has_query or name:
        words = tuple(value for key, value in written if key == name and value.strip())
        yield SearchRequest(_http(base, trial, parameters), is_guess=False, words=words, environment=environment)
        return
    for guess in GUESSED:
        settings = _http(base, trial, {**parameters, guess: "{query}"})
        yield SearchRequest(settings, is_guess=True, environment=environment)
    for guess in GUESSED[1::-1]:
        settings = _http(base, trial, parameters, {"json": {guess: "{query}"}})
        yield SearchRequest(settings, is_guess=True, environment=environment)


def _http(
    url: str, trial: Trial, parameters: Mapping[str, Any], body: Mapping[str, Any] = MappingProxyType({})
) -> Settings:
    optional = {"headers": dict(trial.headers), "parameters": dict(parameters)}
    return {**trial.served, "http": {"url": url, **{key: value for key, value in optional.items() if value}, **body}}


def _query_parameter(written: Sequence[tuple[str, str]], trial: Trial) -> str:
    """The parameter of the query: one with a usual name, else the only one, else one that a person names."""
    names = list(dict.fromkeys(name for name, _ in written if name.lower() not in SECRET_PARAMETERS))
    usual = [name for name in QUERY_NAMES if name in names]
    if usual:
        return usual[0]
    free = [name for name, value in written if name in names and name not in K_NAMES and not value.isdigit()]
    if len(free) < 2:
        return free[0] if free else ""
    return trial.ask("Which parameter holds the query?", free[0], free)


def _parameters(written: Sequence[tuple[str, str]], query: str) -> dict[str, Any]:
    """The parameters as they go into the config: the query, the number of results and secrets as placeholders."""
    found: dict[str, Any] = {}
    for name, value in written:
        new = _parameter(name, value, query)
        if name in found and name != query:
            before = found[name]
            found[name] = [*before, new] if isinstance(before, list) else [before, new]
        else:
            found[name] = new
    return found


def _parameter(name: str, value: str, query: str) -> str:
    if name == query:
        return "{query}"
    if name in K_NAMES and value.isdigit():
        return "{k}"
    return f"{{env.{_variable(name)}}}" if _is_secret(name, value) else literal(value)


def _is_secret(name: str, value: str) -> bool:
    return name.casefold() in SECRET_PARAMETERS and "{env." not in value


def _variable(name: str) -> str:
    return "SEARCH_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def _name_of_address(address: str) -> str:
    """The host and the last step of the path."""
    parts = urlsplit(address)
    steps = [step for step in parts.path.split("/") if step and "{" not in step]
    return "-".join([parts.hostname or "http", *steps[-1:]])

"""Tools over the files of a snapshot: list, search, read, outline; and the history up to its commit.

They only read, and no retrieval system is behind them. Every result says which lines it showed. A file that is withheld does
not exist for any of them. What goes wrong is an error in the result, for the model to correct.
"""

from __future__ import annotations

import asyncio
import json
import platform
import posixpath
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cranfield.agents.loop import RESULT_CHARS, Read, ToolResult, Toolset, clean
from cranfield.agents.protocol import Tool, ToolCall
from cranfield.agents.tools.search_process import PatternSearchError, SearchProcess
from cranfield.base.concurrency.loop import FunctionError, event_loop
from cranfield.base.errors import InternalError
from cranfield.base.version import __version__
from cranfield.base.words import count_noun, join_first, printable
from cranfield.repo.git import GitError, git
from cranfield.repo.hashes import glob_regex
from cranfield.repo.snapshot import GitHistory, Snapshot, as_text
from cranfield.repo.symbols import outline_of

MAX_CONTEXT = 10
_Path = Annotated[str, Field(min_length=1, max_length=1_000)]
_Glob = Annotated[
    str,
    Field(max_length=200, description="Only paths that match: `*.py`, `src/**/test_*`, `*.{yml,yaml}`."),
]
_Line = Annotated[int, Field(ge=1)]


class ArgumentsError(ValueError):
    """Arguments that cannot be used; the message says what was expected."""


class Arguments(BaseModel):
    """Arguments of a call. A null value counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given

    @classmethod
    def schema_for_model(cls) -> Mapping[str, Any]:
        """JSON Schema, without titles."""
        schema = cls.model_json_schema()
        properties = {
            name: {key: value for key, value in each.items() if key != "title"}
            for name, each in schema["properties"].items()
        }
        required = {"required": schema["required"]} if "required" in schema else {}
        return {"type": "object", "properties": properties, **required, "additionalProperties": False}

    @classmethod
    def read(cls, text: str) -> Arguments:
        """The arguments of a call.

        Raises:
            ArgumentsError: they are not JSON, or do not fit the schema.
        """
        try:
            return cls.model_validate(json.loads(text or "{}"))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {printable(each['msg'])}"
                for each in error.errors(include_url=False, include_input=False)
            ]
        except (ValueError, RecursionError):
            problems = ["the arguments are not JSON"]
        expected = ", ".join(
            name + ("" if field.is_required() else " (optional)") for name, field in cls.model_fields.items()
        )
        raise ArgumentsError(f"{'; '.join(problems)}. Expected an object with: {expected}")


class ListArguments(Arguments):
    """Arguments of `list_files`."""

    folder: Annotated[str, Field(max_length=1_000, description="Only files in it; empty: all.")] = ""
    glob: _Glob = ""


class SearchArguments(Arguments):
    """Arguments of `search`."""

    pattern: Annotated[
        str, Field(min_length=1, max_length=2_000, description="Regular expression of Python, searched in each line.")
    ]
    glob: _Glob = ""
    ignore_case: bool = False
    literal: Annotated[bool, Field(description="The pattern is plain text, not a regular expression.")] = False
    context: Annotated[int, Field(ge=0, le=MAX_CONTEXT, description="Lines shown before and after each hit.")] = 0
    limit: Annotated[int, Field(ge=1, description="Most hits to show.")] = 50


class ReadArguments(Arguments):
    """Arguments of `read_file`."""

    path: _Path
    start: Annotated[_Line, Field(description="First line.")] = 1
    end: Annotated[_Line | None, Field(description="Last line; without it, as many lines as are allowed.")] = None


class OutlineArguments(Arguments):
    """Arguments of `outline`."""

    path: _Path


class LogArguments(Arguments):
    """Arguments of `git_log`."""

    path: Annotated[str, Field(max_length=1_000, description="A file or a folder; empty: all commits.")] = ""
    limit: Annotated[int, Field(ge=1, description="Most commits to show.")] = 20


class BlameArguments(Arguments):
    """Arguments of `git_blame`."""

    path: _Path
    start: _Line
    end: _Line


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits on one result. Two agents that are compared get the same."""

    files: int = 500
    """That are listed."""
    hits: int = 100
    """Most hits of a search."""
    lines: int = 500
    """Most lines of a file that is read."""
    line_chars: int = 1_000
    """Longer lines are cut, and do not count as read."""
    symbols: int = 500
    commits: int = 50
    chars: int = 30_000
    """Most characters in the lines of any result."""
    search_s: float = 10.0

    def __post_init__(self) -> None:
        if self.chars + self.line_chars + 1_000 > RESULT_CHARS:
            raise ValueError(f"a result of an agent's tool has at most {RESULT_CHARS} characters")


class WrongCallError(Exception):
    """The call asks for what is not there; the message is for the model."""


@dataclass(frozen=True)
class SourceFiles:
    """Files by the paths that an agent writes."""

    texts: Mapping[str, str | None]
    """None: the file is there, and has no text or cannot be read."""
    limits: ToolLimits

    def text(self, given: str) -> str:
        """The text of a file.

        Raises:
            WrongCallError: there is no such file, or it has no text.
        """
        path = plain(given)
        if path not in self.texts:
            raise WrongCallError(self.missing(path))
        text = self.texts[path]
        if text is None:
            raise WrongCallError(f"{printable(path)} is not shown: it is binary, or too large")
        return text

    def missing(self, path: str) -> str:
        """The message about a path that is not a file."""
        if any(known.startswith(f"{path}/") for known in self.texts):
            return f"{printable(path)} is a folder: list_files lists it"
        name = posixpath.basename(path)
        alike = sorted(known for known in self.texts if posixpath.basename(known) == name)
        hint = (
            f"; files of that name: {join_first(map(printable, alike))}"
            if alike
            else "; list_files lists those there are"
        )
        return f"there is no file {printable(path)}{hint}"

    def check_folder(self, given: str, *, or_file: bool = False) -> None:
        """Check that there is such a folder, or file.

        Raises:
            WrongCallError: there is none.
        """
        path = plain(given)
        if not (or_file and path in self.texts) and not any(known.startswith(f"{path}/") for known in self.texts):
            raise WrongCallError(f"there is no {'file or folder' if or_file else 'folder'} {printable(path)}")

    def lines(self, given: str) -> list[str]:
        """The lines of a file, with the errors of `text`."""
        lines = self.text(given).split("\n")
        return lines if lines[-1] else lines[:-1]

    def size(self, path: str) -> str:
        """`12 lines`."""
        return "no text" if self.texts[path] is None else count_noun(len(self.lines(path)), "lines")

    def cut(self, line: str) -> str:
        """A line as it is shown."""
        most = self.limits.line_chars
        return clean(line if len(line) <= most else f"{line[:most]} ... {len(line) - most:,} more characters")

    def reads(self, path: str, shown: Sequence[int], lines: Sequence[str]) -> tuple[Read, ...]:
        """Runs of lines that were shown whole."""
        reads: list[Read] = []
        for number in shown:
            if len(lines[number - 1]) > self.limits.line_chars:
                continue
            if reads and reads[-1].end == number - 1:
                reads[-1] = Read(path, reads[-1].start, number)
            else:
                reads.append(Read(path, number, number))
        return tuple(reads)


def read_texts(snapshot: Snapshot, withheld: Collection[str] = ()) -> dict[str, str | None]:
    """Every file by path; None where it has no text, or cannot be read."""
    texts: dict[str, str | None] = dict.fromkeys(path for path in sorted(snapshot.files) if path not in withheld)
    texts.update((path, as_text(data)) for path, data in snapshot.each() if path in texts)
    return texts


def plain(path: str) -> str:
    """A path as the snapshot has it.

    Raises:
        WrongCallError: it leads out of the repository.
    """
    if path.startswith(("/", "~")) or ".." in path.split("/") or "\\" in path or "\0" in path:
        raise WrongCallError("a path is relative to the repository, with `/` between folders and without `..`")
    return posixpath.normpath(path) if path.strip("./") else ""


def paths_regex(folder: str, glob: str) -> str:
    """A regular expression of the whole paths in a folder that match a pattern; empty: all paths.

    Raises:
        WrongCallError: the pattern, or the folder, is not valid.
    """
    start = f"{re.escape(plain(folder))}/" if plain(folder) else ""
    try:
        pattern = glob_regex(glob) if glob else ".*"
    except ValueError as error:
        raise WrongCallError(str(error)) from None
    if not start:
        return pattern if glob else ""
    return f"(?={start}){pattern}" if "/" in glob else start + pattern


VERSION = "1"
"""Version of the tools as agents see them: names, arguments and texts of results."""


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    arguments: type[Arguments]
    description: str
    needs_git: bool = False

    @property
    def tool(self) -> Tool:
        return Tool(self.name, self.description, self.arguments.schema_for_model())


_ROWS = (
    _Row("list_files", ListArguments, "Lists files of the repository with their numbers of lines."),
    _Row(
        "search",
        SearchArguments,
        "Searches the files line by line for a regular expression, and shows the hits as path:line:text.",
    ),
    _Row("read_file", ReadArguments, "Shows lines of a file, each with its number, counted from 1."),
    _Row(
        "outline",
        OutlineArguments,
        "Shows the symbols of a file (classes, functions, methods; headings of Markdown) with their ids and lines.",
    ),
    _Row("git_log", LogArguments, "Lists commits, the latest first, of all files or of one path.", needs_git=True),
    _Row("git_blame", BlameArguments, "Says which commit was the last to change lines of a file.", needs_git=True),
)
TOOL_NAMES = tuple(row.name for row in _ROWS)
HISTORY_TOOLS = frozenset(row.name for row in _ROWS if row.needs_git)


class SourceTools:
    """A toolset over a snapshot. It keeps no state of a conversation: one serves many agents at the same time."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        git: GitHistory | None = None,
        limits: ToolLimits | None = None,
        withheld: Collection[str] = (),
    ) -> None:
        """Read nothing yet.

        Args:
            snapshot: whose files are shown.
            git: its history; None: the tools over it are not offered.
            limits: of results.
            withheld: paths of files that no tool knows.
        """
        self.limits = limits or ToolLimits()
        self._history = git
        self._snapshot = snapshot
        self._withheld = frozenset(withheld)
        self._opened: tuple[SourceFiles, SearchProcess] | None = None
        self._loading = asyncio.Lock()
        self._rows = {row.name: row for row in _ROWS if git is not None or not row.needs_git}
        self.tools: Sequence[Tool] = tuple(row.tool for row in self._rows.values())

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a call."""
        # On one event loop, whichever one the caller is on: the process that searches belongs to it.
        return await event_loop().call(self._call(call))

    async def _call(self, call: ToolCall) -> ToolResult:
        handlers: Mapping[str, Callable[[Any], Awaitable[ToolResult]]] = {
            "list_files": self._list_files,
            "search": self._search,
            "read_file": self._read_file,
            "outline": self._outline,
            "git_log": self._git_log,
            "git_blame": self._git_blame,
        }
        row = self._rows.get(call.name)
        if row is None:
            return _error(f"there is no tool {call.name!r}; there are: {', '.join(self._rows)}")
        try:
            await self._loaded()
            return await handlers[row.name](row.arguments.read(call.arguments))
        except (ArgumentsError, PatternSearchError, WrongCallError) as error:
            return _error(str(error))

    async def aclose(self) -> None:
        """End the process that searches."""
        if self._opened is not None:
            await event_loop().call(self._process.aclose())

    def tool_versions(self) -> dict[str, str]:
        """Names and versions of what reads the files, for the provenance of a record."""
        versions = {"source-tools": VERSION, "cranfield": __version__, "python": platform.python_version()}
        if self._history is not None:
            versions["git"] = git(self._history.root, "--version").decode().strip().removeprefix("git version ")
        return versions

    # Tools

    async def _list_files(self, given: ListArguments) -> ToolResult:
        paths = paths_regex(given.folder, given.glob)
        if given.folder:
            self._files.check_folder(given.folder)
        found = await self._process.search(None, paths=paths, limit=self.limits.files)
        if not found.n_hits:
            return ToolResult("no file matches")
        entries = [f"{printable(path)} ({self._files.size(path)})" for path, _ in found.places]
        kept = _within(entries, self.limits.chars)
        return ToolResult(
            "\n".join([count_noun(found.n_hits, "files"), *kept, *_left(found.n_hits - len(kept), "files")])
        )

    async def _search(self, given: SearchArguments) -> ToolResult:
        if "\n" in given.pattern:
            raise WrongCallError("a pattern is searched in each line by itself: it has no line end")
        found = await self._process.search(
            re.escape(given.pattern) if given.literal else given.pattern,
            paths=paths_regex("", given.glob),
            limit=min(given.limit, self.limits.hits),
            ignore_case=given.ignore_case,
            needed=given.pattern if given.literal and not given.ignore_case else None,
        )
        if not found.n_hits:
            return ToolResult("no hits")
        shown, reads, n_shown = self._hits(found.places, given.context)
        head = f"{count_noun(found.n_hits, 'hits')} in {count_noun(found.n_files, 'files')}"
        return ToolResult("\n".join([head, *shown, *_left(found.n_hits - n_shown, "hits")]), reads)

    async def _read_file(self, given: ReadArguments) -> ToolResult:
        lines = self._files.lines(given.path)
        path = plain(given.path)
        if not lines:
            return ToolResult(f"{printable(path)} has no lines")
        end = len(lines) if given.end is None else min(given.end, len(lines))
        if given.start > len(lines) or end < given.start:
            raise WrongCallError(
                f"{printable(path)} has {count_noun(len(lines), 'lines')}: lines {given.start} to {given.end or 'the end'} are none"
            )
        numbers = range(given.start, min(end, given.start + self.limits.lines - 1) + 1)
        texts = [f"{number:>6}\t{self._files.cut(lines[number - 1])}" for number in numbers]
        texts = _within(texts, self.limits.chars)
        shown = list(numbers[: len(texts)])
        head = f"{printable(path)}, lines {shown[0]} to {shown[-1]} of {len(lines)}"
        more = [f"... not shown up to line {end}: read from line {shown[-1] + 1}"] if shown[-1] < end else []
        return ToolResult("\n".join([head, *texts, *more]), self._files.reads(path, shown, lines))

    async def _outline(self, given: OutlineArguments) -> ToolResult:
        path = plain(given.path)
        n_lines = len(self._files.lines(given.path))
        text = self._files.text(given.path)
        outline = await _in_thread(lambda: outline_of(path, text, needed=False))
        symbols = outline.symbols[1:]
        entries = [
            f"{symbol.start}-{symbol.end} {symbol.kind} {printable(symbol.entity)}"
            for symbol in symbols[: self.limits.symbols]
        ]
        entries = _within(entries, self.limits.chars)
        head = f"{printable(path)}: {count_noun(n_lines, 'lines')}, {count_noun(len(symbols), 'symbols')}"
        trouble = (
            [f"the file does not parse, symbols are missing: {printable(outline.trouble)}"] if outline.trouble else []
        )
        return ToolResult("\n".join([head, *trouble, *entries, *_left(len(symbols) - len(entries), "symbols")]))

    async def _git_log(self, given: LogArguments) -> ToolResult:
        path = plain(given.path)
        if path:
            self._files.check_folder(path, or_file=True)
        history, limit = self._git, min(given.limit, self.limits.commits)
        commits = await _in_thread(lambda: history.log(limit, path))
        lines = [
            f"{each.id} {each.date} {printable(each.author)}: {self._files.cut(printable(each.subject))}"
            for each in commits
        ]
        return ToolResult("\n".join(_within(lines, self.limits.chars)) or "no commits")

    async def _git_blame(self, given: BlameArguments) -> ToolResult:
        n_lines, path, history = len(self._files.lines(given.path)), plain(given.path), self._git
        end = min(given.end, n_lines, given.start + self.limits.lines - 1)
        if end < given.start:
            raise WrongCallError(f"{printable(path)} has {count_noun(n_lines, 'lines')}: these lines are none")
        found = await _in_thread(lambda: history.blame(path, given.start, end))
        lines = [
            f"{each.start}-{each.end} {each.commit.id} {each.commit.date} {printable(each.commit.author)}: "
            f"{self._files.cut(printable(each.commit.subject))}"
            for each in found
        ]
        return ToolResult("\n".join(_within(lines, self.limits.chars)))

    # Parts

    async def _loaded(self) -> None:
        async with self._loading:
            if self._opened is None:
                texts = await _in_thread(lambda: read_texts(self._snapshot, self._withheld))
                searched = {path: text or "" for path, text in texts.items()}
                self._opened = SourceFiles(texts, self.limits), SearchProcess(searched, self.limits.search_s)

    @property
    def _files(self) -> SourceFiles:
        return self._parts[0]

    @property
    def _process(self) -> SearchProcess:
        return self._parts[1]

    @property
    def _parts(self) -> tuple[SourceFiles, SearchProcess]:
        if self._opened is None:
            raise InternalError("the files are not read yet")
        return self._opened

    @property
    def _git(self) -> GitHistory:
        if self._history is None:
            raise InternalError("a tool over the history without one")
        return self._history

    def _hits(self, places: Sequence[tuple[str, int]], context: int) -> tuple[list[str], tuple[Read, ...], int]:
        """Lines of the hits with their context, what they show, and how many hits there are among them."""
        by_path: dict[str, list[int]] = {}
        for path, line in places:
            by_path.setdefault(path, []).append(line)
        shown: list[str] = []
        reads: list[Read] = []
        n_hits, n_chars = 0, 0
        for path, hits in by_path.items():
            lines, found = self._files.lines(path), set(hits)
            numbers: list[int] = []
            around = {near for hit in hits for near in range(max(1, hit - context), min(len(lines), hit + context) + 1)}
            for number in sorted(around):
                sign = ":" if number in found else "-"
                text = f"{printable(path)}{sign}{number}{sign}{self._files.cut(lines[number - 1])}"
                n_chars += len(text) + 1
                if n_chars > self.limits.chars:
                    return shown, (*reads, *self._files.reads(path, numbers, lines)), n_hits
                if context and numbers and numbers[-1] < number - 1:
                    shown.append("--")
                    n_chars += 3
                shown.append(text)
                numbers.append(number)
                n_hits += number in found
            reads += self._files.reads(path, numbers, lines)
        return shown, tuple(reads), n_hits


@dataclass(frozen=True)
class AllowedTools:
    """Those tools of a toolset that a role may call."""

    toolset: Toolset
    names: frozenset[str]

    @property
    def tools(self) -> Sequence[Tool]:
        """The allowed ones, in their order."""
        return tuple(tool for tool in self.toolset.tools if tool.name in self.names)

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a call of an allowed tool."""
        if call.name not in {tool.name for tool in self.tools}:
            return _error(f"there is no tool {call.name!r}")
        return await self.toolset.call(call)


def _within(lines: Sequence[str], chars: int) -> list[str]:
    """As many of the first lines as fit; at least one."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 1
        if used > chars and kept:
            break
        kept.append(line)
    return kept


def _left(n: int, things: str) -> list[str]:
    return [f"... {count_noun(n, things)} more: ask more narrowly to see them"] if n > 0 else []


def _error(text: str) -> ToolResult:
    return ToolResult(f"error: {text}", is_error=True)


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Blocking work, in a thread."""
    try:
        return await event_loop().threads.call(function)
    except FunctionError as raised:
        if isinstance(raised.error, GitError):
            raise WrongCallError(printable(str(raised.error))) from None
        raise raised.error from None

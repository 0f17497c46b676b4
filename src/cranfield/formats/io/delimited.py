"""Rows of cells: delimited text, headings, numbers in cells, versions of files.

A comma-separated file quotes a cell that holds a comma, a quote or a line break, as RFC 4180 has it. A tab-separated file
quotes nothing: its cells are taken as they are. What the columns mean is the business of the formats; what they may be
called stands here, because frames and JSON lines use the same names.
"""

from __future__ import annotations

import csv
import io
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from cranfield.base.errors import CranfieldError, ProblemList, TestSetError, shorten
from cranfield.base.patterns import PatternError, compile_pattern
from cranfield.base.words import join_first, printable
from cranfield.formats.io.files import MAX_PROBLEMS, decode, read_bytes, shown, suffix_of, write_text
from cranfield.model.kinds import whole


class FileVersion(NamedTuple):
    """A version; the higher one is the newer one."""

    major: int
    minor: int

    def __str__(self) -> str:
        """`1.0`."""
        return f"{self.major}.{self.minor}"

    def file_name(self, name: str) -> str:
        """`golden_v1.0.json` of `golden`."""
        return f"{name}_v{self}.json"


def file_versions(folder: Path, name: str) -> dict[FileVersion, Path]:
    """Version to file, the newest last. A draft has another name, and is none."""
    pattern = re.compile(re.escape(name) + r"_v(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.json")
    names = ((path, pattern.fullmatch(path.name)) for path in (folder.iterdir() if folder.is_dir() else ()))
    found = {FileVersion(int(match[1]), int(match[2])): path for path, match in names if match and path.is_file()}
    return dict(sorted(found.items()))


def newest_version(path: Path, name: str) -> Path:
    """The newest version where the path is a folder of versions; any other path as it is."""
    return next(reversed(file_versions(path, name).values()), path) if path.is_dir() else path


WHITE_SPACE = re.compile(r"[ \t\r\n\x0b\x0c]")
"""What separates columns: ASCII white space only, so an id may hold any other."""
ID_KINDS = "text or whole numbers"


def is_id(value: object) -> bool:
    """Whether a value can be an id: text, or a whole number (of numpy too)."""
    return isinstance(value, str | int | numbers.Integral) and not isinstance(value, bool)


def id_texts(values: Sequence[Any]) -> list[str]:
    """Ids as text: text as it is, whole numbers as their decimal digits.

    Raises:
        TypeError: one is neither; see `is_id`.
    """
    try:
        "".join(values)
    except TypeError:
        if not all(map(is_id, values)):
            raise
        return [value if isinstance(value, str) else str(int(value)) for value in values]
    return list(values)


def id_text(data: bytes) -> str:
    """An id as text; bytes that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def id_bytes(text: str) -> bytes:
    """The bytes an id was read from. Ties are broken by them; other lone surrogates are kept as they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def number_of(text: str | bytes) -> float | None:
    """A finite number in decimal notation, with or without blanks around it; Python's own `1_000` is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    has_underscore = b"_" in text if isinstance(text, bytes) else "_" in text
    return number + 0.0 if math.isfinite(number) and not has_underscore else None


def as_number(value: Any) -> float | None:
    """A finite number as a float; None for anything else, text and truth values included."""
    if isinstance(value, str | bytes | bool) or getattr(value, "dtype", None) == "bool":  # numpy's own too
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number + 0.0 if math.isfinite(number) else None


def short(grade: float) -> str:
    """A grade as people write it: `2`, `0.5`."""
    return repr(whole(grade))


def pattern_error(regex: str) -> str:
    """Why a regular expression does not compile; empty where it does."""
    try:
        compile_pattern(regex)
    except PatternError as error:
        return str(error)
    return ""


def check_column(problems: ProblemList, path: Path, kind: str, text: str) -> None:
    """Note a problem where an id cannot be written to a column of its kind (`query`, `document`, …)."""
    if text and not WHITE_SPACE.search(text) and not (kind == "query" and text.startswith("#")):
        return
    problems.add(
        f"not written: the {kind} id {shorten(text)} cannot be written to a column",
        path=str(path),
        expected="one character or more, without white space" + (", and no # first" if kind == "query" else ""),
    )


def column_line(*columns: str) -> bytes:
    """Columns as a line."""
    return b" ".join(map(id_bytes, columns)) + b"\n"


def format_time(at: int) -> str:
    """Milliseconds since 1970 (UTC) as ISO 8601: `2026-11-23T09:30:00.250Z`."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def parse_time(text: str) -> int:
    """The milliseconds since 1970 of a time in ISO 8601; UTC where it names no zone.

    Raises:
        ValueError: it is none.
    """
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "q_id", "qid", "query"),
    "doc_id": ("doc_id", "docno", "docid", "did", "document_id", "doc", "document", "pid"),
    "score": ("score",),
    "grade": ("grade", "relevance", "rel", "label"),
    "subtopic": ("subtopic", "subtopic_id"),
    "rank": ("rank",),
}
"""What a column may be called, by what it holds; the first name that is there is taken."""

JUDGMENT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query_id": (*COLUMN_NAMES["query_id"][:-1], "query-id", COLUMN_NAMES["query_id"][-1]),
    "doc_id": (
        *COLUMN_NAMES["doc_id"],
        "corpus-id",
        "path",
        "file",
        "answer_doc",
        "answer_id",
        "answer_document",
        "expected_doc",
        "expected_id",
        "relevant_doc",
        "relevant_id",
    ),
    "grade": (*COLUMN_NAMES["grade"], "score", "rating"),
    "rater": ("rater", "annotator", "annotator_id", "assessor"),
    "text": ("query_text", "text", "query", "question", "topic"),
    "query_class": ("query_class",),
    "class": ("class",),
    "negative": ("negative",),
    "reason": ("reason",),
    "time": ("time",),
    "final": ("final",),
}
"""The same of tables of judgments, in text, in frames and in Parquet files; each name is taken but once."""
LINE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "start": ("start_line", "start"),
    "end": ("end_line", "end"),
    "span": ("span", "lines"),
}
"""The same of lines of a file, first and last, or both as `start-end`."""
QUERY_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "query-id", "qid", "q_id", "id", "_id", "topic", "topic_id"),
    "text": ("query_text", "text", "query", "question", "title"),
}
"""The same of tables of queries."""
TABLE_HELP = (
    "`start_line` and `end_line`, or `lines` as `12-40`, are lines of the document",
    "`yes` under `negative` marks a query for which nothing should be found",
    "`query_class` is the class of a query",
    "`stratum.NAME` is a stratum, and so are other columns that group queries",
)
"""How a table says more of a query than its judgments."""

RUN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query_id": (*COLUMN_NAMES["query_id"], "query-id"),
    "doc_id": (*COLUMN_NAMES["doc_id"], "corpus-id", "path", "file"),
    "rank": COLUMN_NAMES["rank"],
    "score": COLUMN_NAMES["score"],
    **LINE_COLUMNS,
    "title": ("title",),
}
"""The same of tables of results in text."""


def known_names(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines that say what the columns of a table may be called, by what they hold."""
    several = [
        line
        for role, names in columns.items()
        if len(names) > 1
        for line in textwrap.wrap(f"{role}: {', '.join(names)}", 76, subsequent_indent="  ")
    ]
    others = ", ".join(names[0] for names in columns.values() if len(names) == 1)
    return [*several, f"also {others}"] if others else several


def note_unused(name: str, columns: Iterable[str]) -> None:
    """Name the columns of a run that are not used: on stderr, unless the program logs elsewhere; once a file."""
    unused = tuple(filter(None, columns))
    if unused:
        _note_once(Path.cwd(), Path.cwd() / name, unused)


@lru_cache(maxsize=4096)
def _note_once(folder: Path, path: Path, columns: tuple[str, ...]) -> None:
    import logging

    named = path.relative_to(folder) if path.is_relative_to(folder) else path
    what = "columns" if len(columns) > 1 else "column"
    names = join_first([repr(printable(column)) for column in columns], SHOWN_COLUMNS)
    logging.getLogger("cranfield").warning("note: %s: not used: %s %s", named, what, names)


forget_notes = _note_once.cache_clear
"""A file whose columns were named is named again."""
SHOWN_COLUMNS = 20
"""In a note."""
MAX_COLUMNS = 2000
"""Most columns of a table."""
PIECE_CHARS = 1 << 22
"""Characters of a table that are cut into lines at once."""
STRATUM = "stratum."
"""What the name of a column of a stratum begins with."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_QUOTED = re.compile(r'[",\r\n]|^\s|\s$')
_BREAK = re.compile("[\r\n]")
_NO_TSV = re.compile("[\t\r\n]")


def separator_of(header: bytes) -> str:
    """What stands between the names of a header row: tabs, or semicolons where there is no comma, or commas."""
    if b"\t" in header:
        return "\t"
    return ";" if b";" in header and b"," not in header else ","


@dataclass
class Sheet:
    """A table whose header is read; `rows` reads the rest, once."""

    path: Path
    text: str
    comments: tuple[str, ...]
    """Lines that begin with `#` above the header."""
    line: int
    """Line of the header."""
    body: int = 0
    """Where in `text` the rows begin."""
    first: int = 0
    """Line of the first row."""
    names: tuple[str, ...] = ()
    """Names of the columns as they are written, without blanks around them."""
    separator: str = ","
    spaced: bool = False
    """Whether a blank follows each separator, which is no part of the cell then."""
    problems: ProblemList = field(default_factory=lambda: ProblemList(TestSetError))

    def column(self, *names: str) -> int | None:
        """Place of the first of some names that a column has, in any case; None where none has."""
        lower = [name.lower() for name in self.names]
        return next((lower.index(name) for name in names if name in lower), None)

    def strata(self) -> dict[int, str]:
        """Place of each column `stratum.NAME` to its name."""
        begins = {place: name for place, name in enumerate(self.names) if name.lower().startswith(STRATUM)}
        return {place: name[len(STRATUM) :] for place, name in begins.items()}

    def places(self, names_by_role: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """Place of each column that is there, by its role."""
        found = {role: self.column(*names) for role, names in names_by_role.items()}
        return {role: place for role, place in found.items() if place is not None}

    def others(self, known: Container[int | None]) -> dict[int, str]:
        """Place and name of each column that is not known and has a name."""
        return {place: name for place, name in enumerate(self.names) if place not in known and name}

    def missing_column(self, role: str, names: Sequence[str]) -> None:
        """Add the problem that a required column is missing."""
        got = "columns " + ", ".join(self.names)
        self.fault(self.line, None, f"no column {role}", expected=" or ".join(names), got=got)

    def refuse_header(self, message: str, expected: Sequence[str]) -> NoReturn:
        """Raise the problem that the header is not the expected one, with the problems that were found before."""
        self.fault(self.line, None, message, expected=",".join(expected), got=",".join(self.names))
        raise self.problems.error(self.problems.problems)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each row that is not blank, as many cells as there are columns.

        A row with more cells is a problem and left out; cells that are missing at the end of a row are empty.
        """
        reader = self._cut(self.body_lines())
        line, n = self.first, len(self.names)
        try:
            for cells in reader:
                if len(cells) == n or self._fitted(line, cells, n):
                    yield line, cells
                line = self.first + reader.line_num
                if len(self.problems.problems) >= MAX_PROBLEMS:
                    return
        except csv.Error as error:
            hint = 'quote a cell that contains a quote, and double the quote: `"say ""so"""`'
            self.problems.add(
                f"not a row of cells: {error}",
                path=shown(self.path),
                line=line,
                hint=hint if self.separator != "\t" else None,
            )

    def body_lines(self) -> Iterator[str]:
        """The lines below the header, with their ends."""
        start = self.body
        while start < len(self.text):
            end = self.text.find("\n", start + PIECE_CHARS) + 1 or len(self.text)
            yield from io.StringIO(
                self.text[start:end], newline=""
            )  # one of the whole text takes four bytes a character
            start = end

    def stripped_rows(self) -> Iterator[tuple[int, list[str]]]:
        """The same without the blanks around each cell; a row of empty cells is blank."""
        for line, cells in self.rows():
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                yield line, stripped

    def _cut(self, lines: Iterable[str]) -> Any:
        """Cut lines into cells."""
        quoting: Literal[0, 3] = csv.QUOTE_NONE if self.separator == "\t" else csv.QUOTE_MINIMAL
        return csv.reader(lines, delimiter=self.separator, quoting=quoting, strict=True, skipinitialspace=self.spaced)

    def take_header(self, start: int, *, repeats: bool) -> None:
        """Read the names of the columns, which begin at `start` of the text; each stands once, but where it may repeat."""
        begin = _LINE.match(self.text, start)
        raw = begin.group().rstrip("\r\n") if begin else ""
        self.separator = separator_of(raw.encode("utf-8", "surrogatepass"))
        self.spaced = self.separator != "\t" and any(name[:1] == " " for name in raw.split(self.separator)[1:])
        ends: list[int] = []
        reader = self._cut(self._lines_from(start, ends))
        try:
            self.names = tuple(name.strip() for name in next(reader))
        except csv.Error as error:
            self.fault(self.line, None, f"not a row of cells: {error}", expected="names of columns", got=raw)
            self.problems.raise_if_any()
        self.body, self.first = ends[-1], self.line + reader.line_num
        if len(self.names) > MAX_COLUMNS:
            got = f"{len(self.names)}"
            self.fault(self.line, None, "too many columns", expected=f"at most {MAX_COLUMNS} columns", got=got)
            self.problems.raise_if_any()
        first: dict[str, int] = {}
        for place, name in enumerate(self.names):
            if not repeats and name and first.setdefault(name.lower(), place) != place:
                self.fault(self.line, place, f"two columns are called {name!r}", expected="each name once")

    def _lines_from(self, start: int, ends: list[int]) -> Iterator[str]:
        """Lines of the text, and where each ends."""
        while start < len(self.text) and (found := _LINE.match(self.text, start)):
            start = found.end()
            ends.append(start)
            yield found.group()

    def _fitted(self, line: int, cells: list[str], n: int) -> bool:
        """Make a row as long as the header; False where it says nothing, or too much."""
        if not any(cells):
            return False
        if any(cells[n:]):
            hint = "quote a text that contains a comma" if self.separator == "," else None
            expected = f"{n}, as the header has"
            self.fault(line, n, f"{len(cells)} cells", expected=expected, got=cells[n], hint=hint)
            return False
        cells[n:] = []
        cells += [""] * (n - len(cells))
        return True

    def fault(
        self,
        line: int,
        place: int | None,
        message: str,
        *,
        expected: str,
        got: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Note what is wrong with a cell, or with a whole row where `place` is None."""
        line, column = self.mark((line, place))
        self.problems.add(
            message,
            path=shown(self.path),
            line=line,
            column=column,
            expected=expected,
            got=None if got is None else shorten(got),
            hint=hint,
        )

    def mark(self, at: tuple[int, int | None]) -> tuple[int, int | None]:
        """Line, and the column in it, of a cell by its line and place."""
        line, place = at
        return line, None if place is None else self._column(line, place)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins."""
        return [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", self.text))]

    def _column(self, line: int, place: int) -> int | None:
        """1-based column in which a cell of the row on `line` begins; None where it begins on a later line."""
        start = position = self._starts[line - 1]
        quoted = False
        while place and position < len(self.text):
            char = self.text[position]
            if char == '"' and self.separator != "\t":
                quoted = not quoted
            elif char == self.separator and not quoted:
                place -= 1
            elif char in "\r\n":
                if not quoted:
                    return None
                start = position + 1
            position += 1
        return position - start + 1 if start == self._starts[line - 1] else None


def read_sheet(
    path: Path,
    error: type[CranfieldError] = TestSetError,
    *,
    preprocess: Callable[[str], str] = str,
    repeats: bool = False,
) -> Sheet:
    """Read a table as far as its header.

    Args:
        path: gzip and Zstandard are recognised, and `-` is standard input. Lines that begin with `#` may stand above the
            header.
        error: what to raise.
        preprocess: applied to the text first, where a tool writes CSV that is not quite CSV.
        repeats: two columns may have one name.

    Raises:
        CranfieldError: of type `error`, when the file cannot be read, is no UTF-8, or has no header.
    """
    return sheet_of(preprocess(decode(read_bytes(path, error), path, error)), path, error, repeats=repeats)


def sheet_of(text: str, path: Path, error: type[CranfieldError] = TestSetError, *, repeats: bool = False) -> Sheet:
    """The same of a text that is in memory, or of its beginning; `path` is where it is from."""
    comments: list[str] = []
    start, line = 0, 1
    while start < len(text):
        found = _LINE.match(text, start)
        if found is None or not found.end() > start:
            break
        raw, end = found.group().rstrip("\r\n"), found.end()
        if raw.strip() and not raw.startswith("#"):
            sheet = Sheet(path, text, tuple(comments), line, problems=ProblemList(error))
            sheet.take_header(start, repeats=repeats)
            return sheet
        if raw.startswith("#"):
            comments.append(raw)
        start, line = end, line + 1
    raise error("no header row in this file", path=shown(path), expected="names of columns in the first line")


def strata_of(columns: Mapping[int, str], cells: Sequence[str]) -> dict[str, str]:
    """Strata of one row: name to value, where the cell says something."""
    return {name: cells[place] for place, name in columns.items() if cells[place]}


def write_sheet(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    error: type[CranfieldError] = TestSetError,
    *,
    may_have_tabs: bool = True,
) -> None:
    """Write a table: apart by tabs where the file's name ends in `.tsv` or `.tab` and the format may, else by commas.

    Raises:
        CranfieldError: of type `error`, for each cell that cannot stand in such a file.
    """
    problems = ProblemList(error)
    tabs = may_have_tabs and suffix_of(path) in {".tsv", ".tab"}
    lines: list[str] = []
    for name in names:
        if _BREAK.search(name):
            problems.add(f"not written: the name of column {shorten(name)} contains a line break", path=str(path))
    for row in (names, *rows):
        if tabs:
            for cell in row:
                if _NO_TSV.search(cell):
                    message = f"not written: {shorten(cell)} contains a tab or a line break"
                    hint = "use a file name that ends in .csv"
                    problems.add(message, path=str(path), expected="neither, in a tab-separated file", hint=hint)
            lines.append("\t".join(row) + "\n")
        else:
            lines.append(",".join(map(_quoted, row)) + "\n")
    problems.raise_if_any()
    write_unicode(path, lines, error)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell


def write_unicode(path: Path, parts: Iterable[str], error: type[CranfieldError] = TestSetError) -> None:
    """Write text as UTF-8; see `files.write_text`.

    Raises:
        CranfieldError: of type `error`, for text that is not valid Unicode.
    """
    try:
        write_text(path, parts)
    except UnicodeEncodeError as cause:
        got = shorten(cause.object[cause.start : cause.start + 1])
        raise error(
            "not written: text that is not valid Unicode", path=str(path), expected="Unicode", got=got
        ) from None

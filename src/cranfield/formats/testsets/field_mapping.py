"""The mapping of a file of queries, field by field, and the data of such a file whatever its format is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cranfield.base.errors import (
    MissingExtraError,
    Problem,
    ProblemList,
    TestSetError,
    UsageError,
    shorten,
    unknown_name,
)
from cranfield.formats.io.delimited import read_sheet
from cranfield.formats.io.files import decode, opened, read_bytes, shown, suffix_of
from cranfield.formats.io.json_text import json_objects, json_values
from cranfield.formats.io.located import load_any
from cranfield.formats.io.tree import Loc, describe
from cranfield.model.kinds import FilledText, Finite, Id, InFile, Kind, ParamName, UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable


_PARQUET = b"PAR1"


LINES = r":\d{1,9}(?:-\d{1,9})?|#L\d{1,9}(?:-L?\d{1,9})?"
"""What follows the path of a file in `src/a.py:10-20` and `src/a.py#L10-L20`."""


_PAIR = 2


def _jmespath(text: str) -> str:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        jmespath.compile(text)
    except (JMESPathError, RecursionError):
        hint = "a name with blanks or dashes stands in double quotes: '\"Expected IDs\"'"
        raise UnfitError("is not a JMESPath expression", got=repr(text), hint=hint) from None
    return text


EXPECTED_VALUE = "value"
"""Path of what is expected where `items` is a mapping of queries to it: `{red shoes: [a, b]}`."""


ItemPath = Annotated[FilledText, Kind(_jmespath)]
"""JMESPath in an item of a file: `vars.query`."""


@dataclass(frozen=True, slots=True)
class FieldMapping(InFile):
    """Where the queries of a file are, and which of their fields says what."""

    items: ItemPath = "@"
    """The list of queries in the file: `tests[*].vars`; default: the file itself. Of a mapping, its keys are the ids."""
    id: ItemPath | None = None
    """Id of a query; default: made from its text."""
    text: ItemPath | None = None
    """Text of a query; of a list, each text is a query."""
    expected: ItemPath | None = None
    """What is expected (`value` where `items` is a mapping of queries to it): one value, a list, a list of lists (tiers, the best first), objects, or a mapping of ids to grades."""
    qrels: ItemPath | None = None
    """Mapping of ids of queries to what is expected, where it stands beside the queries in the file."""
    where: Mapping[Id, ItemPath] = field(default_factory=lambda: {"id": "@"})
    """What a result is recognised by: condition to its place in an expected value, `{id: doc_id, "path contains": path}`; `@` is the
    value itself. A value has the conditions whose place it has. `lines` is one of a path: `[start_line, end_line]`, `lines`."""
    grade: ItemPath | None = None
    """Grade, in an expected object; default: 1, or by tier."""
    grades: Mapping[Id, Finite] = field(default_factory=dict)
    """Word to grade: `{high: 2, partial: 1}`."""
    split: FilledText | None = None
    """What separates several values in one text, as in a cell of a table."""
    not_relevant: ItemPath | None = None
    """Values judged not relevant: grade 0."""
    forbidden: ItemPath | None = None
    """What must not be found: values as in `expected`."""
    exhaustive: ItemPath | None = None
    """Whether everything that is not expected is not relevant."""
    negative: ItemPath | None = None
    """Whether nothing should be found; an empty `expected` says the same."""
    strata: Mapping[Id, ItemPath] = field(default_factory=dict)
    """Stratum to the place of its value."""
    params: Mapping[ParamName, ItemPath] = field(default_factory=dict)
    """Parameter for the system to the place of its value."""
    floors: Mapping[Id, ItemPath] = field(default_factory=dict)
    """Measure to the value that the query has to reach: `{P@5: min_precision}`."""
    top: ItemPath | None = None
    """Rank at which the first relevant result has to be found."""
    need: ItemPath | None = None
    """Information need."""
    notes: ItemPath | None = None
    """Notes on the query."""
    weight: ItemPath | None = None
    """Weight of the query in weighted means."""
    urls: tuple[Literal["fragment", "slash", "scheme", "query"], ...] = ()
    """Parts of addresses that do not count, as in `matching` of a test set."""

    def record(self) -> dict[str, Any]:
        """The keys that are not as by default, as a config has them."""
        values = {row.name: getattr(self, row.name) for row in fields(FieldMapping)}
        default = FieldMapping()
        return {
            name: [*value] if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for name, value in values.items()
            if value != getattr(default, name)
        }

    def __str__(self) -> str:
        """In one line: `text: q; expected: relevant; strata: {category: category}`."""
        return "; ".join(f"{name}: {_written(value)}" for name, value in self.record().items())


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {inner}" for name, inner in value.items()) + "}"
    return "[" + ", ".join(value) + "]" if isinstance(value, list) else str(value)


_GROUPED = ("where", "grades", "strata", "params", "floors")


def mapping_from(given: Mapping[str, Any]) -> FieldMapping:
    """A mapping as a program or the command line writes it: `{"text": "q", "where.url": "link", "urls": "fragment,slash"}`.

    Raises:
        UsageError: with every name that is no field of a mapping, and every value that fits none.
    """
    from pydantic import TypeAdapter, ValidationError

    names = [row.name for row in fields(FieldMapping)]
    values: dict[str, Any] = {}
    problems = []
    for key, value in given.items():
        name, dot, inner = key.partition(".")
        if name not in names or (isinstance(value, str) and bool(dot) is not (name in _GROUPED)):
            known = [f"{each}.NAME" if each in _GROUPED else each for each in names]
            problems.append(unknown_name("field of a mapping", key, known))
        elif dot:
            values.setdefault(name, {})[inner] = float(value) if name == "grades" and is_decimal(value) else value
        else:
            values[name] = value.split(",") if name == "urls" and isinstance(value, str) else value
    try:
        found = TypeAdapter(FieldMapping).validate_python(values) if not problems else FieldMapping()
    except ValidationError as error:
        for each in error.errors():
            place = ".".join(map(str, each["loc"]))
            problems.append(
                Problem(f"{place} {each['msg'].removeprefix('Value error, ')}", got=describe(each["input"]))
            )
    if problems:
        raise UsageError(problems)
    return found


def is_decimal(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass
class FileValues:
    """The data of a file, whatever its format, and where its parts stand."""

    path: Path
    values: Any
    place: Callable[[Loc], tuple[int | None, int | None]]
    """Line and column of keys and list positions from the top."""
    is_table: bool = False
    """Whether every value is the text of a cell."""

    def places(self) -> dict[int, Loc]:
        """Identity of each mapping and list in the data to its place."""
        found: dict[int, Loc] = {}
        left: list[tuple[Any, Loc]] = [(self.values, ())]
        while left:
            value, loc = left.pop()
            if isinstance(value, dict | list):
                found[id(value)] = loc
                inner = value.items() if isinstance(value, dict) else enumerate(value)
                left += [(child, (*loc, key)) for key, child in inner]
        return found


def file_values(path: Path) -> FileValues:
    """Read JSON, JSON Lines, YAML, TOML, CSV, TSV, Excel or Parquet.

    Raises:
        TestSetError: it cannot be read; with its first syntax error, or everything that is wrong with its rows.
        MissingExtraError: a Parquet or Excel file, without the library that reads it.
    """
    with opened(path, TestSetError) as stream:
        head = stream.read(len(_PARQUET))
    if head == _PARQUET:
        return _parquet_values(path)
    suffix = suffix_of(path)
    text = decode(read_bytes(path, TestSetError), path, TestSetError)
    first, _, rest = text.lstrip().partition("\n")
    is_lines = suffix in {".jsonl", ".ndjson"} or (first.startswith("{") and bool(rest.strip()))
    if is_lines and isinstance(json_values(first), dict):
        problems = ProblemList(TestSetError)
        rows = list(json_objects(text.split("\n"), shown(path), problems))
        problems.raise_if_any()
        return _rows(path, rows)
    if suffix == ".toml":
        try:
            return FileValues(path, tomllib.loads(text), lambda _: (None, None))
        except tomllib.TOMLDecodeError as error:
            raise TestSetError(f"this TOML cannot be read: {error}", path=shown(path)) from None
    if suffix in {".json", ".yaml", ".yml", ".jsonl"} or first.startswith(("{", "[")):
        located = load_any(path, TestSetError)
        return FileValues(path, located.top, located.mark)
    sheet = read_sheet(path)
    cells = [(line, dict(zip(sheet.names, row, strict=True))) for line, row in sheet.stripped_rows()]
    sheet.problems.raise_if_any()
    return replace(_rows(path, cells), is_table=True)


def _rows(path: Path, rows: Sequence[tuple[int, dict[str, Any]]]) -> FileValues:
    lines = [line for line, _ in rows]

    def place(loc: Loc) -> tuple[int | None, None]:
        return (lines[loc[0]] if loc and isinstance(loc[0], int) else None), None

    return FileValues(path, [row for _, row in rows], place)


def _parquet_values(path: Path) -> FileValues:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError.for_extra(f"{shown(path)}: a Parquet file", "parquet") from None
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise TestSetError("this Parquet file cannot be read", path=shown(path), got=shorten(str(error))) from None
    return FileValues(path, rows, lambda _: (None, None))


def is_pair(value: Any) -> bool:
    """Whether a value is an id and its grade: `[a, 2]`."""
    is_two = isinstance(value, list) and len(value) == _PAIR and isinstance(value[0], str)
    return is_two and isinstance(value[1], int | float) and not isinstance(value[1], bool)

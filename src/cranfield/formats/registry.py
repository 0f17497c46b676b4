"""What a row of the table of formats says, and the parts that rows share. Light: no reader is imported here."""

from __future__ import annotations

import importlib
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cranfield.model import Grouping, Run, TestSet

HEAD_BYTES = 1 << 20
"""How much of a file is looked at to tell its format."""

FIRST_LINES = 10
"""How many lines are looked at for columns."""

_LINE = re.compile(rb"[^\r\n]+")
Kind = Literal["testset", "run", "queries"]

ANY_ID = r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+( [^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+)*"
"""Any text: words with single blanks between."""
COLUMN_ID = r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff#][^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]*"
"""A word: no white space, no `#` first."""
NO_SUBGROUP = "0"
"""The subgroup of preferences that have none, in lines that ask for one."""
ANY_GRADE = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file, or a folder."""

    data: bytes
    """Without a byte order mark; nothing of a folder."""
    path: Path = Path()
    """Where it is; for a folder, to look for the files in it."""

    @property
    def first_line(self) -> bytes:
        """The first line that is not blank and no `#` comment; empty when there is none."""
        lines = (found[0].strip() for found in _LINE.finditer(self.data))
        return next((line for line in lines if line and not line.startswith(b"#")), b"")

    @property
    def rows(self) -> list[list[bytes]]:
        """The first lines that are not blank and no comments, cut at white space: one of them may be a bad one."""
        lines = itertools.islice(
            (line for line in self.data.split(b"\n", FIRST_LINES * 2) if line.strip()), FIRST_LINES
        )
        return [line.split() for line in lines if not line.startswith(b"#")]

    def columns(self, separator: str) -> list[str]:
        """The first line that is no comment, cut at `separator`, as lower-case names without quotes: a header row."""
        line = self.first_line.decode("utf-8", "replace")
        return [name.strip().strip('"').lower() for name in line.split(separator)]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of test sets, runs or queries, and how it is detected."""

    name: str
    """The name of the format."""
    kind: Kind
    sentence: str
    """What a file of it is, to go on from "expected"."""
    fits: Callable[[Head], bool]
    reader: str = ""
    """`module:function` of `read(path: Path) -> TestSet | Run`; empty where reading and ranking are one pass, in `ranking`.
    Queries come as a test set without judgments."""
    writer: str = ""
    """`module:function` of `write(testset: TestSet, path: Path) -> None`, of a run for a format of runs; empty where it is
    not written. `convert` hands it what the format holds and no more."""
    holds: frozenset[str] = frozenset()
    """Names in `features.FEATURES` of what a file of it can hold; what else a test set has is reported when it is written."""
    suffix: str = ""
    """How its file names usually end (`.yaml`): `convert` takes the format of a new file from it where none is named."""
    source: str = ""
    """Whose format it is, and where that is written down."""
    needs: frozenset[str] = frozenset()
    """Names in `features.FEATURES` of what every query must have to be written: `texts`."""
    strata: frozenset[str] | None = None
    """Names of the strata that it has room for, where it holds `strata`; None: any."""
    ids: str = ANY_ID
    """Regular expression of the ids of queries and documents that it can hold, in full: tests make ids from it."""
    texts: str = ANY_ID
    """The same of texts of queries."""
    grades: tuple[float, float] = ANY_GRADE
    """Lowest and highest grade that it can hold; judgments with others are left out and reported."""
    grouping: Grouping | None = None
    """What the groups of its judgments are, where each of its lines is of one."""
    by_text: bool = False
    """True where a query goes by its text: its id is lost, and is the text when it is read."""
    is_folder: bool = False
    """True where it is a folder of files: its writer makes the folder."""
    layout: Literal["", "tree", "table", "columns"] = ""
    """What its text is, so that a change is made in it and the rest stays: values in values (JSON, YAML), a header and rows of
    cells, or lines of words. Empty: a changed file is written as a whole. JSON and JSON Lines are recognised."""

    @property
    def read(self) -> Callable[[Path], TestSet | Run] | None:
        """Its reader, imported on use."""
        return _named(self.reader)

    @property
    def write(self) -> Callable[..., None] | None:
        """Its writer, imported on use."""
        return _named(self.writer)


def _named(place: str) -> Callable[..., Any] | None:
    if not place:
        return None
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def never(_: Head) -> bool:
    """For formats that look like another one: they have to be named."""
    return False


def is_number(text: bytes) -> bool:
    """Whether a column is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

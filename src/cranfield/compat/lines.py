"""TREC lines, one at a time, for interfaces that hand back what a file says as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cranfield.base.errors import ProblemList, RunFormatError, TestSetError, shorten
from cranfield.formats.io.delimited import number_of
from cranfield.ranking.problems import bad_score, lone_carriage_return, short_line
from cranfield.ranking.scan import RUN_COLUMNS

QRELS_COLUMNS = 4


@dataclass
class RunLines:
    """The lines `query Q0 document rank score tag` of a run; blank ones and comments (`#`) are skipped, and a tag may have spaces."""

    lines: Iterable[str]
    name: str
    found: ProblemList = field(default_factory=lambda: ProblemList(RunFormatError))

    def __iter__(self) -> Iterator[tuple[int, str, str, float]]:
        """(line, query, document, score) of each good line.

        Raises:
            RunFormatError: at the end, with every bad line.
        """
        for line, text, columns in _columns(self.lines):
            number = number_of(columns[4]) if len(columns) >= RUN_COLUMNS else None
            if len(columns) >= RUN_COLUMNS and "\r" in text.rstrip():
                self.found.problems.append(lone_carriage_return(self.name, line, _bytes(text)))
            elif number is not None:
                yield line, columns[0], columns[2], number
            elif len(columns) >= RUN_COLUMNS:
                self.found.problems.append(bad_score(self.name, line, _bytes(columns[4])))
            else:
                self.found.problems.append(short_line(self.name, line, len(columns), _bytes(text)))
        self.found.raise_if_any()


@dataclass
class QrelsLines:
    """The lines `query iteration document grade` of qrels; blank ones and comments (`#`) are skipped."""

    lines: Iterable[str]
    name: str
    found: ProblemList = field(default_factory=lambda: ProblemList(TestSetError))

    def __iter__(self) -> Iterator[tuple[int, str, str, str, int | float]]:
        """(line, query, iteration, document, grade) of each good line; a whole grade is an int.

        Raises:
            TestSetError: at the end, with every bad line.
        """
        for line, text, columns in _columns(self.lines):
            number = number_of(columns[3]) if len(columns) == QRELS_COLUMNS else None
            if number is not None:
                query_id, iteration, doc_id, _ = columns
                yield line, query_id, iteration, doc_id, int(number) if number.is_integer() else number
            elif len(columns) == QRELS_COLUMNS:
                got = shorten(columns[3])
                message = "the grade is not a finite number"
                self.found.add(message, path=self.name, line=line, expected="a number", got=got)
            else:
                expected, got = f"{QRELS_COLUMNS}: query iteration document grade", shorten(text.strip())
                self.found.add(f"{len(columns)} columns", path=self.name, line=line, expected=expected, got=got)
        self.found.raise_if_any()


def _columns(lines: Iterable[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Number, text and columns of each line that is not blank and no comment, without a byte order mark."""
    for line, given in enumerate(lines, start=1):
        text = given.removeprefix("\ufeff") if line == 1 else given
        columns = text.split()
        if columns and not text.startswith("#"):
            yield line, text, columns


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

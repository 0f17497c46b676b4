"""Why an arm succeeds: how much of the gold lines its agent read, turn by turn, and how much of that its answer uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from itertools import accumulate
from typing import Annotated

from pydantic import Field

from cranfield.agents.answers.rows import Named
from cranfield.agents.loop import Prompt
from cranfield.base.errors import ConfigError
from cranfield.benefit.analysis.values import mean_of_known
from cranfield.benefit.records import LineRange, NamedPlaces, ReadLines
from cranfield.benefit.result import Reading
from cranfield.formats.io.validation import ClosedModel, load_model
from cranfield.model import MatchingRules
from cranfield.model.judging import Lines
from cranfield.ranking.matching.place import path_of


@dataclass(frozen=True, slots=True)
class CellReading:
    """What one cell read."""

    recall: float | None
    """Recall of the gold lines; None: there are none, or what was read is not known."""
    by_turn: tuple[float, ...]
    """After turn 1, 2, ...; empty where there are no gold lines."""
    used: float | None
    """Share of the gold spans of which a line was read and that the answer names."""
    lines: int | None
    """Number of lines of all files, each line once."""


def cell_reading(
    reads: Sequence[ReadLines] | None, gold: Sequence[Lines], named: Named | None, n_turns: int, rules: MatchingRules
) -> CellReading:
    """What a cell read of the gold lines.

    An answer names a span where it names lines that overlap it; or its file, where it names no lines of that file.

    Args:
        reads: lines that tools showed; None: not known, and nothing is known of the reading.
        gold: spans that a complete answer rests on; lines of overlapping spans count once.
        named: places that the answer names; None: not known, and nothing is known of what was used.
        n_turns: of the cell.
        rules: how paths are compared.
    """
    if reads is None:
        return CellReading(None, (), None, None)
    shown = [(path_of(read.path, rules), read) for read in reads]
    n_lines = sum(
        _n_covered((read.start, read.end) for path, read in shown if path == each) for each in {p for p, _ in shown}
    )
    spans = tuple(dict.fromkeys(Lines(path_of(span.file, rules), span.start, span.end) for span in gold))
    wanted = {(span.file, line) for span in spans for line in range(span.start, span.end + 1)}
    if not wanted:
        return CellReading(None, (), None, n_lines)
    n_new = [0] * max([n_turns, 1, *(read.turn for read in reads)])
    found: set[tuple[str, int]] = set()
    for path, read in sorted(shown, key=lambda each: each[1].turn):
        seen = {(file, line) for file, line in wanted if file == path and read.start <= line <= read.end} - found
        n_new[max(read.turn, 1) - 1] += len(seen)
        found |= seen
    by_turn = tuple(n / len(wanted) for n in accumulate(n_new))
    is_read = [any((span.file, line) in found for line in range(span.start, span.end + 1)) for span in spans]
    used = None if named is None else sum(r and _is_named(s, named) for r, s in zip(is_read, spans, strict=True))
    return CellReading(by_turn[-1], by_turn, None if used is None else used / len(spans), n_lines)


def arm_reading(cells: Mapping[str, Sequence[CellReading]]) -> Reading:
    """Means over tasks of means over their cells.

    Args:
        cells: task id to its cells in one arm.
    """
    tasks = [list(found) for found in cells.values() if any(cell.recall is not None for cell in found)]
    longest = max((len(cell.by_turn) for found in tasks for cell in found), default=0)
    return Reading(
        n_tasks=len(tasks),
        gold_recall=mean_of_known(mean_of_known(cell.recall for cell in found) for found in tasks),
        gold_used=mean_of_known(mean_of_known(cell.used for cell in found) for found in tasks),
        lines_read=mean_of_known(mean_of_known(cell.lines for cell in found) for found in tasks),
        recall_by_turn=tuple(
            mean_of_known(mean_of_known(_at(cell.by_turn, turn) for cell in found) for found in tasks) or 0.0
            for turn in range(longest)
        ),
    )


def _at(by_turn: Sequence[float], turn: int) -> float | None:
    return by_turn[min(turn, len(by_turn) - 1)] if by_turn else None


def _is_named(span: Lines, named: Named) -> bool:
    in_file = [lines for lines in named.spans if lines.file == span.file]
    if in_file:
        return any(lines.start <= span.end and span.start <= lines.end for lines in in_file)
    return span.file in named.files


def _n_covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Lines of ranges, each once."""
    total = last = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start - 1, last))
        last = max(last, end)
    return total


QUESTION, CODE = "question-1", "code-1"
_Line = Annotated[int, Field(ge=1, le=999_999_999)]


class NamedLines(ClosedModel):
    """Lines of a file."""

    file: str
    start: _Line
    end: _Line


class QuestionAnswer(ClosedModel):
    """The answer to a question."""

    text: str
    entities: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    lines: tuple[NamedLines, ...] = ()

    @property
    def named(self) -> NamedPlaces | None:
        """Its places; a name that is blank is none. None: it has none, and places are read from its text."""
        named = NamedPlaces(
            entities=tuple(each for each in self.entities if each.strip()),
            files=tuple(each for each in self.files if each.strip()),
            lines=tuple(
                LineRange(path=each.file, start=each.start, end=each.end) for each in self.lines if each.file.strip()
            ),
        )
        return named if named.entities or named.files or named.lines else None


class CodeFile(ClosedModel):
    """A file."""

    path: Annotated[str, Field(min_length=1)]
    content: str


class CodeAnswer(ClosedModel):
    """Code."""

    text: str = ""
    files: Annotated[list[CodeFile], Field(min_length=1)]

    @property
    def by_path(self) -> Mapping[str, str]:
        """Content by path; of a path that stands twice, the last."""
        return {file.path: file.content for file in self.files}


@cache
def shipped_prompt(name: str) -> Prompt:
    """A prompt of this package, by its name and version."""
    with as_file(files(__package__) / "prompts" / f"{name}.yaml") as path:
        return load_model(path, Prompt, ConfigError)

"""Run lines one by one: what each of them has to be, and what is said of one that is not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cranfield.errors import SHOWN_PROBLEMS, Problem
from cranfield.ranking import problems
from cranfield.ranking.columns import NEWLINE, SPACE, WHOLE_NUMBER, Ints, number
from cranfield.ranking.scan import RUN_COLUMNS, FileOrder


@dataclass(frozen=True, slots=True)
class GoodLines:
    """The result lines of a piece of text, made plain, and what is wrong with others."""

    body: bytes
    """A space between two columns, and none in the tag."""
    line: Ints  # [N] their numbers in the file
    problems: tuple[Problem, ...]
    """The first SHOWN_PROBLEMS."""


def good_lines(raw: bytes, first_line: int, path: str, order: FileOrder) -> GoodLines:
    """Read whole lines with care.

    Args:
        raw: whole lines; what is behind the last line feed is not looked at.
        first_line: number of the first of them.
        path: the file, as problems name it.
        order: what orders the file: where ranks do, a rank has to be a whole number.
    """
    good: list[bytes] = []
    numbers: list[int] = []
    found: list[Problem] = []
    for line, text in enumerate(raw.split(b"\n")[:-1], start=first_line):
        columns = text.split(None, RUN_COLUMNS - 1)
        if not columns or text.startswith(b"#"):
            continue
        problem = _problem(columns, text, line, path, order)
        if problem is not None:
            found.append(problem)
            if len(found) == SHOWN_PROBLEMS:
                break
            continue
        columns[5] = b"-\n"
        good.append(b" ".join(columns))
        numbers.append(line)
    return GoodLines(b"".join(good), np.array(numbers, dtype=np.int64), tuple(found))


def _problem(columns: list[bytes], text: bytes, line: int, path: str, order: FileOrder) -> Problem | None:
    """Say the first thing that is wrong with a line."""
    if len(columns) < RUN_COLUMNS:
        return problems.short_line(path, line, len(columns), text)
    if b"\r" in columns[5].rstrip():  # else all but the first of these lines would pass for its tag
        return problems.lone_carriage_return(path, line, text)
    if math.isnan(number(columns[4])):
        return problems.bad_score(path, line, columns[4])
    if order == "rank" and not WHOLE_NUMBER.fullmatch(columns[3]):
        return problems.bad_rank(path, line, columns[3])
    return None


def n_lines_of(raw: bytes) -> int:
    """How many line feeds there are."""
    return int(np.count_nonzero(np.frombuffer(raw, dtype=np.uint8) == NEWLINE))


def plainer(raw: bytes) -> bytes:
    """The same lines with single spaces between columns, and none at their ends; as they are where that is all there is.

    Their tags are changed with them.
    """
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n")
    if b"\t" in raw or b"\v" in raw or b"\f" in raw:
        raw = raw.translate(_AS_SPACES)
    letters = np.frombuffer(raw, dtype=np.uint8)
    for at_line_ends in (False, True):
        space, newline = letters == SPACE, letters == NEWLINE
        idle = np.zeros(len(letters), dtype=np.bool_)
        if at_line_ends:
            idle[:-1] = space[:-1] & newline[1:]
            idle[1:] |= space[1:] & newline[:-1]
            idle[:1] |= space[:1]
        else:
            idle[:-1] = space[:-1] & space[1:]
        if idle.any():
            letters = letters[~idle]
    return letters.tobytes() if len(letters) < len(raw) else raw


def tag_of(raw: bytes, place: int) -> bytes:
    """The tag of a line that is good."""
    return raw.split(b"\n", place + 1)[place].split(None, RUN_COLUMNS - 1)[-1].strip()


_AS_SPACES = bytes.maketrans(b"\t\v\f", b"   ")

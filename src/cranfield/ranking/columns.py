"""Run lines as columns: what numpy can tell of a block of text at once.

Everything here is exact. A block that is not plain (six columns a line, one space between) gives None, and `lines`
reads it with care. Text stands between two margins, so that a word of eight bytes can be read anywhere in it.
Axes: N lines of the block, R runs of lines of one query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import InternalError
from cranfield.ranking.scan import RUN_COLUMNS, FileOrder

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

MARGIN = b"0" * 24
"""Before and behind the lines of a block; no separator, so that positions count from the text's beginning."""
WORD = 8
NUMBER_WORDS = 3
"""Longer numbers are left to Python."""
HASHED_BYTES = 256
"""Of an id, as many bytes are looked at word by word; longer ones are rare, and taken one by one."""
WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]{1,18}")
OTHER_SPACE = (b"\t", b"\r", b"\v", b"\f")
NEWLINE, SPACE, HASH, MINUS = 10, 32, 35, 45
UNDERSCORE = b"_"
"""Python alone reads 1_0 as a number."""

_FIRST_BYTES = np.array([(1 << (8 * n)) - 1 for n in range(WORD + 1)], dtype=np.uint64)
"""Masks of the first n bytes of a word in reading order: words are loaded as little-endian numbers."""
_MAY_BEGIN_A_NUMBER = np.isin(np.arange(256), list(b"+-0123456789"))
_EXACT_INTEGER = np.uint64(1 << 53)
_TENS = np.array([float(10**n) for n in range(23)])
"""Those that are doubles."""
_LEADING = np.uint64(10**11)
"""With eight more digits, smaller numbers are less than 2 ** 64."""
_DOUBT = 2.0**-20
_ZEROS = np.uint64(0x3030303030303030)
_POINTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ONES = np.uint64(0x0101010101010101)
_TOP_BITS = np.uint64(0x8080808080808080)
_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_LOW_HALVES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SIXES = np.uint64(0x0606060606060606)
_THREES = np.uint64(0x3333333333333333)
_BYTE_PLACE = np.uint64(sum(n << (61 - 8 * n) for n in range(WORD)))
"""Multiplied by 2 ** (8 * n), its top three bits are n."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class Columns:
    """Lines of whole runs, column by column; positions are in `text`."""

    text: bytes
    line: Ints  # [N] 1-based line of the file
    line_start: Ints  # [N]
    query_end: Ints  # [N]
    doc_start: Ints  # [N]
    doc_end: Ints  # [N]
    score: Floats  # [N]
    rank: Ints  # [N] numbers that compare as the ranks do, within a block; zeros where nobody asked
    is_ranked: Bools  # [N] the rank is a whole number
    run_start: Ints  # [R + 1] rows of run r are run_start[r] to run_start[r + 1]

    @property
    def n_runs(self) -> int:
        """R."""
        return len(self.run_start) - 1

    def query_ids(self) -> list[bytes]:
        """The query of each run."""
        rows = self.run_start[:-1]
        return slices(self.text, self.line_start[rows], self.query_end[rows])

    def doc_ids(self, rows: Ints) -> list[bytes]:
        """Documents of some rows."""
        return slices(self.text, self.doc_start[rows], self.doc_end[rows])

    def runs(self, chosen: Bools) -> Columns:
        """Only some runs of it; `chosen` is bool[R]."""
        lengths = np.diff(self.run_start)
        starts = np.concatenate(([0], np.cumsum(lengths[chosen])))
        return self._rows(np.flatnonzero(np.repeat(chosen, lengths)), starts)

    def first_runs(self, n: int) -> Columns:
        """Only the first n runs of it."""
        return self._rows(slice(0, int(self.run_start[n])), self.run_start[: n + 1])

    def _rows(self, rows: Ints | slice, run_start: Ints) -> Columns:
        names = ("line", "line_start", "query_end", "doc_start", "doc_end", "score", "rank", "is_ranked")
        return Columns(self.text, **{name: getattr(self, name)[rows] for name in names}, run_start=run_start)

    def text_from(self, run: int) -> bytes:
        """The lines from a run on."""
        return self.text[int(self.line_start[self.run_start[run]]) : -len(MARGIN)]


def slices(text: bytes, starts: Ints, ends: Ints) -> list[bytes]:
    """Pieces of a text."""
    return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def split_good(lines: Iterable[bytes], line: Ints, order: FileOrder) -> Columns:
    """Split lines that `lines` made plain, of which a query may begin with `#`; see `split`."""
    columns = split(lines, line, order, comments=False)
    if columns is None:
        raise InternalError("lines that were found good are not six columns of text and numbers")
    return columns


def split(lines: Iterable[bytes], line: Ints, order: FileOrder, *, comments: bool = True) -> Columns | None:
    """Split lines into columns, or say with None that they are not all plain and good.

    Args:
        lines: whole lines, any number in each piece, and at least one in all.
        line: [N] their numbers in the file.
        order: what orders the file; the rank column is read accordingly.
        comments: a line that starts with `#` is no result.
    """
    text = b"".join((MARGIN, *lines, MARGIN))
    ends = _column_ends(text, len(line))
    if ends is None:
        return None
    line_start = np.empty(len(line), dtype=np.int64)
    line_start[0] = len(MARGIN)
    np.add(ends[:-1, -1], 1, out=line_start[1:])
    letters = np.frombuffer(text, dtype=np.uint8)
    if (comments and (letters[line_start] == HASH).any()) or any(space in text for space in OTHER_SPACE):
        return None
    score = numbers(text, ends[:, 3] + 1, ends[:, 4])
    if score is None:
        return None
    query_end, doc_end = ends[:, 0].copy(), ends[:, 2].copy()
    if order == "given":
        rank, is_ranked = np.zeros(len(line), dtype=np.int64), np.zeros(len(line), dtype=np.bool_)
    else:
        rank, is_ranked = whole_numbers(text, doc_end + 1, ends[:, 3])
        if order == "rank" and not is_ranked.all():
            return None
    return Columns(
        text=text,
        line=line,
        line_start=line_start,
        query_end=query_end,
        doc_start=ends[:, 1] + 1,
        doc_end=doc_end,
        score=score,
        rank=rank,
        is_ranked=is_ranked,
        run_start=_run_starts(text, line_start, query_end),
    )


def _column_ends(text: bytes, n_lines: int) -> Ints | None:
    """Where each column ends, [N, RUN_COLUMNS]; None when lines are not six columns with one space between two.

    What is behind the sixth column belongs to it.
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    newline = letters == NEWLINE
    gap = letters == SPACE
    gap |= newline
    if np.count_nonzero(newline) != n_lines or gap[len(MARGIN)] or (gap[1:] & gap[:-1]).any():
        return None
    ends: Ints = np.flatnonzero(gap)
    if len(ends) == n_lines * RUN_COLUMNS:
        table = ends.reshape(n_lines, RUN_COLUMNS)
        if newline[table[:, -1]].all():  # as many line ends as lines, and each where one belongs
            return table
    last = np.flatnonzero(newline[ends])
    first = np.concatenate(([0], last[:-1] + 1))
    if (last - first < RUN_COLUMNS - 1).any():
        return None
    return np.column_stack((ends[first[:, np.newaxis] + np.arange(RUN_COLUMNS - 1)], ends[last]))


def _words(text: bytes, at: Ints) -> Words:
    """Eight bytes from each place on, as numbers whose lowest byte comes first in the text."""
    everywhere: NDArray[np.bytes_] = np.ndarray((len(text) - WORD + 1,), dtype="S8", buffer=text, strides=(1,))
    return everywhere[at].view("<u8")


def _run_starts(text: bytes, start: Ints, end: Ints) -> Ints:
    """First row of each run of equal query ids, and the number of rows."""
    length = end - start
    first = _words(text, start) & _FIRST_BYTES[np.minimum(length, WORD)]
    same = (length[1:] == length[:-1]) & (first[1:] == first[:-1])
    rows = np.flatnonzero(same & (length[1:] > WORD))  # those whose ids are the same as far as was looked
    seen = WORD
    while len(rows) and seen < HASHED_BYTES:
        mask = _FIRST_BYTES[np.minimum(length[rows] - seen, WORD)]
        equal = (_words(text, start[rows] + seen) & mask) == (_words(text, start[rows + 1] + seen) & mask)
        same[rows[~equal]] = False
        seen += WORD
        rows = rows[equal & (length[rows] > seen)]
    for row in rows.tolist():
        same[row] = text[int(start[row]) : int(end[row])] == text[int(start[row + 1]) : int(end[row + 1])]
    return np.concatenate(([0], np.flatnonzero(~same) + 1, [len(start)]))


def hashes(text: bytes, start: Ints, end: Ints, salt: Ints) -> Words:
    """A number per id and salt, for looking up and comparing; equal ones have still to be compared as bytes."""
    length = end - start
    value = length.astype(np.uint64)
    value ^= salt.astype(np.uint64) * _SEED
    value *= _MIX
    rows: Ints | slice = slice(None)
    for seen in range(0, min(int(length.max(initial=0)), HASHED_BYTES), WORD):
        if seen:
            rows = np.flatnonzero(length > seen)
        word = _words(text, start[rows] + seen)
        word &= _FIRST_BYTES[np.minimum(length[rows] - seen, WORD)]
        word ^= value[rows]
        word *= _MIX
        word ^= word >> np.uint64(32)
        value[rows] = word
    for row in np.flatnonzero(length > HASHED_BYTES).tolist():
        value[row] ^= np.uint64(crc32(text[int(start[row]) : int(end[row])]))
    value *= _MIX
    return value


def numbers(text: bytes, start: Ints, end: Ints) -> Floats | None:
    """Finite decimal numbers, each correctly rounded; None where one is something else."""
    minus = np.frombuffer(text, dtype=np.uint8)[start] == MINUS
    length = end - start - minus
    n_words = min(max(1, -(-int(length.max()) // WORD)), NUMBER_WORDS)
    words, decimals = _without_point(
        [_last_letters(text, end - at, length - at) for at in range(0, n_words * WORD, WORD)]
    )
    simple = (length > (decimals >= 0)) & (length <= NUMBER_WORDS * WORD) & (decimals < len(_TENS))
    whole = np.zeros(len(start), dtype=np.uint64)
    for word in reversed(words):
        simple &= _are_digits(word) & (whole < _LEADING)
        whole *= np.uint64(10**WORD)
        whole += _eight_digits(word)
    value: Floats = whole.astype(np.float64)
    tens: Floats = _TENS[np.clip(decimals, 0, len(_TENS) - 1)]
    value /= tens  # where both are exact, the quotient is rounded once
    large = np.flatnonzero(simple & (whole > _EXACT_INTEGER))
    if len(large):
        value[large], simple[large] = _quotients(whole[large], tens[large])
    np.negative(value, out=value, where=minus)
    rest = np.flatnonzero(~simple)
    if len(rest):
        tokens = slices(text, start[rest], end[rest])
        try:
            value[rest] = list(map(float, tokens))
        except ValueError:
            return None
        if UNDERSCORE in b"".join(tokens) or not np.isfinite(value[rest]).all():
            return None
    return value


def _quotients(whole: Words, tens: Floats) -> tuple[Floats, Bools]:
    """Quotients of whole numbers and powers of ten, and whether each is sure to be the nearest double.

    Both operands of a division are exact once what a double leaves out of the whole number is added to the remainder,
    which a product of halves gives exactly (Dekker 1971). Sums about halfway between two doubles are not sure.
    """
    rounded = whole.astype(np.float64)
    missing = (whole - rounded.astype(np.uint64)).view(np.int64).astype(np.float64)
    first = rounded / tens
    product = first * tens
    a, b = _halves(first)
    c, d = _halves(tens)
    rest = (rounded - product) - (((a * c - product) + a * d + b * c) + b * d) + missing
    more = rest / tens
    value = first + more
    beyond = np.abs((first - value) + more) / np.spacing(value)
    sure = (np.abs(beyond - 0.5) > _DOUBT) & (np.abs(beyond - 0.25) > _DOUBT)  # the latter below a power of two
    return value, sure


def _halves(value: Floats) -> tuple[Floats, Floats]:
    """Two numbers of half as many digits that add up to each."""
    far = value * float((1 << 27) + 1)
    high: Floats = far - (far - value)
    return high, value - high


def number(token: bytes) -> float:
    """A column as a finite number in everybody's notation; NaN when it is none."""
    try:
        value = math.nan if UNDERSCORE in token else float(token)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def whole_numbers(text: bytes, start: Ints, end: Ints) -> tuple[Ints, Bools]:
    """Numbers that compare as the whole numbers of a column do, and which of them are such.

    They compare with each other only.
    """
    length = end - start
    if int(length.max()) <= WORD:
        digits = _last_letters(text, end, length)
        if _are_digits(digits).all():
            return digits.byteswap().astype(np.int64), np.ones(len(length), dtype=np.bool_)
    value, is_whole = np.zeros(len(length), dtype=np.int64), np.zeros(len(length), dtype=np.bool_)
    likely = np.flatnonzero(_MAY_BEGIN_A_NUMBER[np.frombuffer(text, dtype=np.uint8)[start]])
    for row, token in zip(likely.tolist(), slices(text, start[likely], end[likely]), strict=True):
        if WHOLE_NUMBER.fullmatch(token):
            value[row], is_whole[row] = int(token), True
    return value, is_whole


def _last_letters(text: bytes, end: Ints, length: Ints) -> Words:
    """The last letters of each token, at most eight, with zeros before them where there are fewer."""
    word = _words(text, end - WORD)
    before = _FIRST_BYTES[WORD - np.clip(length, 0, WORD)]
    word &= ~before
    word |= before & _ZEROS
    return word


def _are_digits(word: Words) -> Bools:
    high = word & _HIGH_HALVES
    high |= ((word + _SIXES) & _HIGH_HALVES) >> np.uint64(4)
    digits: Bools = high == _THREES
    return digits


def _eight_digits(word: Words) -> Words:
    """Value of eight digits: pairs, then fours, then all."""
    value = word & _LOW_HALVES
    value *= np.uint64(10 * 256 + 1)
    value >>= np.uint64(8)
    value &= np.uint64(0x00FF00FF00FF00FF)
    value *= np.uint64(100 * 65536 + 1)
    value >>= np.uint64(16)
    value &= np.uint64(0x0000FFFF0000FFFF)
    value *= np.uint64(10_000 * 2**32 + 1)
    value >>= np.uint64(32)
    return value


def _without_point(words: list[Words]) -> tuple[list[Words], Ints]:
    """Take out the decimal point, moving up what is before it; how many letters are behind it, -1 without one.

    Args:
        words: of each token, the one that ends it first.
    """
    found = np.zeros(len(words[0]), dtype=np.bool_)
    decimals = np.full(len(found), -1, dtype=np.int64)
    moved: list[Words] = []
    for at, word in enumerate(words):
        before = words[at + 1] >> np.uint64(56) if at + 1 < len(words) else np.uint64(ord("0"))
        up = (word << np.uint64(8)) | before
        if found.all():
            moved.append(up)
            continue
        closed, here, behind = _close(word)
        here &= ~found
        moved.append(np.where(here, closed | before, np.where(found, up, word)))
        decimals = np.where(here, behind + at * WORD, decimals)
        found |= here
    return moved, decimals


def _close(word: Words) -> tuple[Words, Bools, Ints]:
    """Move the letters before the first point up over it; where there was one, and how many letters are behind it."""
    differs = word ^ _POINTS
    mark = (differs - _ONES) & ~differs & _TOP_BITS
    mark &= ~mark + np.uint64(1)  # the lowest bit alone: it stands in the first point's byte
    first = mark >> np.uint64(7)
    before = first - np.uint64(1)
    closed = (word & before) << np.uint64(8)
    closed |= word & ~((mark << np.uint64(1)) - np.uint64(1))
    decimals = np.uint64(WORD - 1) - (first * _BYTE_PLACE >> np.uint64(61))
    return closed, mark != 0, decimals.astype(np.int64)

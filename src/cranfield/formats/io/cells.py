"""Ids and numbers as files have them: as text, as bytes, and in lines of columns as TREC files have them."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cranfield.errors import ProblemList, shorten
from cranfield.model.kinds import whole
from cranfield.patterns import PatternError, compile_pattern

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
    """Note a problem where an id cannot stand in a column of its kind (`query`, `document`, …)."""
    if text and not WHITE_SPACE.search(text) and not (kind == "query" and text.startswith("#")):
        return
    problems.add(
        f"not written: the {kind} id {shorten(text)} cannot stand in a column",
        path=str(path),
        expected="no white space in it, at least a character" + (", and no # first" if kind == "query" else ""),
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

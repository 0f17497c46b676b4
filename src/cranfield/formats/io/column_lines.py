"""Lines of columns with white space between, as TREC files have them."""

from __future__ import annotations

import math
import re
from pathlib import Path

from cranfield.errors import ProblemList, shorten
from cranfield.formats.io.ids import id_bytes

WHITE_SPACE = re.compile(r"[ \t\r\n\x0b\x0c]")
"""What separates columns: ASCII white space only, so an id may hold any other."""


def finite_number(text: bytes) -> float | None:
    """A finite number in decimal notation; Python's own `1_000` is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number + 0.0 if math.isfinite(number) and b"_" not in text else None


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

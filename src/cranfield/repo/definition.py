"""A definition in a source file: name and lines. Ids and hashes are made in `symbols`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition with its lines."""

    names: tuple[str, ...]
    """From the outside in: `("Index", "add")`."""
    kind: str
    """`class`, `function`, `method`, `variable`, `struct`, `section`."""
    start: int
    """First line, counted from 1, decorators and attributes included."""
    end: int
    """Last line, included."""

"""How results are matched with places in files: one set of rules for a whole test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class MatchingRules:
    """Normalisation of the path, lines and entity of a result before it is compared with the expected ones."""

    line_base: Literal[0, 1] = 1
    """The number that results give the first line of a file. What is expected counts from 1."""
    min_overlap: int = 1
    """Lines that a result and an expected span must share, or all lines of an expected span that has fewer."""
    strip: tuple[str, ...] = ()
    """Beginnings of paths that are taken off (`/build/checkout/`), the longest that fits."""
    roots: tuple[str, ...] = ()
    """Folders at which a path begins (`src`, `tests`): what is before the first of them is taken off."""
    chunk_suffix: str = r"::\d+$"
    """Regular expression of what a chunk adds to the id of its entity; taken off."""
    ignore_identical_ids: bool = False
    """A result whose id is that of its query is left out of the list, as where the queries are documents of the corpus."""
    places: bool = False
    """Where the graded ids of a query end in lines (`src/a.py:12-40`), a result with lines is looked up as `id:lines`."""

"""How results are matched with places in files: one set of rules for a whole test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cranfield.model.kinds import AnyRegex, FilledText, Flag, InFile, at_least


@dataclass(frozen=True, slots=True)
class MatchingRules(InFile):
    """How paths, lines and entities of results are normalised before matching."""

    line_base: Literal[0, 1] = 1
    """Line number of the first line of a file in the results."""
    min_overlap: Annotated[int, at_least(1, 1_000_000)] = 1
    """Minimum number of lines that a result and an expected span share."""
    strip: tuple[FilledText, ...] = ()
    """Prefixes that are removed from paths; the longest match is used."""
    roots: tuple[FilledText, ...] = ()
    """Folders at which paths begin; everything before the first of them is removed."""
    chunk_suffix: AnyRegex = r"::\d+$"
    """Regular expression of the suffix that a chunk adds to the id of its entity; it is removed."""
    ignore_identical_ids: Flag = False
    """Results whose id is that of their query are left out of the lists."""
    places: Flag = False
    """Graded ids that end in lines are places: a result with lines is looked up as `id:lines`."""
    urls: tuple[Literal["fragment", "slash", "scheme", "query"], ...] = ()
    """Parts of addresses that do not count where ids and the condition `url` are compared: `fragment` (`#install`), `slash` (at the end),
    `scheme` (with or without encryption), `query` (`?page=2`)."""

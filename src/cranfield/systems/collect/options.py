"""Options of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cranfield.errors import UsageError


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """Options of a collection: warm-up, repetitions, use of cached answers."""

    warm_up: int = 0
    """Number of queries sent to each system beforehand, the first of the test set; their answers are discarded."""
    repeats: int = 1
    """Number of calls per query. The first answer counts; differences of the others are noted in its log."""
    seed: int = 0
    """Seed of the order in which systems take turns."""
    cache_dir: Path | None = None
    """Folder of cached answers; None: no cache."""
    cache_root: Path | None = None
    """A folder above `cache_dir`, below which no link is followed; None: `cache_dir`, which may be a link."""
    cache_h: float = 0
    """Hours for which cached answers are valid; 0, the default: no cache. Only answers of a system that says what they depend
    on are cached."""
    refresh: bool = False
    """Replace cached answers by new ones."""
    keep_going: bool = False
    """Also send the other queries to a system whose first answers are all the same failure."""
    if_interrupted: str = ""
    """What becomes of the answers of an interrupted collection, and how to go on; empty: the same command resumes it."""

    def __post_init__(self) -> None:
        """Reject invalid numbers."""
        for name, least in (("warm_up", 0), ("repeats", 1), ("cache_h", 0)):
            given = getattr(self, name)
            if given is None or not given >= least:
                raise UsageError(f"{name} is too small", expected=f"{least} or more", got=str(given))

"""The order of results and their join with the judgments, done once: a Ranking.

Names are imported on first use: a run file can be read while numpy is still being imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cranfield.ranking.collected import rank_run
    from cranfield.ranking.file import rank_file
    from cranfield.ranking.join import RankedRun
    from cranfield.ranking.scan import REPORTED_HITS, Duplicates, Missing
    from cranfield.ranking.value import FloatQ, Groups, RankedHit, Ranking, ResultState

_MODULES = {
    "collected": ("rank_run",),
    "file": ("rank_file",),
    "join": ("RankedRun",),
    "scan": ("REPORTED_HITS", "Duplicates", "Missing"),
    "value": ("FloatQ", "Groups", "RankedHit", "Ranking", "ResultState"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "REPORTED_HITS",
    "Duplicates",
    "FloatQ",
    "Groups",
    "Missing",
    "RankedHit",
    "RankedRun",
    "Ranking",
    "ResultState",
    "rank_file",
    "rank_run",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        message = f"module 'cranfield.ranking' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"cranfield.ranking.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value

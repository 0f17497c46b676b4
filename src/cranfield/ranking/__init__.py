"""The door between results and measures: order once, join once."""

from cranfield.ranking.door import Missing, rank_run
from cranfield.ranking.file import RankedFile, rank_file
from cranfield.ranking.scan import REPORTED_HITS, Duplicates
from cranfield.ranking.value import FloatQ, Groups, RankedHit, Ranking, State

__all__ = [
    "REPORTED_HITS",
    "Duplicates",
    "FloatQ",
    "Groups",
    "Missing",
    "RankedFile",
    "RankedHit",
    "Ranking",
    "State",
    "rank_file",
    "rank_run",
]

"""Checks of the order of results, and of who judged them: tied scores, a reversed order, unequal judged shares."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cranfield.evaluation.evidence.inspected import Inspected, Sides
from cranfield.evaluation.evidence.values import Found
from cranfield.evaluation.judged import judged_share
from cranfield.numbers import format_percent, format_value

FEWEST_QUERIES = 10
FEWEST_RESULTS = 30
"""Relevant results below which their mean place proves nothing."""
LEAST_LENGTH = 5
"""Results that a list must have for a place in it to mean something."""


def tied_scores(system: Inspected, limit: float) -> Iterator[Found]:
    """All results of a query have one score, so that the order is that of the document ids."""
    ranking = system.ranking
    if ranking.convention.ties == "given" or not len(ranking.query):
        return
    length = ranking.n_returned[ranking.query]
    whole = (length > 1) & (ranking.tie_first == 1) & (ranking.tie_last >= length)
    if 2 * int(whole.sum()) < len(whole):
        return
    several = np.flatnonzero(np.bincount(ranking.query[length > 1], minlength=ranking.n_queries))
    tied = np.flatnonzero(np.bincount(ranking.query[whole], minlength=ranking.n_queries))
    if len(several) >= FEWEST_QUERIES and len(tied) >= limit * len(several):
        yield Found.of(
            f"all results of a query have the same score in {len(tied)} of {len(several)} queries: the order "
            "is that of the document ids, not of the system",
            [system.query_ids[place] for place in tied.tolist()],
            len(several),
        )


def reversed_order(system: Inspected, limit: float) -> Iterator[Found]:
    """Relevant results are nearer to the end of their list than to its beginning, beyond chance."""
    ranking = system.ranking
    length = ranking.n_returned[ranking.query]
    rows = (
        ((ranking.level >= 1) | (ranking.gain > 0)) & (length >= LEAST_LENGTH) & (ranking.tie_first == ranking.tie_last)
    )
    if rows.sum() < FEWEST_RESULTS:
        return
    place = (ranking.rank[rows] - 0.5) / length[rows]
    # Uniform on 0 to 1 where the order says nothing: variance 1/12.
    z = (float(place.mean()) - 0.5) * math.sqrt(12 * len(place))
    if z >= limit:
        yield Found(
            f"{len(place)} relevant results stand at {format_percent(float(place.mean()))} of the length of "
            "their list on average, nearer to its end: are the scores distances, where lower is better?",
            count=len(place),
            total=len(place),
        )


def judged_gap(sides: Sides, limit: float) -> Iterator[Found]:
    """The results of one system are judged far more often than those of another."""
    first = sides.systems[0].ranking
    if not ((first.expected_level < 1) & (first.expected_gain == 0)).any() or first.closed_world.all():
        return  # only relevant documents are judged: a better system has more judged results
    found = {system.name: judged_share(system.ranking, sides.primary.depth) for system in sides.systems}
    shares = {name: each.mean for name, each in found.items() if each.mean is not None and each.n >= FEWEST_QUERIES}
    if len(shares) < 2:
        return
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    if shares[high] - shares[low] >= limit:
        yield Found(
            f"{found[high].measure} is {format_value(shares[high])} for {high} and {format_value(shares[low])} for {low}: unjudged "
            f"results count as not relevant, and {low} has more of them",
        )

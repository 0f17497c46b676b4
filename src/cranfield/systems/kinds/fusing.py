"""Rank fusion of several lists of results. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cranfield.config.systems import Fusion, Normalisation
from cranfield.model import Hit, Order

LARGEST_SCORE = 1e150
"""Larger scores are rejected: their squares overflow."""

Place = tuple[str, str | None]
"""Key of a result: its id, and its span if every result has one."""
T = TypeVar("T")


class UnusableScoreError(Exception):
    """A result has no usable score, and the method needs one."""


@dataclass(frozen=True, slots=True)
class ResultList:
    """The results of one fused system."""

    name: str
    hits: Sequence[Hit]
    order: Order = "given"
    """`given`: best first; else the list is sorted by score. `ascending`: lower is better."""
    weight: float = 1.0


def fuse(parts: Sequence[ResultList], how: Fusion, *, depth: int, k: int) -> list[Hit]:
    """Fuse lists into one, best first, each hit with its fused score.

    The score of a document is the sum of weight times contribution over the lists. The contribution is 1 / (rrf_k + rank)
    with `rrf` (Cormack, Clarke & Büttcher 2009, SIGIR); with `sum` the normalised score (CombSUM: Fox & Shaw 1994,
    TREC-2), see `normalised` for documents that are missing from a list. Sums are rounded once, so that they do not depend
    on the order of the parts. Ties are broken by document id, larger first, in bytes. A single list keeps its order.

    Args:
        parts: the lists; those of weight 0 are ignored.
        how: method and its constants; `of`, `weights` and `depth` are not used.
        depth: cutoff of each list.
        k: cutoff of the result.

    Raises:
        UnusableScoreError: a score is missing or too large, for `sum` or a list to be sorted; names the part.
    """
    active = [part for part in parts if part.weight > 0]
    by_span = all(hit.span is not None for part in active for hit in part.hits)
    tops = [_top_unique(best_first(part), depth, by_span=by_span) for part in active]
    by_rank = how.method == "rrf" or len(active) == 1
    shares = [
        _by_rank(top, how.rrf_k) if by_rank else _by_score(part, top, how.normalise)
        for part, top in zip(active, tops, strict=True)
    ]
    places = dict.fromkeys(place for top in tops for place in top)
    scores = {
        place: math.fsum(
            part.weight * share.get(place, absent) for part, (share, absent) in zip(active, shares, strict=True)
        )
        for place in places
    }
    best = sorted(places, key=lambda place: (scores[place], *_bytes(place)), reverse=True)
    return [_fused([top[place] for top in tops if place in top], scores[place]) for place in best[:k]]


def best_first(part: ResultList) -> list[Hit]:
    """Hits in rank order; ties of scores are broken by document id, larger first.

    Raises:
        UnusableScoreError: a list to be sorted has a hit without a usable score.
    """
    if part.order == "given":
        return list(part.hits)
    by_id = sorted(part.hits, key=lambda hit: _bytes((hit.id, hit.span)), reverse=True)
    return sorted(by_id, key=lambda hit: _score(part, hit), reverse=part.order == "descending")


def normalised(scores: Sequence[float], how: Normalisation) -> tuple[list[float], float]:
    """Normalised scores of a list, and the score of a document that is missing from it.

    `min-max`: 0 to 1, missing 0; equal scores are all 1, as in OpenSearch (in ranx 0, which discards a list of one result).
    `z`: standard scores by the population's standard deviation, 0 if all are equal; missing is the lowest of the list (in
    ranx 0, the mean, better than half of the list), or -1 if all are equal, so that a list of one result is not discarded.
    `none`: unchanged; missing 0, or the lowest if that is negative: a missing document never scores higher than a found one.
    """
    if not scores:
        return [], 0.0
    lowest, highest = min(scores), max(scores)
    if how == "none":
        return list(scores), min(0.0, lowest)
    if how == "min-max":
        return [1.0 if lowest == highest else (score - lowest) / (highest - lowest) for score in scores], 0.0
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    if lowest == highest or not spread:
        return [0.0] * len(scores), -1.0
    found = [(score - mean) / spread for score in scores]
    return found, min(found)


def _by_rank(top: Mapping[Place, T], rrf_k: float) -> tuple[dict[Place, float], float]:
    return {place: 1 / (rrf_k + rank) for rank, place in enumerate(top, start=1)}, 0.0


def _by_score(part: ResultList, top: Mapping[Place, Hit], how: Normalisation) -> tuple[dict[Place, float], float]:
    # Negated where lower is better.
    sign = -1.0 if part.order == "ascending" else 1.0
    scores, absent = normalised([sign * _score(part, hit) for hit in top.values()], how)
    return dict(zip(top, scores, strict=True)), absent


def _top_unique(hits: Sequence[Hit], depth: int, *, by_span: bool) -> dict[Place, Hit]:
    """The first `depth` distinct results, each at its best rank."""
    found: dict[Place, Hit] = {}
    for hit in hits:
        place = (hit.id, hit.span if by_span else None)
        if place not in found and len(found) == depth:
            break
        found.setdefault(place, hit)
    return found


def _fused(same: Sequence[Hit], score: float) -> Hit:
    """Merge equal results: of each field the first value that is not None."""
    first = same[0]
    for other in same[1:]:
        first = replace(
            first,
            title=other.title if first.title is None else first.title,
            span=other.span if first.span is None else first.span,
            tokens=other.tokens if first.tokens is None else first.tokens,
            fields=other.fields if first.fields is None else first.fields,
        )
    return replace(first, score=score)


def _score(part: ResultList, hit: Hit) -> float:
    if hit.score is None:
        raise UnusableScoreError(f"{part.name}: a result without a score")
    if not abs(hit.score) <= LARGEST_SCORE:
        raise UnusableScoreError(f"{part.name}: a score that cannot be added")
    return float(hit.score)


def _bytes(place: Place) -> tuple[bytes, bytes]:
    return place[0].encode("utf-8", "surrogatepass"), (place[1] or "").encode("utf-8", "surrogatepass")

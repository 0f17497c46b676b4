"""The arithmetic of fusion: several lists of results made one. Plain values in and out; no system is asked here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cranfield.config.systems import Fusion, Normalisation
from cranfield.model import Hit, Order

LARGEST_SCORE = 1e150
"""Scores beyond it are refused: their squares have no room in a float."""

Place = tuple[str, str | None]
"""What makes two results the same one: the id, and the span where every result has one."""
T = TypeVar("T")


class UnusableScoreError(Exception):
    """A sum is asked for, and a result has no score, or none that can be added."""


@dataclass(frozen=True, slots=True)
class Part:
    """One list of a fusion."""

    name: str
    hits: Sequence[Hit]
    order: Order = "given"
    """`given`: best first; else the list is sorted by score. `ascending`: lower is better."""
    weight: float = 1.0


def fuse(parts: Sequence[Part], how: Fusion, *, depth: int, k: int) -> list[Hit]:
    """One list of several, best first, each hit with its fused score.

    The score of a document is the sum over the lists of weight times share. The share is, with `rrf`,
    1 / (rrf_k + rank), where the list has it (Cormack, Clarke & Büttcher 2009, SIGIR); with `sum`, its normalised score
    (CombSUM: Fox & Shaw 1994, TREC-2), or what `normalised` says for a list without it. Sums are rounded once, so that
    the order of the parts changes nothing. Equal sums fall to the larger document id, in bytes. One list alone keeps its
    own order, whatever the method.

    Args:
        parts: the lists; a weight of 0 leaves one out.
        how: method and its constants; `of`, `weights` and `depth` are not looked at.
        depth: results of each list that count.
        k: results to keep.

    Raises:
        UnusableScoreError: `sum`, or a list to be sorted, without a usable score; names the part.
    """
    heard = [part for part in parts if part.weight > 0]
    by_span = all(hit.span is not None for part in heard for hit in part.hits)
    lists = [_first_ones(in_order(part), depth, by_span=by_span) for part in heard]
    by_rank = how.method == "rrf" or len(heard) == 1
    shares = [
        _by_rank(one, how.rrf_k) if by_rank else _by_score(part, one, how.normalise)
        for part, one in zip(heard, lists, strict=True)
    ]
    places = dict.fromkeys(place for one in lists for place in one)
    scores = {
        place: math.fsum(
            part.weight * held.get(place, absent) for part, (held, absent) in zip(heard, shares, strict=True)
        )
        for place in places
    }
    best = sorted(places, key=lambda place: (scores[place], *_bytes(place)), reverse=True)
    return [_fused([one[place] for one in lists if place in one], scores[place]) for place in best[:k]]


def in_order(part: Part) -> list[Hit]:
    """The hits best first; where they are sorted by score, equal ones fall to the larger document id.

    Raises:
        UnusableScoreError: a list to be sorted holds a hit without a score.
    """
    if part.order == "given":
        return list(part.hits)
    by_id = sorted(part.hits, key=lambda hit: _bytes((hit.id, hit.span)), reverse=True)
    return sorted(by_id, key=lambda hit: _score(part, hit), reverse=part.order == "descending")


def normalised(scores: Sequence[float], how: Normalisation) -> tuple[list[float], float]:
    """Scores of one list made comparable with those of others, and what a document counts as that the list lacks.

    `min-max`: from 0 to 1, 0 for what is lacking; equal scores are all 1, as in OpenSearch (ranx gives 0, and a list of
    one result is lost). `z`: minus the mean, over the population's standard deviation, 0 where all are equal; what is
    lacking counts as the lowest of the list (0 would be its mean, better than half of what was found: ranx does that),
    or -1 where all are equal, so that here too a list of one result is not lost. `none`: as they are, and 0, or the
    lowest where that is under 0: to be lacking is never better than to be found.
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


def _by_rank(one: Mapping[Place, T], rrf_k: float) -> tuple[dict[Place, float], float]:
    return {place: 1 / (rrf_k + rank) for rank, place in enumerate(one, start=1)}, 0.0


def _by_score(part: Part, one: Mapping[Place, Hit], how: Normalisation) -> tuple[dict[Place, float], float]:
    # Lower is better: turned round, so that more is always better.
    sign = -1.0 if part.order == "ascending" else 1.0
    scores, absent = normalised([sign * _score(part, hit) for hit in one.values()], how)
    return dict(zip(one, scores, strict=True)), absent


def _first_ones(hits: Sequence[Hit], depth: int, *, by_span: bool) -> dict[Place, Hit]:
    """The first `depth` results, each once, at its best place."""
    found: dict[Place, Hit] = {}
    for hit in hits:
        place = (hit.id, hit.span if by_span else None)
        if place not in found and len(found) == depth:
            break
        found.setdefault(place, hit)
    return found


def _fused(same: Sequence[Hit], score: float) -> Hit:
    """One result of those that are the same: what each says of it, the first that says it."""
    first = same[0]
    for other in same[1:]:
        first = replace(
            first,
            title=other.title if first.title is None else first.title,
            span=other.span if first.span is None else first.span,
            tokens=other.tokens if first.tokens is None else first.tokens,
        )
    return replace(first, score=score)


def _score(part: Part, hit: Hit) -> float:
    if hit.score is None:
        raise UnusableScoreError(f"{part.name}: a result without a score")
    if not abs(hit.score) <= LARGEST_SCORE:
        raise UnusableScoreError(f"{part.name}: a score that cannot be added")
    return float(hit.score)


def _bytes(place: Place) -> tuple[bytes, bytes]:
    return place[0].encode("utf-8", "surrogatepass"), (place[1] or "").encode("utf-8", "surrogatepass")

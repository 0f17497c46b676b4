"""Drawing queries: a fair share of each cell, and a seeded order that is the same on every machine.

Nothing here uses a random number generator: an id's place in the order is the SHA-256 of the seed and the id. So a draw
depends on no library's version, and not on the order of a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256

from cranfield.base.errors import UsageError, did_you_mean
from cranfield.model import Query, TestSet, query_strata
from cranfield.model.query import CLASS


def _number(seed: int, purpose: str, key: str) -> int:
    return int.from_bytes(sha256(f"{seed}\n{purpose}\n{key}".encode("utf-8", "surrogatepass")).digest()[:8], "big")


def shuffled(keys: Iterable[str], seed: int, purpose: str) -> list[str]:
    """Keys in an order that seed and purpose fix."""
    return sorted(keys, key=lambda key: (_number(seed, purpose, key), key))


def shuffled_by_weight(weights: Mapping[str, float], seed: int, purpose: str) -> list[str]:
    """Keys in an order in which each comes next with the chance of its weight among those left.

    Source: Efraimidis and Spirakis 2006, Information Processing Letters 97: sort by -log(u) / weight.
    """

    def time(key: str) -> float:
        return -math.log((_number(seed, purpose, key) + 0.5) / 2**64) / weights[key]

    return sorted((key for key in weights if weights[key] > 0), key=lambda key: (time(key), key))


def share_of(total: int, share: float) -> int:
    """The whole number nearest to a share of `total`, halves up, with the share as it is written: .2 of 50 is 10."""
    return math.floor(Fraction(str(share)) * total + Fraction(1, 2))


def allot(sizes: Mapping[str, int], total: int, seed: int) -> dict[str, int]:
    """Divide `total` among cells in proportion to their sizes, by largest remainder; equal remainders fall by seed.

    Example:
        >>> allot({"easy": 3, "hard": 7}, 5, seed=0)  # 1.5 and 3.5: one of the halves goes up
        {'easy': 1, 'hard': 4}
    """
    whole = sum(sizes.values())
    given = {cell: size * total // whole for cell, size in sizes.items()} if whole else dict.fromkeys(sizes, 0)
    left = total - sum(given.values())
    by_seed = {cell: place for place, cell in enumerate(shuffled(sizes, seed, "remainder"))}
    order = sorted(sizes, key=lambda cell: (-(sizes[cell] * total % whole), by_seed[cell])) if whole else []
    for cell in order[:left]:
        given[cell] += 1
    return given


def stratum(query: Query, key: str) -> str:
    """The value of a query in a stratum; `class` is its class where it has no such stratum. Empty where it has none."""
    return query_strata(query).get(key, "")


def strata_keys(testset: TestSet) -> tuple[str, ...]:
    """Keys by which queries fall into groups, in the order they are met; `class` last, where queries have classes.

    A key that is another for each query is a label, and left out.
    """
    seen: dict[str, dict[str, int]] = {}
    for query in testset.queries:
        for key in query_strata(query):
            counts = seen.setdefault(key, {})
            value = stratum(query, key)
            counts[value] = counts.get(value, 0) + 1
    keys = [key for key, counts in seen.items() if max(counts.values()) > 1]
    return tuple(sorted(keys, key=lambda key: key == CLASS))


def check_keys(testset: TestSet, by: Sequence[str]) -> None:
    """Refuse strata that no query has.

    Raises:
        UsageError: naming the strata there are.
    """
    known = {key for query in testset.queries for key in query.strata} | {CLASS}
    unknown = [key for key in by if key not in known]
    if unknown:
        names = sorted(known)
        raise UsageError(
            f"no query has the stratum {unknown[0]!r}", expected=", ".join(names), hint=did_you_mean(unknown[0], names)
        )


def cells(testset: TestSet, by: Sequence[str]) -> dict[str, list[str]]:
    """Ids of the queries that share their values in all of `by`; one cell where `by` is empty."""
    found: dict[str, list[str]] = {}
    for query in testset.queries:
        found.setdefault("\x1f".join(stratum(query, key) for key in by), []).append(query.id)
    return found


def draw(testset: TestSet, total: int, by: Sequence[str], seed: int, purpose: str) -> tuple[str, ...]:
    """Draw `total` queries, from each cell in proportion; ids in the order of the test set."""
    by_cell = cells(testset, by)
    given = allot({cell: len(ids) for cell, ids in by_cell.items()}, total, seed)
    chosen = {key for cell, ids in by_cell.items() for key in shuffled(ids, seed, purpose)[: given[cell]]}
    return tuple(query_id for query_id in testset.query_ids if query_id in chosen)

"""Held-out queries: a stratified, seeded split that is stored, and the test set of either part."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from hashlib import sha256
from typing import Literal, TypeVar

from cranfield.base.errors import TestSetError, UsageError, did_you_mean
from cranfield.base.words import count_noun
from cranfield.evaluation.testset.expected import paths_of
from cranfield.model import Meta, Query, Split, TestSet, query_strata
from cranfield.model.note import info
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


SplitPart = Literal["evaluated", "held-out", "all"]
PARTS: tuple[SplitPart, ...] = ("evaluated", "held-out", "all")
DEFAULT_SHARE = 0.2
T = TypeVar("T")


def split(testset: TestSet, *, share: float = DEFAULT_SHARE, seed: int = 0, by: Sequence[str] | None = None) -> Split:
    """Draw the queries that are held out.

    Args:
        testset: two queries or more.
        share: of the queries that is held out; rounded to the nearest whole number of queries, halves up.
        seed: the same seed holds out the same queries.
        by: strata within which it is drawn; each cell gives its share by largest remainder, so that the total is right.
            None: every stratum that groups queries.

    Raises:
        UsageError: a share that leaves one of the parts empty, or a stratum that no query has.
    """
    n = len(testset.queries)
    keys = strata_keys(testset) if by is None else tuple(by)
    check_keys(testset, keys)
    if not 0 < share < 1:
        raise UsageError(f"share is {share:g}", expected="a number between 0 and 1, such as 0.2")
    total = share_of(n, share)
    if not 0 < total < n:
        raise UsageError(
            f"a share of {share:g} of {count_noun(n, 'queries')} is {total}",
            expected="at least one query in each part",
        )
    return Split(seed, share, draw(testset, total, keys, seed, "held out"), by=keys)


def with_split(testset: TestSet, drawn: Split, today: date) -> TestSet:
    """The set with a split stored, and a sentence of it in its history."""
    share = f"{len(drawn.held_out)} of {count_noun(len(testset.queries), 'queries')}"
    within = f" within {', '.join(drawn.by)}" if drawn.by else ""
    sentence = f"{today.isoformat()}: held out {share}{within}, seed {drawn.seed}"
    return replace(testset, meta=replace(testset.meta, split=drawn, history=(*testset.meta.history, sentence)))


def part(testset: TestSet, name: SplitPart) -> TestSet:
    """The queries of one part, as a test set; with `all` the test set as it is.

    Raises:
        TestSetError: the set has no split, or its split names queries that are gone.
        UsageError: another name.
    """
    if name not in PARTS:
        raise UsageError(f"part is {name!r}", expected=", ".join(PARTS))
    if name == "all":
        return testset
    stored = testset.meta.split
    if stored is None:
        raise TestSetError(
            f"test set {testset.name!r} has no held-out part", hint="`cranfield testset split SET` draws and stores one"
        )
    held_out = set(stored.held_out)
    gone = held_out - set(testset.query_ids)
    if gone:
        raise TestSetError(
            f"held-out queries that are not in the set: {', '.join(sorted(gone)[:3])} ({len(gone)})",
            hint="`cranfield testset split SET` can draw and replace it",
        )
    wanted = held_out if name == "held-out" else set(testset.query_ids) - held_out
    return replace(only(testset, wanted), name=f"{testset.name} ({name})")


def evaluated_part(testset: TestSet) -> TestSet:
    """The evaluated queries where the set has a stored split, with a note of it; else the set as it is."""
    if testset.meta.split is None:
        return testset
    smaller = part(testset, "evaluated")
    n, total = len(smaller.queries), count_noun(len(testset.queries), "queries")
    note = f"only the evaluated part of the stored split: {n} of {total}; the part `all` is every query"
    return replace(smaller, notes=(*smaller.notes, *info(note)))


def only(testset: TestSet, query_ids: Collection[str]) -> TestSet:
    """The same test set with some of its queries; what is known of the others goes too."""
    wanted = set(query_ids)

    def kept(mapping: Mapping[str, T]) -> dict[str, T]:
        return {query_id: value for query_id, value in mapping.items() if query_id in wanted}

    smaller = replace(
        testset,
        queries=tuple(query for query in testset.queries if query.id in wanted),
        grades=kept(testset.grades),
        targets=kept(testset.targets),
        groups=kept(testset.groups),
        files=kept(testset.files),
        legacy=kept(testset.legacy),
        forbidden=kept(testset.forbidden),
        ratings=kept(testset.ratings),
        labels=kept(testset.labels),
    )
    return replace(smaller, meta=_meta_of(smaller))


def _meta_of(testset: TestSet) -> Meta:
    """Without a split, counts, or places that no query expects any more."""
    targets = [target for targets in testset.targets.values() for target in targets]
    cited = {lines for label in testset.labels.values() for lines in label.places}
    labels = {*(target.label for target in targets), *map(str, cited)}
    paths = {*paths_of(targets), *(path for paths in testset.files.values() for path in paths)}
    paths |= {lines.file for lines in cited}
    meta = testset.meta
    return replace(
        meta,
        split=None,
        counts={},
        anchors={label: anchor for label, anchor in meta.anchors.items() if label in labels},
        source_files={path: digest for path, digest in meta.source_files.items() if path in paths},
    )

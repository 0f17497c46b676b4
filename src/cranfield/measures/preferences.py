"""Preferences between documents, counted group by group: what the kernels over preferences share.

A preference is a pair of documents of which the first is preferred. It is met when both are returned
in that order, or the first alone is.
Axes: N groups (the sets of preferences of all queries, sorted by query), G grouped judgments, D documents of one group.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.ranking.value import Groups, Ranking

Pairs = Literal["all", "returned", "implied"]
"""Which pairs count: all of them, those of which both documents were returned, or at least one."""
FloatN = NDArray[np.float64]
BoolG = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Grouped judgments in the order of their groups, and within a group by rank; what was not returned comes last."""

    start: NDArray[np.int64]  # [N + 1] the rows of group n are start[n] to start[n + 1]
    query: NDArray[np.int32]  # [N]
    group: NDArray[np.int64]  # [G] which of the N
    place: NDArray[np.int64]  # [G] in the test set's own order
    entry: NDArray[np.int32]  # [G] which expected item
    rank: NDArray[np.int32]  # [G] 0 where not returned
    subgroup: NDArray[np.int32]  # [G]
    value: NDArray[np.float64]  # [G]

    @property
    def n_groups(self) -> int:
        """N."""
        return len(self.query)

    def count(self, rows: BoolG) -> FloatN:
        """float64[N]: how many of `rows` each group has."""
        return np.bincount(self.group[rows], minlength=self.n_groups).astype(np.float64)

    def nth(self, rows: BoolG) -> NDArray[np.int64]:
        """int64[G]: how many of `rows` each group has up to and with this one."""
        running = np.cumsum(rows)
        return running - np.concatenate(([0], running))[self.start[:-1]][self.group]

    def only(self, rows: BoolG) -> Rows:
        """The same groups with some of their rows."""
        start = np.concatenate(([0], np.cumsum(self.count(rows)))).astype(np.int64)
        kept = {name: getattr(self, name)[rows] for name in ("group", "place", "entry", "rank", "subgroup", "value")}
        return replace(self, start=start, **kept)


def rows_of(ranking: Ranking) -> Rows:
    """Lay the grouped judgments of a ranking out."""
    groups = groups_of(ranking)
    rank = ranking.expected_rank[groups.entry]
    late = np.where(rank > 0, rank, np.iinfo(np.int32).max)
    order = np.lexsort((late, groups.group, groups.query))  # stable: what was not returned stays in its order
    query, name = groups.query[order], groups.group[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (query[1:] != query[:-1]) | (name[1:] != name[:-1])
    first = np.flatnonzero(new)
    return Rows(
        start=np.append(first, len(order)).astype(np.int64),
        query=query[first],
        group=(np.cumsum(new) - 1).astype(np.int64),
        place=order,
        entry=groups.entry[order],
        rank=rank[order],
        subgroup=groups.subgroup[order],
        value=groups.value[order],
    )


def groups_of(ranking: Ranking) -> Groups:
    """The grouped judgments of a ranking; none where its test set has none."""
    if ranking.groups is None:
        none, number = np.zeros(0, dtype=np.int32), np.zeros(0)
        return Groups("preference", none, none, none, none, number)
    return ranking.groups


@dataclass(frozen=True, slots=True, eq=False)
class PreferenceTally:
    """Preferences of each group by how much of the pair was returned, and how many of them are met."""

    both: FloatN  # [N]
    both_met: FloatN  # [N]
    single: FloatN  # [N]
    single_met: FloatN  # [N]
    neither: FloatN  # [N]

    def met(self, pairs: Pairs) -> FloatN:
        """float64[N]: preferences met among these pairs."""
        return self.both_met if pairs == "returned" else self.both_met + self.single_met

    def possible(self, pairs: Pairs) -> FloatN:
        """float64[N]: preferences among these pairs."""
        if pairs == "returned":
            return self.both
        return self.both + self.single + (self.neither if pairs == "all" else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class GroupPreferences:
    """The preferences of one group, document by document."""

    better: NDArray[np.bool_]  # [D, D] the row is preferred to the column
    relevant: NDArray[np.bool_]  # [D] of a value above 0
    n_returned: int
    """The first documents were returned, in this order."""
    entry: NDArray[np.int32]  # [D]

    def tally(self, among: NDArray[np.bool_] | None = None) -> tuple[float, ...]:
        """The five counts of a `PreferenceTally`, among all documents or some of them (bool[D])."""
        better = self.better if among is None else self.better & among[:, None] & among[None, :]
        n = self.n_returned
        both, single_met = better[:n, :n], better[:n, n:].sum()
        counts = (both.sum(), np.triu(both).sum(), single_met + better[n:, :n].sum(), single_met, better[n:, n:].sum())
        return tuple(map(float, counts))


def tally(rows: Rows) -> PreferenceTally:
    """Count the preferences of every group."""
    counts = plain_tally(rows)
    # What follows from several subgroups together has to be worked out pair by pair, so each such group alone.
    for n in partial_groups(rows):
        for column, count in zip(fields(PreferenceTally), opinion(rows, n).tally(), strict=True):
            getattr(counts, column.name)[n] = count
    return counts


def plain_tally(rows: Rows) -> PreferenceTally:
    """Count as if no group had subgroups: any two documents of different value are a preference."""
    returned = rows.rank > 0
    level = _levels(rows)
    every, both, both_met, single_met, neither = (np.zeros(rows.n_groups) for _ in range(5))
    lower, lower_returned = np.zeros(rows.n_groups), np.zeros(rows.n_groups)
    for this in range(int(level.max(initial=-1)) + 1):
        here = level == this
        n_here, n_returned = rows.count(here), rows.count(here & returned)
        every += n_here * lower
        both += n_returned * lower_returned
        neither += (n_here - n_returned) * (lower - lower_returned)
        single_met += n_returned * (lower - lower_returned)
        better_before = rows.nth(returned & (level > this))
        both_met += np.bincount(rows.group, weights=better_before * (here & returned), minlength=rows.n_groups)
        lower, lower_returned = lower + n_here, lower_returned + n_returned
    return PreferenceTally(both, both_met, every - both - neither, single_met, neither)


def partial_groups(rows: Rows) -> list[int]:
    """Groups that have several subgroups."""
    at = rows.start[:-1]
    if not len(at):
        return []
    several = np.maximum.reduceat(rows.subgroup, at) != np.minimum.reduceat(rows.subgroup, at)
    return np.flatnonzero(several).tolist()


def opinion(rows: Rows, n: int) -> GroupPreferences:
    """Work out every preference of one group, with what follows from its subgroups together."""
    here = slice(int(rows.start[n]), int(rows.start[n + 1]))
    entry, first, place = np.unique(rows.entry[here], return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)[place]
    value, subgroup = rows.value[here], rows.subgroup[here]
    better = np.zeros((len(entry), len(entry)), dtype=np.bool_)
    parts = np.unique(subgroup)
    for part in parts:
        among = subgroup == part
        better[np.ix_(place[among], place[among])] |= value[among][:, None] > value[among][None, :]
    relevant = np.zeros(len(entry), dtype=np.bool_)
    relevant[place[value > 0]] = True
    n_returned = int((rows.rank[here][first] > 0).sum())
    return GroupPreferences(_closed(better) if len(parts) > 1 else better, relevant, n_returned, entry[order])


def _closed(better: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What is better than something better is better."""
    while True:
        steps = better.astype(np.float32)  # counts of paths: exact up to 2**24 documents
        wider = better | (steps @ steps > 0)
        if (wider == better).all():
            return better
        better = wider


def _levels(rows: Rows) -> NDArray[np.int64]:
    """int64[G]: the values of each group numbered from 0, lowest first."""
    order = np.lexsort((rows.value, rows.group))
    group, value = rows.group[order], rows.value[order]
    step = np.zeros(len(order), dtype=np.int64)
    step[1:] = (value[1:] != value[:-1]) & (group[1:] == group[:-1])
    level = np.empty(len(order), dtype=np.int64)
    running = np.concatenate((np.cumsum(step), [0]))  # a group without rows may start behind the last
    level[order] = running[:-1] - running[rows.start[:-1]][group]
    return level

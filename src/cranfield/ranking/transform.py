"""Rankings made of rankings: the same results, looked at under another assumption. Nothing is read or joined again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cranfield.ranking.value import Groups, Ranking, State

ROWS = ("query", "rank", "gain", "level", "state", "item", "tie_first", "tie_last")
"""Columns with an entry per judged result."""


def only_rows(ranking: Ranking, rows: NDArray[np.bool_]) -> Ranking:
    """Keep some judged results, and everything else as it is. `rows` is bool[J]."""
    columns = {name: getattr(ranking, name)[rows] for name in ROWS}
    tokens = None if ranking.tokens is None else ranking.tokens[rows]
    return replace(ranking, **columns, tokens=tokens)


def only_queries(ranking: Ranking, keep: NDArray[np.bool_]) -> Ranking:
    """Leave queries out. `keep` is bool[Q]."""
    place = np.cumsum(keep).astype(np.int32) - 1
    kept = only_rows(ranking, keep[ranking.query])
    entries = keep[ranking.expected_query]
    names = [query_id for query_id, stays in zip(ranking.query_ids, keep.tolist(), strict=True) if stays]
    return replace(
        kept,
        query_ids=tuple(names),
        query=place[kept.query],
        n_returned=ranking.n_returned[keep],
        n_duplicates=ranking.n_duplicates[keep],
        expected_query=place[ranking.expected_query[entries]],
        expected_gain=ranking.expected_gain[entries],
        expected_level=ranking.expected_level[entries],
        expected_count=ranking.expected_count[entries],
        closed_world=ranking.closed_world[keep],
        outcomes=tuple(o for o, stays in zip(ranking.outcomes, keep.tolist(), strict=True) if stays),
        reasons={name: ranking.reasons[name] for name in names if name in ranking.reasons},
        groups=_groups_of(ranking.groups, keep, entries),
        tokens_returned=None if ranking.tokens_returned is None else ranking.tokens_returned[keep],
    )


def condensed(ranking: Ranking) -> Ranking:
    """The list of judged results alone, ranks closed up: what was not judged is as if it had not been returned.

    Source: Sakai 2007, SIGIR ("Alternatives to bpref"); trec_eval `-J`, which also drops grades under 0.
    """
    kept = only_rows(ranking, ranking.state == State.JUDGED)
    starts = np.searchsorted(kept.query, np.arange(kept.n_queries))
    rank = (np.arange(len(kept.query)) - starts[kept.query] + 1).astype(np.int32)
    counts = np.bincount(kept.query, minlength=kept.n_queries).astype(np.int32)
    return replace(kept, rank=rank, tie_first=rank, tie_last=rank, n_returned=counts)


def cut(ranking: Ranking, depth: int) -> Ranking:
    """The first `depth` ranks of every query, as if no more had been returned."""
    kept = only_rows(ranking, ranking.rank <= depth)
    return replace(kept, n_returned=np.minimum(ranking.n_returned, depth).astype(np.int32))


def with_gains(ranking: Ranking, gains: Mapping[int, float]) -> Ranking:
    """Other gains for some grades; a grade the mapping does not name keeps its own."""
    row_gain, expected_gain = ranking.gain.copy(), ranking.expected_gain.copy()
    for level, gain in gains.items():
        row_gain[ranking.level == level] = gain
        expected_gain[ranking.expected_level == level] = gain
    return replace(ranking, gain=row_gain, expected_gain=expected_gain)


def _groups_of(groups: Groups | None, keep: NDArray[np.bool_], entries: NDArray[np.bool_]) -> Groups | None:
    if groups is None:
        return None
    rows = keep[groups.query]
    entry = (np.cumsum(entries) - 1)[groups.entry[rows]].astype(np.int32)
    query = (np.cumsum(keep) - 1)[groups.query[rows]].astype(np.int32)
    return Groups(groups.kind, query, entry, groups.group[rows], groups.subgroup[rows], groups.value[rows])

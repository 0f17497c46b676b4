"""The rank of every result of one query: order, ties, duplicates and depth, in plain Python.

The rules of the C kernel in readable form, and the implementation of everything that the kernel does not rank: run
files and mappings where it is absent, tables with repeated documents, and collected runs. Axes: N results of a query.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import SHOWN_PROBLEMS
from cranfield.formats.io.delimited import id_bytes
from cranfield.ranking.scan import ScanOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """The results of one query by rank; positions refer to the results as they were given."""

    order: Sequence[int]
    """Position of each result, rank 1 first, without duplicates; not cut at a depth."""
    ties: Sequence[tuple[int, int]]
    """Per rank the smallest and largest rank of the results that tie with it."""
    repeated: Sequence[tuple[int, int]]
    """(position of a duplicate, position of the better ranked result), in rank order."""
    n_tied: int
    """Results that tie with the one before them, duplicates included."""
    misranked: bool
    """By score: the rank column contradicts the order by score."""

    def judged_rows(self, items: Mapping[Any, int], ids: Sequence[Any], depth: int | None) -> list[tuple[int, ...]]:
        """(rank, item, tie_first, tie_last) of the judged results up to the depth; `items` maps an id to its item."""
        return [
            (rank, items[ids[position]], *tie)
            for rank, (position, tie) in enumerate(zip(self.order[:depth], self.ties, strict=False), start=1)
            if ids[position] in items
        ]


def rank_query(
    ids: Sequence[Hashable],
    scores: Sequence[float],
    options: ScanOptions,
    *,
    ranks: Sequence[int | None] = (),
    tie_key: Callable[[Any], bytes] | None = None,
) -> RankedQuery:
    """Rank the results of one query.

    Args:
        ids: [N] what makes a result a duplicate of another: its document id.
        scores: [N] finite, larger is better.
        options: order, ties and width; its duplicates and depth are left to the caller.
        ranks: [N] the rank column, None where it is not a whole number; empty where there is none.
        tie_key: bytes of an id, by which ties are broken; None where ids are bytes.
    """
    import numpy as np

    order = list(range(len(ids)))
    n_tied, misranked = 0, False
    if options.order == "rank":
        order.sort(key=[rank or 0 for rank in ranks].__getitem__)
    elif options.order == "score":
        keys = comparable(scores, options.width)
        if options.ties != "given":
            tie_ids: Sequence[Any] = ids if tie_key is None else [tie_key(key) for key in ids]
            order.sort(key=tie_ids.__getitem__, reverse=options.ties == "descending")
        order.sort(key=keys.tolist().__getitem__, reverse=True)  # stable in reverse, too
        in_order = keys[order]
        n_tied = int((in_order[1:] == in_order[:-1]).sum())
        misranked = bool(ranks) and None not in ranks and contradicts(in_order, np.array(ranks)[order])
    first: dict[Hashable, int] = {}
    repeated = [(at, first[ids[at]]) for at in order if first.setdefault(ids[at], at) != at]
    kept = list(first.values())
    ties = tie_bounds(keys[kept].tolist() if options.order == "score" else range(len(kept)))
    return RankedQuery(kept, ties, repeated, n_tied, misranked)


def comparable(scores: Sequence[float] | NDArray[np.float64], width: int) -> NDArray[Any]:
    """Scores as they are compared: at a width of 32, 1.00000001 ties with 1."""
    import numpy as np

    if width == 32 and isinstance(scores, np.ndarray) and scores.dtype == np.float32:
        return scores
    with np.errstate(over="ignore", under="ignore"):  # beyond the range of 32 bits: infinite
        return np.asarray(scores, dtype=np.float64).astype(np.float64 if width == 64 else np.float32, copy=False)


def contradicts(keys: NDArray[Any], ranks: NDArray[Any]) -> bool:
    """Whether ranks decrease from one score to the next lower one; within a tie they may be in any order.

    Args:
        keys: [N] comparable scores, descending.
        ranks: [N] whole numbers, in the same order.
    """
    import numpy as np

    if not len(keys):
        return False
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return bool((np.maximum.reduceat(ranks, starts)[:-1] > np.minimum.reduceat(ranks, starts)[1:]).any())


def tie_bounds(keys: Iterable[float]) -> list[tuple[int, int]]:
    """First and last rank of the results that share a score with each; `keys` are in rank order."""
    bounds: list[tuple[int, int]] = []
    for _, tied in itertools.groupby(keys):
        n = len(list(tied))
        bounds += [(len(bounds) + 1, len(bounds) + n)] * n
    return bounds


Bad = tuple[str, Any, Any]
"""Query, document and score, where the document is not a string or the score not a finite number."""


def rank_mappings(
    run: Mapping[str, Mapping[Any, Any]],
    query_ids: Sequence[str],
    judged: Sequence[Sequence[str]],
    ties: str,
    single: bool,  # noqa: FBT001 - the signature of the kernel's function
    see: Callable[[int, int, bytes | None], object] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], list[Bad]]:
    """Rank the judged documents of a run in memory, as the kernel's function of this name does.

    Args:
        run: query to document to score, larger is better.
        query_ids: the queries looked at.
        judged: per query its judged documents.
        ties: equal scores are ordered by document id, `descending` or `ascending` in bytes, or as the mapping, `given`.
        single: scores are compared as 32-bit floats.
        see: called with each answered query, its number of results, and the bytes of its ids and scores, which this function
            leaves to the caller (None).

    Returns:
        Judged rows (int32[J, 5]: query, rank, item, tie_first, tie_last), answered queries (int32[A, 3]: query,
        n_returned, n_tied), and the first SHOWN_PROBLEMS bad entries; where there is one, the rest is incomplete.
    """
    import numpy as np

    from cranfield.formats.io.delimited import as_number

    options = ScanOptions(ties=ties, width=32 if single else 64)  # type: ignore[arg-type]
    rows: list[tuple[int, ...]] = []
    answered: list[tuple[int, int, int]] = []
    bad: list[Bad] = []
    for query, (query_id, documents) in enumerate(zip(query_ids, judged, strict=True)):
        if query_id not in run:
            continue
        answer = run[query_id]
        scores = [as_number(score) for score in answer.values()]
        valid = [score for score in scores if score is not None]
        if len(valid) < len(scores) or not all(isinstance(doc_id, str) for doc_id in answer):
            bad += (
                (query_id, doc_id, score)
                for doc_id, score in answer.items()
                if not isinstance(doc_id, str) or as_number(score) is None
            )
        if len(bad) >= SHOWN_PROBLEMS:
            break
        if bad:
            continue
        ids = list(answer)
        ranked = rank_query(ids, valid, options, tie_key=id_bytes)
        items = {doc_id: item for item, doc_id in enumerate(documents)}
        rows += ((query, *row) for row in ranked.judged_rows(items, ids, None))
        answered.append((query, len(ids), ranked.n_tied))
        if see is not None:
            see(query, len(ids), None)
    tables = (np.array(table, dtype=np.int32).reshape(-1, width) for table, width in ((rows, 5), (answered, 3)))
    return (*tables, bad[:SHOWN_PROBLEMS])  # type: ignore[return-value]

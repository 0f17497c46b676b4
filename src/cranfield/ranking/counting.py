"""Ranks of judged documents in a run that is in memory, by counting the scores above theirs: nothing else is looked at.

`rank_mappings` is the twin, in Python alone, of the kernel's function of that name, and gives back what it gives. Axes:
N results of a block of queries, J judged results, A answered queries.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import SHOWN_PROBLEMS
from cranfield.formats.io.table import as_number
from cranfield.ranking.answers import compared
from cranfield.ranking.expected import id_bytes

Ints = NDArray[np.int64]
Bad = tuple[str, Any, Any]
"""Query, document and score, where one of the latter two is none."""
BLOCK_RESULTS = 1 << 17
"""Results looked at together: their scores stay in the cache."""
ROW = 5
ANSWERED = 3


def rank_mappings(
    run: Mapping[str, dict[str, float]],
    query_ids: Sequence[str],
    judged: Sequence[Sequence[str]],
    ties: str,
    single: bool,  # noqa: FBT001 - the kernel's own signature
) -> tuple[NDArray[np.int32], NDArray[np.int32], list[Bad]]:
    """Rank the judged documents of a run.

    Args:
        run: query to document to score, larger is better.
        query_ids: the queries looked at.
        judged: per query its judged documents.
        ties: equal scores fall by document id, `descending` or `ascending` in bytes, or as the dict has them, `given`.
        single: scores are compared as 32-bit floats.

    Returns:
        Judged rows (int32[J, 5]: query, rank, item, tie_first, tie_last; by query, then rank), answered queries
        (int32[A, 3]: query, n_returned, n_tied), and the first SHOWN_PROBLEMS (query, document, score) that are not a
        string and a finite number; where there is one, the rest is incomplete.
    """
    rows, answered, bad = [_no_rows(ROW)], [_no_rows(ANSWERED)], list[Bad]()
    for places in _blocks(run, query_ids):
        answers = [run[query_ids[place]] for place in places]
        scores = _scores(answers)
        if scores is None:
            for place, answer in zip(places, answers, strict=True):
                bad += ((query_ids[place], *entry) for entry in answer.items() if not _is_good(*entry))
            if len(bad) >= SHOWN_PROBLEMS:
                break
        elif not bad:
            block = _Block(answers, scores, 32 if single else 64, ties)
            query = np.array(places, dtype=np.int64)
            rows.append(block.judged_rows(query, [judged[place] for place in places]))
            answered.append(np.column_stack((query, block.sizes, block.n_tied())).astype(np.int32))
    return np.concatenate(rows), np.concatenate(answered), bad[:SHOWN_PROBLEMS]


def _blocks(run: Mapping[str, dict[str, float]], query_ids: Sequence[str]) -> Iterator[list[int]]:
    """Places of queries that the run answers, some at a time."""
    block: list[int] = []
    size = 0
    for place, query_id in enumerate(query_ids):
        if query_id in run:
            block.append(place)
            size += len(run[query_id])
            if size >= BLOCK_RESULTS:
                yield block
                block, size = [], 0
    if block:
        yield block


def _scores(answers: Sequence[dict[str, float]]) -> NDArray[np.float64] | None:
    """float64[N]: the scores of all results, one answer after the other; None where an id or a score is none."""
    try:
        "".join(itertools.chain.from_iterable(answers))
        values = list(itertools.chain.from_iterable(answer.values() for answer in answers))
        scores = np.frombuffer(array("d", values) or array("d", [0.0]), dtype=np.float64)[: len(values)]
    except (TypeError, ValueError, OverflowError):
        return None
    if not np.isfinite(scores).all():
        return None
    # True passes for 1: where a score is 0 or 1, it is looked at.
    doubtful = np.flatnonzero((scores == 0) | (scores == 1)).tolist()
    return None if any(isinstance(values[place], bool | np.bool_) for place in doubtful) else scores


def _is_good(doc_id: object, score: object) -> bool:
    return isinstance(doc_id, str) and as_number(score) is not None


class _Block:
    """Some answers: their scores side by side, and sorted within each answer."""

    def __init__(self, answers: Sequence[dict[str, float]], scores: NDArray[np.float64], width: int, ties: str) -> None:
        self.answers = answers
        self.width = width
        self.ties = ties
        self.keys = compared(scores, width)  # [N] as they came
        self.sizes = np.array([len(answer) for answer in answers], dtype=np.int64)
        self.start = np.concatenate(([0], np.cumsum(self.sizes)))
        self.sorted = self._sorted()  # [N] largest first

    def _sorted(self) -> NDArray[Any]:
        rises = np.flatnonzero(self.keys[1:] > self.keys[:-1]) + 1
        unsorted = np.unique(self._answer_of(rises[~np.isin(rises, self.start)]))
        if not len(unsorted):
            return self.keys
        keys = self.keys.copy()
        for answer in unsorted.tolist():
            part = slice(self.start[answer], self.start[answer + 1])
            keys[part] = np.sort(keys[part])[::-1]
        return keys

    def _answer_of(self, places: Ints) -> Ints:
        return np.searchsorted(self.start, places, side="right") - 1

    def n_tied(self) -> Ints:
        """Results of each answer whose score the one before them has too."""
        same = np.flatnonzero(self.sorted[1:] == self.sorted[:-1]) + 1
        same = same[~np.isin(same, self.start)]
        return np.bincount(self._answer_of(same), minlength=len(self.answers))

    def judged_rows(self, query: Ints, judged: Sequence[Sequence[str]]) -> NDArray[np.int32]:
        """Rows of the judged documents that the answers hold; `query` names each answer's query."""
        found = [
            (place, item, answer[doc_id], doc_id)
            for place, (answer, doc_ids) in enumerate(zip(self.answers, judged, strict=True))
            for item, doc_id in enumerate(doc_ids)
            if doc_id in answer
        ]
        if not found:
            return _no_rows(ROW)
        places, items, scores, doc_ids = zip(*found, strict=True)
        answer, item = np.array(places, dtype=np.int64), np.array(items, dtype=np.int64)
        key = compared(np.array(scores, dtype=np.float64), self.width)
        first = self._first_place(answer, lambda place: self.sorted[place] > key)
        last = self._first_place(answer, lambda place: self.sorted[place] >= key)  # behind the last
        rank = first - self.start[answer] + 1
        tied = np.flatnonzero(last - first > 1).tolist()
        for group in self._tied(answer, first, tied):
            offsets = self._places_in_tie(int(answer[group[0]]), key[group[0]], [doc_ids[row] for row in group])
            rank[group] += offsets
        offset = self.start[answer]
        rows = np.column_stack((query[answer], rank, item, first - offset + 1, last - offset)).astype(np.int32)
        return rows[np.lexsort((rank, answer))]

    def _first_place(self, answer: Ints, is_before: Any) -> Ints:
        """By halving: the first place within each row's answer that does not stand before it."""
        low, high = self.start[answer], self.start[answer + 1]
        for _ in range(int(self.sizes.max()).bit_length()):
            middle = (low + high) // 2
            before = (low < high) & is_before(np.minimum(middle, len(self.sorted) - 1))
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        return low

    @staticmethod
    def _tied(answer: Ints, first: Ints, tied: list[int]) -> list[list[int]]:
        """Rows whose scores tie with another result, those of one tie together."""
        groups: dict[tuple[int, int], list[int]] = {}
        for row in tied:
            groups.setdefault((int(answer[row]), int(first[row])), []).append(row)
        return list(groups.values())

    def _places_in_tie(self, answer: int, key: float, doc_ids: Sequence[str]) -> list[int]:
        """Where some documents stand among all of one score."""
        keys = self.keys[self.start[answer] : self.start[answer + 1]]
        names = list(self.answers[answer])
        same = [names[place] for place in np.flatnonzero(keys == key).tolist()]
        if self.ties != "given":
            same.sort(key=id_bytes, reverse=self.ties == "descending")
        if len(doc_ids) == 1:
            return [same.index(doc_ids[0])]
        places = {name: place for place, name in enumerate(same)}
        return [places[doc_id] for doc_id in doc_ids]


def _no_rows(width: int) -> NDArray[np.int32]:
    return np.zeros((0, width), dtype=np.int32)

"""What is expected of every query, as columns: the side of a Ranking that no run changes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.matching import expect, is_plain, needs_every_result
from cranfield.matching.expectation import HIGHEST_LEVEL
from cranfield.model import Convention, TestSet
from cranfield.ranking.scan import JudgedIndex
from cranfield.ranking.value import UNKNOWN_COUNT, Groups


@dataclass(frozen=True, slots=True)
class ExpectedItems:
    """One entry per expected item, sorted by query, then grade descending, then as the test set has them."""

    query: NDArray[np.int32]  # [E]
    gain: NDArray[np.float64]  # [E]
    level: NDArray[np.int32]  # [E]
    count: NDArray[np.int64]  # [E] UNKNOWN_COUNT where unknown
    start: NDArray[np.int64]  # [Q + 1]
    labels: tuple[str, ...]  # [E] document id, or pattern
    closed_world: NDArray[np.bool_]  # [Q]
    whole: NDArray[np.bool_]  # [Q] every result is looked at, and not only the judged documents
    groups: Groups | None


def expected_items(testset: TestSet, query_ids: Sequence[str], convention: Convention) -> ExpectedItems:
    """Lay out what is expected of some queries of a test set, in their order."""
    if is_plain(testset):
        return _graded(testset, query_ids, convention)
    expectations = [expect(testset, query_id, convention) for query_id in query_ids]
    counts = [len(expectation.grades) for expectation in expectations]
    numbers = [
        (gain, level, UNKNOWN_COUNT if count is None else count)
        for one in expectations
        for gain, level, count in zip(one.gains, one.levels, one.counts, strict=True)
    ]
    gains, levels, documents = zip(*numbers, strict=True) if numbers else ((), (), ())
    return ExpectedItems(
        query=np.repeat(np.arange(len(query_ids), dtype=np.int32), counts),
        gain=np.array(gains, dtype=np.float64),
        level=np.array(levels, dtype=np.int32),
        count=np.array(documents, dtype=np.int64),
        start=_starts(counts),
        labels=tuple(label for one in expectations for label in one.labels),
        closed_world=np.array([one.closed_world for one in expectations], dtype=np.bool_),
        whole=np.array([needs_every_result(testset, query_id) for query_id in query_ids], dtype=np.bool_),
        groups=_groups(testset, query_ids, [one.labels for one in expectations]),
    )


def _graded(testset: TestSet, query_ids: Sequence[str], convention: Convention) -> ExpectedItems:
    """The same for a test set of graded ids alone, all queries at once."""
    judged = [testset.grades.get(query_id, {}) for query_id in query_ids]
    counts = [len(documents) for documents in judged]
    total = sum(counts)
    grades = np.fromiter(itertools.chain.from_iterable(d.values() for d in judged), dtype=np.float64, count=total)
    names = list(itertools.chain.from_iterable(judged))
    query = np.repeat(np.arange(len(query_ids), dtype=np.int32), counts)
    order = np.lexsort((-grades, query))
    grades = grades[order]
    gain = (grades > 0).astype(np.float64) if convention.gain == "match" else np.maximum(grades, 0.0)
    labels = tuple(names[place] for place in order.tolist())
    starts = _starts(counts)
    by_query = [labels[a:b] for a, b in itertools.pairwise(starts.tolist())] if testset.grouping else []
    return ExpectedItems(
        query=query,
        gain=gain,
        level=np.clip(np.floor(grades), -HIGHEST_LEVEL, HIGHEST_LEVEL).astype(np.int32),
        count=np.ones(total, dtype=np.int64),
        start=starts,
        labels=labels,
        closed_world=np.zeros(len(query_ids), dtype=np.bool_),
        whole=np.zeros(len(query_ids), dtype=np.bool_),
        groups=_groups(testset, query_ids, by_query),
    )


def judged_index(query_ids: Sequence[str], expected: ExpectedItems) -> JudgedIndex:
    """What a reader of files must recognise. Where every result is looked at, all are kept, to be matched."""
    bounds = itertools.pairwise(expected.start.tolist())
    return JudgedIndex(
        query_ids=tuple(id_bytes(query_id) for query_id in query_ids),
        doc_ids=tuple(
            () if whole else tuple(map(id_bytes, expected.labels[start:end]))
            for (start, end), whole in zip(bounds, expected.whole.tolist(), strict=True)
        ),
        whole=tuple(expected.whole.tolist()) if expected.whole.any() else (),
    )


def id_bytes(doc_id: str) -> bytes:
    """Bytes of an id, by which ties are broken; ids that are not UTF-8 keep the bytes they were read from."""
    try:
        return doc_id.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return doc_id.encode("utf-8", "surrogatepass")


def _starts(counts: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)


def _groups(testset: TestSet, query_ids: Sequence[str], labels: Sequence[Sequence[str]]) -> Groups | None:
    if testset.grouping is None:
        return None
    rows: list[tuple[int, int, int, int, float]] = []
    start = 0
    for query, query_id in enumerate(query_ids):
        place = {label: start + position for position, label in enumerate(labels[query])}
        start += len(labels[query])
        judged = testset.groups.get(query_id, ())
        names = {name: number for number, name in enumerate(sorted({one.group for one in judged}))}
        subnames = {name: number for number, name in enumerate(sorted({one.subgroup for one in judged}))}
        rows += [(query, place[j.doc_id], names[j.group], subnames[j.subgroup], j.value) for j in judged]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    whole = [np.array(column, dtype=np.int32) for column in columns[:4]]
    return Groups(testset.grouping, whole[0], whole[1], whole[2], whole[3], np.array(columns[4], dtype=np.float64))

"""A test set prepared for ranking: the side of a Ranking that no run changes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cranfield.formats.io.delimited import id_bytes
from cranfield.model import Convention, TestSet
from cranfield.model.query import class_of
from cranfield.ranking.matching.expectation import HIGHEST_LEVEL, Expectation, expect, is_plain, needs_every_result
from cranfield.ranking.scan import JudgedIndex, ScanOptions

if TYPE_CHECKING:  # numpy is imported with the first array: the index is made of ids alone
    import numpy as np
    from numpy.typing import NDArray

    from cranfield.model.arrays import DocumentIds
    from cranfield.ranking.value import Groups

NO_NUMBER = -2
"""Number of an id that is no number."""
KEPT_CONVENTIONS = 4
_DECIMAL = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedItems:
    """One entry per expected item, sorted by query, then grade descending, then in the order of the test set."""

    query: NDArray[np.int32]  # [E]
    gain: NDArray[np.float64]  # [E]
    level: NDArray[np.int32]  # [E]
    count: NDArray[np.int64]  # [E] UNKNOWN_COUNT where unknown
    start: NDArray[np.int64]  # [Q + 1]
    labels: tuple[str, ...]  # [E] document id, or pattern
    closed_world: NDArray[np.bool_]  # [Q]
    groups: Groups | None


@dataclass(frozen=True)
class PreparedJudgments:
    """A test set under a convention, prepared once for any number of runs."""

    testset: TestSet
    convention: Convention

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Q."""
        return self.testset.query_ids

    @cached_property
    def whole(self) -> tuple[bool, ...]:
        """Per query whether every result is matched, and not only the judged documents looked up."""
        if self._is_plain:
            return (False,) * len(self.query_ids)
        return tuple(needs_every_result(self.testset, query_id) for query_id in self.query_ids)

    @cached_property
    def documents(self) -> tuple[tuple[str, ...], ...]:
        """Per query its judged documents, in the order of its expected items; none where every result is matched.

        The query's own id is one of them, the last where it is not judged, where it is looked for to be left out.
        """
        labels = tuple(() if whole else labels for labels, whole in zip(self._labels, self.whole, strict=True))
        if not self.ignores_identical_ids:
            return labels
        return tuple(
            judged if whole or query_id in judged else (*judged, query_id)
            for query_id, judged, whole in zip(self.query_ids, labels, self.whole, strict=True)
        )

    @property
    def ignores_identical_ids(self) -> bool:
        """Whether a result whose id is that of the query is left out."""
        return self.testset.matching.ignore_identical_ids

    def scan_options(self, options: ScanOptions) -> ScanOptions:
        """The options that a reader gets: where a result may be left out of what it reads, the depth is cut afterwards."""
        if not self.ignores_identical_ids:
            return options
        return replace(options, depth=None, keep=options.keep and options.keep + 1)

    @cached_property
    def index(self) -> JudgedIndex:
        """What a reader of files has to recognise."""
        return JudgedIndex(
            query_ids=tuple(map(id_bytes, self.query_ids)),
            doc_ids=tuple(tuple(map(id_bytes, documents)) for documents in self.documents),
            whole=self.whole if any(self.whole) else (),
        )

    @cached_property
    def document_starts(self) -> NDArray[np.int64]:
        """int64[Q + 1]: where the documents of each query begin, among those of all."""
        import numpy as np

        return np.concatenate(([0], np.cumsum([len(documents) for documents in self.documents]))).astype(np.int64)

    @cached_property
    def document_numbers(self) -> NDArray[np.int64]:
        """int64[...]: the documents of all queries as the numbers whose decimal digits they are; NO_NUMBER for others."""
        return decimal_numbers(itertools.chain.from_iterable(self.documents))

    def positions_in(self, documents: DocumentIds) -> NDArray[np.int64]:
        """int64[...]: the documents of all queries as their first positions in an index; NO_NUMBER for those that it lacks.

        Those of the last index are kept.
        """
        import numpy as np

        kept = self.__dict__.get("_positions")
        if kept is None or kept[0] is not documents:
            place, every = documents.place, itertools.chain.from_iterable(self.documents)
            kept = (documents, np.array([place.get(doc_id, NO_NUMBER) for doc_id in every], dtype=np.int64))
            self.__dict__["_positions"] = kept
        positions: NDArray[np.int64] = kept[1]
        return positions

    @cached_property
    def expected(self) -> ExpectedItems:
        """The expected items of all queries."""
        import numpy as np

        counts = [len(labels) for labels in self._labels]
        gain, level, count = self._graded() if self._is_plain else self._matched()
        closed = () if self._is_plain else tuple(expectation.closed_world for expectation in self._expectations)
        n_queries = len(self.query_ids)
        return ExpectedItems(
            query=np.repeat(np.arange(n_queries, dtype=np.int32), counts),
            gain=gain,
            level=level,
            count=count,
            start=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64),
            labels=tuple(itertools.chain.from_iterable(self._labels)),
            closed_world=np.array(closed or [False] * n_queries, dtype=np.bool_),
            groups=_groups(self.testset, self.query_ids, self._labels),
        )

    @cached_property
    def exhaustive(self) -> NDArray[np.bool_] | None:
        """bool[Q]: whose graded documents are all there are; None where no query says so."""
        if self._is_plain:
            return None
        import numpy as np

        found = np.array([self.testset.by_id[query_id].exhaustive for query_id in self.query_ids], dtype=np.bool_)
        return found if found.any() else None

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class of each query; empty where no query has one."""
        classes = tuple(class_of(self.testset.by_id[query_id]) for query_id in self.query_ids)
        return classes if any(classes) else ()

    def expectation(self, query: int) -> Expectation:
        """What one query expects."""
        if self._is_plain:
            return expect(self.testset, self.query_ids[query], self.convention)
        return self._expectations[query]

    @cached_property
    def _is_plain(self) -> bool:
        return is_plain(self.testset)

    @cached_property
    def _expectations(self) -> tuple[Expectation, ...]:
        return tuple(expect(self.testset, query_id, self.convention) for query_id in self.query_ids)

    @cached_property
    def _labels(self) -> tuple[tuple[str, ...], ...]:
        """Per query the labels of its expected items."""
        if not self._is_plain:
            return tuple(expectation.labels for expectation in self._expectations)
        judged = (self.testset.grades.get(query_id, {}) for query_id in self.query_ids)
        return tuple(tuple(sorted(grades, key=grades.__getitem__, reverse=True)) for grades in judged)

    def _graded(self) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
        """Gain, level and count of every item of a test set of graded ids alone."""
        import numpy as np

        every = (
            map(self.testset.grades.get(query_id, {}).__getitem__, labels)
            for query_id, labels in zip(self.query_ids, self._labels, strict=True)
        )
        grades = np.array(list(itertools.chain.from_iterable(every)), dtype=np.float64)
        return *graded_worth(grades, self.convention), np.ones(len(grades), dtype=np.int64)

    def _matched(self) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
        """Gain, level and count of every item of any test set."""
        import numpy as np

        from cranfield.ranking.value import UNKNOWN_COUNT

        numbers = [
            (gain, level, UNKNOWN_COUNT if count is None else count)
            for expectation in self._expectations
            for gain, level, count in zip(expectation.gains, expectation.levels, expectation.counts, strict=True)
        ]
        gains, levels, counts = zip(*numbers, strict=True) if numbers else ((), (), ())
        return (
            np.array(gains, dtype=np.float64),
            np.array(levels, dtype=np.int32),
            np.array(counts, dtype=np.int64),
        )


def prepared(testset: TestSet, convention: Convention) -> PreparedJudgments:
    """A test set under a convention; the last few are kept with the test set, so that runs in a loop share them."""
    kept: list[PreparedJudgments] = testset.__dict__.setdefault("_prepared", [])
    found = next((each for each in kept if each.convention == convention), None)
    if found is None:
        found = PreparedJudgments(testset, convention)
        kept[:] = [found, *kept[: KEPT_CONVENTIONS - 1]]
    return found


def decimal_numbers(ids: Iterable[str]) -> NDArray[np.int64]:
    """Ids as the numbers whose decimal digits they are; NO_NUMBER for others."""
    import numpy as np

    return np.array([int(each) if _DECIMAL.fullmatch(each) else NO_NUMBER for each in ids], dtype=np.int64)


def graded_worth(grades: NDArray[np.float64], convention: Convention) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Gain and level of each judged document, by its grade."""
    import numpy as np

    gain = (grades > 0).astype(np.float64) if convention.gain == "match" else np.maximum(grades, 0.0)
    return gain, np.clip(np.floor(grades), -HIGHEST_LEVEL, HIGHEST_LEVEL).astype(np.int32)


def _groups(testset: TestSet, query_ids: Sequence[str], labels: Sequence[Sequence[str]]) -> Groups | None:
    if testset.grouping is None:
        return None
    import numpy as np

    from cranfield.ranking.value import Groups

    rows: list[tuple[int, int, int, int, float]] = []
    start = 0
    for query, query_id in enumerate(query_ids):
        place = {label: start + position for position, label in enumerate(labels[query])}
        start += len(labels[query])
        judged = testset.groups.get(query_id, ())
        names = {name: number for number, name in enumerate(sorted({judgment.group for judgment in judged}))}
        subnames = {name: number for number, name in enumerate(sorted({judgment.subgroup for judgment in judged}))}
        rows += [(query, place[j.doc_id], names[j.group], subnames[j.subgroup], j.value) for j in judged]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    whole = [np.array(column, dtype=np.int32) for column in columns[:4]]
    return Groups(testset.grouping, whole[0], whole[1], whole[2], whole[3], np.array(columns[4], dtype=np.float64))

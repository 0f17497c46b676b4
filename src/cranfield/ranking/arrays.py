"""Ranks arrays of results: a row per query, a column per rank.

Judged documents become numbers once a test set, so that rows are compared as whole numbers and no id is made text. Rows
without ties are ranked by the kernel; a row with ties is ranked as a mapping of its ids to its scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import SHOWN_PROBLEMS, ProblemList, RunFormatError, UsageError
from cranfield.base.words import shown_id
from cranfield.formats.io.delimited import id_bytes
from cranfield.model import Convention, TestSet
from cranfield.model.arrays import PADDING, ResultArrays
from cranfield.ranking.engine import kernel_requested
from cranfield.ranking.join import RankedRun, join_ranks, no_common_query
from cranfield.ranking.prepared import PreparedJudgments, prepared
from cranfield.ranking.query_ranker import comparable
from cranfield.ranking.scan import (
    REPORTED_HITS,
    UNJUDGED,
    Duplicates,
    Hit,
    JudgedRanks,
    Missing,
    ScanOptions,
    rank_columns,
)

FALLING, TIED, LEVEL, MIXED, RISING = range(5)
"""How the scores of a row go: each is below the one before it; or some are equal; or all are; or in no order; or they only rise."""
NEGATIVE_ID, AFTER_PADDING, REPEATED, NOT_FINITE = range(4)
Ints = NDArray[np.int64]
Table32 = NDArray[np.int32]


class _Numbers(NamedTuple):
    """The documents of arrays as numbers: equal ids have equal numbers."""

    of_position: Callable[[Ints], Ints]
    """Positions, padding among them, as numbers."""
    judged: Ints
    """The judged documents of all queries as numbers; NO_NUMBER for those that are none of the documents."""


def rank_result_arrays(
    testset: TestSet | PreparedJudgments,
    arrays: ResultArrays,
    convention: Convention,
    *,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
) -> RankedRun:
    """Order and join arrays of results.

    Args:
        testset: the judged queries, as a test set or prepared; a query judged by patterns is matched by the text of its ids.
        arrays: the results. With scores they are ordered by them where the convention orders by score; else they are in the
            order of their columns.
        convention: says whether score or position orders a query, how ties are broken, and the width of a score.
        missing: a judged query without a row counts as 0, or is left out.
        duplicates: a document twice in a row is an error that names both columns, or the best ranked one is kept.
        depth: ranks kept per query; None keeps all.
        keep: hits per query for reports.

    Raises:
        RunFormatError: with the first problems: negative ids, results after padding, repeated documents, scores that are
            no finite numbers, and scores that rise from column to column.
        NoCommonQueryError: no row is of a judged query.
        UsageError: there are not as many rows as queries, and their ids are not given.
    """
    judgments = testset if isinstance(testset, PreparedJudgments) else prepared(testset, convention)
    options = ScanOptions(
        order="score" if arrays.scores is not None and convention.file_order == "score" else "given",
        ties=convention.tie_order,
        width=convention.score_width,
        duplicates=duplicates,
        depth=depth,
        keep=keep,
    )
    # The digest is of the arrays as they are now: the caller may fill them anew. It is made while the rows are ranked.
    with ThreadPoolExecutor(max_workers=1) as pool:
        digest = pool.submit(_digest, arrays)
        ranks = _judged_ranks(judgments, arrays, judgments.scan_options(options))
        made = digest.result()
    return join_ranks(
        judgments,
        ranks,
        missing=missing,
        options=options,
        states_empty=True,  # by a row of padding
        name=arrays.name,
        make_digest=lambda: made,
    )


def _judged_ranks(judgments: PreparedJudgments, arrays: ResultArrays, options: ScanOptions) -> JudgedRanks:
    """Rank the judged documents of all rows."""
    query_of_row, extra = _queries_of(judgments, arrays)
    shown = options.keep
    if any(judgments.whole):  # their results are matched one by one
        options = replace(options, keep=arrays.ids.shape[1])
    numbers, problems = _numbers(judgments, arrays), ProblemList(RunFormatError)
    found: list[Table32] = [np.zeros((0, 5), np.int32)]
    answered: list[Table32] = [np.zeros((0, 5), np.int32)]
    first_ids, first_scores, n_falling, n_rising = [], [], 0, 0
    for first, positions, scores in arrays.rows():
        queries = query_of_row[first : first + len(positions)]
        ranked = _Block(judgments, arrays, numbers, options, first, queries, problems).rank(positions, scores)
        n_falling, n_rising = n_falling + ranked.n_falling, n_rising + ranked.n_rising
        found.append(ranked.found)
        answered.append(ranked.answered)
        first_ids.append(ranked.positions)
        if ranked.scores is not None:
            first_scores.append(ranked.scores.astype(np.float64))
    problems.raise_if_any()
    if n_rising and not n_falling:
        raise RunFormatError(
            "the scores of every row rise from the first column to the last, as distances do",
            path=arrays.name,
            expected="larger is better",
            hint="pass -scores, or no scores to keep the order of the columns",
        )
    rows, met = np.concatenate(found), np.concatenate(answered)
    if options.depth is not None:
        rows = rows[rows[:, 1] <= options.depth]
        met[:, 1] = np.minimum(met[:, 1], options.depth)
    row_of_query = np.full(len(judgments.query_ids), -1, dtype=np.int64)
    row_of_query[query_of_row[query_of_row >= 0]] = np.flatnonzero(query_of_row >= 0)
    top = _FirstColumns(
        judgments,
        arrays,
        row_of_query,
        np.concatenate(first_ids),
        np.concatenate(first_scores) if first_scores else None,
        options.depth,
        shown,
    )
    return JudgedRanks(
        **rank_columns(rows, met, len(judgments.query_ids)),
        top=top,
        n_lines=int(met[:, 1].sum() + met[:, 2].sum()),
        extra_queries=extra,
        engine="native" if kernel_requested() else "python",
    )


def _queries_of(judgments: PreparedJudgments, arrays: ResultArrays) -> tuple[Ints, tuple[str, ...]]:
    """int64[N]: the judged query of each row, -1 for none; and the ids of the rows that have none."""
    known, n_rows = judgments.query_ids, len(arrays.ids)
    if arrays.query_ids is None:
        if n_rows != len(known):
            raise UsageError(
                f"ids has {n_rows} rows, and the test set {len(known)} queries",
                expected="a row per query of the test set in its order, or query_ids",
                hint="query_ids=[…] names the query of each row",
            )
        return np.arange(n_rows), ()
    if arrays.query_ids == known:
        return np.arange(n_rows), ()
    place = {query_id: position for position, query_id in enumerate(known)}
    found = np.array([place.get(query_id, -1) for query_id in arrays.query_ids], dtype=np.int64)
    extra = tuple(itertools.compress(arrays.query_ids, (found < 0).tolist()))
    if len(extra) == n_rows:
        raise no_common_query(judgments.testset.name, known, extra)
    return found, extra


def _numbers(judgments: PreparedJudgments, arrays: ResultArrays) -> _Numbers:
    """How positions become numbers that can be compared, and which of them are judged."""
    documents = arrays.documents
    if documents is None:
        return _Numbers(lambda positions: positions, judgments.document_numbers)
    n_documents = len(documents.ids)

    def checked(positions: Ints) -> Ints:
        if positions.size and int(positions.max()) >= n_documents:
            row, column = (int(each[0]) for each in np.nonzero(positions >= n_documents))
            raise RunFormatError(
                f"ids has {positions[row, column]}, and doc_ids {n_documents} documents",
                path=arrays.name,
                expected=f"positions from 0 to {n_documents - 1}, or -1 for padding",
            )
        return positions

    if isinstance(documents.ids, np.ndarray):
        return _Numbers(lambda positions: _taken(documents.ids, checked(positions)), judgments.document_numbers)
    first = documents.first
    return _Numbers(
        checked if first is None else lambda positions: _taken(first, checked(positions)),
        judgments.positions_in(documents),
    )


def _taken(numbers: Any, positions: Ints) -> Ints:
    """The numbers at some positions; padding stays."""
    taken: Ints = numbers[np.maximum(positions, 0)].astype(np.int64)
    taken[positions < 0] = positions[positions < 0]
    return taken


class _Ranked(NamedTuple):
    """A block of rows, ranked."""

    found: Table32
    """int32[F, 5]: query, rank, item, tie_first, tie_last."""
    answered: Table32
    """int32[A, 5]: query, n_returned, n_duplicates, n_tied, misranked."""
    positions: Ints
    """int64[B, H]: the first columns, in the order of the ranks."""
    scores: Any
    """float[B, H], or None."""
    n_falling: int
    """Rows whose scores fall somewhere."""
    n_rising: int
    """Rows whose scores only rise."""


@dataclass(frozen=True, eq=False)
class _Ties:
    """Groups of neighbouring equal scores, G of them, by row, then column."""

    rows: Ints
    """int64[G]: row in the block."""
    starts: Ints
    """int64[G]: first column."""
    ends: Ints
    """int64[G]: column after the last."""
    n_columns: int

    @classmethod
    def of(cls, ids: Ints, keys: NDArray[Any]) -> _Ties:
        """Compare neighbours.

        Args:
            ids: int64[B, K], negative for padding.
            keys: float[B, K], as they are compared.
        """
        n_columns = ids.shape[1]
        equal = np.zeros(keys.shape, dtype=np.bool_)
        np.equal(keys[:, 1:], keys[:, :-1], out=equal[:, 1:])
        seconds = np.flatnonzero(equal)  # each is equal to the one before it
        seconds = seconds[ids.reshape(-1)[seconds] >= 0]
        begins = np.flatnonzero(np.diff(seconds, prepend=-2) > 1)
        rows, starts = np.divmod(seconds[begins] - 1, n_columns)
        ends = seconds[np.append(begins[1:], len(seconds))[: len(begins)] - 1] + 1 - rows * n_columns
        return cls(rows, starts, ends, n_columns)

    def around(self, rows: Ints, columns: Ints) -> Ints:
        """int64[N]: the group that a column of a row is in; -1: in none."""
        group = np.searchsorted(self.rows * self.n_columns + self.starts, rows * self.n_columns + columns, "right") - 1
        inside = (
            (group >= 0) & (self.rows[group] == rows) & (columns < self.ends[group]) if len(self.rows) else group >= 0
        )
        return np.where(inside, group, -1)


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows that are ranked at a time."""

    judgments: PreparedJudgments
    arrays: ResultArrays
    numbers: _Numbers
    options: ScanOptions
    first: int
    queries: Ints
    """int64[B]: the judged query of each row, -1 for none."""
    problems: ProblemList

    def rank(self, positions: Ints, scores: NDArray[Any] | None) -> _Ranked:
        """Rank the judged documents.

        Args:
            positions: int64[B, K], best first.
            scores: float32 or float64[B, K]; None: the columns are the ranks.
        """
        judged, starts = self._judged()
        ids, by_score = self.numbers.of_position(positions), scores if self.options.order == "score" else None
        tables = self._tables(ids, by_score, starts, judged)
        order, n_returned = tables[1][:, 2], tables[1][:, 0]
        n_falling = int((((order == FALLING) & (n_returned > 1)) | (order == TIED) | (order == MIXED)).sum())
        n_rising = int((order == RISING).sum())
        if by_score is not None and n_rising + (order == MIXED).sum() and not len(tables[2]):
            places = np.argsort(np.where(ids < 0, np.inf, -by_score.astype(np.float64)), axis=1, kind="stable")
            positions, ids, scores = (np.take_along_axis(each, places, axis=1) for each in (positions, ids, by_score))
            tables = self._tables(ids, scores, starts, judged)
        rows, counts, problems = tables
        for kind, row, column, other in problems.tolist():
            self._note(kind, row, column, other, positions)
        found = np.empty((len(rows), 5), np.int32)
        found[:, :3], found[:, 3], found[:, 4] = rows, rows[:, 1], rows[:, 1]
        answered = np.zeros((len(counts), 5), np.int32)
        answered[:, 1:3] = counts[:, :2]
        shown = (
            positions[:, : self.options.keep].copy(),
            None if scores is None else scores[:, : self.options.keep].copy(),
        )
        tied = counts[:, 2] != FALLING
        if by_score is not None and scores is not None and tied.any() and not len(problems):
            ties = _Ties.of(ids, comparable(scores, self.options.width))
            answered[:, 3] = np.bincount(ties.rows, ties.ends - ties.starts - 1, len(ids))
            self._place_ties(ties, found, positions, scores, shown)
            for row in np.flatnonzero(tied & (counts[:, 1] > 0)).tolist():
                own = np.ascontiguousarray(judged[starts[row] : starts[row + 1]])
                of_row, answered[row, 1:4] = self._tied_row(row, positions, scores, own, shown)
                found = np.concatenate((found[found[:, 0] != row], of_row))
        has_query = self.queries >= 0
        found = found[has_query[found[:, 0]]]
        found[:, 0], answered[:, 0] = self.queries[found[:, 0]], self.queries
        return _Ranked(found, answered[has_query], *shown, n_falling, n_rising)

    def _judged(self) -> tuple[Ints, Ints]:
        """int64[J], int64[B + 1]: the judged documents of all rows as numbers, and where those of a row begin."""
        at, every = self.judgments.document_starts, self.numbers.judged
        low, high = int(self.queries[0]), int(self.queries[-1]) + 1
        if low >= 0 and high - low == len(self.queries) and (np.diff(self.queries) == 1).all():
            return every[at[low] : at[high]], at[low : high + 1] - at[low]
        parts = [every[at[query] : at[query + 1]] if query >= 0 else every[:0] for query in self.queries.tolist()]
        starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
        return np.concatenate(parts), starts

    def _tables(
        self, ids: Ints, scores: NDArray[Any] | None, starts: Ints, judged: Ints
    ) -> tuple[Table32, Table32, Table32]:
        """See `rank_table`: by the kernel where it is used."""
        single, drop = self.options.width == 32, self.options.duplicates == "first"
        if not kernel_requested():
            return rank_table(ids, scores, single=single, starts=starts, judged=judged, drop=drop)
        from cranfield.ranking import _kernel

        if not ids.shape[1]:
            ids, scores = np.full((len(ids), 1), PADDING, np.int64), None
        compared = None if scores is None else np.ascontiguousarray(scores).data
        tables = _kernel.rank_table(
            np.ascontiguousarray(ids).data, compared, single, ids.shape[1], starts.data, judged.data, drop
        )
        rows, counts, problems = (np.frombuffer(bytearray(table), dtype=np.int32) for table in tables)
        return rows.reshape(-1, 3), counts.reshape(-1, 3), problems.reshape(-1, 4)

    def _place_ties(
        self, ties: _Ties, found: Table32, positions: Ints, scores: NDArray[Any], shown: tuple[Ints, Any]
    ) -> None:
        """Give judged documents among equal scores their ranks by id, in place, and put the first columns in that order.

        Args:
            ties: of the block.
            found: int32[F, 5], the judged documents, in any order of equal scores.
            positions: int64[B, K].
            scores: float[B, K].
            shown: the first columns of both.
        """
        group_of = ties.around(found[:, 0].astype(np.int64), found[:, 1].astype(np.int64) - 1)
        among = np.flatnonzero(group_of >= 0)
        found[among, 3], found[among, 4] = ties.starts[group_of[among]] + 1, ties.ends[group_of[among]]
        if self.options.ties == "given":
            return
        groups = np.union1d(group_of[among], np.flatnonzero(ties.starts < self.options.keep))
        sizes, firsts = ties.ends[groups] - ties.starts[groups], ties.starts[groups]
        if not len(groups):
            return
        # All results of these groups in one list: the group of each, and its row and column.
        group = np.repeat(np.arange(len(groups)), sizes)
        begins = np.cumsum(sizes) - sizes
        rows, columns = ties.rows[groups][group], np.arange(len(group)) - begins[group] + firsts[group]
        documents, place_of = np.unique(positions[rows, columns], return_inverse=True)
        names = list(map(id_bytes, self.arrays.named(documents)))
        by_name = np.empty(len(names), dtype=np.int64)
        by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        ranks = by_name[place_of.reshape(-1)]
        order = np.lexsort((-ranks if self.options.ties == "descending" else ranks, group))
        heads = np.flatnonzero(columns < self.options.keep)
        at = rows[heads], columns[heads]
        for first_columns, every in zip(shown, (positions, scores), strict=True):
            first_columns[at] = every[rows[order[heads]], columns[order[heads]]]
        came_to = np.empty(len(order), dtype=np.int64)
        came_to[order] = columns
        of_group = np.searchsorted(groups, group_of[among])
        found[among, 1] = came_to[begins[of_group] + found[among, 1] - 1 - firsts[of_group]] + 1

    def _tied_row(
        self, row: int, positions: Ints, scores: NDArray[Any], judged: Ints, shown: tuple[Ints, Any]
    ) -> tuple[Table32, tuple[int, int, int]]:
        """A row with repeated documents and equal scores: its judged rows, and n_returned, n_duplicates, n_tied; see `_place_ties`."""
        n = int((positions[row] >= 0).sum())
        places, values = positions[row, :n].copy(), scores[row, :n].copy()
        keys = comparable(values, self.options.width)
        ends = np.append(np.flatnonzero(keys[1:] != keys[:-1]) + 1, n)
        for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if end - first > 1 and self.options.ties != "given":
                names = list(map(id_bytes, self.arrays.named(places[first:end])))
                order = sorted(range(end - first), key=names.__getitem__, reverse=self.options.ties == "descending")
                places[first:end], values[first:end] = places[first:end][order], values[first:end][order]
        for first_columns, ordered in zip(shown, (places, values), strict=True):
            first_columns[row, :n] = ordered[: first_columns.shape[1]]
        ids = self.numbers.of_position(places[None])[0]
        _, first_places = np.unique(ids, return_index=True)
        kept = np.sort(first_places)  # the better ranked one of a repeated document
        keys = keys[kept]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        group = np.cumsum(np.concatenate(([False], keys[1:] != keys[:-1])))
        lasts = np.append(starts[1:], len(kept))
        found, _, _ = self._tables(ids[None, kept], None, np.array([0, len(judged)]), judged)
        rows = np.empty((len(found), 5), np.int32)
        group = group[found[:, 1] - 1]
        rows[:, 0], rows[:, 1:3], rows[:, 3], rows[:, 4] = row, found[:, 1:], starts[group] + 1, lasts[group]
        return rows, (len(kept), n - len(kept), n - len(ends))

    def _note(self, kind: int, row: int, column: int, other: int, positions: Ints) -> None:
        """Add a problem of a row."""
        of_query = f" (query {shown_id(self.arrays.query_ids[self.first + row])})" if self.arrays.query_ids else ""
        where = f"row {self.first + row}{of_query}, column {column}"
        if kind == NEGATIVE_ID:
            message, expected = f"{where}: the id is {positions[row, column]}", "0 or more, or -1 for padding"
        elif kind == AFTER_PADDING:
            message, expected = f"{where}: a result follows padding", "-1 at the end of a row only"
        elif kind == NOT_FINITE:
            message, expected = f"{where}: the score is not a finite number", "a finite score for each result"
        else:
            name = self.arrays.named(positions[row, column : column + 1])[0]
            message = f"{where}: document {shown_id(name)} is in column {other} too"
            expected = 'each document once, or duplicates="first"'
        self.problems.add(message, path=self.arrays.name, expected=expected)


def rank_table(
    ids: Ints, scores: NDArray[Any] | None, *, single: bool, starts: Ints, judged: Ints, drop: bool
) -> tuple[Table32, Table32, Table32]:
    """Find the judged documents of each row, as the kernel's function of this name does.

    Args:
        ids: int64[N, K], best first; -1 is padding, which ends a row.
        scores: float[N, K]; None: the order is all that there is.
        single: scores are compared as 32-bit floats.
        starts: int64[N + 1], where the judged documents of each row begin.
        judged: int64[J], the judged documents; a negative one is in no row.
        drop: a document that a row has again is dropped; otherwise it is a problem.

    Returns:
        Judged rows (int32[F, 3]: row, rank, item), rows (int32[N, 3]: n_returned, n_duplicates, order), and the first
        problems (int32[P, 4]: kind, row, column, other column).
    """
    found: list[tuple[int, int, int]] = []
    counts: list[tuple[int, int, int]] = []
    problems: list[tuple[int, int, int, int]] = []
    for row, line in enumerate(ids.tolist()):
        items: dict[int, int] = {}
        for item, number in enumerate(judged[starts[row] : starts[row + 1]].tolist()):
            items.setdefault(number, item)
        values = None if scores is None else scores[row].astype(np.float32 if single else np.float64).tolist()
        n_results = _length(row, line, values, problems)
        place: dict[int, int] = {}
        for column, number in enumerate(line[:n_results]):
            if place.setdefault(number, column) != column:
                if not drop:
                    problems.append((REPEATED, row, column, place[number]))
            elif number in items:
                found.append((row, len(place), items[number]))
        steps = [] if values is None else [np.sign(b - a) for a, b in itertools.pairwise(values[:n_results])]
        falls = -1 in steps
        order = (MIXED if falls else RISING) if 1 in steps else (TIED if falls else LEVEL) if 0 in steps else FALLING
        counts.append((len(place), n_results - len(place), order))
    tables = (found, 3), (counts, 3), (problems[:SHOWN_PROBLEMS], 4)
    return tuple(np.array(table, dtype=np.int32).reshape(-1, width) for table, width in tables)  # type: ignore[return-value]


def _length(row: int, line: list[int], values: list[float] | None, problems: list[tuple[int, int, int, int]]) -> int:
    """Results of a row, up to its padding or its first problem, which is noted."""
    n_results = next((column for column, number in enumerate(line) if number < 0), len(line))
    for column in range(n_results if values is not None else 0):
        if values is not None and not math.isfinite(values[column]):
            problems.append((NOT_FINITE, row, column, -1))
            return column
    for column, number in enumerate(line[n_results:], start=n_results):
        if number >= 0:
            problems.append((AFTER_PADDING, row, column, -1))
            break
        if number != PADDING:
            problems.append((NEGATIVE_ID, row, column, -1))
    return n_results


@dataclass(frozen=True, eq=False)
class _FirstColumns:
    """The first results of each query, copied: the caller may use the arrays again."""

    judgments: PreparedJudgments
    arrays: ResultArrays
    row_of_query: Ints
    positions: Ints
    scores: NDArray[np.float64] | None
    depth: int | None
    keep: int
    """Results of a query that are shown; all of them where every result is matched."""

    def of(self, query: int) -> Iterator[Hit]:
        """The first results of one query, rank 1 first."""
        row = int(self.row_of_query[query])
        if row < 0:
            return
        places = self.positions[row]
        names = self.arrays.named(places[places >= 0])
        scores = [float("nan")] * len(names) if self.scores is None else self.scores[row].tolist()
        items: Mapping[str, int] = {doc_id: item for item, doc_id in enumerate(self.judgments.documents[query])}
        first = dict(zip(reversed(names), reversed(scores[: len(names)]), strict=True))
        most = [each for each in (self.depth, None if self.judgments.whole[query] else self.keep) if each is not None]
        for doc_id in list(dict.fromkeys(names))[: min(most, default=None)]:
            yield id_bytes(doc_id), first[doc_id], items.get(doc_id, UNJUDGED)


def _digest(arrays: ResultArrays) -> str:
    """SHA-256 over queries, documents, ids and scores."""
    shape, scores = "x".join(map(str, arrays.ids.shape)), arrays.scores
    documents = "digits" if arrays.documents is None else arrays.documents.digest
    hasher = sha256(f"cranfield arrays 1 {shape} {'order' if scores is None else scores.dtype} {documents}\n".encode())
    hasher.update(repr(arrays.query_ids).encode("utf-8", "surrogatepass"))
    for _, ids, values in arrays.rows():
        hasher.update(ids.astype("<i8", copy=False).data)
        if values is not None:
            hasher.update(values.astype(values.dtype.newbyteorder("<"), copy=False).data)
    return "sha256:" + hasher.hexdigest()

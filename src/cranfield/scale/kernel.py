"""The kernel: rows of runs and judgments in, a row of values a query and system out; Arrow on both sides, no engine.

It needs all rows of the queries it is given, in any order, and goes through them twice. Both a thread of this machine and
a worker of a cluster call it, and the measures are those of the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cranfield.base.errors import SHOWN_PROBLEMS
from cranfield.measures import compute
from cranfield.model import Outcome
from cranfield.ranking.counting import (
    Counting,
    Duplicate,
    JudgedTexts,
    RowBlock,
    Texts,
    TooManySuspectsError,
    new_seed,
)
from cranfield.ranking.join import ranking_by_id
from cranfield.ranking.prepared import ExpectedItems
from cranfield.ranking.scan import JudgedRanks, ScanOptions
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.scoring import Scoring

COUNTED = (
    ("system", pa.string()),
    ("query_id", pa.string()),
    ("outcome", pa.string()),
    ("n_rows", pa.int64()),
    ("n_returned", pa.int64()),
    ("n_judged", pa.int32()),
    ("n_duplicates", pa.int64()),
    ("judged_share", pa.float64()),
    ("problem", pa.string()),
)
"""Columns of the results before those of the measures."""
MAX_EXAMPLES = 1000
"""Ids of queries without judgments that are kept, the first by name: they may be those of the test set in another form."""
QUERIES_AT_ONCE = 1 << 15
"""Queries whose values are computed at a time."""


DUPLICATES_HINT = "--duplicates first keeps the best-ranked one and continues"
REPEATED = re.compile(r"lists document .* twice$", re.DOTALL)
"""A problem that the hint is for."""


def result_schema(scoring: Scoring) -> pa.Schema:
    """Columns of the results: those of `COUNTED`, then one a measure, null where a query has no value."""
    return pa.schema([*COUNTED, *((str(measure), pa.float64()) for measure in scoring.measures)])


def row_schema(scoring: Scoring) -> pa.Schema:
    """Columns of the rows of a run that the kernel takes; text may be large or dictionaries, ids whole numbers."""
    number = "rank" if scoring.convention.file_order == "rank" else "score"
    columns = [("query_id", pa.string()), ("doc_id", pa.string()), (number, pa.float64())]
    if scoring.convention.file_order == "given":
        columns.pop()
    return pa.schema([*columns, *([("system", pa.string())] if len(scoring.systems) > 1 else [])])


def score_queries(
    rows: Callable[[], Iterable[pa.RecordBatch]], judgments: JudgmentTable, scoring: Scoring
) -> Iterator[pa.RecordBatch]:
    """Score whole queries.

    Args:
        rows: gives all rows of the queries, the same ones in the same order at each call; columns as in `row_schema`.
        judgments: of these queries.
        scoring: what to compute.

    Yields:
        Batches of `result_schema`: all systems of a query one after another, in their order. A judged query that a system
        did not answer has a row of the outcome `missing`. Rows without a query say how many rows were of queries without
        judgments, and name problems, each in a row of its own; where there is one, there are no others.
    """
    passes = Passes(judgments, scoring, sum(batch.num_rows for batch in rows()))
    too_many = False
    for look in (passes.find, passes.count):
        ordinal = 0
        try:
            for batch in rows():
                look(batch, ordinal)
                ordinal += batch.num_rows
        except TooManySuspectsError:  # the second pass names the first of those that are held
            too_many = True
        if look == passes.find:
            passes.turn()
    problems = passes.finish()
    if too_many and not problems:
        problems = [RowProblem(0, "millions of rows repeat a document of their query")]
    if problems:
        yield problem_rows(scoring, problems)
        return
    yield from passes.results()
    yield from passes.unjudged_rows()


@dataclass(frozen=True, slots=True)
class RowProblem:
    """What is wrong with a row."""

    ordinal: int
    text: str
    repeats: int | None = None
    """The row whose document it has again."""


@dataclass(eq=False)
class Passes:
    """Both passes over the rows, and what comes of them; `find` and `count` may be called by several threads."""

    judgments: JudgmentTable
    scoring: Scoring
    n_rows: int
    """How many rows there are, about."""
    everything: JudgmentTable | None = None
    """All judgments, where these are a part: its queries are no examples of queries without judgments."""
    with_examples: bool = True
    """Whether some queries without judgments are named."""
    seed: bytes = field(default_factory=new_seed)
    """Seed of the hashes of rows."""
    problems: list[RowProblem] = field(default_factory=list)
    counting: Counting = field(init=False)
    unjudged_rows_of: NDArray[np.int64] = field(init=False)
    """int64[S]: rows of each system whose query has no judgment here."""

    def __post_init__(self) -> None:
        convention = self.scoring.convention
        self.options = ScanOptions(
            order=convention.file_order,
            ties=convention.tie_order,
            width=convention.score_width,
            depth=self.scoring.depth,
            keep=0,
        )
        judged = JudgedTexts(texts_of(self.judgments.query_ids), self.judgments.start, texts_of(self.judgments.doc_ids))
        self.counting = Counting(judged, len(self.scoring.systems), self.options, self.n_rows, self.seed)
        self.unjudged_rows_of = np.zeros(len(self.scoring.systems), dtype=np.int64)
        self.examples: list[str] = []
        """The first by name of the queries of the run that are not judged."""
        self._every_query: Counting | None = None
        if self.everything is not None and self.with_examples:
            queries, nothing = texts_of(self.everything.query_ids), Texts(np.zeros(1, np.int64), b"")
            no_documents = JudgedTexts(queries, np.zeros(self.everything.n_queries + 1, np.int64), nothing)
            self._every_query = Counting(no_documents, 1, self.options, 0, self.seed)
        self._lock = Lock()
        self._system_places = {name: place for place, name in enumerate(self.scoring.systems)}

    def find(self, batch: pa.RecordBatch, ordinal: int, system: int | None = None) -> None:
        """The first pass over some rows; all of one system where that is given."""
        problems = list(_row_problems(batch, ordinal))
        if problems:
            self.problems += problems
            return
        groups, systems = self._groups(batch, system)
        self._note_unjudged(batch, groups, systems)
        if not self.judgments.n_queries:
            return
        self.counting.find(RowBlock(groups, texts_of(batch["doc_id"]), self._keys(batch), ordinal))

    def turn(self) -> None:
        """Between the passes."""
        self.counting.turn()

    def count(self, batch: pa.RecordBatch, ordinal: int, system: int | None = None) -> None:
        """The second pass over some rows."""
        if self.problems or not self.judgments.n_queries:
            return
        groups, _ = self._groups(batch, system)
        self.counting.count(RowBlock(groups, texts_of(batch["doc_id"]), self._keys(batch), ordinal))

    def finish(self) -> list[RowProblem]:
        """End the second pass; the problems found."""
        if not self.problems:
            self.counting.finish()
            if self.scoring.duplicates == "error":
                self.problems += map(self.repetition, self.counting.duplicates)
        return sorted(self.problems, key=lambda problem: problem.ordinal)[:SHOWN_PROBLEMS]

    def repetition(self, duplicate: Duplicate) -> RowProblem:
        """A repeated document as a problem."""
        query = self.judgments.query_ids[duplicate.group % self.judgments.n_queries].as_py()
        document = duplicate.document.decode("utf-8", "backslashreplace")
        system = self.scoring.systems[duplicate.group // self.judgments.n_queries]
        of = f" of system {system!r}" if len(self.scoring.systems) > 1 else ""
        kept, dropped = duplicate.ordinals
        return RowProblem(dropped, f"query {query!r}{of} lists document {document!r} twice", kept)

    def results(self) -> Iterator[pa.RecordBatch]:
        """The values of all judged queries, some thousands of queries at a time."""
        ranks = [self.counting.ranks(system) for system in range(len(self.scoring.systems))]
        n_rows = [self.counting.n_rows_of(system) for system in range(len(self.scoring.systems))]
        for first in range(0, self.judgments.n_queries, QUERIES_AT_ONCE):
            part = range(first, min(first + QUERIES_AT_ONCE, self.judgments.n_queries))
            judgments = self.judgments.part(part.start, part.stop)
            expected = judgments.expected(self.scoring.convention)
            tables = [
                self._values(
                    name, judgments, expected, _part(ranks[system], part), n_rows[system][part.start : part.stop]
                )
                for system, name in enumerate(self.scoring.systems)
            ]
            yield _interleaved(tables, len(part))

    def unjudged_rows(self) -> Iterator[pa.RecordBatch]:
        """For each system the number of rows of queries without judgments, where there are any."""
        for system in np.flatnonzero(self.unjudged_rows_of).tolist():
            yield note_row(self.scoring, system=self.scoring.systems[system], n_rows=int(self.unjudged_rows_of[system]))

    def judged_rows_of(self) -> NDArray[np.int64]:
        """int64[S]: rows of each system whose query is judged here; after `finish`."""
        return np.array([self.counting.n_rows_of(system).sum() for system in range(len(self.scoring.systems))])

    def _groups(self, batch: pa.RecordBatch, system: int | None) -> tuple[NDArray[np.int32], NDArray[np.int64] | int]:
        """The group of each row, negative where it has no judgments, and its system."""
        query = self._places(batch["query_id"])
        systems: NDArray[np.int64] | int = 0 if system is None else system
        if system is None and "system" in batch.schema.names:
            systems = _system_column(batch["system"], self._system_places)
        groups = np.where(query >= 0, systems * self.judgments.n_queries + query, -1)
        return groups.astype(np.int32), systems

    def _places(self, column: pa.Array) -> NDArray[np.int32]:
        if not pa.types.is_dictionary(column.type):
            return self.counting.places(texts_of(column))
        places: NDArray[np.int32] = self.counting.places(texts_of(column.dictionary))[np.asarray(column.indices)]
        return places

    def _keys(self, batch: pa.RecordBatch) -> NDArray[np.float64]:
        """What orders the rows, the larger first."""
        if self.options.order == "given":
            return np.zeros(batch.num_rows)
        if self.options.order == "rank":
            return -np.asarray(batch["rank"], dtype=np.float64)
        scores = np.asarray(batch["score"], dtype=np.float64)
        if self.options.width == 32:
            with np.errstate(over="ignore", under="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        return scores + 0.0  # -0 equals 0

    def _note_unjudged(
        self, batch: pa.RecordBatch, groups: NDArray[np.int32], systems: NDArray[np.int64] | int
    ) -> None:
        without = np.flatnonzero(groups < 0)
        if not len(without):
            return
        which = np.full(len(without), systems) if isinstance(systems, int) else systems[without]
        with self._lock:
            self.unjudged_rows_of += np.bincount(which, minlength=len(self.scoring.systems))
            if self.with_examples:
                unknown = self._unknown(batch["query_id"].take(pa.array(without)))
                self.examples = sorted({*self.examples, *unknown})[:MAX_EXAMPLES]

    def _unknown(self, query_ids: pa.Array) -> list[str]:
        """The first by name of those of some queries that no judgment is of."""
        different = query_ids.dictionary_decode() if pa.types.is_dictionary(query_ids.type) else query_ids
        different = pc.cast(pc.unique(different), pa.large_string())
        if self._every_query is not None:
            different = different.filter(pa.array(self._every_query.places(texts_of(different)) < 0))
        first = pc.select_k_unstable(different, MAX_EXAMPLES, sort_keys=[("", "ascending")])
        names = different.take(first).cast(pa.large_binary()).to_pylist()
        return [name.decode("utf-8", "backslashreplace") for name in names]

    def _values(
        self,
        system: str,
        judgments: JudgmentTable,
        expected: ExpectedItems,
        ranks: JudgedRanks,
        n_rows: NDArray[np.int64],
    ) -> list[pa.Array]:
        """The columns of one system for some queries."""
        ranking = ranking_by_id(judgments.query_ids.to_pylist(), ranks, expected, self.scoring.convention)
        n = judgments.n_queries
        kept = np.ones(n, dtype=np.bool_) if self.scoring.missing == "zero" else ranks.answered
        columns = [
            pa.array([system]).take(pa.array(np.zeros(n, dtype=np.int32))),
            judgments.query_ids.cast(pa.string()),
            pa.array(np.where(ranks.answered, Outcome.ANSWERED.value, Outcome.MISSING.value).tolist()),
            pa.array(n_rows),
            pa.array(ranks.n_returned.astype(np.int64)),
            pa.array(np.bincount(ranks.query, minlength=n).astype(np.int32)),
            pa.array(ranks.n_duplicates.astype(np.int64)),
        ]
        for measure in (self.scoring.judged, *self.scoring.measures):
            values, scored, _ = compute(measure, ranking)
            columns.append(pa.array(values, mask=~(scored & kept)))
        columns.insert(len(COUNTED) - 1, pa.nulls(n, pa.string()))
        return [pa.RecordBatch.from_arrays(columns, schema=result_schema(self.scoring))]


def _interleaved(tables: list[list[pa.RecordBatch]], n: int) -> pa.RecordBatch:
    """One batch with all systems of a query one after another."""
    if len(tables) == 1:
        return tables[0][0]
    order = np.arange(n * len(tables)).reshape(len(tables), n).T.ravel()
    table = pa.Table.from_batches([batch for batches in tables for batch in batches])
    return table.take(pa.array(order)).combine_chunks().to_batches()[0]


def _part(ranks: JudgedRanks, part: range) -> JudgedRanks:
    """The ranks of some queries, numbered from 0."""
    from dataclasses import replace

    rows = slice(*np.searchsorted(ranks.query, [part.start, part.stop]).tolist())
    queries = slice(part.start, part.stop)
    judged = {name: getattr(ranks, name)[rows] for name in ("rank", "item", "tie_first", "tie_last")}
    by_query = {
        name: getattr(ranks, name)[queries]
        for name in ("answered", "n_returned", "n_duplicates", "n_tied", "misranked")
    }
    return replace(ranks, query=ranks.query[rows] - np.int32(part.start), **judged, **by_query)


def note_row(scoring: Scoring, **fields: Any) -> pa.RecordBatch:
    """A row without a query: null but for some columns."""
    return pa.RecordBatch.from_pylist([fields], schema=result_schema(scoring))


def problem_rows(scoring: Scoring, problems: Iterable[RowProblem]) -> pa.RecordBatch:
    """Problems as rows of the results."""
    rows = [{"problem": problem.text} for problem in problems]
    return pa.RecordBatch.from_pylist(rows, schema=result_schema(scoring))


def _row_problems(batch: pa.RecordBatch, ordinal: int) -> Iterator[RowProblem]:
    """Rows that cannot be used: no id, or a number that is none."""
    for name in batch.schema.names:
        column = batch[name]
        if column.null_count:
            missing = np.flatnonzero(np.asarray(column.is_null()))[:SHOWN_PROBLEMS]
            yield from (RowProblem(ordinal + row, f"no {name}") for row in missing.tolist())
        elif name in {"score", "rank"} and pa.types.is_floating(column.type):
            values = np.asarray(column)
            wrong = ~np.isfinite(values) if name == "score" else values != np.floor(values)
            expected = "finite number" if name == "score" else "rank"
            for row in np.flatnonzero(wrong)[:SHOWN_PROBLEMS].tolist():
                yield RowProblem(ordinal + row, f"the {name} is {values[row]:g}, which is not a {expected}")


def texts_of(column: pa.Array | pa.ChunkedArray) -> Texts:
    """An Arrow column of text, or of whole numbers, as offsets and bytes."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        column = pc.cast(column, pa.string())
    wide = pc.cast(column, pa.large_string())
    _, offsets, data = wide.buffers()
    n, begin = len(wide), wide.offset
    places = (
        np.frombuffer(offsets, dtype=np.int64)[begin : begin + n + 1] if offsets is not None else np.zeros(1, np.int64)
    )
    return Texts(places, b"" if data is None else data)


def _system_column(column: pa.Array, places: dict[str, int]) -> NDArray[np.int64]:
    """The place of each row's system.

    Raises:
        KeyError: a system that is not among those to score.
    """
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = np.array([places[name] for name in encoded.dictionary.cast(pa.string()).to_pylist()], dtype=np.int64)
    return known[np.asarray(encoded.indices)] if len(known) else np.zeros(0, np.int64)

"""Runs in memory: mappings, data frames, Arrow tables, Parquet files and arrays.

They are ranked by the rules of a TREC run file. Only the judged documents of an answer are looked up; of the rest only
the scores are read. The first hits are read on access: until then the run must not be changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError, UsageError
from cranfield.formats.io.delimited import COLUMN_NAMES, id_bytes, note_unused
from cranfield.formats.io.table import RequestedColumns, Role, column_names, read_arrays, read_table
from cranfield.model import Answer, Convention, Outcome, Run, TestSet
from cranfield.model import Hit as RunHit
from cranfield.ranking import query_ranker
from cranfield.ranking.engine import kernel_requested
from cranfield.ranking.join import RankedRun, join_ranks
from cranfield.ranking.prepared import PreparedJudgments, prepared
from cranfield.ranking.query_ranker import comparable, rank_query
from cranfield.ranking.run_sources import MappingRun, Scores, TableRun, answer_digest, digest
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

TABLE_QUERIES = 256
"""Queries of a table that are dicts at a time."""


def rank_mapping(
    testset: TestSet | PreparedJudgments,
    run: Mapping[str, Mapping[str, float]],
    convention: Convention,
    *,
    missing: Missing = "zero",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    name: str = "run",
) -> RankedRun:
    """Order and join a mapping of query id to a mapping of document id to score.

    Args:
        testset: the judged queries, as a test set or prepared; a query of the run that is not among them is ignored and
            named.
        run: ids are text, or whole numbers, which stand for their decimal digits; scores are finite numbers. A query
            whose mapping is empty was answered with nothing; an absent query was not answered.
        convention: says whether score or position orders a query, how ties are broken, and the width of a score.
        missing: a judged query without an answer counts as 0, or is left out.
        depth: ranks kept per query, before any measure is computed; None keeps all.
        keep: hits per query for reports; they are looked up on access.
        name: of the run, in messages and reports.

    Raises:
        RunFormatError: with the first problems: invalid ids and scores.
        NoCommonQueryError: the run answers no judged query.
        UsageError: the convention orders by rank, and a mapping has none.
    """
    if convention.file_order == "rank":
        raise UsageError(
            f"convention {convention.name} orders by rank, and a mapping of scores has no ranks",
            expected="a table with a rank column, or another convention",
        )
    options = _options(convention, "error", depth, keep)
    return _ranked(_prepared(testset, convention), MappingRun(run, name), options, missing, name)


def rank_frame(  # noqa: PLR0913 - keyword options that change the numbers
    testset: TestSet | PreparedJudgments,
    frame: Any,
    convention: Convention,
    *,
    columns: Mapping[str, str] | None = None,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    name: str | None = None,
) -> RankedRun:
    """Order and join a table with a row per result.

    Args:
        testset: as in `rank_mapping`.
        frame: a pandas or Polars frame, an Arrow table, any other that narwhals knows, or the path of a Parquet file.
        convention: as in `rank_mapping`; where it orders by rank, the table has a column of ranks.
        columns: names of the columns, where they are not among `formats.io.delimited.COLUMN_NAMES`:
            `{"query_id": "topic", "score": "bm25"}`.
        missing: as in `rank_mapping`.
        duplicates: a repeated document of a query is an error naming both rows, or the best ranked one is kept.
        depth: as in `rank_mapping`.
        keep: as in `rank_mapping`.
        name: of the run, in messages and reports; by default the file's stem, or `run`.

    Raises:
        RunFormatError: with the missing columns, or the first invalid rows.
        NoCommonQueryError: the run answers no judged query.
        MissingExtraError: a Parquet file, without pyarrow.
    """
    shown = name or (Path(frame).stem if isinstance(frame, str | Path) else "run")
    options = _options(convention, duplicates, depth, keep)
    table = _read_table(frame, options, columns, shown)
    return _ranked_table(_prepared(testset, convention), table, options, missing, shown)


def table_answers(
    path: Path, query_ids: Sequence[str] | None, convention: Convention
) -> tuple[dict[str, Scores], tuple[str, ...]]:
    """All results of a Parquet table as `rank_frame` reads them, by query, and the queries that are not in `query_ids`.

    Args:
        path: the file.
        query_ids: the queries; None: all of the table.
        convention: says whether the order of rows, or of ranks, is that of the results; by score they are not sorted.

    Raises:
        RunFormatError: as `rank_frame`.
    """
    options = _options(convention, "error", None, 0)
    run = TableRun(_checked(_read_table(path, options, None, path.stem), options), options)
    wanted = run if query_ids is None else [query_id for query_id in query_ids if query_id in run]
    answers = {query_id: run.plain(query_id) for query_id in wanted}
    run.problems.raise_if_any()
    return answers, tuple(query_id for query_id in run if query_id not in answers)


def run_of_ranks(source: Any, columns: Mapping[str, str] | None = None, name: str | None = None) -> Run | None:
    """A table that has ranks and no scores as a run in the order of its ranks, as a table of text is read; None of another.

    Args:
        source: as `rank_frame` takes it.
        columns: names of columns, as there.
        name: of the run; by default the file's stem, or `run`.

    Raises:
        RunFormatError: with the first rows whose rank is no whole number, or is that of another result of their query.
        MissingExtraError: a Parquet file, without pyarrow.
    """
    there = column_names(source, RunFormatError)
    has = {role for role in ("rank", "score") if {(columns or {}).get(role), *COLUMN_NAMES[role]} & set(there)}
    if has != {"rank"}:
        return None
    shown = name or (Path(source).stem if isinstance(source, str | Path) else "run")
    table = read_table(source, ("query_id", "doc_id", "rank"), RunFormatError, columns=columns, name=shown)
    note_unused(table.name, table.unused)
    if not table.n_rows:
        raise RunFormatError(_no_row(table))
    _check_ranks(table)
    query_ids, doc_ids = (table.ids[role].text(0, table.n_rows) for role in ("query_id", "doc_id"))
    found, ranked = ProblemList(RunFormatError), dict[str, dict[int, int]]()
    for row, (query_id, rank) in enumerate(
        zip(query_ids, table.numbers["rank"].astype(np.int64).tolist(), strict=True)
    ):
        first = ranked.setdefault(query_id, {}).setdefault(rank, row)
        if first != row and len(found.problems) < SHOWN_PROBLEMS:
            message = f"rows {first} and {row}: query {query_id!r} has two results of rank {rank}"
            found.add(message, path=table.name, expected="each rank once per query, or a column score")
    found.raise_if_any()
    answers = {
        query_id: Answer(Outcome.ANSWERED, tuple(RunHit(doc_ids[row]) for _, row in sorted(rows.items())))
        for query_id, rows in ranked.items()
    }
    return Run(shown, answers, order="given", says_empty=False)


def _no_row(table: RequestedColumns) -> Problem:
    return Problem("no row in this run", path=table.name, expected="a row per result")


def _read_table(frame: Any, options: ScanOptions, columns: Mapping[str, str] | None, name: str) -> RequestedColumns:
    by_rank = options.order == "rank"
    required: tuple[Role, ...] = ("query_id", "doc_id", "score", "rank") if by_rank else ("query_id", "doc_id", "score")
    optional: tuple[Role, ...] = () if by_rank else ("rank",)
    table = read_table(frame, required, RunFormatError, lenient=optional, columns=columns, name=name)
    note_unused(table.name, table.unused)
    return table


def rank_arrays(  # noqa: PLR0913 - as above
    testset: TestSet | PreparedJudgments,
    query_ids: Any,
    doc_ids: Any,
    scores: Any,
    convention: Convention,
    *,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    name: str = "run",
) -> RankedRun:
    """Order and join three one-dimensional arrays of one length, an entry per result; otherwise as `rank_frame`."""
    if convention.file_order == "rank":
        raise UsageError(
            f"convention {convention.name} orders by rank, and these arrays have no ranks",
            expected="a table with a rank column, or another convention",
        )
    columns: dict[Role, Any] = {"query_id": query_ids, "doc_id": doc_ids, "score": scores}
    table = read_arrays(columns, RunFormatError, name=name)
    options = _options(convention, duplicates, depth, keep)
    return _ranked_table(_prepared(testset, convention), table, options, missing, name)


def _options(convention: Convention, duplicates: Duplicates, depth: int | None, keep: int) -> ScanOptions:
    if depth is not None and depth < 1:
        raise UsageError(f"depth is {depth}", expected="a whole number of 1 or more")
    return ScanOptions(
        order=convention.file_order,
        ties=convention.tie_order,
        width=convention.score_width,
        duplicates=duplicates,
        depth=depth,
        keep=keep,
    )


def _prepared(testset: TestSet | PreparedJudgments, convention: Convention) -> PreparedJudgments:
    return testset if isinstance(testset, PreparedJudgments) else prepared(testset, convention)


def _ranked_table(
    judgments: PreparedJudgments, table: RequestedColumns, options: ScanOptions, missing: Missing, name: str
) -> RankedRun:
    run = TableRun(_checked(table, options), options)
    return replace(_ranked(judgments, run, options, missing, name), columns=table.taken)


def _checked(table: RequestedColumns, options: ScanOptions) -> RequestedColumns:
    """The table, where it has a row, and ranks where they order it."""
    if not table.n_rows:
        raise RunFormatError(_no_row(table))
    if options.order == "rank":
        _check_ranks(table)
    return table


def _check_ranks(table: RequestedColumns) -> None:
    rank = table.numbers["rank"]
    found = ProblemList(RunFormatError)
    for row in np.flatnonzero(rank != np.floor(rank))[:SHOWN_PROBLEMS].tolist():
        expected = "whole numbers, because the rank orders this run"
        found.add(
            f"row {row}: the rank is not a whole number", path=table.name, expected=expected, got=f"{rank[row]:g}"
        )
    found.raise_if_any()


def _ranked(
    judgments: PreparedJudgments,
    run: MappingRun | TableRun,
    options: ScanOptions,
    missing: Missing,
    name: str,
) -> RankedRun:
    seen: Digests = {}
    return join_ranks(
        judgments,
        _judged_ranks(judgments, run, judgments.scan_options(options), seen),
        missing=missing,
        options=options,
        states_empty=isinstance(run, MappingRun),  # by `{}`; a table has no row for it
        name=name,
        make_digest=lambda: digest(run, seen),
    )


Table32 = NDArray[np.int32]
Digests = dict[str, tuple[int, bytes]]
"""Query id to the number of results and the digest of an answer; filled where answers are ranked as they were given."""


def _judged_ranks(
    judgments: PreparedJudgments, run: MappingRun | TableRun, options: ScanOptions, seen: Digests
) -> JudgedRanks:
    """Rank the judged documents of all queries."""
    rows, met = _rank_blocks(judgments, run, options, seen)
    answered = np.zeros((len(met), 5), dtype=np.int32)
    answered[:, 0], answered[:, 1], answered[:, 3] = met.T
    if isinstance(run, TableRun):
        for at, query in enumerate(met[:, 0].tolist()):
            query_id = judgments.query_ids[query]
            if query_id in run.n_duplicates:
                answered[at, 2], answered[at, 3] = run.n_duplicates[query_id], run.n_tied[query_id]
            answered[at, 4] = query_id in run.misranked
    n_lines = int(answered[:, 1].sum() + answered[:, 2].sum())
    if options.depth is not None:
        rows = rows[rows[:, 1] <= options.depth]
        answered[:, 1] = np.minimum(answered[:, 1], options.depth)
    return JudgedRanks(
        **rank_columns(rows, answered, len(judgments.query_ids)),
        top=_FirstOfRun(judgments, run, options),
        n_lines=n_lines,
        extra_queries=tuple(itertools.filterfalse(judgments.testset.by_id.__contains__, run)),
        engine="native" if kernel_requested() else "python",
    )


def _rank_blocks(
    judgments: PreparedJudgments, run: MappingRun | TableRun, options: ScanOptions, seen: Digests
) -> tuple[Table32, Table32]:
    """The tables of `query_ranker.rank_mappings`, of all queries."""
    answered = [query for query, query_id in enumerate(judgments.query_ids) if query_id in run]
    step = TABLE_QUERIES if isinstance(run, TableRun) else max(len(answered), 1)
    tables = [(np.zeros((0, 5), np.int32), np.zeros((0, 3), np.int32))]
    for first in range(0, len(answered), step):
        block = answered[first : first + step]
        tables.append(_rank_block(judgments, run, options, block, seen))
        if len(run.problems.problems) >= SHOWN_PROBLEMS:
            break
    run.problems.raise_if_any()
    rows, met = zip(*tables, strict=True)
    return np.concatenate(rows), np.concatenate(met)


def _rank_block(
    judgments: PreparedJudgments,
    run: MappingRun | TableRun,
    options: ScanOptions,
    block: Sequence[int],
    seen: Digests,
) -> tuple[Table32, Table32]:
    """The same of some queries."""

    def see(query: int, n_results: int, content: bytes | None) -> None:
        digested = answer_digest(scores[query_ids[query]]) if content is None else sha256(content).digest()
        seen[query_ids[query]] = n_results, digested

    query_ids = tuple(judgments.query_ids[query] for query in block)
    documents = tuple(judgments.documents[query] for query in block)
    ties, single = options.ties, options.width == 32
    if options.order == "score":
        scores = {query_id: run.given(query_id) for query_id in query_ids}
        rows, met, bad = rank_mappings(scores, query_ids, documents, ties, single, see)
        if bad:
            scores = {query_id: run.plain(query_id) for query_id in query_ids}
            run.problems.raise_if_any()
            rows, met, _ = rank_mappings(scores, query_ids, documents, ties, single, see)
    else:
        plain = {query_id: run.plain(query_id) for query_id in query_ids}
        falling = {
            query_id: dict(zip(answer, map(float, range(len(answer), 0, -1)), strict=True))
            for query_id, answer in plain.items()
        }
        rows, met, _ = rank_mappings(falling, query_ids, documents, "given", single=False)
    queries = np.array(block, dtype=np.int32)
    rows[:, 0], met[:, 0] = queries[rows[:, 0]], queries[met[:, 0]]
    return rows, met


def rank_mappings(
    run: dict[str, dict[Any, Any]],
    query_ids: tuple[str, ...],
    judged: tuple[tuple[str, ...], ...],
    ties: str,
    single: bool,  # noqa: FBT001 - the signature of the kernel's function
    see: Callable[[int, int, bytes | None], object] | None = None,
) -> tuple[Table32, Table32, list[Any]]:
    """See `query_ranker.rank_mappings`: by the kernel where it is used."""
    if not kernel_requested():
        return query_ranker.rank_mappings(run, query_ids, judged, ties, single, see)
    from cranfield.ranking import _kernel

    rows, met, bad = _kernel.rank_mappings(run, query_ids, judged, ties, single, see)
    tables = (np.frombuffer(bytearray(table), dtype=np.int32) for table in (rows, met))
    return (*(table.reshape(-1, width) for table, width in zip(tables, (5, 3), strict=True)), bad)  # type: ignore[return-value]


@dataclass(frozen=True)
class _FirstOfRun:
    """The first results of each query, looked up in the run on access."""

    judgments: PreparedJudgments
    run: MappingRun | TableRun
    options: ScanOptions

    def of(self, query: int) -> Iterator[Hit]:
        """The first results of one query, rank 1 first; all of them where every result is matched."""
        query_id = self.judgments.query_ids[query]
        if query_id not in self.run:
            return
        answer = self.run.plain(query_id)
        docs, scores = list(answer), np.array(list(answer.values()), dtype=np.float64)
        shown = len(docs) if self.options.depth is None else min(len(docs), self.options.depth)
        if not self.judgments.whole[query]:
            shown = min(shown, self.options.keep)
        item = {doc_id: position for position, doc_id in enumerate(self.judgments.documents[query])}
        for position in self._first(docs, scores, shown):
            yield id_bytes(docs[position]), float(scores[position]), item.get(docs[position], UNJUDGED)

    def _first(self, docs: list[str], scores: NDArray[np.float64], shown: int) -> Sequence[int]:
        """Positions of the first results; results that cannot be among them are not sorted."""
        if self.options.order != "score" or not shown:
            return range(shown)
        keys = comparable(scores, self.options.width)
        least = np.partition(keys, len(keys) - shown)[len(keys) - shown]
        near = np.flatnonzero(keys >= least).tolist()
        ranked = rank_query(
            [docs[position] for position in near], scores[near].tolist(), self.options, tie_key=id_bytes
        )
        return [near[position] for position in ranked.order[:shown]]

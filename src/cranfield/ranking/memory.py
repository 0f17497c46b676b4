"""The door for runs without a file: mappings, data frames, Arrow tables, Parquet files and arrays.

They are ranked by the rules of a TREC run file. Only the judged documents of an answer are looked up; the rest of it is
read for its scores alone, and again when somebody asks for its first hits: until then, leave the run as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError, UsageError
from cranfield.formats.io.table import Role, Table, read_arrays, read_table
from cranfield.model import Convention, Outcome, TestSet
from cranfield.ranking import counting
from cranfield.ranking.answers import Answers, MappingAnswers, Scores, TableAnswers, compared, digest, in_order
from cranfield.ranking.door import Missing, no_common_query
from cranfield.ranking.expected import ExpectedItems, expected_items, id_bytes
from cranfield.ranking.file import ENGINE_VARIABLE, engine_asked, join_scan
from cranfield.ranking.scan import REPORTED_HITS, UNJUDGED, Duplicates, Scan, ScanOptions, TopHits
from cranfield.ranking.value import Ranking

TABLE_QUERIES = 256
"""Queries of a table that are held as dicts at a time."""


@dataclass(frozen=True)
class RankedAnswers:
    """A ranked run that never was a file, with what was noticed on the way in."""

    ranking: Ranking
    name: str
    n_lines: int
    """Results, of the judged queries."""
    extra_queries: tuple[str, ...]
    """Query ids in the run and not in the test set: ignored."""
    misranked: tuple[str, ...]
    """Queries whose rank column disagrees with the order by score."""
    n_tied: int
    """Results that share their score with the one before them."""
    engine: Literal["native", "python"]
    """What counted: the kernel, or Python."""
    columns: Mapping[Role, str] = field(default_factory=dict)
    """Of a table: what each of its columns that was taken is called there."""
    _answers: Answers | None = field(default=None, repr=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the run's content: the same for a mapping and for a table of the same rows."""
        return "" if self._answers is None else digest(self._answers)


@dataclass(frozen=True)
class LaidOut:
    """A test set laid out for a convention: what every run that is ranked against it shares."""

    testset: TestSet
    convention: Convention

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Q."""
        return self.testset.query_ids

    @cached_property
    def expected(self) -> ExpectedItems:
        """What is expected of each query."""
        return expected_items(self.testset, self.query_ids, self.convention)

    @cached_property
    def documents(self) -> tuple[tuple[str, ...], ...]:
        """Per query its judged documents, in the order of its expected items; none where every result is looked at."""
        bounds = itertools.pairwise(self.expected.start.tolist())
        wholes = self.expected.whole.tolist()
        return tuple(
            () if is_whole else self.expected.labels[start:end]
            for (start, end), is_whole in zip(bounds, wholes, strict=True)
        )


def rank_mapping(
    testset: TestSet | LaidOut,
    run: Mapping[str, Mapping[str, float]],
    convention: Convention,
    *,
    missing: Missing = "zero",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    name: str = "run",
) -> RankedAnswers:
    """Order and join a mapping of query id to a mapping of document id to score.

    Args:
        testset: the judged queries, as they are or laid out; a query of the run that is not among them is ignored and
            named.
        run: ids are text, or whole numbers, which stand for their decimal digits; scores are finite numbers. A query
            whose mapping is empty was answered with nothing; one that is not there was not answered, and kept no silence.
        convention: says whether score or position orders a query, how ties fall, and how wide a score is.
        missing: a judged query the run does not answer counts as 0, or is left out.
        depth: ranks kept per query, before any measure sees them; None keeps all.
        keep: hits per query that are shown in reports; they are looked up when somebody asks.
        name: what messages and reports call the run.

    Raises:
        RunFormatError: with the first problems: an id or a score that is none.
        NoCommonQueryError: the run answers no judged query.
        UsageError: the convention orders by rank, and a mapping has none.
    """
    if convention.file_order == "rank":
        raise UsageError(
            f"convention {convention.name} orders by rank, and a mapping of scores has no ranks",
            expected="a table with a rank column, or another convention",
        )
    options = _options(convention, "error", depth, keep)
    return _ranked(_laid_out(testset, convention), MappingAnswers(run, name), options, missing, name)


def rank_frame(  # noqa: PLR0913 - each is a choice that changes the numbers, and is typed by name
    testset: TestSet | LaidOut,
    frame: Any,
    convention: Convention,
    *,
    columns: Mapping[str, str] | None = None,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    name: str | None = None,
) -> RankedAnswers:
    """Order and join a table with a row per result.

    Args:
        testset: as in `rank_mapping`.
        frame: a pandas or Polars frame, an Arrow table, any other that narwhals knows, or the path of a Parquet file.
        convention: as in `rank_mapping`; where it orders by rank, the table has a column of ranks.
        columns: what the columns are called, where it is none of `formats.table.COLUMN_NAMES`:
            `{"query_id": "topic", "score": "bm25"}`.
        missing: as in `rank_mapping`.
        duplicates: a document twice in one query is an error naming both rows, or the first by rank is kept.
        depth: as in `rank_mapping`.
        keep: as in `rank_mapping`.
        name: what messages and reports call the run; by default the file's stem, or `run`.

    Raises:
        RunFormatError: with the columns that are missing, or the first rows that cannot be used.
        NoCommonQueryError: the run answers no judged query.
        MissingExtraError: a Parquet file, without pyarrow.
    """
    by_rank = convention.file_order == "rank"
    asked: tuple[Role, ...] = ("query_id", "doc_id", "score", "rank") if by_rank else ("query_id", "doc_id", "score")
    aside: tuple[Role, ...] = () if by_rank else ("rank",)
    is_path = isinstance(frame, str | Path)
    shown = name or (Path(frame).stem if is_path else "run")
    table = read_table(frame, asked, RunFormatError, aside=aside, columns=columns, name=shown)
    options = _options(convention, duplicates, depth, keep)
    return _ranked_table(_laid_out(testset, convention), table, options, missing, shown)


def rank_arrays(  # noqa: PLR0913 - as above
    testset: TestSet | LaidOut,
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
) -> RankedAnswers:
    """Order and join three one-dimensional arrays of one length, an entry per result; otherwise as `rank_frame`."""
    if convention.file_order == "rank":
        raise UsageError(
            f"convention {convention.name} orders by rank, and these arrays hold none",
            expected="a table with a rank column, or another convention",
        )
    columns: dict[Role, Any] = {"query_id": query_ids, "doc_id": doc_ids, "score": scores}
    table = read_arrays(columns, RunFormatError, name=name)
    options = _options(convention, duplicates, depth, keep)
    return _ranked_table(_laid_out(testset, convention), table, options, missing, name)


def _options(convention: Convention, duplicates: Duplicates, depth: int | None, keep: int) -> ScanOptions:
    if depth is not None and depth < 1:
        raise UsageError(f"depth is {depth}", expected="a whole number of 1 or more")
    return ScanOptions(
        order=convention.file_order,
        ties=convention.ties,
        width=convention.score_width,
        duplicates=duplicates,
        depth=depth,
        keep=keep,
    )


def _laid_out(testset: TestSet | LaidOut, convention: Convention) -> LaidOut:
    return testset if isinstance(testset, LaidOut) else LaidOut(testset, convention)


def _ranked_table(judged: LaidOut, table: Table, options: ScanOptions, missing: Missing, name: str) -> RankedAnswers:
    if not table.n_rows:
        raise RunFormatError(Problem("no row in this run", path=table.name, expected="a row per result"))
    if options.order == "rank":
        _check_ranks(table)
    return replace(_ranked(judged, TableAnswers(table, options), options, missing, name), columns=table.taken)


def _check_ranks(table: Table) -> None:
    rank = table.numbers["rank"]
    found = ProblemList(RunFormatError)
    for row in np.flatnonzero(rank != np.floor(rank))[:SHOWN_PROBLEMS].tolist():
        expected = "whole numbers, because the rank orders this run"
        found.add(f"row {row}: the rank is no rank", path=table.name, expected=expected, got=f"{rank[row]:g}")
    found.raise_if_any()


def _ranked(judged: LaidOut, answers: Answers, options: ScanOptions, missing: Missing, name: str) -> RankedAnswers:
    scan = _scan(judged, answers, options)
    if not scan.answered.any():
        raise no_common_query(judged.testset, scan.extra_queries)
    says_empty = isinstance(answers, MappingAnswers)  # `{}` says it; a table has no row for it
    asked: dict[str, Any] = {"missing": missing, "keep": options.keep, "says_empty": says_empty}
    ranking = join_scan(judged.testset, scan, judged.expected, judged.convention, **asked)
    return RankedAnswers(
        ranking=_with_empty(ranking),
        name=name,
        n_lines=scan.n_lines,
        extra_queries=scan.extra_queries,
        misranked=tuple(judged.query_ids[place] for place in np.flatnonzero(scan.misranked).tolist()),
        n_tied=int(scan.n_tied.sum()),
        engine=scan.engine,
        _answers=answers,
    )


def _with_empty(ranking: Ranking) -> Ranking:
    """The same, where a query that was answered with nothing says so."""
    empty = set(np.flatnonzero(ranking.n_returned == 0).tolist())
    if not empty:
        return ranking
    outcomes = (
        Outcome.EMPTY if place in empty and outcome is Outcome.ANSWERED else outcome
        for place, outcome in enumerate(ranking.outcomes)
    )
    return replace(ranking, outcomes=tuple(outcomes))


def _scan(judged: LaidOut, answers: Answers, options: ScanOptions) -> Scan:
    """What a reader of files would have made of it."""
    engine, count = _engine()
    n_queries = len(judged.query_ids)
    rows, answered = _count(judged, answers, options, count)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    place = answered[:, 0]
    n_returned, n_tied, n_duplicates = (np.zeros(n_queries, dtype=np.int32) for _ in range(3))
    is_answered, misranked = np.zeros(n_queries, dtype=np.bool_), np.zeros(n_queries, dtype=np.bool_)
    is_answered[place], n_returned[place], n_tied[place] = True, answered[:, 1], answered[:, 2]
    if isinstance(answers, TableAnswers):
        at = {query_id: place for place, query_id in enumerate(judged.query_ids)}
        for query_id, dropped in answers.n_duplicates.items():
            n_duplicates[at[query_id]], n_tied[at[query_id]] = dropped, answers.n_tied[query_id]
        misranked[[at[query_id] for query_id in answers.misranked]] = True
    n_lines = int(n_returned.sum() + n_duplicates.sum())
    if options.depth is not None:
        rows, n_returned = rows[rows[:, 1] <= options.depth], np.minimum(n_returned, options.depth)
    query, rank, item, tie_first, tie_last = (np.ascontiguousarray(column) for column in rows.T)
    return Scan(
        query=query,
        rank=rank,
        item=item,
        tie_first=tie_first,
        tie_last=tie_last,
        answered=is_answered,
        n_returned=n_returned,
        n_duplicates=n_duplicates,
        n_tied=n_tied,
        misranked=misranked,
        top=cast("TopHits", _HitsOnDemand(judged, answers, options)),
        n_lines=n_lines,
        tag=None,
        digest="",
        extra_queries=tuple(itertools.filterfalse(judged.testset.by_id.__contains__, answers)),
        engine=engine,
    )


Rows = NDArray[np.int32]
Counter = Callable[
    [dict[str, Scores], tuple[str, ...], tuple[tuple[str, ...], ...], str, bool], tuple[Rows, Rows, list[Any]]
]
"""`counting.rank_mappings`, or the kernel's."""


def _engine() -> tuple[Literal["native", "python"], Counter]:
    """What counts: the kernel where it was built, else Python; see `file.ENGINE_VARIABLE`."""
    from cranfield.ranking import native

    asked = engine_asked()
    if asked == "native" and not native.available():
        raise UsageError(f"{ENGINE_VARIABLE} asks for the native reader: {native.why_not()}")
    if asked == "python" or not native.available():
        return "python", counting.rank_mappings
    from cranfield.ranking import _kernel

    def count(
        run: dict[str, Scores],
        query_ids: tuple[str, ...],
        judged: tuple[tuple[str, ...], ...],
        ties: str,
        single: bool,  # noqa: FBT001 - the kernel's own signature
    ) -> tuple[Rows, Rows, list[Any]]:
        rows, answered, bad = _kernel.rank_mappings(run, query_ids, judged, ties, single)
        return (
            np.frombuffer(rows, dtype=np.int32).reshape(-1, counting.ROW),
            np.frombuffer(answered, dtype=np.int32).reshape(-1, counting.ANSWERED),
            bad,
        )

    return "native", count


def _count(judged: LaidOut, answers: Answers, options: ScanOptions, count: Counter) -> tuple[Rows, Rows]:
    """LaidOut rows and answered queries, as `counting.rank_mappings` has them, of all queries."""
    places = [place for place, query_id in enumerate(judged.query_ids) if query_id in answers]
    step = TABLE_QUERIES if isinstance(answers, TableAnswers) else max(len(places), 1)
    rows, answered = [np.zeros((0, counting.ROW), np.int32)], [np.zeros((0, counting.ANSWERED), np.int32)]
    for first in range(0, len(places), step):
        block = places[first : first + step]
        query_ids = tuple(judged.query_ids[place] for place in block)
        documents = tuple(judged.documents[place] for place in block)
        run = {query_id: answers.given(query_id) for query_id in query_ids}
        single = options.width == 32
        if options.order == "score":
            found, met, bad = count(run, query_ids, documents, options.ties, single)
            if bad:
                run = {query_id: answers.plain(query_id) for query_id in query_ids}
                answers.problems.raise_if_any()
                found, met, _ = count(run, query_ids, documents, options.ties, single)
        else:
            plain = {query_id: answers.plain(query_id) for query_id in query_ids}
            falling = {
                query_id: dict(zip(answer, map(float, range(len(answer), 0, -1)), strict=True))
                for query_id, answer in plain.items()
            }
            found, met, _ = count(falling, query_ids, documents, "given", False)
        if len(answers.problems.problems) >= SHOWN_PROBLEMS:
            break
        place_of = np.array(block, dtype=np.int32)
        for table, column in ((rows, found), (answered, met)):
            moved = column.copy()
            moved[:, 0] = place_of[column[:, 0]]
            table.append(moved)
    answers.problems.raise_if_any()
    return np.concatenate(rows), np.concatenate(answered)


@dataclass(frozen=True)
class _HitsOnDemand:
    """First results of a query, looked up in the run when somebody asks; stands in for `TopHits`."""

    judged: LaidOut
    answers: Answers
    options: ScanOptions

    def of(self, query: int) -> Iterator[tuple[bytes, float, int]]:
        """(document id, score, item) of one query's first results, rank 1 first; all of them where every result is looked at."""
        query_id = self.judged.query_ids[query]
        if query_id not in self.answers:
            return
        answer = self.answers.plain(query_id)
        docs, scores = list(answer), np.array(list(answer.values()), dtype=np.float64)
        shown = len(docs) if self.options.depth is None else min(len(docs), self.options.depth)
        if not self.judged.expected.whole[query]:
            shown = min(shown, self.options.keep)
        item = {doc_id: place for place, doc_id in enumerate(self.judged.documents[query])}
        for place in self._first(docs, scores, shown):
            yield id_bytes(docs[place]), float(scores[place]), item.get(docs[place], UNJUDGED)

    def _first(self, docs: list[str], scores: NDArray[np.float64], shown: int) -> Sequence[int]:
        """Places of the first results; what cannot be among them is not sorted."""
        if self.options.order != "score" or not shown:
            return range(shown)
        keys = compared(scores, self.options.width)
        least = np.partition(keys, len(keys) - shown)[len(keys) - shown]
        near = np.flatnonzero(keys >= least)
        order = in_order([docs[place] for place in near.tolist()], keys[near], self.options.ties)
        first: list[int] = near[order[:shown]].tolist()
        return first

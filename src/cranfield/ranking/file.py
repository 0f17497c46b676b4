"""From a run file to a Ranking: which reader reads it, and how its columns meet what was expected."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import UsageError
from cranfield.formats.io.files import stem
from cranfield.formats.testsets.trec import id_text
from cranfield.matching import expect
from cranfield.model import Convention, Hit, Outcome, TestSet
from cranfield.ranking.beside import aspects_of, covered_column, silence_column, silence_of, unplaced_column
from cranfield.ranking.cache import cached
from cranfield.ranking.door import (
    Missing,
    Part,
    Rows,
    classes_of,
    compared,
    join,
    no_common_query,
    tied_ranks,
)
from cranfield.ranking.expected import ExpectedItems, expected_items, judged_index
from cranfield.ranking.scan import REPORTED_HITS, UNJUDGED, Duplicates, JudgedIndex, Scan, ScanOptions
from cranfield.ranking.value import RankedHit, Ranking, Silence, State

Engine = Literal["auto", "native", "python"]
ENGINE_VARIABLE = "CRANFIELD_ENGINE"
"""`native`, `python`, or `auto` (the default): the native reader where it was built."""
JOBS_VARIABLE = "CRANFIELD_JOBS"
"""Threads that read a file; unset: as many as there are processors, at most 8."""


@dataclass(frozen=True, slots=True)
class RankedFile:
    """A ranked run file, with what its reader noticed."""

    ranking: Ranking
    digest: str
    name: str
    """The tag of its first line, or the file's stem."""
    n_lines: int
    extra_queries: tuple[str, ...]
    """Query ids in the run and not in the test set: ignored."""
    misranked: tuple[str, ...]
    """Queries whose rank column disagrees with the order by score."""
    n_tied: int
    """Results that share their score with the one before them."""
    engine: str = "python"
    """Which reader read it."""


def rank_file(
    testset: TestSet,
    path: Path,
    convention: Convention,
    *,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    cache: bool = False,
) -> RankedFile:
    """Read, order and join a TREC run file.

    Args:
        testset: the judged queries; a query of the file that is not among them is ignored and named.
        path: six columns a line (query, Q0, document, rank, score, tag), white space between; gzip is recognised.
        convention: says whether score, position or rank orders a query, and how ties fall.
        missing: a judged query the file does not answer counts as 0, or is left out.
        duplicates: a document twice in one query is an error naming both lines, or the first by rank is kept.
        depth: ranks kept per query, before any measure sees them; None keeps all.
        keep: hits per query kept for reports.
        cache: look for what this file came down to before, and keep it for the next time.

    Raises:
        RunFormatError: with every bad line found.
        NoCommonQueryError: the file answers no judged query.
    """
    expected = expected_items(testset, testset.query_ids, convention)
    index = judged_index(testset.query_ids, expected)
    options = ScanOptions(
        order=convention.file_order,
        ties=convention.ties,
        width=convention.score_width,
        duplicates=duplicates,
        depth=depth,
        keep=keep,
    )
    engine_asked()  # what is misspelt is refused even where nothing has to be read
    jobs = jobs_asked()
    read = functools.partial(scan_file, path, index, options, jobs)
    scan = cached(path, index, options, jobs, read) if cache else read()
    if not scan.answered.any():
        raise no_common_query(testset, scan.extra_queries)
    return RankedFile(
        ranking=join_scan(testset, scan, expected, convention, missing=missing, keep=keep),
        digest=scan.digest,
        name=scan.tag or stem(path),
        n_lines=scan.n_lines,
        extra_queries=scan.extra_queries,
        misranked=tuple(itertools.compress(testset.query_ids, scan.misranked.tolist())),
        n_tied=int(scan.n_tied.sum()),
        engine=scan.engine,
    )


def scan_file(path: Path, index: JudgedIndex, options: ScanOptions, jobs: int) -> Scan:
    """Read a run file with the native reader where it was built, else with Python's; see `ENGINE_VARIABLE`."""
    engine = engine_asked()
    if engine != "python":
        from cranfield.ranking import native

        if native.available():
            return native.scan_file_native(path, index, options, threads=jobs)
        if engine == "native":
            raise UsageError(f"{ENGINE_VARIABLE} asks for the native reader: {native.why_not()}")
    from cranfield.ranking import streaming

    return streaming.scan_file_python(path, index, options, threads=jobs)


def why_in_python() -> str | None:
    """Why run files are read by the slower reader; None where they are not, or where that was asked for."""
    if engine_asked() != "auto":
        return None
    from cranfield.ranking import native

    return None if native.available() else native.why_not()


def engine_asked() -> Engine:
    """Which reader the environment asks for."""
    engine = os.environ.get(ENGINE_VARIABLE) or "auto"
    if engine not in {"auto", "native", "python"}:
        raise UsageError(f"{ENGINE_VARIABLE} is {engine!r}", expected="auto, native or python")
    return engine  # type: ignore[return-value]


def jobs_asked() -> int:
    """Threads the environment asks for, else one a processor, at most 8."""
    text = os.environ.get(JOBS_VARIABLE)
    if not text:
        affinity = getattr(os, "sched_getaffinity", None)
        return min(8, len(affinity(0)) if affinity else os.cpu_count() or 1)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 256:
        raise UsageError(f"{JOBS_VARIABLE} is {text!r}", expected="a whole number from 1 to 256")
    return int(text)


def join_scan(
    testset: TestSet,
    scan: Scan,
    expected: ExpectedItems,
    convention: Convention,
    *,
    missing: Missing = "zero",
    keep: int = REPORTED_HITS,
    says_empty: bool = False,
) -> Ranking:
    """Give each judged row of a scan its worth, and match the results of queries where every result is looked at.

    Where the run can say that it answered with nothing (`says_empty`), no answer is no silence; a file of lines cannot.
    """
    query_ids = testset.query_ids
    entries = expected.start[scan.query] + scan.item
    level = expected.level[entries]
    columns = {
        "query": scan.query,
        "rank": scan.rank,
        "gain": expected.gain[entries],
        "level": level,
        "state": np.where(level < 0, int(State.POOLED), int(State.JUDGED)).astype(np.int8),
        "item": scan.item,
        "tie_first": scan.tie_first,
        "tie_last": scan.tie_last,
    }
    matched: dict[int, Part] = {}
    if expected.whole.any():
        matched = _matched(testset, scan, expected, convention, keep, says_empty=says_empty)
        columns = _with_rows(columns, matched)
    parts = [matched.get(query, _NO_PART) for query in range(len(query_ids) if matched else 0)]
    covers = convention.credit == "every" and bool(testset.targets)
    ranking = Ranking(
        query_ids=query_ids,
        **columns,
        n_returned=scan.n_returned,
        n_duplicates=scan.n_duplicates,
        expected_query=expected.query,
        expected_gain=expected.gain,
        expected_level=expected.level,
        expected_count=expected.count,
        closed_world=expected.closed_world,
        outcomes=tuple(Outcome.ANSWERED if answered else Outcome.MISSING for answered in scan.answered.tolist()),
        convention=convention,
        reasons={query_ids[i]: "no answer in the run" for i in np.flatnonzero(~scan.answered)},
        top=FirstHits(
            query_ids, scan, expected, {query_ids[query]: tuple(part.top) for query, part in matched.items()}
        ),
        groups=expected.groups,
        covered=_covered(scan, expected, parts) if covers else None,
        aspects=aspects_of([part.aspects for part in parts]),
        silence=silence_column([part.silence for part in parts]),
        unplaced=unplaced_column([part.n_unplaced for part in parts]),
        classes=classes_of(testset, query_ids),
    )
    # Where nothing should be found, no line is the right answer, and not one that is missing.
    kept = scan.answered if ranking.silence is None else scan.answered | (ranking.silence == Silence.KEPT)
    if missing == "zero" or kept.all():
        return ranking
    from cranfield.ranking.transform import only_queries

    return only_queries(ranking, kept)


def _covered(scan: Scan, expected: ExpectedItems, parts: Sequence[Part]) -> NDArray[np.int32]:
    """[E]: rank of the first result that covers each item, of queries that were joined and of those that were scanned."""
    covered = covered_column([part.covered for part in parts], expected.start)
    entries = expected.start[scan.query] + scan.item
    covered[entries[::-1]] = scan.rank[::-1]  # the last to write is the first by rank
    return covered


_NO_PART = Part(Outcome.ANSWERED, 0, 0, None)


def _matched(
    testset: TestSet, scan: Scan, expected: ExpectedItems, convention: Convention, keep: int, *, says_empty: bool
) -> dict[int, Part]:
    """Place of a query to its results, joined, where every result is looked at; they were all kept."""
    parts: dict[int, Part] = {}
    by_score = convention.file_order == "score"
    for query in np.flatnonzero(expected.whole).tolist():
        hits = [Hit(id_text(doc_id), score) for doc_id, score, _ in scan.top.of(query)]
        outcome = Outcome.ANSWERED if scan.answered[query] else Outcome.MISSING
        part = Part(outcome, len(hits), 0, None)
        ties = tied_ranks([compared(hit.score, convention) for hit in hits]) if by_score else None
        expectation = expect(testset, testset.query_ids[query], convention)
        join(expectation, hits, part, keep, ties)
        part.silence = silence_of(expectation.negative, hits, outcome, {}, missing_is_silence=not says_empty)
        parts[query] = part
    return parts


def _with_rows(columns: Mapping[str, np.ndarray], parts: Mapping[int, Part]) -> dict[str, np.ndarray]:
    """Add the rows of the queries that were joined."""
    more = Rows.columns([row for part in parts.values() for row in part.rows])
    queries = list(parts)
    more["query"] = np.repeat(np.array(queries, dtype=np.int32), [len(parts[query].rows) for query in queries])
    both = {name: np.concatenate((column, more[name])) for name, column in columns.items()}
    order = np.lexsort((both["rank"], both["query"]))
    return {name: column[order] for name, column in both.items()}


class FirstHits(Mapping[str, tuple[RankedHit, ...]]):
    """Query id to its first hits, made when somebody looks."""

    def __init__(
        self,
        query_ids: Sequence[str],
        scan: Scan,
        expected: ExpectedItems,
        matched: Mapping[str, tuple[RankedHit, ...]],
    ) -> None:
        self._place = {query_id: place for place, query_id in enumerate(query_ids)}
        self._scan = scan
        self._expected = expected
        self._matched = matched

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)

    def __getitem__(self, query_id: str) -> tuple[RankedHit, ...]:
        if query_id in self._matched:
            return self._matched[query_id]
        query, expected = self._place[query_id], self._expected
        hits = []
        for rank, (doc_id, score, item) in enumerate(self._scan.top.of(query), start=1):
            name = id_text(doc_id)
            if item == UNJUDGED:
                hits.append(RankedHit(rank, name, score))
                continue
            entry = int(expected.start[query]) + item
            level, gain = int(expected.level[entry]), float(expected.gain[entry])
            state = State.POOLED if level < 0 else State.JUDGED
            hits.append(RankedHit(rank, name, score, None, state, level, gain, name, credited=True))
        return tuple(hits)

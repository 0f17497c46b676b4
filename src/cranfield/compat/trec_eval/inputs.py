"""The two files of a command line, read and joined as trec_eval would."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import ProblemList, RunFormatError, TestSetError, UsageError, unknown_name
from cranfield.base.words import join_first
from cranfield.compat.trec_eval.options import Options, QrelsFormat
from cranfield.formats.io.files import opened, shown
from cranfield.formats.testsets.trec import read_judge_qrels, read_preferences, read_qrels, read_qrels_as_preferences
from cranfield.model import Convention, GroupedJudgment, Outcome, TestSet, convention_named
from cranfield.ranking import Missing, Ranking, rank_file
from cranfield.ranking.scan import RUN_COLUMNS

TAIL_BYTES = 65536
"""How much of the end of a run is looked at for its last line, before all of it is."""

READERS: dict[QrelsFormat, Callable[[Path], TestSet]] = {
    "qrels": read_qrels,
    "qrels_jg": read_judge_qrels,
    "prefs": read_preferences,
    "qrels_prefs": read_qrels_as_preferences,
}


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What was read."""

    testset: TestSet
    """Queries in the order of their bytes, in which trec_eval prints them."""
    ranking: Ranking
    run_tag: str
    """Run tag of the last line, as trec_eval has it."""
    unanswered: NDArray[np.bool_]  # [Q] queries of the ranking that the run does not answer
    absent: tuple[str, ...]
    """Judged queries that it does not answer, ranked or left out."""

    def absence(self) -> str:
        """Say that they are left out."""
        return f"judged queries without a result are left out: {join_first(self.absent)}; -c counts them as 0"


def read_inputs(options: Options) -> Inputs:
    """Read QRELS and RUN.

    Raises:
        TestSetError: QRELS cannot be read in its format, or has a grade that is no whole number.
        RunFormatError: RUN has a line that is no result.
        NoCommonQueryError: they share no query.
    """
    testset = _in_order(READERS[options.qrels_format](Path(options.qrels)))
    if options.only_query is not None:
        if options.only_query not in testset.query_ids:
            raise UsageError(unknown_name("query", options.only_query, testset.query_ids, path="-D"))
        testset = replace(testset, queries=tuple(query for query in testset.queries if query.id == options.only_query))
    if testset.grouping != "preference":
        _check_grades(testset, Path(options.qrels))
    convention = _convention(options)
    if testset.grouping == "preference" and convention.score_width == 32:
        testset = _rounded(testset)
    # Version 9 averages over the queries that are missing and does not look at them.
    missing: Missing = "zero" if options.complete and options.version == 10 else "skip"
    path = Path(options.run)
    ranked = rank_file(testset, path, convention, missing=missing, depth=options.depth, keep=0)
    unanswered = np.array([outcome is Outcome.MISSING for outcome in ranked.ranking.outcomes])
    answered = set(itertools.compress(ranked.ranking.query_ids, ~unanswered))
    absent = tuple(query_id for query_id in testset.query_ids if query_id not in answered)
    return Inputs(testset, ranked.ranking, last_tag(path), unanswered, absent)


def last_tag(path: Path) -> str:
    """The first word of the sixth column of the last result of a run file."""
    with opened(path, RunFormatError) as stream:
        if not stream.seekable():
            return _tag_of_last(stream)
        size = stream.seek(0, io.SEEK_END)
        stream.seek(max(0, size - TAIL_BYTES))
        stream.readline()  # the rest of a line
        if tag := _tag_of_last(stream):
            return tag
        stream.seek(0)
        return _tag_of_last(stream)


def _tag_of_last(lines: Iterable[bytes]) -> str:
    tag = b""
    for line in lines:
        columns = line.split(None, RUN_COLUMNS)
        if len(columns) >= RUN_COLUMNS and not line.startswith(b"#"):
            tag = columns[RUN_COLUMNS - 1]
    return tag.decode("utf-8", "surrogateescape")


def _convention(options: Options) -> Convention:
    convention = convention_named(f"trec{options.version}")
    # trec_eval breaks ties the other way round where it reads preferences.
    return replace(convention, ties="ascending") if options.qrels_format in {"prefs", "qrels_prefs"} else convention


def _in_order(testset: TestSet) -> TestSet:
    queries = sorted(testset.queries, key=lambda query: query.id.encode("utf-8", "surrogateescape"))
    return replace(testset, queries=tuple(queries))


def _check_grades(testset: TestSet, path: Path) -> None:
    problems = ProblemList(TestSetError)
    for query_id, doc_id, grade in _judgments(testset):
        if grade != int(grade):
            problems.add(
                f"query {query_id!r}, document {doc_id!r} has the grade {grade:g}",
                path=shown(path),
                expected="a whole number, as in trec_eval",
                hint="`cranfield evaluate TESTSET RUN` takes other grades.",
            )
    problems.raise_if_any()


def _judgments(testset: TestSet) -> Iterator[tuple[str, str, float]]:
    if testset.grouping is None:
        for query_id, grades in testset.grades.items():
            yield from ((query_id, doc_id, grade) for doc_id, grade in grades.items())
    for query_id, judgments in testset.groups.items():
        yield from ((query_id, judgment.doc_id, judgment.value) for judgment in judgments)


def _rounded(testset: TestSet) -> TestSet:
    """Preferences as 32-bit floats, in which version 9 holds them."""

    def rounded(judgment: GroupedJudgment) -> GroupedJudgment:
        return replace(judgment, value=float(np.float32(judgment.value)))

    return replace(
        testset, groups={query_id: tuple(map(rounded, judged)) for query_id, judged in testset.groups.items()}
    )

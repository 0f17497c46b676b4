"""Values by query and in summary, as the lines that trec_eval prints; z-scores against a reference set of runs."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import (
    InputError,
    ProblemList,
    RunFormatError,
    TestSetError,
    UsageError,
    shorten,
    unknown_name,
)
from cranfield.base.words import join_first
from cranfield.compat.trec_eval.names import LEAST, PrintedColumn, PrintPlan
from cranfield.compat.trec_eval.options import Options, QrelsFormat
from cranfield.formats.io.delimited import number_of
from cranfield.formats.io.files import opened
from cranfield.formats.io.files import shown as shown_path
from cranfield.formats.testsets.trec import read_judge_qrels, read_preferences, read_qrels, read_qrels_as_preferences
from cranfield.measures import compute
from cranfield.model import Convention, GroupedJudgment, Outcome, TestSet, convention_named
from cranfield.ranking import FloatQ, Missing, Ranking, ResultState, rank_file
from cranfield.ranking.scan import RUN_COLUMNS
from cranfield.ranking.value import condensed

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
                path=shown_path(path),
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


ALL = "all"
MISSING = -1000000.0
"""What trec_eval prints where the file does not say."""
LINE = "query measure mean deviation"

Reference = Mapping[tuple[str, str], tuple[float, float]]
"""(query, measure as printed) to (mean, standard deviation)."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column, as text."""

    label: str
    """Padded as it is printed; marked with a Z where values are z-scores."""
    by_query: Sequence[str] | None
    """None where it is printed for all queries only, or it is not requested."""
    summary: str | None


def output(plan: PrintPlan, inputs: Inputs, options: Options) -> Iterator[str]:
    """Everything that goes to stdout, a query at a time."""
    columns = shown(plan, inputs, options)
    if options.by_query:
        printed = [(column.label, column.by_query) for column in columns if column.by_query is not None]
        for place, query_id in enumerate(inputs.ranking.query_ids):
            yield "".join(f"{label}\t{query_id}\t{texts[place]}\n" for label, texts in printed)
    if options.summary:
        lines = [(column.label, column.summary) for column in columns if column.summary is not None]
        yield "".join(f"{label}\t{ALL}\t{summary}\n" for label, summary in lines)


def shown(plan: PrintPlan, inputs: Inputs, options: Options) -> list[ShownColumn]:
    """Score every column."""
    reference = read_zscores(Path(options.zscores)) if options.zscores is not None else None
    # Several judges have a list each, and preferences look at nothing but what is judged.
    whole = inputs.ranking.groups is not None or not options.judged_only
    seen = inputs.ranking if whole else condensed(inputs.ranking)
    return [_shown(column, seen, inputs, options, reference) for column in plan.columns]


def _shown(
    column: PrintedColumn, ranking: Ranking, inputs: Inputs, options: Options, reference: Reference | None
) -> ShownColumn:
    name, label = column.row.name, f"{column.label:<22}"
    n_queries = len(inputs.testset.queries) if options.complete else ranking.n_queries
    if name == "runid":
        return ShownColumn(label, None, inputs.run_tag)
    if name == "relstring":
        return ShownColumn(label, [f"'{text}'" for text in _relevance(column, ranking, inputs, options)], None)
    label = label if reference is None else f"Z{label}"
    if name == "num_q":
        return ShownColumn(label, None, str(n_queries) if reference is None else f"{n_queries:6.4f}")
    values = _values(column, ranking, inputs, options)
    if column.aggregate == "geometric mean":
        values = np.log(np.maximum(values, LEAST))
    if reference is not None:
        values = np.array(zscores(values.tolist(), ranking.query_ids, column.label, reference))
    total = float(np.cumsum(values)[-1])  # one after the other, as trec_eval adds
    if name == "num_rel" and options.complete:
        total = float(sum(grade > 0 for grades in inputs.testset.grades.values() for grade in grades.values()))
    if column.aggregate == "geometric mean":
        total += (n_queries - ranking.n_queries) * np.log(LEAST)
        return ShownColumn(label, None, f"{np.exp(total / n_queries):6.4f}")
    form = _count if column.aggregate == "sum" and reference is None else "{:6.4f}".format
    texts = list(map(form, values.tolist())) if options.by_query else None
    return ShownColumn(label, texts, form(total if column.aggregate == "sum" else total / n_queries))


def _count(value: float) -> str:
    return str(int(value))


def _values(column: PrintedColumn, ranking: Ranking, inputs: Inputs, options: Options) -> FloatQ:
    """float64[Q]: the value of each query."""
    total = np.zeros(ranking.n_queries)
    for measure in reversed(column.measures):
        values, scored, _ = compute(measure, ranking)
        if column.row.name == "utility" and not scored.all():
            raise UsageError(
                f"-m {column.label.replace('_', '.', 1)}: the fourth parameter needs the size of the collection",
                expected="-N N, at least the number of documents returned and judged",
            )
        total += values
    values = total / len(column.measures)
    absent = inputs.unanswered
    if column.row.name == "utility":
        values[absent] = _utility_of_nothing(column, values[absent], options)
    elif column.row.name == "rbp_resid":
        values[absent] = 0.0 if column.label == "rbp_resid" or options.judged_only else 1.0
    return values


def _utility_of_nothing(column: PrintedColumn, values: FloatQ, options: Options) -> FloatQ:
    """A query without an answer is worth 0; trec_eval 10 gives it one unknown result where parameters are given."""
    if column.label == "utility":
        return np.zeros(len(values))
    if options.judged_only:
        return values
    return np.asarray(values + _number(column, "wrong", -1.0) - _number(column, "spared", 0.0))


def _number(column: PrintedColumn, name: str, default: float) -> float:
    value = column.measures[0].param(name, default)
    return float(value) if isinstance(value, int | float) else default


def _relevance(column: PrintedColumn, ranking: Ranking, inputs: Inputs, options: Options) -> list[str]:
    """One character for each of the first results: its grade, `-` where it was not judged, `.` where only pooled."""
    length = column.length
    lengths = np.minimum(ranking.n_returned, length)
    if column.label != "relstring" and not options.judged_only:  # as for utility: one unknown result
        lengths[inputs.unanswered] = min(length, 1)
    strings = [["-"] * n for n in lengths.tolist()]
    rows = np.flatnonzero(ranking.rank <= length)
    for query, rank, level, state in zip(
        *(column[rows].tolist() for column in (ranking.query, ranking.rank, ranking.level, ranking.state)), strict=True
    ):
        strings[query][rank - 1] = "." if state == ResultState.POOLED else ">" if level > 9 else str(level)
    return ["".join(characters) for characters in strings]


def read_zscores(path: Path) -> Reference:
    """Read lines `query measure mean deviation`.

    Raises:
        InputError: with every bad line, and with lines that say the same thing twice.
    """
    problems = ProblemList(InputError)
    reference: dict[tuple[str, str], tuple[float, float]] = {}
    with opened(path, InputError) as stream:
        for number, line in enumerate(stream, start=1):
            columns = [column.decode("utf-8", "surrogateescape") for column in line.split()]
            if not columns:
                continue
            numbers = [found for text in columns[2:] if (found := number_of(text)) is not None]
            if len(columns) != len(LINE.split()) or len(numbers) < len(columns[2:]):
                got = shorten(" ".join(columns))
                problems.add("cannot read the line", path=str(path), line=number, expected=f"`{LINE}`", got=got)
                continue
            key = (columns[0], columns[1])
            if key in reference:
                what = f"query {key[0]!r}, measure {key[1]!r} is given twice"
                problems.add(what, path=str(path), line=number, expected="one line each")
            reference[key] = (numbers[0], numbers[1])
    problems.raise_if_any()
    return reference


def zscores(values: Sequence[float], query_ids: Sequence[str], label: str, reference: Reference) -> list[float]:
    """How many standard deviations each value is above the mean; MISSING where the reference does not say."""
    scores = []
    for query_id, value in zip(query_ids, values, strict=True):
        mean, deviation = reference.get((query_id, label), (math.nan, 0.0))
        if deviation:
            scores.append((value - mean) / deviation)
        else:
            scores.append(0.0 if value == mean else MISSING)
    return scores

"""Values by query and in summary, as the lines that trec_eval prints; z-scores against a reference set of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cranfield.base.errors import InputError, ProblemList, UsageError, shorten
from cranfield.compat.trec_eval.inputs import Inputs
from cranfield.compat.trec_eval.names import LEAST, PrintedColumn, PrintPlan
from cranfield.compat.trec_eval.options import Options
from cranfield.formats.io.delimited import number_of
from cranfield.formats.io.files import opened
from cranfield.measures import compute
from cranfield.ranking import FloatQ, Ranking, ResultState
from cranfield.ranking.value import condensed

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

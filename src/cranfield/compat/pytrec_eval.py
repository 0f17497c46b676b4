"""pytrec_eval's interface: `from cranfield.compat import pytrec_eval`, and code written for it goes on.

Names, defaults and values are those of pytrec_eval-terrier, which is trec_eval 9.0.8: scores are compared as 32-bit
floats, judged queries without a result are left out. What crashes there, or is passed over, is an error here: a cutoff of
0, a parameter that has no effect, a score that is no finite number, a run that shares no query with the judgments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from cranfield.base.errors import Problem, TestSetError, UsageError, unknown_name
from cranfield.compat.lines import QrelsLines, RunLines
from cranfield.compat.trec_eval.names import (
    LEAST,
    NICKNAMES,
    ROWS,
    SPECS,
    TABLE,
    PrintedColumn,
    TrecMeasure,
    common_parameters,
    measure_with,
)
from cranfield.compat.trec_eval.options import Options
from cranfield.formats.testsets.judgments import qrels_from_mapping
from cranfield.measures import Measure, compute
from cranfield.measures.parse import MAX_CUTOFF
from cranfield.model import convention_named
from cranfield.ranking.memory import rank_mapping
from cranfield.ranking.prepared import PreparedJudgments
from cranfield.ranking.value import FloatQ, Ranking, condensed

__version__ = "0.5.11"
"""Version of pytrec_eval-terrier whose interface and values these are."""
VERSION = 9

supported_measures: set[str] = {row.name for row in TABLE if row.name in NICKNAMES["all_trec"] and row.since <= VERSION}
supported_nicknames: dict[str, set[str]] = {
    name: set(NICKNAMES[name] & supported_measures) for name in ("official", "set", "all_trec")
}

_ARGUMENTS = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*")


class RelevanceEvaluator:
    """Scores runs against one set of judgments."""

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,  # noqa: FBT001, FBT002 - the interface is given
    ) -> None:
        """Take the judgments and what is wanted.

        Args:
            query_relevance: query id to document id to grade; a query without a judged document is left out.
            measures: names such as `map`, `ndcg_cut_10` and `P.5,10`, families (`ndcg_cut`: every usual cutoff) and
                nicknames (`official`).
            relevance_level: lowest grade that counts as relevant.
            judged_docs_only_flag: leave unjudged results out of every list.

        Raises:
            TestSetError: an id or a grade that is none, or no judgment at all.
            UsageError: with every measure that is unknown or has parameters that make no sense.
        """
        if (
            isinstance(relevance_level, bool)
            or not isinstance(relevance_level, int | np.integer)
            or relevance_level < 1
        ):
            raise UsageError(f"relevance_level is {relevance_level!r}", expected="a whole number of 1 or more")
        self._columns = _columns([measures] if isinstance(measures, str) else measures, int(relevance_level))
        self._judged_only = bool(judged_docs_only_flag)
        bare = [query_id for query_id, documents in query_relevance.items() if not isinstance(documents, Mapping)]
        if bare:
            got = f"{type(query_relevance[bare[0]]).__name__} for query {bare[0]!r}"
            raise TestSetError("judgments without grades", expected="document ids with their grades", got=got)
        judged = {query_id: documents for query_id, documents in query_relevance.items() if len(documents)}
        convention = convention_named("trec9")
        self._judged = PreparedJudgments(qrels_from_mapping(judged), convention) if judged else None

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Score a run.

        Args:
            scores: query id to document id to score, larger is better.

        Returns:
            Query id to measure to value, for each query that is judged and in the run. Nothing for an empty run.

        Raises:
            RunFormatError: an id or a score that is none.
            NoCommonQueryError: the run answers no judged query.
        """
        if not scores or self._judged is None:
            return {}
        ranking = rank_mapping(self._judged, scores, self._judged.convention, missing="skip", keep=0).ranking
        seen = condensed(ranking) if self._judged_only else ranking
        columns = [_values(column, seen).tolist() for column in self._columns]
        names = [column.label for column in self._columns]
        rows = zip(*columns, strict=True) if columns else iter([()] * ranking.n_queries)
        return {
            query_id: dict(zip(names, values, strict=True))
            for query_id, values in zip(ranking.query_ids, rows, strict=True)
        }


def compute_aggregated_measure(measure: str, values: Sequence[float]) -> float:
    """One number for all queries: the sum of counts, the geometric mean of `gm_` measures, else the mean.

    Per query a `gm_` measure is a logarithm.

    Raises:
        UsageError: there is no value.
    """
    if not len(values):
        raise UsageError(f"no value of {measure} to sum up", expected="at least one")
    if measure.startswith("num_"):
        return float(np.sum(values))
    return float(np.exp(np.mean(values)) if measure.startswith("gm_") else np.mean(values))


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the lines of a TREC run: `query Q0 document rank score tag`. Blank lines are skipped.

    Raises:
        RunFormatError: with every line that is none, and every document that a query lists twice.
    """
    lines = RunLines(f_run, str(getattr(f_run, "name", "run")))
    run: dict[str, dict[str, float]] = {}
    for line, query_id, doc_id, score in lines:
        if doc_id in run.setdefault(query_id, {}):
            lines.found.add(f"query {query_id!r} lists document {doc_id!r} twice", path=lines.name, line=line)
        run[query_id][doc_id] = score
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int | float]]:
    """Read the lines of TREC qrels: `query iteration document grade`. Blank lines are skipped.

    Raises:
        TestSetError: with every line that is none, and every document judged twice for a query.
    """
    lines = QrelsLines(f_qrel, str(getattr(f_qrel, "name", "qrels")))
    qrels: dict[str, dict[str, int | float]] = {}
    for line, query_id, _, doc_id, grade in lines:
        if doc_id in qrels.setdefault(query_id, {}):
            lines.found.add(f"query {query_id!r}, document {doc_id!r} is judged twice", path=lines.name, line=line)
        qrels[query_id][doc_id] = grade
    return qrels


def measures_named(text: str) -> list[Measure]:
    """What a name of trec_eval's stands for, in its order (`set_F.1.0,0.5`: one for each number); values that are no one
    measure are left out.

    Raises:
        UsageError: as `RelevanceEvaluator`.
    """
    name, arguments = _split(text)
    one_by_one = name in ROWS and len(ROWS[name].fills) == 1
    texts = [f"{name}.{argument}" for argument in arguments] if one_by_one and arguments else [text]
    return [column.measures[0] for each in texts for column in _columns([each], 1) if len(column.measures) == 1]


def _values(column: PrintedColumn, ranking: Ranking) -> FloatQ:
    """float64[Q]: the mean of the measures of a column; 0 where it is no number."""
    values = np.zeros(ranking.n_queries)
    for measure in column.measures:
        values += compute(measure, ranking)[0] / len(column.measures)
    return np.log(np.maximum(values, LEAST)) if column.aggregate == "geometric mean" else values


def _columns(measures: Iterable[str], rel: int) -> tuple[PrintedColumn, ...]:
    """The requested measures, in trec_eval's order. Parameters replace the usual ones of a measure."""
    requested: dict[str, set[str]] = {}
    problems: list[Problem] = []
    for text in measures:
        if text in supported_nicknames:
            for name in supported_nicknames[text]:
                requested.setdefault(name, set())
            continue
        name, arguments = _split(text)
        if name not in supported_measures:
            problems.append(unknown_name("measure", text, supported_measures, aliases=supported_nicknames))
        else:
            requested.setdefault(name, set()).update(arguments)
    columns: list[PrintedColumn] = []
    for row in TABLE:
        if row.name in requested:
            try:
                columns += _columns_of(row, sorted(requested[row.name], key=float), rel)
            except UsageError as error:
                problems += error.problems
    if problems:
        raise UsageError(problems)
    return tuple(columns)


def _split(text: str) -> tuple[str, list[str]]:
    """`P.5,10` and `P_5,10`: the name and its parameters."""
    if text in ROWS:
        return text, []
    for name in ROWS:
        if text.startswith((f"{name}_", f"{name}.")) and _ARGUMENTS.fullmatch(text[len(name) + 1 :]):
            return name, text[len(name) + 1 :].split(",")
    return text, []


def _columns_of(row: TrecMeasure, arguments: Sequence[str], rel: int) -> list[PrintedColumn]:
    if row.name not in SPECS:  # runid and relstring are no numbers
        return [PrintedColumn(row.name, row, ())]
    options = Options(level=rel)
    make = partial(measure_with, SPECS[row.name], common_parameters(SPECS[row.name], options))
    if row.takes in {"ranks", "shares"}:
        form: Callable[[float], str] = str if row.takes == "ranks" else "{:3.2f}".format
        cutoffs = [_cutoff(row, argument) for argument in arguments] if arguments else row.usual_cutoffs
        return [PrintedColumn(f"{row.name}_{form(cutoff)}", row, (make({}, cutoff),)) for cutoff in cutoffs]
    if not arguments:
        return [PrintedColumn(row.name, row, (make({}),))]
    if row.name == "11pt_avg":
        spec = SPECS["iprec_at_recall"]
        points = (measure_with(spec, common_parameters(spec, options), {}, float(argument)) for argument in arguments)
        return [PrintedColumn(row.name, row, tuple(points))]
    if len(row.fills) == 1 and len(arguments) == 1:
        return [PrintedColumn(row.name, row, (make({row.fills[0]: float(arguments[0])}),))]
    raise UsageError(
        f"{row.name}.{','.join(arguments)}: these parameters cannot be used", expected=f"{row.name} without parameters"
    )


def _cutoff(row: TrecMeasure, argument: str) -> float:
    if row.takes == "shares":
        return float(argument)
    if not argument.isdigit() or not 1 <= int(argument) <= MAX_CUTOFF:
        raise UsageError(f"{row.name}_{argument}: cutoff is {argument}", expected="a whole number of 1 or more")
    return int(argument)

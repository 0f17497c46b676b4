"""ir_measures' interface: `from cranfield.compat import ir_measures`, or `from cranfield.compat.ir_measures import nDCG`.

Every measure of the catalogue can be imported from here by its name. Values are those of ir_measures 0.4 (see the convention of
that name): scores are compared as 32-bit floats, a judged query without a result counts as 0 (`Accuracy`
leaves it out), and one that a measure is not defined for is left out. Ties fall as there, where each library has its own rule: see `cranfield.measures.measure`.
What is passed over there is an error here: a document twice in a query, two grades for a document, a run that shares no
query with the judgments, a measure by subtopic without subtopics.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from cranfield.base.errors import (
    MeasureError,
    ProblemList,
    RunFormatError,
    TestSetError,
    UnknownNameError,
    UsageError,
    unknown_name,
)
from cranfield.compat.lines import QrelsLines, RunLines
from cranfield.compat.pytrec_eval import measures_named
from cranfield.formats.io.files import opened
from cranfield.formats.io.table import Role, column_names, is_frame, is_parquet, read_arrays
from cranfield.formats.testsets.judgments import qrels_from_frame, qrels_from_mapping, qrels_from_rows
from cranfield.formats.testsets.trec import read_qrels, read_subtopic_qrels
from cranfield.measures import CATALOGUE, compute, parse
from cranfield.measures import Measure as Computed
from cranfield.measures.catalogue import ALIASES
from cranfield.measures.measure import WHY_NEEDED, MeasureSpec, convention_for, provider_of, spell
from cranfield.measures.own import load_plugins
from cranfield.model import Convention, Outcome, TestSet, convention_named
from cranfield.ranking.file import rank_file
from cranfield.ranking.memory import rank_arrays, rank_frame, rank_mapping
from cranfield.ranking.prepared import PreparedJudgments
from cranfield.ranking.value import FloatQ, Ranking
from cranfield.stats.describe import geometric_mean

__version__ = "0.4.3"
"""Version of ir_measures whose interface and values these are."""
_CONVENTION = convention_named("ir_measures")
ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
"""Some write alpha_nDCG with it."""
Value = str | int | float | bool | Mapping[int, float]


class NamedMeasure:
    """A name of the catalogue with some parameters; two that mean the same are equal.

    It is a spelling, which becomes a measure of the catalogue when it is used and until then may lack its cutoff.
    """

    def __init__(self, name: str, params: Mapping[str, Value] | None = None) -> None:
        """Take a name and parameters, the cutoff among them.

        Raises:
            UnknownNameError: the catalogue has no measure of that name.
        """
        name = _catalogued(name)
        if name not in CATALOGUE:
            raise UnknownNameError(unknown_name("measure", name, CATALOGUE, aliases=ALIASES))
        self.NAME = name
        self.params = dict(params or {})

    @classmethod
    def of(cls, measure: Computed) -> Measure:
        """The spelling of a measure of the catalogue."""
        spelled = cls(measure.name, {name: dict(v) if isinstance(v, tuple) else v for name, v in measure.params})
        return spelled if measure.cutoff is None else spelled @ measure.cutoff

    def __call__(self, **params: Value) -> Measure:
        """Set parameters: `P(rel=2)`, `nDCG(cutoff=10)`."""
        return Measure(self.NAME, self.params | params)

    def __matmul__(self, cutoff: float) -> Measure:
        """Set the cutoff: `P @ 5`."""
        return self(**{self.AT_PARAM: cutoff})

    def __getitem__(self, name: str) -> Value | None:
        """A parameter, or its default; None for a cutoff that is not set.

        Raises:
            KeyError: it has no such parameter.
        """
        if name == self.AT_PARAM or name in self.params:
            return self.params.get(name)
        default = next((p.default for p in self._spec.parameters if p.name == name), None)
        if default is None:
            raise KeyError(name)
        return dict(default) if isinstance(default, tuple) else default

    def iter_calc(self, qrels: Qrels, run: Run) -> Iterator[Metric]:
        """Score one run with this measure, query by query; see `Evaluator.iter_calc`."""
        return iter_calc([self], qrels, run)

    def calc_aggregate(self, qrels: Qrels, run: Run) -> float:
        """Score one run with this measure: one number; see `Evaluator.calc_aggregate`."""
        return calc_aggregate([self], qrels, run)[self]

    def calc(self, qrels: Qrels, run: Run) -> CalcResult:
        """Score one run with this measure: one number, and the values of every query."""
        aggregated, per_query = calc([self], qrels, run)
        return CalcResult(aggregated[self], per_query)

    @property
    def AT_PARAM(self) -> str:  # noqa: N802 - the interface is given
        """What `@` sets."""
        return "recall" if self._spec.cutoff_kind == "share" and self._spec.cutoff != "none" else "cutoff"

    @property
    def aggregate(self) -> str:
        """How the values of all queries become one: `mean`, `sum` or `geometric mean`."""
        return self._spec.aggregate

    @cached_property
    def computed(self) -> Computed:
        """The measure of the catalogue that it spells.

        Raises:
            UsageError: a parameter or the cutoff is not one of it, or is missing.
        """
        return parse(self._spelled(", "))

    @property
    def _spec(self) -> MeasureSpec:
        return CATALOGUE[self.NAME]

    def _spelled(self, separator: str) -> str:
        """As text, parameters in the catalogue's order, without those that are as they are anyway."""
        order = {parameter.name: place for place, parameter in enumerate(self._spec.parameters)}
        defaults = {parameter.name: parameter.default for parameter in self._spec.parameters}
        params = {name: _changes(value) for name, value in self.params.items() if name != self.AT_PARAM}
        named = sorted(params, key=lambda name: order.get(name, len(order)))
        shown = [f"{name}={_written(params[name])}" for name in named if params[name] not in (defaults.get(name), {})]
        text = self.NAME + (f"({separator.join(shown)})" if shown else "")
        cutoff = self.params.get(self.AT_PARAM)
        return text if cutoff is None else f"{text}@{_written(cutoff)}"

    def __str__(self) -> str:
        return self._spelled(",")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: Measure) -> bool:
        return str(self) < str(other)


Measure = NamedMeasure
"""Its name in ir_measures."""


class Qrel(NamedTuple):
    """One judgment."""

    query_id: str
    doc_id: str
    relevance: float
    iteration: str = "0"
    """The subtopic, for measures by subtopic."""


class ScoredDoc(NamedTuple):
    """One result."""

    query_id: str
    doc_id: str
    score: float


class Metric(NamedTuple):
    """One value of one query."""

    query_id: str
    measure: Measure
    value: float


class CalcResults(NamedTuple):
    """What `calc` gives back."""

    aggregated: dict[Measure, float]
    per_query: list[Metric]


class CalcResult(NamedTuple):
    """What `calc` of one measure gives back."""

    aggregated: float
    per_query: list[Metric]


Qrels = Mapping[str, Mapping[str, float]] | Iterable[Any] | str | Path
"""A mapping of mappings, rows with `query_id`, `doc_id`, `relevance` (and `iteration`), a data frame, or a file."""
Run = Mapping[str, Mapping[str, float]] | Iterable[Any] | str | Path
"""A mapping of mappings, rows with `query_id`, `doc_id`, `score`, a data frame, or a file."""


class Evaluator:
    """Measures and judgments, for any number of runs."""

    def __init__(self, measures: Iterable[Measure | str], qrels: Qrels) -> None:
        """Take measures and judgments.

        Raises:
            UsageError: with every measure that cannot be read.
            TestSetError: the judgments cannot be used.
        """
        self.measures = list(dict.fromkeys(map(parse_measure, measures)))
        _check(self.measures)
        by_subtopic = any(CATALOGUE[measure.NAME].needs == "subtopic" for measure in self.measures)
        self._judged = PreparedJudgments(_testset(qrels, by_subtopic=by_subtopic), _CONVENTION)
        self.qrel_qids = set(self._judged.query_ids)

    def iter_calc(self, run: Run) -> Iterator[Metric]:
        """Score a run, query by query.

        Raises:
            RunFormatError: the run cannot be used.
            NoCommonQueryError: it answers no judged query.
            MeasureError: the judgments do not allow a measure.
        """
        yield from self.calc(run).per_query

    def calc_aggregate(self, run: Run) -> dict[Measure, float]:
        """Score a run: one number for each measure. Raises as `iter_calc`."""
        return {measure: values.summed_up for measure, values in self._values(run).items()}

    def calc(self, run: Run) -> CalcResults:
        """Both. Raises as `iter_calc`."""
        values = self._values(run)
        per_query = [
            Metric(query_id, measure, value)
            for measure, found in values.items()
            for query_id, value in zip(found.query_ids, found.values.tolist(), strict=True)
        ]
        return CalcResults({measure: found.summed_up for measure, found in values.items()}, per_query)

    def _values(self, run: Run) -> dict[Measure, _Values]:
        run = run if isinstance(run, str | Path | Mapping) or is_frame(run) else list(run)
        rankings = {rules: _rank(self._judged, run, rules) for rules in map(_order, self.measures)}
        found: dict[Measure, _Values] = {}
        refused = ProblemList(MeasureError)
        for measure in self.measures:
            ranking = rankings[_order(measure)]
            absent = np.array([outcome is Outcome.MISSING for outcome in ranking.outcomes], dtype=np.bool_)
            values, scored, reasons = compute(measure.computed, ranking)
            if (why := next(iter(reasons.values()), "")) in WHY_NEEDED.values():
                refused.add(f"{measure} cannot be computed: {why}")
            there = scored | absent if provider_of(measure.computed).scores_absent else scored
            query_ids = list(itertools.compress(ranking.query_ids, there.tolist()))
            found[measure] = _Values(measure, query_ids, np.where(absent, 0.0, values)[there])
        refused.raise_if_any()
        return found


@dataclass(frozen=True, eq=False)
class _Values:
    """Values of the queries that have one."""

    measure: Measure
    query_ids: list[str]
    values: FloatQ

    @property
    def summed_up(self) -> float:
        """NaN where no query has a value."""
        if not self.query_ids:
            return math.nan
        if self.measure.aggregate == "geometric mean":
            return geometric_mean(self.values) or 0.0
        return float(self.values.sum() if self.measure.aggregate == "sum" else self.values.mean())


def evaluator(measures: Iterable[Measure | str], qrels: Qrels) -> Evaluator:
    """Measures and judgments, for any number of runs; see `Evaluator`."""
    return Evaluator(measures, qrels)


def iter_calc(measures: Iterable[Measure | str], qrels: Qrels, run: Run) -> Iterator[Metric]:
    """Score one run, query by query; see `Evaluator.iter_calc`."""
    return Evaluator(measures, qrels).iter_calc(run)


def calc_aggregate(measures: Iterable[Measure | str], qrels: Qrels, run: Run) -> dict[Measure, float]:
    """Score one run: one number for each measure; see `Evaluator.calc_aggregate`."""
    return Evaluator(measures, qrels).calc_aggregate(run)


def calc(measures: Iterable[Measure | str], qrels: Qrels, run: Run) -> CalcResults:
    """Score one run: one number for each measure, and the values of every query."""
    return Evaluator(measures, qrels).calc(run)


def parse_measure(measure: str | Measure) -> Measure:
    """Read a measure: `nDCG@10`, `P(rel=2)@5`.

    Raises:
        UsageError: it is none.
    """
    return measure if isinstance(measure, Measure) else Measure.of(parse(measure))


def parse_trec_measure(measure: str) -> list[Measure]:
    """Read a name of trec_eval's; a family (`ndcg_cut`) or nickname (`official`) stands for several measures.

    Raises:
        UsageError: trec_eval has no such measure, or it is no number.
    """
    found = [Measure.of(known) for known in measures_named(measure)]
    if not found:
        raise UsageError(f"trec_eval's {measure} is not supported here")
    return found


def read_trec_qrels(file: TextIO | str | Path) -> Iterator[Qrel]:
    """Read TREC qrels: a path, an open file, or text of several lines. Gzip is recognised.

    Raises:
        TestSetError: with every bad line, after the good ones.
    """
    lines, name = _lines(file, "qrels", TestSetError)
    for _, query_id, iteration, doc_id, grade in QrelsLines(lines, name):
        yield Qrel(query_id, doc_id, grade, iteration)


def read_trec_run(file: TextIO | str | Path) -> Iterator[ScoredDoc]:
    """Read a TREC run: a path, an open file, or text of several lines. Gzip is recognised.

    Raises:
        RunFormatError: with every bad line, after the good ones.
    """
    lines, name = _lines(file, "run", RunFormatError)
    for _, query_id, doc_id, score in RunLines(lines, name):
        yield ScoredDoc(query_id, doc_id, score)


def is_measure_name(name: str) -> bool:
    """Whether a name is one of a measure, or another name for one."""
    return _catalogued(name) in CATALOGUE


def _catalogued(name: str) -> str:
    """The catalogue's name; an unknown name may be a plugin's."""
    name = name.replace(ALPHA, "alpha")
    if name not in CATALOGUE and name not in ALIASES and not name.startswith("_"):
        load_plugins()
    return ALIASES.get(name, name)


def measure_names() -> list[str]:
    """Every name of a measure, and other names for them, that can stand in an import."""
    return sorted(name for name in (*CATALOGUE, *ALIASES) if name.isidentifier())


def _changes(value: Value) -> Value:
    """Grades whose gain a map from grade to gain changes; any other value as it is."""
    return {grade: gain for grade, gain in value.items() if grade != gain} if isinstance(value, Mapping) else value


def _written(value: Value) -> str:
    return spell(tuple(sorted(value.items())) if isinstance(value, Mapping) else value)


def _check(measures: Iterable[Measure]) -> None:
    """Name everything that is wrong with the measures before anything is read."""
    found = ProblemList(UsageError)
    for measure in measures:
        try:
            _ = measure.computed
        except UsageError as error:
            found.problems += error.problems
    found.raise_if_any()


def _testset(qrels: Qrels, *, by_subtopic: bool) -> TestSet:
    if isinstance(qrels, str | Path):
        path = Path(qrels)
        if not is_parquet(path, TestSetError):
            return read_subtopic_qrels(path) if by_subtopic else read_qrels(path)
    elif isinstance(qrels, Mapping):
        return qrels_from_mapping(qrels)
    if isinstance(qrels, str | Path) or is_frame(qrels):
        has_iteration = by_subtopic and "iteration" in column_names(qrels, TestSetError)
        return qrels_from_frame(qrels, columns={"subtopic": "iteration"} if has_iteration else None)
    rows = list(qrels)
    names: tuple[Role, ...] = ("query_id", "doc_id", "grade")
    columns = _columns(rows, dict(zip(names, ("query_id", "doc_id", "relevance"), strict=True)), Qrel)
    table = read_arrays(columns, TestSetError, name="qrels")
    text = {role: ids.text(0, table.n_rows) for role, ids in table.ids.items()}
    subtopics = [str(getattr(row, "iteration", "0")) for row in rows]
    judged = zip(text["query_id"], text["doc_id"], table.numbers["grade"].tolist(), subtopics, strict=True)
    return qrels_from_rows(judged, by_subtopic=by_subtopic)


def _order(measure: Measure) -> Convention:
    return convention_for(measure.computed, _CONVENTION)


def _rank(judged: PreparedJudgments, run: Run, rules: Convention) -> Ranking:
    return replace(_ranked(judged, run, rules), convention=rules)


def _ranked(judged: PreparedJudgments, run: Run, rules: Convention) -> Ranking:
    if isinstance(run, str | Path):
        path = Path(run)
        if not is_parquet(path, RunFormatError):
            return rank_file(judged.testset, path, rules, keep=0).ranking
        return rank_frame(judged, path, rules, keep=0).ranking
    if isinstance(run, Mapping):
        return rank_mapping(judged, run, rules, keep=0).ranking
    if is_frame(run):
        return rank_frame(judged, run, rules, keep=0).ranking
    names: tuple[Role, ...] = ("query_id", "doc_id", "score")
    columns = _columns(list(run), {name: str(name) for name in names}, ScoredDoc)
    return rank_arrays(judged, columns["query_id"], columns["doc_id"], columns["score"], rules, keep=0).ranking


def _columns(rows: list[Any], fields: Mapping[Role, str], example: type) -> dict[Role, Any]:
    """Rows as arrays of objects, one for each field."""
    columns: dict[Role, Any] = {}
    for role, field in fields.items():
        columns[role] = np.empty(len(rows), dtype=object)
        try:
            columns[role][:] = [getattr(row, field) for row in rows]
        except AttributeError:
            row = next(place for place, entry in enumerate(rows) if not hasattr(entry, field))
            raise UsageError(
                f"row {row} has no {field}",
                expected=f"rows such as {example.__name__}({', '.join(fields.values())})",
                got=f"a {type(rows[row]).__name__}",
            ) from None
    return columns


def _lines(
    file: TextIO | str | Path, what: str, error: type[TestSetError | RunFormatError]
) -> tuple[Iterable[str], str]:
    if isinstance(file, str) and "\n" in file:
        return file.split("\n"), what
    if isinstance(file, str | Path):
        return _decoded(Path(file), error), str(file)
    return file, str(getattr(file, "name", what))


def _decoded(path: Path, error: type[TestSetError | RunFormatError]) -> Iterator[str]:
    with (
        opened(path, error) as stream,
        io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="\n") as text,
    ):
        yield from text


_FUNCTIONS = (
    "CalcResults", "Evaluator", "Measure", "Metric", "Qrel", "ScoredDoc", "calc", "calc_aggregate", "evaluator",
    "iter_calc", "parse_measure", "parse_trec_measure", "read_trec_qrels", "read_trec_run",
)  # fmt: skip
__all__ = [*_FUNCTIONS, *measure_names()]  # noqa: PLE0604 - `import *` brings the measures, as it does there


def __getattr__(name: str) -> Measure:
    if is_measure_name(name):
        return Measure(name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__

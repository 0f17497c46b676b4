"""User-defined measures: a Python function becomes a row of the catalogue, in a program or in an installed package.

`define` adds one. A package that brings measures names a function without arguments, which calls `define`, as an entry
point of the group `cranfield.measures`; `load_plugins` calls it when a name is not found.
An error of such code is a `MeasureError` that names the measure or the package, and the query.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import MeasureError, Problem, shorten
from cranfield.measures.catalogue import ALIASES, CATALOGUE, TREC_CUTS, register
from cranfield.measures.measure import MeasureSpec, ParameterSpec
from cranfield.plugins import Plugin, plugins
from cranfield.ranking.value import FloatQ, Ranking, cut

NO_VALUE = "its function returned no value"
NAME = re.compile(r"[A-Za-z_][\w-]*")
TOLERANCE = 1e-9
"""A value may lie this far outside its range before that is an error."""

Per = Literal["query", "ranking"]
CUTOFFS = ("none", "optional", "required")

_OWN: dict[str, MeasureSpec] = {}
_TRIED: dict[tuple[str, str], Problem | None] = {}


@dataclass(frozen=True, slots=True, eq=False)
class QueryView:
    """One query as a measure sees it: its judged results by rank, and what was expected. The arrays are read-only.

    With a cutoff k the view ends at rank k, as if no more had been returned.
    """

    query_id: str
    cutoff: int | None
    """The k of `@k`; None without one."""
    n_returned: int
    """Results, judged or not."""
    ranks: NDArray[np.int32]  # [N] 1-based, ascending
    """Ranks of the judged results; results at other ranks are unjudged."""
    grades: NDArray[np.int32]  # [N]
    """Their grades, rounded down; 0 where an earlier result has the credit for the item; negative: pooled, unjudged."""
    gains: NDArray[np.float64]  # [N]
    """What they are worth."""
    expected_grades: NDArray[np.int32]  # [M]
    """Grades of the expected items, best first."""
    expected_gains: NDArray[np.float64]  # [M]
    expected_counts: NDArray[np.int64]  # [M]
    """Documents each item stands for: 1, unless it is a pattern; -1 where unknown."""


def define(  # noqa: PLR0913 - each argument is a column of the catalogue
    name: str,
    function: Callable[..., Any],
    *,
    title: str,
    sentence: str,
    per: Per = "query",
    higher_is_better: bool = True,
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002 - the column's name
    cutoff: Literal["required", "optional", "none"] = "none",
    parameters: tuple[ParameterSpec, ...] = (),
    aliases: tuple[str, ...] = (),
    formula: str = "",
    source: str = "",
    why_unscored: str = NO_VALUE,
) -> MeasureSpec:
    """Add a measure of your own to the catalogue: it parses, prints, is compared and reported like any other.

    Args:
        name: how it is written, `NAME` or `NAME@k`.
        function: with `per="query"` it is called with a `QueryView`, once per query, and returns a number, or None where
            the query has no value. With `per="ranking"` it is called with the whole `Ranking` and the cutoff, and returns
            float64[Q], NaN where a query has no value. Parameters follow by name.
        title: its name in words.
        sentence: what it says, in words that a reader of a report knows.
        per: what the function is called with.
        higher_is_better: the direction, which comparisons and gates go by.
        range: lowest and highest value; one beyond is an error. `float("inf")` where there is no bound.
        cutoff: whether `@k` must, may or may not follow.
        parameters: what may stand in brackets.
        aliases: other names that are understood.
        formula: shown in the catalogue; where the function is defined, when empty.
        source: shown in the catalogue; where the function is defined, when empty.
        why_unscored: why a query has no value, as reports say it.

    Returns:
        The row that was added. `forget` takes it out again.

    Raises:
        MeasureError: naming each thing wrong with the arguments.
        UsageError: the name is taken.
    """
    problems = list(_wrong(name, aliases, function, per, range, cutoff, {"title": title, "sentence": sentence}))
    if problems:
        raise MeasureError(problems)
    place = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
    wrapped = PerQuery(name, function, range) if per == "query" else PerRanking(name, function, range)
    spec = MeasureSpec(
        name=name,
        title=title,
        sentence=sentence,
        formula=formula or f"{place}(…)",
        cutoff=cutoff,
        kernel=wrapped,
        source=source or place,
        parameters=parameters,
        aliases=aliases,
        range=range,
        higher_is_better=higher_is_better,
        why_unscored=why_unscored,
        is_own=True,
    )
    register(spec)
    _OWN[name] = spec
    return spec


def forget(name: str) -> None:
    """Take a measure that `define` added out of the catalogue, so that the name is free again.

    Raises:
        MeasureError: `define` did not add it.
    """
    if name not in _OWN:
        raise MeasureError(f"measure {name!r} is not one of your own", expected=", ".join(sorted(_OWN)) or "none is")
    del _OWN[name], CATALOGUE[name]
    for alias in [alias for alias, meant in ALIASES.items() if meant == name]:
        del ALIASES[alias]


def load_plugins() -> tuple[Problem, ...]:
    """Load every installed package that brings measures, each once.

    Returns:
        What is wrong with those that could not be loaded, at every call: a broken plugin is never passed over in silence.
    """
    for plugin in plugins("cranfield.measures"):
        key = (plugin.name, plugin.point.value)
        if key not in _TRIED:
            _TRIED[key] = _load(plugin)
    return tuple(problem for problem in _TRIED.values() if problem is not None)


def _load(plugin: Plugin) -> Problem | None:
    """Call the function of a plugin; whatever it raises is the plugin's fault."""
    try:
        register_measures = plugin.load()
        if not callable(register_measures):
            return plugin.wrong_type(register_measures, "a function without arguments")
        register_measures()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return plugin.problem(error)
    return None


@dataclass(frozen=True, slots=True)
class PerQuery:
    """A kernel that calls a user's function once per query."""

    name: str
    function: Callable[..., Any]
    range: tuple[float, float]

    def __call__(self, ranking: Ranking, cutoff: int | None, **parameters: Any) -> FloatQ:
        """float64[Q]; NaN where the function gave None."""
        values = np.full(ranking.n_queries, np.nan)
        problems: list[Problem] = []
        cause: Exception | None = None
        for place, view in enumerate(_views(ranking, cutoff)):
            try:
                result = self.function(view, **parameters)
            except Exception as error:  # noqa: BLE001 - the function may raise anything
                cause = cause or error
                path, line = _where(error, self.function)
                message = f"measure {self.name}, query {view.query_id!r}: {_what(error)}"
                problems.append(Problem(message, path=path, line=line))
                continue
            if result is None:
                continue
            wrong = _not_a_value(result, self.range)
            if wrong:
                message = f"measure {self.name}, query {view.query_id!r}: its function returned an invalid value"
                problems.append(Problem(message, expected=wrong, got=shorten(result)))
            else:
                values[place] = float(result)
        if problems:
            raise MeasureError(problems) from cause
        return values


@dataclass(frozen=True, slots=True)
class PerRanking:
    """A kernel that calls a user's function with the whole Ranking, and checks its values."""

    name: str
    function: Callable[..., Any]
    range: tuple[float, float]

    def __call__(self, ranking: Ranking, cutoff: int | None, **parameters: Any) -> FloatQ:
        """float64[Q]; NaN where the function gave NaN."""
        try:
            result = self.function(_read_only(ranking), cutoff, **parameters)
        except Exception as error:
            path, line = _where(error, self.function)
            raise MeasureError(Problem(f"measure {self.name}: {_what(error)}", path=path, line=line)) from error
        whose = f"measure {self.name}: its function returned invalid values"
        wanted = f"float64[{ranking.n_queries}], one value per query"
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiub":
            raise MeasureError(whose, expected=wanted, got=shorten(result))
        if result.shape != (ranking.n_queries,):
            raise MeasureError(whose, expected=wanted, got=f"the shape {result.shape}")
        values = result.astype(np.float64)
        low, high = self.range
        beyond = np.isinf(values) | (values < low - TOLERANCE) | (values > high + TOLERANCE)
        problems = [
            Problem(
                f"measure {self.name}, query {ranking.query_ids[place]!r}: its function returned an invalid value",
                expected=_expected(self.range),
                got=repr(float(values[place])),
            )
            for place in np.flatnonzero(beyond)
        ]
        if problems:
            raise MeasureError(problems)
        return values


def _views(ranking: Ranking, cutoff: int | None) -> Iterator[QueryView]:
    """Every query of a ranking, cut at the cutoff, in order."""
    if cutoff is not None:
        ranking = cut(ranking, cutoff)
    rows = np.searchsorted(ranking.query, np.arange(ranking.n_queries + 1)).tolist()
    entries = ranking.expected_start.tolist()
    returned = ranking.n_returned.tolist()
    columns = [_locked(column) for column in (ranking.rank, ranking.level, ranking.gain)]
    expected = [_locked(column) for column in (ranking.expected_level, ranking.expected_gain, ranking.expected_count)]
    for place, query_id in enumerate(ranking.query_ids):
        ranks, grades, gains = (column[rows[place] : rows[place + 1]] for column in columns)
        levels, worth, counts = (column[entries[place] : entries[place + 1]] for column in expected)
        yield QueryView(query_id, cutoff, returned[place], ranks, grades, gains, levels, worth, counts)


def _read_only(ranking: Ranking) -> Ranking:
    """The same ranking, which other measures look at too, with columns that cannot be written to."""
    values = {field.name: getattr(ranking, field.name) for field in fields(ranking)}
    columns: dict[str, Any] = {
        name: _locked(column) for name, column in values.items() if isinstance(column, np.ndarray)
    }
    return replace(ranking, **columns)


def _locked(column: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, not to be written to."""
    view = column.view()
    view.flags.writeable = False
    return view


def _wrong(
    name: str,
    aliases: tuple[str, ...],
    function: object,
    per: str,
    bounds: tuple[float, float],
    cutoff: str,
    words: dict[str, str],
) -> Iterator[Problem]:
    """What is wrong with the arguments of `define`."""
    for given in (name, *aliases):
        if not isinstance(given, str) or not NAME.fullmatch(given):
            yield Problem(
                f"measure name {shorten(given)}", expected="a letter, then letters, digits, underscores or hyphens"
            )
        elif given in TREC_CUTS:
            yield Problem(f"measure name {given!r} is trec_eval's name for {TREC_CUTS[given]}", expected="a new name")
    whose = f"measure {name!r}"
    if not callable(function):
        yield Problem(f"{whose}: function is {shorten(function)}", expected="a callable")
    if per not in ("query", "ranking"):
        yield Problem(f"{whose}: per is {shorten(per)}", expected="'query' or 'ranking'")
    if cutoff not in CUTOFFS:
        yield Problem(f"{whose}: cutoff is {shorten(cutoff)}", expected="'none', 'optional' or 'required'")
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and bounds[0] < bounds[1]):
        yield Problem(f"{whose}: range is {shorten(bounds)}", expected="a pair: the lowest value, then the highest")
    for key, text in words.items():
        if not isinstance(text, str) or not text.strip():
            yield Problem(f"{whose}: {key} is {shorten(text)}", expected="text for the readers of a report")


def _not_a_value(result: object, bounds: tuple[float, float]) -> str:
    """What was expected instead of this; empty when it is a value."""
    if not isinstance(result, Real | np.bool_):
        return "a number, or None where the query has no value"
    low, high = bounds
    try:
        value = float(result)
    except OverflowError:  # a whole number beyond any float
        return _expected(bounds)
    inside = math.isfinite(value) and low - TOLERANCE <= value <= high + TOLERANCE
    return "" if inside else _expected(bounds)


def _expected(bounds: tuple[float, float]) -> str:
    return f"a finite number from {bounds[0]:g} to {bounds[1]:g}, its declared range"


def _what(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _where(error: Exception, function: Callable[..., Any]) -> tuple[str | None, int | None]:
    """File and line of the function that raised it, or that called what did; nothing when the call itself did."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is ours
    code = getattr(function, "__code__", None)
    inside = [frame for frame in frames if code is not None and frame.filename == code.co_filename] or frames
    return (inside[-1].filename, inside[-1].lineno) if inside else (None, None)

"""Weighted sums of measures, each over the queries of a stratum: `0.35 * RR[tier=hard] + 0.4 * nDCG@10`.

A sum is one number, with one value per query whose mean it is, so that every interval, test and rule of a mean applies. Axis: Q
queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import CranfieldError, MeasureError, Problem, shorten, unknown_name
from cranfield.measures.catalogue import CATALOGUE, compute
from cranfield.measures.measure import COMPOSITE, READERS, Measure, MeasureSpec, spell
from cranfield.model import Query, is_in_stratum, query_strata
from cranfield.ranking.value import FloatQ, Ranking

OUTSIDE = "it is in no stratum of the sum"
MAX_WEIGHT = 1e6
EXAMPLE = "0.35 * RR[tier=hard] + 0.25 * RR[tier=easy] + 0.4 * nDCG@10"
_QUOTED = r"'[^']*'|\"[^\"]*\""
_PLAIN = r"[^\s'\"=()\[\]{}]"
_BARE = rf"{_PLAIN}(?:[^'\"=()\[\]{{}}]*{_PLAIN})?"
_TERM = re.compile(
    rf"\s*(?:(?P<weight>[^*()\[\]{{}}'\"]*?)\s*\*\s*)?(?P<measure>.*?)\s*(?:\[(?P<stratum>(?:{_QUOTED}|[^\[\]'\"])*)\])?\s*",
    re.DOTALL,
)
_STRATUM = re.compile(rf"\s*(?P<key>{_QUOTED}|{_BARE})\s*=\s*(?P<value>{_QUOTED}|{_BARE})\s*")
_WEIGHT = re.compile(r"[0-9]+\.?[0-9]*(?:[eE]-?[0-9]+)?|\.[0-9]+")


@dataclass(frozen=True, slots=True)
class Term:
    """One term: a weight, a measure, and the stratum whose queries it is averaged over."""

    weight: float
    """Under 0 where a lower value of the measure is better."""
    measure: Measure
    key: str = ""
    """Key of the stratum; empty: every query."""
    value: str = ""

    def holds(self, query: Query) -> bool:
        """Whether a query is in its stratum."""
        return not self.key or is_in_stratum(query, self.key, self.value)

    def __str__(self) -> str:
        weight = "" if abs(self.weight) == 1 else f"{spell(abs(self.weight))} * "
        stratum = f"[{_written(self.key)}={_written(self.value)}]" if self.key else ""
        return f"{weight}{self.measure.canonical}{stratum}"


def is_sum(text: str) -> bool:
    """Whether a spelling is that of a weighted sum: it has a weight, a stratum or a plus outside of brackets and quotes."""
    return any(char in "*[+" for _, char in _outside(text))


def read_sum(text: str) -> Measure:
    """Read a weighted sum.

    >>> str(read_sum("0.60*MRR[tier = hard] + .4 * nDCG@10"))
    '0.6 * RR[tier=hard] + 0.4 * nDCG@10'

    Raises:
        MeasureError: naming each thing wrong with it, with the number of its term.
    """
    terms, problems = [], list[Problem]()
    for number, (sign, part) in enumerate(_parts(text), start=1):
        try:
            terms.append(_term(sign, part))
        except CranfieldError as error:
            problems += (
                replace(each, message=f"term {number} of {shorten(text)}: {each.message}") for each in error.problems
            )
    if problems:
        raise MeasureError(problems)
    first, *others = terms
    spelled = ("-" if first.weight < 0 else "") + str(first)
    spelled += "".join(f" {'-' if term.weight < 0 else '+'} {term}" for term in others)
    depths = [term.measure.depth for term in terms]
    cutoff = None if None in depths else max(depth for depth in depths if depth is not None)
    return Measure(COMPOSITE, (("terms", spelled),), cutoff)


@lru_cache(maxsize=256)
def terms_of(measure: Measure) -> tuple[Term, ...]:
    """The terms of a weighted sum."""
    return tuple(_term(sign, part) for sign, part in _parts(str(measure)))


def weighted_sum(measure: Measure, ranking: Ranking) -> tuple[FloatQ, NDArray[np.bool_], dict[str, str]]:
    """Score every query: its part in the sum, times the number of queries that have one.

        v_q = sum_j w_j (N / n_j) m_j(q),  over the terms j in whose stratum q is and whose measure has a value for q

    n_j are the queries of term j with a value, N those of any term: the mean of v over them is the sum of w_j times the mean
    of m_j over its stratum.

    Returns:
        float64[Q] values (0 where unscored), bool[Q] which queries are scored, and the reason of each that is not. No query is
        scored where a term has no query with a value.

    Raises:
        MeasureError: a stratum that no query has, or a convention under which each measure has a ranking of its own.
    """
    terms = terms_of(measure)
    if problems := [*_wrong_convention(measure, ranking), *_unknown_strata(measure, ranking)]:
        raise MeasureError(problems)
    total, has_any = np.zeros(ranking.n_queries), np.zeros(ranking.n_queries, dtype=np.bool_)
    reasons: dict[str, str] = {}
    empty = []
    for term in terms:
        values, scored, why = compute(term.measure, ranking)
        inside = np.array(
            [not term.key or term.holds(ranking.queries[each]) for each in ranking.query_ids], dtype=np.bool_
        )
        counted = inside & scored
        n = int(counted.sum())
        if n:
            total += np.where(counted, term.weight / n * values, 0.0)
        else:
            empty.append(f"{term} has no value for any query")
        has_any |= counted
        ids = (ranking.query_ids[place] for place in np.flatnonzero(inside & ~scored))
        reasons = {each: why[each] for each in ids if each in why} | reasons
    if empty:
        reasons, has_any = dict.fromkeys(ranking.query_ids, "; ".join(empty)), np.zeros_like(has_any)
    unscored = {ranking.query_ids[place] for place in np.flatnonzero(~has_any)}
    found = {each: reasons.get(each, OUTSIDE) for each in ranking.query_ids if each in unscored}
    return np.where(has_any, total * has_any.sum(), 0.0), has_any, found


def mean_range(measure: Measure) -> tuple[float, float]:
    """Lowest and highest value of a weighted sum over all queries."""
    ends = [(term.weight, CATALOGUE[term.measure.name].range) for term in terms_of(measure)]
    low = sum(weight * (lowest if weight > 0 else highest) for weight, (lowest, highest) in ends)
    high = sum(weight * (highest if weight > 0 else lowest) for weight, (lowest, highest) in ends)
    return low, high


def strata_groups(measure: Measure, queries: Sequence[Query]) -> NDArray[np.intp]:
    """intp[Q]: which queries are in the same strata of a weighted sum, numbered from 0."""
    inside = np.array([[term.holds(query) for term in terms_of(measure)] for query in queries], dtype=np.bool_)
    if not len(queries):
        return np.zeros(0, dtype=np.intp)
    return np.unique(inside, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """Place and character of what stands outside of brackets and quotes; an opening bracket is outside."""
    depth, quote = 0, ""
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in ")]}":
            depth -= 1
        else:
            if depth == 0:
                yield place, char
            depth += char in "([{"


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Sign and text of each term. A minus is one where spaces are around it, or nothing before it: names have hyphens."""
    begin, sign = 0, 1
    for place, char in _outside(text):
        is_first = not text[begin:place].strip()
        is_apart = is_first or (text[place - 1].isspace() and text[place + 1 : place + 2].isspace())
        if char == "+" or (char == "-" and is_apart):
            if not is_first:
                yield sign, text[begin:place]
                sign = 1
            sign = -sign if char == "-" else sign
            begin = place + 1
    yield sign, text[begin:]


def _term(sign: int, text: str) -> Term:
    match = _TERM.fullmatch(text)
    if match is None or not match["measure"] or is_sum(match["measure"]):
        raise MeasureError(
            f"cannot read {shorten(text.strip())}", expected=f"WEIGHT * MEASURE[KEY=VALUE], as in {EXAMPLE}"
        )
    problems = []
    weight = 1.0
    if match["weight"] is not None:
        given = match["weight"].strip()
        weight = float(given) if _WEIGHT.fullmatch(given) else 0.0
        if not 0 < weight <= MAX_WEIGHT:
            problems.append(
                Problem(f"the weight is {shorten(given)}", expected=f"a number above 0 and up to {spell(MAX_WEIGHT)}")
            )
    key = value = ""
    if match["stratum"] is not None:
        stratum = _STRATUM.fullmatch(match["stratum"])
        if stratum is None or stratum["key"] in ("''", '""'):
            problems.append(
                Problem(f"the stratum is {shorten(match['stratum'])}", expected="KEY=VALUE, as in [tier=hard]")
            )
        else:
            key, value = (
                written[1:-1] if (written := stratum[name])[0] in "'\"" else written for name in ("key", "value")
            )
    try:
        measure = READERS[0](match["measure"])
        problems += _unfit(measure, sign)
    except CranfieldError as error:
        problems += error.problems
    if problems:
        raise MeasureError(problems)
    return Term(sign * weight, measure, key, value)


def _unfit(measure: Measure, sign: int) -> Iterator[Problem]:
    """Why a measure cannot be a term."""
    spec = CATALOGUE[measure.name]
    if spec.composed is not None:
        yield Problem(f"{measure} is a weighted sum itself", expected="a measure of the catalogue")
    elif spec.aggregate != "mean" or spec.diagnostic:
        yield Problem(
            f"{measure} is no mean of a quality over queries", expected="a measure such as RR, R@10 or nDCG@10"
        )
    elif spec.unscored_by_run:
        hint = "RR and Success@k are 0 for a query in which nothing relevant was found."
        yield Problem(
            f"{measure} has values for other queries with each run",
            expected="a measure with a value for every query",
            hint=hint,
        )
    elif spec.higher_is_better != (sign > 0):
        is_better, weight = ("higher", "above 0") if spec.higher_is_better else ("lower", "under 0")
        yield Problem(f"{is_better} is better for {measure}", expected=f"a weight {weight}")


def _wrong_convention(measure: Measure, ranking: Ranking) -> Iterator[Problem]:
    convention = ranking.convention
    if convention.orders != "one" or convention.name == "searchtweak":
        what = "a scale" if convention.orders == "one" else "an order of equal scores"
        yield Problem(
            f"{measure} cannot be computed under the convention {convention.name}, in which each measure has {what} of its own",
            expected="another convention, such as trec",
            parameters=("convention",),
        )


def _unknown_strata(measure: Measure, ranking: Ranking) -> Iterator[Problem]:
    """Strata that no query of the test set is in."""
    queries = list(ranking.queries.values())
    for term in terms_of(measure):
        if not term.key or any(term.holds(query) for query in queries):
            continue
        known: dict[str, set[str]] = {}
        for query in queries:
            for key, value in query_strata(query).items():
                known.setdefault(key, set()).add(value)
        if not known:
            yield Problem(f"{measure}: no query has strata", expected=f"strata with {term.key}: {term.value}")
        elif term.key in known:
            problem = unknown_name(f"value of the stratum {term.key}", term.value, known[term.key])
            yield replace(problem, message=f"{measure}: {problem.message}")
        else:
            problem = unknown_name("stratum", term.key, known)
            yield replace(problem, message=f"{measure}: {problem.message}")


def _written(text: str) -> str:
    """A key or a value, in quotes where it has to be."""
    if re.fullmatch(_BARE, text):
        return text
    return f'"{text}"' if "'" in text else f"'{text}'"


def _values(ranking: Ranking, _cutoff: int | None, *, terms: str) -> FloatQ:
    """float64[Q]; NaN where a query has no value."""
    values, scored, _ = weighted_sum(read_sum(terms), ranking)
    return np.where(scored, values, np.nan)


SPECS = (
    MeasureSpec(
        name=COMPOSITE,
        question="How do I weigh several kinds of queries?",
        plain="One number of several measures, each over its own kind of queries, with weights that you choose beforehand.",
        title="weighted sum of measures over strata",
        sentence=f"Sum of weights times means of measures, each over the queries of a stratum or over all: {EXAMPLE}. The value of "
        "a query is its contribution; the mean of these is the sum.",
        formula="sum_j w_j mean{m_j(q) : q in stratum j} = mean of v_q, v_q = sum_j w_j (N / n_j) [q in stratum j] m_j(q)",
        cutoff="none",
        kernel=_values,
        composed=weighted_sum,
        range=(-float("inf"), float("inf")),
        source="post-stratified mean: Holt & Smith 1979, Journal of the Royal Statistical Society A 142(1)",
        why_unscored=OUTSIDE,
        defined_for="queries in the stratum of a term whose measure has a value for them",
    ),
)

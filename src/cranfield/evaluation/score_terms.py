"""Explanations of scores as terms, `title:cat · boost` and its number; what differs between two systems; factors that were changed.

A factor is a term without the words of the query, `title · boost`: it is the same for every query.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cranfield.model import Explanation, Run

BETWEEN = " · "
"""Between the names of a path."""
TOTAL = "score"
"""Term of the whole score."""
STRUCTURE = frozenset(
    {"score", "sum", "max", "min", "product", "features", "boost of", "function score", "match on required clause"}
)
"""Names that say how parts are put together; they are no part of a path."""
SETTINGS = frozenset({"boost", "weight", "k1", "b", "tie", "normalisation", "maxBoost", "rrf_k", "(K1+1)"})
"""Names of factors that a configuration sets: they say nothing of a document."""
OF_INDEX = frozenset({"n", "N", "avgdl", "docCount", "docFreq"})
"""Names of factors that are of the whole index."""
TOLERANCE = 1e-5
"""Relative difference up to which two numbers are one: engines compute in single precision."""
MAX_RESULTS = 5_000
"""Results of a run that are searched for factors, those at the top of all queries: two million parts take seconds."""
MIN_QUERIES = 3
"""Queries in which another factor has to be constant: in fewer it is by accident."""
_FIELD = re.compile(r"(?P<field>[\w.@-]+|field \d+):\S")
_SECOND = re.compile(r" \(\d+\)$")
_NAME_CHARS = 120

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TermChange:
    """A term of the score of one document that is not the same on both systems."""

    term: str
    baseline: float | None
    """None: it is no part of the score there."""
    candidate: float | None

    @property
    def difference(self) -> float | None:
        """Candidate less baseline; None where one has none."""
        return None if self.baseline is None or self.candidate is None else self.candidate - self.baseline


@dataclass(frozen=True, slots=True)
class WeightChange:
    """A factor of scores that is one number on each system, and not the same one."""

    factor: str
    """`title · boost`."""
    baseline: float | None
    """None: no score of the baseline has it."""
    candidate: float | None
    n_queries: int
    """Queries on whose results it was seen, of the system that has it in fewer."""

    @property
    def name(self) -> str:
        """`boost`."""
        return self.factor.rpartition(BETWEEN)[2]

    @property
    def of(self) -> str:
        """What it is of: `title`; empty for a factor of the whole score."""
        return self.factor.rpartition(BETWEEN)[0]

    @property
    def is_setting(self) -> bool:
        """Whether a configuration sets it; another factor is constant because of the index, or of the documents."""
        return self.name in SETTINGS


def parts_of_score(explanation: Explanation) -> Iterator[tuple[Path, Explanation]]:
    """Each part of a score that has a path of its own, in their order; the second of a path ends in ` (2)`."""
    seen: Counter[Path] = Counter()
    waiting: list[tuple[Path, Explanation]] = [((), explanation)]
    while waiting:
        path, part = waiting.pop()
        if part.name not in STRUCTURE:
            path = (*path, part.name)
            seen[path] += 1
            if seen[path] > 1:
                path = (*path[:-1], f"{part.name} ({seen[path]})")
            yield path, part
        waiting += ((path, child) for child in reversed(part.children))


def flatten(explanation: Explanation | None) -> dict[str, float]:
    """The terms of an explanation, by stable names; the whole score first.

    Example:
        >>> cat = Explanation("title:cat", 1.5, (Explanation("boost", 3.0), Explanation("idf", 0.5)))
        >>> flatten(Explanation("sum", 1.5, (cat,)))
        {'score': 1.5, 'title:cat': 1.5, 'title:cat · boost': 3.0, 'title:cat · idf': 0.5}
    """
    if explanation is None:
        return {}
    total = {} if explanation.value is None else {TOTAL: explanation.value}
    return total | {
        BETWEEN.join(path): part.value for path, part in parts_of_score(explanation) if part.value is not None
    }


def most_of(terms: Mapping[str, float], limit: int) -> dict[str, float]:
    """The terms, without the deepest ones where there are more than a limit; in their order."""
    if len(terms) <= limit:
        return dict(terms)
    kept = set(sorted(terms, key=lambda term: term.count(BETWEEN))[:limit])
    return {term: value for term, value in terms.items() if term in kept}


def changed_terms(baseline: Mapping[str, float], candidate: Mapping[str, float]) -> tuple[TermChange, ...]:
    """The terms of one document's score that differ, in the order of the baseline, those of the candidate alone last."""
    every = dict.fromkeys((*baseline, *candidate))
    found = (TermChange(term, baseline.get(term), candidate.get(term)) for term in every)
    return tuple(
        each
        for each in found
        if each.baseline is None or each.candidate is None or not _same(each.baseline, each.candidate)
    )


def factor_of(path: Path) -> str:
    """The path without the words of the query: `title · boost` of `title:cat · boost`."""
    return BETWEEN.join(map(_without_words, path))


@lru_cache(maxsize=10_000)
def _without_words(name: str) -> str:
    name = _SECOND.sub("", name)
    found = _FIELD.match(name)
    return (name if found is None else found["field"])[:_NAME_CHARS]


def factors_of(explanation: Explanation) -> tuple[dict[str, float], dict[str, float]]:
    """What the factors of a score are for one document, by their names.

    Left out are settings and numbers of the index, which are of no document.

    Returns:
        Of the parts of a score the share of it that they give together; of other numbers their mean.
    """
    shares: dict[str, float] = {}
    numbers: dict[str, list[float]] = {}
    total = explanation.value
    for path, part in parts_of_score(explanation):
        if part.value is None or path[-1] in SETTINGS | OF_INDEX:
            continue
        if not _has_parts(part):
            numbers.setdefault(factor_of(path), []).append(part.value)
        elif len(path) == 1 and total:
            name = factor_of(path)
            shares[name] = shares.get(name, 0.0) + part.value / total
    return shares, {name: sum(values) / len(values) for name, values in numbers.items()}


def _has_parts(part: Explanation) -> bool:
    return bool(part.children or part.cut)


@dataclass
class _Seen:
    """The values of a factor over the results of a run."""

    lowest: float
    highest: float
    queries: set[str] = field(default_factory=set)

    @property
    def is_constant(self) -> bool:
        return _same(self.lowest, self.highest)


def weight_changes(baseline: Run, candidate: Run) -> tuple[WeightChange, ...]:
    """Factors that are constant on each of two runs and not the same: what of a configuration was changed.

    The first `MAX_RESULTS` explained results of each run are searched.

    Settings (`SETTINGS`) come first, in any number of queries; then other factors that are constant over at least
    `MIN_QUERIES` queries, such as numbers of the index. A setting that one system alone has needs as many queries.
    """
    seen = [_factors(run) for run in (baseline, candidate)]
    if not all(seen):
        return ()
    found = []
    for factor in dict.fromkeys((*seen[0], *seen[1])):
        sides = [of_run.get(factor) for of_run in seen]
        known = [side for side in sides if side is not None]
        before, after = (None if side is None else side.lowest for side in sides)
        change = WeightChange(factor, before, after, min(len(side.queries) for side in known))
        if not all(side.is_constant for side in known):
            continue
        if (len(known) == 1 and not change.is_setting) or (
            change.n_queries < MIN_QUERIES and not (change.is_setting and len(known) == 2)
        ):
            continue
        if change.baseline is None or change.candidate is None or not _same(change.baseline, change.candidate):
            found.append(change)
    return tuple(sorted(found, key=lambda each: (not each.is_setting, each.factor.count(BETWEEN))))


def _factors(run: Run) -> dict[str, _Seen]:
    found: dict[str, _Seen] = {}
    for query_id, explanation in itertools.islice(_explained_hits(run), MAX_RESULTS):
        for path, part in parts_of_score(explanation):
            if _has_parts(part) or part.value is None:
                continue
            factor = factor_of(path)
            seen = found.get(factor)
            if seen is None:
                seen = found[factor] = _Seen(part.value, part.value)
            seen.lowest, seen.highest = min(seen.lowest, part.value), max(seen.highest, part.value)
            seen.queries.add(query_id)
    return found


def _explained_hits(run: Run) -> Iterator[tuple[str, Explanation]]:
    """Query id and explanation of the results of a run, the first ones of all queries before the second ones."""
    for hits in itertools.zip_longest(*(answer.hits for answer in run.answers.values())):
        for query_id, hit in zip(run.answers, hits, strict=True):
            if hit is not None and hit.explanation is not None:
                yield query_id, hit.explanation


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))

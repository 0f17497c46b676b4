"""What a test set itself requires of single queries: floors of measures, and results that must not be found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cranfield.base.numbers import format_value
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.measures import compute, parse
from cranfield.model import Outcome, TestSet
from cranfield.ranking.value import Aspect, Ranking
from cranfield.stats.describe import TOLERANCE


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of one query, and whether a run meets it."""

    query_id: str
    rule: str
    """In words: `P@5 >= 0.6`, `no forbidden result`."""
    got: str
    """The value, or the ranks of the forbidden results; why there is none."""
    is_met: bool


def requires_something(testset: TestSet) -> bool:
    """Whether a test set requires something of single queries."""
    return bool(testset.forbidden) or any(query.floors for query in testset.queries)


def requirements_of(testset: TestSet, ranking: Ranking) -> tuple[Requirement, ...]:
    """Every floor of a query, and every query that forbids results, in the order of the test set; floors first.

    A query without an answer meets no floor, whatever the convention; a floor of a measure that has no value is not met either.

    Raises:
        CranfieldError: a floor names no measure.
    """
    return (*_floors(testset, ranking), *_forbidden(ranking))


def _floors(testset: TestSet, ranking: Ranking) -> Iterator[Requirement]:
    spelled = dict.fromkeys(measure for query in testset.queries for measure in query.floors)
    if not spelled:
        return
    answered = replace(ranking, convention=replace(ranking.convention, failed="zero", empty="zero"))
    computed = {name: compute(parse(name), answered) for name in spelled}
    for place, query_id in enumerate(ranking.query_ids):
        for name, least in testset.by_id[query_id].floors.items():
            values, scored, reasons = computed[name]
            rule = f"{parse(name)} >= {least:g}"
            if not scored[place]:
                yield Requirement(query_id, rule, str(reasons.get(query_id, "no value")), is_met=False)
                continue
            value = float(values[place])
            yield Requirement(query_id, rule, format_value(value), is_met=value >= least - TOLERANCE)


def _forbidden(ranking: Ranking) -> Iterator[Requirement]:
    if ranking.aspects is None:
        return
    rows = ranking.aspects.kind == Aspect.FORBIDDEN
    query, rank = ranking.aspects.query[rows], ranking.aspects.rank[rows]
    for place in np.unique(query).tolist():
        outcome = ranking.outcomes[place]
        if outcome.is_failure or outcome is Outcome.MISSING:
            yield Requirement(ranking.query_ids[place], "no forbidden result", outcome.value, is_met=False)
            continue
        ranks = sorted(each for each in rank[query == place].tolist() if each > 0)
        noun = "at rank" if len(ranks) == 1 else "at ranks"
        got = f"{noun} {', '.join(map(str, ranks))}" if ranks else "none"
        yield Requirement(ranking.query_ids[place], "no forbidden result", got, is_met=not ranks)


def requirement_caveats(testset: TestSet, ranking: Ranking) -> list[Caveat]:
    """A sentence on the requirements of a test set that a run does not meet, or on all that it meets; none without any."""
    found = requirements_of(testset, ranking)
    broken = [each for each in found if not each.is_met]
    if not found:
        return []
    if not broken:
        text = f"all {count_noun(len(found), 'requirements')} of single queries are met (floors, forbidden results)"
        return [Caveat(text, CaveatKind.FINDING)]
    named = join_first([f"{each.query_id}: {each.rule}, got {each.got}" for each in broken], separator="; ")
    text = f"requirements of single queries not met: {len(broken)} of {len(found)} ({named})"
    return [Caveat(text, CaveatKind.REQUIREMENTS)]

"""What judgments of unjudged results can make of the verdict on three systems or more: see `unjudged` for two.

The systems that are best follow from all pairs together, so no pair has a bound of its own. What is found is verified: some
judgments are supposed, every system is scored with them, and all pairs are tested again as declared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from cranfield.evaluation.joint import FloatN, OpenLists, Places, grades_of, open_lists
from cranfield.evaluation.many_pairs import all_pairs, compare_pairs
from cranfield.evaluation.many_values import ManyComparison, PairComparison
from cranfield.evaluation.pairing import PairedValues
from cranfield.evaluation.unjudged import Unjudged, UnjudgedKind, holes_command, order_of_holes
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode

MOST_VALUES = 3_000
"""Queries times pairs: the tests of more take most of a second each time, and some ten are needed."""
CANDIDATES = 3
"""Pairs whose judgments are tried, those that few are expected to turn first."""
MORE = (1.0, 1.25)
"""Times the judgments that were expected to do: the tests of all pairs are stricter or milder than the expectation."""


@dataclass(frozen=True, eq=False)
class _Turn:
    """Judgments all of which favour one system over another."""

    gains: int
    loses: int
    n: int
    """How many are expected to turn the verdict on the two."""
    holes: Places
    """Places in the lists, the largest effect first."""
    grade: FloatN
    """The grade of each."""
    change: FloatN = field(repr=False)


def unjudged_of_many(many: ManyComparison) -> Unjudged | None:
    """The fewest judgments found with which other systems are best; None where nothing is unjudged, or it is not known.

    It is not known of measures and conventions without joint bounds, and of more than `MOST_VALUES`. There the evidence
    check on the judged share stands alone.
    """
    rankings = [side.ranking_for(many.primary) for side in many.evaluations]
    known = [ranking for ranking in rankings if ranking is not None]
    if many.verdict.code is VerdictCode.INVALID or len(known) < len(rankings):
        return None
    if len(many.query_ids) * len(many.pairs) > MOST_VALUES:
        return None
    lists = open_lists(many.primary, known, grades_of(many.evaluations[0].testset))
    if isinstance(lists, str) or not len(lists.query) or lists.query_ids != many.query_ids:
        return None
    base = lists.judged(np.full(len(lists.query), np.nan))
    if not np.array_equal(base, lists.now):
        return None  # the convention gives unjudged results another value than the lowest grade
    n, n_queries = len(lists.query), int((lists.n_open > 0).sum())
    turns = sorted(_turns(many, lists), key=lambda turn: turn.n)
    for turn in turns[:CANDIDATES]:
        few, best = _fewest(many, lists, base, turn)
        if few:
            place = np.argsort(order_of_holes(lists, turn.change))
            testset, *runs = many.inputs or (many.evaluations[0].testset.name, *many.names)
            command = holes_command(
                (testset, runs[turn.loses], runs[turn.gains]),
                many.primary,
                many.options,
                convention=known[0].convention.name,
                top=int(place[turn.holes[:few]].max()) + 1,
            )
            turned = None
            if len(best) == len(many.names):
                turned, best = VerdictCode.NOT_SIGNIFICANT, ()
            return Unjudged(UnjudgedKind.CAN_TURN, n, n_queries, few, turned, best=best, command=command)
    return Unjudged(UnjudgedKind.UNKNOWN, n, n_queries)


def _turns(many: ManyComparison, lists: OpenLists) -> Iterator[_Turn]:
    """Of each two systems, for either, the judgments in its favour that are expected to turn the verdict on the two."""
    sign, place = sign_of(many.primary), {name: number for number, name in enumerate(many.names)}
    base, _, changes = lists.changes(np.arange(len(lists.query_ids)), np.full(len(lists.query), np.nan))
    for pair in many.pairs:
        first, second = place[pair.first], place[pair.second]
        difference, change = base[:, second] - base[:, first], changes[..., second] - changes[..., first]
        critical = _critical(pair, difference)
        for way, gains, loses in ((sign, second, first), (-sign, first, second)):
            if pair.winner == many.names[gains]:
                continue  # it is better already
            effect = (way * change).max(axis=1, initial=0.0)
            order = np.argsort(-effect, kind="stable")[: int((effect > 0).sum())].astype(np.intp)
            aim = critical if pair.winner is None else -critical
            few = _expected(way * difference, lists.query[order], effect[order], aim)
            if few is not None:
                grade = np.array(lists.grades)[(way * change).argmax(axis=1)]
                yield _Turn(gains, loses, few, order, grade, change)


def _critical(pair: PairComparison, difference: FloatN) -> float:
    """The t statistic that a pair needs, of its interval; without one about that of a pair alone."""
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    low, high = pair.result.ci_low, pair.result.ci_high
    if low is None or high is None or not error:
        return 2.0
    return (high - low) / 2 / error


def _expected(difference: FloatN, query: Places, effect: FloatN, aim: float) -> int | None:
    """The fewest effects, added in their order, with which the t statistic of the differences reaches `aim`; None: never.

    The sums are updated one by one: the effects of one query add up, which for most measures is nearly so.
    """
    n, now = len(difference), difference.copy()
    total, squares = float(now.sum()), float((now**2).sum())
    for k, (place, more) in enumerate(zip(query.tolist(), effect.tolist(), strict=True), start=1):
        total += more
        squares += (now[place] + more) ** 2 - now[place] ** 2
        now[place] += more
        error = math.sqrt(max(squares - total**2 / n, 0.0) / max(n - 1, 1) / n)
        if total / n >= aim * error and (error > 0 or total > 0):
            return k
    return None


def _fewest(many: ManyComparison, lists: OpenLists, base: FloatN, turn: _Turn) -> tuple[int, tuple[str, ...]]:
    """The fewest of the judgments with which other systems are best, and these, the best mean first; 0: none were found."""
    before = set(_best(many))
    for n in dict.fromkeys(min(math.ceil(more * turn.n), len(turn.holes)) for more in MORE):
        low, few, best = 0, n, _best_with(many, lists, base, turn, n)
        if set(best) == before:
            continue
        while few - low > 1:
            middle = (low + few) // 2
            found = _best_with(many, lists, base, turn, middle)
            if set(found) == before:
                low = middle
            else:
                few, best = middle, found
        return few, best
    return 0, ()


def _best_with(many: ManyComparison, lists: OpenLists, base: FloatN, turn: _Turn, few: int) -> tuple[str, ...]:
    """The systems that are best with some judgments, tested as declared; the best mean first."""
    chosen = turn.holes[:few]
    grade = np.full(len(lists.query), lists.grades[0])
    grade[chosen] = turn.grade[chosen]
    queries = np.unique(lists.query[chosen])
    values = base.copy()
    values[queries] = lists.values(queries, grade[np.isin(lists.query, queries)])
    paired = PairedValues(many.primary, many.query_ids, values)
    pairs = compare_pairs(paired, all_pairs(len(many.names)), many.names, many.options, {})
    best = set(_best(replace(many, pairs=pairs)))
    order = np.argsort(-sign_of(many.primary) * values.mean(axis=0), kind="stable")
    return tuple(many.names[number] for number in order.tolist() if many.names[number] in best)


def _best(many: ManyComparison) -> tuple[str, ...]:
    """The systems that no other is significantly better than: all of them where no pair is significant."""
    return tuple(name for name, (_, worse) in many.wins.items() if not worse)

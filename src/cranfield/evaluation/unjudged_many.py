"""What judgments of unjudged results can make of the verdict on three systems or more: see `unjudged` for two.

The systems that are best follow from all pairs together, so no pair has a bound of its own. What is found is verified: some
judgments are supposed, every system is scored with them, and all pairs are tested again as declared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cranfield.evaluation.joint import FloatN, OpenLists, Places, grades_of, open_lists
from cranfield.evaluation.many_pairs import all_pairs, compare_pairs
from cranfield.evaluation.many_values import ManyComparison, PairComparison
from cranfield.evaluation.pairing import PairedValues
from cranfield.evaluation.unjudged import holes_command, order_of_holes
from cranfield.evaluation.unjudged_values import Unjudged, UnjudgedKind
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode

MOST_VALUES = 3_000
"""Queries times pairs: the tests of more take most of a second each time, and some ten are needed."""
CANDIDATES = 3
"""Pairs whose judgments are tried, those that few are expected to turn first."""
MORE = (1.0, 1.25, 1.6)
"""Times the judgments that were expected to do: the tests of all pairs are stricter or milder than Student's t."""


@dataclass(frozen=True, eq=False)
class _Turn:
    """Judgments all of which favour one system over another."""

    gains: int
    loses: int
    n: int
    """How many are expected to make other systems best."""
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
    turns = sorted(_turns(many, lists, base), key=lambda turn: turn.n)
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


def _turns(many: ManyComparison, lists: OpenLists, base: FloatN) -> Iterator[_Turn]:
    """Of each two systems, for either, the judgments in its favour with which other systems are expected to be best."""
    sign, place, best = sign_of(many.primary), {name: n for n, name in enumerate(many.names)}, set(_best(many))
    _, _, changes = lists.changes(np.arange(len(lists.query_ids)), np.full(len(lists.query), np.nan))
    sides = [(place[pair.first], place[pair.second]) for pair in many.pairs]
    critical = [
        _critical(pair, base[:, second] - base[:, first])
        for pair, (first, second) in zip(many.pairs, sides, strict=True)
    ]
    before = _beaten(base, sides, critical, sign)
    few: list[int] = []
    for first, second in sides:
        change = changes[..., second] - changes[..., first]
        for way, gains, loses in ((sign, second, first), (-sign, first, second)):
            if many.names[gains] in best and many.names[loses] not in best:
                continue  # it takes nothing from a system that is best
            effect = (way * change).max(axis=1, initial=0.0)
            order = np.argsort(-effect, kind="stable")[: int((effect > 0).sum())].astype(np.intp)
            turn = _Turn(gains, loses, 0, order, np.array(lists.grades)[(way * change).argmax(axis=1)], change)

            def turns(n: int, turn: _Turn = turn) -> bool:
                return _beaten(_values_with(lists, base, turn, n), sides, critical, sign) != before

            most = min([len(order), *sorted(few)[CANDIDATES - 1 : CANDIDATES]])
            steps = [*(2**power for power in range(most.bit_length())), most]
            n = next((n for n in steps if n and turns(n)), 0)
            low = n // 2
            while n - low > 1:
                middle = (low + n) // 2
                low, n = (low, middle) if turns(middle) else (middle, n)
            if n:
                few.append(n)
                yield replace(turn, n=n)


def _critical(pair: PairComparison, difference: FloatN) -> float:
    """The t statistic that a pair needs, of its interval; without one about that of a pair alone."""
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    low, high = pair.result.ci_low, pair.result.ci_high
    if low is None or high is None or not error:
        return 2.0
    return (high - low) / 2 / error


def _beaten(values: FloatN, sides: Sequence[tuple[int, int]], critical: Sequence[float], sign: int) -> frozenset[int]:
    """The systems that are expected to be significantly worse than another, by the t statistic of each pair."""
    pairs = np.array(sides)
    difference = sign * (values[:, pairs[:, 1]] - values[:, pairs[:, 0]])
    mean, error = difference.mean(axis=0), difference.std(axis=0, ddof=1) / math.sqrt(len(difference))
    loser = np.where(mean > 0, pairs[:, 0], pairs[:, 1])
    return frozenset(loser[np.abs(mean) > np.array(critical) * error].tolist())


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
    values = _values_with(lists, base, turn, few)
    paired = PairedValues(many.primary, many.query_ids, values)
    pairs = compare_pairs(paired, all_pairs(len(many.names)), many.names, many.options, {})
    best = set(_best(replace(many, pairs=pairs)))
    order = np.argsort(-sign_of(many.primary) * values.mean(axis=0), kind="stable")
    return tuple(many.names[number] for number in order.tolist() if many.names[number] in best)


def _values_with(lists: OpenLists, base: FloatN, turn: _Turn, few: int) -> FloatN:
    """float64[Q, S]: the values of all systems with some of the judgments."""
    chosen = turn.holes[:few]
    grade = np.full(len(lists.query), lists.grades[0])
    grade[chosen] = turn.grade[chosen]
    queries, values = np.unique(lists.query[chosen]), base.copy()
    values[queries] = lists.values(queries, grade[np.isin(lists.query, queries)])
    return values


def _best(many: ManyComparison) -> tuple[str, ...]:
    """The systems that no other is significantly better than: all of them where no pair is significant."""
    return tuple(name for name, (_, worse) in many.wins.items() if not worse)

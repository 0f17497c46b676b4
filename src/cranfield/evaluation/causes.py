"""Why the value of a query differs between two systems: what each document adds to it, what came before it, and what those have in common.

A value is parted by its prefixes: what a document adds is the value of the list down to it, less that of the list down to the
judged document above. The parts of a list add up to its value, whatever the measure, as long as that is a function of the judged
results; so the effects of all documents add up to the difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.evaluation.evaluate import SAME
from cranfield.evaluation.score_terms import WeightChange, weight_changes
from cranfield.evaluation.traits import Described, Sides, Trait, TraitContrast, TraitKind, contrasts_of, described
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.measures import CATALOGUE, Measure, compute
from cranfield.measures.measure import LOOKS_AT_THE_LIST
from cranfield.ranking.prepared import prepared
from cranfield.ranking.value import FloatQ, RankedHit, Ranking, ResultState, only_rows
from cranfield.stats.paired import sign_test

MAX_STEPS = 2_000
"""Prefixes of a list that are scored; the documents below them share the last part."""
MAX_DESCRIBED = 1_000
"""Queries whose results are described, those that changed most."""
MIN_RETURNED = 2
"""Queries for which a system returns a document that the other never returns, at least: once is an accident."""
SHOWN_DOCS = 20
COMMON_SHARE = 0.95
LEADING_SHARE = 0.5
"""Share of the effects from which documents of one system alone are the first cause."""


class Move(StrEnum):
    """What became of a document, from the baseline to the candidate."""

    ENTERED = "entered"
    LEFT = "left"
    ROSE = "rose"
    FELL = "fell"
    STAYED = "stayed"
    """At its rank; what it adds differs because of the results above it."""


class Known(StrEnum):
    """What is known of a document that came before another."""

    RELEVANT = "relevant"
    NOT_RELEVANT = "not relevant"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True)
class DocumentEffect:
    """A judged document, and what its place on both sides does to the value of its query."""

    doc: str
    """Document id, or the expected item that a result matched."""
    grade: float
    move: Move
    baseline_rank: int | None
    """None: not among the results that count."""
    candidate_rank: int | None
    effect: float
    """In the value of the measure; those of a query and its rest add up to its difference."""
    overtaken_by: Mapping[str, Known]
    """Where it fell or left: results before it on the candidate that are not before it on the baseline, as far as the lists are kept."""
    no_longer_before: Mapping[str, Known]
    """Where it rose or entered: results before it on the baseline that are not before it on the candidate."""


@dataclass(frozen=True, slots=True)
class QueryCause:
    """Why one query has another value on the candidate."""

    query: str
    difference: float
    effects: tuple[DocumentEffect, ...]
    """The largest first; documents without an effect are left out."""
    rest: float
    """What is of no document but of the length of the list, for measures that count what is not judged; effects and rest add up to
    the difference."""
    traits: tuple[TraitContrast, ...]
    """What those that came up have and those that went down have not, or the other way round; the clearest first."""


class Side(StrEnum):
    """Which of the two systems."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class OneSided:
    """Documents that one system returns for several queries and the other for none: they are not in its index, or are filtered."""

    only: Side
    """The system that returns them."""
    docs: tuple[str, ...]
    """Those returned most often, at most `SHOWN_DOCS`."""
    n_docs: int
    n_other: int
    """Documents of which the opposite holds."""
    share: float
    """Share of these, and of others that the other system never returns, in the effects of all documents that left or fell; of those
    that entered or rose, where they are the candidate's."""
    common: tuple[Trait, ...]
    """Values that (nearly) all of them have, and no result of the other system has: what a filter may have left out."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Why the values of one measure differ between two systems."""

    measure: Measure
    refused: str
    """Why its values are not parted by document; empty where they are."""
    queries: Mapping[str, QueryCause]
    """Those whose value differs, the largest difference first."""
    one_sided: OneSided | None
    """None where neither system returns documents that the other never does, beyond accident."""
    traits: tuple[TraitContrast, ...]
    """What sets results that came up apart from results that went down, over all queries; only where it is no accident."""
    n_tried: int
    """Traits that were tried: the false-discovery rate is controlled over all of them."""
    n_described: int
    """Queries whose results were described for them: those that changed most, and whose run is kept."""
    weights: tuple[WeightChange, ...] = ()
    """Factors of the scores, as the systems explain them, that are constant on each system and not the same: what was changed."""

    @property
    def ordered(self) -> tuple[WeightChange | OneSided | TraitContrast, ...]:
        """What explains the change as a whole: settings that were changed, then first what explains most."""
        settings = tuple(each for each in self.weights if each.is_setting)
        first = [] if self.one_sided is None or self.one_sided.share < LEADING_SHARE else [self.one_sided]
        return (*settings, *first, *self.traits)


def why_not_parted(measure: Measure) -> str:
    """Why the values of a measure are not parted by document; empty where they are."""
    spec = CATALOGUE[measure.name]
    if spec.diagnostic:
        return f"{measure} says how far other values can be trusted, and is no value of documents"
    if spec.needs in LOOKS_AT_THE_LIST or spec.needs == "tokens":
        return f"{measure} looks at the whole list, and not at its judged documents"
    if spec.unscored_by_run:
        return f"{measure} has no value where the results above a document are not known"
    return ""


def parts_of(measure: Measure, ranking: Ranking) -> tuple[NDArray[np.float64], FloatQ]:
    """What each expected item adds to the value of its query, and what the list has without any.

    Returns:
        float64[E], and float64[Q]: the value of a list of the same length in which nothing is judged, 0 for most measures. Parts
        and rest of a query add up to its value; of a query without a value they are 0.

    Raises:
        UsageError: the values of the measure are not parted, see `why_not_parted`.

    Example:
        >>> from cranfield import evaluate, parse
        >>> found = evaluate({"q": {"a": 1, "b": 1}}, {"q": {"x": 4, "a": 3, "y": 2, "b": 1}}, measures=["AP"])
        >>> parts_of(parse("AP"), found.ranking)[0].tolist()  # a at rank 2: (1/2) / 2; b at rank 4: (2/4) / 2
        [0.25, 0.25]
    """
    if why := why_not_parted(measure):
        raise UsageError(why, expected="a measure of judged documents, such as nDCG@10, AP or RR")
    counts = (ranking.gain != 0) | (ranking.level >= 1)
    query = ranking.query
    # Which of the documents that count each row is of, or follows, in its list; 0 before the first.
    running = np.cumsum(counts)
    first = np.searchsorted(query, np.arange(ranking.n_queries))
    nth = running - np.concatenate(([0], running))[first][query]
    if (
        measure.depth is not None
        and ranking.convention.unjudged != "condensed"
        and not measure.param("judged_only", default=False)
    ):
        nth = np.where(ranking.rank <= measure.depth, nth, np.iinfo(nth.dtype).max)
    within = counts & (nth < np.iinfo(nth.dtype).max)
    last = min(int(nth[within].max(initial=0)), MAX_STEPS)
    parts = np.zeros(len(ranking.expected_query))
    entries = ranking.expected_start[query] + ranking.item
    rest = before = compute(measure, _down_to(ranking, nth <= 0))[0]
    for step in range(1, last + 1):
        after = compute(measure, _down_to(ranking, nth <= step) if step < last else ranking)[0]
        rows = np.flatnonzero(within & (nth == step))
        np.add.at(parts, entries[rows], (after - before)[query[rows]])
        before = after
    return parts, rest


def _down_to(ranking: Ranking, rows: NDArray[np.bool_]) -> Ranking:
    """The ranking as if only some rows, the first of each list, were judged."""
    kept = only_rows(ranking, rows)
    if ranking.covered is None:
        return kept
    last = np.zeros(ranking.n_queries, dtype=np.int32)
    np.maximum.at(last, kept.query, kept.rank)
    covered = ranking.covered
    return replace(kept, covered=np.where(covered <= last[ranking.expected_query], covered, 0).astype(np.int32))


def causes_of(comparison: Comparison) -> Causes:
    """Why the values of the primary measure differ, query by query and over all of them."""
    measure, sides = comparison.primary, comparison.evaluations
    before, after = (side.run for side in sides)
    weights = () if before is None or after is None else weight_changes(before, after)
    if why := why_not_parted(measure):
        return Causes(measure, why, {}, None, (), 0, 0, weights)
    differences = comparison.measures[measure].differences
    moved = sorted((each for each in differences.items() if abs(each[1]) > SAME), key=lambda each: -abs(each[1]))
    lists = [_Lists(side, measure) for side in sides]
    found = {query_id: tuple(_effects(lists, query_id)) for query_id, _ in moved}
    contrasted = [
        _sides(lists, query_id, abs(difference), found[query_id]) for query_id, difference in moved[:MAX_DESCRIBED]
    ]
    contrasted = [each for each in contrasted if each.up or each.down]
    traits, n_tried = contrasts_of(contrasted)
    by_query = {each.query: contrasts_of([each])[0] for each in contrasted}
    queries = {
        query_id: QueryCause(
            query_id,
            difference,
            found[query_id],
            lists[1].rest_of(query_id) - lists[0].rest_of(query_id),
            by_query.get(query_id, ()),
        )
        for query_id, difference in moved
    }
    return Causes(measure, "", queries, _one_sided(lists, found), traits, n_tried, len(contrasted), weights)


def _one_sided(lists: Sequence[_Lists], found: Mapping[str, Sequence[DocumentEffect]]) -> OneSided | None:
    """Documents of one system alone, if there are more than of the other by a sign test over the documents."""
    runs = [side.evaluation.run for side in lists]
    if runs[0] is None or runs[1] is None:
        return None
    counts = [
        Counter(doc for answer in run.answers.values() for doc in {hit.public_id for hit in answer.hits})
        for run in runs
        if run
    ]
    if 2 * min(each.total() for each in counts) < max(each.total() for each in counts):
        return None  # shorter lists lack documents
    only = [
        [doc for doc, n in mine.most_common() if n >= MIN_RETURNED and doc not in other]
        for mine, other in (counts, counts[::-1])
    ]
    place = 0 if len(only[0]) >= len(only[1]) else 1
    p = sign_test(np.repeat((1.0, -1.0), (len(only[0]), len(only[1])))).p_two_sided if only[place] else None
    if p is None or p > 0.01:
        return None
    docs = counts[place].keys() - counts[1 - place].keys()  # with those that are returned once
    moves = (Move.LEFT, Move.FELL) if place == 0 else (Move.ENTERED, Move.ROSE)
    effects = [effect for of_query in found.values() for effect in of_query if effect.move in moves]
    total = math.fsum(abs(each.effect) for each in effects)
    of_docs = math.fsum(abs(each.effect) for each in effects if each.doc in docs)
    values: list[Counter[Trait]] = []
    n_described = 0
    for at, run in ((place, runs[place]), (1 - place, runs[1 - place])):
        seen: dict[str, list[Trait]] = {}
        for answer in run.answers.values() if run else ():
            for hit in answer.hits:
                if hit.public_id not in seen and (at != place or hit.public_id in docs):
                    seen[hit.public_id] = [trait for trait in described("", hit) if trait.kind is TraitKind.VALUE]
        values.append(Counter(trait for traits in seen.values() for trait in traits))
        n_described = n_described or len(seen)
    common = [trait for trait, n in values[0].items() if n >= COMMON_SHARE * n_described and not values[1][trait]]
    return OneSided(
        tuple(Side)[place],
        tuple(only[place][:SHOWN_DOCS]),
        len(only[place]),
        len(only[1 - place]),
        of_docs / total if total else 0.0,
        tuple(sorted(common)),
    )


class _Lists:
    """The lists of one system as the measure sees them, and what each document adds."""

    def __init__(self, evaluation: Evaluation, measure: Measure) -> None:
        self.evaluation, self.depth = evaluation, measure.depth
        self.ranking = ranking = evaluation.ranking
        self.parts, self.rest = parts_of(measure, ranking)
        self.rel = measure.whole("rel", 1)
        judgments = prepared(evaluation.testset, ranking.convention)
        self._labels, self._start = judgments.expected.labels, judgments.expected.start
        self._places = {query_id: place for place, query_id in enumerate(judgments.query_ids)}

    def items(self, query_id: str) -> dict[str, tuple[float, int | None, float]]:
        """Each expected item of a query: its grade, its rank in the list kept (None: not there), and what it adds."""
        at, place = self.evaluation.index[query_id], self._places[query_id]
        rows = slice(*self.ranking.expected_start[at : at + 2].tolist())
        labels = self._labels[slice(*self._start[place : place + 2].tolist())]
        grades = self.evaluation.testset.grades.get(query_id, {})
        columns = (self.ranking.expected_level[rows], self.ranking.expected_rank[rows], self.parts[rows])
        return {
            label: (float(grades.get(label, level)), rank or None, part)
            for label, level, rank, part in zip(labels, *(column.tolist() for column in columns), strict=True)
        }

    def rest_of(self, query_id: str) -> float:
        """What the list of a query has without a judged result."""
        return float(self.rest[self.evaluation.index[query_id]])

    def counts(self, rank: int | None) -> bool:
        """Whether the measure looks as deep as a rank."""
        return rank is not None and (self.depth is None or rank <= self.depth)

    def before(self, query_id: str, rank: int | None) -> dict[str, Known] | None:
        """The results before a rank, or all that count where there is none; None: the list is not kept as deep.

        A result that matched an expected item has the name of the item.
        """
        hits = self.ranking.top.get(query_id, ())
        n_all = int(self.ranking.n_returned[self.evaluation.index[query_id]])
        n_before = n_all if self.depth is None else min(n_all, self.depth)
        if rank is not None:
            n_before = min(n_before, rank - 1)
        if len(hits) < n_before:
            return None
        return {hit.item or hit.id: self._known(hit) for hit in hits[:n_before]}

    def _known(self, hit: RankedHit) -> Known:
        if hit.state is not ResultState.JUDGED:
            return Known.UNJUDGED
        return Known.RELEVANT if hit.level >= self.rel or hit.gain > 0 else Known.NOT_RELEVANT

    def described(self, query_id: str) -> dict[str, Described]:
        """The traits of each result kept, by its name; none without the run itself."""
        run = self.evaluation.run
        answer = None if run is None else run.answers.get(query_id)
        if answer is None:
            return {}
        text = self.evaluation.testset.by_id[query_id].text
        by_id = {hit.public_id: hit for hit in reversed(answer.hits)}
        kept = self.ranking.top.get(query_id, ())
        return {hit.item or hit.id: described(text, by_id[hit.id]) for hit in kept if hit.id in by_id}


def _effects(lists: Sequence[_Lists], query_id: str) -> Iterator[DocumentEffect]:
    """The documents that change the value of a query, the largest effect first."""
    baseline, candidate = (side.items(query_id) for side in lists)
    effects = {item: candidate[item][2] - added for item, (_, _, added) in baseline.items()}
    for item in sorted(effects, key=lambda each: -abs(effects[each])):
        if abs(effects[item]) <= SAME:
            return
        grade, before, _ = baseline[item]
        after = candidate[item][1]
        there = tuple(side.counts(rank) for side, rank in zip(lists, (before, after), strict=True))
        move = _move(there, before, after)
        ahead = [side.before(query_id, rank) for side, rank in zip(lists, (before, after), strict=True)]
        overtaken, freed = (
            {doc: known for doc, known in here.items() if doc not in there_too}
            if here is not None and there_too is not None and move in moves
            else {}
            for here, there_too, moves in (
                (ahead[1], ahead[0], (Move.FELL, Move.LEFT)),
                (ahead[0], ahead[1], (Move.ROSE, Move.ENTERED)),
            )
        )
        yield DocumentEffect(item, grade, move, before, after, effects[item], overtaken, freed)


def _move(there: Sequence[bool], before: int | None, after: int | None) -> Move:
    if there[0] != there[1]:
        return Move.LEFT if there[0] else Move.ENTERED
    if before is None or after is None or before == after:
        return Move.STAYED
    return Move.ROSE if after < before else Move.FELL


def _sides(lists: Sequence[_Lists], query_id: str, weight: float, effects: Sequence[DocumentEffect]) -> Sides:
    """What came up and what went down among the documents that made the difference.

    Of a document that fell, it went down and the results that overtook it came up; where none did, the other results of the
    candidate are what it is compared with. Of one that rose, the other way round.
    """
    up: dict[str, None] = {}
    down: dict[str, None] = {}
    for effect in effects:
        if effect.move in {Move.FELL, Move.LEFT}:
            down[effect.doc] = None
            up |= dict.fromkeys(effect.overtaken_by)
        elif effect.move in {Move.ROSE, Move.ENTERED}:
            up[effect.doc] = None
            down |= dict.fromkeys(effect.no_longer_before)
    traits = [side.described(query_id) for side in lists]
    both = traits[0] | traits[1]
    if not up:
        up = dict.fromkeys(doc for doc in traits[1] if doc not in down)
    if not down:
        down = dict.fromkeys(doc for doc in traits[0] if doc not in up)
    of_up, of_down = ([both[doc] for doc in docs if doc in both] for docs in (up, down))
    return Sides(query_id, weight, of_up, of_down)

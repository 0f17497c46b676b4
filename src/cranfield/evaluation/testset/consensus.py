"""Ratings by several people made into the grades of a test set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import TestSetError, UsageError
from cranfield.base.words import count_noun, join_first
from cranfield.model import Note, NoteKind, Rating, TestSet
from cranfield.model.note import info
from cranfield.stats.consensus import DEFAULT_RULE, ConsensusRule, SlotTable, combined, rule_named, slot_table
from cranfield.stats.describe import FloatN
from cranfield.stats.scale import (
    LEVELS,
    GradeMap,
    Scale,
    format_map,
    levels_of,
    map_grades,
    parse_target,
    rules_between,
    scale_named,
    scale_of,
)

NAMED_PAIRS = 3
"""A note names at most this many pairs of query and document and counts the rest."""

Pair = tuple[str, str]
"""Query id and document id."""


@dataclass(frozen=True)
class RatedPairs:
    """The ratings of a test set as slots: an item is a pair of query and document."""

    pairs: tuple[Pair, ...]
    table: SlotTable
    notes: tuple[str, ...]
    """What of the ratings is not among the slots, or not as it was."""


@dataclass(frozen=True)
class OnScale:
    """Slots on the scale they are asked for on."""

    table: SlotTable
    scale: Scale | None
    """None where the grades are on no scale that is known."""
    notes: tuple[str, ...]


def ratings_of(testset: TestSet) -> Mapping[str, tuple[Rating, ...]]:
    """Query id to the ratings; the sets of judgments of several judges are ratings too."""
    if testset.ratings or testset.grouping != "judge":
        return testset.ratings
    return {
        query_id: tuple(Rating(judged.doc_id, judged.group, judged.value) for judged in groups)
        for query_id, groups in testset.groups.items()
    }


def rated_pairs(testset: TestSet) -> RatedPairs:
    """Lay out the ratings of a test set.

    A grade under 0 is no judgment: its slot is not filled. Where a rater rates a pair twice, the second rating counts as
    one of another rater (`ann #2`). Both are reported in the notes. Adjudicated grades are none of the slots.

    Raises:
        TestSetError: there are no ratings.
    """
    ratings = ratings_of(testset)
    if not any(ratings.values()):
        raise TestSetError(
            f"test set {testset.name!r} has no ratings",
            expected="the grade of each rater: `ratings:` in YAML, a column of raters, or qrels by judge",
            hint="qrels whose second column is the judge are read by {format=judges}",
            parameters=("format",),
        )
    pairs: list[Pair] = []
    columns: dict[tuple[str, int], int] = {}
    items: list[int] = []
    raters: list[int] = []
    grades: list[float] = []
    n_slots = n_pooled = n_again = 0
    for query_id in testset.query_ids:
        places: dict[str, int] = {}
        counts_so_far: Counter[tuple[str, str]] = Counter()
        for rating in (rating for rating in ratings.get(query_id, ()) if not rating.final):
            place = places.get(rating.doc_id)
            if place is None:
                place = places[rating.doc_id] = len(pairs)
                pairs.append((query_id, rating.doc_id))
            nth = counts_so_far[rating.doc_id, rating.rater] = counts_so_far[rating.doc_id, rating.rater] + 1
            column = columns.setdefault((rating.rater, nth), len(columns))
            n_slots += 1
            n_again += nth > 1
            grade = rating.grade
            if grade is None or not grade >= 0:
                n_pooled += grade is not None
                continue
            items.append(place)
            raters.append(column)
            grades.append(grade)
    names = tuple(name if nth == 1 else f"{name} #{nth}" for name, nth in columns)
    table = SlotTable(*_by_item(items, raters, grades), len(pairs), n_slots, names)
    notes = {
        f"grades under 0, which are not judgments and leave their slots unfilled: {n_pooled}": n_pooled,
        f"pairs rated again by the same rater, counted as another rater: {n_again}": n_again,
    }
    return RatedPairs(tuple(pairs), table, tuple(note for note, n in notes.items() if n))


def adjudicated(testset: TestSet) -> TestSet:
    """The test set in which an adjudicated grade stands in the place of the other ratings of its document."""
    ratings = {}
    for query_id, given in ratings_of(testset).items():
        final = {rating.doc_id: replace(rating, final=False) for rating in given if rating.final}
        others = (rating for rating in given if rating.doc_id not in final)
        ratings[query_id] = (*others, *final.values())
    return replace(testset, ratings=ratings)


def _by_item(
    items: list[int], raters: list[int], grades: list[float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatN]:
    """The three columns, sorted by item."""
    item = np.array(items, dtype=np.int64)
    order = np.argsort(item, kind="stable")
    return item[order], np.array(raters, dtype=np.int64)[order], np.array(grades, dtype=np.float64)[order]


def with_consensus(
    testset: TestSet, rule: str | None = None, *, to: str | GradeMap | None = None, scale: str | None = None
) -> TestSet:
    """The test set with grades made of its ratings; what was done, and to how many pairs, is in its notes.

    A pair whose votes are even, or that has no rating, is left unjudged; where its grade was under 0 (pooled, not judged),
    it stays so. An adjudicated grade stands in the place of the ratings of its pair. Documents without ratings keep their
    grades, mapped like the ratings. Where neither the caller nor the set names a rule, judgments of rated pairs are kept too.

    Args:
        testset: with ratings, or with judgments by judge, which become ratings.
        rule: a name of `CONSENSUS`; None is the set's own, or else the median.
        to: scale, or map from grade to grade (`0=0,1=0,2=1,3=1`), that each slot is mapped to before they are made into one.
        scale: what the ratings are on; None is the set's scale, or else the smallest one that fits.

    Raises:
        TestSetError: there are no ratings.
        UnknownNameError: there is no such rule or scale.
        UsageError: a grade that is not on its scale or not in the map, or scales without a map.
    """
    named = rule or testset.consensus
    row = rule_named(named or DEFAULT_RULE)
    n_final = sum(rating.final for given in testset.ratings.values() for rating in given)
    rated = rated_pairs(adjudicated(testset) if n_final else testset)
    on_scale = slots_on_scale(rated.table, row, to=to, scale=scale, declared=testset.meta.scale)
    if to is not None and testset.ratings:
        testset = mapped_judgments(testset, to, scale=scale, without=rated.pairs if named else ())
    values = combined(on_scale.table.packed(), row.name, scale=on_scale.scale)
    grades, kept, changed = _regraded(testset, rated.pairs, values, keep=not named)
    ratings, pairs = count_noun(len(rated.table.item), "ratings"), count_noun(len(rated.pairs), "pairs")
    made = f"grades are made of {ratings} of {pairs} by the rule {row.name}"
    notes = (
        *(rated.notes + on_scale.notes),
        *_counted(kept, changed, n_final),
        *without_grade(rated.pairs, rated.table, values),
    )
    judged = testset.grouping == "judge"
    return replace(
        testset,
        grades=grades,
        ratings={query_id: tuple(ratings) for query_id, ratings in ratings_of(testset).items()},
        groups={} if judged else testset.groups,
        grouping=None if judged else testset.grouping,
        consensus=row.name,
        notes=(
            *testset.notes,
            Note(NoteKind.CONSENSUS, made + ("" if named else " (the default rule)")),
            *info(*notes),
        ),
    )


def on_other_scale(
    testset: TestSet, to: str | GradeMap, rule: str | None = None, *, scale: str | None = None
) -> TestSet:
    """The test set with grades on another scale. Its ratings, which are on the one before, are left out.

    Raises:
        TestSetError: there is no rating, and nothing but ratings could be mapped.
        UnknownNameError: there is no such rule or scale.
        UsageError: as `with_consensus`.
    """
    if rule is None and testset.grades and not testset.targets and not any(ratings_of(testset).values()):
        graded = mapped_judgments(testset, to, scale=scale)
    else:
        graded = with_consensus(testset, rule, to=to, scale=scale)
    levels = levels_of(parse_target(to) if isinstance(to, str) else to)
    return replace(graded, ratings={}, meta=replace(graded.meta, scale=levels))


def mapped_judgments(
    testset: TestSet, to: str | GradeMap, *, scale: str | None = None, without: Collection[Pair] = ()
) -> TestSet:
    """The test set with its judgments on another scale; those under 0 stay as they are.

    Raises:
        UnknownNameError: there is no such scale.
        UsageError: a judgment that is not on its scale or not in the map, or scales without a map.
    """
    rated = set(without)
    places = [
        (query_id, doc_id, grade)
        for query_id, judged in testset.grades.items()
        for doc_id, grade in judged.items()
        if grade >= 0 and (query_id, doc_id) not in rated
    ]
    if not places:
        return testset
    table = slot_table([[grade] for *_, grade in places])
    slots = slots_on_scale(table, rule_named("mean"), to=to, scale=scale, declared=testset.meta.scale)
    grades = {query_id: dict(judged) for query_id, judged in testset.grades.items()}
    for (query_id, doc_id, _), grade in zip(places, slots.table.grade.tolist(), strict=True):
        grades[query_id][doc_id] = grade
    notes = info(*(note.replace("rating", "judgment") for note in slots.notes))
    return replace(testset, grades=grades, notes=(*testset.notes, *notes))


def _counted(kept: int, changed: int, n_final: int) -> list[str]:
    """What was done with judgments and adjudicated grades, where there are any."""
    sentences = {
        f"judgments in addition to ratings, kept unchanged because no rule is named: {kept}": kept,
        f"judgments that differed from the consensus of their ratings, replaced by it: {changed}": changed,
        f"pairs with an adjudicated grade, used instead of their ratings: {n_final}": n_final,
    }
    return [sentence for sentence, n in sentences.items() if n]


def _regraded(
    testset: TestSet, pairs: Sequence[Pair], values: FloatN, *, keep: bool
) -> tuple[dict[str, dict[str, float]], int, int]:
    """The grades with those of the rated pairs; how many stayed because they are to be kept, and how many changed."""
    stored = testset.grades if testset.ratings else {}  # of judges, they are only the highest grade
    grades = {query_id: dict(judged) for query_id, judged in testset.grades.items()}
    kept = changed = 0
    for (query_id, doc_id), value in zip(pairs, values.tolist(), strict=True):
        before = stored.get(query_id, {}).get(doc_id)
        if before is not None and before < 0:  # pooled: unjudged as long as the ratings make no grade
            if not math.isnan(value):
                grades[query_id][doc_id] = value
            continue
        if before is not None and keep:
            kept += 1
            continue
        changed += before is not None and before != value
        judged = grades.setdefault(query_id, {})
        judged.pop(doc_id, None)
        if not math.isnan(value):
            judged[doc_id] = value
    return {query_id: judged for query_id, judged in grades.items() if judged}, kept, changed


def slots_on_scale(
    table: SlotTable,
    rule: ConsensusRule,
    *,
    to: str | GradeMap | None = None,
    scale: str | None = None,
    declared: Sequence[float] = (),
) -> OnScale:
    """Map each slot to the scale asked for, and to the binary one where the rule needs it.

    Raises:
        UnknownNameError: there is no such scale.
        UsageError: a grade that is not on its scale or not in the map, or scales without a map.
    """
    notes: list[str] = []
    to = parse_target(to) if isinstance(to, str) else to
    on = None if scale is None else scale_named(scale)
    if on is not None:
        map_grades(table.grade, rules_between(on, on), f"on the {on} scale")
    else:
        on = next((name for name, levels in LEVELS.items() if tuple(declared) == levels), None)
        guessed = on is None
        on = scale_of(table.grade) if on is None else on
        if guessed and on is not None and (isinstance(to, str) or rule.needs_binary or rule.on_binary):
            notes.append(f"ratings are assumed to be on the {on} scale, because none is named")
    grades = table.grade
    if isinstance(to, str):
        if to != on:
            notes.append(f"each rating is mapped to the {to} scale first")
        grades, on = _moved(grades, on, to), to
    elif to is not None:
        grades = map_grades(grades, to, "in the map")
        on = scale_of(grades)
        notes.append(f"each rating is mapped by {format_map(to)} first")
    if rule.needs_binary and on != "binary":
        grades, on = _moved(grades, on, "binary"), "binary"
        notes.append("each rating is mapped to the binary scale first")
    return OnScale(replace(table, grade=grades), on, tuple(notes))


def _moved(grades: FloatN, scale: Scale | None, to: Scale) -> FloatN:
    if not grades.size:
        return grades
    if scale is None:
        raise UsageError(
            f"the ratings are not on a scale that can be mapped to {to}",
            expected=", ".join(f"{name} ({levels[0]} to {levels[-1]})" for name, levels in LEVELS.items()),
            got=", ".join(f"{grade:g}" for grade in np.unique(grades)[:10].tolist()),
        )
    return map_grades(grades, rules_between(scale, to), f"on the {scale} scale")


def without_grade(pairs: Sequence[Pair], table: SlotTable, values: FloatN) -> list[str]:
    """What became of the pairs that a rule gave no grade, a sentence each."""
    missing, filled = np.isnan(values), table.filled > 0
    ties, empty = np.flatnonzero(missing & filled), np.flatnonzero(missing & ~filled)
    sentences = []
    if len(ties):
        sentences.append(
            f"pairs whose votes are even, left unjudged: {len(ties)} of {len(pairs)} ({_named(pairs, ties)})"
        )
    if len(empty):
        sentences.append(f"unrated pairs, left unjudged: {len(empty)} of {len(pairs)} ({_named(pairs, empty)})")
    return sentences


def _named(pairs: Sequence[Pair], places: Sequence[int] | np.ndarray) -> str:
    return join_first((" ".join(pairs[place]) for place in places), NAMED_PAIRS)

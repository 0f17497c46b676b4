"""Measures on the scale that each is made for, from one set of ratings.

People judge on one scale; precision asks for another one than nDCG does. Each measure is computed on the grades that a
consensus makes of the ratings after each rating was mapped to the scale of the measure, as SearchTweak does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cranfield.errors import InternalError, UsageError
from cranfield.evaluation.columns import joined
from cranfield.evaluation.values import RATED_BY_SLOT, Evaluation, scale_for
from cranfield.measures import Measure, parse_all
from cranfield.model import NoteKind, Rating, TestSet
from cranfield.options.scoring import ScoringOptions
from cranfield.project.inputs import RunLike
from cranfield.project.scoring import score
from cranfield.ranking.value import Ranking
from cranfield.stats.consensus import rule_named
from cranfield.stats.scale import LEVELS, Scale, scale_named, scale_of
from cranfield.testsets.consensus import rated_pairs, ratings_of, with_consensus


def scales_of(measures: Sequence[str | Measure]) -> dict[Measure, Scale | None]:
    """The scale of each measure: `binary` where relevant or not is all it asks, `graded` where gains count.

    `nDCG(d)@10` is nDCG@10 on the `detail` scale. A measure that only says how far others can be trusted, or that needs no
    grades, has none: it is computed beside the first measure that has one.

    Raises:
        MeasureError: a measure that is not there.

    Example:
        >>> scales_of(["nDCG@10", "P@5", "DCG(d)@10"])
        {nDCG@10: 'graded', P@5: 'binary', DCG(d)@10: 'detail'}
    """
    return {
        measure: "detail" if measure.on_detail else scale_for(measure)
        for measure in parse_all([str(measure) for measure in measures])
    }


def evaluate_on_scales(
    testset: TestSet,
    run: RunLike,
    measures: Sequence[str | Measure],
    options: ScoringOptions | None = None,
    *,
    rule: str | None = None,
    scale: str | None = None,
) -> Evaluation:
    """Score one run, each measure on its own scale, and put the values together.

    Args:
        testset: with ratings; a judgment of a document without a rating counts as the only rating of it.
        run: as `evaluate` takes it.
        measures: spellings; the first is the primary one, and the ranking, hits and failures are those of its scale.
        options: how the run is read and scored; None is the convention `searchtweak`.
        rule: how the mapped ratings become one grade; None is `searchtweak`: the majority on the binary scale, the mean on
            the others.
        scale: what the ratings are on; None is the set's scale, or else the smallest one that fits.

    Returns:
        One evaluation. Its warnings say on which scale each measure was computed, and on how many pairs the votes are even.

    Raises:
        TestSetError: there are no ratings.
        UsageError: a rating is not on its scale, or there is no map to the scale of a measure.
    """
    scales = scales_of(measures)
    if not scales:
        raise UsageError("no measure to compute", expected="one or more, such as nDCG@10")
    rule = rule_named(rule or RATED_BY_SLOT).name
    rated_pairs(testset)  # raises where there are no ratings
    bare = _all_ratings(testset)
    given = _given(bare, scale)
    first = next((scale for scale in scales.values() if scale is not None), given)
    by_scale: dict[Scale, list[Measure]] = {}
    for measure, own in scales.items():
        by_scale.setdefault(own or first, []).append(measure)
    parts: dict[Scale, Evaluation] = {}
    scale_notes: list[str] = []
    for to, group in by_scale.items():
        on_scale = with_consensus(bare, rule, to=to, scale=given)
        bare_scale = replace(on_scale, ratings={})  # its grades are all that this part is about
        parts[to] = score(bare_scale, run, group, options or ScoringOptions(convention=RATED_BY_SLOT))
        named = ", ".join(map(str, parts[to].measures))
        scale_notes.append(f"on the {to} scale: {named}; {'; '.join(map(str, on_scale.notes))}")
    if len({part.query_ids for part in parts.values()}) > 1:
        raise InternalError("the same run has other queries on another scale")
    found = joined(tuple(scales), tuple(parts.values()))
    # What was made of the ratings when the set was read is not what is scored here.
    notes = tuple(note for note in testset.notes if note.kind is not NoteKind.CONSENSUS)
    return replace(
        found,
        warnings=(*scale_notes, *found.warnings),
        testset=replace(testset, grades=found.testset.grades, notes=notes),
        scales={measure: own or first for measure, own in scales.items()},
        on_scales={to: part.ranking for to, part in parts.items()},
    )


def on_its_scale(evaluation: Evaluation, spelling: str | Measure) -> tuple[Ranking, str]:
    """The ranking that one measure more is computed on, and its scale; those of the measure where it is there already.

    Raises:
        UsageError: the run was not ranked on the scale of the measure, or the measure is there on another one.
    """
    ((measure, scale),) = scales_of([spelling]).items()
    there = evaluation.scales.get(measure)
    # One that is there may be written without its `(d)`.
    wanted = scale if scale == "detail" else there or scale or _main_scale(evaluation)
    ranking = evaluation.on_scales.get(wanted)
    if ranking is None or (there is not None and there != wanted):
        but = f"it is there on the {there} scale" if there else f"the run was not ranked on the {wanted} scale"
        raise UsageError(f"{spelling} cannot be added: {but}", hint=f"ask for it with the others: -m '{spelling}'")
    return ranking, wanted


def _main_scale(evaluation: Evaluation) -> str:
    """The scale of the ranking that stands for all."""
    return next(scale for scale, ranking in evaluation.on_scales.items() if ranking is evaluation.ranking)


def _all_ratings(testset: TestSet) -> TestSet:
    """The set with ratings alone: a judgment of a document without a rating counts as the only rating of it."""
    ratings = {query_id: list(given) for query_id, given in ratings_of(testset).items()}
    for query_id, judged in testset.grades.items():
        rated = {rating.doc_id for rating in ratings.get(query_id, ())}
        alone = [Rating(doc_id, "judgment", grade) for doc_id, grade in judged.items() if doc_id not in rated]
        ratings.setdefault(query_id, []).extend(alone)
    all_ratings = {query_id: tuple(found) for query_id, found in ratings.items()}
    pooled = {q: {doc_id: g for doc_id, g in judged.items() if g < 0} for q, judged in testset.grades.items()}
    return replace(
        testset,
        grades={q: grades for q, grades in pooled.items() if grades},
        groups={},
        grouping=None,
        ratings=all_ratings,
        notes=(),
    )


def _given(testset: TestSet, scale: str | None) -> Scale:
    """The scale that the ratings are on."""
    grades = rated_pairs(testset).table.grade
    if scale is not None:
        return scale_named(scale)
    declared = next((name for name, levels in LEVELS.items() if testset.meta.scale == levels), None)
    found = declared or scale_of(grades) or (None if grades.size else "binary")  # of nothing, any scale is right
    if found is None:
        raise UsageError(
            "the ratings are on no scale that is known",
            expected=", ".join(f"{name} ({levels[0]} to {levels[-1]})" for name, levels in LEVELS.items()),
            got=", ".join(f"{grade:g}" for grade in np.unique(grades)[:10].tolist()),
        )
    return found

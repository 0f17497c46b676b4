"""What is absent: queries that are not judged, not returned or without a relevant document, and documents that are not judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.words import and_list, join_first
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.measures import CATALOGUE, Measure, compute
from cranfield.measures.kernels import expected_relevant, never_judged
from cranfield.measures.measure import LOOKS_AT_THE_LIST
from cranfield.model import Absence, Convention, Outcome, TestSet
from cranfield.ranking.value import FloatQ, Ranking, ResultState, unjudged_results

Values = Mapping[Measure, FloatQ]
Scored = Mapping[Measure, NDArray[np.bool_]]

COUNTED_AS_0 = "counted as 0"
WITHOUT_VALUE = "without a value"
WITH_VALUE = "with a value"
OUT_OF_THE_MEANS = "excluded from the means"


def absence_sentences(
    testset: TestSet, ranking: Ranking, measures: Sequence[Measure], values: Values, scored: Scored
) -> Iterator[Caveat]:
    """One sentence for each kind of absence, with the number of queries and what they count as."""
    n_queries, total = len(testset.queries), ranking.n_queries
    source = testset.other_judgments
    if source is not None and source.n_own:
        yield Caveat(
            f"not judged in {source.name}, scored by the judgments of the test set: {source.n_own} of "
            f"{source.n_judged + source.n_own + source.n_unjudged} queries",
            CaveatKind.OTHER_JUDGMENTS,
        )
    unjudged = without_judgment(testset)
    for absence in dict.fromkeys(unjudged.values()):
        named = [query_id for query_id, why in unjudged.items() if why is absence]
        sentence = f"{absence}: {len(named)} of {n_queries} queries ({OUT_OF_THE_MEANS}): {join_first(named)}"
        yield Caveat(sentence, CaveatKind.ABSENT, absence)
    for absence, places in without_relevant(ranking).items():
        if len(places):
            effect = in_brackets(effect_of(places, measures, values, scored))
            names = join_first(ranking.query_ids[place] for place in places)
            yield Caveat(f"{absence}: {len(places)} of {total} queries{effect}: {names}", CaveatKind.ABSENT, absence)
    missing, silent = unanswered(ranking)
    if silent:
        yield Caveat(
            "run files of this kind have no line for an empty answer; a missing line counts as an empty answer for negative queries: "
            f"{join_first(silent)}",
            CaveatKind.SILENT,
        )
    if missing:
        without = set(missing)
        places = np.flatnonzero([query_id in without for query_id in ranking.query_ids])
        effect = in_brackets(effect_of(places, measures, values, scored))
        sentence = f"no answer in the run for {len(missing)} of {total} queries{effect}: {join_first(missing)}"
        yield Caveat(f"{Absence.NOT_RETURNED}: {sentence}", CaveatKind.ABSENT, Absence.NOT_RETURNED)
    known = {*ranking.query_ids, *unjudged}
    skipped = [query_id for query_id in testset.query_ids if query_id not in known]
    if skipped:
        sentence = f"no answer in the run for {len(skipped)} of {n_queries} queries ({OUT_OF_THE_MEANS})"
        yield Caveat(f"{Absence.NOT_RETURNED}: {sentence}: {join_first(skipped)}", CaveatKind.ABSENT, OUT_OF_THE_MEANS)


def without_judgment(testset: TestSet) -> dict[str, Absence]:
    """Queries without a judgment, and which absence that is."""
    return {
        query_id: Absence.NO_CONSENSUS if _is_rated(testset, query_id) else Absence.NEVER_JUDGED
        for query_id in testset.unjudged_ids
    }


def _is_rated(testset: TestSet, query_id: str) -> bool:
    return any(rating.grade is not None for rating in testset.ratings.get(query_id, ()))


def without_relevant(ranking: Ranking) -> dict[Absence, NDArray[np.intp]]:
    """Positions of the judged queries without a relevant document: those only pooled, and the others."""
    barren = (expected_relevant(ranking, rel=1) == 0) & ~never_judged(ranking) & ~ranking.is_negative
    judged = ranking.closed_world.copy()
    judged[ranking.expected_query[ranking.expected_level >= 0]] = True
    return {
        Absence.ONLY_POOLED: np.flatnonzero(barren & ~judged),
        Absence.NONE_RELEVANT: np.flatnonzero(barren & judged),
    }


def unanswered(ranking: Ranking) -> tuple[list[str], list[str]]:
    """Judged queries without an answer in the run: those that are no silence, and those that count as silence."""
    missing: tuple[list[str], list[str]] = ([], [])
    if Outcome.MISSING not in ranking.outcomes:
        return missing
    is_silent, is_unjudged = ranking.keeps_silence, never_judged(ranking)
    for query, outcome in enumerate(ranking.outcomes):
        if outcome is Outcome.MISSING and not is_unjudged[query]:
            missing[bool(is_silent[query])].append(ranking.query_ids[query])
    return missing


def effect_of(places: NDArray[np.intp], measures: Sequence[Measure], values: Values, scored: Scored) -> str:
    """What queries count as: `counted as 0`, `1 counted as 0, 2 without a value`; by measure where measures differ.

    Args:
        places: positions of the queries.
        measures: those that say how far other numbers can be trusted are passed over.
        values: of all queries.
        scored: which of them count.

    Returns:
        Words for the queries; empty where no measure depends on them.
    """
    found: list[tuple[Measure, Sequence[float | None]]] = []
    for measure in measures:
        spec = CATALOGUE[measure.name]
        if not spec.diagnostic and spec.needs not in LOOKS_AT_THE_LIST and measure in values:
            rows = zip(values[measure][places].tolist(), scored[measure][places].tolist(), strict=True)
            found.append((measure, [value if counts else None for value, counts in rows]))
    return effect_text(found)


def effect_text(found: Iterable[tuple[Measure, Sequence[float | None]]]) -> str:
    """What the values of some queries amount to, from each measure with its values; None: no value."""
    by_text: dict[str, list[str]] = {}
    for measure, values in found:
        parts = {COUNTED_AS_0: values.count(0), WITHOUT_VALUE: values.count(None)}
        parts[WITH_VALUE] = len(values) - sum(parts.values())
        present = {text: n for text, n in parts.items() if n}
        text = next(iter(present), "") if len(present) < 2 else ", ".join(f"{n} {part}" for part, n in present.items())
        by_text.setdefault(text, []).append(str(measure))
    if len(by_text) == 1:
        return next(iter(by_text))
    return "; ".join(f"{text} in {and_list(names)}" for text, names in by_text.items())


def leaves_out(convention: Convention) -> bool:
    """Whether a convention has no value for a call that failed, or for an empty list."""
    return "skip" in (convention.failed, convention.empty)


def forced_zeros(convention: Convention, ranking: Ranking) -> Iterator[str]:
    """How many queries count as 0 that the convention would leave out; nothing where there is none."""
    failed = [outcome.is_failure for outcome in ranking.outcomes]
    empty = [outcome is Outcome.EMPTY for outcome in ranking.outcomes]
    n = sum(failed) * (convention.failed == "skip") + sum(empty) * (convention.empty == "skip")
    if n:
        yield (
            f"the convention {convention.name} leaves out failed queries or empty lists; {n} of {ranking.n_queries} "
            f"queries {COUNTED_AS_0} here"
        )


def in_brackets(text: str) -> str:
    """` (text)`; nothing for an empty text."""
    return f" ({text})" if text else ""


JUDGED_DEPTH = 10
"""Depth of the judged share where no measure has a depth."""


@dataclass(frozen=True, slots=True)
class MeanJudgedShare:
    """Mean share of the results that are judged."""

    measure: Measure
    mean: float | None
    """None where the question has no meaning: see `why`."""
    n: int
    why: str = ""
    pooled: int | None = None
    """Results in the pool and not judged (a grade under 0), within the depth, over all queries."""
    never_pooled: int | None = None
    """Results without any grade: in no pool that the test set knows of."""


def judged_share(ranking: Ranking, depth: int | None) -> MeanJudgedShare:
    """Mean share of the first `depth` results that are judged, over the queries where anything can be unjudged."""
    measure = Measure("Judged", (), depth or JUDGED_DEPTH)
    values, scored, reasons = compute(measure, ranking)
    if not scored.any():
        return MeanJudgedShare(measure, None, 0, next(iter(reasons.values()), "no query"))
    pooled, never_pooled = unjudged_counts(ranking, depth or JUDGED_DEPTH)
    return MeanJudgedShare(
        measure, float(values[scored].mean()), int(scored.sum()), pooled=pooled, never_pooled=never_pooled
    )


def unjudged_counts(ranking: Ranking, depth: int) -> tuple[int, int]:
    """Results within a depth that are in the pool and not judged, and results that were never pooled."""
    query, _ = unjudged_results(ranking, depth)
    within = (ranking.rank <= depth) & ~ranking.closed_world[ranking.query]
    pooled = int(((ranking.state == ResultState.POOLED) & within).sum())
    return pooled, len(query) - pooled

"""What a convention decides around a kernel: the results it sees, which queries have a value, how a value is rounded.

`compute` asks here before and after every kernel. Measures that only say how far others can be trusted (`diagnostic`)
see the list as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cranfield.measures.kernels import expected_relevant, judged_within, never_judged
from cranfield.measures.measure import Measure, Reason
from cranfield.measures.orders import convention_for
from cranfield.model import QUERY_CLASSES, Absence, Outcome
from cranfield.ranking.transform import condensed, exponential_gains, ties_reversed, with_gains
from cranfield.ranking.value import FloatQ, Ranking

FAILED = "the system failed on it"
NOTHING_JUDGED = "nothing within the cutoff is judged"


def seen_by(measure: Measure, ranking: Ranking, *, diagnostic: bool) -> Ranking:
    """The ranking a measure looks at, by its own parameters and by the convention's choices."""
    ranking = ordered_for(measure, ranking)
    drops_unjudged = ranking.convention.unjudged == "condensed" and not diagnostic
    if drops_unjudged or measure.param("judged_only", default=False):
        ranking = condensed(ranking)
    if ranking.convention.gain == "exponential" and measure.name != "CG":  # Quepid's CG sums the ratings
        ranking = exponential_gains(ranking)
    gains = measure.param("gains", default=())
    return with_gains(ranking, dict(gains)) if isinstance(gains, tuple) and gains else ranking


def ordered_for(measure: Measure, ranking: Ranking) -> Ranking:
    """The ranking with its ties as the convention has them for this measure, as far as a ranking can be turned round."""
    convention = ranking.convention
    reverses = {convention_for(measure, convention).ties, convention.ties} == {"ascending", "descending"}
    return ties_reversed(ranking) if reverses else ranking


def order_is_random(measure: Measure, ranking: Ranking) -> bool:
    """Whether the order of a tie changes nothing but ranks: not what is divided by, what is credited or what is in the list."""
    convention = ranking.convention
    if (
        convention.unjudged != "not relevant"
        or convention.credit == "every"
        or measure.param("judged_only", default=False)
    ):
        return False
    divides_by_the_list = {
        "P": convention.precision_over == "judged",
        "AP": convention.average_precision_over == "found" or measure.param("divisor", "relevant") == "retrieved",
        "nDCG": convention.ideal == "retrieved",
    }
    if divides_by_the_list.get(measure.name, False):
        return False
    entries = (
        ranking.expected_start[ranking.query] + ranking.item
    )  # an item with several results is credited to the first
    tied = ranking.tie_last > ranking.tie_first
    repeated = np.bincount(entries, minlength=len(ranking.expected_query)) > 1
    return not bool((tied & repeated[entries]).any())


def refused(measure: Measure, ranking: Ranking) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries of a class that the measure says nothing of, and why."""
    classes = np.array(ranking.classes)
    for name in dict.fromkeys(ranking.classes):
        if name and (why := QUERY_CLASSES[name].why_refused(measure.name)):
            yield np.flatnonzero(classes == name), why


def without_value(
    measure: Measure, ranking: Ranking, *, only_failures: bool = False
) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries that the convention gives no value, and why, the plainest reason first.

    Args:
        measure: what is computed.
        ranking: Q queries.
        only_failures: empty answers and unjudged queries are no reason.
    """
    convention, outcomes = ranking.convention, ranking.outcomes
    if convention.failed == "skip":
        yield np.flatnonzero([outcome.is_failure for outcome in outcomes]), FAILED
    if only_failures:
        return
    if convention.empty == "skip":
        answered = [not outcome.is_failure and outcome is not Outcome.MISSING for outcome in outcomes]
        yield np.flatnonzero(np.array(answered, dtype=np.bool_) & (ranking.n_returned == 0)), Reason.NOTHING_RETURNED
    if convention.no_relevant == "skip":
        rel = measure.param("rel", default=1)
        relevant = expected_relevant(ranking, rel=rel if isinstance(rel, int) else 1)
        yield np.flatnonzero(relevant == 0), Absence.NONE_RELEVANT
    if convention.unjudged == "unscored":
        cutoff = measure.cutoff if isinstance(measure.cutoff, int) else None
        yield np.flatnonzero((ranking.n_returned > 0) & (judged_within(ranking, cutoff) == 0)), NOTHING_JUDGED


def unjudged(ranking: Ranking) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries without a judgment: no tool that reads qrels evaluates them. A convention may have its own reason."""
    places = np.flatnonzero(never_judged(ranking))
    if len(places) and ranking.convention.unjudged != "unscored":
        yield places, Absence.NEVER_JUDGED


def rounded(values: FloatQ, decimals: int | None) -> FloatQ:
    """Values to so many decimals, halves up; unchanged where the convention does not round."""
    if decimals is None:
        return values
    scale = 10.0**decimals
    with np.errstate(over="ignore"):
        result: FloatQ = np.floor(values * scale + 0.5) / scale
    return np.where(np.isinf(result), values, result)  # so great a value has no decimals

"""Checks by the limits of a comparison: failures, judged share, queries without a pair, and one run under two names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.absence import without_judgment, without_relevant
from cranfield.evaluation.evidence.inspected import Inspected, Sides
from cranfield.evaluation.evidence.values import Found, Scored
from cranfield.evaluation.judged import judged_share
from cranfield.model import Absence, Outcome
from cranfield.numbers import format_percent
from cranfield.words import and_list, n_of

DECIMALS = 12
"""Decimals to which a share is rounded before it is compared with a limit."""


def failed_queries(system: Scored, limit: float) -> Iterator[Found]:
    """More failed or unanswered queries than the limit."""
    outcomes = system.ranking.outcomes
    # A run file has no line for an empty answer, so a missing query is no failure there.
    is_collected = system.run is not None and system.run.says_empty
    if not any(outcome.is_failure or outcome is Outcome.MISSING for outcome in set(outcomes)):
        return
    bad = [
        query_id
        for query_id, outcome in zip(system.query_ids, outcomes, strict=True)
        if outcome.is_failure or (is_collected and outcome is Outcome.MISSING)
    ]
    if bad and len(bad) / len(outcomes) > limit:
        cause = system.ranking.why_failed(system.run)
        why = f": {cause}" if cause else ""
        yield Found.of(
            f"{len(bad)} of {len(outcomes)} queries failed or have no answer "
            f"({format_percent(len(bad) / len(outcomes))}){why}; the limit is {format_percent(limit)} (limits.max_failed_share)",
            bad,
            len(outcomes),
        )


def low_judged_share(system: Inspected, limit: float) -> Iterator[Found]:
    """A smaller judged share than the limit."""
    share = judged_share(system.ranking, system.depth)
    if share.mean is not None and round(share.mean, DECIMALS) < limit:
        of = f"{share.measure} is {format_percent(share.mean)}"
        yield Found(f"{of}; the limit is {format_percent(limit)} (limits.min_judged_share)")


def mostly_unjudged(sides: Sides, limit: float) -> Iterator[Found]:
    """A judged share with which what is unjudged can matter more than what is judged; of two systems see `Comparison.unjudged`."""
    found = [(system, judged_share(system.ranking, system.depth)) for system in sides.systems]
    shares = {system.name: share.mean for system, share in found}
    if len(found) != 2 and (sentence := mostly_unjudged_sentence(found[0][1].measure, shares, limit)):
        yield Found(sentence)


def mostly_unjudged_sentence(measure: object, shares: Mapping[str, float | None], limit: float) -> str:
    """Of the judged shares of systems those that are under the limit; empty where none is."""
    low = {name: share for name, share in shares.items() if share is not None and round(share, DECIMALS) < limit}
    if not low:
        return ""
    named = ", ".join(f"{name} {format_percent(share)}" for name, share in low.items())
    what = f"{measure} is under {format_percent(limit)} ({named})"
    if len(low) == 1:
        ((name, share),) = low.items()
        what = f"{name}: {measure} is {format_percent(share)}, under {format_percent(limit)}"
    return f"{what}: judgments of the other results can change the figures"


def unpaired_queries(sides: Sides, limit: float) -> Iterator[Found]:
    """More queries with a value for some systems only than the limit."""
    primary, systems = sides.primary, sides.systems
    if len(systems) < 2:
        return
    with_value = [
        {system.query_ids[place] for place in np.flatnonzero(system.scored[primary]).tolist()} for system in systems
    ]
    total = len(set().union(*(system.query_ids for system in systems)))
    some, every = set().union(*with_value), set(with_value[0]).intersection(*with_value[1:])
    lost = tuple(sorted(some - every))
    if lost and len(lost) / total > limit:
        where = "on one side only" if len(systems) == 2 else "for some systems only"
        yield Found.of(
            f"{len(lost)} of {total} queries have a value of {primary} {where} ({format_percent(len(lost) / total)}); "
            f"the limit is {format_percent(limit)} (limits.max_failed_share)",
            lost,
            total,
        )


def never_judged_queries(sides: Sides, threshold: float) -> Iterator[Found]:
    """More queries without a judgment than the share: the means are of the others."""
    testset = sides.systems[0].testset
    absent, total = tuple(without_judgment(testset)), len(testset.queries)
    if absent and len(absent) / total > threshold:
        yield Found.of(
            f"{len(absent)} of {total} queries have no judgment ({format_percent(len(absent) / total)}): "
            "the means are of the others",
            absent,
            total,
        )


def nothing_judged(sides: Sides, limit: float) -> Iterator[Found]:
    """As many queries as the share have grades under 0 only, as in a starter test set: their zeros are no scores."""
    system = sides.systems[0]
    ranking = system.ranking
    pooled = system.ids_of(_at(without_relevant(ranking)[Absence.ONLY_POOLED], ranking.n_queries))
    n_queries = int((~ranking.is_negative).sum())
    if pooled and len(pooled) / n_queries >= limit:
        yield Found.of(
            f"nothing is judged yet: {len(pooled)} of {n_of(n_queries, 'queries')} have no grade of 0 or more, and their values of 0 "
            "say nothing about a system; judge results, then score them",
            pooled,
            n_queries,
        )


def _at(places: NDArray[np.intp], n_queries: int) -> NDArray[np.bool_]:
    mask = np.zeros(n_queries, dtype=np.bool_)
    mask[places] = True
    return mask


def identical_runs(sides: Sides, _limit: float) -> Iterator[Found]:
    """A sentence for each group of systems whose runs have one digest: usually a file or a setting named twice."""
    by_digest: dict[str, list[str]] = {}
    for system in sides.systems:
        by_digest.setdefault(system.run_digest, []).append(system.name)
    for digest, names in by_digest.items():
        if digest and len(names) > 1:
            yield Found(
                f"the runs of {and_list(names)} are identical ({digest[:19]}…): check that they come from different systems",
                count=len(names),
                total=len(sides.systems),
            )

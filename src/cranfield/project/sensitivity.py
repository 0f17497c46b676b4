"""A comparison varied one choice at a time, with the grades that other consensus rules make of the ratings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import CranfieldError
from cranfield.evaluation.scales import RATED_BY_SLOT
from cranfield.evaluation.sensitivity import SENSITIVITY_DRAWS, Regraded, Sensitivity
from cranfield.evaluation.sensitivity import sensitivity as vary
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.stats.consensus import CONSENSUS, DEFAULT_RULE

if TYPE_CHECKING:
    from cranfield.model import TestSet
    from cranfield.project.inputs import RunLike

NO_RUN = "the runs are not at hand to be scored anew"


def sensitivity(
    comparison: Comparison,
    *,
    runs: tuple[RunLike, RunLike] | None = None,
    scale: str | None = None,
    to_scale: str | None = None,
    n_draws: int = SENSITIVITY_DRAWS,
    **reading: Any,
) -> Sensitivity:
    """Vary one choice of a comparison at a time; where the test set has ratings, the consensus rule too.

    Args:
        comparison: what `compare` returned.
        runs: baseline and candidate as `evaluate` took them; None takes the collected runs that the evaluations hold.
        scale: what the ratings are on, where it was said.
        to_scale: what each rating was mapped to, where it was.
        n_draws: random draws of each variation.
        reading: other keywords of `evaluate` that the runs were read with (run_format, columns).
    """
    testset = comparison.baseline.testset
    regraded: dict[str, Regraded] = {}
    if testset.ratings:
        sides = comparison.baseline, comparison.candidate
        given: tuple[RunLike | None, ...] = tuple(side.run for side in sides) if runs is None else runs
        by_slot = comparison.baseline.ranking.convention.name == RATED_BY_SLOT
        declared = testset.consensus or (RATED_BY_SLOT if by_slot else DEFAULT_RULE)  # a rule has the convention's name
        for rule in CONSENSUS:
            if rule != declared:
                regraded[rule] = _regraded(sides, given, str(comparison.primary), rule, scale, to_scale, reading)
    return vary(comparison, regraded=regraded, n_draws=n_draws)


def _regraded(
    sides: tuple[Evaluation, Evaluation],
    runs: tuple[RunLike | None, ...],
    primary: str,
    rule: str,
    scale: str | None,
    to_scale: str | None,
    reading: dict[str, Any],
) -> Regraded:
    """Both runs scored on the grades that a rule makes, or why they were not."""
    from cranfield.testsets.consensus import with_consensus

    known = [run for run in runs if run is not None]
    if len(known) < len(runs):
        return NO_RUN
    if sides[0].ranking.convention.name == RATED_BY_SLOT and (scale or to_scale):
        scale = to_scale = None  # there each measure has a scale of its own
    try:
        testset = with_consensus(sides[0].testset, rule, to=to_scale, scale=scale)
        first, second = (_again(testset, side, run, primary, reading) for side, run in zip(sides, known, strict=True))
    except CranfieldError as error:
        return str(error).splitlines()[0]
    return first, second


def _again(testset: TestSet, side: Evaluation, run: RunLike, primary: str, reading: dict[str, Any]) -> Evaluation:
    from cranfield.project.recipe import evaluate

    asked: dict[str, Any] = {name: side.reading.get(name) for name in ("depth", "missing", "duplicates")}
    return evaluate(
        testset, run, measures=[primary], convention=side.ranking.convention, name=side.name, **asked, **reading
    )

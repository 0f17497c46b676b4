"""The holes of two runs, from their files: the view of the test set, the comparison, the next pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cranfield.errors import UsageError
from cranfield.evaluation.compare import compare
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.judging.pools.found_holes import FoundHoles
from cranfield.judging.pools.holes import find_holes
from cranfield.judging.pools.results import SystemResults
from cranfield.judging.pools.rule_view import Grades, rule_view
from cranfield.measures import DEFAULT_MEASURES, parse
from cranfield.model import Run, TestSet
from cranfield.options.compare import CompareOptions
from cranfield.options.scoring import ScoringOptions
from cranfield.project.pool_runs import read_systems
from cranfield.project.recipe import evaluate_with_options


def holes_of_files(
    testset: TestSet,
    specs: Sequence[str],
    declared: CompareOptions,
    *,
    scoring: ScoringOptions | None = None,
    people: Grades | None = None,
    n_turns: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> FoundHoles:
    """Read two runs and find the holes of their comparison.

    Args:
        testset: of graded ids, or of targets: then in the view of `rule_view`.
        specs: baseline and candidate, `FILE` or `NAME=FILE`.
        declared: as for a comparison; the primary measure alone is computed, nDCG@10 by default.
        scoring: how the runs are scored.
        people: grades of persons, which take the place of the test set's.
        n_turns: first holes that are tested one by one for turning the verdict.
        progress: called with the queries bounded and their number.
    """
    given = scoring or ScoringOptions()
    systems = read_systems(specs, testset, given.convention_name)
    primary = parse(declared.primary or DEFAULT_MEASURES[0])
    declared = replace(declared, primary=primary.canonical)

    def compared(judged: TestSet, runs: Sequence[Run]) -> Comparison:
        deepest = max((len(answer.hits) for run in runs for answer in run.answers.values()), default=1)
        options = replace(given, keep=primary.depth or deepest)
        sides: list[Evaluation] = [
            evaluate_with_options(judged, run, [primary], replace(options, name=run.name)) for run in runs
        ]
        return compare(sides[0], sides[1], declared)

    if not people:
        _require_judged(testset)
    view = rule_view(testset, [system.run for system in systems], people=people)
    return FoundHoles(
        find_holes(compared(view.testset, view.runs), n_turns=n_turns, progress=progress),
        testset,
        view,
        tuple(SystemResults(system.name, run) for system, run in zip(systems, view.runs, strict=True)),
        compared(testset, [system.run for system in systems]) if view.is_rule else None,
        people,
    )


def _require_judged(testset: TestSet) -> None:
    if not testset.targets and not any(grade >= 0 for docs in testset.grades.values() for grade in docs.values()):
        raise UsageError(
            f"nothing is judged in the test set {testset.name!r}, so there is no verdict yet",
            hint="`cranfield pool` makes a first pool to judge",
        )

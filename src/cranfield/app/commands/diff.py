"""`cranfield diff`: two runs beside each other, without judgments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from cranfield.app.command import Report, Status, takes_runs
from cranfield.app.commands.shared import TestSetFormatOption, require_single_stdin
from cranfield.base.errors import CranfieldError, Problem, UsageError
from cranfield.evaluation.options.declaration import Argument, Option


def parse_share(text: str) -> float:
    """`10%` or `0.1`: a share from 0 to 1."""
    number, percent, _ = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{text!r} is not a share such as 10% or 0.1.")
    return share


@takes_runs("baseline", "candidate", scored=False)
def diff_command(
    baseline: Annotated[Path, Argument("A run, or the name of a system with a saved run.", metavar="BASELINE")],
    candidate: Annotated[Path, Argument("The run beside it.", metavar="CANDIDATE")],
    *,
    k: Annotated[int, Option("Results of each list that are compared.", short="-k", metavar="N"), Ge(1)] = 10,
    persistence: Annotated[
        float, Option("Persistence p of rank-biased overlap, between 0 and 1: the larger, the more low ranks count.")
    ] = 0.9,
    queries: Annotated[
        Path | None,
        Option("Queries that both should answer, with their texts: a test set, or a list of queries.", metavar="FILE"),
    ] = None,
    max_first_changed: Annotated[
        str | None,
        Option(
            "Exit with 1 if more queries have another first result: 10% or 0.1.", metavar="SHARE", parse=parse_share
        ),
    ] = None,
    min_overlap: Annotated[float | None, Option("Exit with 1 if the mean overlap is lower.", metavar="X")] = None,
    min_rbo: Annotated[
        float | None, Option("Exit with 1 if the mean rank-biased overlap is lower.", metavar="X")
    ] = None,
    show: Annotated[int, Option("Queries whose lists stand side by side in the full report.", metavar="N"), Ge(0)] = 10,
    testset_format: TestSetFormatOption = None,
) -> Report:
    """Compare two runs without judgments: what changed, and where most.

    Overlap, Jaccard and rank-biased overlap of each query, new and lost results, other first results, and the results that are
    worth judging first. It says how much changed, not whether it is better: `cranfield compare` does, with judgments.
    """
    from cranfield.app.loading import read_stored
    from cranfield.evaluation.difference import BoundKind, DifferenceVerdict, difference_of
    from cranfield.ranking.collected import read_run_file
    from cranfield.reporting.documents.difference import difference_document

    given = {
        BoundKind.FIRST_CHANGED: max_first_changed,
        BoundKind.OVERLAP: min_overlap,
        BoundKind.RBO: min_rbo,
    }
    bounds = {kind: float(bound) for kind, bound in given.items() if bound is not None}
    require_single_stdin([baseline, candidate])
    problems = [
        Problem(f"--{kind} is {bound:g}", expected="a number from 0 to 1")
        for kind, bound in bounds.items()
        if not 0 <= bound <= 1
    ]
    testset, runs = None, []
    try:
        testset = None if queries is None else read_stored(queries, testset_format, judged=False)
    except CranfieldError as error:
        problems += error.problems
    for path in (baseline, candidate):
        try:
            runs.append(read_run_file(path, testset))
        except CranfieldError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    found = difference_of(*runs, testset=testset, k=k, p=persistence, bounds=bounds)
    broken = any(not bound.holds for bound in found.bounds)
    status = Status.FAILED if broken else Status.OK
    if found.verdict is DifferenceVerdict.INVALID:
        status = Status.VOID
    return Report(document=difference_document(found, shown=show), status=status)

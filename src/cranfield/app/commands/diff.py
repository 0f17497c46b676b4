"""`cranfield diff`: two runs, or two systems of a config, beside each other, without judgments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from cranfield.app.command import Report, Status, takes_runs
from cranfield.app.commands.shared import (
    KeptOption,
    RefreshOption,
    TestSetFormatOption,
    TestSetNameOption,
    answer_cache,
    require_single_stdin,
)
from cranfield.base.errors import Problem, UsageError
from cranfield.evaluation.options.blocks import DifferenceOptions
from cranfield.evaluation.options.declaration import Argument, Option


@takes_runs("baseline", "candidate", scored=False)
def diff_command(
    baseline: Annotated[
        Path | None,
        Argument(
            "A run, or the name of a system with a saved run. Without runs, two systems of the config are queried.",
            metavar="[BASELINE]",
        ),
    ] = None,
    candidate: Annotated[Path | None, Argument("The run beside it.", metavar="[CANDIDATE]")] = None,
    *,
    differing: DifferenceOptions,
    queries: Annotated[
        Path | None,
        Option("Queries that both should answer, with their texts: a test set, or a list of queries.", metavar="FILE"),
    ] = None,
    show: Annotated[int, Option("Queries whose lists stand side by side in the full report.", metavar="N"), Ge(0)] = 10,
    testset_format: TestSetFormatOption = None,
    config: Annotated[
        Path | None,
        Option("Configuration file whose systems are queried, or can be given by name.", metavar="FILE"),
    ] = None,
    systems: Annotated[
        list[str] | None,
        Option("Query this system of the config; baseline first, then candidate.", flag="--system", metavar="NAME"),
    ] = None,
    set_name: TestSetNameOption = None,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
) -> Report:
    """Compare two runs without judgments: what changed, and where most.

    Overlap, Jaccard and rank-biased overlap of each query, new and lost results, other first results, and the results that are
    worth judging first. It says how much changed, not whether it is better: `cranfield compare` does, with judgments. The exit
    code is 1 if a bound is broken.

    Without runs, every query of the test set, or of the list of queries that stands in its place, is sent to baseline and
    candidate of the config; its block `diff` has the same options and bounds.
    """
    from cranfield.app.difference import difference_of_files, difference_of_systems
    from cranfield.evaluation.difference import DifferenceVerdict
    from cranfield.reporting.documents.difference import difference_document

    cache = answer_cache(no_cache=no_cache, refresh=refresh)
    if baseline is None:
        found = difference_of_systems(
            config or Path("cranfield.yaml"),
            differing,
            systems=systems or (),
            testset=set_name,
            queries=queries,
            queries_format=testset_format,
            cache=cache,
        )
    elif candidate is None:
        raise UsageError("one run is given", expected="BASELINE and CANDIDATE; or neither, to query two systems")
    else:
        of_config = {"--system": systems, "--testset": set_name, "--no-cache": no_cache, "--refresh": refresh}
        if problems := [Problem(f"{name} is given", expected="no runs") for name, given in of_config.items() if given]:
            raise UsageError(problems)
        require_single_stdin([baseline, candidate])
        found = difference_of_files(baseline, candidate, differing, queries=queries, queries_format=testset_format)
    status = Status.FAILED if any(not bound.holds for bound in found.bounds) else Status.OK
    if found.verdict is DifferenceVerdict.INVALID:
        status = Status.VOID
    return Report(document=difference_document(found, shown=show), status=status)

"""`cranfield run`: collect, evaluate, compare, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_SYSTEM, EXIT_VERDICT
from cranfield.cli.option_groups import PairsOption, SeedOption, SortOption, option_groups
from cranfield.cli.shared import (
    AllowDriftOption,
    ContrastOption,
    FailOnOption,
    FloorOption,
    Format,
    KeptOption,
    MeasureOption,
    OutFolderOption,
    Output,
    PilotOption,
    RefreshOption,
    answer_cache,
    contrasts_of,
    deliver,
    floors_exit_code,
    today,
    verdict_exit_code,
)

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides
    from cranfield.app.run import Job
    from cranfield.evaluation.verdict_table import VerdictCode

SensitivityOption = Annotated[
    bool, typer.Option("--sensitivity", help="Add a sensitivity analysis (two systems only).")
]
WORST_FIRST = (EXIT_SYSTEM, EXIT_VERDICT, EXIT_INCONCLUSIVE, 0)
"""A system that does not work is worse than a verdict, and a verdict worse than none."""


@option_groups
def run_command(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="[CONFIG|TESTSET]",
            help="Configuration file: test set, systems, measures; before systems the file of a test set.",
        ),
    ] = Path("cranfield.yaml"),
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[[NAME=]FILE|URL|COMMAND]...",
            help="Without a config: systems, and further files of the test set, as `cranfield init` takes them.",
        ),
    ] = None,
    *,
    measures: MeasureOption = None,
    floor: FloorOption = None,
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="NAME", help="Run only this system; repeat for more, baseline first."),
    ] = None,
    out: OutFolderOption = Path("cranfield-out"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    allow_drift: AllowDriftOption = False,
    contrast: ContrastOption = None,
    sensitivity: SensitivityOption = False,
    sort: SortOption = "mean",
    pairs: PairsOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    fail_on: FailOnOption = None,
    output: Output,
    overrides: SetOverrides,
) -> None:
    """Send every query to every system; score, compare and report.

    Every run sends every query. An interrupted collection resumes when the command is repeated. Answers of an earlier
    run are used only where the config asks for it (`cache_h`) and the system says what they depend on (`depends`). With --full, the
    last line is the command that scores the saved runs by other measures, without asking a system. Several test sets are
    run one after another, each into a subfolder of its name; the exit code is that of the worst result.

    Without a config, a test set and its systems are enough: `cranfield run code.csv './search {query}' -m Hit@5 --floor Hit@5=0.70`.
    """
    from cranfield.app.floors import parse_floors
    from cranfield.app.run import run_job

    job = run_job(
        config,
        out=out,
        systems=systems or None,
        seed=seed,
        pilot=pilot,
        allow_drift=allow_drift,
        contrasts=contrasts_of(contrast),
        sensitivity=sensitivity,
        sort=sort,
        pairs=pairs,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
        today=today(),
        overrides=replace(overrides, measures=tuple(measures or ())),
        floors=parse_floors(floor or ()),
        targets=[str(config), *targets] if targets else (),
    )
    deliver(job.document, output.showing(sensitivity, pairs, contrast), written=job.written)
    if output.full or output.format is not Format.TEXT:
        _show_rescoring(job.parts or (job,))
    codes = {_exit_code(part, fail_on) for part in job.parts or (job,)} | {floors_exit_code(job.floors)}
    raise typer.Exit(next(code for code in WORST_FIRST if code in codes))


def _show_rescoring(jobs: Sequence[Job]) -> None:
    """Name on stderr the command that scores the runs by other measures, for each test set."""
    what = "these runs" if len(jobs) == 1 else "the runs of each test set"
    typer.echo(f"To score {what} by other measures, without asking the systems, change -m in:", err=True)
    for job in jobs:
        typer.echo(f"  {job.rescore}", err=True)


def _exit_code(job: Job, fail_on: Sequence[VerdictCode] | None) -> int:
    """The exit code of one test set: of a verdict to fail on, or of broken limits."""
    verdicts = (
        [job.comparison.verdict.code] if job.comparison is not None else job.many.claims if job.many is not None else ()
    )
    return verdict_exit_code(verdicts, fail_on) or (EXIT_SYSTEM if job.void else 0)

"""`cranfield grid`: the best settings of a system, judged on other queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_SYSTEM
from cranfield.cli.option_groups import SeedOption, option_groups
from cranfield.cli.shared import (
    FailOnOption,
    KeptOption,
    OutFolderOption,
    Output,
    PilotOption,
    RefreshOption,
    TestSetNameOption,
    answer_cache,
    deliver,
    verdict_exit_code,
)

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides


@option_groups
def grid_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="Configuration file with a `grid:` block.")] = Path(
        "cranfield.yaml"
    ),
    *,
    testset: TestSetNameOption = None,
    out: OutFolderOption = Path("cranfield-grid"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    fail_on: FailOnOption = None,
    output: Output,
    overrides: SetOverrides,
) -> None:
    """Grid search: choose settings, and test them on held-out queries.

    The verdict compares the chosen settings with those of the config on the held-out queries. An interrupted collection
    resumes when the command is repeated.
    """
    from cranfield.app.grid import run_grid

    job = run_grid(
        config,
        out=out,
        testset=testset,
        seed=seed,
        pilot=pilot,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
        overrides=overrides,
    )
    deliver(job.document, output, written=job.written)
    if job.void_reasons:
        raise typer.Exit(EXIT_SYSTEM)
    if job.result.comparison is not None:
        raise typer.Exit(verdict_exit_code([job.result.comparison.verdict], fail_on))

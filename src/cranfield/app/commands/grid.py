"""`cranfield grid`: the best settings of a system, judged on other queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report, Status
from cranfield.app.commands.shared import (
    FailOnOption,
    KeptOption,
    OutFolderOption,
    PilotOption,
    RefreshOption,
    SeedOption,
    TestSetNameOption,
    answer_cache,
    verdict_status,
)
from cranfield.options.declaration import Argument

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides


def grid_command(
    config: Annotated[Path, Argument("Configuration file with a `grid:` block.", metavar="CONFIG")] = Path(
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
    overrides: SetOverrides,
) -> Report:
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
    verdicts = [] if job.result.comparison is None else [job.result.comparison.verdict]
    status = Status.VOID if job.void_reasons else verdict_status(verdicts, fail_on)
    return Report(document=job.document, written=job.written, status=status)

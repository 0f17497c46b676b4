"""`cranfield components`: what each component of a system brings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_SYSTEM
from cranfield.cli.option_groups import SeedOption, option_groups
from cranfield.cli.shared import (
    KeptOption,
    OutFolderOption,
    Output,
    PilotOption,
    RefreshOption,
    TestSetNameOption,
    answer_cache,
    deliver,
)
from cranfield.cli.system import CONFIG, ConfigOption

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides


@option_groups
def components_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A fusion, or a system that lists its `components`.")],
    *,
    config: ConfigOption = CONFIG,
    testset: TestSetNameOption = None,
    out: OutFolderOption = Path("cranfield-components"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    output: Output,
    overrides: SetOverrides,
) -> None:
    """Measure what each component of a system contributes.

    Alone, all together, and all but one.

    An interrupted collection resumes when the command is repeated.
    """
    from cranfield.app.grid import run_components

    job = run_components(
        name,
        config,
        out=out,
        testset=testset,
        seed=seed,
        pilot=pilot,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
        overrides=overrides,
    )
    deliver(job.document, output, written=job.written)
    raise typer.Exit(EXIT_SYSTEM if job.void_reasons else 0)

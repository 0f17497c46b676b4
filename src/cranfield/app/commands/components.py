"""`cranfield components`: what each component of a system brings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report, Status
from cranfield.app.commands.shared import (
    KeptOption,
    OutFolderOption,
    PilotOption,
    RefreshOption,
    SeedOption,
    TestSetNameOption,
    answer_cache,
)
from cranfield.app.commands.system import CONFIG, ConfigOption
from cranfield.options.declaration import Argument

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides


def components_command(
    name: Annotated[str, Argument("A fusion, or a system that lists its `components`.", metavar="NAME")],
    *,
    config: ConfigOption = CONFIG,
    testset: TestSetNameOption = None,
    out: OutFolderOption = Path("cranfield-components"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    overrides: SetOverrides,
) -> Report:
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
    return Report(document=job.document, written=job.written, status=Status.VOID if job.void_reasons else 0)

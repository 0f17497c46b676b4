"""`cranfield components`: what each component of a system brings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import (
    EXIT_SYSTEM,
    Format,
    FormatOption,
    KeptOption,
    PilotOption,
    RefreshOption,
    SeedOption,
    answer_cache,
    deliver,
)


def components_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A system that lists its `components`, or a fusion of others.")
    ],
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The configuration: test set, systems, measures.")
    ] = Path("cranfield.yaml"),
    *,
    testset: Annotated[
        str | None, typer.Option("--testset", metavar="NAME", help="Which test set, where the config has several.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for results.json, report.html, report.md and runs.")
    ] = Path("cranfield-components"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    output: FormatOption = Format.TEXT,
) -> None:
    """Measure each component alone, all together and all but one, and say what each of them brings.

    An interrupted collection is kept: the same command goes on from there.
    """
    from cranfield.project.components import run_components

    job = run_components(
        name,
        config,
        out=out,
        testset=testset,
        seed=seed,
        pilot=pilot,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
    )
    deliver(job.document, output, None)
    for path in job.written:
        typer.echo(f"wrote {path}", err=True)
    raise typer.Exit(EXIT_SYSTEM if job.broken_limits else 0)

"""`cranfield demo`: the main job on two real systems over the installed standard library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver, refuse_planted_folder


@option_groups
def demo_command(
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Output folder of the demo.", callback=refuse_planted_folder)
    ] = Path("cranfield-demo"),
    output: Output,
) -> None:
    """Compare two search systems over the Python standard library.

    The report says which one is better.
    """
    from cranfield.app.run import run_job
    from cranfield.demo.build import build_demo
    from cranfield.installation import this_installation
    from cranfield.platforms import PROGRAMS, require

    require(PROGRAMS, "the demo, which starts its search systems as programs,")
    typer.echo(f"indexing the Python standard library twice, in {out} …", err=True)
    demo = build_demo(out)
    for line in demo.drift.sentences():
        typer.echo(line, err=True)
    job = run_job(demo.config, out=out)
    deliver(job.document, output, written=job.written)
    serve = this_installation().next_command("serve cranfield.yaml --workbench workbench.yaml", "web")
    typer.echo(f"Next, in {out}: {serve}", err=True)

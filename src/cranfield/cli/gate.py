"""`cranfield gate`: does the system keep its rules?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import EXIT_INCONCLUSIVE, EXIT_SYSTEM, EXIT_VERDICT, Format, FormatOption, deliver

EXIT_CODES = {"passed": 0, "failed": EXIT_VERDICT, "inconclusive": EXIT_INCONCLUSIVE, "invalid": EXIT_SYSTEM}
"""What the status of a gate makes of the exit code, whatever is printed."""

ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The configuration: test set, systems, and the gate's rules.")
]
FromOption = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="Judge the run in this output folder of `cranfield run`."),
]
RunOption = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="Judge this run file, of any format.")]


def gate_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    folder: FromOption = None,
    run: RunOption = None,
    baseline_ref: Annotated[
        str | None,
        typer.Option(
            "--baseline-ref",
            metavar="REF",
            help="Take rules and baseline from this git ref (origin/main), so that a pull request cannot loosen its own.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the run, gate.json, gate.html and gate.md.")
    ] = Path("cranfield-gate"),
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write the report for a pull request here too.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the rules as JUnit XML, a test case each.")
    ] = None,
    step_summary: Annotated[
        bool, typer.Option("--step-summary", help="Append the report to the summary page of a GitHub Actions step.")
    ] = False,
    output: FormatOption = Format.TEXT,
) -> None:
    """Check a system against the rules of the config, and its baseline.

    Exit codes: 0 every rule is kept; 1 a rule is broken; 4 none is broken and one is inconclusive; 3 the system failed beyond
    the limits; 2 the call, the config, the baseline or the run cannot be used. They do not depend on the output format.
    """
    from cranfield.project.ci import append_step_summary, summary_page, write_junit
    from cranfield.project.gate import Source, run_gate
    from cranfield.reporting import render, save_report

    if markdown is not None and markdown.suffix.lower() != ".md":
        raise typer.BadParameter("a file whose name ends in .md", param_hint="--markdown")
    if step_summary:
        summary_page()  # refused before a query is sent
    job = run_gate(config, out=out, source=Source(folder, run), baseline_ref=baseline_ref)
    written = list(job.written)
    if markdown is not None:
        save_report(job.document, markdown)
        written.append(markdown)
    if junit is not None:
        write_junit(list(job.results.items()), junit)
        written.append(junit)
    if step_summary:
        typer.echo(append_step_summary(render(job.document, "markdown")), err=True)
    deliver(job.document, output, None)
    for path in written:
        typer.echo(f"wrote {path}", err=True)
    raise typer.Exit(EXIT_CODES[job.status])

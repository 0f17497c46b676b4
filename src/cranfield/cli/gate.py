"""`cranfield gate`: does the system keep its rules?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_SYSTEM, EXIT_VERDICT
from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver, refuse_planted_folder

if TYPE_CHECKING:
    from cranfield.app.gate import GateJob
    from cranfield.app.loading import SetOverrides

EXIT_CODES = {"passed": 0, "failed": EXIT_VERDICT, "inconclusive": EXIT_INCONCLUSIVE, "invalid": EXIT_SYSTEM}
"""What the status of a gate makes of the exit code, whatever is printed."""

ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="Configuration file: test set, systems and gate rules.")
]
FromOption = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="Use the run in this output folder of `cranfield run`."),
]
RunOption = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="Use this run file, in any run format.")]
ResumeOption = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Use the answers in this folder, which an interrupted call named, and query the system for the others.",
    ),
]
RefOption = Annotated[
    str | None,
    typer.Option(
        "--baseline-ref",
        metavar="REF",
        help="Read rules and baseline from this git ref (origin/main), so that a pull request cannot relax them.",
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Output folder for the run, gate.json, gate.html and gate.md.",
        callback=refuse_planted_folder,
    ),
]


@takes_runs("run")
@option_groups
def gate_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    folder: FromOption = None,
    run: RunOption = None,
    resume: ResumeOption = None,
    baseline_ref: RefOption = None,
    out: OutOption = Path("cranfield-gate"),
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Also write the Markdown report to this file (.md)."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML with one test case per rule.")
    ] = None,
    step_summary: Annotated[
        bool, typer.Option("--step-summary", help="Append the report to the step summary of GitHub Actions.")
    ] = False,
    output: Output,
    overrides: SetOverrides,
) -> None:
    """Check a system against the rules of the config and its baseline.

    Exit codes: 0 all rules passed; 1 a rule failed; 4 no rule failed and at least one is inconclusive; 3 a preflight
    check failed, or the scores do not count: too many failed queries, or void evidence; 2 invalid usage, config, baseline or run. They do not depend on the output
    format.
    """
    from cranfield.app.ci import append_step_summary, summary_page
    from cranfield.app.gate import Source, run_gate
    from cranfield.reporting import render

    if markdown is not None and markdown.suffix.lower() != ".md":
        raise typer.BadParameter("a file whose name ends in .md", param_hint="--markdown")
    if step_summary:
        summary_page()  # refused before a query is sent
    source = Source(folder, run, resume)
    job = run_gate(config, out=out, source=source, baseline_ref=baseline_ref, overrides=overrides)
    written = [*job.written, *_extra_files(job, markdown, junit)]
    if step_summary:
        typer.echo(append_step_summary(render(job.document, "markdown")), err=True)
    deliver(job.document, output, written=written)
    raise typer.Exit(EXIT_CODES[job.status])


def _extra_files(job: GateJob, markdown: Path | None, junit: Path | None) -> list[Path]:
    """Write the report and the test cases to the files that were named."""
    from cranfield.app.ci import write_junit
    from cranfield.reporting import save_report

    if markdown is not None:
        save_report(job.document, markdown)
    if junit is not None:
        write_junit([(result, job.evaluations[name].testset) for name, result in job.results.items()], junit)
    return [path for path in (markdown, junit) if path is not None]

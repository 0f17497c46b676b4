"""`cranfield gate`: does the system keep its rules?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report, Status, note, takes_runs
from cranfield.base.errors import UsageError
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides
    from cranfield.gate.use_cases.gate import GateJob

EXIT_CODES = {"passed": 0, "failed": Status.FAILED, "inconclusive": Status.INCONCLUSIVE, "invalid": Status.VOID}
"""What the status of a gate makes of the exit code, whatever is printed."""

_ACCEPT = (
    "`cranfield baseline accept` shows what changes and writes the baseline; commit its file. It takes the same answers: "
    "cranfield baseline accept --from cranfield-gate"
)
INSTEAD = {"gate": dict.fromkeys(("--update-baseline", "--accept-baseline", "--write-baseline"), _ACCEPT)}
"""Options of other tools: a gate must not write what it is held to."""

ConfigArgument = Annotated[Path, Argument("Configuration file: test set, systems and gate rules.", metavar="CONFIG")]
FromOption = Annotated[
    Path | None,
    Option("Use the run in this output folder of `cranfield run`.", flag="--from", metavar="DIR"),
]
RunOption = Annotated[Path | None, Option("Use this run file, in any run format.", flag="--run", metavar="FILE")]
ResumeOption = Annotated[
    Path | None,
    Option(
        "Resume from the folder printed by an interrupted run; only the missing answers are requested.",
        flag="--resume",
        metavar="DIR",
    ),
]
RefOption = Annotated[
    str | None,
    Option(
        "Read rules and baseline from this git ref (origin/main), so that a pull request cannot relax them.",
        flag="--baseline-ref",
        metavar="REF",
    ),
]
OutOption = Annotated[
    Path,
    Option(
        "Output folder for the run, gate.json, gate.html and gate.md.", flag="--out", metavar="DIR", refuses_link=True
    ),
]


@takes_runs("run")
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
        Option("Also write the Markdown report to this file (.md).", metavar="FILE"),
    ] = None,
    junit: Annotated[Path | None, Option("Write JUnit XML with one test case per rule.", metavar="FILE")] = None,
    step_summary: Annotated[bool, Option("Append the report to the step summary of GitHub Actions.")] = False,
    overrides: SetOverrides,
) -> Report:
    """Check a system against the rules of the config and its baseline.

    Exit codes: 0 all rules passed; 1 a rule failed; 4 no rule failed and at least one is inconclusive; 3 a preflight
    check failed, or the scores are invalid (too many failed queries, or void evidence); 2 invalid usage, config, baseline or run. They do not depend on the output
    format.
    """
    from cranfield.gate.use_cases.ci import append_step_summary, summary_page
    from cranfield.gate.use_cases.gate import AnswerSource, run_gate
    from cranfield.reporting import render

    if markdown is not None and markdown.suffix.lower() != ".md":
        raise UsageError("--markdown writes Markdown", path=str(markdown), expected="a file whose name ends in .md")
    if step_summary:
        summary_page()  # refused before a query is sent
    source = AnswerSource(folder, run, resume)
    job = run_gate(config, out=out, source=source, baseline_ref=baseline_ref, overrides=overrides)
    written = [*job.written, *_extra_files(job, markdown, junit)]
    if step_summary:
        note(append_step_summary(render(job.document, "markdown")))
    return Report(document=job.document, written=written, status=EXIT_CODES[job.status])


def _extra_files(job: GateJob, markdown: Path | None, junit: Path | None) -> list[Path]:
    """Write the report and the test cases to the files that were named."""
    from cranfield.gate.use_cases.ci import write_junit
    from cranfield.reporting import save_report

    if markdown is not None:
        save_report(job.document, markdown)
    if junit is not None:
        write_junit([(result, job.evaluations[name].testset) for name, result in job.results.items()], junit)
    return [path for path in (markdown, junit) if path is not None]

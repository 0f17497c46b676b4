"""What every command shares: formats, the options that they have in common, names of test sets."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli import registries
from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_SYSTEM, EXIT_VERDICT
from cranfield.cli.stale import stamped
from cranfield.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten
from cranfield.evaluation.verdict_table import VerdictCode, parse_verdict

if TYPE_CHECKING:
    from cranfield.app.experiment import AnswerCache
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.evaluation.values import Evaluation
    from cranfield.gate.result import RuleResult
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions
    from cranfield.reporting.document import Document, Tone

LARGE_BYTES = 16 * 1024 * 1024
"""Run files under this size are read in no time by either reader."""


class Format(StrEnum):
    """What stdout carries."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    BRIEF = "brief"


@dataclass(frozen=True)
class Output:
    """What a command does with its report: the options that every command with a report has."""

    format: Format = Format.TEXT
    full: bool = False
    """All of the text, and not its short form."""
    html: Path | None = None
    """Write the report to this file too."""
    open: bool = False
    """Show the report in the browser."""

    def showing(self, *requested: object) -> Output:
        """The same; with all of the text where an option requests more than the short form has."""
        return replace(self, full=self.full or any(requested))


FAIL_ON = {
    VerdictCode.BETTER: EXIT_VERDICT,
    VerdictCode.WORSE: EXIT_VERDICT,
    VerdictCode.MIXED: EXIT_VERDICT,
    VerdictCode.EQUIVALENT: EXIT_VERDICT,
    VerdictCode.NOT_SIGNIFICANT: EXIT_INCONCLUSIVE,
    VerdictCode.INVALID: EXIT_SYSTEM,
}
"""Verdicts that `--fail-on` takes, each with its exit code."""


def spell_fail_on(code: VerdictCode) -> str:
    """`not-significant`: how `--fail-on` spells a verdict."""
    return code.value.replace("_", "-")


def parse_fail_on(spelling: str) -> VerdictCode:
    """The verdict to fail on."""
    try:
        code = parse_verdict(spelling)
    except UnknownNameError:
        code = None
    if code not in FAIL_ON:
        raise typer.BadParameter(f"{spelling!r} is not one of {', '.join(map(spell_fail_on, FAIL_ON))}.")
    return code


def _fail_on_help() -> str:
    """`1 on this verdict: better, worse, equivalent; 4 on not-significant; 3 on invalid`."""
    names: dict[int, list[str]] = {}
    for code, status in FAIL_ON.items():
        names.setdefault(status, []).append(spell_fail_on(code))
    return "; ".join(f"{status} on {', '.join(spelled)}" for status, spelled in names.items())


ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="Configuration file: test set, systems, measures.")
]


def refuse_planted_folder(context: typer.Context, value: Path) -> Path:
    """Callback of every `--out`: a folder that the call does not name is no link, which a change may have put there."""
    source = context.get_parameter_source("out")
    if source is not None and source.name == "DEFAULT" and value.is_symlink():
        hint = f"remove it, or, if it is yours, name it: --out {value}"
        raise UsageError("this is a symbolic link", path=str(value), expected="a folder", hint=hint)
    return value


OutFolderOption = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Output folder for results.json, calls.json, report.html, report.md and the runs.",
        callback=refuse_planted_folder,
    ),
]
TestSetNameOption = Annotated[
    str | None, typer.Option("--testset", metavar="NAME", help="Name of the test set, if the config has several.")
]
AllowDriftOption = Annotated[
    bool, typer.Option("--allow-drift", help="Accept a test set that no longer matches its repository.")
]
MeansOption = Annotated[
    Path | None,
    typer.Option("--means", metavar="FILE", help="Also write a CSV of means to this file, one line a system."),
]
MeasureOption = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--measure",
        metavar="MEASURE",
        help="Measure such as nDCG@10; repeat for more. `cranfield measures` lists them.",
        autocompletion=registries.measures,
    ),
]
FloorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--floor",
        metavar="MEASURE=BOUND",
        help="Exit with 1 if the mean of any system is below the bound: Hit@5=0.70, or in each stratum or one of them: "
        "Hit@5=0.60:difficulty, Hit@5=0.60:difficulty=hard; repeat for more.",
    ),
]
FailOnOption = Annotated[
    list[VerdictCode] | None,
    typer.Option(
        "--fail-on",
        metavar="VERDICT",
        parser=parse_fail_on,
        autocompletion=lambda: [spell_fail_on(code) for code in FAIL_ON],
        help=f"Exit with {_fail_on_help()}; repeat for more.",
    ),
]
KeptOption = Annotated[bool, typer.Option("--no-cache", help="Do not read or write the answer cache.")]
RefreshOption = Annotated[bool, typer.Option("--refresh", help="Ignore cached answers and overwrite them.")]
PilotOption = Annotated[
    bool, typer.Option("--pilot", help="Mark all output as a pilot (a trial that is not for the record).")
]
TestSetFormatOption = Annotated[
    str | None,
    typer.Option(
        "--testset-format",
        metavar="FORMAT",
        help="Format of the test set, such as qrels or beir; default: detected from the content.",
        autocompletion=registries.testset_formats,
    ),
]


ContrastOption = Annotated[
    list[str] | None,
    typer.Option(
        "--contrast",
        metavar="KEY=A,B",
        help="Contrast two strata, with a confidence interval: difficulty=easy,hard; repeat for more.",
    ),
]


def contrasts_of(specs: Sequence[str] | None) -> list[tuple[str, str, str]]:
    """`KEY=A,B` options as key and two values.

    Raises:
        UsageError: with every one that is none.
    """
    found, problems = [], []
    for spec in specs or ():
        key, equals, values = spec.partition("=")
        pair = [value.strip() for value in values.split(",")]
        if not equals or not key.strip() or len(pair) != 2 or not all(pair):
            problems.append(Problem(f"--contrast is {shorten(spec)}", expected="KEY=A,B such as difficulty=easy,hard"))
        else:
            found.append((key.strip(), pair[0], pair[1]))
    if problems:
        raise UsageError(problems)
    return found


def today() -> date:
    """The user's own day, by which a test set is overdue for new queries."""
    return date.today()  # noqa: DTZ011


def require_single_stdin(paths: Sequence[Path]) -> None:
    """Refuse `-` for more than one of a command's files: standard input is there once."""
    if [str(path) for path in paths].count("-") > 1:
        raise UsageError("standard input (-) is named more than once", expected="at most one of the files to be -")


def note_reader(runs: Sequence[Path]) -> None:
    """Say on stderr that large run files are read by Python, where the kernel was not built."""
    from cranfield.ranking.engine import why_in_python

    if any(run.is_file() and run.stat().st_size > LARGE_BYTES for run in runs):
        why = why_in_python()
        if why is not None:
            typer.echo(f"note: run files are read by Python, some times slower than by the C kernel: {why}", err=True)
    if any(run.suffix.lower() == ".parquet" for run in runs):
        from cranfield.app.large_runs import LARGE_ROWS, rows_of

        n_rows = rows_of(runs)
        if n_rows >= LARGE_ROWS:
            typer.echo(
                f"note: {n_rows:,} rows are read into memory; --memory 1GB reads them in parts, and faster", err=True
            )


def load_and_evaluate(
    testset: Path,
    runs: Sequence[Path],
    measures: Sequence[str] | None,
    *,
    testset_format: str | None,
    options: TestSetOptions,
    scoring: ScoringOptions,
    primary: str | None = None,
) -> list[Evaluation]:
    """Load a test set, of a stored split its evaluated part, and score run files against it, each under a name of its own."""
    from cranfield.app.evaluate import evaluate_files
    from cranfield.app.loading import load
    from cranfield.testsets.split import evaluated_part

    require_single_stdin([testset, *runs])
    note_reader(runs)
    try:
        loaded = load(testset, format=testset_format, options=options)
        if options.part is None:
            loaded = evaluated_part(loaded)
        return evaluate_files(loaded, runs, measures, scoring, primary=primary)
    except CranfieldError as error:
        others = (each for each in _what_is_not_there(runs, measures or ()) if each not in error.problems)
        error.problems = (*error.problems, *others)
        raise


def _what_is_not_there(runs: Sequence[Path], measures: Sequence[str]) -> Iterable[Problem]:
    """Run files that are missing and measures that are none, to be reported with the first problem of a call."""
    from cranfield.formats.io.files import refusal
    from cranfield.measures.parse import parse_all

    yield from (refusal(run, FileNotFoundError()) for run in runs if str(run) != "-" and not run.exists())
    try:
        parse_all(measures)
    except CranfieldError as error:
        yield from error.problems


def answer_cache(*, no_cache: bool, refresh: bool) -> AnswerCache:
    """What is done with the answers of earlier runs.

    Raises:
        UsageError: both options were given.
    """
    if no_cache and refresh:
        hint = "--no-cache neither uses nor keeps answers, --refresh replaces those kept: leave one of them out."
        raise UsageError("--no-cache and --refresh exclude each other", hint=hint)
    return "off" if no_cache else "refresh" if refresh else "use"


def deliver(document: Document, output: Output, *, written: Sequence[Path] = ()) -> None:
    """Print the document on stdout in its form, write it as HTML where that was asked for, and name the files written.

    Args:
        document: the report.
        output: what the options say.
        written: files that the command wrote, the page of the report among them.
    """
    from cranfield.reporting import save_report

    document = stamped(document)
    if output.html is not None:
        if output.html.suffix.lower() != ".html":
            raise UsageError("--html writes HTML", path=str(output.html), expected="a file whose name ends in .html")
        save_report(document, output.html)
        written = [output.html, *written]
    show([rendered(document, output)])
    for line in _written_lines(written):
        typer.echo(line, err=True)
    page = min((path for path in written if path.suffix == ".html"), key=lambda path: len(path.parts), default=None)
    if output.open:
        _open(document, page)
    elif page is not None and page != output.html and output.format is Format.TEXT:
        from cranfield.installation import this_installation

        typer.echo(f"to see it: {this_installation().command(shlex.join(['view', str(page.parent)]))}", err=True)


def _written_lines(written: Sequence[Path]) -> Iterable[str]:
    """`wrote out/report.html`, or `wrote report.html, report.md in out`: a line for each folder."""
    folders: dict[Path, list[Path]] = {}
    for path in dict.fromkeys(written):
        folders.setdefault(path.parent, []).append(path)
    for folder, paths in folders.items():
        names = ", ".join(path.name for path in paths)
        yield f"wrote {paths[0]}" if len(paths) == 1 else f"wrote {names}" + (f" in {folder}" if folder.name else "")


def _open(document: Document, report: Path | None) -> None:
    """Show the page in the browser; one that no option named is written to a folder for temporary files."""
    import tempfile

    from cranfield.reporting import save_report

    if report is None:
        report = Path(tempfile.mkdtemp(prefix="cranfield-")) / "report.html"
        save_report(document, report)
    open_in_browser(report)


def open_in_browser(path: Path) -> None:
    """Open a file in the browser; where there is none, say so with its address."""
    import webbrowser

    address = path.resolve().as_uri()
    if not webbrowser.open(address):
        typer.echo(f"no browser was found: open {address}", err=True)


def rendered(document: Document, output: Output) -> str:
    """The document in the form that was asked for: text in colour and as wide as the terminal, where it goes to one."""
    from cranfield.reporting import render
    from cranfield.reporting.renderers.brief import COLUMNS, brief_of, render_brief
    from cranfield.reporting.renderers.text import LINE, render_text
    from cranfield.reporting.renderers.text_table import no_colour

    if output.format is not Format.TEXT:
        return render(document, output.format.value)
    terminal = sys.stdout.isatty()
    line = min(max(COLUMNS, shutil.get_terminal_size().columns), LINE) if terminal else None
    if output.full or brief_of(document) is None:
        return render_text(document, line or LINE)
    return render_brief(document, line=line or COLUMNS, paint=painted if has_colour(terminal=terminal) else no_colour)


def has_colour(*, terminal: bool) -> bool:
    """Whether stdout gets colours: on a terminal; `FORCE_COLOR` asks for them elsewhere, `NO_COLOR` declines them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")


COLOURS: Mapping[str, str] = {"good": "green", "bad": "red", "open": "yellow", "void": "magenta"}
"""Tone to colour on a terminal; the words say the same."""


def painted(text: str, tone: Tone) -> str:
    """Text in the colour of its tone."""
    return typer.style(text, fg=COLOURS[tone], bold=True) if COLOURS.get(tone) else text


def require_evidence(evaluations: Iterable[Evaluation], output: Output | None = None) -> None:
    """Exit with 3 where the scores of a system do not count, and say so on stderr.

    Args:
        evaluations: of the systems.
        output: of a report with the reasons; None: there is none, and stderr has them.
    """
    from cranfield.evaluation.evidence.values import void_sentences
    from cranfield.words import and_list

    void = {each.name: found for each in evaluations if (found := void_sentences(each.evidence))}
    if not void:
        return
    if output is not None and output.format not in {Format.JSON, Format.CSV}:
        typer.echo(f"error: void: the scores of {and_list([*void])} do not count; the report has the reason", err=True)
    else:
        for sentence in (sentence for found in void.values() for sentence in found):
            typer.echo(f"error: void: {sentence}", err=True)
    raise typer.Exit(EXIT_SYSTEM)


def check_means_file(path: Path) -> None:
    """Refuse a file of means that is no CSV, before anything is computed."""
    if path.suffix.lower() != ".csv":
        raise UsageError("--means writes CSV", path=str(path), expected="a file whose name ends in .csv")


def write_means(result: ManyComparison | Sequence[Evaluation], path: Path, sort: str = "mean") -> None:
    """Write the means of every system as CSV, and name the file on stderr."""
    from cranfield.evaluation.result import result_of
    from cranfield.reporting.renderers.table import save_table
    from cranfield.reporting.sections.leaderboard import means_table

    save_table(means_table(result_of(result), sort), path)
    typer.echo(f"wrote {path}", err=True)


def show(parts: Iterable[str]) -> None:
    """Write the result on stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 has no minus sign
    sys.stdout.writelines(parts)
    sys.stdout.flush()


def floors_exit_code(results: Iterable[tuple[str, RuleResult]]) -> int:
    """1 where a floor is broken; every floor is a line on stderr, with its system."""
    code = 0
    for system, result in results:
        kept = "kept" if result.status == "passed" else "broken"
        typer.echo(f"floor {kept}: {system}: {result.sentence}", err=True)
        if result.status != "passed":
            code = EXIT_VERDICT
    return code


def verdict_exit_code(verdicts: Iterable[VerdictCode], fail_on: Sequence[VerdictCode] | None) -> int:
    """The exit code of the first verdict that is among those to fail on; 0 where none is.

    A mixed verdict is among them where a worse one is: the candidate is worse in a class.
    """
    named = set(fail_on or ())
    if VerdictCode.WORSE in named:
        named.add(VerdictCode.MIXED)
    return next((FAIL_ON[verdict] for verdict in verdicts if verdict in named), 0)

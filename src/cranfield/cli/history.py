"""`cranfield history`: a measure over time, and the first bad run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, HtmlOption, deliver
from cranfield.errors import UsageError, shorten


def history_command(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Configuration file, or the folder of the history.")
    ] = Path("cranfield.yaml"),
    *,
    measure: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--measure",
            metavar="MEASURE",
            help="Measure to show; default: the primary measure of the latest evaluation.",
        ),
    ] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="NAME", help="Show only this system.")] = None,
    testset: Annotated[str | None, typer.Option("--testset", metavar="NAME", help="Show only this test set.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Show only runs since this date or time (UTC), such as 2026-11-01."
        ),
    ] = None,
    pilots: Annotated[bool, typer.Option("--pilots", help="Include pilots.")] = False,
    first_bad: Annotated[
        bool, typer.Option("--first-bad", help="Find the first bad run on the current test set.")
    ] = False,
    below: Annotated[
        float | None, typer.Option("--below", metavar="X", help="A run is bad if its mean is worse than this.")
    ] = None,
    drop: Annotated[
        float | None,
        typer.Option(
            "--drop",
            metavar="X",
            help="A run is bad if its mean is worse than the best earlier mean by more than this.",
        ),
    ] = None,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
) -> None:
    """Show a measure over time and by commit, separately for each test set.

    `cranfield run`, `cranfield gate` if it queries the system, and `cranfield evaluate --history DIR` add to the history.
    `--first-bad` reports the first bad run and the last good run before it. Without `--below` or `--drop`, a run is bad
    if the whole CI of its mean is worse than the best earlier mean.
    """
    from dataclasses import replace

    from cranfield.evaluation.history import HistoryFilter, Rule, history_report
    from cranfield.project.history import read_history, with_commits
    from cranfield.reporting.documents.history import history_document

    if below is not None and drop is not None:
        hint = "--below is a fixed bound, --drop a distance from the best mean before: leave one of them out."
        raise UsageError("--below and --drop exclude each other", hint=hint)
    rule = Rule(below, drop) if first_bad or below is not None or drop is not None else None
    folder = config if config.is_dir() else config.parent
    history = read_history(folder)
    chosen = HistoryFilter(measure, system, testset, _time(since), pilots, rule)
    report = history_report(history.points, chosen, history.damaged)
    found = tuple(with_commits(point, folder) for point in report.first_bad)
    deliver(history_document(replace(report, first_bad=found)), output, html)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--since is {shorten(text)}", expected="a day or a time such as 2026-11-01") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

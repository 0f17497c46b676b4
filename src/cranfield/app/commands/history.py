"""`cranfield history`: a measure over time, and the first bad run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cranfield.app.command import Output, Report, note
from cranfield.base.errors import UsageError, shorten
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.plugins import required


def history_command(
    config: Annotated[Path, Argument("Configuration file, or the folder of the history.", metavar="CONFIG")] = Path(
        "cranfield.yaml"
    ),
    *,
    measure: Annotated[
        str | None,
        Option(
            "Measure to show; default: the primary measure of the latest evaluation.",
            short="-m",
            metavar="MEASURE",
            choices="measures",
        ),
    ] = None,
    system: Annotated[str | None, Option("Show only this system.", metavar="NAME")] = None,
    testset: Annotated[str | None, Option("Show only this test set.", metavar="NAME")] = None,
    since: Annotated[
        str | None,
        Option("Show only runs since this date or time (UTC), such as 2026-11-01.", metavar="TIME"),
    ] = None,
    pilots: Annotated[bool, Option("Include pilots.")] = False,
    all_branches: Annotated[bool, Option("Include runs at commits of other branches.")] = False,
    first_bad: Annotated[bool, Option("Find the first bad run on the current test set.")] = False,
    below: Annotated[float | None, Option("A run is bad if its mean is worse than this.", metavar="X")] = None,
    drop: Annotated[
        float | None,
        Option("A run is bad if its mean is worse than the best earlier mean by more than this.", metavar="X"),
    ] = None,
    gate: Annotated[
        bool,
        Option(
            "A run is bad if it breaks a gate rule of the config on the measure; drops are measured from the last good run."
        ),
    ] = False,
    output: Output,
) -> Report:
    """Show a measure over time and by commit, for each test set.

    `cranfield run`, `cranfield gate` if it queries the system, and `cranfield evaluate --history DIR` add to the history.
    Each run is compared with the run before it by the paired test. `--first-bad` reports the first bad run and the last
    good run before it: by default, a run is bad if it is significantly worse than the best earlier run.
    """
    from dataclasses import replace

    from cranfield.app.history import FOLDER, KeptValues, read_history, report_places, with_commits
    from cranfield.base.words import count_noun
    from cranfield.evaluation.history import HistoryFilter, Rule, history_report, shown_measure
    from cranfield.repo.git import commits_of_other_branches
    from cranfield.reporting.documents.history import history_document

    rules = {"--below": below is not None, "--drop": drop is not None, "--gate": gate}
    if sum(rules.values()) > 1:
        first, second, *_ = [name for name, is_given in rules.items() if is_given]
        hint = "each option defines when a run is bad: pass only one of them."
        raise UsageError(f"{first} and {second} exclude each other", hint=hint)
    rule = Rule(below, drop, gate) if first_bad or any(rules.values()) else None
    folder = config if config.is_dir() else config.parent
    history = read_history(folder)
    if not all_branches:
        others = commits_of_other_branches(folder)
        kept = tuple(point for point in history.points if point.commit not in others)
        if n := len(history.points) - len(kept):
            runs = count_noun(n, "runs")
            note(f"note: {runs} at commits of other branches left out; --all-branches includes them")
        history = replace(history, points=kept)
    chosen = HistoryFilter(measure, system, testset, _time(since), pilots, rule)
    values, judge = KeptValues(folder / FOLDER), None
    if gate:
        config_path = config / "cranfield.yaml" if config.is_dir() else config
        measure = shown_measure(history.points, chosen)
        judge = required("rules_on_a_history").GateJudge(config_path, measure, values)
    report = history_report(history.points, chosen, history.damaged, values_of=values, judge=judge)
    report = replace(report, lines=tuple(with_commits(line, folder) for line in report.lines))
    places = report_places(folder / FOLDER, output.html.parent if output.html is not None else Path())
    return Report(document=history_document(report, places))


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--since is {shorten(text)}", expected="a day or a time such as 2026-11-01") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

"""`cranfield golden check`: independent agents check path, lines and grade of each row of an existing set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Interval

from cranfield.app.command import Exit, Format, Output, Report, Status, note, say
from cranfield.app.commands.golden.options import AtOption, RepoOption
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.app.commands.testset.common import SetArgument, SetFormatOption, TodayOption, day_of
from cranfield.options.declaration import Option

if TYPE_CHECKING:
    from cranfield.golden.rows import CheckedRow

MOST_VOTES = 99


def check_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    models: Annotated[
        list[str],
        Option("Model that votes; several take turns.", flag="--model", metavar="PROVIDER:NAME"),
    ],
    votes: Annotated[int, Option("Votes on each row.", metavar="N"), Interval(ge=1, le=MOST_VOTES)] = 3,
    out: Annotated[Path, Option("Folder of votes and results; a second call goes on from it.", metavar="DIR")] = Path(
        "row-check"
    ),
    base_url: Annotated[str, Option("Address of the models.", metavar="URL")] = "",
    api_key_env: Annotated[str, Option("Environment variable of the API key.", metavar="NAME")] = "",
    tokens: Annotated[
        int | None, Option("Tokens that all votes may use together.", flag="--max-tokens", metavar="N"), Ge(1)
    ] = None,
    concurrency: Annotated[int, Option("Votes at a time.", metavar="N"), Ge(1)] = 4,
    replay: Annotated[Path | None, Option("Take the answers of this file; ask no model.", metavar="FILE")] = None,
    apply: Annotated[bool, Option("Write the corrections into SET.")] = False,
    today: TodayOption = None,
    output: Output,
    testset_format: SetFormatOption = None,
) -> Iterator[Report]:
    """Check each row of a test set (path, lines, grade) by votes of independent agents, and correct it by majority.

    Rows whose file or lines do not exist or are of no expected entity, and rows without a majority, go to a person: they are
    in OUT/for_people.jsonl.
    The corrections are printed as a diff of SET, after the text of the report, and are in OUT/corrections.diff. Exits with 1
    where a row is not confirmed.
    """
    from cranfield.app.golden_assemble import CheckOptions, check_set

    options = CheckOptions(
        tuple(models), votes, base_url, api_key_env, tokens, concurrency, allow_dirty, replay, on_row=_print_row
    )
    report = check_set(
        testset, repo, out, options, at=at, today=day_of(today), testset_format=testset_format, apply=apply
    )
    yield Report(document=report.document)
    if output.format is Format.TEXT:
        say(report.diff, end="")
    for path in report.written:
        note(f"wrote {path}")
    if not report.is_confirmed:
        raise Exit(Status.FAILED)


def _print_row(checked: CheckedRow) -> None:
    note(f"{checked.row.query_id} {checked.row.target.label} {checked.state.value}")

"""`cranfield golden check`: independent agents check path, lines and grade of each row of an existing set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_VERDICT
from cranfield.cli.golden.options import AtOption, RepoOption
from cranfield.cli.option_groups import AllowDirtyOption, option_groups
from cranfield.cli.shared import Format, Output, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, TodayOption, day_of, note

if TYPE_CHECKING:
    from cranfield.golden.rows import CheckedRow

MOST_VOTES = 99


@option_groups
def check_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    models: Annotated[
        list[str],
        typer.Option("--model", metavar="PROVIDER:NAME", help="Model that votes; several take turns."),
    ],
    votes: Annotated[int, typer.Option("--votes", metavar="N", min=1, max=MOST_VOTES, help="Votes on each row.")] = 3,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of votes and results; a second call goes on from it.")
    ] = Path("row-check"),
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Address of the models.")] = "",
    api_key_env: Annotated[
        str, typer.Option("--api-key-env", metavar="NAME", help="Environment variable of the API key.")
    ] = "",
    tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Tokens that all votes may use together.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", metavar="N", min=1, help="Votes at a time.")] = 4,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Take the answers of this file; ask no model.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the corrections into SET.")] = False,
    today: TodayOption = None,
    output: Output,
    testset_format: SetFormatOption = None,
) -> None:
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
    deliver(report.document, output)
    if output.format is Format.TEXT:
        typer.echo(report.diff, nl=False)
    for path in report.written:
        note(f"wrote {path}")
    if not report.is_confirmed:
        raise typer.Exit(EXIT_VERDICT)


def _print_row(checked: CheckedRow) -> None:
    note(f"{checked.row.query_id} {checked.row.target.label} {checked.state.value}")

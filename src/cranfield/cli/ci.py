"""Post results to a pull or merge request as a comment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

SUBCOMMANDS = dict.fromkeys(("comment",), __name__)


def comment_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Report in Markdown; - reads standard input.")],
    *,
    forge: Annotated[
        Literal["github", "gitlab"] | None,
        typer.Option("--forge", help="Forge; default: from the CI job, or from the token that is set."),
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", metavar="OWNER/NAME", help="Repository; default: from the CI job.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", metavar="N", help="Number of the pull or merge request; default: from the CI job."),
    ] = None,
    marker: Annotated[
        str,
        typer.Option(
            "--marker", metavar="TEXT", help="Name that distinguishes this comment from others of the same job."
        ),
    ] = "report",
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="URL of the API; default: from the CI job.")
    ] = None,
) -> None:
    """Create or update one comment on a pull or merge request.

    The token is read from the environment: GITHUB_TOKEN or GITLAB_TOKEN. Only a comment that begins with the hidden
    marker of this command and was written by the owner of the token is changed.
    """
    from cranfield.app.ci import comment

    written = comment(file, forge=forge, repo=repo, number=number, marker=marker, url=url)
    removed = f", {written.removed} others removed" if written.removed else ""
    typer.echo(f"comment {written.done}{removed}" + (f": {written.comment.url}" if written.comment.url else ""))

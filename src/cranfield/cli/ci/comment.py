"""`cranfield ci comment`: a report as the one comment of its kind on a pull or merge request."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ForgeName(StrEnum):
    """Forges whose API is known."""

    GITHUB = "github"
    GITLAB = "gitlab"


def comment_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The report, in Markdown; - reads standard input.")],
    *,
    forge: Annotated[
        ForgeName | None, typer.Option("--forge", help="Which; without, that of the job, or of the token there is.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", metavar="OWNER/NAME", help="The repository; without, that of the job.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", metavar="N", help="Of the pull or merge request; without, that of the job."),
    ] = None,
    marker: Annotated[
        str, typer.Option("--marker", metavar="TEXT", help="Tells this comment from others that the same job writes.")
    ] = "report",
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Address of the API; without, that of the job.")
    ] = None,
) -> None:
    """Create or update one comment on a pull or merge request.

    The token comes from the environment alone: GITHUB_TOKEN, or GITLAB_TOKEN. Only a comment that begins with our
    hidden marker and was written by the owner of the token is touched.
    """
    from cranfield.project.ci import comment

    written = comment(
        file, forge=None if forge is None else forge.value, repo=repo, number=number, marker=marker, url=url
    )
    removed = f", {written.removed} others removed" if written.removed else ""
    typer.echo(f"comment {written.done}{removed}" + (f": {written.comment.url}" if written.comment.url else ""))

"""Post results to a pull or merge request as a comment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cranfield.app.command import say
from cranfield.evaluation.options.declaration import Argument, Option

SUBCOMMANDS = dict.fromkeys(("comment",), __name__)


def comment_command(
    file: Annotated[Path, Argument("Report in Markdown; - reads standard input.", metavar="FILE")],
    *,
    forge: Annotated[
        Literal["github", "gitlab"] | None,
        Option("Forge; default: from the CI job, or from the token that is set."),
    ] = None,
    repo: Annotated[str | None, Option("Repository; default: from the CI job.", metavar="OWNER/NAME")] = None,
    number: Annotated[
        int | None,
        Option("Number of the pull or merge request; default: from the CI job.", metavar="N"),
    ] = None,
    marker: Annotated[
        str,
        Option("Name that distinguishes this comment from others of the same job.", metavar="TEXT"),
    ] = "report",
    url: Annotated[str | None, Option("URL of the API; default: from the CI job.", metavar="URL")] = None,
) -> None:
    """Create or update one comment on a pull or merge request.

    The token is read from the environment: GITHUB_TOKEN or GITLAB_TOKEN. Only a comment that begins with the hidden
    marker of this command and was written by the owner of the token is changed.
    """
    from cranfield.gate.use_cases.ci import comment

    written = comment(file, forge=forge, repo=repo, number=number, marker=marker, url=url)
    removed = f", {written.removed} others removed" if written.removed else ""
    say(f"comment {written.done}{removed}" + (f": {written.comment.url}" if written.comment.url else ""))

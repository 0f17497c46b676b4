"""Comments (notes) on a merge request of GitLab, and what its CI says of the job that runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from cranfield.errors import UsageError, shorten
from cranfield.forge.api import Access, Api
from cranfield.forge.comment import Comment

API = "https://gitlab.com/api/v4"
BODY_LIMIT = 1_000_000
"""Characters a note may have."""
_REPO = re.compile(r"[0-9]+|[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+")
_HINTS = {
    401: "GITLAB_TOKEN is not valid, or no longer",
    403: "the token may not write here: it needs the scope `api`, and a member's role; variables of a project are not "
    "given to the pipelines of a fork",
    404: "is the project right, is that the number of a merge request, and may the token see it?",
}


class MergeRequest:
    """The notes of one merge request."""

    body_limit = BODY_LIMIT

    def __init__(self, api: Api, repo: str, number: int) -> None:
        self._api = api
        self._notes = f"/projects/{quote(repo, safe='')}/merge_requests/{number}/notes"

    def author_id(self) -> int:
        """Who the token belongs to: a person, or the bot of a project's or group's token."""
        said = self._api.call("GET", "/user")
        try:
            return int(said["id"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UsageError("GitLab does not say whose token this is", got=shorten(said)) from None

    def comments(self) -> Iterator[Comment]:
        """All notes that people or programs wrote; those that GitLab itself writes are left out."""
        listed = self._api.listed(f"{self._notes}?order_by=created_at&sort=asc")
        return (_comment(one) for one in listed if not (isinstance(one, dict) and one.get("system")))

    def create(self, body: str) -> Comment:
        """Write a new one."""
        return _comment(self._api.call("POST", self._notes, {"body": body}))

    def update(self, comment: Comment, body: str) -> Comment | None:
        """Write one anew; None where it is no longer there."""
        is_there, said = self._api.call_if_there("PUT", f"{self._notes}/{comment.id}", {"body": body})
        return _comment(said) if is_there else None

    def delete(self, comment: Comment) -> None:
        """Take one away."""
        self._api.call_if_there("DELETE", f"{self._notes}/{comment.id}")


def access(environ: Mapping[str, str], url: str | None = None) -> Access:
    """How the API is entered: by `GITLAB_TOKEN`, at the address that the job's environment names unless one is given.

    Raises:
        UsageError: there is no token that may write.
    """
    token = environ.get("GITLAB_TOKEN", "").strip()
    if not token:
        why = "CI_JOB_TOKEN may not write comments" if environ.get("CI_JOB_TOKEN") else None
        raise UsageError(
            "there is no token for GitLab" + (f", and {why}" if why else ""),
            expected="GITLAB_TOKEN in the environment",
            hint="make a project access token with the scope `api`, and keep it as a masked variable named GITLAB_TOKEN",
        )
    headers = {"PRIVATE-TOKEN": token, "Accept": "application/json"}
    return Access("GitLab", (url or environ.get("CI_API_V4_URL") or API).rstrip("/"), headers, _HINTS)


def place(environ: Mapping[str, str], repo: str | None, number: int | None) -> tuple[str, int]:
    """Project (its number, or GROUP/NAME) and number of the merge request: as given, else as the job's environment says.

    Raises:
        UsageError: neither says, or a name is none.
    """
    repo = repo or environ.get("CI_MERGE_REQUEST_PROJECT_ID") or environ.get("CI_PROJECT_ID", "")
    if not _REPO.fullmatch(repo):
        raise UsageError(
            "no project is named" if not repo else "this is not a project",
            expected="{repo} with its number or GROUP/NAME, or CI_PROJECT_ID",
            got=shorten(repo) if repo else None,
            parameters=("repo",),
        )
    if number is None:
        said = environ.get("CI_MERGE_REQUEST_IID", "")
        number = int(said) if said.isascii() and said.isdecimal() else None
    if number is None:
        raise UsageError(
            "no merge request is named",
            expected="{number=N}, or a job that runs for one",
            parameters=("number",),
            hint='a job of a branch has none: `rules: - if: $CI_PIPELINE_SOURCE == "merge_request_event"`',
        )
    return repo, number


def _comment(said: Any) -> Comment:
    try:
        author = said["author"]
        author_id = 0 if author is None else int(author["id"])
        return Comment(int(said["id"]), author_id, str(said.get("body") or ""), "")
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise UsageError("GitLab did not answer with a note", got=shorten(said)) from None


def thread(api: Api, repo: str, number: int) -> MergeRequest:
    """The notes of a merge request."""
    return MergeRequest(api, repo, number)

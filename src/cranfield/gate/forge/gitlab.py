"""Comments (notes) on a merge request of GitLab, and the environment of GitLab CI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from cranfield.base.errors import UsageError, shorten
from cranfield.gate.forge.api import Api, ApiAccess, id_number
from cranfield.gate.forge.comment import Comment

API = "https://gitlab.com/api/v4"
BODY_LIMIT = 1_000_000
"""Maximum length of a note, in characters."""
_REPO = re.compile(r"[0-9]+|[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+")
_HINTS = {
    401: "GITLAB_TOKEN is invalid or expired",
    403: "the token has no write access: it needs the scope `api`, and a member's role; pipelines of a fork "
    "have no access to variables of the project",
    404: "check the project, the number of the merge request, and the access of the token",
}


class MergeRequest:
    """The notes of one merge request."""

    body_limit = BODY_LIMIT

    def __init__(self, api: Api, repo: str, number: int) -> None:
        self._api = api
        self._notes = f"/projects/{quote(repo, safe='')}/merge_requests/{number}/notes"

    def author_id(self) -> int:
        """Account id of the token's owner: a user, or the bot of a project or group token."""
        content = self._api.call("GET", "/user")
        try:
            return id_number(content["id"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UsageError("GitLab did not return the owner of the token", got=shorten(content)) from None

    def comments(self) -> Iterator[Comment]:
        """All notes, except system notes of GitLab."""
        listed = self._api.list_items(f"{self._notes}?order_by=created_at&sort=asc")
        return (_comment(note) for note in listed if not (isinstance(note, dict) and note.get("system")))

    def create(self, body: str) -> Comment:
        """Create a comment."""
        return _comment(self._api.call("POST", self._notes, {"body": body}))

    def update(self, comment: Comment, body: str) -> Comment | None:
        """Replace the text of a comment; None if it no longer exists."""
        is_there, content = self._api.call_if_exists("PUT", f"{self._notes}/{comment.id}", {"body": body})
        return _comment(content) if is_there else None

    def delete(self, comment: Comment) -> None:
        """Delete a comment."""
        self._api.call_if_exists("DELETE", f"{self._notes}/{comment.id}")


def access(environ: Mapping[str, str], url: str | None = None) -> ApiAccess:
    """Access by `GITLAB_TOKEN`, at the given URL or that of the job's environment.

    Raises:
        UsageError: there is no token that may write.
    """
    token = environ.get("GITLAB_TOKEN", "").strip()
    if not token:
        why = "CI_JOB_TOKEN cannot write comments" if environ.get("CI_JOB_TOKEN") else None
        raise UsageError(
            "no GitLab token" + (f", and {why}" if why else ""),
            expected="GITLAB_TOKEN in the environment",
            hint=(
                "create a project access token with the scope `api`, and store it as a masked variable named "
                "GITLAB_TOKEN"
            ),
        )
    headers = {"PRIVATE-TOKEN": token, "Accept": "application/json"}
    return ApiAccess("GitLab", (url or environ.get("CI_API_V4_URL") or API).rstrip("/"), headers, _HINTS, token)


def place(environ: Mapping[str, str], repo: str | None, number: int | None) -> tuple[str, int]:
    """Project (its number, or GROUP/NAME) and number of the merge request: as given, or of the job's environment.

    Raises:
        UsageError: one is missing or invalid.
    """
    repo = repo or environ.get("CI_MERGE_REQUEST_PROJECT_ID") or environ.get("CI_PROJECT_ID", "")
    if not _REPO.fullmatch(repo):
        raise UsageError(
            "no project given" if not repo else "not a project",
            expected="{repo} with its number or GROUP/NAME, or CI_PROJECT_ID",
            got=shorten(repo) if repo else None,
            parameters=("repo",),
        )
    if number is None:
        content = environ.get("CI_MERGE_REQUEST_IID", "")
        number = int(content) if content.isascii() and content.isdecimal() else None
    if number is None:
        raise UsageError(
            "no merge request given",
            expected="{number=N}, or a job of one",
            parameters=("number",),
            hint='branch jobs have no merge request: use `rules: - if: $CI_PIPELINE_SOURCE == "merge_request_event"`',
        )
    return repo, number


def _comment(content: Any) -> Comment:
    try:
        author = content["author"]
        author_id = 0 if author is None else id_number(author["id"])
        return Comment(id_number(content["id"]), author_id, str(content.get("body") or ""), "")
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise UsageError("GitLab did not answer with a note", got=shorten(content)) from None


def thread(api: Api, repo: str, number: int) -> MergeRequest:
    """The notes of a merge request."""
    return MergeRequest(api, repo, number)

"""Comments on a pull request of GitHub, and the environment of GitHub Actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cranfield.base.errors import UsageError, shorten
from cranfield.gate.forge.api import Api, ApiAccess, id_number
from cranfield.gate.forge.comment import Comment

API = "https://api.github.com"
BODY_LIMIT = 65_536
"""Maximum length of a comment, in characters."""
_REF = re.compile(r"refs/pull/(\d+)/")
_REPO = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_PERMISSION = (
    "the token has no write access: the job needs `permissions: pull-requests: write`, and the token of a "
    "pull request from a fork is read-only"
)
_HINTS = {
    401: "GITHUB_TOKEN is invalid or expired",
    403: _PERMISSION,
    404: "check the name of the repository, the number of the pull request, and the access of the token",
    422: "GitHub rejected the comment",
}


class PullRequest:
    """The comments of one pull request."""

    body_limit = BODY_LIMIT

    def __init__(self, api: Api, repo: str, number: int) -> None:
        self._api = api
        self._repo = repo
        self._number = number

    def author_id(self) -> int:
        """Account id of the token's owner, by a request that every kind of token allows."""
        content = self._api.call("POST", "/graphql", {"query": "query { viewer { login databaseId } }"})
        try:
            return id_number(content["data"]["viewer"]["databaseId"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UsageError("GitHub did not return the owner of the token", got=shorten(content)) from None

    def comments(self) -> Iterator[Comment]:
        """All comments, except those on lines of the change."""
        return (
            _comment(content) for content in self._api.list_items(f"/repos/{self._repo}/issues/{self._number}/comments")
        )

    def create(self, body: str) -> Comment:
        """Create a comment."""
        path = f"/repos/{self._repo}/issues/{self._number}/comments"
        return _comment(self._api.call("POST", path, {"body": body}))

    def update(self, comment: Comment, body: str) -> Comment | None:
        """Replace the text of a comment; None if it no longer exists."""
        path = f"/repos/{self._repo}/issues/comments/{comment.id}"
        is_there, content = self._api.call_if_exists("PATCH", path, {"body": body})
        return _comment(content) if is_there else None

    def delete(self, comment: Comment) -> None:
        """Delete a comment."""
        self._api.call_if_exists("DELETE", f"/repos/{self._repo}/issues/comments/{comment.id}")


def access(environ: Mapping[str, str], url: str | None = None) -> ApiAccess:
    """Access by `GITHUB_TOKEN`, at the given URL or that of the job's environment.

    Raises:
        UsageError: there is no token.
    """
    token = environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        raise UsageError(
            "no GitHub token",
            expected="GITHUB_TOKEN in the environment",
            hint="give the step `env: GITHUB_TOKEN: ${{ github.token }}`",
        )
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return ApiAccess("GitHub", (url or environ.get("GITHUB_API_URL") or API).rstrip("/"), headers, _HINTS, token)


def place(environ: Mapping[str, str], repo: str | None, number: int | None) -> tuple[str, int]:
    """Repository and number of the pull request: as given, or of the job's environment.

    Raises:
        UsageError: one is missing or invalid.
    """
    repo = repo or environ.get("GITHUB_REPOSITORY", "")
    if not _REPO.fullmatch(repo) or {".", ".."} & set(repo.split("/")):
        raise UsageError(
            "no repository given" if not repo else "not a repository name",
            expected="{repo=OWNER/NAME}, or GITHUB_REPOSITORY",
            got=shorten(repo) if repo else None,
            parameters=("repo",),
        )
    if number is None:
        found = _REF.match(environ.get("GITHUB_REF", ""))
        number = int(found[1]) if found else _number_of_event(environ)
    if number is None:
        raise UsageError(
            "no pull request given",
            expected="{number=N}, or a job of one",
            parameters=("number",),
            hint="push jobs have no pull request: run the job `on: pull_request`",
        )
    return repo, number


def _number_of_event(environ: Mapping[str, str]) -> int | None:
    """The number of the pull request in the event of the job, if any."""
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return None
    try:
        if not Path(path).is_file():  # a device may have no end
            raise FileNotFoundError(path)
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        raise UsageError(
            "not a valid event file",
            path="GITHUB_EVENT_PATH",
            hint="or give {number=N}",
            parameters=("number",),
        ) from None
    if not isinstance(event, dict):
        return None
    issue, after = event.get("issue"), event.get("workflow_run")
    requests = after.get("pull_requests") if isinstance(after, dict) else None
    listed = [
        event.get("pull_request"),
        issue if isinstance(issue, dict) and "pull_request" in issue else None,
        requests[0] if isinstance(requests, list) and len(requests) == 1 else None,
    ]
    numbers = (request.get("number") for request in listed if isinstance(request, dict))
    return next((number for number in numbers if type(number) is int and number > 0), None)


def _comment(content: Any) -> Comment:
    try:
        author = content["user"]
        # The account of a deleted user is null.
        author_id = 0 if author is None else id_number(author["id"])
        return Comment(
            id_number(content["id"]), author_id, str(content.get("body") or ""), str(content.get("html_url", ""))
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise UsageError("GitHub did not answer with a comment", got=shorten(content)) from None


def thread(api: Api, repo: str, number: int) -> PullRequest:
    """The comments of a pull request."""
    return PullRequest(api, repo, number)

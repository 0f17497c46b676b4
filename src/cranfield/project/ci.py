"""What a job of a CI server is given: its summary page, a file of test results, the comment on its pull request."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from cranfield.errors import UsageError, shorten
from cranfield.forge.comment import DEFAULT_MARKER, CommentResult, comment_body, fit_to_limit, marker_line, put_comment
from cranfield.formats.io.files import decode, read_bytes, refusal, write_text
from cranfield.gate.result import GateResult
from cranfield.model import TestSet

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
SUMMARY_BYTES = 1024 * 1024
"""What a step may write for its summary page; more of it is shown nowhere."""
Forge = Literal["github", "gitlab"]


def write_junit(results: Sequence[tuple[GateResult, TestSet]], path: Path) -> None:
    """Write the result of a gate as JUnit XML; the old file or the new one is there, never a part.

    Args:
        results: each with its test set.
        path: of the file.

    Raises:
        UsageError: it cannot be written.
    """
    from cranfield.gate.junit import junit_xml

    try:
        write_text(path, [junit_xml(results)])
    except OSError as error:
        raise UsageError(refusal(path, error)) from error


def summary_page(environ: Mapping[str, str] = os.environ) -> Path:
    """The file that becomes the summary page of the step that runs.

    Raises:
        UsageError: nothing names one: this is no step of GitHub Actions.
    """
    named = environ.get(SUMMARY_VARIABLE)
    if not named:
        raise UsageError(
            f"{SUMMARY_VARIABLE} is not set",
            expected="a step of GitHub Actions, which sets it",
            hint="the Markdown report has the same content.",
        )
    return Path(named)


def append_step_summary(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Append a Markdown report to the summary page of the step that runs.

    Args:
        text: the report; cut, and saying so, where the page has no room for it.
        environ: names the file in `GITHUB_STEP_SUMMARY`.

    Returns:
        What was done, as a line to show.

    Raises:
        UsageError: there is no such page here, it is full, or it cannot be written.
    """
    path = summary_page(environ)
    try:
        used = path.stat().st_size if path.exists() else 0
        begin = "\n\n" if used else ""
        source = "the report that the job keeps"
        fits = fit_to_limit(text, SUMMARY_BYTES - used - len(begin), source=source, size=_n_bytes)
        if used + _n_bytes(begin + fits) > SUMMARY_BYTES:
            raise UsageError(f"the summary page of this step is full: it holds {used} of {SUMMARY_BYTES} bytes")
        with path.open("ab") as stream:
            stream.write(_encoded(begin + fits))
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    return "wrote the step's summary" + (", cut to its limit of 1 MiB" if fits != text else "")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _n_bytes(text: str) -> int:
    return len(_encoded(text))


def comment(
    path: Path,
    *,
    forge: Forge | None = None,
    repo: str | None = None,
    number: int | None = None,
    marker: str = DEFAULT_MARKER,
    url: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> CommentResult:
    """Write a Markdown file as the one comment of its kind on a pull or merge request.

    Args:
        path: the report.
        forge: which; None is that of the job, or the one there is a token for.
        repo: OWNER/NAME, or the number of a project of GitLab; None is that of the job.
        number: of the pull or merge request; None is that of the job.
        marker: tells this comment from others of the same author.
        url: of the API; None is that of the job.
        environ: of the job; the token is in it and nowhere else.

    Raises:
        UsageError: something is missing, or the forge refused, with what to check.
    """
    from cranfield.forge import github, gitlab
    from cranfield.forge.api import Api

    marker_line(marker)
    text = decode(read_bytes(path, UsageError), path, UsageError)
    if not text.strip():
        raise UsageError("there is nothing in it to comment", path=str(path))
    if number is not None and number < 1:
        raise UsageError(f"{{number}} is {shorten(number)}", expected="1 or more", parameters=("number",))
    of = {"github": github, "gitlab": gitlab}[forge or forge_of(environ)]
    repo, number = of.place(environ, repo, number)
    access = of.access(environ, url)
    text = text.replace(access.token, "(the token)")
    with Api(access) as api:
        thread = of.thread(api, repo, number)
        source = f"`{path.name}`, which the job keeps" if path.name != "-" else "what the job printed"
        return put_comment(thread, comment_body(text, marker=marker, limit=thread.body_limit, source=source))


def forge_of(environ: Mapping[str, str]) -> Forge:
    """The forge whose job this is; elsewhere the one there is a token for.

    Raises:
        UsageError: nothing says so, or both.
    """
    signs: tuple[tuple[str, str], ...] = (("GITHUB_ACTIONS", "GITLAB_CI"), ("GITHUB_TOKEN", "GITLAB_TOKEN"))
    for github, gitlab in signs:
        if bool(environ.get(github)) != bool(environ.get(gitlab)):
            return "github" if environ.get(github) else "gitlab"
    expected = "{forge=github} or {forge=gitlab}, or a job of one of them"
    raise UsageError("no forge is named", expected=expected, parameters=("forge",))

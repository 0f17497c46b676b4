"""Templates: one environment, one function that renders a page."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from cranfield.base.words import command_word, count_noun, printable_lines
from cranfield.workbench.server.navigation import entries
from cranfield.workbench.server.signing import add_form_token, form_token, new_form_token
from cranfield.workbench.service.responses import JobKind

if TYPE_CHECKING:
    from jinja2 import Environment

    from cranfield.reporting.document import Document
    from cranfield.workbench.server.access import Caller
    from cranfield.workbench.service.values import JobInfo

FOLDER = Path(__file__).parent


@cache
def environment() -> Environment:
    """Escapes everything, and refuses a name that is not there."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FileSystemLoader(FOLDER / "templates"),
    )
    made.filters |= {"when": when, "grade": grade_text, "figure": figure, "share": share, "segment": segment}
    made.filters |= {"lines": printable_lines, "n_of": count_noun, "command_word": command_word}
    return made


def when(at: int | None) -> str:
    """Milliseconds since 1970 as a time."""
    return "–" if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def grade_text(grade: float | None) -> str:
    """A grade, without digits that say nothing."""
    return "–" if grade is None else f"{grade:g}"


def figure(value: float | None, digits: int = 2) -> str:
    """A number with a true minus sign."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def share(part: float, whole: float) -> str:
    """A percentage."""
    return "–" if not whole else f"{100 * part / whole:.0f} %"


def segment(text: object) -> str:
    """A part of a path."""
    return quote(str(text), safe="")


def render_page(
    request: Request, template: str, caller: Caller | None, /, *, http_status: int = 200, **values: object
) -> HTMLResponse:
    """A page: `values` are those of the template, which also gets `caller`, `csrf` and `path`."""
    nonce = ""
    csrf = caller.csrf if caller else form_token(request)
    if not csrf:
        nonce, csrf = new_form_token(request)
    response = HTMLResponse(page_text(request, template, caller, csrf, values), http_status)
    if nonce:
        add_form_token(request, response, nonce)
    return response


def report_page(request: Request, caller: Caller, document: Document) -> HTMLResponse:
    """A report in the frame of the server: its menu, its style sheet, and the script of reports.

    A file of `render(document, "html")` has its style in it, which the server's Content-Security-Policy refuses.
    """
    from cranfield.reporting.renderers.html import render_blocks

    return render_page(request, "report.html", caller, document=document, content=render_blocks(document))


def page_text(request: Request, template: str, caller: Caller | None, csrf: str, values: dict[str, object]) -> str:
    """The HTML of a page; `values` as of `render_page`."""
    path = request.url.path
    values |= {"caller": caller, "csrf": csrf, "path": path, "accounts": request.app.state.options.accounts}
    values["navigation"] = tuple(entries(caller, path)) if caller else ()
    values.setdefault("notice", NOTICES.get(request.query_params.get("done", ""), ""))
    return environment().get_template(template).render(**values)


NOTICES = {
    "password": "The password has been changed. You are signed out everywhere else.",
    "saved": "Saved.",
    "revoked": "Revoked.",
    "reopened": "The items are open again.",
    "frozen": "The grades are frozen; the new version is listed below.",
    "signed-out": "You are signed out.",
    "signed-out-everywhere": "You are signed out everywhere.",
    "added": "The account has been created.",
    "cancelled": "The job will stop.",
    "queued": "The job has been queued again.",
    "uploaded": "The test set is stored.",
    "graded": "The grade is saved in its book. Stored figures do not change; the page of the evaluation or comparison offers to recompute them.",
    "frozen-set": "The grades are frozen in a version of the test set, and this evaluation is scored on it.",
    "recomputed": "Both runs are scored with the current grades. Earlier evaluations and comparisons do not change.",
    "on-newest": "Both runs are scored on the newest version of the test set, over the queries that both have answers for. Earlier evaluations do not change.",
    "reset": "The password is set. Sign in with it.",
}
"""Sentences that a page shows after a form: the address names one of them, and holds no text of its own."""


def see_other(path: str, *, done: str = "") -> RedirectResponse:
    """What a form answers with."""
    if done:
        path += ("&" if "?" in path else "?") + f"done={done}"
    return RedirectResponse(path, 303)


def lead_to(job: JobInfo, *, done: str = "") -> Response:
    """The result of a job that is done, with a sentence on a comparison; the page of the job otherwise."""
    if job.results and job.kind is JobKind.COMPARE:
        return see_other(f"/comparisons/{job.results[0]}", done=done)
    if len(job.results) == 1:
        return see_other(f"/evaluations/{job.results[0]}")
    return see_other(f"/jobs/{job.id}")


def local_path(path: str) -> str:
    """A path of this server to go on to; the home page in the place of anything else."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_local else "/"

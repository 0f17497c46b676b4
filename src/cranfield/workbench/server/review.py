"""Review of records of a golden set: the page of a reviewer, that of the lead who decides, and one to look at."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup, escape
from pydantic import BaseModel, Field, StringConstraints

from cranfield.base.errors import Problem, UsageError
from cranfield.books.review import (
    AS_IT_IS,
    VERDICTS,
    EditedField,
    FieldEdit,
    ReviewData,
    ReviewedLines,
    ReviewMaterial,
    StatedFact,
    data_of,
    edits_of,
)
from cranfield.books.settings import REVIEW_SCALE, Mode
from cranfield.books.store.rows import seeded
from cranfield.books.store.schema import Action, SkipReason
from cranfield.books.store.values import BookClosedError, NotAllowedError, SaveRequest
from cranfield.judging.documents.values import DocumentText
from cranfield.judging.selection import person_grades, waiting_items
from cranfield.model.judging import Disposition, FailureMode
from cranfield.workbench.server.access import Caller
from cranfield.workbench.server.books import Lead, Reader, book_of, book_page, book_path, item_of_book
from cranfield.workbench.server.documents import guideline_html, rendered
from cranfield.workbench.server.http_errors import RefusedRequestError, not_found
from cranfield.workbench.server.judging import Judge, progress, store_of
from cranfield.workbench.server.judging_cards import PageSettings
from cranfield.workbench.server.pages import see_other

if TYPE_CHECKING:
    from cranfield.books.store.values import BookInfo, ItemView


MAX_FACTS = 300
MAX_WORDS = 4_000
"""Most words of a text whose changes are marked word by word; a longer one is shown before and after."""
Long = Annotated[str, StringConstraints(max_length=20_000, pattern=r"^[^\x00]*$")]
Rows = Annotated[list[Long], Field(max_length=MAX_FACTS)]
_CITATION = re.compile(r"(?P<file>.*\S):(?P<start>[1-9]\d{0,8})(?:-(?P<end>[1-9]\d{0,8}))?")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class ReviewForm(BaseModel):
    """What the page sends."""

    step: Literal["save", "preview", "later", "skip"] = "save"
    key: Annotated[str, StringConstraints(min_length=8, max_length=80, pattern=r"^[^\x00]*$")]
    seen: int | None = None
    grade: Annotated[int, Field(ge=1, le=4)] | None = None
    failure_mode: FailureMode | Literal[""] = ""
    reason: Long = ""
    disposition: Disposition = Disposition.KEEP
    hint: Long = ""
    must: Rows = []
    must_lines: Rows = []
    must_not: Rows = []
    must_not_lines: Rows = []
    narrative: Long | None = None
    seconds: Annotated[int, Field(ge=0, le=10**7)] | None = None
    guideline_version: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """That the page shows."""


def decision_of(form: ReviewForm, material: ReviewMaterial) -> tuple[ReviewData, list[Problem]]:
    """The decision of a form, and what is wrong with its citations. A text of which only line ends differ is not edited."""
    problems: list[Problem] = []
    values: dict[EditedField, list[StatedFact] | str] = {}
    if form.must or form.must_not:  # a page without JavaScript sends all fields too; an API caller may send none
        values["must_mention_facts"] = _facts(form.must, form.must_lines, material.must_mention_facts, problems)
        values["must_not_mention_facts"] = _facts(
            form.must_not, form.must_not_lines, material.must_not_mention_facts, problems
        )
    if form.narrative is not None:
        values["canonical_narrative"] = _kept(form.narrative, material.canonical_narrative)
    data = ReviewData(
        disposition=form.disposition,
        failure_mode=form.failure_mode or None,
        hint=form.hint.strip(),
        edits=edits_of(material, values),
    )
    return data, problems


def _kept(text: str, before: str) -> str:
    """The text with the line ends of a browser removed, or exactly the one before."""
    plain = text.replace("\r\n", "\n")
    return before if plain == before.replace("\r\n", "\n").replace("\r", "\n") else plain


def _facts(
    texts: Sequence[str], lines: Sequence[str], before: Sequence[StatedFact], problems: list[Problem]
) -> list[StatedFact]:
    found = []
    for place, text in enumerate(texts):
        if not text.strip():
            continue  # an emptied fact is removed, and an empty row adds none
        cited = lines[place] if place < len(lines) else ""
        old = before[place] if place < len(before) else None
        citations = (
            old.citations if old and cited.split() == citations_text(old).split() else _citations(cited, problems)
        )
        found.append(StatedFact(fact=_kept(text, old.fact) if old else text.replace("\r\n", "\n"), citations=citations))
    return found


def _citations(text: str, problems: list[Problem]) -> list[ReviewedLines]:
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _CITATION.fullmatch(line)
        start = int(match["start"]) if match else 0
        end = int(match["end"] or match["start"]) if match else 0
        if match is None or end < start:
            problems.append(
                Problem("not a range of lines in a file", expected="path:first-last, one per line", got=line[:200])
            )
        else:
            found.append(ReviewedLines(file=match["file"], start=start, end=end))
    return found


def citations_text(fact: StatedFact) -> str:
    """One per line."""
    return "\n".join(map(str, fact.citations))


def value_text(value: Sequence[StatedFact] | str) -> str:
    """A field as text: a fact is a line, with its citations."""
    if isinstance(value, str):
        return value
    return "\n".join(f"{each.fact} [{', '.join(map(str, each.citations)) or 'no citation'}]" for each in value)


def marked_edit(edit: FieldEdit) -> Markup:
    """The text with `<del>` and `<ins>` round what an edit removes and adds."""
    before, after = (_WORDS.findall(value_text(value)) for value in (edit.before, edit.after))
    if len(before) + len(after) > MAX_WORDS:
        return Markup("<del>{}</del>\n<ins>{}</ins>").format("".join(before), "".join(after))
    parts = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(escape("".join(before[first:last])))
            continue
        if last > first:
            parts.append(Markup("<del>{}</del>").format("".join(before[first:last])))
        if end > start:
            parts.append(Markup("<ins>{}</ins>").format("".join(after[start:end])))
    return Markup("").join(parts)


router = APIRouter(prefix="/books/{book}/review")
DISPOSITIONS = {
    Disposition.KEEP: "keep it",
    Disposition.SEND_BACK: "send it back to the oracle, with a hint",
    Disposition.DROP: "drop it",
}
MODES = {mode: mode.value.replace("_", " ") for mode in FailureMode}
FIELDS = {
    "must_mention_facts": "Facts that an answer must mention",
    "must_not_mention_facts": "False statements that an answer must not make",
    "canonical_narrative": "Narrative",
}
EMPTY_ROWS = 2
"""For facts to add."""


@dataclass(frozen=True)
class Draft:
    """A decision as the form shows it."""

    data: ReviewData = AS_IT_IS
    grade: float | None = None
    reason: str = ""
    form: ReviewForm | None = None
    """What was sent, where it could not be saved: its facts are shown as they were written."""


def review_book(caller: Caller) -> BookInfo:
    """The book of the path, if it is one of reviews."""
    book = book_of(caller)
    if book.settings.mode is not Mode.REVIEW:
        raise not_found("review")
    return book


@router.get("")
def review_page(request: Request, caller: Judge, item: Annotated[int | None, Query(ge=0, lt=2**63)] = None) -> Response:
    """Show the record, or the next one of this reviewer."""
    book, store = review_book(caller), store_of(request)
    if caller.scope is not None:
        raise RefusedRequestError(403, "an API token cannot open pages", hint="sign in with a browser", code="scope")
    if not store.people.is_member(book.id, caller.account.id):
        store.people.join(book.id, caller.account.id)
    if item is None:
        given = store.queue.next_items(book.id, caller.account.id, 1)
        own = given[0] if given else None
    else:
        own = store.queue.own(book.id, caller.account.id, item)
    if own is None:
        return _page(request, caller, None)
    data = ReviewData.model_validate(own.data) if own.data else AS_IT_IS
    found = item_of_book(request, caller, own.item_id)
    return _page(request, caller, found, Draft(data, own.grade, own.reason))


@router.post("/{item_id}")
def save_review(request: Request, caller: Judge, item_id: int, form: Annotated[ReviewForm, Form()]) -> Response:
    """Save the decision of a reviewer, defer the record, or show its edits."""
    book, store = review_book(caller), store_of(request)
    store.queue.own(book.id, caller.account.id, item_id)  # nothing is shown of a record that was not given
    found = item_of_book(request, caller, item_id)
    data, problems = decision_of(form, ReviewMaterial.model_validate(found.fields))
    draft = Draft(data, form.grade, form.reason, form)
    if form.step == "save" and form.grade is None:
        problems.append(Problem("the review has no verdict", path="grade"))
    if form.step in {"save", "preview"} and (problems or form.step == "preview"):
        return _page(request, caller, found, draft, problems)
    action = {"later": Action.LATER, "skip": Action.SKIP}.get(form.step, Action.GRADE)
    save = SaveRequest(
        book.id,
        found.id,
        caller.account.id,
        action,
        form.key,
        grade=form.grade if action is Action.GRADE else None,
        skip_reason=SkipReason.EXPERT if action is Action.SKIP else None,
        reason=form.reason.strip(),
        data=data.model_dump(mode="json"),  # what was written so far, where the record is put off
        duration_ms=None if form.seconds is None else 1000 * form.seconds,
        guideline_version=form.guideline_version,
        method="click",
        given=True,
    )
    try:
        store.log.save(save)
    except (BookClosedError, NotAllowedError):
        raise
    except UsageError as error:
        return _page(request, caller, found, draft, error.problems)
    return see_other(book_path(book, "review"), done="saved" if form.step == "save" else "")


@router.get("/decide")
def decide_page(
    request: Request,
    caller: Lead,
    item: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    start: Annotated[int | None, Query(ge=1, le=99)] = None,
) -> Response:
    """Show the record that reviewers disagree on, or the next one that the caller did not review; `start` begins with a reviewer's decision."""
    book = review_book(caller)
    if item is None:
        waiting = waiting_items(store_of(request), book.id)
        open_to = [each for each in waiting if caller.account.id not in {row.account_id for row in person_grades(each)}]
        found = open_to[0] if open_to else None
    else:
        found = item_of_book(request, caller, item)
    if found is None:
        return _page(request, caller, None, lead=True)
    draft = Draft() if found.final is None else Draft(data_of(found), found.final, found.final_reason)
    opinions = _opinions(found)
    if start is not None and start <= len(opinions):
        row = opinions[start - 1]
        draft = Draft(row.data, row.grade, row.reason)
    return _page(request, caller, found, draft, lead=True)


@router.post("/decide/{item_id}")
def decide(request: Request, caller: Lead, item_id: int, form: Annotated[ReviewForm, Form()]) -> Response:
    """Set the decision of the lead; the decisions of the reviewers are kept."""
    book = review_book(caller)
    found = item_of_book(request, caller, item_id)
    data, problems = decision_of(form, ReviewMaterial.model_validate(found.fields))
    draft = Draft(data, form.grade, form.reason, form)
    if form.grade is None and form.step == "save":
        problems.append(Problem("the review has no verdict", path="grade"))
    if form.step != "save" or problems:
        return _page(request, caller, found, draft, problems, lead=True)
    try:
        store_of(request).log.adjudicate(
            found.id,
            caller.account.id,
            float(form.grade or 0),
            form.reason,
            form.key,
            seen=form.seen,
            data=data.model_dump(mode="json"),
        )
    except NotAllowedError as error:
        if item_of_book(request, caller, item_id).final_at == form.seen:
            raise
        return _page(request, caller, item_of_book(request, caller, item_id), draft, error.problems, lead=True)
    except UsageError as error:
        return _page(request, caller, found, draft, error.problems, lead=True)
    return see_other(book_path(book, "review", "decide"), done="saved")


@router.get("/records/{item_id}")
def record_page(request: Request, caller: Reader, item_id: int) -> Response:
    """Show a record with every decision on it."""
    review_book(caller)
    return _page(request, caller, item_of_book(request, caller, item_id), read_only=True)


@dataclass(frozen=True)
class ShownOpinion:
    """A decision as the lead sees it."""

    rater: str
    grade: float | None
    verdict: str
    action: str
    reason: str
    data: ReviewData
    edits: tuple[tuple[str, Markup], ...]


def _opinions(found: ItemView) -> list[ShownOpinion]:
    """In an order that follows neither names nor times."""
    rows = sorted(
        (row for row in found.ratings if row.kind == "person"), key=lambda row: seeded(found.id, row.account_id)
    )
    return [
        ShownOpinion(
            row.rater,
            row.grade,
            _verdict(row.grade),
            row.action,
            row.reason,
            data_of(row),
            _edits(data_of(row)),
        )
        for row in rows
    ]


def _verdict(grade: float | None) -> str:
    return "" if grade is None else VERDICTS[grade].value.replace("_", " ")


def _edits(data: ReviewData) -> tuple[tuple[str, Markup], ...]:
    return tuple((FIELDS[edit.field], marked_edit(edit)) for edit in data.edits)


def _page(
    request: Request,
    caller: Caller,
    found: ItemView | None,
    draft: Draft | None = None,
    problems: Sequence[Problem] = (),
    *,
    lead: bool = False,
    read_only: bool = False,
) -> HTMLResponse:
    draft = draft or Draft()
    book, store = review_book(caller), store_of(request)
    values: dict[str, object] = {"opinions": (), "own": False, "final_edits": (), "final": ""}
    if found is not None:
        material = ReviewMaterial.model_validate(found.fields)
        values |= {
            "material": material,
            "sources": [_shown_lines(each.file, each.start, each.text, each.problem) for each in material.sources],
            "rows": _rows(material, draft),
            "narrative": _narrative(material, draft),
            "edits": _edits(draft.data),
        }
        if lead or read_only:
            values["opinions"] = _opinions(found)
            values["own"] = caller.account.id in {row.account_id for row in person_grades(found)}
            if found.final is not None:
                values |= {"final": _verdict(found.final), "final_edits": _edits(data_of(found))}
    before = () if lead or read_only else store.reading.recent(book.id, caller.account.id, 1)
    values |= {
        "lead": lead,
        "read_only": read_only,
        "problems": problems,
        "draft": draft,
        "levels": REVIEW_SCALE.levels,
        "dispositions": DISPOSITIONS,
        "modes": MODES,
        "progress": None if lead or read_only else progress(store, book, caller.account.id),
        "before": before[0].item_id if before else None,
        "enabled": PageSettings.of(caller.account).enabled,
        "guideline": guideline_html(book),
        "accounts": request.app.state.options.accounts,
        "key": draft.form.key if draft.form else secrets.token_urlsafe(16),
    }
    return book_page(request, "review.html", caller, http_status=422 if problems else 200, item=found, **values)


def _shown_lines(file: str, start: int, text: str, problem: str) -> dict[str, object]:
    shown = rendered(DocumentText(file, "", "", text, "code", "", first_line=start)).html if text else Markup("")
    return {"file": file, "html": shown, "problem": problem}


def _rows(material: ReviewMaterial, draft: Draft) -> list[dict[str, object]]:
    """Both lists of facts for the form: texts with their citations, and empty rows."""
    edited: dict[str, list[StatedFact] | str] = {edit.field: edit.after for edit in draft.data.edits}
    groups: list[dict[str, object]] = []
    for field, name, sent in (
        ("must_mention_facts", "must", draft.form and (draft.form.must, draft.form.must_lines)),
        ("must_not_mention_facts", "must_not", draft.form and (draft.form.must_not, draft.form.must_not_lines)),
    ):
        facts = edited.get(field, getattr(material, field))
        rows = [(each.fact, citations_text(each)) for each in facts if isinstance(each, StatedFact)]
        if sent:  # an emptied row stays where it was, so that each text keeps its citations
            rows = [(text, sent[1][place] if place < len(sent[1]) else "") for place, text in enumerate(sent[0])]
            while rows and not any(map(str.strip, rows[-1])) and len(rows) > len(getattr(material, field)):
                rows.pop()
        groups.append({"title": FIELDS[field], "name": name, "rows": [*rows, *[("", "")] * EMPTY_ROWS]})
    return groups


def _narrative(material: ReviewMaterial, draft: Draft) -> str:
    edited: dict[str, object] = {edit.field: edit.after for edit in draft.data.edits}
    return str(edited.get("canonical_narrative", material.canonical_narrative))

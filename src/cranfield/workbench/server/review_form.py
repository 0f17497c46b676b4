"""The form of a review: what a reviewer sent, as a decision; what was changed, as marked text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Annotated, Literal

from markupsafe import Markup, escape
from pydantic import BaseModel, Field, StringConstraints

from cranfield.base.errors import Problem
from cranfield.books.review import (
    EditedField,
    FieldEdit,
    ReviewData,
    ReviewedLines,
    ReviewMaterial,
    StatedFact,
    edits_of,
)
from cranfield.model.review import Disposition, FailureMode

MOST_FACTS = 300
MOST_WORDS = 4_000
"""Of a text whose changes are marked word by word; a longer one is shown before and after."""
Long = Annotated[str, StringConstraints(max_length=20_000, pattern=r"^[^\x00]*$")]
Rows = Annotated[list[Long], Field(max_length=MOST_FACTS)]
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
            problems.append(Problem("not the lines of a file", expected="path:first-last, one a line", got=line[:200]))
        else:
            found.append(ReviewedLines(file=match["file"], start=start, end=end))
    return found


def citations_text(fact: StatedFact) -> str:
    """One a line."""
    return "\n".join(map(str, fact.citations))


def value_text(value: Sequence[StatedFact] | str) -> str:
    """A field as text: a fact is a line, with its citations."""
    if isinstance(value, str):
        return value
    return "\n".join(f"{each.fact} [{', '.join(map(str, each.citations)) or 'no citation'}]" for each in value)


def marked_edit(edit: FieldEdit) -> Markup:
    """The text with `<del>` and `<ins>` round what an edit removes and adds."""
    before, after = (_WORDS.findall(value_text(value)) for value in (edit.before, edit.after))
    if len(before) + len(after) > MOST_WORDS:
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

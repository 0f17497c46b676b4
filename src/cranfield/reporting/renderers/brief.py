"""The short form of a Document: the answer on one screen of a terminal, or in a few lines of Markdown.

Verdict, primary figures, where it changed and what to doubt. What does not fit is counted, with the way to see it: nothing is left out
without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cranfield.reporting.document import VOID_STAMP, Brief, Document, Table
from cranfield.reporting.renderers.markdown import escape, paragraph, table_markdown
from cranfield.reporting.renderers.text_table import Paint, columns_left_out, no_colour, table_lines
from cranfield.words import capitalised, n_of, printable, shorten_to, width

COLUMNS = 80
MOST_LINES = 20
"""A terminal of 24 lines holds them with the names of the files written, the next step and the prompt."""
MOST_ROWS = 10
FEWEST_ROWS = 6
"""Where lines do not suffice: rows of the table that stay."""
MOST_SENTENCE_LINES, MOST_DOUBT_LINES, MOST_FINDING_LINES = 5, 3, 3
"""Of the verdict's sentence, of a caveat, and of a finding."""
MOST_DOUBTS = 5
"""Caveats in Markdown."""


def render_brief(document: Document, *, line: int = COLUMNS, most: int = MOST_LINES, paint: Paint = no_colour) -> str:
    """The short form for a terminal.

    Args:
        document: the report.
        line: columns of a line.
        most: number of lines.
        paint: colours what has a tone.
    """
    brief = brief_of(document) or Brief()
    stamps = [each for each in document.stamps if each != VOID_STAMP or brief.table is not None]
    head = _head(document, stamps, line, paint)
    is_void = document.verdict is not None and document.verdict.tone == "void"
    most_each = MOST_SENTENCE_LINES if is_void else MOST_DOUBT_LINES
    wanted = len(_doubt(brief.doubts[0], line, most_each)) if brief.doubts else 0
    fitted, rows = _fitted(brief, line, most - len(head) - 1, wanted)
    body = _body(fitted, rows, line, paint)
    doubts, n_doubts = _doubts(brief.doubts, most - len(head) - len(body) - 1, line, most_each)
    lines = [*head, *body, *doubts, _rest(document, brief, fitted, rows, n_doubts, line)]
    return "\n".join(each.rstrip() for each in lines) + "\n"


def _fitted(brief: Brief, line: int, room: int, wanted: int) -> tuple[Brief, int]:
    """What is left beside `wanted` lines for the gravest caveat, and the number of rows: first rows give way, then changes.

    Args:
        brief: everything there is to say.
        line: columns of a line.
        room: lines of table, changes and caveats.
        wanted: lines of the gravest caveat.
    """
    rows = 0 if brief.table is None else min(len(brief.table.rows), MOST_ROWS)
    least = min(rows, FEWEST_ROWS)
    while rows > least and len(_body(brief, rows, line, no_colour)) + wanted > room:
        rows -= 1
    while len(brief.changes) > 1 and len(_body(brief, rows, line, no_colour)) + wanted > room:
        brief = replace(brief, changes=brief.changes[:-1])
    if len(_body(brief, rows, line, no_colour)) > room:
        brief = replace(brief, changes=())
    return brief, rows


def brief_of(document: Document) -> Brief | None:
    """What the short form says: the document's own; of another one with a verdict its first table and what limits the verdict."""
    if document.brief is not None:
        return document.brief()
    verdict = document.verdict
    return None if verdict is None else Brief(_first_table(document), doubts=verdict.limits())


def _first_table(document: Document) -> Table | None:
    return next((block for section in document.sections for block in section.blocks if isinstance(block, Table)), None)


def _head(document: Document, stamps: Sequence[str], line: int, paint: Paint) -> list[str]:
    """Title, what was measured, and the verdict."""
    about = printable("; ".join(document.subtitle))
    lines = [shorten_to(printable(document.title), line), *([shorten_to(about, line)] if about else [])]
    if stamps:
        lines += [paint(each, "void") for each in folded(f"*** {' · '.join(stamps)} ***", line)]
    if document.verdict is not None:
        verdict = document.verdict
        lines.append(paint(f"VERDICT: {verdict.name}", verdict.tone or "open"))
        lines += _cut(folded(verdict.sentence, line), MOST_SENTENCE_LINES, line)
    return lines


def _body(brief: Brief, rows: int, line: int, paint: Paint) -> list[str]:
    """The table and the queries that changed."""
    lines: list[str] = []
    if brief.table is not None and brief.table.rows:
        lines += ["", *table_lines(_first(brief.table, rows), line, paint, compact=True)]
    if brief.rules is not None:
        lines += ["", *table_lines(_first(brief.rules, MOST_ROWS), line, paint, compact=True)]
    for finding in brief.findings:
        lines += _cut(folded(finding, line), MOST_FINDING_LINES, line)
    return [*lines, *(shorten_to(printable(change), line) for change in brief.changes)]


def _first(table: Table, rows: int) -> Table:
    return replace(table, rows=table.rows[:rows], shown=None, wrap=False, footer=None)


def _doubts(doubts: Sequence[str], room: int, line: int, most: int) -> tuple[list[str], int]:
    """As many caveats as there is room for, each of `most` lines; and how many they are."""
    lines: list[str] = []
    for n, doubt in enumerate(doubts):
        written = _doubt(doubt, line, most)
        if len(lines) + len(written) > room:
            return (lines, n) if lines or room < 1 else (_cut(written, room, line), 1)
        lines += written
    return lines, len(doubts)


def folded(text: str, line: int, lead: str = "") -> list[str]:
    """Text in lines of so many columns, the first behind a lead; a word that is longer than a line, as of Chinese, folds inside."""
    room = line - len(lead)
    lines = [""]
    for word in printable(text).split():
        joined = f"{lines[-1]} {word}".strip()
        if width(joined) <= room:
            lines[-1] = joined
            continue
        lines.append("")
        for character in word:
            if width(lines[-1] + character) > room:
                lines.append("")
            lines[-1] += character
    found = [each for each in lines if each] or [""]
    return [f"{' ' * len(lead) if place else lead}{each}" for place, each in enumerate(found)]


def _doubt(doubt: str, line: int, most: int) -> list[str]:
    return _cut(folded(doubt, line, "! "), most, line)


def _cut(lines: list[str], most: int, line: int) -> list[str]:
    """The first lines; the last of them ends in an ellipsis where others follow."""
    if len(lines) <= most:
        return lines
    last = lines[most - 1].rstrip()
    if width(last) > line - len(" …"):
        words = last.rpartition(" ")[0]
        last = words if width(words) > line // 2 else shorten_to(last, line - len(" …")).rstrip("…")
    return [*lines[: most - 1], f"{last} …"]


def _rest(document: Document, brief: Brief, fitted: Brief, rows: int, n_doubts: int, line: int) -> str:
    """The last line: what is left out, and how to see it."""
    left = []
    n_rows = len(brief.table.rows) - rows if brief.table is not None else 0
    n_rows += max(0, len(brief.rules.rows) - MOST_ROWS) if brief.rules is not None else 0
    if n_rows:
        left.append(n_of(n_rows, "rows"))
    if brief.table is not None and (n_columns := columns_left_out(_first(brief.table, rows), line)):
        left.append(n_of(n_columns, "columns"))
    if len(brief.changes) > len(fitted.changes):
        left.append(n_of(len(brief.changes) - len(fitted.changes), "lines"))
    if len(brief.doubts) > n_doubts:
        left.append(n_of(len(brief.doubts) - n_doubts, "caveats"))
    left.append(n_of(len(document.sections), "sections"))
    return f"--full prints everything: {', '.join(left)} more"


def render_brief_markdown(document: Document) -> str:
    """The short form for a changelog or a pull request; of a Document without one, its verdict and first section."""
    verdict, brief = document.verdict, brief_of(document) or Brief(_first_table(document))
    lines = [f"**{escape(document.title)}**"]
    if document.stamp:
        lines += ["", f"> **{escape(document.stamp)}**"]
    if verdict is not None:
        lines += ["", f"**{escape(capitalised(verdict.name))}.** {escape(verdict.sentence)}"]
    if document.subtitle:
        lines += ["", paragraph("; ".join(document.subtitle))]
    for table in (brief.table, brief.rules):
        if table is not None and table.rows:
            lines += ["", *table_markdown(_first(table, MOST_ROWS))]
            if len(table.rows) > MOST_ROWS:
                lines.append(f"… and {n_of(len(table.rows) - MOST_ROWS, 'rows')} more")
    if brief.findings or brief.changes:
        lines += ["", *(f"- {paragraph(each)}" for each in (*brief.findings, *brief.changes))]
    if brief.doubts:
        lines += ["", "Caveats:", *(f"- {paragraph(doubt)}" for doubt in brief.doubts[:MOST_DOUBTS])]
        if len(brief.doubts) > MOST_DOUBTS:
            lines.append(f"- and {n_of(len(brief.doubts) - MOST_DOUBTS, 'caveats')} more in the report")
    return "\n".join([*lines, "", escape(document.made_by)]) + "\n"

"""A Document as Markdown in GitHub's dialect, for a pull request or a wiki.

Whatever came from a system or a file is escaped, or written as code, where nothing is markup and no user is mentioned.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cranfield.base.words import inert, printable, printable_lines
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Code,
    Column,
    Details,
    Document,
    HitLists,
    KeyValues,
    Link,
    Paragraph,
    Table,
    VerdictBlock,
)

MAX_ROWS = 50
"""Longer tables are cut, for a comment on GitHub may hold 65,536 characters."""

_MARKUP = re.compile(r"([\\`*_\[\]{}|~!^$])")
_BLOCK_START = re.compile(r"^(?:\d+[.)](?=\s|$)|[-+](?=\s|$|-)|=|#)")
"""What would begin a list, a heading or a rule, at the start of a paragraph or an item."""


def escape(text: str) -> str:
    """Text in which nothing is markup, a mention or an address, for a place inside a line."""
    return _MARKUP.sub(r"\\\1", html.escape(inert(printable(text)), quote=False))


def paragraph(text: str) -> str:
    """As `escape`, for text that begins a line."""
    return _BLOCK_START.sub(lambda found: found.group()[:-1] + "\\" + found.group()[-1], escape(text))


def code(text: str, *, in_table: bool = False) -> str:
    """Text as inline code, whatever backticks it holds; empty text is nothing."""
    plain = printable(text)
    if not plain.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    pad = " " if plain[0] in "` " or plain[-1] in "` " else ""
    fence = "`" * (longest + 1)
    return f"{fence}{pad}{plain.replace('|', chr(92) + '|') if in_table else plain}{pad}{fence}"


def render_markdown(document: Document) -> str:
    """Verdict first, then the sections in order; pictures are left to HTML, their tables stay."""
    lines = [f"# {escape(document.title)}", ""]
    if document.stamp:
        lines += [f"> **{escape(document.stamp)}**", ""]
    if document.verdict is not None:
        lines += [*_verdict(document.verdict), ""]
    if document.subtitle:
        lines += ["  \n".join(paragraph(line) for line in document.subtitle), ""]
    for section in document.sections:
        lines += [f"## {escape(section.title)}", ""]
        for block in section.blocks:
            lines += _block(block)
    footer = " · ".join(part for part in (document.made_by, document.stamp) if part)
    return "\n".join([*lines, "---", escape(footer)]) + "\n"


def _verdict(verdict: VerdictBlock) -> Iterator[str]:
    yield f"> **Verdict: {escape(verdict.name)}.** {escape(verdict.sentence)}"
    yield from (f"> - {paragraph(reason)}" for reason in verdict.reasons)
    if verdict.caveats:
        yield ">"
        yield "> Caveats:"
        yield from (f"> - {paragraph(caveat)}" for caveat in verdict.caveats)
    if verdict.disagreements:
        yield ">"
        yield "> But:"
        yield from (f"> - {paragraph(sentence)}" for sentence in verdict.disagreements)


def _block(block: Block) -> list[str]:
    lines = list(_WRITERS[block.kind](block))
    return [*lines, ""] if lines else []


def _paragraph(block: Paragraph) -> Iterator[str]:
    yield paragraph(block.text)


def _bullets(block: Bullets) -> Iterator[str]:
    yield from (f"- {paragraph(item)}" for item in block.items)


def _key_values(block: KeyValues) -> Iterator[str]:
    if block.title:
        yield f"**{escape(block.title)}**"
        yield ""
    yield from (f"- {paragraph(label)}: {escape(value)}" for label, value in block.items)


def _code(block: Code) -> Iterator[str]:
    text = printable_lines(block.text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    if block.caption:
        yield f"{escape(block.caption)}:"
        yield ""
    yield from (fence, text, fence)


def _table(table: Table) -> Iterator[str]:
    yield f"{paragraph(f'{table.caption}. {table.marks}' if table.marks else table.caption)}:"
    yield ""
    yield from table_markdown(table)


def table_markdown(table: Table) -> Iterator[str]:
    """Headings, rows and footer, without the caption."""
    yield _row([escape(column.title) for column in table.columns])
    yield _row(["---:" if column.is_numeric else ":---" for column in table.columns])
    shown = table.rows if table.shown is None else table.rows[: max(table.shown, MAX_ROWS)]
    for row in shown:
        yield _row([_marked(table, column, cell) for column, cell in zip(table.columns, row, strict=True)])
    if table.footer is not None:
        yield _row(
            [f"**{text}**" if (text := _cell(*pair)) else "" for pair in zip(table.columns, table.footer, strict=True)]
        )
    if len(shown) < len(table.rows):
        yield ""
        yield f"… and {len(table.rows) - len(shown)} more."


def _cell(column: Column, cell: Cell) -> str:
    text = column.text(cell)
    shown = code(text, in_table=True) if column.is_code else escape(text)
    return f"[{shown}]({cell.href})" if isinstance(cell, Link) and cell.href else shown


_MARKS: Mapping[str, str] = {"": "%s", "best": "**%s**", "second": "<ins>%s</ins>"}
"""GitHub takes `<ins>` for underlined text, and removes `<u>`."""


def _marked(table: Table, column: Column, cell: Cell) -> str:
    mark, better_than = table.marked(cell)
    text = _MARKS[mark] % _cell(column, cell)
    return f"{text}<sup>{escape(','.join(better_than))}</sup>" if better_than else text


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _figure(block: Chart) -> Iterator[str]:
    if block.table_follows:
        return
    legend = " · ".join(escape(words) for _, words in block.legend)
    yield f"**{escape(block.title)}**" + (f": {legend}" if legend else "")
    yield ""
    yield from _details(Details("In numbers", (block.table,)))


def _details(block: Details) -> Iterator[str]:
    yield "<details open>" if block.is_open else "<details>"
    yield f"<summary>{html.escape(inert(printable(block.summary)), quote=False)}</summary>"
    yield ""
    for inner in block.blocks:
        yield from _block(inner)
    yield "</details>"


def _hit_lists(block: HitLists) -> Iterator[str]:
    if block.expected:
        yield f"Expected: {escape(block.expected)}"
    for answer in block.lists:
        yield ""
        yield f"**{escape(answer.title)}**: {escape(answer.note)}"
        if not answer.hits:
            continue
        yield ""
        yield _row(["rank", "result", "title", ""])
        yield _row(["---:", ":---", ":---", ":---"])
        for hit in answer.hits:
            note = f"**{escape(hit.note)}**" if hit.tone == "good" else escape(hit.note)
            yield _row([str(hit.rank), code(hit.id, in_table=True), escape(hit.title), note])


_WRITERS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    Paragraph.kind: _paragraph,
    Bullets.kind: _bullets,
    KeyValues.kind: _key_values,
    Code.kind: _code,
    Table.kind: _table,
    Chart.kind: _figure,
    Details.kind: _details,
    HitLists.kind: _hit_lists,
}

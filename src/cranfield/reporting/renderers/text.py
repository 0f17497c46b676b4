"""A Document as plain text: columns lined up, no colour, no control character, about 100 columns wide.

Made for pasting into a ticket. Pictures, details and hit lists are left to the other forms; where a picture's numbers
belong in a ticket, its table stands for it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from cranfield.reporting.document import (
    Block,
    Bullets,
    Code,
    Details,
    Document,
    Figure,
    KeyValues,
    Paragraph,
    Section,
    Table,
    VerdictBlock,
)
from cranfield.reporting.renderers.text_table import GAP, padded, table_lines
from cranfield.words import printable, shorten_to, width

LINE = 100
LEFT_OUT = "Figures, result lists and details are in the HTML report."


def render_text(document: Document, line: int = LINE) -> str:
    """Verdict first, then the sections in order.

    Args:
        document: the report.
        line: columns of a line.
    """
    return "\n".join(each.rstrip() for each in _Writer(line).document(document)) + "\n"


_COMMAND = re.compile(r"`cranfield [^`]*`")
_KEPT = "\ue000"
"""For a space at which no line ends."""


def wrapped(text: str, line: int, lead: str = "") -> list[str]:
    """Text in lines of so many columns, the first behind a lead, the others indented as far. A command stays in one line."""
    lines = textwrap.wrap(
        _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT), printable(text)),
        line,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [each.replace(_KEPT, " ") for each in lines] or [lead]


class _Writer:
    """Writes lines of a number of columns."""

    def __init__(self, line: int) -> None:
        self.line = line

    def document(self, document: Document) -> Iterator[str]:
        yield from _underlined(printable(document.title), "=")
        for each in document.subtitle:
            yield from self._wrapped(each)
        if document.stamp:
            yield from ("", f"*** {document.stamp} ***")
        if document.verdict is not None:
            yield from ("", *self._verdict(document.verdict))
        for section in document.sections:
            yield from self._section(section)
        if any(not self._block(block) for section in document.sections for block in section.blocks):
            yield from ("", *self._wrapped(LEFT_OUT))
        if document.stamp:
            yield from ("", f"*** {document.stamp} ***")

    def _wrapped(self, text: str, lead: str = "") -> list[str]:
        return wrapped(text, self.line, lead)

    def _verdict(self, verdict: VerdictBlock) -> Iterator[str]:
        yield f"VERDICT: {verdict.name}"
        yield from self._wrapped(verdict.sentence)
        for reason in verdict.reasons:
            yield from self._wrapped(reason, "- ")
        if verdict.caveats:
            yield "Caveats:"
            for caveat in verdict.caveats:
                yield from self._wrapped(caveat, "- ")
        if verdict.disagreements:
            yield "But:"
            for sentence in verdict.disagreements:
                yield from self._wrapped(sentence, "- ")

    def _section(self, section: Section) -> list[str]:
        """Heading and blocks; nothing at all where all blocks are left out."""
        lines: list[str] = []
        for block in section.blocks:
            if written := self._block(block):
                lines += ["", *written]
        return ["", *_underlined(printable(section.title), "-"), *lines[1:]] if lines else []

    def _block(self, block: Block) -> list[str]:
        if isinstance(block, Details):
            if not block.in_text:
                return []
            return [line for inner in block.blocks for line in ("", *self._block(inner))][1:]
        write = self.WRITERS.get(block.kind)
        return [] if write is None else list(write(self, block))

    def _paragraph(self, block: Paragraph) -> Iterator[str]:
        yield from self._wrapped(block.text)

    def _bullets(self, block: Bullets) -> Iterator[str]:
        for item in block.items:
            yield from self._wrapped(item, "- ")

    def _key_values(self, block: KeyValues) -> Iterator[str]:
        if block.title:
            yield f"{printable(block.title)}:"
        labels = [printable(label) for label, _ in block.items]
        room = min(max(map(width, labels), default=0), self.line // 2)
        for label, (_, value) in zip(labels, block.items, strict=True):
            yield from self._wrapped(value, padded(shorten_to(label, room), room) + GAP)

    def _table(self, table: Table) -> Iterator[str]:
        yield from self._wrapped(table.caption + ":")
        yield from table_lines(table, self.line)

    def _figure(self, figure: Figure) -> Iterator[str]:
        if figure.in_text:
            yield from self._table(figure.table)

    def _code(self, block: Code) -> Iterator[str]:
        if not block.in_text:
            return
        if block.caption:
            yield from self._wrapped(block.caption + ":")
        yield from (f"  {printable(line)}" for line in block.text.splitlines())

    WRITERS: ClassVar[Mapping[str, Callable[[Any, Any], Iterator[str]]]] = {
        Paragraph.kind: _paragraph,
        Bullets.kind: _bullets,
        KeyValues.kind: _key_values,
        Table.kind: _table,
        Figure.kind: _figure,
        Code.kind: _code,
    }
    """Writers of the blocks in plain text; other blocks are left out."""


def _underlined(title: str, mark: str) -> tuple[str, str]:
    return title, mark * width(title)

"""Records as documents: the fields of a run, a row of a database, a line of a corpus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from cranfield.config.documents import RecordNames
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted

TEXT_NAMES = ("text", "body", "content", "snippet", "description")
"""Fields of runs that hold a text, the first one counts."""
_MOST_NAMES = 50
_HIDDEN = frozenset({"rank", "position", "score", "distance", "similarity", "system", "engine", "run"})
"""Fields of runs that a rater may not see before the item is graded, whatever underscores are around them."""


def record_content(record: Mapping[str, object], names: RecordNames) -> Content:
    """A record as a document; without a text it is the list of its names and values."""
    title, text, url, image = (as_text(record.get(name)) for name in (names.title, names.text, names.url, names.image))
    has_text = bool(text)
    if not text:
        parts = {names.title, names.url, names.image, "id"}
        rows = [(name, as_text(value)) for name, value in record.items() if name not in parts]
        text = "\n".join(f"{name}: {value}" for name, value in rows[:_MOST_NAMES] if value)
    return Content(text, title=title, url=url, image=image, values=record, has_text=has_text)


@dataclass(frozen=True, slots=True)
class FieldsReader(Reader):
    """The fields that the runs give."""

    names: RecordNames

    def read(self, wanted: Wanted) -> Content:
        """The document as the runs give it."""
        shown = {name: value for name, value in wanted.fields.items() if name.strip("_").lower() not in _HIDDEN}
        content = record_content(shown, self.names)
        if not (content.text or content.title or content.image):
            raise DocumentError(
                DocumentFailureKind.NO_SOURCE, "The runs give no text of this document, and no source of texts has it."
            )
        return content


def run_fields(fields: Mapping[str, object]) -> FieldsReader:
    """The reader of a document that no source has: its text is the first field that is named like one."""
    text = next((name for name in TEXT_NAMES if fields.get(name)), "text")
    return FieldsReader(RecordNames(text=text))


def as_text(value: object) -> str:
    """A value of a record as text; a lone surrogate, which no page can hold, is a question mark."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode()

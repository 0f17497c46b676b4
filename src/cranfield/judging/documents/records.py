"""Records as documents: the fields of a run, a row of a database, a line of a corpus."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cranfield.config.documents import RecordNames, SqlSource, bind_parameters, parameter_names
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted
from cranfield.systems.predicates.read_only import Refused
from cranfield.systems.predicates.rows import RowReader, opened_rows

TEXT_NAMES = ("text", "body", "content", "snippet", "description")
"""Fields of runs that hold a text, the first one counts."""
_MAX_NAMES = 50
_HIDDEN = frozenset({"rank", "position", "score", "distance", "similarity", "system", "engine", "run"})
"""Fields of runs that a rater may not see before the item is graded, whatever underscores are around them."""


def record_content(record: Mapping[str, object], names: RecordNames) -> Content:
    """A record as a document; without a text it is the list of its names and values."""
    title, text, url, image = (as_text(record.get(name)) for name in (names.title, names.text, names.url, names.image))
    has_text = bool(text)
    if not text:
        parts = {names.title, names.url, names.image, "id"}
        rows = [(name, as_text(value)) for name, value in record.items() if name not in parts]
        text = "\n".join(f"{name}: {value}" for name, value in rows[:_MAX_NAMES] if value)
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
                DocumentFailureKind.NO_SOURCE, "Neither the runs nor a source of texts has a text of this document."
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


class SqlReader(Reader):
    """Rows, one at a time over one connection."""

    def __init__(self, config: SqlSource, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._lock = threading.Lock()
        self._open = ExitStack()
        self._row_of: RowReader | None = None
        kind, names = config.sql.database.partition(":")[0], parameter_names(config.sql.query)
        spell = {"duckdb": lambda name: f"${name}", "env": lambda name: f"${names.index(name) + 1}"}.get(kind)
        self._statement = bind_parameters(config.sql.query, spell) if spell else config.sql.query
        self._names, self._by_position = names, kind == "env"

    def read(self, wanted: Wanted) -> Content:
        """The first row of the statement."""
        with self._lock:
            try:
                if self._row_of is None:
                    place, timeout_s = self._config.sql.database, self._config.timeout_s
                    self._row_of = self._open.enter_context(opened_rows(place, self._folder, timeout_s))
                parameters = {name: wanted.values[name] for name in self._names}
                row = self._row_of(self._statement, list(parameters.values()) if self._by_position else parameters)
            except Refused as refused:
                if refused.is_late:
                    message = f"The database of this source did not answer within {self._config.timeout_s:g} s."
                    raise DocumentError(DocumentFailureKind.TIMED_OUT, message) from None
                raise DocumentError(
                    DocumentFailureKind.FAILED, f"The database of this source failed: {refused}."
                ) from None
        if row is None:
            raise DocumentError(DocumentFailureKind.NOT_FOUND, "The document is not in the database of this source.")
        return record_content(row, RecordNames())

    def close(self) -> None:
        """End the process or the connection that reads."""
        with self._lock:
            self._row_of = None
            self._open.close()

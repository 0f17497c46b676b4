"""A row of a database of the operator as a document."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

from cranfield.config.documents import RecordNames, SqlSource, bind_parameters, parameter_names
from cranfield.judging.documents.records import record_content
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted
from cranfield.systems.predicates.read_only import Refused
from cranfield.systems.predicates.rows import RowReader, opened_rows


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
            raise DocumentError(DocumentFailureKind.NOT_FOUND, "The database of this source has no such document.")
        return record_content(row, RecordNames())

    def close(self) -> None:
        """End the process or the connection that reads."""
        with self._lock:
            self._row_of = None
            self._open.close()

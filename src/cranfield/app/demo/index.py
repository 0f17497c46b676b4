"""Writes a corpus into the databases of the demo: one for each system, that `search` reads, and one for the judgments.

`plain` puts all text into one full-text table of equal weights. `fields` is the candidate: names weigh more than text,
identifiers are split, text is stemmed, kinds are boosted. Its numbers were chosen beforehand, not tuned on the queries.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from cranfield.app.demo.entity import Corpus, DocumentedObject
from cranfield.app.demo.search import SearchConfig, SearchTable, identifier_parts
from cranfield.base.errors import UsageError
from cranfield.formats.io.files import new_part

# Stop words of questions. None of them is a keyword or a name of the library.
STOP_WORDS = "a an and are can do does how i is it me my of on or should that the there this to what when where which why you your"

ENTITY_TABLE = """
CREATE TABLE entity (
    rowid INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    module TEXT NOT NULL,
    parts TEXT NOT NULL,
    signature TEXT NOT NULL,
    doc TEXT NOT NULL,
    path TEXT NOT NULL,
    span TEXT,
    decorators TEXT NOT NULL,
    bases TEXT NOT NULL,
    parameters TEXT NOT NULL,
    is_async INTEGER NOT NULL,
    is_generator INTEGER NOT NULL,
    is_context_manager INTEGER NOT NULL,
    is_deprecated INTEGER NOT NULL,
    boost REAL NOT NULL
)
"""
INSERT_ENTITY = "INSERT INTO entity VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ATTRIBUTE_TABLE = """
CREATE TABLE entity (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    module TEXT NOT NULL,
    decorators TEXT NOT NULL,
    bases TEXT NOT NULL,
    parameters TEXT NOT NULL,
    is_async INTEGER NOT NULL,
    is_generator INTEGER NOT NULL,
    is_context_manager INTEGER NOT NULL,
    is_deprecated INTEGER NOT NULL
) WITHOUT ROWID
"""
INSERT_ATTRIBUTES = "INSERT INTO entity VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
CREATE_TEXT_TABLE = "CREATE VIRTUAL TABLE {name} USING fts5({columns}, content='entity', tokenize='{tokenizer}')"
FILL_TEXT_TABLE = "INSERT INTO {name}({name}) VALUES ('{command}')"
_JOIN: Callable[[Iterable[str]], str] = " ".join


@dataclass(frozen=True)
class TextTable:
    """One full-text table over columns of `entity`, and the weight of each in the score."""

    name: str
    weights: Mapping[str, float]
    tokenizer: str
    factor: float = 1.0
    """Weight of its score among the tables."""


@dataclass(frozen=True)
class SystemDesign:
    """The differences between the two systems of the demo."""

    name: str
    tables: tuple[TextTable, ...]
    split_identifiers: bool = False
    stop_words: tuple[str, ...] = ()
    boosts: Mapping[str, float] = field(default_factory=dict)
    """Factor on the score by kind of entity; 1 where not named."""
    deprecated_boost: float = 1.0

    @property
    def search_config(self) -> SearchConfig:
        """Settings of the search script."""
        return SearchConfig(
            tables=[
                SearchTable(name=table.name, factor=table.factor, weights=list(table.weights.values()))
                for table in self.tables
            ],
            split_identifiers=self.split_identifiers,
            stop_words=list(self.stop_words),
        )

    def boost(self, entity: DocumentedObject) -> float:
        """The factor on an entity's score."""
        return self.boosts.get(entity.kind, 1.0) * (self.deprecated_boost if entity.is_deprecated else 1.0)


PLAIN = SystemDesign(
    name="plain",
    tables=(TextTable("everything", {"title": 1, "module": 1, "signature": 1, "doc": 1}, "unicode61"),),
)

FIELDS = SystemDesign(
    name="fields",
    tables=(
        # bm25 saturates: within one table a large weight has little effect on a matching name.
        TextTable("names", {"name": 1}, "unicode61 tokenchars '_'", factor=2.0),
        TextTable("places", {"title": 3, "module": 2, "parts": 2, "signature": 1}, "unicode61 tokenchars '_'"),
        TextTable("texts", {"doc": 1}, "porter unicode61"),
    ),
    split_identifiers=True,
    stop_words=tuple(STOP_WORDS.split()),
    boosts={"module": 1.3, "class": 1.2, "function": 1.1, "topic": 1.1, "data": 0.9},
    deprecated_boost=0.7,
)

DESIGNS = (PLAIN, FIELDS)


def write_database(corpus: Corpus, design: SystemDesign, path: Path) -> None:
    """Write the database of one system, atomically.

    Raises:
        UsageError: SQLite cannot search text here, or the file cannot be written.
    """
    _write(path, lambda connection: _fill(connection, corpus, design))


def write_attributes(corpus: Corpus, path: Path) -> None:
    """Write the attributes of each entity, for queries that are judged by predicates.

    Raises:
        UsageError: the file cannot be written.
    """

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute(ATTRIBUTE_TABLE)
        connection.executemany(INSERT_ATTRIBUTES, (_attributes(entity) for entity in corpus))

    _write(path, fill)


def _write(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    try:
        with new_part(path) as part, closing(sqlite3.connect(part)) as connection, connection:
            # The file is removed after an error, so it needs no journal.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            fill(connection)
    except (sqlite3.Error, OSError) as error:
        raise UsageError("the database could not be written", path=str(path), got=str(error)) from error


def _fill(connection: sqlite3.Connection, corpus: Corpus, design: SystemDesign) -> None:
    connection.execute(ENTITY_TABLE)
    rows = ((rowid, *_row(entity, design)) for rowid, entity in enumerate(corpus, start=1))
    connection.executemany(INSERT_ENTITY, rows)
    for table in design.tables:
        tokenizer = table.tokenizer.replace("'", "''")
        statement = CREATE_TEXT_TABLE.format(name=table.name, columns=", ".join(table.weights), tokenizer=tokenizer)
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            raise UsageError(
                "this Python's SQLite cannot search text",
                expected="SQLite with its FTS5 extension",
                got=str(error),
                hint="use the Python of your distribution or of python.org for the demo",
            ) from error
        for command in ("rebuild", "optimize"):
            connection.execute(FILL_TEXT_TABLE.format(name=table.name, command=command))
    connection.execute("CREATE TABLE config (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    connection.execute("INSERT INTO config VALUES ('search', ?)", [json.dumps(design.search_config, sort_keys=True)])


def _row(entity: DocumentedObject, design: SystemDesign) -> Iterable[object]:
    return (
        entity.id,
        entity.kind,
        entity.name,
        entity.qualname,
        entity.module,
        _JOIN(identifier_parts(entity.qualname)),
        entity.signature,
        entity.doc,
        entity.path,
        f"{entity.start}-{entity.end}" if entity.path else None,
        _JOIN(entity.decorators),
        _JOIN(entity.bases),
        _JOIN(entity.parameters),
        entity.is_async,
        entity.is_generator,
        entity.is_context_manager,
        entity.is_deprecated,
        design.boost(entity),
    )


def _attributes(entity: DocumentedObject) -> tuple[str | bool, ...]:
    return (
        entity.id,
        entity.kind,
        entity.name,
        entity.module,
        _JOIN(entity.decorators),
        _JOIN(entity.bases),
        _JOIN(entity.parameters),
        entity.is_async,
        entity.is_generator,
        entity.is_context_manager,
        entity.is_deprecated,
    )

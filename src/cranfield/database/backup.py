"""Backups: a whole database as one file that SQLite and PostgreSQL read alike.

The file is gzipped JSON lines: a header, the columns of each table before its rows, a row a line, and an end with the number of
rows of each table and a SHA-256 of the lines between. Rows are read in one transaction, so that a server can go on meanwhile.
A table comes after those that it refers to, its rows in the order of their keys. Bytes are in Base64.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from sqlalchemy import JSON, Connection, Integer, LargeBinary, MetaData, String, Table, func, insert, select, text
from sqlalchemy.exc import StatementError

from cranfield.database.engine import Database
from cranfield.database.migrate import current_revision, linked, revisions, run_revisions, upgrade
from cranfield.errors import InputError, UsageError
from cranfield.version import __version__

FORMAT = "cranfield-backup-1"
ROWS_AT_ONCE = 500
NOT_DATA = ("alembic_version",)


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """The contents of a backup."""

    revision: str
    """Of its schema."""
    rows: dict[str, int]
    """Table to number of rows."""
    digest: str
    """SHA-256 of the rows."""


class _Count:
    """Counts and digests lines as they pass."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._digest = sha256()

    def add(self, line: bytes, table: str, *, is_row: bool) -> None:
        self._digest.update(line)
        self.rows[table] = self.rows.get(table, 0) + is_row

    def info(self, revision: str) -> BackupInfo:
        return BackupInfo(revision, self.rows, self._digest.hexdigest())


def back_up_database(database: Database, path: Path) -> BackupInfo:
    """Write a backup, of whatever revision the schema is, and read it once more to check it. Nothing in the database is changed.

    Args:
        database: in use or not.
        path: a file that does not exist; only this user can read it.

    Raises:
        UsageError: the file exists, or the database has no books.
        InputError: what was written cannot be read again.
    """
    taken = UsageError("the file exists", path=str(path), hint="a backup replaces nothing: give another name")
    if os.path.lexists(path):  # also a link to nothing
        raise taken
    with database.engine.connect() as plain:
        level = {} if database.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        connection = plain.execution_options(**level)
        with connection.begin():
            revision = current_revision(connection)
            if revision is None:
                raise UsageError("there is no database of books here", path=database.where)
            handle, name = mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
            half = Path(name)
            try:
                _write(connection, revision, handle)
                found = read_backup(half)
                if not linked(half, path):  # another program has made the file meanwhile
                    raise taken
            finally:
                half.unlink(missing_ok=True)
    return found


def _write(connection: Connection, revision: str, handle: int) -> None:
    count = _Count()
    with os.fdopen(handle, "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=6) as file:
            file.write(_line({"format": FORMAT, "revision": revision, "version": __version__}))
            for table, is_row, line in _lines(connection):
                count.add(line, table, is_row=is_row)
                file.write(line)
            info = count.info(revision)
            file.write(_line({"rows": info.rows, "sha256": info.digest}))
        raw.flush()
        os.fsync(raw.fileno())


def _rows_at_once(table: Table) -> int:
    """Rows of a table to hold in memory: one where it has files."""
    return 1 if any(isinstance(column.type, LargeBinary) for column in table.columns) else ROWS_AT_ONCE


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def _tables(connection: Connection) -> list[Table]:
    """The tables as they are in the database, those that others refer to first."""
    metadata = MetaData()
    metadata.reflect(connection)
    tables = [table for table in metadata.sorted_tables if table.name not in NOT_DATA]
    for table in tables:
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type.none_as_null = True
    return tables


def _lines(connection: Connection) -> Iterator[tuple[str, bool, bytes]]:
    """Name of the table, whether the line is a row, and the line."""
    is_sqlite = connection.dialect.name == "sqlite"
    for table in _tables(connection):
        columns = sorted(table.columns, key=lambda column: column.name)
        yield table.name, False, _line({"table": table.name, "columns": [column.name for column in columns]})
        # By bytes, as SQLite compares texts.
        keys = [key if is_sqlite or not isinstance(key.type, String) else key.collate("C") for key in table.primary_key]
        for row in connection.execution_options(yield_per=_rows_at_once(table)).execute(
            select(*columns).order_by(*keys)
        ):
            values = [b64encode(value).decode() if isinstance(value, bytes | memoryview) else value for value in row]
            yield table.name, True, _line(values)


def _read(path: Path) -> Iterator[tuple[bytes, Any]]:
    """The lines of a backup, with their values: at least the header.

    Raises:
        InputError: it is none, or damaged.
    """
    try:
        with gzip.open(path, "rb") as file:
            header = json.loads(first := file.readline())
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise InputError("not a backup", path=str(path), expected=f"a file of `cranfield db backup`, {FORMAT}")
            yield first, header
            for line in file:
                yield line, json.loads(line)
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise InputError("not a backup, or a damaged one", path=str(path), got=str(error)) from None


def read_backup(path: Path) -> BackupInfo:
    """Read a backup to its end, and check the number of rows and the digest.

    Raises:
        InputError: it is none, or damaged.
    """
    for _ in (reading := _Reading(path)):
        pass
    return reading.info


class _Reading:
    """A backup that is read: iterating gives table, columns and values of each row; at the end all is checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = _read(path)
        _, header = next(self._lines)
        self.revision = str(header.get("revision"))
        self.info = BackupInfo(self.revision, {}, "")

    def __iter__(self) -> Iterator[tuple[str, list[str], list[Any]]]:
        count, table, end = _Count(), "", None
        columns: Any = []
        for line, value in self._lines:
            if isinstance(value, dict) and "sha256" in value:
                end = value
                break
            if isinstance(value, dict):
                table, columns = str(value.get("table")), value.get("columns")
            count.add(line, table, is_row=isinstance(value, list))
            if isinstance(value, list):
                yield table, columns, value
        self.info = count.info(self.revision)
        if end is None or end != {"rows": self.info.rows, "sha256": self.info.digest}:
            got = "no end" if end is None else "other rows than its end counts"
            raise InputError("the backup is damaged", path=str(self.path), got=got)


def restore_database(path: Path, database: Database) -> BackupInfo:
    """Fill an empty database, of either engine, with a backup, check it, and upgrade its schema. All or nothing.

    Raises:
        UsageError: the database is not empty, or the backup is of a newer version.
        InputError: the file is no backup, or damaged; or the engine cannot store it.
    """
    is_new = database.path is not None and not database.path.exists()
    try:
        info = _restore(path, database)
        upgrade(database)
    except BaseException:
        database.close()
        if is_new:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{database.path}{suffix}").unlink(missing_ok=True)
        raise
    return info


def _restore(path: Path, database: Database) -> BackupInfo:
    reading = _Reading(path)
    if reading.revision not in revisions():
        raise UsageError(
            f"the backup was made by a newer version of Cranfield: its schema is {reading.revision}",
            path=str(path),
            expected=f"a schema up to {revisions()[-1]}",
        )
    with database.migrating() as connection:
        if current_revision(connection) is not None:
            raise UsageError("the database is not empty", path=database.where, hint="restore to a new one")
        run_revisions(connection, reading.revision)
        _insert(connection, reading)
        _check(connection, reading.info, database)
    return reading.info


def _insert(connection: Connection, reading: _Reading) -> None:
    tables = {table.name: table for table in _tables(connection)}
    name, batch = "", list[dict[str, Any]]()
    for table, columns, values in reading:
        if table not in tables or columns != sorted(tables[table].columns.keys()) or len(columns) != len(values):
            raise InputError("the backup is damaged", path=str(reading.path), got=f"a row of {table or 'no table'}")
        if table != name or len(batch) == _rows_at_once(tables[name]):
            _store(connection, tables.get(name), batch, reading.path)
            name, batch = table, []
        batch.append(dict(zip(columns, values, strict=True)))
    _store(connection, tables.get(name), batch, reading.path)
    if connection.dialect.name != "sqlite":
        _set_sequences(connection, tables.values())


def _store(connection: Connection, table: Table | None, batch: list[dict[str, Any]], path: Path) -> None:
    if table is None or not batch:
        return
    binary = [column.name for column in table.columns if isinstance(column.type, LargeBinary)]
    try:
        for row in batch:
            row.update({name: b64decode(row[name]) for name in binary if row[name] is not None})
        connection.execute(insert(table), batch)
    except (StatementError, TypeError, ValueError) as error:  # PostgreSQL stores no U+0000 in a text
        reason = " ".join(str(getattr(error, "orig", error)).split())
        raise InputError(f"the database cannot store a row of {table.name}", path=str(path), got=reason) from None


def _set_sequences(connection: Connection, tables: Iterable[Table]) -> None:
    """Let new rows of PostgreSQL have numbers above those that were restored."""
    for table in tables:
        keys = list(table.primary_key)
        if len(keys) != 1 or not isinstance(keys[0].type, Integer):
            continue
        names = {"table": f'"{table.name}"', "column": keys[0].name}
        sequence = connection.execute(text("SELECT pg_get_serial_sequence(:table, :column)"), names).scalar()
        last = connection.execute(select(func.max(keys[0]))).scalar()
        if sequence is not None and last is not None:
            connection.execute(text("SELECT setval(:sequence, :last)"), {"sequence": sequence, "last": last})


def _check(connection: Connection, expected: BackupInfo, database: Database) -> None:
    """Compare what the database has now with the backup."""
    count = _Count()
    for table, is_row, line in _lines(connection):
        count.add(line, table, is_row=is_row)
    if count.info(expected.revision) != expected:
        raise InputError("the database has other rows than the backup after restoring it", path=database.where)
    if database.is_sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise InputError("a row of the backup refers to one that is not there", path=database.where)

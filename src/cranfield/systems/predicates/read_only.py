"""A database opened so that a statement from a file can only read it, in bounded time and for a bounded number of rows.

A file is read by a process of its own (`reader`: SQLite has an authorizer that knows no writing, DuckDB reaches no other
file), which is ended when it takes too long. PostgreSQL runs one cursor in a read-only transaction, under a role that may
not touch the server's files.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.concurrency.child_process import ChildProcess
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import MissingExtraError

if TYPE_CHECKING:
    from psycopg import Connection

LINE = 200
"""Longest part of a database's message that is shown, in characters."""
READER = Path(__file__).with_name("reader.py")
START_S = 60.0
"""Seconds that the process has to start and to open the file."""
MAX_LINE_BYTES = 12 * 100_000_000
"""Most bytes of an answer of the process: the longest spelling of a character in JSON, times `MAX_TEXT`."""
GRACE_S = 1.0
"""Seconds over the limit that its own clock has, before it is ended."""
_RESOLVED = re.compile(r'server at "[^"]*"(?: \([^)]*\))?, port \S+')
"""Where libpq says which address a name became."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
FILE_ROLES = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
"""Roles that reach beyond the database; a read-only transaction does not hold them back."""
REACHES_FILES = f"""
SELECT rolsuper OR EXISTS (
    SELECT 1 FROM pg_catalog.pg_roles AS role
    WHERE role.rolname IN {FILE_ROLES} AND pg_catalog.pg_has_role(session_user, role.oid, 'MEMBER')
) FROM pg_catalog.pg_roles WHERE rolname = session_user"""  # noqa: S608  names of our own
MAX_TEXT = 100_000_000
"""Characters of all ids of one statement."""
MODEST_ROLE = "connect as a role that only reads: CREATE ROLE reader LOGIN IN ROLE pg_read_all_data"

PLACES = "sqlite:PATH, duckdb:PATH or env:NAME of a variable that contains a PostgreSQL address"

Column = Sequence[object]
Parameters = Mapping[str, str] | Sequence[str] | None
"""Bound parameters: by name for a file, by position for PostgreSQL."""
Asker = Callable[[str, Parameters], Column]
"""One statement to the first column of its rows, at most one row more than is allowed; with parameters, see `rows`."""


class Refused(Exception):  # noqa: N818 - it is no error of the program, and never leaves the room
    """A statement was refused by the database or by this module: one line, and the next step."""

    def __init__(
        self, message: str, hint: str | None = None, expected: str | None = None, *, is_late: bool = False
    ) -> None:
        super().__init__(message)
        self.is_late = is_late
        self.hint = hint
        self.expected = expected


@dataclass(frozen=True, slots=True)
class StatementLimits:
    """Limits of one statement."""

    timeout_s: float
    max_rows: int

    @property
    def timed_out(self) -> Refused:
        """The error for a statement that takes longer."""
        hint = "make the query simpler, or index what it filters by"
        return Refused(f"stopped after {self.timeout_s:g} s", hint, is_late=True)


@contextmanager
def opened(place: str, folder: Path, timeout_s: float, max_rows: int) -> Iterator[Callable[[str], tuple[str, ...]]]:
    """Open a database; what comes is asked with one statement at a time and gives ids: text, distinct, sorted.

    Args:
        place: `sqlite:PATH`, `duckdb:PATH`, or `env:NAME` of a variable that contains a PostgreSQL address.
        folder: what a path is relative to.
        timeout_s: seconds for one statement.
        max_rows: rows of one statement.

    Raises:
        Refused: by the opening and by each statement. No part of an address is in it.
        MissingExtraError: the driver is not installed.
    """
    bounds = StatementLimits(timeout_s, max_rows)
    with opener_of(place)(folder, bounds) as asker:

        def ids_of(statement: str) -> tuple[str, ...]:
            if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in statement):
                raise Refused("it contains a character that is not allowed in a statement")
            column = asker(statement, None)
            if len(column) > bounds.max_rows:
                raise Refused(f"more than {bounds.max_rows:,} rows", "narrow the filter")
            without = sum(value is None or value == "" for value in column)
            if without:
                raise Refused(
                    f"{without} of {len(column)} rows have no document id in the first column",
                    "select the column of the ids first, and leave out rows where it is NULL, empty or binary",
                )
            return tuple(sorted({str(value) for value in column}))

        yield ids_of


def opener_of(place: str) -> Callable[[Path, StatementLimits], AbstractContextManager[Asker]]:
    """How a database is opened.

    Raises:
        Refused: its place has no known form.
    """
    kind, _, where = place.partition(":")
    if kind not in OPENERS or not where:
        # What stands there may be an address with a password in it: it is not quoted.
        raise Refused("its location is not valid", expected=PLACES)
    return partial(OPENERS[kind], where)


class _Reader:
    """A database file, read by a child process that can be ended at any moment."""

    def __init__(self, kind: str, place: str, bounds: StatementLimits) -> None:
        self._command = [sys.executable, "-P", str(READER), kind, place, str(bounds.timeout_s), str(bounds.max_rows)]
        self._bounds = bounds
        self._process: ChildProcess | None = None

    def start(self) -> None:
        """Start the process and have it open the file, where it is not running."""
        event_loop().run(self._start())

    def ask(self, sql: str, parameters: Parameters) -> Column:
        """The first column of the result of one statement; with parameters, its first row."""
        return event_loop().run(self._ask(sql if parameters is None else [sql, parameters]))

    def close(self) -> None:
        """End the process."""
        event_loop().run(self._close())

    async def _start(self) -> ChildProcess:
        if self._process is None:
            self._process = await ChildProcess.start(
                self._command, cwd=READER.parent, env=os.environ, stdin=True, max_output_bytes=MAX_LINE_BYTES
            )
            await self._answer(self._process, START_S)
        return self._process

    async def _ask(self, request: object) -> Column:
        process = await self._start()
        with suppress(OSError):  # it ended: the missing answer says so
            await process.write_line(json.dumps(request))
        return await self._answer(process, self._bounds.timeout_s + GRACE_S)

    async def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()

    async def _answer(self, process: ChildProcess, seconds: float) -> Column:
        try:
            async with asyncio.timeout(seconds):
                line = await process.read_line()
        except TimeoutError:
            await self._close()
            raise self._bounds.timed_out from None
        if line is None:
            await self._close()
            raise Refused("the process that read it ended", "try a statement that needs less memory")
        answer = json.loads(line)
        if "refused" in answer:
            raise self._bounds.timed_out if answer["late"] else Refused(answer["refused"])
        column: Column = answer["column"]
        return column


@contextmanager
def _file(kind: str, where: str, folder: Path, bounds: StatementLimits) -> Iterator[Asker]:
    path = (folder / where).absolute()
    try:
        there = path.is_file()
    except OSError as error:
        raise Refused(f"file not found: {where[:LINE]}: {(error.strerror or '').lower()}") from None
    if not there:
        raise Refused(f"file not found: {where[:LINE]}")
    if kind == "duckdb" and find_spec("duckdb") is None:
        raise MissingExtraError.for_extra("a DuckDB database", "duckdb")
    reader = _Reader(kind, path.as_uri() if kind == "sqlite" else str(path), bounds)
    try:
        reader.start()
        yield reader.ask
    finally:
        reader.close()


@contextmanager
def _postgres(variable: str, folder: Path, bounds: StatementLimits) -> Iterator[Asker]:
    del folder
    address = _address(variable)
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError.for_extra("a PostgreSQL database", "postgres") from None
    hide = _hider(address, variable)

    def connected() -> Connection[Any]:
        # In a thread, which is abandoned when it is late: each address that a name resolves to has a time limit of its own.
        seconds = max(1, round(bounds.timeout_s))
        connect = partial(psycopg.connect, address, connect_timeout=seconds, client_encoding="UTF8", autocommit=True)
        try:
            connection: Connection[Any] = event_loop().run_function(connect, bounds.timeout_s + GRACE_S / 2)
        except TimeoutError:
            raise Refused(
                f"the database at ${variable} cannot be reached: no answer in {bounds.timeout_s:g} s"
            ) from None
        except psycopg.Error as error:
            raise Refused(f"the database at ${variable} cannot be reached: {hide(error)}") from None
        return connection

    connection = connected()

    def asker(sql: str, parameters: Parameters) -> Column:
        nonlocal connection
        if connection.closed:  # a statement that was given up took it along
            connection = connected()
        try:
            column = _in_transaction(connection, sql, list(parameters or ()), variable, bounds)
        except psycopg.errors.QueryCanceled:
            connection.close()
            raise bounds.timed_out from None
        except psycopg.Error as error:
            connection.close()
            raise Refused(hide(error)) from None
        except Refused:
            connection.close()
            raise
        return column

    try:
        yield asker
    finally:
        connection.close()


def _in_transaction(
    connection: Connection[Any], sql: str, parameters: list[str], variable: str, bounds: StatementLimits
) -> Column:
    """The first column of what one statement gives, in a transaction that only reads, all in one time limit."""
    run = partial(_extended, connection, bounds=bounds, until=time.monotonic() + bounds.timeout_s + GRACE_S / 2)
    run("BEGIN READ ONLY")
    run(f"SET LOCAL statement_timeout = {max(1, round(bounds.timeout_s * 1000))}")
    if run(REACHES_FILES) != ["f"]:
        raise Refused(f"the role of ${variable} can access the server's files", MODEST_ROLE)
    # A cursor takes what only reads, and the extended protocol takes one statement.
    run(f"DECLARE cranfield NO SCROLL CURSOR FOR {sql}", parameters=parameters)
    column: Column = run(f"FETCH FORWARD {bounds.max_rows + 1} FROM cranfield")
    run("ROLLBACK")
    return column


def _address(variable: str) -> str:
    if _VARIABLE.fullmatch(variable) is None:
        raise Refused("its location is not valid", expected=PLACES)
    address = os.environ.get(variable)
    if not address:
        raise Refused(f"the environment variable {variable} is not set")
    if not address.startswith(POSTGRES_SCHEMES):
        raise Refused(f"the environment variable {variable} does not contain an address that starts with postgresql://")
    return address


def _extended(
    connection: Connection[Any],
    statement: str,
    *,
    bounds: StatementLimits,
    until: float,
    parameters: Sequence[str] = (),
) -> list[str | None]:
    """Run one statement and give the first column, as the server writes it, row by row as it comes.

    Raises:
        Refused: the server takes longer than its own clock allows, or says too much. The statement is cancelled, and
            the connection is of no further use.
    """
    from psycopg import OperationalError, errors, pq

    line = connection.pgconn
    if sys.platform == "win32":  # nothing is started there that calls it
        raise NotImplementedError
    poll = select.poll()
    poll.register(line.socket, select.POLLIN)
    line.send_query_params(statement.encode(), [value.encode() for value in parameters] or None)
    line.set_single_row_mode()
    column: list[str | None] = []
    length = 0
    while True:
        while line.is_busy():
            if (left_s := until - time.monotonic()) <= 0 or not poll.poll(left_s * 1000):
                with suppress(OperationalError):
                    connection.cancel_safe(timeout=GRACE_S / 2)
                raise bounds.timed_out
            line.consume_input()
        result = line.get_result()
        if result is None:
            return column
        if result.status == pq.ExecStatus.SINGLE_TUPLE:
            cell = result.get_value(0, 0) if result.nfields else None
            column.append(None if cell is None else cell.decode("utf-8", "replace"))
            length += len(cell or b"")
            if length > MAX_TEXT:
                raise Refused(f"ids of more than {MAX_TEXT:,} characters together")
        elif result.status not in {pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK}:
            raise errors.error_from_result(result)


def _hider(address: str, variable: str) -> Callable[[BaseException], str]:
    """What an error says, in one line, without any part of the address."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        values = [str(value) for value in conninfo_to_dict(address).values() if value]
    except (ProgrammingError, UnicodeEncodeError):  # it quotes the address
        raise Refused(f"the address in the environment variable {variable} cannot be read") from None
    parts = {*values, *(part for value in values for part in value.split(",") if part)}  # several hosts
    longest_first = sorted({address, *parts}, key=lambda part: (-len(part), part))
    anything = re.compile("|".join(rf"(?<!\w){re.escape(part)}(?!\w)" for part in longest_first))

    def hide(error: BaseException) -> str:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        # To reach a server libpq tries every address it resolves to, a line each.
        line = lines[-1].rpartition(" failed: ")[2] if " failed: " in lines[-1] else lines[0]
        return _RESOLVED.sub('server at "…", port …', anything.sub("…", line))[:LINE]

    return hide


OPENERS: Mapping[str, Callable[[str, Path, StatementLimits], AbstractContextManager[Asker]]] = {
    "sqlite": partial(_file, "sqlite"),
    "duckdb": partial(_file, "duckdb"),
    "env": _postgres,
}
"""What the place of a database begins with, to how it is opened."""

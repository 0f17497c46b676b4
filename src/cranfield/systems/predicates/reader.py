"""Reads one database file for the process that started it, which ends it when a statement takes too long.

    python -P reader.py sqlite|duckdb FILE SECONDS ROWS

A stand-alone script. Each line of its input is a statement, as JSON; each line of its output is the result:
`{"column": [...]}`, text or null for what is no id, or `{"refused": "why", "late": false}`. The first line says whether
the file could be opened. A statement with parameters is `[sql, {name: value}]`; its result is the first row, as
`[[name, value], ...]`, or `[]`. The clock here stops nearly everything, but it is looked at between the steps of a statement,
and a single step (the search of one long text in another) can take for ever: that is what the other process is for.
"""

import json
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

LINE = 200
"""Longest part of a database's message that is passed on, in characters."""
AT_ONCE = 16
"""Rows that are taken at once: each may be long."""
MAX_TEXT = 100_000_000
"""Characters of all ids of one statement."""
MEMORY = 4 * 1024**3
"""Bytes that this process may have."""
DUCKDB_MEMORY = "2GB"
SQLITE_STEPS = 5_000
"""Steps of SQLite's machine between two looks at the clock: well under a millisecond."""
SQLITE_BOUNDS = {sqlite3.SQLITE_LIMIT_LENGTH: 100_000_000, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000}
"""What one step may build or compare."""
_FOLDERS = re.compile(r"""(?<![\w:/.])/(?:[^/\s"']+/)+""")
FORBIDDEN = "not authorized"
"""Message of SQLite where its authorizer denied access."""
DUCKDB_SETTINGS: dict[str, Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",  # a name in the statement is never a variable of this program
    "autoinstall_known_extensions": "false",
    "allow_persistent_secrets": "false",
    "memory_limit": DUCKDB_MEMORY,
    "threads": "4",  # each reserves memory that counts under the bound of the process
    "temp_directory": "",
    "lock_configuration": "true",
}


class UnansweredStatement(Exception):  # noqa: N818 - it is no error of the program
    """Why a statement was not answered, in one line."""

    late = False


class Late(UnansweredStatement):
    """It took too long."""

    late = True


Asker = Callable[[str, dict[str, str] | None], list[object]]
"""A statement to the first column of its rows, at most one row more than is allowed; with parameters, to its first row."""


def open_sqlite(uri: str, seconds: float, rows: int) -> Asker:
    """Open a file so that nothing but reading is possible.

    Args:
        uri: of the file, without parameters.
        seconds: for one statement.
        rows: of one statement; one more is read, to know that there are too many.
    """
    deadline = 0.0
    try:
        connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=seconds)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise UnansweredStatement(first_line(error)) from None
    for limit, size in SQLITE_BOUNDS.items():
        connection.setlimit(limit, size)
    connection.set_authorizer(may_read)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, SQLITE_STEPS)

    def asker(sql: str, parameters: dict[str, str] | None) -> list[object]:
        nonlocal deadline
        deadline = time.monotonic() + seconds
        try:
            cursor = connection.execute(sql, parameters or {})
            if cursor.description is None:
                raise UnansweredStatement("this is not a query")
            if parameters is not None:
                return first_row(cursor.description, cursor.fetchmany(1))
            return first_column(cursor.fetchmany, rows)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            sqlite_text = first_line(error)
            if "interrupted" in sqlite_text:
                raise Late from None
            raise UnansweredStatement(
                f"it does more than read: {sqlite_text}" if FORBIDDEN in sqlite_text else sqlite_text
            ) from None

    return asker


def may_read(action: int, first_argument: str | None, second_argument: str | None, *_: str | None) -> int:
    """SQLite's authorizer: reading of tables and calls of functions, but for the one that loads code.

    A full-text index, when it is first looked into, has a table declared and looks at `data_version`. The declaration
    writes nothing, and in a database opened for reading no statement may write the schema.
    """
    reads = action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
    calls = action == sqlite3.SQLITE_FUNCTION and (second_argument or "").lower() != "load_extension"
    looks = action == sqlite3.SQLITE_PRAGMA and first_argument == "data_version" and second_argument is None
    declares = action == sqlite3.SQLITE_UPDATE and first_argument == "sqlite_master"
    return sqlite3.SQLITE_OK if reads or calls or looks or declares else sqlite3.SQLITE_DENY


def is_sqlite(path: str) -> bool:
    """Whether a file begins as SQLite's do: DuckDB would look for an extension that reads it."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(15) == b"SQLite format 3"
    except OSError:
        return False  # DuckDB says what is wrong


def open_duckdb(path: str, seconds: float, rows: int) -> Asker:
    """Open a file so that nothing but reading of it is possible; the arguments are those of `open_sqlite`."""
    import duckdb

    if is_sqlite(path):
        raise UnansweredStatement("this is an SQLite database, not a DuckDB file")
    try:
        connection = duckdb.connect(path, read_only=True, config=DUCKDB_SETTINGS)
    except duckdb.Error as error:
        raise UnansweredStatement(without_folders(error, path)) from None

    def asker(sql: str, parameters: dict[str, str] | None) -> list[object]:
        timer = threading.Timer(seconds, connection.interrupt)
        try:
            statements = connection.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise UnansweredStatement("this is not one query (SELECT)")
            timer.start()
            result = connection.execute(statements[0], parameters or None)
            if parameters is not None:
                return first_row(result.description or (), result.fetchmany(1))
            return first_column(result.fetchmany, rows)
        except duckdb.InterruptException:
            raise Late from None
        except duckdb.Error as error:
            raise UnansweredStatement(first_line(error)) from None
        finally:
            timer.cancel()

    return asker


def first_column(fetch: Callable[[int], list[tuple[object, ...]]], rows: int) -> list[object]:
    """The first column of the rows as ids, at most one row more than `rows`.

    Raises:
        Refused: they are longer than `MAX_TEXT` together.
    """
    found: list[object] = []
    length = 0
    while len(found) <= rows and (batch := fetch(min(AT_ONCE, rows + 1 - len(found)))):
        for row in batch:
            name = as_id(row[0])
            length += len(name or "")
            if length > MAX_TEXT:
                raise UnansweredStatement(f"ids of more than {MAX_TEXT:,} characters together")
            found.append(name)
    return found


def first_row(description: Sequence[Sequence[Any]], found: list[tuple[object, ...]]) -> list[object]:
    """The first row as pairs of name and value: text, a number or null. Bytes are left out.

    Raises:
        Refused: it is longer than `MAX_TEXT`.
    """
    pairs: list[object] = []
    length = 0
    for column, value in zip(description, found[0] if found else (), strict=False):
        shown = value if value is None or isinstance(value, (int, float)) else as_id(value)
        length += len(str(shown))
        if length > MAX_TEXT:
            raise UnansweredStatement(f"a row of more than {MAX_TEXT:,} characters")
        pairs.append([str(column[0]), shown])
    return pairs


def first_line(error: BaseException) -> str:
    """The first line of a database's message."""
    lines = str(error).strip().splitlines()
    return lines[0].strip()[:LINE] if lines else type(error).__name__


def without_folders(error: BaseException, path: str) -> str:
    """The first line of a database's message on opening a file: files are named, the folders they are in are not."""
    return _FOLDERS.sub("", str(error).replace(path, PurePath(path).name).strip().splitlines()[0])[:LINE]


def as_id(value: object) -> str | None:
    """A value as the text of an id; None for what is none."""
    return None if value is None or isinstance(value, bytes) else str(value)


def main(kind: str, place: str, seconds: str, rows: str, statements: Iterable[str] = sys.stdin) -> None:
    """Open the file, and answer line by line."""
    bound_memory()
    try:
        asker = (open_sqlite if kind == "sqlite" else open_duckdb)(place, float(seconds), int(rows))
    except UnansweredStatement as refused:
        say({"refused": str(refused), "late": False})
        return
    say({"column": []})
    for line in statements:
        try:
            request = json.loads(line)
            sql, parameters = (request, None) if isinstance(request, str) else request
            say({"column": asker(sql, parameters)})
        except UnansweredStatement as refused:
            say({"refused": str(refused), "late": refused.late})


def bound_memory() -> None:
    """Have the system refuse more memory than `MEMORY`, where it can."""
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):  # macOS, or a tighter bound that stands already
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def say(answer: dict[str, Any]) -> None:
    """Write one answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

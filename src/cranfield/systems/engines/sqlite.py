"""SQLite's FTS5 as a system under test: the preset `sqlite`, and a function to call from Python."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import quote

from cranfield.base.errors import Problem, UsageError, unknown_name
from cranfield.model import Explanation, Hit, Scalar
from cranfield.systems.engines.connections import Connections, OrNone

Words = Literal["any", "all", "phrase", "raw"]
_LATE = frozenset({sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|:(\w+)""")
_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock."""


def searcher(  # noqa: PLR0913 - one a setting of the preset
    *,
    database: str,
    table: str,
    id_column: str = "id",
    title_column: str | None = None,
    weights: Mapping[str, float] = MappingProxyType({}),
    words: Words = "any",
    where: str | None = None,
    statement_timeout_s: float = 30.0,
    explain: bool = False,
    folder: Path | str = ".",
) -> Fts5Table:
    """Search an FTS5 table.

    Args:
        database: file, relative to `folder`; opened read-only.
        table: the FTS5 table.
        id_column: column of the document id, or `rowid`.
        title_column: column of a title to show.
        weights: of columns in `bm25()`; default 1.
        words: results contain any of the query's words, all, or the phrase; `raw`: the query is FTS5 syntax.
        where: additional SQL condition; `:name` is a parameter of the query, null if missing.
        statement_timeout_s: time limit of a query, and of the wait for a lock.
        explain: each result says what each column gives to its score, see `Fts5Table`.
        folder: `database` is relative to it.

    Raises:
        UsageError: with all problems of file, table and columns.
    """
    path = Path(folder) / database
    if not path.is_file():
        raise UsageError(Problem(f"no database file {database}", hint="the path is relative to the config file."))
    connections = Connections(lambda: _connection(path, statement_timeout_s))
    try:
        with connections.connection() as connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
    except sqlite3.DatabaseError as error:
        raise UsageError(Problem(f"{database} is not a database that SQLite can read: {error}")) from None
    named = (id_column, *([title_column] if title_column else []), *weights)
    problems = [Problem(f"{database} has no table {table}")] if not columns else []
    problems += [
        unknown_name(f"column of {table}", name, columns)
        for name in named
        if columns and name not in columns and name != "rowid"
    ]
    if problems:
        connections.close()
        raise UsageError(problems)
    shown = ", ".join(_quoted(name) for name in (id_column, title_column) if name is not None)
    of_columns = {name: float(weights.get(name, 1)) for name in columns}
    statement = (
        f"SELECT {_bm25(table, of_columns.values())}, {shown}{', rowid' if explain else ''} "  # noqa: S608 - names are quoted
        f"FROM {_quoted(table)} WHERE {_quoted(table)} MATCH :__query"
        + (f" AND ({where})" if where is not None else "")
        + " ORDER BY 1 DESC, 2 LIMIT :__k"
    )
    parts = _Parts(table, of_columns) if explain else None
    return Fts5Table(connections, statement, words, statement_timeout_s, parts)


def _bm25(table: str, weights: Iterable[float]) -> str:
    return f"-bm25({', '.join([_quoted(table), *(repr(weight) for weight in weights)])})"


class _Parts:
    """What each column of an FTS5 table gives to the BM25 of a result.

    BM25 saturates the weighted number of occurrences over all columns, so that it has no parts which add up to it. Of a column there
    are its weight, what the score loses without it (its weight 0), and the score of the column alone at weight 1, which does
    not depend on the weights.
    """

    def __init__(self, table: str, weights: Mapping[str, float]) -> None:
        self._weights = weights
        alone = (_bm25(table, (float(name == each) for each in weights)) for name in weights)
        without = (
            _bm25(table, (0.0 if name == each else weight for each, weight in weights.items())) for name in weights
        )
        self._statement = (
            f"SELECT rowid, {', '.join((*alone, *without))} FROM {_quoted(table)} "  # noqa: S608 - names are quoted
            f"WHERE {_quoted(table)} MATCH :__query AND rowid IN ("
        )

    def read(self, connection: sqlite3.Connection, match: str, scores: Mapping[int, float]) -> dict[int, Explanation]:
        """Row id to explanation of results; one statement, which finds all matches again and scores these."""
        rows = connection.execute(self._statement + ", ".join(map(str, scores)) + ")", {"__query": match})
        return {rowid: self._explanation(scores[rowid], numbers) for rowid, *numbers in rows}

    def _explanation(self, score: float, numbers: list[float]) -> Explanation:
        n = len(self._weights)
        columns = zip(self._weights.items(), numbers[:n], numbers[n:], strict=True)
        return Explanation(
            "score",
            score,
            tuple(
                Explanation(name, score - without, (Explanation("weight", weight), Explanation("alone", alone)))
                for (name, weight), alone, without in columns
                if alone
            ),
        )


class Fts5Table:
    """Search in an FTS5 table; every call under way has its own connection."""

    def __init__(
        self,
        connections: Connections[sqlite3.Connection],
        statement: str,
        words: Words,
        timeout_s: float,
        parts: _Parts | None = None,
    ) -> None:
        self._parts = parts
        self._timeout_s = timeout_s
        self._connections = connections
        self._statement = statement
        self._words = words

    def search(self, query: str, k: int, /, **params: Scalar) -> list[Hit]:
        """The best `k` by BM25, descending; ties by id.

        Args:
            query: its text.
            k: number of results requested.
            params: for `where`.

        Raises:
            TimeoutError: the query took too long, or another process held a lock.
            ValueError: a `raw` query or `where` is invalid.
        """
        match = match_of(query, self._words)
        if not match:
            return []
        try:
            with self._connections.connection() as connection:
                until = time.monotonic() + self._timeout_s
                connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
                given = OrNone(params, __query=match, __k=k)
                rows = connection.execute(self._statement, given).fetchall()
                parts = {} if self._parts is None else self._parts.read(connection, match, {r[-1]: r[0] for r in rows})
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LATE:
                raise TimeoutError(f"SQLite: {error}; the limit is {self._timeout_s:g} s") from error
            raise ValueError(f"SQLite: {error}") from error
        return [self._hit(row, parts) for row in rows]

    def _hit(self, row: tuple[Any, ...], parts: Mapping[int, Explanation]) -> Hit:
        score, name, *more = row
        explanation = None if self._parts is None else parts.get(more.pop())
        title = more[0] if more else None
        return Hit(str(name), float(score), None if title is None else str(title), explanation=explanation)

    def shown_request(self, query: str, k: int, /, **params: Scalar) -> str:
        """The statement that `search` executes, with its values, as the `sqlite3` program takes it."""
        match = match_of(query, self._words)
        return with_values(self._statement, OrNone(params, __query=match, __k=k)) if match else "no statement: no words"

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


def match_of(query: str, words: Words) -> str:
    """The MATCH expression: words between blanks, each quoted; empty if there are none."""
    if words == "raw":
        return query.strip()
    quoted = ['"' + word.replace('"', '""') + '"' for word in query.replace("\0", " ").split()]
    if words == "phrase":
        return " + ".join(quoted)
    return (" OR " if words == "any" else " ").join(quoted)


def with_values(statement: str, values: Mapping[str, object]) -> str:
    """A statement with literals in the place of `:name`; strings and quoted names stay as they are."""
    return _PARAMETER.sub(lambda found: found[0] if found[1] is None else _literal(values[found[1]]), statement)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _connection(path: Path, timeout_s: float) -> sqlite3.Connection:
    address = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=timeout_s)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

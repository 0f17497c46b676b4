"""PostgreSQL's full-text search as a system under test: the preset `postgres`, and a function to call from Python."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Event, Timer
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import MissingExtraError, Problem, UsageError
from cranfield.model import Explanation, Hit, Scalar
from cranfield.systems.engines.connections import Connections, OrNone

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed

Words = Literal["websearch", "all", "any", "phrase", "raw"]
Letter = Literal["A", "B", "C", "D"]
DEFAULT_WEIGHTS: Mapping[Letter, float] = MappingProxyType({"A": 1.0, "B": 0.4, "C": 0.2, "D": 0.1})
"""The default of PostgreSQL."""
_GRACE_S = 0.5
"""Seconds over the limit that the server has, which ends queries itself, before the call is cut off; then as many to cancel it."""
_READS_QUERY = {
    "websearch": "websearch_to_tsquery({config}, %(__query)s)",
    "all": "plainto_tsquery({config}, %(__query)s)",
    "any": "replace(plainto_tsquery({config}, %(__query)s)::text, ' & ', ' | ')::tsquery",
    "phrase": "phraseto_tsquery({config}, %(__query)s)",
    "raw": "to_tsquery({config}, %(__query)s)",
}
_STATEMENT = """
SELECT {rank}({weights}, {vector}, cranfield_query, {normalisation}) AS score, {shown}
FROM {table}, (SELECT {reads_query} AS cranfield_query) AS asked
WHERE {vector} @@ cranfield_query{where}
ORDER BY score DESC, {id}::text COLLATE "C"
LIMIT %(__k)s"""
_EXPLAINED = """
WITH best AS (
SELECT {rank}({weights}, {vector}, cranfield_query, {normalisation}) AS score, {named}, {vector} AS vector, cranfield_query
FROM {table}, (SELECT {reads_query} AS cranfield_query) AS asked
WHERE {vector} @@ cranfield_query{where}
ORDER BY score DESC, {id}::text COLLATE "C"
LIMIT %(__k)s)
SELECT score, {named_again}, {parts} FROM best ORDER BY score DESC, shown_0::text COLLATE "C"
"""
"""The same, with the ranks of each letter alone and of all others, of the best results only."""


def searcher(  # noqa: PLR0913 - one a setting of the preset
    *,
    dsn_env: str,
    table: str,
    id_column: str = "id",
    title_column: str | None = None,
    vector_column: str | None = None,
    columns: Mapping[str, Letter] = MappingProxyType({}),
    config: str = "english",
    words: Words = "websearch",
    rank: Literal["ts_rank", "ts_rank_cd"] = "ts_rank",
    weights: Mapping[Letter, float] = MappingProxyType({}),
    normalisation: int = 0,
    where: str | None = None,
    statement_timeout_s: float = 30.0,
    explain: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> PostgresTable:
    """Search a table; no connection is opened yet.

    Args:
        dsn_env: name of the environment variable with the connection string.
        table: table or view, with its schema where needed.
        id_column: column of the document id.
        title_column: column of a title to show.
        vector_column: column of type `tsvector`; or `columns`.
        columns: text columns with the letters of their weights.
        config: text search configuration.
        words: how the query is parsed.
        rank: ranking function.
        weights: weights of the letters that differ from the default.
        normalisation: bit mask of length normalisation.
        where: additional SQL condition; `%(name)s` is a parameter of the query, null if missing.
        statement_timeout_s: time limit of a query; a server that does not keep it is cut off within a second.
        explain: each result says what each letter gives to its rank, see `_Letters`.
        environment: environment variables.

    Raises:
        UsageError: the variable is not set, or `vector_column` and `columns` are both given or both missing.
        MissingExtraError: psycopg is not installed.
    """
    try:
        import psycopg  # noqa: F401 - checked before the first query
        from psycopg.sql import SQL, Identifier, Literal
    except ImportError:
        raise MissingExtraError.for_extra("PostgreSQL", "postgres") from None
    if not environment.get(dsn_env):
        raise UsageError(Problem(f"the environment has no {dsn_env}", hint=f"export {dsn_env}=postgresql://..."))
    if (vector_column is None) == (not columns):
        got = "none" if vector_column is None else "both"
        raise UsageError(Problem("what is searched", expected="exactly one of vector_column and columns", got=got))
    name = Identifier(*table.split("."))
    configuration = SQL("{}::regconfig").format(Literal(config))
    vector: Composable = Identifier(vector_column) if vector_column is not None else _vector_of(columns, configuration)
    counts = [float({**DEFAULT_WEIGHTS, **weights}[letter]) for letter in ("D", "C", "B", "A")]
    shown = [Identifier(column) for column in (id_column, title_column) if column is not None]
    letters = _Letters({**DEFAULT_WEIGHTS, **weights}, columns, normalisation) if explain else None
    statement = SQL(_STATEMENT if letters is None else _EXPLAINED).format(
        rank=SQL(rank),
        weights=SQL("{}::real[]").format(Literal(counts)),
        vector=vector,
        normalisation=Literal(int(normalisation)),
        shown=SQL(", ").join(shown),
        named=SQL(", ").join(SQL(f"{{}} AS shown_{at}").format(column) for at, column in enumerate(shown)),
        named_again=SQL(", ".join(f"shown_{at}" for at in range(len(shown)))),
        parts=SQL("") if letters is None else letters.ranks(SQL(rank)),
        table=name,
        reads_query=SQL(_READS_QUERY[words]).format(config=configuration),
        where=SQL(f" AND ({where})") if where is not None else SQL(""),
        id=Identifier(id_column),
    )
    dsn = environment[dsn_env]
    connections = Connections(lambda: _connection(dsn, statement_timeout_s))
    return PostgresTable(connections, statement, statement_timeout_s, letters)


class _Letters:
    """What each letter of a weight gives to the rank of a result.

    PostgreSQL's ranks have no parts that add up to them. Of a letter there are its weight, what the rank loses without it (its
    weight 0), and the rank of the letter alone at weight 1. It goes by the columns that have it, where these are known.
    """

    def __init__(self, weights: Mapping[Letter, float], columns: Mapping[str, Letter], normalisation: int) -> None:
        used = sorted(set(columns.values())) or sorted(weights)
        names = {letter: [name for name, of in columns.items() if of == letter] for letter in used}
        self._weights = {letter: float(weights[letter]) for letter in used}
        self._names = {letter: "+".join(names[letter]) or letter for letter in used}
        self._all = {letter: float(weight) for letter, weight in weights.items()}
        self._normalisation = normalisation

    @property
    def n_ranks(self) -> int:
        """Columns of `ranks`."""
        return 2 * len(self._weights)

    def ranks(self, rank: Composable) -> Composed:
        """The ranks that a statement selects: of each letter alone, then without each letter."""
        from psycopg.sql import SQL, Literal

        alone = [{letter: float(letter == each) for letter in self._all} for each in self._weights]
        without = [{**self._all, each: 0.0} for each in self._weights]
        return SQL(", ").join(
            SQL("{}({}::real[], vector, cranfield_query, {})").format(
                rank, Literal([weights[letter] for letter in ("D", "C", "B", "A")]), Literal(int(self._normalisation))
            )
            for weights in (*alone, *without)
        )

    def explanation(self, score: float, numbers: Sequence[float]) -> Explanation:
        """The explanation of a rank by the numbers of `ranks`."""
        n = len(self._weights)
        letters = zip(self._weights.items(), numbers[:n], numbers[n:], strict=True)
        parts = (
            Explanation(
                self._names[letter], score - without, (Explanation("weight", weight), Explanation("alone", alone))
            )
            for (letter, weight), alone, without in letters
            if alone
        )
        return Explanation("score", score, (*parts, Explanation("normalisation", float(self._normalisation))))


class PostgresTable:
    """Full-text search in a table; every call under way has its own connection."""

    def __init__(
        self,
        connections: Connections[Connection[tuple[object, ...]]],
        statement: Composed,
        timeout_s: float,
        letters: _Letters | None = None,
    ) -> None:
        self._letters = letters
        self._connections = connections
        self._statement = statement
        self._timeout_s = timeout_s

    def search(self, query: str, k: int, /, **params: Scalar) -> list[Hit]:
        """The best `k` by rank, descending; ties by id.

        Args:
            query: its text.
            k: number of results requested.
            params: for `where`.

        Raises:
            ConnectionError: the database cannot be reached, or the connection broke.
            TimeoutError: the server ended the query, or did not answer in time.
            ValueError: the server rejected the statement.
        """
        import psycopg

        given = OrNone(params, __query=query.replace("\0", " "), __k=k)
        try:
            with self._connections.connection() as connection, _time_limit(connection, self._timeout_s):
                rows = connection.execute(self._statement, given).fetchall()
        except psycopg.OperationalError as error:
            if error.sqlstate is not None and not error.sqlstate.startswith(("08", "57P")):
                raise ValueError(f"PostgreSQL: {type(error).__name__}") from error
            raise ConnectionError("the database cannot be reached") from None
        except psycopg.Error as error:
            raise ValueError(f"PostgreSQL: {type(error).__name__}") from error
        return [_hit(row, self._letters) for row in rows]

    def shown_request(self, query: str, k: int, /, **params: Scalar) -> str:
        """The statement that `search` executes, with its values, as `psql` takes it."""
        from psycopg import ClientCursor

        given = OrNone(params, __query=query.replace("\0", " "), __k=k)
        with self._connections.connection() as connection:
            return ClientCursor(connection).mogrify(self._statement, given).strip()

    def close(self) -> None:
        """Close the connections."""
        with suppress(OSError):
            self._connections.close()


def _hit(row: tuple[object, ...], letters: _Letters | None) -> Hit:
    score, doc_id, *more = row
    rank, explanation = float(str(score)), None
    if letters is not None:
        numbers = [float(str(more.pop())) for _ in range(letters.n_ranks)][::-1]
        explanation = letters.explanation(rank, numbers)
    return Hit(str(doc_id), rank, None if not more or more[0] is None else str(more[0]), explanation=explanation)


def _vector_of(columns: Mapping[str, Letter], configuration: Composable) -> Composed:
    from psycopg.sql import SQL, Identifier, Literal

    parts = [
        SQL("setweight(to_tsvector({}, coalesce({}::text, '')), {})").format(
            configuration, Identifier(column), Literal(letter)
        )
        for column, letter in columns.items()
    ]
    return SQL("({})").format(SQL(" || ").join(parts))


@contextmanager
def _time_limit(connection: Connection[tuple[object, ...]], seconds: float) -> Iterator[None]:
    """Have the server cancel what takes longer, and cut off a server that does not.

    Raises:
        TimeoutError: it took longer.
    """
    import psycopg

    is_late = Event()

    def cut_off() -> None:
        is_late.set()
        with suppress(psycopg.Error):  # the server goes on with a query whose client is gone
            connection.cancel_safe(timeout=_GRACE_S)
        # Waiting for the server ends; the connection itself belongs to the other thread.
        with suppress(OSError, psycopg.Error), closing(socket.socket(fileno=os.dup(connection.fileno()))) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = Timer(seconds + _GRACE_S, cut_off)
    timer.daemon = True
    timer.start()
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise TimeoutError(f"the server ended the query after {seconds:g} s") from error
    except psycopg.Error as error:
        if not is_late.is_set():
            raise
        raise TimeoutError(f"the server gave no answer in {seconds:g} s") from error
    finally:
        timer.cancel()
        timer.join()


def _connection(dsn: str, timeout_s: float) -> Connection[tuple[object, ...]]:
    import psycopg

    try:
        # Each address of the server has a time limit of its own there, of 2 s at least.
        connection = event_loop().run_function(
            lambda: psycopg.connect(dsn, autocommit=True, connect_timeout=math.ceil(timeout_s) + 1),
            timeout_s + _GRACE_S,
        )
    except TimeoutError:
        raise TimeoutError(f"the server gave no answer in {timeout_s:g} s") from None
    except psycopg.ProgrammingError:  # its message contains the password
        raise ValueError("PostgreSQL cannot parse the address of the database") from None
    milliseconds = str(max(1, round(timeout_s * 1000)))  # 0 would be no limit
    try:
        with _time_limit(connection, timeout_s):
            connection.execute("SET default_transaction_read_only = on")
            connection.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
    except BaseException:
        connection.close()
        raise
    return connection

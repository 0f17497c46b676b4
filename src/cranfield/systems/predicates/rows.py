"""One row of a database of the user, by a statement with bound parameters; read-only and limited as predicates are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from cranfield.systems.predicates.read_only import Parameters, StatementLimits, opener_of

Row = Mapping[str, object]
RowReader = Callable[[str, Parameters], Row | None]
"""A statement and its parameters to its first row; None where it has none."""


@contextmanager
def opened_rows(place: str, folder: Path, timeout_s: float) -> Iterator[RowReader]:
    """Open a database; what comes reads one row at a time. Not for several threads at once.

    Parameters are those of the database: `:name` of SQLite and `$name` of DuckDB by name, `$1` of PostgreSQL by position.

    Args:
        place: `sqlite:PATH`, `duckdb:PATH`, or `env:NAME` of a variable that contains a PostgreSQL address.
        folder: what a path is relative to.
        timeout_s: seconds for one statement.

    Raises:
        Refused: by the opening and by each statement. No part of an address is in it.
        MissingExtraError: the driver is not installed.
    """
    is_file = not place.startswith("env:")
    with opener_of(place)(folder, StatementLimits(timeout_s, 1)) as asker:

        def row_of(statement: str, parameters: Parameters) -> Row | None:
            if is_file:
                return dict(cast("Sequence[tuple[str, object]]", asker(statement, parameters))) or None
            query = statement.rstrip().removesuffix(";")
            as_json = f"SELECT pg_catalog.row_to_json(found)::text FROM (\n{query}\n) AS found LIMIT 1"  # noqa: S608  the operator's
            found = asker(as_json, parameters)
            return json.loads(str(found[0])) if found else None

        yield row_of

"""One row of a database of the user, by a statement with bound parameters; read-only and limited as predicates are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from cranfield.predicates.read_only import Bounds, Parameters, opener_of

Row = Mapping[str, object]
RowReader = Callable[[str, Mapping[str, str]], Row | None]
"""A statement and its parameters to its first row; None where it has none."""
_BOUND = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![:\w]):([A-Za-z_]\w*)""")


def parameter_names(statement: str) -> list[str]:
    """Names of the bound parameters of a statement, `:id`, each once, in order."""
    return list(dict.fromkeys(found[1] for found in _BOUND.finditer(statement) if found[1] is not None))


@contextmanager
def opened_rows(place: str, folder: Path, timeout_s: float) -> Iterator[RowReader]:
    """Open a database; what comes reads one row at a time. Not for several threads at once.

    Args:
        place: `sqlite:PATH`, `duckdb:PATH`, or `env:NAME` of a variable that holds a PostgreSQL address.
        folder: what a path is relative to.
        timeout_s: seconds for one statement.

    Raises:
        Refused: by the opening and by each statement. No part of an address is in it.
        MissingExtraError: the driver is not installed.
    """
    kind = place.partition(":")[0]
    with opener_of(place)(folder, Bounds(timeout_s, 1)) as asker:

        def row_of(statement: str, values: Mapping[str, str]) -> Row | None:
            names = parameter_names(statement)
            parameters: Parameters = {name: values[name] for name in names}
            if kind == "duckdb":
                statement = _spelled(statement, lambda name: f"${name}")
            if kind != "env":
                pairs = cast("Sequence[tuple[str, object]]", asker(statement, parameters))
                return dict(pairs) or None
            numbered = _spelled(statement, lambda name: f"${names.index(name) + 1}").rstrip().removesuffix(";")
            found = asker(
                f"SELECT pg_catalog.row_to_json(found)::text FROM (\n{numbered}\n) AS found LIMIT 1",  # noqa: S608  the operator's
                [values[name] for name in names],
            )
            return json.loads(str(found[0])) if found else None

        yield row_of


def _spelled(statement: str, spell: Callable[[str], str]) -> str:
    """A statement whose parameters are spelled otherwise; what is in quotes, and `::`, is unchanged."""
    return _BOUND.sub(lambda found: found[0] if found[1] is None else spell(found[1]), statement)

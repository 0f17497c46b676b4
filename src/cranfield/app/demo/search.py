"""Search one database of the demo and print the hits and a confidence as JSON: the command of both systems.

    python -I -S search.py --db plain.db --limit 10 -- QUERY

A stand-alone script: `cranfield demo` copies it into its folder, next to the databases. It needs the standard library
only, imports as little of it as it can (a call is a process), and opens the database read-only. How to search is read
from the database itself (table `config`), so the two systems differ in their data and not in their command.
"""

import json
import math
import sqlite3
import sys
from collections.abc import Sequence

TYPE_CHECKING = False
"""As in `typing`, whose import would take a fifth of a call."""
if TYPE_CHECKING:
    from typing import TypedDict
else:
    TypedDict = dict

USAGE = "usage: search.py --db FILE [--limit N] -- QUERY"
MAX_TERMS = 64
"""A query's first distinct terms that are searched; a pasted page would otherwise take minutes."""

MATCH_ALL_TABLES = """
WITH hit(entity, score) AS ({parts} UNION ALL SELECT 0, 0.0 WHERE 0)
SELECT entity.id, entity.title, SUM(hit.score) * entity.boost AS total, entity.span
FROM hit JOIN entity ON entity.rowid = hit.entity
GROUP BY entity.rowid
ORDER BY ROUND(total, 9) DESC, entity.id
LIMIT ?
"""
"""Scores are rounded for the order alone, so that the last bit of a sum cannot reorder equals; then the id decides.
The empty last part keeps SQLite from merging a single part into the grouping, where bm25 cannot be called."""

MATCH_ONE_TERM = "SELECT COUNT(*), MAX(rowid = ?) FROM {table} WHERE {table} MATCH ?"
MATCH_ONE_TABLE = "SELECT rowid, {factor} * -bm25({table}, {weights}) FROM {table} WHERE {table} MATCH ?"


class SearchTable(TypedDict):
    """One full-text table to search."""

    name: str
    factor: float
    """Weight of its bm25 in the sum over the tables."""
    weights: list[float]
    """A bm25 weight for each column."""


class SearchConfig(TypedDict):
    """How to search one database."""

    tables: list[SearchTable]
    """The scores of an entity in these are summed."""
    split_identifiers: bool
    """Search the parts of `JSONDecoder` and `run_in_executor` too."""
    stop_words: list[str]
    """Words left out of a query, unless it has no others."""


class CommandLineError(Exception):
    """The command line is invalid."""


def identifier_parts(name: str) -> list[str]:
    """Split an identifier at underscores, dots and changes of case, in lower case.

    >>> identifier_parts("JSONDecoder"), identifier_parts("run_in_executor"), identifier_parts("HTTPServer2x")
    (['json', 'decoder'], ['run', 'in', 'executor'], ['http', 'server', '2', 'x'])
    """
    parts = []
    for word in words_of(name.replace("_", " ")):
        start = 0
        for i in range(1, len(word)):
            before, here = word[i - 1], word[i]
            if (
                (here.isupper() and not before.isupper())
                or here.isdigit() != before.isdigit()
                # the last capital of a run begins the next word: JSON|Decoder
                or (before.isupper() and here.islower() and i - 1 > start)
            ):
                cut = i - 1 if here.islower() and before.isupper() else i
                parts.append(word[start:cut].lower())
                start = cut
        parts.append(word[start:].lower())
    return parts


def words_of(text: str) -> list[str]:
    """Split a text at everything that is no letter, digit or underscore."""
    return "".join(char if char.isalnum() or char == "_" else " " for char in text).split()


def terms_of(query: str, config: SearchConfig) -> list[str]:
    """List the distinct terms to look for, in the order of the query and in lower case."""
    words = words_of(query)
    stop_words = set(config["stop_words"])
    kept = [word for word in words if word.lower() not in stop_words] or words
    terms = []
    for word in kept:
        terms.append(word.lower())
        if config["split_identifiers"]:
            terms.extend(identifier_parts(word))
    return list(dict.fromkeys(terms))[:MAX_TERMS]


def search(connection: sqlite3.Connection, query: str, limit: int) -> list[dict[str, object]]:
    """Return the best `limit` entities for a query; none for a query without a letter or digit."""
    config = read_config(connection)
    terms = terms_of(query, config)
    if not terms:
        return []
    # A quoted string is a phrase in the full-text language, never an operator; terms hold no quotes.
    match = " OR ".join(f'"{term}"' for term in terms)
    parts = []
    for table in config["tables"]:
        weights = ", ".join(str(float(weight)) for weight in table["weights"])
        parts.append(MATCH_ONE_TABLE.format(table=table["name"], factor=float(table["factor"]), weights=weights))
    statement = MATCH_ALL_TABLES.format(parts=" UNION ALL ".join(parts))
    rows = connection.execute(statement, [*([match] * len(parts)), limit])
    return [{"id": id_, "title": title, "score": round(score, 6), "span": span} for id_, title, score, span in rows]


def confidence(connection: sqlite3.Connection, query: str, best: object) -> float:
    """Return the weighted share of the query's words in the best result: 0 is none, 1 is all.

    The weight of a word is `log(1 + N / n)`, where n of N entities contain it; n is at least 1/2.
    """
    config = read_config(connection)
    ((rowid,),) = connection.execute("SELECT rowid FROM entity WHERE id = ?", [best])
    ((entities,),) = connection.execute("SELECT MAX(rowid) FROM entity")
    matched = total = 0.0
    for term in terms_of(query, config):
        counts = [
            connection.execute(MATCH_ONE_TERM.format(table=table["name"]), [rowid, f'"{term}"']).fetchone()
            for table in config["tables"]
        ]
        weight = math.log(1 + entities / max(0.5, *(count for count, _ in counts)))
        total += weight
        matched += weight * any(is_in_best for _, is_in_best in counts)
    return round(matched / total, 6)


def read_config(connection: sqlite3.Connection) -> SearchConfig:
    """Read the search settings of a database."""
    config: SearchConfig = json.loads(connection.execute("SELECT value FROM config WHERE key = 'search'").fetchone()[0])
    return config


def open_read_only(path: str) -> sqlite3.Connection:
    """Open a database that is not written any more, without a lock and without files next to it."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(f"file:{quoted}?mode=ro&immutable=1", uri=True)


def parse_arguments(arguments: Sequence[str]) -> tuple[str, int, str]:
    """Read the command line: database, limit, query. By hand, because argparse costs as much time as the search."""
    path, limit = "", 10
    remaining = list(arguments)
    while remaining and remaining[0] != "--":
        option = remaining.pop(0)
        if option not in {"--db", "--limit"} or not remaining:
            raise CommandLineError(option)
        value = remaining.pop(0)
        if option == "--db":
            path = value
        elif value.isdecimal() and int(value) > 0:
            limit = int(value)
        else:
            raise CommandLineError(f"--limit {value}")
    if not path or len(remaining) != 2:
        raise CommandLineError(" ".join(remaining))
    return path, limit, remaining[1]


def main(arguments: Sequence[str]) -> int:
    """Search once; exit 0 with JSON, 2 for a bad call, 1 for a database that cannot be read."""
    try:
        path, limit, query = parse_arguments(arguments)
    except CommandLineError as error:
        sys.stderr.write(f"search.py: cannot read {str(error)!r}\n{USAGE}\n")
        return 2
    try:
        connection = open_read_only(path)
        results = search(connection, query, limit)
        sure = confidence(connection, query, results[0]["id"]) if results else 0.0
    except sqlite3.Error as error:
        sys.stderr.write(f"search.py: {path}: {error}\n")
        return 1
    connection.close()
    sys.stdout.write(json.dumps({"results": results, "confidence": sure}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

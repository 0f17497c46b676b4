"""Search engines with a preset: known by the form of the address, or by a database file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from cranfield.errors import Problem, UsageError
from cranfield.project.init.shape import ID_NAMES, TITLE_NAMES
from cranfield.project.init.trial import answers_of
from cranfield.project.init.values import FoundSystem, Settings, Target, Trial
from cranfield.systems.calls.extract import load_json

SQLITE_MAGIC = b"SQLite format 3\0"
_FTS5 = re.compile(r"CREATE\s+VIRTUAL\s+TABLE.*USING\s+fts5\b", re.IGNORECASE | re.DOTALL)
_SOLR = re.compile(r"(?P<root>.*/solr)/(?P<collection>[^/]+)(?:/(?P<handler>select|query))?/?")
_LUCENE = re.compile(r"(?P<root>.*?)/(?P<index>[^/_][^/]*)(?:/_search)?/?")
_QDRANT = re.compile(r"(?P<root>.*)/collections/(?P<collection>[^/]+)(?:/points/(?:query|search))?/?")
_VESPA = re.compile(r"(?P<root>.*?)/search/?")
MAX_TABLES = 4
"""Of a database, as many systems are made."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A preset that may fit an address."""

    name: str
    settings: Settings
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def engines_of(address: str, trial: Trial) -> Iterator[Engine]:
    """Presets that fit an address by its form, or by what the server says of itself."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = unquote(parts.path)
    words = tuple(value for name, value in parse_qsl(parts.query) if name in {"q", "query"} and re.search(r"\w", value))
    if found := _SOLR.fullmatch(path):
        handler = {"handler": found["handler"]} if found["handler"] == "query" else {}
        settings = {"url": origin + found["root"], "collection": found["collection"], **handler}
        yield Engine(found["collection"], _preset("solr", settings), words)
    if found := _QDRANT.fullmatch(path):
        settings = {"url": origin + found["root"], "collection": found["collection"]}
        yield Engine(found["collection"], _preset("qdrant", settings), words)
    if (found := _VESPA.fullmatch(path)) and "yql" in parts.query:
        yield Engine("vespa", _preset("vespa", {"url": origin + found["root"]}), words)
    found = _LUCENE.fullmatch(path)
    if found is not None and (path.rstrip("/").endswith("/_search") or not parts.query):
        kind = _lucene_kind(origin + found["root"], trial, is_certain=path.rstrip("/").endswith("/_search"))
        if kind:
            settings = {"url": origin + found["root"], "index": found["index"]}
            yield Engine(found["index"], _preset(kind, settings), words)


def _preset(name: str, settings: Settings) -> Settings:
    return {"preset": name, "with": dict(settings)}


def _lucene_kind(root: str, trial: Trial, *, is_certain: bool) -> str:
    """`opensearch` or `elasticsearch`, as the root of the server says; empty where it is neither."""
    settings = {"http": {"url": f"{root}/", "parameters": {"filter_path": "{query}"}}, "extract": {"json": "@"}}
    answers = answers_of(settings, ["version,tagline"], trial.folder, k=1)
    try:
        root_page = load_json(next(iter(answers.outputs.values()), ""))
    except (ValueError, RecursionError):
        root_page = None
    version = root_page.get("version") if isinstance(root_page, dict) else None
    if not isinstance(version, dict) or "number" not in version:
        return "elasticsearch" if is_certain else ""
    return "opensearch" if version.get("distribution") == "opensearch" else "elasticsearch"


def is_database(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def database_systems(target: Target, written: str, trial: Trial) -> list[FoundSystem]:
    """The FTS5 tables of a database, each as a system.

    Args:
        target: the argument.
        written: the path as it goes into the config.
        trial: the folder of the config.

    Raises:
        UsageError: it has none, or cannot be read.
    """
    try:
        tables = fts_tables(target.path)
    except sqlite3.Error as error:
        raise UsageError(f"the database cannot be read: {error}", path=target.given) from None
    if not tables:
        hint = "the preset sqlite searches FTS5 tables; another search goes in as a command"
        raise UsageError(Problem("no FTS5 table in the database", path=target.given, hint=hint))
    found = []
    for table, columns in list(tables.items())[:MAX_TABLES]:
        id_column = next((name for name in ID_NAMES if name in columns and name not in TITLE_NAMES), "rowid")
        title = next((name for name in TITLE_NAMES if name in columns), None)
        settings = {"database": written, "table": table, "id_column": id_column}
        settings |= {"title_column": title} if title else {}
        notes = (f"ids are read from the column {id_column}",)
        name = target.name if target.name and len(tables) == 1 else f"{target.name or target.path.stem}-{table}"
        what = f"the preset sqlite: the FTS5 table {table}"
        whole = _preset("sqlite", settings)
        ids = _tried(whole, trial)
        found.append(FoundSystem(target.given, name, whole, what, ids, notes))
    return found


def _tried(settings: Settings, trial: Trial) -> dict[str, Sequence[str]]:
    from cranfield.model import Query
    from cranfield.project.init.trial import make_system

    system = make_system(settings, trial.folder)
    try:
        return {
            text: [hit.public_id for hit in system.ask(Query("trial", text), trial.k).answer.hits]
            for text in trial.texts()
        }
    finally:
        system.close()


def fts_tables(path: Path) -> dict[str, tuple[str, ...]]:
    """The FTS5 tables of a database with their columns."""
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
        names = [name for name, sql in rows.fetchall() if _FTS5.search(sql)]
        return {
            name: tuple(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,)))
            for name in names
        }

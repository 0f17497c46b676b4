"""Presets: forms of other kinds of system, filled in for a search engine. One table.

The settings of databases with full-text search are here, those of services over HTTP in `presets_http`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from cranfield.config import presets_http
from cranfield.config.presets_http import VariableName
from cranfield.config.strict import Strict
from cranfield.model.kinds import Text

Weight = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table."""

    name: str
    title: str
    """One line."""
    settings: type[Strict]
    """What `with` takes; its fields and their descriptions are the documentation."""
    fill: Callable[[Any], Mapping[str, Any]]
    """From the settings to the keys of a system, as they would be written in cranfield.yaml."""
    example: Mapping[str, Any]
    """A minimal `with`, for the documentation and the tests."""
    explained: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """From the keys of a system to those of one that explains its scores; the same keys where the engine cannot."""


class Sqlite(Strict):
    """Settings of the preset `sqlite`: an FTS5 table, ranked by `bm25()`."""

    database: Text
    """File of the database, relative to the config file; it is opened for reading only."""
    table: Text
    """The FTS5 table."""
    id_column: Text = "id"
    """Column that holds the document id; `rowid` where there is none."""
    title_column: Text | None = None
    """Column that holds a title to show."""
    weights: dict[str, Weight] = Field(default_factory=dict)
    """Weight of a column in `bm25()`; 1 where it is not named."""
    words: Literal["any", "all", "phrase", "raw"] = "any"
    """Results hold any of the query's words, all of them, or all in a row; `raw` takes the query as FTS5 syntax."""
    where: Text | None = None
    """More of the SQL condition. `:name` is a parameter of the query, null where it has none."""
    statement_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Time limit of a query, and of the wait for a lock of another process."""


class Postgres(Strict):
    """Settings of the preset `postgres`: PostgreSQL's full-text search."""

    dsn_env: VariableName
    """Name of the variable that holds the address: `postgresql://user:password@host/database`."""
    table: Text
    """Table or view, with its schema where needed: `public.docs`."""
    id_column: Text = "id"
    """Column that holds the document id."""
    title_column: Text | None = None
    """Column that holds a title to show."""
    vector_column: Text | None = None
    """Column of type `tsvector`; or `columns`."""
    columns: dict[str, Literal["A", "B", "C", "D"]] = Field(default_factory=dict)
    """Columns of text, each with its weight's letter, made a `tsvector` as they are searched."""
    config: Text = "english"
    """Text search configuration, of the query and of `columns`."""
    words: Literal["websearch", "all", "any", "phrase", "raw"] = "websearch"
    """How the query is read: as people type into web search, all of its words, any of them, all in a row, or as
    `to_tsquery` takes it."""
    rank: Literal["ts_rank", "ts_rank_cd"] = "ts_rank"
    """What ranks the results; `ts_rank_cd` looks at how close the words stand."""
    weights: dict[Literal["A", "B", "C", "D"], Weight] = Field(default_factory=dict)
    """What a letter counts for; where it is not named, A 1, B 0.4, C 0.2, D 0.1, as PostgreSQL has it."""
    normalisation: Annotated[int, Field(ge=0, le=63)] = 0
    """How the length of a document counts: PostgreSQL's bit mask."""
    where: Text | None = None
    """More of the SQL condition. `%(name)s` is a parameter of the query, null where it has none; a percent sign of its
    own is written twice."""
    statement_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds after which the server ends a query."""


def sqlite(settings: Sqlite) -> Mapping[str, Any]:
    """FTS5 of SQLite 3.9 and later, called as a Python function."""
    form = {"python": "cranfield.systems.engines.sqlite:searcher", "with": _given(settings)}
    return {**form, "depends": [settings.database]}


def postgres(settings: Postgres) -> Mapping[str, Any]:
    """Full-text search of PostgreSQL 11 and later, over psycopg 3."""
    return {"python": "cranfield.systems.engines.postgres:searcher", "with": _given(settings)}


def _explained_function(form: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**form, "with": {**form["with"], "explain": True}}


def _given(settings: Strict) -> Mapping[str, Any]:
    """Settings as they were given: what has a default is left to the function."""
    return settings.model_dump(exclude_unset=True)


_TABLE = (
    Preset(
        "elasticsearch",
        "Elasticsearch: a multi-field match over HTTP",
        presets_http.Elasticsearch,
        presets_http.elasticsearch,
        {"url": "http://localhost:9200", "index": "docs", "fields": {"title": 2, "body": 1}},
        presets_http.lucene_explained,
    ),
    Preset(
        "opensearch",
        "OpenSearch: a multi-field match over HTTP",
        presets_http.OpenSearch,
        presets_http.opensearch,
        {"url": "http://localhost:9200", "index": "docs", "fields": {"title": 2, "body": 1}},
        presets_http.lucene_explained,
    ),
    Preset(
        "solr",
        "Solr: edismax over the JSON Request API",
        presets_http.Solr,
        presets_http.solr,
        {"url": "http://localhost:8983/solr", "collection": "docs", "fields": {"title": 2, "body": 1}},
        presets_http.solr_explained,
    ),
    Preset(
        "vespa",
        "Vespa: user input in YQL over the query API",
        presets_http.Vespa,
        presets_http.vespa,
        {"url": "http://localhost:8080", "source": "doc", "ranking": "bm25"},
        presets_http.vespa_explained,
    ),
    Preset(
        "qdrant",
        "Qdrant: points nearest to a text, embedded by the server",
        presets_http.Qdrant,
        presets_http.qdrant,
        {"url": "http://localhost:6333", "collection": "docs", "vector": "bm25"},
    ),
    Preset(
        "sqlite",
        "SQLite: an FTS5 table",
        Sqlite,
        sqlite,
        {"database": "docs.db", "table": "docs", "weights": {"title": 2}},
        _explained_function,
    ),
    Preset(
        "postgres",
        "PostgreSQL: full-text search",
        Postgres,
        postgres,
        {"dsn_env": "DATABASE_URL", "table": "docs", "columns": {"title": "A", "body": "D"}},
        _explained_function,
    ),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _TABLE}

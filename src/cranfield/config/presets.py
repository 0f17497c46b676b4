"""Presets: forms of other kinds of system, filled in for a search engine. One table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield.config import presets_http, presets_sql
from cranfield.config.strict import Strict


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
    is_elsewhere: bool = False
    """Its answers come from a server, although its kind is neither `http` nor `mcp`."""


_TABLE = (
    Preset(
        "elasticsearch",
        "Elasticsearch: a multi-field match over HTTP",
        presets_http.Elasticsearch,
        presets_http.elasticsearch,
        {"url": "http://localhost:9200", "index": "docs", "fields": {"title": 2, "body": 1}},
    ),
    Preset(
        "opensearch",
        "OpenSearch: a multi-field match over HTTP",
        presets_http.OpenSearch,
        presets_http.opensearch,
        {"url": "http://localhost:9200", "index": "docs", "fields": {"title": 2, "body": 1}},
    ),
    Preset(
        "solr",
        "Solr: edismax over the JSON Request API",
        presets_http.Solr,
        presets_http.solr,
        {"url": "http://localhost:8983/solr", "collection": "docs", "fields": {"title": 2, "body": 1}},
    ),
    Preset(
        "vespa",
        "Vespa: user input in YQL over the query API",
        presets_http.Vespa,
        presets_http.vespa,
        {"url": "http://localhost:8080", "source": "doc", "ranking": "bm25"},
    ),
    Preset(
        "qdrant",
        "Qdrant: points nearest to a text, which the server makes a vector of",
        presets_http.Qdrant,
        presets_http.qdrant,
        {"url": "http://localhost:6333", "collection": "docs", "vector": "bm25"},
    ),
    Preset(
        "sqlite",
        "SQLite: an FTS5 table, in this process",
        presets_sql.Sqlite,
        presets_sql.sqlite,
        {"database": "docs.db", "table": "docs", "weights": {"title": 2}},
    ),
    Preset(
        "postgres",
        "PostgreSQL: full-text search",
        presets_sql.Postgres,
        presets_sql.postgres,
        {"dsn_env": "DATABASE_URL", "table": "docs", "columns": {"title": "A", "body": "D"}},
        is_elsewhere=True,
    ),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _TABLE}

"""Presets that are requests to a search server: what `with` takes, and the form that is filled in with it.

Each form says which version of the server's API it was written for. A form has no powers of its own: what it gives could
stand in cranfield.yaml, and `cranfield system show` prints it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field

from cranfield.config.strict import Strict
from cranfield.model.kinds import Text

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Boost = Annotated[float, Field(ge=0)]


class SearchServerSettings(Strict):
    """Settings common to all search servers."""

    url: Text
    """Address of the server, or `{env.NAME}`."""
    basic_env: Annotated[list[VariableName], Field(min_length=2, max_length=2)] | None = None
    """Names of the two variables that hold user and password."""
    ca: Text | None = None
    """File of the certificates to trust, relative to the config file."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Additional parameters of the URL."""
    body: dict[str, Any] = Field(default_factory=dict)
    """Members that are added to the body or replace one; null removes a member."""


class Lucene(SearchServerSettings):
    """Settings common to Elasticsearch and OpenSearch."""

    index: Text
    """Name of the index, alias or data stream; several are separated by commas."""
    fields: dict[str, Boost] = Field(default_factory=dict)
    """Fields to search, with boosts; default: those of the index."""
    type: Literal["best_fields", "most_fields", "cross_fields", "phrase", "phrase_prefix", "bool_prefix"] = (
        "best_fields"
    )
    """How the scores of fields are combined."""
    operator: Literal["or", "and"] = "or"
    """Whether one word (`or`) or all words (`and`) must match."""
    filter: Any = None
    """Clause of the query DSL, or list of clauses, that filters results; may contain `{params.NAME}`."""
    id_field: Text | None = None
    """Field of the source that contains the document id; default: `_id`."""
    title_field: Text | None = None
    """Field of the source that holds a title to show."""


class Elasticsearch(Lucene):
    """Settings of the preset `elasticsearch`."""

    api_key_env: VariableName | None = None
    """Name of the variable that holds an API key, encoded as Kibana shows it."""


class OpenSearch(Lucene):
    """Settings of the preset `opensearch`."""

    token_env: VariableName | None = None
    """Name of the variable that holds a bearer token (JWT)."""


class Solr(SearchServerSettings):
    """Settings of the preset `solr`; `url` is the address up to and with `/solr`."""

    collection: Text
    """Name of the collection or core."""
    handler: Text = "select"
    """Request handler."""
    fields: dict[str, Boost] = Field(default_factory=dict)
    """Fields to search, with boosts (`qf`); default: those of the handler."""
    parser: Text = "edismax"
    """Query parser (`defType`)."""
    solr_params: dict[str, Any] = Field(default_factory=dict)
    """Other parameters of the parser: `mm`, `pf`, `tie`, `bq` ..."""
    filter: list[Text] = Field(default_factory=list)
    """Filter queries (`fq`). One with a parameter that a query does not have is left out: `{!term f=lang}{params.lang}`."""
    id_field: Text = "id"
    """Field that holds the document id."""
    title_field: Text | None = None
    """Field that holds a title to show."""
    token_env: VariableName | None = None
    """Name of the variable that holds a bearer token (JWT)."""


class Vespa(SearchServerSettings):
    """Settings of the preset `vespa`."""

    source: Text = "sources *"
    """Source of the YQL query: the name of a schema, or all sources."""
    grammar: Literal["weakAnd", "all", "any", "phrase", "web", "tokenize", "linguistics"] = "weakAnd"
    """How the query is parsed. `tokenize`, `linguistics` and `phrase` read words only; the others also quotes, `-` and
    `field:word`."""
    index: Text | None = None
    """Field or fieldset to search; default: the fieldset `default`."""
    ranking: Text | None = None
    """Rank profile; default: that of the schema."""
    filter: Text | None = None
    """YQL condition that filters results. Refer to a value in `body` as `@name`."""
    id_field: Text | None = None
    """Summary field that holds the document id; without it, the id of the hit (`id:namespace:type::key`)."""
    title_field: Text | None = None
    """Summary field that holds a title to show."""
    token_env: VariableName | None = None
    """Name of the variable that holds a bearer token (Vespa Cloud)."""


class Qdrant(SearchServerSettings):
    """Settings of the preset `qdrant`."""

    collection: Text
    """Name of the collection."""
    model: Text = "qdrant/bm25"
    """Model with which the server embeds the query."""
    vector: Text | None = None
    """Name of the vector to search (`using`); without it, the collection's only one."""
    filter: dict[str, Any] | None = None
    """Qdrant filter (`must`, `should`, `must_not`); may contain `{params.NAME}`."""
    id_field: Text | None = None
    """Payload field that holds the document id; without it, the point's id."""
    title_field: Text | None = None
    """Payload field that holds a title to show."""
    api_key_env: VariableName | None = None
    """Name of the variable that holds the API key."""


def elasticsearch(settings: Elasticsearch) -> Mapping[str, Any]:
    """Search API of Elasticsearch 8 and 9: `POST /{index}/_search` with `multi_match`.

    A search that reached some shards only, or ran out of time, is an error here, not a shorter list.
    """
    return _lucene(settings, _authorization("ApiKey", settings.api_key_env))


def opensearch(settings: OpenSearch) -> Mapping[str, Any]:
    """Search API of OpenSearch 2 and 3: `POST /{index}/_search` with `multi_match`, as Elasticsearch's."""
    return _lucene(settings, _authorization("Bearer", settings.token_env))


def _lucene(settings: Lucene, headers: Mapping[str, str]) -> Mapping[str, Any]:
    match: dict[str, Any] = {"query": "{query}", "type": settings.type, "operator": settings.operator}
    if settings.fields:
        match["fields"] = _boosted(settings.fields)
    query: dict[str, Any] = {"multi_match": match}
    if settings.filter is not None:
        query = {"bool": {"must": [query], "filter": settings.filter}}
    shown = [field for field in (settings.id_field, settings.title_field) if field is not None]
    return _form(
        settings,
        f"{_segment(settings.index)}/_search",
        headers=headers,
        parameters={"allow_partial_search_results": False},
        body={"query": query, "size": "{k}", "_source": shown or False},
        extract=_extract(settings, "hits.hits", id="_id", score="_score", stored="_source"),
    )


def lucene_explained(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The search with `explain`, which has an `_explanation` in each hit."""
    return _reading(form, "_explanation", json={"explain": True})


def solr(settings: Solr) -> Mapping[str, Any]:
    """JSON Request API of Solr 7.2 to 9: `POST /solr/{collection}/{handler}`.

    From 7.2 on `{!...}` in a query is plain text to any parser but `lucene`. `expandMacros=false` keeps `${...}` plain too.
    """
    params = {"defType": settings.parser}
    if settings.fields:
        params["qf"] = " ".join(_boosted(settings.fields))
    shown = [settings.id_field, "score", *([settings.title_field] if settings.title_field else [])]
    body: dict[str, Any] = {
        "query": "{query}",
        "limit": "{k}",
        "fields": shown,
        "params": {**params, **settings.solr_params},
    }
    if settings.filter:
        body["filter"] = settings.filter
    return _form(
        settings,
        f"{_segment(settings.collection)}/{_segment(settings.handler)}",
        headers=_authorization("Bearer", settings.token_env),
        parameters={"expandMacros": False},
        body=body,
        extract=_first_values(_extract(settings, "response.docs"), "id", "title"),
    )


def solr_explained(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request with the field `[explain style=nl]` in each document, which is what `debug.explain.structured` has by id."""
    shown = [*form["http"]["json"].get("fields", []), "[explain style=nl]"]
    return _reading(form, '"[explain]"', json={"fields": shown})


def vespa(settings: Vespa) -> Mapping[str, Any]:
    """Query API of Vespa 8: `POST /search/` with YQL; the query itself is a parameter that YQL refers to.

    A reply with errors, or without a part of the documents, is a failure. No `children` are no results.
    """
    input_settings = f'grammar: "{settings.grammar}"'
    if settings.index is not None:
        input_settings += f", defaultIndex: {json.dumps(settings.index)}"
    condition = f"{{{input_settings}}}userInput(@text)"
    if settings.filter is not None:
        condition = f"({condition}) and ({settings.filter})"
    body: dict[str, Any] = {
        "yql": f"select * from {settings.source} where {condition}",  # noqa: S608 - what a query says is a parameter of it
        "text": "{query}",
        "hits": "{k}",
    }
    if settings.ranking is not None:
        body["ranking.profile"] = settings.ranking
    return _form(
        settings,
        "search/",
        headers=_authorization("Bearer", settings.token_env),
        body=body,
        extract=_extract(
            settings,
            "root.fields && (root.children || `[]`)",
            score="relevance",
            stored="fields",
        ),
    )


def vespa_explained(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The features that the rank profile has under `match-features`, else those under `summary-features`; nothing more is requested."""
    return _reading(form, "fields.matchfeatures || fields.summaryfeatures", json={})


def qdrant(settings: Qdrant) -> Mapping[str, Any]:
    """Query API of Qdrant 1.15 and later: `POST /collections/{collection}/points/query` with inference by the server.

    The server makes the vector: with `qdrant/bm25` itself, with other models where inference is set up.
    """
    shown = [field for field in (settings.id_field, settings.title_field) if field is not None]
    body: dict[str, Any] = {
        "query": {"nearest": {"text": "{query}", "model": settings.model}},
        "limit": "{k}",
        "with_payload": shown or False,
    }
    if settings.vector is not None:
        body["using"] = settings.vector
    if settings.filter is not None:
        body["filter"] = settings.filter
    return _form(
        settings,
        f"collections/{_segment(settings.collection)}/points/query",
        headers={} if settings.api_key_env is None else {"api-key": f"{{env.{settings.api_key_env}}}"},
        body=body,
        extract=_extract(settings, "result.points", stored="payload"),
    )


def _form(
    settings: SearchServerSettings,
    path: str,
    *,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    extract: Mapping[str, Any],
    parameters: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """The keys of a system that is such a request."""
    parameters = {**(parameters or {}), **settings.parameters}
    request: dict[str, Any] = {"url": f"{settings.url.rstrip('/')}/{path}", "method": "POST"}
    if headers:
        request["headers"] = dict(headers)
    if settings.basic_env is not None:
        user, password = settings.basic_env
        request["basic"] = f"{{env.{user}}}:{{env.{password}}}"
    if parameters:
        request["parameters"] = parameters
    request["json"] = {key: value for key, value in {**body, **settings.body}.items() if value is not None}
    if settings.ca is not None:
        request["ca"] = settings.ca
    return {"http": request, "extract": dict(extract)}


def _reading(form: Mapping[str, Any], path: str, *, json: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same request with more members of its body, and the place of the explanation in a result."""
    request = {**form["http"], "json": {**form["http"]["json"], **json}}
    return {**form, "http": request, "extract": {**form["extract"], "explanation": path}}


def _extract(
    settings: Lucene | Solr | Vespa | Qdrant,
    results: str,
    *,
    id: str = "id",  # noqa: A002  as in the config
    score: str = "score",
    stored: str | None = None,
) -> Mapping[str, str]:
    """How results are read; `stored` is the member of a result that holds its fields, None the result itself."""
    steps = [] if stored is None else [stored]
    extract = {"json": results, "id": _path(*steps, settings.id_field) if settings.id_field else id, "score": score}
    return extract | ({"title": _path(*steps, settings.title_field)} if settings.title_field else {})


def _first_values(extract: Mapping[str, str], *names: str) -> Mapping[str, str]:
    """The same where a field of several values comes as a list: its first value."""
    return {name: f"{path}[0] || {path}" if name in names else path for name, path in extract.items()}


def _authorization(scheme: str, variable: str | None) -> Mapping[str, str]:
    return {} if variable is None else {"Authorization": f"{scheme} {{env.{variable}}}"}


def _boosted(fields: Mapping[str, float]) -> list[str]:
    """`title^2`, `body`: as Lucene's query parsers write a boost."""
    return [name if boost == 1 else f"{name}^{float(boost):g}" for name, boost in fields.items()]


def _segment(name: str) -> str:
    """A name as a step of an address; placeholders, commas and wildcards stay."""
    return quote(name, safe="{},*-_.~")


def _path(*steps: str) -> str:
    """A JMESPath through objects; a dot in a name is a step of its own, as in the servers' field names."""
    names = [name for step in steps for name in step.split(".")]
    return ".".join(name if name.isidentifier() and name.isascii() else json.dumps(name) for name in names)

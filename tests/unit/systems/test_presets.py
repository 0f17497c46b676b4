"""Presets: each is a form, its request is asserted as a whole, and its hits are those of the engine asked directly."""

from __future__ import annotations

import math
import socket
import sqlite3
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest

from cranfield.base.errors import MissingExtraError, PreflightError, UsageError
from cranfield.config import expand_preset, public_config, system_config
from cranfield.config.presets import PRESETS
from cranfield.config.systems import SystemRoot
from cranfield.evaluation.score_terms import flatten
from cranfield.formats.io.validation import problems_of
from cranfield.model import Outcome, Query
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.engines import postgres as postgres_engine
from cranfield.systems.engines import sqlite as sqlite_engine
from cranfield.systems.kinds.build import system_class


@pytest.fixture
def engine(servers, tmp_path):
    """The documents of the tests in an FTS5 table of tmp_path."""
    return servers.Engine.at(tmp_path / "docs.db")


@pytest.fixture
def preset(tmp_path):
    """A system made of a preset and its settings."""
    with ExitStack() as stack:

        def _preset(name, settings, **config):
            written = system_config("sut", {"preset": name, "with": settings, **config})
            system = system_class(expand_preset(written).kind)(name, written, tmp_path)
            stack.callback(system.close)
            return system

        yield _preset


def rows(answer):
    assert answer.outcome in {Outcome.ANSWERED, Outcome.EMPTY}, answer
    return [(hit.id, hit.score) for hit in answer.hits]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_example_of_a_preset_is_a_whole_system(name):
    row = PRESETS[name]
    assert row.name == name
    written = system_config("sut", {"preset": name, "with": dict(row.example)})
    form = public_config(expand_preset(written))
    again = system_config("sut", form)
    assert "preset" not in form
    assert public_config(expand_preset(again)) == form, "the form stands for itself"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_setting_of_a_preset_says_what_it_is(name):
    fields = PRESETS[name].settings.model_fields
    assert [key for key, field in fields.items() if not field.description] == []


def test_the_page_about_presets_names_every_setting(checkout):
    page = (checkout / "docs" / "how-to" / "http-and-engines.md").read_text(encoding="utf-8")
    named = {f"`{key}`" for row in PRESETS.values() for key in (row.name, *row.settings.model_fields)}
    named -= {"`basic_env`"}  # shown with its value
    assert sorted(key for key in named if key not in page) == []


def test_what_is_written_beside_a_preset_goes_first(tmp_path):
    written = system_config(
        "sut",
        {
            "preset": "sqlite",
            "with": {"database": "index/docs.db", "table": "docs"},
            "timeout_s": 3,
            "cwd": "sub",
            "depends": ["synonyms.txt"],
        },
    )
    form = public_config(expand_preset(written))
    assert (form["timeout_s"], form["depends"]) == (3.0, ["../index/docs.db", "synonyms.txt"])


def test_what_is_wrong_with_a_preset_s_settings_is_said_at_its_place():
    settings = {"url": "localhost", "indx": "docs", "basic_env": ["A"], "fields": {"t": -1}}
    written = {"preset": "elasticsearch", "with": settings}
    found = {place: str(problem) for place, problem in problems_of(SystemRoot, written)}
    assert set(found) == {("with", "index"), ("with", "indx"), ("with", "basic_env"), ("with", "fields", "t")}
    assert "did you mean index?" in found["with", "indx"]
    address = {"preset": "elasticsearch", "with": {"url": "localhost", "index": "docs"}}
    assert [str(problem) for _, problem in problems_of(SystemRoot, address)] == [
        "with: http.url: not the address of a service; expected http://... or https://..."
    ]
    unknown = {"preset": "elasticsearhc", "with": {}}
    assert ["did you mean elasticsearch?" in str(problem) for _, problem in problems_of(SystemRoot, unknown)] == [True]


# HTTP presets: name, answerer, settings, environment, then the whole request for "grid layout" and k = 3.
HTTP = {
    "elasticsearch": (
        "elasticsearch",
        "elasticsearch",
        {"index": "docs", "fields": {"title": 2, "body": 1}, "api_key_env": "KEY"},
        "/docs/_search?allow_partial_search_results=false",
        {"authorization": "ApiKey hunter2-key"},
        {
            "query": {
                "multi_match": {
                    "query": "grid layout",
                    "type": "best_fields",
                    "operator": "or",
                    "fields": ["title^2", "body"],
                }
            },
            "size": 3,
            "_source": False,
        },
    ),
    "elasticsearch, more said": (
        "elasticsearch",
        "elasticsearch",
        {
            "index": "docs,old-*",
            "type": "cross_fields",
            "operator": "and",
            "filter": [{"term": {"lang": "{params.lang}"}}],
            "id_field": "key",
            "title_field": "title",
            "basic_env": ["USER_NAME", "PASSWORD"],
            "parameters": {"preference": "tests"},
            "body": {"min_score": 0.0},
        },
        "/docs,old-*/_search?allow_partial_search_results=false&preference=tests",
        {"authorization": "Basic YWRhOmh1bnRlcjI="},  # ada:hunter2
        {
            "query": {
                "bool": {
                    "must": [{"multi_match": {"query": "grid layout", "type": "cross_fields", "operator": "and"}}],
                    "filter": [{"term": {"lang": "sw"}}],
                }
            },
            "size": 3,
            "_source": ["key", "title"],
            "min_score": 0.0,
        },
    ),
    "opensearch": (
        "opensearch",
        "elasticsearch",
        {"index": "docs", "fields": {"title": 2}, "token_env": "KEY"},
        "/docs/_search?allow_partial_search_results=false",
        {"authorization": "Bearer hunter2-key"},
        {
            "query": {
                "multi_match": {"query": "grid layout", "type": "best_fields", "operator": "or", "fields": ["title^2"]}
            },
            "size": 3,
            "_source": False,
        },
    ),
    "solr": (
        "solr",
        "solr",
        {"collection": "docs", "fields": {"title": 2, "body": 1}},
        "/docs/select?expandMacros=false",
        {},
        {
            "query": "grid layout",
            "limit": 3,
            "fields": ["id", "score"],
            "params": {"defType": "edismax", "qf": "title^2 body"},
        },
    ),
    "solr, more said": (
        "solr",
        "solr",
        {
            "collection": "docs",
            "handler": "query",
            "filter": ["{!term f=lang}{params.lang}", "{!term f=os}{params.os}"],
            "solr_params": {"mm": "2<75%"},
            "title_field": "title",
            "token_env": "KEY",
        },
        "/docs/query?expandMacros=false",
        {"authorization": "Bearer hunter2-key"},
        {
            "query": "grid layout",
            "limit": 3,
            "fields": ["id", "score", "title"],
            "params": {"defType": "edismax", "mm": "2<75%"},
            "filter": ["{!term f=lang}sw"],  # the other needs a parameter that is not there
        },
    ),
    "vespa": (
        "vespa",
        "vespa",
        {"source": "doc", "ranking": "bm25", "id_field": "key"},
        "/search/",
        {},
        {
            "yql": 'select * from doc where {grammar: "weakAnd"}userInput(@text)',
            "text": "grid layout",
            "hits": 3,
            "ranking.profile": "bm25",
        },
    ),
    "vespa, more said": (
        "vespa",
        "vespa",
        {
            "grammar": "all",
            "index": "title",
            "filter": "lang contains @lang",
            "body": {"lang": "{params.lang}", "timeout": "5s"},
            "id_field": "key",
            "title_field": "title",
            "token_env": "KEY",
        },
        "/search/",
        {"authorization": "Bearer hunter2-key"},
        {
            "yql": 'select * from sources * where ({grammar: "all", defaultIndex: "title"}userInput(@text))'
            " and (lang contains @lang)",
            "text": "grid layout",
            "hits": 3,
            "lang": "sw",
            "timeout": "5s",
        },
    ),
    "qdrant": (
        "qdrant",
        "qdrant",
        {"collection": "docs", "id_field": "key"},
        "/collections/docs/points/query",
        {},
        {"query": {"nearest": {"text": "grid layout", "model": "qdrant/bm25"}}, "limit": 3, "with_payload": ["key"]},
    ),
    "qdrant, more said": (
        "qdrant",
        "qdrant",
        {
            "collection": "docs",
            "model": "sentence-transformers/all-minilm-l6-v2",
            "vector": "dense",
            "filter": {"must": [{"key": "lang", "match": {"value": "{params.lang}"}}]},
            "id_field": "key",
            "title_field": "title",
            "api_key_env": "KEY",
            "body": {"params": {"exact": True}},
        },
        "/collections/docs/points/query",
        {"api-key": "hunter2-key"},
        {
            "query": {"nearest": {"text": "grid layout", "model": "sentence-transformers/all-minilm-l6-v2"}},
            "limit": 3,
            "with_payload": ["key", "title"],
            "using": "dense",
            "filter": {"must": [{"key": "lang", "match": {"value": "sw"}}]},
            "params": {"exact": True},
        },
    ),
}
SPECIAL = {"authorization", "api-key"}


@pytest.mark.parametrize("case", HTTP)
def test_a_preset_sends_what_the_engine_reads_and_gives_the_engine_s_hits(
    case, servers, serve, preset, engine, monkeypatch
):
    name, kind, settings, path, headers, body = HTTP[case]
    for variable, value in {"KEY": "hunter2-key", "USER_NAME": "ada", "PASSWORD": "hunter2"}.items():
        monkeypatch.setenv(variable, value)
    service = serve(getattr(servers, kind)(engine))
    system = preset(name, {"url": service.url, **settings})
    answer, log = system.search(Query("q1", "grid layout", params={"lang": "sw"}), 3)
    assert log.attempts == 1
    (sent,) = service.requests
    assert (sent.method, sent.path, sent.json()) == ("POST", path, body)
    assert {key: value for key, value in sent.headers.items() if key in SPECIAL} == headers
    assert sent.headers["content-type"] == "application/json"
    expected = engine.ranked("grid layout", 3)
    assert rows(answer) == [(doc_id, score) for doc_id, score, _ in expected]
    shown = [title if "title_field" in settings else None for _, _, title in expected]
    assert [hit.title for hit in answer.hits] == shown


@pytest.mark.parametrize("name", ["elasticsearch", "opensearch", "solr", "vespa", "qdrant"])
def test_every_query_has_the_hits_of_the_engine_asked_directly(name, servers, serve, preset, engine):
    answer = {"opensearch": "elasticsearch"}.get(name, name)
    service = serve(getattr(servers, answer)(engine))
    own = {"id_field": "key"} if name in {"vespa", "qdrant"} else {}
    system = preset(name, {**PRESETS[name].example, "url": service.url, **own})
    for query in servers.QUERIES:
        for k in (1, 10):
            answer, _ = system.search(Query("q", query), k)
            assert rows(answer) == [(doc_id, score) for doc_id, score, _ in engine.ranked(query, k)], query
    assert rows(system.search(Query("q", "zebra"), 10)[0]) == []


@pytest.mark.parametrize(
    ("name", "reply", "reason"),
    [
        ("elasticsearch", {"error": {"type": "index_not_found_exception"}, "status": 404}, "extract.json gave null"),
        ("solr", {"responseHeader": {"status": 0}}, "extract.json gave null"),
        ("vespa", {}, "extract.json gave"),
        ("qdrant", {"status": {"error": "Not found"}}, "extract.json gave null"),
    ],
    ids=["elasticsearch", "solr", "vespa", "qdrant"],
)
def test_a_reply_that_is_no_answer_is_not_an_empty_one(name, reply, reason, servers, serve, preset):
    service = serve(servers.script(servers.json_reply(reply)))
    answer, _ = preset(name, {**PRESETS[name].example, "url": service.url}).search(Query("q", "grid"), 10)
    assert answer.outcome is Outcome.UNPARSABLE
    assert answer.reason.startswith(reason)


HITS = {"hits": {"hits": [{"_id": "d1", "_score": 1.0}]}}
DOCS = {"response": {"docs": [{"id": "d1", "score": 1.0}]}}
CHILDREN = {"fields": {"totalCount": 1}, "children": [{"id": "d1", "relevance": 1.0}]}


@pytest.mark.parametrize(
    ("name", "reply", "reason"),
    [
        ("elasticsearch", {**HITS, "timed_out": True, "_shards": {"failed": 0}}, "timed_out: true"),
        ("elasticsearch", {**HITS, "timed_out": False, "_shards": {"total": 5, "failed": 2}}, "failed_shards: 2"),
        ("elasticsearch", {**HITS, "_clusters": {"successful": 1, "skipped": 1}}, "skipped_clusters: 1"),
        ("opensearch", {**HITS, "timed_out": True, "_shards": {"failed": 1}}, "timed_out: true; failed_shards: 1"),
        ("solr", {**DOCS, "responseHeader": {"status": 0, "partialResults": True}}, "partialResults: true"),
        (
            "solr",
            {**DOCS, "responseHeader": {"partialResults": "omitted", "partialResultsDetails": "Limits exceeded!"}},
            "partialResults: omitted; details: Limits exceeded!",
        ),
        (
            "vespa",
            {"root": {"fields": {"totalCount": 0}, "errors": [{"code": 12, "message": "Timed out"}]}},
            'errors: ["Timed out"]',
        ),
        ("vespa", {"root": {"errors": [{"code": 12}]}}, 'errors: [{"code": 12}]'),
        ("vespa", {"root": {**CHILDREN, "coverage": {"degraded": {"timeout": True}}}}, "timeout: true"),
        (
            "vespa",
            {"root": {**CHILDREN, "coverage": {"degraded": {"non-ideal-state": True}}}},
            "non_ideal_state: true",
        ),
    ],
)
def test_a_part_of_the_results_is_a_failure(name, reply, reason, servers, serve, preset):
    service = serve(servers.script(servers.json_reply(reply)))
    answer, _ = preset(name, {**PRESETS[name].example, "url": service.url}).search(Query("q", "grid"), 10)
    assert (answer.outcome, answer.hits) == (Outcome.ERROR, ())
    assert answer.reason == f"the answer is incomplete: {reason}"


def test_ids_of_solr_that_come_as_lists_of_one_are_read(servers, serve, preset):
    docs = [{"id": ["d1"], "title": ["Grid"], "score": 2.0}, {"id": "d2", "title": "Wire", "score": 1.0}]
    service = serve(servers.script(servers.json_reply({"response": {"docs": docs}})))
    settings = {**PRESETS["solr"].example, "url": service.url, "title_field": "title"}
    answer, _ = preset("solr", settings).search(Query("q", "grid"), 10)
    assert [(hit.id, hit.title) for hit in answer.hits] == [("d1", "Grid"), ("d2", "Wire")]


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("elasticsearch", {**HITS, "timed_out": False, "_shards": {"failed": 0, "skipped": 3}}),
        ("opensearch", HITS),
        ("solr", {**DOCS, "responseHeader": {"status": 0, "partialResults": False}}),
        ("vespa", {"root": {**CHILDREN, "coverage": {"coverage": 100, "degraded": {"match-phase": True}}}}),
    ],
)
def test_a_whole_reply_is_an_answer(name, reply, servers, serve, preset):
    service = serve(servers.script(servers.json_reply(reply)))
    answer, _ = preset(name, {**PRESETS[name].example, "url": service.url}).search(Query("q", "grid"), 10)
    assert [hit.id for hit in answer.hits] == ["d1"]


# SQLite


def test_sqlite_gives_what_fts5_gives(servers, preset, engine):
    system = preset(
        "sqlite", {"database": "docs.db", "table": "docs", "weights": {"title": 2}, "title_column": "title"}
    )
    preflight([system])
    for query in servers.QUERIES:
        for k in (1, 10):
            answer, _ = system.search(Query("q", query), k)
            expected = engine.ranked(query, k)
            assert [(hit.id, hit.score, hit.title) for hit in answer.hits] == expected, query
    assert system.search(Query("q", "lazy list"), 10)[0].hits, "or the loop above shows nothing"


@pytest.mark.parametrize(
    ("words", "query", "match"),
    [
        ("any", 'a "b" c*', '"a" OR """b""" OR "c*"'),
        ("all", "a NOT b", '"a" "NOT" "b"'),
        ("phrase", " a  b\n", '"a" + "b"'),
        ("raw", " title: a* ", "title: a*"),
        ("any", "\t \0", ""),
        ("raw", "  ", ""),
    ],
)
def test_words_are_quoted_unless_the_query_is_syntax(words, query, match):
    assert sqlite_engine.match_of(query, words) == match


@pytest.mark.parametrize(
    ("words", "query", "found"),
    [
        ("any", "grid lazy", {"d1", "d2", "d3", "d5"}),
        ("all", "grid layout", {"d1", "d3"}),
        ("all", "grid ? layout -", {"d1", "d3"}),  # what is no word is no condition
        ("phrase", "places views", {"d1", "d2"}),
        ("phrase", "views places", set()),
        ("raw", "title: (grid OR lists)", {"d1", "d5"}),
        ("any", 'NOT AND ( " * ^ :', {"d1"}),  # three words of FTS5's own, and one of them in a document
    ],
)
def test_sqlite_finds_by_any_word_all_or_a_phrase(preset, servers, tmp_path, words, query, found):
    docs = (*servers.DOCS[:0], *((i, t, b + (" Not here." if i == "d1" else "")) for i, t, b in servers.DOCS[:3]))
    servers.Engine.at(tmp_path / "own.db", (*docs, servers.DOCS[4]))
    system = preset("sqlite", {"database": "own.db", "table": "docs", "words": words})
    assert {doc_id for doc_id, _ in rows(system.search(Query("q", query), 10)[0])} == found


def test_a_raw_query_that_fts5_cannot_read_is_a_failure(preset, engine):
    system = preset("sqlite", {"database": "docs.db", "table": "docs", "words": "raw"})
    answer, _ = system.search(Query("q", 'grid AND "'), 10)
    assert (answer.outcome, answer.hits) == (Outcome.ERROR, ())
    assert answer.reason.startswith("ValueError: SQLite: ")


def test_a_condition_takes_parameters_of_the_query(preset, engine):
    where = ":only IS NULL OR id = :only"
    system = preset("sqlite", {"database": "docs.db", "table": "docs", "where": where})
    every = {doc_id for doc_id, _ in rows(system.search(Query("q", "views"), 10)[0])}
    one = rows(system.search(Query("q", "views", params={"only": "d2", "query": "x", "k": 1}), 10)[0])
    assert (every, [doc_id for doc_id, _ in one]) == ({"d1", "d2", "d3", "d5"}, ["d2"])


def test_a_database_is_only_read(engine, tmp_path):
    search = sqlite_engine.searcher(database="docs.db", table="docs", folder=tmp_path)
    with search._connections.connection() as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM docs")
    search.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"database": "none.db", "table": "docs"}, "no database file none.db"),
        ({"database": "text.db", "table": "docs"}, "text.db is not a database that SQLite can read"),
        ({"database": "docs.db", "table": "dcs"}, "docs.db has no table dcs"),
        ({"database": "docs.db", "table": "docs", "weights": {"titel": 2}}, "unknown column of docs 'titel'"),
        ({"database": "docs.db", "table": "docs", "id_column": 'i"d'}, "unknown column of docs 'i\"d'"),
    ],
)
def test_what_is_wrong_with_a_database_is_found_beforehand(preset, engine, tmp_path, settings, said):
    (tmp_path / "text.db").write_text("no database\n" * 100, encoding="utf-8")
    with pytest.raises(PreflightError) as caught:
        preflight([preset("sqlite", settings)])
    assert said in str(caught.value)


def test_the_database_is_part_of_what_is_measured(preset, engine, tmp_path):
    system = preset("sqlite", {"database": "docs.db", "table": "docs"})
    assert (tmp_path / "docs.db").resolve() in {path.resolve() for path in system.depends_on()}


def test_a_query_of_sqlite_ends_in_time(engine, preset):
    endless = "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n) > 0"
    settings = {"database": "docs.db", "table": "docs", "statement_timeout_s": 0.05}
    answer, _ = preset("sqlite", {**settings, "where": endless}).search(Query("q", "grid"), 10)
    assert (answer.outcome, answer.reason) == (
        Outcome.ERROR,
        "TimeoutError: SQLite: interrupted; the limit is 0.05 s",
    )
    system = preset("sqlite", settings)
    assert rows(system.search(Query("q", "grid"), 10)[0])
    with closing(sqlite3.connect(engine.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer, _ = system.search(Query("q", "grid"), 10)
    assert answer.reason == "TimeoutError: SQLite: database is locked; the limit is 0.05 s"


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("elasticsearch", {"title:grid", "title:grid · boost"}),
        ("opensearch", {"title:grid", "title:grid · boost"}),
        ("solr", {"title:grid", "title:grid · boost"}),
        ("vespa", {"bm25(title)"}),
    ],
)
def test_a_search_server_explains_its_scores_where_it_is_to(name, terms, servers, serve, preset, engine):
    service = serve(getattr(servers, {"opensearch": "elasticsearch"}.get(name, name))(engine))
    settings = {**PRESETS[name].example, "url": service.url, **({"id_field": "key"} if name == "vespa" else {})}
    plain, _ = preset(name, settings).search(Query("q", "grid layout"), 3)
    explained, _ = preset(name, settings, explain=True).search(Query("q", "grid layout"), 3)
    assert rows(explained) == rows(plain)
    assert {hit.explanation for hit in plain.hits} == {None}
    for hit in explained.hits:
        found = flatten(hit.explanation)
        assert found.keys() - {"score"} == terms
        assert found.get("score", found.get("bm25(title)")) == hit.score


def test_the_parts_of_a_score_of_sqlite(preset, tmp_path):
    """The known values of FTS5's BM25: k1 = 1.2, b = .75, and here every document is as long as the mean (1 - b + b = 1).

    idf of a word that 1 of 4 documents has: ln((4 - 1 + .5) / (1 + .5)) = ln(7/3). Occurrences f, weighted by column: 2 in the
    title at weight 3 and 1 in the body at weight 1 are f = 7; score = idf * f * 2.2 / (f + 1.2).
    """
    with closing(sqlite3.connect(tmp_path / "four.db")) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body)")
        rest = [(f"d{n}", "one two", "three four five") for n in (2, 3, 4)]
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", [("d1", "grid grid", "a grid here"), *rest])
    settings = {"database": "four.db", "table": "docs", "weights": {"title": 3}, "title_column": "title"}
    answer, _ = preset("sqlite", settings, explain=True).search(Query("q", "grid"), 10)
    (hit,) = answer.hits
    idf = math.log(7 / 3)
    assert hit.title == "grid grid"
    assert flatten(hit.explanation) == pytest.approx(
        {
            "score": idf * 7 * 2.2 / 8.2,
            "title": idf * 7 * 2.2 / 8.2 - idf * 1 * 2.2 / 2.2,  # less what the body gives alone
            "title · weight": 3,
            "title · alone": idf * 2 * 2.2 / 3.2,
            "body": idf * 7 * 2.2 / 8.2 - idf * 6 * 2.2 / 7.2,
            "body · weight": 1,
            "body · alone": idf * 1 * 2.2 / 2.2,
        }
    )


def test_sqlite_finds_the_same_with_explanations(servers, preset, engine):
    settings = {"database": "docs.db", "table": "docs", "weights": {"title": 2}}
    plain, explained = preset("sqlite", settings), preset("sqlite", settings, explain=True)
    for query in (*servers.QUERIES, "zebra", ""):
        found = explained.search(Query("q", query), 10)[0]
        assert rows(found) == rows(plain.search(Query("q", query), 10)[0])
        assert all(flatten(hit.explanation)["score"] == hit.score for hit in found.hits)


# PostgreSQL


@pytest.fixture
def postgres_preset(preset, postgres, monkeypatch):
    """A system over the documents of the tests in PostgreSQL."""
    monkeypatch.setenv("TEST_DSN", postgres)

    def _preset(*, explain=False, **settings):
        return preset("postgres", {"dsn_env": "TEST_DSN", "table": "docs", **settings}, explain=explain)

    return _preset


DIRECTLY = """
SELECT id, {rank} FROM docs, {query} AS q WHERE {vector} @@ q ORDER BY 2 DESC, id COLLATE "C" LIMIT 10"""
BOTH = "(setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'D'))"
COLUMNS = {"columns": {"title": "A", "body": "D"}}


@pytest.mark.parametrize(
    ("settings", "rank", "query", "vector"),
    [
        ({"vector_column": "words"}, "ts_rank(words, q)", "websearch_to_tsquery('english', %s)", "words"),
        (COLUMNS, f"ts_rank({BOTH}, q)", "websearch_to_tsquery('english', %s)", BOTH),
        (
            {**COLUMNS, "words": "all", "rank": "ts_rank_cd", "weights": {"A": 0.9, "D": 0.3}, "normalisation": 2},
            f"ts_rank_cd('{{0.3,0.2,0.4,0.9}}', {BOTH}, q, 2)",  # D, C, B, A
            "plainto_tsquery('english', %s)",
            BOTH,
        ),
        ({**COLUMNS, "words": "phrase"}, f"ts_rank({BOTH}, q)", "phraseto_tsquery('english', %s)", BOTH),
    ],
    ids=["a column", "columns", "all, by cover density", "phrase"],
)
def test_postgres_gives_what_the_server_gives(postgres_preset, postgres, servers, settings, rank, query, vector):
    import psycopg

    system = postgres_preset(**settings)
    preflight([system])
    found = 0
    with closing(psycopg.connect(postgres, autocommit=True)) as connection:
        for text in (*servers.QUERIES, "grid", "lazy", "place views"):
            direct = connection.execute(DIRECTLY.format(rank=rank, query=query, vector=vector), (text,)).fetchall()
            answer, _ = system.search(Query("q", text), 10)
            assert rows(answer) == [(doc_id, float(score)) for doc_id, score in direct], text
            found += len(direct)
    assert found > 3


def test_the_parts_of_a_rank_of_postgres(postgres_preset, postgres):
    """Of each letter the rank of it alone at weight 1, and what the rank loses without it, as the server has them."""
    import psycopg

    settings = {**COLUMNS, "words": "any", "weights": {"A": 0.9}, "title_column": "title"}
    plain, _ = postgres_preset(**settings).search(Query("q", "stacks colours"), 10)
    answer, _ = postgres_preset(**settings, explain=True).search(Query("q", "stacks colours"), 10)
    assert [(hit.id, hit.score, hit.title) for hit in answer.hits] == [
        (hit.id, hit.score, hit.title) for hit in plain.hits
    ]
    assert len(answer.hits) > 1
    ranks = "SELECT " + ", ".join(
        f"ts_rank('{weights}', {BOTH}, q)"
        for weights in ("{0,0.2,0.4,0.9}", "{0.1,0.2,0.4,0}", "{1,0,0,0}", "{0,0,0,1}")  # D, C, B, A
    )
    query = f"{ranks} FROM docs, to_tsquery('english', 'stacks | colours') AS q WHERE id = %s"
    with closing(psycopg.connect(postgres, autocommit=True)) as connection:
        for hit in answer.hits:
            ((without_body, without_title, body, title),) = connection.execute(query, (hit.id,)).fetchall()
            expected = {"score": hit.score, "normalisation": 0}
            if title:
                expected |= {"title": hit.score - without_title, "title · weight": 0.9, "title · alone": title}
            if body:
                expected |= {"body": hit.score - without_body, "body · weight": 0.1, "body · alone": body}
            assert flatten(hit.explanation) == pytest.approx(expected, abs=1e-6)


def test_letters_of_a_column_of_vectors_go_by_themselves(postgres_preset):
    answer, _ = postgres_preset(vector_column="words", explain=True).search(Query("q", "grid"), 10)
    terms = {term for hit in answer.hits for term in flatten(hit.explanation) if "weight" in term}
    assert terms
    assert terms <= {f"{letter} · weight" for letter in "ABCD"}


def test_postgres_finds_by_any_word(postgres_preset):
    system = postgres_preset(**COLUMNS, words="any", title_column="title")
    answer, _ = system.search(Query("q", "lazy colours"), 10)
    assert {hit.id: hit.title for hit in answer.hits} == {"d2": "Stacks", "d4": "Colours", "d5": "Lists"}


def test_a_query_of_postgres_ends_in_time_whatever_the_server_does(postgres_preset, postgres):
    """A lock, a statement that lifts the limit, an answer that comes row by row, a server that says nothing more."""
    import psycopg

    begun = time.monotonic()
    with closing(psycopg.connect(postgres)) as other:
        other.execute("LOCK TABLE docs IN ACCESS EXCLUSIVE MODE")
        answer, _ = postgres_preset(**COLUMNS, statement_timeout_s=0.1).search(Query("q", "grid"), 10)
        assert answer.reason == "TimeoutError: the server ended the query after 0.1 s"
    lifts = "set_config('statement_timeout', '0', false) = '0' AND (%(s)s::text IS NULL OR pg_sleep(60) IS NOT NULL)"
    system = postgres_preset(**COLUMNS, where=lifts, statement_timeout_s=0.1)
    assert rows(system.search(Query("q", "grid"), 10)[0])
    answer, _ = system.search(Query("q", "grid", params={"s": "1"}), 10)
    assert (
        answer.outcome is Outcome.ERROR
    )  # it is cancelled and its connection cut at the same moment: either comes first
    assert answer.reason.startswith(
        ("TimeoutError: the server ended the query", "TimeoutError: the server gave no answer")
    )
    assert time.monotonic() - begun < 3
    with closing(psycopg.connect(postgres)) as other:  # nothing goes on on the server
        active = (
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND state = 'active' AND pid <> pg_backend_pid()"
        )
        other.autocommit = True  # in a transaction the view of activity would stay as it was first seen
        until = time.monotonic() + 2  # the cancellation is under way when the connection is cut
        while other.execute(active, ("%pg_sleep(60)%",)).fetchone() != (0,):
            assert time.monotonic() < until
            time.sleep(0.02)


def test_a_silent_server_of_postgres_is_cut_off(postgres, monkeypatch, tmp_path):
    host, deaf = postgres.partition("?host=")[2], threading.Event()

    def pass_on(one, other):
        with suppress(OSError), one, other:
            while data := one.recv(65536):
                if not deaf.is_set():
                    other.sendall(data)
            for end in (one, other):  # whoever reads the other way is to stop too
                end.shutdown(socket.SHUT_RDWR)

    def stand_between(listening):
        with suppress(OSError):
            here, _ = listening.accept()
            there = socket.socket(socket.AF_UNIX)
            there.connect(f"{host}/.s.PGSQL.5432")
            for pair in ((here, there), (there, here)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=stand_between, args=(listening,), daemon=True).start()
        address = f"postgresql://owner@127.0.0.1:{listening.getsockname()[1]}/docs?sslmode=disable"
        table = postgres_engine.searcher(
            dsn_env="X", table="docs", **COLUMNS, statement_timeout_s=0.1, environment={"X": address}
        )
        assert table.search("grid", 10)
        deaf.set()
        listening.close()  # a way to cancel there is none either
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match=r"the server gave no answer in 0.1 s"):
            table.search("grid", 10)
        assert time.monotonic() - begun < 2


@pytest.mark.parametrize("n_servers", [1, 3])
def test_a_postgres_that_accepts_and_is_silent_is_cut_off(monkeypatch, n_servers):
    """psycopg waits for 2 s at least, for each address."""
    monkeypatch.setattr(postgres_engine, "_GRACE_S", 0.05)
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        hosts = ",".join([f"127.0.0.1:{mute.getsockname()[1]}"] * n_servers)
        environment = {"X": f"postgresql://owner@{hosts}/docs"}
        table = postgres_engine.searcher(
            dsn_env="X", table="docs", **COLUMNS, statement_timeout_s=0.05, environment=environment
        )
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match=r"the server gave no answer in 0.05 s"):
            table.search("grid", 10)
        assert time.monotonic() - begun < 1


@pytest.mark.parametrize("query", ["'; DROP TABLE docs; --", "%s %(k)s %", "\" \\ ' & | ! ( <->", "", "nul\0nul"])
def test_a_query_is_a_value_and_never_a_part_of_the_statement(postgres_preset, query):
    for words in ("websearch", "all", "any", "phrase"):
        system = postgres_preset(**COLUMNS, words=words)
        assert system.search(Query("q", query), 10)[0].outcome in {Outcome.EMPTY, Outcome.ANSWERED}
    assert rows(postgres_preset(**COLUMNS).search(Query("q", "grid"), 10)[0]), "the table is still there"


def test_a_condition_of_postgres_takes_parameters_of_the_query(postgres_preset):
    where = "%(only)s::text IS NULL OR id = %(only)s"
    system = postgres_preset(**COLUMNS, where=where)
    every = {doc_id for doc_id, _ in rows(system.search(Query("q", "views"), 10)[0])}
    one = rows(system.search(Query("q", "views", params={"only": "d2", "query": "x", "k": 1}), 10)[0])
    assert (every, [doc_id for doc_id, _ in one]) == ({"d1", "d2", "d3", "d5"}, ["d2"])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"vector_column": "none"}, "ValueError: PostgreSQL: UndefinedColumn"),
        ({**COLUMNS, "table": "nowhere.docs"}, "ValueError: PostgreSQL: UndefinedTable"),
        ({**COLUMNS, "words": "raw"}, "ValueError: PostgreSQL: SyntaxError"),
        ({**COLUMNS, "where": "pg_sleep(60) IS NOT NULL", "statement_timeout_s": 0.2},
         "TimeoutError: the server ended the query after 0.2 s"),
        ({**COLUMNS, "where": "pg_terminate_backend(pg_backend_pid())"},
         "ConnectionError: the database cannot be reached"),
        ({**COLUMNS, "where": "nextval('counter') > 0"}, "ValueError: PostgreSQL: ReadOnlySqlTransaction"),
    ],
    ids=["column", "table", "raw", "slow", "gone", "writes"],
)  # fmt: skip
def test_what_postgres_refuses_has_a_reason_that_is_the_same_everywhere(postgres_preset, postgres, settings, reason):
    import psycopg

    with closing(psycopg.connect(postgres, autocommit=True)) as connection:
        connection.execute("CREATE SEQUENCE IF NOT EXISTS counter")
    answer, _ = postgres_preset(**settings).search(Query("q", "grid layout &"), 10)
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, reason)


def test_a_server_that_is_not_there_is_a_failure_without_its_address(preset, monkeypatch, tmp_path):
    monkeypatch.setenv("TEST_DSN", f"postgresql://ada:hunter2@/docs?host={tmp_path}")
    system = preset("postgres", {"dsn_env": "TEST_DSN", "table": "docs", **COLUMNS})
    answer, log = system.search(Query("q", "grid"), 10)
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "ConnectionError: the database cannot be reached")
    assert "hunter2" not in log.stderr_head


def test_what_postgres_needs_is_found_beforehand(preset, monkeypatch):
    monkeypatch.delenv("NO_DSN", raising=False)
    with pytest.raises(PreflightError, match="the environment has no NO_DSN"):
        preflight([preset("postgres", {"dsn_env": "NO_DSN", "table": "docs", **COLUMNS})])
    for settings, got in (({}, "none"), ({**COLUMNS, "vector_column": "words"}, "both")):
        with pytest.raises(UsageError, match=f"exactly one of vector_column and columns, got {got}"):
            postgres_engine.searcher(dsn_env="X", table="docs", environment={"X": "postgresql://"}, **settings)


def test_a_missing_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"cranfield\[postgres\]"):
        postgres_engine.searcher(dsn_env="X", table="docs", columns={"title": "A"}, environment={"X": "x"})

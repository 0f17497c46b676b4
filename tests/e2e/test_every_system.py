"""Every kind of system around the same engine gives the same hits; and real engines score what they are known to score."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from hypothesis import settings

from cranfield import TestSet, evaluate
from cranfield.config import load_config
from cranfield.model import Query, Run
from cranfield.systems import build_systems
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.preflight import preflight

ENGINES = Path(__file__).parent / "engines" / "engines.py"
PLAIN = (sys.executable, "-I", "-S", "engines.py")
"""A start without the installed packages takes half the time; MCP's servers are among them."""
SOME = 25 if settings.default.max_examples > 20 else 8
"""Queries asked of every kind of system; starting a program for each takes its time. None has a word twice, or
a word of two parts, which are read in more than one way."""


@pytest.fixture(scope="module")
def corpus(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the engines, and an index of each over the Cranfield collection."""
    folder = tmp_path_factory.mktemp("engines")
    shutil.copy(ENGINES, folder)
    documents = shared_data / "cranfield" / "corpus.jsonl"
    subprocess.run([*PLAIN, "build", documents], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def postgres(shared_data: Path, postgres_server: str) -> Iterator[str]:
    """Address of a database with the collection in a table, title and text as one column."""
    lines = (shared_data / "cranfield" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    with closing(psycopg.connect(postgres_server, autocommit=True)) as connection:
        connection.execute("CREATE DATABASE collection")
    address = postgres_server.replace("/postgres?", "/collection?")
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute("CREATE TABLE docs (id text PRIMARY KEY, words tsvector)")
        with connection.cursor() as cursor:
            rows = [(one["_id"], one["title"] + " " + one["text"]) for one in map(json.loads, lines)]
            cursor.executemany("INSERT INTO docs VALUES (%s, to_tsvector('english', %s))", rows)
    yield address
    with closing(psycopg.connect(postgres_server, autocommit=True)) as connection:
        connection.execute("DROP DATABASE collection WITH (FORCE)")


@pytest.fixture(scope="module")
def testset(shared_data: Path) -> TestSet:
    """The 225 queries; Cleverdon's code 1 is a complete answer, so a grade is 5 minus the code."""
    lines = (shared_data / "cranfield" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = tuple(Query(one["_id"], one["text"]) for one in map(json.loads, lines))
    grades: dict[str, dict[str, int]] = {query.id: {} for query in queries}
    for line in (shared_data / "cranfield" / "qrels.txt").read_text(encoding="utf-8").splitlines():
        query_id, _, doc_id, code = line.split()
        if int(code) > 0:
            grades[query_id][doc_id] = 5 - int(code)
    return TestSet("cranfield", queries, grades)


def served(folder: Path, *command: str) -> Iterator[int]:
    """Start a server of one of the engines; its port."""
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        _wait_for(port)
        yield port
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def _wait_for(port: int) -> None:
    """Until somebody listens: a server may name its port before it does."""
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=60).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="module")
def http_port(corpus: Path) -> Iterator[int]:
    yield from served(corpus, *PLAIN, "http", "fts_plain")


@pytest.fixture(scope="module")
def mcp_port(corpus: Path) -> Iterator[int]:
    yield from served(corpus, sys.executable, "engines.py", "mcp", "fts_plain", "http")


READ = {"json": "results", "id": "id", "score": "score"}
CALL = {"tool": "search", "arguments": {"query": "{query}", "limit": "{k}"}}


def mcp_over_http(port: int) -> dict[str, object]:
    return {"mcp": {"url": f"http://127.0.0.1:{port}/mcp", **CALL}, "extract": READ}


def config_of(http_port: int) -> dict[str, object]:
    return {
        "command": {
            "command": [*PLAIN, "ask", "fts_plain", "{query}", "{k}"],
            "extract": {"jsonl": True, "id": "id", "score": "score"},
        },
        "function": {"python": "engines:fts_plain"},
        "coroutine": {"python": "engines:later"},
        "lines": {"lines": [*PLAIN, "lines", "fts_plain"]},
        "http": {
            "http": {"url": f"http://127.0.0.1:{http_port}/search", "parameters": {"q": "{query}", "size": "{k}"}},
            "extract": READ,
        },
        "mcp-stdio": {"mcp": {"command": [sys.executable, "engines.py", "mcp", "fts_plain"], **CALL}, "extract": READ},
        "preset": {
            "preset": "sqlite",
            "with": {"database": "fts.db", "table": "docs", "id_column": "id", "weights": {"title": 1, "body": 1}},
        },
    }


@pytest.fixture(scope="module")
def answers(corpus: Path, testset: TestSet, http_port: int, request: pytest.FixtureRequest) -> dict[str, Run]:
    """What every kind of system that a test of this run is about answers to some of the queries."""
    systems = config_of(http_port)
    if any(one.name.endswith("[mcp-http]") for one in request.session.items):
        systems["mcp-http"] = mcp_over_http(request.getfixturevalue("mcp_port"))
    (corpus / "cranfield.yaml").write_text(yaml.safe_dump({"testset": "x", "systems": systems}), encoding="utf-8")
    plain = [query for query in testset.queries if _is_plain(query.text.removesuffix(" ."))][:SOME]
    some = TestSet("some", tuple(plain), {query.id: testset.grades[query.id] for query in plain})
    ready = build_systems(load_config(corpus / "cranfield.yaml"))
    try:
        preflight(ready)
        return {system.name: collect(some, system, k=10) for system in ready}
    finally:
        for system in ready:
            system.close()


def _is_plain(text: str) -> bool:
    words = text.split()
    return len(set(words)) == len(words) and all(word.isalpha() for word in words)


MCP_OVER_HTTP = pytest.param("mcp-http", marks=pytest.mark.slow)
KINDS = ("function", "coroutine", "lines", "http", "mcp-stdio", MCP_OVER_HTTP, "preset")


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_engine_gives_the_same_hits_through_every_kind_of_system(answers: dict[str, Run], kind: str) -> None:
    expected = answers["command"]
    assert all(len(answer.hits) == 10 for answer in expected.answers.values())
    assert answers[kind].answers == expected.answers


# nDCG@10 with grades 5 minus the code, and AP, of the first thousand results of an OR of all words, as measured elsewhere;
# how a tokenizer splits words, and which it leaves out, moves the third digit.
KNOWN = {
    "fts_plain": (0.3530, 0.2924),  # SQLite's own bm25, porter
    "fts_titles": (0.3712, 0.3121),  # title five times the text
    "tantivy": (0.3583, 0.2958),
    "bm25s": (0.3432, 0.2795),
    "postgres": (0.3231, 0.2626),  # ts_rank
}
KNOWN_OF_FORTY = (0.31891, 0.26372)
"""Of SQLite on the first forty queries."""
NEAR = 0.008
PLAIN_ENGINE = {"python": "engines:fts_plain", "order": "descending"}


def test_an_engine_has_its_known_scores_on_the_first_forty_queries(corpus: Path, testset: TestSet) -> None:
    some = testset.queries[:40]
    first = TestSet("first", some, {query.id: testset.grades[query.id] for query in some})
    assert scored(corpus, first, PLAIN_ENGINE) == pytest.approx(KNOWN_OF_FORTY, abs=0.00005)


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(KNOWN))
def test_real_engines_have_their_known_scores(
    corpus: Path, testset: TestSet, engine: str, request: pytest.FixtureRequest
) -> None:
    written: dict[str, Any] = {**PLAIN_ENGINE, "python": f"engines:{engine}"}
    if engine == "postgres":
        address = request.getfixturevalue("postgres")
        settings = {"dsn_env": "ADDRESS", "table": "docs", "vector_column": "words", "words": "any", "normalisation": 1}
        written = {"preset": "postgres", "with": settings, "env": {"ADDRESS": address}}
    near = 0.00005 if engine == "fts_plain" else NEAR
    assert scored(corpus, testset, written) == pytest.approx(KNOWN[engine], abs=near)


def scored(corpus: Path, testset: TestSet, written: Mapping[str, object]) -> tuple[float | None, ...]:
    """nDCG@10 and AP of a system, as its config is written."""
    (corpus / "one.yaml").write_text(yaml.safe_dump({"testset": "x", "systems": {"one": written}}))
    (system,) = build_systems(load_config(corpus / "one.yaml"))
    try:
        preflight([system])
        evaluated = evaluate(testset, collect(testset, system, k=1000), measures=["nDCG@10", "AP"])
    finally:
        system.close()
    assert not evaluated.failures
    return tuple(evaluated.summaries[measure].mean for measure in evaluated.measures)

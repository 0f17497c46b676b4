"""The first hour of a new user, on a real collection: one command that writes the config, one that gives the verdict."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

LONGEST_S = 60.0
"""From the first key to the verdict: a bound that a busy machine keeps."""


def words_of(text):
    return " OR ".join(f'"{word}"' for word in text.replace('"', " ").split() if word.isalnum()) or '""'


@pytest.fixture(scope="module")
def index(shared_data, tmp_path_factory):
    """The collection in an FTS5 table; gives a search over it with a weight of the title."""
    path = tmp_path_factory.mktemp("index") / "cranfield.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body, tokenize='porter')")
        lines = (shared_data / "cranfield" / "corpus.jsonl").read_text().splitlines()
        rows = [(document["_id"], document["title"], document["text"]) for document in map(json.loads, lines)]
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        connection.commit()

    def search(text, k, title_weight=1.0):
        sql = "SELECT id, -bm25(docs, 0, ?, 1), title FROM docs WHERE docs MATCH ? ORDER BY 2 DESC, 1 LIMIT ?"
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(sql, (title_weight, words_of(text), k)).fetchall()

    search.path = path
    return search


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run_texts(shared_data, index):
    """Two run files of the collection, as text."""
    queries = list(map(json.loads, (shared_data / "cranfield" / "queries.jsonl").read_text().splitlines()))
    return {
        name: "".join(
            f"{query['_id']} Q0 {row[0]} {rank} {row[1]} {name}\n"
            for query in queries
            for rank, row in enumerate(index(query["text"], 10, weight), start=1)
        )
        for name, weight in (("old", 1.0), ("new", 3.0))
    }


@pytest.fixture
def runs(run_texts, folder):
    """The run files in the working folder."""
    for name, text in run_texts.items():
        (folder / f"{name}.run").write_text(text)


def cranfield(*arguments):
    return subprocess.run(["cranfield", *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def first_hour(record_property):
    """Type the commands of a path; gives the result, and keeps keystrokes and seconds."""

    def follow(*init):
        began = time.monotonic()
        done = cranfield("init", *init)
        assert done.returncode == 0, done.stderr
        done = cranfield("run")
        assert done.returncode == 0, done.stderr
        seconds = time.monotonic() - began
        keys = len(" ".join(["cranfield init", *init])) + len("cranfield run") + 2
        record_property("keystrokes", keys)
        record_property("seconds", round(seconds, 1))
        print(f"{keys} keystrokes, {seconds:.1f} s")
        assert seconds < LONGEST_S
        return json.loads(Path("cranfield-out/results.json").read_text())

    return follow


def test_qrels_and_two_runs_need_one_command_and_no_config(shared_data, runs, folder):
    qrels = shared_data / "cranfield" / "qrels.txt"
    done = cranfield("compare", str(qrels), "old.run", "new.run")
    assert done.returncode == 0
    assert "VERDICT: " in done.stdout
    assert not (folder / "cranfield.yaml").exists()


def test_a_folder_of_judgments_and_two_runs(shared_data, runs, first_hour):
    found = first_hour(str(shared_data / "cranfield"), "old.run", "new.run")
    assert found["testset"]["n_queries"] == 225


def mean(found):
    """nDCG@10 of the only system."""
    (system,) = found["systems"]
    return system["measures"]["nDCG@10"]["mean"]


class Search(BaseHTTPRequestHandler):
    def do_GET(self):
        parts = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        rows = self.server.search(given.get("q", ""), int(given.get("size", "10")))
        body = json.dumps(
            {"response": {"items": [{"docno": r[0], "score": r[1], "title": r[2]} for r in rows]}}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_a_service_over_http(shared_data, index, first_hour, folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Search)
    server.search = index
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/search?q=wing&size=10"
        found = first_hour(str(shared_data / "cranfield"), address)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    direct = first_hour(str(shared_data / "cranfield"), str(index.path), "--force")
    assert found["testset"]["n_queries"] == 225
    assert mean(found) > 0.25
    assert mean(direct) > 0.25


MCP_SERVER = """\
import json, sqlite3, sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("papers")

@server.tool()
def find_papers(question: str, top_k: int = 5) -> list[dict]:
    "Search the papers."
    words = " OR ".join(f'"{word}"' for word in question.split() if word.isalnum()) or '""'
    sql = "SELECT id, title FROM docs WHERE docs MATCH ? ORDER BY bm25(docs) LIMIT ?"
    rows = sqlite3.connect(sys.argv[1]).execute(sql, (words, top_k)).fetchall()
    return [{"paper": {"doc_id": row[0]}, "title": row[1]} for row in rows]

@server.tool()
def cite(paper: str, style: str) -> str:
    "Cite a paper."
    return paper + style

server.run("stdio")
"""


@pytest.mark.slow
def test_an_mcp_server(shared_data, index, first_hour, folder):
    pytest.importorskip("mcp")
    (folder / "server.py").write_text(MCP_SERVER)
    found = first_hour(str(shared_data / "cranfield"), "--", "python", "server.py", str(index.path))
    assert mean(found) > 0.25


SEARCH = """\
import json, sys
name, query = sys.argv[1:]
with open("answers.json") as file:
    found = json.load(file)[name].get(query)
print(f"Results for {query}:" if found else f"No results for {query}.")
for number, uri in enumerate(found or (), start=1):
    print(f"{number}. a title ({uri})")
"""


def test_a_table_of_fifty_regular_expressions_comes_to_the_published_figures(shared_data, first_hour, folder):
    """The lists that two builds of a system gave, printed as a search prints them; figures as their maker published them."""
    records = json.loads((shared_data / "cupertino" / "versiondiff.json").read_text())["per_query"]
    with Path("patterns.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("query", "pattern"), *((record["query"], record["pattern"]) for record in records)]
        )
    answers = {name: {record["query"]: record[name]["top10"] for record in records} for name in ("brew", "new")}
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / "search.py").write_text(SEARCH)
    commands = [f"{name}=python -I -S search.py {name} {{query}}" for name in answers]
    found = first_hour("patterns.csv", *commands)
    assert found["testset"]["n_queries"] == 50
    means = [round(system["measures"]["RR@10"]["mean"], 4) for system in found["systems"]]
    assert means == [0.7967, 0.9467]

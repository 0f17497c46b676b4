"""From runs to a judged test set by commands: three systems pooled, judged over HTTP by a script, frozen, and scored."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest

from cranfield import load
from cranfield.formats.runs.jsonl import read_run

pytestmark = pytest.mark.slow
DEPTH = 5
N_QUERIES = 12
NAMES = ("fields", "plain", "names")
NAMES_CONFIG = """
testset: {demo}/testset.yaml
measures: [P@5]
k: 10
systems:
  names:
    preset: sqlite
    with: {{database: names.db, table: names, id_column: id, title_column: title, words: any}}
"""


def grade_of(query: str, doc: str) -> int:
    """The script of the rater."""
    return sha256(f"{query} {doc}".encode()).digest()[0] % 4


def cranfield(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["cranfield", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def collect_names(demo: Path, folder: Path) -> Path:
    """The run of the third system: SQLite's full-text search over the names alone of what the demo searches."""
    with closing(sqlite3.connect(folder / "names.db")) as database, database:
        database.execute("CREATE VIRTUAL TABLE names USING fts5(id UNINDEXED, title)")
        database.execute("ATTACH ? AS plain", (str(demo / "plain.db"),))
        database.execute("INSERT INTO names SELECT id, title FROM plain.entity")
    (folder / "cranfield.yaml").write_text(NAMES_CONFIG.format(demo=demo))
    cranfield(folder, "run")
    return folder / "cranfield-out" / "runs" / "names.jsonl"


@contextmanager
def judging(folder: Path, book: str) -> Iterator[tuple[OpenerDirector, str]]:
    """A browser's session with `cranfield judge`: an opener with its cookies, and the address."""
    words = [sys.executable, "-m", "cranfield", "judge", book, "--db", "books.db", "--no-open"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            opener = build_opener(HTTPCookieProcessor(CookieJar()))
            page = opener.open(address, timeout=30)
            origin = re.match(r"https?://[^/]+", page.url)
            token = re.search(r'<meta name="csrf" content="([^"]+)">', page.read().decode())
            assert origin
            assert token
            opener.addheaders = [("Origin", origin[0]), ("X-CSRF-Token", token[1])]
            yield opener, f"{origin[0]}/api/books/{book}"
        finally:
            server.kill()


def judge_all(folder: Path, book: str) -> dict[str, dict[str, int]]:
    """Grade everything that the page is given; query to document to grade."""
    given: dict[str, dict[str, int]] = defaultdict(dict)
    with judging(folder, book) as (opener, api):

        def call(path: str, sent: Any = None) -> Any:
            data = None if sent is None else json.dumps(sent).encode()
            with opener.open(Request(api + path, data, {"Content-Type": "application/json"}), timeout=30) as answer:
                return json.load(answer)

        while items := call("/next?n=20")["items"]:
            entries = []
            for item in items:
                grade = grade_of(item["query"]["name"], item["doc"])
                entries.append({"key": f"key-{item['item']}", "item": item["item"], "action": "grade", "grade": grade})
                given[item["query"]["name"]][item["doc"]] = grade
            assert all(result["ok"] for result in call("/judgments", {"entries": entries})["results"])
    return given


def test_three_systems_are_pooled_judged_frozen_and_scored(demo: Path, tmp_path: Path) -> None:
    places = [demo / "runs" / "fields.jsonl", demo / "runs" / "plain.jsonl", collect_names(demo, tmp_path)]
    files, runs = list(map(str, places)), {name: read_run(place) for name, place in zip(NAMES, places, strict=True)}
    texts = {query.id: query.text for query in load(demo / "testset.yaml").queries}
    queries = [query for query in texts if all(run.answers[query].hits for run in runs.values())][:N_QUERIES]
    assert len(queries) == N_QUERIES
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": texts[q]}) + "\n" for q in queries))
    given = ["--queries", "queries.jsonl", "--depth", str(DEPTH), "--out", "pool.json", "--format", "json"]
    preview = json.loads(cranfield(tmp_path, "pool", *files, *given))
    top = {name: {q: [hit.id for hit in run.answers[q].hits[:DEPTH]] for q in queries} for name, run in runs.items()}
    pooled = {query: {doc for lists in top.values() for doc in lists[query]} for query in queries}
    assert preview["n_to_judge"] == sum(map(len, pooled.values()))
    assert all(len({tuple(lists[query]) for lists in top.values()}) > 1 for query in queries)

    cranfield(tmp_path, "book", "create", "demo", "--pool", "pool.json", "--db", "books.db")
    grades = judge_all(tmp_path, "demo")
    assert {query: set(of_query) for query, of_query in grades.items()} == pooled
    cranfield(tmp_path, "book", "freeze", "demo", "--out", "frozen.yaml", "--db", "books.db")
    assert load(tmp_path / "frozen.yaml").grades == grades

    measures = ("-m", f"P@{DEPTH}", "-m", f"Judged@{DEPTH}", "-m", f"CG@{DEPTH}")
    report = json.loads(cranfield(tmp_path, "evaluate", "frozen.yaml", *files, *measures, "--format", "json"))
    for name, system in zip(NAMES, report["systems"], strict=True):
        assert system["judged"]["pooled"] == system["judged"]["never_pooled"] == 0
        for query in queries:
            found = [grades[query][doc] for doc in top[name][query]]
            assert system["queries"][query] == pytest.approx(
                {
                    f"P@{DEPTH}": sum(grade > 0 for grade in found) / DEPTH,
                    f"Judged@{DEPTH}": 1.0,
                    f"CG@{DEPTH}": sum(found),
                }
            )

"""The demo's search command as users meet it: a process, its output, its exit code, and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.app.demo.build import SEARCH_SCRIPT, DemoFiles
from cranfield.app.demo.entity import Corpus
from cranfield.app.demo.search import MAX_TERMS, SearchConfig, identifier_parts, terms_of, words_of

Hits = Callable[..., list[dict[str, Any]]]
Search = Callable[..., subprocess.CompletedProcess[bytes]]
SYSTEMS = ("plain.db", "fields.db")

WEIRD = {
    "empty": "",
    "blank": "  \t ",
    "punctuation": '"*^:()-+{}[]',
    "quotes": 'say "hello" and \'bye',
    "unclosed quote": 'json "decoder',
    "operators": "AND OR NOT NEAR",
    "near": "NEAR(json decoder, 2)",
    "column filter": "title : json",
    "minus": "-json",
    "star": "json*",
    "caret": "^json",
    "only underscores": "___",
    "sql": "'; DROP TABLE entity; --",
    "option": "--db other.db",
    "unicode": "größe naïve 日本語 🐍 İstanbul",
    "surrogate": b"\xff\xfe json",
    "newline": "json\ndecoder\r\n",
    "superscript": "x² ½ Ⅷ",
    "long word": "x" * 20_000,
    "pasted page": "json decoder for the web " * 4_000,
    "many words": " ".join(f"word{i}" for i in range(3_000)),
}


@pytest.mark.parametrize("database", SYSTEMS)
@pytest.mark.parametrize("name", WEIRD)
def test_any_text_is_a_query_and_never_an_operator(run_search: Search, name: str, database: str) -> None:
    done = run_search("--limit", "5", "--", WEIRD[name], database=database)
    assert (done.returncode, done.stderr) == (0, b"")
    results = json.loads(done.stdout)["results"]
    assert len(results) <= 5
    assert all(set(hit) == {"id", "title", "score", "span"} for hit in results)


@pytest.mark.parametrize("name", ["empty", "blank", "punctuation", "only underscores"])
def test_a_query_without_words_is_an_honest_empty_list(hits: Hits, name: str) -> None:
    assert hits(WEIRD[name]) == []


def test_words_between_operators_are_still_found(hits: Hits) -> None:
    assert hits('"JSONDecoder"*') == hits("JSONDecoder") != []
    assert hits("-JSONDecoder") == hits("JSONDecoder")


@pytest.mark.parametrize("database", SYSTEMS)
def test_hits_are_entities_with_their_title_and_span(hits: Hits, corpus: Corpus, database: str) -> None:
    found = hits("json decoder", database)
    assert len(found) == 10
    for hit in found:
        entity = corpus.by_id[hit["id"]]
        assert hit["title"] == entity.qualname
        assert hit["span"] == (f"{entity.start}-{entity.end}" if entity.path else None)


@pytest.mark.parametrize("database", SYSTEMS)
def test_the_list_falls_by_score_and_equals_stand_in_the_order_of_their_ids(hits: Hits, database: str) -> None:
    found = hits("deprecated", database, limit=200)
    order = [(-hit["score"], hit["id"]) for hit in found]
    assert order == sorted(order)
    assert len({score for score, _ in order}) < len(order), "no ties here: the test shows nothing"


@pytest.mark.parametrize("database", SYSTEMS)
def test_a_shorter_list_is_the_head_of_a_longer_one(hits: Hits, database: str) -> None:
    assert hits("open a file", database, limit=3) == hits("open a file", database, limit=50)[:3]


def test_the_same_call_prints_the_same_bytes(run_search: Search) -> None:
    first, second = (run_search("--", "how do I run a function in a thread pool").stdout for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "arguments",
    [[], ["json"], ["--"], ["--", "a", "b"], ["--limit", "0", "--", "a"], ["--limit", "ten", "--", "a"], ["--limit"],
     ["--limit", "-1", "--", "a"], ["--deep", "3", "--", "a"]],
)  # fmt: skip
def test_a_bad_call_ends_with_2_and_says_how_to_call(run_search: Search, arguments: list[str]) -> None:
    done = run_search(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage: search.py --db FILE" in done.stderr


def test_a_database_that_is_not_there_is_an_error_and_is_not_made(run_search: Search, built_demo: DemoFiles) -> None:
    done = run_search("--", "json", database="absent.db")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"absent.db: unable to open database file" in done.stderr
    assert not (built_demo.folder / "absent.db").exists()


def test_a_file_that_is_no_database_is_an_error(run_search: Search, built_demo: DemoFiles) -> None:
    done = run_search("--", "json", database="testset.yaml")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"not a database" in done.stderr


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in folder.iterdir()
    }


def test_searching_changes_nothing_and_leaves_nothing_behind(run_search: Search, built_demo: DemoFiles) -> None:
    before = fingerprint(built_demo.folder)
    for database in SYSTEMS:
        for query in ("json", WEIRD["sql"], "", "how do I run a function in a thread pool"):
            assert run_search("--", query, database=database).returncode == 0
    assert fingerprint(built_demo.folder) == before


def test_the_database_is_opened_so_that_it_cannot_be_written(built_demo: DemoFiles) -> None:
    from cranfield.app.demo.search import open_read_only

    connection = open_read_only(str(built_demo.databases[0]))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM entity")
    connection.close()


def test_a_folder_with_signs_in_its_name_is_no_obstacle(built_demo: DemoFiles, tmp_path: Path) -> None:
    folder = tmp_path / "what? 100% #1 & more"
    folder.mkdir()
    shutil.copy(built_demo.databases[0], folder / "plain.db")
    command = [sys.executable, "-I", "-S", str(SEARCH_SCRIPT), "--db", str(folder / "plain.db"), "--", "json"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"]


def test_the_script_stands_alone(built_demo: DemoFiles) -> None:
    probe = "import sys, runpy; sys.argv = ['search.py', '--db', 'plain.db', '--', 'json']\n"
    probe += "try: runpy.run_path('search.py', run_name='__main__')\n"
    probe += "except SystemExit: print(*sorted(m for m in sys.modules if m.startswith(('cranfield', 'argparse'))))"
    command = [sys.executable, "-I", "-S", "-c", probe]
    done = subprocess.run(command, cwd=built_demo.folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [""]
    assert (built_demo.folder / "search.py").read_bytes() == SEARCH_SCRIPT.read_bytes()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("JSONDecoder", ["json", "decoder"]),
        ("ThreadPoolExecutor", ["thread", "pool", "executor"]),
        ("run_in_executor", ["run", "in", "executor"]),
        ("HTTPServer", ["http", "server"]),
        ("os.path.join", ["os", "path", "join"]),
        ("utf8", ["utf", "8"]),
        ("sha3_256", ["sha", "3", "256"]),
        ("XMLRPCDispatcher", ["xmlrpc", "dispatcher"]),
        ("isSet", ["is", "set"]),
        ("__init__", ["init"]),
        ("A", ["a"]),
        ("ABC", ["abc"]),
        ("aB", ["a", "b"]),
        ("", []),
        ("__", []),
    ],
)
def test_identifiers_are_split_where_a_reader_would(name: str, parts: list[str]) -> None:
    assert identifier_parts(name) == parts


@given(st.text())
def test_splitting_loses_no_letter(name: str) -> None:
    kept = "".join(words_of(name)).replace("_", "")
    # casefold, because the lower case of a Greek sigma depends on whether it ends the word
    assert "".join(identifier_parts(name)).casefold() == kept.casefold()


def config(*, split: bool = False, stop: str = "") -> SearchConfig:
    return SearchConfig(tables=[], split_identifiers=split, stop_words=stop.split())


def test_terms_are_distinct_words_in_lower_case_and_in_order() -> None:
    assert terms_of("Open a File, open it", config()) == ["open", "a", "file", "it"]
    assert terms_of("Open a File, open it", config(stop="a it")) == ["open", "file"]
    assert terms_of("the JSONDecoder", config(stop="the", split=True)) == ["jsondecoder", "json", "decoder"]
    assert terms_of("how do I", config(stop="how do i")) == ["how", "do", "i"]


def test_a_pasted_page_is_cut_to_its_first_terms() -> None:
    terms = terms_of(str(WEIRD["many words"]), config())
    assert terms == [f"word{i}" for i in range(MAX_TERMS)]

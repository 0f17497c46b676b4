"""`cranfield init` and `cranfield schema` as people use them: every kind of argument, and the first run."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from typer.testing import CliRunner

from cranfield.app.schemas import SCHEMAS
from cranfield.cli.main import command_line
from cranfield.config import load_config

DOCUMENTS = {
    "d1": "grid layout of a page",
    "d2": "grid of wires",
    "d3": "layout of a garden",
    "d4": "wires and cables, wires",
    "d5": "a garden of roses",
}
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d4 1\n"
QUERIES = '{"_id": "q1", "text": "grid"}\n{"_id": "q2", "text": "wires"}\n'
MCP_SERVER = Path(__file__).parents[1] / "systems" / "mcp_server.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "queries.jsonl").write_text(QUERIES)
    (tmp_path / "old.run").write_text("q1 Q0 d2 1 2 old\nq1 Q0 d1 2 1 old\nq2 Q0 d3 1 1 old\n")
    (tmp_path / "new.run").write_text("q1 Q0 d1 1 2 new\nq1 Q0 d2 2 1 new\nq2 Q0 d4 1 1 new\n")
    return tmp_path


@pytest.fixture
def cranfield(folder):
    """Run a command; returns exit code, stdout and stderr."""

    def run(command, *args, stdin=None):
        done = CliRunner().invoke(command_line(command), [command, *args], prog_name="cranfield", input=stdin)
        return done.exit_code, done.stdout, done.stderr

    return run


def searched(query, k):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, body)")
        connection.executemany("INSERT INTO documents VALUES (?, ?)", DOCUMENTS.items())
        words = " OR ".join(f'"{word}"' for word in query.split())
        sql = "SELECT id, -bm25(documents), body FROM documents WHERE documents MATCH ? ORDER BY 2 DESC, 1 LIMIT ?"
        return connection.execute(sql, (words, k)).fetchall()


class Search(BaseHTTPRequestHandler):
    """`/search?q=&size=` wants the key `secret` in `api_key` or a header; `/index/_search` answers as Elasticsearch does."""

    def do_GET(self):
        parts = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/":
            self.answer({"version": {"number": "3.1.0", "distribution": "opensearch"}})
        elif parts.path == "/locked" and given.get("api_key") != "sesame":
            self.answer({"error": "no"}, 401)
        elif parts.path in {"/search", "/locked"} and "q" in given:
            rows = searched(given["q"], int(given.get("size", "10")))
            found = [{"pos": 1, "doc": {"docno": row[0], "title": row[2]}, "score": row[1]} for row in rows]
            self.answer({"facets": [{"name": "kind", "n": 2}], "response": {"items": found}})
        elif parts.path == "/constant":
            self.answer({"hits": [{"id": "d1"}]})
        else:
            self.answer({"error": "no such page"}, 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if urlsplit(self.path).path != "/docs/_search":
            self.answer({"error": "no such page"}, 404)
            return
        rows = searched(body["query"]["multi_match"]["query"], body["size"])
        self.answer({"hits": {"hits": [{"_id": row[0], "_score": row[1]} for row in rows]}})

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Search)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def systems_of(path="cranfield.yaml"):
    return yaml.safe_load(Path(path).read_text())["systems"]


def result(cranfield, code=0):
    found, out, _ = cranfield("run", "--format", "json")
    assert found == code
    return json.loads(out)


def means(cranfield):
    """Of the last system, by measure."""
    return {measure: found["mean"] for measure, found in result(cranfield)["systems"][-1]["measures"].items()}


def test_qrels_topics_and_two_runs_give_a_config_and_a_verdict(cranfield):
    code, out, err = cranfield("init", "qrels.txt", "queries.jsonl", "old.run", "new.run", "--yes")
    assert code == 0
    assert "system old" in out
    assert err.splitlines()[-1] == "Next: cranfield run"
    text = Path("cranfield.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=cranfield.schema.json\n")
    assert Path("cranfield.schema.json").read_text() == SCHEMAS["config"].text
    assert load_config("cranfield.yaml").pair == ("old", "new")
    # nDCG@10: q1 2/log2(2) + 1/log2(3) over itself = 1 on new; q2 is found on new alone.
    assert means(cranfield)["nDCG@10"] == 1.0


def test_without_arguments_the_files_of_the_folder_are_taken(cranfield):
    assert cranfield("init")[0] == 0
    config = load_config("cranfield.yaml")
    assert (config.testset, list(config.systems)) == ("qrels.txt", ["old", "new"])
    assert config.options.queries == "queries.jsonl"


@pytest.mark.parametrize(
    ("names", "baseline"),
    [("a prod", "prod"), ("bm25 bm25-v1 dense", "bm25-v1"), ("main plain", "main"), ("an-idea scaffold", "an-idea")],
)
def test_the_only_name_that_says_before_is_the_baseline(cranfield, folder, names, baseline):
    for name in names.split():
        (folder / f"{name}.run").write_text((folder / "new.run").read_text())
    (folder / "old.run").unlink()
    (folder / "new.run").unlink()
    assert cranfield("init")[0] == 0
    assert next(iter(load_config("cranfield.yaml").systems)) == baseline


def test_an_existing_config_or_starter_stays(cranfield, folder):
    (folder / "cranfield.yaml").write_text("mine\n")
    code, _, err = cranfield("init", "qrels.txt", "old.run")
    assert code == 2
    assert err.splitlines() == [
        "error: cranfield.yaml: the file already exists.",
        "Hint: --force replaces it; --config FILE writes another file.",
    ]
    (folder / "testset.yaml").write_text("mine\n")
    (folder / "other").mkdir()
    assert cranfield("init", "queries.jsonl", "old.run", "--config", "new.yaml")[0] == 2
    assert (folder / "testset.yaml").read_text() == "mine\n"
    assert not (folder / "new.yaml").exists()
    assert cranfield("init", "qrels.txt", "old.run", "--config", "other/c.yaml")[0] == 0
    assert load_config("other/c.yaml").testset == "../qrels.txt"
    assert cranfield("init", "qrels.txt", "old.run", "--force")[0] == 0


def test_a_service_is_read_and_asked_for_k_results(cranfield, service):
    code, out, _ = cranfield("init", "qrels.txt", "queries.jsonl", f"fts={service}/search?q=garden&lang=en&size=5")
    assert code == 0
    assert "results in `response.items`" in out
    (system,) = systems_of().items()
    parameters = {"q": "{query}", "lang": "en", "size": "{k}"}
    extract = {"json": "response.items", "id": "doc.docno", "score": "score", "title": "doc.title"}
    assert system == ("fts", {"http": {"url": f"{service}/search", "parameters": parameters}, "extract": extract})
    assert cranfield("run")[0] == 0


def test_the_parameters_of_a_bare_address_are_found_by_trying(cranfield, service):
    assert cranfield("init", f"{service}/search", "--query", "grid layout garden wires")[0] == 0
    (system,) = systems_of().values()
    assert system["http"]["parameters"] == {"q": "{query}", "size": "{k}"}
    (query,) = yaml.safe_load(Path("testset.yaml").read_text())["queries"]
    assert query["text"] == "grid layout garden wires"
    assert set(query["judgments"].values()) == {-1}
    assert set(query["judgments"]) <= set(DOCUMENTS)
    evidence = result(cranfield, code=3)["evidence"]
    assert [(finding["check"], finding["consequence"]) for finding in evidence] == [("nothing-judged", "void")]


def test_an_answer_that_no_query_changes_is_no_search(cranfield, service):
    code, _, err = cranfield("init", f"{service}/constant")
    assert code == 2
    assert "no request returned a list of results" in err
    assert not Path("cranfield.yaml").exists()


def test_a_secret_of_an_address_is_named_and_not_written(cranfield, service, monkeypatch):
    code, out, err = cranfield("init", "qrels.txt", "queries.jsonl", f"{service}/locked?q=grid&api_key=sesame")
    assert code == 0
    written = "".join(path.read_text() for path in Path().glob("*.yaml"))
    assert "sesame" not in written + out + err
    assert "set the variable SEARCH_API_KEY" in out
    monkeypatch.setenv("SEARCH_API_KEY", "sesame")
    assert cranfield("run")[0] == 0


def test_a_service_that_wants_a_secret_says_how_to_give_it(cranfield, service):
    code, _, err = cranfield("init", f"{service}/locked?q=grid")
    assert code == 2
    assert "HTTP 401" in err
    assert "--header 'Authorization: Bearer {env.TOKEN}'" in err


def test_an_address_of_a_known_engine_takes_its_preset(cranfield, service):
    assert cranfield("init", "qrels.txt", "queries.jsonl", f"{service}/docs/_search")[0] == 0
    assert systems_of() == {"docs": {"preset": "opensearch", "with": {"url": service, "index": "docs"}}}
    assert cranfield("run")[0] == 0


def test_an_fts5_table_takes_the_preset_sqlite(cranfield):
    with closing(sqlite3.connect("docs.db")) as connection:
        connection.execute("CREATE VIRTUAL TABLE pages USING fts5(docno UNINDEXED, title)")
        connection.executemany("INSERT INTO pages VALUES (?, ?)", DOCUMENTS.items())
        connection.commit()
    assert cranfield("init", "qrels.txt", "queries.jsonl", "docs.db")[0] == 0
    settings = {"database": "docs.db", "table": "pages", "id_column": "docno", "title_column": "title"}
    assert systems_of() == {"docs-pages": {"preset": "sqlite", "with": settings}}
    assert cranfield("run")[0] == 0


SCRIPT = """\
import sys
found = {"grid": ["d1", "d2"], "wires": ["d4"], "-x": []}.get(sys.argv[-1], [])
print("\\n".join(f"{n}. docs://{d} a title" for n, d in enumerate(found, 1)) or f"Nothing found for {sys.argv[-1]}")
"""


@pytest.mark.parametrize(
    "arguments", [["--", sys.executable, "s.py", "{query}"], [f"{sys.executable} s.py {{query}}"], ["s.py"]]
)
def test_a_command_is_read_and_its_empty_answer_too(cranfield, folder, arguments):
    (folder / "s.py").write_text(SCRIPT)
    (folder / "patterns.csv").write_text("query,pattern\ngrid,^docs://d1$\nwires,^docs://d4$\nnothing,^docs://d9$\n")
    assert cranfield("init", "patterns.csv", *arguments)[0] == 0
    (system,) = systems_of().values()
    assert system["empty"] == r"(?m)^[ \t]*Nothing found for"
    # RR: 1, 1, and 0 where nothing is found: 2/3.
    assert means(cranfield)["RR@10"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("nothing", "empty"), [("", None), ("print('Results for', q)", r"\A\s*Results for .*\s*\Z")])
def test_queries_without_results_are_empty_answers_of_a_command(cranfield, folder, nothing, empty):
    found = "print('Results for', q); [print(f'd{4 + n}', 1 - n / 10, sep=chr(9)) for n in range(5)]"
    (folder / "s.py").write_text(f"import sys\nq = sys.argv[1]\nif q == 'wires': {found}\nelse: {nothing or 'pass'}\n")
    assert cranfield("init", "qrels.txt", "queries.jsonl", "s.py")[0] == 0
    (system,) = systems_of().values()
    assert system.get("empty") == empty
    assert means(cranfield)["RR@10"] == 0.5
    assert result(cranfield)["systems"][0]["failures"] == []


JSON_CONFIG = {"baseDirectory": "~/.dev", "api_token": "sesame", "limit": 3, "index": {"build-id": "a", "mode": "x y"}}
OFFERS = [
    (
        "s.config.json",
        json.dumps(JSON_CONFIG),
        [
            ("equals_json", {"path": "baseDirectory", "value": "~/.dev"}),
            ("equals_json", {"path": 'index."build-id"', "value": "a"}),
            ("equals_json", {"path": "index.mode", "value": "x y"}),
        ],
    ),
    (
        "settings.toml",
        '[search]\nmode = "semantic"  # or: lexical\nlimit = 3\ndb_url = "pg://me:sesame@host"\n',
        [("contains", 'mode = "semantic"  # or: lexical')],
    ),
    ("used.yaml", "index_path: data/a.db\nwords: [a]\n", [("contains", "index_path: data/a.db")]),
]


@pytest.mark.parametrize(("name", "text", "checks"), OFFERS, ids=[offer[0] for offer in OFFERS])
def test_the_config_file_of_a_program_is_offered_as_a_preflight_check(cranfield, folder, name, text, checks):
    (folder / "bin").mkdir()
    (folder / "bin" / "s.py").write_text(SCRIPT + "# reads used.yaml\n")
    (folder / "bin" / name).write_text(text)
    (folder / "bin" / "other.json").write_text('{"mode": "of another program"}')
    (folder / "patterns.csv").write_text("query,pattern\ngrid,^docs://d1$\nwires,^docs://d4$\n")
    code, _, err = cranfield("init", "patterns.csv", f"{sys.executable} bin/s.py {{query}}")
    assert code == 0
    where = "cranfield.yaml has its checks as comments, under `preflight`"
    assert f"note: system s: found bin/{name}; {where}" in err
    written = Path("cranfield.yaml").read_text()
    assert "sesame" not in written
    assert "preflight" not in systems_of()["s"]
    before, offer, comments = written.partition("    # preflight:")
    Path("cranfield.yaml").write_text(before + (offer + comments).replace("    # ", "    "))
    assert systems_of()["s"]["preflight"] == [{"file": f"bin/{name}", key: value} for key, value in checks]
    assert cranfield("run")[0] == 0
    (folder / "bin" / name).write_text("{}")
    assert cranfield("run")[0] == 3


def test_a_script_in_the_command_itself_has_no_config_file(cranfield, folder):
    script = "echo d1; " * 100
    assert cranfield("init", "qrels.txt", "queries.jsonl", "--", "sh", "-c", script, "{query}")[0] == 0
    assert "preflight" not in Path("cranfield.yaml").read_text()


def test_nothing_is_offered_where_no_config_file_tells_what_is_searched(cranfield, folder):
    (folder / "s.py").write_text(SCRIPT)
    (folder / "config.json").write_text('{"limit": 3, "password_file": "x"}')
    (folder / "s.json").write_text("[1")
    code, _, err = cranfield("init", "qrels.txt", "queries.jsonl", f"{sys.executable} s.py {{query}}")
    assert code == 0
    assert "preflight" not in Path("cranfield.yaml").read_text() + err


def test_a_table_of_questions_and_patterns_without_a_header_becomes_a_test_set(cranfield, folder):
    (folder / "s.py").write_text(SCRIPT)
    (folder / "bare.csv").write_text("grid,^docs://d1$\nwires,^docs://d4$\n")
    assert cranfield("init", "bare.csv", "s.py")[0] == 0
    queries = yaml.safe_load(Path("testset.yaml").read_text())["queries"]
    assert [query["patterns"][0]["regex"] for query in queries] == ["^docs://d1$", "^docs://d4$"]
    assert means(cranfield)["RR@10"] == 1.0


def test_runs_without_a_test_set_are_pooled_for_a_starter(cranfield, folder):
    code, out, err = cranfield("init", "old.run", "new.run")
    assert code == 0
    queries = yaml.safe_load((folder / "testset.yaml").read_text())["queries"]
    assert [(query["id"], query["judgments"]) for query in queries] == [
        ("q1", {"d2": -1, "d1": -1}),
        ("q2", {"d3": -1, "d4": -1}),
    ]
    assert "cranfield judge starter" in out
    assert err.splitlines()[-1] == "Next: cranfield run"
    code, out, _ = cranfield("run")
    assert code == 3
    assert "VERDICT: invalid" in out
    assert "nothing is judged yet: 2 of 2 queries have no grade of 0 or more" in out
    assert "0.0000" not in out


def test_deep_run_files_are_scored_whole_as_compare_does(cranfield, folder):
    for name in ("old", "new"):
        lines = [f"{query} Q0 {doc} {rank} {99 - rank} {name}" for query in ("q1", "q2")
                 for rank, doc in enumerate([*(f"x{n}" for n in range(12)), "d1", "d2", "d3"])]  # fmt: skip
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    assert cranfield("init", "qrels.txt", "old.run", "new.run")[0] == 0
    assert yaml.safe_load((folder / "cranfield.yaml").read_text())["k"] == 15
    _, out, _ = cranfield("compare", "qrels.txt", "old.run", "new.run", "--format", "json")
    (*_, system) = json.loads(out)["systems"]
    assert system["measures"]["AP"]["mean"] == means(cranfield)["AP"] > 0


def test_an_mcp_server_is_asked_for_its_tools(cranfield, quick_python):
    pytest.importorskip("mcp")
    code, out, _ = cranfield("init", "qrels.txt", "queries.jsonl", "--", quick_python, str(MCP_SERVER), "stdio")
    assert code == 0
    (system,) = systems_of().values()
    assert system["mcp"]["tool"] == "search"
    assert system["mcp"]["arguments"] == {"query": "{query}", "limit": "{k}"}
    assert system["extract"] == {"json": "hits", "id": "id", "score": "score", "title": "title"}
    assert "other tools that take a query: listing" in out
    assert cranfield("run")[0] == 0


@pytest.mark.parametrize("kind", ["rows", "text", "lines", "structure"])
def test_lists_of_an_mcp_server_are_found_however_they_are_sent(cranfield, quick_python, kind):
    server = str(MCP_SERVER.with_name("mcp_list_server.py"))
    code, _, err = cranfield("init", "qrels.txt", "queries.jsonl", "--", quick_python, server, kind)
    assert (code, err) == (0, err)
    (system,) = systems_of().values()
    assert system["extract"]["id"] == "id"
    assert cranfield("run")[0] == 0
    assert means(cranfield)["AP"] == 1.0


LINES = """
import json, sys
hits = [{{"{name}": "d2"}}, {{"{name}": "d1"}}]
for line in sys.stdin if len(sys.argv) == 1 else ():
    print(json.dumps({{"id": json.loads(line)["id"], "{key}": hits}}), flush=True)
"""


@pytest.mark.parametrize(
    ("key", "name", "extract"), [("hits", "id", None), ("results", "doc", {"json": "results", "id": "doc"})]
)
def test_a_program_that_answers_lines_of_json_is_recognised(cranfield, folder, quick_python, key, name, extract):
    (folder / "program.py").write_text(LINES.format(key=key, name=name))
    code, out, err = cranfield("init", "qrels.txt", "queries.jsonl", "--", quick_python, "program.py")
    assert (code, err) == (0, err)
    assert "lines of JSON on stdin and stdout" in out
    (system,) = systems_of().values()
    assert (system["lines"], system.get("extract")) == ([quick_python, "program.py"], extract)
    assert cranfield("run")[0] == 0


SERVED = """\
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

class Search(BaseHTTPRequestHandler):
    def do_GET(self):
        given = parse_qs(urlsplit(self.path).query)
        ids = {"grid layout": ["d1", "d2"]}.get(given["q"][0], []) if given.get("lang") == ["en"] else []
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"hits": ids}).encode())

    def log_message(self, *_):
        pass

open("started", "a").write("x")
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Search).serve_forever()
"""
ADDRESS = "http://127.0.0.1:{port}/find?q={query}&lang={params.lang}"


@pytest.fixture
def golden(folder):
    """A program that listens on a port, and queries with a parameter."""
    (folder / "served.py").write_text(SERVED)
    (folder / "golden.json").write_text(
        '[{"query": "grid layout", "params": {"lang": "en"}, "relevant": ["d1"]}, {"query": "wires", "relevant": ["d4"]}]'
    )
    return folder


def test_a_program_is_started_where_an_address_has_its_port(cranfield, golden):
    code, out, err = cranfield("init", "golden.json", ADDRESS, "--", sys.executable, "served.py")
    assert code == 0, err
    assert "started by" in out
    server = {
        "serve": {"command": [sys.executable, "served.py"]},
        "http": {
            "url": "http://127.0.0.1:{port}/find",
            "parameters": {"q": "{query}", "lang": "{params.lang}"},
        },
        "extract": {"json": "hits"},
    }
    assert systems_of() == {"served": server}
    assert (golden / "started").read_text() == "x"
    assert result(cranfield)["systems"][-1]["measures"]["Success@1"]["n"] == 2


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        ([ADDRESS], "got no command"),
        ([ADDRESS, f"{sys.executable} served.py", f"{sys.executable} other.py"], "expected one command of a server"),
        ([ADDRESS, f"{sys.executable} gone.py"], "the program of the address did not start"),
        (
            ["http://127.0.0.1:{port}/find?x={query}", f"{sys.executable} served.py"],
            "no request returned a list of results",
        ),
    ],
)
def test_a_port_without_a_program_that_answers_is_an_error(cranfield, golden, targets, problem):
    code, _, err = cranfield("init", "golden.json", *targets)
    assert code == 2
    assert problem in err
    assert "Traceback" not in err
    assert "{port}" in err or "served.py" in err or "gone.py" in err
    assert not (golden / "cranfield.yaml").exists()


def test_a_program_of_lines_is_tried_with_the_parameters_of_the_queries(cranfield, golden, quick_python):
    (golden / "lines.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'hits': ['d1'] if json.loads(line)['params'].get('lang') == 'en' else []}), flush=True)\n"
    )
    assert cranfield("init", "golden.json", "--", quick_python, "lines.py")[0] == 0
    assert systems_of() == {"lines": {"lines": [quick_python, "lines.py"]}}


def test_ids_that_the_test_set_does_not_know_are_doubted(cranfield, service, folder):
    (folder / "patterns.csv").write_text("query,pattern\ngrid,^docs://d1$\n")
    code, out, _ = cranfield("init", "patterns.csv", f"{service}/search?q=grid")
    assert code == 0
    assert "none of its first results is judged or expected" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["qrels.txt"], "no system to evaluate"),
        (["qrels.txt", "nothing.run"], "no such file, folder or program"),
        (["empty"], "the folder has no file to start from"),
        (["qrels.txt", "echo {query}"], "no text to send"),
        (["queries.jsonl", "false {query}"], "the command failed"),
        (["queries.jsonl", "true"], "the command behaves neither like a search nor like a server on stdin and stdout"),
        (["queries.jsonl", "queries.jsonl", "old.run"], "several files of queries"),
        (["qrels.txt", "other.run"], "other.run"),
        (["plain.txt"], "no column of queries"),
        (["old.run", "--header", "x"], "--header is 'x'"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(cranfield, folder, arguments, words):
    (folder / "empty").mkdir()
    (folder / "plain.txt").write_text("a,b,c\nd,e,f\n")
    (folder / "other.run").write_text("x Q0 d1 1 1 other\n")
    code, out, err = cranfield("init", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert not (folder / "cranfield.yaml").exists()
    assert not (folder / "cranfield.schema.json").exists()


def test_a_program_that_crashes_is_refused_with_what_it_wrote(cranfield, folder):
    (folder / "crash.py").write_text("import sys\nprint('starting', file=sys.stderr)\nimport nosuchmodule\n")
    for argument in ("{python} crash.py {query}", "crash.py"):
        code, _, err = cranfield("init", "qrels.txt", "queries.jsonl", argument)
        assert code == 2
        assert "exit status 1; it wrote 'starting / Traceback" in err
        assert r"ModuleNotFoundError: No module named \'nosuchmodule\'" in err
        assert ("write {query} where the query goes" in err) is ("{query}" not in argument)


def test_a_server_that_crashes_is_refused_with_what_it_wrote_and_no_hint_of_queries(cranfield, folder):
    pytest.importorskip("mcp")
    (folder / "server.py").write_text("import nosuchmodule\nfrom mcp.server import Server\n")
    code, _, err = cranfield("init", "qrels.txt", "queries.jsonl", "server.py")
    assert code == 2
    assert "the server ended with exit status 1; it wrote" in err
    assert r"ModuleNotFoundError: No module named \'nosuchmodule\'" in err
    assert "{query}" not in err
    assert "a working server waits for messages on stdin" in err


def asked(monkeypatch, answers):
    """Answer questions from a list; the questions that were asked."""
    questions = []

    def prompt(question, **_):
        questions.append(question)
        return answers.pop(0)

    monkeypatch.setattr("cranfield.cli.init.typer.prompt", prompt)
    monkeypatch.setattr("cranfield.cli.init._is_terminal", lambda: True)
    return questions


def test_a_person_is_asked_what_cannot_be_found_out(cranfield, monkeypatch, service):
    questions = asked(monkeypatch, ["nonsense", "b"])
    code, _, _ = cranfield("init", "qrels.txt", "queries.jsonl", f"{service}/search?a=x&b=y")
    assert questions == ["Which parameter holds the query? [a, b]"] * 2
    assert code == 2  # the service reads q alone


def test_yes_asks_nothing(cranfield, monkeypatch, folder):
    questions = asked(monkeypatch, [])
    (folder / "s.py").write_text(SCRIPT.replace('"grid"', '"test"'))
    assert cranfield("init", "s.py", "--yes")[0] == 0
    assert questions == []
    assert cranfield("init", "s.py", "--force", "--query", "test")[0] == 0
    assert questions == []


def test_the_query_of_a_starter_is_asked_for(cranfield, monkeypatch, folder):
    questions = asked(monkeypatch, ["grid"])
    (folder / "s.py").write_text(SCRIPT)
    assert cranfield("init", "s.py")[0] == 0
    assert questions == ["A query that returns results?"]
    (query,) = yaml.safe_load((folder / "testset.yaml").read_text())["queries"]
    assert query["text"] == "grid"


def test_the_result_as_json_names_files_systems_and_next_commands(cranfield):
    code, out, _ = cranfield("init", "qrels.txt", "old.run", "new.run", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert (found["config"], found["testset"], found["judged"]) == ("cranfield.yaml", None, True)
    assert (list(found["systems"]), found["next"]) == (["old", "new"], ["cranfield run"])


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_as_it_is_published(cranfield, name):
    code, out, _ = cranfield("schema", name)
    assert code == 0
    assert json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert out == SCHEMAS[name].path.read_text()


def test_the_schema_of_the_config_is_the_default_and_an_unknown_one_lists_the_names(cranfield):
    assert cranfield("schema")[1] == SCHEMAS["config"].text
    code, _, err = cranfield("schema", "confg")
    assert code == 2
    assert "did you mean config?" in err


def test_every_published_schema_is_in_the_table():
    import cranfield as package

    published = Path(package.__file__).parent.rglob("*.schema.json")
    assert {schema.path for schema in SCHEMAS.values()} == set(published)


@pytest.mark.parametrize("heading", ["Found 2 results in 12 ms", None])
def test_a_word_that_begins_every_answer_is_named(folder, cranfield, heading):
    """The heading is a line as the results are, and would be the first of every list; results that differ are none."""
    (folder / "three.csv").write_text("query_id,query,doc_id,grade\na,alpha,doc-a,1\nb,beta,doc-b,1\nc,gamma,doc-c,1\n")
    said = f"echo '{heading}'\n" if heading else ""
    (folder / "headed.sh").write_text(f'{said}echo "doc-$(printf %s "$1" | cut -c1)  0.9"\necho "doc-z  0.5"\n')
    code, out, err = cranfield("init", "three.csv", "sh headed.sh {query}", "--yes")
    assert code == 0, err
    note = "every answer begins with 'Found': if that is a heading and not a result"
    assert (note in out + (folder / "cranfield.yaml").read_text()) is (heading is not None)

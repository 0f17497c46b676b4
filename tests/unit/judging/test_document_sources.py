"""Sources of texts on this machine: programs, files, git, databases, corpora."""

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cranfield.judging.documents.files import filled_arguments
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.documents.values import DocumentError
from cranfield.workbench.config import load_workbench


@pytest.fixture
def texts_of(tmp_path):
    made = []

    def texts(yaml):
        (tmp_path / "workbench.yaml").write_text(yaml)
        made.append(DocumentTexts(load_workbench(tmp_path / "workbench.yaml")))
        return made[-1]

    yield texts
    for one in made:
        one.close()


def kind_of(document):
    return None if document.problem is None else document.problem.kind.value


# Programs


def test_an_id_is_a_part_of_one_argument_and_no_option():
    for command, doc_id, argv in [
        (["p", "{id}"], "a b; rm -rf $HOME", ["p", "a b; rm -rf $HOME"]),
        (["p", "--id={id}"], "-x", ["p", "--id=-x"]),
        (["p", "--", "{id}"], "-x", ["p", "--", "-x"]),
        (["p", "-x{id}"], "-y", ["p", "-x-y"]),
        (["p", "{id}"], "-x", None),
        (["p", "{id}"], "--output=/etc/passwd", None),
        (["p", "{id}{id}"], "-", None),
        (["p", "{id}", "--"], "-x", None),
        (["p", "{id}"], "{id}", ["p", "{id}"]),
        (["p", "{id}"], "a\n-x\t'\"", ["p", "a\n-x\t'\""]),
        (["p", "docs/{id}.md"], "../../etc/passwd", None),
        (["p", "--", "{id}"], "a/..", None),
        (["p", "docs/.{id}"], "./x", None),
        (["p", "../docs/{id}"], "a..b/...", ["p", "../docs/a..b/..."]),
    ]:
        if argv is None:
            with pytest.raises(DocumentError):
                pytest.fail(str(filled_arguments(command, {"id": doc_id})))
        else:
            assert filled_arguments(command, {"id": doc_id}) == argv


def test_a_program_has_few_variables_of_the_environment(texts_of, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("DOC_HOME", "docs")
    texts = texts_of("documents: [{command: [sh, -c, 'env; echo $0', '{id}'], env: [DOC_HOME]}]")
    text = texts.get("d1").text
    assert "s3cret" not in text
    assert "DOC_HOME=docs" in text
    assert text.endswith("d1\n")


def test_a_program_that_gives_no_text(texts_of):
    for script, kind in [
        ("exit 3", "failed"),
        ("exit 0", "not_found"),
        ("kill -9 $$", "failed"),
        ("head -c 2001 /dev/zero | tr '\\0' x", "too_large"),
        ("sleep 60", "timed_out"),
    ]:
        line = json.dumps(["sh", "-c", script, "{id}"])
        seconds = 0.2 if kind == "timed_out" else 20
        texts = texts_of(f"documents: [{{command: {line}, max_bytes: 2000, timeout_s: {seconds}}}]")
        document = texts.get("d1")
        assert (script, kind_of(document)) == (script, kind)
        assert document.problem.message.endswith(".")


def test_a_program_that_is_not_there(texts_of):
    document = texts_of("documents: [{command: [no-such-program, '{id}']}]").get("d1")
    assert (kind_of(document), "program does not exist" in document.problem.message) == ("failed", True)


# Files

LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "docs"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text(LINES)
    (root / "b.md").write_text("# B\n")
    (root / "large.txt").write_text("x" * 3000)
    (root / "binary.txt").write_bytes(b"a\0b")
    (root / "-x").write_text("dash")
    (tmp_path / "secret.txt").write_text("s3cret")
    (root / "out").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    (root / "inside").symlink_to("b.md")
    os.mkfifo(root / "pipe")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("token = s3cret")
    (root / "store").symlink_to(".git")
    return root


FILES = "documents: [{file: {root: docs}, max_bytes: 2000}]"


def test_lines_of_a_file(texts_of, folder):
    texts = texts_of(FILES)
    for doc_id, text, first_line in [
        ("src/a.py:10-12", "line 10\nline 11\nline 12", 10),
        ("src/a.py#L2-L3", "line 2\nline 3", 2),
        ("src/a.py:30", "line 30", 30),
        ("src/a.py:30-9999", "line 30\n", 30),
        ("./src//a.py:1", "line 1", 1),
        ("b.md", "# B\n", 1),
        ("inside", "# B\n", 1),
        ("-x", "dash", 1),
    ]:
        document = texts.get(doc_id)
        assert (document.text, document.first_line, document.problem) == (text, first_line, None)


def test_a_path_that_is_no_document(texts_of, folder):
    texts = texts_of(FILES)
    for doc_id, kind in [
        ("../secret.txt", "refused"),
        ("src/../../secret.txt", "refused"),
        ("/etc/passwd", "refused"),
        ("//etc/passwd", "refused"),
        ("~/x", "refused"),
        ("..\\secret.txt", "refused"),
        ("out", "refused"),
        ("up/secret.txt", "refused"),
        (".git/config", "refused"),
        (".GIT/config", "refused"),
        (".git./config", "refused"),
        ("store/config", "refused"),
        ("src/a.py:99", "not_found"),
        ("src/a.py:0", "not_found"),
        ("none.txt", "not_found"),
        ("src", "not_found"),
        (".", "refused"),
        ("loop", "not_found"),
        ("pipe", "not_found"),
        ("b.md/x", "not_found"),
        ("x" * 1_000, "not_found"),
        ("large.txt", "too_large"),
        ("binary.txt", "failed"),
    ]:
        document = texts.get(doc_id)
        assert (doc_id, kind_of(document)) == (doc_id, kind)
        assert "s3cret" not in str(document)
        assert str(folder) not in document.problem.message


PATHS = st.text("./\\~ab:#L1-", max_size=20) | st.lists(
    st.sampled_from(["..", ".", "up", "out", "store", ".git", "src", "a"])
).map("/".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PATHS)
def test_no_path_leads_out(texts_of, folder, path):
    if not (folder.parent / "workbench.yaml").exists():
        texts_of(FILES)
    document = DocumentTexts(load_workbench(folder.parent / "workbench.yaml")).get(path)
    assert "s3cret" not in document.text


def test_a_placeholder_in_the_path(texts_of, folder):
    texts = texts_of("documents: [{match: '(?P<name>.+)@v1', file: {root: docs, path: 'src/{name}.py:1'}}]")
    assert texts.get("a@v1").text == "line 1"
    assert kind_of(texts.get("../b.md@v1")) == "not_found"
    assert kind_of(texts.get("../../../secret.txt@v1")) == "refused"


def test_files_at_a_commit(texts_of, tmp_path, monkeypatch):
    root = tmp_path / "repo"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / ":(top)a.txt").write_text("odd")
    (root / "docs" / "a.txt").write_text("before\nand more")
    (root / "docs" / "link").symlink_to("a.txt")
    (root / "top.txt").write_text("top")
    environment = {**os.environ, **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "T")}
    environment |= dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"], ["tag", "v1"]):
        subprocess.run(["git", *arguments], cwd=root, env=environment, check=True)
    (root / "docs" / "a.txt").write_text("after")
    texts = texts_of("documents: [{file: {root: repo/docs, at: v1}, max_bytes: 1000}]")
    assert texts.get("a.txt:1").text == "before"
    assert texts.get(":(top)a.txt").text == "odd"
    assert [kind_of(texts.get(name)) for name in ("link", "none", "../top.txt", ".", ".git/HEAD")] == [
        "not_found",
        "not_found",
        "refused",
        "refused",
        "refused",
    ]
    assert kind_of(texts_of("documents: [{file: {root: repo, at: v9}}]").get("top.txt")) == "failed"
    assert kind_of(texts_of("documents: [{file: {root: repo, at: --help}}]").get("top.txt")) == "failed"


# Databases

INJECTIONS = ["x' OR '1'='1", "'; DROP TABLE doc; --", ":id", "$1", "%s", "\\'", "x' UNION SELECT secret FROM doc--"]
ROWS = [("a'b", "The A", "Text of A", 7), ("7", "Seven", "Text of 7", 8)]


def make_table(connection):
    connection.execute("CREATE TABLE doc (id TEXT, title TEXT, body TEXT, number INTEGER)")
    for row in ROWS:
        connection.execute(
            "INSERT INTO doc VALUES ({})".format(", ".join("'" + str(v).replace("'", "''") + "'" for v in row))
        )


@pytest.fixture(params=["sqlite", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("duckdb", "postgres"))])
def database(request, tmp_path, monkeypatch):
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "docs.db")) as connection, connection:
            make_table(connection)
        return "sqlite:docs.db"
    if request.param == "duckdb":
        with closing(duckdb.connect(str(tmp_path / "docs.duckdb"))) as connection:
            make_table(connection)
        return "duckdb:docs.duckdb"
    server = request.getfixturevalue("postgres_server")
    with closing(psycopg.connect(server, autocommit=True)) as connection:
        connection.execute("DROP TABLE IF EXISTS doc")
        make_table(connection)
        connection.execute("DROP ROLE IF EXISTS doc_reader")
        connection.execute("CREATE ROLE doc_reader LOGIN IN ROLE pg_read_all_data")
    head, _, tail = server.partition("@")
    monkeypatch.setenv("DOCS_URL", "postgresql://doc_reader@" + tail if tail else head)
    return "env:DOCS_URL"


def test_a_row_of_a_database(texts_of, database):
    query = "SELECT title, body AS text, number, ':id' AS odd FROM doc WHERE id = :id;"
    texts = texts_of(f"documents: [{{sql: {{database: '{database}', query: \"{query}\"}}}}]")
    document = texts.get("a'b")
    assert (document.title, document.text, document.problem) == ("The A", "Text of A", None)
    assert dict(document.values) == {"title": "The A", "text": "Text of A", "number": 7, "odd": ":id"}
    assert [kind_of(texts.get(doc_id)) for doc_id in INJECTIONS] == ["not_found"] * len(INJECTIONS)
    assert texts.get("7").title == "Seven"


def test_a_statement_that_does_more_than_read_changes_nothing(texts_of, database):
    query = "DELETE FROM doc WHERE id = :id"
    document = texts_of(f"documents: [{{sql: {{database: '{database}', query: '{query}'}}}}]").get("7")
    assert kind_of(document) == "failed"
    query = "SELECT body AS text FROM doc WHERE id = :id"
    assert texts_of(f"documents: [{{sql: {{database: '{database}', query: '{query}'}}}}]").get("7").text == "Text of 7"


def test_a_number_is_compared_as_one(texts_of, database):
    query = "SELECT body AS text FROM doc WHERE number = :id"
    texts = texts_of(f"documents: [{{sql: {{database: '{database}', query: '{query}'}}}}]")
    assert texts.get("8").text == "Text of 7"
    assert kind_of(texts.get("no number")) in {"failed", "not_found"}
    assert texts.get("7").text == "Text of A"


def test_a_statement_without_end(texts_of, database):
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS text FROM n WHERE 'x' = :id OR i > 0"
    texts = texts_of(f"documents: [{{sql: {{database: '{database}', query: \"{query}\"}}, timeout_s: 0.2}}]")
    assert kind_of(texts.get("7")) == "timed_out"


def test_a_database_that_is_not_there(texts_of, tmp_path):
    (tmp_path / "gone.db").touch()
    texts = texts_of("documents: [{sql: {database: 'sqlite:gone.db', query: 'SELECT :id'}}]")
    (tmp_path / "gone.db").unlink()
    assert kind_of(texts.get("7")) == "failed"


# Corpora


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_corpus_of_json_lines(texts_of, tmp_path, suffix):
    records = [
        {"_id": "é", "name": "First", "body": "Text\n1"},
        {"_id": 2, "body": "second"},
        {"_id": "é", "body": "x"},
    ]
    lines = ["", *map(json.dumps, records), "[1]", "{broken", json.dumps({"body": "no id"})]
    data = "\n".join(lines).encode()
    (tmp_path / f"docs.jsonl{suffix}").write_bytes(gzip.compress(data) if suffix else data)
    texts = texts_of(f"documents: [{{corpus: {{path: docs.jsonl{suffix}, id: _id, title: name, text: body}}}}]")
    assert (texts.get("é").title, texts.get("é").text) == ("First", "Text\n1")
    assert texts.get("2").text == "second"
    assert kind_of(texts.get("no id")) == "not_found"


def test_a_corpus_in_a_dataset_of_llama_index(texts_of, tmp_path):
    data = {"queries": {"a": "what"}, "corpus": {"n1": "text one", "n2": "text two"}, "relevant_docs": {"a": ["n1"]}}
    (tmp_path / "dataset.json").write_text(json.dumps(data))
    texts = texts_of("documents: [{corpus: {path: dataset.json}}]")
    assert texts.get("n2").text == "text two"
    assert kind_of(texts.get("n3")) == "not_found"


def test_a_corpus_that_changes_is_read_again(texts_of, tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "a", "text": "before"}\n')
    texts = texts_of("documents: [{corpus: {path: docs.jsonl}}]\ncache_s: 0")
    assert texts.get("a").text == "before"
    path.write_text('{"id": "b", "text": "x"}\n{"id": "a", "text": "after"}\n')
    assert texts.get("a").text == "after"


def test_a_corpus_that_cannot_be_read(texts_of, tmp_path):
    (tmp_path / "bad.jsonl.gz").write_bytes(b"no gzip")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"id": "a"}\n' * 1000)[:-20])
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "a", "text": "x" * 2000}))
    for name in ("bad.jsonl.gz", "cut.jsonl.gz"):
        assert kind_of(texts_of(f"documents: [{{corpus: {{path: {name}}}}}]").get("a")) == "failed"
    assert kind_of(texts_of("documents: [{corpus: {path: long.jsonl}, max_bytes: 1000}]").get("a")) == "too_large"


def test_a_corpus_that_is_removed(texts_of, tmp_path):
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "b"}')
    texts = texts_of("documents: [{corpus: {path: docs.jsonl}}]")
    (tmp_path / "docs.jsonl").unlink()
    assert kind_of(texts.get("a")) == "failed"


def test_a_gzip_bomb_is_not_unpacked_without_end(texts_of, tmp_path, monkeypatch):
    monkeypatch.setattr("cranfield.judging.documents.records.MAX_UNPACKED", 2_000_000)
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(b" " * 3_000_000))
    assert kind_of(texts_of("documents: [{corpus: {path: bomb.jsonl.gz}}]").get("a")) == "failed"


def test_python_of_the_tests_can_be_a_source(texts_of):
    script = "import sys; print(sys.argv[1].upper())"
    line = json.dumps([sys.executable, "-I", "-S", "-c", script, "{id}"])
    assert texts_of(f"documents: [{{command: {line}}}]").get("doc").text == "DOC\n"

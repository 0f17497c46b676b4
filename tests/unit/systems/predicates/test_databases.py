"""Predicates over real databases: what they name, and everything they are not allowed to do.

Each of the three databases holds the same table: `doc(id, kind)` with b and a of kind `api`, c of kind `guide`.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pytest

from cranfield.base.errors import Problem, TestSetError
from cranfield.model import Pattern, Predicate, Query, Target, TestSet
from cranfield.systems.predicates import read_only
from cranfield.systems.predicates.databases import ask

ROWS = [("b", "api"), ("a", "api"), ("c", "guide")]
TABLE = "CREATE TABLE doc (id TEXT, kind TEXT)"
COUNTS_FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
TIMEOUT_S = 0.5


@dataclass(frozen=True)
class Place:
    """A database of the tests: where it is, and in which folder."""

    kind: str
    where: str
    folder: Path


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server of the tests' own."""

    folder: Path

    def address(self, user: str, database: str = "corpus", password: str = "") -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.folder}"


@pytest.fixture(scope="session")  # as the server: a test process comes back to this module
def server(postgres_server: str) -> Server:
    """The server, with the corpus in a database of its own and with roles that may more or less."""
    server = Server(Path(postgres_server.partition("?host=")[2]))
    with closing(psycopg.connect(postgres_server, autocommit=True)) as connection:
        connection.execute("CREATE DATABASE corpus")
        connection.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
        connection.execute("CREATE ROLE writer LOGIN")
        connection.execute("CREATE ROLE filer LOGIN IN ROLE pg_read_server_files")
    with closing(psycopg.connect(server.address("owner"), autocommit=True)) as connection:
        connection.execute(TABLE)
        connection.execute("GRANT ALL ON doc TO writer")
        connection.execute("GRANT CREATE ON SCHEMA public TO writer")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO doc VALUES (%s, %s)", ROWS)
    return server


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    with closing(sqlite3.connect(tmp_path / "corpus.db")) as connection, connection:
        connection.execute(TABLE)
        connection.executemany("INSERT INTO doc VALUES (?, ?)", ROWS)
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(id, text)")
        connection.execute("INSERT INTO words VALUES ('w', 'plain words')")
    return Place("sqlite", "sqlite:corpus.db", tmp_path)


@pytest.fixture(scope="module")
def duckdb_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus for DuckDB, to be copied: writing it takes longer than most tests."""
    file = tmp_path_factory.mktemp("duckdb") / "corpus.duckdb"
    with closing(duckdb.connect(str(file))) as connection:
        connection.execute(TABLE)
        connection.executemany("INSERT INTO doc VALUES (?, ?)", ROWS)
    return file


@pytest.fixture
def duckdb_place(duckdb_file: Path, tmp_path: Path) -> Place:
    shutil.copy(duckdb_file, tmp_path)
    return Place("duckdb", "duckdb:corpus.duckdb", tmp_path)


@pytest.fixture
def postgres_place(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The role may write, so that it is us who keep it from writing."""
    monkeypatch.setenv("CORPUS", server.address("writer"))
    return Place("postgres", "env:CORPUS", tmp_path)


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(f"{request.param}_place")


def asking(place: Place, *sql: str) -> TestSet:
    """A test set with a query for each statement: q1, q2 and so on."""
    targets: dict[str, tuple[Target, ...]] = {f"q{n}": (Predicate(text),) for n, text in enumerate(sql, start=1)}
    return TestSet("t", tuple(Query(name) for name in targets), targets=targets, databases={"corpus": place.where})


def ids(testset: TestSet, query_id: str = "q1") -> list[tuple[str, ...] | None]:
    return [target.ids for target in testset.targets[query_id] if isinstance(target, Predicate)]


def problems(testset: TestSet, place: Place, **bounds: float) -> list[Problem]:
    with pytest.raises(TestSetError) as caught:
        ask(testset, place.folder, timeout_s=bounds.get("timeout_s", 10), max_rows=int(bounds.get("max_rows", 1000)))
    return list(caught.value.problems)


def rows_of(place: Place, server: Server | None = None) -> list[tuple[str, str]]:
    if place.kind == "sqlite":
        with closing(sqlite3.connect(place.folder / "corpus.db")) as connection:
            return connection.execute("SELECT * FROM doc").fetchall()
    if place.kind == "duckdb":
        with closing(duckdb.connect(str(place.folder / "corpus.duckdb"), read_only=True)) as connection:
            return connection.execute("SELECT * FROM doc").fetchall()
    with closing(psycopg.connect(os.environ["CORPUS"])) as connection:
        return connection.execute("SELECT * FROM doc").fetchall()


def test_a_predicate_stands_for_the_first_column_distinct_and_sorted(place: Place) -> None:
    sql = "SELECT id, kind FROM doc WHERE kind = 'api' UNION ALL SELECT 'a', 'again'"
    asked = ask(asking(place, sql, "SELECT id FROM doc WHERE id LIKE '%c%'", "SELECT 7"), place.folder)
    assert [ids(asked, name) for name in ("q1", "q2", "q3")] == [[("a", "b")], [("c",)], [("7",)]]


def test_a_statement_may_end_in_a_semicolon_and_a_remark(place: Place) -> None:
    assert ids(ask(asking(place, "SELECT id FROM doc WHERE kind = 'guide'; -- the rest"), place.folder)) == [("c",)]


def test_the_same_question_is_asked_once_and_the_notes_count_it_once(place: Place) -> None:
    sql = "SELECT id FROM doc"
    asked = ask(asking(place, sql, sql, "SELECT 'z'"), place.folder)
    assert ids(asked, "q1") == ids(asked, "q2") == [("a", "b", "c")]
    note = str(*asked.notes)
    assert note.startswith("Database 'corpus' answered 2 predicates with 4 documents (answers sha256:")


def test_the_digest_of_the_answers_changes_with_the_corpus_and_that_of_the_test_set_does_not(
    sqlite_place: Place,
) -> None:
    testset = asking(sqlite_place, "SELECT id FROM doc")
    before = ask(testset, sqlite_place.folder)
    assert ask(testset, sqlite_place.folder).notes == before.notes
    with closing(sqlite3.connect(sqlite_place.folder / "corpus.db")) as connection, connection:
        connection.execute("INSERT INTO doc VALUES ('d', 'api')")
    after = ask(testset, sqlite_place.folder)
    assert before.notes != after.notes
    assert before.digest == after.digest == testset.digest


WRITES = {
    "insert": "INSERT INTO doc VALUES ('x', 'x')",
    "delete and tell": "DELETE FROM doc RETURNING id",
    "drop": "DROP TABLE doc",
    "create": "CREATE TABLE more (id TEXT)",
    "create temporary": "CREATE TEMP TABLE more (id TEXT)",
    "two statements": "SELECT id FROM doc; DELETE FROM doc",
    "end the transaction first": "SELECT 1; COMMIT; DELETE FROM doc",
    "no statement": "",
    "only a remark": "-- nothing",
    "begin": "BEGIN",
}
OF_SQLITE = {
    "attach": "ATTACH DATABASE 'other.db' AS other",
    "write allowed again": "PRAGMA query_only = OFF",
    "pragma": "PRAGMA table_info(doc)",
    "pragma as a table": "SELECT name FROM pragma_database_list",
    "load code": "SELECT load_extension('evil')",
    "vacuum into a file": "VACUUM INTO 'copy.db'",
    "index words": "INSERT INTO words(words) VALUES ('optimize')",
}
OF_DUCKDB = {
    "attach": "ATTACH 'other.duckdb' AS other",
    "copy to a file": "COPY doc TO 'copied.csv'",
    "read a file": "SELECT * FROM read_csv('/etc/passwd', columns = {'line': 'VARCHAR'})",
    "read a text": "SELECT content FROM read_text('/etc/passwd')",
    "a file as a table": "SELECT * FROM '/etc/passwd'",
    "list files": "SELECT file FROM glob('/etc/*')",
    "a variable of the program": "SELECT * FROM ROWS",
    "external access again": "SET enable_external_access = true",
    "code": "INSTALL httpfs",
    "load code": "LOAD httpfs",
    "export": "EXPORT DATABASE 'exported'",
    "next number": "SELECT nextval('numbers')",
}
OF_POSTGRES = {
    "copy to a file": "COPY doc TO '/etc/cranfield-copied'",
    "copy a query to a program": "COPY (SELECT 1) TO PROGRAM 'true'",
    "read a file": "SELECT pg_read_file('/etc/passwd')",
    "write inside a query": "WITH gone AS (DELETE FROM doc RETURNING id) SELECT id FROM gone",
    "a table from a query": "SELECT id INTO more FROM doc",
    "lock rows": "SELECT id FROM doc FOR UPDATE",
    "read-write again": "SELECT set_config('transaction_read_only', 'off', true)",
    "read-write and a write in one": (
        "SELECT query_to_xml('SELECT set_config(''transaction_read_only'', ''off'', true)', true, true, '')::text"
    ),
    "call": "DO $$ BEGIN DELETE FROM doc; END $$",
}
REFUSED = {
    kind: WRITES | more for kind, more in (("sqlite", OF_SQLITE), ("duckdb", OF_DUCKDB), ("postgres", OF_POSTGRES))
}


def test_what_does_not_only_read_is_refused_and_changes_nothing(place: Place) -> None:
    """One process reads all of them, so none may open the way for the next; between them one that only reads."""
    files = sorted(path.name for path in place.folder.rglob("*"))
    statements = []
    for n, sql in enumerate(REFUSED[place.kind].values()):
        statements += [sql, f"SELECT id, {n} FROM doc"]
    found = problems(asking(place, *statements), place)
    refused = [f"query 'q{n}', database 'corpus'" for n in range(1, len(statements), 2)]
    assert [problem.message.partition(": ")[0] for problem in found] == refused
    assert not [problem for problem in found if "\n" in problem.message]
    assert rows_of(place) == ROWS
    assert sorted(path.name for path in place.folder.rglob("*")) == files


MANY_TIMES = ", ".join(f"doc {name}" for name in "abcdefghijklmnopqrs")
"""3^19 rows."""
ONE_LONG_STEP = "SELECT instr(printf('%.*c', 50000000, 'a'), printf('%.*c', 25000000, 'a') || 'b')"
"""10^15 comparisons between two looks of SQLite's machine at the clock."""
STEPS_FOR_EVER = [
    ("sqlite", COUNTS_FOR_EVER),
    ("sqlite", f"SELECT a.id FROM {MANY_TIMES} WHERE a.id || s.id = 'never'"),
    ("sqlite", ONE_LONG_STEP),
    ("duckdb", COUNTS_FOR_EVER),
    ("postgres", COUNTS_FOR_EVER),
    ("postgres", "SELECT pg_sleep(60)"),
    ("postgres", "SELECT set_config('statement_timeout', '0', true) UNION ALL SELECT pg_sleep(60)::text"),
]


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        pytest.param(kind, sql, id=f"{n}-{kind}", marks=[pytest.mark.slow] if n == 1 else [])
        for n, (kind, sql) in enumerate(STEPS_FOR_EVER)
    ],
)
def test_what_does_not_end_is_stopped_in_time_and_the_next_is_asked(
    kind: str, sql: str, request: pytest.FixtureRequest
) -> None:
    place: Place = request.getfixturevalue(f"{kind}_place")
    begun = time.monotonic()
    found = problems(asking(place, sql, "SELECT id FROM nowhere"), place, timeout_s=TIMEOUT_S)
    assert time.monotonic() - begun < TIMEOUT_S + 5
    assert found[0].message == "query 'q1', database 'corpus': stopped after 0.5 s"
    assert "nowhere" in found[1].message


def test_rows_without_end_are_more_than_are_allowed(place: Place) -> None:
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    (found,) = problems(asking(place, rows), place, max_rows=50)
    assert found.message == "query 'q1', database 'corpus': more than 50 rows"
    assert ids(ask(asking(place, f"{rows} LIMIT 50"), place.folder, max_rows=50))[0] is not None


@pytest.mark.parametrize("value", ["NULL", "''"])
def test_a_row_without_an_id_is_a_problem(place: Place, value: str) -> None:
    (found,) = problems(asking(place, f"SELECT id FROM doc UNION ALL SELECT {value}"), place)
    assert found.message == ("query 'q1', database 'corpus': 1 of 4 rows have no document id in the first column")


def test_every_problem_is_said_at_once_with_its_query_and_its_database(sqlite_place: Place) -> None:
    """One query to each: a table nobody has, a database nobody named, one with no file, a place that is none."""
    targets: dict[str, tuple[Target, ...]] = {
        "q1": (Predicate("SELECT id FROM nowhere"), Predicate("SELECT id FROM doc")),
        "q2": (Predicate("SELECT id FROM doc", database="corpsu"),),
        "q3": (Predicate("SELECT id FROM doc", database="gone"),),
        "q4": (Predicate("SELECT id FROM doc", database="odd"),),
        "q5": (Predicate("SELECT id FROM nowhere"),),
    }
    databases = {"corpus": "sqlite:corpus.db", "gone": "duckdb:gone.duckdb", "odd": "postgresql://me:secret@host/db"}
    testset = TestSet("t", tuple(Query(name) for name in targets), targets=targets, databases=databases)
    found = problems(testset, sqlite_place)
    assert [(problem.message, problem.hint) for problem in found] == [
        ("queries 'q1', 'q5', database 'corpus': no such table: nowhere", None),
        ("query 'q2': unknown database 'corpsu'", "did you mean corpus?"),
        ("database 'gone', queried by query 'q3': file not found: gone.duckdb", None),
        ("database 'odd', queried by query 'q4': its location is not valid", None),
    ]
    assert found[3].expected == "sqlite:PATH, duckdb:PATH or env:NAME of a variable that contains a PostgreSQL address"


def test_a_query_of_which_nothing_is_left_is_a_problem_and_one_of_several_predicates_a_note(place: Place) -> None:
    nothing, something = "SELECT id FROM doc WHERE kind = 'x'", "SELECT id FROM doc WHERE kind = 'guide'"
    (found,) = problems(asking(place, nothing, something), place)
    assert found.message == "query 'q1': the database returns no document, so no document would be relevant"
    both = asking(place, something)
    both = TestSet("t", both.queries, targets={"q1": (Predicate(nothing), Pattern("^a"))}, databases=both.databases)
    asked = ask(both, place.folder)
    assert ids(asked) == [()]
    assert str(asked.notes[1]) == "A predicate of query 'q1' returns no document; the query has other predicates too."


def test_a_test_set_without_predicates_stays_as_it_is(tmp_path: Path) -> None:
    testset = TestSet("t", (Query("q1"),), {"q1": {"a": 1}}, databases={"corpus": "sqlite:never-made.db"})
    assert ask(testset, tmp_path) is testset


def test_a_place_given_beside_the_test_set_comes_first(sqlite_place: Place, tmp_path: Path) -> None:
    testset = asking(Place("sqlite", "sqlite:elsewhere.db", tmp_path), "SELECT id FROM doc")
    assert ids(ask(testset, tmp_path, places={"corpus": sqlite_place.where})) == [("a", "b", "c")]
    with pytest.raises(TestSetError, match="unknown database 'corpse'"):
        ask(testset, tmp_path, places={"corpse": sqlite_place.where, "corpus": sqlite_place.where})


def test_a_file_that_is_no_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "corpus.db").write_text("no database at all " * 100)
    place = Place("sqlite", "sqlite:corpus.db", tmp_path)
    assert "file is not a database" in problems(asking(place, "SELECT id FROM doc"), place)[0].message
    place = Place("duckdb", "duckdb:corpus.db", tmp_path)
    assert "not a valid DuckDB database file" in problems(asking(place, "SELECT id FROM doc"), place)[0].message


def test_full_text_tables_of_sqlite_can_be_asked(sqlite_place: Place) -> None:
    asked = ask(asking(sqlite_place, "SELECT id FROM words WHERE words MATCH 'plain'"), sqlite_place.folder)
    assert ids(asked) == [("w",)]


def test_a_binary_id_is_a_problem(sqlite_place: Place) -> None:
    (found,) = problems(asking(sqlite_place, "SELECT x'00ff'"), sqlite_place)
    assert "1 of 1 rows have no document id" in found.message


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_characters_that_no_statement_may_hold_are_refused(place: Place, character: str) -> None:
    (found,) = problems(asking(place, f"SELECT id FROM doc -- {character}"), place)
    assert "it contains a character that is not allowed in a statement" in found.message


@pytest.mark.parametrize("role", ["owner", "filer"])
def test_a_role_that_may_touch_the_files_of_the_server_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """A read-only transaction would not keep it from them: pg_read_file, COPY TO PROGRAM."""
    monkeypatch.setenv("CORPUS", server.address(role))
    place = Place("postgres", "env:CORPUS", tmp_path)
    (found,) = problems(asking(place, "SELECT id FROM doc"), place)
    assert "the role of $CORPUS can access the server's files" in found.message
    assert found.hint is not None
    assert "pg_read_all_data" in found.hint


def test_the_role_of_the_hint_is_enough(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUS", server.address("reader"))
    place = Place("postgres", "env:CORPUS", tmp_path)
    assert ids(ask(asking(place, "SELECT id FROM doc"), tmp_path)) == [("a", "b", "c")]


ADDRESSES = {
    "nobody listens": "postgresql://sesame:opensecret@127.0.0.1:1/treasure",
    "nobody listens at what a name stands for": "postgresql://sesame:opensecret@localhost:1/treasure",
    "several hosts of which none is known": "postgresql://opensecret@first.invalid,treasure.invalid/corpus",
    "bytes that are no text": "postgresql://sesame:open\udcffsecret@host/treasure",
    "no such role": "postgresql://sesame:opensecret@/treasure?host={folder}",
    "no such database": "postgresql://reader:opensecret@/treasure?host={folder}",
    "not an address": "postgresql://sesame:opensecret@[::1/treasure",
    "an unknown parameter": "postgresql://sesame@host/treasure?opensecret=1",
    "another scheme": "mysql://sesame:opensecret@host/treasure",
    "empty": "",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_no_part_of_an_address_is_in_a_message(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("CORPUS", address.format(folder=server.folder))
    place = Place("postgres", "env:CORPUS", tmp_path)
    (found,) = problems(asking(place, "SELECT id FROM doc"), place)
    said = str(found)
    assert "CORPUS" in said
    assert [
        part for part in ("sesame", "opensecret", "treasure", str(server.folder), "127.0.0.1") if part in said
    ] == []


def test_an_address_where_a_name_should_stand_is_not_said_again(tmp_path: Path) -> None:
    place = Place("postgres", "env:postgresql://sesame:opensecret@host/treasure", tmp_path)
    (found,) = problems(asking(place, "SELECT 1"), place)
    assert found.message == "database 'corpus', queried by query 'q1': its location is not valid"
    assert "opensecret" not in str(found)


def test_a_database_that_is_not_asked_loads_no_driver() -> None:
    code = "import sys, cranfield.systems.predicates.databases; print(sorted({'sqlite3', 'duckdb', 'psycopg'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


TOO_LONG = {
    "sqlite": "SELECT hex(zeroblob(30000000)) UNION ALL SELECT hex(zeroblob(30000000)) || 'x'",
    "duckdb": "SELECT repeat('x', 60000000) UNION ALL SELECT repeat('y', 60000000)",
    "postgres": "SELECT repeat('x', 60000000) UNION ALL SELECT repeat('y', 60000000)",
}


@pytest.mark.parametrize(
    "kind", ["sqlite", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("duckdb", "postgres"))]
)
def test_ids_without_end_are_not_taken_in(kind: str, request: pytest.FixtureRequest) -> None:
    """Few rows, but 120 million characters."""
    place: Place = request.getfixturevalue(f"{kind}_place")
    (found,) = problems(asking(place, TOO_LONG[kind]), place)
    assert "ids of more than 100,000,000 characters together" in found.message


def test_ids_of_a_server_have_a_bound(postgres_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_only, "MAX_TEXT", 1_000)
    rows = "SELECT repeat('x', 600) UNION ALL SELECT repeat('y', 600)"
    (found,) = problems(asking(postgres_place, rows), postgres_place)
    assert "ids of more than 1,000 characters together" in found.message


def test_a_connection_that_a_statement_ended_is_made_again(postgres_place: Place) -> None:
    ends_itself = "SELECT pg_terminate_backend(pg_backend_pid())::text"
    (found,) = problems(asking(postgres_place, ends_itself, "SELECT id FROM doc"), postgres_place)
    assert found.message.startswith("query 'q1'")


def silenced(server: Server) -> tuple[socket.socket, int]:
    """A way to the server that passes on nothing more once a cursor is asked for."""
    door = socket.create_server(("127.0.0.1", 0))

    def pass_on(one: socket.socket, other: socket.socket) -> None:
        silent = False
        with suppress(OSError), one, other:
            while data := one.recv(65536):
                silent = silent or b"DECLARE" in data
                if not silent:
                    other.sendall(data)
            for end in (one, other):  # whoever reads the other way is to stop too
                end.shutdown(socket.SHUT_RDWR)

    def stand_between() -> None:
        with suppress(OSError):
            while True:
                here, _ = door.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(str(server.folder / ".s.PGSQL.5432"))
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=stand_between, daemon=True).start()
    return door, door.getsockname()[1]


def test_a_server_that_falls_silent_is_not_waited_for(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own clock would have ended the statement, had it heard of it."""
    door, port = silenced(server)
    with closing(door):
        monkeypatch.setenv("CORPUS", f"postgresql://writer@127.0.0.1:{port}/corpus?sslmode=disable")
        place = Place("postgres", "env:CORPUS", tmp_path)
        started = time.monotonic()
        (found,) = problems(asking(place, "SELECT id FROM doc"), place, timeout_s=TIMEOUT_S)
        assert time.monotonic() - started < TIMEOUT_S + 1.5
        assert f"stopped after {TIMEOUT_S:g} s" in found.message


def test_servers_that_accept_and_say_nothing_are_not_waited_for_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        hosts = ",".join([f"127.0.0.1:{mute.getsockname()[1]}"] * 4)
        monkeypatch.setenv("CORPUS", f"postgresql://reader@{hosts}/corpus?sslmode=disable")
        place = Place("postgres", "env:CORPUS", tmp_path)
        started = time.monotonic()
        (found,) = problems(asking(place, "SELECT id FROM doc"), place, timeout_s=0.1)
        assert time.monotonic() - started < 1.5
        assert found.message.endswith("the database at $CORPUS cannot be reached: no answer in 0.1 s")


def test_a_file_that_does_not_open_is_named_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "junk.duckdb").write_bytes(b"junk" * 5000)
    place = Place("duckdb", "duckdb:junk.duckdb", tmp_path)
    (found,) = problems(asking(place, "SELECT 1"), place)
    assert '"junk.duckdb"' in found.message
    assert str(tmp_path) not in str(found)


def test_a_name_that_no_file_can_have_is_a_problem(tmp_path: Path) -> None:
    place = Place("sqlite", "sqlite:" + "a" * 5000, tmp_path)
    (found,) = problems(asking(place, "SELECT 1"), place)
    assert found.message.endswith("a: file name too long")
    assert len(found.message) < 400


def test_the_reading_process_ends_with_the_one_that_started_it(sqlite_place: Place) -> None:
    """Killed while a single step, which looks at no clock, goes on for minutes."""
    endless = "SELECT instr(zeroblob(99000000) || 'a', zeroblob(40000000) || 'b')"
    code = (
        "import sys\n"
        "from cranfield.systems.predicates.read_only import StatementLimits, _Reader\n"
        "reader = _Reader('sqlite', sys.argv[1], StatementLimits(600, 10))\n"
        "reader.start()\n"
        "print(reader._process.pid, flush=True)\n"
        "reader.ask(sys.argv[2])\n"
    )
    uri = (sqlite_place.folder / "corpus.db").as_uri()
    parent = subprocess.Popen([sys.executable, "-c", code, uri, endless], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 15
    while runs(child) and time.monotonic() < until:
        time.sleep(0.1)
    assert not runs(child)


def runs(process: int) -> bool:
    """Whether a process does anything; one that ended and was not asked about does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in {"", "Z"}


def test_a_file_of_another_database_is_told_as_none(tmp_path):
    sqlite3.connect(tmp_path / "corpus.db").execute("CREATE TABLE t (id)").connection.commit()
    testset = TestSet("t", (Query("q"),), targets={"q": (Predicate("SELECT id FROM t"),)})
    with pytest.raises(TestSetError, match="an SQLite database, not a DuckDB file"):
        ask(testset, tmp_path, places={"corpus": "duckdb:corpus.db"})

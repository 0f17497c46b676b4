"""`cranfield people` and `cranfield serve`: passwords never on the command line, the last administrator stays."""

from __future__ import annotations

from contextlib import closing

import pytest
from typer.testing import CliRunner

from cranfield.books.database.engine import Database, database_url
from cranfield.books.store.store import open_store
from cranfield.cli.main import command_line


@pytest.fixture
def run(tmp_path, monkeypatch):
    from argon2 import PasswordHasher

    from cranfield.workbench.server import passwords

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("CRANFIELD_DB", raising=False)
    monkeypatch.setattr(passwords, "hasher", lambda: PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))

    def call(*words: str, stdin: str = ""):
        group = ("people",) if words[0] == "people" else ("serve",)
        done = CliRunner().invoke(command_line(*group), list(words), input=stdin, prog_name="cranfield")
        return done.exit_code, done.stdout, done.stderr

    return call


def test_an_account_from_its_first_to_its_last_day(run, tmp_path) -> None:
    add = ("people", "add", "alex", "--role", "admin", "--password-stdin")
    assert run(*add, stdin="a long sentence\n") == (0, "Added alex, admin.\n", "")
    assert run("people", "add", "bo", "--password-stdin", stdin="another sentence\n")[0] == 0
    assert run("people", "list")[1] == "alex  admin\nbo    rater\n"
    assert run("people", "role", "bo", "lead") == (0, "bo is lead.\n", "")
    assert run("people", "password", "bo", "--password-stdin", stdin="a third sentence\n")[0] == 0
    code, token, _ = run("people", "token", "bo", "--scope", "manage", "--days", "1")
    store = open_store(tmp_path / "cranfield-books.db")
    assert (code, store.people.token(token.strip()).scope) == (0, "manage")
    assert store.people.get("bo").password_hash.startswith("$argon2id$")
    assert run("people", "deactivate", "bo") == (0, "bo may not sign in.\n", "")
    assert run("people", "list")[1] == "alex  admin\nbo    lead     may not sign in\n"
    assert store.people.token(token.strip()) is None
    assert run("people", "activate", "bo")[0] == 0
    store.close()


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        (("add", "x", "--role", "boss", "--password-stdin"), "a long sentence\n", "unknown role"),
        (("add", "x", "--password-stdin"), "short\n", "the password has 5 characters"),
        (("add", "x"), "", "add --password-stdin"),
        (("add", "alex", "--password-stdin"), "a long sentence\n", "alex"),
        (("role", "alex", "rater"), "", "the last administrator"),
        (("deactivate", "alex"), "", "the last administrator"),
        (("token", "nobody"), "", "nobody"),
        (("token", "alex", "--scope", "everything"), "", "everything"),
    ],
)
def test_mistakes_are_messages(run, words, stdin: str, expected: str) -> None:
    run("people", "add", "alex", "--role", "admin", "--password-stdin", stdin="a long sentence\n")
    code, out, error = run("people", *words, stdin=stdin)
    assert (code, out) == (2, "")
    assert expected in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--host", "0.0.0.0"), "or --accounts"),
        (("--accounts", "--host", "0.0.0.0"), "add --url https://NAME"),
        (("--accounts",), "cranfield people add NAME --role admin"),
        (("--url", "judge.example.org"), "other machines can reach"),
    ],
)
def test_the_server_does_not_start_open_to_others(run, words, expected: str) -> None:
    run("people", "add", "vic", "--role", "viewer", "--password-stdin", stdin="a long sentence\n")
    code, out, error = run("serve", *words)
    assert (code, out) == (2, "")
    assert expected in error


def test_the_server_makes_its_database_and_says_so(run, tmp_path, monkeypatch) -> None:
    from cranfield.workbench.server import run as running

    monkeypatch.setattr(running, "run_server", lambda *_, **__: None)
    assert run("serve") == (0, "", "cranfield-books.db is a new database\n")
    assert run("serve") == (0, "", "")
    with closing(Database(database_url(tmp_path / "cranfield-books.db"))) as database, database.write() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    code, out, error = run("serve")
    assert (code, out) == (2, "")
    assert "the database has a different schema version" in error
    assert "run `cranfield db upgrade`" in error

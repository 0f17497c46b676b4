"""What an operator sees of the server: its log, its probes, its end."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shutil
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from cranfield.workbench.config import Workbench
from cranfield.workbench.server import health
from cranfield.workbench.server.health import Readiness, database_problem
from cranfield.workbench.server.http_errors import NO_ANSWER
from cranfield.workbench.server.logs import JsonForm, TextForm, configure_logs, event
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.run import bind
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.worker import Worker, working

SECRET = "nda-94-fungus"
ELSEWHERE = {"host": "10.1.2.3:8734"}


@pytest.fixture
def lines(team) -> Iterator[list[dict]]:
    """What is logged, as JSON; read when it is looked at."""

    class Lines(list):
        def __iter__(self):
            return iter([json.loads(line) for line in stream.getvalue().splitlines()])

    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonForm(with_messages=False))
    log = logging.getLogger("cranfield")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield Lines()
    log.removeHandler(handler)
    log.setLevel(before)


def test_a_request_is_logged_by_its_template_with_the_account(team, lines) -> None:
    client = team.browser("lee")
    answer = client.get(f"/books/shop?q={SECRET}", headers={"x-request-id": "load-balancer/7"})
    (line,) = [each for each in lines if each["event"] == "request"]
    assert answer.headers["x-request-id"] == line["request"] == "load-balancer/7"
    assert line["route"] == "/books/{book}"
    assert (line["method"], line["status"], line["level"]) == ("GET", 200, "info")
    assert line["account"] == team.store.people.get("lee").id
    assert line["ms"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "line\u2028break", '"}', "é"])
def test_a_request_id_that_is_not_well_formed_is_replaced(team, given: str) -> None:
    answer = team.new().get("/sign-in", headers={"x-request-id": given.encode()})
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])


def test_no_line_has_a_secret(team, lines) -> None:
    client = team.new()
    client.get(f"/join/{SECRET}")
    client.get(f"/no-such-page/{SECRET}?q={SECRET}", headers={"user-agent": SECRET, "referer": SECRET})
    client.get("/books/shop", headers={"authorization": f"Bearer {SECRET}"})
    client.post("/sign-in", data={"name": SECRET, "password": SECRET})
    client.cookies.set("session", SECRET)
    client.get("/account")
    text = json.dumps(list(lines))
    assert len(list(lines)) == 5
    assert SECRET not in text
    assert [each["route"] for each in lines][:2] == ["/join/{raw}", None]


def test_an_unexpected_error_is_logged_without_its_message(team, lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(team.store.books, "all", fail)
    answer = team.browser("lee").get("/")
    assert answer.status_code == 500
    (line,) = [each for each in lines if "error" in each]
    assert line["event"].removeprefix("error ") in answer.text
    assert line["error"] == "ValueError"
    assert "in fail" in line["traceback"]
    assert line["request"] == answer.headers["x-request-id"]
    assert SECRET not in json.dumps(list(lines))


def test_statements_of_the_database_hide_their_parameters(team) -> None:
    with team.store.database.read() as session, pytest.raises(OperationalError) as caught:
        session.connection().exec_driver_sql("SELECT nosuch(?)", (SECRET,))
    assert SECRET not in str(caught.value)


def test_text_form_is_one_line_whatever_a_field_has() -> None:
    record = logging.LogRecord("cranfield", logging.INFO, "", 0, "request", None, None)
    record.fields = {"method": "GET\nrequest \x1b[31m"}
    assert TextForm(with_messages=False).format(record).endswith(r"info request method=GET\nrequest \x1b[31m")


def test_a_log_that_is_no_terminal_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    root, ours = logging.getLogger(), logging.getLogger("cranfield")
    before = root.handlers, root.level, ours.level
    try:
        configure_logs("auto")
        event(ours, "job done", job=7)
        logging.getLogger("httpx2").info("GET https://me:secret@example.org")
        configure_logs("quiet")
        event(ours, "job done", job=8)
    finally:
        root.handlers, root.level = before[:2]
        ours.setLevel(before[2])
        root.setLevel(before[1])
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["job"]) == ("job done", 7)


def test_probes_answer_under_every_name_without_an_account(team, lines) -> None:
    client = team.new()
    for path in ("/healthz", "/readyz"):
        answer = client.get(path, headers=ELSEWHERE)
        assert (answer.status_code, answer.json()) == (200, {"ok": True, "problems": []})
        assert answer.headers["cache-control"] == "no-store"
        assert client.post(path, headers=ELSEWHERE).status_code == 405
    assert client.get("/sign-in", headers=ELSEWHERE).status_code == 421
    assert not [line for line in lines if line["event"] == "request" and line["status"] == 200]


@pytest.fixture
def probed(team, monkeypatch: pytest.MonkeyPatch):
    """The answer of `/readyz`, which looks each time."""
    monkeypatch.setattr(health, "SECONDS_KEPT", 0)
    readiness = team.app.state.readiness
    yield lambda: team.new().get("/readyz", headers=ELSEWHERE)
    readiness.draining, readiness._kept = False, (float("-inf"), "")


def test_not_ready_when_the_database_is_gone(team, probed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise OperationalError("SELECT", {}, Exception(f"host {SECRET} is gone"))

    monkeypatch.setattr(health, "stored_revision", fail)
    answer = probed()
    assert answer.status_code == 503
    assert answer.json() == {"ok": False, "problems": ["the database does not answer"]}
    assert team.new().get("/healthz").status_code == 200


def test_not_ready_when_another_version_has_upgraded_the_schema(team, probed) -> None:
    with team.store.database.write() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert probed().json()["problems"] == ["the database schema has a different version"]
    assert database_problem(team.store.database)


def test_not_ready_while_nothing_can_be_written(team, probed, file_limit) -> None:
    """Each time the database can be read; once it can be written again the server is ready again."""
    database = team.store.database
    cannot = {"ok": False, "problems": ["the database cannot be written"]}
    assert probed().status_code == 200
    with file_limit(1):  # a full disk
        assert probed().json() == cannot
    assert probed().status_code == 200
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    assert probed().json() == cannot
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 0")
    assert probed().status_code == 200
    path = database.path
    path.rename(path.with_suffix(".moved"))
    assert probed().json()["problems"] == ["the database file was moved or deleted"]
    shutil.copy(path.with_suffix(".moved"), path)
    assert probed().status_code == 503
    path.with_suffix(".moved").replace(path)
    assert probed().status_code == 200


def test_not_ready_while_another_program_has_the_database(team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SECONDS_KEPT", 0)

    async def look() -> list[tuple[str, ...]]:
        readiness = Readiness(team.app, seconds=0.2)
        with closing(sqlite3.connect(team.store.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            found = [await readiness.problems()]
            other.execute("ROLLBACK")
        await readiness._look
        return [*found, await readiness.problems()]

    assert asyncio.run(look()) == [("the database does not answer",), ()]


@pytest.mark.slow
def test_not_ready_while_postgresql_can_only_be_read(postgres_store) -> None:
    database = postgres_store.database
    with database.engine.begin() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    database.close()
    assert database_problem(database) == "the database cannot be written"
    with pytest.raises(NO_ANSWER):  # a page that writes is 503 too
        postgres_store.people.add("ann")


def test_a_look_writes_and_probes_in_between_do_not(team, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(health, "check_write", lambda *_: written.append(1))
    team.app.state.readiness._kept = (float("-inf"), "")
    for _ in range(20):
        team.new().get("/readyz")
    assert written == [1]


def test_not_ready_while_it_stops(team, probed) -> None:
    team.app.state.readiness.draining = True
    assert probed().json()["problems"] == ["the server is stopping"]


def test_not_ready_when_a_worker_has_died(team, probed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs would wait for ever in a server that answers requests."""

    def die(*_: object) -> None:
        raise SystemExit

    service = open_service(team.store, None, Workbench.model_validate({"jobs": {"folder": str(tmp_path)}}))
    monkeypatch.setattr(team.app.state, "service", service)
    worker = Worker(service, n=1)
    with monkeypatch.context() as broken:
        broken.setattr(service.jobs, "claim", die)
        broken.setattr(threading, "excepthook", lambda _: None)
        worker.start()
        for thread in worker._threads:
            thread.join()
    answer = probed()
    assert (answer.status_code, answer.json()["problems"]) == (503, ["cranfield-job-1 has ended"])
    assert team.new().get("/healthz").status_code == 200
    with working(service):
        assert probed().json() == {"ok": True, "problems": []}


def test_a_further_name_of_the_server_is_accepted(team) -> None:
    options = ServerOptions(port=8000, accounts=True, secret=b"k" * 32, allow_hosts=("10.1.2.3", "in.example:9"))
    assert options.knows("10.1.2.3:8734")
    assert options.knows("in.example:9")
    assert not options.knows("in.example:10")
    assert not options.knows("evil.example")
    assert "http://10.1.2.3" not in options.origins


def test_small_answers_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY only on sockets whose protocol is named: without it an answer waits for the client's ACK."""
    with bind("127.0.0.1", free_port()) as sock:
        assert sock.proto == socket.IPPROTO_TCP


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

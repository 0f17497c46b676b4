"""A server that gets more connections and requests than it can take: it answers the others, and its log stays short."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import StringIO

import httpx2
import pytest
import uvicorn
from starlette.testclient import TestClient

from cranfield.workbench.server import logs
from cranfield.workbench.server.connections import ACCEPTED_AT_ONCE, Room, protocol_of
from cranfield.workbench.server.logs import BoundedHandler, JsonForm, event
from cranfield.workbench.server.run import bind

LIMIT = 10
HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"


async def echo(scope, receive, send) -> None:
    """Read the body, then answer."""
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def served(app, limit: int) -> Iterator[int]:
    """Serve an application with a limit of connections; the port."""
    with bind("127.0.0.1", 0) as sock:
        sock.listen(128)
        config = uvicorn.Config(
            app, http=protocol_of(limit), backlog=ACCEPTED_AT_ONCE, log_config=None, lifespan="off", access_log=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


@pytest.mark.parametrize("sent", [b"", HALF, BODY], ids=["nothing", "half a head", "half a body"])
def test_connections_that_do_nothing_keep_nobody_out(sent: bytes) -> None:
    with served(echo, LIMIT) as port, ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(5 * LIMIT)]
        for each in idle:
            each.sendall(sent)
        for _ in range(3):
            assert httpx2.get(f"http://127.0.0.1:{port}/", timeout=10).text == "ok"
        closed = [each for each in idle if is_closed(each)]
        assert len(closed) >= 4 * LIMIT


EXPECTING = BODY.removesuffix(b"\r\nhalf") + b"Expect: 100-continue\r\n\r\n"


@pytest.mark.parametrize("sent", [BODY, EXPECTING], ids=["half a body", "expects to continue"])
def test_requests_whose_body_has_not_arrived_are_not_in_work(sent: bytes) -> None:
    with served(Room(echo, 1), LIMIT) as port, ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(3)]
        for each in waiting:
            each.settimeout(10)
            each.sendall(sent)
        if sent is EXPECTING:
            assert [each.recv(100).split()[1] for each in waiting] == [b"100"] * 3
        for _ in range(3):
            assert httpx2.get(f"http://127.0.0.1:{port}/", timeout=10).status_code == 200
        waiting[0].sendall(b"x" * 100)
        assert waiting[0].recv(100).split()[1] == b"200"


def test_requests_whose_answer_is_not_read_are_not_in_work() -> None:
    async def much(scope, receive, send) -> None:
        n = 64_000_000 if scope["path"] == "/much" else 2
        headers = [(b"content-length", b"%d" % n)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * (n - 1), "more_body": True})
        await send({"type": "http.response.body", "body": b"x"})

    with served(Room(much, 1), LIMIT) as port, socket.create_connection(("127.0.0.1", port)) as deaf:
        deaf.sendall(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        assert deaf.recv(1)
        assert httpx2.get(f"http://127.0.0.1:{port}/", timeout=10).status_code == 200


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/sign-in", "application/x-www-form-urlencoded"),
        ("/testsets/upload", "multipart/form-data; boundary=b"),
        ("/v1/testsets", "multipart/form-data; boundary=b"),
        ("/v1/jobs/7/cancel", "application/json"),
    ],
)
def test_a_client_that_leaves_before_its_body_is_complete_is_no_failure(
    bench, path: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = bench.team.browser("lee")
    cookie, csrf = client.cookies, bench.team.csrf(client)
    messages = iter([{"type": "http.request", "body": b"--b\r\n", "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    async def send(message) -> None: ...

    headers = {"content-type": kind, "cookie": "; ".join(f"{name}={value}" for name, value in cookie.items())}
    headers |= {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000", "x-csrf-token": csrf}
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    with caplog.at_level(logging.INFO):
        asyncio.run(bench.team.app(scope, receive, send))
    assert [(each.message, each.fields["status"]) for each in caplog.records] == [("request", 400)]


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_requests_beyond_those_in_work_are_refused_in_words() -> None:
    """Both forms: JSON for programs, a sentence for people."""
    began, finish = threading.Event(), threading.Event()

    async def wait(scope, receive, send) -> None:
        began.set()
        await asyncio.to_thread(finish.wait)
        await echo(scope, receive, send)

    room = Room(wait, 1)
    client = TestClient(room)
    first = threading.Thread(target=client.get, args=("/",))
    first.start()
    assert began.wait(10)
    answer = TestClient(room).get("/v1/jobs")
    page = TestClient(room).get("/jobs", headers={"accept": "text/html"})
    finish.set()
    first.join()
    assert (answer.status_code, answer.headers["retry-after"], answer.headers["connection"]) == (503, "2", "close")
    assert answer.json()["error"] == "the server has reached its limit of active requests"
    assert answer.json()["errors"][0]["code"] == "busy"
    assert (page.status_code, page.text) == (
        503,
        "The server has reached its limit of active requests: send the request again in a moment.",
    )
    assert TestClient(room).get("/").text == "ok"


def test_streams_take_at_most_half_of_the_requests(team) -> None:
    """Of all accounts: otherwise streams alone would keep every request out."""
    state = team.app.state
    state.streams[99] = state.most_streams
    try:
        answer = team.browser("lee").get("/books/shop/live")  # ends at once
    finally:
        del state.streams[99]
    assert ": too many streams on this server" in answer.text


@pytest.fixture
def flooded(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[logging.Logger, StringIO]]:
    """A log with a limit of three lines of a kind."""
    monkeypatch.setattr(logs, "MAX_ALIKE", 3)
    stream, log = StringIO(), logging.getLogger("cranfield.flood")
    handler = BoundedHandler(stream)
    handler.setFormatter(JsonForm(with_messages=False))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    yield log, stream
    log.removeHandler(handler)


def test_a_flood_of_lines_is_counted(flooded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind on its own: what is rare is not lost among what is frequent."""
    log, stream = flooded
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    for _ in range(500):
        event(log, "request", route="/jobs", status=200)
        event(log, "request", route="/jobs", status=503)
        log.warning("connection %s is broken", now)
    event(log, "job done", job=7)
    now += logs.WINDOW_S + 1
    event(log, "request", route="/jobs", status=200)
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(found) == 3 * 3 + 1 + 3 + 1
    more = [each for each in found if "more" in each]
    assert {(each["like"], each.get("status"), each["more"]) for each in more} == {
        ("request", 200, 497),
        ("request", 503, 497),
        ("connection %s is broken", None, 497),
    }
    assert more[0]["event"] == "497 more like it in the last 10 seconds"
    assert "job done" in {each["event"] for each in found}


def test_a_flood_of_tracebacks_is_counted_by_its_bytes(flooded, monkeypatch: pytest.MonkeyPatch) -> None:
    log, stream = flooded
    monkeypatch.setattr(logs, "MAX_ALIKE", 1_000)
    monkeypatch.setattr(logs, "MAX_BYTES_ALIKE", 5_000)
    for _ in range(100):
        try:
            json.loads("[")
        except ValueError:
            log.exception("error %s", "é" * 500)
    log.handlers[0].close()
    *written, last = stream.getvalue().splitlines()
    assert 5_000 <= sum(len(each.encode()) for each in written) < 5_000 + len(written[0].encode())
    assert json.loads(last)["more"] == 100 - len(written)


def test_what_was_counted_is_written_when_the_log_is_closed(flooded) -> None:
    log, stream = flooded
    for _ in range(5):
        log.error("no handle is left")
    log.handlers[0].close()
    assert json.loads(stream.getvalue().splitlines()[-1])["more"] == 2

"""A forge that is never silent and never done."""

import socket
from contextlib import suppress
from threading import Event, Thread

import pytest

from cranfield.base.errors import UsageError
from cranfield.gate.forge import api
from cranfield.gate.forge.api import Api, ApiAccess


@pytest.fixture
def dripping():
    """The address of a server that sends a byte every few milliseconds, without end."""
    is_over = Event()
    server = socket.create_server(("127.0.0.1", 0))

    def drip():
        with suppress(OSError):
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
                while not is_over.wait(0.005):
                    connection.sendall(b" ")

    thread = Thread(target=drip)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    is_over.set()
    server.close()
    thread.join()


def test_the_whole_answer_has_a_time_limit(dripping, monkeypatch):
    monkeypatch.setattr(api, "TOTAL_S", 0.1)
    monkeypatch.setattr(api, "ATTEMPTS", 1)
    with (
        Api(ApiAccess("the forge", dripping, {}, {})) as client,
        pytest.raises(UsageError, match=r"no complete response within 0\.1 s"),
    ):
        client.call("GET", "/x")

"""The stream of progress: it says when something was judged, and ends with the server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cranfield.books.store.schema import Action
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest

PROGRAM = """
import sys
from cranfield.books.store.store import open_store
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.run import run_server
path, port = sys.argv[1:]
options = ServerOptions(port=int(port), start_token="t", secret=b"s" * 32)
run_server(open_store(path), options, on_ready=lambda address: print(address, flush=True))
print("ended", flush=True)
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.mark.slow
def test_streams_carry_progress_and_end_with_the_server(filled: Path, tmp_path: Path) -> None:
    import shutil

    import httpx2

    path = tmp_path / "books.db"
    shutil.copy(filled, path)
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = server.stdout.readline().strip()
        assert address == f"http://127.0.0.1:{port}/start?token=t&next=%2F"
        with httpx2.Client(follow_redirects=True, timeout=30) as client:
            client.get(address)
            threads = len(list(Path(f"/proc/{server.pid}/task").iterdir()))
            streams = [
                client.send(client.build_request("GET", f"http://127.0.0.1:{port}/books/shop/live"), stream=True)
                for _ in range(20)
            ]
            lines = [stream.iter_lines() for stream in streams]
            first = [next_event(each) for each in lines]
            assert len(set(first)) == 1
            store = open_store(path)
            book, ann = store.books.get("shop"), store.people.get("ann")
            item = store.reading.items(book.id)[100]
            event = store.log.save(SaveRequest(book.id, item.id, ann.id, Action.GRADE, "k", grade=1.0)).event_id
            store.close()
            assert {next_event(each) for each in lines} == {event}
            assert (
                len(list(Path(f"/proc/{server.pid}/task").iterdir())) < threads + 45
            )  # the pool of threads is bounded
            os.kill(server.pid, signal.SIGINT)
            start = time.monotonic()
            for each in lines:
                for _ in each:
                    pass
            assert server.wait(30) == 0
            assert time.monotonic() - start < 4  # before connections are cut
    finally:
        server.kill()
    out, err = server.communicate()
    assert out == "ended\n"
    assert "Traceback" not in err, err


def next_event(lines) -> int:
    for line in lines:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))["event"]
    raise AssertionError("the stream ended")


def test_the_stream_is_closed_to_raters(team) -> None:
    browser = team.browser("ann")
    before = threading.active_count()
    assert browser.get("/books/shop/live").status_code == 403
    assert threading.active_count() < before + 45

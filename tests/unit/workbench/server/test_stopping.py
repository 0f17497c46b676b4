"""The real process ends in good order on SIGTERM: a job runs, a stream of progress is open, an upload goes on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx2

from cranfield.books.store.schema import Role
from cranfield.books.store.store import open_store
from cranfield.workbench.service.responses import JobState
from cranfield.workbench.service.service import open_service

CONFIG = """\
testset: set.yaml
systems:
  slow: {command: [sh, search.sh, "{query}"], extract: {regex: '\\S+'}, timeout_s: 300}
"""
SET = "cranfield_testset: 1\nname: tiny\nqueries:\n  - {id: q1, text: secret words, judgments: {d1: 1}}\n"
STOP_S = 1


def test_sigterm_puts_the_job_back_and_ends_streams_and_uploads(tmp_path: Path) -> None:
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "set.yaml").write_text(SET)
    (tmp_path / "search.sh").write_text("echo $$ > asked\nsleep 600\n")
    with closing(open_store(tmp_path / "books.db")) as store:
        account = store.people.add("lee", role=Role.ADMIN)
        token = store.people.add_token(account.id, "t", "evaluate", 86_400_000)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "cranfield", "serve", "cranfield.yaml", "--accounts", "--db", "books.db"]
    command += ["--port", str(port), "--stop-seconds", str(STOP_S), "--log", "json"]
    pipe = subprocess.PIPE
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as server:
        try:
            assert server.stdout.readline().startswith("Serving at "), server.stderr.read()
            headers = {"authorization": f"Bearer {token}", "x-request-id": "mine/1"}
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
                given = {"testset": "set", "systems": ["slow"]}
                made = client.post("/v1/evaluate", json=given, headers={"prefer": "respond-async, wait=0"})
                assert made.status_code == 202, made.text
                wait_for(tmp_path / "asked")
                seen: list[str] = []
                reader = threading.Thread(target=read, args=(client, "/v1/jobs/1/events", seen))
                reader.start()
                while not seen:
                    assert reader.is_alive(), "the events of the job have ended"
                    time.sleep(0.02)
                upload = socket.create_connection(("127.0.0.1", port), timeout=60)
                upload.sendall(
                    f"POST /v1/testsets?name=x&q={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                    f"Authorization: Bearer {token}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                    "Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n".encode()
                )
                assert upload.recv(1000).startswith(b"HTTP/1.1 100")  # it is being read
                upload.sendall(b"--b\r\n")
                server.send_signal(signal.SIGTERM)
                log = server.stderr.read()
                assert server.wait(60) == 0, log
                reader.join(60)
                assert not reader.is_alive()
                assert upload.recv(100).startswith(b"HTTP/1.1 503 ")
                upload.close()
        finally:
            server.kill()
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["event"] for line in lines][-1] == "stopped"
    assert "stopping" in [line["event"] for line in lines]
    assert not [line for line in lines if line["level"] == "error"], log
    assert token not in log
    assert "secret words" not in log
    asked = int((tmp_path / "asked").read_text())
    assert not Path(f"/proc/{asked}").exists()
    with closing(open_store(tmp_path / "books.db")) as store:
        assert open_service(store).jobs.get(1).state == JobState.QUEUED


def wait_for(path: Path) -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < until, f"{path} was not made"
        time.sleep(0.02)


def read(client: httpx2.Client, path: str, seen: list[str]) -> None:
    with client.stream("GET", path) as answer:
        for line in answer.iter_lines():
            seen += [line]

"""SIGINT and SIGTERM end a command within a second, wherever it waits; a second one does no harm."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HEARD_S = 1.0
ALLOWED_S = 4.0
"""For a machine with other work; what is never heard takes a minute."""
QUERIES = "cranfield_testset: 1\nname: t\nqueries:\n- {id: q1, text: grid, judgments: {d1: 1}}\n"
READS = "extract: {regex: '(x)'}"
PATHS = "extract: {json: hits, id: id}"
TOOL = "tool: search, arguments: {query: '{query}'}"
SYSTEMS = {
    "command": f"command: [sh, -c, 'trap \"\" INT TERM; touch begun; sleep 60', '{{query}}']\n{READS}",
    "lines": "lines: [sh, -c, 'touch begun; sleep 60']",
    "endless output": "lines: [sh, -c, 'touch begun; while printf x; do :; done']",
    "endless stderr": "lines: [sh, -c, 'touch begun; cat /dev/zero >&2']",
    "mcp": f"mcp: {{command: [sh, -c, 'touch begun; sleep 60'], {TOOL}}}\n{PATHS}",
    "mcp over http": f"mcp: {{url: 'http://127.0.0.1:SILENT/', {TOOL}}}\n{PATHS}",
    "http": f"http: {{url: 'http://127.0.0.1:SILENT/', parameters: {{q: '{{query}}'}}}}\n{PATHS}",
    "tls": f"http: {{url: 'https://127.0.0.1:SILENT/', parameters: {{q: '{{query}}'}}}}\n{PATHS}",
    "retries": f"http: {{url: 'http://127.0.0.1:9/', parameters: {{q: '{{query}}'}}}}\n{PATHS}\nbackoff_s: 30\nretries: 5",
    "name": f"http: {{url: 'http://search.example/', parameters: {{q: '{{query}}'}}}}\n{PATHS}",
    "regex": f"command: [sh, -c, 'touch begun; echo {'a' * 60}b', '{{query}}']\nextract: {{regex: '(a+)+$'}}",
    "preflight": f"command: [sh, -c, 'touch begun; sleep 60', '{{query}}']\n{READS}\npreflight: [{{probe: x}}]",
    "dependency": f"command: [echo, '{{query}}']\n{READS}\ndepends: [{{command: [sh, -c, 'touch begun; sleep 60']}}]",
    "before": f"command: [echo, '{{query}}']\n{READS}\nbefore: [sh, -c, 'trap \"\" INT TERM; touch begun; sleep 60']",
    "serve": f"command: [echo, '{{query}}']\n{READS}\nserve: {{command: [sh, -c, 'touch begun; sleep 60']}}",
    "function": "python: engine:search",
    "async function": "python: engine:search_async",
    "close": "python: engine:Engine\nwith: {}",
}
ENGINE = """
import asyncio, pathlib, time
def search(query, k):
    pathlib.Path("begun").touch(); time.sleep(60)
async def search_async(query, k):
    pathlib.Path("begun").touch(); await asyncio.sleep(60)
class Engine:
    def search(self, query, k): return []
    def close(self):
        pathlib.Path("begun").touch(); time.sleep(60)
"""
HANGING_NAMES = """
import pathlib, socket, time
def hang(*_, **__):
    pathlib.Path("begun").touch(); time.sleep(60)
socket.getaddrinfo = hang
"""


@pytest.fixture
def silent():
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def start(tmp_path):
    started = []

    def _start(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "cranfield", *arguments]
        started.append(subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield _start
    for process in started:
        process.kill()
        process.communicate()


def interrupt(
    process: subprocess.Popen[bytes], signals: tuple[signal.Signals, ...], *, may_be_done: bool = False
) -> int:
    """Send signals, which end the process; its exit status: 0 of one that was about to end, where it may be."""
    began = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    _, errors = process.communicate(timeout=ALLOWED_S)
    took = time.monotonic() - began
    if not (may_be_done and process.returncode == 0 and took < HEARD_S):
        assert process.returncode in {128 + signals[0], -signals[0], 130}, errors
    assert b"internal error" not in errors
    print(f"heard after {took:.2f} s of {HEARD_S:g}")
    return process.returncode


def wait_until(begun: Path | None) -> None:
    """Wait until the call has begun, and a random moment; without a file, until it has begun on most machines."""
    until = time.monotonic() + 20
    while begun is not None and not begun.exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.3) if begun else random.uniform(1, 3))


@pytest.mark.parametrize(
    "signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)], ids=["INT", "TERM", "twice"]
)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_signal_ends_a_collection_wherever_it_waits(tmp_path, monkeypatch, start, silent, system, signals):
    settings = SYSTEMS[system].replace("SILENT", str(silent)) + "\ntimeout_s: 60"
    lines = "\n".join("    " + line for line in settings.splitlines())
    (tmp_path / "cranfield.yaml").write_text(f"testset: set.yaml\nsystems:\n  a:\n{lines}\n")
    (tmp_path / "set.yaml").write_text(QUERIES)
    (tmp_path / "engine.py").write_text(ENGINE)
    if system == "name":
        (tmp_path / "sitecustomize.py").write_text(HANGING_NAMES)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = start("run", "cranfield.yaml")
    wait_until(tmp_path / "begun" if "begun" in settings or system in {"name", "function", "close"} else None)
    interrupt(process, signals)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("wait", ["pattern", "named pipe", "standard input", "large run", "large set"])
def test_a_signal_ends_the_reading_and_scoring_of_files(tmp_path, start, wait, number):
    run = "run.trec"
    (tmp_path / "set.yaml").write_text(QUERIES)
    (tmp_path / run).write_text("q1 Q0 d1 1 1 t\n")
    if wait == "pattern":
        (tmp_path / "set.yaml").write_text(QUERIES.replace("judgments: {d1: 1}", "patterns: [{regex: (a+)+$}]"))
        (tmp_path / run).write_text(f"q1 Q0 {'a' * 60}b 1 1 t\n")
    if wait == "named pipe":
        os.mkfifo(tmp_path / "pipe")
        run = "pipe"
    if wait == "large run":
        (tmp_path / run).write_text("".join(f"q{n // 100} Q0 d{n} 1 {n % 977} t\n" for n in range(3_000_000)))
    if wait == "large set":
        queries = "".join(f"- {{id: q{n}, text: grid, judgments: {{d{n}: 1}}}}\n" for n in range(30_000))
        (tmp_path / "set.yaml").write_text(f"cranfield_testset: 1\nname: t\nqueries:\n{queries}")
    for most in (1.0, 0.7, 0.5, 0.35, 0.25):  # a fast machine may be done when the signal comes: then earlier
        process = start("evaluate", "set.yaml", "-" if wait == "standard input" else run)
        time.sleep(random.uniform(most / 2, most))
        if interrupt(process, (number,), may_be_done=wait.startswith("large")) != 0:
            return
    pytest.fail("the signal was never heard")

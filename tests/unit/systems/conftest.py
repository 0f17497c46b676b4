from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from cranfield.config import system_config
from cranfield.model import Query, TestSet
from cranfield.systems.kinds.command import CommandSystem
from cranfield.systems.kinds.http import HttpSystem

FAST_PYTHON = ["{python}", "-I", "-S"]


@pytest.fixture
def script(tmp_path: Path):
    """Write a Python program for a system to run; gives its file name in tmp_path."""

    def _script(source: str, name: str = "search.py") -> str:
        (tmp_path / name).write_text(source, encoding="utf-8")
        return name

    return _script


@pytest.fixture
def make_system(tmp_path: Path, script):
    """A system whose command is a Python program given as source."""

    def _make(source: str, *arguments: str, name: str = "sut", **config) -> CommandSystem:
        config.setdefault("extract", {"regex": r"docs://\S+"})
        file = script(source, f"{name}.py")
        command = [*FAST_PYTHON, file, *(arguments or ("{query}",))]
        return CommandSystem(name, system_config("sut", {"command": command, **config}), tmp_path)

    return _make


@pytest.fixture
def ask(make_system):
    """Run one query through a Python program given as source."""

    def _ask(source: str, *arguments: str, query: str = "grid", k: int = 10, params=None, **config):
        return make_system(source, *arguments, **config).search(Query("q1", query, params=params or {}), k)

    return _ask


@pytest.fixture
def set_timeout():
    """Change the time limit of a system: long until a server or program has started, short for the call that is to time out."""

    def _set(system, timeout_s: float) -> None:
        system.config = system.config.model_copy(update={"timeout_s": timeout_s})

    return _set


@pytest.fixture
def testset_of():
    """A test set of queries with the given texts, q1 and so on."""

    def _testset(*texts: str) -> TestSet:
        return TestSet("t", tuple(Query(f"q{number}", text) for number, text in enumerate(texts, start=1)))

    return _testset


def is_alive(pid: int) -> bool:
    """True while a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return not Path("/proc").is_dir()


@pytest.fixture
def gone():
    """Wait until a process has ended; True when it has."""

    def _gone(pid: int, within_s: float = 60.0) -> bool:
        until = time.monotonic() + within_s
        while is_alive(pid) and time.monotonic() < until:
            time.sleep(0.02)
        return not is_alive(pid)

    return _gone


@pytest.fixture
def wait_for():
    """Wait until a condition holds; fail the test when it never does."""

    def _wait(condition, within_s: float = 60.0):
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if result := condition():
                return result
            time.sleep(0.01)
        pytest.fail(f"waited {within_s} s for nothing")

    return _wait


class Forks:
    """Python scripts that start fast, because they run in forks of a process that has imported their modules."""

    def __init__(self, folder: Path, *modules: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("fork_server.py")), *modules]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads must not fork
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._folder = folder
        self._statuses: dict[int, int | None] = {}

    def start(self, script: Path, *arguments: str, folder: Path | None = None, **environment: str) -> Forked:
        outputs = [str(self._folder / f"{len(self._statuses)}.{name}") for name in ("out", "err")]
        request = {"script": str(script), "arguments": arguments, "folder": str(folder or script.parent)}
        request |= {"out": outputs[0], "err": outputs[1], "environment": environment}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        known = set(self._statuses)
        while not (new := set(self._statuses) - known):
            self._read()
        return Forked(self, new.pop(), [Path(path) for path in outputs])

    def status(self, pid: int) -> int:
        """Wait for the end of a script. The time limit of the test run is the only one."""
        while (status := self._statuses[pid]) is None:
            self._read()
        return status

    def close(self) -> None:
        with self._server:
            self._server.stdin.close()

    def _read(self) -> None:
        pid, status = json.loads(self._server.stdout.readline())
        self._statuses[pid] = status


class Forked:
    """A script that runs in a fork, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, forks: Forks, pid: int, outputs: list[Path]) -> None:
        self.pid = pid
        self._forks = forks
        self._outputs = outputs

    @property
    def returncode(self) -> int:
        return self.wait()

    def wait(self) -> int:
        return self._forks.status(self.pid)

    def first_line(self) -> str:
        """Wait for the first line of its output."""
        while "\n" not in (text := self._outputs[0].read_text(encoding="utf-8") if self._outputs[0].exists() else ""):
            time.sleep(0.01)
        return text.partition("\n")[0]

    def communicate(self) -> tuple[str, str]:
        self.wait()
        out, err = (path.read_text(encoding="utf-8") for path in self._outputs)
        return out, err

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has ended
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory):
    modules = "asyncio", "cranfield.systems.collect.collection", "cranfield.systems.kinds.line_program"
    started = Forks(tmp_path_factory.mktemp("forks"), *modules)
    yield started
    started.close()


@pytest.fixture(scope="session")
def mcp_forks(tmp_path_factory: pytest.TempPathFactory):
    started = Forks(tmp_path_factory.mktemp("mcp-forks"), "mcp.server.mcpserver", "uvicorn", "starlette.applications")
    yield started
    started.close()


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(scope="session")
def servers():
    """The module of test servers, beside this file."""
    spec = importlib.util.spec_from_file_location("cranfield_test_servers", Path(__file__).with_name("servers.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def serve(servers, monkeypatch: pytest.MonkeyPatch):
    """Start an HTTP server that answers as told; it ends with the test. No proxy of the environment stands between."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:

        def _serve(answer, context=None):
            service = servers.Service(answer, context)
            stack.callback(service.close)
            return service

        yield _serve


@pytest.fixture
def http_system(tmp_path: Path):
    """A system that asks an HTTP service; closed with the test."""
    with ExitStack() as stack:

        def _http_system(url: str, *, http=None, **config) -> HttpSystem:
            config.setdefault("extract", {"json": "hits", "id": "id"})
            request = {"url": url, "parameters": {"q": "{query}"}, **(http or {})}
            written = system_config("sut", {"http": request, "backoff_s": 0.001, **config})
            system = HttpSystem("service", written, tmp_path)
            stack.callback(system.close)
            return system

        yield _http_system


@pytest.fixture(scope="session")
def postgres(servers, postgres_server: str):
    """Address of a PostgreSQL database with the documents of `servers.DOCS` in a table."""
    import psycopg

    with closing(psycopg.connect(postgres_server, autocommit=True)) as connection:
        connection.execute("CREATE DATABASE docs")
    address = postgres_server.replace("/postgres?", "/docs?")
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute("CREATE TABLE docs (id text PRIMARY KEY, title text, body text)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO docs VALUES (%s, %s, %s)", servers.DOCS)
        connection.execute("ALTER TABLE docs ADD COLUMN words tsvector")
        connection.execute("UPDATE docs SET words = to_tsvector('english', title || ' ' || body)")
    return address

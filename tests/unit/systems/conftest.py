import os
import time
from pathlib import Path

import pytest

from cranfield.config import SystemConfig
from cranfield.model import Query, TestSet
from cranfield.systems.command import CommandSystem

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
        return CommandSystem(name, SystemConfig.model_validate({"command": command, **config}), tmp_path)

    return _make


@pytest.fixture
def ask(make_system):
    """Run one query through a Python program given as source."""

    def _ask(source: str, *arguments: str, query: str = "grid", k: int = 10, params=None, **config):
        return make_system(source, *arguments, **config).search(Query("q1", query, params=params or {}), k)

    return _ask


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

    def _gone(pid: int, within_s: float = 5.0) -> bool:
        until = time.monotonic() + within_s
        while is_alive(pid) and time.monotonic() < until:
            time.sleep(0.02)
        return not is_alive(pid)

    return _gone


@pytest.fixture
def wait_for():
    """Wait until a condition holds; fail the test when it never does."""

    def _wait(condition, within_s: float = 20.0):
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if result := condition():
                return result
            time.sleep(0.01)
        pytest.fail(f"waited {within_s} s for nothing")

    return _wait

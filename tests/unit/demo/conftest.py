"""The corpus of the running interpreter and one built demo, made once: reading the library takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cranfield.demo.build import DemoFiles, build_demo
from cranfield.demo.corpus import build_corpus
from cranfield.demo.entity import Corpus

Search = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return build_corpus()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoFiles:
    return build_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def run_search(demo: DemoFiles) -> Search:
    """Call the copied script the way the config does, from the demo's folder."""

    def run(*arguments: str | bytes, database: str = "plain.db") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-I", "-S", "search.py", "--db", database, *arguments]
        return subprocess.run(command, cwd=demo.folder, capture_output=True, timeout=30)

    return run


@pytest.fixture(scope="session")
def hits(run_search: Search) -> Callable[..., list[dict[str, Any]]]:
    """The results of a query that must be answered."""

    def ask(query: str | bytes, database: str = "plain.db", limit: int = 10) -> list[dict[str, Any]]:
        done = run_search("--limit", str(limit), "--", query, database=database)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        return json.loads(done.stdout)["results"]

    return ask


@pytest.fixture(scope="session")
def library() -> Path:
    return Path(sysconfig.get_path("stdlib"))

"""The corpus of the running interpreter and one built demo, made once: reading the library takes seconds."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cranfield.app.demo.build import DemoFiles
from cranfield.app.demo.entity import Corpus

Search = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def built(demo_before_its_run: Path) -> tuple[Corpus, DemoFiles]:
    """The corpus, and a demo built from it; one pass over the library for all processes of a test run."""
    made: tuple[Corpus, DemoFiles] = pickle.loads((demo_before_its_run / "corpus.pickle").read_bytes())
    return made


@pytest.fixture(scope="session")
def corpus(built: tuple[Corpus, DemoFiles]) -> Corpus:
    return built[0]


@pytest.fixture(scope="session")
def built_demo(built: tuple[Corpus, DemoFiles]) -> DemoFiles:
    return built[1]


@pytest.fixture(scope="session")
def run_search(built_demo: DemoFiles) -> Search:
    """Call the copied script the way the config does, from the demo's folder."""

    def run(*arguments: str | bytes, database: str = "plain.db") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-I", "-S", "search.py", "--db", database, *arguments]
        return subprocess.run(command, cwd=built_demo.folder, capture_output=True, timeout=30)

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

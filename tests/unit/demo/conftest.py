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

from cranfield.demo.build import DemoFiles, build_demo
from cranfield.demo.corpus import build_corpus
from cranfield.demo.entity import Corpus

Search = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def built(make_once: Callable[[str, Callable[[Path], object]], Path]) -> tuple[Corpus, DemoFiles]:
    """The corpus, and a demo built from it; one pass over the library for all processes of a test run."""

    def fill(folder: Path) -> None:
        corpus = build_corpus()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cranfield.demo.build.build_corpus", lambda **_: corpus)
            files = build_demo(folder / "demo")
        (folder / "built.pickle").write_bytes(pickle.dumps((corpus, files)))

    return pickle.loads((make_once("unit-demo", fill) / "built.pickle").read_bytes())


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

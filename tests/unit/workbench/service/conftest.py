"""A service, and a project with a system that counts its calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.conftest import HandClock

from cranfield.books.store.store import Store, open_store
from cranfield.workbench.service.service import Service, open_service

TESTSET = """cranfield_testset: 1
name: help
queries:
  - {id: q1, text: open file, strata: {kind: easy}, judgments: {p1: 1}}
  - {id: q2, text: sort list, strata: {kind: easy}, judgments: {p2: 1}}
  - {id: q3, text: parse json, strata: {kind: hard}, judgments: {p3: 1}}
"""
CONFIG = r"""testset: help.yaml
k: 3
measures: [RR, nDCG@10]
gate: {rules: [floor: {measure: RR, at_least: 0.6}, failures: {at_most: 0}]}
candidate: search
baseline: old
systems:
  old: {run: old.run}
  search:
    command: [sh, search.sh, "{query}", "{params.components}"]
    components: [title, body]
    extract: {regex: 'p\d'}
"""
SEARCH = """echo "$1" >> calls.txt
case "$2" in *title*) echo p1;; esac
echo p2
"""
OLD_RUN = "q1 Q0 p1 1 2.0 old\nq2 Q0 p9 1 2.0 old\nq3 Q0 p9 1 2.0 old\nq3 Q0 p3 2 1.0 old\n"


@pytest.fixture
def bare(store: Store) -> Service:
    """A service without a config, on each engine."""
    return open_service(store)


@dataclass
class Project:
    """A folder with a config, and the service of its database."""

    folder: Path
    service: Service
    clock: HandClock

    @property
    def calls(self) -> list[str]:
        """The queries that were sent to `search`, in order."""
        path = self.folder / "calls.txt"
        return path.read_text().splitlines() if path.exists() else []


def write_project(folder: Path) -> Path:
    """Write the files of the project; the config."""
    folder.mkdir(exist_ok=True)
    for name, text in (("help.yaml", TESTSET), ("search.sh", SEARCH), ("old.run", OLD_RUN), ("cranfield.yaml", CONFIG)):
        (folder / name).write_text(text)
    return folder / "cranfield.yaml"


@pytest.fixture
def project(sqlite_address: str, tmp_path: Path, clock: HandClock) -> Iterator[Project]:
    """A project on SQLite."""
    config = write_project(tmp_path / "project")
    store = open_store(sqlite_address, clock=clock)
    yield Project(config.parent, open_service(store, config), clock)
    store.close()

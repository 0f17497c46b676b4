"""Notebooks of examples/ that need packages besides those of `make setup`."""

from pathlib import Path

import pytest
from tests.docs.test_notebooks import WITH_FRAMEWORKS, runs_and_shows_what_it_holds


@pytest.mark.parametrize("name", WITH_FRAMEWORKS, ids=str)
def test_a_notebook_runs_and_shows_what_it_holds(name: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_and_shows_what_it_holds(name, tmp_path, monkeypatch)

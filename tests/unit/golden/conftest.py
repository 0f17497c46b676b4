"""The scripted models of the example, a repository for them, and sources of a few files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree import source_snapshot


@pytest.fixture(scope="session")
def models(load_script: Callable[[Path], ModuleType], checkout: Path) -> Any:
    return load_script(checkout / "examples" / "golden" / "models.py")


@pytest.fixture(scope="module")
def repo(models: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.make_repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def snapshot(repo: Path) -> Snapshot:
    return source_snapshot(repo)


@pytest.fixture(scope="session")
def write_files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mapping[str, str]], Path]:
    """Write files, path to text, into a new folder."""

    def write(files: Mapping[str, str]) -> Path:
        root = tmp_path_factory.mktemp("files")
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return write

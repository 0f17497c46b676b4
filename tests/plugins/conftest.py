"""A package that is really installed for one test: a module and its metadata in a folder on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """`install(group, target, source)`: an entry point `toy` of the group, in the package cranfield_toy 1.0."""
    site = tmp_path / "site"
    info = site / "cranfield_toy-1.0.dist-info"

    def lay(group: str, target: str, source: str) -> None:
        info.mkdir(parents=True)
        (site / "cranfield_toy.py").write_text(source, encoding="utf-8")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cranfield-toy\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\ntoy = cranfield_toy:{target}\n")
        importlib.invalidate_caches()

    sys.path.insert(0, str(site))
    yield lay
    sys.path.remove(str(site))
    sys.modules.pop("cranfield_toy", None)

"""The server that stands in for a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="session")
def model_server(load_script: Callable[[Path], ModuleType], checkout: Path) -> Any:
    """The module with `ModelServer` and `Reply`."""
    return load_script(checkout / "tests" / "program" / "model_server.py")

"""The program that checks files of Prometheus."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def promtool() -> Callable[..., str]:
    """Call promtool; what it prints. It fails the test where it finds something."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: package prometheus")

    def run(*arguments: str | Path, given: str = "") -> str:
        done = subprocess.run(
            ["promtool", *map(str, arguments)], input=given, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run

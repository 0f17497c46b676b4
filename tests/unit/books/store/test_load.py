"""The load simulation of `make bench`, for a few seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--servers", "2"], ["--kill", "1"]], ids=["two servers", "connections killed"])
def test_raters_over_http_lose_and_double_nothing(checkout, more) -> None:
    words = ["bench/judging_load.py", "--raters", "6", "--seconds", "3", "--think", "0.1", *more]
    done = subprocess.run([sys.executable, *words], cwd=checkout, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "lost 0, doubled 0, database is locked 0, other problems 0" in done.stdout

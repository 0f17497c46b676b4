"""Redirect stdout to stderr while user code runs in this process: stdout is for results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TextIO

_lock = Lock()
_under_way: list[TextIO] = []
"""The original stdout, once for each call under way."""


@contextmanager
def redirect_stdout() -> Iterator[None]:
    """Redirect stdout to stderr until the last of the concurrent calls has ended."""
    with _lock:
        _under_way.append(_under_way[0] if _under_way else sys.stdout)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _lock:
            before = _under_way.pop()
            if not _under_way:
                sys.stdout = before

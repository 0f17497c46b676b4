"""Where somebody else's code prints while it runs in this process: on stderr. Stdout belongs to results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TextIO

_lock = Lock()
_under_way: list[TextIO] = []
"""What stdout was before, once for each call that is under way."""


@contextmanager
def redirect_stdout() -> Iterator[None]:
    """As long as any call is in here, what is printed goes to stderr."""
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

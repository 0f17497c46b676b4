"""A program without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_SCRIPT = Path(__file__).with_name("namespace.py")
_TIMEOUT_S = 30


def without_network(argv: Sequence[str], socket: Path | None, port: int) -> tuple[str, ...]:
    """A command that runs another one in a network of its own; with a socket, its address 127.0.0.1:PORT leads there."""
    return (sys.executable, "-I", "-S", str(_SCRIPT), "" if socket is None else str(socket), str(port), *argv)


@cache
def network_problem() -> str:
    """Why this system runs no program without a network; empty where it does."""
    if sys.platform != "linux":
        return "it needs the namespaces of Linux"
    argv = without_network([sys.executable, "-I", "-S", "-c", ""], None, 0)
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_TIMEOUT_S, env=dict(os.environ), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")

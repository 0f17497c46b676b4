"""Run another program with limits of the operating system: `limited.py SECONDS BYTES PROGRAM ARGUMENT...`.

Started as a script, without the packages of this environment. Only the standard library is imported.
"""

from __future__ import annotations

import subprocess
import sys


def limit(seconds: int, n_bytes: int) -> None:
    """Limit CPU seconds, address space, files and core dumps of this process and of those that it starts."""
    try:
        import resource
    except ImportError:  # not on this platform: the caller's time limit remains
        return
    for name, value in (
        ("RLIMIT_CPU", seconds),
        ("RLIMIT_AS", n_bytes),
        ("RLIMIT_FSIZE", 64 * 1024 * 1024),
        ("RLIMIT_CORE", 0),
    ):
        kind = getattr(resource, name, None)
        if kind is not None:
            _, hard = resource.getrlimit(kind)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))


def main() -> int:
    """Exit status of the program; of one that a signal killed, 128 and its number."""
    seconds, n_bytes, *argv = sys.argv[1:]
    limit(int(seconds), int(n_bytes))
    status = subprocess.call(argv)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())

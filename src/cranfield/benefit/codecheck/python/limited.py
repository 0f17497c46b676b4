"""Run another program with limits of the operating system: `limited.py SECONDS BYTES PROCESSES PROGRAM ARGUMENT...`.

Started as a script, without the packages of this environment. Only the standard library is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

INTERVAL_S = 0.1


def limit(seconds: int, n_bytes: int) -> None:
    """Limit CPU seconds, address space, files and core dumps of this process and of those that it starts."""
    if sys.platform == "win32":  # the caller's time limit remains
        return
    import resource

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
            with suppress(OSError, ValueError):  # macOS has no limit of address space
                resource.setrlimit(kind, (most, most))


def watched(argv: Sequence[str], n_bytes: int, n_processes: int) -> int:
    """Status of a program that is killed when it and all that it started are too many, or take too much memory together.

    Limits of the operating system are those of one process, and not of a process of root.
    """
    import subprocess

    with subprocess.Popen(argv) as child:
        while True:
            try:
                return child.wait(INTERVAL_S)
            except subprocess.TimeoutExpired:
                memory = memory_below(child.pid)
            if n_processes and (len(memory) > n_processes or sum(memory) > n_bytes):
                child.kill()
                sys.stderr.write(f"\nmore than {n_processes} processes, or {n_bytes >> 20} MB of memory\n")


def memory_below(pid: int) -> list[int]:
    """Bytes of memory of a process and of each that it started, where the operating system lists them."""
    from pathlib import Path

    children: dict[int, list[int]] = {}
    memory: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(file.parent.name))
        memory[int(file.parent.name)] = 4096 * int(fields[21])
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return [memory.get(each, 0) for each in found]


def main() -> int:
    """Take the program's place, or give its exit status where it is watched: of one that a signal killed, 128 and its number."""
    seconds, n_bytes, n_processes, *argv = sys.argv[1:]
    limit(int(seconds), int(n_bytes))
    if not int(n_processes) and sys.platform != "win32":  # there no program takes the place of another
        os.execvp(argv[0], argv)  # noqa: S606 - without a shell
    status = watched(argv, int(n_bytes), int(n_processes))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())

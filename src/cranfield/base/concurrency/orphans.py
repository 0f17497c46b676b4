"""Ends processes by the mark in their environment, and is the program of the orphan guard.

    python -I -S orphans.py MARK

A stand-alone script. Its input is a pipe whose write end only the process that started it holds: the start (`+12`) and end
(`-12`) of each process group. When the pipe closes, it kills the groups that are left, and every process with the mark.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MARK_NAME = "CRANFIELD_CHILD_OF"
"""Environment variable of every child process: marks, the outermost first, each followed by a blank."""
_TERMINATION_S = 0.2
_MAX_ROUNDS = 50


def end_marked(mark: str) -> None:
    """End every process with a mark, in whatever session and process group: SIGTERM, a moment later SIGKILL.

    Only on Linux, which shows the environment of a process to its owner. A process that has replaced its environment, or
    belongs to another user, is not found.
    """
    if not hasattr(os, "pidfd_open") or not Path("/proc/self/environ").exists():
        return
    if sys.platform == "win32":  # no program is started there
        return
    text = f"{MARK_NAME}=".encode(), f"{mark} ".encode()
    if _signal_marked(text, signal.SIGTERM):
        until = time.monotonic() + _TERMINATION_S
        while time.monotonic() < until and _signal_marked(text, signal.SIGCONT):
            time.sleep(_TERMINATION_S / 10)
        for _ in range(_MAX_ROUNDS):  # it may have started others meanwhile
            if not _signal_marked(text, signal.SIGKILL):
                break
            time.sleep(_TERMINATION_S / 10)


def _signal_marked(text: tuple[bytes, bytes], number: int) -> bool:
    """Send a signal to every marked process, and return whether there was one."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only, and many
    return sum(_signal_if_marked(pid, text, number) for pid in pids if pid != os.getpid()) > 0


def _signal_if_marked(pid: int, text: tuple[bytes, bytes], number: int) -> bool:
    if sys.platform != "linux":
        return False
    name, mark = text
    try:
        handle = os.pidfd_open(pid)  # first: from here on the number is that of no other process
    except OSError:
        return False
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        value = environment.partition(name)[2].partition(b"\0")[0] if name in environment else b""
        if mark not in value:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def main(mark: str, lines: Iterable[str] = sys.stdin) -> None:
    """Guard the process groups of the process that holds the other end of stdin."""
    if sys.platform == "win32":
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in lines:
        if line.endswith("\n"):
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    end_marked(mark)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A browser of the person at this machine, if there is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def can_open(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a window can be expected to open where the person is: not over ssh, not without a display.

    `BROWSER` names a browser in any case.
    """
    if environment.get("BROWSER"):
        return True
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return False
    has_display = bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
    return has_display or sys.platform in {"darwin", "win32"}


def open_address(url: str) -> bool:
    """Open an address in the browser; False where that is not possible, so that it has to be printed."""
    if not can_open():
        return False
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


def open_report(path: Path) -> str | None:
    """Open the file of a report in the browser, and return at once.

    For a command that has written a report: it is one file, which needs no server.

    Args:
        path: of the file.

    Returns:
        None where a browser was opened, else the address of the file, to be printed.
    """
    url = path.resolve().as_uri()
    return None if open_address(url) else url

"""A place for one run of an external agent: a home and a working folder of its own, outside of any repository.

The working folder has the files of the snapshot and no history. What would make the two arms differ, or tell the agent of
the world outside, is left behind: settings of agents, variables of the environment, instructions in folders above.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cranfield.base.errors import UsageError
from cranfield.repo.snapshot import MAX_BYTES, NO_SOURCE, Snapshot, as_text

INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that an agent gets from the environment."""
AGENT_SETTINGS = frozenset({".mcp.json", ".claude", ".codex", ".cursor", ".gemini", ".opencode"})
"""Names in a repository that set up agents: servers, permissions, commands that are run. They are not exported."""
OUTSIDE = (".git", ".hg", "AGENTS.md", "CLAUDE.md", *sorted(AGENT_SETTINGS))
"""Names in a folder above the working folder that agents read."""
MAX_FILES = 200
"""That are taken from a run."""


@dataclass(frozen=True, slots=True)
class RunFolders:
    """Folders of one run."""

    root: Path
    exported: Mapping[str, tuple[int, int]]
    """Path to time and size of each file that was exported."""

    @property
    def home(self) -> Path:
        """HOME of the agent."""
        return self.root / "home"

    @property
    def workdir(self) -> Path:
        """The files of the task."""
        return self.root / "work"

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of an agent, besides what its preset and the plan add."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        temporary = str(self.root / "tmp")  # Codex sets up no sandbox where its folder is in the temporary one
        return {"HOME": str(self.home), "TMPDIR": temporary, "NO_PROXY": "127.0.0.1", "NO_COLOR": "1"} | inherited

    def written(self) -> dict[str, str]:
        """Files that were written or changed in the working folder, by path; links and binary files are not among them."""
        found: dict[str, str] = {}
        for folder, below, names in os.walk(self.workdir):
            below[:] = sorted(set(below) - NO_SOURCE)
            for path in (Path(folder) / name for name in sorted(names)):
                name = path.relative_to(self.workdir).as_posix()
                text = None if path.is_symlink() or self._is_same(name, path) else _text(path)
                if text is not None and len(found) < MAX_FILES:
                    found[name] = text
        return found

    def _is_same(self, name: str, path: Path) -> bool:
        return self.exported.get(name) == _stamp(path)

    def remove(self) -> None:
        """Remove it, folders that an agent made unwritable included."""
        for folder, below, _ in os.walk(self.root):
            for name in below:
                path = Path(folder) / name
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(self.root, ignore_errors=True)


def make_place(snapshot: Snapshot | None, withheld: Container[str] = ()) -> RunFolders:
    """A new place with the files of a snapshot, but those that are withheld.

    Raises:
        UsageError: temporary files lie within a repository, or below instructions of agents.
    """
    root = Path(tempfile.mkdtemp(prefix="cranfield-agent-")).resolve()
    above = [parent / name for parent in root.parents for name in OUTSIDE if (parent / name).exists()]
    if above:
        root.rmdir()
        raise UsageError(
            "external agents would read a file in a parent of their working folder",
            path=str(above[0]),
            expected="temporary files outside any repository",
            hint="set TMPDIR to another folder",
        )
    for name in ("home", "work", "tmp"):
        (root / name).mkdir()
    exported = {} if snapshot is None else _export(snapshot, root / "work", withheld)
    return RunFolders(root, exported)


def _export(snapshot: Snapshot, folder: Path, withheld: Container[str]) -> dict[str, tuple[int, int]]:
    exported = {}
    for name, data in snapshot.each():
        path = Path(name)
        if name in withheld or AGENT_SETTINGS.intersection(path.parts) or path.is_absolute() or ".." in path.parts:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        exported[name] = _stamp(target)
    return exported


def _stamp(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_mtime_ns, found.st_size


def _text(path: Path) -> str | None:
    try:
        return None if path.stat().st_size > MAX_BYTES or not path.is_file() else as_text(path.read_bytes())
    except OSError:
        return None


_SCRIPT = Path(__file__).with_name("namespace.py")
_TIMEOUT_S = 30


def without_network(argv: Sequence[str], socket: Path | None, port: int) -> tuple[str, ...]:
    """A command that runs another one in a network of its own; with a socket, its address 127.0.0.1:PORT leads there."""
    return (sys.executable, "-I", "-S", str(_SCRIPT), "" if socket is None else str(socket), str(port), *argv)


@cache
def network_problem() -> str:
    """Why this system runs no program without a network; empty where it does."""
    if sys.platform != "linux":
        return "it requires Linux namespaces"
    argv = without_network([sys.executable, "-I", "-S", "-c", ""], None, 0)
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_TIMEOUT_S, env=dict(os.environ), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")

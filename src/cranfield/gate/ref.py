"""A file as a git ref has it: what a pull request cannot change.

Git is called by its program, without a shell; a ref is resolved to a commit first, and a path may not lead out of the
repository.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cranfield.errors import UsageError, shorten

GIT_S = 60
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Ref:
    """A commit of the repository that a folder is in."""

    name: str
    """As the user named it: `origin/main`."""
    commit: str
    top: Path
    """Folder of the repository."""

    def shown(self, path: Path) -> str:
        """What messages call a file of it: `origin/main:eval/cranfield.yaml`."""
        return f"{self.name}:{self._inside(path)}"

    def read(self, path: Path, *, hint: str) -> bytes:
        """The bytes that a path has at this commit.

        Args:
            path: in the working tree.
            hint: the next step where the commit has no such file.

        Raises:
            UsageError: it leads out of the repository, or the commit has no such file.
        """
        inside = self._inside(path)
        kind = _git(self.top, "cat-file", "-t", f"{self.commit}:{inside}")
        if kind is None or kind.strip() != b"blob":
            raise UsageError(f"there is no such file in {self.name}", path=inside, hint=hint)
        blob = _git(self.top, "cat-file", "blob", f"{self.commit}:{inside}")
        if blob is None:
            raise UsageError(f"git cannot read it from {self.name}", path=inside)
        return blob

    def _inside(self, path: Path) -> str:
        # Not resolved inside of the repository: a link in the working tree must not choose what is read.
        full = Path(os.path.normpath(path.absolute()))
        above = next((folder for folder in full.parents if Path(os.path.realpath(folder)) == self.top), None)
        if above is None:
            raise UsageError("it is outside of the repository", path=str(path), expected="a file that git keeps")
        return full.relative_to(above).as_posix()


def ref_named(name: str, folder: Path) -> Ref:
    """Look a ref up in the repository that a folder is in.

    Raises:
        UsageError: there is no repository, or no such ref.
    """
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(
            "a baseline of a ref needs a git repository, and git finds none",
            path=str(folder),
            got=f"--baseline-ref {name}",
        )
    found = None
    if name and not name.startswith("-") and name.isprintable() and ":" not in name:
        found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found is None:
        remote, slash, branch = name.partition("/")
        fetch = f"git fetch {remote} {branch}" if slash and branch else "git fetch"
        hint = f"fetch it first: `{fetch}`; actions/checkout fetches one commit alone, unless you say fetch-depth: 0"
        raise UsageError(f"git knows no ref {shorten(name)} here", hint=hint)
    return Ref(name, found.decode().strip(), Path(os.fsdecode(top.rstrip(b"\n"))))


def commit_here(folder: Path) -> str:
    """The commit that a folder stands at; empty outside of a repository."""
    found = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    return "" if found is None else found.decode().strip()


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git says; None where it says no."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=GIT_S, env={**os.environ, **_QUIET})
    except FileNotFoundError:
        raise UsageError("the program git is not installed here") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"git did not answer within {GIT_S} s", path=str(folder)) from None
    return done.stdout if done.returncode == 0 else None

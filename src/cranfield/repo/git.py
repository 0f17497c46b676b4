"""The program git, called without a shell: commands that read its store, with nothing of the repository's own run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NO_GIT = "the program `git` was not found"
NOT_RUN = "the program `git` cannot be run"
GIT_S = 120
_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=")
"""What a repository could set to have programs run when it is read."""
SHORTEST_ID = 7
"""Digits of an abbreviated id of a commit that are compared."""
COMMIT_ID = re.compile(rf"[0-9a-f]{{{SHORTEST_ID},64}}")
MAX_COMMITS = 200
"""Largest number of commits that are listed, the latest first."""


class GitError(Exception):
    """git failed; the message is the one of git."""


def is_outside(root: Path, error: GitError) -> bool:
    """Whether git failed because a folder is in no repository, or because there is no git."""
    return not (root / ".git").exists() and any(
        words in str(error) for words in (NO_GIT, NOT_RUN, "not a git repository")
    )


def commit_of(root: Path, at: str) -> str:
    """Full id of the commit that a name stands for.

    Raises:
        GitError: there is none.
    """
    found = git(root, "rev-parse", "--verify", "--end-of-options", f"{at}^{{commit}}")
    return found.decode().strip()


def is_same_commit(first: str, second: str) -> bool:
    """Whether two ids, of which one may be short, are those of one commit."""
    short, long = sorted((first.lower(), second.lower()), key=len)
    return bool(short) and long.startswith(short) and len(short) >= min(SHORTEST_ID, len(long))


def git(root: Path, *arguments: str, stdin: bytes = b"", fetches: bool = False) -> bytes:
    """What git writes. Variables that point it to another repository, as hooks of git have them, are not heeded.

    Args:
        root: a folder of the repository.
        arguments: of a command that reads.
        stdin: given to it.
        fetches: contents that a partial clone has not fetched yet may be.

    Raises:
        GitError: no git, no answer in time, or git says no.
    """
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    if not fetches:
        settings += ["-c", "protocol.allow=never"]
        environment["GIT_NO_LAZY_FETCH"] = "1"
    try:
        status, out, err = _run(["git", "-C", str(root), "--no-pager", *settings, *arguments], stdin, environment)
    except FileNotFoundError:
        raise GitError(NO_GIT) from None
    except OSError as error:
        raise GitError(f"{NOT_RUN}: {(error.strerror or str(error)).lower()}") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git took more than {GIT_S} s") from None
    if status:
        words = err.decode("utf-8", "replace").strip().splitlines()
        raise GitError((words[0] if words else f"exit {status}").removeprefix("fatal: "))
    return out


def listed(root: Path, command: str, *arguments: str) -> list[tuple[list[bytes], str]]:
    """What `ls-files --stage` or `ls-tree` lists: the words about each file (mode, id, ...), and its path.

    Raises:
        GitError: git refuses.
    """
    entries = (line.partition(b"\t") for line in git(root, command, "-z", *arguments).split(b"\0") if line)
    return [(about.split(), os.fsdecode(name)) for about, _, name in entries]


def _run(argv: list[str], stdin: bytes, environment: dict[str, str]) -> tuple[int, bytes, bytes]:
    """Exit status, output and errors of git, in a session without a terminal: ssh cannot ask for a password.

    Late or interrupted, it is killed with the programs that it started.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=GIT_S)
        except BaseException:
            if sys.platform == "win32":
                process.kill()
            else:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, out, err


@dataclass(frozen=True, slots=True)
class Standing:
    """The commit a working folder is based on."""

    commit: str
    """Its full id."""
    dirty: bool
    """Tracked files differ from that commit."""


def standing(folder: Path) -> Standing | None:
    """The commit of the repository of a folder; None outside of one, before a first commit, and without git."""
    try:
        commit = commit_of(folder, "HEAD")
        changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty", "-z")
    except GitError:
        return None
    return Standing(commit, bool(changed))


def commits_of_other_branches(folder: Path) -> frozenset[str]:
    """Full ids of the commits that are in another branch or tag and not in the current one; none outside of a repository."""
    try:
        out = git(folder, "rev-list", "--all", "--not", "HEAD")
    except GitError:
        return frozenset()
    return frozenset(out.decode("ascii", "replace").split())


def commits_between(folder: Path, after: str, until: str) -> tuple[str, ...] | None:
    """Commits that are in `until` and not in `after`, latest first, one per line: short id and subject.

    Args:
        folder: in the repository.
        after: id of a commit.
        until: id of a later one.

    Returns:
        At most 200 lines, shown and not interpreted; None where git does not know one of the two.
    """
    if not (COMMIT_ID.fullmatch(after) and COMMIT_ID.fullmatch(until)):
        return None
    options = ("--oneline", "--no-decorate", "--no-color", "--no-show-signature", f"--max-count={MAX_COMMITS}")
    try:
        out = git(folder, "log", *options, "--end-of-options", f"{after}..{until}")
    except GitError:
        return None
    return tuple(out.decode("utf-8", "replace").splitlines())

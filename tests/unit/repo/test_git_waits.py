"""git that waits for something: it is ended with what it started, and can ask nobody."""

import os
import time
from pathlib import Path

import pytest

from cranfield.repo import git as module
from cranfield.repo.git import GitError, git


@pytest.fixture
def fake_git(tmp_path, monkeypatch):
    def make(script: str) -> None:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return make


def has_ended(pid: str) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] in {"Z", "X"}


def test_what_git_started_is_ended_with_it(fake_git, tmp_path, monkeypatch):
    fake_git("sleep 300 & echo $! > child; wait")
    monkeypatch.setattr(module, "GIT_S", 1)  # the shell has written its file by then
    with pytest.raises(GitError, match=r"git took more than 1 s"):
        git(tmp_path, "cat-file")
    child = (tmp_path / "child").read_text().strip()
    while not has_ended(child):  # it was sent SIGKILL
        time.sleep(0.01)


def test_it_has_no_terminal_to_ask_for_a_password(fake_git, tmp_path):
    fake_git("echo $GIT_TERMINAL_PROMPT; (: < /dev/tty) 2> no-terminal || echo none")
    assert git(tmp_path, "fetch").split() == [b"0", b"none"]

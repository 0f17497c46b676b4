"""A git repository of a few of Cranfield's own files, that tests change and commit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import cranfield

PACKAGE = Path(cranfield.__file__).parent
SETTINGS = ("user.name=Tester", "user.email=tester@example.org", "commit.gpgsign=false", "init.defaultBranch=main")


@dataclass(frozen=True)
class Repository:
    """A working folder with its git."""

    root: Path

    def git(self, *arguments: str) -> str:
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        done = subprocess.run(
            ["git", "-C", str(self.root), *settings, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, words: str = "change") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", words)
        return self.git("rev-parse", "HEAD")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def change(self, path: str, edit: Callable[[str], str]) -> None:
        before = (self.root / path).read_text(encoding="utf-8")
        after = edit(before)
        assert after != before, f"the edit of {path} changed nothing"
        self.write(path, after)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Four modules and a page, committed once."""
    made = Repository(tmp_path / "checkout")
    made.root.mkdir()
    made.git("init", "--quiet")
    for name in ("errors.py", "numbers.py"):
        made.write(f"src/{name}", (PACKAGE / "base" / name).read_text(encoding="utf-8"))
    made.write("src/matching/place.py", (PACKAGE / "ranking/matching/place.py").read_text(encoding="utf-8"))
    for name in ("model/target.py", "model/testset.py"):
        made.write(f"src/{name}", (PACKAGE / name).read_text(encoding="utf-8"))
    made.write("docs/guide.md", "# Guide\n\n## Install\n\nRun it.\n\n### Linux\n\nWith apt.\n\n## Use\n\nAsk it.\n")
    made.write(
        "src/index.rs", "pub struct Index;\n\nimpl Index {\n    pub fn add(&mut self) -> u8 {\n        1\n    }\n}\n"
    )
    made.commit("first")
    return made

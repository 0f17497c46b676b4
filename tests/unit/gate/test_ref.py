"""Files as a git ref has them, in a real repository: no shell, no way out, no link that chooses another file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cranfield.errors import UsageError
from cranfield.gate.ref import commit_here, ref_named


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "eval").mkdir(parents=True)
    (folder / "other").mkdir()
    (folder / "eval" / "b.json").write_text("of main")
    (folder / "other" / "b.json").write_text("lax")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_a_file_is_read_as_the_ref_has_it_and_not_as_it_is_now(repository: Path) -> None:
    (repository / "eval" / "b.json").write_text("loosened")
    git(repository, "commit", "-qam", "second")
    git(repository, "tag", "later")
    ref = ref_named("main~1", repository / "eval")
    assert ref.read(repository / "eval" / "b.json", hint="") == b"of main"
    assert ref.read(repository / "eval" / ".." / "eval" / "b.json", hint="") == b"of main"
    assert ref.shown(repository / "eval" / "b.json") == "main~1:eval/b.json"
    assert ref_named("later", repository).read(repository / "eval" / "b.json", hint="") == b"loosened"
    assert ref_named("later", repository).commit == git(repository, "rev-parse", "HEAD") == commit_here(repository)


def test_a_link_in_the_working_tree_does_not_choose_what_is_read(repository: Path) -> None:
    (repository / "eval" / "b.json").unlink()
    (repository / "eval").rmdir()
    (repository / "eval").symlink_to("other")
    assert ref_named("main", repository).read(repository / "eval" / "b.json", hint="") == b"of main"


def test_a_repository_reached_through_a_link_is_that_repository(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    ref = ref_named("main", tmp_path / "link" / "eval")
    assert ref.read(tmp_path / "link" / "eval" / "b.json", hint="") == b"of main"


@pytest.mark.parametrize("name", ["origin/main", "", "-h", "--help", "--output=x", "main:eval/b.json", "a b", "main\n", "$(id)", "0" * 40])  # fmt: skip
def test_a_ref_that_git_does_not_know_says_to_fetch(repository: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        ref_named(name, repository)
    assert "fetch-depth: 0" in str(caught.value)
    assert not (repository / "x").exists()


def test_a_path_that_leads_out_is_refused(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("outside")
    with pytest.raises(UsageError, match="outside of the repository"):
        ref_named("main", repository).read(repository / ".." / "b.json", hint="")


@pytest.mark.parametrize("path", ["none.json", "eval", "eval/b.json/x"])
def test_what_the_ref_does_not_have_as_a_file_is_refused_with_the_next_step(repository: Path, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        ref_named("main", repository).read(repository / path, hint="do this")
    assert caught.value.problems[0].hint == "do this"


def test_outside_of_a_repository_there_is_no_ref_and_no_commit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a git repository"):
        ref_named("main", tmp_path)
    assert commit_here(tmp_path) == ""

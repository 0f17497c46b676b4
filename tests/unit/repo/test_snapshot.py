"""The files of a folder or a commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cranfield.base.errors import UsageError
from cranfield.repo.snapshot import MAX_BYTES, as_text, take


def test_only_tracked_files_count_where_git_is(repository: Any) -> None:
    repository.write("notes.txt", "not added\n")
    snapshot = take(repository.root)
    assert "src/numbers.py" in snapshot
    assert "notes.txt" not in snapshot
    assert snapshot.commit == repository.git("rev-parse", "HEAD")


def test_a_tracked_file_that_was_deleted_is_not_there(repository: Any) -> None:
    (repository.root / "src/numbers.py").unlink()
    assert "src/numbers.py" not in take(repository.root)
    assert "src/numbers.py" in take(repository.root, "HEAD")


def test_a_commit_holds_what_the_folder_held(repository: Any) -> None:
    folder, commit = take(repository.root), take(repository.root, "HEAD")
    repository.write("src/numbers.py", "changed = True\n")
    assert set(folder.files) == set(commit.files)
    assert dict(commit.each())["src/errors.py"] == folder.data("src/errors.py")
    assert commit.text("src/numbers.py") != take(repository.root).text("src/numbers.py") == "changed = True\n"


def test_paths_are_counted_from_the_folder_that_was_named(repository: Any) -> None:
    for at in (None, "HEAD"):
        snapshot = take(repository.root / "src", at)
        assert "numbers.py" in snapshot
        assert not [path for path in snapshot.files if path.startswith(("src/", "docs/", ".."))]
        assert snapshot.text("model/target.py") == (repository.root / "src/model/target.py").read_text(encoding="utf-8")


def test_a_bare_repository_is_read_at_its_head(repository: Any, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(tmp_path / "bare.git"))
    snapshot = take(tmp_path / "bare.git")
    assert snapshot.is_commit
    assert "src/numbers.py" in snapshot


def test_a_folder_without_git_is_read_as_it_stands(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py", "node_modules/c.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    snapshot = take(tmp_path)
    assert (sorted(snapshot.files), snapshot.commit) == (["a.py", "sub/b.py"], "")


def test_links_are_not_followed(repository: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("key = 1\n")
    (repository.root / "link.py").symlink_to(outside / "secret.py")
    repository.commit()
    for at in (None, "HEAD"):
        snapshot = take(repository.root, at)
        assert "link.py" not in snapshot
        assert snapshot.left_out["links"] == 1


def test_a_folder_that_became_a_link_to_outside_holds_nothing(repository: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (repository.root / "docs").rename(outside)
    (repository.root / "docs").symlink_to(outside)
    snapshot = take(repository.root)
    assert "docs/guide.md" not in snapshot
    assert snapshot.left_out["links"] == 1


def test_large_and_binary_files_are_there_and_not_read(repository: Any) -> None:
    repository.write("large.txt", "x" * (MAX_BYTES + 1))
    (repository.root / "image.bin").write_bytes(b"\x89\0\1")
    repository.commit()
    for at in (None, "HEAD"):
        snapshot = take(repository.root, at)
        assert {"large.txt", "image.bin"} <= set(snapshot.files)
        assert snapshot.text("large.txt") is None
        assert snapshot.text("image.bin") is None
        assert snapshot.left_out == {"large files": 1}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\xef\xbb\xbfa", "a"),
        (b"\xe4\n", "\udce4\n"),
        (b"\0", None),
    ],
)
def test_bytes_as_text(data: bytes, text: str | None) -> None:
    assert as_text(data) == text


def test_names_that_are_not_plain_are_read(repository: Any) -> None:
    repository.write("odd name/ä\n.py", "x = 1\n")
    repository.commit()
    for at in (None, "HEAD"):
        assert take(repository.root, at).text("odd name/ä\n.py") == "x = 1\n"


def test_a_filesystem_monitor_of_the_repository_is_not_run(repository: Any, tmp_path: Path) -> None:
    hook = tmp_path / "monitor"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    hook.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(hook))
    take(repository.root)
    take(repository.root, "HEAD").text("src/numbers.py")
    assert not (tmp_path / "ran").exists()


def test_variables_that_point_git_elsewhere_are_not_heeded(
    repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert take(repository.root).commit


@pytest.mark.parametrize("at", ["no-such-branch", "--output=x", "HEAD:src/numbers.py", "-h"])
def test_what_is_no_commit_is_refused(repository: Any, at: str) -> None:
    with pytest.raises(UsageError, match="no commit"):
        take(repository.root, at)
    assert not (repository.root / "x").exists()


def test_a_commit_of_a_folder_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no commit can be read here: not a git repository"):
        take(tmp_path, "HEAD")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        take(tmp_path / "none")


def test_without_the_program_a_folder_is_read_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "nothing"))
    assert list(take(tmp_path).files) == ["a.py"]
    with pytest.raises(UsageError, match="the program `git` was not found"):
        take(tmp_path, "HEAD")


def test_contents_that_were_never_fetched_are_there_and_not_read(repository: Any) -> None:
    blob = repository.git("rev-parse", "HEAD:src/numbers.py")
    (repository.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    snapshot = take(repository.root, "HEAD")
    assert "src/numbers.py" in snapshot
    assert snapshot.text("src/numbers.py") is None
    assert snapshot.left_out == {"files that were never fetched": 1}


def test_a_repository_that_git_cannot_read_is_not_taken_for_a_plain_folder(repository: Any) -> None:
    (repository.root / ".git/HEAD").unlink()
    with pytest.raises(UsageError, match="git cannot read this repository: not a git repository"):
        take(repository.root)


def test_a_repository_without_a_commit_has_its_tracked_files(tmp_path: Path, repository: Any) -> None:
    repository.git("init", "--quiet", str(tmp_path / "new"))
    (tmp_path / "new/a.py").write_text("x = 1\n")
    (tmp_path / "new/b.py").write_text("y = 1\n")
    repository.git("-C", str(tmp_path / "new"), "add", "a.py")
    snapshot = take(tmp_path / "new")
    assert (list(snapshot.files), snapshot.commit) == (["a.py"], "")


def test_a_damaged_list_of_files_is_refused(repository: Any) -> None:
    (repository.root / ".git/index").write_bytes(b"junk")
    with pytest.raises(UsageError, match="git cannot list the files of this repository"):
        take(repository.root)


def test_a_program_that_cannot_be_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text("no program\n")
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "bin"))
    assert "a.py" in take(tmp_path).files
    with pytest.raises(UsageError, match="the program `git` cannot be run: permission denied"):
        take(tmp_path, "HEAD")


def test_an_empty_name_is_no_commit(repository: Any) -> None:
    with pytest.raises(UsageError, match="no commit ''"):
        take(repository.root, "")

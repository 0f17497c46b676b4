"""Where a repository stands, and what lies between two commits of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cranfield.repo.git import MAX_COMMITS, Standing, commits_between, standing


def test_a_clean_folder_stands_at_its_commit(repository: Any) -> None:
    commit = repository.git("rev-parse", "HEAD")
    assert standing(repository.root) == Standing(commit, dirty=False)
    assert standing(repository.root / "src") == Standing(commit, dirty=False)


def test_files_that_git_does_not_track_do_not_count_as_changes(repository: Any) -> None:
    repository.write("cranfield-out/results.json", "{}")
    assert not standing(repository.root).dirty
    repository.change("docs/guide.md", lambda text: text + "more\n")
    assert standing(repository.root).dirty


def test_a_change_that_is_staged_counts(repository: Any) -> None:
    repository.write("new.py", "x = 1\n")
    repository.git("add", "new.py")
    assert standing(repository.root).dirty


def test_nothing_stands_outside_of_a_repository(tmp_path: Path, repository: Any) -> None:
    (tmp_path / "plain").mkdir()
    assert standing(tmp_path / "plain") is None
    assert standing(tmp_path / "missing") is None
    repository.git("init", "--quiet", str(tmp_path / "new"))
    assert standing(tmp_path / "new") is None  # nothing is committed


def test_commits_between_two_are_listed_latest_first(repository: Any) -> None:
    first = repository.git("rev-parse", "HEAD")
    ids = []
    for words in ("Second change", "Third: $(touch x) `y`"):
        repository.write("a.txt", words)
        ids.append(repository.commit(words))
    found = commits_between(repository.root, first, ids[-1])
    assert [line.partition(" ")[2] for line in found] == ["Third: $(touch x) `y`", "Second change"]
    assert all(full.startswith(line.split()[0]) for full, line in zip(reversed(ids), found, strict=True))
    assert commits_between(repository.root, first, first) == ()
    assert commits_between(repository.root, first[:12], ids[0]) == found[1:]


def test_no_more_than_so_many_commits_are_listed(repository: Any) -> None:
    first = repository.git("rev-parse", "HEAD")
    tree = repository.git("rev-parse", "HEAD^{tree}")
    last = first
    for number in range(MAX_COMMITS + 3):
        last = repository.git("commit-tree", tree, "-p", last, "-m", f"change {number}")
    found = commits_between(repository.root, first, last)
    assert len(found) == MAX_COMMITS
    assert found[0].endswith(f"change {MAX_COMMITS + 2}")


@pytest.mark.parametrize("wrong", ["0" * 40, "--output=stolen", "HEAD", "main", "", "abc", "../x", "A" * 40])
def test_what_is_no_commit_here_is_not_asked_for(repository: Any, wrong: str) -> None:
    head = repository.git("rev-parse", "HEAD")
    assert commits_between(repository.root, wrong, head) is None
    assert commits_between(repository.root, head, wrong) is None
    assert sorted(path.name for path in repository.root.iterdir()) == [".git", "docs", "src"]

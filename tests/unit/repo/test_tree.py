"""The state of a working folder: whatever differs from the commit is seen, whatever is hidden from git."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cranfield.base.errors import UsageError
from cranfield.repo.git import GitError, git
from cranfield.repo.snapshot import stored_ids
from cranfield.repo.tree import read_tree
from cranfield.repo.tree_state import TreeState, differences

from .conftest import Repository

FILE = "src/numbers.py"
Step = Callable[[Repository], object]


def state(repository: Repository, **more: Any) -> TreeState:
    return read_tree(repository.root, **more)


def comment(repository: Repository) -> None:
    repository.change(FILE, lambda text: "# one\n# two\n# three\n" + text)


def other(root: Path, name: str = "q.py") -> Repository:
    """Another repository, with one commit."""
    made = Repository(root)
    root.mkdir(parents=True)
    made.git("init", "--quiet")
    made.write(name, "q = 1\n")
    made.commit()
    return made


def test_a_folder_that_is_as_its_commit_has_no_changes(repository: Repository) -> None:
    found = state(repository)
    assert (found.commit, found.head, found.uncommitted, found.notes) == (
        repository.git("rev-parse", "HEAD"),
        found.commit,
        (),
        (),
    )
    assert found.digest == state(repository).digest


def assume_unchanged(repository: Repository) -> None:
    repository.git("update-index", "--assume-unchanged", FILE)
    comment(repository)


def skip_worktree(repository: Repository) -> None:
    repository.git("update-index", "--skip-worktree", FILE)
    comment(repository)


def same_size_and_time(repository: Repository) -> None:
    path = repository.root / FILE
    about = path.stat()
    repository.change(FILE, lambda text: text.replace("a", "b", 1))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def staged(repository: Repository) -> None:
    comment(repository)
    repository.git("add", FILE)


def staged_and_undone(repository: Repository) -> None:
    before = (repository.root / FILE).read_text(encoding="utf-8")
    staged(repository)
    repository.write(FILE, before)


def renamed(repository: Repository) -> None:
    repository.git("mv", FILE, "src/figures.py")


def hidden_by_settings(repository: Repository) -> None:
    repository.git("config", "status.showUntrackedFiles", "no")
    repository.write("new.py", "x = 1\n")


def sparse(repository: Repository) -> None:
    repository.git("sparse-checkout", "set", "--no-cone", "/docs/")


def nested(repository: Repository) -> None:
    other(repository.root / "vendor" / "lib")


def nested_without_commit(repository: Repository) -> None:
    nested = Repository(repository.root / "vendor")
    nested.root.mkdir()
    nested.git("init", "--quiet")
    nested.write("q.py", "q = 1\n")


def folder_becomes_link(repository: Repository) -> None:
    target = repository.root.parent / "elsewhere"
    (repository.root / "docs").rename(target)
    (repository.root / "docs").symlink_to(target)


def merging(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side")
    repository.write("docs/guide.md", "side\n")
    repository.commit("side")
    repository.git("checkout", "--quiet", "main")
    repository.write("docs/guide.md", "main\n")
    repository.commit("main")
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "side")


def odd_names(repository: Repository) -> None:
    for name in (b"line\nend.py", b"\xff.py", b"back\\slash", "\N{RIGHT-TO-LEFT OVERRIDE}x".encode()):
        (repository.root / os.fsdecode(name)).write_bytes(b"x = 1\n")


CHANGED: dict[str, tuple[Step, tuple[str, ...]]] = {
    "modified": (comment, (f"modified {FILE}",)),
    "same size and time": (same_size_and_time, (f"modified {FILE}",)),
    "staged": (staged, (f"modified {FILE}",)),
    "staged and undone": (staged_and_undone, (f"staged {FILE}",)),
    "removed from the index": (lambda made: made.git("rm", "--quiet", "--cached", FILE), (f"staged {FILE}",)),
    "deleted": (lambda made: (made.root / FILE).unlink(), (f"deleted {FILE}",)),
    "renamed": (renamed, ("added src/figures.py", f"deleted {FILE}")),
    "untracked": (lambda made: made.write("new/a.py", "x = 1\n"), ("untracked new/a.py",)),
    "untracked, and status hides it": (hidden_by_settings, ("untracked new.py",)),
    "mode": (lambda made: (made.root / FILE).chmod(0o755), (f"mode of {FILE}",)),
    "assume-unchanged": (assume_unchanged, (f"modified {FILE}",)),
    "skip-worktree": (skip_worktree, (f"modified {FILE}",)),
    "nested repository": (nested, ("untracked vendor/lib/q.py",)),
    "nested repository without a commit": (nested_without_commit, ("untracked vendor/q.py",)),
    "folder becomes a link": (folder_becomes_link, ("untracked docs", "deleted docs/guide.md")),
    "merge with a conflict": (merging, ("in conflict docs/guide.md",)),
    "odd names": (
        odd_names,
        ("untracked \\x202ex", "untracked \\xff.py", "untracked back\\\\slash", "untracked line\\x0aend.py"),
    ),
}


@pytest.mark.parametrize(("step", "expected"), CHANGED.values(), ids=CHANGED)
def test_every_change_is_seen_by_file(repository: Repository, step: Step, expected: tuple[str, ...]) -> None:
    before = state(repository)
    step(repository)
    found = state(repository)
    assert found.uncommitted == expected
    assert found.digest != before.digest
    assert found.sentence.startswith(f"Uncommitted changes: {len(expected)} file")


def test_a_second_change_of_the_same_file_is_another_state(repository: Repository) -> None:
    comment(repository)
    before = state(repository)
    comment(repository)
    now = state(repository)
    assert now.uncommitted == before.uncommitted
    assert differences(before, now).source == (f"modified {FILE} (otherwise than before)",)
    repository.git("checkout", "--quiet", ".")
    assert differences(before, state(repository)).source == (f"{FILE} (was modified, is as in the commit)",)


def test_files_outside_of_a_sparse_checkout_are_not_checked_out(repository: Repository) -> None:
    sparse(repository)
    found = state(repository).uncommitted
    assert f"not checked out {FILE}" in found
    assert not any("docs/" in each for each in found)


def in_worktree(repository: Repository) -> Repository:
    repository.git("worktree", "add", "--quiet", "--detach", str(repository.root.parent / "tree"))
    return Repository(repository.root.parent / "tree")


def shallow(repository: Repository) -> Repository:
    comment(repository)
    repository.commit("second")
    repository.git(
        "clone", "--quiet", "--depth=1", f"file://{repository.root}", str(repository.root.parent / "shallow")
    )
    return Repository(repository.root.parent / "shallow")


def detached(repository: Repository) -> Repository:
    repository.git("checkout", "--quiet", "--detach")
    return repository


def converted(repository: Repository) -> Repository:
    repository.git("config", "core.autocrlf", "true")
    for path in (repository.root / "src").rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return repository


def touched(repository: Repository) -> Repository:
    (repository.root / FILE).touch()
    return repository


def without_mode(repository: Repository) -> Repository:
    repository.git("config", "core.fileMode", "false")
    (repository.root / FILE).chmod(0o755)
    return repository


def below(repository: Repository) -> Repository:
    repository.write("docs/new.md", "outside of the folder\n")
    return Repository(repository.root / "src")


def only_caches(repository: Repository) -> Repository:
    repository.write("src/__pycache__/a.pyc", "x")
    return repository


CLEAN: dict[str, Callable[[Repository], Repository]] = {
    each.__name__: each
    for each in (in_worktree, shallow, detached, converted, touched, without_mode, below, only_caches)
}


@pytest.mark.parametrize("make", CLEAN.values(), ids=CLEAN)
def test_what_is_as_the_commit_is_no_change(repository: Repository, make: Callable[[Repository], Repository]) -> None:
    made = make(repository)
    found = read_tree(made.root)
    assert (found.uncommitted, found.commit) == ((), made.git("rev-parse", "HEAD"))


def test_line_ends_that_git_does_not_convert_are_a_change(repository: Repository) -> None:
    path = repository.root / FILE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert state(repository).uncommitted == (f"modified {FILE}",)


def test_no_filter_of_a_repository_is_run(repository: Repository) -> None:
    repository.write(".gitattributes", "*.py filter=own\n")
    repository.commit()
    mark = repository.root.parent / "was run"
    repository.git("config", "filter.own.clean", f"touch '{mark}'; cat")
    comment(repository)
    assert state(repository).uncommitted == (f"modified {FILE}",)
    assert not mark.exists()


@pytest.mark.parametrize("where", ["gitignore", "exclude", "global"])
def test_ignored_files_are_part_of_the_digest_and_no_change(
    repository: Repository, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "gitignore":
        repository.write(".gitignore", "out/\n*.log\n")
        repository.commit()
    elif where == "exclude":
        repository.write(".git/info/exclude", "out/\n*.log\n")
    else:
        (tmp_path / "excludes").write_text("out/\n*.log\n", encoding="utf-8")
        (tmp_path / "gitconfig").write_text(f"[core]\nexcludesFile = {tmp_path / 'excludes'}\n", encoding="utf-8")
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "gitconfig").rename(tmp_path / ".gitconfig")
    before = state(repository)
    repository.write("out/deep/a.py", "x = 1\n")
    repository.write("src/b.log", "line\n")
    found = state(repository)
    assert (found.uncommitted, list(found.ignored)) == ((), ["out/", "src/b.log"])
    assert differences(before, found).ignored == ("ignored: out/ (new)", "ignored: src/b.log (new)")
    assert found.notes == ("The folder also has 2 ignored files (0.0 MiB), not in any commit: out/, src/b.log.",)
    repository.write("out/deep/a.py", "x = 2\n")
    assert differences(found, state(repository)).ignored == ("ignored: out/ (changed)",)
    assert found.digest != state(repository).digest


def test_many_ignored_files_are_compared_by_size_and_time_which_is_said(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(".git/info/exclude", "out/\n")
    for number in range(4):
        repository.write(f"out/{number}", "x")
    assert not any("time" in note for note in state(repository).notes)
    monkeypatch.setattr("cranfield.repo.tree_state.CONTENT_FILES", 3)
    found = state(repository)
    assert found.notes[-1] == (
        "Compared by name, size and time of modification, because they are many or large: 4 ignored files."
    )
    path = repository.root / "out" / "2"
    path.write_text("y", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert differences(found, state(repository)).ignored == ("ignored: out/ (changed)",)


def with_submodule(repository: Repository) -> Repository:
    source = other(repository.root.parent / "lib")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source.root), "lib")
    repository.commit()
    return Repository(repository.root / "lib")


def test_submodules_are_read_whatever_is_configured_to_be_ignored(repository: Repository) -> None:
    inner = with_submodule(repository)
    repository.git("config", "submodule.lib.ignore", "all")
    repository.git("config", "diff.ignoreSubmodules", "all")
    clean = state(repository)
    assert (clean.uncommitted, clean.submodules) == ((), {"lib": inner.git("rev-parse", "HEAD")})
    assert clean.notes == ("Submodules, whose files are in the folder but not in the commit (1): lib.",)
    inner.write("q.py", "q = 2\n")
    inner.write("new.py", "")
    assert state(repository).uncommitted == ("untracked lib/new.py", "modified lib/q.py")
    inner.commit()
    assert state(repository).uncommitted == ("other commit of submodule lib",)
    (repository.root / ".git" / "modules" / "lib" / "info" / "exclude").write_text("*.log\n", encoding="utf-8")
    inner.write("a.log", "")
    assert list(state(repository).ignored) == ["lib/a.log"]


def test_a_submodule_that_is_not_checked_out_is_named(repository: Repository) -> None:
    with_submodule(repository)
    repository.git("submodule", "--quiet", "deinit", "--force", "lib")
    found = state(repository)
    assert (found.uncommitted, found.submodules, found.notes) == (
        (),
        {"lib": ""},
        ("Submodules that are not checked out (1): lib.",),
    )
    repository.write("lib/loose.py", "")
    assert state(repository).uncommitted == ("untracked lib/loose.py",)


def test_files_of_git_lfs_are_compared_by_their_pointers(repository: Repository) -> None:
    content = b"\0" * 2000
    digest = hashlib.sha256(content).hexdigest()
    repository.write("big.bin", f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 2000\n")
    repository.commit()
    assert state(repository).notes == (
        "Files of git-lfs that were not fetched: folder and commit have only pointers (1): big.bin.",
    )
    (repository.root / "big.bin").write_bytes(content)
    found = state(repository)
    assert (found.uncommitted, found.notes) == (
        (),
        ("Files of git-lfs that are contents in the folder and only pointers in the commit (1): big.bin.",),
    )
    (repository.root / "big.bin").write_bytes(content + b"1")
    assert state(repository).uncommitted == ("modified big.bin",)


def test_links_that_lead_out_of_the_folder_are_named(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("", encoding="utf-8")
    (repository.root / "out.py").symlink_to(tmp_path / "secret.py")
    (repository.root / "in.py").symlink_to(FILE)
    repository.commit()
    found = state(repository)
    assert (found.uncommitted, found.notes) == (
        (),
        ("Links that point outside the folder: their targets are not compared (1): out.py.",),
    )
    (repository.root / "in.py").unlink()
    (repository.root / "in.py").symlink_to("docs/guide.md")
    assert state(repository).uncommitted == ("modified in.py",)


def test_links_that_lead_round_in_a_circle_are_compared_as_links(repository: Repository) -> None:
    (repository.root / "loop").symlink_to("loop")
    repository.commit()
    assert state(repository).uncommitted == ()
    (repository.root / "other").symlink_to("other")
    assert state(repository).uncommitted == ("untracked other",)


def test_special_files_are_not_opened(repository: Repository) -> None:
    os.mkfifo(repository.root / "pipe")
    (repository.root / FILE).unlink()
    os.mkfifo(repository.root / FILE)
    assert state(repository).uncommitted == (f"modified {FILE}",)  # git lists no pipe that it does not track


def test_a_folder_is_compared_with_another_commit_than_the_one_checked_out(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    comment(repository)
    second = repository.commit("second")
    found = state(repository, commit=first)
    assert (found.commit, found.head, found.uncommitted) == (first, second, (f"modified {FILE}",))


def test_nothing_is_committed_yet(tmp_path: Path) -> None:
    made = Repository(tmp_path / "new")
    made.root.mkdir()
    made.git("init", "--quiet")
    made.write("a.py", "x = 1\n")
    assert (read_tree(made.root).commit, list(read_tree(made.root).files)) == ("", ["a.py"])
    made.git("add", "a.py")
    assert read_tree(made.root).uncommitted == ("added a.py",)


def test_a_bare_repository_has_no_folder(repository: Repository, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(tmp_path / "bare.git"))
    assert read_tree(tmp_path / "bare.git") == TreeState(repository.git("rev-parse", "HEAD"))


def test_what_a_command_itself_writes_is_not_looked_at(repository: Repository) -> None:
    repository.write("runs/one/plan.yaml", "")
    repository.write("sets/a.json", "")
    apart = [repository.root / "runs", repository.root / "sets" / "a.json", repository.root.parent / "elsewhere"]
    assert state(repository, without=apart).uncommitted == ()
    repository.write("sets/b.json", "")
    assert state(repository, without=apart).uncommitted == ("untracked sets/b.json",)


def test_a_folder_without_git_is_compared_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Repository(tmp_path / "plain")
    made.write("a.py", "x = 1\n")
    made.write("node_modules/p/index.js", "")
    before = read_tree(made.root)
    assert (before.commit, list(before.files), list(before.ignored)) == ("", ["a.py"], ["node_modules/"])
    assert before.notes == ("The folder also has 1 ignored file (0.0 MiB), not read: node_modules/.",)
    made.write("a.py", "x = 2\n")
    made.write("b.py", "")
    made.write("node_modules/p/index.js", "1")
    found = differences(before, read_tree(made.root))
    assert (found.source, found.ignored) == (("a.py (changed)", "b.py (new)"), ("ignored: node_modules/ (changed)",))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(read_tree(made.root).files) == ["a.py", "b.py"]


def test_a_repository_without_the_program_git_is_refused(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="the program `git` was not found"):
        state(repository)


def test_many_changes_are_counted(repository: Repository) -> None:
    for number in range(300):
        repository.write(f"new/{number:03}.py", "")
    assert state(repository).sentence == (
        f"Uncommitted changes: 300 files differ from commit {repository.git('rev-parse', 'HEAD')[:12]}: untracked new/000.py, "
        "untracked new/001.py, untracked new/002.py, untracked new/003.py, untracked new/004.py and 295 more"
    )


def test_line_ends_are_converted_below_the_root_too(repository: Repository) -> None:
    repository.write(".gitattributes", "docs/*.txt text\n")
    repository.write("docs/a.txt", "one\n")
    repository.commit()
    (repository.root / "docs" / "a.txt").write_bytes(b"one\r\n")
    (repository.root / "link").symlink_to("docs")
    repository.write(".git/info/exclude", "link\n")
    for root in (repository.root, repository.root / "docs", repository.root / "link"):
        assert read_tree(root).uncommitted == ()
    repository.write("docs/guide.md", "")
    assert read_tree(repository.root / "docs").uncommitted == ("modified guide.md",)


@pytest.mark.parametrize("n_gone", [1, 2])
def test_a_file_that_is_deleted_while_it_is_compared_is_deleted(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, n_gone: int
) -> None:
    names = (FILE, "docs/guide.md", "src/errors.py")
    for name in names:
        repository.change(name, lambda text: text + "\n# more\n")

    def stored(root: Path, asked: list[str]) -> dict[str, str]:
        for name in sorted(names)[:n_gone]:
            (repository.root / name).unlink()
        return stored_ids(root, asked)

    monkeypatch.setattr("cranfield.repo.tree.stored_ids", stored)
    expected = [f"{'deleted' if place < n_gone else 'modified'} {name}" for place, name in enumerate(sorted(names))]
    assert list(state(repository).uncommitted) == expected


def test_what_git_refuses_is_not_called_modified(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    comment(repository)

    def refuse(root: Path, *arguments: str, **more: Any) -> bytes:
        if "hash-object" in arguments:
            raise GitError("git took more than 120 s")
        return git(root, *arguments, **more)

    monkeypatch.setattr("cranfield.repo.snapshot.git", refuse)
    with pytest.raises(UsageError, match="git took more than 120 s"):
        state(repository)


def test_many_changed_files_start_few_programs(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        repository.write(f"many/{number}.txt", f"{number}\n")
    repository.commit()
    for number in range(40):
        repository.write(f"many/{number}.txt", f"{number}, and more\n")
    calls = []
    for module in ("snapshot", "tree", "git"):

        def counted(root: Path, *arguments: str, **more: Any) -> bytes:
            calls.append(arguments)
            return git(root, *arguments, **more)

        monkeypatch.setattr(f"cranfield.repo.{module}.git", counted)
    assert len(state(repository).changes) == 40
    assert len(calls) < 20


def test_a_folder_without_git_is_compared_also_through_a_link(tmp_path: Path) -> None:
    made = Repository(tmp_path / "plain")
    made.write("a.py", "x = 1\n")
    (tmp_path / "link").symlink_to("plain")
    before = read_tree(tmp_path / "link")
    assert before == read_tree(made.root)
    assert list(before.files) == ["a.py"]


def test_a_large_file_is_read_in_pieces(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.repo.snapshot._PIECE_BYTES", 7)
    assert state(repository).uncommitted == ()
    comment(repository)
    assert state(repository).uncommitted == (f"modified {FILE}",)

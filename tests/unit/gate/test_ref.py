"""Files as a git ref has them, in a real repository: no shell, no way out, no link that chooses another file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.gate.baseline import ref_named


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
    assert ref_named("later", repository).commit == git(repository, "rev-parse", "HEAD")


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
    with pytest.raises(UsageError, match="outside the repository"):
        ref_named("main", repository).read(repository / ".." / "b.json", hint="")


@pytest.mark.parametrize("path", ["none.json", "eval", "eval/b.json/x"])
def test_what_the_ref_does_not_have_as_a_file_is_refused_with_the_next_step(repository: Path, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        ref_named("main", repository).read(repository / path, hint="do this")
    assert caught.value.problems[0].hint == "do this"


def test_outside_of_a_repository_there_is_no_ref(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="requires a git repository: not a git repository"):
        ref_named("main", tmp_path)


def test_in_a_hook_of_git_the_ref_is_found(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git sets this for its hooks, from the top of the repository; the config stands in a folder below."""
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_WORK_TREE", ".")
    ref = ref_named("main", repository / "eval")
    assert ref.read(repository / "eval" / "b.json", hint="") == b"of main"


def test_a_link_to_the_top_of_the_repository_does_not_make_a_path_shorter(repository: Path) -> None:
    """`eval` is now a link to the folder around it: `eval/b.json` must not become the `b.json` beside it."""
    (repository / "b.json").write_text("lax")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    (repository / "eval" / "b.json").unlink()
    (repository / "eval").rmdir()
    (repository / "eval").symlink_to(".")
    ref = ref_named("main", repository / "eval")
    assert ref.shown(repository / "eval" / "b.json") == "main:eval/b.json"
    assert ref.read(repository / "eval" / "b.json", hint="") == b"of main"


@pytest.mark.parametrize("other", ["refs/tags/origin/main", "refs/heads/origin/main"])
def test_a_name_that_stands_for_two_refs_is_refused(repository: Path, other: str) -> None:
    """Git would take the tag or the branch, which somebody else may push, for the branch that was fetched."""
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert ref_named("origin/main", repository).commit == git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    git(repository, "update-ref", other, "HEAD")
    with pytest.raises(UsageError, match="2 refs have the name 'origin/main'") as caught:
        ref_named("origin/main", repository)
    assert caught.value.problems[0].got == ", ".join(sorted([other, "refs/remotes/origin/main"]))
    assert ref_named("refs/remotes/origin/main", repository).commit == git(repository, "rev-parse", "main~1")


@pytest.mark.parametrize("linked", [False, True])
def test_a_repository_within_the_one_that_one_stands_in_is_refused(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, linked: bool
) -> None:
    """A change can make the folder of the config a submodule, or a link to one, whose `main` is its own."""
    inner = tmp_path / "elsewhere" if linked else repository / "inner"
    inner.mkdir()
    (inner / "b.json").write_text("lax")
    git(inner, "init", "-q", "-b", "main")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "lax")
    if linked:
        (repository / "inner").symlink_to(inner)
    monkeypatch.chdir(repository)
    with pytest.raises(UsageError, match="in a nested repository"):
        ref_named("main", Path("inner"))
    assert ref_named("main", Path("eval")).read(Path("eval/b.json"), hint="") == b"of main"
    monkeypatch.chdir(inner)
    assert ref_named("main", Path()).read(Path("b.json"), hint="") == b"lax"


def test_a_folder_that_a_change_makes_a_submodule_is_refused_within_it_too(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that stands in the folder of the config would read its rules from the `main` of the submodule."""
    inner = repository / "eval"
    git(repository, "rm", "-rq", "--cached", "eval")
    git(inner, "init", "-q", "-b", "main")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "lax")
    git(repository, "checkout", "-qb", "change-to-submodule")
    git(repository, "add", "eval")
    git(repository, "commit", "-qm", "a submodule")
    monkeypatch.chdir(inner)
    with pytest.raises(UsageError, match="the folder is a submodule"):
        ref_named("main", Path())
    git(repository, "branch", "-f", "main")
    assert ref_named("main", Path()).top == inner.resolve()

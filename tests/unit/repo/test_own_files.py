"""What is none of the source of a repository: files that a call names, and files that Cranfield wrote earlier, whatever they are called."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cranfield.books.options import open_books
from cranfield.repo.snapshot import snapshot_digest, take
from cranfield.repo.tree import read_tree
from cranfield.repo.tree_state import differences

from .conftest import Repository

MANIFEST = '{"schema_version": "1", "name": "x", "created_at": "2026-11-20T10:00:00Z", "cranfield_version": "1"}'


def run_folder(made: Repository) -> None:
    made.write("any/name/run.json", MANIFEST)
    made.write("any/name/calls.jsonl", "")


def results(made: Repository) -> None:
    made.write("out/benefit_v1.0.json", '{\n "cranfield_benefit_result": 1}')
    made.write("out/.cranfield/.gitignore", "*\n")
    made.write("out/.cranfield/benefit.jsonl", "")


def rows(made: Repository) -> None:
    for name in ("rows.jsonl", "for_people.jsonl", "corrections.diff"):
        made.write(f"check/{name}", "")


def books(made: Repository) -> None:
    open_books(str(made.root / "reviews.db"), create=True).close()
    (made.root / "reviews.db-journal").touch()


def open_database(made: Repository) -> object:
    return open_books(str(made.root / "cranfield-books.db"), create=True)


OWN: dict[str, Callable[[Repository], object]] = {
    each.__name__: each for each in (run_folder, results, rows, books, open_database)
}


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("make", OWN.values(), ids=OWN)
def test_what_cranfield_wrote_is_no_change_and_in_no_digest(
    repository: Repository, make: Callable[[Repository], object], ignored: bool
) -> None:
    if ignored:
        repository.write(".git/info/exclude", "any/\nout/\ncheck/\n*.db*\n")
    before = read_tree(repository.root)
    opened = make(repository)
    now = read_tree(repository.root)
    assert (now.uncommitted, now.notes, now.digest) == ((), (), before.digest)
    assert now.written
    assert not differences(before, now)
    del opened


@pytest.mark.parametrize("make", [run_folder, results, rows, books])
def test_a_folder_without_git_is_the_same_source_after_a_run(
    tmp_path: Path, make: Callable[[Repository], None]
) -> None:
    made = Repository(tmp_path / "plain")
    made.write("a.py", "x = 1\n")
    before = (snapshot_digest(take(made.root)), read_tree(made.root).digest)
    make(made)
    assert (snapshot_digest(take(made.root)), read_tree(made.root).digest) == before


def test_what_only_looks_like_it_is_source(repository: Repository) -> None:
    repository.write("job/run.json", '{"run": 1}')
    repository.write("benefit_v1.0.json", "{}")
    repository.write("text.db", "no database")
    with closing(sqlite3.connect(repository.root / "other.db")) as connection:
        connection.execute("CREATE TABLE book (id)")
    names = ("benefit_v1.0.json", "job/run.json", "other.db", "text.db")
    assert read_tree(repository.root).uncommitted == tuple(f"untracked {name}" for name in names)


def test_what_git_tracks_is_source_whoever_wrote_it(repository: Repository) -> None:
    run_folder(repository)
    repository.commit()
    repository.write("any/name/calls.jsonl", "{}")
    assert read_tree(repository.root).uncommitted == ("modified any/name/calls.jsonl",)


def test_what_stands_beside_a_named_file_goes_with_it(repository: Repository) -> None:
    for name in ("set.json", "set.meta.json", "set.json.meta.json", "b.sqlite", "b.sqlite-wal", "other.meta.json"):
        repository.write(name, "{}")
    named = [repository.root / "set.json", repository.root / "b.sqlite", None]
    assert read_tree(repository.root, without=named).uncommitted == ("untracked other.meta.json",)


def test_a_named_link_is_left_out_with_what_it_leads_to(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repository.root / "golden-runs").symlink_to(tmp_path / "elsewhere")
    (repository.root / "inner").symlink_to(repository.root / "docs")
    assert read_tree(repository.root).uncommitted == ("untracked golden-runs", "untracked inner")
    named = [repository.root / "golden-runs", repository.root / "inner"]
    assert read_tree(repository.root, without=named).uncommitted == ()


def test_a_file_that_one_of_two_looks_was_given_is_no_difference(repository: Repository) -> None:
    repository.write("plan.yaml", "x: 1\n")
    given = read_tree(repository.root, without=[repository.root / "plan.yaml"])
    assert given.named == ("plan.yaml",)
    assert not differences(given, read_tree(repository.root))
    repository.write("a.py", "")
    assert differences(given, read_tree(repository.root)).source == ("untracked a.py",)

"""Links, pipes and files of other users in the folders that Cranfield fills: refused, and what they lead to is unchanged."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.formats.io.files import open_inside, read_inside
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, TestSet
from cranfield.systems import collect_all

TESTSET = TestSet("t", (Query("q1", "a"),))
PLANTED = {
    "symbolic link": lambda place, target: place.symlink_to(target),
    "link to a folder": lambda place, target: place.symlink_to(target.parent),
    "dangling link": lambda place, target: place.symlink_to(target.with_name("created")),
    "hard link": lambda place, target: place.hardlink_to(target),
    "pipe": lambda place, _: os.mkfifo(place),
}


class Asked:
    """A system that counts its calls, and says what its answers depend on."""

    name, concurrency, config_digest, order = "old", 1, "sha256:old", "given"

    def __init__(self) -> None:
        self.calls = 0

    def depends_on(self) -> Iterator[Path]:
        return iter([Path(__file__)])

    def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        self.calls += 1
        return Answer(Outcome.ANSWERED, (Hit(f"d{k}"),)), CallLog(1.0)

    def public_config(self) -> dict[str, str]:
        return {}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file of the user outside of the output folder, and the folder that it is in."""
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "precious"
    path.write_text('{"journal": 1}\n{"query_id": "q1"}\n')
    path.chmod(0o640)
    os.utime(path, ns=(10**18, 10**18))
    return path


def state(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Everything in a folder: content, mode and time."""
    return {
        path.name: (path.read_text(), path.stat().st_mode, path.stat().st_mtime_ns) for path in sorted(folder.iterdir())
    }


@pytest.fixture
def refused(tmp_path: Path, target: Path) -> Callable[..., Asked]:
    """Plant a file, collect, and check that this was refused and changed nothing."""

    def _refused(place: str, kind: str, *, n_calls: int | None = 0, **options: object) -> Asked:
        path = tmp_path / "out" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        PLANTED[kind](path, target)
        before, system = state(target.parent), Asked()
        with pytest.raises(UsageError) as caught:
            collect_all(TESTSET, [system], out_dir=tmp_path / "out", **options)
        assert f"{path}: this is a" in str(caught.value)
        assert "find out which program created it, and remove it" in str(caught.value)
        assert state(target.parent) == before
        assert n_calls is None or system.calls == n_calls
        return system

    return _refused


@pytest.mark.parametrize("kind", PLANTED)
def test_a_journal_that_leads_elsewhere_is_neither_read_nor_written(refused: Callable[..., Asked], kind: str) -> None:
    refused(".partial/old.jsonl", kind)


@pytest.mark.parametrize("place", [".partial", "runs"])
def test_a_folder_that_leads_elsewhere_is_not_filled(refused: Callable[..., Asked], place: str) -> None:
    refused(place, "link to a folder", n_calls=None)


@pytest.mark.parametrize("place", ["runs/old.jsonl", "runs/old.log.jsonl"])
@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "pipe"])
def test_a_run_that_leads_elsewhere_is_not_written_and_its_answers_are_kept(
    refused: Callable[..., Asked], tmp_path: Path, target: Path, place: str, kind: str
) -> None:
    refused(place, kind, n_calls=1)
    (tmp_path / "out" / place).unlink()
    system = Asked()
    collect_all(TESTSET, [system], out_dir=tmp_path / "out")
    assert system.calls == 0


def test_a_run_with_a_hard_link_is_replaced_and_the_other_name_keeps_its_content(tmp_path: Path, target: Path) -> None:
    (tmp_path / "out" / "runs").mkdir(parents=True)
    (tmp_path / "out" / "runs" / "old.jsonl").hardlink_to(target)
    before = state(target.parent)
    collect_all(TESTSET, [Asked()], out_dir=tmp_path / "out")
    assert state(target.parent) == before


def test_journals_are_not_set_aside_where_a_link_leads(refused: Callable[..., Asked], tmp_path: Path) -> None:
    class Broken(Asked):
        def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
            if query.id == "q2":
                raise ZeroDivisionError
            return super().search(query, k)

    two = TestSet("two", (*TESTSET.queries, Query("q2", "b")))
    with pytest.raises(ZeroDivisionError):
        collect_all(two, [Broken()], out_dir=tmp_path / "out")
    refused(".partial/set-aside", "link to a folder")


@pytest.mark.parametrize("kind", ["symbolic link", "pipe"])
def test_kept_answers_that_lead_elsewhere_are_not_read(
    refused: Callable[..., Asked], tmp_path: Path, target: Path, kind: str
) -> None:
    cache = tmp_path / "out" / "answers"
    options = CollectOptions(cache_dir=cache, cache_h=1, cache_root=tmp_path)
    collect_all(TESTSET, [Asked()], out_dir=tmp_path / "first", options=options)
    (entry,) = cache.iterdir()
    entry.unlink()
    refused(f"answers/{entry.name}", kind, options=options)


def test_a_folder_of_kept_answers_that_is_a_link_is_refused_unless_the_user_named_it(
    refused: Callable[..., Asked], tmp_path: Path, target: Path
) -> None:
    cache = tmp_path / "out" / "answers"
    refused("answers", "link to a folder", options=CollectOptions(cache_dir=cache, cache_h=1, cache_root=tmp_path))
    collect_all(TESTSET, [Asked()], out_dir=tmp_path, options=CollectOptions(cache_dir=cache, cache_h=1))
    assert len(list(target.parent.glob("old-*.jsonl"))) == 1


def test_an_output_folder_that_the_user_names_may_be_a_link(tmp_path: Path, target: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    collect_all(TESTSET, [Asked()], out_dir=tmp_path / "out")
    assert (tmp_path / "disk" / "runs" / "old.jsonl").is_file()
    assert (tmp_path / "out").is_symlink()


def test_what_holds_answers_is_for_its_owner_alone(tmp_path: Path, target: Path) -> None:
    modes: dict[str, int] = {}

    class Looking(Asked):
        def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
            for path in (tmp_path / "out").rglob("*"):
                modes[path.name] = stat.S_IMODE(path.stat().st_mode)
            return super().search(query, k)

    before = os.umask(0o022)
    try:
        options = CollectOptions(cache_dir=tmp_path / "out" / "answers", cache_h=1)
        collect_all(TESTSET, [Looking()], out_dir=tmp_path / "out", options=options)
    finally:
        os.umask(before)
    assert modes == {".partial": 0o700, "old.jsonl": 0o600}
    made = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").rglob("*")}
    assert {mode for path, mode in made.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in made.items() if path.is_file()} == {0o600}
    assert len(made) == 5, "runs, a run, its log, answers, a file of answers"


def test_a_file_of_another_user_in_a_folder_that_all_can_write_to_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text("theirs")
    if os.geteuid() == 0:
        os.chown(path, 4242, 4242)
    monkeypatch.setattr(os, "geteuid", lambda: 4243)
    assert read_inside(tmp_path, path) == b"theirs", "in a folder of ours others put nothing"
    tmp_path.chmod(0o1777)
    with pytest.raises(UsageError, match="this is of another user, in a folder that all users can write to"):
        open_inside(tmp_path, path, os.O_RDWR)


def test_a_link_that_replaces_a_folder_meanwhile_is_not_followed(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is exchanged after the check and before it is opened: the link is no folder to the call that opens."""
    (tmp_path / "runs").mkdir()

    real = os.open

    def racing(path: object, *arguments: object, **more: object) -> int:
        if path == "runs":
            (tmp_path / "runs").rmdir()
            (tmp_path / "runs").symlink_to(target.parent)
        return real(path, *arguments, **more)  # type: ignore[arg-type]  # the arguments of os.open

    monkeypatch.setattr(os, "open", racing)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        open_inside(tmp_path, tmp_path / "runs" / "precious", os.O_RDWR)

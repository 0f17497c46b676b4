"""What survives a power cut and a full disk: which files are flushed, when, and what an error leaves behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.formats.io.files import write_bytes
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, TestSet
from cranfield.systems import collect_all
from cranfield.systems.collect import journal
from cranfield.systems.collect.collection import collected

QUERIES = tuple(Query(f"q{n}", "a") for n in range(20))
Calls = list[tuple[str, str]]


class Answering:
    """A system that counts its calls; its answers take 200 bytes."""

    name, concurrency, config_digest, order = "old", 1, "sha256:old", "given"

    def __init__(self) -> None:
        self.calls = 0

    def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        self.calls += 1
        return Answer(Outcome.ANSWERED, (Hit("d" * 200),)), CallLog(1.0)

    def public_config(self) -> dict[str, str]:
        return {}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Flushes, and changes of names, in their order."""
    calls: Calls = []
    replace, unlink = os.replace, os.unlink

    def name_of(handle: int) -> str:
        return Path(f"/proc/self/fd/{handle}").readlink().name if Path("/proc").is_dir() else "?"

    def fsync(handle: int) -> None:
        calls.append(("flush", name_of(handle)))

    def replacing(old: str, new: str, **folders: int) -> None:
        calls.append(("replace", new))
        replace(old, new, **folders)

    def unlinking(name: str, **folders: int) -> None:
        calls.append(("remove", name))
        unlink(name, **folders)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replacing)
    monkeypatch.setattr(os, "unlink", unlinking)
    return calls


def test_a_replaced_file_is_flushed_before_it_has_its_name_and_the_folder_after(
    tmp_path: Path, recorded: Calls
) -> None:
    write_bytes(tmp_path / "a.json", [b"1"])
    (what, temporary), *rest = recorded
    assert what == "flush"
    assert temporary.startswith(".a.json.")
    assert rest == [("replace", "a.json"), ("flush", tmp_path.name)]
    recorded.clear()
    write_bytes(tmp_path / "a.json", [b"2"], keep=False)
    assert recorded == [("replace", "a.json")]


def test_a_run_is_on_the_disk_before_its_journal_is_removed(tmp_path: Path, recorded: Calls) -> None:
    with collected(TestSet("t", QUERIES), [Answering()], out_dir=tmp_path / "out"):
        assert ("remove", "old.jsonl") not in recorded
        recorded.append(("report", ""))
    runs = [place for place, call in enumerate(recorded) if call == ("flush", "runs")]
    assert max(runs) < recorded.index(("report", "")) < recorded.index(("remove", "old.jsonl"))
    assert recorded[recorded.index(("remove", "old.jsonl")) + 1] == ("flush", ".partial")


@pytest.mark.parametrize(("flush_s", "most"), [(0.0, 30), (1000.0, 3)])
def test_a_journal_is_flushed_at_most_once_in_a_time(
    tmp_path: Path, recorded: Calls, monkeypatch: pytest.MonkeyPatch, flush_s: float, most: int
) -> None:
    monkeypatch.setattr(journal, "FLUSH_S", flush_s)
    collect_all(TestSet("t", QUERIES), [Answering()], out_dir=tmp_path / "out")
    flushed = recorded[: recorded.index(("replace", "old.log.jsonl"))].count(("flush", "old.jsonl"))
    assert (20 if flush_s == 0 else 0) <= flushed <= most
    assert ("flush", "out") in recorded, "the name of the folder of journals"
    assert ("flush", ".partial") in recorded, "the name of the journal"


def test_a_full_disk_ends_a_collection_with_a_message_and_costs_no_answer(
    tmp_path: Path, file_limit: Callable[[int], AbstractContextManager[None]]
) -> None:
    first, testset = Answering(), TestSet("t", QUERIES)
    with file_limit(2_000), pytest.raises(UsageError) as caught:
        collect_all(testset, [first], out_dir=tmp_path / "out")
    assert str(caught.value).startswith(f"{tmp_path / 'out' / '.partial' / 'old.jsonl'}: file too large")
    assert "the answers so far are kept: the same command resumes from there" in str(caught.value)
    assert (tmp_path / "out" / ".partial" / "old.jsonl").read_bytes().endswith(b"}\n"), "half a line was taken back"
    assert 2 < first.calls < 20
    second = Answering()
    collect_all(testset, [second], out_dir=tmp_path / "out")
    assert first.calls + second.calls == 21, "only the answer without room is asked again"


def test_a_run_without_room_leaves_no_part_of_it_and_costs_no_call(
    tmp_path: Path, file_limit: Callable[[int], AbstractContextManager[None]]
) -> None:
    first, second, testset = Answering(), Answering(), TestSet("t", QUERIES[:1])
    with file_limit(10), pytest.raises(UsageError):
        collect_all(testset, [first], out_dir=tmp_path / "none")
    assert first.calls == 0
    with pytest.raises(OSError, match="File too large"), file_limit(10):
        write_bytes(tmp_path / "a.json", [b"x" * 100])
    assert [path.name for path in tmp_path.iterdir()] == ["none"]
    collect_all(testset, [second], out_dir=tmp_path / "out")


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.ENOSPC])
def test_a_flush_that_fails_is_an_error_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (tmp_path / "a.json").write_text("old")

    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        write_bytes(tmp_path / "a.json", [b"new"])
    assert caught.value.filename == str(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(UsageError, match="answers so far are kept"):
        collect_all(TestSet("t", QUERIES), [Answering()], out_dir=tmp_path / "out")


def test_a_file_system_that_cannot_flush_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write_bytes(tmp_path / "a.json", [b"new"])
    assert (tmp_path / "a.json").read_text() == "new"

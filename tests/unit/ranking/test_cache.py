"""What a run came down to is kept by content: found again, never trusted, never in the way."""

import dataclasses
import os

import numpy as np
import pytest

from cranfield.model import Query, TestSet, convention_named
from cranfield.ranking import file as run_file
from cranfield.ranking import rank_file

TREC = convention_named("trec")
TESTSET = TestSet("set", (Query("q1"), Query("q2")), {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}})
TEXT = "".join(f"q{q} Q0 {d} 0 {10 - i} tag\n" for q in (1, 2, 3) for i, d in enumerate("xabcy"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(run_file, "SMALLEST_BYTES", 1)
    return tmp_path / "cache"


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text(TEXT)
    return path


def entries(folder):
    return sorted(folder.glob("*.npz"))


def same(a, b):
    for field in dataclasses.fields(a.ranking):
        one, other = getattr(a.ranking, field.name), getattr(b.ranking, field.name)
        if isinstance(one, np.ndarray):
            assert (one == other).all(), field.name
        elif field.name == "top":
            assert dict(one) == dict(other)
        else:
            assert one == other, field.name
    rest = [f.name for f in dataclasses.fields(a) if f.name not in {"ranking", "make_digest"}] + ["digest"]
    return all(getattr(a, name) == getattr(b, name) for name in rest)


def test_the_second_time_is_the_same_and_reads_no_line(folder, run, monkeypatch):
    plain = rank_file(TESTSET, run, TREC)
    first = rank_file(TESTSET, run, TREC, cache=True)
    assert len(entries(folder)) == 1
    monkeypatch.setattr("cranfield.ranking.engine.scan_file", lambda *_: pytest.fail("it was read again"))
    second = rank_file(TESTSET, run, TREC, cache=True)
    assert same(plain, first)
    assert same(first, second)


def test_without_being_asked_nothing_is_kept(folder, run):
    rank_file(TESTSET, run, TREC)
    assert not folder.exists()


def test_other_bytes_judgments_and_choices_have_entries_of_their_own(folder, run):
    rank_file(TESTSET, run, TREC, cache=True)
    run.write_text(TEXT.replace("x 0 10", "x 0 11"))
    rank_file(TESTSET, run, TREC, cache=True)
    assert len(entries(folder)) == 2
    rank_file(TestSet("set", (Query("q1"),), {"q1": {"a": 2}}), run, TREC, cache=True)
    assert len(entries(folder)) == 3
    rank_file(TESTSET, run, TREC, depth=2, cache=True)
    assert len(entries(folder)) == 4


def test_grades_are_no_part_of_it(folder, run):
    rank_file(TESTSET, run, TREC, cache=True)
    other = TestSet("set", TESTSET.queries, {"q1": {"a": 3, "b": 2}, "q2": {"c": 0}})
    ranking = rank_file(other, run, TREC, cache=True).ranking
    assert len(entries(folder)) == 1
    assert ranking.level.tolist() == [3, 2, 0]


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_entry_is_as_if_it_were_not_there(folder, run, damage):
    plain = rank_file(TESTSET, run, TREC, cache=True)
    (entry,) = entries(folder)
    data = bytearray(entry.read_bytes())
    data[-200] ^= 0xFF
    entry.write_bytes(bytes(data) if damage is None else damage)
    assert same(plain, rank_file(TESTSET, run, TREC, cache=True))
    assert same(plain, rank_file(TESTSET, run, TREC, cache=True))


def test_a_folder_that_takes_nothing_is_no_matter(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(run_file, "SMALLEST_BYTES", 1)
    assert same(rank_file(TESTSET, run, TREC), rank_file(TESTSET, run, TREC, cache=True))


def test_it_can_be_turned_off_and_small_files_never_enter(folder, run, monkeypatch):
    monkeypatch.setattr(run_file, "SMALLEST_BYTES", 10**6)
    rank_file(TESTSET, run, TREC, cache=True)
    monkeypatch.setenv("CRANFIELD_CACHE", "off")
    monkeypatch.setattr(run_file, "SMALLEST_BYTES", 1)
    rank_file(TESTSET, run, TREC, cache=True)
    assert not folder.exists()


def test_what_was_not_used_for_longest_goes_first(folder, run, monkeypatch):
    rank_file(TESTSET, run, TREC, cache=True)
    (old,) = entries(folder)
    os.utime(old, (1, 1))
    monkeypatch.setattr(run_file, "MAX_BYTES", old.stat().st_size + 10)
    rank_file(TESTSET, run, TREC, depth=1, cache=True)
    assert len(entries(folder)) == 1
    assert not old.exists()


def test_a_digest_is_that_of_the_reader_whatever_the_threads(run, monkeypatch):
    expected = rank_file(TESTSET, run, TREC).digest
    assert run_file.file_digest(run, 1) == run_file.file_digest(run, 3) == expected

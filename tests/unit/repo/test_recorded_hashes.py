"""Hashes of source files in the metadata of a test set: enforced, in the spelling in which they are recorded."""

from __future__ import annotations

import hashlib
import json
from datetime import date

import pytest

from cranfield.app.drift import check_repository, rehash
from cranfield.app.loading import load
from cranfield.base.errors import TestSetError, UsageError
from cranfield.evaluation.options.blocks import TestSetOptions
from cranfield.model import NoteKind
from cranfield.repo.drift import verify
from cranfield.repo.snapshot import take

A = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
B = "def h():\n    return 3\n"
GOLDEN = [
    {"query_id": "q1", "query_text": "one", "expected_entities": ["src/a.py::f"], "expected_files": ["src/a.py"]},
    {"query_id": "q2", "query_text": "two", "expected_entities": ["src/b.py::h"], "expected_files": ["src/b.py"]},
]


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


SPELLINGS = {
    "sha256": sha256,
    "sha256 with its name": lambda text: f"sha256:{sha256(text)}",
    "upper case": lambda text: sha256(text).upper(),
    "first digits": lambda text: sha256(text)[:12],
    "sha1": lambda text: hashlib.sha1(text.encode()).hexdigest(),
    "blob of git": lambda text: hashlib.sha1(f"blob {len(text)}\0{text}".encode()).hexdigest(),
    "md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(A)
    (tmp_path / "src/b.py").write_text(B)
    (tmp_path / "src/c.py").write_text("C = 1\n")
    (tmp_path / "g.json").write_text(json.dumps(GOLDEN, indent=2))
    return tmp_path


def facts(folder, hash_of=sha256, **more):
    recorded = {"src/a.py": hash_of(A), "src/b.py": hash_of(B)} | more
    (folder / "g.meta.json").write_text(json.dumps({"source_file_hashes": recorded}, indent=2))
    return recorded


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_with_its_recorded_hash_holds_its_places(folder, spelling):
    facts(folder, SPELLINGS[spelling])
    testset = load(folder / "g.json")
    report = verify(testset, take(folder))
    assert {finding.state for finding in report.findings} == {"unchanged"}
    (folder / "src/a.py").write_text(A.replace("2", "22"))  # not in f, which has no anchor
    report = verify(testset, take(folder))
    assert {f.label: f.state for f in report.findings} == {
        "src/a.py::f": "edited",
        "src/a.py": "edited",
        "src/b.py::h": "unchanged",
        "src/b.py": "unchanged",
    }


def test_a_changed_file_is_refused_with_the_repository(folder):
    facts(folder)
    (folder / "src/a.py").write_text(A + "\n")
    with pytest.raises(TestSetError) as caught:
        load(folder / "g.json", options=TestSetOptions(repo=folder))
    assert "2 of 4 expected places changed in the folder: 2 edited" in str(caught.value)
    assert "the hash of src/a.py is not the recorded one" in str(caught.value)
    allowed = load(folder / "g.json", options=TestSetOptions(repo=folder, allow_drift=True))
    assert allowed.query_ids == ("q1", "q2")


def test_a_recorded_file_counts_where_nothing_is_expected_in_it(folder):
    facts(folder, **{"src/c.py": sha256("C = 1\n"), "src/gone.py": "0" * 64})
    report = verify(load(folder / "g.json"), take(folder))
    assert {f.label: (f.state, f.queries) for f in report.drifted} == {"src/gone.py": ("gone", ())}
    (folder / "src/c.py").write_text("C = 2\n")
    assert [f.label for f in verify(load(folder / "g.json"), take(folder)).drifted] == ["src/c.py", "src/gone.py"]


def test_what_is_no_hash_is_an_error(folder):
    facts(folder, **{"src/c.py": "see git", "src/d.py": "12"})
    with pytest.raises(TestSetError) as caught:
        verify(load(folder / "g.json"), take(folder))
    assert [problem.got for problem in caught.value.problems] == ["'see git'", "'12'"]


def test_rehash_keeps_what_holds_as_it_is_written(folder):
    recorded = facts(folder, SPELLINGS["blob of git"])
    again = rehash(load(folder / "g.json"), folder, today=date(2026, 11, 21))
    assert again.meta.source_files == recorded
    (folder / "src/a.py").write_text(A + "\n")
    again = rehash(load(folder / "g.json"), folder, today=date(2026, 11, 21), allow_drift=True)
    assert again.meta.source_files == {"src/a.py": sha256(A + "\n"), "src/b.py": recorded["src/b.py"]}


def test_anchors_tell_more_than_the_hash_of_a_file(folder):
    facts(folder)
    anchored = rehash(load(folder / "g.json"), folder, today=date(2026, 11, 21))
    (folder / "src/a.py").write_text("# a comment\n" + A)
    assert not verify(anchored, take(folder)).drifted


def test_intact_keeps_the_queries_whose_places_stand(folder):
    facts(folder)
    (folder / "src/a.py").write_text(A + "\n")
    testset = load(folder / "g.json", options=TestSetOptions(repo=folder, intact=True))
    assert testset.query_ids == ("q2",)
    note = next(note for note in testset.notes if note.kind is NoteKind.INTACT)
    assert note.text == (
        "Only intact queries are evaluated: 1 of 2. Left out, because places that they expect changed in "
        "the folder (2 edited): q1."
    )
    assert (note.query_ids, note.total) == (("q1",), 2)
    (folder / "src/b.py").unlink()
    with pytest.raises(TestSetError, match="each of 2 queries expects a place that changed in"):
        check_repository(load(folder / "g.json"), folder, intact=True)


def test_intact_leaves_a_set_alone_that_holds(folder):
    facts(folder)
    testset = load(folder / "g.json", options=TestSetOptions(repo=folder, intact=True))
    assert testset.query_ids == ("q1", "q2")
    assert not [note for note in testset.notes if note.kind is NoteKind.INTACT]
    with pytest.raises(UsageError, match="need a repository"):
        load(folder / "g.json", options=TestSetOptions(intact=True))

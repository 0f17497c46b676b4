"""Holding a test set to a repository, and tying it to one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cranfield.app.drift import check_repository, rehash
from cranfield.base.errors import TestSetError
from cranfield.model import Entity, File, NoteKind, Query, Span, Target, TestSet
from cranfield.repo.drift import verify
from cranfield.repo.snapshot import take

TODAY = date(2026, 11, 21)
CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(CODE)
    return tmp_path


def code_set() -> TestSet:
    queries = (
        Query("q1", strata={"kind": "easy"}),
        Query("q2", strata={"kind": "hard"}),
        Query("q3", strata={"kind": "easy"}),
    )
    targets: dict[str, tuple[Target, ...]] = {
        "q1": (Entity("src/a.py::one"),),
        "q2": (Span("src/a.py", 5, 6),),
        "q3": (File("src/a.py"),),
    }
    return TestSet("code", queries, targets=targets)


def test_a_set_that_holds_comes_back_as_it_is(folder: Path) -> None:
    tied = rehash(code_set(), folder, today=TODAY)
    assert check_repository(tied, folder) == tied
    assert tuple(map(str, check_repository(tied, folder).notes)) == ()


def test_rehash_writes_what_ties_the_set_and_leaves_the_rest(folder: Path) -> None:
    tied = rehash(code_set(), folder, today=TODAY)
    assert (tied.digest, tied.queries, tied.targets) == (code_set().digest, code_set().queries, code_set().targets)
    assert tied.meta.counts == {"queries": 3, "kind=easy": 2, "kind=hard": 1}
    assert list(tied.meta.source_files) == ["src/a.py"]
    assert set(tied.meta.anchors) == {"src/a.py::one", "src/a.py:5-6", "src/a.py"}
    assert tied.meta.anchors["src/a.py:5-6"].symbol == "src/a.py::two"
    assert tied.meta.commit == ""
    assert tied.meta.history == ("2026-11-21: rehashed: 3 places in 1 file.",)


def test_moved_lines_are_healed_and_said(folder: Path) -> None:
    tied = rehash(code_set(), folder, today=TODAY)
    (folder / "src/a.py").write_text("import os\n" + CODE)
    held = check_repository(tied, folder)
    assert held.targets["q2"] == (Span("src/a.py", 6, 7),)
    assert tuple(map(str, held.notes)) == ("1 place moved, with the text, to new lines: src/a.py:5-6 to src/a.py:6-7.",)


def test_drift_fails_loudly_and_names_every_place(folder: Path) -> None:
    tied = rehash(code_set(), folder, today=TODAY)
    (folder / "src/a.py").write_text(CODE.replace("return 1", "return 11").replace("two", "three"))
    with pytest.raises(TestSetError) as caught:
        check_repository(tied, folder)
    head, edited, renamed = caught.value.problems
    assert head.message == "test set 'code': 2 of 3 expected places changed in the folder: 1 edited, 1 renamed"
    assert head.hint is not None
    assert "{allow_drift}" in head.hint
    assert (edited.path, edited.message) == ("src/a.py::one", "edited (its text differs; now on lines 1-2)")
    assert (renamed.path, renamed.message) == ("src/a.py:5-6", "renamed (in src/a.py::three)")


def test_more_places_than_a_message_names_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(f"x{n} = {n}\n" for n in range(30)))
    targets = {f"q{n}": (Entity(f"a.py::x{n}"),) for n in range(30)}
    tied = rehash(TestSet("many", tuple(map(Query, targets)), targets=targets), tmp_path, today=TODAY)
    (tmp_path / "a.py").write_text("")
    with pytest.raises(TestSetError) as caught:
        check_repository(tied, tmp_path)
    assert "30 of 30 expected places changed in the folder: 30 gone" in str(caught.value)
    assert str(caught.value).splitlines()[-1] == "… and 11 more problems."  # 20 shown: the count and 19 of 30 places


def test_drift_that_is_allowed_is_said(folder: Path) -> None:
    tied = rehash(code_set(), folder, today=TODAY)
    (folder / "src/a.py").write_text(CODE.replace("return 1", "return 11"))
    held = check_repository(tied, folder, allow_drift=True)
    assert held.targets == tied.targets
    (note,) = held.notes
    assert (note.kind, note.query_ids, note.total) == (NoteKind.DRIFT, ("q1",), len(tied.queries))
    assert str(note).startswith("Drift was allowed: 1 of 3 expected places changed: src/a.py::one edited (")


def test_a_set_that_was_never_tied_says_what_goes_unseen(folder: Path) -> None:
    assert tuple(map(str, check_repository(code_set(), folder).notes)) == (
        "3 expected places without an anchor: edits there are not detected until `cranfield testset rehash SET --repo DIR`.",
    )


def test_a_set_that_expects_no_place_says_that_the_repository_says_nothing(folder: Path) -> None:
    plain = TestSet("ids", (Query("q1"),), {"q1": {"d1": 1.0}})
    assert tuple(map(str, check_repository(plain, folder).notes)) == (
        "No expected place is in a file: this test set cannot be checked against the repository.",
    )


def test_rehash_refuses_places_that_are_not_there_unless_told(folder: Path) -> None:
    wrong = replace(code_set(), files={"q1": ("src/none.py",)})
    with pytest.raises(TestSetError, match=r"src/none\.py: gone \(the file does not exist"):
        rehash(wrong, folder, today=TODAY)
    tied = rehash(wrong, folder, today=TODAY, allow_drift=True)
    assert tuple(map(str, tied.notes)) == ("Not found, and not anchored: src/none.py (the file does not exist).",)
    assert "src/none.py" not in tied.meta.anchors


def test_rehash_does_not_anchor_old_lines_to_new_text(folder: Path) -> None:
    tied = rehash(code_set(), folder, today=TODAY)
    (folder / "src/a.py").write_text("import os\n" + CODE)
    with pytest.raises(TestSetError, match="1 moved") as caught:
        rehash(tied, folder, today=TODAY)
    assert "`cranfield testset verify SET --repo DIR --out FILE` can write the set with moved lines corrected" in str(
        caught.value
    )
    again = rehash(check_repository(tied, folder), folder, today=TODAY)
    assert again.meta.anchors["src/a.py:6-7"] == tied.meta.anchors["src/a.py:5-6"]
    assert check_repository(again, folder).notes == again.notes


SOURCES = {
    "windows line ends": "def one():\r\n    return 1\r\n\r\n\r\ndef two():\r\n    return 2\r\n",
    "tabs": "def one():\n\treturn 1\n\n\ndef two():\n\treturn 2\n",
    "a byte order mark": "\ufeff" + CODE,
    "no line feed at the end": CODE.rstrip(),
    "twice the same": CODE.replace("two", "one"),
    "no Python": "def one(:\n\n\n\n\n\n",
}


@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
def test_what_was_just_tied_holds_and_tying_again_adds_history_alone(folder: Path, text: str) -> None:
    (folder / "src/a.py").write_bytes(text.encode())
    targets: dict[str, tuple[Target, ...]] = {
        "q1": (Entity("src/a.py::one"),) if "(:" not in text else (),
        "q2": (Span("src/a.py", 1, 2), Span("src/a.py", 2, 5), Span("src/a.py", 6, 6)),
        "q3": (File("src/a.py"), Entity("src/page.md::Guide > Use")),
    }
    if "(:" in text:
        targets["q2"] = (Span("src/a.py", 1, 1),)
    (folder / "src/page.md").write_text("# Guide\n\n## Use\n\none\n\n## Use\n\ntwo\n")
    tied = rehash(replace(code_set(), targets=targets), folder, today=TODAY)
    report = verify(tied, take(folder))
    assert {finding.state for finding in report.findings} == {"unchanged"}
    again = rehash(tied, folder, today=TODAY)
    assert replace(again, meta=replace(again.meta, history=tied.meta.history)) == tied
    assert len(again.meta.history) == 2

"""Changing a set: its metadata stay true, and the comments of its file stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from cranfield.base.errors import UsageError
from cranfield.evaluation.testset.edit import Addition, added, counts_of, id_for, next_version
from cranfield.formats.sniff import read_testset
from cranfield.model import Entity, Fact, File, Label, Lines, Meta, Negative, Pattern, Query, Span, TestSet

TODAY = date(2026, 11, 21)
SET = TestSet(
    "set",
    (Query("q1", "one", {"kind": "a"}), Query("q2", "two"), Query("q3", "three", negative=Negative())),
    {"q1": {"a": 1}},
    {"q2": (Entity("x.py::F"),)},
    meta=Meta(counts={"queries": 1}, history=("2026-01-01: made",)),
)


def test_a_query_is_added_and_the_metadata_kept_true():
    new = added(SET, Addition("q4", "four", {"kind": "a"}, "A", grades={"b": 2}), TODAY)
    assert new.by_id["q4"] == Query("q4", "four", {"kind": "a"}, query_class="canonical")
    assert new.grades["q4"] == {"b": 2}
    assert new.meta.counts == {"queries": 4, "kind=a": 2} == counts_of(new)
    assert new.meta.made == "2026-11-21"
    assert new.meta.history == ("2026-01-01: made", "2026-11-21: added query q4 (1 judgment)")
    assert (SET.query_ids, SET.grades) == (("q1", "q2", "q3"), {"q1": {"a": 1}})  # nothing of the old one moved


def test_judgments_are_added_to_a_query_that_is_there():
    new = added(SET, Addition("q1", grades={"b": 0}), TODAY)
    assert (new.by_id["q1"], new.grades["q1"]) == (SET.by_id["q1"], {"a": 1, "b": 0})
    new = added(SET, Addition("q2", targets=(Entity("x.py::G"),)), TODAY)
    assert new.targets["q2"] == (Entity("x.py::F"), Entity("x.py::G"))


def test_the_file_of_an_entity_is_one_to_cover_and_no_second_target():
    both = (Entity("x.py::G"), File("x.py"))
    new = added(SET, Addition("q9", "nine", targets=both), TODAY)
    assert (new.targets["q9"], new.files) == ((Entity("x.py::G"),), {"q9": ("x.py",)})
    new = added(SET, Addition("q2", targets=(File("x.py"), File("y.py"))), TODAY)  # q2 expects an entity already
    assert (new.targets["q2"], new.files) == ((Entity("x.py::F"),), {"q2": ("x.py", "y.py")})
    new = added(SET, Addition("q9", "nine", targets=(File("x.py"),)), TODAY)
    assert (new.targets["q9"], new.files) == ((File("x.py"),), {})  # where nothing else is expected, it is a target
    new = added(SET, Addition("q9", "nine", targets=(File("x.py", 2), File("y.py"))), TODAY)
    assert (new.targets["q9"], new.files) == ((File("x.py", 2), File("y.py")), {})


def test_a_question_with_other_white_space_keeps_its_text(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("query,pattern\nhow to  sort,^a$\n")
    testset = read_testset(path)
    (query,) = testset.queries
    text = " how to sort "
    new = added(testset, Addition(id_for(testset, "", text), text, targets=(Pattern("^b$"),)), TODAY)
    assert new.queries == (query,)
    assert len(new.targets[query.id]) == 2
    with pytest.raises(UsageError, match="nothing to add"):
        added(testset, Addition(id_for(testset, "", text), text), TODAY)


@pytest.mark.parametrize(
    ("addition", "messages"),
    [
        (Addition("q9"), ["is new and has no text", "is new and has no expected results"]),
        (Addition("q9", " \t", grades={"a": 1}), ["is new and has no text"]),
        (Addition("q9", "nine", negative=True, grades={"a": 1}), ["is negative but has expected results"]),
        (Addition("q3", grades={"a": 1}), ["is negative but has expected results"]),
        (Addition("q1", negative=True), ["is negative but has expected results"]),
        (Addition("q1", targets=(Entity("x.py::F"),)), ["both graded documents and targets"]),
        (Addition("q9", "nine", targets=(Entity("y.py::G"), File("y.py", 2))), ["file 'y.py' has a grade"]),
        (Addition("q2", targets=(File("x.py"), File("y.py", 0))), ["file 'y.py' has a grade"]),
        (Addition("q2", grades={"a": 1}), ["both graded documents and targets"]),
        (Addition("q1", grades={"a": 2}), ["is judged on 'a' already"]),
        (Addition("q2", targets=(Entity("x.py::F#2"),)), ["is judged on 'x.py::F' already"]),  # a definition of it
        (Addition("q2", targets=(Entity("y"), Entity("y"))), ["'y' is given twice"]),
    ],
)
def test_what_does_not_fit_is_refused_all_at_once(addition, messages):
    with pytest.raises(UsageError) as caught:
        added(SET, addition, TODAY)
    assert len(caught.value.problems) == len(messages)
    assert all(part in problem.message for part, problem in zip(messages, caught.value.problems, strict=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "2"),
        ("1", "2"),
        ("v9", "v10"),
        ("1.4-beta", "1.5-beta"),
        ("draft", "draft-2"),
        ("2026-08", "2026-11"),
        ("2026-08-01", "2026-11-21"),
        ("2026-11", "2026-11.2"),
    ],
)
def test_the_next_version_follows_the_old_one(old, new):
    assert next_version(old, TODAY) == new


def test_a_digest_is_of_the_content_and_not_of_the_name_or_the_metadata():
    other = replace(SET, name="other", version="9", description="words", meta=Meta(review="reviewed"))
    assert other.digest == SET.digest
    assert added(SET, Addition("q1", grades={"b": 0}), TODAY).digest != SET.digest


def test_a_label_stays_and_gets_the_lines_of_added_targets():
    label = Label(line_ranges=(Lines("a.py", 1, 2),), must_mention=(Fact("It is so."),))
    testset = TestSet("t", (Query("q", "one"),), targets={"q": (Span("a.py", 1, 2),)}, labels={"q": label})
    more = added(testset, Addition("q", targets=(Span("b.py", 3, 4), Entity("c.py::f"))), TODAY)
    assert more.labels == {"q": replace(label, line_ranges=(Lines("a.py", 1, 2), Lines("b.py", 3, 4)))}
    assert added(testset, Addition("new", "two", targets=(Span("b.py", 3, 4),)), TODAY).labels == {"q": label}

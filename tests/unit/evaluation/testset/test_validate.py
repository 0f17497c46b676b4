"""Checks of test sets: each finds what it is for, and nothing where there is nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from cranfield.evaluation.testset.validate import CHECKS, validate
from cranfield.formats.sniff import read_testset
from cranfield.model import (
    Entity,
    File,
    Hit,
    Legacy,
    Meta,
    Negative,
    Pattern,
    Query,
    Rating,
    Source,
    Span,
    Split,
    TestSet,
)

TODAY = date(2026, 11, 21)
CLEAN = TestSet(
    "clean",
    (
        Query("q1", "rotate the log files"),
        Query("q2", "who may write here"),
        Query("q3", "nothing", negative=Negative()),
    ),
    {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}},
    meta=Meta(scale=(0, 1, 2), made="2026-11-01"),
)


def found(testset, *, runs=None):
    return [(finding.check, finding.query_id) for finding in validate(testset, today=TODAY, runs=runs).findings]


def with_targets(*targets, text="a question", **more):
    return TestSet("t", (Query("q1", text),), targets={"q1": targets}, **more)


def test_nothing_is_found_in_a_clean_set():
    assert found(CLEAN) == []


@pytest.mark.parametrize(
    ("testset", "expected"),
    [
        (replace(CLEAN, queries=(*CLEAN.queries, Query("q1", "again"))), [("ids", "q1")]),
        (replace(CLEAN, grades={"q1": {"a": 0, "b": -1}, "q2": {"c": 1}}), [("relevant", "q1")]),
        (replace(CLEAN, grades={"q2": {"c": 1}}), [("relevant", "q1")]),
        (replace(CLEAN, grades={"q1": {"a": 3}, "q2": {"c": 1}}), [("scale", "q1")]),
        (replace(CLEAN, grades={**CLEAN.grades, "q3": {"d": 1}}), [("negative", "q3")]),
        (replace(CLEAN, grades={**CLEAN.grades, "q3": {"d": 0}}), []),
        (
            replace(CLEAN, ratings={"q1": (Rating("a", "ann", 1), Rating("a", "ann", 2))}),
            [("contradictions", "q1")],
        ),
        (replace(CLEAN, ratings={"q1": (Rating("a", "ann", 2), Rating("a", "ann", 2))}), [("repeats", "q1")]),
        (replace(CLEAN, ratings={"q1": (Rating("a", "ann", 2), Rating("a", "bob", 1))}), []),
        (replace(CLEAN, meta=Meta(split=Split(0, 0.2, ("q9",)))), [("split", "")]),
        (replace(CLEAN, meta=Meta(made="last week")), [("date", "")]),
        (with_targets(Span("a.py", 1, 5), Span("a.py", 1, 5)), [("repeats", "q1")]),
        (with_targets(Span("a.py", 1, 5), Span("a.py", 1, 5, 2)), [("contradictions", "q1")]),
        (with_targets(Pattern("^a"), Pattern("^a", 2)), [("contradictions", "q1")]),
        (with_targets(Entity("a.py::F"), Entity("a.py::F")), [("repeats", "q1")]),
        (with_targets(Span("a.py", 1, 5), Span("a.py", 5, 9)), [("overlaps", "q1")]),
        (with_targets(Span("a.py", 1, 5), Span("./a.py", 3, 4)), [("overlaps", "q1")]),
        (with_targets(Span("a.py", 1, 5), Span("a.py", 6, 9)), []),
        (with_targets(Span("a.py", 1, 5), Span("b.py", 1, 9)), []),
        (replace(CLEAN, queries=(Query("q1", ""), *CLEAN.queries[1:])), [("texts", "q1")]),
        (TestSet("t", (Query("q1"), Query("q2")), {"q1": {"a": 1}, "q2": {"a": 1}}), [("texts", "")]),
        (replace(CLEAN, legacy={"q1": Legacy(ids=("a",))}), [("legacy", "q1")]),
        (replace(CLEAN, legacy={"q1": Legacy(patterns=("^a$",))}), [("legacy", "q1")]),
        (replace(CLEAN, legacy={"q1": Legacy(ids=("b",))}), []),
        (replace(CLEAN, sources=(Source("x", "^[abc]$"), Source("y", "^z"))), [("sources", "")]),
        (replace(CLEAN, sources=(Source("x", "^[ab]$"),)), [("sources", "")]),
        (replace(CLEAN, meta=Meta(counts={"queries": 2})), [("counts", "")]),
        (replace(CLEAN, meta=Meta(counts={"queries": 3})), []),
        (replace(CLEAN, meta=Meta(made="2026-08-22")), [("refresh", "")]),  # 91 days
        (replace(CLEAN, meta=Meta(made="2026-08-23")), []),  # 90 days
        (replace(CLEAN, meta=Meta(made="2026-11-01", refresh_days=10)), [("refresh", "")]),
    ],
)
def test_each_check_finds_its_own_and_nothing_else(testset, expected):
    assert found(testset) == expected


@pytest.mark.parametrize(
    ("text", "target", "leaks"),
    [
        ("where is parse_file", Entity("src/md.py::Parser.parse_file"), True),
        ("where is Parser", Entity("src/md.py::Parser.parse_file"), True),
        ("where is parser", Entity("src/md.py::Parser.parse_file"), False),  # another case
        ("where is parse_files", Entity("src/md.py::Parser.parse_file"), False),  # no whole word
        ("what is md for", Entity("src/md.py::Parser"), False),  # a symbol is named by its names, not by its file
        ("who calls go", Entity("src/md.py::go"), False),  # under 3 characters
        ("what is in text_tools", Span("src/text_tools.rs", 1, 9), True),
        ("how is config read", Span("src/config.rs", 1, 9), False),  # a word that is no code
        ("show ParserTable", File("src/ParserTable.java"), True),
        ("what matches ^x", Pattern("^x"), False),
    ],
)
def test_a_text_leaks_a_name_of_what_it_should_find(text, target, leaks):
    assert (("leaks", "q1") in found(with_targets(target, text=text))) is leaks


@pytest.mark.parametrize(
    ("earlier", "later", "shared"),
    [
        ("ab", "ab", True),  # 2 of 2
        ("abc", "abx", True),  # 2 of 3 is more than half
        ("ab", "ax", False),  # 1 of 2 is half
        ("abcd", "a", True),  # 1 of 1: the later one's share counts
        ("a", "abcd", False),  # 1 of 4
    ],
)
def test_a_query_that_shares_more_than_half_of_its_places_with_an_earlier_one_is_named(earlier, later, shared):
    targets = {"q1": tuple(map(Entity, earlier)), "q2": tuple(map(Entity, later))}
    testset = TestSet("t", (Query("q1", "one thing"), Query("q2", "quite another")), targets=targets)
    assert found(testset) == ([("shared places", "q2")] if shared else [])


def test_strata_need_six_queries_for_a_test():
    queries = tuple(Query(f"q{i}", f"text{i} words{i}", {"kind": "a" if i < 6 else "b"}) for i in range(11))
    testset = TestSet("t", queries, {query.id: {"d": 1} for query in queries})
    (finding,) = validate(testset, today=TODAY).findings
    assert finding.message.startswith("kind b has 5 queries")


def test_a_label_of_every_query_is_no_stratum():
    queries = tuple(Query(f"q{i}", f"text{i} words{i}", {"ticket": str(i)}) for i in range(3))
    assert found(TestSet("t", queries, {query.id: {"d": 1} for query in queries})) == []


HITS = {"q1": [Hit("web/a"), Hit("web/b")], "q2": [Hit("src/a.py:3-9"), Hit("src/b.py::F::0")]}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Pattern("^web/a$"), []),
        (Pattern("^src/"), []),  # of another query's results: it can match
        (Pattern("^docs/"), [("patterns", "q1")]),  # nothing
        (Pattern("."), [("patterns", "q1")]),  # everything
        (Entity("src/b.py::F"), []),  # the chunk suffix is taken off
        (Entity("src/b.py::G"), [("unseen", "")]),
        (Span("src/a.py", 50, 60), []),  # its file is there
        (Span("src/z.py", 1, 2), [("unseen", "")]),
    ],
)
def test_with_runs_patterns_and_places_that_nothing_is_are_named(target, expected):
    assert found(with_targets(target), runs={"run": HITS}) == expected


def test_definitions_of_one_entity_are_one_judgment():
    assert found(with_targets(Entity("src/a.py::f"), Entity("src/a.py::f#2"))) == [("repeats", "q1")]
    assert found(with_targets(Entity("src/a.py::f"), Entity("src/a.py::f#2", 2))) == [("contradictions", "q1")]


def test_with_runs_relevant_documents_that_nothing_is_are_counted():
    testset = TestSet("t", (Query("q1", "one"),), {"q1": {"web/a": 1, "gone": 1, "also gone": 2, "irrelevant": 0}})
    (finding,) = validate(testset, today=TODAY, runs={"run": HITS}).findings
    assert (finding.check, finding.level) == ("unseen", "warning")
    assert finding.message.startswith("2 of 3 relevant documents")


def test_errors_stand_before_warnings_and_every_check_says_its_rule():
    levels = [check.level for check in CHECKS.values()]
    assert levels == sorted(levels)  # "error" before "warning"
    assert all(check.sentence.endswith(".") for check in CHECKS.values())


def test_the_overlapping_truths_of_octocode_are_found(shared_data):
    testset = read_testset(shared_data / "octocode" / "code.csv")
    overlaps = [f for f in validate(testset, today=TODAY).findings if f.check == "overlaps"]
    assert [(f.query_id, f.message) for f in overlaps] == [
        (
            testset.query_ids[100],
            "83-87 and 77-91 of src/indexer/text_processing.rs overlap: one result can satisfy both",
        )
    ]


def test_leaks_and_shared_entities_of_knowcode_are_counted(shared_data):
    testset = read_testset(shared_data / "knowcode" / "golden_v1.0.json")
    findings = validate(testset, today=TODAY).findings
    assert sum(f.check == "shared places" for f in findings) == 18
    # 24 hold the last name of an expected symbol, one more the name of its class alone.
    assert sum(f.check == "leaks" for f in findings) == 25
    assert not [f for f in findings if f.level == "error"]


@pytest.mark.parametrize(
    ("testset", "message"),
    [
        (replace(CLEAN, sources=(Source("x", "^[ab]$"),)), "1 judged document is not of any source (first: c)"),
        (replace(CLEAN, sources=(Source("x", "^a$"),)), "2 judged documents are not of any source (first: b)"),
        (replace(CLEAN, meta=Meta(split=Split(0, 0.2, ("q9",)))), "1 held-out query is not in the set: q9"),
        (
            replace(CLEAN, meta=Meta(split=Split(0, 0.2, ("q8", "q9")))),
            "2 held-out queries are not in the set: q8, q9",
        ),
        (
            TestSet(
                "t",
                (Query("q1", "one thing"), Query("q2", "quite another")),
                targets={"q1": (Entity("ab"),), "q2": (Entity("ab"),)},
            ),
            "1 of its 1 expected place is one of query q1",
        ),
    ],
)
def test_one_is_said_as_one(testset, message):
    assert [finding.message for finding in validate(testset, today=TODAY).findings] == [message]

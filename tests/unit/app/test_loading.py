"""What is done to a test set between its file and the first measure."""

from dataclasses import replace
from pathlib import Path

import pytest

from cranfield import evaluate, load
from cranfield.app.loading import apply_options, databases_of, with_classes
from cranfield.base.errors import CranfieldError, TestSetError, UnknownNameError, UsageError
from cranfield.evaluation.options.blocks import TestSetOptions
from cranfield.model import Query, Rating, Span, TestSet

KINDS = TestSet(
    "kinds",
    (
        Query("q1", strata={"class": "A", "kind": "symbol"}),
        Query("q2", strata={"class": "prose", "kind": "question"}),
        Query("q3", strata={"kind": "other"}, query_class="root"),
    ),
    {"q1": {"d": 1}, "q2": {"d": 1}, "q3": {"d": 1}},
)


def classes(testset):
    return [query.query_class for query in testset.queries]


def test_letters_and_names_of_a_stratum_are_classes_and_other_queries_keep_theirs():
    assert classes(with_classes(KINDS, "class")) == ["canonical", "prose", "root"]


def test_values_that_are_no_classes_are_named_ones():
    assert classes(with_classes(KINDS, "kind:symbol=A, question=prose")) == ["canonical", "prose", "root"]


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ("kind", TestSetError, "names no question class"),
        ("colour", TestSetError, "no query has it"),
        ("kind:symbol", UsageError, "KEY:value=class"),
        ("kind:symbol=canonicle", UnknownNameError, "did you mean canonical?"),
    ],
)
def test_a_stratum_that_says_no_class_is_refused(spec, error, said):
    with pytest.raises(error, match=said.replace("?", r"\?")):
        with_classes(KINDS, spec)


def test_the_line_base_and_the_least_overlap_are_set_over_those_of_the_set():
    testset = TestSet("code", (Query("q"),), targets={"q": (Span("a.rs", 1, 3),)})
    rules = apply_options(testset, TestSetOptions(line_base=0, min_overlap=2)).matching
    assert (rules.line_base, rules.min_overlap) == (0, 2)
    assert apply_options(testset, TestSetOptions()) == testset
    with pytest.raises(UsageError, match=r"line_base is 2(.|\n)*min_overlap is 0"):
        TestSetOptions(line_base=2, min_overlap=0)  # type: ignore[arg-type]


def test_options_of_a_repository_need_one():
    with pytest.raises(UsageError, match="repo=DIR"):
        apply_options(KINDS, TestSetOptions(allow_drift=True))


def test_a_consensus_needs_ratings():
    with pytest.raises(TestSetError, match="has no ratings"):
        apply_options(replace(KINDS, name="unrated"), TestSetOptions(consensus="median"))


def test_databases_are_named_and_a_bad_one_is_not_repeated():
    assert databases_of(["corpus=sqlite:a=b.db"]) == {"corpus": "sqlite:a=b.db"}
    with pytest.raises(CranfieldError) as refused:
        databases_of(["postgresql://me:hidden@host/db"])
    assert "hidden" not in str(refused.value)


def test_judgments_and_strata_come_from_other_files(tmp_path: Path):
    (tmp_path / "new.qrels").write_text("q1 0 e 2\nq2 0 e 1\nq3 0 e 1\n")
    (tmp_path / "strata.csv").write_text("query_id,difficulty\nq1,easy\nq2,hard\nq3,hard\n")
    asked = TestSetOptions(
        qrels=tmp_path / "new.qrels", strata=(str(tmp_path / "strata.csv"), "half=first:1-2,second:3-3")
    )
    testset = apply_options(KINDS, asked)
    assert testset.grades["q1"] == {"e": 2}
    assert [(query.strata["difficulty"], query.strata["half"]) for query in testset.queries] == [
        ("easy", "first"),
        ("hard", "first"),
        ("hard", "second"),
    ]


@pytest.mark.parametrize("asked", [{"scale": "graded"}, {"to_scale": "binary"}, {"consensus": "median"}])
def test_what_is_asked_about_ratings_of_a_set_without_any_is_refused(asked):
    bare = replace(KINDS, grades={}) if "to_scale" in asked else KINDS
    with pytest.raises(TestSetError, match="has no ratings"):
        apply_options(bare, TestSetOptions(**asked))


def test_judgments_without_ratings_are_mapped_too():
    grades = {"q1": {"a": 3, "b": 1, "c": -1}, "q2": {"a": 0}}
    before = replace(KINDS, grades=grades, meta=replace(KINDS.meta, scale=(0, 1, 2, 3)))
    after = apply_options(before, TestSetOptions(to_scale="0=0,1=0,2=1,3=1"))
    assert after.grades == {"q1": {"a": 1, "b": 0, "c": -1}, "q2": {"a": 0}}
    assert after.meta.scale == (0, 1)
    assert "each judgment is mapped by 0=0,1=0,2=1,3=1 first" in map(str, after.notes)
    with pytest.raises(UsageError, match="grade 3 is not in the map"):
        apply_options(before, TestSetOptions(to_scale="0=0,1=1"))

    rated = replace(before, ratings={"q1": (Rating("a", "ann", 2),)})
    assert apply_options(rated, TestSetOptions(to_scale="binary", consensus="mean")).grades["q1"]["a"] == 1
    assert apply_options(rated, TestSetOptions(to_scale="0=0,1=0,2=0,3=1")).grades["q1"] == {"a": 1, "b": 0, "c": -1}


def test_a_value_named_for_a_class_that_no_query_has_is_said():
    found = with_classes(KINDS, "kind:symbol=A,symbl=prose")
    assert tuple(map(str, found.notes)) == ("classes by kind: no query is 'symbl'",)
    assert tuple(map(str, with_classes(KINDS, "kind:symbol=A").notes)) == ()


def test_a_query_that_something_is_relevant_to_is_not_made_negative():
    with pytest.raises(TestSetError, match="of class negative have relevant documents: q1, q2"):
        with_classes(KINDS, "kind:symbol=N,question=negative")
    nothing = replace(KINDS, grades={**KINDS.grades, "q1": {"d": 0}})
    assert classes(with_classes(nothing, "kind:symbol=N")) == ["negative", "", "root"]


def test_a_convention_makes_grades_by_its_own_rule_where_nobody_names_one(tmp_path: Path):
    """On the binary scale 8, 10 and 9 are 1 each, 1 and 2 are 0 and 1: even votes, which leave d2 unjudged."""
    (tmp_path / "rated.yaml").write_text(
        "cranfield_testset: 1\nname: rated\nqueries:\n"
        "  - {id: q1, text: a, ratings: {d1: {ann: 8, bob: 10, cy: 9}, d2: {ann: 1, bob: 2}}}\n"
    )
    testset = load(tmp_path / "rated.yaml", options=TestSetOptions(scale="detail"))
    scored = evaluate(testset, {"q1": ["d1", "d2"]}, measures=["P@2"], convention="searchtweak")
    assert scored.value("P@2", "q1") == 1  # of the one judged result
    named = load(tmp_path / "rated.yaml", options=TestSetOptions(scale="detail", consensus="mean"))
    assert (testset.consensus, named.consensus) == ("", "mean")


def test_a_test_set_may_be_the_folder_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "a"}\n')
    monkeypatch.chdir(tmp_path)
    assert load(".").grades == {"q1": {"d1": 1}}

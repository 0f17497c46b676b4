"""Fitting the test set to the Python at hand: what is gone is left out and named, and nothing else changes."""

from __future__ import annotations

from cranfield.app.demo.drift import Drift, fit_to_corpus
from cranfield.app.demo.entity import Corpus, DocumentedObject
from cranfield.model import Entity as EntityTarget
from cranfield.model import File, Legacy, Negative, Pattern, Predicate, Query, Span, Target, TestSet


def corpus_of(*ids: str) -> Corpus:
    return Corpus(tuple(DocumentedObject(i, "function", i, i, "m") for i in sorted(ids)))


def of_grades(**grades: dict[str, float]) -> TestSet:
    return TestSet("made up", tuple(Query(query_id, query_id) for query_id in grades), grades=grades)


def test_a_test_set_that_is_all_there_stays_as_it_is() -> None:
    testset = of_grades(q1={"a": 2, "b": 0}, q2={"b": 1})
    fitted, drift = fit_to_corpus(testset, corpus_of("a", "b"), python="3.11.0")
    assert fitted == testset
    assert drift == Drift("3.11.0")
    assert drift.sentences() == []


def test_an_id_that_is_gone_is_left_out_and_named() -> None:
    testset = of_grades(q1={"a": 2, "gone": 1}, q2={"gone": 2, "b": 1})
    fitted, drift = fit_to_corpus(testset, corpus_of("a", "b"), python="3.13.0")
    assert fitted.grades == {"q1": {"a": 2}, "q2": {"b": 1}}
    assert fitted.queries == testset.queries
    assert drift.ids == (("q1", "gone"), ("q2", "gone"))
    assert drift.sentences() == ["Python 3.13.0 lacks 1 judged entity, left out: gone."]


def test_a_query_with_nothing_relevant_left_goes_as_a_whole() -> None:
    testset = of_grades(q1={"gone": 2, "a": 0}, q2={"a": 1}, q3={"gone too": 1})
    fitted, drift = fit_to_corpus(testset, corpus_of("a"), python="3.13.0")
    assert fitted.query_ids == ("q2",)
    assert fitted.grades == {"q2": {"a": 1}}
    assert drift.queries == ("q1", "q3")
    assert drift.sentences() == [
        "Python 3.13.0 lacks 2 judged entities, left out: gone, gone too.",
        "2 queries left out, with nothing relevant here: q1, q3.",
    ]


def test_a_pattern_that_matches_nothing_is_left_out_and_named() -> None:
    wanted = {"q1": (Pattern("^a$", 2), Pattern("^z$", 1)), "q2": (Pattern("^z$", 2),)}
    testset = TestSet("made up", (Query("q1"), Query("q2")), targets=wanted)
    fitted, drift = fit_to_corpus(testset, corpus_of("a"), python="3.12.1")
    assert fitted.targets == {"q1": (Pattern("^a$", 2),)}
    assert fitted.query_ids == ("q1",)
    assert drift.sentences() == [
        "Nothing in Python 3.12.1 matches ^z$, ^z$; left out.",
        "1 query left out, with nothing relevant here: q2.",
    ]


def test_a_legacy_form_keeps_the_spelling_that_is_here() -> None:
    legacy = {"q1": Legacy(("old/place", "new/place"), ("^old", "^new"))}
    testset = TestSet(
        "made up", (Query("q1", "text", query_class="deprecation"),), grades={"q1": {"a": 2}}, legacy=legacy
    )
    fitted, drift = fit_to_corpus(testset, corpus_of("a", "new/place"), python="3.12.1")
    assert fitted.legacy == {"q1": Legacy(("new/place",), ("^new",))}
    assert fitted.queries == testset.queries
    assert drift == Drift("3.12.1")


def test_a_query_whose_legacy_form_is_gone_is_asked_as_a_query_of_no_class() -> None:
    testset = TestSet(
        "made up",
        (Query("q1", query_class="deprecation"), Query("q2", query_class="deprecation")),
        grades={"q1": {"a": 2}, "q2": {"gone": 2}},
        legacy={"q1": Legacy(("old",)), "q2": Legacy(("a",))},
    )
    fitted, drift = fit_to_corpus(testset, corpus_of("a"), python="3.14.0")
    assert fitted.queries == (Query("q1"),)
    assert fitted.legacy == {}
    assert drift.sentences() == [
        "Python 3.14.0 lacks 1 judged entity, left out: gone.",
        "1 query left out, with nothing relevant here: q2.",
        "1 query of no class, with no legacy form here: q1.",
    ]


def test_targets_of_every_kind_stay_where_something_fits_them() -> None:
    """Of each kind one that is here and one that is not; a predicate gives something when its text is `here`."""
    corpus = Corpus((DocumentedObject("m.py::f", "function", "f", "m.f", "m", path="m.py", start=1, end=2),))
    wanted: dict[str, tuple[Target, ...]] = {
        "pattern": (Pattern("^m"), Pattern("^z")),
        "entity": (EntityTarget("m.py::f"), EntityTarget("m.py::g")),
        "file": (File("m.py"), File("z.py")),
        "span": (Span("m.py", 1, 2), Span("z.py", 1, 2)),
        "predicate": (Predicate("here"), Predicate("gone")),
    }
    testset = TestSet("made up", tuple(Query(name) for name in wanted), targets=wanted)
    fitted, drift = fit_to_corpus(testset, corpus, python="3.13.0", gives=lambda predicate: predicate.sql == "here")
    assert fitted.targets == {name: pair[:1] for name, pair in wanted.items()}
    assert drift.targets == tuple((name, pair[1].label) for name, pair in wanted.items())


def test_a_query_where_nothing_should_be_found_stays() -> None:
    testset = TestSet("made up", (Query("q1", negative=Negative()),))
    assert fit_to_corpus(testset, corpus_of("a"), python="3.13.0") == (testset, Drift("3.13.0"))

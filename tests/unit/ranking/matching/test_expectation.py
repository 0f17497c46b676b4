"""What a query expects, and which item a result is."""

from cranfield.model import Hit, Pattern, Query, TestSet, convention_named
from cranfield.ranking.matching.expectation import expect

TREC, CUPERTINO = convention_named("trec"), convention_named("cupertino")


def of_patterns(*patterns):
    return TestSet("set", (Query("q"),), targets={"q": patterns})


def test_graded_ids_are_expected_best_first():
    expectation = expect(TestSet("set", (Query("q"),), {"q": {"a": 1, "b": 3, "c": -1, "d": 0.5}}), "q", TREC)
    assert expectation.labels == ("b", "a", "d", "c")
    assert expectation.gains == (3.0, 1.0, 0.5, 0.0)
    assert expectation.levels == (3, 1, 0, -1)
    assert expectation.counts == (1, 1, 1, 1)
    assert not expectation.closed_world
    assert list(expectation.matches(Hit("a"))) == [1]
    assert list(expectation.matches(Hit("A"))) == []


def test_a_pattern_is_searched_and_case_sensitive():
    expectation = expect(of_patterns(Pattern("swift/hash")), "q", TREC)
    assert list(expectation.matches(Hit("docs://swift/hashable"))) == [0]
    assert list(expectation.matches(Hit("docs://Swift/Hashable"))) == []
    assert expectation.closed_world


def test_a_result_may_be_several_items_best_first():
    expectation = expect(of_patterns(Pattern("a", grade=1), Pattern("b", grade=2)), "q", TREC)
    assert list(expectation.matches(Hit("ab"))) == [0, 1]
    assert expectation.labels == ("b", "a")


def test_credit_decides_count_and_repetition():
    patterns = (Pattern("a"), Pattern("b", credit="every"), Pattern("c", credit="every", expected_count=4))
    expectation = expect(of_patterns(*patterns), "q", TREC)
    assert expectation.counts == (1, None, 4)
    assert expectation.repeatable == (False, True, True)


def test_cupertino_pays_every_match_one_and_knows_no_count():
    expectation = expect(of_patterns(Pattern("a", grade=3)), "q", CUPERTINO)
    assert expectation.gains == (1.0,)
    assert expectation.counts == (None,)
    assert expectation.repeatable == (True,)


def test_a_query_nobody_judged_expects_nothing():
    expectation = expect(TestSet("set", (Query("q"),)), "q", TREC)
    assert expectation.labels == ()
    assert list(expectation.matches(Hit("a"))) == []

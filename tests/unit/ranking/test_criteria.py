"""Conditions on fields of results: which values a field has, and what meets a condition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import compare, evaluate
from cranfield.model import Answer, Criteria, Hit, MatchingRules, Outcome, Query, Run, TestSet
from cranfield.ranking.matching.criteria import address_of, criteria_test, expected_fields, lacks_field

PLAIN = MatchingRules()
PAGES = MatchingRules(urls=("fragment", "slash"))


@pytest.mark.parametrize(
    ("where", "hit", "fits"),
    [
        ({"id": "d1"}, Hit("d1"), True),
        ({"id": "d1"}, Hit("d10"), False),
        ({"path ends": "guide.md"}, Hit("docs/guide.md"), True),
        ({"path ends": "guide.md"}, Hit("docs/other-guide.md"), False),  # whole parts of a path
        ({"path ends": "docs/guide.md"}, Hit("docs/guide.md"), True),
        ({"path ends": "/guide.md"}, Hit("./docs/guide.md:3-9"), True),
        ({"path ends": "guide.md"}, Hit("7", fields={"source": "kb\\guide.md"}), True),
        ({"path contains": "Manuals/"}, Hit("kb/manuals/valve.pdf"), True),
        ({"path glob": "src/*/a.py"}, Hit("src/x/y/a.py"), True),
        ({"path glob": "src/*.py"}, Hit("lib/src/a.py"), False),
        ({"title": "Install"}, Hit("1", title="Install"), True),
        ({"title contains": "inst"}, Hit("1", fields={"heading": "How to INSTALL"}), True),
        ({"text contains": "a  long road"}, Hit("1", fields={"content": "A\nlong Road home"}), True),
        ({"text contains": "short"}, Hit("1", fields={"content": "A long road"}), False),
        ({"book": "one", "chapter": "12"}, Hit("1", fields={"book": "one", "chapter": 12}), True),
        ({"book": "one", "chapter": "12"}, Hit("1", fields={"book": "one", "chapter": 12.0}), True),
        ({"book": "one", "chapter": "12"}, Hit("1", fields={"book": "one", "chapter": 1}), False),
        ({"book": "one"}, Hit("1", fields={"metadata": {"book": "one"}}), True),
        ({"book.slug": "one"}, Hit("1", fields={"book": {"slug": "one"}}), True),
        ({"tags": "b"}, Hit("1", fields={"tags": ["a", "b"]}), True),
        ({"draft": "true"}, Hit("1", fields={"draft": True}), True),
        ({"url": "https://a.example/x"}, Hit("1", fields={"url": "https://a.example/x"}), True),
    ],
)
def test_a_result_meets_all_conditions_or_it_is_not_the_item(where: dict[str, str], hit: Hit, fits: bool) -> None:
    assert criteria_test(Criteria(where), PLAIN)(hit) is fits


@pytest.mark.parametrize(
    ("address", "same", "others"),
    [
        ("https://a.example/x", ["https://a.example/x/", "HTTPS://A.Example:443/x#top"], ["http://a.example/x"]),
        ("https://a.example/x?page=2", ["https://a.example/x?page=2#f"], ["https://a.example/x"]),
    ],
)
def test_addresses_without_the_parts_that_do_not_count(address: str, same: list[str], others: list[str]) -> None:
    test = criteria_test(Criteria({"url": address}), PAGES)
    assert all(test(Hit(each)) for each in same)
    assert not any(test(Hit(each)) for each in others)
    whole = MatchingRules(urls=("fragment", "slash", "scheme", "query"))
    assert all(address_of(each, whole) == address_of(address, whole) for each in (*same, *others))
    assert address_of(same[0], PLAIN) == same[0]


def test_graded_addresses_are_compared_so_too_and_two_spellings_are_one_document() -> None:
    grades = {"https://a.example/x/": 1.0, "https://a.example/x#top": 3.0, "https://a.example/y": 2.0}
    testset = TestSet("t", (Query("q"),), {"q": grades}, matching=PAGES)
    hits = (Hit("https://a.example/x#install"), Hit("https://a.example/x"), Hit("https://a.example/z"))
    found = evaluate(testset, Run("r", {"q": Answer(Outcome.ANSWERED, hits)}), measures=["R@3", "nDCG@3", "Judged@3"])
    # x at rank 1 with its better grade, 3; its repetition is worth nothing; y is not found.
    # R 1 of 2; nDCG 3 / (3 + 2/log2(3)) = 3 / 4.2619 = 0.7039; two of three results are judged.
    assert [round(found.summaries[measure].mean or 0, 4) for measure in found.measures] == [0.5, 0.7039, 0.6667]


def test_criteria_name_single_results_so_others_are_unjudged_unless_the_list_is_complete() -> None:
    targets = (Criteria({"path ends": "a.md"}), Criteria({"path ends": "b.md"}))
    run = Run("r", {"q": Answer(Outcome.ANSWERED, (Hit("x/a.md"), Hit("x/a.md", span="1-9"), Hit("x/c.md")))})
    for complete, share in ((False, 1 / 2), (True, 1)):  # the second chunk repeats an id, and is dropped
        testset = TestSet("t", (Query("q", exhaustive=complete),), targets={"q": targets})
        found = evaluate(testset, run, measures=["Judged@3", "R@3"], convention="trec")
        assert found.summaries[found.measures[1]].mean == 0.5  # two chunks of one file are one item
        assert found.summaries[found.measures[0]].mean == share


def test_results_without_an_expected_field_are_counted_and_make_the_verdict_void() -> None:
    target = Criteria({"book": "one", "chapter": "2"})
    queries = tuple(Query(f"q{n}", f"text {n}") for n in range(6))
    testset = TestSet("t", queries, targets={query.id: (target,) for query in queries})
    assert expected_fields(testset) == ("book", "chapter")
    assert lacks_field(target, Hit("1", fields={"book": "one"}), PLAIN)
    assert not lacks_field(target, Hit("1", fields={"book": "two", "chapter": 9}), PLAIN)
    run = Run("r", {query.id: Answer(Outcome.ANSWERED, (Hit("1"), Hit("2"))) for query in queries})
    found = evaluate(testset, run, measures=["RR"])
    assert any("12 results in 6 of 6 queries lack line numbers, a text or a field" in text for text in found.warnings)
    assert any("lack a field that is expected (book and chapter)" in each.sentence for each in found.evidence)


fields = st.dictionaries(st.sampled_from(["text", "book", "metadata", "path"]), st.text(max_size=5) | st.integers(0, 3))


@given(fields, st.sampled_from(["is", "contains", "ends", "glob"]), st.sampled_from(["text", "book", "path"]))
def test_a_result_meets_a_condition_on_what_it_holds_itself(values: dict[str, Any], test: str, field: str) -> None:
    hit = Hit("id", fields=values)
    held = str(values.get(field, ""))
    if held.strip() and not set(held) & set("[]*?/\\.\x00") and field != "path":
        assert criteria_test(Criteria({f"{field} {test}": held}), PLAIN)(hit)
    both = Criteria({"id": "id", f"{field} {test}": "no such value 7"})
    assert not criteria_test(both, PLAIN)(hit)


def test_a_verdict_names_at_once_what_the_candidate_breaks_and_the_baseline_meets() -> None:
    queries = tuple(Query(f"q{n}", floors={"Success@3": 1}) for n in range(12))
    grades, forbidden = ({q.id: {"d": 1.0} for q in queries}, {q.id: (Criteria({"id": "bad"}),) for q in queries})
    testset = TestSet("t", queries, grades, forbidden=forbidden)
    then, now, clean = (
        Run(name, {q.id: Answer(Outcome.ANSWERED, tuple(map(Hit, found))) for q in queries})
        for name, found in (("then", ("x", "y", "d")), ("now", ("d", "bad")), ("clean", ("d",)))
    )
    scored = {run.name: evaluate(testset, run, measures=["RR"]) for run in (then, now, clean)}
    found = compare(scored["then"], scored["now"]).verdict
    broken = "It breaks 12 requirements of single queries that then meets: q0 (no forbidden result, got at rank 2)"
    assert (found.code, broken in found.sentence) == ("better", True)
    for first, second in (("then", "clean"), ("now", "then")):
        assert "requirements" not in compare(scored[first], scored[second]).verdict.sentence

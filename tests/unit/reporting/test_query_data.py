"""The data of the query view: what a page says of a query."""

from __future__ import annotations

import json
import random

import pytest

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare, compare_many, evaluate
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.reporting import comparison_document, render
from cranfield.reporting.query_data import QueryData, data_json, query_detail, query_index
from cranfield.reporting.sections.subject import Subject


def test_the_index_has_a_column_for_everything_to_find_a_query_by(comparison: Comparison) -> None:
    index = query_index(comparison)
    n = len(index["ids"])
    assert index["ids"][:2] == ["q1", "q2"]
    assert (index["systems"], index["measure"]) == (["A plain", "B weighted"], str(comparison.primary))
    assert {len(index[name]) for name in ("texts", "strata", "deltas", "buckets")} == {n}
    assert {len(column) for name in ("values", "ranks", "outcomes") for column in index[name]} == {n}
    before, after = (column[0] for column in index["values"])
    assert index["deltas"][0] == pytest.approx(after - before, abs=1e-5)


def test_a_query_has_both_lists_with_ranks_grades_and_what_matched(comparison: Comparison) -> None:
    detail = query_detail(comparison, "q1")
    assert (detail["text"], len(detail["sides"])) == ("json dumps", 2)
    relevant = next(hit for hit in detail["sides"][0]["hits"] if hit["id"] == "q1-a")
    assert relevant == {
        "rank": 2,
        "id": "q1-a",
        "title": "About q1-a",
        "note": "expected, grade 2",
        "tone": "good",
        "state": "judged",
        "grade": 2,
        "item": "q1-a",
        "credited": True,
    }
    expected = {item["item"]: (item["grade"], item["ranks"]) for item in detail["expected"]}
    assert expected["q1-a"] == (2, [2, 1])
    assert detail["values"][0]["measure"] == str(comparison.primary)
    assert detail["values"][0]["tone"] == "good"


def test_a_failed_query_says_why(comparison: Comparison) -> None:
    notes = [side["note"] for query in QueryData(Subject.of(comparison)).details() for side in query["sides"]]
    assert "timeout: no answer in 30 s" in notes


def test_a_pattern_says_what_it_matched(patterned: Evaluation) -> None:
    index, details = query_index(patterned), list(QueryData(Subject.of(patterned)).details())
    assert (index["deltas"], index["buckets"], len(index["values"])) == (None, None, 1)
    matched = [hit for detail in details for hit in detail["sides"][0]["hits"] if hit["tone"] == "good"]
    assert matched[0]["note"].startswith("matches ^doc://a, grade 1")
    assert matched[0]["item"] == "^doc://a"
    assert "delta" not in details[0]["values"][0]


def test_of_many_systems_there_is_a_side_each() -> None:
    truth = TestSet("t", tuple(Query(f"q{n}", "") for n in range(4)), {f"q{n}": {"a": 1, "b": 2} for n in range(4)})
    systems = [
        evaluate(truth, Run(name, {f"q{n}": Answer(Outcome.ANSWERED, tuple(map(Hit, ids))) for n in range(4)}))
        for name, ids in (("one", "ab"), ("two", "ba"), ("three", "xa"))
    ]
    many = compare_many(systems, test="t")
    assert query_index(many)["systems"] == ["A one", "B two", "C three"]
    detail = query_detail(many, "q2")
    assert {item["item"]: item["ranks"] for item in detail["expected"]} == {"b": [2, 1, None], "a": [1, 2, 2]}
    with pytest.raises(KeyError):
        query_detail(many, "q9")


def test_any_text_can_be_sent_as_json(evil: Comparison) -> None:
    for payload in (query_index(evil), *QueryData(Subject.of(evil)).details()):
        assert json.loads(data_json(payload)) == json.loads(json.dumps(payload))


@pytest.mark.slow
def test_a_page_of_a_thousand_queries_takes_less_than_a_megabyte() -> None:
    """Ten results of two systems, half of them shared, from a collection of five thousand documents with titles of eight words."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnoprstu", k=draw.randint(3, 9))) for _ in range(3000)]
    documents = [(f"doc-{number:05}", " ".join(draw.sample(words, 8))) for number in range(5000)]
    queries = tuple(Query(f"q{number}", " ".join(draw.sample(words, 4))) for number in range(1000))
    first = {query.id: draw.sample(documents, 10) for query in queries}
    second = {query_id: [*draw.sample(results, 5), *draw.sample(documents, 5)] for query_id, results in first.items()}
    truth = TestSet("t", queries, {query.id: {doc_id: 1 for doc_id, _ in first[query.id][:3]} for query in queries})

    def run(name: str, results: dict[str, list[tuple[str, str]]]) -> Run:
        answers = {
            query_id: Answer(Outcome.ANSWERED, tuple(Hit(doc_id, title=title) for doc_id, title in dict(found).items()))
            for query_id, found in results.items()
        }
        return Run(name, answers, depth=10)

    comparison = compare(evaluate(truth, run("a", first)), evaluate(truth, run("b", second)), test="t")
    page = render(comparison_document(comparison), "html")
    assert len(page.encode()) < 1_000_000

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import pytest
from tests.unit.reporting.forms import rendered

from cranfield.app.evaluate import compare, evaluate
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.result import result_of
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import Answer, CallLog, Outcome, Query, Run, TestSet
from cranfield.reporting import RENDERERS, comparison_document, evaluation_document
from cranfield.reporting.charts.spec import BETTER, WORSE
from cranfield.reporting.document import (
    Bullets,
    Chart,
    Column,
    Details,
    Document,
    HitLists,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Table,
    TonedCell,
    cell_value,
)
from cranfield.reporting.sections.collection import side_by_side
from cranfield.workbench.server.comparisons import with_query_pages


def section(document: Document, name: str) -> tuple[object, ...]:
    return next(section.blocks for section in document.sections if section.name == name)


def tables(document: Document, name: str) -> list[Table]:
    return [block for block in section(document, name) if isinstance(block, Table)]


def test_a_comparison_has_its_sections_in_order(comparison: Comparison) -> None:
    document = comparison_document(comparison)
    assert [part.name for part in document.sections] == [
        "measures",
        "causes",
        "queries",
        "warnings",
        "headroom",
        "movement",
        "breakdown",
        "answers",
        "tests",
        "latency",
        "collection",
        "provenance",
    ]
    assert document.title == "Is weighted better than plain?"
    assert document.subtitle[0] == "A plain (baseline)"


@pytest.mark.parametrize("name", ["queries", "movement"])
def test_a_partition_adds_up_to_the_queries_shown(comparison: Comparison, name: str) -> None:
    table = tables(comparison_document(comparison), name)[0]
    assert sum(row[1] for row in table.rows) == table.footer[1] == 8
    assert sum(row[2] for row in table.rows) == pytest.approx(1)


def test_all_measures_stand_beside_each_other_with_their_numbers(comparison: Comparison) -> None:
    table = tables(comparison_document(comparison), "measures")[0]
    rows = {row[0]: row for row in table.rows}
    assert next(iter(rows)) == "* nDCG@10"
    about = comparison.measures[comparison.primary]
    shown = rows["* nDCG@10"]
    assert shown[1:5] == (
        about.baseline.mean,
        about.candidate.mean,
        TonedCell(about.delta, ""),
        (about.ci_low, about.ci_high),
    )
    assert shown[9] == 8
    assert rows["Judged@10"][9] == 6  # q5 and q8 have no result on B: no share to compare


def test_only_a_difference_beyond_its_interval_is_good_or_bad_news() -> None:
    queries = tuple(Query(f"q{n}") for n in range(20))
    truth = TestSet("t", queries, {query.id: {"d": 1} for query in queries})
    a = evaluate(truth, {query.id: ["x", "d"] for query in queries}, measures=["RR"], name="a")
    b = evaluate(truth, {query.id: ["d"] for query in queries}, measures=["RR"], name="b")
    better, worse = comparison_document(compare(a, b)), comparison_document(compare(b, a))
    assert tables(better, "measures")[0].rows[0][3] == TonedCell(0.5, "good")
    assert tables(worse, "measures")[0].rows[0][3] == TonedCell(-0.5, "bad")
    assert (better.verdict.tone, worse.verdict.tone) == ("good", "bad")


def test_failures_are_counted_and_told_with_what_the_program_wrote(comparison: Comparison) -> None:
    outcomes, failures, _ = tables(comparison_document(comparison), "collection")
    assert [column.title for column in outcomes.columns][3:7] == ["timeout", "nonzero exit", "error", "unparsable"]
    assert outcomes.rows[1][3] == TonedCell(1, "bad")
    assert failures.rows == [("B weighted", "timeout", "no answer in 30 s", 1, "q8", "boom: index locked / more")]


def test_failures_stand_before_the_numbers_are_quoted(comparison: Comparison) -> None:
    (bullets,) = section(comparison_document(comparison), "warnings")
    cause = "cause: no answer in 30 s: boom: index locked / more"
    assert f"B weighted: 1 of 8 queries failed (counted as 0): 1 timeout; {cause}" in bullets.items
    assert not [item for item in bullets.items if item.startswith("A plain: ") and "failed" in item]


def test_what_tells_most_of_a_failure_is_shown_first_and_all_of_it_can_be_opened() -> None:
    truth = TestSet("t", (Query("q1"), Query("q2"), Query("q3")), {f"q{n}": {"d": 1} for n in (1, 2, 3)})
    run = Run(
        "odd",
        {
            "q1": Answer(Outcome.UNPARSABLE, reason="the output is not JSON"),
            "q2": Answer(Outcome.NONZERO_EXIT, reason="exit status 1"),
            "q3": Answer(Outcome.TIMEOUT, reason="no answer in 1 s"),
        },
        logs={
            "q1": CallLog(1.0, "<html>\n502\n", "a warning"),
            "q2": CallLog(1.0, "partial", "boom\nat line 3"),
            "q3": CallLog(1.0, "", ""),
        },
    )
    blocks = section(evaluation_document([evaluate(truth, run, measures=["RR"])]), "collection")
    assert [row[-1] for row in blocks[1].rows] == ["<html>", "boom / at line 3", ""]
    opened = {each.summary: [(code.caption, code.text) for code in each.blocks] for each in blocks[2:4]}
    assert opened == {
        "Output of odd for q1": [("stdout", "<html>\n502"), ("stderr", "a warning")],
        "Output of odd for q2": [("stderr", "boom\nat line 3"), ("stdout", "partial")],
    }


def test_equal_failures_are_one_row_with_the_end_of_stderr() -> None:
    query_ids = [f"q{n}" for n in range(1, 6)]
    truth = TestSet("t", tuple(map(Query, query_ids)), {query_id: {"d": 1} for query_id in query_ids})
    answers = dict.fromkeys(query_ids, Answer(Outcome.NONZERO_EXIT, reason="exit status 1"))
    trace = "Traceback\n" + "  frame\n" * 200 + "ValueError: no index\n"
    run = Run("odd", answers, logs=dict.fromkeys(query_ids, CallLog(1.0, "", trace)))
    document = evaluation_document([evaluate(truth, run, measures=["RR"])])
    assert "(100.0 %): exit status 1: ValueError: no index; the limit" in document.verdict.reasons[0]
    blocks = section(document, "collection")
    assert blocks[1].rows == [
        ("odd", "nonzero exit", "exit status 1", 5, "q1, q2, q3 and 2 more", "ValueError: no index")
    ]
    (code,) = blocks[2].blocks
    assert code.text.startswith("…\n")
    assert code.text.endswith("  frame\nValueError: no index")


def test_latency_is_there_only_where_it_was_taken(
    comparison: Comparison, testset: TestSet, runs: tuple[Run, Run]
) -> None:
    table = tables(comparison_document(comparison), "latency")[0]
    # A took 10 to 17 ms: mean and median 13.5, the last is 17; B's failed call took 30 s
    calls = tables(comparison_document(comparison), "latency")[1]
    assert calls.rows[0] == ("A plain", 8, 13.5, 13.5, pytest.approx(16.65), pytest.approx(16.93), 17.0, 0, 0, 0.0)
    assert calls.rows[1][6:8] == (30_000.0, 1)
    # 7 queries were answered on both sides, each in the same time
    assert table.rows[0] == ("median difference", "0.000 ms", "0.000 to 0.000 ms", "no significant difference", 7)
    bare = [evaluate(testset, replace(run, logs={})) for run in runs]
    assert "latency" not in [part.name for part in comparison_document(compare(*bare)).sections]


def test_worst_and_best_are_told_with_both_lists(comparison: Comparison) -> None:
    blocks = section(comparison_document(comparison), "answers")
    worst, best = (block for block in blocks if isinstance(block, Table))
    assert worst.rows[0][0] == "q8"
    assert best.rows[0][:2] == ("q1", "json dumps")
    first = next(block for block in blocks if isinstance(block, Details))
    assert first.is_open
    assert first.summary == "q8 “timeout”: \u22120.7602 (A rank 1, B failed)"  # 2 / (2 + 1/log2(3)) = .7602
    assert isinstance(first.blocks[0], HitLists)


def test_hits_say_which_expected_item_they_matched(patterned: Evaluation, pair: tuple[Evaluation, Evaluation]) -> None:
    lists = side_by_side(result_of(patterned, with_answers=True), "p1", ["A"])
    assert lists.expected == "^doc://a (grade 1)"
    assert [(hit.note, hit.tone) for hit in lists.lists[0].hits] == [
        ("matches ^doc://a, grade 1", "good"),
        ("duplicate match of ^doc://a, credited above", "even"),
        ("not relevant", ""),
    ]
    both = result_of(pair, with_answers=True)
    notes = [one.note for one in side_by_side(both, "q6", ["A", "B"]).lists]
    assert notes == [
        "first relevant result at rank 1; 2 returned, 1 duplicate dropped",
        "first relevant result at rank 1; 2 returned",
    ]
    assert side_by_side(both, "q5", ["A", "B"]).lists[1].note == "no results returned"
    assert side_by_side(both, "q8", ["A", "B"]).lists[1].note == "timeout: no answer in 30 s"


def test_a_pooled_and_an_unjudged_result_are_told_apart() -> None:
    truth = TestSet("t", (Query("q"),), {"q": {"d": 1, "pooled": -1, "zero": 0}})
    found = side_by_side(
        result_of(evaluate(truth, {"q": ["pooled", "other", "zero", "d"]}), with_answers=True), "q", [""]
    )
    assert [hit.note for hit in found.lists[0].hits] == [
        "in the pool, not judged",
        "not judged",
        "not relevant",
        "expected, grade 1",
    ]


def test_pictures_stand_in_the_report_with_tables_that_say_the_same(comparison: Comparison) -> None:
    document = comparison_document(comparison)
    figures = {block.name: block for part in document.sections for block in part.blocks if isinstance(block, Chart)}
    assert set(figures) == {"intervals", "differences", "movement", "stratum-1"}
    assert len(figures["differences"].table.rows) == 8
    assert sum(row[2] for row in figures["movement"].table.rows) == 8
    assert [words for _, words in figures["differences"].legend] == ["2 better on B", "3 equal", "3 worse on B"]
    # q1 2→1 and q4 none→3 rise; q2 1→2, q5 2→none and q8 1→failed fall
    assert [words for _, words in figures["movement"].legend] == ["2 rose", "3 stayed", "3 fell"]


def test_warnings_that_both_sides_share_are_said_once() -> None:
    queries = (Query("q1"), Query("q2"), Query("q3"))
    truth = TestSet("t", queries, {"q1": {"d": 1}, "q2": {"d": 1}, "q3": {"d": 0}})
    a, b = (evaluate(truth, {q.id: hits for q in queries}, name=name) for name, hits in (("a", ["x"]), ("b", ["d"])))
    sentences = section(comparison_document(compare(a, b)), "warnings")[0]
    assert isinstance(sentences, Bullets)
    assert [s for s in sentences.items if "none relevant" in s] == [
        "judged, none relevant: 1 of 3 queries (counted as 0): q3"
    ]


def test_provenance_names_what_is_needed_to_do_it_again(comparison: Comparison, testset: TestSet) -> None:
    document = comparison_document(comparison, preflight=[("plain", "probe 'json'", "10 results")])
    said = dict(
        item for block in section(document, "provenance") if isinstance(block, KeyValues) for item in block.items
    )
    assert testset.digest in said["test set"]
    assert said["run of A plain"] == comparison.baseline.run_digest
    assert said["configuration of B weighted"] == "sha256:" + "c" * 64
    assert said["seed"] == "0"
    assert said["margin"] == "±0.05"
    assert said["maximum failed share"] == "20.0 %"
    assert said["convention"].startswith("trec: ")
    assert "numpy" in said["software"]
    assert tables(document, "provenance")[0].rows == [("plain", "probe 'json'", "10 results")]


@pytest.mark.parametrize("form", sorted(RENDERERS))
def test_a_pilot_is_stamped_in_every_form(pilot: Comparison, form: str) -> None:
    text = rendered(comparison_document(pilot), form)
    assert ('"pilot": true' if form == "json" else "PILOT: not for the record") in text
    one = rendered(evaluation_document([pilot.baseline]), form)
    assert ('"pilot": true' if form == "json" else "PILOT: not for the record") in one


@pytest.mark.parametrize("form", sorted(RENDERERS))
def test_what_is_for_the_record_has_no_stamp(comparison: Comparison, form: str) -> None:
    assert "PILOT" not in rendered(comparison_document(comparison), form)


def test_an_invalid_comparison_says_why_first(invalid: Comparison) -> None:
    document = comparison_document(invalid)
    assert (document.verdict.name, document.verdict.tone) == ("invalid", "void")
    assert "12.5 %" in document.verdict.reasons[0]
    assert {fact.tone for fact in document.verdict.facts} == {""}


def test_queries_that_could_not_be_paired_are_named(testset: TestSet, runs: tuple[Run, Run]) -> None:
    some = {query_id: answer for query_id, answer in runs[1].answers.items() if query_id != "q3"}
    pair = evaluate(testset, runs[0]), evaluate(testset, replace(runs[1], answers=some), missing="skip")
    document = comparison_document(compare(*pair))
    assert tables(document, "collection")[-1].rows == [("weighted has no answer for it", 1, "q3")]


def set_of(name: str, n: int, grades: dict[str, float]) -> TestSet:
    return TestSet(name, tuple(Query(f"q{i}") for i in range(n)), {f"q{i}": grades for i in range(n)})


ONE, NONE, MANY = set_of("one", 1, {"d": 1}), set_of("none", 2, {"x": 0}), set_of("many", 60, {"d": 1})
FAILED = Run("b", {query.id: Answer(Outcome.TIMEOUT, reason="no answer in 1 s") for query in MANY.queries})


def lists(testset: TestSet, *ids: str) -> dict[str, list[str]]:
    return {query.id: list(ids) for query in testset.queries}


Results = Run | dict[str, list[str]]
DEGENERATE: dict[str, tuple[TestSet, Results, Results]] = {
    "one query": (ONE, lists(ONE, "x", "d"), lists(ONE, "d")),
    "nothing relevant": (NONE, lists(NONE, "x"), lists(NONE, "d")),
    "no difference": (MANY, lists(MANY, "d"), lists(MANY, "d")),
    "no result": (MANY, lists(MANY), lists(MANY)),
    "all failed": (MANY, lists(MANY, "d"), FAILED),
    "deep ranks": (MANY, lists(MANY, *(f"x{n}" for n in range(1500)), "d"), lists(MANY, "d")),
}
"""Test sets, and two systems between which there is nothing to see in one way or another."""


@cache
def degenerate(name: str) -> Comparison:
    testset, a, b = DEGENERATE[name]
    return compare(evaluate(testset, a, name="a"), evaluate(testset, b, name="b"))


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("form", sorted(RENDERERS))
def test_a_report_can_be_made_of_what_says_nothing(name: str, form: str) -> None:
    comparison = degenerate(name)
    text = rendered(comparison_document(comparison), form)
    assert comparison.verdict.name in text.lower() or form == "csv"
    assert not re.search(r"\b(nan|None|inf)\b", text)


def test_a_report_of_several_systems_marks_the_best_of_each_measure(pair: tuple[Evaluation, Evaluation]) -> None:
    counting = [replace(each, limits=Limits(max_failed_share=0.2)) for each in pair]
    table = tables(evaluation_document(counting), "measures")[0]
    titles = [column.title for column in table.columns]
    assert titles[-3:] == ["n", "failed", "judged"]
    rr = titles.index("RR@10")
    # (1/2 + 1 + 1 + 0 + 1/2 + 1 + 0 + 1) / 8 = .625 against (1 + 1/2 + 1 + 1/3 + 0 + 1 + 0 + 0) / 8 = .479
    assert table.rows[0][rr] == TonedCell(0.625, "good", mark="best")
    assert cell_value(table.rows[1][rr]) == pytest.approx(0.479, abs=0.001)
    assert table.rows[1][-2] == 1


def test_queries_that_are_never_judged_are_not_counted_beside_the_means() -> None:
    queries = tuple(Query(f"q{number}", "text") for number in range(5))
    testset = TestSet("set", queries, {"q0": {"d": 1}, "q1": {"d": 1}, "q2": {"e": 1}})
    run = {query.id: {"d": 1.0} for query in queries}
    both = [evaluate(testset, run, measures=["RR"], name=name) for name in ("old", "new")]
    table = tables(evaluation_document(both), "measures")[0]
    n = [column.title for column in table.columns].index("n")
    assert [row[n] for row in table.rows] == [3, 3]


def test_mcnemar_is_told_in_a_sentence(comparison: Comparison) -> None:
    said = [
        block.text for block in section(comparison_document(comparison), "movement") if isinstance(block, Paragraph)
    ]
    assert said == ["A relevant result at rank 1: 1 query only on B, 2 queries only on A (exact McNemar, p 1)."]


def test_scores_that_do_not_count_have_a_stamp_and_no_colours() -> None:
    queries = [f"q{number}" for number in range(12)]
    judged = {query: {f"guide/{query}": 1.0} for query in queries}
    old = {query: {f"guide/{query}": 2.0, "guide/x": 1.0} for query in queries}
    second = {query: {f"guide/{query}": 1.0, "guide/x": 2.0} for query in queries}
    wrong = {query: {f"Guide/{query}": 2.0, "Guide/x": 1.0} for query in queries}
    counts, void = (
        comparison_document(compare(*(evaluate(judged, run, measures=["RR@10"]) for run in (old, new))))
        for new in (second, wrong)
    )

    def tones(document: Document) -> list[str]:
        cells = [cell for table in tables(document, "measures") for row in table.rows for cell in row]
        return [cell.tone for cell in cells if isinstance(cell, TonedCell)]

    assert counts.stamp == ""
    assert "bad" in tones(counts)
    assert void.stamp == "invalid: the tables show scores that do not count"
    assert not tones(void)

    def coloured(document: Document) -> set[str]:
        figures = [each for section in document.sections for each in section.blocks if isinstance(each, Chart)]
        assert figures
        swatches = {swatch for each in figures for swatch, _ in each.legend}
        return swatches | {colour for colour in (BETTER, WORSE) for each in figures if colour in json.dumps(each.spec)}

    assert {"good", "bad", "same", WORSE} <= coloured(counts)
    assert coloured(void) <= {"band"}


def test_a_bucket_says_the_cutoff_that_it_is_about() -> None:
    queries = tuple(Query(f"q{n}") for n in range(8))
    truth = TestSet("deep", queries, {query.id: {"right": 1} for query in queries})
    places = {"a": [12, 12, 1, 1, None, 3, 3, 12], "b": [12, 2, 12, None, None, 1, 5, 14]}

    def lists(ranks: list[int | None]) -> dict[str, list[str]]:
        padded = [[f"x{n}" for n in range(20)] for _ in ranks]
        for docs, rank in zip(padded, ranks, strict=True):
            docs[rank - 1 if rank else 20 :] = ["right"] if rank else []
        return {query.id: docs for query, docs in zip(queries, padded, strict=True)}

    found = [evaluate(truth, lists(ranks), measures=["nDCG@10"], name=name) for name, ranks in places.items()]
    document = comparison_document(compare(*found))
    buckets, moves = (
        {row[0].value: row[1] for row in tables(document, name)[0].rows if row[1]} for name in ("queries", "movement")
    )
    # q0, q4 and q7; q1; q2 and q3; q5; q6.
    assert buckets == {
        "not in the top 10 on either": 3,
        "newly in the top 10": 1,
        "no longer in the top 10": 2,
        "improved": 1,
        "worsened": 1,
    }
    # Only q4 is found by neither, wherever it is in the lists.
    assert moves["never found"] == 1
    assert moves == {
        "moved to rank 1": 1,
        "moved from rank 1": 2,
        "rose below rank 1": 1,
        "fell below rank 1": 2,
        "same rank below 1": 1,
        "never found": 1,
    }
    shown = {row[0]: row[-3:] for row in document.sections[2].blocks[0].table.rows}
    assert shown["q7"] == (12, 14, "not in the top 10 on either")


def test_only_ids_of_queries_lead_to_pages_of_queries() -> None:
    """A key of strata may be called `query` too."""
    ids = Table((Column("id", "query id"), Column("value", "value")), [("q1", 0.5)], "")
    strata = Table((Column("query"), Column("mean", "value")), [("short", 0.5)], "")
    document = Document("", (), (Section("all", "All", (ids, strata)),), lambda: ids, dict)
    shown, kept = with_query_pages(document, "MARK").sections[0].blocks
    assert shown.rows == [(Link("q1", "MARK/queries/q1"), 0.5)]
    assert kept == strata

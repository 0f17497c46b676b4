"""One query of a result, found by id or text, as text and as a card."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.reporting.test_display import assert_safe

from cranfield import Query, TestSet, compare, compare_many, evaluate
from cranfield.base.errors import UnknownNameError
from cranfield.base.words import UNPRINTABLE
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.reporting.query_data import query_detail


def test_a_query_prints_both_lists_aligned_with_movement_grades_and_titles(comparison: Comparison) -> None:
    lines = str(comparison.show("q1")).splitlines()
    rows = {line.split()[0]: re.split(r"\s{2,}", line) for line in lines if line.startswith(("x ", "q1-"))}
    table = [re.split(r"\s{2,}", line) for line in lines if line.startswith(("x ", "q1-")) and "About" in line]
    # q1 on A: x, q1-a, q1-b; on B: q1-a, q1-b
    assert table == [
        ["x", "1", "–", "gone", "not judged", "About x"],
        ["q1-a", "2", "1", "▲ 1", "expected, grade 2", "About q1-a"],
        ["q1-b", "3", "2", "▲ 1", "expected, grade 1", "About q1-b"],
    ]
    assert rows["q1-a"] == ["q1-a", "2", "2", "1"]  # the table of what is expected: grade, rank on A, rank on B
    assert "A plain     first relevant result at rank 2; 3 returned; 10.0 ms" in lines
    assert max(map(len, lines)) <= 100


def test_a_result_that_falls_and_one_that_is_new(comparison: Comparison) -> None:
    text = str(comparison.show("q2"))  # A: q2-a, x; B: x, q2-a
    assert re.search(r"q2-a +1 +2 +▼ 1", text)
    assert re.search(r"x +2 +1 +▲ 1", text)
    assert re.search(r"q4-b +– +3 +new", str(comparison.show("q4")))


def test_what_was_missed_is_named_with_its_side(comparison: Comparison) -> None:
    text = str(comparison.show("q2"))  # q2-b is on neither list
    assert "1 of 2 missed by every system" in text
    assert re.search(r"q2-b +1 +missed +missed", text)
    assert re.search(r"q5-b +1 +2 +missed", str(comparison.show("q5")))


def test_every_measure_has_its_values_and_the_difference(comparison: Comparison) -> None:
    text = str(comparison.show("q1"))
    for measure, about in comparison.measures.items():
        before, after = (side.value(measure, "q1") for side in comparison.evaluations)
        row = next(line for line in text.splitlines() if line.startswith(str(measure)))
        assert [float(cell.replace("−", "-")) for cell in row.split()[1:]] == pytest.approx(
            [before, after, about.differences["q1"]], abs=5e-5
        )


def test_a_failed_query_says_why(comparison: Comparison) -> None:
    assert "timeout: no answer in 30 s; 30.0 s" in str(comparison.show("q8"))


def test_the_same_query_is_found_by_its_text(comparison: Comparison) -> None:
    assert comparison.show("json dumps").query_id == "q1"
    assert str(comparison.show("json dumps")) == str(comparison.show("q1"))
    assert comparison.show("q1").data == query_detail(comparison, "q1")


def test_an_evaluation_and_many_show_a_query_too(comparison: Comparison) -> None:
    single = str(comparison.baseline.show("q5"))
    assert re.search(r"q5-b +2 +expected, grade 1", single)
    assert "move" not in single
    third = evaluate(comparison.baseline.testset, {"q1": ["x", "q1-a"], "q3": ["q3-a"]}, name="third")
    text = str(compare_many([*comparison.evaluations, third]).show("q1"))
    assert re.search(r"q1-a +2 +1 +2 +expected", text)
    assert_safe(compare_many([*comparison.evaluations, third]).show("q1")._repr_html_())


def test_a_pattern_says_what_it_matched_and_what_was_credited_before(patterned: Evaluation) -> None:
    text = str(patterned.show("p1"))
    assert "matches ^doc://a, grade 1" in text
    assert "duplicate match of ^doc://a, credited above" in text


def test_a_query_that_is_not_there_names_those_near(comparison: Comparison) -> None:
    with pytest.raises(UnknownNameError) as raised:
        comparison.show("q11")
    assert raised.value.problems[0].hint == "did you mean q1?"
    assert "one of 8 queries, such as q1, q2, q3" in str(raised.value)
    with pytest.raises(UnknownNameError, match="did you mean q2"):
        comparison.show("to sort")  # a part of a text
    with pytest.raises(UnknownNameError, match="unknown query 'nothing like it'"):
        comparison.show("nothing like it")


def test_several_queries_of_one_text_are_named() -> None:
    testset = TestSet(
        "twins", (Query("a", "same"), Query("b", "same"), Query("c", "a")), {"a": {"d": 1}, "b": {"d": 1}}
    )
    scored = evaluate(testset, {"a": ["d"], "b": ["d"]})
    with pytest.raises(UnknownNameError, match="2 queries have the text 'same'; expected one id: a, b"):
        scored.show("same")
    assert scored.show("a").query_id == "a"  # an id goes before a text


def test_an_id_that_is_a_number_is_found() -> None:
    testset = TestSet("numbers", (Query("57"),), {"57": {"d": 1}})
    assert evaluate(testset, {"57": ["d"]}).show(57).query_id == "57"  # type: ignore[arg-type]


def test_hostile_texts_of_a_query_are_only_text(evil: Comparison) -> None:
    for query in evil.baseline.testset.queries:
        shown = evil.show(query.id)
        assert not UNPRINTABLE.search(str(shown).replace("\n", ""))
        assert repr(shown) == str(shown)
        assert_safe(shown._repr_html_())
    with pytest.raises(UnknownNameError) as raised:
        evil.show("\x1b[31mred")
    assert not UNPRINTABLE.search(str(raised.value).replace("\n", ""))


def test_scores_that_do_not_count_are_stamped(invalid: Comparison) -> None:
    shown = invalid.show("q1")
    assert "*** invalid" in str(shown)
    assert 'class="stamp"' in shown._repr_html_()


def test_the_card_has_the_lists_side_by_side(comparison: Comparison) -> None:
    card = comparison.show("q1")._repr_html_()
    assert card.count('<div class="answer">') == 2
    assert "▲ rank 2 on A" in card
    assert "not in the list of B" in card
    assert_safe(card)


@settings(deadline=None, max_examples=min(30, settings().max_examples))
@given(
    before=st.permutations(list("abcdef")).map(lambda ids: ids[:4]),
    after=st.permutations(list("abcdef")).map(lambda ids: ids[:4]),
)
def test_movement_is_the_difference_of_the_ranks(before: list[str], after: list[str]) -> None:
    testset = TestSet("set", (Query("q"), Query("other")), {"q": {"a": 1}, "other": {"a": 1}})
    sides = [
        evaluate(testset, {"q": ids, "other": ["a"]}, measures=["RR"], name=name)
        for name, ids in (("x", before), ("y", after))
    ]
    text = str(compare(*sides).show("q"))
    for doc_id in {*before, *after}:
        row = next(re.split(r"\s{2,}", line) for line in text.splitlines() if re.match(rf"{doc_id}\s{{2,}}", line))
        ranks = [str(ids.index(doc_id) + 1) if doc_id in ids else "–" for ids in (before, after)]
        assert row[1:3] == ranks
        if "–" in ranks:
            assert row[3] == ("new" if ranks[0] == "–" else "gone")
        else:
            up = int(ranks[0]) - int(ranks[1])
            assert row[3] == ("=" if not up else f"▲ {up}" if up > 0 else f"▼ {-up}")

"""Predicted against expected: the counts, the accuracy with its interval, and what is left out."""

import json
import math
from dataclasses import replace

import pytest

from cranfield import Answer, Hit, Outcome, Run, TestSet, evaluate
from cranfield.base.errors import UsageError
from cranfield.evaluation.confusion import NO_VALUE, parse_pairs
from cranfield.model import Label, Query
from cranfield.reporting import evaluation_document, render
from cranfield.stats.confusion import wilson_interval

TYPES = ["locate", "locate", "locate", "explain", "explain", "debug"]
IDS = [f"q{number}" for number in range(len(TYPES))]
QUERIES = tuple(Query(one, strata={"task_type": kind}) for one, kind in zip(IDS, TYPES, strict=True))
TESTSET = TestSet("t", QUERIES, {one: {"d": 1} for one in IDS})


def scored(values, *, field="routed", pairs=None, testset=TESTSET, outcomes=None):
    answers = {}
    for query, value in zip(testset.queries, values, strict=True):
        outcome = (outcomes or {}).get(query.id, Outcome.ANSWERED)
        fields = {} if value is None else {field: value}
        answers[query.id] = Answer(outcome, () if outcome.is_failure else (Hit("d"),), fields=fields)
    pairs = {field: "task_type"} if pairs is None else pairs
    return evaluate(testset, Run("new", answers), measures=["RR"], confusion=pairs)


def test_counts_accuracy_and_rates():
    (found,) = scored(["locate", "locate", "explain", "explain", "lookup", None]).confusions
    assert found.expected == ("debug", "explain", "locate")
    assert found.predicted == ("debug", "explain", "locate", "lookup", NO_VALUE)
    assert found.counts == (
        (0, 0, 0, 0, 1),  # debug: the answer has no such field
        (0, 1, 0, 1, 0),  # explain: one right, one of a type that no query has
        (0, 1, 2, 0, 0),
    )
    assert (found.n, found.n_right, found.accuracy) == (6, 3, 0.5)
    assert found.commonest == 3 / 6
    assert [found.recall[name] for name in found.expected] == [0, 1 / 2, 2 / 3]
    assert [found.precision.get(name) for name in found.expected] == [None, 1 / 2, 1]
    assert found.wrong == {"q2": ("locate", "explain"), "q4": ("explain", "lookup"), "q5": ("debug", NO_VALUE)}


def test_failures_are_left_out_and_counted():
    (found,) = scored(TYPES, outcomes={"q0": Outcome.TIMEOUT, "q3": Outcome.ERROR}).confusions
    assert (found.n, found.n_unanswered, found.accuracy) == (4, 2, 1.0)


def test_a_field_with_the_name_of_a_stratum_needs_no_option():
    assert [table.field for table in scored(TYPES, field="task_type", pairs={}).confusions] == ["task_type"]
    assert scored(["x"] * 6, field="task_type", pairs={}).confusions == ()  # none of its values is one of the stratum
    assert scored(TYPES, field="other", pairs={}).confusions == ()
    assert len(scored(TYPES, field="task_type").confusions) == 1  # once, where it is named too


@pytest.mark.parametrize("spell", [str.upper, lambda kind: kind.replace("d", "D")])
def test_a_value_in_another_case_is_named(spell):
    evaluation = scored([spell(kind) for kind in TYPES], field="task_type", pairs={})
    (found,) = evaluation.confusions
    assert found.differs_by_case == {spell(kind): kind for kind in sorted(set(TYPES)) if spell(kind) != kind}
    page = " ".join(render(evaluation_document([evaluation]), "text").split())
    assert f"new: {spell('debug')} is debug" in page
    assert "in different case, and counts as a different value." in page
    assert scored(["x"] * 6).confusions[0].differs_by_case == {}


def test_values_of_another_kind_are_counted_without_an_accuracy():
    (found,) = scored([True, True, False, True, False, False]).confusions
    assert found.predicted == ("false", "true")
    assert found.counts[2] == (1, 2)
    assert (found.accuracy, found.interval, found.commonest, found.recall["locate"]) == (None, None, None, None)


def test_numbers_classes_and_nested_fields():
    queries = (Query("q1", query_class="G"), Query("q2", query_class="canonical"), Query("q3", query_class="C"))
    testset = TestSet("t", queries, {query.id: {"d": 1} for query in queries})
    (found,) = scored(["prose", "A", "B"], testset=testset, pairs={"routed": "class"}).confusions
    assert found.n_right == 2  # a class by its name or its letter
    numbers = TestSet(
        "t", (Query("q1", strata={"level": "1"}), Query("q2", strata={"level": "2"})), {"q1": {"d": 1}, "q2": {"d": 1}}
    )
    assert scored([1.0, 2], testset=numbers, pairs={"routed": "level"}).confusions[0].accuracy == 1
    nested = scored([{"type": kind} for kind in TYPES], pairs={"routed.type": "task_type"})
    assert nested.confusions[0].accuracy == 1


def test_an_unknown_stratum_is_an_error_and_an_unknown_field_a_caveat():
    with pytest.raises(UsageError, match=r"confusion: unknown stratum 'task'.*\nHint: did you mean task_type"):
        scored(TYPES, pairs={"routed": "task"})
    evaluation = scored(TYPES, pairs={"rooted": "task_type"})
    assert evaluation.confusions == ()
    caveat = "no table of rooted against task_type: no answer has the field rooted (fields: routed)"
    assert caveat in evaluation.warnings


@pytest.mark.parametrize("text", ["routed", "=x", "routed=", ""])
def test_a_pair_is_field_equals_stratum(text):
    with pytest.raises(UsageError, match="expected FIELD=STRATUM"):
        parse_pairs([text])


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        # (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n) with z = 1.959964, by hand:
        # 0 of 10: 0 and 3.841459 / (10 + 3.841459); 10 of 10 is its mirror image.
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        # 5 of 10: .5 ± 1.959964 sqrt(.025 + .00960365) / 1.3841459 = .5 ± .263410
        (5, 10, 0.236590, 0.763410),
        # Newcombe (1998), table I: 81 of 263, .2553 to .3662; 15 of 148, .0624 to .1605; 1 of 29, .0061 to .1718
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval(right, n, low, high):
    found = wilson_interval(right, n)
    assert math.isclose(found[0], low, abs_tol=5e-5)
    assert math.isclose(found[1], high, abs_tol=5e-5)


@pytest.mark.parametrize(("right", "n", "level"), [(-1, 3, 0.95), (4, 3, 0.95), (0, 0, 0.95), (1, 2, 0), (1, 2, 1)])
def test_an_interval_of_nothing_is_refused(right, n, level):
    with pytest.raises(UsageError):
        wilson_interval(right, n, level)


def test_report_and_json_show_the_table():
    evaluation = scored(["locate", "locate", "explain", "explain", "lookup", None], outcomes={"q5": Outcome.TIMEOUT})
    document = evaluation_document([evaluation])
    text = render(document, "text")
    assert "Predicted and expected" in text
    assert "new: task_type expected (rows), routed predicted (columns)" in text
    assert "new: 1 query failed or has no answer, and is not in the table." in " ".join(text.split())
    (record,) = json.loads(render(document, "json"))["systems"][0]["confusion"]
    assert {key: record[key] for key in ("field", "stratum", "accuracy", "n", "n_right", "n_unanswered")} == {
        "field": "routed",
        "stratum": "task_type",
        "accuracy": 0.6,
        "n": 5,
        "n_right": 3,
        "n_unanswered": 1,
    }
    assert record["wrong"]["q4"] == ["explain", "lookup"]
    assert record["interval"][0] < 0.6 < record["interval"][1]


LABELS = {
    one: Label(classifier_expectation=kind)
    for one, kind in zip(IDS, ["explain"] * 4 + ["debug", "review"], strict=True)
}


def test_labels_are_held_against_the_type_that_a_classifier_picks():
    """q0 to q2 are of type locate, q5 of debug; q3 and q4 of explain: q3's label expects what it is, which is no error."""
    labelled = replace(TESTSET, labels=LABELS | {"gone": Label(classifier_expectation="debug")})
    values = ["explain", "locate", "debug", "explain", None, "review"]
    evaluation = scored(values, testset=labelled, outcomes={"q5": Outcome.TIMEOUT})
    (found,) = evaluation.confusions
    errors = found.expected_errors
    assert errors.picked == {
        "q0": ("explain", "explain"),
        "q1": ("explain", "locate"),
        "q2": ("explain", "debug"),
        "q4": ("debug", NO_VALUE),
    }
    assert (errors.n, errors.n_as_expected, errors.n_right, errors.share) == (4, 1, 1, 0.25)
    assert errors.interval == wilson_interval(1, 4, 0.95)
    document = evaluation_document([evaluation])
    for form in ("text", "html", "markdown"):
        assert "Queries whose label names a wrong task type" in render(document, form)
    (record,) = json.loads(render(document, "json"))["systems"][0]["confusion"]
    assert {key: record["expected_errors"][key] for key in ("n", "n_as_expected", "share", "n_right")} == {
        "n": 4,
        "n_as_expected": 1,
        "share": 0.25,
        "n_right": 1,
    }
    assert record["expected_errors"]["picked"]["q2"] == ["explain", "debug"]


def test_without_such_labels_there_is_no_further_table():
    evaluation = scored(TYPES)
    assert evaluation.confusions[0].expected_errors is None
    document = evaluation_document([evaluation])
    assert "expects a classifier" not in render(document, "text")
    assert json.loads(render(document, "json"))["systems"][0]["confusion"][0]["expected_errors"] is None
    elsewhere = replace(
        TESTSET, queries=tuple(replace(q, strata={"kind": q.strata["task_type"]}) for q in QUERIES), labels=LABELS
    )
    assert scored(TYPES, pairs={"routed": "kind"}, testset=elsewhere).confusions[0].expected_errors is None

"""The language of rules on the fields of an answer: what keeps a rule, what breaks it, and how that is said."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Answer, Hit, Outcome, Run
from cranfield.base.errors import UsageError
from cranfield.model.answer_rule import COMPARISONS, parse_answer_rule, violations

FIELDS = {
    "mode": "semantic",
    "confidence": 0.7,
    "routed": True,
    "tokens": None,
    "k": "10",
    "meta": {"mode": "lexical", "n": 3},
    "bm25.mode": "exact",
}


@pytest.mark.parametrize(
    ("rule", "violation"),
    [
        ("mode = semantic", None),
        ("mode=semantic", None),
        ("mode == semantic", None),
        ('mode = "semantic"', None),
        ("mode = 'semantic'", None),
        ("mode in 'a, b', 'semantic'", None),
        ("mode in it's, semantic, that's", None),
        ("mode = Semantic", 'mode is "semantic"'),
        ("mode != lexical", None),
        ("mode != semantic", 'mode is "semantic"'),
        ("mode in semantic, hybrid", None),
        ("mode in [hybrid, lexical]", 'mode is "semantic"'),
        ("mode not in lexical", None),
        ("mode not  in semantic", 'mode is "semantic"'),
        ("confidence >= 0.7", None),  # compared as the numbers that are written
        ("confidence > 0.7", "confidence is 0.7"),
        ("confidence <= .7", None),
        ("confidence > .7", "confidence is 0.7"),
        ("confidence < 1", None),
        ("confidence = 0.70", None),
        ("routed = true", None),
        ("routed = 1", "routed is true"),  # true is not 1
        ("routed = false", "routed is true"),
        ("routed >= 0", "routed is true, not a number"),
        ("k = 10", 'k is "10"'),  # nor is a text a number
        ('k = "10"', None),
        ("k >= 10", 'k is "10", not a number'),
        ("tokens exists", "tokens is null"),
        ("tokens = null", None),
        ("tokens <= 100", "tokens is null, not a number"),
        ("cost exists", "no field cost"),
        ("cost != 3", "no field cost"),  # a field that is not there keeps no rule
        ("cost not in 3", "no field cost"),
        ("meta.mode = lexical", None),
        ("meta.n >= 4", "meta.n is 3"),
        ("meta.x = 1", "no field meta.x"),
        ("mode.x = 1", "no field mode.x"),
        ("bm25.mode = exact", None),  # a field of a fused system has a dot in its name
    ],
)
def test_a_rule_is_kept_or_the_answer_is_named(rule, violation):
    assert parse_answer_rule(rule).violation(FIELDS) == violation


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mode",
        "= semantic",
        "mode =",
        "mode = ",
        "mode =! x",
        "mode === x",
        "mode in",
        "mode in ",
        "mode is x",
        "a b = c",
    ],
)
def test_what_is_no_rule_is_refused_with_examples(text):
    with pytest.raises(
        UsageError, match=r"is not a rule on a field of an answer; expected FIELD OPERATOR VALUE, such as mode ="
    ):
        parse_answer_rule(text)


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">="])
def test_an_order_is_of_numbers(comparison):
    with pytest.raises(UsageError, match="expected a number after"):
        parse_answer_rule(f"mode {comparison} high")


VALUES = st.one_of(
    st.text(min_size=1, max_size=8).filter(lambda text: "\x00" not in text),
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)


@given(st.sampled_from(["=", "!="]), VALUES)
def test_a_rule_is_written_as_it_is_read(comparison, value):
    rule = parse_answer_rule(f"field {comparison} {json.dumps(value)}")
    assert rule.values == (value,)
    assert parse_answer_rule(str(rule)) == rule


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_a_list_of_values_is_written_as_it_is_read(values):
    rule = parse_answer_rule(f"field in {', '.join(map(json.dumps, values))}")
    assert rule.values == tuple(values)
    assert parse_answer_rule(str(rule)) == rule


def test_failures_and_silent_empty_answers_are_no_answers():
    answers = {
        "q1": Answer(Outcome.ANSWERED, (Hit("a"),), fields={"mode": "semantic"}),
        "q2": Answer(Outcome.ANSWERED, (Hit("a"),), fields={"mode": "lexical"}),
        "q3": Answer(Outcome.ANSWERED, (Hit("a"),)),
        "q4": Answer(Outcome.EMPTY, fields={"mode": "lexical"}),
        "q5": Answer(Outcome.EMPTY),
        "q6": Answer(Outcome.TIMEOUT, reason="too slow"),
    }
    assert violations(parse_answer_rule("mode = semantic"), Run("r", answers)) == {
        "q2": 'mode is "lexical"',
        "q3": "no field mode",
        "q4": 'mode is "lexical"',
    }


def test_every_operator_is_in_the_table_and_read():
    for symbol, row in COMPARISONS.items():
        text = "field exists" if symbol == "exists" else f"field {symbol} 1"
        assert parse_answer_rule(text).comparison == symbol == row.symbol

"""The tree of an explanation as a record, and its bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.formats.runs.record import answer_from_record, answer_record
from cranfield.model import Answer, Explanation, Hit, Outcome, Run
from cranfield.model.explanation import MAX_DEPTH, explanation_from_record

numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
trees = st.recursive(
    st.builds(Explanation, st.text(max_size=8), numbers, cut=st.integers(0, 5)),
    lambda inner: st.builds(Explanation, st.text(max_size=8), numbers, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=10,
)


@given(trees)
def test_a_tree_is_read_back_as_it_was_written(tree):
    assert explanation_from_record(tree.record()) == tree
    answer = Answer(Outcome.ANSWERED, (Hit("a", 1.0, explanation=tree), Hit("b")))
    assert answer_from_record(answer_record("q", answer))[1] == answer


def test_a_run_has_the_same_digest_with_explanations_and_without():
    runs = [
        Run("r", {"q": Answer(Outcome.ANSWERED, (Hit("a", 1.0, explanation=each),))})
        for each in (None, Explanation("score", 1.0))
    ]
    assert runs[0].digest == runs[1].digest


@pytest.mark.parametrize(
    "record",
    [
        [],
        {},
        {"name": 1},
        {"name": "a", "value": "1"},
        {"name": "a", "value": True},
        {"name": "a", "children": {}},
        {"name": "a", "children": [{"value": 1}]},
        {"name": "a", "cut": -1},
        {"name": "a", "cut": 1.5},
        {"name": "a", "value": 10**400},
    ],
)
def test_a_record_that_is_no_tree_is_refused(record):
    with pytest.raises(ValueError, match=r"a |no list"):
        explanation_from_record(record)


def test_a_record_of_many_levels_is_cut():
    record = {"name": "bottom", "value": 1.0}
    for _ in range(5_000):
        record = {"name": "level", "children": [record]}
    found = explanation_from_record(record)
    assert (sum(1 for _ in found), found.n_cut) == (MAX_DEPTH, 1)

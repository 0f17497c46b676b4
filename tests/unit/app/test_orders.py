"""Evaluations by a convention that orders equal scores by measure: what their warnings are about."""

from __future__ import annotations

from cranfield import evaluate

JUDGED = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
TIED = {"q1": {"a": 1.0, "x": 1.0, "b": 0.5}, "q2": {"a": 2.0, "x": 1.0}}
"""q1 has a tie, q3 no answer."""


def test_a_query_without_an_answer_is_one_sentence_for_all_measures() -> None:
    found = evaluate(JUDGED, TIED, measures=["nDCG@3", "Judged@3", "RBP", "RR@3"], convention="ir_measures")
    about = [each for each in found.warnings if "q3" in each]
    assert about == ["not returned: no answer in the run for 1 of 3 queries (counted as 0): q3"]


def test_what_is_said_of_ties_names_the_measures_with_that_order() -> None:
    found = evaluate(JUDGED, TIED, measures=["nDCG@3", "Judged@3", "RBP", "RR@3"], convention="ir_measures")
    orders = [each for each in found.warnings if "ties are ordered" in each]
    assert [each.partition("; ties are ordered ")[::2] for each in orders] == [
        ("nDCG@3: 1 result ties with the previous result", "by document id, descending"),
        ("Judged@3 and RR@3: 1 result ties with the previous result", "by document id, ascending"),
        ("RBP: 1 result ties with the previous result", "as in the run"),
    ]
    # q1 has a and b at 1 and 3, .2 (1 + .64), or at 2 and 3, .2 (.8 + .64); q2 has a at 1, .2; q3 is 0
    between = "RBP is between 0.1627 and 0.1760, depending on the order of the ties"
    assert f"RBP: judged documents in ties: 1 in 1 of 3 queries; {between}" in found.warnings


def test_measures_of_one_order_have_the_warnings_of_one_evaluation() -> None:
    alone = evaluate(JUDGED, TIED, measures=["AP", "nDCG@3"], convention="ir_measures").warnings
    assert alone == evaluate(JUDGED, TIED, measures=["AP", "nDCG@3"]).warnings

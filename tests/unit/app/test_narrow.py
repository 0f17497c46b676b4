"""Scores that are equal as 32-bit floats alone: `evaluate` reports what they would change, `explain` names the results."""

import json

import pytest
from typer.testing import CliRunner

from cranfield import Answer, Hit, Outcome, Run, evaluate
from cranfield.cli.main import command_line

QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"a": 1}}
EXACT = {"q1": {"d1": 12.34567891, "d2": 12.34567890, "d3": 5.0}, "q2": {"a": 3.0}}
PART = "scores that differ at 64 bits are equal at 32 bits, and tie in trec_eval 9 and pytrec_eval (convention trec9): "


def written(tmp_path, run):
    path = tmp_path / "r.run"
    lines = [f"{q} Q0 {doc} 1 {score!r} r" for q, docs in run.items() for doc, score in docs.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def collected(run, order="descending"):
    answers = {q: Answer(Outcome.ANSWERED, tuple(Hit(doc, s) for doc, s in docs.items())) for q, docs in run.items()}
    return Run("r", answers, order=order)


def caveats(run, convention="trec", measures=("RR", "nDCG@10")):
    evaluation = evaluate(QRELS, run, measures=list(measures), convention=convention)
    return [caveat for caveat in evaluation.warnings if "32 bits" in caveat]


@pytest.mark.parametrize("kind", ["file", "collected"])
def test_what_would_change_is_reported(tmp_path, kind):
    run = written(tmp_path, EXACT) if kind == "file" else collected(EXACT)
    # d2 is the larger id: RR of q1 is 1/2 there, nDCG 1/log2(3) = .6309; means with q2 (1): .75 and .8155
    said = "RR 0.7500 instead of 1.0000, nDCG@10 0.8155 instead of 1.0000 in 1 query (q1)"
    assert caveats(run) == [PART + said]
    narrow = evaluate(QRELS, run, measures=["RR", "nDCG@10"], convention="trec9")
    assert [round(narrow.mean(measure), 4) for measure in narrow.measures] == [0.75, 0.8155]


@pytest.mark.parametrize(
    "run",
    [
        {"q1": {"d1": 12.3457, "d2": 12.3456}, "q2": {"a": 3.0}},  # they differ at 32 bits too
        {"q1": {"d1": 12.3, "d2": 12.3}, "q2": {"a": 3.0}},  # they tie at 64 bits
        {"q1": {"x": 12.34567891, "y": 12.34567890, "d1": 1.0}, "q2": {"a": 3.0}},  # nothing judged moves
        {"q1": {"d1": 1.00000001}, "q2": {"a": 1.0}},  # of two queries
    ],
)
def test_nothing_is_reported_where_no_value_changes(tmp_path, run):
    assert caveats(written(tmp_path, run)) == caveats(collected(run)) == []


def test_a_convention_at_32_bits_or_in_the_given_order_has_no_caveat(tmp_path):
    path = written(tmp_path, EXACT)
    assert caveats(path, "trec9") == caveats(path, "cupertino") == caveats(collected(EXACT, order="given")) == []


@pytest.mark.parametrize(("a", "b"), [("trec10", "trec9"), ("trec9", "trec10")])
def test_explain_names_the_results_that_tie(tmp_path, a, b):
    qrels = tmp_path / "qrels"
    qrels.write_text("".join(f"{q} 0 {doc} {grade}\n" for q, docs in QRELS.items() for doc, grade in docs.items()))
    options = ["explain", str(qrels), str(written(tmp_path, EXACT)), a, b, "-m", "RR"]
    text = " ".join(CliRunner().invoke(command_line(), options).stdout.split())
    assert "score_width" in text
    both = "the scores of d1 (12.34567891) and d2 (12.3456789) are equal as 32-bit floats; d2 is ranked first"
    assert f"q1: {both}" in text
    result = json.loads(CliRunner().invoke(command_line(), [*options, "--format", "json"]).stdout)
    assert result["measures"]["RR"]["queries"]["q1"]["narrow_tie"] == {
        "above": "d1",
        "below": "d2",
        "above_score": 12.34567891,
        "below_score": 12.3456789,
    }

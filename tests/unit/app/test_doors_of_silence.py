"""Where nothing should be found, every way in says the same of no answer, of an empty one and of a depth."""

import polars as pl
import pytest

from cranfield import compare, evaluate
from cranfield.model import Answer, Hit, Negative, Outcome, Query, Run, TestSet

SET = TestSet(
    "set",
    (
        Query("none", negative=Negative()),
        Query("some", negative=Negative()),
        Query("weak", negative=Negative(below=0.5)),
        Query("q"),
    ),
    {"q": {"a": 1}},
)
SCORES = {"some": {"z": 0.9}, "weak": {"z": 0.4}, "q": {"a": 1.0}}
ROWS = [(query, doc, score) for query, docs in SCORES.items() for doc, score in docs.items()]


def through(door, folder, *, scores=SCORES):
    rows = [(query, doc, score) for query, docs in scores.items() for doc, score in docs.items()]
    if door == "run file":
        (folder / "run").write_text("".join(f"{query} Q0 {doc} 1 {score} t\n" for query, doc, score in rows))
        return folder / "run"
    if door == "run table":
        lines = ["query_id\tdoc_id\tscore", *(f"{query}\t{doc}\t{score}" for query, doc, score in rows)]
        (folder / "run.tsv").write_text("\n".join(lines) + "\n")
        return folder / "run.tsv"
    if door == "frame":
        return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    if door == "mapping of scores":
        return scores
    if door == "mapping of lists":
        return {query: list(docs) for query, docs in scores.items()}
    answers = {
        query: Answer(Outcome.ANSWERED if docs else Outcome.EMPTY, tuple(Hit(doc, s) for doc, s in docs.items()))
        for query, docs in scores.items()
    }
    return Run("run", answers, order="descending")


TABLES = ("run file", "run table", "frame")
"""They have no row for an answer without a result."""
ANSWERS = ("mapping of scores", "mapping of lists", "collected run")


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("door", TABLES)
def test_in_a_table_of_results_no_row_is_silence(door, missing, tmp_path):
    evaluation = evaluate(SET, through(door, tmp_path), measures=["RR", "Silence"], missing=missing)
    assert [evaluation.value("Silence", query) for query in ("none", "some", "weak", "q")] == [1.0, 0.0, 1.0, None]
    assert any("a missing line counts as an empty answer" in sentence for sentence in evaluation.warnings)


@pytest.mark.parametrize("door", ANSWERS)
def test_a_run_that_can_say_nothing_came_back_has_to_say_it(door, tmp_path):
    evaluation = evaluate(SET, through(door, tmp_path), measures=["Silence"])
    assert evaluation.value("Silence", "none") == 0.0
    assert not any("counts as silence" in sentence for sentence in evaluation.warnings)
    left_out = evaluate(SET, through(door, tmp_path), measures=["Silence"], missing="skip")
    assert "none" not in left_out.query_ids
    said = evaluate(SET, through(door, tmp_path, scores={**SCORES, "none": {}}), measures=["Silence"])
    assert said.value("Silence", "none") == 1.0


@pytest.mark.parametrize("door", TABLES)
def test_silence_in_a_table_of_results_is_no_failure_that_voids_a_verdict(door, tmp_path):
    evaluation = evaluate(SET, through(door, tmp_path), measures=["Silence", "RR"])
    assert compare(evaluation, evaluation, primary="Silence").verdict.name != "invalid"


def test_a_depth_cuts_what_counts_as_an_answer_through_every_door(tmp_path):
    # The order given is not that of the scores: beyond rank 1 is a result that would break the silence.
    testset = TestSet("set", (Query("n", negative=Negative(below=0.5)), Query("q")), {"q": {"a": 1}})
    scores = {"n": {"x": 0.2, "y": 0.9}, "q": {"a": 1.0, "b": 0.5}}
    for door in ("run file", "mapping of scores", "frame"):
        run = through(door, tmp_path, scores=scores)
        kept = evaluate(testset, run, measures=["Silence"], convention="octocode", depth=1)
        assert kept.value("Silence", "n") == 1.0, door
        assert len(kept.ranking.top["q"]) == 1, door
    collected = Run(
        "run", {q: Answer(Outcome.ANSWERED, tuple(Hit(d, s) for d, s in docs.items())) for q, docs in scores.items()}
    )
    kept = evaluate(testset, collected, measures=["Silence"], convention="octocode", depth=1)
    assert kept.value("Silence", "n") == 1.0
    assert len(kept.ranking.top["q"]) == 1  # what is shown is cut too


def test_a_query_where_nothing_should_be_found_is_never_called_not_found(tmp_path):
    before = evaluate(
        SET, through("collected run", tmp_path, scores={**SCORES, "none": {"z": 1.0}}), measures=["Silence"]
    )
    after = evaluate(SET, through("collected run", tmp_path, scores={**SCORES, "none": {}}), measures=["Silence"])
    result = compare(before, after)
    assert {name: ids for name, ids in result.buckets.items() if ids} == {
        "improved": ("none",),
        "unchanged": ("some", "weak"),
    }
    assert {name: ids for name, ids in result.moves.items() if ids} == {"nothing to find": ("none", "some", "weak")}
    back = compare(after, before)
    assert back.buckets["worsened"] == ("none",)


def test_a_set_where_nothing_should_be_found_is_measured_by_silence_without_being_asked():
    testset = TestSet("set", tuple(Query(q, negative=Negative()) for q in ("a", "b")))
    before, after = evaluate(testset, {"a": [], "b": ["x"]}), evaluate(testset, {"a": [], "b": []})
    assert {str(measure): summary.mean for measure, summary in before.summaries.items()} == {"Silence": 0.5}
    assert str(compare(before, after).primary) == "Silence"


BOUND = Negative(below=0.5)
FIELD = Negative(below=0.5, field="confidence")


def collected(hit, **fields):
    return Run("run", {"n": Answer(Outcome.ANSWERED, (hit,), fields=fields)})


@pytest.mark.parametrize(
    ("negative", "run", "is_said"),
    [
        pytest.param(BOUND, {"n": ["x"]}, True, id="ids without scores"),
        pytest.param(BOUND, {"n": {"x": 0.9}}, False, id="scores"),
        pytest.param(FIELD, {"n": {"x": 0.1}}, True, id="scores and no field"),
        pytest.param(FIELD, collected(Hit("x")), True, id="an answer without the field"),
        pytest.param(FIELD, collected(Hit("x"), confidence=0.9), False, id="an answer with the field"),
        pytest.param(FIELD, {"n": []}, False, id="nothing came back"),
    ],
)
def test_a_bound_that_nothing_can_be_compared_with_is_said(negative, run, is_said):
    evaluation = evaluate(TestSet("set", (Query("n", negative=negative),)), run, measures=["Silence"])
    assert any("any result counts: n" in sentence for sentence in evaluation.warnings) is is_said
    assert evaluation.value("Silence", "n") == (1.0 if run == {"n": []} else 0.0)

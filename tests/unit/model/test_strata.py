"""The strata of a query, its class among them, wherever strata are named."""

import pytest

from cranfield.app.evaluate import evaluate
from cranfield.evaluation.evaluate import contrast_strata, strata_of
from cranfield.evaluation.testset.split import cells
from cranfield.gate.use_cases.calibration import LazyEvaluation, Scores
from cranfield.model import Negative, Query, TestSet, is_in_stratum, query_strata

SET = TestSet(
    "set",
    (
        Query("p1", query_class="prose"),
        Query("p2", query_class="G", strata={"difficulty": "hard"}),
        Query("r1", query_class="root"),
        Query("r2", query_class="root"),
        Query("n1", negative=Negative()),
        Query("own", strata={"class": "mine"}, query_class="root"),
        Query("none"),
    ),
    {q: {"a": 1} for q in ("p1", "p2", "r1", "r2", "own", "none")},
)


@pytest.mark.parametrize(
    ("query", "strata"),
    [
        ("p1", {"class": "prose"}),
        ("p2", {"difficulty": "hard", "class": "prose"}),
        ("n1", {"class": "negative"}),
        ("own", {"class": "mine"}),
        ("none", {}),
    ],
)
def test_the_class_is_a_stratum_unless_the_query_has_one_of_that_name(query, strata):
    assert query_strata(SET.by_id[query]) == strata


@pytest.mark.parametrize(
    ("query", "value", "found"),
    [
        ("p1", "prose", True),
        ("p1", "G", True),
        ("p1", "root", False),
        ("own", "mine", True),
        ("own", "root", True),
        ("own", "B", True),
        ("none", "", False),
        ("none", "prose", False),
    ],
)
def test_a_class_is_found_by_stratum_name_and_letter(query, value, found):
    assert is_in_stratum(SET.by_id[query], "class", value) is found


def test_class_is_a_key_of_every_breakdown_contrast_filter_and_draw():
    evaluation = evaluate(SET, {q: ["a"] for q in SET.query_ids}, measures=["nDCG@10", "Silence"])
    groups = {value: ids for key, value, ids in strata_of(SET, SET.query_ids) if key == "class"}
    assert groups == {"prose": ("p1", "p2"), "root": ("r1", "r2"), "negative": ("n1",), "mine": ("own",)}
    assert contrast_strata(evaluation, "class", "prose", "root").groups.difference == 0
    assert contrast_strata(evaluation, "class", "G", "B").groups.b.n == 3  # by letter, `own` is one too
    scores = Scores.of(LazyEvaluation(evaluation))
    assert len(scores.where(**{"class": "B"})) == 3
    assert sorted(scores.by("class")) == ["mine", "prose", "root"]  # negatives alone are left to `where`
    assert len(scores.where(**{"class": "negative"})) == 1
    assert cells(SET, ["class"])["prose"] == ["p1", "p2"]


@pytest.mark.parametrize("held_out", ["class=prose", "class=G"])
def test_a_grid_holds_out_a_class_by_name_or_letter(held_out):
    from cranfield.app.grid import halves_of
    from cranfield.config.models import GridConfig

    grid = GridConfig(system="s", over={"k": [1]}, held_out=held_out)
    assert {query.id for query in halves_of(SET, grid).held_out.queries} == {"p1", "p2"}

"""Two strata against each other, for one system and for the gain between two."""

import numpy as np
import pytest

from cranfield.app.evaluate import compare, evaluate
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.evaluation.evaluate import contrast_gain, contrast_strata
from cranfield.measures import parse
from cranfield.model import Query, TestSet
from cranfield.stats.contrast import two_groups

EASY, HARD = [f"s{i}" for i in range(6)], [f"h{i}" for i in range(5)]
SET = TestSet(
    "set",
    (
        *(Query(q, strata={"set": "standard"}) for q in EASY),
        *(Query(q, strata={"set": "hard"}) for q in HARD),
        Query("x"),
    ),
    {q: {"a": 1} for q in [*EASY, *HARD, "x"]},
)
TOP, SECOND, NOTHING = ["a"], ["x", "a"], ["x"]
BEFORE = {**dict.fromkeys(EASY, TOP), **dict.fromkeys(HARD, NOTHING), "h0": SECOND, "x": TOP}
AFTER = {**dict.fromkeys(EASY, TOP), **dict.fromkeys(HARD, SECOND), "h0": TOP, "x": TOP}


@pytest.fixture(scope="module")
def sides():
    return evaluate(SET, BEFORE, measures=["RR", "P@1"], name="before"), evaluate(
        SET, AFTER, measures=["RR", "P@1"], name="after"
    )


def test_the_means_of_two_strata_are_contrasted_with_an_interval(sides):
    found = contrast_strata(sides[1], "set", "standard", "hard")
    hard = np.array([1, 0.5, 0.5, 0.5, 0.5])
    assert found.groups == two_groups(np.ones(6), hard)
    assert found.groups.difference == pytest.approx(1 - 0.6)  # (1 + 4 x 1/2) / 5
    assert (found.groups.a.n, found.groups.b.n) == (6, 5)
    assert found.measure == parse("RR")


def test_a_stratum_at_the_ceiling_is_named(sides):
    (said,) = contrast_strata(sides[0], "set", "standard", "hard").ceilings
    assert said.startswith("before, standard: at the ceiling: mean 1.000 of 1, and 6 of 6 queries")


def test_the_gain_is_contrasted_too(sides):
    found = contrast_gain(compare(*sides), "set", "standard", "hard")
    # standard gains nothing; hard gains 1/2 everywhere: h0 from 1/2 to 1, the others from 0 to 1/2
    assert found.groups.difference == pytest.approx(-0.5)
    assert found.groups.note is not None  # no spread in either group
    assert found.what == "difference"
    assert contrast_gain(compare(*sides), "set", "standard", "hard", parse("P@1")).groups.difference == pytest.approx(
        -1 / 5
    )


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (("sett", "standard", "hard"), UnknownNameError),
        (("set", "standrad", "hard"), UnknownNameError),
        (("set", "hard", "hard"), UsageError),
        (("set", "standard", "hard", parse("AP")), UsageError),
    ],
)
def test_what_is_not_there_is_refused(sides, asked, error):
    with pytest.raises(error):
        contrast_strata(sides[0], *asked)
    with pytest.raises(error):
        contrast_gain(compare(*sides), *asked)

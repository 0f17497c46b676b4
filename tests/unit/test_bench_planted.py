"""The study of planted causes, on one engine and one collection that its rules were not written with."""

import numpy as np
import pytest

from cranfield import compare, evaluate
from cranfield.evaluation.causes import causes_of


@pytest.fixture(scope="module")
def planted(checkout, load_script):
    return load_script(checkout / "bench" / "planted.py")


@pytest.fixture(scope="module")
def before(planted):
    made = planted.collection(7)
    run = planted.run_of("before", made, planted.Engine(), "sqlite", "")
    return made, evaluate(made.testset, run, measures=["nDCG@10"])


@pytest.mark.parametrize(
    "kind", ["field weight", "synonym", "stemmer", "filter", "missing documents", "date boost", "digits"]
)
def test_the_planted_cause_is_named_first(planted, before, kind):
    made, baseline = before
    engine = planted.changed(kind, made, np.random.default_rng(7))
    run = planted.run_of("after", made, engine, "sqlite", "")
    found = causes_of(compare(baseline, evaluate(made.testset, run, measures=["nDCG@10"])))
    assert planted.is_planted(kind, found.ordered[0], engine)


def test_nothing_is_named_for_an_identical_pair(planted, before):
    made, baseline = before
    run = planted.run_of("after", made, planted.Engine(), "sqlite", "")
    found = causes_of(compare(baseline, evaluate(made.testset, run, measures=["nDCG@10"])))
    assert found.ordered == ()

"""BEIR's `EvaluateRetrieval` with our module in the place of pytrec_eval."""

import copy
import importlib
import random
import sys

import pytest

from cranfield.compat import pytrec_eval as drop_in

EVALUATION = "beir.retrieval.evaluation"
CUTOFFS = [1, 3, 5, 10, 100]


@pytest.fixture
def evaluation(monkeypatch):
    """BEIR's class over a module named pytrec_eval."""

    def load(module):
        if module is not None:
            monkeypatch.setitem(sys.modules, "pytrec_eval", module)
        monkeypatch.delitem(sys.modules, EVALUATION, raising=False)
        loaded = importlib.import_module(EVALUATION)
        assert (loaded.pytrec_eval is drop_in) == (module is drop_in)
        return loaded.EvaluateRetrieval

    yield load
    sys.modules.pop(EVALUATION, None)


def made(seed):
    """Grades, ties, unjudged documents, documents with the id of their query, and a query without an answer."""
    rng = random.Random(seed)
    queries = [f"q{n}" for n in range(25)]
    qrels = {q: {f"d{n}": rng.randint(0, 3) for n in rng.sample(range(150), 12)} for q in queries}
    results = {
        q: {f"d{n}": rng.choice([0.1, 0.25, 0.5, rng.random()]) for n in rng.sample(range(150), 110)}
        for q in queries[:-1]
    }
    results["q3"]["q3"] = 2.0
    return qrels, results


def figures(evaluate, qrels, results):
    found = list(evaluate.evaluate(qrels, copy.deepcopy(results), CUTOFFS))
    found += [
        evaluate.evaluate_custom(qrels, copy.deepcopy(results), CUTOFFS, m) for m in ("mrr", "hole", "acc", "r_cap")
    ]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_those_of_pytrec_eval(evaluation, seed):
    qrels, results = made(seed)
    expected = figures(evaluation(None), qrels, results)
    assert figures(evaluation(drop_in), qrels, results) == expected
    assert 0 < expected[0]["NDCG@10"] < 1

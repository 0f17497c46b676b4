"""Measures in PyTerrier's `Experiment`. No Java is started: results come from frames."""

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from cranfield.base.errors import UsageError
from cranfield.compat.pyterrier import measure

QUERIES = [f"q{n}" for n in range(12)]


def frames(seed=0):
    rng = np.random.default_rng(seed)
    topics = pd.DataFrame({"qid": QUERIES, "query": [f"text {n}" for n in range(12)]})
    qrels = pd.DataFrame(
        [(qid, f"d{doc}", int(rng.integers(0, 4))) for qid in QUERIES for doc in rng.choice(40, 12, replace=False)],
        columns=["qid", "docno", "label"],
    )
    systems = []
    for _ in range(2):
        rows = [
            (qid, f"d{doc}", float(rng.normal())) for qid in QUERIES[:11] for doc in rng.choice(40, 20, replace=False)
        ]
        results = pd.DataFrame(rows, columns=["qid", "docno", "score"]).sort_values(
            ["qid", "score"], ascending=[True, False]
        )
        results["rank"] = results.groupby("qid").cumcount()
        systems.append(pt.Transformer.from_df(results))
    return systems, topics, qrels


NAMES = ["nDCG@10", "AP", "P@5", "RR@10", "R@20"]


@pytest.mark.parametrize("batch_size", [None, 5])
def test_values_are_those_of_ir_measures(batch_size, caplog):
    systems, topics, qrels = frames()
    options = {"names": ["a", "b"], "batch_size": batch_size}
    ours = pt.Experiment(systems, topics, qrels, eval_metrics=[measure(name) for name in NAMES], **options)
    theirs = pt.Experiment(
        systems, topics, qrels, eval_metrics=[ir_measures.parse_measure(n) for n in NAMES], **options
    )
    assert {*ours.columns} == {"name", *NAMES}
    assert np.allclose(ours[NAMES], theirs[NAMES], atol=1e-12)
    assert (ours[NAMES] > 0).all(axis=None)
    assert caplog.text == ""


def test_values_by_query_and_measures_that_others_lack():
    systems, topics, qrels = frames(1)
    metrics = [measure("nDCG@10"), measure("ERR(max_rel=3)@10"), measure("RBP(p=0.8)")]
    found = pt.Experiment(systems, topics, qrels, eval_metrics=metrics, perquery=True, names=["a", "b"])
    assert {*found["measure"].map(str)} == {"nDCG@10", "ERR(max_rel=3)@10", "RBP(p=0.8)"}
    assert len(found) == 2 * 12 * 3  # the query without an answer is there, with 0
    assert (found[found["qid"] == "q11"]["value"] == 0).all()
    both = pt.Experiment(systems, topics, qrels, eval_metrics=metrics, baseline=0, names=["a", "b"])
    assert both["nDCG@10 p-value"].iloc[1] <= 1


def test_a_wrong_spelling_is_refused_at_once():
    with pytest.raises(UsageError, match="unknown measure"):
        measure("nDGC@10")

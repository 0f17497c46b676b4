"""QRELS RUN OUT with pytrec_eval, read by a plain loop as its users do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytrec_eval

MEASURES = {"ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100", "recall_1000", "success_5"}
NAMES = {
    "ndcg_cut_10": "nDCG@10",
    "map": "AP",
    "recip_rank": "RR@10",
    "P_10": "P@10",
    "recall_100": "R@100",
    "recall_1000": "R@1000",
    "success_5": "Success@5",
}


def read(path, column, kind):
    """Give query -> document -> number."""
    rows = {}
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            query = rows.get(fields[0])
            if query is None:
                query = rows[fields[0]] = {}
            query[fields[2]] = kind(fields[column])
    return rows


def named(values):
    """Under our names; it has no RR@10, which is its RR where the first relevant result is in the first ten."""
    rows = {NAMES[measure]: value for measure, value in values.items()}
    if rows["RR@10"] < 0.1:
        rows["RR@10"] = 0.0
    return rows


def main(qrels, run, out):
    evaluator = pytrec_eval.RelevanceEvaluator(read(qrels, 3, int), MEASURES)
    queries = {query: named(values) for query, values in evaluator.evaluate(read(run, 4, float)).items()}
    mean = {name: sum(values[name] for values in queries.values()) / len(queries) for name in NAMES.values()}
    with Path(out).open("w", encoding="utf-8") as stream:
        json.dump({"mean": mean, "queries": queries}, stream)


if __name__ == "__main__":
    main(*sys.argv[1:])

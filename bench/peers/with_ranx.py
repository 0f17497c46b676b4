"""QRELS RUN OUT with ranx, its own readers included."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ranx import Qrels, Run, evaluate

NAMES = {
    "ndcg@10": "nDCG@10",
    "map": "AP",
    "mrr@10": "RR@10",
    "precision@10": "P@10",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
    "hit_rate@5": "Success@5",
}


def main(qrels, run, out):
    judgments = Qrels.from_file(qrels, kind="trec")
    results = Run.from_file(run, kind="trec")
    mean = evaluate(judgments, results, list(NAMES))
    queries = {}
    for measure, values in results.scores.items():
        for query, value in values.items():
            queries.setdefault(query, {})[NAMES[measure]] = float(value)
    with Path(out).open("w", encoding="utf-8") as stream:
        json.dump({"mean": {NAMES[key]: float(value) for key, value in mean.items()}, "queries": queries}, stream)


if __name__ == "__main__":
    main(*sys.argv[1:])

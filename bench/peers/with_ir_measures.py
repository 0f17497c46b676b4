"""QRELS RUN OUT with ir_measures, its own readers included."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ir_measures
from ir_measures import AP, RR, P, R, Success, nDCG

MEASURES = [nDCG @ 10, AP, RR @ 10, P @ 10, R @ 100, R @ 1000, Success @ 5]


def main(qrels, run, out):
    queries = {}
    judgments = ir_measures.read_trec_qrels(qrels)
    results = ir_measures.read_trec_run(run)
    for query, measure, value in ir_measures.iter_calc(MEASURES, judgments, results):
        queries.setdefault(query, {})[str(measure)] = value
    names = [str(measure) for measure in MEASURES]
    mean = {name: sum(values[name] for values in queries.values()) / len(queries) for name in names}
    with Path(out).open("w", encoding="utf-8") as stream:
        json.dump({"mean": mean, "queries": queries}, stream)


if __name__ == "__main__":
    main(*sys.argv[1:])

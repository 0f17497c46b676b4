"""One tool in memory: `doors.py CASE QRELS RUN REPEATS` prints first and best times as JSON. See memory_door.py.

Judgments and run are dicts of dicts, read by the same plain loop for every tool before the clock starts. A process
measures one case, so that the peak memory and the first call are its own.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MEASURES = ["nDCG@10", "AP", "RR@10", "P@10", "R@100", "R@1000", "Success@5"]


@dataclass
class Given:
    """What every case starts from."""

    qrels_path: str
    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]


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


def cranfield_mapping(given):
    """`cranfield.evaluate` of a mapping; the test set is built beforehand, as the judgments of the others are."""
    import cranfield

    testset = cranfield.load(given.qrels_path)

    def call():
        return cranfield.evaluate(testset, given.run, measures=MEASURES)

    return call, cranfield_means


def cranfield_arrays(given):
    """`cranfield.evaluate` of positions in a list of documents and of scores, both arrays, as a vector index returns them."""
    import numpy as np

    import cranfield

    testset = cranfield.load(given.qrels_path)
    place, k = {}, max(map(len, given.run.values()))
    ids, scores = np.full((len(given.run), k), -1), np.zeros((len(given.run), k), np.float32)
    for row, found in enumerate(given.run.values()):
        ranked = sorted(found, key=found.__getitem__, reverse=True)
        ids[row, : len(ranked)] = [place.setdefault(doc_id, len(place)) for doc_id in ranked]
        scores[row, : len(ranked)] = [found[doc_id] for doc_id in ranked]
    documents, query_ids = cranfield.DocumentIds.of(list(place)), list(given.run)

    def call():
        return cranfield.evaluate(
            testset, ids=ids, scores=scores, query_ids=query_ids, doc_ids=documents, measures=MEASURES
        )

    return call, cranfield_means


def cranfield_order(given):
    """The same without scores: the order of the columns counts."""
    import numpy as np

    import cranfield

    testset = cranfield.load(given.qrels_path)
    place, k = {}, max(map(len, given.run.values()))
    ids = np.full((len(given.run), k), -1)
    for row, found in enumerate(given.run.values()):
        ranked = sorted(sorted(found, reverse=True), key=found.__getitem__, reverse=True)
        ids[row, : len(ranked)] = [place.setdefault(doc_id, len(place)) for doc_id in ranked]
    documents, query_ids = cranfield.DocumentIds.of(list(place)), list(given.run)

    def call():
        return cranfield.evaluate(testset, ids=ids, query_ids=query_ids, doc_ids=documents, measures=MEASURES)

    return call, cranfield_means


def frame_of(given):
    """A pandas frame with a row per result."""
    import pandas as pd

    rows = [(query_id, doc_id, score) for query_id, found in given.run.items() for doc_id, score in found.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])


def cranfield_pandas(given):
    """`cranfield.evaluate` of a pandas frame."""
    import cranfield

    testset, frame = cranfield.load(given.qrels_path), frame_of(given)
    return lambda: cranfield.evaluate(testset, frame, measures=MEASURES), cranfield_means


def cranfield_polars(given):
    """`cranfield.evaluate` of a Polars frame."""
    import polars as pl

    import cranfield

    testset, frame = cranfield.load(given.qrels_path), pl.from_pandas(frame_of(given))
    return lambda: cranfield.evaluate(testset, frame, measures=MEASURES), cranfield_means


def cranfield_ranking(given):
    """Measures of a ranking that was made before, with the summaries."""
    import cranfield
    from cranfield.evaluation.evaluate import evaluate_ranking

    testset = cranfield.load(given.qrels_path)
    ranking = cranfield.evaluate(testset, given.run, measures=MEASURES[:1]).ranking
    measures = [cranfield.parse(measure) for measure in MEASURES]

    def call():
        return evaluate_ranking(testset, ranking, measures, name="run", run_digest="")

    return call, cranfield_means


def cranfield_means(evaluation):
    """Name -> mean."""
    return {str(measure): summary.mean for measure, summary in evaluation.summaries.items()}


def pytrec_eval(given):
    """Evaluator and evaluate; the means are summed in Python."""
    import pytrec_eval

    asked = {
        "ndcg_cut_10": "nDCG@10",
        "map": "AP",
        "recip_rank": "RR@10",
        "P_10": "P@10",
        "recall_100": "R@100",
        "recall_1000": "R@1000",
        "success_5": "Success@5",
    }

    def call():
        queries = pytrec_eval.RelevanceEvaluator(given.qrels, set(asked)).evaluate(given.run)
        for values in queries.values():
            if values["recip_rank"] < 0.1:
                values["recip_rank"] = 0.0
        mean = {key: sum(values[key] for values in queries.values()) / len(queries) for key in asked}
        return queries, mean

    return call, lambda result: {asked[key]: value for key, value in result[1].items()}


RANX = {
    "ndcg@10": "nDCG@10",
    "map": "AP",
    "mrr@10": "RR@10",
    "precision@10": "P@10",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
    "hit_rate@5": "Success@5",
}


def ranx_means(result):
    """Name -> mean."""
    return {RANX[key]: float(value) for key, value in result.items()}


def ranx_dicts(given):
    """Qrels and Run are built of the dicts inside the time."""
    from ranx import Qrels, Run, evaluate

    def call():
        return evaluate(Qrels(given.qrels), Run(given.run), list(RANX))

    return call, ranx_means


def ranx_built(given):
    """Qrels and Run are there; values by query are kept in the Run."""
    from ranx import Qrels, Run, evaluate

    judged, results = Qrels(given.qrels), Run(given.run)

    def call():
        return evaluate(judged, results, list(RANX))

    return call, ranx_means


def ir_measures_pandas(given):
    """`ir_measures.calc` of the pandas frames that it takes."""
    import pandas as pd

    judged = [(query_id, doc_id, grade) for query_id, grades in given.qrels.items() for doc_id, grade in grades.items()]
    qrels, frame = pd.DataFrame(judged, columns=["query_id", "doc_id", "relevance"]), frame_of(given)
    return ir_measures(Given(given.qrels_path, qrels, frame))


def ir_measures(given):
    """Values by query from iter_calc; the means are summed in Python."""
    import ir_measures
    from ir_measures import AP, RR, P, R, Success, nDCG

    asked = [nDCG @ 10, AP, RR @ 10, P @ 10, R @ 100, R @ 1000, Success @ 5]

    def call():
        values = {measure: {} for measure in asked}
        for query, measure, value in ir_measures.iter_calc(asked, given.qrels, given.run):
            values[measure][query] = value
        return {str(measure): sum(held.values()) / len(held) for measure, held in values.items()}

    return call, lambda result: result


CASES = {
    "cranfield": cranfield_mapping,
    "cranfield-arrays": cranfield_arrays,
    "cranfield-order": cranfield_order,
    "cranfield-pandas": cranfield_pandas,
    "cranfield-polars": cranfield_polars,
    "cranfield-ranking": cranfield_ranking,
    "pytrec_eval": pytrec_eval,
    "ranx": ranx_dicts,
    "ranx-built": ranx_built,
    "ir_measures": ir_measures,
    "ir_measures-pandas": ir_measures_pandas,
}


def peak_mb():
    """Most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(case, qrels_path, run_path, repeats):
    given = Given(qrels_path, read(qrels_path, 3, int), read(run_path, 4, float))
    call, means = CASES[case](given)
    gc.collect()
    ready = peak_mb()
    walls, cpus = [], []
    for _ in range(int(repeats)):
        wall, cpu = time.perf_counter(), time.process_time()
        result = call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        mean = means(result)
        del result
    peak = peak_mb()
    print(json.dumps({"walls": walls, "cpus": cpus, "ready_mb": ready, "peak_mb": peak, "mean": mean}))


if __name__ == "__main__":
    main(*sys.argv[1:])

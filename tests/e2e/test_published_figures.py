"""What others published comes out as it was published, where it was right: worked examples, and runs of real systems."""

import csv
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cranfield import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, evaluate
from cranfield.evaluation.evaluate import summarise

ROOT = Path(__file__).parents[2]


def cranfield(*args):
    done = subprocess.run(["cranfield", *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pair(tmp_path_factory, shared_data):
    out = tmp_path_factory.mktemp("pair")
    script = ROOT / "examples" / "paired_uri_lists.py"
    subprocess.run([sys.executable, script, shared_data / "cupertino" / "versiondiff.json", out], check=True)
    return out


@pytest.fixture(scope="module")
def comparison(pair):
    measures = [option for measure in ("RR@10", "P@1", "P@5", "nDCG@10") for option in ("-m", measure)]
    files = [pair / name for name in ("testset.yaml", "brew.jsonl", "new.jsonl")]
    options = ["--convention", "cupertino", "--primary", "RR@10", "--test", "wilcoxon", "--format", "json"]
    return json.loads(cranfield("compare", *files, *measures, *options))


@pytest.mark.parametrize(
    ("measure", "baseline", "candidate"),
    [("RR@10", 0.7967, 0.9467), ("P@1", 0.68, 0.92), ("P@5", 0.276, 0.328), ("nDCG@10", 1.2562, 1.7385)],
)
def test_means(comparison, measure, baseline, candidate):
    row = comparison["comparisons"][measure]
    assert (round(row["baseline"]["mean"], 4), round(row["candidate"]["mean"], 4)) == (baseline, candidate)
    assert row["n"] == 50


def test_wilcoxon(comparison):
    row = comparison["comparisons"]["RR@10"]
    test = row["tests"]["wilcoxon"]
    assert row["n_nonzero"] == 14
    assert test["statistic"] == 1.5
    assert round(test["extra"]["p_normal_two_sided"], 6) == 0.001147
    assert round(test["extra"]["p_normal_one_sided"], 6) == 0.000574
    assert round(test["p_two_sided"], 6) == 0.000366
    assert test["note"] == "exact p; SciPy's normal approximation p .001147, one-sided .000574"


def test_mcnemar_finds_twelve_and_none_not_the_thirteen_published(comparison):
    test = comparison["comparisons"]["P@1"]["tests"]["mcnemar"]
    assert (test["extra"]["candidate_only"], test["extra"]["baseline_only"]) == (12, 0)
    # exact: 2 * 0.5**12
    assert test["p_two_sided"] == pytest.approx(2 * 0.5**12)
    assert comparison["rank_one"]["extra"]["candidate_only"] == 12


def test_the_verdict_and_both_partitions_cover_every_query(comparison):
    assert comparison["verdict"] == "better"
    for partition in ("buckets", "moves"):
        placed = [query for queries in comparison[partition].values() for query in queries]
        assert sorted(placed) == sorted(set(placed))
        assert len(placed) == 50
    # The audit's own buckets hold 49: `Combine Publisher`, which rose from rank 3 to 2, fell through.
    assert len(comparison["moves"]["moved to rank 1"]) == 12


def test_under_the_default_convention_a_pattern_is_credited_once(pair):
    files = [pair / name for name in ("testset.yaml", "brew.jsonl", "new.jsonl")]
    result = json.loads(cranfield("compare", *files, "--format", "json"))
    row = result["comparisons"]["nDCG@10"]
    assert row["candidate"]["mean"] <= 1
    assert "Judged@10" not in result["comparisons"]


# Worked examples --------------------------------------------------------------------------------------------------------


def scored(grades, retrieved, *measures, convention="trec"):
    """Values of one query, rounded as they were published."""
    evaluation = evaluate(
        TestSet("example", (Query("q"),), {"q": grades}), {"q": retrieved}, measures=measures, convention=convention
    )
    return [evaluation.value(measure, "q") for measure in evaluation.measures]


def test_medical_search_recall_finds_three_of_five_in_the_top_ten():
    relevant = dict.fromkeys(["doc1", "doc2", "doc3", "doc4", "doc5"], 1)
    top = ["doc1", "doc6", "doc2", "doc7", "doc8", "doc9", "doc3", "doc10", "doc11", "doc12"]
    assert scored(relevant, top, "R@10") == [0.6]


def test_medical_search_recall_never_falls_as_k_grows():
    relevant = dict.fromkeys(["doc1", "doc2", "doc3", "doc4", "doc5"], 1)
    top = ["doc1", "doc6", "doc2", "doc7", "doc8", "doc9", "doc3"]
    assert scored(relevant, top, "R@5", "R@10", "R@20") == [2 / 5, 3 / 5, 3 / 5]


def test_medical_search_first_relevant_at_rank_3():
    (found,) = scored(dict.fromkeys(["doc1", "doc2", "doc3"], 1), ["doc5", "doc6", "doc1", "doc7"], "RR")
    assert round(found, 3) == 0.333


def test_medical_search_mean_reciprocal_rank_of_ranks_1_2_and_3():
    queries = tuple(Query(q) for q in ("first", "second", "third"))
    testset = TestSet("three", queries, {query.id: {"d": 1} for query in queries})
    run = {"first": ["d"], "second": ["x", "d"], "third": ["x", "y", "d"]}
    evaluation = evaluate(testset, run, measures=["MRR"])
    # (1 + 1/2 + 1/3) / 3
    assert round(evaluation.summaries[evaluation.measures[0]].mean, 3) == 0.611


def test_medical_search_graded_example_with_both_gains():
    # (7 + 0 + 3/2) / (7 + 3/log2(3) + 1/2) and (3 + 0 + 2/2) / (3 + 2/log2(3) + 1/2)
    grades = {"doc1": 3, "doc2": 2, "doc3": 1, "doc4": 0}
    found = scored(grades, ["doc1", "doc4", "doc2"], "nDCG(dcg='exp-log2')@10", "nDCG@10")
    assert [round(one, 3) for one in found] == [0.905, 0.840]


def test_octocode_worked_example():
    # truth A (grade 2) and B (grade 1) at ranks 2 and 3: DCG 2/log2(3) + 1/log2(4), ideal 2 + 1/log2(3)
    truth = {"A": 2, "B": 1}
    measures = ("Success@5", "RR", "DCG@10", "IdealDCG@10", "nDCG@10", "R@10")
    found = scored(truth, ["C", "A", "B"], *measures, convention="octocode")
    assert [round(one, 2) for one in found] == [1.0, 0.5, 1.76, 2.63, 0.67, 1.0]


@pytest.mark.parametrize(("rank", "published"), [(1, 1.0), (2, 0.5), (3, 0.33), (5, 0.2), (21, 0.0)])
def test_octocode_reciprocal_ranks(rank, published):
    # it asks for 20 results, so a hit at rank 21 is not found
    (found,) = scored({"A": 2}, [*(f"x{n}" for n in range(rank - 1)), "A"], "RR", convention="octocode")
    assert round(found, 2) == published


@pytest.mark.parametrize("convention", ["cupertino", "trec"])
@pytest.mark.parametrize(("rank", "published"), [(1, 1.0), (2, 0.6309), (10, 0.2890), (11, 0.0)])
def test_cupertino_ndcg_of_a_single_right_answer(rank, published, convention):
    # 1/log2(rank + 1), over 1
    testset = TestSet("one", (Query("q"),), targets={"q": (Pattern("^right$", expected_count=1),)})
    run = {"q": [*(f"x{n}" for n in range(rank - 1)), "right"]}
    evaluation = evaluate(testset, run, measures=["nDCG@10"], convention=convention)
    # published to four places, the last one cut off
    assert math.floor(evaluation.value(evaluation.measures[0], "q") * 1e4) / 1e4 == published


# octocode: graded line spans, and a plain BM25 over windows of 40 lines ----------------------------------------------------


@pytest.fixture(scope="module")
def spans(shared_data):
    """Test set and run: a truth is a pattern of the windows that overlap it by a line or more."""
    windows: dict[str, list[tuple[str, int, int]]] = {}
    with (shared_data / "octocode" / "run-bm25-window40-code.tsv").open(newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            windows.setdefault(row["qid"], []).append((row["path"], int(row["start_line"]), int(row["end_line"])))
    queries, patterns = [], {}
    with (shared_data / "octocode" / "code.csv").open(newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream), start=1):
            queries.append(Query(str(number), row["query"]))
            truths = [row[name] for name in ("result1", "result2", "result3") if row[name]]
            patterns[str(number)] = tuple(pattern_of(truth, windows[str(number)]) for truth in truths)
    answers = {
        query_id: Answer(Outcome.ANSWERED, tuple(Hit(name_of(*window)) for window in listed))
        for query_id, listed in windows.items()
    }
    return TestSet("code", tuple(queries), targets=patterns), Run("bm25", answers)


def name_of(path, start, end):
    return f"{path}:{start}-{end}"


def pattern_of(truth, windows):
    path, lines, grade = truth.rsplit(":", 2)
    first, last = map(int, lines.split("-"))
    overlapping = [
        name_of(*window) for window in windows if window[0] == path and window[1] <= last and first <= window[2]
    ]
    names = "|".join(map(re.escape, overlapping or [truth]))  # a window is never named as a truth is
    return Pattern(f"^(?:{names})$", int(grade), expected_count=1)


def test_octocode_credits_every_result_that_overlaps_a_truth(spans):
    evaluation = evaluate(*spans, measures=["Success@5", "Success@10", "RR", "nDCG@10"], convention="octocode")
    means = [round(evaluation.summaries[measure].mean, 3) for measure in evaluation.measures]
    assert means == [0.724, 0.835, 0.588, 1.127]
    ndcg = evaluation.values[evaluation.measures[3]]
    assert (int((ndcg > 1 + 1e-9).sum()), round(float(ndcg.max()), 2)) == (75, 3.52)


def test_under_the_default_convention_each_span_is_credited_once(spans):
    evaluation = evaluate(*spans, measures=["nDCG@10", "Success@5"])
    ndcg, success = evaluation.measures
    assert round(evaluation.summaries[ndcg].mean, 3) == 0.617
    assert float(evaluation.values[ndcg].max()) <= 1 + 1e-12
    assert round(evaluation.summaries[success].mean, 3) == 0.724


def test_octocode_leaves_a_failed_query_out(spans):
    testset, run = spans
    failed = Run("bm25", run.answers | {"1": Answer(Outcome.TIMEOUT, reason="no answer in 60 s")})
    counted = {
        name: evaluate(testset, failed, measures=["Success@5"], convention=name).summaries
        for name in ("octocode", "trec")
    }
    assert {name: next(iter(summaries.values())).n for name, summaries in counted.items()} == {
        "octocode": 126,
        "trec": 127,
    }


# KnowCode: scores of each query, without their lists -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "published"),
    [
        ("precision_at_1", 0.5167),
        ("recall_at_10", 0.6844),
        ("mrr", 0.6928),
        ("file_coverage_at_1", 0.5208),
        ("file_coverage_at_5", 0.7611),
    ],
)
def test_knowcode_means_of_its_scores(shared_data, key, published):
    records = json.loads((shared_data / "knowcode" / "baseline_v1.0.json").read_text())["scores"]
    summary = summarise(np.array([record[key] for record in records]))
    assert (round(summary.mean, 4), summary.n) == (published, 60)


def shown_list(score, expected):
    """Ten places with the published ranks of the hits, and one wrong result in all the others, which is thus returned again."""
    n5, n10 = round(score["precision_at_5"] * 5), round(score["recall_at_10"] * len(expected))
    first = round(1 / score["mrr"]) if score["mrr"] else 0
    places = [rank for rank in range(first, first + n5) if first <= 5][:n5] if n5 else []
    later = list(range(max(first, 6), 11))[: n10 - n5] if first else []
    hits = dict(zip([*places, *later], expected, strict=False)) or ({first: expected[0]} if first else {})
    depth = max(10, first)
    return tuple(Hit(hits.get(rank, "src/knowcode/wrong.py::wrong")) for rank in range(1, depth + 1))


def test_knowcode_scores_the_list_as_it_was_shown(shared_data, tmp_path):
    """The published values come out where a result that is returned again takes a place, and no list is cut shorter."""
    folder = shared_data / "knowcode"
    records = {record["query_id"]: record for record in json.loads((folder / "golden_v1.0.json").read_text())}
    scores = json.loads((folder / "baseline_v1.0.json").read_text())["scores"]
    lists = {s["query_id"]: shown_list(s, records[s["query_id"]]["expected_entities"]) for s in scores}
    run = Run("shown", {query_id: Answer(Outcome.ANSWERED, hits) for query_id, hits in lists.items()})
    lines = [f"{q} Q0 {hit.id} {n} {-n} shown" for q, hits in lists.items() for n, hit in enumerate(hits, start=1)]
    trec = tmp_path / "shown.run"
    trec.write_text("\n".join(lines) + "\n")
    published = {"P@1": "precision_at_1", "P@5": "precision_at_5", "R@10": "recall_at_10", "RR": "mrr"}
    for source in (run, trec):
        evaluation = evaluate(folder / "golden_v1.0.json", source, measures=list(published), convention="knowcode")
        for measure, key in published.items():
            for score in scores:
                assert evaluation.value(measure, score["query_id"]) == pytest.approx(score[key], abs=1e-4)
        assert round(evaluation.mean("RR"), 4) == 0.6928
        dropped = evaluate(
            folder / "golden_v1.0.json", source, measures=["RR"], convention="knowcode", duplicates="first"
        )
        assert round(dropped.mean("RR"), 4) == 0.7417  # without the places of the wrong result the hits move up


def test_knowcode_routes_as_many_of_each_task_type_as_was_published(shared_data):
    folder = shared_data / "knowcode"
    published = json.loads((folder / "baseline_v1.0.json").read_text())
    answers = {
        score["query_id"]: Answer(Outcome.EMPTY, fields={"routed": score["routed_local"]})
        for score in published["scores"]
    }
    pairs = {"routed": "task_type"}
    evaluation = evaluate(folder / "golden_v1.0.json", Run("r", answers), measures=["RR"], confusion=pairs)
    (table,) = evaluation.confusions
    assert (table.predicted, table.n, table.accuracy) == (("false", "true"), 60, None)  # routes are no task types
    by_type = published["summary"]["by_task_type"]
    for task_type, (_, n_routed) in zip(table.expected, table.counts, strict=True):
        assert n_routed / by_type[task_type]["n"] == pytest.approx(by_type[task_type]["local_routing_rate"])
    assert sum(routed for _, routed in table.counts) == 7

"""Real line spans under both rules of credit: 127 queries, 163 truths, and windows of 40 lines that overlap."""

import csv
from collections import defaultdict

import pytest

from cranfield.app.evaluate import evaluate
from cranfield.evaluation.evaluate import contrast_strata
from cranfield.model import Answer, Hit, MatchingRules, Outcome, Query, Run, Span, TestSet


@pytest.fixture(scope="module")
def spans(shared_data):
    folder = shared_data / "octocode"
    with (folder / "code.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    targets = {}
    for number, row in enumerate(rows, 1):
        cells = [row[f"result{n}"].rsplit(":", 2) for n in (1, 2, 3) if row[f"result{n}"]]
        targets[str(number)] = tuple(
            Span(path, *map(int, lines.split("-")), int(grade)) for path, lines, grade in cells
        )
    queries = tuple(
        Query(str(n), row["query"], {"set": "standard" if n <= 100 else "hard"}) for n, row in enumerate(rows, 1)
    )
    hits = defaultdict(list)
    with (folder / "run-bm25-window40-code.tsv").open(newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            hits[row["qid"]].append(
                Hit(row["path"], float(row["score"]), span=f"{row['start_line']}-{row['end_line']}")
            )
    run = Run("bm25", {q: Answer(Outcome.ANSWERED, tuple(found)) for q, found in hits.items()})
    return TestSet("octocode", queries, targets=targets), run


def test_there_are_as_many_queries_and_truths_as_were_published(spans):
    testset, _ = spans
    assert len(testset.queries) == 127
    assert sum(map(len, testset.targets.values())) == 163


@pytest.mark.parametrize(
    ("convention", "published"),
    [
        (
            "octocode",
            {"Success@5": 0.724, "Success@10": 0.835, "RR": 0.588, "R@5": 0.685, "R@10": 0.803, "nDCG@10": 1.127},
        ),
        ("trec", {"Success@5": 0.724, "Success@10": 0.835, "nDCG@10": 0.617, "R@5": 0.677, "R@10": 0.795}),
    ],
)
def test_each_rule_of_credit_gives_its_figures(spans, convention, published):
    found = evaluate(*spans, measures=list(published), convention=convention)
    means = {str(measure): round(summary.mean, 3) for measure, summary in found.summaries.items()}
    assert means == published


def test_where_every_result_is_paid_most_queries_exceed_1(spans):
    found = evaluate(*spans, measures=["nDCG@10"], convention="octocode")
    assert sum(found.value("nDCG@10", q) > 1 for q in found.query_ids) == 75
    once = evaluate(*spans, measures=["nDCG@10"])
    assert all(once.value("nDCG@10", q) <= 1 for q in once.query_ids)


def test_the_line_base_of_the_results_matters(spans):
    testset, run = spans
    moved = TestSet("moved", testset.queries, targets=testset.targets, matching=MatchingRules(line_base=0))
    here, there = (evaluate(one, run, measures=["R@10"]).summaries for one in (testset, moved))
    assert next(iter(here.values())).mean != next(iter(there.values())).mean


def test_the_standard_and_the_hard_questions_are_contrasted(spans):
    found = contrast_strata(evaluate(*spans, measures=["nDCG@10"]), "set", "standard", "hard")
    assert (found.groups.a.n, found.groups.b.n) == (100, 27)
    assert found.groups.ci_low < found.groups.difference < found.groups.ci_high
    assert found.ceilings == ()

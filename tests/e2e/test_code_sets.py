"""Test sets of code search, as their makers wrote them, come to the figures that their makers' scorers give."""

import csv
import json
from collections import Counter

import pytest

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, evaluate, load
from cranfield.formats.runs.table import read_run_table
from cranfield.formats.testsets.golden_json import RULES
from cranfield.model import QUERY_CLASSES, Entity, Span, content_id

MEASURES = ["Success@5", "Success@10", "RR", "R@5", "R@10", "nDCG@10"]


def means(evaluation):
    return {str(measure): round(summary.mean, 3) for measure, summary in evaluation.summaries.items()}


# octocode: graded spans, and a plain BM25 over windows of 40 lines that overlap -------------------------------------------


@pytest.fixture(scope="module")
def spans(shared_data):
    return load(shared_data / "octocode" / "code.csv")


@pytest.fixture(scope="module")
def windows(shared_data):
    return shared_data / "octocode" / "run-bm25-window40-code.tsv"


def test_every_row_of_the_span_table_is_a_query(spans):
    assert len(spans.queries) == 127
    truths = [truth for targets in spans.targets.values() for truth in targets]
    assert len(truths) == 163
    assert Counter(map(len, spans.targets.values())) == {1: 93, 2: 32, 3: 2}
    assert Counter(truth.grade for truth in truths) == {2: 127, 1: 36}
    assert spans.targets[spans.query_ids[0]][0] == Span("src/indexer/code_region_extractor.rs", 41, 61, 2)
    assert {(truth.start, truth.end) for truth in spans.targets[spans.query_ids[100]]} == {(83, 87), (77, 91)}


def test_the_run_is_read_in_the_order_of_its_ranks(windows):
    run = read_run_table(windows)
    assert (len(run.answers), sum(len(answer.hits) for answer in run.answers.values()), run.order) == (
        127,
        2540,
        "given",
    )
    assert run.answers["1"].hits[0] == Hit("src/indexer/code_region_extractor.rs", 27.2571, span="21-60")


def test_a_hit_covers_every_truth_it_overlaps_under_the_scorers_own_convention(spans, windows):
    evaluation = evaluate(spans, windows, measures=MEASURES, convention="octocode")
    assert means(evaluation) == {
        "Success@5": 0.724, "Success@10": 0.835, "RR": 0.588, "R@5": 0.685, "R@10": 0.803, "nDCG@10": 1.127,
    }  # fmt: skip
    ndcg = evaluation.values[evaluation.measures[-1]]
    assert int((ndcg > 1 + 1e-9).sum()) == 75


def test_a_hit_earns_one_truth_once_under_the_default_convention(spans, windows):
    evaluation = evaluate(spans, windows, measures=MEASURES)
    assert means(evaluation) == {
        "Success@5": 0.724, "Success@10": 0.835, "RR": 0.588, "R@5": 0.677, "R@10": 0.795, "nDCG@10": 0.617,
    }  # fmt: skip
    assert float(evaluation.values[evaluation.measures[-1]].max()) <= 1 + 1e-12


def test_the_hard_rows_are_harder(spans, windows):
    evaluation = evaluate(spans, windows, measures=["Success@5"], convention="octocode")
    found = evaluation.values[evaluation.measures[0]]
    # 16 of 27 and 76 of 100
    assert (round(float(found[100:].mean()), 3), round(float(found[:100].mean()), 2)) == (0.593, 0.76)


@pytest.mark.parametrize("convention", ["octocode", "trec"])
def test_the_worked_example_of_the_scorer(tmp_path, convention):
    (tmp_path / "truth.csv").write_text("query,result1,result2\nwhere,fileA:10-50:2,fileB:20-30:1\n")
    (tmp_path / "run.tsv").write_text(
        "qid\trank\tpath\tstart_line\tend_line\tscore\n1\t1\tfileC\t1\t10\t3\n1\t2\tfileA\t30\t60\t2\n1\t3\tfileB\t25\t35\t1\n"
    )
    measures = ["Success@5", "RR", "DCG@10", "IdealDCG@10", "nDCG@10", "R@10"]
    evaluation = evaluate(tmp_path / "truth.csv", tmp_path / "run.tsv", measures=measures, convention=convention)
    found = [round(evaluation.value(measure, content_id("where")), 2) for measure in evaluation.measures]
    # ranks 2 and 3: DCG 2/log2(3) + 1/log2(4) = 1.26 + 0.50; ideal 2/log2(2) + 1/log2(3) = 2.63
    assert found == [1.0, 0.5, 1.76, 2.63, 0.67, 1.0]


def test_lines_from_0_say_so_above_the_header(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("# line_base: 0\nquery,result1\nwhere,fileA:0-9:2\n")
    assert load(path).targets[content_id("where")] == (Span("fileA", 1, 10, 2),)


def test_a_window_that_ends_where_a_truth_begins_touches_it():
    testset = TestSet("one", (Query("1", "where"),), targets={"1": (Span("a", 10, 50, 2),)})
    answers = {"1": Answer(Outcome.ANSWERED, (Hit("a", span="51-60"), Hit("a", span="1-10")))}
    evaluation = evaluate(testset, Run("r", answers), measures=["RR"])
    assert evaluation.value(evaluation.measures[0], "1") == 0.5  # the second touches at line 10


# KnowCode: entities, with baseline scores of each query -------------------------------------------------------------------


@pytest.fixture(scope="module")
def golden(shared_data):
    return load(shared_data / "knowcode" / "golden_v1.0.json")


PLAN = {
    "locate": (6, 4, 0),
    "explain": (2, 6, 4),
    "debug": (2, 6, 4),
    "extend": (2, 6, 4),
    "review": (1, 5, 2),
    "general": (2, 2, 2),
}
"""Records planned of each task type: easy, medium, hard."""


def test_the_golden_set_fills_its_plan(golden):
    cells = Counter((query.strata["task_type"], query.strata["difficulty"]) for query in golden.queries)
    matrix = {task: tuple(cells[task, tier] for tier in ("easy", "medium", "hard")) for task in PLAN}
    assert matrix == PLAN
    assert (len(golden.queries), sum(cells.values())) == (60, 60)
    assert Counter(map(len, golden.targets.values())) == {1: 16, 2: 12, 3: 20, 4: 11, 5: 1}


def test_the_golden_set_matches_as_its_harness_does(golden):
    assert golden.targets["q001"] == (Entity("src/knowcode/parsers/markdown_parser.py::MarkdownParser"),)
    assert golden.files["q001"] == ("src/knowcode/parsers/markdown_parser.py",)
    assert golden.matching == RULES
    one = TestSet("one", golden.queries[:1], targets=golden.targets, files=golden.files, matching=golden.matching)
    chunk = Hit("/build/checkout/src/knowcode/parsers/markdown_parser.py::MarkdownParser::2")
    run = Run("r", {"q001": Answer(Outcome.ANSWERED, (chunk,))})
    evaluation = evaluate(one, run, measures=["P@1", "FileCoverage@1"])
    assert [evaluation.value(measure, "q001") for measure in evaluation.measures] == [1.0, 1.0]


@pytest.mark.parametrize(("convention", "precision"), [("knowcode", 2 / 5), ("trec", 1 / 5)])
def test_each_chunk_of_an_entity_counts_in_precision_under_the_harness_own_convention(golden, convention, precision):
    one = TestSet("one", golden.queries[:1], targets=golden.targets, files=golden.files, matching=golden.matching)
    entity = "src/knowcode/parsers/markdown_parser.py::MarkdownParser"
    hits = (Hit("src/knowcode/x.py::f"), Hit(entity + "::1"), Hit(entity + "::2"))
    run = Run("r", {"q001": Answer(Outcome.ANSWERED, hits)})
    evaluation = evaluate(one, run, measures=["P@5", "R@10", "RR"], convention=convention)
    assert [evaluation.value(measure, "q001") for measure in evaluation.measures] == [precision, 1.0, 0.5]


def test_required_contents_of_answers_are_kept_as_labels(golden):
    assert sum(len(label.must_mention) for label in golden.labels.values()) == 4
    assert not any("not carried over" in str(note) for note in golden.notes)
    assert golden.meta.review == "0 of 60 records reviewed by a person"


def test_correct_records_of_the_baseline(shared_data):
    scores = json.loads((shared_data / "knowcode" / "baseline_v1.0.json").read_text())["scores"]
    assert (sum(score["correct"] is True for score in scores), len(scores)) == (24, 60)
    assert {score["query_id"] for score in scores} == {f"q{number:03}" for number in range(1, 61)}


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
def test_means_of_the_baseline_over_the_queries_of_the_set(shared_data, golden, key, published):
    scores = json.loads((shared_data / "knowcode" / "baseline_v1.0.json").read_text())["scores"]
    by_query = {score["query_id"]: score[key] for score in scores}
    values = [by_query[query_id] for query_id in golden.query_ids]
    assert round(sum(values) / len(values), 4) == published


# cupertino: patterns with their classes; the Cranfield collection in BEIR's form ------------------------------------------


def test_a_pattern_list_names_the_classes_of_its_queries(shared_data):
    path = shared_data / "cupertino" / "phase1-canonical-queries.tsv"
    testset = load(path)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert [query.text for query in testset.queries] == [row["query"] for row in rows]
    assert [testset.targets[query.id][0].regex for query in testset.queries] == [row["pattern"] for row in rows]
    letters = [QUERY_CLASSES[query.query_class].letter for query in testset.queries]
    assert letters == [row["class"] for row in rows] == [query.strata["class"] for query in testset.queries]


def test_a_folder_in_the_form_of_beir_with_trec_qrels(shared_data):
    testset = load(shared_data / "cranfield")
    assert (testset.name, len(testset.queries)) == ("cranfield", 225)
    assert sum(map(len, testset.grades.values())) == 1837
    assert testset.by_id["1"].text.startswith("what similarity laws must be obeyed")

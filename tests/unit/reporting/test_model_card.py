"""The front matter of a model card: names of MTEB, percent, intervals and n, text that is no YAML of its own."""

import pytest
import yaml

from cranfield import Limits, compare, compare_many, evaluate, load, report
from cranfield.base.errors import UsageError
from cranfield.base.words import printable
from cranfield.measures import parse
from cranfield.reporting.document import Document
from cranfield.reporting.renderers.model_card import render_model_card
from cranfield.reporting.sections.model_card import metric_type

QUERIES = [f"q{n}" for n in range(12)]
TESTSET = load({query: {"d": 1} for query in QUERIES})


def system(name, rank, **options):
    """A system that has the relevant document of each query at a rank."""
    run = {query: [*(f"x{n}" for n in range(1, rank)), "d"] for query in QUERIES}
    return evaluate(TESTSET, run, measures=["nDCG@10", "RR@10", "RankOfFirst"], name=name, **options)


def index(text):
    head, content, end = text.split("---\n")
    assert (head, end) == ("", "")
    return yaml.safe_load(content)["model-index"]


def test_a_system_is_a_model_with_its_means_in_percent():
    (model,) = index(report(system("fair", 2), format="model-card"))
    (result,) = model["results"]
    metrics = {metric["type"]: metric for metric in result["metrics"]}
    assert (model["name"], result["task"]) == ("fair", {"type": "Retrieval"})
    assert (result["dataset"]["name"], result["dataset"]["split"]) == ("qrels", "test")
    assert result["dataset"]["revision"].startswith("sha256:")
    # nDCG@10 of a single relevant result at rank 2 is 1 / log2(3) = .63093
    assert list(metrics) == ["ndcg_at_10", "mrr_at_10", "rankoffirst", "main_score"]
    assert metrics["ndcg_at_10"]["value"] == metrics["main_score"]["value"] == 63.09298
    assert metrics["mrr_at_10"] == {
        "type": "mrr_at_10",
        "value": 50.0,
        "name": "RR@10",
        "args": {"ci_low": 50.0, "ci_high": 50.0, "ci_level": 0.95, "n": 12},
    }
    assert metrics["rankoffirst"]["value"] == 2.0  # no share


def test_the_primary_measure_of_a_comparison_is_the_main_score_and_the_verdict_a_comment():
    text = report(compare(system("a", 2), system("b", 1), primary="RR@10"), format="model-card")
    assert [model["name"] for model in index(text)] == ["a", "b"]
    for model in index(text):
        (result,) = model["results"]
        assert result["metrics"][0]["type"] == "mrr_at_10"
        assert result["metrics"][-1] == {**result["metrics"][0], "type": "main_score"}
    assert text.splitlines()[1].startswith("# Verdict: better. b is better than a")
    many = report(compare_many([system("a", 2), system("b", 1), system("c", 3)]), format="model-card")
    assert [model["name"] for model in index(many)] == ["a", "b", "c"]


def test_scores_that_do_not_count_say_so_first():
    limits = Limits(min_judged_share=0.9)
    text = report(
        compare(system("a", 4, limits=limits), system("b", 4, limits=limits), limits=limits), format="model-card"
    )
    assert text.splitlines()[1] == "# invalid: the tables show scores that do not count"


@pytest.mark.parametrize("name", ["- a: b", "a\n---\nb: 1", "'\"{}[]#&*!|>%@`", "yes", "\u2028x"])
def test_no_name_is_yaml_of_its_own(name):
    (model,) = index(report(system(name, 1), format="model-card"))
    assert model["name"] == printable(name)


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("nDCG@10", "ndcg_at_10"),
        ("AP", "map"),
        ("AP@100", "map_at_100"),
        ("R@5", "recall_at_5"),
        ("P@1", "precision_at_1"),
        ("Success@3", "hit_rate_at_3"),
        ("nDCG(dcg='exp-log2')@10", "ndcg_dcg_exp_log2_at_10"),
    ],
)
def test_measures_have_the_names_of_mteb(measure, name):
    assert metric_type(parse(measure)) == name


def test_a_report_without_systems_is_refused():
    with pytest.raises(UsageError, match="no means of systems for a model card"):
        render_model_card(Document("t", (), (), tidy=lambda: None, payload=dict))

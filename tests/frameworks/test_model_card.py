"""The front matter of a model card, read by the real huggingface_hub."""

import pytest

from cranfield import compare, evaluate, load, report

QUERIES = [f"q{n}" for n in range(12)]
TESTSET = load({query: {"d": 1} for query in QUERIES})


def system(name, rank):
    run = {query: [*(f"x{n}" for n in range(1, rank)), "d"] for query in QUERIES}
    return evaluate(TESTSET, run, measures=["nDCG@10", "RR@10"], name=name)


def test_the_hub_reads_every_metric(tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    text = report(system("tiny-model", 2), format="model-card")
    card = hub.ModelCard(text + "# tiny-model\n")
    found = {each.metric_type: each for each in card.data.eval_results}
    assert card.data.model_name == "tiny-model"
    assert list(found) == ["ndcg_at_10", "mrr_at_10", "main_score"]
    ndcg = found["ndcg_at_10"]
    assert (ndcg.task_type, ndcg.dataset_name, ndcg.metric_value, ndcg.metric_name) == (
        "Retrieval",
        "qrels",
        63.09298,
        "nDCG@10",
    )
    assert ndcg.metric_args["n"] == 12
    path = tmp_path / "README.md"
    card.save(path)
    assert hub.metadata_load(path)["model-index"][0]["name"] == "tiny-model"


def test_a_comparison_has_a_model_for_each_side():
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(report(compare(system("a", 2), system("b", 1)), format="model-card"))
    assert len(card.data.eval_results) == 6

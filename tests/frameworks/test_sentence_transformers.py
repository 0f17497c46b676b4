"""The evaluator for the training of sentence-transformers, beside theirs."""

import csv
import json
import logging
import random

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator as Theirs
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from sentence_transformers.util import cos_sim, dot_score
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from cranfield import compare, evaluate
from cranfield.base.errors import UsageError
from cranfield.compat.sentence_transformers import InformationRetrievalEvaluator

WORDS = [f"w{n}" for n in range(60)]


@pytest.fixture(scope="module")
def model():
    """A bag of random word vectors."""
    torch.manual_seed(1)
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(["[UNK]", *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")


def made(seed, n_queries=30, n_documents=200, n_words=4):
    """Texts of few words, so that many documents are the same text and tie."""
    rng = random.Random(seed)

    def text():
        return " ".join(rng.choices(WORDS[:8], k=n_words))

    queries = {f"q{n}": text() for n in range(n_queries)}
    corpus = {f"d{n}": text() for n in rng.sample(range(10_000), n_documents)}
    judged = {query: {*rng.sample(sorted(corpus), rng.randint(0, 9))} for query in queries}
    judged["q0"] |= {"not-there"}
    return queries, corpus, judged


def test_keys_and_values_are_theirs(model):
    worst = 0.0
    for seed in range(6):
        given = made(seed)
        options = {
            "name": "dev",
            "corpus_chunk_size": (37, 50_000)[seed % 2],
            "map_at_k": [3, 100],
            "ndcg_at_k": [5, 10],
        }
        options["score_functions"] = None if seed % 3 else {"dot": dot_score, "cosine": cos_sim}
        theirs, ours = Theirs(*given, **options), InformationRetrievalEvaluator(*given, **options)
        expected, found = theirs(model), ours(model)
        assert [*found] == [*expected]
        assert (ours.primary_metric, ours.greater_is_better) == (theirs.primary_metric, True)
        assert all(type(value) is float for value in found.values())
        worst = max(worst, *(abs(found[key] - expected[key]) for key in expected))
    assert worst < 1e-12


def test_ties_at_the_last_rank_fall_as_theirs_whatever_the_chunks(model):
    queries, corpus = {"q": "w1 w2"}, {f"d{n:02}": "w1" for n in range(40)}
    for chunk in (1, 7, 40):
        options = {"corpus_chunk_size": chunk, "accuracy_at_k": [1, 5], "map_at_k": [10]}
        for relevant in ("d00", "d04", "d39"):
            given = (queries, dict(reversed([*corpus.items()])), {"q": {relevant}})
            assert InformationRetrievalEvaluator(*given, **options)(model) == pytest.approx(
                Theirs(*given, **options)(model)
            )


def test_more_measures_have_keys_of_their_own_and_use_grades(model):
    queries, corpus, judged = made(1)
    graded = {query: {doc: 1 + n % 3 for n, doc in enumerate(sorted(docs))} for query, docs in judged.items()}
    graded["q1"] |= {doc: 0 for doc in [*corpus][:3] if doc not in graded["q1"]}
    theirs = Theirs(queries, corpus, judged)(model)
    evaluator = InformationRetrievalEvaluator(queries, corpus, graded, measures=["nDCG@10", "R@50", "RBP(p=0.8)"])
    found = evaluator(model)
    assert {key: found[key] for key in theirs} == pytest.approx(theirs, abs=1e-12)
    assert {*found} - {*theirs} == {"cosine_nDCG@10", "cosine_R@50", "cosine_RBP(p=0.8)"}
    similar = cos_sim(model.encode(list(queries.values())), model.encode(list(corpus.values()))).double().numpy()
    names = np.array([*corpus])
    lists = {
        query: names[np.lexsort((names, -row))].tolist()[:100]
        for query, row in zip(queries, similar, strict=True)
        if any(grade > 0 for grade in graded[query].values())
    }
    judged_grades = {query: {str(doc): grade for doc, grade in graded[query].items()} for query in lists}
    again = evaluate(judged_grades, lists, measures=["nDCG@10", "R@50", "RBP(p=0.8)"])
    for spelling in ("nDCG@10", "R@50", "RBP(p=0.8)"):
        assert found[f"cosine_{spelling}"] == pytest.approx(again.mean(spelling), abs=1e-12)
    assert found["cosine_nDCG@10"] != pytest.approx(found["cosine_ndcg@10"], abs=1e-3)


def test_files_are_written_where_asked(model, tmp_path):
    given = made(2)
    InformationRetrievalEvaluator(*given)(model, output_path=str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    options = {"write_csv": True, "write_predictions": True, "name": "x"}
    for folder, kind in (("ours", InformationRetrievalEvaluator), ("theirs", Theirs)):
        kind(*given, **options)(model, output_path=str(tmp_path / folder), epoch=2, steps=5)
    for path in (tmp_path / "theirs").iterdir():
        ours, theirs = (tmp_path / "ours" / path.name).read_text(), path.read_text()
        if path.suffix == ".csv":
            rows = [list(csv.reader(text.splitlines())) for text in (ours, theirs)]
            assert rows[0][0] == rows[1][0]
            assert [float(cell) for cell in rows[0][1]] == pytest.approx([float(cell) for cell in rows[1][1]])
        else:
            assert [json.loads(line) for line in ours.splitlines()] == [
                json.loads(line) for line in theirs.splitlines()
            ]


def test_what_is_lost_is_said(model, caplog):
    queries, corpus, judged = made(3)
    with caplog.at_level(logging.WARNING):
        evaluator = InformationRetrievalEvaluator(queries, corpus, judged)
    assert "not in the corpus, and counted as not found: 1 relevant document\n" in caplog.text
    broken = {"broken": lambda one, other: cos_sim(one, other) * float("nan")}
    with caplog.at_level(logging.WARNING):
        InformationRetrievalEvaluator(queries, corpus, judged, score_functions=broken)(model)
    assert "broken: " in caplog.text
    assert "scores are no finite numbers" in caplog.text
    assert evaluator.evaluations == {}
    with pytest.raises(UsageError, match="no query has a relevant document"):
        InformationRetrievalEvaluator(queries, corpus, {})
    with pytest.raises(UsageError, match="unknown measure"):
        InformationRetrievalEvaluator(queries, corpus, judged, measures=["nDGC@10"])
    with pytest.raises(UsageError, match="two ids are the same as text"):
        InformationRetrievalEvaluator(queries, {1: "a", "1": "b"}, {"q1": {1}})


def test_a_trainer_chooses_the_best_checkpoint_by_it(model, tmp_path):
    queries, corpus, _ = made(4, n_queries=16, n_documents=64)
    documents = [*corpus]
    judged = {query: {documents[n]} for n, query in enumerate(queries)}
    pairs = {"anchor": [*queries.values()], "positive": [corpus[next(iter(judged[query]))] for query in queries]}
    evaluator = InformationRetrievalEvaluator(queries, corpus, judged, name="dev", measures=["RBP(p=0.8)"])
    before = evaluator(model)
    first = evaluator.evaluations["cosine"]
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=6, per_device_train_batch_size=8, learning_rate=0.05, seed=1,
        eval_strategy="epoch", save_strategy="epoch", report_to="none", disable_tqdm=True, use_cpu=True,
        load_best_model_at_end=True, metric_for_best_model="eval_dev_cosine_RBP(p=0.8)", save_total_limit=1,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(pairs),
        loss=MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_dev_cosine_ndcg@10" in entry]
    assert len(logged) == 6
    assert trainer.state.best_metric == max(entry["eval_dev_cosine_RBP(p=0.8)"] for entry in logged)
    after = evaluator(model)
    assert after["dev_cosine_ndcg@10"] > before["dev_cosine_ndcg@10"]
    assert evaluator.evaluations["cosine"].mean("RBP(p=0.8)") == after["dev_cosine_RBP(p=0.8)"]
    assert compare(first, evaluator.evaluations["cosine"], primary="RBP(p=0.8)").verdict.name == "better"
    assert not [*tmp_path.rglob("*.csv")]

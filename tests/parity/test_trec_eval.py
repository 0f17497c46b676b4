"""Equality with trec_eval's own code (pytrec_eval-terrier) and with ir_measures, per query."""

import random

import ir_measures
import pytest
import pytrec_eval

from cranfield.measures import compute, parse
from cranfield.model import Query, TestSet, convention_named
from cranfield.ranking import rank_file

PAIRS = {
    "ndcg": "nDCG",
    "ndcg_cut_10": "nDCG@10",
    "map": "AP",
    "map_cut_10": "AP@10",
    "P_5": "P@5",
    "recall_10": "R@10",
    "recip_rank": "RR",
    "success_5": "Success@5",
}
FAMILIES = {"ndcg", "ndcg_cut", "map", "map_cut", "P", "recall", "recip_rank", "success"}


def read_pairs(path, column):
    table = {}
    for line in path.read_text().splitlines():
        fields = line.split()
        table.setdefault(fields[0], {})[fields[2]] = column(fields)
    return table


def check_against_pytrec_eval(qrels, run, path):
    testset = TestSet("set", tuple(Query(q) for q in qrels), qrels)
    ranking = rank_file(testset, path, convention_named("trec")).ranking
    theirs = pytrec_eval.RelevanceEvaluator(qrels, FAMILIES).evaluate(run)
    for their_name, our_name in PAIRS.items():
        values, _, _ = compute(parse(our_name), ranking)
        ours = dict(zip(ranking.query_ids, values.tolist(), strict=True))
        expected = {q: theirs[q][their_name] if q in theirs else 0.0 for q in qrels}
        assert ours == pytest.approx(expected, abs=1e-9), our_name


def test_trec_evals_own_files(shared_data):
    folder = shared_data / "trec_eval"
    qrels = read_pairs(folder / "qrels.test", lambda fields: int(fields[3]))
    run = read_pairs(folder / "results.test", lambda fields: float(fields[4]))
    check_against_pytrec_eval(qrels, run, folder / "results.test")


def random_case(seed):
    """Ties, unsorted lines, negative grades, missing and extra queries, ids beyond ASCII."""
    draw = random.Random(seed)
    names = [f"d{i}" for i in range(30)] + ["é", "Ω", "d-ÿ", "漢"]
    qrels = {
        f"q{q}": {d: draw.choice([-2, -1, 0, 0, 1, 1, 2, 3]) for d in draw.sample(names, draw.randint(1, 15))}
        for q in range(6)
    }
    for judged in qrels.values():
        if max(judged.values()) < 0:  # pytrec_eval ends the process on a query whose every grade is under 0
            judged[next(iter(judged))] = 0
    run = {
        f"q{q}": {d: draw.choice([0.5, 1.0, 1.25, 2.0, -3.5]) for d in draw.sample(names, draw.randint(1, 25))}
        for q in range(1, 8)
    }
    lines = [f"{q} Q0 {d} 0 {score} tag" for q, docs in run.items() for d, score in docs.items()]
    if seed % 2:
        draw.shuffle(lines)
    return qrels, run, "\n".join(lines) + "\n"


@pytest.mark.parametrize("block", range(10))
def test_random_cases(block, tmp_path):
    for seed in range(block * 30, block * 30 + 30):
        qrels, run, text = random_case(seed)
        path = tmp_path / f"{seed}.run"
        path.write_text(text, encoding="utf-8")
        check_against_pytrec_eval(qrels, run, path)


def test_judged_share_is_that_of_ir_measures(tmp_path):
    # Scores without ties: ir_measures breaks ties the other way round in this measure. Its queries with no answer have
    # no value there; ours neither. A grade under 0 counts as judged there and not here, so there is none.
    draw = random.Random(7)
    names = [f"d{i}" for i in range(30)]
    qrels = {f"q{q}": {d: draw.randint(0, 2) for d in draw.sample(names, 12)} for q in range(8)}
    run = {f"q{q}": {d: 100.0 - i for i, d in enumerate(draw.sample(names, draw.randint(1, 25)))} for q in range(8)}
    path = tmp_path / "run"
    path.write_text("".join(f"{q} Q0 {d} 0 {s} tag\n" for q, docs in run.items() for d, s in docs.items()))
    testset = TestSet("set", tuple(Query(q) for q in qrels), qrels)
    ranking = rank_file(testset, path, convention_named("trec")).ranking
    values, scored, _ = compute(parse("Judged@10"), ranking)
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.Judged @ 10], qrels, run)}
    assert scored.all()
    assert dict(zip(ranking.query_ids, values.tolist(), strict=True)) == pytest.approx(theirs, abs=1e-12)

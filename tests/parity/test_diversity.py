"""Equality with ndeval's own code (pyndeval) per query, and with ir_measures over it.

Where alpha is a half or a quarter every sum is exact, and values agree to 1e-12. Elsewhere ndeval takes documents whose
gains are equal but for rounding in the order that rounding gives; Cranfield takes the one with the largest id. Values then
agree to 1e-6.
"""

import math
import random

import ir_measures
import pyndeval
import pytest
from hypothesis import settings

from cranfield.compat import ir_measures as ours
from cranfield.formats.testsets.judgments import qrels_from_rows
from cranfield.measures import compute, parse
from cranfield.model import convention_named
from cranfield.ranking.memory import rank_mapping

CUTOFFS = (2, 3, 5, 10, 20)
BY_ALPHA = {"alpha-DCG": "alpha_DCG", "alpha-nDCG": "alpha_nDCG"}
AT_CUTOFFS = BY_ALPHA | {"ERR-IA": "ERR_IA", "nERR-IA": "nERR_IA", "P-IA": "P_IA", "strec": "StRecall"}
WHOLE = {"NRBP": "NRBP", "nNRBP": "nNRBP", "MAP-IA": "AP_IA"}
FEWER = 1 if settings().max_examples > 30 else 2
"""Divides the numbers of random cases under the hypothesis profile `quick` of `make test`."""
EXACT_ALPHAS, OTHER_ALPHAS = (0.5, 0.25, 0.0, 1.0), (0.1, 0.3, 0.7, 0.9)


def random_case(seed):
    """Queries with nothing relevant, with one subtopic, not in the run; results that nobody judged; grades under 0."""
    draw = random.Random(seed)
    documents = [f"d{i}" for i in range(draw.choice([3, 8, 40]))] + ["é", "漢"]
    subtopics = [f"s{i}" for i in range(draw.choice([1, 2, 4, 9]))]
    rows = [
        (f"q{query}", doc_id, draw.choice([-1, 0, 0, 1, 1, 2]), subtopic)
        for subtopic in subtopics  # in order: ndeval numbers them as they come
        for query in range(1, 4)
        for doc_id in draw.sample(documents, draw.randint(0, len(documents)))
    ]
    rows += [("q0", "d0", 0, subtopics[0]), ("q9", "d0", 1, subtopics[0])]
    run = {
        f"q{query}": {
            doc_id: 100.0 - rank
            for rank, doc_id in enumerate(draw.sample([*documents, "u1", "u2"], draw.randint(1, len(documents))))
        }
        for query in range(4)
    }
    return rows, run


def their_values(rows, run, names, **options):
    qrels = [pyndeval.SubtopicQrel(query, subtopic, doc_id, grade) for query, doc_id, grade, subtopic in rows]
    results = [pyndeval.ScoredDoc(query, doc_id, score) for query in run for doc_id, score in run[query].items()]
    return pyndeval.RelevanceEvaluator(qrels, names, **options).evaluate(results)


def ranked(rows, run):
    testset = qrels_from_rows(((q, d, float(grade), s) for q, d, grade, s in rows), by_subtopic=True)
    return rank_mapping(testset, run, convention_named("trec")).ranking


def our_values(ranking, spelling):
    values, scored, _ = compute(parse(spelling), ranking)
    assert scored.all()
    return dict(zip(ranking.query_ids, values.tolist(), strict=True))


def check(rows, run, rel, alpha, beta, tolerance):
    cut = AT_CUTOFFS if alpha == 0.5 else {t: o for t, o in AT_CUTOFFS.items() if "ERR" not in t}  # ERR has no alpha
    pairs = {f"{t}@{k}": (o, k) for t, o in cut.items() for k in CUTOFFS} | {t: (o, None) for t, o in WHOLE.items()}
    theirs = their_values(rows, run, list(pairs), relevance_level=rel, alpha=alpha, beta=beta)
    ranking = ranked(rows, run)
    for their_name, (name, cutoff) in pairs.items():
        params = {"rel": rel} | ({"alpha": alpha} if "alpha" in name or "NRBP" in name else {})
        params |= {"beta": beta} if "NRBP" in name else {}
        held = ", ".join(f"{key}={value}" for key, value in params.items())
        found = our_values(ranking, f"{name}({held})" + ("" if cutoff is None else f"@{cutoff}"))
        assert set(theirs) <= set(run)
        for query_id, values in theirs.items():
            expected = values[their_name]
            if math.isnan(expected):  # 0 / 0: nothing is relevant
                assert (name, query_id, found[query_id]) == ("nNRBP", query_id, 0.0)
            else:
                value = found[query_id]
                assert math.isclose(value, expected, rel_tol=0, abs_tol=tolerance), (
                    their_name,
                    query_id,
                    value,
                    expected,
                )


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 6))])
def test_values_are_ndevals_where_sums_are_exact(block):
    for seed in range(block * 50, block * 50 + 50 // FEWER):
        draw = random.Random(seed)
        rows, run = random_case(seed)
        check(rows, run, draw.choice([1, 1, 2]), draw.choice(EXACT_ALPHAS), draw.choice([0.5, 0.8, 0.0, 0.9]), 1e-12)


def test_values_are_ndevals_for_other_alphas():
    for seed in range(60 // FEWER):
        draw = random.Random(seed)
        rows, run = random_case(seed)
        check(rows, run, 1, draw.choice(OTHER_ALPHAS), 0.5, 1e-6)


def test_at_the_first_rank_ndeval_leaves_out_the_division_by_the_number_of_subtopics():
    compared = 0
    for seed in range(40):
        rows, run = random_case(seed)
        relevant = {}
        for query_id, _, grade, subtopic in rows:
            if grade >= 1:
                relevant.setdefault(query_id, set()).add(subtopic)
        theirs = their_values(rows, run, ["ERR-IA@1", "alpha-DCG@1", "alpha-nDCG@1", "nERR-IA@1"])
        ranking = ranked(rows, {q: run[q] for q in theirs})
        for their_name, name in (("ERR-IA@1", "ERR_IA@1"), ("alpha-DCG@1", "alpha_DCG@1")):
            for query_id, value in our_values(ranking, name).items():
                if query_id in theirs and query_id in relevant:
                    assert value * len(relevant[query_id]) == pytest.approx(theirs[query_id][their_name], abs=1e-12)
                    compared += value > 0
        ranking = ranked(rows, run)
        for their_name, name in (("nERR-IA@1", "nERR_IA@1"), ("alpha-nDCG@1", "alpha_nDCG@1")):
            found = our_values(ranking, name)
            for query_id in theirs:
                assert found[query_id] == pytest.approx(theirs[query_id][their_name], abs=1e-12)
    assert compared > 50


SPELLINGS = [
    "alpha_DCG@5", "alpha_DCG(alpha=0.25)@10", "alpha_nDCG@10", "alpha_nDCG(alpha=0.25)@20", "ERR_IA@10",
    "nERR_IA@20", "NRBP", "NRBP(alpha=0.25,beta=0.8)", "nNRBP(rel=2)", "AP_IA", "AP_IA(rel=2)", "P_IA@5",
    "StRecall@3",
]  # fmt: skip


def test_values_are_those_of_ir_measures_through_its_own_interface():
    for seed in range(300, 300 + 30 // FEWER):
        rows, run = random_case(seed)
        rows = [
            row for row in rows if row[0] in run and row[0] != "q0"
        ]  # a query with nothing relevant has no nNRBP there
        run = {query_id: run[query_id] for query_id in {row[0] for row in rows}}
        theirs = [ir_measures.Qrel(query, doc_id, grade, subtopic) for query, doc_id, grade, subtopic in rows]
        mine = [ours.Qrel(query, doc_id, grade, subtopic) for query, doc_id, grade, subtopic in rows]
        for spelling in SPELLINGS:
            expected = {
                m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure(spelling)], theirs, run)
            }
            found = {m.query_id: m.value for m in ours.iter_calc([ours.parse_measure(spelling)], mine, run)}
            defined = {query_id: value for query_id, value in expected.items() if not math.isnan(value)}
            assert set(found) == set(expected)
            assert {q: found[q] for q in defined} == pytest.approx(defined, abs=1e-12, rel=0), (seed, spelling)

"""Equality with ir_measures' own providers, per query: cwl_eval, compat, accuracy, gdeval and pytrec_eval.

Scores hold no ties, because ties fall differently there: cwl_eval and accuracy leave tied documents in the order of the
run, compat puts the smaller id first, gdeval and pytrec_eval the larger one, as Cranfield does everywhere.
"""

import functools
import logging
import math
import random
import shutil

import ir_measures
import numpy as np
import pytest
from hypothesis import settings

from cranfield import evaluate, load
from cranfield.base.errors import MeasureError
from cranfield.compat import ir_measures as compat
from cranfield.evaluation.explain import explain
from cranfield.measures import compute, parse, parse_all
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run
from cranfield.ranking.memory import rank_mapping

N_CASES, N_TIED = (300, 100) if settings().max_examples > 30 else (40, 40)
"""Queries; fewer under the hypothesis profile `quick` of `make test`."""
EXACT = 1e-9
SPELLINGS = [
    *(f"SDCG({scale})@{k}" for scale, k in (("max_rel=1", 5), ("max_rel=3", 1000), ("min_rel=1, max_rel=4", 1))),
    *(f"NERR8({scale})@{k}" for scale, k in (("max_rel=1", 1), ("max_rel=3", 5), ("min_rel=1, max_rel=4", 1000))),
    *(f"NERR9({scale})@{k}" for scale, k in (("max_rel=1", 5), ("max_rel=3", 1000), ("min_rel=1, max_rel=4", 20))),
    "BPM(max_rel=1)@10",
    "BPM(T=0.3, max_rel=3)@3",
    "BPM(T=2.5, min_rel=1, max_rel=4)@10",
    "BPM(T=2.0, max_rel=4)@1000",
    "INST(max_rel=1)",
    "INST(T=0.3, max_rel=3)",
    "INST(T=2.5, max_rel=4)",
    "INST(T=2.5, min_rel=1, max_rel=3)",
    "INSQ(max_rel=1)",
    "INSQ(T=0.3, max_rel=3)",
    "INSQ(T=2.5, min_rel=1, max_rel=4)",
    "NERR10(max_rel=1)",
    "NERR10(p=0.5, max_rel=3)",
    "NERR10(p=0.999, min_rel=1, max_rel=4)",
    "NERR11(max_rel=1)",
    "NERR11(T=0.3, max_rel=3)",
    "NERR11(T=2.5, min_rel=1, max_rel=4)",
    "RBP(rel=1)",
    "RBP(p=0.5, rel=2)",
    "RBP(p=0.99, rel=1)",
    "RBP(p=0.999, rel=2)",
    "Compat",
    "Compat(p=0.5)",
    "Compat(p=0.999)",
    "Compat(p=0.8, normalize=False)",
    "Compat(p=0.99, normalize=False)",
    "Accuracy",
    "Accuracy@5",
    "Accuracy(rel=2)",
]
OTHERWISE_SPELLED = {"Hits": "NumRet(rel=1)", "Hits(rel=2)": "NumRet(rel=2)", "F1": "SetF(beta=1.0)"}
GDEVAL = ["ERR@1", "ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@10"]


@pytest.fixture(autouse=True)
def _silence():
    """cwl_eval warns of each grade outside the scale; those are cases here."""
    logger = logging.getLogger("ir_measures.cwl_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


def random_cases(seed):
    """One query each: nothing relevant, not in the run, one result, more than 1,000 results, and all between."""
    draw = random.Random(seed)
    names = [f"d{i}" for i in range(40)]
    filler = [f"x{i}" for i in range(1100)]
    qrels, run = {}, {}
    for case in range(N_CASES):
        query_id = str(case)
        grades = [0] if case % 20 == 1 else [-1, 0, 0, 1, 1, 2, 3, 4]
        qrels[query_id] = {d: draw.choice(grades) for d in draw.sample(names, draw.randint(1, 20))}
        if case % 20 == 2:
            continue
        docs = draw.sample(names, 1 if case % 20 == 3 else draw.randint(1, 30))
        if case % 20 == 4:
            place = draw.randint(0, len(docs))
            docs[place:place] = filler[: draw.choice([5, 500, 998, 1100])]
        run[query_id] = {doc: 5000.0 - rank for rank, doc in enumerate(docs)}
    return qrels, run


QRELS, RUN = random_cases(11)


def ranking_of(qrels, run):
    testset = TestSet("set", tuple(Query(q) for q in qrels), qrels)
    answers = {q: Answer(Outcome.ANSWERED, tuple(Hit(d, s) for d, s in docs.items())) for q, docs in run.items()}
    return rank_run(testset, Run("run", answers, order="descending"), convention_named("trec"))


@functools.cache
def ranking_of_all():
    return ranking_of(QRELS, RUN)


def our_values(measure, qrels, run):
    ranking = ranking_of_all() if run is RUN else ranking_of(qrels, run)
    values, scored, _ = compute(parse(measure), ranking)
    return dict(zip(ranking.query_ids, np.where(scored, values, np.nan).tolist(), strict=True))


def their_values(measure, qrels, run, provider=ir_measures):
    measures = [ir_measures.parse_measure(measure)]
    return {metric.query_id: float(metric.value) for metric in provider.iter_calc(measures, qrels, run)}


def check(measure, theirs, tolerance=EXACT):
    ours = our_values(measure, QRELS, RUN)
    assert set(ours) == set(theirs) == set(QRELS)
    assert ours == pytest.approx(theirs, abs=tolerance, rel=0)


@pytest.mark.parametrize("measure", [spelling for spelling in SPELLINGS if not spelling.startswith("Accuracy")])
def test_values_are_equal(measure):
    check(measure, their_values(measure, QRELS, RUN))


@pytest.mark.parametrize(("measure", "theirs"), [("RR(only_best=True)", "RR"), ("R(only_best=True)@5", "R@5")])
def test_the_best_answer_is_what_is_relevant_from_the_highest_grade_of_each_query_on(measure, theirs):
    found = {}
    for query_id, judged in QRELS.items():
        highest = max(1, *judged.values())
        name, at, cutoff = theirs.partition("@")
        one = {query_id: RUN[query_id]} if query_id in RUN else {}
        found |= their_values(f"{name}(rel={highest}){at}{cutoff}", {query_id: judged}, one)
    check(measure, found)


@pytest.mark.parametrize(
    ("measure", "theirs"), [("R(only_grade=2)@5", "R@5"), ("Success(only_grade=2)@3", "Success@3")]
)
def test_a_tier_is_a_test_set_in_which_no_other_grade_is_relevant(measure, theirs):
    tier = {q: {d: int(g == 2) for d, g in judged.items()} for q, judged in QRELS.items() if 2 in judged.values()}
    assert N_CASES / 3 < len(tier) < N_CASES
    ours = {q: v for q, v in our_values(measure, QRELS, RUN).items() if not math.isnan(v)}
    assert ours == pytest.approx(their_values(theirs, tier, RUN), abs=EXACT, rel=0)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.99])
def test_rbp_of_the_page_is_theirs_over_the_weights_of_the_ranks_returned(p):
    theirs = their_values(f"RBP(p={p}, rel=1)", QRELS, RUN)
    n = {query_id: min(len(RUN.get(query_id, ())), 1000) for query_id in QRELS}
    expected = {q: v * (1 - p**1000) / (1 - p ** n[q]) if n[q] else 0.0 for q, v in theirs.items()}
    check(f"RBP(p={p}, rel=1, page=True)", expected)


def test_capped_recall_is_that_of_beir():
    """The sum over the queries of the run of found / min(relevant, k), over their number; BEIR divides by 0 where none is."""
    judged = {q: {d for d, g in QRELS[q].items() if g > 0} for q in RUN}
    judged = {q: relevant for q, relevant in judged.items() if relevant}
    qrels, run = {q: QRELS[q] for q in judged}, {q: RUN[q] for q in judged}
    for k in (1, 3, 10):
        top = {q: sorted(docs, key=docs.__getitem__, reverse=True)[:k] for q, docs in run.items()}
        theirs = sum(len(judged[q].intersection(top[q])) / min(len(judged[q]), k) for q in judged) / len(judged)
        assert evaluate(qrels, run, measures=[f"R_cap@{k}"]).mean(f"R_cap@{k}") == pytest.approx(theirs, abs=EXACT)


@pytest.mark.parametrize(("measure", "theirs"), OTHERWISE_SPELLED.items())
def test_values_are_equal_under_another_name(measure, theirs):
    check(measure, their_values(theirs, QRELS, RUN))


@pytest.mark.parametrize("measure", [spelling for spelling in SPELLINGS if spelling.startswith("Accuracy")])
def test_accuracy_is_equal_where_there_is_one(measure):
    # Theirs has no value where nothing relevant is in the list, and divides by 0 where everything is; ours neither time.
    ours = our_values(measure, QRELS, RUN)
    defined = {query_id: value for query_id, value in ours.items() if not math.isnan(value)}
    assert len(defined) > N_CASES / 3
    run = {query_id: RUN[query_id] for query_id in defined}
    assert defined == pytest.approx(their_values(measure, QRELS, run), abs=EXACT, rel=0)
    for query_id in set(RUN) - set(defined):
        try:
            theirs = their_values(measure, QRELS, {query_id: RUN[query_id]})
        except ZeroDivisionError:
            continue
        assert theirs == {}


@pytest.mark.parametrize("measure", GDEVAL if shutil.which("perl") else [])
def test_values_are_those_of_gdeval(measure):
    # gdeval is a Perl script, and prints five decimals.
    check(measure, their_values(measure, QRELS, RUN, ir_measures.gdeval), tolerance=5.1e-6)


@pytest.mark.parametrize("name", ["SDCG", "BPM", "NERR8", "NERR9"])
def test_beyond_rank_1000_a_cutoff_goes_on_here_and_stops_there(name):
    measure = f"{name}(max_rel=1)"
    qrels, run = {"q": {"a": 0, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    at_1000, at_2000 = (our_values(f"{measure}@{k}", qrels, run)["q"] for k in (1000, 2000))
    assert their_values(f"{measure}@2000", qrels, run)["q"] == pytest.approx(at_1000, abs=EXACT)
    # A user who is satisfied at rank 2 never comes to rank 1000.
    assert (at_2000 < at_1000) == (name == "SDCG")


def test_a_scale_that_begins_under_0_is_refused():
    # There every judged document would be worth something, relevant or not, and no unjudged one.
    measure = ir_measures.INST(min_rel=-1, max_rel=1)
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([measure], {"q": {"a": 0}}, {"q": {"a": 1.0}})}
    assert theirs["q"] > 0
    with pytest.raises(MeasureError, match="min_rel is -1"):
        parse("INST(min_rel=-1, max_rel=1)")


# Ties, and scores that tie at 32 bits alone: each library of ir_measures has an order of its own ------------------------------

TIED_QRELS, TIED_RUN = {}, {}
_DRAW = random.Random(29)
for _case in range(N_TIED):
    _names = [f"d{i}" for i in range(14)]
    TIED_QRELS[str(_case)] = {doc: _DRAW.choice([0, 0, 1, 2, 3]) for doc in _DRAW.sample(_names, 8)}
    _docs = _DRAW.sample(_names, _DRAW.randint(1, 14))
    TIED_RUN[str(_case)] = {doc: float(_DRAW.choice([1, 2, 3, 3.00000001])) for doc in _docs}
ON_TIES = [
    "Judged@1", "Judged@5", "Judged@10", "RR", "RR@3", "RR@10", "RR(rel=2)@5", "RBP(rel=1)", "RBP(p=0.5, rel=2)",
    "BPM(max_rel=3)@5", "SDCG(max_rel=3)@5", "INST(max_rel=3)", "INSQ(max_rel=3)", "NERR8(max_rel=3)@5",
    "NERR9(max_rel=3)@5", "NERR10(max_rel=3)", "NERR11(max_rel=3)", "P@5", "P(rel=2)@5", "AP", "AP@5", "nDCG",
    "nDCG@10", "R@5", "Rprec", "Success@1", "Bpref", "IPrec@0.1", "SetF",
]  # fmt: skip
ROUNDED = {"ERR@5": 1e-5, "ERR@20": 1e-5, "nDCG(dcg='exp-log2')@10": 1e-5}
"""gdeval prints five decimals."""


@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.parametrize("measure", [*ON_TIES, *ROUNDED])
def test_ties_fall_as_in_the_library_that_computes_the_measure(measure, as_file, tmp_path):
    if measure in ROUNDED and shutil.which("perl") is None:
        pytest.skip("perl is not installed")
    theirs = their_values(measure, TIED_QRELS, TIED_RUN)
    run = TIED_RUN
    if as_file:
        run = tmp_path / "tied.run"
        lines = [f"{q} Q0 {doc} 1 {score!r} t" for q, docs in TIED_RUN.items() for doc, score in docs.items()]
        run.write_text("\n".join(lines) + "\n")
    # A second measure of another library: the values of both are put together.
    evaluation = evaluate(TIED_QRELS, run, measures=[measure, "nDCG@7", "Judged@7"], convention="ir_measures")
    ours = {query_id: evaluation.value(measure, query_id) for query_id in TIED_QRELS}
    assert ours == pytest.approx(theirs, abs=ROUNDED.get(measure, EXACT), rel=0)
    spelled = list(compat.iter_calc([measure], TIED_QRELS, TIED_RUN))
    assert {metric.query_id: metric.value for metric in spelled} == pytest.approx(ours, abs=EXACT, rel=0)


def test_the_ideal_list_of_compat_is_the_only_difference_on_ties():
    """Where two items of one grade tie in the run too, compat takes the order of the judgments, and Cranfield that of ids."""
    theirs = their_values("Compat", TIED_QRELS, TIED_RUN)
    evaluation = evaluate(TIED_QRELS, TIED_RUN, measures=["Compat"], convention="ir_measures")
    for query_id, judged in TIED_QRELS.items():
        scores = [(grade, TIED_RUN[query_id].get(doc, 0.0)) for doc, grade in judged.items() if grade > 0]
        if len(set(scores)) == len(scores):
            assert evaluation.value("Compat", query_id) == pytest.approx(theirs[query_id], abs=EXACT)


def test_explain_attributes_the_order_of_ties_to_the_libraries():
    def values(measure, convention):
        evaluation = evaluate(TIED_QRELS, TIED_RUN, measures=[measure], convention=convention)
        return evaluation.values[evaluation.measures[0]]

    testset = load(TIED_QRELS)
    a, b = convention_named("trec"), convention_named("ir_measures")
    measures = parse_all(["RR@10", "RBP(rel=1)", "AP"])
    explained = explain(testset, lambda rules: rank_mapping(testset, TIED_RUN, rules).ranking, a, b, measures)
    for about in explained.measures:
        assert about.a == pytest.approx(values(about.measure, "trec"))
        assert about.b == pytest.approx(values(about.measure, "ir_measures"))
    moved = {
        about.measure.name: [part.choice.name for part in about.parts if part.changed.any()]
        for about in explained.measures
    }
    assert "orders" in moved["RR"]
    assert "orders" in moved["RBP"]
    assert moved["AP"] == ["score_width"]

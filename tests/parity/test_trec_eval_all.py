"""Every measure of trec_eval, per query: 9.0.8's own code (pytrec_eval-terrier), and the outputs trec_eval 10.0 ships.

Scores are eighths, so that no two of them are told apart by 64 bits and not by 32.
"""

import dataclasses
import math
import random
from dataclasses import replace

import pytest
import pytrec_eval

from cranfield.measures import CATALOGUE, Measure, compute, parse
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run
from cranfield.stats.describe import geometric_mean

NINE = replace(convention_named("trec"), name="nine", iprec="up")
TEN = convention_named("trec")

WITHOUT_CUTOFF = {
    "num_q": "NumQ",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "num_nonrel_judged_ret": "NumNonRelJudgedRet",
    "map": "AP",
    "gm_map": "GMAP",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "gm_bpref": "GMBpref",
    "recip_rank": "RR",
    "infAP": "infAP",
    "utility": "Utility",
    "11pt_avg": "AP11",
    "binG": "binG",
    "G": "G",
    "ndcg": "nDCG",
    "ndcg_rel": "nDCGRel",
    "Rndcg": "RnDCG",
    "set_P": "SetP",
    "set_relative_P": "SetRelP",
    "set_recall": "SetR",
    "set_map": "SetAP",
    "set_F": "SetF",
}
RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
AT_RANKS = {"P": "P", "recall": "R", "relative_P": "RelP", "map_cut": "AP", "ndcg_cut": "nDCG"}
NINES = (
    {theirs: Measure(ours) for theirs, ours in WITHOUT_CUTOFF.items()}
    | {f"{theirs}_{k}": Measure(ours, (), k) for theirs, ours in AT_RANKS.items() for k in RANKS}
    | {f"success_{k}": Measure("Success", (), k) for k in (1, 5, 10)}
    | {f"iprec_at_recall_{i / 10:.2f}": Measure("IPrec", (), i / 10) for i in range(11)}
    | {f"Rprec_mult_{i / 5:.2f}": Measure("RprecMult", (), i / 5) for i in range(1, 11)}
)
"""What pytrec_eval says of a query, and what it is here."""
TENS = NINES | {f"unj_{k}": Measure("Unjudged", (), k) for k in (5, 10, 20)} | {"rbp_resid": Measure("RBPResidual")}
NOT_A_MEASURE = {"runid", "relstring", "relstring_20"}
UNDEFINED = {"rbp"}
"""trec_eval 10.0 reads memory that nobody wrote."""


def asked(measure, rel, judged_only):
    """The same measure under another level of relevance, over judged results."""
    known = {parameter.name for parameter in CATALOGUE[measure.name].parameters}
    params = dict(measure.params)
    if rel != 1 and "rel" in known and measure.name != "NumRet":  # without a level, NumRet counts every result
        params["rel"] = rel
    if judged_only and "judged_only" in known:
        params["judged_only"] = True
    return Measure(measure.name, tuple(params.items()), measure.cutoff)


def ranked(qrels, run, convention, depth=None):
    testset = TestSet("set", tuple(Query(q) for q in qrels), qrels)
    answers = {
        q: Answer(Outcome.ANSWERED, tuple(Hit(d, score) for d, score in docs.items())) for q, docs in run.items()
    }
    limit = {} if depth is None else {"depth": depth}
    return rank_run(testset, Run("run", answers, order="descending", **limit), convention)


def check_against_pytrec_eval(qrels, run, *, rel=1, judged_only=False):
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, pytrec_eval.supported_measures, relevance_level=rel, judged_docs_only_flag=judged_only
    )
    theirs = evaluator.evaluate(run)
    ranking = ranked(qrels, run, NINE)
    assert set(theirs) == set(qrels) & set(run)
    assert all(set(of_query) - NOT_A_MEASURE == set(NINES) for of_query in theirs.values())
    for name, measure in NINES.items():
        values, scored, _ = compute(asked(measure, rel, judged_only), ranking)
        assert scored.all()
        for query_id, value in zip(ranking.query_ids, values.tolist(), strict=True):
            if query_id not in theirs:
                assert value == 0 or measure.name in {"NumQ", "NumRel"}
                continue
            expected = theirs[query_id][name]
            if name.startswith("gm_"):  # per query it holds the log that is summed up
                expected = math.exp(expected)
                value = max(value, 1e-5)  # noqa: PLW2901
            if math.isnan(expected):  # 0 / 0: no result left
                assert judged_only
                assert measure.name in {"IPrec", "AP11"}
                expected = 0.0
            assert math.isclose(value, expected, rel_tol=0, abs_tol=1e-9), (name, query_id, value, expected)


def random_case(seed):
    """Ties, no order, grades under 0, missing and extra queries, ids beyond ASCII, lists around every cutoff."""
    draw = random.Random(seed)
    n = 1200 if seed % 100 == 50 else draw.choice([5, 30, 80, 300])
    names = [f"d{i}" for i in range(n)] + ["é", "Ω", "d-ÿ", "漢"]
    grades = draw.choice([[-2, -1, 0, 0, 1, 1, 2, 3], [0, 1], [1], [0, 0, 0, 1, 4], [-1, 0, 1, 5], [2, 3]])
    most = draw.choice([5, 40, 200])
    qrels = {
        f"q{q}": {d: draw.choice(grades) for d in draw.sample(names, draw.randint(1, min(n, most)))} for q in range(6)
    }
    for judged in qrels.values():
        if max(judged.values()) < 0:  # pytrec_eval ends the process on a query whose every grade is under 0
            judged[next(iter(judged))] = 0
    scores = [i / 8 for i in range(-20, draw.choice([-15, 40, 400]))]
    run = {
        f"q{q}": {d: draw.choice(scores) for d in draw.sample(names, draw.randint(1, len(names)))} for q in range(1, 8)
    }
    return qrels, run


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 10))])
def test_random_cases(block):
    for seed in range(block * 30, block * 30 + 30):
        qrels, run = random_case(seed)
        check_against_pytrec_eval(qrels, run)
        if seed % 3 == 0:
            check_against_pytrec_eval(qrels, run, rel=2)
        if seed % 3 == 1:
            check_against_pytrec_eval(qrels, run, judged_only=True)
        if seed % 9 == 2:
            check_against_pytrec_eval(qrels, run, rel=2, judged_only=True)


def read_qrels(path):
    table = {}
    for line in path.read_text().splitlines():
        query_id, _, doc_id, grade = line.split()
        table.setdefault(query_id, {})[doc_id] = int(grade)
    return table


def read_run(path):
    table = {}
    for line in path.read_text().splitlines():
        query_id, _, doc_id, _, score = line.split()[:5]
        table.setdefault(query_id, {})[doc_id] = float(score)
    return table


@pytest.mark.parametrize("rel", [1, 2])
@pytest.mark.parametrize("qrels", ["qrels.test", "qrels.rel_level"])
def test_trec_evals_own_files_by_the_code_of_9(shared_data, qrels, rel):
    folder = shared_data / "trec_eval"
    judged, run = read_qrels(folder / qrels), read_run(folder / "results.test")
    check_against_pytrec_eval(judged, run, rel=rel)
    check_against_pytrec_eval(judged, run, rel=rel, judged_only=True)


def summed_up(measure, values):
    if CATALOGUE[measure.name].aggregate == "geometric mean":
        return geometric_mean(values)
    return values.sum() if CATALOGUE[measure.name].aggregate == "sum" else values.mean()


def printed(path):
    """Rows of an output of trec_eval: measure, query (or all), value."""
    return [[field.strip() for field in line.split("\t")] for line in path.read_text().splitlines() if line]


@pytest.mark.parametrize(
    ("output", "qrels", "results", "rel", "depth"),
    [
        # trec_eval -m all_trec -q qrels.test results.test
        ("out.test.aq", "qrels.test", "results.test", 1, None),
        # trec_eval -m all_trec -q -l2 qrels.rel_level results.test
        ("out.test.aql", "qrels.rel_level", "results.test", 2, None),
        # trec_eval -m all_trec -q -c qrels.test results.trunc: one query has no results
        ("out.test.aqc", "qrels.test", "results.trunc", 1, None),
        # trec_eval -m all_trec -q -c -M100 qrels.test results.trunc
        ("out.test.aqcM", "qrels.test", "results.trunc", 1, 100),
    ],
)
def test_the_outputs_trec_eval_10_ships(shared_data, output, qrels, results, rel, depth):
    folder = shared_data / "trec_eval"
    ranking = ranked(read_qrels(folder / qrels), read_run(folder / results), TEN, depth)
    ranking = dataclasses.replace(ranking, cut_at=None)  # -M: what is cut off counts as not retrieved
    rows = printed(folder / output)
    assert {name for name, *_ in rows} - NOT_A_MEASURE - UNDEFINED == set(TENS)
    for name, query_id, text in rows:
        if name in NOT_A_MEASURE | UNDEFINED:
            continue
        values, _, _ = compute(asked(TENS[name], rel, judged_only=False), ranking)
        value = summed_up(TENS[name], values) if query_id == "all" else values[ranking.query_ids.index(query_id)]
        assert value == pytest.approx(float(text), rel=0, abs=5.0001e-5), (name, query_id)


PARAMETERS = {
    "utility_2,-1,0,0": "Utility(found=2)",
    "ndcg_1=3,2=9,4=4.5": "nDCG(gains={1: 3, 2: 9, 4: 4.5})",
}


def test_the_output_with_parameters_that_trec_eval_10_ships(shared_data):
    folder = shared_data / "trec_eval"
    ranking = ranked(read_qrels(folder / "qrels.test"), read_run(folder / "results.test"), TEN)
    rows = [row for row in printed(folder / "out.test.meas_params") if row[1] != "all"]
    assert len(rows) == 22 * 3
    for name, query_id, text in rows:
        if name == "11pt_avg_.25,.5,.75":
            measures = [Measure("IPrec", (), share) for share in (0.25, 0.5, 0.75)]
        else:
            measures = [parse(PARAMETERS.get(name, name))]
        query = ranking.query_ids.index(query_id)
        value = sum(compute(measure, ranking)[0][query] for measure in measures) / len(measures)
        assert value == pytest.approx(float(text), rel=0, abs=5.0001e-5), (name, query_id)


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        *WITHOUT_CUTOFF.items(),
        ("ideal_dcg", "IdealDCG"),
        ("yaap", "YAAP"),
        ("rbp_resid", "RBPResidual"),
        ("P_5", "P@5"),
        ("recall_10", "R@10"),
        ("relative_P_10", "RelP@10"),
        ("relative_P.10", "RelP@10"),
        ("map_cut_10", "AP@10"),
        ("ndcg_cut_10", "nDCG@10"),
        ("success_1", "Success@1"),
        ("unj_20", "Unjudged@20"),
        *((f"iprec_at_recall_{i / 10:.2f}", f"IPrec{Measure('', (), i / 10)}") for i in range(11)),
        ("iprec_at_recall.0.25", "IPrec@0.25"),
        *((f"Rprec_mult_{i / 5:.2f}", f"RprecMult{Measure('', (), i / 5)}") for i in range(1, 11)),
        ("Rprec_mult.5.0", "RprecMult@5"),
    ],
)
def test_every_name_of_trec_eval_is_understood(name, spelling):
    assert str(parse(name)) == spelling


PREFERENCES = [
    f"prefs_{kind}{pairs}"
    for pairs in ("", "_ret", "_imp")
    for kind in ("simp", "pair", "avgjg", "avgjg_Rnonrel")
    if (kind, pairs) != ("avgjg_Rnonrel", "_imp")
]


@pytest.mark.parametrize(
    "name",
    [
        "rbp",
        "dcg",
        *PREFERENCES,
        "prefs_num_prefs_poss",
        "prefs_num_prefs_ful",
        "prefs_num_prefs_ful_ret",
        "map_avgjg",
        "P_avgjg_5",
        "Rprec_mult_avgjg_0.20",
        "Rprec_mult_avgjg_1.20",
    ],
)
def test_names_of_trec_eval_that_other_families_hold_are_understood(name):
    assert parse(name).name in CATALOGUE

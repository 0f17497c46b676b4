"""pytrec_eval's interface gives what pytrec_eval gives, for every measure, and an error where it crashes."""

import io
import math
import random

import pytest
import pytrec_eval as theirs

from cranfield.base.errors import CranfieldError, NoCommonQueryError, RunFormatError, TestSetError, UsageError
from cranfield.compat import pytrec_eval as ours

QRELS = {"q1": {"d1": 1, "d2": 0, "d3": 2, "d5": 1}, "q2": {"d1": 0}}
RUN = {"q1": {"d1": 1.0, "d3": 0.5, "d4": 0.7, "d2": 0.2}, "q2": {"d1": 1.0}, "extra": {"d1": 1.0}}

# One value is memory that nobody wrote; two more are not numbers.
NO_NUMBERS = {"runid", "relstring"}


def random_case(seed):
    """Ties, scores that only 64 bits tell apart, grades under 0, missing, extra and empty queries, ids beyond ASCII."""
    draw = random.Random(seed)
    n = draw.choice([3, 20, 120])
    names = [f"d{i}" for i in range(n)] + ["é", "Ω", "d-ÿ", "漢", "\U0001f600"]
    grades = draw.choice([[-2, -1, 0, 0, 1, 1, 2, 3], [0, 1], [1], [0, 0, 0, 1, 4]])
    qrels = {f"q{q}": {d: draw.choice(grades) for d in draw.sample(names, draw.randint(0, n))} for q in range(6)}
    for judged in qrels.values():
        if judged and max(judged.values()) < 0:  # ends the process there
            judged[next(iter(judged))] = 0
    scores = draw.choice([[1, 2, 3], [1.0, 1.00000001, 2.5, -3.25, 1e-50, 0.0], [draw.random() for _ in range(200)]])
    run = {f"q{q}": {d: draw.choice(scores) for d in draw.sample(names, draw.randint(1, n))} for q in range(1, 8)}
    return qrels, run


def same(mine, expected):
    assert list(mine) == [query_id for query_id in mine if query_id in expected]
    assert set(mine) == set(expected)
    for query_id, values in expected.items():
        assert list(mine[query_id]) == list(values)
        for name, value in values.items():
            if name in NO_NUMBERS:
                assert mine[query_id][name] == 0
            elif not math.isnan(value):  # 0 / 0, of a list without a judged result
                assert mine[query_id][name] == pytest.approx(value, rel=0, abs=1e-9), (query_id, name)


@pytest.mark.parametrize("block", range(6))
def test_every_measure_is_equal_on_random_cases(block):
    for seed in range(block * 25, block * 25 + 25):
        qrels, run = random_case(seed)
        options = {"relevance_level": random.Random(seed).choice([1, 1, 2, 3]), "judged_docs_only_flag": seed % 3 == 0}
        expected = theirs.RelevanceEvaluator(qrels, theirs.supported_measures, **options).evaluate(run)
        same(ours.RelevanceEvaluator(qrels, ours.supported_measures, **options).evaluate(run), expected)


@pytest.mark.parametrize(
    "measures",
    [
        {"map", "ndcg"},
        ["ndcg_cut_10"],
        ["ndcg_cut.3,10,1"],
        {"P_5", "P.10,2"},
        {"P", "P_3"},  # with a cutoff, the usual ones do not come
        {"map_cut.10,20"},
        {"success.2", "recall_7", "relative_P.4"},
        {"iprec_at_recall.0.1,0.55", "Rprec_mult_0.5"},
        {"11pt_avg.0.25,0.5"},
        {"set_F.0.5"},
        {"set_F_2"},
        {"official"},
        {"set", "ndcg_cut_5"},
        {"all_trec"},
        set(),
    ],
)
def test_measures_are_asked_for_as_there(measures):
    expected = theirs.RelevanceEvaluator(QRELS, measures).evaluate(RUN)
    same(ours.RelevanceEvaluator(QRELS, measures).evaluate(RUN), expected)


def test_the_same_measures_are_known():
    assert ours.supported_measures == theirs.supported_measures
    assert ours.supported_nicknames == {name: theirs.supported_nicknames[name] for name in ours.supported_nicknames}


def test_an_evaluator_serves_many_runs():
    evaluator = ours.RelevanceEvaluator(QRELS, {"map"})
    assert evaluator.evaluate(RUN) == evaluator.evaluate(RUN)
    assert evaluator.evaluate({"q2": {"d1": 1.0}}) == {"q2": {"map": 0.0}}


def test_nothing_comes_of_an_empty_run_or_of_no_judgment():
    assert ours.RelevanceEvaluator(QRELS, {"map"}).evaluate({}) == {}
    assert ours.RelevanceEvaluator({"q1": {}}, {"map"}).evaluate(RUN) == {}


def test_an_empty_list_of_results_is_worth_nothing_as_there():
    measures = {"map", "num_ret"}
    expected = theirs.RelevanceEvaluator(QRELS, measures).evaluate({"q1": {}})
    assert ours.RelevanceEvaluator(QRELS, measures).evaluate({"q1": {}}) == expected
    # pytrec_eval's num_rel is 3 or 0 here, by what the process computed before.
    assert ours.RelevanceEvaluator(QRELS, {"num_rel"}).evaluate({"q1": {}}) == {"q1": {"num_rel": 3.0}}


@pytest.mark.parametrize("name", ["map", "num_ret", "gm_map", "P_5"])
def test_values_are_summed_up_as_there(name):
    values = [-0.5, -1.25, -3.0]
    assert ours.compute_aggregated_measure(name, values) == pytest.approx(
        theirs.compute_aggregated_measure(name, values)
    )


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("P_0", "P_0: cutoff is 0; expected a whole number of 1 or more"),
        ("map_cut.0", "map_cut_0: cutoff is 0"),
        ("P_3.7", r"P_3\.7: cutoff is 3\.7"),
        ("P_-1", "unknown measure 'P_-1'"),
        ("P_5x", "unknown measure 'P_5x'"),
        ("ndcg_cut_99999999999", "cutoff is 99999999999"),
        ("nope", "unknown measure 'nope'"),
        ("ndgc_cut_10", "did you mean ndcg_cut?"),
        ("prefs_simp", "unknown measure 'prefs_simp'"),
        ("ndcg.1", r"ndcg\.1: these parameters cannot be used; expected ndcg without parameters"),
        ("map_5", r"map\.5: these parameters cannot be used"),
        ("set_F.2,3", r"set_F\.2,3: these parameters cannot be used"),
        ("utility_2", r"utility\.2: these parameters cannot be used"),
    ],
)
def test_a_measure_that_crashes_there_or_is_misread_is_an_error_here(measure, message):
    with pytest.raises(UsageError, match=message):
        ours.RelevanceEvaluator(QRELS, {"map", measure})


def test_every_bad_measure_is_named_at_once():
    with pytest.raises(UsageError) as caught:
        ours.RelevanceEvaluator(QRELS, ["nope", "P_0", "map", "nothing"])
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("level", [0, -1, 1.5, True, "2"])
def test_a_level_that_is_none_is_an_error(level):
    with pytest.raises(UsageError, match="relevance_level is"):
        ours.RelevanceEvaluator(QRELS, {"map"}, relevance_level=level)


def test_judgments_all_under_0_are_scored():
    """There, the process ends."""
    values = ours.RelevanceEvaluator({"q": {"d1": -1, "d2": -2}}, {"map", "ndcg", "num_ret"}).evaluate(
        {"q": {"d1": 1.0}}
    )
    assert values == {"q": {"num_ret": 1.0, "map": 0.0, "ndcg": 0.0}}


@pytest.mark.parametrize(
    ("error", "qrels", "run"),
    [
        (RunFormatError, QRELS, {"q1": {"d1": math.nan}}),
        (RunFormatError, QRELS, {"q1": {"d1": "1.0"}}),
        (RunFormatError, QRELS, {"q1": ["d1"]}),
        (NoCommonQueryError, QRELS, {"other": {"d1": 1.0}}),
        (TestSetError, {"q1": {"d1": math.inf}}, RUN),
        (TestSetError, {"q1": ["d1"]}, RUN),
    ],
)
def test_bad_input_is_an_error_of_ours(error, qrels, run):
    with pytest.raises(error):
        ours.RelevanceEvaluator(qrels, {"map"}).evaluate(run)


def test_grades_between_whole_numbers_are_gains():
    # DCG 0.5 / log2(2) + 1.5 / log2(3) = 1.4464; ideal 1.5 + 0.5 / log2(3) = 1.8155
    values = ours.RelevanceEvaluator({"q": {"a": 0.5, "b": 1.5}}, {"ndcg"}).evaluate({"q": {"a": 2.0, "b": 1.0}})
    assert values["q"]["ndcg"] == pytest.approx(1.4464 / 1.8155, abs=1e-4)


def test_lines_are_read_as_there():
    run = ["q1 Q0 d1 1 2.5 tag\n", "q1 Q0 d2 2 1e-3 tag\n", "q2 Q0 d1 1 -4 tag\n"]
    qrels = ["q1 0 d1 1\n", "q1 0 d2 -1\n", "q2\t0\td1\t0\n"]
    assert ours.parse_run(run) == theirs.parse_run(run)
    assert ours.parse_qrel(io.StringIO("".join(qrels))) == theirs.parse_qrel(qrels)
    assert ours.parse_run([*run, "\n", "q3 Q0 d1 1 2 a tag of words\n"])["q3"] == {"d1": 2.0}
    assert ours.parse_qrel(["\n", "q1 0 d1 0.5\n"]) == {"q1": {"d1": 0.5}}


def test_every_bad_line_is_named():
    with pytest.raises(RunFormatError) as caught:
        ours.parse_run(["q1 Q0 d1 1 x tag", "q1 Q0 d1 1 1 tag", "q1 Q0 d1 2 0 tag", "q1 Q0 d1", "q1 Q0 d2 1 nan tag"])
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (1, "the score is not a finite number"),
        (3, "query 'q1' lists document 'd1' twice"),
        (4, "3 columns"),
        (5, "the score is not a finite number"),
    ]
    with pytest.raises(TestSetError) as caught:
        ours.parse_qrel(["q1 0 d1 x", "q1 0 d1 1", "q1 0 d1 1", "q1 0 d1"])
    assert [problem.line for problem in caught.value.problems] == [1, 3, 4]


def test_the_errors_are_all_of_one_family():
    with pytest.raises(CranfieldError):
        ours.compute_aggregated_measure("map", [])

"""ir_measures' interface gives what ir_measures gives: measures, values, inputs. Only the import line differs."""

import gzip
import io
import logging
import math
import random
import shutil
import sys
from importlib.metadata import version
from typing import NamedTuple

import ir_measures as theirs
import pandas as pd
import polars as pl
import pytest

from cranfield.base.errors import MeasureError, NoCommonQueryError, RunFormatError, TestSetError, UsageError
from cranfield.compat import ir_measures as ours
from cranfield.compat import pytrec_eval
from cranfield.compat.ir_measures import AP, IPrec, Judged, NumQ, NumRet, P, R, SetF, measure_names, nDCG
from cranfield.measures.own import define, forget

QRELS = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d1": 1}}
RUN = {"q1": {"d1": 1.0, "d3": 0.5, "d4": 0.7, "d2": 0.2}, "extra": {"d1": 1.0}}

SPELLINGS = [
    "AP", "AP@5", "AP(rel=2)", "MAP", "Rprec", "Bpref", "infAP", "infAP(rel=2)", "RR", "RR@3", "RR(rel=2)",
    "MRR@10", "nDCG", "nDCG@10", "nDCG(gains={0: 0, 1: 1, 2: 5})@5", "nDCG(judged_only=True)@10", "NDCG@3", "P@5",
    "P(rel=2)@5", "P(judged_only=True)@3", "Precision@1", "R@10", "R(rel=2)@3", "Recall@5", "IPrec@0.1",
    "IPrec@0.5", "IPrec(rel=2)@1.0", "Success@1", "Success(rel=2)@5", "Judged@5", "Judged@100", "Judged", "NumRet",
    "NumRet(rel=1)", "NumRelRet", "NumRel", "NumQ", "SetP", "SetP(relative=True)", "SetR", "SetAP", "SetF",
    "SetF(beta=0.5)", "Compat", "Compat(p=0.8)", "RBP(rel=1)", "RBP(rel=2,p=0.9)", "SDCG(max_rel=3)@5",
    "BPM(max_rel=3)@5", "INST(max_rel=3)", "INSQ(max_rel=3)", "NERR8(max_rel=3)@5", "NERR9(max_rel=3)@5",
    "NERR10(max_rel=3)", "NERR11(max_rel=3)",
]  # fmt: skip
RESULTS = 25


@pytest.fixture(autouse=True)
def _silence():
    logger = logging.getLogger("ir_measures.cwl_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


def random_case(seed):
    """Missing and extra queries, no ties."""
    draw = random.Random(seed)
    docs = [f"d{i}" for i in range(30)] + ["é", "漢"]
    qrels = {
        f"q{q}": {d: draw.choice([0, 0, 1, 2, 3]) for d in draw.sample(docs, draw.randint(1, 20))} for q in range(5)
    }
    run = {
        f"q{q}": dict(zip(draw.sample(docs, draw.randint(1, RESULTS)), draw.sample(range(99), RESULTS), strict=False))
        for q in range(1, 7)
    }
    return qrels, run


def by_query(tool, measures, qrels, run):
    return {(str(metric.measure), metric.query_id): metric.value for metric in tool.iter_calc(measures, qrels, run)}


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 5))])
def test_values_and_means_are_equal_on_random_cases(block):
    their_measures, our_measures = map(theirs.parse_measure, SPELLINGS), map(ours.parse_measure, SPELLINGS)
    pairs = dict(zip(map(str, their_measures), our_measures, strict=True))
    for seed in range(block * 8, block * 8 + 8):
        qrels, run = random_case(seed)
        for spelling, measure in pairs.items():
            expected = theirs.calc([theirs.parse_measure(spelling)], qrels, run)
            mine = ours.calc([measure], qrels, run)
            values = {metric.query_id: metric.value for metric in mine.per_query}
            assert values == pytest.approx({m.query_id: m.value for m in expected.per_query}, abs=1e-9, rel=0), spelling
            assert mine.aggregated[measure] == pytest.approx(next(iter(expected.aggregated.values())), abs=1e-9)


def test_accuracy_is_left_out_where_it_is_not_defined_as_there():
    compared = 0
    for seed in range(40):
        qrels, run = random_case(seed)
        for query_id in set(qrels) & set(run):
            judged, results = {query_id: qrels[query_id]}, {query_id: run[query_id]}
            try:
                expected = by_query(theirs, [theirs.Accuracy], judged, results)
            except ZeroDivisionError:  # every result is relevant
                expected = {}
            assert by_query(ours, [ours.Accuracy], judged, results) == pytest.approx(expected, abs=1e-9)
            compared += bool(expected)
    assert compared > 100
    assert math.isnan(ours.calc_aggregate([ours.Accuracy], {"q": {"d": 0}}, {"q": {"d": 1.0}})[ours.Accuracy])


@pytest.mark.parametrize("measure", ["P@5", "AP", "Judged@5", "RR@5", "Compat(p=0.8)", "RBP(rel=1)", "Accuracy"])
def test_a_query_that_is_not_judged_or_not_answered_counts_as_there(measure):
    answered = {"q1": RUN["q1"]}
    for qrels, run in ((QRELS, answered), ({"q1": QRELS["q1"]}, {**RUN, "q2": {"d1": 1.0}})):
        assert by_query(ours, [ours.parse_measure(measure)], qrels, run) == pytest.approx(
            by_query(theirs, [theirs.parse_measure(measure)], qrels, run), abs=1e-12
        )


def test_accuracy_leaves_out_a_judged_query_that_the_run_does_not_answer():
    # d1 (grade 1) is above d2 (grade 0): 1 of 1 pair in q1; q2 is not in the run
    assert by_query(ours, [ours.Accuracy], QRELS, RUN) == by_query(theirs, [theirs.Accuracy], QRELS, RUN)
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}
    run = {"q1": {"d1": 2.0, "d2": 1.0}}
    assert by_query(ours, [ours.Accuracy], qrels, run) == {("Accuracy", "q1"): 1.0}
    assert ours.calc_aggregate([ours.Accuracy, AP], qrels, run) == {ours.Accuracy: 1.0, AP: 0.5}


@pytest.mark.skipif(shutil.which("perl") is None, reason="perl is not installed")
def test_gains_are_linear_unless_the_exponential_ones_are_asked_for():
    # Ranks of the grades 0, 1, 2, 1, 0; DCG is 1/log2(3) + g/log2(4) + 1/log2(5), ideal g + 1/log2(3) + 1/log2(4),
    # where g is 2, or 2^2 - 1 = 3
    qrels = {"0": {"D0": 0, "D1": 1, "D2": 1, "D3": 2, "D4": 0}}
    run = {"0": {"D0": 0.8, "D2": 0.7, "D3": 0.4, "D1": 0.3, "D4": 0.1}}
    cases = (("nDCG@20", 2, 0.6584645692843067), ("nDCG(dcg='exp-log2')@20", 3, 0.6201040599710453))
    for spelling, gain, value in cases:
        by_hand = (1 / math.log2(3) + gain / 2 + 1 / math.log2(5)) / (gain + 1 / math.log2(3) + 1 / 2)
        (ours_of,) = ours.iter_calc([spelling], qrels, run)
        (theirs_of,) = theirs.iter_calc([theirs.parse_measure(spelling)], qrels, run)
        assert (ours_of.value, by_hand) == (pytest.approx(value, abs=1e-15),) * 2
        assert theirs_of.value == pytest.approx(value, abs=1e-5)  # gdeval.pl prints five decimals


@pytest.mark.skipif(shutil.which("perl") is None, reason="perl is not installed")
def test_gdeval_asked_directly_has_exponential_gains_whatever_the_measure_says():
    # A grade under 1 has no gain. Ranks of the grades -1, 2, unjudged, 1; gains 2^g - 1: 3 and 1; of rank r 1/log2(r + 1)
    qrels = {"0": {"a": -1, "b": 2, "c": 1, "d": 1}}
    run = {"0": {"a": 4.0, "b": 3.0, "x": 2.0, "c": 1.0}}
    ideal = 3 + 1 / math.log2(3)
    cases = ((2, 3 / math.log2(3) / ideal), (20, (3 / math.log2(3) + 1 / math.log2(5)) / (ideal + 1 / 2)))
    for cutoff, by_hand in cases:
        (direct,) = theirs.gdeval.iter_calc([theirs.nDCG @ cutoff], qrels, run)
        assert str(direct.measure) == f"nDCG@{cutoff}"
        assert direct.value == round(by_hand, 5) == round((nDCG(dcg="exp-log2") @ cutoff).calc_aggregate(qrels, run), 5)
        (linear,) = theirs.iter_calc([theirs.nDCG @ cutoff], qrels, run)
        assert linear.value == pytest.approx((nDCG @ cutoff).calc_aggregate(qrels, run), abs=1e-15)
        assert abs(linear.value - direct.value) > 0.005


def test_a_measure_scores_a_run_as_there():
    measure = nDCG @ 10
    assert measure.calc_aggregate(QRELS, RUN) == (theirs.nDCG @ 10).calc_aggregate(QRELS, RUN)
    assert [(m.query_id, m.value) for m in measure.iter_calc(QRELS, RUN)] == [
        (m.query_id, m.value) for m in sorted((theirs.nDCG @ 10).iter_calc(QRELS, RUN))
    ]
    aggregated, per_query = measure.calc(QRELS, RUN)
    assert aggregated == measure.calc_aggregate(QRELS, RUN)
    assert per_query == list(measure.iter_calc(QRELS, RUN))


def test_the_provider_of_ir_measures_accepts_our_pytrec_eval(monkeypatch):
    provider = type(theirs.providers.registry["pytrec_eval"])()
    monkeypatch.setitem(sys.modules, "pytrec_eval", pytrec_eval)
    assert provider.is_available()
    assert provider.calc_aggregate([theirs.AP], QRELS, RUN) == {theirs.AP: ours.calc_aggregate([AP], QRELS, RUN)[AP]}
    assert (pytrec_eval.__version__, ours.__version__) == (version("pytrec_eval-terrier"), theirs.__version__)


def test_measures_are_spelled_as_there():
    renamed = {"NumRelRet"}  # there, it is NumRet(rel=1)
    for spelling in [*(set(SPELLINGS) - renamed), "Accuracy", "ERR@20", "nDCG(dcg='exp-log2')@10"]:
        parsed = ours.parse_measure(spelling)
        assert str(parsed) == str(ours.parse_measure(str(theirs.parse_measure(spelling))))
        assert ours.parse_measure(str(parsed)) == parsed
    assert str(P(rel=2) @ 5) == str(theirs.P(rel=2) @ 5) == "P(rel=2)@5"
    assert str(nDCG(dcg="exp-log2") @ 10) == "nDCG(dcg='exp-log2')@10"
    assert repr(ours.RBP(p=0.5, rel=2)) == "RBP(p=0.5,rel=2)"


def test_measures_are_values():
    assert P @ 5 == P(cutoff=5) == (P @ 5)(rel=1) == ours.parse_measure("P(rel=1)@5")
    assert len({P @ 5, P(cutoff=5), P @ 10}) == 2
    assert P @ 5 != "P@5"
    assert IPrec @ 0.1 == IPrec(recall=0.1)
    assert sorted([P @ 5, AP]) == [AP, P @ 5]
    assert (P @ 5).NAME == "P"
    assert ((P @ 5)["cutoff"], (P @ 5)["rel"], P["cutoff"], nDCG["gains"]) == (5, 1, None, {})
    with pytest.raises(KeyError):
        _ = P["p"]


def test_every_measure_there_can_be_imported_here():
    skipped = {"BaseMeasure", "Measure", "MeanAgg", "SumAgg", "ParamInfo"}
    names = [name for name in vars(theirs.measures) if isinstance(getattr(theirs, name, None), theirs.Measure)]
    assert len(names) > 40
    for name in set(names) - skipped:
        assert isinstance(getattr(ours, name), ours.Measure), name


def test_no_name_of_the_module_hides_a_measure():
    assert [name for name in measure_names() if not isinstance(getattr(ours, name), ours.Measure)] == []


def test_a_star_brings_measures_and_functions():
    names = {}
    exec("from cranfield.compat.ir_measures import *", names)
    assert names["calc_aggregate"] is ours.calc_aggregate
    assert names["nDCG"] @ 10 == nDCG @ 10
    assert set(ours.__all__) == set(dir(ours))


def test_what_is_not_offered_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'define'"):
        _ = ours.define


def test_the_readme_of_ir_measures_runs():
    # q1: d1 at 1, d4 at 2, d3 at 3: DCG 1 + 2 / log2(4) = 2; ideal 2 + 1 / log2(3) = 2.6309; q2 has no result: 0
    result = ours.calc_aggregate([nDCG @ 10, P(rel=2) @ 5, NumQ], QRELS, RUN)
    assert result[nDCG @ 10] == pytest.approx(2 / 2.6309 / 2, abs=1e-4)
    assert result == {nDCG @ 10: result[nDCG @ 10], P(rel=2) @ 5: 0.1, NumQ: 1.0}
    metrics = list(ours.iter_calc([AP], QRELS, RUN))
    assert metrics[0] == ours.Metric("q1", AP, pytest.approx((1 + 2 / 3) / 2))
    assert metrics[1] == ours.Metric(query_id="q2", measure=AP, value=0.0)
    evaluator = ours.evaluator([AP, R @ 1], QRELS)
    assert evaluator.calc_aggregate(RUN) == {AP: pytest.approx(5 / 12), R @ 1: 0.25}
    assert evaluator.calc(RUN).aggregated == evaluator.calc_aggregate(RUN)
    assert evaluator.qrel_qids == {"q1", "q2"}


def qrel_rows(make=ours.Qrel):
    return [make(q, d, grade) for q, judged in QRELS.items() for d, grade in judged.items()]


def run_rows(make=ours.ScoredDoc):
    return [make(q, d, score) for q, docs in RUN.items() for d, score in docs.items()]


def trec_qrels():
    return "".join(f"{q} 0 {d} {grade}\n" for q, d, grade, _ in qrel_rows())


def trec_run():
    return "".join(f"{q} Q0 {d} 1 {score} tag\n" for q, d, score in run_rows())


class TrecQrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


@pytest.mark.parametrize(
    "qrels",
    [
        qrel_rows,
        lambda: iter(qrel_rows()),
        lambda: qrel_rows(TrecQrel),
        lambda: qrel_rows(theirs.Qrel),
        lambda: pd.DataFrame(qrel_rows()),
        lambda: pl.DataFrame(qrel_rows()),
        lambda: ours.read_trec_qrels(trec_qrels()),
        lambda: ours.read_trec_qrels(io.StringIO(trec_qrels())),
    ],
)
@pytest.mark.parametrize(
    "run",
    [
        run_rows,
        lambda: iter(run_rows()),
        lambda: run_rows(theirs.ScoredDoc),
        lambda: pd.DataFrame(run_rows()),
        lambda: pl.DataFrame(run_rows()),
        lambda: ours.read_trec_run(trec_run()),
        lambda: ours.read_trec_run(io.StringIO(trec_run())),
    ],
)
def test_every_kind_of_input_is_the_same(qrels, run):
    measures = [nDCG @ 10, AP, Judged @ 5]
    assert ours.calc_aggregate(measures, qrels(), run()) == ours.calc_aggregate(measures, QRELS, RUN)


def test_files_are_read(tmp_path):
    (tmp_path / "qrels").write_text(trec_qrels())
    (tmp_path / "run.gz").write_bytes(gzip.compress(trec_run().encode()))
    pl.DataFrame(run_rows()).write_parquet(tmp_path / "run.parquet")
    pl.DataFrame(qrel_rows()).write_parquet(tmp_path / "qrels.parquet")
    expected = ours.calc_aggregate([AP], QRELS, RUN)
    for qrels in (tmp_path / "qrels", str(tmp_path / "qrels"), tmp_path / "qrels.parquet"):
        for run in (tmp_path / "run.gz", tmp_path / "run.parquet"):
            assert ours.calc_aggregate([AP], qrels, run) == expected
    assert list(ours.read_trec_run(str(tmp_path / "run.gz"))) == run_rows()
    assert list(ours.read_trec_qrels(tmp_path / "qrels")) == qrel_rows()


def test_lines_are_read_as_there():
    assert [tuple(row) for row in ours.read_trec_qrels(trec_qrels())] == [
        tuple(row) for row in theirs.read_trec_qrels(trec_qrels())
    ]
    assert [tuple(row) for row in ours.read_trec_run(trec_run())] == [
        tuple(row) for row in theirs.read_trec_run(trec_run())
    ]


def test_a_bad_line_is_an_error_with_its_place(tmp_path):
    (tmp_path / "run").write_text("q1 Q0 d1 1 1.0 tag\nq1 Q0 d2 1 high tag\n")
    with pytest.raises(RunFormatError, match=r"run:2: the score is not a finite number.*got 'high'"):
        list(ours.read_trec_run(tmp_path / "run"))
    with pytest.raises(RunFormatError, match="no such file"):
        list(ours.read_trec_run(tmp_path / "nothing"))
    with pytest.raises(TestSetError, match="qrels:1: 3 columns"):
        list(ours.read_trec_qrels("q1 d1 1\n"))


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ([P], "P: has no cutoff; expected P@k, for example P@10"),
        ([P @ 0], "P@0: cutoff is 0; expected a whole number of 1 or more"),
        ([AP(rel=0)], r"AP\(rel=0\): rel is 0"),
        ([AP(relevance=2)], "unknown parameter of AP 'relevance'"),
        (["nDGC@10"], "unknown measure 'nDGC'"),
        ([SetF(beta="two")], "beta is two"),
    ],
)
def test_a_measure_that_cannot_be_is_an_error(measures, message):
    with pytest.raises(UsageError, match=message):
        ours.evaluator(measures, QRELS)


def test_every_bad_measure_is_named_before_anything_is_read():
    with pytest.raises(UsageError) as caught:
        ours.evaluator([P, P @ 0, AP, R], "/no/such/file")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("error", "qrels", "run", "message"),
    [
        (NoCommonQueryError, QRELS, {"other": {"d1": 1.0}}, "share no query id"),
        (RunFormatError, QRELS, [*run_rows(), ours.ScoredDoc("q1", "d1", 3.0)], "rows 0 and 5: query 'q1' lists"),
        (RunFormatError, QRELS, [ours.ScoredDoc("q1", "d1", math.nan)], "row 0: score is not a finite number"),
        (RunFormatError, QRELS, [ours.ScoredDoc("q1", None, 1.0)], "row 0: doc_id is not an id"),
        (
            TestSetError,
            [*qrel_rows(), ours.Qrel("q1", "d1", 3)],
            RUN,
            "row 4: query 'q1', document 'd1' is judged",
        ),
        (TestSetError, [ours.Qrel("q1", "d1", "1")], RUN, "row 0: grade is not a finite number"),
        (UsageError, QRELS, [("q1", "d1", 1.0)], r"row 0 has no query_id; expected rows such as ScoredDoc"),
        (UsageError, [ours.ScoredDoc("q1", "d1", 1.0)], RUN, r"row 0 has no relevance; expected rows such as Qrel"),
        (MeasureError, QRELS, RUN, r"alpha_nDCG@5 cannot be computed: the test set has no judgments by subtopic"),
    ],
)
def test_bad_input_is_an_error_of_ours(error, qrels, run, message):
    measures = [ours.alpha_nDCG @ 5] if error is MeasureError else [AP]
    with pytest.raises(error, match=message):
        ours.calc_aggregate(measures, qrels, run)


@pytest.mark.parametrize(
    "name",
    [
        "map",
        "P_5",
        "ndcg_cut",
        "ndcg_cut.3,10",
        "recip_rank",
        "set_F",
        "set_F.1.0,0.5,2.4",
        "iprec_at_recall",
        "recall",
    ],
)
def test_names_of_trec_eval_are_read_as_there(name):
    assert list(map(str, ours.parse_trec_measure(name))) == [
        str(ours.parse_measure(str(measure))) for measure in theirs.parse_trec_measure(name)
    ]


def test_names_of_trec_eval_that_are_no_measure_are_errors():
    with pytest.raises(UsageError, match="unknown measure 'nothing'"):
        ours.parse_trec_measure("nothing")
    with pytest.raises(UsageError, match="trec_eval's runid is not supported here"):
        ours.parse_trec_measure("runid")


def test_counts_are_summed_up():
    assert ours.calc_aggregate([NumRet], QRELS, RUN | {"q2": {"d1": 1.0}}) == {NumRet: 5.0}


SUBTOPICS = [("q1", "d1", 1, "A"), ("q1", "d2", 1, "B"), ("q1", "d1", 0, "B"), ("q2", "d1", 2, "A")]


@pytest.mark.parametrize(
    "qrels",
    [
        lambda _: [ours.Qrel(*row) for row in SUBTOPICS],
        lambda _: pd.DataFrame([ours.Qrel(*row) for row in SUBTOPICS]),
        lambda _: pl.DataFrame([ours.Qrel(*row) for row in SUBTOPICS]).rename({"iteration": "subtopic"}),
        lambda folder: folder / "qrels",
        lambda folder: ours.read_trec_qrels(folder / "qrels"),
    ],
)
def test_the_iteration_says_the_subtopic_where_a_measure_needs_one(tmp_path, qrels):
    (tmp_path / "qrels").write_text("".join(f"{q} {subtopic} {d} {grade}\n" for q, d, grade, subtopic in SUBTOPICS))
    run = {"q1": {"d2": 2.0, "x": 1.5, "d1": 1.0}, "q2": {"d1": 1.0}}
    measures = [ours.StRecall @ 1, ours.AP_IA, AP]
    # q1: B at 1, A at 3: subtopic recall 1/2, and (1/1 + 1/3) / 2; q2: all 1. AP of q1, d1 and d2: (1 + 2/3) / 2
    expected = {measures[0]: 0.75, measures[1]: pytest.approx((2 / 3 + 1) / 2), AP: pytest.approx((5 / 6 + 1) / 2)}
    assert ours.calc_aggregate(measures, qrels(tmp_path), run) == expected


def test_without_such_a_measure_a_document_has_one_grade():
    with pytest.raises(TestSetError, match="row 2: query 'q1', document 'd1' is judged twice"):
        ours.calc_aggregate([AP], [ours.Qrel(*row) for row in SUBTOPICS], RUN)


def test_a_measure_of_ones_own_can_be_imported():
    define("Seven", lambda _: 7.0, title="seven", sentence="Always seven.", range=(0.0, 7.0))
    try:
        # q2 is not in the run, and counts as 0
        assert ours.calc_aggregate([ours.Seven, AP @ 1], QRELS, RUN)[ours.Seven] == 3.5
    finally:
        forget("Seven")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import evaluate
from cranfield.base.errors import MeasureError, UsageError
from cranfield.measures import CATALOGUE, DEFAULT_MEASURES, Measure, as_typed, parse, parse_all
from cranfield.measures.measure import COMPOSITE


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("nDCG@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("MRR@10", "RR@10"),
        ("Hit@5", "Success@5"),
        ("MAP", "AP"),
        ("Recall@100", "R@100"),
        ("P(rel=1)@5", "P@5"),
        (" P( rel = 2 ) @ 5 ", "P(rel=2)@5"),
        ('nDCG(dcg="exp-log2")@10', "nDCG(dcg='exp-log2')@10"),
        ("nDCG(dcg=exp-log2)@10", "nDCG(dcg='exp-log2')@10"),
        ("nDCG(dcg='log2')", "nDCG"),
        ("p@5", "P@5"),  # in any case, where no two measures differ by it
        ("r@100", "R@100"),
        ("rbp(p=.5)", "RBP(p=0.5)"),
        ("JUDGED@10", "Judged@10"),
        ("Mrr@10", "RR@10"),
        ("prec@5", "P@5"),
        ("p_5", "P@5"),
        ("IPREC_AT_RECALL_0.1", "IPrec@0.1"),
        ("nDCG(cutoff=10)", "nDCG@10"),  # as ir_measures takes it
        ("nDCG(dcg='exp-log2', cutoff=20)", "nDCG(dcg='exp-log2')@20"),
        ("P(cutoff=5,rel=2)@5", "P(rel=2)@5"),
        ("IPrec(recall=0.4)", "IPrec@0.4"),
        ("Judged", "Judged"),
        ("precision@2-l2", "P(rel=2)@2"),  # of ranx: the lowest relevant grade
        ("mrr-l3", "RR(rel=3)"),
        ("map-l2", "AP(rel=2)"),
        ("map@5-l1", "AP@5"),
        ("r-precision-l2", "Rprec(rel=2)"),
        ("ndcg-l3", "nDCG(gains={1: 0, 2: 0})"),
        ("ndcg_burges@10-l2", "nDCG(dcg='exp-log2', gains={1: 0})@10"),
        ("rbp.95", "RBP(p=0.95, scaled=False, depth=0)"),
        ("rbp.80-l2", "RBP(scaled=False, depth=0, gains={1: 0})"),
        ("recall_cap@5", "RelP@5"),  # of BEIR
        ("R_cap@10", "RelP@10"),
        ("BestRR", "RR(only_best=True)"),
        ("BestSuccess@5", "Success(only_best=True)@5"),
        ("MeanRank@10", "RankOfFirst@10"),
        ("cosine_accuracy@3", "Success@3"),  # of sentence-transformers
        ("dot_ndcg@10", "nDCG@10"),
        ("euclidean_map@100", "AP(divisor='reachable')@100"),
        ("manhattan_mrr@10", "RR@10"),
        ("average_precision", "AP"),
        ("mean_average_precision@5", "AP@5"),
        ("mean_reciprocal_rank", "RR"),
        ("Accuracy@3", "Accuracy@3"),
    ],
)
def test_one_spelling(text, spelling):
    assert str(parse(text)) == spelling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy@3", "Success@3, the hit rate of sentence-transformers, or Accuracy@3 of ir_measures"),
        ("rbp@95", "rbp.95, for p = 0.95, or RBP@95"),
        ("Judged@5-l2", "Judged@5"),
    ],
)
def test_a_name_with_two_meanings_is_no_measure(text, expected):
    with pytest.raises(MeasureError) as caught:
        parse(text)
    assert f"expected {expected}." in str(caught.value)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("ContextRecall", "R@10 is the nearest measure"),
        ("ContextualRecall", "R@10 is the nearest measure"),
        ("contextual_relevancy", "P@10 is the nearest measure"),
        ("F@5", "F1@5 is the nearest measure"),
        ("f1_score@5", "F1@5 is the nearest measure"),
        ("fbeta@5", "F1@5 is the nearest measure"),
        ("ContextPrecision@5", "AP(divisor='retrieved')@5 is the same measure"),
        ("ContextPrecision", "AP(divisor='retrieved') is the same measure"),
    ],
)
def test_names_of_other_tools_lead_to_what_is_nearest(text, nearest):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert f"Hint: for judged results, {nearest}. " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("ndgc@10", "nDCG@10"),
        ("sucess@5", "Success@5"),
        ("Precison", "P@10"),  # a required cutoff that was not given is an example
        ("recal@20", "R@20"),
        ("nDGC(dcg=exp-log2)@10", "nDCG(dcg='exp-log2')@10"),
        ("nDGC(foo=1)@10", "nDCG@10"),  # what does not fit the nearest measure is left out
        ("ndgc_cut_20", "nDCG@20"),
        ("p5", "P@5"),
        ("nDCG10", "nDCG@10"),
        ("Mapp@7", "AP@7"),
    ],
)
def test_a_wrong_measure_suggests_the_whole_spelling(text, suggestion):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert f"did you mean {suggestion}? " in str(caught.value)
    assert str(parse(suggestion)) == suggestion


@pytest.mark.parametrize("text", ["faithfulness", "Answer-Relevancy", "groundedness@5", "answer_correctness"])
def test_a_measure_of_an_answers_text_is_named_as_such(text):
    with pytest.raises(UsageError, match="is not a ranking measure: it evaluates the text of an answer") as caught:
        parse(text)
    assert "R@5" in str(caught.value)


def test_a_hit_is_success():
    assert (str(parse("hit@5")), str(parse("Hit@5")), str(parse("hit_rate@5"))) == ("Success@5",) * 3


UNKNOWN = (
    f"unknown measure '{{}}'; expected one of {len(CATALOGUE)} measures.\n"
    "Hint: did you mean {}? `cranfield measures` lists them."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", UNKNOWN.format("nDGC", "nDCG@10")),
        ("Precison@5", UNKNOWN.format("Precison", "P@5")),  # near an alias, which is understood and not listed
        ("P@0", "P@0: cutoff is 0; expected a whole number of 1 or more."),
        ("P@-1", "P@-1: cutoff is -1; expected a whole number of 1 or more."),
        ("P@1.5", "P@1.5: cutoff is 1.5; expected a whole number of 1 or more."),
        ("P@99999999999", "P@99999999999: cutoff is 99999999999; expected a whole number from 1 to 2147483647."),
        ("P", "P: has no cutoff; expected P@k, for example P@10."),
        ("nDCG(foo=1)@3", "unknown parameter of nDCG 'foo'; expected dcg, gains, judged_only."),
        ("P(rel=0)@5", "P(rel=0)@5: rel is 0; expected a whole number of 1 or more."),
        ("P(rel=two)@5", "P(rel=two)@5: rel is two; expected a whole number of 1 or more."),
        ("P(rel=1,rel=2)@5", "P(rel=1,rel=2)@5: parameter rel is given twice."),
        ("rbp@10(p=.5)", "rbp@10(p=.5): the parameters must come before the cutoff; expected RBP(p=0.5)@10."),
        ("P(cutoff=5)@10", "P(cutoff=5)@10: has two cutoffs, 5 and 10; expected one, as in P@k."),
        ("P(cutoff=5,cutoff=5)", "P(cutoff=5,cutoff=5): parameter cutoff is given twice."),
        ("P(cutoff=0)", "P(cutoff=0): cutoff is 0; expected a whole number of 1 or more."),
        ("SetF(cutoff=5)", "SetF(cutoff=5): SetF takes no cutoff; expected SetF."),
        ("P(2)@5", "P(2)@5: cannot read the parameter '2'; expected key=value, as in P(rel=2)@5."),
        ("rbp(.5)", "rbp(.5): cannot read the parameter '.5'; expected key=value, as in RBP(p=0.5)."),
        ("rbp( .5 )@10", "rbp( .5 )@10: cannot read the parameter '.5'; expected key=value, as in RBP(p=0.5)@10."),
        ("ndcg(10)", "ndcg(10): cannot read the parameter '10'; expected key=value, as in nDCG@10."),
        ("rbp(x)", "rbp(x): cannot read the parameter 'x'; expected key=value."),
        ("nDCG(dcg='log')@5", "unknown value of dcg 'log'; expected exp-log2, log2.\nHint: did you mean log2?"),
        ("", "cannot read the measure ''; expected NAME, NAME@k or NAME(key=value)@k."),
        (
            "R(rel=2, only_grade=1)@5",
            (
                "R(rel=2, only_grade=1)@5: only_grade is given together with rel; expected only_grade=N for one grade, rel=N "
                "for every grade from N up, or only_best=True for the highest of each query."
            ),
        ),
        ("P@@5", "cannot read the measure 'P@@5'; expected NAME, NAME@k or NAME(key=value)@k."),
    ],
)
def test_a_bad_measure_says_what_is_wrong(text, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_every_bad_measure_is_named_before_anything_fails():
    with pytest.raises(UsageError) as caught:
        parse_all(["P@0", "AP", "nDGC@10"])
    assert len(caught.value.problems) == 2


def parameter_values(parameter):
    if isinstance(parameter.default, tuple):
        gains = st.dictionaries(st.integers(-3, 9), st.floats(-9, 9).map(lambda gain: gain + 0.0), max_size=3)
        return gains.map(lambda one: tuple(sorted(one.items())))
    if isinstance(parameter.default, bool):
        return st.booleans()
    if isinstance(parameter.default, str):
        return st.sampled_from(parameter.choices)
    low = -(10**6) if parameter.minimum is None else parameter.minimum
    high = 10**6 if parameter.maximum is None else parameter.maximum
    if isinstance(parameter.default, int):
        return st.integers(int(low), int(high))
    return st.floats(low, high, exclude_min=parameter.above_minimum, exclude_max=parameter.below_maximum)


@st.composite
def measures(draw):
    spec = CATALOGUE[draw(st.sampled_from(sorted(set(CATALOGUE) - {COMPOSITE})))]  # sums: see test_composite
    params = []
    for parameter in spec.parameters:
        value = draw(parameter_values(parameter))
        if value != parameter.default:
            params.append((parameter.name, value))
    if "only_grade" in dict(params):  # an error together with these
        params = [(name, value) for name, value in params if name not in ("rel", "only_best")]
    cutoffs = st.integers(1, 2**31 - 1) if spec.cutoff_kind == "rank" else st.floats(0.001, 1)
    allowed = {"required": cutoffs, "optional": st.none() | cutoffs, "none": st.none()}
    return Measure(spec.name, tuple(params), draw(allowed[spec.cutoff]))


@given(measures())
def test_parse_reads_what_str_prints(measure):
    assert parse(str(measure)) == measure


def test_every_alias_leads_to_its_measure():
    for spec in CATALOGUE.values():
        for alias in spec.aliases:
            at = {"rank": "@3", "share": "@0.5", "multiple": "@0.5"}[spec.cutoff_kind] if spec.cutoff != "none" else ""
            assert parse(f"{alias}{at}").name == spec.name


def test_the_default_list_parses_to_itself():
    assert [str(measure) for measure in parse_all(DEFAULT_MEASURES)] == list(DEFAULT_MEASURES)


def test_a_great_deal_of_white_space_is_refused_at_once():
    text = "P" + " " * 20_000 + "!"  # minutes, where three parts of the pattern may share out the spaces
    with pytest.raises(UsageError):
        parse(text)


def test_a_text_too_long_for_a_measure_is_not_repeated_in_full():
    with pytest.raises(UsageError) as caught:
        parse("P(rel=" + "1" * 100_000 + ")@5")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("Hit@5", "Hit@5"),
        ("MRR", "MRR"),
        ("recall@10", "recall@10"),
        ("ndcg@10", "nDCG@10"),
        ("ndcg_cut_10", "nDCG@10"),
    ],
)
def test_a_measure_is_printed_under_the_name_that_was_written(typed, printed):
    measure = as_typed(typed)
    assert (str(measure), measure) == (printed, parse(typed))
    testset = {"q": {"a": 1}}
    assert list(map(str, evaluate(testset, {"q": ["a"]}, measures=[typed]).measures)) == [printed]


def test_two_names_of_one_measure_are_one_column_and_it_says_so():
    evaluation = evaluate({"q": {"a": 1}}, {"q": ["a"]}, measures=["RR", "MRR", "RR"])
    assert list(map(str, evaluation.measures)) == ["RR"]
    assert "MRR is RR under another name: one column" in evaluation.warnings

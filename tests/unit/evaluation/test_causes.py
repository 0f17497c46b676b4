"""Why a query has another value: what each document adds, what came before it, and traits that set results apart."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from cranfield import compare, evaluate, parse
from cranfield.base.errors import UsageError
from cranfield.evaluation.causes import Known, Move, OneSided, Side, causes_of, parts_of
from cranfield.evaluation.traits import MIN_QUERIES, Sides, Trait, TraitKind, contrasts_of, described, is_form
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.stats.result import benjamini_yekutieli


def pair(grades, baseline, candidate, measure, **options):
    sides = (evaluate(grades, run, measures=[measure], name=name) for name, run in (("A", baseline), ("B", candidate)))
    return causes_of(compare(*sides, **options))


def ranked(*docs):
    """A run of one query."""
    return {"q": {doc: float(len(docs) - at) for at, doc in enumerate(docs)}}


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("P@4", [1 / 4, 1 / 4]),
        ("R@4", [1 / 3, 1 / 3]),
        ("RR", [1 / 2, 0]),  # the first relevant result has it all
        ("AP", [1 / 2 / 3, 2 / 4 / 3]),
        ("DCG@4", [2 / np.log2(3), 1 / np.log2(5)]),
        ("Success@4", [1, 0]),
    ],
)
def test_each_document_adds_its_term(measure, expected):
    """Results x, a (grade 2), y, b (grade 1); c (grade 1) is not found."""
    found = evaluate({"q": {"a": 2, "b": 1, "c": 1}}, ranked("x", "a", "y", "b"), measures=[measure])
    parts, rest = parts_of(parse(measure), found.ranking)
    assert rest.tolist() == [0]
    assert parts.tolist() == pytest.approx([*expected, 0])


def test_effects_name_what_became_of_each_document():
    found = pair({"q": {"a": 1, "b": 1, "c": 1}}, ranked("a", "b", "x"), ranked("y", "a", "c", "b"), "P@3")
    assert found.queries == {}  # a and b, a and c: both 2/3
    found = pair({"q": {"a": 1, "b": 1, "c": 1}}, ranked("a", "b", "x"), ranked("y", "a", "c", "b"), "DCG@3")
    (cause,) = found.queries.values()
    discount = [1 / np.log2(rank + 1) for rank in (1, 2, 3)]
    assert {each.doc: (each.move, each.baseline_rank, each.candidate_rank) for each in cause.effects} == {
        "a": (Move.FELL, 1, 2),
        "b": (Move.LEFT, 2, 4),
        "c": (Move.ENTERED, None, 3),
    }
    assert {each.doc: each.effect for each in cause.effects} == pytest.approx(
        {"a": discount[1] - discount[0], "b": -discount[1], "c": discount[2]}
    )
    by_doc = {each.doc: each for each in cause.effects}
    assert by_doc["b"].overtaken_by == {"y": Known.UNJUDGED, "c": Known.RELEVANT}
    assert by_doc["c"].no_longer_before == {"b": Known.RELEVANT, "x": Known.UNJUDGED}


def test_an_identical_pair_has_no_cause():
    found = pair({"q": {"a": 1}}, ranked("x", "a"), ranked("x", "a"), "nDCG@10")
    assert (found.queries, found.traits, found.n_tried) == ({}, (), 0)


def test_a_measure_of_the_whole_list_is_refused_by_name():
    found = evaluate({"q": {"a": 1}}, ranked("a"), measures=["Judged@5"])
    with pytest.raises(UsageError, match="Judged@5 says how far"):
        parts_of(parse("Judged@5"), found.ranking)
    assert pair({"q": {"a": 1, "b": 1}}, ranked("a", "x"), ranked("x", "a"), "RankOfFirst").refused.startswith(
        "RankOfFirst"
    )


@pytest.mark.parametrize("values", [[0.01, 0.04, 0.03], [0.5], [0.001, 0.001, 0.9, 0.02], []])
def test_the_adjustment_is_that_of_statsmodels(values):
    expected = multipletests(values, method="fdr_by")[1].tolist() if values else []
    assert benjamini_yekutieli(values) == pytest.approx(expected)


def test_a_missing_p_value_is_not_counted():
    assert benjamini_yekutieli([0.01, None, 0.02]) == [0.03, None, 0.03]


def test_traits_of_a_result():
    hit = Hit(
        "d",
        title="Cat policies",
        fields={"type": "pdf", "date": "2024-05-01", "boost": 2, "draft": False, "text": "x" * 50},
    )
    found = described("cat policy rules", hit)
    assert found[Trait(TraitKind.VALUE, "type", "pdf")] == 1
    assert found[Trait(TraitKind.VALUE, "draft", "false")] == 1
    assert found[Trait(TraitKind.NUMBER, "boost")] == 2
    assert found[Trait(TraitKind.MATCH, "title")] == pytest.approx(1 / 3)  # cat
    assert found[Trait(TraitKind.OTHER_FORM)] == pytest.approx(1 / 3)  # policies
    assert found[Trait(TraitKind.NO_MATCH)] == pytest.approx(1 / 3)  # rules
    assert found[Trait(TraitKind.LENGTH, "text")] == 50
    assert found[Trait(TraitKind.DATE, "date")] == 1_714_521_600  # seconds from 1970 to 2024-05-01


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("policy", "policies", True),
        ("connected", "connection", True),
        ("cat", "cats", True),
        ("cat", "car", False),
        ("card", "cardiologist", False),
        ("house", "horse", False),
    ],
)
def test_forms_of_a_word_share_their_first_letters(word, other, expected):
    assert is_form(word, other) is is_form(other, word) is expected


def collected(name, lists):
    """A run with titles and types: results are (id, type)."""
    answers = {
        query: Answer(
            Outcome.ANSWERED, tuple(Hit(doc, title=f"title of {doc}", fields={"type": kind}) for doc, kind in hits)
        )
        for query, hits in lists.items()
    }
    return Run(name, answers)


def test_a_common_trait_of_what_came_up_is_found_over_all_queries():
    """In each of 8 queries a page was replaced by two PDF files."""
    queries = [f"q{at}" for at in range(8)]
    testset = TestSet("set", tuple(Query(q, "anything") for q in queries), {q: {f"{q}good": 1} for q in queries})
    before = collected("A", {q: [(f"{q}good", "page"), (f"{q}x", "page")] for q in queries})
    after = collected("B", {q: [(f"{q}p1", "pdf"), (f"{q}p2", "pdf"), (f"{q}good", "page")] for q in queries})
    found = causes_of(compare(*(evaluate(testset, run, measures=["RR"]) for run in (before, after))))
    (first, *_) = [each for each in found.traits if each.trait.value == "pdf"]
    assert (first.up, first.down, first.n_queries, first.n_same_way) == (1, 0, 8, 8)
    assert first.share == pytest.approx(1)
    assert first.p == pytest.approx(2 / 2**8)
    assert first.q is not None
    assert first.q <= 0.05
    assert found.queries["q0"].traits[0].trait == Trait(TraitKind.VALUE, "type", "pdf")


def test_traits_of_nothing_are_not_found():
    """On random sides at most one in twenty sets has any."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        sides = [
            Sides(
                str(at),
                1.0,
                *(
                    [
                        {Trait(TraitKind.NUMBER, f"f{field}"): float(rng.normal()) for field in range(10)}
                        for _ in range(3)
                    ]
                    for _ in range(2)
                ),
            )
            for at in range(30)
        ]
        found += bool(contrasts_of(sides)[0])
    assert found <= 10


def test_fewer_queries_than_a_sign_test_needs_are_not_tested():
    sides = [
        Sides(str(at), 1.0, [{Trait(TraitKind.NUMBER, "f"): 1.0}], [{Trait(TraitKind.NUMBER, "f"): 0.0}])
        for at in range(MIN_QUERIES - 1)
    ]
    assert contrasts_of(sides) == ((), 0)


def test_what_is_of_no_document_is_the_rest():
    """Utility: a relevant result counts 1, any other −1: one more result that is not judged costs 1."""
    found = pair({"q": {"a": 1}}, ranked("a"), ranked("a", "x"), "Utility")
    (cause,) = found.queries.values()
    assert (cause.difference, cause.effects, cause.rest) == (-1, (), -1)


def returned(name, lists, kinds):
    """A run whose results have a type."""
    answers = {
        query: Answer(Outcome.ANSWERED, tuple(Hit(doc, fields={"type": kinds[doc]}) for doc in docs))
        for query, docs in lists.items()
    }
    return Run(name, answers)


@pytest.mark.parametrize("has_common_type", [True, False])
def test_documents_that_the_candidate_never_returns_come_first(has_common_type):
    """12 documents, each the best of two queries, are returned by the baseline alone."""
    lost = [f"lost{at}" for at in range(12)]
    kinds = {doc: "pdf" if has_common_type or at % 2 else "page" for at, doc in enumerate(lost)}
    kinds |= dict.fromkeys([f"kept{at}" for at in range(24)], "page")
    queries = [f"q{at}" for at in range(24)]
    testset = TestSet("set", tuple(map(Query, queries)), {q: {lost[at // 2]: 1} for at, q in enumerate(queries)})
    before = returned("A", {q: [lost[at // 2], f"kept{at}"] for at, q in enumerate(queries)}, kinds)
    after = returned("B", {q: [f"kept{at}", f"kept{23 - at}"] for at, q in enumerate(queries)}, kinds)
    found = causes_of(compare(*(evaluate(testset, run, measures=["nDCG@10"]) for run in (before, after))))
    first = found.ordered[0]
    assert isinstance(first, OneSided)
    assert (first.only, first.n_docs, first.n_other, first.share) == (Side.BASELINE, 12, 0, 1.0)
    assert [trait.value for trait in first.common] == (["pdf"] if has_common_type else [])


def test_shorter_lists_are_no_missing_documents():
    queries = [f"q{at}" for at in range(24)]
    testset = TestSet("set", tuple(map(Query, queries)), {q: {"a": 1} for q in queries})
    docs = [f"d{at}" for at in range(9)]
    before = Run("A", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, ["a", *docs]))) for q in queries})
    after = Run("B", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, ["b", "a"]))) for q in queries})
    found = causes_of(compare(*(evaluate(testset, run, measures=["nDCG@10"]) for run in (before, after))))
    assert found.one_sided is None


def test_words_of_a_title_alone_are_not_missing_from_the_document():
    found = described("cat policy", Hit("d", title="Cats"))
    assert {trait.kind for trait in found} == {TraitKind.MATCH, TraitKind.LENGTH}

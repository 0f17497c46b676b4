"""Terms of scores: flattened, compared between systems, and the factors that were changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import compare, evaluate
from cranfield.evaluation.causes import causes_of
from cranfield.evaluation.result import SHOWN_TERMS, HitRecord, result_of
from cranfield.evaluation.score_terms import (
    MIN_QUERIES,
    TermChange,
    changed_terms,
    factor_of,
    factors_of,
    flatten,
    most_of,
    weight_changes,
)
from cranfield.evaluation.traits import SHARE, Trait, TraitKind, described
from cranfield.model import Answer, Explanation, Hit, Outcome, Query, Run, TestSet
from cranfield.model.results import from_jsonable, to_jsonable


def leaf(name, value):
    return Explanation(name, float(value))


def node(name, *children):
    return Explanation(name, sum(child.value for child in children), children)


def scored(title, body, *, boost=1.0, words=("grid",), docs=5):
    """A score of two fields: of each word its boost, its idf and, of the index, the number of documents."""
    parts = [
        Explanation(f"{field}:{word}", value * weight, (leaf("boost", weight), leaf("idf", value), leaf("N", docs)))
        for word in words
        for field, value, weight in (("title", title, boost), ("body", body, 1.0))
    ]
    return node("sum", *parts)


def run_of(name, *explanations):
    hits = ((Hit("a", each.value, explanation=each),) for each in explanations)
    return Run(name, {f"q{n}": Answer(Outcome.ANSWERED, hit) for n, hit in enumerate(hits)})


def test_a_second_part_of_a_name_has_a_path_of_its_own():
    twice = node("sum", node("title:grid", leaf("boost", 1)), node("title:grid", leaf("boost", 2)))
    assert flatten(twice) == {
        "score": 3,
        "title:grid": 1,
        "title:grid · boost": 1,
        "title:grid (2)": 2,
        "title:grid (2) · boost": 2,
    }
    assert flatten(None) == {}


def test_a_score_of_one_part_has_it_as_a_term():
    assert flatten(node("title:grid", leaf("boost", 2))) == {"score": 2, "title:grid": 2, "title:grid · boost": 2}


def test_terms_that_differ_between_two_systems():
    """idf .5 of the title at boost 1 and 3; the body is the same, and one part is of the candidate alone."""
    before, after = (flatten(scored(0.5, 0.25, boost=boost)) for boost in (1.0, 3.0))
    found = changed_terms(before, {**after, "body:grid · idf": 0.25 * (1 + 1e-7), "freshness": 0.1})
    assert found == (
        TermChange("score", 0.75, 1.75),
        TermChange("title:grid", 0.5, 1.5),
        TermChange("title:grid · boost", 1.0, 3.0),
        TermChange("freshness", None, 0.1),
    )
    assert [each.difference for each in found] == [1.0, 1.0, 2.0, None]
    assert changed_terms(before, before) == ()


def test_the_deepest_terms_are_left_out_first():
    terms = flatten(scored(0.5, 0.25))
    assert list(most_of(terms, 3)) == ["score", "title:grid", "body:grid"]
    assert most_of(terms, 100) == terms


@pytest.mark.parametrize(
    ("path", "factor"),
    [
        (("title:grid", "boost"), "title · boost"),
        (('title.en:"grid layout" (2)', "tf", "k1"), "title.en · tf · k1"),
        (("field 0:grid", "idf"), "field 0 · idf"),
        (("bm25(title)",), "bm25(title)"),
        (("ConstantScore(type:pdf)",), "ConstantScore(type:pdf)"),
    ],
)
def test_a_factor_has_no_words_of_the_query(path, factor):
    assert factor_of(path) == factor


def test_the_weight_that_was_changed_is_found():
    baseline = run_of("A", scored(0.5, 0.25), scored(0.7, 0.1, words=("grid", "row")))
    candidate = run_of("B", scored(0.5, 0.25, boost=5.0), scored(0.2, 0.1, boost=5.0))
    (found,) = weight_changes(baseline, candidate)
    assert (found.factor, found.name, found.of, found.baseline, found.candidate, found.is_setting) == (
        "title · boost", "boost", "title", 1.0, 5.0, True,
    )  # fmt: skip
    assert weight_changes(baseline, baseline) == ()


def test_a_factor_that_varies_is_no_weight():
    """A boost of each query is not a weight of the system."""
    baseline = run_of("A", scored(0.5, 0.25, boost=1.0), scored(0.5, 0.25, boost=2.0))
    candidate = run_of("B", scored(0.5, 0.25, boost=3.0), scored(0.5, 0.25, boost=4.0))
    assert weight_changes(baseline, candidate) == ()


@pytest.mark.parametrize("n", [MIN_QUERIES - 1, MIN_QUERIES])
def test_a_number_of_the_index_needs_several_queries(n):
    runs = [run_of("r", *[scored(0.1 * q, 0.3 * q, docs=docs) for q in range(1, n + 1)]) for docs in (5, 4)]
    found = [(each.factor, each.baseline, each.candidate, each.is_setting) for each in weight_changes(*runs)]
    expected = [("title · N", 5.0, 4.0, False), ("body · N", 5.0, 4.0, False)]
    assert found == (expected if n == MIN_QUERIES else [])


def test_a_field_that_one_system_alone_searches():
    without = [node("sum", node("title:grid", leaf("boost", 1), leaf("idf", n))) for n in range(1, 4)]
    (found,) = weight_changes(run_of("A", *without), run_of("B", *[scored(0.1 * n, 0.2) for n in range(1, 4)]))
    assert (found.factor, found.baseline, found.candidate) == ("body · boost", None, 1.0)


def test_the_results_at_the_top_of_all_queries_are_searched(monkeypatch):
    """Of three queries with two results each, the first results are three."""
    monkeypatch.setattr("cranfield.evaluation.score_terms.MAX_RESULTS", 3)

    def run(name, boost):
        hits = tuple(
            Hit(f"d{n}", explanation=scored(0.5, 0.25, boost=times)) for n, times in ((1, boost), (2, 9 * boost))
        )
        return Run(name, {f"q{n}": Answer(Outcome.ANSWERED, hits) for n in range(3)})

    (found,) = weight_changes(run("A", 1.0), run("B", 2.0))
    assert (found.factor, found.baseline, found.candidate, found.n_queries) == ("title · boost", 1.0, 2.0, 3)


def test_runs_without_explanations_have_no_weights():
    plain = Run("A", {"q0": Answer(Outcome.ANSWERED, (Hit("a", 1.0),))})
    assert weight_changes(plain, run_of("B", scored(1, 1))) == ()


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=3, max_size=8), st.sampled_from([1, 2, 0.5]))
def test_settings_that_are_the_same_are_never_named(numbers, boost):
    first, second = (
        run_of(name, *[scored(a * times, b, boost=boost) for a, b in numbers]) for name, times in (("A", 1), ("B", 1.7))
    )
    assert [each for each in weight_changes(first, second) if each.is_setting] == []


def test_traits_of_an_explanation_are_shares_and_numbers():
    """Of 1.75 in all the title gives 1.5, at boost 3 of idf .5; boosts and numbers of the index are no traits of a document."""
    tree = scored(0.5, 0.25, boost=3.0)
    shares, numbers = factors_of(tree)
    assert shares == pytest.approx({"title": 1.5 / 1.75, "body": 0.25 / 1.75})
    assert numbers == {"title · idf": 0.5, "body · idf": 0.25}
    found = described("grid", Hit("a", explanation=tree))
    assert found[Trait(TraitKind.EXPLANATION, "title", SHARE)] == pytest.approx(1.5 / 1.75)
    assert found[Trait(TraitKind.EXPLANATION, "body · idf")] == 0.25
    assert len(found) == 4
    features = described("grid", Hit("a", explanation=Explanation("features", None, (leaf("bm25(title)", 2.5),))))
    assert features == {Trait(TraitKind.EXPLANATION, "bm25(title)"): 2.5}


def pair_of(boost):
    """Document a has the words in the body, b in the title: at boost 5 the title wins."""
    testset = TestSet(
        "t",
        queries=tuple(Query(f"q{n}", "grid") for n in range(8)),
        grades={f"q{n}": {"a": 1, "b": 0} for n in range(8)},
    )

    def answer(n, of_title):
        hits = [
            Hit(doc, tree.value, explanation=tree)
            for doc, tree in (
                ("a", scored(0.1, 1 + n / 10, boost=of_title)),
                ("b", scored(1 + n / 10, 0.05, boost=of_title)),
            )
        ]
        return Answer(Outcome.ANSWERED, tuple(sorted(hits, key=lambda hit: -hit.score)))

    runs = (Run(name, {f"q{n}": answer(n, value) for n in range(8)}) for name, value in (("A", 1.0), ("B", boost)))
    return compare(*(evaluate(testset, run, measures=["RR"]) for run in runs))


def test_the_changed_weight_is_the_first_cause():
    found = causes_of(pair_of(5.0))
    assert found.ordered[0] == found.weights[0]
    assert (found.weights[0].factor, found.weights[0].candidate) == ("title · boost", 5.0)
    assert {each.trait.field for each in found.traits} >= {"title", "body"}
    assert causes_of(pair_of(1.0)).ordered == ()


def test_a_record_has_terms_only_where_there_are_some():
    found = result_of(pair_of(5.0), with_answers=True)
    hit = found.queries["q0"].sides[1].hits[0]
    assert hit.terms == flatten(scored(1.0, 0.05, boost=5.0))
    written = to_jsonable(hit)
    assert written["terms"]["title:grid · boost"] == 5.0
    assert "n_terms_cut" not in written
    assert from_jsonable(HitRecord, written) == hit
    plain = to_jsonable(HitRecord(1, "a", None, "judged", 1, 1.0, "a", credited=True, span=None))
    assert plain.keys().isdisjoint({"terms", "n_terms_cut"})


def test_a_record_counts_the_terms_that_it_leaves_out():
    tree = Explanation("sum", 1.0, tuple(leaf(f"f{n}", n) for n in range(100)), cut=7)
    run = Run("A", {"q": Answer(Outcome.ANSWERED, (Hit("a", 1.0, explanation=tree),))})
    found = result_of(evaluate({"q": {"a": 1}}, run), with_answers=True)
    hit = found.queries["q"].sides[0].hits[0]
    assert (len(hit.terms), hit.n_terms_cut) == (SHOWN_TERMS, 101 - SHOWN_TERMS + 7)

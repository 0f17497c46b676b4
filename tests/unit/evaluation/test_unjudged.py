"""What judgments of the unjudged results can make of a verdict, and that every form of a report has the same number."""

from __future__ import annotations

import html
import itertools
import json
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cranfield import Query, TestSet, compare, compare_many, evaluate
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.values import Unjudged, UnjudgedKind
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.pools.holes import find_holes
from cranfield.reporting import comparison_document, render

few = settings(max_examples=min(8, settings().max_examples // 16))


def compared(judgments, first, second, *, measure="P@1", **options):
    testset = TestSet("set", tuple(map(Query, judgments)), judgments)
    sides = (evaluate(testset, run, measures=measure, name=name) for name, run in (("A", first), ("B", second)))
    return compare(*sides, **options)


def clear_pair(n=12, *, unjudged=12, **options):
    """B has the relevant document first, A second, after a result that is unjudged in the first `unjudged` queries."""
    judgments = {f"q{i}": {"hit": 1} | ({} if i < unjudged else {"x": 0}) for i in range(n)}
    runs = ({query: ["x", "hit"] for query in judgments}, {query: ["hit"] for query in judgments})
    return compared(judgments, *runs, **options)


def test_the_fewest_judgments_that_turn_the_verdict_are_those_of_holes():
    comparison = clear_pair()
    # P@1 of each query: A 0, B 1; with x relevant A 1. 12 queries differ, and k of them no longer with k judgments.
    # 2 of the 2^(12 - k) sign patterns are as extreme: 2 / 2^6 = .031 with k = 6, and 2 / 2^5 = .0625 with k = 7.
    assert comparison.unjudged == Unjudged(
        UnjudgedKind.CAN_TURN,
        n_results=12,
        n_queries=12,
        n_judgments=7,
        verdict=VerdictCode.NOT_SIGNIFICANT,
        command="cranfield holes A B --testset set -m P@1 --top 7 --out holes.pool.json",
    )
    assert comparison.unjudged.sentence == (
        "7 judgments could change it to no significant difference (12 unjudged results in 12 queries)"
    )
    assert find_holes(comparison).fewest == ((VerdictCode.NOT_SIGNIFICANT, 7),)


def test_a_verdict_holds_where_no_grades_bring_another():
    comparison = clear_pair(unjudged=6)  # 6 of 12 queries still differ: p = 2 / 2^6 = .031
    assert comparison.unjudged == Unjudged(UnjudgedKind.HOLDS, n_results=6, n_queries=6)
    assert comparison.unjudged.sentence == (
        "the verdict is the same for any judgments of the unjudged results (6 unjudged results in 6 queries)"
    )
    assert not comparison.unjudged.is_doubt
    assert find_holes(comparison).is_final


def test_nothing_stands_beside_a_verdict_without_unjudged_results_or_that_does_not_count():
    assert clear_pair(unjudged=0).unjudged is None
    assert clear_pair(limits=Limits(min_judged_share=0.99)).unjudged is None


def test_only_for_the_permutation_test_it_is_proved_that_a_verdict_holds():
    found = clear_pair(unjudged=1, test="wilcoxon").unjudged
    assert (found.kind, found.n_judgments) == (UnjudgedKind.UNKNOWN, None)
    assert found.sentence == (
        "no judgments were found that change the verdict, but they cannot be ruled out (1 unjudged result in 1 query)"
    )


def test_the_command_has_what_was_declared():
    command = clear_pair(test="t", alpha=0.01, margin=0.25).unjudged.command
    assert command.startswith("cranfield holes A B --testset set -m P@1 --test t --margin 0.25 --alpha 0.01 --top ")


def test_with_classes_it_is_about_the_mean_over_all_queries():
    judgments = {f"q{i}": {"hit": 1} for i in range(12)}
    queries = tuple(Query(query, "", {"kind": "ab"[n % 2]}) for n, query in enumerate(judgments))
    testset = TestSet("set", queries, judgments)
    runs = ({query: ["x", "hit"] for query in judgments}, {query: ["hit"] for query in judgments})
    comparison = compare(*(evaluate(testset, run, measures="P@1") for run in runs), strata="kind")
    assert comparison.by_class is not None
    assert comparison.unjudged.sentence.startswith("over all queries: 7 judgments could change it to no significant")


@pytest.mark.parametrize(("judged", "is_low"), [(4, True), (5, False)])
def test_a_measure_without_bounds_has_a_caveat_under_the_declared_judged_share(judged, is_low):
    # Judged@10 of 10 results: 4 / 10 = 40 % is under 50 %, and 5 / 10 is not.
    judgments = {f"q{i}": {f"d{n}": n % 2 for n in range(judged)} for i in range(8)}
    lists = {query: [f"d{n}" for n in range(10)] for query in judgments}
    other = {query: hits[::-1] for query, hits in lists.items()}
    comparison = compared(judgments, lists, other, measure="Bpref")
    found = comparison.unjudged
    assert found.kind is UnjudgedKind.NO_BOUND
    if is_low:
        assert found.sentence == (
            "most results are unjudged (A: Judged@10 40.0 % and B: Judged@10 40.0 %, under 50.0 %), and their effect "
            "on the verdict is not bounded: no method for the difference of two lists of Bpref"
        )
        settings_of = {"unjudged-results": 0.3}
        assert not compare(*comparison.evaluations, limits=Limits(evidence=settings_of)).unjudged.sentence
        assert not compare(
            *comparison.evaluations, limits=Limits(evidence={"unjudged-results": "off"})
        ).unjudged.sentence
    else:
        assert found.sentence == ""


def test_a_cutoff_deeper_than_what_reports_show_has_bounds():
    judgments = {f"q{i}": {"hit": 1} for i in range(8)}
    lists = {query: [*(f"d{n}" for n in range(14)), "hit"] for query in judgments}
    found = compared(judgments, lists, {query: ["hit"] for query in judgments}, measure="nDCG@15").unjudged
    assert (found.kind, found.n_results) == (UnjudgedKind.CAN_TURN, 8 * 14)


def test_every_form_of_a_report_has_the_same_sentence():
    comparison = clear_pair()
    document, sentence = comparison_document(comparison), comparison.unjudged.sentence
    forms = {form: render(document, form) for form in ("text", "brief", "markdown", "html")}
    forms["card"] = comparison._repr_html_()
    for form, text in forms.items():
        plain = " ".join(html.unescape(re.sub(r"<[^>]+>|\x1b\[\d+m", " ", text)).split())
        assert sentence in plain.replace(" ,", ","), form
    found = json.loads(render(document, "json"))["unjudged"]
    assert (
        found
        | {
            "kind": "can_turn",
            "n_results": 12,
            "n_queries": 12,
            "n_judgments": 7,
            "verdict": "not_significant",
            "sentence": sentence,
        }
        == found
    )


cases = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abc"), st.integers(0, 1), min_size=1, max_size=2),
        st.permutations("abc"),
        st.permutations("abc"),
    ),
    min_size=3,
    max_size=3,
)


@given(queries=cases)
@few
def test_what_it_says_is_true_of_every_assignment_of_small_cases(queries):
    judgments = {f"q{n}": grades for n, (grades, _, _) in enumerate(queries)}
    first, second = ({f"q{n}": list(case[side][:2]) for n, case in enumerate(queries)} for side in (1, 2))
    found = compared(judgments, first, second, measure="nDCG@2", alpha=0.6)
    holes = [
        (query, doc) for query in judgments for doc in "abc"
        if doc not in judgments[query] and doc in (*first[query], *second[query])
    ]  # fmt: skip
    verdicts = set()
    for chosen in itertools.product((0, 1), repeat=len(holes)):
        full = {query: dict(grades) for query, grades in judgments.items()}
        for (query, doc), grade in zip(holes, chosen, strict=True):
            full[query][doc] = grade
        verdicts.add(compared(full, first, second, measure="nDCG@2", alpha=0.6).verdict.code)
    beside = found.unjudged
    if not holes:
        assert beside is None
    elif beside.kind is UnjudgedKind.HOLDS:
        assert verdicts == {found.verdict.code}
    elif beside.kind is UnjudgedKind.CAN_TURN:
        assert beside.verdict in verdicts - {found.verdict.code}


def three_systems(n_judged_relevant=0, n=14):
    """B has the relevant document first; A and C second, after results that are unjudged or, in the first queries, relevant."""
    judgments = {f"q{i}": {"hit": 1} | ({"x": 1} if i < n_judged_relevant else {}) for i in range(n)}
    testset = TestSet("set", tuple(map(Query, judgments)), judgments)
    runs = {"A": ["x", "hit"], "B": ["hit"], "C": ["y", "hit"]}
    sides = [
        evaluate(testset, dict.fromkeys(judgments, answer), measures="P@1", name=name) for name, answer in runs.items()
    ]
    return compare_many(sides, test="permutation")


def test_of_three_systems_the_judgments_are_those_with_which_others_are_best():
    many = three_systems()
    assert many.verdict.best == ("B",)
    k = many.unjudged.n_judgments
    assert many.unjudged == Unjudged(
        UnjudgedKind.CAN_TURN,
        n_results=28,
        n_queries=14,
        n_judgments=k,
        best=("B", "A"),
        command=f"cranfield holes B A --testset set -m P@1 --top {k} --out holes.pool.json",
    )
    # Judged so, and tested anew, A is among the best; with fewer it is not.
    assert set(three_systems(k).verdict.best) == {"B", "A"}
    assert three_systems(k - 1).verdict.best == ("B",)
    assert many.unjudged.sentence == (
        f"{k} judgments could change it: then B and A are best (28 unjudged results in 14 queries)"
    )


def test_of_three_systems_nothing_stands_without_unjudged_results_or_where_too_much_would_be_tested(monkeypatch):
    judgments = {f"q{i}": {"hit": 1} for i in range(8)}
    testset = TestSet("set", tuple(map(Query, judgments)), judgments)
    sides = [evaluate(testset, {query: ["hit"] for query in judgments}, measures="P@1", name=name) for name in "ABC"]
    assert compare_many(sides).unjudged is None
    monkeypatch.setattr("cranfield.evaluation.many.MAX_VALUES", 41)
    assert three_systems().unjudged is None  # 14 queries, 3 pairs


@pytest.mark.parametrize("form", ["text", "markdown", "html", "brief", "json"])
def test_every_form_of_a_report_on_three_systems_has_the_sentence(form):
    many = three_systems()
    document = comparison_document(many)
    text = html.unescape(re.sub(r"<[^>]+>", "", render(document, form)))
    assert many.unjudged.sentence in " ".join(text.split())


@few
@given(st.data())
def test_what_is_said_of_three_systems_is_so_when_it_is_judged(data):
    """Some set of so many judgments, scored and tested anew, brings these best systems."""
    n = data.draw(st.integers(5, 6), label="queries")
    answers = st.lists(st.sampled_from(["hit", "x", "y"]), min_size=1, max_size=2, unique=True)
    judgments = {f"q{i}": {"hit": 1} for i in range(n)}
    runs = {name: {query: data.draw(answers) for query in judgments} for name in "ABC"}

    def compared_with(more):
        judged = {query: grades | more.get(query, {}) for query, grades in judgments.items()}
        testset = TestSet("set", tuple(map(Query, judged)), judged)
        sides = [evaluate(testset, runs[name], measures="P@1", name=name) for name in runs]
        return compare_many(sides, alpha=0.2)

    many = compared_with({})
    found = many.unjudged
    assume(found is not None and found.kind is UnjudgedKind.CAN_TURN)
    holes = sorted(
        {(query, side[query][0]) for side in runs.values() for query in judgments if side[query][0] != "hit"}
    )

    def turns(some):
        more = {query: {doc: 1 for other, doc in some if other == query} for query, _ in some}
        verdict = compared_with(more).verdict
        if found.verdict is not None:
            return verdict.code is found.verdict
        return set(verdict.best) == set(found.best)

    assert any(map(turns, itertools.combinations(holes, found.n_judgments)))


def test_of_three_systems_judgments_of_one_query_need_not_add_up():
    """A finds something in all 30 queries, B and C in one; else each has five unjudged results, any of which is enough."""
    judgments = {f"q{i}": {"hit": 1} for i in range(30)}
    testset = TestSet("set", tuple(map(Query, judgments)), judgments)
    answers = {"A": ["hit"], "B": list("abcde"), "C": list("fghij")}
    runs = {name: dict.fromkeys(judgments, some) | {"q29": ["hit"]} for name, some in answers.items()}

    def compared_with(n_queries: int):
        more = {query: {**judgments[query], **dict.fromkeys("abcde", 1)} for query in list(judgments)[:n_queries]}
        judged = TestSet("set", testset.queries, judgments | more)
        return compare_many([evaluate(judged, run, measures="Success@5", name=name) for name, run in runs.items()])

    found = compared_with(0).unjudged
    assert (found.kind, set(found.best)) == (UnjudgedKind.CAN_TURN, {"A", "B"})
    # The results of a query stand one after the other, so that n judgments are those of n / 5 queries, rounded up.
    queries = -(-found.n_judgments // 5)
    assert [set(compared_with(n).verdict.best) for n in (queries, queries - 1)] == [{"A", "B"}, {"A"}]


def test_of_three_systems_that_no_longer_differ_the_sentence_says_so():
    """B alone is better, on 14 queries; with x and y relevant in enough of them nothing is significant."""
    judgments = {f"q{i}": {"hit": 1} for i in range(14)}
    testset = TestSet("set", tuple(map(Query, judgments)), judgments)
    answers = {"A": ["x", "hit"], "B": ["hit"], "C": ["x", "hit"]}
    sides = [
        evaluate(testset, dict.fromkeys(judgments, some), measures="P@1", name=name) for name, some in answers.items()
    ]
    found = compare_many(sides).unjudged
    assert (found.verdict, found.best) == (VerdictCode.NOT_SIGNIFICANT, ())
    assert found.sentence.startswith(f"{found.n_judgments} judgments could change it to no significant difference (")

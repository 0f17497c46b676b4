"""Pools: the union, its samples, budgets, previews, files and qrels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError, UsageError
from cranfield.books.pool_file import Pool
from cranfield.books.settings import SCALES, scale_of
from cranfield.judging.pools.build import BuiltPool, PoolRequest, SampledRanks, build_pool, by_usefulness, parse_samples
from cranfield.judging.pools.pool_io import pool_qrels, read_pool, write_pool
from cranfield.judging.pools.results import SystemResults, only_by, union, with_names
from cranfield.judging.pools.summary import DocumentsPerQuery, summarise_pool
from cranfield.model import Answer, Hit, Meta, Outcome, Pattern, Query, Run, TestSet

Lists = Mapping[str, Sequence[str]]


def system(name: str, lists: Lists, depth: int | None = None) -> SystemResults:
    answers = {query: Answer(Outcome.ANSWERED, tuple(map(Hit, docs))) for query, docs in lists.items()}
    return SystemResults(name, Run(name, answers, depth=depth))


def made_set(*queries: str, **fields: Any) -> TestSet:
    return TestSet("t", tuple(Query(query, f"text of {query}") for query in queries), **fields)


A = system("A", {"q1": ["a", "b", "c", "d"], "q2": ["x", "y"]})
B = system("B", {"q1": ["b", "e", "a", "f"], "q2": ["y", "z"]})
SET = made_set("q1", "q2", grades={"q1": {"a": 2, "f": -1}, "q2": {"y": 0}})


def docs(built: BuiltPool | Pool, query: str = "q1") -> list[str]:
    pool = built.pool if isinstance(built, BuiltPool) else built
    return [item.doc for item in pool.items if item.query == query]


RUNS = st.lists(
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]), st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), max_size=3
    ),
    min_size=1,
    max_size=4,
)


@given(RUNS, st.integers(1, 9))
def test_a_pool_is_the_union_of_the_first_results(lists: list[Lists], depth: int) -> None:
    systems = [system(str(n), each) for n, each in enumerate(lists)]
    queries = ("q1", "q2", "q3")
    wanted = {(query, doc) for each in lists for query, found in each.items() for doc in found[:depth]}
    found = union(systems, queries, depth, {})
    assert {(each.query_id, each.doc_id) for each in found} == wanted
    assert len(found) == len(wanted)
    for each in found:
        ranks = {
            str(n): lists[n][each.query_id].index(each.doc_id) + 1
            for n in range(len(lists))
            if each.doc_id in lists[n].get(each.query_id, ())[:depth]
        }
        assert each.ranks == ranks


@given(RUNS, st.integers(1, 9))
def test_unique_contributions_are_disjoint_and_shared_documents_are_the_rest(lists: list[Lists], depth: int) -> None:
    systems = [system(str(n), each) for n, each in enumerate(lists)]
    found = union(systems, ("q1", "q2", "q3"), depth, {})
    unique = [{(each.query_id, each.doc_id) for each in only_by(found, one.name, depth)} for one in systems]
    assert sum(map(len, unique)) == len(set().union(*unique))
    shared = {(each.query_id, each.doc_id) for each in found if len(each.ranks) > 1}
    assert set().union(*unique) | shared == {(each.query_id, each.doc_id) for each in found}
    assert not set().union(*unique) & shared


def test_what_is_judged_is_left_out_and_what_is_pooled_only_stays() -> None:
    built = build_pool([A, B], SET, PoolRequest(4))
    assert docs(built) == ["b", "c", "d", "e", "f"]  # a is judged; f has a grade under 0: in the pool, not judged
    assert docs(built, "q2") == ["x", "z"]  # y is judged 0
    assert built.pool.n_left_out == 2


def test_judged_documents_are_carried_over_on_request() -> None:
    built = build_pool([A, B], SET, PoolRequest(4, include_judged=True))
    assert {(item.query, item.doc): item.judged for item in built.pool.items if item.judged is not None} == {
        ("q1", "a"): 2.0,
        ("q2", "y"): 0.0,
    }
    assert built.pool.n_left_out == 0
    summary = summarise_pool(built)
    assert (summary.n_to_judge, summary.n_carried) == (7, 2)


def test_a_pool_does_not_depend_on_the_order_of_the_runs() -> None:
    one, other = build_pool([A, B], SET, PoolRequest(3)).pool, build_pool([B, A], SET, PoolRequest(3)).pool
    assert one.items == other.items
    assert [item.doc for item in one.items] == ["b", "c", "e", "x", "z"]


def test_the_first_of_a_repeated_result_counts_and_failed_answers_give_nothing() -> None:
    failed = Answer(Outcome.TIMEOUT, (Hit("late"),))
    run = Run("r", {"q1": Answer(Outcome.ANSWERED, (Hit("a"), Hit("a"), Hit("b"))), "q2": failed}, depth=2)
    built = build_pool([SystemResults("r", run)], None, PoolRequest(5))
    assert [(item.doc, item.runs) for item in built.pool.items] == [("a", {"r": 1}), ("b", {"r": 2})]


def test_queries_are_shown_as_the_test_set_has_them() -> None:
    query = Query("q1", "socks", {"kind": "head"}, need="warm ones", notes="no hats")
    (pooled,) = build_pool([A], TestSet("t", (query,)), PoolRequest(1)).pool.queries
    assert pooled.model_dump() == {
        "id": "q1",
        "text": "socks",
        "need": "warm ones",
        "notes": "no hats",
        "strata": {"kind": "head"},
    }


def test_titles_and_spans_are_fields_of_a_document_the_first_run_wins() -> None:
    one = Run("one", {"q": Answer(Outcome.ANSWERED, (Hit("d", title="T\0"), Hit("e", span="1-2")))})
    two = Run("two", {"q": Answer(Outcome.ANSWERED, (Hit("d", title="other", span="3"),))})
    built = build_pool([SystemResults("one", one), SystemResults("two", two)], None, PoolRequest(2))
    assert [item.fields for item in built.pool.items] == [{"title": "T\ufffd", "span": "3"}, {"span": "1-2"}]


def test_a_sample_takes_its_share_of_each_query_and_says_the_probability() -> None:
    lists = {"q1": [f"d{n:02}" for n in range(30)], "q2": [f"d{n:02}" for n in range(12)]}
    built = build_pool([system("A", lists)], None, PoolRequest(10, (SampledRanks(11, 30, 0.3),)))
    assert built.pool.method == "stratified"
    by_stratum = Counter((item.query, item.stratum, item.inclusion) for item in built.pool.items)
    assert by_stratum == {
        ("q1", "1-10", 1.0): 10,
        ("q1", "11-30", 6 / 20): 6,
        ("q2", "1-10", 1.0): 10,
        ("q2", "11-30", 1 / 2): 1,  # .3 of 2 rounds to 1
    }
    summary = summarise_pool(built)
    assert [(each.ranks, each.n_open, each.n_drawn, each.least, each.most) for each in summary.strata] == [
        ("1-10", 20, 20, 1.0, 1.0),
        ("11-30", 22, 7, 0.3, 0.5),
    ]


def test_judged_documents_are_no_part_of_the_frame_of_a_sample() -> None:
    lists = {"q1": [f"d{n}" for n in range(8)]}
    judged = made_set("q1", grades={"q1": {"d4": 1, "d5": 1}})
    for include in (False, True):
        request = PoolRequest(4, (SampledRanks(5, 8, 0.5),), include_judged=include)
        pool = build_pool([system("A", lists)], judged, request).pool
        drawn = [item for item in pool.items if item.stratum == "5-8" and item.judged is None]
        assert [(item.doc in {"d6", "d7"}, item.inclusion) for item in drawn] == [(True, 1 / 2)]
        assert [item.inclusion for item in pool.items if item.judged is not None] == ([1.0, 1.0] if include else [])


@pytest.mark.parametrize("n", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_inclusion_probabilities_are_the_frequencies_over_seeds(n: int) -> None:
    lists = {"q1": [f"d{n}" for n in range(9)]}
    ranges = (SampledRanks(3, 6, 0.5), SampledRanks(7, 9, 0.4))
    drawn: Counter[str] = Counter()
    stated: dict[str, float] = {}
    for seed in range(n):
        for item in build_pool([system("A", lists)], None, PoolRequest(2, ranges, seed=seed)).pool.items:
            drawn[item.doc] += 1
            stated[item.doc] = item.inclusion
    assert stated == {f"d{n}": share for n, share in enumerate([1.0] * 2 + [0.5] * 4 + [1 / 3] * 3)}
    for doc, share in stated.items():
        deviation = (share * (1 - share) / n) ** 0.5
        assert abs(drawn[doc] / n - share) <= 4.5 * deviation, doc


def test_a_sample_is_the_same_whatever_the_order_of_runs_and_another_for_another_seed() -> None:
    lists = {"q1": [f"d{n}" for n in range(40)]}
    turned = {"q1": lists["q1"][::-1]}
    systems = [system("A", lists), system("B", turned)]
    request = PoolRequest(5, (SampledRanks(6, 20, 0.5),))
    one, other = (build_pool(order, None, request).pool for order in (systems, systems[::-1]))
    assert one.items == other.items
    assert one.items != build_pool(systems, None, replace(request, seed=1)).pool.items


def test_a_budget_goes_rank_by_rank_through_systems_and_queries() -> None:
    found = union([A, B], ("q1", "q2"), 4, {})
    order = [(each.query_id, each.doc_id) for each in by_usefulness(found, 0)]
    assert set(order[:3]) == {("q1", "a"), ("q1", "b"), ("q2", "y")}  # rank 1 of a run, and returned by both
    assert order[3] == ("q2", "x")  # rank 1 of one run
    assert set(order[4:6]) == {("q1", "e"), ("q2", "z")}  # rank 2
    assert [build_pool([A, B], None, PoolRequest(4, budget=n)).pool.complete_to for n in (1, 4, 5, 6, 9)] == [
        0,
        1,
        1,
        2,
        4,
    ]
    built = build_pool([A, B], None, PoolRequest(4, budget=4))
    assert built.pool.method == "budget"
    assert summarise_pool(built).notes[0].startswith("chosen by budget: complete to rank 1 of 4;")


def test_a_budget_spends_nothing_on_what_is_judged() -> None:
    pool = build_pool([A, B], SET, PoolRequest(4, budget=2, include_judged=True)).pool
    assert Counter(item.judged is None for item in pool.items) == {True: 2, False: 2}
    assert {(item.query, item.doc) for item in pool.items if item.judged is None} == {("q1", "b"), ("q2", "x")}


def test_a_preview_counts_overlap_unique_contributions_and_cost() -> None:
    summary = summarise_pool(build_pool([A, B], SET, PoolRequest(2)), raters=2, seconds=30)
    # q1: a, b of A, b, e of B; q2: x, y of A, y, z of B. Judged: a, y.
    assert summary.shared == ((4, 2), (2, 4))
    assert [(each.name, each.n_found, each.n_only, each.n_only_open) for each in summary.systems] == [
        ("A", 4, 2, 1),
        ("B", 4, 2, 2),
    ]
    assert (summary.n_candidates, summary.n_to_judge, summary.n_left_out) == (6, 4, 2)
    assert summary.per_query == DocumentsPerQuery(2, 2, 2)
    assert (summary.cost.n_judgments, summary.cost.seconds) == (8, 240)


def test_a_query_with_all_results_judged_counts_as_0_to_judge() -> None:
    judged = made_set("q1", "q2", "q3", grades={"q2": {"x": 1, "y": 1}})
    built = build_pool([A], judged, PoolRequest(2))
    assert [query.id for query in built.pool.queries] == ["q1"]
    summary = summarise_pool(built)
    assert summary.per_query == DocumentsPerQuery(0, 1, 2)
    assert "1 query without a result in any run: q3" in summary.notes


def test_notes_name_what_a_rater_could_not_judge() -> None:
    bare = TestSet("t", (Query("q1"), Query("q2", "two")))
    same = system("C", {"q1": ["a"], "q2": ["x"], "extra": ["z"]})
    notes = summarise_pool(build_pool([same, replace(same, name="D")], bare, PoolRequest(2))).notes
    assert notes == (
        "C: at most 1 result per query; ranks to 2 requested",
        "D: at most 1 result per query; ranks to 2 requested",
        "C and D have the same results, so neither has a unique contribution",
        "in the runs, but not in the test set, left out: 1 query (extra)",
        "1 query without a text, which raters cannot judge: q1",
    )


def test_what_a_rule_grades_is_in_the_pool_and_not_to_be_judged() -> None:
    prefilled = {("q1", "a"): 2.0, ("q1", "e"): 1.0}
    for budget in (None, 9):
        built = build_pool([A, B], made_set("q1"), PoolRequest(3, budget=budget), prefilled)
        assert [(item.doc, item.prefilled) for item in built.pool.items] == [
            ("a", 2.0),
            ("b", None),
            ("c", None),
            ("e", 1.0),
        ]
        summary = summarise_pool(built)
        assert (summary.n_to_judge, summary.n_prefilled, summary.n_carried, built.pool.complete_to) == (2, 2, 0, 3)
        assert [each.n_only_open for each in summary.systems] == [1, 0]  # c of A; e of B is graded


def request_problems(**fields: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        PoolRequest(**fields)
    return [problem.message for problem in caught.value.problems]


def test_every_problem_of_a_request_is_named_at_once() -> None:
    samples = (SampledRanks(3, 9, 0.5), SampledRanks(8, 12, 0.5))
    assert request_problems(depth=4, budget=0, samples=samples, name=" ") == [
        "the budget is 0",
        "{sample} and {budget} exclude each other",
        "the range 3-9 of a sample",
        "the range 8-12 of a sample",
        "the pool has no name",
    ]
    assert request_problems(depth=0) == ["the depth of the pool is 0"]


@pytest.mark.parametrize("text", ["x", "11-50", "11-50:30", "11:30%", "50-11:30%", "0-5:30%", "11-50:0%", "11-50:101%"])
def test_a_bad_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_samples([text])


def test_ranges_are_read_and_all_bad_ones_named() -> None:
    assert parse_samples(["11-50:30%", " 51 - 100 : 12.5 % "]) == (
        SampledRanks(11, 50, 0.3),
        SampledRanks(51, 100, 0.125),
    )
    with pytest.raises(UsageError) as caught:
        parse_samples(["x", "1-2:50%", "y"])
    assert len(caught.value.problems) == 2


def test_runs_get_names_of_their_own() -> None:
    one, two = Run("bm25", {}), Run("bm25", {})
    assert [each.name for each in with_names([("", "old", one, ""), ("", "new", two, "")])] == ["old", "new"]
    assert [each.name for each in with_names([("mine", "old", one, ""), ("", "new", two, "")])] == ["mine", "bm25"]
    with pytest.raises(UsageError, match="two runs are called 'bm25'"):
        with_names([("bm25", "old", one, ""), ("bm25", "new", two, "")])


@pytest.mark.parametrize("doc", ["\udcff", "a\0b"])
def test_ids_that_no_file_or_database_can_hold_are_refused(doc: str) -> None:
    with pytest.raises(UsageError, match="1 document whose id is not UTF-8 text, or contains NUL"):
        build_pool([system("A", {"q": [doc]})], None, PoolRequest(1))


def test_there_must_be_a_run_with_a_result_of_the_test_set() -> None:
    with pytest.raises(UsageError, match="no run to pool"):
        build_pool([], None, PoolRequest(1))
    with pytest.raises(UsageError, match="no result for a query of the test set; expected ids such as 'q9', got 'q1'"):
        build_pool([A], made_set("q9"), PoolRequest(1))
    with pytest.raises(UsageError) as caught:
        summarise_pool(build_pool([A], None, PoolRequest(1)), raters=0, seconds=0)
    assert [problem.message for problem in caught.value.problems] == ["0 raters", "0 seconds for a judgment"]


def test_a_pool_file_is_read_back_the_same(tmp_path: Path) -> None:
    pool = build_pool([A, B], SET, PoolRequest(2, (SampledRanks(3, 4, 0.5),), include_judged=True, name="é")).pool
    write_pool(pool, tmp_path / "pool.json")
    assert read_pool(tmp_path / "pool.json") == pool
    text = (tmp_path / "pool.json").read_text()
    assert text.count("\n") == len(pool.items) + len(pool.queries) + 20
    with pytest.raises(UsageError, match="cannot be written"):
        write_pool(pool, tmp_path / "none" / "pool.json")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"cranfield_pool"', '"pool"', "not a pool"),
        ('"method": "depth"', '"method": "magic"', ":4:11: wrong value for method"),
        ('"doc": "b"', '"dok": "b"', "unknown key 'dok'"),
        ('"query": "q2", "doc": "x"', '"query": "q7", "doc": "x"', "the query is not one of the queries of the pool"),
        ('"doc": "e"', '"doc": "b"', "stands twice"),
        ('"B": 2', '"C": 2', "run 'C' is not in the pool"),
        ('{"id": "q2"', '{"id": "q1"', "query 'q1' occurs 2 times"),
        ('"items"', '"items', ""),
    ],
)
def test_a_broken_pool_file_is_refused_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "pool.json"
    write_pool(build_pool([A, B], SET, PoolRequest(2)).pool, path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(TestSetError) as caught:
        read_pool(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_missing_pool_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match="no such file"):
        read_pool(tmp_path / "pool.json")


@pytest.mark.parametrize("include", [False, True])
def test_qrels_keep_judged_pooled_and_never_pooled_apart(include: bool) -> None:
    judged = made_set("q1", "q2", grades={"q1": {"a": 2, "f": -1, "old": 1}, "q2": {"y": 0}})
    pool = build_pool([A, B], judged, PoolRequest(2, include_judged=include)).pool
    found = pool_qrels(pool, judged)
    assert found.testset.grades == {
        # a, old: judged; f: pooled once; b, e: in this pool. c, d are deeper than it: never pooled.
        "q1": {"a": 2, "f": -1, "old": 1, "b": -1, "e": -1},
        "q2": {"y": 0, "x": -1, "z": -1},
    }
    assert (found.n_judged, found.n_pooled, found.notes) == (3, 5, ())


def test_qrels_of_a_pool_need_the_test_set_that_it_was_made_for() -> None:
    pool = build_pool([A, B], SET, PoolRequest(2)).pool
    with pytest.raises(UsageError, match="created for the test set 't', and does not contain all of its judgments"):
        pool_qrels(pool, None)
    with pytest.raises(TestSetError, match="the truth of 1 queries is a rule"):
        pool_qrels(pool, replace(SET, targets={"q2": (Pattern("y"),)}))
    (note,) = pool_qrels(pool, made_set("q1", "q2")).notes
    assert "the digests differ" in note
    alone = build_pool([A, B], None, PoolRequest(1)).pool
    assert pool_qrels(alone, None).testset.grades == {"q1": {"a": -1, "b": -1}, "q2": {"x": -1, "y": -1}}


def test_the_scale_of_a_test_set_is_that_of_its_book() -> None:
    assert scale_of(()) is SCALES["graded"]
    assert scale_of((0, 1)) is SCALES["binary"]
    assert scale_of((4, 0, 2)).grades == (0, 2, 4)
    pool = build_pool([A], replace(SET, meta=Meta(scale=(0, 1))), PoolRequest(1)).pool
    assert scale_of(pool.scale) is SCALES["binary"]
    for bad in ((0, 0.5), (1,), (0, 100)):
        with pytest.raises(UsageError, match="invalid scale for a book"):
            scale_of(bad)

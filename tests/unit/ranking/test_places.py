"""Spans, entities, files, forms, sources and silence: the same through every door, and after every transformation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.app.evaluate import evaluate
from cranfield.measures import compute, parse
from cranfield.model import (
    Answer,
    Entity,
    File,
    Hit,
    Legacy,
    MatchingRules,
    Negative,
    Outcome,
    Pattern,
    Predicate,
    Query,
    Run,
    Source,
    Span,
    TestSet,
    convention_named,
)
from cranfield.ranking import rank_file, rank_run
from cranfield.ranking.engine import ENGINE_VARIABLE
from cranfield.ranking.memory import rank_frame, rank_mapping
from cranfield.ranking.value import Aspect, Silence, best_case, condensed, cut, only_queries, worst_case

TREC, EVERY = convention_named("trec"), replace(convention_named("trec"), name="every", credit="every")
RULES = MatchingRules()

SET = TestSet(
    "set",
    (
        Query("spans"),
        Query("entities"),
        Query("files"),
        Query("rows"),
        Query("forms"),
        Query("quiet", negative=Negative()),
        Query("loud", negative=Negative()),
        Query("unsure", negative=Negative(below=5.0)),
        Query("graded", query_class="prose"),
    ),
    {"forms": {"api/new": 1, "guide/new": 2}, "graded": {"api/a": 2, "guide/b": 1, "guide/c": -1}},
    {
        "spans": (Span("a.rs", 41, 61, 2), Span("a.rs", 64, 114), Span("b.rs", 1, 5)),
        "entities": (
            Entity("a.py::Index.add", 2),
            Entity("a.py::Index"),
            Pattern("^b", credit="every", expected_count=2),
        ),
        "files": (File("a.py"), File("b.py")),
        "rows": (Predicate("select id", ids=("r1", "r2"), grade=2), Predicate("select id", ids=("r2", "r3"))),
    },
    files={"files": ("a.py", "b.py"), "spans": ("a.rs", "c.rs")},
    legacy={"forms": Legacy(("api/old",), ("legacy",))},
    sources=(Source("api", "^api/"), Source("guide", "^guide/")),
)
LISTS = {
    "spans": ["a.rs:21-60", "a.rs:1-40", "a.rs:41-80", "b.rs#L5-L9", "a.rs:100"],
    "entities": ["a.py::Index.add::0", "a.py::Index.add::1", "bx", "by", "bz", "a.py::Index"],
    "files": ["a.py::x", "c.py", "a.py:3-4", "b.py"],
    "rows": ["r3", "r0", "r1"],
    "forms": ["guide/x", "api/old", "guide/new", "api/new"],
    "loud": ["anything"],
    "unsure": ["this", "that"],
    "graded": ["guide/b", "x", "guide/c", "api/a"],
}
COLUMNS = ("query", "rank", "gain", "level", "state", "item")
BESIDE = ("covered", "silence", "n_returned", "expected_rank", "expected_count", "closed_world")


def scored(lists):
    """Scores 1.5, 1.4, …, all under the bound of `unsure`."""
    return {q: {d: 1.5 - i / 10 for i, d in enumerate(docs)} for q, docs in lists.items()}


def through_run(convention, _folder):
    answers = {
        q: Answer(Outcome.ANSWERED, tuple(Hit(d, s) for d, s in docs.items())) for q, docs in scored(LISTS).items()
    }
    return rank_run(SET, Run("run", answers | {"quiet": Answer(Outcome.EMPTY)}, order="descending"), convention)


def through_file(convention, folder):
    path = folder / "run.trec"
    lines = [f"{q} Q0 {d} {i} {s} tag" for q, docs in scored(LISTS).items() for i, (d, s) in enumerate(docs.items(), 1)]
    path.write_text("\n".join(lines) + "\n")
    return rank_file(SET, path, convention).ranking


def through_mapping(convention, _folder):
    return rank_mapping(SET, scored(LISTS) | {"quiet": {}}, convention).ranking


def through_frame(convention, _folder):
    rows = [(q, d, s) for q, docs in scored(LISTS).items() for d, s in docs.items()]
    return rank_frame(SET, pd.DataFrame(rows, columns=["query_id", "doc_id", "score"]), convention).ranking


DOORS = {"run": through_run, "file": through_file, "mapping": through_mapping, "frame": through_frame}


def beside(ranking):
    """Everything that the doors have to agree on, as plain values."""
    aspects = ranking.aspects
    return {
        **{name: getattr(ranking, name).tolist() for name in COLUMNS},
        **{name: None if (v := getattr(ranking, name)) is None else v.tolist() for name in BESIDE},
        "aspects": {name: getattr(aspects, name).tolist() for name in type(aspects).__slots__},
        "classes": ranking.classes,
        "hits": {q: [(h.rank, h.id, h.item, h.credited, h.level, int(h.state)) for h in ranking.top[q]] for q in LISTS},
    }


@pytest.mark.parametrize("convention", [TREC, EVERY], ids=lambda convention: convention.name)
@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("door", [name for name in DOORS if name != "run"])
def test_every_door_makes_the_same_ranking(door, engine, convention, tmp_path, monkeypatch):
    monkeypatch.setenv(ENGINE_VARIABLE, engine)
    assert beside(DOORS[door](convention, tmp_path)) == beside(through_run(convention, tmp_path))


def rows_of(ranking, query_id):
    place = ranking.query_ids.index(query_id)
    rows = ranking.query == place
    return list(zip(*(getattr(ranking, name)[rows].tolist() for name in ("rank", "level", "item")), strict=True))


def test_credit_once_pays_the_best_item_that_is_still_unpaid(tmp_path):
    ranking = through_run(TREC, tmp_path)
    # 21-60 is the first truth; 1-40 none; 41-80 is both, and the first is paid; 5-9 touches 1-5; line 100 is paid already
    assert rows_of(ranking, "spans") == [(1, 2, 0), (3, 1, 1), (4, 1, 2), (5, 0, 1)]
    # the second chunk is paid nothing; `every` pays each match of its pattern, a third one too
    assert rows_of(ranking, "entities") == [(1, 2, 0), (2, 0, 0), (3, 1, 2), (4, 1, 2), (5, 1, 2), (6, 1, 1)]
    assert rows_of(ranking, "files") == [(1, 1, 0), (3, 0, 0), (4, 1, 1)]
    # r2 has the better of its two grades
    assert rows_of(ranking, "rows") == [(1, 1, 2), (3, 2, 0)]


def test_a_hit_says_which_expected_item_it_is(tmp_path):
    hits = through_run(TREC, tmp_path).top["spans"]
    assert [(hit.item, hit.credited) for hit in hits] == [
        ("a.rs:41-61", True),
        (None, False),
        ("a.rs:64-114", True),
        ("b.rs:1-5", True),
        ("a.rs:64-114", False),
    ]


def test_where_every_match_is_paid_one_result_covers_all_that_it_overlaps(tmp_path):
    ranking = through_run(EVERY, tmp_path)
    start = ranking.expected_start[0]
    assert ranking.covered[start : start + 3].tolist() == [1, 3, 4]
    assert rows_of(ranking, "spans") == [(1, 2, 0), (3, 2, 0), (4, 1, 2), (5, 1, 1)]


def aspects_of(ranking, query_id, kind):
    place = ranking.query_ids.index(query_id)
    rows = (ranking.aspects.query == place) & (ranking.aspects.kind == kind)
    return list(zip(ranking.aspects.rank[rows].tolist(), ranking.aspects.relevant_rank[rows].tolist(), strict=True))


def test_what_is_looked_for_beside_the_items_is_noted(tmp_path):
    ranking = through_run(TREC, tmp_path)
    assert aspects_of(ranking, "spans", Aspect.FILE) == [(1, 1), (0, 0)]
    assert aspects_of(ranking, "forms", Aspect.LEGACY) == [(2, 0)]
    assert aspects_of(ranking, "forms", Aspect.MODERN) == [(3, 3)]
    assert aspects_of(ranking, "forms", Aspect.SOURCE) == [(2, 4), (1, 3)]
    asked = {q: int(s) for q, s in zip(ranking.query_ids, ranking.silence, strict=True) if s != Silence.NOT_NEGATIVE}
    assert asked == {"quiet": 1, "loud": 0, "unsure": 1}


def values(name, ranking):
    found, has, _ = compute(parse(name), ranking)
    return {q: v for q, v, s in zip(ranking.query_ids, found.tolist(), has.tolist(), strict=True) if s}


# what a run leaves out --------------------------------------------------------------------------------------------------


def test_in_a_file_no_line_is_silence_even_where_missing_queries_are_left_out(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text("loud Q0 x 1 1 tag\n")
    ranking = rank_file(SET, path, TREC, missing="skip").ranking
    assert ranking.query_ids == ("quiet", "loud", "unsure")
    assert values("Silence", ranking) == {"quiet": 1, "loud": 0, "unsure": 1}


def test_a_collected_run_can_say_that_nothing_came_and_so_no_answer_is_no_silence():
    ranking = rank_run(SET, Run("run", {"loud": Answer(Outcome.EMPTY)}), TREC)
    assert values("Silence", ranking) == {"quiet": 0, "loud": 1, "unsure": 0}


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome.is_failure])
def test_a_failure_hides_what_was_printed_by_then(outcome):
    answers = {"spans": Answer(outcome, (Hit("a.rs:41-61"),)), "quiet": Answer(outcome)}
    ranking = rank_run(SET, Run("run", answers), TREC)
    assert values("FileCoverage@5", ranking)["spans"] == 0
    assert values("Silence", ranking)["quiet"] == 0


def test_results_at_other_places_of_one_file_are_other_results():
    hits = (Hit("a.rs", span="1-9"), Hit("a.rs", span="41-61"), Hit("a.rs", span="1-9"))
    for query_id in ("spans", "files", "entities"):
        ranking = rank_run(SET, Run("run", {query_id: Answer(Outcome.ANSWERED, hits)}), TREC)
        place = ranking.query_ids.index(query_id)
        assert (ranking.n_returned[place], ranking.n_duplicates[place]) == (2, 1)
    ranking = rank_run(SET, Run("run", {"graded": Answer(Outcome.ANSWERED, hits)}), TREC)
    assert ranking.n_duplicates.tolist()[-1] == 2  # documents have one place


def test_results_that_do_not_say_their_lines_are_counted_and_told(tmp_path):
    hits = (Hit("a.rs"), Hit("a.rs", span="line 50"), Hit("a.rs", span="41-61"), Hit("a.rs", span="7-8"))
    answers = {"spans": Answer(Outcome.ANSWERED, hits), "files": Answer(Outcome.ANSWERED, hits)}
    found = evaluate(SET, Run("run", answers), measures=["RR"])
    assert found.ranking.unplaced.tolist() == [2] + [0] * 8
    told = (
        "2 results in 1 of 9 queries lack line numbers, a text or a field that is expected, so they cannot match: spans"
    )
    assert told in found.warnings
    path = tmp_path / "run.trec"
    path.write_text("spans Q0 a.rs 1 2 tag\nspans Q0 a.rs:41-61 2 1 tag\n")
    assert rank_file(SET, path, TREC).ranking.unplaced.tolist() == [1] + [0] * 8
    assert through_run(TREC, tmp_path).unplaced is None


# transformations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convention", [TREC, EVERY], ids=lambda convention: convention.name)
@pytest.mark.parametrize("depth", [1, 2, 3, 10])
def test_a_cut_is_what_a_shorter_run_would_have_been(depth, convention, tmp_path):
    shorter = {
        q: Answer(Outcome.ANSWERED, tuple(Hit(d, s) for d, s in docs.items()))
        for q, docs in scored({q: docs[:depth] for q, docs in LISTS.items()}).items()
    }
    made = rank_run(SET, Run("run", shorter | {"quiet": Answer(Outcome.EMPTY)}, order="descending"), convention)
    found = beside(cut(through_run(convention, tmp_path), depth)) | {"hits": None}
    assert found == beside(made) | {"hits": None}


@pytest.mark.parametrize("convention", [TREC, EVERY], ids=lambda convention: convention.name)
@pytest.mark.parametrize(
    "measure", ["nDCG@5", "R@3", "AP", "AllFound", "Coverage", "FileCoverage", "ModernFirst", "SourceRR", "Silence"]
)
def test_queries_left_out_change_nothing_for_the_others(measure, convention, tmp_path):
    ranking = through_run(convention, tmp_path)
    whole = values(measure, ranking)
    for place, query_id in enumerate(ranking.query_ids):
        alone = only_queries(ranking, np.arange(ranking.n_queries) == place)
        assert alone.classes in {(), (ranking.classes[place],)}
        assert values(measure, alone) == {q: v for q, v in whole.items() if q == query_id}


def test_a_condensed_list_keeps_closed_truths_whole_and_moves_what_judged_results_cover(tmp_path):
    ranking = condensed(through_run(EVERY, tmp_path))
    assert rows_of(ranking, "spans") == rows_of(through_run(EVERY, tmp_path), "spans")
    start = ranking.expected_start[-2]
    # guide/b stays first; x (unjudged) and guide/c (pooled) leave, so that api/a moves from 4 to 2
    assert ranking.covered[start : start + 2].tolist() == [2, 1]
    assert values("R@2", ranking)["graded"] == 1


def test_ties_move_results_of_places_too():
    hits = tuple(Hit(d, 1.0) for d in ("x", "a.rs:41-61", "y"))
    ranking = rank_run(SET, Run("run", {"spans": Answer(Outcome.ANSWERED, hits)}, order="descending"), TREC)
    assert values("RR", best_case(ranking))["spans"] == 1
    assert values("RR", worst_case(ranking))["spans"] == pytest.approx(1 / 3)


# properties --------------------------------------------------------------------------------------------------------------

line_spans = st.tuples(st.integers(1, 40), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))
truths = st.lists(st.tuples(line_spans, st.integers(1, 3)), min_size=1, max_size=5, unique_by=lambda pair: pair[0])
results = st.lists(line_spans, max_size=8, unique=True)


def ranked(expected, returned, convention, rules=RULES):
    targets = tuple(Span("a", start, end, grade) for (start, end), grade in expected)
    testset = TestSet("set", (Query("q"),), targets={"q": targets}, matching=rules)
    hits = tuple(Hit("a", span=f"{start}-{end}") for start, end in returned)
    return rank_run(testset, Run("run", {"q": Answer(Outcome.ANSWERED, hits)}), convention)


@settings(max_examples=min(60, settings().max_examples))
@given(truths, results, st.integers(1, 6))
def test_where_an_item_is_paid_once_nothing_exceeds_1(expected, returned, depth):
    for name in ("trec", "octocode", "cupertino", "quepid"):
        ranking = ranked(expected, returned, convention_named(name))
        assert all(0 <= v <= 1 + 1e-12 for v in values(f"R@{depth}", ranking).values())
        assert set(values(f"AllFound@{depth}", ranking).values()) <= {0.0, 1.0}
    once = ranked(expected, returned, TREC)
    for measure in (f"nDCG@{depth}", "nDCG", "AP", f"P@{depth}", "Coverage"):
        assert 0 <= values(measure, once)["q"] <= 1 + 1e-12


@settings(max_examples=min(60, settings().max_examples))
@given(truths, results, st.integers(1, 6))
def test_paying_every_match_covers_no_less_than_paying_once(expected, returned, depth):
    once, every = (ranked(expected, returned, convention) for convention in (TREC, EVERY))
    covered = [ranking.expected_rank > 0 for ranking in (once, every)]
    assert (covered[1] >= covered[0]).all()
    assert values(f"R@{depth}", every)["q"] >= values(f"R@{depth}", once)["q"] - 1e-12
    assert values(f"AllFound@{depth}", every)["q"] >= values(f"AllFound@{depth}", once)["q"]
    # what covers is exactly what overlaps
    met = [
        any(min(e, y) >= max(s, x) for x, y in returned) for (s, e), _ in sorted(expected, key=lambda pair: -pair[1])
    ]
    assert covered[1].tolist() == met


@settings(max_examples=min(40, settings().max_examples))
@given(truths, results)
def test_a_line_base_of_0_is_a_shift_by_one(expected, returned):
    moved = [(start - 1, end - 1) for start, end in returned]
    here, there = ranked(expected, returned, TREC), ranked(expected, moved, TREC, MatchingRules(line_base=0))
    assert [getattr(here, name).tolist() for name in COLUMNS] == [getattr(there, name).tolist() for name in COLUMNS]


@settings(max_examples=min(40, settings().max_examples))
@given(truths, results, st.integers(1, 4))
def test_asking_for_more_overlap_never_finds_more(expected, returned, least):
    loose, strict = (ranked(expected, returned, EVERY, MatchingRules(min_overlap=n)) for n in (least, least + 1))
    assert ((loose.expected_rank > 0) >= (strict.expected_rank > 0)).all()

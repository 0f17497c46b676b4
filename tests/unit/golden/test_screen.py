"""Candidates against the plan, the snapshot and each other; leaks, overlap of words, and what a plain search finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.golden.gate import Screener
from cranfield.golden.gate import ScreenReason as R
from cranfield.golden.index import content_words, found_by_grep, grep_terms, leaks, overlap
from cranfield.golden.parsed import MAX_LINES, ParsedSource
from cranfield.golden.plan import Plan
from cranfield.golden.records import QueryCandidate
from cranfield.golden.rules import Bounds
from cranfield.golden.targets import Targets, of_candidate
from cranfield.repo.snapshot import take

FILES = {
    "src/index.py": "class Index:\n    def add(self):\n        return 'once stored'\n\n    def flush_all(self):\n        pass\n",
    "src/query.py": "def parse_query(text):\n    return text.split()\n\n\ndef run():\n    return 'peculiar'\n",
    "lib/store.py": "def write_block():\n    return 'peculiar'\n\n\ndef drop():\n    pass\n",
    "docs/guide.md": "# Guide\n\n## Install on Linux\n\nText.\n",
}
ADD, FLUSH = "src/index.py::Index.add", "src/index.py::Index.flush_all"
PARSE, RUN, BLOCK = "src/query.py::parse_query", "src/query.py::run", "lib/store.py::write_block"
MODEL = {"model": "openai:a"}
CELLS = [("locate", "easy", 2), ("locate", "medium", 2), ("debug", "hard", 1)]


@pytest.fixture(scope="module")
def source(write_files):
    return ParsedSource(take(write_files(FILES)))


def plan_of(**changes: Any) -> Plan:
    cells = [{"task_type": task_type, "difficulty": difficulty, "n": n} for task_type, difficulty, n in CELLS]
    models = dict.fromkeys(["author", "oracle", "adversary", "judge"], MODEL)
    plan = {"cranfield_plan": 1, "name": "test", "total": 5, "cells": cells, "models": models}
    return Plan.model_validate(plan | changes)


def candidate(query: str, *entities: str, cell: str = "locate easy", name: str = "q9", **more: Any) -> QueryCandidate:
    task_type, difficulty = cell.split()
    return QueryCandidate(
        query_id=name,
        query_text=query,
        task_type=task_type,
        difficulty=difficulty,
        target_entity_ids=entities,
        difficulty_rationale="several parts",
        authored_by="x",
        created_at="now",
        **more,
    )


def reasons(source: ParsedSource, new: QueryCandidate, *accepted: QueryCandidate, **plan: Any) -> list[R]:
    return [problem.reason for problem in Screener(plan_of(**plan), source).judge(new, accepted)]


GOOD = candidate("Where do we keep a value?", ADD)


@pytest.mark.parametrize(
    ("new", "plan", "expected"),
    [
        (GOOD, {}, []),
        (candidate("Why is it lost?", ADD, cell="review easy"), {}, [R.NOT_PLANNED]),
        (candidate("Why is it lost?", "src/index.py::Index.gone"), {}, [R.TARGET_MISSING]),
        (candidate("Why is it lost?", target_spans=[{"file": "src/query.py", "start": 1, "end": 99}]), {}, [R.TARGET_KIND, R.TARGET_MISSING]),
        (candidate("Why is it lost?", target_files=["src/no.py"]), {"targets": "files"}, [R.TARGET_MISSING]),
        (GOOD, {"scope": ["lib"]}, [R.OUT_OF_SCOPE]),
        (GOOD, {"targets": "headings"}, [R.TARGET_KIND]),
        (candidate("What must be there first?", "docs/guide.md::Guide > Install on Linux"), {"targets": "headings"}, []),
        (GOOD, {"quotas": [{"path": "src", "most": 0}]}, [R.QUOTA_FULL]),
        (candidate("Why is it lost?", ADD, FLUSH), {}, [R.DIFFICULTY]),
        (candidate("Where is flush_all?", FLUSH), {}, [R.LEAK]),
        (candidate("Why does a query not parse before a block is written?", PARSE, BLOCK, cell="debug hard"), {}, [R.LEXICAL_OVERLAP, R.GREP_ONLY]),
        (candidate("Why are several peculiar things lost?", RUN, BLOCK, cell="debug hard"), {}, [R.GREP_ONLY]),
        (candidate("Why are several peculiar things lost?", RUN, BLOCK, cell="debug hard"), {"bounds": {"grep_files": 1}}, []),
    ],
)  # fmt: skip
def test_each_reason_to_reject_a_candidate(source, new, plan, expected):
    assert reasons(source, new, **plan) == expected


def test_all_reasons_are_given_at_once(source):
    new = candidate("Where is flush_all of index.py?", FLUSH, "src/index.py::gone")
    assert set(reasons(source, new, scope=["lib"])) == {R.OUT_OF_SCOPE, R.DIFFICULTY, R.TARGET_MISSING, R.LEAK}


def test_a_cell_takes_no_more_than_the_plan_wants(source):
    first = [candidate(f"Question {n}", name=f"q{n}", target_files=[f"x{n}"]) for n in range(2)]
    assert reasons(source, GOOD, *first) == [R.CELL_FULL]
    assert reasons(source, GOOD, first[0]) == []


def test_a_quota_counts_queries_by_their_first_target(source):
    accepted = [candidate("One?", PARSE, ADD, name="q1"), candidate("Two?", BLOCK, ADD, name="q2")]
    quotas = [{"path": "src", "most": 2}, {"path": "lib", "most": 1}, {"path": "docs"}]
    counts = Screener(plan_of(quotas=quotas), source).quota_counts(accepted)
    assert [(quota.path, n) for quota, n in counts] == [("src", 1), ("lib", 1), ("docs", 0)]


@pytest.mark.parametrize(
    ("accepted", "new", "shared"),
    [
        ([ADD], [ADD, FLUSH, PARSE], (1, 1)),  # of the smaller set: all of it
        ([ADD, FLUSH], [ADD, PARSE], (1, 2)),  # half is not more than half
        ([ADD, FLUSH, PARSE], [FLUSH, PARSE, RUN], (2, 3)),
        ([ADD], ["src/index.py::Index"], (0, 1)),  # a class is another target than its method
    ],
)
def test_targets_are_shared_as_a_part_of_the_smaller_set(source, accepted, new, shared):
    earlier = candidate("What comes to pass?", *accepted, cell="locate medium", name="q1")
    later = candidate("Who cares for that?", *new, cell="locate medium")
    assert of_candidate(later).shared_with(of_candidate(earlier), source) == shared
    assert of_candidate(earlier).shared_with(of_candidate(later), source) == shared
    assert (R.TARGET_OVERLAP in reasons(source, later, earlier)) == (2 * shared[0] > shared[1])


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [((1, 4), (3, 6), 0), ((1, 4), (2, 6), 1), ((1, 6), (5, 6), 1), ((1, 2), (5, 6), 0)],
)
def test_spans_are_shared_where_more_than_half_of_the_shorter_one_is(source, first, second, shared):
    one, other = (Targets(spans=(("src/query.py", *lines),)) for lines in (first, second))
    assert one.shared_with(other, source) == (shared, 1)
    entity = Targets(entities=(PARSE,))  # lines 1 to 2
    assert entity.shared_with(one, source) == (1, 1)
    assert entity.shared_with(Targets(spans=(("src/index.py", 1, 2),)), source) == (0, 1)


def test_a_query_that_is_put_in_other_words_of_no_content_is_a_near_duplicate(source):
    earlier = candidate("Where do we keep a stored value?", FLUSH, name="q1")
    later = candidate("Which code is it that keeps stored values?", ADD)
    assert reasons(source, later, earlier) == [R.NEAR_DUPLICATE]


@pytest.mark.parametrize(
    ("query", "entity", "found"),
    [
        ("Where is parse_query?", PARSE, ["parse_query"]),
        ("Where is PARSE_QUERY or parseQuery used?", PARSE, ["parse_query"]),
        ("What of parse-query?", PARSE, ["parse_query"]),
        ("How do we parse query texts?", PARSE, []),  # parts as words of their own: how people speak
        ("When does it run?", RUN, []),
        ("When does run() end?", RUN, ["run"]),
        ("When does `run` end?", RUN, ["run"]),
        ("What calls query.run then?", RUN, ["run"]),
        ("How is an index filled?", ADD, []),
        ("How is the Index filled?", ADD, ["Index"]),
        ("Index: how is it filled?", ADD, []),  # the capital of a sentence
        ("Is it read as JSON?", "a.py::JSON", []),
        ("Is `JSON` set?", "a.py::JSON", ["JSON"]),
        ("What is in index.py?", ADD, ["index.py"]),
        ("How do I install on linux?", "docs/guide.md::Guide > Install on Linux", ["Install on Linux"]),
        ("How do I install it?", "docs/guide.md::Guide > Install", []),
        ("Is it private then?", "a.py::_private", []),
        ("Is _private used?", "a.py::_private", ["_private"]),
    ],
)
def test_what_leaks_a_target(query, entity, found):
    assert leaks(query, [entity], []) == found


def test_overlap_counts_words_by_their_stems_and_parts():
    assert content_words("Where are the parsers of a parsedQuery?") == content_words("parse query")
    assert overlap("Where do we collect parsed blocks?", ["write_block", "parse_query"]) == (2, 3)
    assert overlap("Where is it?", ["where"]) == (0, 0)


def test_terms_of_a_search_are_words_with_a_subject_and_what_is_quoted():
    assert grep_terms("Why 'no such index' in a `flush`? Don't we look?") == ["no such index", "flush", "index"]


def test_a_search_answers_only_where_it_finds_every_target(source):
    places = Targets(entities=(RUN, ADD)).places(source)
    assert found_by_grep("a peculiar one", places, source, Bounds()) == []
    assert found_by_grep("a peculiar one that is once stored", places, source, Bounds()) == ["peculiar", "stored"]
    assert found_by_grep("a peculiar one that is stored", places, source, Bounds(grep_lines=1)) == []


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    root = tmp_path_factory.mktemp("texts")
    (root / "a.txt").write_text("Alpha beta\nalphabet soup\n\nBeta-alpha beta_gamma\n" + "often\n" * (MAX_LINES + 1))
    (root / "b.txt").write_text("gamma\nALPHA BETA\n")
    return ParsedSource(take(root))


@given(st.text("alphbetgm _-", min_size=1, max_size=10).filter(str.strip))
def test_the_index_of_words_finds_what_a_search_line_by_line_finds(texts, wanted):
    places = [
        (path, number)
        for path in ("a.txt", "b.txt")
        for number, line in enumerate(texts.lines(path), start=1)
        if wanted.casefold() in line.casefold()
    ]
    if any(char.isalnum() or char == "_" for char in wanted):
        assert texts.lines_with(wanted) == (places if len(places) <= MAX_LINES else None)
    else:
        assert texts.lines_with(wanted) is None


def test_a_word_that_is_everywhere_finds_nothing(texts):
    assert texts.lines_with("often") is None
    assert texts.lines_with("oft") is None

"""Results whose id is that of their query: left out before anything is ranked, alike in every way a run comes in."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cranfield import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, evaluate
from cranfield.model import MatchingRules, convention_named
from cranfield.ranking import rank_file, rank_run
from cranfield.ranking.memory import rank_frame, rank_mapping

OWN = MatchingRules(ignore_identical_ids=True)
COLUMNS = ("query", "rank", "item", "tie_first", "tie_last", "n_returned", "gain", "level", "state")
CASE = ({"q1": {"d5": 1}, "q2": {"q1": 1}, "q3": {"d9": 1}}, {"q1": "q1 d5 zz", "q2": "q2 q1 zz", "q3": "q3 d9 zz"})


def judged(grades, **rules):
    return TestSet("set", tuple(map(Query, grades)), grades, matching=MatchingRules(**rules))


def random_case(seed):
    """Queries that are documents of the corpus, some of them judged for themselves; few scores, so that many tie."""
    draw = random.Random(seed)
    ids = [f"d{n}" for n in range(12)]
    queries = draw.sample(ids, 5)
    grades = {query: {doc: draw.randrange(-1, 4) for doc in draw.sample(ids, 6)} for query in queries}
    run = {
        query: {doc: float(draw.randrange(4)) for doc in draw.sample(ids, draw.randrange(1, 12))} for query in queries
    }
    return grades, run


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("depth", [None, 1, 3])
def test_a_list_is_ranked_as_if_the_query_itself_had_not_been_returned(tmp_path, monkeypatch, engine, depth):
    monkeypatch.setenv("CRANFIELD_ENGINE", engine)
    file = tmp_path / "a.run"
    for seed in range(30):
        grades, run = random_case(seed)
        rest = {query: {doc: score for doc, score in row.items() if doc != query} for query, row in run.items()}
        convention = convention_named("trec")
        expected = rank_mapping(judged(grades), rest, convention, depth=depth, keep=4)
        testset = judged(grades, ignore_identical_ids=True)
        rows = [(query, doc, score) for query, row in run.items() for doc, score in row.items()]
        file.write_text("".join(f"{query} Q0 {doc} 1 {score} r\n" for query, doc, score in rows))
        frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
        for ranked in (
            rank_file(testset, file, convention, depth=depth, keep=4),
            rank_mapping(testset, run, convention, depth=depth, keep=4),
            rank_frame(testset, frame, convention, depth=depth, keep=4),
        ):
            for column in COLUMNS:
                assert getattr(ranked.ranking, column).tolist() == getattr(expected.ranking, column).tolist(), column
            assert dict(ranked.ranking.top) == dict(expected.ranking.top)
            assert ranked.n_tied == expected.n_tied
            assert ranked.ranking.n_identical.tolist() == [int(query in row) for query, row in run.items()]


def test_a_collected_run_leaves_them_out_before_its_depth_is_cut():
    # q1 returns itself, d5 and zz; of depth 1 what is left is d5 at rank 1
    grades, lists = CASE
    answers = {query: Answer(Outcome.ANSWERED, tuple(map(Hit, row.split()))) for query, row in lists.items()}
    testset = judged(grades, ignore_identical_ids=True)
    ranking = rank_run(testset, Run("run", answers), convention_named("trec"), depth=1)
    assert (ranking.rank.tolist(), ranking.n_returned.tolist(), ranking.n_identical.tolist()) == (
        [1] * 3,
        [1] * 3,
        [1] * 3,
    )


def test_lists_that_patterns_are_matched_with_leave_them_out_too(tmp_path):
    testset = TestSet("set", (Query("a1"),), targets={"a1": (Pattern("^a"),)}, matching=OWN)
    (tmp_path / "a.run").write_text("a1 Q0 a1 1 3 r\na1 Q0 x 2 2 r\na1 Q0 a2 3 1 r\n")
    ranking = rank_file(testset, tmp_path / "a.run", convention_named("trec")).ranking
    # a1 is left out, x is at rank 1, a2 matches at rank 2
    assert (ranking.rank.tolist(), ranking.n_returned.tolist(), ranking.n_identical.tolist()) == ([2], [2], [1])


def test_queries_that_return_themselves_are_a_caveat_and_left_out_are_counted():
    grades, lists = CASE
    run = {query: {doc: -rank for rank, doc in enumerate(row.split())} for query, row in lists.items()}
    found = evaluate(judged(grades), run, measures=["RR", "nDCG@10"])
    # the expected document is at rank 2 of each list: 1/2, and 1/log2(3)
    assert [found.mean("RR"), found.mean("nDCG@10")] == [0.5, pytest.approx(1 / np.log2(3))]
    checks = [finding for finding in found.evidence if finding.check == "self-retrieval"]
    assert [(finding.count, finding.total) for finding in checks] == [(3, 3)]
    other = evaluate(judged(grades, ignore_identical_ids=True), run, measures=["RR", "nDCG@10"])
    assert [other.mean("RR"), other.mean("nDCG@10")] == [1.0, 1.0]
    assert other.evidence == ()
    assert "results left out because their id is that of their query: 3 in 3 of 3 queries" in other.warnings


def test_a_query_that_expects_itself_is_no_self_retrieval():
    grades = {"q1": {"q1": 1}, "q2": {"q2": 1}}
    found = evaluate(judged(grades), {query: {query: 1.0} for query in grades}, measures=["RR"])
    assert found.evidence == ()


def test_the_digest_of_a_test_set_changes_with_the_property_and_not_without_it():
    testset = judged(CASE[0])
    assert testset.digest != replace(testset, matching=OWN).digest
    based = replace(testset, matching=MatchingRules(line_base=0))
    assert based.digest == "sha256:a51433314431365a5e70d61ec176354180f6dda0b3a93ba884519c79ab053e32"

"""The baseline's file: the same bytes for the same run, a line a query, and every way to spoil it is told with its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Query, TestSet
from cranfield.base.errors import CranfieldError
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import (
    Baseline,
    baseline_text,
    misfits,
    parse_baseline,
    read_baseline,
    with_added,
    write_baseline,
)

Found = Callable[..., Evaluation]
Accepted = Callable[..., Baseline]


@pytest.fixture
def text(answered: Found, accepted: Accepted) -> str:
    return baseline_text(accepted(answered({"q2": "-R", "q1": "R", "q3": "!"})))


def problems(text: str) -> list[tuple[int | None, str]]:
    with pytest.raises(CranfieldError) as caught:
        parse_baseline(text, "b.json")
    assert {problem.path for problem in caught.value.problems} == {"b.json"}
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_the_file_is_sorted_and_has_a_line_a_query(text: str) -> None:
    lines = text.splitlines()
    at = lines.index('  "queries": {')
    assert lines[at + 1] == '    "q1": {"outcome": "answered", "values": {"P@1": 1.0, "R@10": 1.0, "RR": 1.0}},'
    assert lines[at + 2] == '    "q2": {"outcome": "answered", "values": {"P@1": 0.0, "R@10": 1.0, "RR": 0.5}},'
    assert lines[at + 3] == '    "q3": {"outcome": "timeout", "values": {"P@1": 0.0, "R@10": 0.0, "RR": 0.0}}'
    keys = list(json.loads(text))
    assert keys[:-1] == sorted(keys[:-1])
    assert json.loads(text)["means"] == {"P@1": 0.333333, "R@10": 0.666667, "RR": 0.5}


def test_what_is_written_is_read(answered: Found, accepted: Accepted, tmp_path: Path) -> None:
    baseline = accepted(answered({"q1": "R", "q2": "--R"}, measures=["RR", "RankOfFirst"]))
    write_baseline(baseline, tmp_path / "b.json")
    assert read_baseline(tmp_path / "b.json") == baseline
    first = (tmp_path / "b.json").read_bytes()
    write_baseline(baseline, tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == first


@given(
    st.dictionaries(
        st.text(min_size=1), st.tuples(*[st.none() | st.floats(allow_nan=False, allow_infinity=False)] * 2), min_size=1
    ),
    st.text(),
)
def test_any_ids_values_and_words_come_back(values: dict[str, tuple[float | None, ...]], reason: str) -> None:
    made = Baseline(
        *(
            "new",
            "sha256:1",
            "t",
            "1",
            "sha256:2",
            "trec",
            10,
            ("P@1", "RR"),
            values,
            dict.fromkeys(values, "answered"),
        ),
        *("2026-01-31", "", reason),
    )
    assert parse_baseline(baseline_text(made), "b.json") == made


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('"RR": 0.5}', '"RR": 0.4}', 10, "the means do not match the values"),
        (
            '"outcome": "timeout"',
            '"outcome": "answered"',
            8,
            "the content has changed since it was accepted: its digest differs",
        ),
        ('"RR": 0.5}', '"RR": 0.4999999}', 8, "the content has changed since it was accepted: its digest differs"),
        (
            '"reason": "a start"',
            '"reason": "other"',
            8,
            "the content has changed since it was accepted: its digest differs",
        ),
        ('"k": 10', '"k": 0', 9, "wrong value for k"),
        ('"k": 10', '"k": true', 9, "wrong value for k"),
        ('"cranfield_baseline": 1', '"cranfield_baseline": 2', 7, "wrong value for cranfield_baseline"),
        ('"system": "new"', '"system": "new", "pilot": true', 13, "unknown key 'pilot'"),
        ('"outcome": "timeout"', '"outcome": "fine"', 18, "outcome of query 'q3'"),
        ('"P@1": 0.0, "R@10": 1.0, "RR": 0.5', '"P@1": 0.0, "R@10": 1.0', 17, "values of query 'q2'"),
        ('"RR": 0.5}', '"RR": "0.5"}', 17, "wrong value for queries.q2.values.RR"),
        ('"RR": 0.5}', '"RR": 1e999}', 17, "wrong value for queries.q2.values.RR"),
        ('["P@1", "R@10", "RR"]', '["RR", "P@1", "R@10"]', 11, "measures are not sorted, or occur twice"),
        ('"accepted": "2026-01-31"', '"accepted": "today"', 2, "wrong value for accepted"),
        ('"q2"', '"q1"', 17, "duplicate key 'q1'; it also occurs on line 16"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, old: str, new: str, line: int, message: str) -> None:
    assert old in text
    found = problems(text.replace(old, new, 1) if old != '"RR": 0.5}' else _last(text, old, new))
    assert [(at, said.partition(";")[0] if "duplicate" not in said else said) for at, said in found] == [
        (line, message)
    ]


def _last(text: str, old: str, new: str) -> str:
    before, _, after = text.rpartition(old)
    return before + new + after


def test_everything_wrong_is_told_at_once(text: str) -> None:
    spoilt = text.replace('"k": 10', '"k": "ten"').replace('"commit": "c0ffee",', "").replace("timeout", "gone")
    assert [message for _, message in problems(spoilt)] == ["missing key 'commit'", "wrong value for k"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "nan", "{'a': 1}", "cranfield_baseline: 1", '{"queries": {}}'])
def test_what_is_no_baseline_is_refused_without_a_traceback(text: str) -> None:
    assert problems(text)


def test_a_file_that_is_not_there_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(CranfieldError) as caught:
        read_baseline(tmp_path / "b.json")
    assert "cranfield baseline accept" in str(caught.value)


def test_a_baseline_of_another_experiment_says_what_differs(answered: Found, accepted: Accepted) -> None:
    now = answered({"q1": "R", "q2": "-R"})
    baseline = accepted(now)

    def differs(changed: Baseline, k: int = 10, measures: tuple[str, ...] = ("RR",)) -> list[str]:
        found = misfits(changed, now, k=k, measures=measures, name="b.json")
        assert all("cranfield baseline accept" in str(problem.hint) for problem in found)
        return [problem.message for problem in found]

    assert differs(baseline) == []
    assert differs(replace(baseline, testset_digest="sha256:0")) == ["the baseline has a different test set"]
    assert differs(baseline, k=5) == ["the baseline has a different k"]
    assert differs(replace(baseline, convention="ranx")) == ["the baseline has a different convention"]
    assert differs(baseline, measures=("RR", "AP")) == ["the baseline has no AP"]
    assert differs(replace(baseline, convention="ranx"), k=5) == [
        "the baseline has a different convention",
        "the baseline has a different k",
    ]


def test_another_name_or_description_is_the_same_test_set_and_another_grade_is_not(
    answered: Found, accepted: Accepted
) -> None:
    now = answered({"q1": "R"})
    renamed = TestSet("other", (Query("q1", "text of q1"),), {"q1": {"q1-0": 1}})
    assert renamed.digest == now.testset.digest
    regraded = TestSet("t", (Query("q1", "text of q1"),), {"q1": {"q1-0": 2}})
    assert [
        problem.message
        for problem in misfits(
            replace(accepted(now), testset_digest=regraded.digest), now, k=10, measures=[], name="b.json"
        )
    ] == ["the baseline has a different test set"]


def test_a_baseline_holds_for_the_queries_that_it_has_after_others_were_added(
    answered: Found, accepted: Accepted
) -> None:
    evaluation = answered({"q1": "R", "q2": "-R"})
    baseline, testset = accepted(evaluation), evaluation.testset
    more = replace(
        testset, queries=(Query("q0", "more"), *testset.queries), grades={**testset.grades, "q0": {"d": 1.0}}
    )
    same = with_added(baseline, more)
    assert (same.added, same.testset_digest, same.values) == (("q0",), more.digest, baseline.values)
    assert misfits(same, replace(evaluation, testset=more), k=10, measures=["RR"], name="b") == ()
    of_strata = misfits(same, replace(evaluation, testset=more), k=10, measures=["0.5 * RR + 0.5 * P@1"], name="b")
    assert any("the baseline lacks queries of this test set (q0)" in problem.message for problem in of_strata)
    reworded = replace(testset, queries=tuple(replace(query, text="another") for query in testset.queries))
    for other in (reworded, replace(testset, queries=testset.queries[:1])):
        assert with_added(baseline, other) is baseline

"""Results requested of a system, cutoffs deeper than its lists, and collections that stop because nothing works."""

from __future__ import annotations

import itertools
import json
from hashlib import sha256
from pathlib import Path

import pytest

from cranfield import Query, TestSet, collect, compare, evaluate
from cranfield.base.errors import Problem, SystemUnderTestError, TestSetError
from cranfield.config.load import load_config
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.evaluation.testset.split import only
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import deepest_cutoff
from cranfield.measures.measure import Reason
from cranfield.systems import CommandSystem
from cranfield.systems.collect.collection import collect_all
from cranfield.systems.kinds.python import PythonSystem

N = 12
SET = TestSet(
    "t", tuple(Query(f"q{i}", f"word {i}") for i in range(N)), {f"q{i}": {"d12": 1, "d3": 1} for i in range(N)}
)
CONFIG = """\
testset: qrels.txt
{more}systems:
  a: {{command: [sh, search.sh, "{{query}}", "{{k}}"], extract: {{regex: "(?m)^(d.*)$"}}}}
"""


def thirty(query: str, k: int) -> list[str]:
    return [f"d{i}" for i in range(1, 31)][:k]


def requested(folder: Path, more: str, measures: tuple[str, ...] = ()) -> int:
    path = folder / "cranfield.yaml"
    path.write_text(CONFIG.format(more=more))
    config = load_config(path)
    return config.results_requested(config.sets[""], measures)


def test_a_function_is_asked_for_as_many_results_as_the_deepest_measure_looks_at() -> None:
    assert deepest_cutoff(["P@5", "AP"]) == 10
    assert deepest_cutoff(["R@2147483647"]) == 1000  # more has to be declared
    # d3 and d12 are both within 20 results, one of them within 10
    assert evaluate(SET, thirty, measures=["R@20"]).mean("R@20") == 1
    assert evaluate(SET, thirty, measures=["R@10"]).mean("R@10") == 0.5


@pytest.mark.parametrize(
    ("more", "measures", "expected"),
    [
        ("", (), 10),
        ("measures: [R@20, nDCG@10]\n", (), 20),
        ("primary: R@30\nmeasures: [R@30]\n", (), 30),
        ("gate: {rules: [{floor: {measure: R@25, at_least: 0.1}}]}\n", (), 25),
        ("gate: {rules: [{judged: {k: 40, at_least: 0.1}}]}\n", (), 40),
        ("", ("R@50",), 50),
        ("k: 10\nmeasures: [R@20]\n", ("R@50",), 10),
    ],
)
def test_a_config_asks_for_the_deepest_cutoff_unless_it_declares_k(
    tmp_path: Path, more: str, measures: tuple[str, ...], expected: int
) -> None:
    assert requested(tmp_path, more, measures) == expected


def test_a_measure_deeper_than_lists_that_were_cut_has_no_value_and_voids_a_verdict_on_it() -> None:
    found = evaluate(SET, thirty, measures=["R@20", "R@10"], k=10)
    assert found.mean("R@20") is None
    assert set(found.unscored[found.measures[0]].values()) == {Reason.CUT_SHORT}
    assert found.mean("R@10") == 0.5
    assert [(finding.check, finding.is_void) for finding in found.evidence if finding.is_void] == [("cut-short", True)]
    assert compare(found, found).verdict.code is VerdictCode.INVALID


def test_a_stored_run_knows_how_many_results_were_requested(tmp_path: Path) -> None:
    systems = [PythonSystem.calling(name, thirty) for name in "ab"]
    collect_all(SET, systems, out_dir=tmp_path, k=10)
    first, second = (evaluate(SET, tmp_path / "runs" / f"{name}.jsonl", measures=["R@20", "R@10"]) for name in "ab")
    assert (first.mean("R@20"), first.mean("R@10")) == (None, 0.5)
    assert compare(first, second, primary="R@20").verdict.code is VerdictCode.INVALID
    assert compare(first, second, primary="R@10").verdict.code is VerdictCode.NOT_SIGNIFICANT


def test_lists_that_end_before_their_depth_are_whole() -> None:
    assert evaluate(SET, lambda query: ["d3"], measures=["R@20"], k=10).mean("R@20") == 0.5


def test_the_depth_of_an_evaluation_cuts_as_that_of_a_run_does() -> None:
    run = {f"q{i}": [f"d{n}" for n in range(1, 31)] for i in range(N)}
    assert evaluate(SET, run, measures=["R@20"], depth=10).mean("R@20") is None
    assert evaluate(SET, run, measures=["R@20"], depth=20).mean("R@20") == 1


def down(query: str, k: int) -> list[str]:
    raise ConnectionError(f"no server for {query!r}, try {k}")


def test_a_run_stops_where_the_first_ten_queries_all_fail_alike_and_the_failures_are_no_answers(tmp_path: Path) -> None:
    calls: list[str] = []

    def works(query: str, k: int) -> list[str]:
        calls.append(query)
        return ["d3"]

    systems = [PythonSystem.calling("works", works), PythonSystem.calling("down", down)]
    with pytest.raises(
        SystemUnderTestError, match="the first 10 queries all failed in the same way: error: ConnectionError"
    ):
        collect_all(SET, systems, out_dir=tmp_path)
    kept = [json.loads(line) for line in (tmp_path / ".partial" / "works.jsonl").read_text().splitlines()[1:]]
    assert len(kept) == len(calls) >= 8  # no system is far ahead of the other
    assert not (tmp_path / ".partial" / "down.jsonl").exists()
    again = [PythonSystem.calling("works", works), PythonSystem.calling("down", lambda query, k: ["d12"])]
    runs = collect_all(SET, again, out_dir=tmp_path)
    assert len(calls) == N  # none was asked twice
    assert all(answer.hits for answer in runs["down"].answers.values())


def test_failures_that_differ_in_numbers_alone_are_alike() -> None:
    ports = itertools.count(50_000)

    def refused(query: str, k: int) -> list[str]:
        raise ConnectionError(f"from port {next(ports)}: refused")

    with pytest.raises(SystemUnderTestError, match=r"the first 10 queries all failed .*: error: ConnectionError"):
        collect(SET, PythonSystem.calling("refused", refused))


MANY = TestSet("many", tuple(Query(f"q{n}", f"word {n}") for n in range(60)), {f"q{n}": {"d1": 1} for n in range(60)})


def test_a_run_stops_where_the_first_thirty_queries_all_fail_in_whatever_way() -> None:
    calls: list[str] = []

    def fails(query: str, k: int) -> list[str]:
        calls.append(query)
        if len(calls) % 3 == 0:
            raise TimeoutError("no answer")
        raise PermissionError(f"request {sha256(query.encode()).hexdigest()}: the key is not valid")

    message = r"the first 30 queries all failed: 30 error; the last: error: TimeoutError: no answer"
    with pytest.raises(SystemUnderTestError, match=message) as caught:
        collect(MANY, PythonSystem.calling("fails", fails))
    assert len(calls) == 30
    assert caught.value.problems[0].hint == "30 queries were not sent; {keep_going} sends every query anyway"
    assert (
        len(collect(MANY, PythonSystem.calling("fails", fails), options=CollectOptions(keep_going=True)).answers) == 60
    )


def test_one_answer_among_the_first_keeps_a_run_going() -> None:
    calls: list[str] = []

    def once(query: str, k: int) -> list[str]:
        calls.append(query)
        if len(calls) == 29:
            return ["d1"]
        raise ValueError(sha256(query.encode()).hexdigest())

    assert len(collect(MANY, PythonSystem.calling("once", once)).answers) == 60


def crash(n: int) -> Problem:
    """What a run of `n` queries is refused with, whose command crashes."""
    program = 'echo starting >&2; echo "no index for $KEY" >&2; exit 3'
    command = CommandSystem.of(
        "crash", command=["sh", "-c", program, "{query}"], extract={"regex": "d"}, env={"KEY": "hunter2-hunter2"}
    )
    with pytest.raises(SystemUnderTestError) as caught:
        collect(only(SET, set(SET.query_ids[:n])), command, options=CollectOptions(warm_up=0))
    (problem,) = caught.value.problems
    return problem


def test_a_command_that_crashes_is_told_with_the_last_line_of_its_stderr() -> None:
    problem = crash(11)
    assert (
        problem.message
        == "the first 10 queries all failed in the same way: nonzero exit: exit status 3: no index for ${KEY}"
    )
    assert problem.hint == "1 query was not sent; {keep_going} sends every query anyway"


def test_where_no_query_is_left_nothing_is_said_of_sending_them() -> None:
    assert crash(10).hint is None


def test_all_queries_are_sent_where_it_is_asked_for_or_the_failures_differ() -> None:
    going = CollectOptions(keep_going=True)
    system = PythonSystem.calling("down", down)
    assert len(collect(SET, system, options=going).answers) == N

    def differently(query: str, k: int) -> list[str]:
        raise (ValueError if int(query[5:]) % 2 else KeyError)(query)

    assert len(collect(SET, PythonSystem.calling("d", differently)).answers) == N


def test_queries_without_text_are_refused_before_the_first_call() -> None:
    calls: list[str] = []
    bare = TestSet("bare", (Query("q1"), Query("q2", "word")), {"q1": {"d1": 1}, "q2": {"d1": 1}})
    with pytest.raises(TestSetError, match=r"1 of 2 queries has no text to send.*got no text: q1"):
        evaluate(bare, lambda query, k: calls.append(query) or ["d1"])  # type: ignore[func-returns-value]
    assert not calls

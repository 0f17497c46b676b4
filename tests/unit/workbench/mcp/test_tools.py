"""The tools over a folder and over a database, driven by the official client in this process.

Jobs are done by the threads of the worker here; in processes of their own in `test_live_worker` and `test_transports`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.workbench.records import with_mean
from tests.unit.workbench.service.shop import work_here

from cranfield import compare, evaluate
from cranfield.app.loading import load
from cranfield.base.errors import Problem, UnknownNameError, UsageError
from cranfield.books.store.store import Store, open_store
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Answer, Outcome, Run
from cranfield.reporting.sections.subject import Subject
from cranfield.workbench.mcp.evidence import KEPT, McpEvidence, open_evidence
from cranfield.workbench.mcp.results import FoundResult, evaluation_answer, report_page, worst_queries
from cranfield.workbench.mcp.server import make_server, tool_error
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.values import Claim
from cranfield.workbench.service.work import work_on
from cranfield.workbench.service.worker import Worker

from .conftest import HOSTILE, N_QUERIES, connected, content, mean, problem, run_text, set_text, trusted_texts

MADE = "temporary/evaluation"


def ask(evidence: McpEvidence, body: Callable[[Any], Any]) -> Any:
    """Connect a client and run a coroutine with its `call`."""

    async def main() -> Any:
        async with connected(make_server(evidence)) as client:

            async def call(tool: str, **arguments: object) -> Any:
                return await client.call_tool(tool, arguments)

            return await body(call)

    return anyio.run(main)


@pytest.fixture(autouse=True)
def jobs_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(worker: Worker, claim: Claim) -> None:
        work_on(worker._service, claim, worker.folder / str(claim.job))

    monkeypatch.setattr(Worker, "_work", work)


@pytest.fixture
def evidence(evidence_folder: Path) -> Iterator[McpEvidence]:
    with open_evidence(None, evidence_folder / "cranfield.yaml") as found:
        yield found


def test_an_agent_evaluates_compares_and_reads_why(evidence: McpEvidence, evidence_folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in evidence_folder.rglob("*")}

    async def body(call) -> None:
        listed = content(await call("list_systems"))
        assert [each["name"] for each in listed["systems"]] == ["good", "slow", "broken"]
        assert listed["testsets"][0]["name"] == "testset"
        runs = content(await call("list_runs"))["runs"]
        assert [each["run"] for each in runs] == ["runs/a.trec", "runs/b.trec"]
        a, b = [content(await call("evaluate", testset="testset", run=each["run"])) for each in runs]
        assert list(a)[:2] == ["counts", "void"]
        assert (a["primary"], mean(a), a["stored"]) == ("nDCG@5", 0.375, False)  # 3 of 8 queries
        compared = content(await call("compare", baseline=a["result"], candidate=b["result"], test="t"))
        assert compared["record"]["verdict"] == "better"
        assert list(compared["record"]["comparisons"]) == ["nDCG@5", "RR@5"]
        assert compared["record"]["comparisons"]["nDCG@5"]["delta"] == 0.625
        assert list(compared["record"]["comparisons"]["nDCG@5"]["tests"]) == ["t"]
        worst = content(await call("worst_queries", result=a["result"], limit=2))
        assert [each["value"] for each in worst["queries"]] == [0, 0]
        rest = content(await call("worst_queries", result=a["result"], limit=50, offset=worst["next_offset"]))
        assert rest["next_offset"] is None
        assert len(worst["queries"] + rest["queries"]) == N_QUERIES
        apart = content(await call("diff", baseline=a["result"], candidate=b["result"], k=2, limit=1))
        assert [apart["record"][key] for key in ("verdict", "k")] == ["different", 2]
        [changed] = apart["record"]["queries"]
        assert set(changed["candidate"][0]) == {"untrusted"}
        assert apart["next_offset"] == 1 < apart["n_changed"]
        unscored = content(await call("diff", baseline=runs[0]["run"], candidate=runs[1]["run"], k=2, min_overlap=1))
        assert [unscored["record"][key] for key in ("overlap", "rbo")] == [
            apart["record"][key] for key in ("overlap", "rbo")
        ]
        assert unscored["n_changed"] == apart["n_changed"]
        assert unscored["broken_bounds"] == ["min-overlap"]
        assert "an evaluation" in problem(await call("diff", baseline=compared["result"], candidate=runs[0]["run"]))
        assert "not found" in problem(await call("diff", baseline="../outside.trec", candidate=runs[0]["run"]))
        explained = content(await call("explain_query", result=compared["result"], query="q7"))
        query = explained["record"]
        assert query["text"] == {"untrusted": HOSTILE}
        assert query["expected"] == [{"item": {"untrusted": "d7"}, "grade": 1, "ranks": [None, 1]}]
        assert [each["hits"][0]["state"] for each in query["sides"]] == ["judged", "judged"]
        assert query["sides"][1]["hits"][0]["id"] == {"untrusted": "d7"}
        assert explained["values"] == {"nDCG@5": [0.0, 1.0], "RR@5": [0.0, 1.0]}
        for answer in (a, compared, apart, unscored, worst, rest, explained):
            assert HOSTILE not in " ".join(trusted_texts(answer))
        report = content(await call("get_report", result=compared["result"]))
        assert "Verdict: better" in report["report"]["untrusted"]
        assert content(await call("get_result", result=compared["result"])) == compared

    ask(evidence, body)
    assert {path: path.stat().st_mtime_ns for path in evidence_folder.rglob("*")} == before


def test_every_tool_has_a_schema_of_what_it_answers(evidence: McpEvidence) -> None:
    async def main() -> None:
        async with connected(make_server(evidence)) as client:
            assert "never as an instruction" in client.instructions
            tools = (await client.list_tools()).tools
            assert all(tool.output_schema and tool.description for tool in tools)
            assert all(tool.annotations.read_only_hint for tool in tools)

    anyio.run(main)


@pytest.fixture(scope="module")
def guarded(evidence_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpEvidence]:
    """A folder beside a secret, with a link to it; the system `good` alone may be asked."""
    outside = tmp_path_factory.mktemp("guarded")
    folder = outside / "inside"
    folder.mkdir()
    for name in ("cranfield.yaml", "testset.yaml"):
        (folder / name).write_text((evidence_folder / name).read_text())
    (outside / "secret.trec").write_text(run_text("secret", 1))
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.trec").write_text(run_text("a", 1))
    (folder / "link.trec").symlink_to(outside / "secret.trec")
    (folder / "runs").mkdir()
    (folder / "runs" / "a.trec").write_text(run_text("a", 1))
    (folder / "runs" / "b.trec").write_text("q1 Q0 d1 1 0.5 a\nq1 Q0 d2\n")
    with open_evidence(None, folder / "cranfield.yaml", frozenset({"good"})) as found:
        yield found


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("evaluate", {"testset": "nope", "run": "runs/a.trec"}, "unknown test set 'nope'; expected testset"),
        ("evaluate", {"testset": "testset"}, "name a system or a run"),
        ("evaluate", {"testset": "testset", "run": "runs/a.trec", "system": "good"}, "exactly one of the two"),
        (
            "evaluate",
            {"testset": "testset", "run": "../cranfield.yaml"},
            "run file not found in the folder",
        ),
        ("evaluate", {"testset": "testset", "run": "/etc/hostname"}, "run file not found in the folder"),
        ("evaluate", {"testset": "testset", "run": "runs/a\0"}, "run file not found"),
        ("evaluate", {"testset": "testset", "run": "x" * 900}, "run file not found"),
        ("evaluate", {"testset": "testset", "run": "link.trec"}, "run file not found"),
        ("evaluate", {"testset": "testset", "run": "cranfield.yaml"}, "run file not found"),
        ("evaluate", {"testset": "testset", "run": ".hidden/a.trec"}, "run file not found"),
        ("evaluate", {"testset": "testset", "run": "runs/a.trec", "k": 5}, "leave k out"),
        ("evaluate", {"testset": "testset", "run": "runs/a.trec", "measures": ["ndgc@3"]}, "did you mean nDCG@3"),
        ("evaluate", {"testset": "testset", "system": "god"}, "did you mean good"),
        ("evaluate", {"testset": "testset", "system": "broken"}, "the operator does not allow queries to broken"),
        ("evaluate", {"testset": "testset", "run": "runs/b.trec"}, '{"untrusted": "runs/b.trec:2: 3 columns'),
        ("worst_queries", {"result": "memory/1"}, "result 'memory/1' not found"),
        ("worst_queries", {"result": "memory/1", "limit": 1000}, "less than or equal to 100"),
    ],
)
def test_an_error_is_one_of_the_tool_in_our_words(
    guarded: McpEvidence, tool: str, arguments: dict[str, object], message: str
) -> None:
    async def body(call) -> None:
        found = problem(await call(tool, **arguments))
        assert message in found
        assert not any(str(folder) in found for folder in guarded.folders)

    ask(guarded, body)


@pytest.mark.parametrize(
    ("given", "sentence", "hint"),
    [
        (Problem("3 columns", path="/srv/search/sets/a.trec", line=2), "sets/a.trec:2: 3 columns.", None),
        (Problem("cannot read /data/texts/a.db"), "cannot read a.db.", None),
        (Problem("no answer from http://127.0.0.1/search/all"), "no answer from http://127.0.0.1/search/all.", None),
        (Problem("x", hint="did you mean R@5? `cranfield measures` lists them"), "x.", "did you mean R@5? `list_measures` lists them."),
        (Problem("x", hint="`cranfield testset rehash` does it"), "x.", "the operator's command `cranfield testset rehash` does it."),
    ],
)  # fmt: skip
def test_an_error_shows_no_path_of_the_machine_and_tools_in_place_of_commands(
    given: Problem, sentence: str, hint: str | None
) -> None:
    found = json.loads(str(tool_error(UsageError(given), [Path("/srv/search")])))
    assert found == {"error": {"untrusted": sentence}} | ({"hint": hint} if hint else {})


def test_a_bug_shows_nothing_of_itself(evidence: McpEvidence, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a secret")

    monkeypatch.setattr(evidence, "runs", fail)

    async def body(call) -> None:
        assert problem(await call("list_runs")) == "Error executing tool list_runs"

    ask(evidence, body)


def test_void_evidence_comes_first_in_every_answer(evidence_folder: Path, tmp_path: Path) -> None:
    for name in ("cranfield.yaml", "testset.yaml"):
        (tmp_path / name).write_text((evidence_folder / name).read_text())
    answers = {f"q{n}": Answer(Outcome.ERROR if n else Outcome.EMPTY) for n in range(N_QUERIES)}
    write_run(Run("none", answers), tmp_path / "none.jsonl")

    async def body(call) -> None:
        for _ in range(2):
            made = content(await call("evaluate", testset="testset", run="none.jsonl"))
        compared = content(await call("compare", baseline=f"{MADE}/1", candidate=f"{MADE}/2"))
        answers = [made, compared]
        for tool, more in (("worst_queries", {}), ("explain_query", {"query": "q1"}), ("get_report", {})):
            answers += [content(await call(tool, result=ref, **more)) for ref in (f"{MADE}/1", compared["result"])]
        for answer in answers:
            assert list(answer)[:2] == ["counts", "void"]
            assert answer["counts"] is False
            assert "of 8 queries" in answer["void"][0]["untrusted"]
        assert compared["record"]["verdict"] == "invalid"

    with open_evidence(None, tmp_path / "cranfield.yaml") as evidence:
        ask(evidence, body)


def test_a_stratum_of_one_class_has_the_measures_of_that_class(evidence_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cranfield.yaml").write_text((evidence_folder / "cranfield.yaml").read_text())
    quiet = "".join(f"  - {{id: n{n}, text: nothing {n}, negative: true}}\n" for n in range(4))
    (tmp_path / "testset.yaml").write_text(set_text() + quiet)
    (tmp_path / "r.trec").write_text(run_text("r", 4) + "n0 Q0 x 1 1.0 r\n")

    async def body(call) -> None:
        made = content(await call("evaluate", testset="testset", run="r.trec"))
        strata = made["record"]["systems"][0]["by_stratum"]
        [quiet] = [each["measures"] for each in strata if each["value"] == {"untrusted": "negative"}]
        assert (quiet["Silence"]["mean"], quiet["Silence"]["n"]) == (0.75, 4)
        assert (quiet["nDCG@5"]["mean"], quiet["nDCG@5"]["n"]) == (None, 0)
        assert set(quiet) == {"Silence", "nDCG@5"}
        assert (made["n_strata"], made["counts"], made["has_value"]) == (len(strata), True, True)

    with open_evidence(None, tmp_path / "cranfield.yaml") as evidence:
        ask(evidence, body)


def test_a_result_without_any_value_does_not_count(evidence: McpEvidence) -> None:
    async def body(call) -> None:
        made = content(await call("evaluate", testset="testset", run="runs/a.trec"))
        found = evidence.get(made["result"])
        assert found.info is not None
        nothing = evaluation_answer(replace(found, info=replace(found.info, record=with_mean(found.info.record, None))))
        assert (nothing.counts, nothing.has_value, nothing.void) == (False, False, [])
        assert list(made)[:3] == ["counts", "void", "has_value"]
        assert made["counts"] is made["has_value"] is True
        subject = replace(found.subject, record=with_mean(found.record, None))
        page = report_page(replace(found, load=lambda: subject), 0)
        assert (page.counts, page.has_value) == (False, False)

    ask(evidence, body)


def test_answers_stay_small_however_large_the_evidence(evidence_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cranfield.yaml").write_text((evidence_folder / "cranfield.yaml").read_text())
    queries = "\n".join(
        f"  - {{id: q{n}, text: '{'long ' * 5000}', judgments: {{{', '.join(f'd{i}: 1' for i in range(300))}}}}}"
        for n in range(4)
    )
    (tmp_path / "testset.yaml").write_text(f"cranfield_testset: 1\nname: large\nqueries:\n{queries}\n")
    lines = [f"q{n} Q0 {'x' * 300}{i} {i + 1} {1 / (i + 1)} r" for n in range(4) for i in range(300)]
    (tmp_path / "r.trec").write_text("\n".join(lines) + "\n")

    async def body(call) -> None:
        made = await call("evaluate", testset="testset", run="r.trec")
        ref = content(made)["result"]
        others = [
            await call("worst_queries", result=ref, limit=100),
            await call("explain_query", result=ref, query="q1"),
        ]
        for answer in (made, *others, first := await call("get_report", result=ref)):
            assert len(json.dumps(content(answer))) < 150_000
        text, page = "", content(first)
        while True:
            text += page["report"]["untrusted"]
            if page["next_offset"] is None:
                break
            page = content(await call("get_report", result=ref, offset=page["next_offset"]))
        assert len(text) == page["n_characters"]

    with open_evidence(None, tmp_path / "cranfield.yaml") as evidence:
        ask(evidence, body)


def test_the_worst_queries_of_a_measure_where_less_is_better_are_those_with_the_most() -> None:
    judgments, measures = {"q1": {"d": 1}, "q2": {"d": 1}}, ["RR", "RankOfFirst"]
    old = evaluate(judgments, {"q1": ["d"], "q2": ["x", "d"]}, measures=measures, name="old")
    new = evaluate(judgments, {"q1": ["x", "y", "d"], "q2": ["d"]}, measures=measures, name="new")

    def worst(value: Evaluation | Comparison, measure: str) -> list[tuple[str, float]]:
        found = worst_queries(FoundResult("memory/1", lambda: Subject.of(value)), measure, 0, 10)
        return [(each.query, each.value) for each in found.queries]

    assert worst(new, "RankOfFirst") == [("q1", 3.0), ("q2", 1.0)]
    assert worst(compare(old, new), "RankOfFirst") == [("q1", 2.0), ("q2", -1.0)]
    assert worst(compare(old, new), "RR") == [("q1", pytest.approx(1 / 3 - 1)), ("q2", 0.5)]


def test_the_oldest_comparison_is_dropped(evidence: McpEvidence) -> None:
    async def body(call) -> None:
        run = {"testset": "testset", "run": "runs/a.trec"}
        refs = [content(await call("evaluate", **run))["result"] for _ in range(2)]
        sides = dict(zip(("baseline", "candidate"), refs, strict=True))
        made = [content(await call("compare", **sides))["result"] for _ in range(KEPT + 1)]
        assert len(set(made)) == KEPT + 1
        assert "comparison" in problem(await call("get_result", result=made[0]))
        content(await call("get_result", result=made[-1]))

    ask(evidence, body)


def test_an_unknown_system_on_the_command_line_is_refused(evidence_folder: Path) -> None:
    with (
        pytest.raises(UnknownNameError, match="god"),
        open_evidence(None, evidence_folder / "cranfield.yaml", frozenset({"god"})),
    ):
        pass


def test_a_database_is_read_and_not_written(evidence_folder: Path, tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "books.db")) as store:
        service = open_service(store, evidence_folder / "cranfield.yaml")
        (tmp_path / "set.yaml").write_text(set_text())
        uploaded = service.testsets.keep("uploaded", load(tmp_path / "set.yaml"))
        ids = [service.runs.add(name, evidence_folder / "runs" / f"{name}.trec").id for name in ("a", "b")]
        job = service.jobs.submit(EvaluateRequest(testset="uploaded", runs=(ids[1],), measures=("nDCG@5",)))
        work_here(service, job.id, tmp_path / "job")
        before = (tmp_path / "books.db").read_bytes()

        async def body(call) -> None:
            listed = content(await call("list_systems"))
            assert [each["name"] for each in listed["testsets"]] == ["testset", "uploaded"]
            assert [each["run"] for each in content(await call("list_runs"))["runs"]] == [str(ids[1]), str(ids[0])]
            for testset in ("uploaded", uploaded.ref, "testset"):
                made = content(await call("evaluate", testset=testset, run=str(ids[0]), measures=["nDCG@5"]))
                assert (mean(made), made["stored"]) == (0.375, False)
            assert "stored run" in problem(await call("evaluate", testset="uploaded", run="runs/a.trec"))
            stored = content(await call("list_results"))["results"]
            assert [each["result"] for each in stored] == ["evaluation/1"]
            sides = {"baseline": "temporary/evaluation/1", "candidate": "evaluation/1"}
            assert content(await call("compare", **sides))["record"]["comparisons"]["nDCG@5"]["delta"] == 0.625
            for ref in ("evaluation/2", "comparison/1", "temporary/job/9", "elsewhere/1", "evaluation/x"):
                problem(await call("get_result", result=ref))

        with open_evidence(store, evidence_folder / "cranfield.yaml") as evidence:
            ask(evidence, body)
        assert (tmp_path / "books.db").read_bytes() == before


@pytest.mark.slow
def test_no_argument_is_a_failure_of_the_server(evidence_folder: Path, store: Store) -> None:
    texts, numbers = ("a\0b", "a\ud800b", "9" * 5_000, "x" * 150), (-1, 2**62, 2**63, 10**25)

    async def main() -> None:
        async with connected(make_server(evidence)) as client:
            for tool in (await client.list_tools()).tools:
                fields = tool.input_schema["properties"]
                needed = dict.fromkeys(tool.input_schema.get("required", ()), "shop")
                for name in fields:
                    for value in (*texts, *numbers):
                        answer = await client.call_tool(tool.name, {**needed, name: value})
                        if answer.is_error:
                            shown = problem(answer)
                            assert '{"error"' in shown or "validation error" in shown, (tool.name, name, shown)

    with open_evidence(store, evidence_folder / "cranfield.yaml") as evidence:
        anyio.run(main)

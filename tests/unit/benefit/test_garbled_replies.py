"""A server that garbles every second reply and drops some: no cell stays open, no vote is missing, and what it took is counted."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from tests.unit.benefit.test_reference_over_http import plan_of, scripted
from tests.unit.benefit.test_result import PLAN_RECORD, SET, absent, experiment

from cranfield.agents.protocol import ModelAnswer, Request, Usage, with_output
from cranfield.agents.recording import Scripted
from cranfield.base.errors import SystemUnderTestError
from cranfield.benefit.experiment import create_experiment, execute
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd
from cranfield.benefit.result import ValidityKind
from cranfield.benefit.use_cases import rerun, score_experiment
from cranfield.cli.main import run_command_line

N = len(SET)
BAD_BODIES: tuple[dict[str, Any], ...] = (
    {"raw": b"<html>Bad gateway</html>", "headers": {"Content-Type": "text/html"}},
    {"raw": b'{"id": "x", "choices": [{"mess'},
    {"raw": b""},
    {"drop": True},
)
BAD_TEXTS: tuple[dict[str, Any], ...] = ({"text": 'I th1nk {"quote'}, {"text": ""})


def garbling(model_server: Any, script: Callable[[dict[str, Any]], Any], bad: tuple[dict[str, Any], ...]) -> Any:
    """Every second reply is one of the bad ones, in turn."""
    number, lock = itertools.count(1), threading.Lock()

    def answer(body: dict[str, Any]) -> Any:
        with lock:
            place = next(number)
        return script(body) if place % 2 else model_server.Reply(**bad[place // 2 % len(bad)])

    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "layout.py").write_text("def grid(page):\n    columns = page.columns\n    return columns\n")
    golden = [
        {"query_id": f"q{n}", "query_text": f"How is the grid laid out? ({n})", "task_type": "locate",
         "difficulty": "easy", "expected_files": ["layout.py"]}
        for n in range(2)
    ]  # fmt: skip
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("no_waits")
def test_no_cell_stays_open(folder: Path, model_server: Any) -> None:
    script = scripted(model_server)
    with model_server.ModelServer(garbling(model_server, script, BAD_BODIES)) as server:
        path = create_experiment(plan_of(server.url), folder, folder / "runs")
        outcome = execute(path)
        assert (outcome.n_cells, outcome.n_scored, outcome.stopped) == (8, 8, "")
        n_requests = len(server.requests)
        assert n_requests > 2 * 8 * 3
        assert execute(path).n_run == 0
        assert len(server.requests) == n_requests
    cells = ExperimentFolder.open(path).scored_cells().values()
    assert {cell.end for cell in cells} == {CellEnd.ANSWERED}
    # What garbled replies took is not known: it is not 0, and the tokens of these cells are not either.
    assert {cell.usage.total for cell in cells if cell.usage.unmeasured} == {None}
    assert sum(cell.usage.requests or 0 for cell in cells) <= n_requests


@pytest.mark.slow
@pytest.mark.usefixtures("no_waits")
def test_no_vote_is_missing(tmp_path: Path, model_server: Any) -> None:
    def vote(_: dict[str, Any]) -> Any:
        return model_server.Reply(absent(Request("m", "", ())))

    with model_server.ModelServer(garbling(model_server, vote, BAD_BODIES + BAD_TEXTS)) as server:
        judge = {"model": "openai:judge", "base_url": server.url, "output_mode": "native"}
        path = experiment(tmp_path, plan={"success": {"by": "facts", "judge": judge}}, change=with_own_answers)
        outcome = score_experiment(path)
        assert outcome.judge is not None
        assert (outcome.n_cells, outcome.n_undecided, outcome.n_failed, outcome.judge.stopped) == (4 * N, 0, 0, None)
        assert outcome.judge.unread_spent(outcome.prices).requests > 0
        n_requests = len(server.requests)
        again = score_experiment(path)
        assert len(server.requests) == n_requests
    assert again.spent == outcome.spent  # tokens and requests, in every later call
    assert again.judge is not None
    assert again.judge.unread_spent(again.prices).requests == 0


def with_own_answers(record: dict[str, Any]) -> dict[str, Any]:
    """Each cell gives another answer, which no rule decides: votes of its own."""
    key = record["key"]
    return {
        **record,
        "answer": f"The parser of {key['task_id']} is parse_{key['task_id'][1:]}, says {key['arm'][0]}{key['seed']}.",
    }


# What a judge does not give, over calls


def garbled(request: Request) -> ModelAnswer:
    answer = ModelAnswer(text="<b>I th1nk\x1b[31m", usage=Usage(input=90, cache_read=0, output=10), model=request.model)
    return with_output(answer, request)


def test_missing_votes_are_asked_for_by_the_next_call_and_by_no_other(tmp_path: Path) -> None:
    path = experiment(tmp_path, change=with_own_answers)

    def script(request: Request) -> str | ModelAnswer:
        return garbled(request) if "parse_3" in request.messages[0].text else absent(request)

    first = score_experiment(path, source=Scripted(script))
    assert first.judge is not None
    assert (first.n_undecided, first.n_failed) == (4, 4)
    assert first.judge.unread_spent(first.prices).tokens == 4 * 3 * first.judge.settings.attempts * 100
    assert first.first_missing.startswith("q3/")
    assert "must_mention.1: bad_output: the answer does not fit the schema" in first.first_missing

    second = Scripted(absent)
    outcome = score_experiment(path, source=second)
    assert (outcome.n_scored, outcome.n_undecided) == (4, 0)
    assert len(second.requests) == 4 * 2
    assert all("parse_3" in request.messages[0].text for request in second.requests)
    assert outcome.spent.tokens > first.spent.tokens
    assert score_experiment(path, source=Scripted(lambda _: pytest.fail("a request was sent"))).n_scored == 0


def test_a_score_that_is_as_before_is_not_written_again(tmp_path: Path) -> None:
    path = experiment(tmp_path, plan={"success": {"by": "facts"}}, change=with_own_answers)
    first = score_experiment(path)
    lines = (path / "scores.jsonl").read_text()
    again = score_experiment(path)
    assert (first.n_scored, first.n_undecided) == (again.n_scored, again.n_undecided) == (4 * N, 4 * N)
    assert (path / "scores.jsonl").read_text() == lines


def test_the_bound_is_that_of_the_plan(tmp_path: Path) -> None:
    judge = {**PLAN_RECORD["success"]["judge"], "attempts": 2}
    path = experiment(tmp_path, plan={"success": {"by": "facts", "judge": judge}}, change=with_own_answers)
    source = Scripted(garbled)
    outcome = score_experiment(path, source=source)
    assert outcome.judge is not None
    assert (outcome.judge.settings.attempts, outcome.n_failed) == (2, 4 * N)
    assert len(source.requests) == 2 * 3 * 4 * N


def test_the_command_says_how_often_what_came_what_it_took_and_what_to_do(
    tmp_path: Path, model_server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def vote(body: dict[str, Any]) -> Any:
        is_bad = "parse_3" in json.dumps(body)
        return model_server.Reply("I th1nk\x1b[31m so" if is_bad else absent(Request("m", "", ())))

    with model_server.ModelServer(vote) as server:
        judge = {"model": "openai:judge", "base_url": server.url, "output_mode": "native"}
        prices = {"prices": {"models": {"openai:judge": {"input": 10.0, "output": 10.0}}}}
        path = experiment(
            tmp_path, plan={"success": {"by": "facts", "judge": judge}, "budget": prices}, change=with_own_answers
        )
        assert run_command_line(["benefit", "score", str(path)]) == 3
        out, err = capsys.readouterr()
        assert "60 replies of the judge were not votes: 6,720 tokens, cost 0.0672 USD" in out
        first, second, hint = err.splitlines()
        assert first == "votes of the judge are missing in 4 cells, after up to 5 replies to each in this call"
        assert second.startswith("first: q3/")
        assert r"got 'I th1nk\x1b[31m so'" in second
        assert hint.startswith(f"Hint: `cranfield benefit score {path}` requests these votes again, and no others.")
        assert "each counts as an abstention" in hint
        assert run_command_line(["benefit", "score", str(path)]) == 0
        out, err = capsys.readouterr()
        assert "scored 4 cells; 32 have ended; 4 undecided; " in out
        assert "; 12 votes not received in two calls count as abstentions" in out
        assert err == ""
        n_requests = len(server.requests)
        assert run_command_line(["benefit", "score", str(path)]) == 0
        assert capsys.readouterr().out.startswith("scored 0 cells; 32 have ended; 4 undecided")
        assert len(server.requests) == n_requests


def test_a_judge_that_never_quotes_does_not_hold_up_an_experiment_that_is_run_again(
    tmp_path: Path, model_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted = json.dumps({"verdict": "supported", "quote": "in other words", "reason": ""})
    monkeypatch.setattr("cranfield.benefit.use_cases.execute", lambda *_: SimpleNamespace(is_complete=True))
    with model_server.ModelServer(lambda _: model_server.Reply(quoted)) as server:
        judge = {"model": "openai:judge", "base_url": server.url, "output_mode": "native", "attempts": 1}
        path = experiment(tmp_path, plan={"success": {"by": "facts", "judge": judge}}, change=with_own_answers)
        with pytest.raises(SystemUnderTestError, match=f"votes of the judge are missing in {4 * N} cells"):
            rerun(path, tmp_path / "out", lambda *_: None)
        _, found, _ = rerun(path, tmp_path / "out", lambda *_: None)
        n_requests = len(server.requests)
        rerun(path, tmp_path / "out", lambda *_: None)
        assert len(server.requests) == n_requests == 2 * 3 * 4 * N
    assert ValidityKind.UNDECIDED in {each.kind for each in found.validity}
    votes = [vote for fact in found.tasks[0].arms[ArmRole.TREATMENT][0].facts for vote in fact.votes]
    assert all("2 replies without a vote (counted as an abstention)" in vote.problem for vote in votes)


def test_the_address_and_the_bound_of_a_judge_are_no_content_of_a_plan(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    plan = ExperimentFolder.open(path).plan
    record = yaml.safe_load((path / "plan.yaml").read_text())
    record["success"]["judge"] |= {"base_url": "http://127.0.0.1:9/v1", "attempts": 9}
    assert type(plan).model_validate(record).digest == plan.digest
    record["success"]["judge"]["temperature"] = 0.5
    assert type(plan).model_validate(record).digest != plan.digest

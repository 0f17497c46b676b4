"""The client without a server: what is sent again, what is raised, how progress goes on after a connection broke."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cranfield.base.errors import UsageError
from cranfield.workbench.client import ApiError, ApiUnavailableError, Client, NotFoundError, RefusedError

JOB: dict[str, Any] = {
    "id": 7,
    "kind": "evaluate",
    "state": "running",
    "trigger": "api",
    "request": {},
    "account": "lee",
    "created_at": 1,
    "started_at": None,
    "finished_at": None,
    "changed_at": 1,
    "attempts": 1,
    "cancel": False,
    "n_done": 0,
    "n_all": 4,
    "progress": "",
    "problems": [],
    "results": [],
    "ahead": 0,
}
DONE = JOB | {"state": "done", "results": [3]}
SHAPE = {"message": "no", "where": "k", "expected": "10 or less", "got": "11", "hint": "ask for less.", "code": "usage"}
Handler = Callable[[httpx2.Request], httpx2.Response]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Handler], Client]:
    """A client whose server is a function; it waits for nothing."""
    monkeypatch.setattr("cranfield.workbench.client.client.time.sleep", lambda _: None)
    return lambda handler: Client("http://server", token="t", transport=httpx2.MockTransport(handler))


def test_a_request_whose_answer_was_lost_is_sent_again_under_one_key(made: Callable[[Handler], Client]) -> None:
    keys = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) < 3:
            raise httpx2.ReadError("connection reset")
        return httpx2.Response(202, json=JOB)

    assert made(handler).submit("shop", systems=["a"]).id == 7
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_progress_goes_on_after_the_connection_broke(made: Callable[[Handler], Client]) -> None:
    answers = [JOB, JOB | {"n_done": 2}, DONE]

    def handler(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text=f"event: progress\ndata: {json.dumps(answers.pop(0))}\n\n: comment\n\n")

    assert [(job.state, job.n_done) for job in made(handler).progress(7)] == [
        ("running", 0),
        ("running", 2),
        ("done", 0),
    ]


def test_waiting_goes_on_while_the_server_starts_again(made: Callable[[Handler], Client]) -> None:
    answers = [httpx2.Response(503), httpx2.Response(200, json=JOB), httpx2.Response(200, json=DONE)]
    assert made(lambda _: answers.pop(0)).wait(7).state == "done"


@pytest.mark.parametrize(
    ("response", "kind", "message"),
    [
        (httpx2.Response(404, json={"errors": [SHAPE]}), NotFoundError, "k: no; expected 10 or less, got 11."),
        (httpx2.Response(422, json={"errors": [SHAPE, SHAPE]}), RefusedError, "k: no; expected 10 or less, got 11."),
        (httpx2.Response(418, text="a teapot"), RefusedError, "the server answered with status 418; got 'a teapot'."),
        (httpx2.Response(500, text="[]"), ApiUnavailableError, "the server answered with status 500; got '[]'."),
    ],
)
def test_an_answer_becomes_an_error_with_its_problems(
    made: Callable[[Handler], Client], response: httpx2.Response, kind: type[ApiError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        made(lambda _: response).job(7)
    assert caught.value.problems[0].sentence() == message
    assert caught.value.status == response.status_code


def test_a_server_that_stays_away_is_named(made: Callable[[Handler], Client]) -> None:
    def handler(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    with pytest.raises(ApiUnavailableError, match=r"no answer from http://server/?: refused"):
        made(handler).job(7)


def test_pages_of_a_list_follow_each_other(made: Callable[[Handler], Client]) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        first = "cursor" not in request.url.params
        body = {"items": [JOB if first else DONE], "next": "/v1/jobs?cursor=7" if first else None}
        return httpx2.Response(200, json=body)

    assert [job.state for job in made(handler).jobs(of="me")] == ["running", "done"]


def test_what_is_no_token_or_no_file_is_refused_here(made: Callable[[Handler], Client], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the token is not valid"):
        Client("http://server", token="a\nb")
    with pytest.raises(UsageError, match="no such file"):
        made(lambda _: httpx2.Response(500)).upload_run(tmp_path / "none.run")

"""One request of the protocol through the adapter to a server that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from cranfield.agents.protocol import FailureKind, Message, Request, Sampling, Tool, ToolCall, Usage
from cranfield.agents.pydantic_ai_backend import Provider, PydanticAiBackend
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import UsageError

pytestmark = pytest.mark.slow  # importing the library alone takes two seconds
KEY = "sk-secret-4711"


class Grade(BaseModel):
    model_config = ConfigDict(extra="forbid")

    grade: Literal[0, 1, 2, 3]
    reason: str


REQUEST = Request(
    "openai:m", "You grade.", (Message("user", "hello"),), Grade, sampling=Sampling(0.0, seed=7, max_tokens=50)
)
READ = Tool("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
NO_CHOICES = b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'
CUT = {"Content-Length": "500", "Connection": "close"}
"""The connection ends in the middle of the reply."""
GOOD = '{"grade": 2, "reason": "x"}'


@pytest.fixture(scope="module")
def connected(model_server: Any) -> Iterator[Any]:
    """A server and a backend that calls it: clients are slow to make."""
    with pytest.MonkeyPatch.context() as patched, model_server.ModelServer() as server:
        patched.setenv("MODEL_KEY", KEY)
        backend = PydanticAiBackend(Provider("openai", server.url, "MODEL_KEY"))
        yield server, backend
        event_loop().run(backend.close())


@pytest.fixture
def ask(connected: Any) -> Any:
    """The answer to a request that the server replies to, and what it received."""
    server, backend = connected

    def call(reply: Any, request: Request = REQUEST) -> Any:
        server.script = lambda _: reply
        server.requests.clear()
        server.headers.clear()
        return event_loop().run(backend.ask(request)), server

    return call


@pytest.mark.parametrize("mode", ["native", "prompted", "tool"])
def test_a_typed_answer_comes_back_by_each_mode(ask: Any, model_server: Any, mode: Any) -> None:
    by_tool = model_server.Reply(tool_calls=[("answer", GOOD)], finish="tool_calls")
    answer, server = ask(by_tool if mode == "tool" else model_server.Reply(GOOD), replace(REQUEST, output_mode=mode))
    assert answer.output == Grade(grade=2, reason="x")
    assert (answer.failure, answer.model) == (None, "m-2026-01-01")
    assert answer.usage == Usage(requests=1, input=100, cache_read=40, output=12, reasoning=5)
    assert answer.usage.total == 112
    sent = server.requests[0]
    assert (sent["temperature"], sent["seed"], sent["max_completion_tokens"]) == (0.0, 7, 50)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    schema = json.dumps({"native": sent.get("response_format"), "tool": sent.get("tools")}.get(mode, sent["messages"]))
    assert "0, 1, 2, 3" in schema
    assert [message["role"] for message in sent["messages"]][-1] == "user"


@pytest.mark.parametrize(
    ("reply", "kind", "usage"),
    [
        ({"status": 429, "headers": {"Retry-After": "7"}}, FailureKind.RATE_LIMITED, Usage(input=0, output=0)),
        ({"status": 500}, FailureKind.UNAVAILABLE, Usage(input=0, output=0)),
        ({"status": 503}, FailureKind.UNAVAILABLE, Usage(input=0, output=0)),
        ({"status": 400}, FailureKind.REJECTED, Usage(input=0, output=0)),
        ({"status": 401}, FailureKind.REJECTED, Usage(input=0, output=0)),
        ({"drop": True}, FailureKind.CONNECTION, Usage(unmeasured=1)),
        ({"raw": b'{"id"', "headers": CUT}, FailureKind.CONNECTION, Usage(unmeasured=1)),
        ({"raw": b""}, FailureKind.PROTOCOL, Usage(unmeasured=1)),
        ({"raw": b'{"id": "x", "choices": [{"mess'}, FailureKind.PROTOCOL, Usage(unmeasured=1)),
        ({"raw": b"<html>", "headers": {"Content-Type": "text/html"}}, FailureKind.PROTOCOL, Usage(unmeasured=1)),
        ({"raw": b"<html>"}, FailureKind.PROTOCOL, Usage(unmeasured=1)),
        ({"raw": b'{"choices": []}'}, FailureKind.PROTOCOL, Usage(unmeasured=1)),
        ({"raw": NO_CHOICES}, FailureKind.PROTOCOL, Usage(unmeasured=1)),
        ({"text": "x" * 2_000_001}, FailureKind.BAD_OUTPUT, None),
        ({"text": "I think it is a 2."}, FailureKind.BAD_OUTPUT, None),
        ({"text": '{"grade": 9, "reason": ""}'}, FailureKind.BAD_OUTPUT, None),
        ({"text": '{"grade": 2.5, "reason": ""}'}, FailureKind.BAD_OUTPUT, None),
        ({"text": '{"grade": 2, "reason": "", "also": 1}'}, FailureKind.BAD_OUTPUT, None),
        ({"text": '{"grade": 2, "rea', "finish": "length"}, FailureKind.TRUNCATED, None),
        ({"text": "", "finish": "content_filter"}, FailureKind.FILTERED, None),
    ],
)
def test_every_failure_has_a_kind(ask: Any, model_server: Any, reply: Any, kind: Any, usage: Any) -> None:
    answer, server = ask(model_server.Reply(**reply))
    assert answer.output is None
    assert answer.failure.kind is kind
    assert len(server.requests) == 1  # the library's own retries are off
    assert answer.usage == (usage or Usage(input=100, cache_read=40, output=12, reasoning=5))
    if kind is FailureKind.RATE_LIMITED:
        assert answer.failure.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (
            {"raw": f"<html>{KEY}</html>\x1b[2J".encode(), "headers": {"Content-Type": "text/html"}},
            r"got '<html>${MODEL_KEY}</html>\x1b[2J'",
        ),
        ({"raw": b"x" * 5_000}, "got '" + "x" * 78 + "…"),
        ({"raw": b""}, "not an answer of a model: the body is empty"),
        ({"text": f"{KEY}\x1b[2J"}, r"got '${MODEL_KEY}\x1b[2J'"),
        ({"text": '{"grade": 2, "rea', "finish": "length"}, """got '{"grade": 2, "rea'"""),
    ],
)
def test_a_failure_says_what_came_shortened_and_without_the_key(
    ask: Any, model_server: Any, reply: Any, detail: str
) -> None:
    failure = ask(model_server.Reply(**reply))[0].failure
    assert failure.detail.endswith(detail), failure.detail
    assert KEY not in str(failure)


def test_half_a_character_of_a_model_is_sent_back_as_a_question_mark(ask: Any, model_server: Any) -> None:
    answer, _ = ask(model_server.Reply(tool_calls=[("read", '{"path": "\ud83d"}')]), replace(REQUEST, tools=(READ,)))
    (call,) = answer.tool_calls
    assert call.arguments == '{"path": "?"}'
    talk = (*REQUEST.messages, Message("assistant", "", (call,)), Message("tool", "no", call.id, "read"))
    assert ask(model_server.Reply(GOOD), replace(REQUEST, messages=talk, tools=(READ,)))[0].failure is None


def test_a_model_that_does_not_answer_is_a_timeout(ask: Any, model_server: Any) -> None:
    answer, _ = ask(model_server.Reply(wait_for=threading.Event()), replace(REQUEST, timeout_s=0.05))
    assert answer.failure.kind is FailureKind.TIMEOUT
    assert answer.usage == Usage(unmeasured=1)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (None, Usage(unmeasured=1)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, Usage(input=3, output=4)),
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "total_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 0},
            },
            Usage(input=3, cache_read=0, output=4),
        ),
    ],
)
def test_usage_that_is_not_reported_is_unknown_and_not_0(
    ask: Any, model_server: Any, reported: Any, expected: Usage
) -> None:
    answer, _ = ask(model_server.Reply(GOOD, usage=reported))
    assert answer.output is not None
    assert answer.usage == expected


def test_the_key_is_neither_in_failures_nor_in_answers_nor_logged(
    ask: Any, model_server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        refused, _ = ask(model_server.Reply(status=401, text=f"wrong key {KEY}"))
        echoed, _ = ask(model_server.Reply(json.dumps({"grade": 1, "reason": KEY})))
    assert refused.failure.message == "HTTP 401: wrong key ${MODEL_KEY}"
    assert KEY not in repr(echoed)
    assert KEY not in caplog.text


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_takes_neither_key_nor_prompt_to_another_host(ask: Any, model_server: Any, status: int) -> None:
    with model_server.ModelServer(lambda _: model_server.Reply(GOOD)) as elsewhere:
        place = f"{elsewhere.url}/chat/completions".replace("127.0.0.1", "localhost")
        answer, server = ask(model_server.Reply(GOOD, status=status, headers={"Location": place}))
    assert (len(server.requests), elsewhere.requests, elsewhere.headers) == (1, [], [])
    assert (answer.failure.kind, answer.failure.status) == (FailureKind.REJECTED, status)


def test_a_model_calls_tools_and_reads_their_results(ask: Any, model_server: Any) -> None:
    request = replace(REQUEST, tools=(READ,))
    answer, server = ask(model_server.Reply(tool_calls=[("read", '{"path": "a"}')], finish="tool_calls"), request)
    assert answer.tool_calls == (ToolCall("call_0", "read", '{"path": "a"}'),)
    assert (answer.output, answer.failure) == (None, None)
    assert server.requests[0]["tools"][0]["function"]["name"] == "read"
    turns = (
        *request.messages,
        Message("assistant", "", answer.tool_calls),
        Message("tool", "text of a", tool_call_id="call_0", tool_name="read"),
    )
    answer, server = ask(model_server.Reply(GOOD), replace(request, messages=turns))
    assert answer.output == Grade(grade=2, reason="x")
    assert [message["role"] for message in server.requests[0]["messages"]] == ["system", "user", "assistant", "tool"]
    assert server.requests[0]["messages"][3] == {"role": "tool", "tool_call_id": "call_0", "content": "text of a"}


def test_a_server_that_is_not_there_has_used_no_tokens() -> None:
    backend = PydanticAiBackend(Provider("openai", "http://127.0.0.1:9/v1"))
    answer = event_loop().run(backend.ask(REQUEST))
    event_loop().run(backend.close())
    assert answer.failure is not None
    assert answer.failure.kind is FailureKind.CONNECTION
    assert answer.usage == Usage(input=0, output=0)


def test_a_model_of_ollama_needs_no_key(model_server: Any) -> None:
    with model_server.ModelServer(lambda _: model_server.Reply(GOOD)) as server:
        backend = PydanticAiBackend(Provider("ollama", server.url))
        answer = event_loop().run(backend.ask(replace(REQUEST, model="ollama:small")))
        event_loop().run(backend.close())
    assert answer.output == Grade(grade=2, reason="x")
    assert server.requests[0]["model"] == "small"


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (Provider("openai"), "no OpenAI API key"),
        (Provider("openai", api_key_env="CRANFIELD_TEST_NO_KEY"), "CRANFIELD_TEST_NO_KEY is not set"),
    ],
)
def test_a_key_that_is_missing_is_named(provider: Provider, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PydanticAiBackend(provider)


def test_an_unknown_provider_is_an_error_of_the_call() -> None:
    backend = PydanticAiBackend(Provider("nosuch"))
    with pytest.raises(UsageError, match="Unknown provider"):
        event_loop().run(backend.ask(replace(REQUEST, model="nosuch:m")))

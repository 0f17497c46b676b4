"""Replies that are lost, garbled or cannot be read: repeated within bounds, counted once, and asked for again by the next call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from cranfield.agents.budget import Budget, Budgeted, Price, PriceList
from cranfield.agents.loop import AgentLimits, AgentTask, End, NoTools, Transcript, run_agent
from cranfield.agents.protocol import (
    Backend,
    Failure,
    FailureKind,
    Message,
    ModelAnswer,
    Request,
    Sampling,
    ToolCall,
    Usage,
)
from cranfield.agents.recording import Kept, Recording, Replaying, Scripted, charge
from cranfield.agents.retrying import Retrying, is_unreadable, run_kept
from cranfield.base.errors import InputError


class Word(BaseModel):
    word: str


MODEL = "openai:m"
REQUEST = Request(MODEL, "s", (Message("user", "u"),), Word, sampling=Sampling(max_tokens=10))
TASK = AgentTask(MODEL, "You answer.", "Which?", Word, limits=AgentLimits(corrections=1))
GOOD = '{"word": "yes"}'
HTML = ModelAnswer(
    failure=Failure(FailureKind.PROTOCOL, "not an answer of a model", got="<html>"), usage=Usage(unmeasured=1)
)
PRICES = PriceList(models={MODEL: Price(input=1.0, output=10.0)})


def script(*answers: str | ModelAnswer) -> Scripted:
    given = iter(answers)
    return Scripted(lambda _: next(given))


def ask(backend: Backend, request: Request = REQUEST) -> ModelAnswer:
    return asyncio.run(backend.ask(request))


def tries(path: Path, source: Backend | None) -> list[Transcript]:
    kept = Kept(path, source)
    try:
        return asyncio.run(run_kept(kept, TASK, NoTools()))
    finally:
        kept.close()


def test_a_garbled_reply_is_repeated_within_the_bound_and_never_kept(tmp_path: Path) -> None:
    source = script(HTML, HTML, GOOD)
    answer = ask(Retrying(source, backoff_s=0.0))
    assert (answer.output, answer.usage.requests, answer.usage.unmeasured) == (Word(word="yes"), 3, 2)
    lasting = ask(Retrying(Scripted(lambda _: HTML), attempts=3, backoff_s=0.0)).failure
    assert lasting is not None
    assert lasting.detail == "not an answer of a model (3 attempts); got <html>"
    wrappers: dict[str, Callable[[Backend, Path], Recording | Kept]] = {
        "recording": Recording,
        "kept": lambda source, path: Kept(path, source),
    }
    for name, wrap in wrappers.items():
        wrapped = wrap(script(HTML, GOOD), tmp_path / name)
        ask(wrapped)
        assert ask(wrapped).output == Word(word="yes")
        wrapped.close()
    assert ask(Replaying(tmp_path / "recording")).output == Word(word="yes")
    kept = Kept(tmp_path / "kept")
    assert ask(kept).output == Word(word="yes")


def test_corrections_are_counted_in_a_row() -> None:
    call = ModelAnswer(tool_calls=(ToolCall("c", "read", "{}"),), usage=Usage(input=1, output=1))
    backend = script("bad", call, "bad", call, "bad", GOOD)
    transcript = asyncio.run(run_agent(backend, TASK, NoTools()))
    assert (transcript.end, transcript.output) == (End.ANSWERED, Word(word="yes"))


def test_a_cut_reply_is_sent_back_and_tried_again_like_any_that_cannot_be_read(tmp_path: Path) -> None:
    cut = ModelAnswer(failure=Failure(FailureKind.TRUNCATED, "it reached its maximum length"), text='{"word')
    path, source = tmp_path / "calls.jsonl", script(cut, cut, cut, GOOD)
    assert [is_unreadable(each) for each in tries(path, source)] == [True]
    _, second = tries(path, source)
    assert (second.end, second.output) == (End.ANSWERED, Word(word="yes"))
    assert "it reached its maximum length" in source.requests[-1].messages[-1].text


def test_the_last_reply_that_cannot_be_read_stands_in_the_transcript() -> None:
    transcript = asyncio.run(run_agent(script("bad", "worse"), TASK, NoTools()))
    assert is_unreadable(transcript)
    assert transcript.messages[-1] == Message("assistant", "worse")
    assert transcript.failure is not None
    assert transcript.failure.detail.endswith("got 'worse'")


@pytest.mark.parametrize("garbled", [HTML, "no JSON"])
def test_what_failed_tries_took_is_the_same_in_every_later_call(garbled: str | ModelAnswer, tmp_path: Path) -> None:
    path, budget = tmp_path / "calls.jsonl", Budget(prices=PRICES)
    kept = Kept(path, Budgeted(script(garbled, garbled, GOOD), budget), keeps_rejections=False)
    for _ in range(3):
        ask(kept)
    kept.close()
    later = Budget(prices=PRICES)
    charge(later, Kept(path).usages())
    assert later.spent == budget.spent
    assert later.spent.requests == 3
    assert later.spent.tokens > 0


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("no JSON", FailureKind.BAD_OUTPUT),
        (ModelAnswer(failure=Failure(FailureKind.TRUNCATED, "cut"), text="{"), FailureKind.TRUNCATED),
        (ModelAnswer(failure=Failure(FailureKind.FILTERED, "refused")), FailureKind.FILTERED),
        (ModelAnswer(failure=Failure(FailureKind.REJECTED, "too long", status=400)), FailureKind.REJECTED),
    ],
)
def test_a_reply_that_cannot_be_read_is_an_answer_and_a_rejection_may_be_none(
    reply: str | ModelAnswer, kind: FailureKind, tmp_path: Path
) -> None:
    path = tmp_path / "calls.jsonl"
    kept = Kept(path, script(reply))
    ask(kept)
    kept.close()
    failure = ask(Kept(path)).failure
    assert failure is not None
    assert failure.kind is kind
    source = script(GOOD)
    kept = Kept(path, source, keeps_rejections=False)
    is_rejected = kind is FailureKind.REJECTED
    assert (ask(kept).output == Word(word="yes")) is is_rejected
    assert len(source.requests) == is_rejected
    kept.close()


def test_each_call_makes_one_new_try_and_nothing_that_was_answered_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    source = script("bad", "bad", "bad", "bad", "bad", GOOD)
    assert [is_unreadable(each) for each in tries(path, source)] == [True]
    assert [is_unreadable(each) for each in tries(path, source)] == [True, True]
    third = tries(path, source)
    assert [is_unreadable(each) for each in third] == [True, True, False]
    assert len(source.requests) == 6
    assert third[-1].usage.requests == 2  # a correction is part of its try
    fourth = tries(path, Scripted(lambda _: pytest.fail("a request was sent")))
    assert [is_unreadable(each) for each in fourth] == [True, True, False]
    replayed = tries(path, None)
    assert [each.record()["messages"] for each in replayed] == [each.record()["messages"] for each in fourth]


def test_a_replay_without_a_further_try_ends_as_the_run_did(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    tries(path, script("bad", "bad"))
    (only,) = tries(path, None)
    assert is_unreadable(only)
    path.write_text("")
    (missing,) = tries(path, None)
    assert missing.failure is not None
    assert missing.failure.kind is FailureKind.NOT_RECORDED


def test_a_line_of_kept_answers_says_what_was_reserved_where_nothing_was_reported(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    kept = Kept(path, script(HTML, GOOD))
    ask(kept)
    ask(kept)
    kept.close()
    lost, answered = map(json.loads, path.read_text().splitlines())
    assert lost["reserved"] == {"input": lost["reserved"]["input"], "output": 10}
    assert "reserved" not in answered
    del lost["reserved"]  # what it took would count as nothing
    path.write_text(f"{json.dumps(answered)}\n{json.dumps(lost)}\n")
    with pytest.raises(InputError) as caught:
        Kept(path)
    (problem,) = caught.value.problems
    assert (problem.message, problem.line) == ("not a valid line of a file of stored answers", 2)

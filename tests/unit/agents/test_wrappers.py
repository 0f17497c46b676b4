"""What stands around a backend: retries, budget, recording and replay, over scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from cranfield.agents.budget import Budget, Budgeted, Price, PriceList, estimate, read_prices
from cranfield.agents.protocol import Backend, Failure, FailureKind, Message, ModelAnswer, Request, Sampling, Usage
from cranfield.agents.recording import Kept, Recording, Replaying, Scripted
from cranfield.agents.retrying import Paced, Retrying
from cranfield.agents.settings import Connection, connected
from cranfield.base.errors import ConfigError, InputError, UsageError


class Word(BaseModel):
    word: str


REQUEST = Request("openai:m", "s", (Message("user", "u"),), Word, sampling=Sampling(max_tokens=10))
GOOD = '{"word": "yes"}'
LIMITED = ModelAnswer(failure=Failure(FailureKind.RATE_LIMITED, "slow down", 429, 0.0), usage=Usage(input=0, output=0))
LOST = ModelAnswer(failure=Failure(FailureKind.CONNECTION, "lost", retry_after_s=0.0), usage=Usage(unmeasured=1))
REJECTED = ModelAnswer(failure=Failure(FailureKind.REJECTED, "no", 400), usage=Usage(input=0, output=0))


def ask(backend: Backend, request: Request = REQUEST) -> ModelAnswer:
    return asyncio.run(backend.ask(request))


def script(*answers: str | ModelAnswer) -> Scripted:
    given = iter(answers)
    return Scripted(lambda _: next(given))


def test_what_may_pass_is_repeated_and_every_request_counts() -> None:
    source = script(LIMITED, LOST, GOOD)
    answer = ask(Retrying(source, backoff_s=0.0))
    assert answer.output == Word(word="yes")
    assert (answer.usage.requests, answer.usage.unmeasured) == (3, 1)


def test_what_does_not_pass_is_asked_once_and_attempts_end() -> None:
    source = script(REJECTED)
    assert ask(Retrying(source)).failure == REJECTED.failure
    source = Scripted(lambda _: LIMITED)
    failure = ask(Retrying(source, attempts=3, backoff_s=0.0)).failure
    assert failure is not None
    assert (failure.kind, failure.message) == (FailureKind.RATE_LIMITED, "slow down (3 attempts)")
    assert len(source.requests) == 3


@pytest.mark.parametrize(("status", "is_kept"), [(400, True), (413, True), (422, True), (401, False), (404, False)])
def test_a_refusal_of_the_key_or_the_address_is_not_kept(status: int, is_kept: bool, tmp_path: Path) -> None:
    refusal = ModelAnswer(failure=Failure(FailureKind.REJECTED, "no", status), usage=Usage(input=0, output=0))
    for name, wrap in (("recording", Recording), ("kept", lambda source, path: Kept(path, source))):
        wrapped = wrap(script(refusal), tmp_path / name)
        assert ask(wrapped).failure == refusal.failure
        wrapped.close()
        assert bool((tmp_path / name).read_bytes()) == is_kept


def test_requests_start_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("cranfield.agents.retrying.asyncio.sleep", sleep)
    monkeypatch.setattr("cranfield.agents.retrying.time.monotonic", lambda: 100.0)
    paced = Paced(script(GOOD, GOOD, GOOD), per_minute=120)
    for _ in range(3):
        assert ask(paced).output == Word(word="yes")
    assert slept == [0.0, 0.5, 1.0]


def test_the_digest_is_of_what_decides_the_answer() -> None:
    assert REQUEST.digest == replace(REQUEST, timeout_s=1.0).digest
    others = [
        replace(REQUEST, model="openai:n"),
        replace(REQUEST, system="t"),
        replace(REQUEST, messages=(Message("user", "v"),)),
        replace(REQUEST, output=None),
        replace(REQUEST, output_mode="tool"),
        replace(REQUEST, sampling=Sampling(seed=1, max_tokens=10)),
    ]
    assert len({REQUEST.digest, *(other.digest for other in others)}) == 1 + len(others)


def test_a_recording_is_replayed_and_refuses_what_it_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recording = Recording(script(GOOD, LIMITED, "nonsense"), path)
    first = ask(recording)
    ask(recording, replace(REQUEST, system="limited"))
    bad = ask(recording, replace(REQUEST, system="bad"))
    recording.close()
    assert len(path.read_text().splitlines()) == 2  # what may pass is not recorded
    replay = Replaying(path)
    assert ask(replay) == replace(first, wall_s=first.wall_s)
    assert ask(replay, replace(REQUEST, system="bad")).failure == bad.failure
    other_seed = ask(replay, replace(REQUEST, sampling=Sampling(seed=1)))
    assert other_seed.failure is not None
    assert other_seed.failure.kind is FailureKind.NOT_RECORDED
    assert "a different value of: sampling" in other_seed.failure.message
    unknown = ask(replay, replace(REQUEST, messages=(Message("user", "new"),)))
    assert unknown.failure is not None
    assert "2 requests are recorded" in unknown.failure.message


def test_a_recording_goes_on_after_a_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for system in ("a", "b"):
        recording = Recording(script(GOOD), path)
        ask(recording, replace(REQUEST, system=system))
        recording.close()
        path.write_bytes(path.read_bytes() + b'{"cranfield_rec')
    recording = Recording(script(GOOD), path)
    recording.close()
    assert ask(Replaying(path), replace(REQUEST, system="b")).output == Word(word="yes")


@pytest.mark.parametrize("line", ["{", "[]", '{"cranfield_recording": 2}', "7"])
def test_a_file_that_is_no_recording_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="1: not a valid line of a recording"):
        Replaying(path)


def test_a_recording_holds_no_more_than_the_protocol(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recording = Recording(script(GOOD), path)
    ask(recording)
    recording.close()
    line = json.loads(path.read_text())
    assert set(line) == {"cranfield_recording", "digest", "request", "answer"}
    assert line["digest"] == REQUEST.digest


# Budget

PRICES = PriceList(models={"openai:m": Price(input=1.0, output=10.0, cache_read=0.1)})


def test_cost_is_by_the_kind_of_token_and_unknown_where_one_is() -> None:
    usage = Usage(input=1_000_000, cache_read=400_000, output=100_000)
    assert PRICES.cost("openai:m", usage) == pytest.approx(0.6 * 1 + 0.4 * 0.1 + 0.1 * 10)  # 1.64
    assert PRICES.cost("openai:m", Usage(input=5)) is None
    assert PRICES.cost("openai:other", usage) is None


def exact(answers: Callable[[], Iterator[int]]) -> Scripted:
    """Answers whose usage is a given number of output tokens, and no input."""
    given = answers()
    return Scripted(lambda _: ModelAnswer(text="", usage=Usage(input=0, cache_read=0, output=next(given))))


@pytest.mark.parametrize("at_once", [1, 3, 20])
def test_a_budget_is_never_exceeded_by_requests_within_their_maximum(at_once: int) -> None:
    upper = estimate(REQUEST)
    most = upper.input + upper.output

    def sizes() -> Iterator[int]:
        n = 0
        while True:
            n += 1
            yield (n * 37) % (most + 1)

    budget = Budget(tokens=5 * most)
    backend = Budgeted(exact(sizes), budget)

    async def run() -> list[ModelAnswer]:
        limit = asyncio.Semaphore(at_once)

        async def one() -> ModelAnswer:
            async with limit:
                return await backend.ask(REQUEST)

        return await asyncio.gather(*(one() for _ in range(60)))

    answers = asyncio.run(run())
    refused = [answer for answer in answers if answer.failure is not None]
    assert refused
    assert all(answer.failure.kind is FailureKind.BUDGET for answer in refused if answer.failure)
    assert 4 * most < budget.spent.tokens <= 5 * most
    assert budget.reached == "tokens"
    assert budget.spent.requests == 60 - len(refused)


def test_a_request_waits_for_those_under_way_before_it_is_refused() -> None:
    upper = estimate(REQUEST)
    budget = Budget(tokens=2 * (upper.input + upper.output) - 1)
    source = exact(lambda: iter([1, 1, 1]))

    async def slow(request: Request) -> ModelAnswer:
        await asyncio.sleep(0)
        return await source.ask(request)

    backend = Budgeted(type("Slow", (), {"ask": staticmethod(slow)})(), budget)

    async def run() -> list[ModelAnswer]:
        return await asyncio.gather(*(backend.ask(REQUEST) for _ in range(3)))

    assert all(answer.failure is None for answer in asyncio.run(run()))
    assert budget.spent.tokens == 3


def test_usage_that_is_unknown_counts_as_reserved() -> None:
    budget = Budget(prices=PRICES)
    ask(Budgeted(script(LOST), budget))
    upper = estimate(REQUEST)
    assert budget.spent.tokens == upper.input + upper.output
    assert budget.spent.money == pytest.approx(PRICES.cost("openai:m", upper.usage))
    assert budget.spent.unmeasured == 1
    other = Budget()
    ask(Budgeted(script(GOOD), other))
    assert other.spent.money is None  # a price that is not known is not 0


def test_a_limit_of_money() -> None:
    upper = PRICES.cost("openai:m", estimate(REQUEST).usage)
    assert upper is not None
    budget = Budget(money=upper * 1.5, prices=PRICES)
    big = Scripted(lambda _: ModelAnswer(usage=Usage(input=estimate(REQUEST).input, output=10)))
    backend = Budgeted(big, budget)
    assert ask(backend).failure is None
    assert ask(backend).failure is not None
    assert budget.reached == "money"


def test_a_model_without_a_price_is_not_called_within_a_budget_of_money() -> None:
    model, budget = script(GOOD), Budget(money=1_000.0)
    answer = ask(Budgeted(model, budget))
    assert answer.failure is not None
    assert (answer.failure.kind, budget.reached, model.requests) == (FailureKind.BUDGET, "money", [])


def test_an_interrupted_request_is_charged_in_full() -> None:
    class Hanging:
        async def ask(self, _: Request) -> ModelAnswer:
            raise asyncio.CancelledError

    budget = Budget()
    with pytest.raises(asyncio.CancelledError):
        ask(Budgeted(Hanging(), budget))
    assert budget.spent.tokens > 0
    assert budget.spent.unmeasured == 1


def test_prices_are_read_from_a_file_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("currency: EUR\nmodels:\n  openai:m: {input: 0.5, output: 2}\n")
    assert read_prices(path).models["openai:m"].output == 2
    path.write_text("models:\n  openai:m: {input: -1}\n")
    with pytest.raises(ConfigError, match=r"prices\.yaml:2"):
        read_prices(path)


def test_a_connection_puts_all_of_it_together(tmp_path: Path) -> None:
    connection = Connection("openai:m", record=tmp_path / "calls.jsonl", backoff_s=0.0)
    budget = Budget()

    async def run(connection: Connection, source: Any) -> ModelAnswer:
        async with connected(connection, budget, source) as backend:
            return await backend.ask(REQUEST)

    assert asyncio.run(run(connection, script(LIMITED, GOOD))).output == Word(word="yes")
    assert budget.spent.requests == 2
    replay = Connection("openai:m", replay=tmp_path / "calls.jsonl")
    assert asyncio.run(run(replay, None)).output == Word(word="yes")


def test_a_connection_names_its_mistakes() -> None:
    with pytest.raises(UsageError, match="the model has no provider"):
        Connection("gpt")
    with pytest.raises(UsageError, match="exclude each other"):
        Connection("openai:m", record=Path("a"), replay=Path("b"))

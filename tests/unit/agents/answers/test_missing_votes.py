"""Replies of a judge that are no votes: sent back within a bound, shown, counted, and asked for again by the next call alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.answers.facts import DecidedBy, FactScore, FactVerdict, score_facts
from cranfield.agents.answers.judge import REPLY_CHARS, Judge, JudgeSettings
from cranfield.agents.answers.rows import VOTE_COLUMNS, fact_rows
from cranfield.agents.budget import Price, PriceList
from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request, Usage
from cranfield.agents.recording import Kept, Scripted
from cranfield.benefit.commands.benefit import lost_replies
from cranfield.model.judging import Fact, Label

FACT, OTHER = "When it fails, the model is asked.", "Nothing is written."
LABEL = Label(must_mention=(Fact(FACT), Fact(OTHER)))
ANSWER = "Agent.answer asks the model below a limit, as it happens."
GOOD = json.dumps({"verdict": "supported", "quote": "asks the model", "reason": "It says so."})
Script = Callable[[Request], str | ModelAnswer]


def failed(kind: FailureKind) -> ModelAnswer:
    return ModelAnswer(failure=Failure(kind, "no"), text="cut", usage=Usage(input=9, output=1))


def judged(path: Path, script: Script, attempts: int = 3) -> tuple[list[FactScore], Judge, Scripted]:
    source = Scripted(script)
    kept = Kept(path, source, keeps_rejections=False)
    judge = Judge(kept, JudgeSettings("scripted:judge", attempts=attempts))
    found = asyncio.run(score_facts(ANSWER, LABEL, judge))
    kept.close()
    assert found is not None
    return list(found.facts), judge, source


def is_about(request: Request, fact: str) -> bool:
    return fact in request.messages[0].text


BAD: dict[str, str | ModelAnswer] = {
    "no JSON": "I think it does.",
    "another schema": '{"verdict": "perhaps", "quote": ""}',
    "nothing": "",
    "a quote that is not there": json.dumps({"verdict": "supported", "quote": "asks the oracle"}),
    "no quote": json.dumps({"verdict": "contradicted", "quote": ""}),
    "cut": failed(FailureKind.TRUNCATED),
}


@pytest.mark.parametrize("bad", BAD)
def test_every_second_reply_that_is_no_vote_costs_a_correction_and_no_vote(bad: str, tmp_path: Path) -> None:
    def script(request: Request) -> str | ModelAnswer:
        return BAD[bad] if len(request.messages) == 1 else GOOD

    facts, judge, source = judged(tmp_path / "calls.jsonl", script)
    assert [(fact.verdict, fact.by) for fact in facts] == [(FactVerdict.SUPPORTED, DecidedBy.VOTES)] * 2
    assert len(source.requests) == 8  # two facts, two equal votes, two replies to each
    assert [vote.n_replies for fact in facts for vote in (fact.ballot.cast if fact.ballot else ())] == [2] * 4
    corrections = [request for request in source.requests if len(request.messages) > 1]
    assert all("cannot be used" in request.messages[-1].text for request in corrections)
    spent = judge.unread_spent(PriceList(models={"scripted:judge": Price(input=1, output=1)}))
    assert spent.requests == 4
    assert spent.tokens > 0
    assert spent.money


@pytest.mark.parametrize("bad", BAD)
def test_a_verdict_after_a_correction_is_the_same_in_every_later_call(bad: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    facts, _, _ = judged(path, lambda request: BAD[bad] if len(request.messages) == 1 else GOOD)
    again, _, source = judged(path, lambda _: pytest.fail("a decided vote is asked again"))
    assert source.requests == []
    assert fact_rows_of(again) == fact_rows_of(facts)
    assert {fact.verdict for fact in again} == {FactVerdict.SUPPORTED}


@pytest.mark.parametrize("bad", [*BAD, "refused"])
def test_at_the_bound_a_vote_is_missing_and_the_next_call_asks_for_it_and_for_no_other(
    bad: str, tmp_path: Path
) -> None:
    path, reply = tmp_path / "calls.jsonl", BAD.get(bad, failed(FailureKind.FILTERED))

    def script(request: Request) -> str | ModelAnswer:
        return reply if is_about(request, OTHER) else GOOD

    facts, _, source = judged(path, script)
    assert [fact.by for fact in facts] == [DecidedBy.VOTES, DecidedBy.FAILED]
    n_replies = 1 if bad == "refused" else 3  # a refusal is not argued with
    assert len(source.requests) == 2 + 3 * n_replies
    (row,) = [row for row in fact_rows_of(facts) if row["id"] == "must_mention.2"]
    assert [vote["replies"] for vote in row["votes"]] == [n_replies] * 3
    assert all(vote["problem"] for vote in row["votes"])

    decided, judge, second = judged(path, lambda _: GOOD)
    assert [fact.by for fact in decided] == [DecidedBy.VOTES] * 2
    assert all(is_about(request, OTHER) for request in second.requests)
    assert len(second.requests) == 2
    assert not judge.never

    last, _, third = judged(path, lambda _: pytest.fail("a decided vote is asked again"))
    assert third.requests == []
    assert fact_rows_of(last) == fact_rows_of(decided)


@pytest.mark.parametrize("bad", [*BAD, "refused"])
def test_after_a_second_call_without_a_vote_there_is_an_abstention_that_costs_nothing_more(
    bad: str, tmp_path: Path
) -> None:
    path, reply = tmp_path / "calls.jsonl", BAD.get(bad, failed(FailureKind.FILTERED))
    n_replies = 1 if bad == "refused" else 3
    first, _, _ = judged(path, lambda _: reply)
    assert {fact.by for fact in first} == {DecidedBy.FAILED}

    second, judge, source = judged(path, lambda _: reply)
    assert {(fact.verdict, fact.by) for fact in second} == {(None, DecidedBy.NO_MAJORITY)}
    assert {(fact.ballot.n_abstained, fact.ballot.failures) for fact in second if fact.ballot} == {(3, ())}
    assert len(source.requests) == len(LABEL.must_mention) * 3 * n_replies
    assert len(judge.never) == len(LABEL.must_mention) * 3
    (vote, *_) = fact_rows_of(second)[0]["votes"]
    assert f"{2 * n_replies} replies without a vote (counted as an abstention); the last: " in vote["problem"]
    assert vote["replies"] == 2 * n_replies

    third, again, none = judged(path, lambda _: pytest.fail("a vote is asked for a third time"))
    assert none.requests == []
    assert fact_rows_of(third) == fact_rows_of(second)
    assert again.never == judge.never


def test_a_call_that_was_interrupted_takes_no_reply_from_the_others(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    judged(path, lambda _: "no JSON")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))  # of the two facts, or of one
    second, _, source = judged(path, lambda _: "no JSON")
    assert {fact.by for fact in second} == {DecidedBy.FAILED}
    assert len(source.requests) == 2 * 3 * 3
    third, _, source = judged(path, lambda _: "no JSON")
    assert {fact.by for fact in third} == {DecidedBy.NO_MAJORITY}
    assert len(source.requests) == 2 * 3 * 3 - 2


def fact_rows_of(facts: list[FactScore]) -> list[dict[str, Any]]:
    from cranfield.agents.answers.facts import FactsScore

    return [row.model_dump(mode="json") for row in fact_rows(FactsScore(tuple(facts)))]


def test_replies_are_counted_and_not_the_requests_that_they_took(tmp_path: Path) -> None:
    """A reply that was lost twice on the way took three requests, and two of them reported nothing."""
    usage = Usage(requests=3, input=9, output=1, unmeasured=2)
    bad = ModelAnswer(failure=Failure(FailureKind.BAD_OUTPUT, "no"), text="?", usage=usage)
    _, judge, _ = judged(tmp_path / "calls.jsonl", lambda request: bad if len(request.messages) == 1 else GOOD)
    spent = judge.unread_spent(PriceList())
    assert (len(judge.unread), spent.requests) == (4, 12)
    (line,) = lost_replies(judge, PriceList(currency="EUR"))
    assert line == "4 replies of the judge were not votes: 40 tokens (8 requests reported none), cost unknown"
    assert lost_replies(Judge(judge.backend, judge.settings), PriceList(currency="EUR")) == []
    priced = judge.unread_spent(PriceList(models={"scripted:judge": Price(input=1e6, output=1e6)}))
    assert priced.text("EUR") == "40 tokens (8 requests reported none), cost 40.0000 EUR"


def test_a_reply_that_is_sent_back_is_cut_and_a_blank_one_is_not_sent(tmp_path: Path) -> None:
    replies = iter(["x" * 100_000, " \n", GOOD] * 4)
    _, _, source = judged(tmp_path / "calls.jsonl", lambda _: next(replies))
    sent = [message for request in source.requests for message in request.messages if message.role == "assistant"]
    assert sent
    assert {len(message.text) for message in sent} == {REPLY_CHARS}


def test_rows_of_votes_are_bounded_and_safe_to_print(tmp_path: Path) -> None:
    said = "asks the model" + "\x1b[31m\u202e" * 3
    reply = json.dumps({"verdict": "supported", "quote": "asks the model", "reason": said * 500})
    facts, _, _ = judged(tmp_path / "calls.jsonl", lambda _: reply)
    row = fact_rows_of(facts)[0]
    assert (row["id"], row["statement"], row["verdict"], row["right"]) == ("must_mention.1", FACT, "supported", True)
    (vote, _) = row["votes"]
    assert (vote["verdict"], vote["quote"], vote["problem"]) == ("supported", "asks the model", "")
    assert len(vote["reason"]) <= VOTE_COLUMNS
    assert vote["reason"].startswith("asks the model\\x1b[31m\\u202e")


def test_what_came_instead_of_a_vote_is_shown_shortened(tmp_path: Path) -> None:
    facts, _, _ = judged(tmp_path / "calls.jsonl", lambda _: "I think\x1b[2J so. " * 1_000)
    problem = fact_rows_of(facts)[0]["votes"][0]["problem"]
    assert problem.startswith("bad_output: the answer does not fit the schema: answer: Invalid JSON")
    assert "got 'I think\\x1b[2J so. " in problem
    assert len(problem) <= VOTE_COLUMNS

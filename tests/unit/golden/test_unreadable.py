"""Replies of the roles of a golden run that cannot be read: an end for now, which the next call asks for again where there is room."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden.test_pipeline import SMALL, begin, contents, go_on
from tests.unit.golden.test_rows import CSV, SOURCE, answers

from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request, Usage, with_output
from cranfield.agents.recording import Scripted
from cranfield.golden.index import RunFolder, RunIndex, Step
from cranfield.golden.outcomes import TranscriptLine
from cranfield.golden.run import PipelineOptions, PipelineOutcome, Until, execute
from cranfield.golden.states import State
from cranfield.golden.use_cases.assemble import CheckOptions, check_set
from cranfield.golden.use_cases.review import after_run
from cranfield.repo.snapshot import Snapshot

ROLES = {
    "author": State.NOT_AUTHORED,
    "oracle": State.NO_ANSWER,
    "adversary": State.NO_REPORT,
    "judge": State.NO_RATING,
}
PRICES = {"models": {f"openai:{role}": {"input": 1.0, "output": 2.0} for role in ROLES}}
DONE = {State.PASSED: 2, State.RESERVE: 2}


def garbled(request: Request) -> ModelAnswer:
    answer = ModelAnswer(
        text="I th1nk\x1b[31m {", usage=Usage(input=1_000, cache_read=0, output=100), model=request.model
    )
    return with_output(answer, request)


def garbling(
    models: Any, role: str, is_garbled: Callable[[Request], bool] = lambda _: True
) -> Callable[[Request], Any]:
    """Models of which one garbles its replies."""
    asked = models.Models()
    return lambda request: (
        garbled(request) if request.model == f"openai:{role}" and is_garbled(request) else asked.answer(request)
    )


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_asked_again_by_the_next_call_and_nothing_decided_is(
    role: str, models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    path = begin(models, snapshot, tmp_path, **SMALL, budget={"prices": PRICES})
    first = go_on(path, snapshot, garbling(models, role))
    found = [each for each in first.result.statuses if each.is_unreadable]
    assert found
    assert {each.state for each in found} == {ROLES[role]}
    (reason, *_) = found[0].reasons
    assert reason.message.startswith(f"{role}: 2 replies in a row are unreadable, 1 try so far (")
    assert "tokens, cost 0.00" in reason.message
    assert r"got 'I th1nk\x1b[31m {'" in reason.message
    assert first.result.waiting == ()

    sent: list[Request] = []
    decided = {json.dumps(request) for request in kept_requests(path, is_failed=False)}
    asked = models.Models()

    def noted(request: Request) -> Any:
        sent.append(request)
        return asked.answer(request)

    second = go_on(path, snapshot, noted)
    states = second.result.counts
    assert states[State.PASSED] == 2
    assert not {each.query_id for each in second.result.statuses if each.state is State.PASSED} - {
        "own-review-easy-01",
        "own-explain-medium-01",
    }
    assert sent
    assert not decided & {json.dumps(request.digest) for request in sent if request.model != f"openai:{role}"}
    assert RunIndex(RunFolder.open(path)).statuses() == list(second.result.statuses)
    spent = second.spent
    n_failed = len(kept_requests(path, is_failed=True))
    assert n_failed == 2 * len(found)
    assert spent.requests == len(kept_requests(path, is_failed=None))
    assert go_on(path, snapshot, lambda _: pytest.fail("a request was sent")).result.counts == states


def kept_requests(path: Path, *, is_failed: bool | None) -> list[str]:
    lines = [json.loads(line) for line in (path / "calls.jsonl").read_text().splitlines()]
    return [
        line["digest"] for line in lines if is_failed is None or (line["answer"]["failure"] is not None) == is_failed
    ]


def test_a_role_whose_replies_were_cut_is_asked_again_too(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    def cut(request: Request) -> Any:
        failure = Failure(FailureKind.TRUNCATED, "it reached its maximum length")
        is_cut = request.model == "openai:oracle"
        return (
            ModelAnswer(failure=failure, text="{", usage=Usage(input=9, output=1)) if is_cut else asked.answer(request)
        )

    asked = models.Models()
    path = begin(models, snapshot, tmp_path, **SMALL)
    first = go_on(path, snapshot, cut)
    found = [each for each in first.result.statuses if each.state is State.NO_ANSWER]
    assert found
    assert all(each.is_unreadable for each in found)
    assert "2 replies in a row are unreadable" in found[0].reasons[0].message
    assert "cost unknown" in found[0].reasons[0].message
    assert go_on(path, snapshot, models.Models().answer).result.counts[State.PASSED] == 2


def test_a_cell_that_reserves_have_filled_is_not_opened_again(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    path = begin(models, snapshot, tmp_path, **SMALL)
    index = RunIndex(RunFolder.open(path))
    text = models.CELLS["review", "easy"][0].text
    assert not index.candidates
    outcome = go_on(path, snapshot, garbling(models, "oracle", lambda request: text in request.messages[0].text))
    assert outcome.result.counts == {State.PASSED: 2, State.NO_ANSWER: 1, State.RESERVE: 1}
    again = go_on(path, snapshot, lambda _: pytest.fail("a request was sent"))
    assert again.result.counts == outcome.result.counts


def test_each_call_has_a_new_bound_and_counts_its_tries(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    path, counts = begin(models, snapshot, tmp_path, **SMALL), []
    for _ in range(3):
        outcome = go_on(path, snapshot, garbling(models, "adversary"))
        first = next(each for each in outcome.result.statuses if each.query_id == "own-review-easy-01")
        counts.append((first.state, RunFolder.open(path).read(Step.TRANSCRIPTS, TranscriptLine)))
    assert [state for state, _ in counts] == [State.NO_REPORT] * 3
    n_tries = [
        sum(each.is_unreadable and each.query_id == "own-review-easy-01" for each in lines) for _, lines in counts
    ]
    assert n_tries == [1, 2, 3]
    kept = RunIndex(RunFolder.open(path)).status("own-review-easy-01")
    assert "3 tries so far" in kept.reasons[0].message
    last = go_on(path, snapshot, models.Models().answer)
    assert last.result.counts[State.PASSED] == 2


def test_a_replay_of_as_many_calls_gives_the_same_records(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    path = begin(models, snapshot, tmp_path / "a", **SMALL)
    go_on(path, snapshot, garbling(models, "oracle"))
    whole = go_on(path, snapshot, models.Models().answer)
    other = begin(models, snapshot, tmp_path / "b", **SMALL)
    replayed: PipelineOutcome | None = None
    for _ in range(2):
        replayed = execute(other, snapshot, PipelineOptions(replay=path / "calls.jsonl"))
    assert replayed is not None
    assert replayed.result.counts == whole.result.counts
    assert contents(other) == contents(path)


def test_the_command_says_what_came_what_it_took_and_what_to_do(
    models: Any, snapshot: Snapshot, repo: Path, call: Any, tmp_path: Path
) -> None:
    path = begin(models, snapshot, tmp_path, **SMALL)
    go_on(path, snapshot, garbling(models, "judge"))
    shown = call("golden", "run", "--resume", path, "--repo", repo, "--replay", path / "calls.jsonl")
    assert "no readable reply for" not in shown.stdout
    for line in (
        (
            "no readable reply for 2 records\nfirst: own-explain-medium-02, judge: 2 replies in a row are "
            "unreadable, 1 try so far"
        ),
        "(2 requests, 2,200 tokens, cost unknown); the last: the answer does not fit the schema",
        "Hint: if this happens repeatedly, start a new run with another `output_mode`",
    ):
        assert line in shown.stderr


def test_the_next_step_asks_again_before_the_sample_is_drawn(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    path = begin(models, snapshot, tmp_path, **SMALL)
    statuses = go_on(path, snapshot, garbling(models, "judge")).result.statuses
    assert after_run(path, statuses, "R") == (
        f"`cranfield golden run --resume {path} --repo R` requests 4 records without a readable reply again, "
        f"if their cells are not full; or `cranfield golden review {path} --repo R`, after which nothing is "
        "requested again"
    )
    (path / Step.REVIEW_SAMPLES).touch()
    assert after_run(path, statuses, "R") == f"`cranfield golden review {path} --repo R`"
    nothing = [replace(each, state=State.SCREENED_OUT, reasons=()) for each in statuses]
    assert after_run(path, nothing, "R") == f"no record can be reviewed: `cranfield golden status {path}` shows why"


def test_votes_on_rows_are_asked_again_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/a.py").write_text(SOURCE)
    (tmp_path / "code.csv").write_text(CSV)

    def check(script: Callable[[Request], str | ModelAnswer]) -> tuple[Any, Scripted]:
        backend = Scripted(script)
        options = CheckOptions(("test:a", "test:b"), 3, source=backend)
        return check_set(tmp_path / "code.csv", tmp_path / "repo", tmp_path / "out", options), backend

    report, _ = check(lambda request: garbled(request) if "written" in request.messages[0].text else answers(request))
    assert report.result.missing == {"bad_output": 3}
    again, backend = check(answers)
    assert again.result.missing == {}
    assert len(backend.requests) == 3
    assert all("written" in request.messages[0].text for request in backend.requests)
    assert check(lambda _: pytest.fail("a request was sent"))[0].diff == again.diff


def test_a_run_that_was_interrupted_goes_on_before_anything_is_opened_again(
    models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    text = models.CELLS["review", "easy"][0].text
    path, script = (
        begin(models, snapshot, tmp_path, **SMALL),
        garbling(models, "oracle", lambda request: text in request.messages[0].text),
    )
    for until in ("oracle", "adversary"):
        outcome = go_on(path, snapshot, script, until=Until(until))
    assert outcome.result.counts[State.NO_ANSWER] == 1
    lines = [line for line in RunFolder.open(path).read(Step.TRANSCRIPTS, TranscriptLine) if line.is_unreadable]
    assert len(lines) == 1  # the second call made no other try: records were under way

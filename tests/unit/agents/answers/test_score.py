"""Files of answers scored against a test set: blind, with a judge and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cranfield.agents.answers.judge import JudgeSettings
from cranfield.agents.answers.rows import read_answers
from cranfield.agents.answers.score import NoNarrative, blind_answers, redaction
from cranfield.agents.budget import Budget
from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request, Usage
from cranfield.agents.recording import Scripted
from cranfield.agents.settings import Connection
from cranfield.base.errors import InputError, UsageError
from cranfield.benefit.reports.answers import answers_document
from cranfield.benefit.use_cases import JudgedBy, score_file
from cranfield.cli.main import command_line
from cranfield.model import Entity, MatchingRules, Query, TestSet
from cranfield.model.judging import Fact, Label
from cranfield.reporting import render

OPEN, ADD = "src/index.py::Index.open", "src/index.py::Index.add"
LOCK, ERROR, TWICE = "`Index.open` takes a lock.", "A missing file is an error.", "The index is opened twice."
LABELS = TestSet(
    "set",
    tuple(Query(f"q{n}", f"question {n}") for n in range(1, 6)),
    targets={"q1": (Entity(OPEN),), "q2": (Entity(ADD),), "q3": (Entity(ADD),)},
    files={"q1": ("src/index.py",)},
    matching=MatchingRules(roots=("src",)),
    labels={
        "q1": Label(must_mention=(Fact(LOCK), Fact(ERROR)), must_not_mention=(Fact(TWICE),), narrative="It opens."),
        "q2": Label(narrative="It adds."),
        "q4": Label(must_mention=(Fact(ERROR),)),
    },
)
ANSWERS = [
    {"query_id": "q1", "text": f"Acme reads src/index.py with Index.open.\n- {LOCK}", "arm": "treatment"},
    {"query_id": "q2", "text": "No idea.", "entities": []},
    {"query_id": "q4", "text": "A file that is not there fails."},
    {"query_id": "q9", "text": "?"},
]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(answer) + "\n" for answer in ANSWERS))
    return path


def judge(request: Request) -> str:
    """Supports what is said of a missing file; rates every narrative as equivalent."""
    text = request.messages[0].text
    if 'name="reference"' in text:
        return json.dumps({"rating": "equivalent", "reason": ""})
    is_error = ERROR in text.partition("</part-")[0]
    quote = "fails" if "fails" in text else "lock"
    return json.dumps({"verdict": "supported" if is_error else "absent", "quote": quote if is_error else ""})


def judged(script: Callable[[Request], str | ModelAnswer], calls: Path | None = None) -> tuple[JudgedBy, Scripted]:
    by = JudgedBy(Connection("scripted:judge", attempts=1), JudgeSettings("scripted:judge"), Budget(), calls)
    return by, Scripted(script)


def test_structure_alone_without_a_judge(answers: Path) -> None:
    scored = score_file(LABELS, answers)
    assert [(score.query_id, score.structure_correct, score.facts_correct) for score in scored.scores] == [
        ("q1", True, None),  # two of three statements have no verdict
        ("q2", False, None),
        ("q3", False, None),
        ("q4", None, None),  # nothing is expected but a fact
    ]
    assert (scored.unknown, scored.unlabelled) == (("q9",), ("q5",))
    assert [score.query_id for score in scored.scores if not score.is_answered] == ["q3"]
    assert scored.scores[0].narrative is NoNarrative.NO_JUDGE
    complete, score, *others = scored.means
    assert complete.mean == pytest.approx(1 / 3)
    assert (complete.n, complete.n_without) == (3, 1)
    assert score.mean == pytest.approx(1 / 3)
    assert [mean.mean for mean in others] == [None, None, None]


def test_facts_and_the_narrative_of_complete_answers_with_a_judge(answers: Path) -> None:
    by, source = judged(judge)
    scored = score_file(LABELS, answers, by, source=source)
    assert [score.facts_correct for score in scored.scores] == [True, None, None, True]
    assert [score.rating for score in scored.scores] == ["equivalent", None, None, None]
    assert scored.scores[1].narrative is NoNarrative.STRUCTURE
    assert len(source.requests) == 8  # 3 facts that no rule decides and 1 narrative, 2 equal votes each
    text = render(answers_document(scored.result(LABELS)), "text")
    assert "Judge scripted:judge: 3 votes" in text
    assert "1 narrative not rated, because the structure is incomplete" in text


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_form_of_the_report_has_the_votes_on_a_narrative_and_their_reasons(answers: Path, form: str) -> None:
    def script(request: Request) -> str | ModelAnswer:
        if "quote" in str(request.record()["output"]):
            return judge(request)
        rating = {0: "equivalent", 1: "minor_divergence", 2: "no rating"}[request.sampling.seed or 0]
        return json.dumps({"rating": rating, "reason": "It <b>leaves out</b> the lock.\x1b[31m"})

    by, source = judged(script)
    text = " ".join(
        render(answers_document(score_file(LABELS, answers, by, source=source).result(LABELS)), form).split()
    )
    for part in ("1 equivalent, 1 minor divergence, 1 missing", "q1, narrative: ", "minor divergence: ", "no rating"):
        assert part in text, part
    assert "the lock." in text
    assert ("<b>" in text) is (form == "text")
    assert "\x1b" not in text


def test_scores_are_blind(answers: Path) -> None:
    by, source = judged(judge)
    score_file(LABELS, answers, by, source=source, redact=(r"(?i)acme", r"src/\S+"))
    sent = "".join(str(request.record()) for request in source.requests)
    for secret in ("Acme", "src/index.py", "treatment", "arm", "q1", "answers.jsonl"):
        assert secret not in sent, secret
    assert "[redacted] reads [redacted] with Index.open" in sent


def test_the_order_is_that_of_the_seed_and_the_scores_are_not(answers: Path) -> None:
    orders = []
    for seed in range(8):
        blind = blind_answers(LABELS, read_answers(answers)[0], seed=seed)
        orders.append(tuple(item.query_id for item in blind.answers))
        assert blind == blind_answers(LABELS, read_answers(answers)[0], seed=seed)
        assert score_file(LABELS, answers, seed=seed).rows() == score_file(LABELS, answers).rows()
    assert len(set(orders)) > 1


def test_kept_answers_of_a_judge_serve_another_file(answers: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-arm.jsonl"
    other.write_text(answers.read_text().replace("treatment", "control"))
    calls = tmp_path / "calls.jsonl"
    by, source = judged(judge, calls)
    rows = score_file(LABELS, answers, by, source=source).rows()
    n = len(source.requests)
    assert score_file(LABELS, other, by, source=source).rows() == rows
    assert len(source.requests) == n


def test_failures_of_a_judge_are_counted(answers: Path) -> None:
    failure = Failure(FailureKind.REJECTED, "no such model", status=404)
    by, source = judged(lambda _: ModelAnswer(failure=failure, usage=Usage(input=0, output=0)))
    scored = score_file(LABELS, answers, by, source=source)
    assert len(source.requests) <= by.settings.concurrency
    assert len(scored.missing_votes) == 12  # 3 facts and 1 narrative, 3 votes each
    assert scored.judge is not None
    assert scored.judge.stopped == failure
    report = render(answers_document(scored.result(LABELS)), "text")
    assert "3 facts without a verdict: votes of the judge are missing" in report
    assert "1 narrative without a rating: votes of the judge are missing" in report
    assert "no majority" not in report


def test_a_share_of_the_decided_answers_says_what_it_may_be_of_all(answers: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(
        "".join(json.dumps({"query_id": name, "text": "It fails, perhaps."}) + "\n" for name in ("q1", "q4"))
    )
    scored = score_file(LABELS, wrong)
    facts = {score.query_id: score.facts_correct for score in scored.scores if score.facts is not None}
    assert facts == {"q1": False, "q4": None}  # a fact of q1 is absent by rule
    report = " ".join(render(answers_document(scored.result(LABELS)), "text").split())
    assert "Facts correct, over all 2 queries with facts: between 0.0000 and 0.5000." in report
    blank = tmp_path / "blank.jsonl"
    blank.write_text('{"query_id": "q1"}\n')
    assert "over all" not in render(answers_document(score_file(LABELS, blank).result(LABELS)), "text")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "not an answer"),
        ('{"query_id": ""}', "query_id: String should have at least 1 character"),
        ('{"query_id": "q1", "spans": [{"file": "a", "start": 0, "end": 3}]}', "spans.0.start"),
        ('{"query_id": "q1"}\n{"query_id": "q1"}', "'q1' has two answers"),
        ("", "the file has no answer"),
    ],
)
def test_lines_that_are_no_answers_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        read_answers(path)


def test_expressions_that_are_none_are_refused_together() -> None:
    with pytest.raises(UsageError) as caught:
        redaction(["(", "ok", "["])
    assert len(caught.value.problems) == 2


def test_rows_keep_what_an_answer_cost(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"query_id": "q2", "text": "", "total_tokens": 1200, "wall_clock_s": 2.5}))
    row = next(row for row in score_file(LABELS, path).rows() if row.query_id == "q2")
    assert (row.total_tokens, row.wall_clock_s, row.turns) == (1200, 2.5, None)
    path.write_text('{"query_id": "q2", "turns": -1}')
    with pytest.raises(InputError, match="turns"):
        read_answers(path)


def test_the_command_scores_and_writes_rows(answers: Path, tmp_path: Path) -> None:
    labels, out = tmp_path / "labels.json", tmp_path / "rows.jsonl"
    record = {"query_id": "q1", "query_text": "?", "expected_entities": [OPEN], "expected_files": ["src/index.py"]}
    labels.write_text(json.dumps([record]))
    result = CliRunner().invoke(
        command_line("answers"), ["answers", "score", str(labels), str(answers), "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "structure complete    1.0000" in result.output
    assert json.loads(out.read_text())["structure_correct"] is True


def test_the_command_asks_for_missing_votes_again_and_for_no_other(
    answers: Path, tmp_path: Path, model_server: Any
) -> None:
    labels, out, calls = tmp_path / "labels.json", tmp_path / "rows.jsonl", tmp_path / "calls.jsonl"
    record = {"query_id": "q1", "query_text": "?", "expected_files": ["src/index.py"]}
    labels.write_text(json.dumps([{**record, "must_mention_facts": [LOCK, ERROR], "must_not_mention_facts": [TWICE]}]))

    def absent(_: object) -> Any:
        return model_server.Reply(json.dumps({"verdict": "absent", "quote": "", "reason": "It does not say so."}))

    def garbled(body: dict[str, Any]) -> Any:
        return model_server.Reply("I th1nk\x1b[31m") if ERROR in json.dumps(body) else absent(body)

    def run(*more: str) -> Any:
        command = ["answers", "score", str(labels), str(answers), "--out", str(out), "--calls", str(calls)]
        command += ["--judge-model", "openai:j", "--base-url", server.url, "--attempts", "2", *more]
        return CliRunner().invoke(command_line("answers"), command)

    with model_server.ModelServer(garbled) as server:
        first = run()
        assert first.exit_code == 3, first.output
        n_requests = len(server.requests)
        assert n_requests == 2 + 3 * 2  # two equal votes on the wrong statement; two replies to each of three votes
        (line,) = map(json.loads, out.read_text().splitlines())
        missing = next(fact for fact in line["facts"] if fact["id"] == "must_mention.2")
        assert [vote["replies"] for vote in missing["votes"]] == [2, 2, 2]
        assert "6 replies of the judge were not votes: 672 tokens, cost unknown" in first.stderr
        assert "3 votes of the judge are missing, after up to 2 replies to each in this call" in first.stderr
        assert r"first: q1, must_mention.2: bad_output: " in first.stderr
        assert r"got 'I th1nk\x1b[31m'" in first.stderr
        assert "Hint: the same command requests these votes again, and no others." in first.stderr
        server.script = absent
        second = run("--format", "json")
        assert second.exit_code == 0, second.output
        assert len(server.requests) == n_requests + 2
        facts = json.loads(second.stdout)["queries"][0]["row"]["facts"]
        assert [vote["reason"] for vote in facts[1]["votes"]] == ["It does not say so."] * 2


@pytest.mark.parametrize("with_calls", [True, False])
@pytest.mark.parametrize(
    ("refusal", "more", "exit_code", "said", "hint"),
    [
        ({"status": 401}, (), 3, "stopped: authentication: ", "Hint: correct that, then the same command "),
        ({"status": 404}, (), 3, "stopped: model_missing: ", "Hint: correct that, then the same command "),
        ({}, ("--budget-tokens", "1"), 4, "stopped: budget: ", "Hint: with a larger `--budget-tokens` "),
    ],
)
def test_a_judge_that_stopped_is_not_said_to_have_been_asked_for_each_vote(
    answers: Path,
    tmp_path: Path,
    model_server: Any,
    refusal: dict[str, int],
    more: tuple[str, ...],
    exit_code: int,
    said: str,
    hint: str,
    *,
    with_calls: bool,
) -> None:
    labels = tmp_path / "labels.json"
    record = {"query_id": "q1", "query_text": "?", "expected_files": ["src/index.py"]}
    labels.write_text(json.dumps([{**record, "must_not_mention_facts": [TWICE]}]))
    with model_server.ModelServer(lambda _: model_server.Reply("no", **refusal)) as server:
        command = ["answers", "score", str(labels), str(answers), "--judge-model", "openai:j", "--base-url", server.url]
        command += ["--calls", str(tmp_path / "calls.jsonl")] if with_calls else []
        result = CliRunner().invoke(command_line("answers"), [*command, *more])
    assert result.exit_code == exit_code, result.output
    stopped, last = result.stderr.splitlines()[-2:]
    assert stopped.startswith(said)
    assert last.startswith(hint)
    assert ("--calls FILE" in last) is not with_calls
    assert "replies to each" not in result.stderr
    assert "output_mode" not in result.stderr

"""Which statement decides a score: in `scores.jsonl`, in the result, in every form of the report, and with the transcripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.benefit.test_result import SET, absent, experiment, result

from cranfield.agents.answers.rows import VOTE_COLUMNS
from cranfield.agents.protocol import Request
from cranfield.agents.recording import Scripted
from cranfield.benefit.records import ScoreReason, deciding_facts
from cranfield.benefit.reports.benefit import benefit_document
from cranfield.benefit.result import BenefitResult
from cranfield.benefit.use_cases import _words, score_experiment
from cranfield.reporting import render

EVIL = "<img src=x onerror=alert(1)> | @team \x1b[31m"
WRONG = "The parser keeps state."
REASON = f"It says otherwise {EVIL}"
RECORDS: list[dict[str, Any]] = [{**each, "must_not_mention_facts": [WRONG]} for each in SET]
MISSING = "q0/treatment/0"


def with_own_answers(record: dict[str, Any]) -> dict[str, Any]:
    key = record["key"]
    return {**record, "answer": f"parse_{key['task_id'][1:]} of acme keeps state, says {key['arm'][0]}."}


def vote(request: Request) -> str:
    """The fact is absent from answers about q0 and supported elsewhere; the wrong statement is made in those about q1."""
    text = request.messages[0].text
    is_wrong = WRONG in text.partition("</part-")[0]
    is_supported = "parse_1" in text if is_wrong else "parse_0" not in text
    verdict = "supported" if is_supported else "absent"
    return json.dumps({"quote": "keeps state" if is_supported else "", "verdict": verdict, "reason": REASON})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = experiment(tmp_path_factory.mktemp("facts"), change=with_own_answers)
    (path / "tasks/set.json").write_text(json.dumps(RECORDS))
    score_experiment(path, source=Scripted(vote))
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> BenefitResult:
    return result(folder, absent)


def test_each_line_of_scores_has_the_statements_with_votes_quotes_and_reasons(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    by_key = {"/".join(map(str, line["key"].values())): line for line in lines}
    line = by_key[MISSING]
    assert line["why"] == "fact_missing"
    fact, wrong = line["facts"]
    assert (fact["id"], fact["statement"], fact["verdict"], fact["by"], fact["right"]) == (
        "must_mention.1", "The parser is `parse_0`.", "absent", "votes", False
    )  # fmt: skip
    assert (wrong["id"], wrong["verdict"], wrong["right"]) == ("must_not_mention.1", "absent", True)
    assert [vote["verdict"] for vote in fact["votes"]] == ["absent", "absent"]
    assert all(vote["reason"].startswith("It says otherwise <img") for vote in fact["votes"])
    (made,) = [each for each in by_key["q1/control/1"]["facts"] if each["id"] == "must_not_mention.1"]
    assert (by_key["q1/control/1"]["why"], made["verdict"], made["right"]) == ("wrong_statement", "supported", False)
    assert made["votes"][0]["quote"] == "keeps state"
    texts = [text for line in lines for fact in line["facts"] for vote in fact["votes"] for text in vote.values()]
    assert all(len(str(text)) <= VOTE_COLUMNS and "\x1b" not in str(text) for text in texts)


def test_the_judge_reads_no_name_of_an_arm_and_neither_do_its_votes_hold_one(folder: Path) -> None:
    sent: list[str] = []

    def noted(request: Request) -> str:
        sent.append(json.dumps(request.record()))
        return vote(request)

    other = experiment(folder.parent.parent / "other", change=with_own_answers)
    score_experiment(other, source=Scripted(noted))
    assert sent
    for name in ("acme", "treatment", "control", "plain"):
        assert not any(name in text for text in sent), name
    facts = [json.loads(line)["facts"] for line in (other / "scores.jsonl").read_text().splitlines()]
    assert "acme" not in json.dumps(facts)


def test_the_result_says_which_statement_decides(found: BenefitResult) -> None:
    cells = {
        f"{task.task_id}/{role}/{cell.seed}": cell
        for task in found.tasks
        for role in task.arms
        for cell in task.arms[role]
    }
    decided = {key: [fact.id for fact in deciding_facts(cell.why, cell.facts)] for key, cell in cells.items()}
    assert decided[MISSING] == ["must_mention.1"]
    assert decided["q1/control/1"] == ["must_not_mention.1"]
    assert decided["q2/control/0"] == []


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_every_form_of_the_report_names_statement_votes_quote_and_reason(found: BenefitResult, form: str) -> None:
    text = " ".join(render(benefit_document(found), form).split())
    for part in (
        "must_mention.1",
        "must_not_mention.1",
        "fact_missing",
        "wrong_statement",
        "keeps state",
        "It says otherwise",
    ):
        assert part.replace("_", "\\_") in text or part in text, part
    assert "\x1b" not in text
    if form == "html":
        assert "<img src=x" not in text
        assert "2 absent" in text
        assert "&lt;img src=x onerror=alert(1)&gt;" in text
    if form == "markdown":
        assert "<img src=x" not in text


def test_a_transcript_is_titled_by_the_statement_that_decided(folder: Path) -> None:
    from cranfield.benefit.assemble import last_scores
    from cranfield.benefit.folder import ExperimentFolder

    scores = last_scores(ExperimentFolder.open(folder).scores())
    words = {str(key): _words(score) for key, score in scores.items()}
    assert words[MISSING] == "no success, fact_missing (must_mention.1: The parser is `parse_0`.)"
    assert words["q2/control/0"] == "success"
    assert not deciding_facts(ScoreReason.TURNS, scores[next(iter(scores))].facts)

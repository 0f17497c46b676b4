"""A small language model by the real adapter: forms of requests and answers, and tokens. What it says is worth nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

URL = os.environ["CRANFIELD_REAL_MODEL"]
MODEL = ("--base-url", f"{URL}/v1", "--concurrency", "1")
LABELS = [
    {
        "query_id": "q1",
        "query_text": "Where is the index opened?",
        "task_type": "locate",
        "difficulty": "easy",
        "expected_files": ["src/index.py"],
        "must_mention_facts": ["`Index.open` takes a lock.", "A missing file is an error."],
        "must_not_mention_facts": ["The index is opened twice."],
        "canonical_narrative": "`Index.open` opens the index under a lock.",
    }
]
TEXT = "`Index.open` of src/index.py opens it, under a lock. It raises an error where the file is missing."


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    (tmp_path / "answers.jsonl").write_text(json.dumps({"query_id": "q1", "text": TEXT}) + "\n")
    return tmp_path


def score(call: Any, place: Path, *options: object) -> Any:
    words = ("answers", "score", place / "labels.json", place / "answers.jsonl", "--judge-model", "openai:smollm2")
    return call(*words, "--votes", "1", "--format", "json", *MODEL, *map(str, options))


def test_a_real_model_votes_on_facts_and_narrative(place: Path, call: Any) -> None:
    calls = place / "calls.jsonl"
    ran = score(call, place, "--calls", calls)
    assert ran.returncode == 0, ran.stderr
    (query,) = json.loads(ran.stdout)["queries"]
    ballots = [fact["ballot"] for fact in query["facts"]["facts"]]
    assert [sum(each["votes"].values()) + each["n_abstained"] for each in ballots] == [1, 1, 1]
    lines = [json.loads(line)["answer"] for line in calls.read_text().splitlines()]
    assert len(lines) == len(ballots) + 1
    for answer in lines:
        assert answer["model"].startswith("smollm2")
        assert answer["usage"]["input"] > 300  # the prompt alone
        assert 0 < answer["usage"]["output"] <= 1_000
        assert answer["failure"] is None
    again = score(call, place, "--calls", calls, "--base-url", "http://127.0.0.1:9/v1")
    assert (again.returncode, again.stdout) == (0, ran.stdout), again.stderr


def test_its_tokens_are_reserved_before_a_call(place: Path, call: Any) -> None:
    ran = score(call, place, "--calls", place / "calls.jsonl", "--budget-tokens", "100")
    assert ran.returncode == 4, ran.stderr
    assert (place / "calls.jsonl").read_text() == ""

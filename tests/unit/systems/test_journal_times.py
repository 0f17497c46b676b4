"""Times in a journal that somebody made up, or that a wrong clock wrote."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cranfield.model import Answer, CallLog, Hit, Outcome
from cranfield.systems.collect.journal import Journal, KeptAnswer

COLLECTION = {"k": 1}


def reopened(folder: Path, at: object) -> Journal:
    """A journal with an answer, whose time is changed."""
    journal = Journal(folder, "old", COLLECTION)
    journal.append("q1", KeptAnswer(Answer(Outcome.ANSWERED, (Hit("d1"),)), CallLog(1.0), 1.0))
    journal.close()
    header, answer = map(json.loads, journal.path.read_text().splitlines())
    journal.path.write_text(f"{json.dumps(header)}\n{json.dumps({**answer, 'at': at})}\n")
    journal = Journal(folder, "old", COLLECTION)
    journal.close()
    return journal


def test_an_answer_from_the_future_has_an_age(tmp_path: Path) -> None:
    log = reopened(tmp_path, time.time() + 50_000).kept["q1"].log
    assert log.age_s == pytest.approx(50_000, abs=5)


@pytest.mark.parametrize("at", [float("inf"), 1e300, -1e300, float("nan"), "x", None])
def test_a_time_that_no_calendar_has_is_damage(tmp_path: Path, at: object) -> None:
    journal = reopened(tmp_path, at)
    assert not journal.kept
    assert "it is damaged" in str(journal.restart_reason)

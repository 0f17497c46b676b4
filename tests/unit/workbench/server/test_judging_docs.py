"""The page on judging has the keys of the table and what `cranfield book preference` prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from cranfield.books.settings import Mode
from cranfield.judging.preference import PreferenceResult, preference_result
from cranfield.judging.reports.pool import preference_document
from cranfield.reporting import render
from cranfield.workbench.server.keymap import ACTIONS, SYMBOLS, key_actions


@pytest.fixture(scope="module")
def page(checkout: Path) -> str:
    return (checkout / "docs/how-to/judge.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[tuple[str, str]]:
    table = page.split(f"<!-- {heading} -->")[1].split("\n\n")[1]
    return re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE)


def test_the_page_lists_every_key(page: str) -> None:
    def listed(of_preferences: bool) -> list[tuple[str, str]]:
        return [
            (
                ", ".join(f"`{SYMBOLS.get(key, key.upper())}`" for key in (action.key, action.other) if key),
                action.about,
            )
            for action in ACTIONS
            if (action.mode is Mode.PREFERENCE) is of_preferences
        ]

    assert rows(page, "keys") == listed(False)
    assert rows(page, "keys of preferences") == listed(True)


@pytest.mark.parametrize("mode", list(Mode))
def test_no_two_actions_of_a_mode_share_a_key(mode: Mode) -> None:
    keys = [action[name] for action in key_actions(mode) for name in ("key", "other") if action[name]]
    assert len(keys) == len(set(keys))


@dataclass(frozen=True)
class Cast:
    query: str
    rater: int
    grade: float | None
    repeat_of: int | None = None


vote = Cast


def test_a_query_counts_once_for_the_side_that_more_raters_prefer() -> None:
    votes = [
        *(vote("q1", 1, 2), vote("q1", 2, 2), vote("q1", 3, 1)),  # new
        *(vote("q2", 1, 2), vote("q2", 2, 1)),  # tie
        *(vote("q3", 1, 0), vote("q3", 2, 1)),  # old
        *(vote("q4", 1, None), vote("q4", 1, 2, repeat_of=9)),  # a skip and a hidden repeat: nothing
        vote("q5", 1, 0),
    ]
    result = preference_result(["old", "new"], votes)
    assert (result.n, result.wins_a, result.wins_b, result.ties, result.n_votes) == (4, 1, 1, 2, 8)
    assert (result.p_value, result.share_b) == (1.0, 0.5)


def test_without_a_vote_there_is_nothing_to_test() -> None:
    result = preference_result(["old", "new"], [])
    assert (result.n, result.p_value, result.share_b, result.ci_low) == (0, None, None, None)
    assert (
        "sign test"
        not in "".join(render(preference_document(result), "text")).split("Result")[1].split("Each query")[0]
    )


def test_the_result_is_that_of_the_page(page: str) -> None:
    votes = [vote(f"q{n}", 1, 2 if n < 31 else 1 if n < 45 else 0) for n in range(50)]
    result: PreferenceResult = preference_result(["old", "new"], votes, book="old or new")
    printed = "".join(render(preference_document(result), "text"))
    assert printed.strip() in page

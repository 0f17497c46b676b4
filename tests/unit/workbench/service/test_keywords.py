"""Keywords that are pasted: what is left out is named, what cannot be a keyword is refused."""

from __future__ import annotations

import pytest

from cranfield.base.errors import UsageError
from cranfield.workbench.service.team_evaluation import MAX_CHARS, keyword_testset, read_keywords


def test_blank_and_repeated_lines_are_named():
    found = read_keywords("\nred shoes\r\n  boots \n\nred shoes\nRed shoes\nboots\n\n\n")
    assert found.texts == ("red shoes", "boots", "Red shoes")
    assert found.left_out == (
        "line 1 is blank",
        "line 4 is blank",
        "line 5 repeats line 2: 'red shoes'",
        "line 7 repeats line 3: 'boots'",
    )
    assert read_keywords("a\nb\n\n").left_out == ()


@pytest.mark.parametrize("pasted", ["", " \n\t\n", "\ufeff\x00a", "a\x1bb", "x" * (MAX_CHARS + 1)])
def test_what_is_no_keyword_is_refused(pasted):
    with pytest.raises(UsageError):
        read_keywords(pasted)


def test_all_problems_at_once():
    with pytest.raises(UsageError) as caught:
        read_keywords("a\nb\x00\nc\x01\n" + "x" * 2_000)
    assert [problem.path for problem in caught.value.problems] == ["line 2", "line 3", "line 4"]


def test_the_id_of_a_keyword_is_its_text():
    first = keyword_testset("shoes", ["red shoes", "boots", "ÄÖ ∀"])
    later = keyword_testset("shoes", ["hats", "boots"])
    assert set(first.query_ids) & set(later.query_ids) == {"boots"}
    assert first.query_ids == ("red shoes", "boots", "ÄÖ ∀")

"""What a comment says: nobody is called by it, and it is cut where it is too long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.base.words import HIDDEN
from cranfield.gate.forge.comment import comment_body, fit_to_limit, marker_line, without_mentions

SEEN = [
    "@alice",
    "thanks @org/team.",
    "**@alice**",
    "_@alice_",
    "(@alice)",
    "\\@alice",
    "<b>@alice</b>",
    "&#64;alice",
    "&#x40;alice",
    "&#0064;alice",
    "&commat;alice",
    "é@alice",
    "`@alice`",
    "see #12",
    "owner/name#12",
    "!45",
    "GH-12",
    "gh-12",
    "&#35;12",
    "&num;12",
    "&excl;45",
    "AT&#12",
    "https://github.com/owner/name/issues/12",
    "[a](https://gitlab.com/group/name/-/merge_requests/45)",
    "/merge",
    "  /close",
    "> /approve",
    "![x](https://example.org/x.png)",
    "<img src=x>",
    "<IMG src=x>",
    "a\n<!-- cranfield: report -->",
]
"""Text that a forge would act on."""
ACTS = re.compile(
    r"(?<![A-Za-z0-9])@\w|&(?:#0*64|#x0*40|commat);|(?<!&)#\d|&#\d+(?![\d;])|!\d|&(?:#35|num|excl);\d|\bGH-\d"
    r"|/(?:issues|merge_requests)/\d|^[ \t>]*/[a-z]|!\[|<img|<!--\s*cranfield",
    re.IGNORECASE | re.MULTILINE,
)


@pytest.mark.parametrize("text", SEEN)
def test_nothing_in_a_report_acts_on_the_forge(text: str) -> None:
    assert ACTS.search(text)
    assert not ACTS.search(without_mentions(text))


@given(st.lists(st.sampled_from([*SEEN, " ", "\n", "x", "@", "#", "!", "/", "&", "<", "1"]), max_size=8).map("".join))
def test_nothing_acts_however_pieces_meet(text: str) -> None:
    assert not ACTS.search(without_mentions(text))


@pytest.mark.parametrize(
    "text",
    [
        "nDCG@10 and Judged@10",
        "mail to someone@example.org",
        "# A heading\n\n## 2 queries",
        "&#39;quoted&#39;",
        "| a | b |\n| ---: | :--- |",
        "5 / 7",
        "docs/how-to/gate-in-ci.md",
        "[a link](https://example.org/#top)",
        "<details>\n<summary>x</summary>\n</details>",
        "no, it is wrong!",
    ],
)
def test_what_calls_nobody_stays_as_it_is(text: str) -> None:
    assert without_mentions(text) == text


def test_the_text_reads_the_same_to_a_person() -> None:
    assert without_mentions("ask @alice about #12").replace(HIDDEN, "") == "ask @alice about #12"


def test_a_body_begins_with_the_marker() -> None:
    assert comment_body("text\n", marker="docs", limit=100, source="x").splitlines()[0] == "<!-- cranfield: docs -->"


def test_a_marker_has_bounds() -> None:
    with pytest.raises(UsageError, match="a few plain words"):
        marker_line("a --> b")


def folded(name: str, size: int) -> str:
    return f"<details>\n<summary>{name}</summary>\n\n{'x' * size}\n</details>\n"


@pytest.mark.parametrize(
    ("limit", "kept", "gone"),
    [
        (10_000, ["verdict", "one", "two", "end"], []),
        (1_700, ["verdict", "one", "end", "1 of its 2 collapsed sections"], ["two"]),
        (700, ["verdict", "end", "2 of its 2 collapsed sections"], ["one", "two"]),
    ],
)
def test_folded_parts_go_first_and_from_the_end(limit: int, kept: list[str], gone: list[str]) -> None:
    text = f"verdict\n\n{folded('one', 1000)}\nmiddle\n{folded('two', 1000)}\nend\n"
    cut = fit_to_limit(text, limit, source="a file")
    assert len(cut) <= limit
    assert [word for word in kept if word not in cut] == []
    assert [word for word in gone if f"<summary>{word}" in cut] == []


def test_a_folded_part_in_a_folded_part_goes_with_it() -> None:
    inner = folded("inner", 10)
    text = f"verdict\n<details>\n<summary>outer</summary>\n\n{inner}{'y' * 1000}\n</details>\nend\n"
    cut = fit_to_limit(text, 500, source="a file")
    assert "details" not in cut
    assert "end" in cut


def test_lines_go_when_nothing_is_folded_and_a_fence_is_closed() -> None:
    cut = fit_to_limit("verdict\n\n```\n" + "a line\n" * 200 + "```\n", 400, source="a file")
    assert len(cut) <= 400
    assert cut.startswith("verdict\n\n```\na line\n")
    assert cut.count("```") == 2
    assert "only its beginning is shown. The full report is in a file." in cut


def test_bytes_can_be_what_is_limited() -> None:
    text = "verdict\n" + "é\n" * 300  # 3 bytes a line
    cut = fit_to_limit(text, 600, source="a file", size=lambda text: len(text.encode()))
    assert len(cut.encode()) <= 600
    assert "The full report is in a file" in cut


@given(
    st.lists(
        st.sampled_from(
            ["<details>\n", "</details>\n", "```\n", "text é\n", "<summary>s</summary>\n", "z" * 90 + "\n"]
        ),
        max_size=40,
    ).map("".join),
    st.integers(250, 900),
)
def test_a_cut_report_always_fits(text: str, limit: int) -> None:
    cut = fit_to_limit(text, limit, source="a file")
    assert len(cut) <= limit
    assert (cut == text) == (len(text) <= limit)


@pytest.mark.parametrize(
    "text", ["verdict\n<!-- all that follows", "<!--\nshown?", "<image src=http://x/y.png>", "<SVG onload=x>"]
)
def test_nothing_in_a_report_hides_the_rest_of_it_or_fetches_a_picture(text):
    assert "<!--" not in without_mentions(text)
    assert not re.search(r"<(?:image|svg)", without_mentions(text), re.IGNORECASE)

"""The menu by role, and the guide to the measures."""

from __future__ import annotations

import re

import pytest

from cranfield.measures import CATALOGUE, parse
from cranfield.server.access import declared_access
from cranfield.server.guide import CHOICES, explained, plain_words
from cranfield.server.navigation import NAVIGATION


def menu(team, who: str, path: str) -> tuple[list[str], list[str]]:
    page = team.browser(who).get(path).text
    found = re.search(r'<nav class="menu".*?</nav>', page, re.DOTALL)[0]
    return re.findall(r">([^<]+)</a>", found), re.findall(r'aria-current="page">([^<]+)', found)


def test_the_menu_has_what_a_role_may_open(team) -> None:
    assert menu(team, "ann", "/measures") == (["Home", "Measures"], ["Measures"])
    assert "Settings" not in menu(team, "vic", "/")[0]
    assert "Books" in menu(team, "lee", "/")[0]


def test_the_menu_marks_the_part_of_the_page(team) -> None:
    assert menu(team, "lee", "/")[1] == ["Home"]
    assert menu(team, "lee", "/books/shop/items")[1] == ["Books"]


def test_every_entry_of_the_menu_is_a_page_with_the_access_of_its_route(team) -> None:
    routes = declared_access(team.app.routes)
    assert {entry.path: routes.get(("GET", entry.path)) for entry in NAVIGATION} == {
        entry.path: entry.access for entry in NAVIGATION
    }


def test_every_measure_of_the_guide_is_in_the_catalogue() -> None:
    assert all(parse(name).name in CATALOGUE for _, names, _ in CHOICES for name in names)


@pytest.mark.parametrize("name", ["nDCG", "RR", "AP", "P", "R", "Success", "Judged"])
def test_the_default_measures_have_plain_words_and_a_question(name: str) -> None:
    spec = CATALOGUE[name]
    assert spec.question.endswith("?")
    assert spec.plain.endswith(".")
    assert spec.plain != spec.sentence


def test_a_measure_without_plain_words_has_its_sentence_and_an_unknown_one_none() -> None:
    assert plain_words("NumRet") == ("NumRet", CATALOGUE["NumRet"].sentence)
    assert plain_words("no-such@3") is None
    assert [spelling for spelling, *_ in explained(["P@5", "P@10", "x", "AP"])] == ["P@5", "AP"]


def test_the_guide_explains_the_measures(team) -> None:
    page = team.browser("ann").get("/measures").text
    assert 'id="nDCG"' in page
    assert "Are the best results at the top?" in page
    assert 'id="NumPrefMet"' in page

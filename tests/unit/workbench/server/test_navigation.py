"""The menu by role, and the guide to the measures."""

from __future__ import annotations

import re

import pytest

from cranfield.measures import CATALOGUE, parse
from cranfield.model.convention import CONVENTIONS
from cranfield.workbench.server.access import declared_access
from cranfield.workbench.server.guide import CHOICES, CHOSEN, explained, plain_words
from cranfield.workbench.server.navigation import NAVIGATION


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


@pytest.mark.parametrize(
    ("spelling", "convention", "said", "wrong"),
    [
        ("P@5", "searchtweak", "without a grade is not counted", "cannot reach 1"),
        ("P@5", "quepid", "0.5 where only 4 were", "cannot reach 1"),
        ("AP@10", "searchtweak", "not found is not counted", "counts as 0"),
        ("nDCG@10", "searchtweak", "best order of the same results", "fewer"),
        ("nDCG@10", "cupertino", "more than 1", "no order would be better"),
    ],
)
def test_plain_words_are_those_of_the_convention(spelling: str, convention: str, said: str, wrong: str) -> None:
    [(_, _, words)] = explained([spelling], convention)
    assert said in words
    assert wrong not in words
    assert explained([spelling], "trec") == explained([spelling]) != [(spelling, parse(spelling).name, words)]


def test_the_choices_that_have_plain_words_are_choices_of_a_convention() -> None:
    for name, choice, value in CHOSEN:
        assert name in CATALOGUE
        assert any(getattr(convention, choice) == value for convention in CONVENTIONS.values())


def test_a_measure_without_plain_words_has_its_sentence_and_an_unknown_one_none() -> None:
    assert plain_words("NumRet") == ("NumRet", CATALOGUE["NumRet"].sentence)
    assert plain_words("no-such@3") is None
    assert [spelling for spelling, *_ in explained(["P@5", "P@10", "x", "AP"])] == ["P@5", "AP"]


def test_the_guide_explains_the_measures(team) -> None:
    page = team.browser("ann").get("/measures").text
    assert 'id="nDCG"' in page
    assert "Are the best results at the top?" in page
    assert 'id="NumPrefMet"' in page

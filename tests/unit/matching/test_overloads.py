"""Overloads and other definitions of one name are one entity, however gold and results number them."""

import pytest

from cranfield.answers.places import Answered, Expected
from cranfield.answers.structure import Part, score_structure
from cranfield.matching.place import plain_name
from cranfield.model import Answer, Entity, Hit, Outcome, Query, Run, TestSet
from cranfield.project.recipe import evaluate

PROMPT, ECHO = "src/click/termui.py::prompt", "src/click/utils.py::echo"


def measured(gold, hits, measure="R@10"):
    targets = tuple(Entity(each) if isinstance(each, str) else each for each in gold)
    testset = TestSet("set", (Query("q"),), targets={"q": targets})
    answer = Answer(Outcome.ANSWERED, tuple(Hit(each) if isinstance(each, str) else each for each in hits))
    return evaluate(testset, Run("run", {"q": answer}), measures=[measure]).value(measure, "q")


@pytest.mark.parametrize(
    ("gold", "hits"),
    [
        ([f"{PROMPT}#3"], [PROMPT]),
        ([PROMPT], [f"{PROMPT}#3"]),
        ([f"{PROMPT}#3"], [f"{PROMPT}#3"]),
        ([f"{PROMPT}#3"], [f"{PROMPT}#2"]),
        ([PROMPT, f"{PROMPT}#2", f"{PROMPT}#3"], [PROMPT]),
        ([PROMPT], [f"{PROMPT}#3:40-60"]),
        ([f"{PROMPT}#3"], [f"./{PROMPT}"]),
        (["src/cart.rs::Cart::total"], ["src/cart.rs::Cart.total"]),
        (["src/cart.js::Cart.total"], ["src/cart.js::Cart#total"]),
        (["src/cart.py::outer.inner"], ["src/cart.py::outer.<locals>.inner"]),
    ],
)
def test_a_function_is_found_by_any_spelling_of_its_name(gold, hits):
    assert measured(gold, hits) == 1


def test_overloads_are_one_expected_item_and_are_credited_once():
    gold = [PROMPT, f"{PROMPT}#2", ECHO]
    assert measured(gold, [PROMPT, f"{PROMPT}#2"]) == 0.5  # of two functions
    assert measured(gold, [PROMPT, f"{PROMPT}#2"], "P@2") == 0.5  # the second result brings nothing new
    assert measured(gold, [f"{PROMPT}#3", ECHO], "nDCG@10") == 1


def test_one_function_of_several_grades_has_its_best_and_the_lines_of_all_its_definitions():
    gold = [Entity(PROMPT, 1, ((10, 20),)), Entity(f"{PROMPT}#2", 3, ((30, 40), (10, 20))), Entity(ECHO, 2)]
    for lines in ("12-14", "32-34"):
        assert measured(gold, [Hit("src/click/termui.py", span=lines), ECHO], "nDCG@10") == 1
    assert measured(gold, [Hit("src/click/termui.py", span="50-60")]) == 0


@pytest.mark.parametrize(
    ("gold", "hit"),
    [
        ("a.py::A.run", "a.py::B.run"),
        ("a.py::A.run", "b.py::A.run"),
        ("a.py::run", "a.py::A.run"),
        ("a.py::outer.run", "a.py::other.run#2"),
        ("a.py::Index.add", "a.py::Index.add2"),
        ("a.md::Known > Issue #2", "a.md::Known > Issue #3"),
        ("a.js::Index.#add", "a.js::Index.add"),  # private
    ],
)
def test_different_functions_stay_apart(gold, hit):
    assert measured([gold], [hit]) == 0


@pytest.mark.parametrize(
    "answered",
    [
        Answered(entities=(PROMPT,)),
        Answered(entities=(f"{PROMPT}#2", PROMPT)),
        Answered(f"It is {PROMPT}."),
        Answered(f"It is {PROMPT}#2, lines 4 to 9."),
        Answered("It is `prompt` in src/click/termui.py."),
    ],
)
def test_an_answer_names_the_function(answered):
    for expected in ((f"{PROMPT}#3",), (PROMPT, f"{PROMPT}#2")):
        scored = score_structure(answered, Expected(expected)).parts[Part.ENTITIES]
        assert (scored.missing, scored.extra, scored.n_expected) == ((), (), 1)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("prompt#3", "prompt"),
        ("Cart::total", "Cart.total"),
        ("Cart#total#2", "Cart.total"),
        ("Known > Issue #2", "Known > Issue #2"),
        ("Index.#add", "Index.#add"),
        ("", ""),
    ],
)
def test_names_have_one_form(name, plain):
    assert plain_name(name) == plain == plain_name(plain)

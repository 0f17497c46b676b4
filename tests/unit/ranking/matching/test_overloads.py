"""Overloads and other definitions of one name are one entity, however gold and results number them."""

import pytest

from cranfield.agents.answers.rows import Answered, ExpectedAnswer
from cranfield.agents.answers.structure import AnswerPart, score_structure
from cranfield.app.evaluate import evaluate
from cranfield.model import Answer, Entity, Hit, Outcome, Query, Run, TestSet
from cranfield.ranking.matching.place import parts_of, plain_name

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
        (["src/Cart.java::Cart.add"], ["src/Cart.java::Cart#add#2"]),
        (["src/Cart.kt::Cart.add"], ["src/Cart.kt::Cart.add#2"]),
        (["src/Cart.swift::Cart.add#2"], ["src/Cart.swift::Cart.add"]),
        (["src/cart.ts::Cart.size"], ["src/cart.ts::Cart.size#2"]),
        (["src/cart.cc::Cart::operator bool"], ["src/cart.cc::Cart.operator bool#2"]),
        (["src/cart.rs::<Cart as fmt.Display>.fmt"], ["src/cart.rs::<Cart as fmt::Display>::fmt"]),
        (["src/cart.rs::path"], ["src/cart.rs::path#2"]),  # one for each platform
        (["lib/cart.rb::Cart.open"], ["lib/cart.rb::Cart::open#2"]),
        (["docs/a.md::What is new in C#12"], ["./docs/a.md::What is new in C#12"]),
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
        ("a.md::What is new in C#12", "a.md::What is new in C#11"),
        ("a.md::Notes", "a.md::Notes#2"),
        ("a.MD::C#12", "a.MD::C#11"),
        ("a.rst::C#12", "a.rst::C#11"),
        ("a.unknown::What is new in C#12", "a.unknown::What is new in C#11"),
        ("a.md::std::vector", "a.md::std.vector"),
        ("a.md::Cart#total", "a.md::Cart.total"),
        ("a.rb::Cart#total", "a.rb::Cart.total"),
        ("a.rs::<A as Display>.fmt", "a.rs::<A as Debug>.fmt"),
        ("a.rs::<A as Display>.fmt", "a.rs::A.fmt"),
        ("a.rs::<E as From<io.Error>>.from", "a.rs::<E as From<fmt::Error>>::from"),
        ("a.ts::Cart.prototype.size", "a.ts::Cart.size"),
    ],
)
def test_different_functions_stay_apart(gold, hit):
    assert measured([gold], [hit]) == 0


def test_different_sections_are_two_expected_items():
    gold = ["a.md::What is new in C#12", "a.md::What is new in C#11"]
    assert measured(gold, gold[:1]) == 0.5
    assert measured(gold, gold) == 1


def test_a_name_that_two_functions_have_is_told_by_its_lines():
    gold = [Entity("a.rs::<A as Display>.fmt", 1, ((10, 20),)), Entity("a.rs::<A as Debug>.fmt", 1, ((30, 40),))]
    assert measured(gold, ["a.rs::A.fmt"]) == 0
    assert measured(gold, ["a.rs::A.fmt:12-14"]) == 0.5
    assert measured(gold, ["a.rs::A.new:12-14"]) == 0  # it names another


def test_an_answer_that_names_neither_of_two_functions_of_one_name_has_none():
    expected = ExpectedAnswer(("src/a.rs::<A as Display>.fmt", "src/a.rs::<A as Debug>.fmt"))
    for text in ("`A::fmt` in src/a.rs.", "`<A as Clone>::fmt` in src/a.rs"):
        assert score_structure(Answered(text), expected).parts[AnswerPart.ENTITIES].missing == expected.entities
    for text in (
        "It is src/a.rs::<A as Debug>.fmt.",
        "`<A as Debug>::fmt` in src/a.rs",
        "src/a.rs: `<A as Debug>.fmt()`.",
    ):
        assert score_structure(Answered(text), expected).parts[AnswerPart.ENTITIES].missing == expected.entities[:1], (
            text
        )


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
        scored = score_structure(answered, ExpectedAnswer(expected)).parts[AnswerPart.ENTITIES]
        assert (scored.missing, scored.extra, scored.n_expected) == ((), (), 1)


@pytest.mark.parametrize(
    ("path", "name", "plain", "parts"),
    [
        ("a.py", "prompt#3", "prompt", ("prompt",)),
        ("a.py", "prompt#2#3", "prompt", ("prompt",)),
        ("a.rs", "Cart::total", "Cart.total", ("Cart", "total")),
        ("a.js", "Cart#total#2", "Cart.total", ("Cart", "total")),
        ("a.rb", "Cart#total#2", "Cart#total", ("Cart", "total")),
        ("a.md", "Known > Issue #2", "Known > Issue #2", ("Known", "Issue #2")),
        ("a.md", "In C#12", "In C#12", ("In C#12",)),
        ("a.kt", "Cart.adds in C#12", "Cart.adds in C#12", ("Cart", "adds in C#12")),
        ("a.js", "Index.#add", "Index.#add", ("Index", "#add")),
        ("a.js", "Cart.prototype.total", "Cart.prototype.total", ("Cart", "total")),
        ("a.cc", "Cart::operator<#2", "Cart.operator<", ("Cart", "operator<")),
        ("a.rs", "<&'a mut A<u8> as From<io::E>>::from#2", "<&'a mut A<u8> as From<io.E>>.from", ("A", "from")),
        ("a.rs", "inner.<A<u8>>.f", "inner.<A<u8>>.f", ("inner", "A", "f")),
        ("a.py", "", "", ("",)),
    ],
)
def test_names_have_one_form(path, name, plain, parts):
    assert plain_name(name, path) == plain == plain_name(plain, path)
    assert parts_of(f"{path}::{name}") == parts == parts_of(f"{path}::{plain}")


@pytest.mark.parametrize("name", ["#1" * 5000 + "x", "#1" * 5000, "<" * 5000, "<a" * 2500, "<" + "a." * 2500])
@pytest.mark.parametrize("path", ["a.rs", "a.unknown", "a.md"])
def test_a_very_long_name_is_read_in_little_time(path, name):
    assert parts_of(f"{path}::{name}")

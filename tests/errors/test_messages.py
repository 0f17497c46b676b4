"""The error tree as its docstring draws it, and the one shape of every message."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import cranfield
from cranfield.base import errors
from cranfield.base.errors import (
    GOT_CHARS,
    SHOWN_PROBLEMS,
    ConfigError,
    CranfieldError,
    InputError,
    MissingExtraError,
    Problem,
    ProblemList,
    RunFormatError,
    UnknownNameError,
    shorten,
    unknown_name,
)

DRAWN = re.compile(r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>\w+Error)\b *(?P<code>\d+)?", re.MULTILINE)


def drawn_tree() -> dict[str, tuple[int, int | None]]:
    """Class name to (depth, exit code where one is written) as the docstring draws them."""
    rows = DRAWN.finditer(errors.__doc__ or "")
    return {row["name"]: (len(row["branch"]) // 4, int(row["code"]) if row["code"] else None) for row in rows}


def all_classes(root: type[CranfieldError] = CranfieldError, depth: int = 0) -> dict[str, tuple[int, type]]:
    found: dict[str, tuple[int, type]] = {root.__name__: (depth, root)}
    for child in root.__subclasses__():
        found |= all_classes(child, depth + 1)
    return found


@pytest.fixture(scope="module")
def everything_imported() -> None:
    """Errors may be declared in any module: load them all before the tree is read, but what extends a library's class."""
    for module in pkgutil.walk_packages(cranfield.__path__, "cranfield."):
        if not module.name.endswith(("__main__", "compat.sentence_transformers")):
            importlib.import_module(module.name)


@pytest.mark.usefixtures("everything_imported")
def test_the_tree_drawn_is_the_tree_there_is() -> None:
    ours = {name: depth for name, (depth, cls) in all_classes().items() if cls.__module__.startswith("cranfield.")}
    assert {name: depth for name, (depth, _) in drawn_tree().items()} == ours


@pytest.mark.usefixtures("everything_imported")
def test_the_exit_codes_drawn_are_true() -> None:
    classes = {name: cls for name, (_, cls) in all_classes().items()}
    branch_code = None
    for name, (depth, code) in drawn_tree().items():
        if depth == 1:
            branch_code = code
        if depth >= 1:
            assert classes[name].exit_code == (code if code is not None else branch_code), name


def test_every_error_is_one_of_ours_and_one_of_pythons() -> None:
    assert issubclass(CranfieldError, Exception)
    assert not issubclass(CranfieldError, (ValueError, KeyError, OSError))


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("it is empty"), "it is empty."),
        (Problem("it is empty", path="a.run"), "a.run: it is empty."),
        (Problem("5 columns", path="a.run", line=7), "a.run:7: 5 columns."),
        (Problem("5 columns", path="a.run", line=7, column=3), "a.run:7:3: 5 columns."),
        (Problem("5 columns", path="a.run", line=7, expected="6"), "a.run:7: 5 columns; expected 6."),
        (Problem("5 columns", got="'x y'"), "5 columns; got 'x y'."),
        (Problem("5 columns", expected="6", got="'x y'"), "5 columns; expected 6, got 'x y'."),
        (Problem("is it there?"), "is it there?"),
        (Problem("no tag", hint="pass tag=NAME"), "no tag.\nHint: pass tag=NAME."),
        (
            Problem("5 columns", path="a.run", line=7, expected="6 (query Q0 doc rank score tag)", got="'q1 Q0 d1'"),
            "a.run:7: 5 columns; expected 6 (query Q0 doc rank score tag), got 'q1 Q0 d1'.",
        ),
    ],
)
def test_a_problem_reads_where_what_expected_got_hint(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_a_place_without_a_path_is_no_place() -> None:
    assert Problem("x", line=3).where == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("short", "'short'"),
        (3, "3"),
        ("x" * 78, "'" + "x" * 78 + "'"),  # 78 characters and two quotes: just fits
        ("x" * 79, "'" + "x" * 78 + "…"),  # one more: cut, with the ellipsis as the 80th
        ("tab\there", r"'tab\there'"),
    ],
)
def test_a_quoted_piece_is_cut_at_eighty_characters(value: object, text: str) -> None:
    assert shorten(value) == text
    assert len(shorten(value)) <= GOT_CHARS == 80


def test_an_error_from_a_sentence_carries_one_problem_with_its_fields() -> None:
    error = RunFormatError("5 columns", path="a.run", line=7, hint="add the tag")
    assert error.problems == (Problem("5 columns", path="a.run", line=7, hint="add the tag"),)
    assert str(error) == "a.run:7: 5 columns.\nHint: add the tag."


def test_an_unknown_field_is_refused_not_swallowed() -> None:
    with pytest.raises(TypeError, match="colum"):
        RunFormatError("5 columns", colum=3)


def test_an_error_lists_its_problems_and_counts_those_beyond_twenty() -> None:
    problems = [Problem("bad", path="a.run", line=line) for line in range(1, 24)]
    lines = str(RunFormatError(problems)).splitlines()
    assert lines[0] == "a.run:1: bad."
    assert lines[19] == "a.run:20: bad."
    assert lines[20:] == ["… and 3 more problems."]  # 23 problems, 20 shown
    assert SHOWN_PROBLEMS == 20


def test_exactly_twenty_problems_are_all_shown() -> None:
    assert len(str(RunFormatError([Problem("bad")] * 20)).splitlines()) == 20


def test_a_problem_list_raises_nothing_when_it_is_empty() -> None:
    ProblemList(ConfigError).raise_if_any()


def test_a_problem_list_raises_everything_at_once_in_the_order_of_lines() -> None:
    problems = ProblemList(ConfigError)
    problems.add("third", path="c.yaml", line=9)
    problems.add("first", path="b.yaml", line=40)
    problems.add("second", path="c.yaml", line=2)
    with pytest.raises(ConfigError) as caught:
        problems.raise_if_any()
    assert [problem.message for problem in caught.value.problems] == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("got", "hint"),
    [
        ("nDGC", "did you mean nDCG?"),
        ("ndcg", "did you mean nDCG?"),
        ("NDCG", "did you mean nDCG?"),
        ("Succes", "did you mean Success?"),
        ("wholly different", None),
    ],
)
def test_the_nearest_name_is_offered(got: str, hint: str | None) -> None:
    problem = unknown_name("measure", got, ["AP", "nDCG", "RR", "Success"])
    assert problem.message == f"unknown measure '{got}'"
    assert problem.expected == "AP, RR, Success, nDCG"
    assert problem.hint == hint


@pytest.mark.parametrize(("got", "hint"), [("tt", None), ("T", "did you mean t?"), ("sing", "did you mean sign?")])
def test_a_name_of_one_letter_is_near_to_itself_only(got: str, hint: str | None) -> None:
    problem = unknown_name("test", got, ["permutation", "sign", "t"])
    assert (problem.expected, problem.hint) == ("permutation, sign, t", hint)


def test_many_names_are_counted_not_listed() -> None:
    problem = unknown_name("measure", "zzz", [f"M{i}" for i in range(13)], command="cranfield measures")
    assert problem.expected == "one of 13 measures"
    assert problem.hint == "`cranfield measures` lists them."


def test_an_unknown_name_is_an_error_with_place_and_hint() -> None:
    error = UnknownNameError.among("convention", "trek", ["trec", "cupertino"])
    assert str(error) == "unknown convention 'trek'; expected cupertino, trec.\nHint: did you mean trec?"
    assert error.exit_code == 2


def test_a_missing_extra_names_the_command_that_brings_it() -> None:
    error = MissingExtraError.for_extra("serving pages", "web")
    assert str(error) == (
        "serving pages needs an extra that is not installed.\nHint: run `pip install 'cranfield[web]'`."
    )


def test_one_handler_catches_every_error_of_files() -> None:
    with pytest.raises(InputError):
        raise RunFormatError("no")

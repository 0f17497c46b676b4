import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.config.strict import fill, is_placeholder, placeholders


def filled(command, query="grid", **params):
    return fill(command, query=query, k=10, python="/py", params=params)


@pytest.mark.parametrize(
    ("command", "params", "expected"),
    [
        (["s", "{query}", "-n", "{k}"], {}, ["s", "grid", "-n", "10"]),
        (["{python}", "s.py", "q={query};k={k}"], {}, ["/py", "s.py", "q=grid;k=10"]),
        (["s", "--min-ios", "{params.min_ios}", "{query}"], {"min_ios": 17}, ["s", "--min-ios", "17", "grid"]),
        # absent: the value goes, and the flag before it
        (["s", "--min-ios", "{params.min_ios}", "{query}"], {}, ["s", "grid"]),
        (["s", "--min-ios={params.min_ios}", "{query}"], {}, ["s", "grid"]),
        (["s", "-x", "--min-ios={params.min_ios}", "{query}"], {}, ["s", "-x", "grid"]),
        (["s", "--where", "ios>={params.min_ios}", "{query}"], {}, ["s", "grid"]),
        (["s", "{params.a}", "{query}"], {}, ["s", "grid"]),
        (["s", "-a", "{params.a}", "-b", "{params.b}"], {"b": 2}, ["s", "-b", "2"]),
        (["s", "-r", "{params.a}", "{params.b}"], {"a": 1}, ["s", "-r", "1"]),
        # what is no flag that waits for a value stays
        (["s", "--", "{params.a}"], {}, ["s", "--"]),
        (["s", "-", "{params.a}"], {}, ["s", "-"]),
        (["s", "--limit=5", "{params.a}"], {}, ["s", "--limit=5"]),
        # spelled as a command line would
        (["s", "{params.v}"], {"v": True}, ["s", "true"]),
        (["s", "{params.v}"], {"v": 17.0}, ["s", "17.0"]),
        (["s", "{params.v}"], {"v": ""}, ["s", ""]),
        (["s", "{params.min-ios.x}"], {"min-ios.x": 3}, ["s", "3"]),
        # braces that are no placeholder
        (["s", '{"q": "{query}", "n": {k}}'], {}, ["s", '{"q": "grid", "n": 10}']),
        (["s", "{{query}}", "{}", "{ query }", "a{1,2}"], {}, ["s", "{query}", "{}", "{ query }", "a{1,2}"]),
    ],
)
def test_a_command_is_filled_in(command, params, expected):
    assert filled(command, **params) == expected


@pytest.mark.parametrize("query", ["{k}", "{params.x}", "{{k}}", "{query}", "; touch x", "$(id)", "--flag", "a\nb", ""])
def test_a_query_is_passed_as_typed(query):
    assert filled(["s", "{query}", "[{query}]"], query, x="no") == ["s", query, f"[{query}]"]


def test_a_query_that_looks_like_a_flag_is_not_dropped_with_the_parameter_after_it():
    assert filled(["s", "{query}", "{params.lang}"], "-foo") == ["s", "-foo"]


def test_a_parameter_is_never_read_again_as_a_placeholder():
    assert filled(["s", "{params.a}"], "secret", a="{query}") == ["s", "{query}"]


@given(st.text(), st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), st.text()))
def test_what_is_filled_in_comes_out_unchanged(query, params):
    command = ["{query}", *(f"{{params.{name}}}" for name in params)]
    assert filled(command, query, **params) == [query, *params.values()]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("query", True),
        ("k", True),
        ("python", True),
        ("params.a", True),
        ("params.min-ios", True),
        ("params", False),
        ("params.", False),
        ("params.1", False),
        ("Query", False),
        ("param.a", False),
    ],
)
def test_only_what_can_be_filled_in_is_a_placeholder(name, known):
    assert is_placeholder(name) is known


def test_placeholders_are_found_in_order_and_literals_are_not():
    assert list(placeholders("{k}{{query}}{qeury}{1}")) == ["k", "qeury"]

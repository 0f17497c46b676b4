"""The keys of each kind of system, and the messages about wrong ones."""

import pytest

from cranfield.config import system_config
from cranfield.config.systems import KINDS, SystemRoot
from cranfield.formats.io.validation import problems_of

IDS = {"regex": r"\S+"}
FROM_JSON = {"json": "hits", "id": "id"}
SOUND = {
    "command": {"command": ["search", "{query}"], "extract": IDS},
    "http": {"http": {"url": "http://localhost/search", "parameters": {"q": "{query}"}}, "extract": FROM_JSON},
    "python": {"python": "engine:search"},
    "mcp": {"mcp": {"command": ["serve"], "tool": "search"}, "extract": FROM_JSON},
    "lines": {"lines": ["serve"]},
    "run": {"run": "old.jsonl"},
    "fusion": {"fusion": {"of": ["a", "b"]}},
    "preset": {"preset": "sqlite", "with": {"database": "docs.db", "table": "docs"}},
    "plugin": {"plugin": "acme"},
}
"""The least that a system of each kind says."""


def found(settings) -> list[str]:
    """What is wrong with a system, a text for each problem."""
    return [str(problem) for _, problem in problems_of(SystemRoot, settings)]


def test_every_kind_has_a_least_form():
    assert tuple(SOUND) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_form_is_sound(kind):
    assert found(SOUND[kind]) == []
    assert system_config("sut", SOUND[kind]).kind == kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_kind_beside_it_is_refused(kind):
    other = {"run": "x.trec"} if kind != "run" else {"lines": ["serve"]}
    (said,) = found({**SOUND[kind], **other})
    named = [name for name in KINDS if name in {kind, *other}]
    assert (
        said
        == f"keys that exclude each other; expected exactly one of {', '.join(KINDS)}, got {' and '.join(named)}.\n"
        f"Hint: keep one of {' and '.join(named)}."
    )


def test_no_kind_at_all_is_refused():
    assert found({"extract": IDS}) == [f"missing key; expected exactly one of {', '.join(KINDS)}, got none."]


def test_a_key_one_level_too_high_is_told_its_place():
    settings = {"url": "https://x/{query}", "extract": IDS}
    assert found(settings) == [
        (
            f"missing key; expected exactly one of {', '.join(KINDS)}, got none.\n"
            "Hint: url is a key of http or mcp: write `http: {url: …}`."
        )
    ]


@pytest.mark.parametrize("kind", ["command", "http", "mcp"])
def test_kinds_whose_answers_have_no_form_of_their_own_need_extract(kind):
    settings = {key: value for key, value in SOUND[kind].items() if key != "extract"}
    assert found(settings) == ["missing key 'extract'."]


@pytest.mark.parametrize("kind", ["python", "lines", "plugin"])
def test_kinds_with_a_form_of_their_own_may_have_extract(kind):
    assert found({**SOUND[kind], "extract": FROM_JSON}) == []


@pytest.mark.parametrize("kind", ["run", "fusion"])
def test_kinds_that_have_their_results_already_have_no_extract(kind):
    (said,) = found({**SOUND[kind], "extract": FROM_JSON})
    assert said.startswith(
        f"extract can only be used with command, http, python, mcp, lines, preset, plugin; got {kind}.\nHint: "
    )


@pytest.mark.parametrize("kind", ["command", "http", "mcp", "lines", "run", "fusion"])
def test_with_goes_with_what_is_made_of_it(kind):
    (said,) = found({**SOUND[kind], "with": {}})
    assert said == f"with can only be used with python, preset, plugin; got {kind}."


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"python": "engine"}, "python: not the name of a function; expected module:name, got engine."),
        ({"python": "engine.py:search"}, None),
        ({"python": "my-engine:search"}, "python: not the name of a function; expected module:name"),
        ({"python": "engine:"}, "python: not the name of a function; expected module:name"),
        ({"python": "a:b:c"}, "python: not the name of a function; expected module:name"),
        ({"python": "pkg.engine:Index.search"}, None),
        ({"python": "engine:make", "with": {}, "env": {"TOKEN": "x"}}, None),
        (
            {"python": "engine:search", "env": {"TOKEN": "x"}},
            "env: a function has the environment of Cranfield's own process.\nHint: `with` arguments go to",
        ),
        (
            {"run": "old.jsonl", "order": "descending"},
            "order can only be used with command, http, python, mcp, lines, preset, plugin; got run.\nHint: leave",
        ),
        ({"lines": ["serve", "{python}", "{{query}}"]}, None),
        (
            {"lines": ["serve", "{query}"]},
            "lines[1]: the program is started once, for all queries; got {query}.\nHint: each query comes on stdin",
        ),
        ({"lines": ["serve", "{k}"]}, "lines[1]: the program is started once, for all queries; got {k}."),
        ({"lines": ["{params.x}"]}, "lines[0]: the program is started once, for all queries; got {params.x}."),
        (
            {"lines": ["serve", "{pyton}"]},
            "lines[1]: unknown placeholder 'pyton'; expected python, port.\nHint: did you mean",
        ),
        ({"lines": [" "]}, "lines[0]: the program's name is blank."),
        (
            {"lines": ["serve"], "order": "descending", "extract": FROM_JSON},
            "order: descending sorts the results by score, but no score is extracted.",
        ),
        ({"lines": ["serve"], "order": "descending"}, None),
    ],
)
def test_python_run_and_lines_say_what_they_are(settings, said):
    problems = found(settings)
    if said is None:
        assert problems == []
    else:
        assert len(problems) == 1
        assert problems[0].startswith(said)


@pytest.mark.parametrize(
    ("mcp", "said"),
    [
        ({"url": "https://x/mcp", "headers": {"Authorization": "Bearer {env.KEY}"}}, None),
        ({"command": ["{python}", "serve.py"], "arguments": {"q": ["{query}"], "n": "{k}"}}, None),
        ({}, "missing key in mcp; expected exactly one of command, url, got none."),
        (
            {"command": ["serve"], "url": "https://x"},
            (
                "keys that exclude each other in mcp; expected exactly one of command, url, got command and url.\n"
                "Hint: keep one of command and url."
            ),
        ),
        ({"command": ["serve"], "headers": {"X": "y"}}, "mcp.headers can only be used with url; got command."),
        (
            {"command": ["serve", "{query}"]},
            "mcp.command[1]: the program is started once, for all queries; got {query}.\nHint: put values that depend on",
        ),
        ({"command": [""]}, "mcp.command[0]: the program's name is blank."),
        ({"url": "x.com"}, "mcp.url: not the address of a service; expected http://... or https://..."),
        ({"url": "https://u:p@x.com/mcp"}, "mcp.url: user and password in an address."),
        (
            {"url": "https://x/{query}"},
            "mcp.url: the session is opened once, for all queries; got https://x/{query}.\nHint: put values that depend on",
        ),
        (
            {"url": "https://x", "headers": {"X-Lang": "{params.lang}"}},
            "mcp.headers: the session is opened once, for all queries; got {params.lang}.",
        ),
        (
            {"url": "https://x", "headers": {"X": "{env.A-B}"}},
            "mcp.headers: unknown placeholder 'env.A-B'; expected env.NAME",
        ),
        (
            {"url": "https://x", "headers": {"Authorization": "Bearer abc"}},
            "mcp.headers.Authorization: a secret in the config file.\nHint: put it in the environment",
        ),
        (
            {"command": ["serve"], "arguments": {"q": "{qery}"}},
            "mcp.arguments: unknown placeholder 'qery'; expected query",
        ),
        (
            {"command": ["serve"], "arguments": {"q": "fixed"}},
            "mcp.arguments: no {query}: every query would make the same call.",
        ),
        ({"command": ["serve"], "arguments": {"q": "{params.text}"}}, None),
    ],
)
def test_an_mcp_tool_says_where_it_is_and_what_it_is_given(mcp, said):
    problems = found({"mcp": {"tool": "search", **mcp}, "extract": FROM_JSON})
    if said is None:
        assert problems == []
    else:
        assert len(problems) == 1
        assert problems[0].startswith(said)


@pytest.mark.parametrize(
    ("extract", "said"),
    [
        ({"json": "hits", "tokens": "usage.tokens"}, None),
        ({"regex": r"(?P<id>\w+) (?P<tokens>\d+)"}, None),
        (
            {"regex": r"\w+", "tokens": "n"},
            "extract.tokens can only be used with json, jsonl; got regex.\nHint: a regular expression has a group for it: (?P<tokens>...).",
        ),
        ({"json": "hits", "tokens": "a["}, "extract.tokens: "),
    ],
)
def test_tokens_of_a_result_are_extracted_like_its_score(extract, said):
    problems = found({"command": ["search", "{query}"], "extract": extract})
    assert [problem.startswith(said) for problem in problems] == ([] if said is None else [True])


def test_a_preset_that_nobody_knows_is_told_the_nearest_one():
    (said,) = found({"preset": "sqlit", "with": {}})
    assert said.startswith("preset: unknown preset 'sqlit'")
    assert "did you mean sqlite?" in said


def test_what_a_preset_needs_is_asked_for_under_with():
    assert all(said.startswith("with") for said in found({"preset": "sqlite", "with": {}}))
    assert found({"preset": "sqlite", "with": {}})

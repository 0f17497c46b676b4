"""What is said of an `http` system that cannot be asked as it is written, each problem at its line."""

from __future__ import annotations

import pytest

SYSTEM = """
testset: q.yaml
systems:
  s:
    extract: {json: hits, id: id}
    http:
"""


@pytest.fixture
def said(problems_of):
    """Problems of a system whose `http` holds the given lines: line within it, and text without its place."""

    def _said(*lines: str) -> list[tuple[int, str]]:
        text = SYSTEM + "".join(f"      {line}\n" for line in lines)
        start = SYSTEM.count("\n")
        return [((line or 0) - start, text.split(": ", 1)[1]) for line, text in problems_of(text)]

    return _said


@pytest.mark.parametrize(
    "lines",
    [
        ["url: http://localhost:9200/docs/_search", "json: {query: '{query}', size: '{k}'}"],
        ["url: 'https://x.test/find/{query}?k={k}'", "method: GET"],
        ["url: 'http://[::1]:65535/{query}'"],
        ["url: 'http://[::1]/{query}'"],
        ["url: 'http://x.test:/{query}'"],
        ["url: 'http://x.test:{env.PORT}/{query}'"],
        ["url: '{env.URL}/find'", "parameters: {q: '{query}', tag: [a, 1, true]}"],
        ["url: https://x.test/", "form: {q: '{query}'}", "basic: '{env.USER}:{env.PASSWORD}'"],
        ["url: https://x.test/?api_key={env.KEY}", "text: '{query}'", "headers: {X-Api-Key: 'k {env.KEY}'}"],
    ],
    ids=[
        "json",
        "path",
        "port",
        "address",
        "empty port",
        "port of the environment",
        "address of the environment",
        "form and basic",
        "text and keys",
    ],
)
def test_a_request_that_can_be_made_is_accepted(load, lines):
    assert load(SYSTEM + "".join(f"      {line}\n" for line in lines)).systems["s"].kind == "http"


@pytest.mark.parametrize(
    ("lines", "line", "text"),
    [
        (["url: localhost:9200/{query}"], 1, "not the address of a service; expected http://... or https://..."),
        (["url: 'ftp://x.test/{query}'"], 1, "not the address of a service; expected http://... or https://..."),
        *(
            ([f"url: 'http://x.test:{port}/{{query}}'"], 1, "the port of the address is not valid; expected a number from 1 to 65535")
            for port in ("65536", "0", "-1", "abc", "9" * 20, "1e3", "\uff11\uff12", "8 0")
        ),
        (["url: 'http://[::1]:70000/{query}'"], 1, "the port of the address is not valid"),
        (["url: 'https://ada:pw@x.test/{query}'"], 1, "user and password in an address"),
        (["url: 'https://x.test/#{query}'"], 1, "the part of an address after # is not sent"),
        (["url: 'https://x.test/{query}?api_key=abc'"], 1, "a secret in the config file"),
        (["url: https://x.test/"], 1, "no {query}: every query would make the same call"),
        (["url: 'https://x.test/{qeury}'"], 1, "unknown placeholder 'qeury'"),
        (["url: 'https://x.test/{query}'", "method: GET", "json: {}"], 2, "a GET has no body"),
        (["url: 'https://x.test/{query}'", "json: {a: 1}", "form: {b: 1}"], 1, "got json and form"),
        (["url: 'https://x.test/{query}'", "headers: {Authorization: Bearer abc}"], 2, "a secret in the config file"),
        (["url: 'https://x.test/{query}'", "headers: {'X Y': a}"], 2, "not the name of a header"),
        (["url: 'https://x.test/{query}'", "headers: {Content-Length: '3'}"], 2, "Content-Length is set by the HTTP client"),
        (["url: 'https://x.test/{query}'", "headers: {Accept: a, accept: b}"], 2, "headers Accept and accept are the same"),
        (["url: 'https://x.test/{query}'", "basic: 'ada:pw'"], 2, "user and password come from the environment"),
        (["url: 'https://x.test/{query}'", "basic: '{env.A}:{env.B}'", "headers: {authorization: '{env.C}'}"], 2,
         "basic sets the header Authorization, which is given too"),
        (["url: 'https://x.test/{query}'", "parameters: {q: {a: b}}"], 2, "expected text, a number, or a list of them"),
        (["url: 'https://x.test/{query}'", "parameters: {q: [[a]]}"], 2, "expected text, a number, or a list of them"),
        (["url: 'https://x.test/{query}'", "form: {password: abc}"], 2, "a secret in the config file"),
        (["url: 'https://x.test/{query}'", "headers: {X: '{env.A-B}'}"], 2, "unknown placeholder 'env.A-B'"),
        (["url: 'https://x.test/{query}'", "parameter: {}"], 2, "did you mean parameters?"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said_at_its_line(said, lines, line, text):
    found = said(*lines)
    assert len(found) == 1, found
    assert (found[0][0], text in found[0][1]) == (line, True), found


def test_all_that_is_wrong_is_said_at_once(said):
    found = said(
        "url: x.test/",
        "basic: 'ada:pw'",
        "headers: {Cookie: 'a=b', 'A:': b}",
        "parameters: {q: {a: '{query}'}, secret: abc}",
    )
    assert sorted(line for line, _ in found) == [1, 2, 3, 3, 4, 4]

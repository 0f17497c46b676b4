"""Which results of a tool have content, by their shape."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from cranfield.benefit.content import flaws_of, parsed, same_for_different_tasks
from cranfield.benefit.delivery import Called, result_note
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd, CellKey, CellRecord, CellUsage, Delivery, Flaw

EMPTY: tuple[Any, ...] = (
    "",
    "  \n ",
    "null",
    "None",
    "[]",
    "{}",
    '""',
    "[[], {}]",
    "No results found.",
    "no matching documents were found for 'x'",
    "No relevant code found",
    "0 results",
    "Nothing found",
    "Could not find any symbol named forward",
    "Not found",
    "N/A",
    "There are no matches.",
    "No context available",
    "Sorry, no results for your query",
    {"results": []},
    {"query": "forward", "results": [], "took_ms": 3},
    {"data": {"hits": [], "total": 0}},
    {"result": ""},
    {"result": "[]"},
    {"result": json.dumps({"matches": []})},
    {"result": "No results found"},
    {"query": "x", "total": 0},
    {"text": "", "query": "x"},
    {"found": False},
    {"query": "x", "code": 404, "message": "nothing", "results": []},
    "Found 0 results",
    "Found no matches",
    "Results: 0",
    "Search returned no results.",
    "The search did not return any results.",
    "Index not ready",
    "(no output)",
    "[]\n... [truncated]"[:2],
    [{"text": ""}, {"text": " "}],
)
ERRORS: tuple[Any, ...] = (
    "Error: the index is locked",
    "ERROR - no such table: chunks",
    "ValueError: bad query",
    "sqlite3.OperationalError: locked",
    "Traceback (most recent call last):\n  File ...",
    "fatal: not a git repository",
    "Failed to search the index",
    "An unexpected error occurred",
    "HTTP 500 Internal Server Error",
    "429 Too Many Requests",
    "503 Service Unavailable",
    "Request timed out after 30 s",
    "Unable to open the database",
    "connection refused",
    "Rate limit exceeded",
    "Timeout",
    "Permission denied: /srv/index",
    {"error": "no such index"},
    {"errors": [{"message": "x"}], "data": None},
    {"results": [], "error": "locked"},
    {"isError": True, "content": "locked"},
    {"success": False, "message": "locked"},
    {"ok": False},
    {"status": "error", "detail": "locked"},
    {"result": "Error: locked"},
    {"result": json.dumps({"error": "locked"})},
    [{"error": "a"}, {"error": "b"}],
)
CUT: tuple[Any, ...] = (
    '{"results": [{"path": "a.py", "text": "def f',
    '[{"path": "a.py"}, {"pa',
    "def f():\n[... 120 more lines truncated ...]\n    return 1",
    "a\n…123 tokens truncated…\nb",
    "def f():\n... 4,000 more characters are not shown",
    "def f():\n[OUTPUT TRUNCATED - exceeded 25000 token limit]",
    "x\n[... omitted 40 of 80 lines ...]\ny",
)
GOOD: tuple[Any, ...] = (
    "src/click/core.py",
    "Context.forward is defined in core.py, line 700",
    "def error():\n    return 1",
    "42",
    "true",
    "class NotFoundError(Exception): ...",
    "errors.py:12: class UsageError",
    "error_handler = None",
    "Failures are counted in count()",
    "def truncate(text):\n    return text[:10]  # truncated",
    "None of the callers pass it, see core.py, class Context, def forward",
    "HTTPError: base class of RequestError and HTTPStatusError, in httpx/_exceptions.py"[11:],
    "Timeout is set in Client.__init__ and passed on",
    "Rate limiting is done by Limiter.acquire in core",
    "523 symbols match; the first is Context",
    "412: config = load(path)",
    "404 Not Found is raised by Router.handle in routing.py",
    "No context manager is needed: Client.stream closes it",
    "No files are locked by it; flush in store.py: see Writer",
    "[[tool.mypy.overrides]]\nmodule = 'x'",
    '["a","b"].join(x)',
    "false",
    "0",
    {"is_used": False},
    {"answer": "The retry loop is in Client._send", "sources": []},
    {"code": "def f(): ...", "path": "src/a.py", "warnings": []},
    {"count": 0, "answer": "Nothing calls it but the tests in test_a.py"},
    {"exception": "KeyError", "raised_in": "a.py:12"},
    {"errors": 3, "summary": "three places raise it"},
    "[" * 400 + "]" * 400,
    '{"a":' * 400 + "1" + "}" * 400,
    {"results": [{"path": "a.py"}]},
    {"results": [{"path": "a.py"}], "errors": []},
    {"results": [{"path": "a.py"}], "errors": ["one shard"]},
    {"result": "src/a.py"},
    {"result": json.dumps([{"path": "a.py"}])},
    {"total": 3, "results": ["a"]},
    {"path": "a.py", "line": 3},
    {"error": None, "text": "class A"},
    {"status": "ok", "text": "class A"},
    '{"path": "a.py"}\n{"path": "b.py"}',
    "[1] core.py: class Context",
    "{ return 1; }",
)


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("value", EMPTY, ids=text_of)
def test_what_holds_nothing_is_empty(value: Any) -> None:
    assert flaws_of(text_of(value)) == (Flaw.EMPTY,)


@pytest.mark.parametrize("value", ERRORS, ids=text_of)
def test_an_error_in_words_is_one_whatever_the_server_calls_it(value: Any) -> None:
    assert flaws_of(text_of(value)) == (Flaw.ERROR,)


@pytest.mark.parametrize("value", CUT, ids=text_of)
def test_a_part_says_so_or_ends_in_the_middle_of_its_json(value: Any) -> None:
    assert flaws_of(text_of(value)) == (Flaw.CUT,)
    assert flaws_of("def f(): ...", is_cut=True) == (Flaw.CUT,)


@pytest.mark.parametrize("value", GOOD, ids=text_of)
def test_content_has_no_flaw(value: Any) -> None:
    assert flaws_of(text_of(value)) == ()


@pytest.mark.parametrize("value", [*EMPTY, *ERRORS], ids=text_of)
def test_lines_of_the_repository_are_content_whatever_stands_around_them(value: Any) -> None:
    assert flaws_of(text_of(value), is_of_repository=True) == ()


@pytest.mark.parametrize("text", ["Error: index is locked (output truncated)", "[]\n... [truncated]", "Error: locked"])
def test_a_part_of_nothing_has_no_content(text: str) -> None:
    flaws = flaws_of(text, is_cut=True)
    assert flaws[0] is Flaw.CUT
    assert len(flaws) == 2


@pytest.mark.parametrize("part", [".", "- ", "[] ", "... ", "(", "1,", "a-", "error ", "\u2026 "])
def test_the_shape_of_a_long_text_is_found_at_once(part: str) -> None:
    started = time.perf_counter()
    flaws_of(part * (40_000 // len(part)))
    assert time.perf_counter() - started < 2  # it was 7 to 38 s


def test_a_text_that_an_sdk_wraps_is_read_and_an_object_of_the_server_stays_as_it_is() -> None:
    assert parsed('{"result": "{\\"index\\": \\"main\\"}"}') == {"index": "main"}
    assert parsed('{"result": "main"}') == {"result": "main"}
    assert parsed('{"result": {"index": "main"}}') == {"result": {"index": "main"}}
    assert parsed('{"result": "{}", "index": "main"}') == {"result": "{}", "index": "main"}
    assert parsed("[" * 100_000) == "[" * 100_000


def cells(*results: tuple[str, str, str]) -> list[CellRecord]:
    """A cell each: task, arguments, text of the result."""
    found = []
    for seed, (task, arguments, text) in enumerate(results):
        note = result_note(Called("kc__find", arguments, is_error=False, text=text), flaws_of(text))
        found.append(
            CellRecord(
                key=CellKey(task_id=task, arm=ArmRole.TREATMENT, seed=seed),
                attempt=1,
                position=seed,
                started_at="",
                end=CellEnd.ANSWERED,
                usage=CellUsage(wall_s=1.0),
                delivery=Delivery(offered=True, called=1, answered=1, results=(note,)),
            )
        )
    return found


@pytest.mark.parametrize(
    ("results", "n"),
    [
        ([("q1", "a", "x"), ("q2", "b", "x"), ("q3", "c", "x")], 3),
        ([("q1", "a", "x"), ("q2", "b", "x"), ("q3", "c", " x "), ("q3", "d", "y"), ("q4", "e", "y")], 3),
        ([("q1", "a", "x"), ("q2", "b", "x")], 0),  # two similar questions
        ([("q1", "a", "x"), ("q1", "b", "x"), ("q1", "c", "x"), ("q2", "d", "x")], 0),
        ([(f"q{n}", ('{"q": "a", "k": 1}', '{"k": 1, "q": "a"}')[n % 2], "x") for n in range(4)], 0),  # one call
        ([(f"q{n}", str(n), "[]") for n in range(4)], 0),  # empty, and counted as that
        ([], 0),
    ],
)
def test_a_result_that_comes_whatever_is_asked_is_counted(results: list[tuple[str, str, str]], n: int) -> None:
    assert same_for_different_tasks(cells(*results)) == n

"""What `init` infers is checked against what it saw: the pattern `empty`, lines of results, the primary measure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from cranfield import Query, TestSet
from cranfield.app.init import targets
from cranfield.app.init.shape import UNLIKELY, Known, Trial, TrialTarget, shape_of
from cranfield.app.init.start import measures_for
from cranfield.app.init.targets import command_system, http_system
from cranfield.app.init.trial import TrialAnswers, read_ids, reading_of, with_empty
from cranfield.model import Entity, File, Pattern

HEADER = "Search of the manual\n"
NOTHING = [
    (HEADER + "no results\n", r"(?m)^[ \t]*no results"),  # the header stands in every answer
    (HEADER, r"\A\s*Search of the manual\s*\Z"),  # and is a pattern only where nothing follows it
    (f"{HEADER}took 10 ms\n", r"\A\s*Search of the manual\s+took \d+ ms\s*\Z"),
    (f"Nothing found for '{UNLIKELY}'\n", r"(?m)^[ \t]*Nothing found for"),
    (f"{UNLIKELY}: not found\n", "not found"),
    (
        "took 0 ms\nno results\n",
        r"(?m)^[ \t]*no results",
    ),  # a time is another in the next answer, with results or without
    ("at 2026-11-28 16:04\nno results\n", r"(?m)^[ \t]*no results"),
    ("found 0 results in 4 ms\n", r"(?m)^[ \t]*found 0 results in \d+ ms"),
]


def answer(query: str, nothing: str) -> str:
    """What the systems below write: a header, a time and a count above the results."""
    if query == UNLIKELY:
        return nothing
    head = f"{HEADER}took {len(query)} ms\nat 2026-11-27 09:3{len(query)}\nfound 2 results in {len(query)} ms\n"
    return head + "".join(f"{n}. docs://{query}{n}\n" for n in range(1, 9))


TEXTS = ("grid", "wires")


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, dict[str, str]]]:
    """An HTTP service, and what it answers where it finds nothing."""
    said: dict[str, str] = {}

    class Search(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query).get("q", ["none"])[0]
            body = answer(query, said["nothing"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Search)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", said
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("nothing", "empty"), NOTHING)
@pytest.mark.parametrize("kind", ["command", "http, the parameter is named", "http, it is guessed", "mcp"])
def test_the_pattern_of_an_empty_answer_matches_no_answer_with_results(
    kind: str,
    nothing: str,
    empty: str | None,
    service: tuple[str, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial(tmp_path, tuple(Query(f"q{n}", text) for n, text in enumerate(TEXTS)))
    if "http" in kind:
        address, said = service
        said["nothing"] = nothing
        given = address + ("/s" if "guessed" in kind else "/s?q=grid")
        found = http_system(TrialTarget(given, "url"), trial)
    else:
        made = f"the answers of a {kind} come from here: a process for each would take seconds"
        answers = TrialAnswers({text: answer(text, nothing) for text in (*TEXTS, UNLIKELY)})
        monkeypatch.setattr(targets, "answers_of", lambda *_, **__: answers)
        if kind == "command":
            found = command_system(TrialTarget(made, "command", argv=("search", "{query}")), trial)
        else:
            tool = SimpleNamespace(
                name="search", title=None, description=None, input_schema={"properties": {"q": {"type": "string"}}}
            )
            found = targets.mcp_system(TrialTarget(made, "command"), {"command": ["serve"]}, {"search": tool}, trial)  # type: ignore[dict-item]
    assert found.settings.get("empty") == empty
    if empty is not None:
        assert re.search(empty, nothing)
        # The pattern is of answers without results alone, at any time and for any number of results.
        assert not any(re.search(empty, answer("x" * n, nothing)) for n in range(1, 50))


@pytest.mark.parametrize(
    ("nothing", "ids"),
    [("No results\n", []), ("None\n", []), ("(no matches)\n", []), ("0 results\n", []), ("no-7 a title\n", ["no-7"])],
)
def test_a_line_of_words_for_nothing_is_no_result_of_lines_that_begin_with_an_id(nothing: str, ids: list[str]) -> None:
    outputs = {"grid": "d1 Grid layout\nd2 No results\n", "wires": "d4 Wires\nd2 Grid\n", UNLIKELY: nothing}
    reading = reading_of(
        {"command": ["s", "{query}"]}, {text: outputs[text] for text in ("grid", "wires")}, Known(), k=10
    )
    assert reading is not None
    settings = with_empty(reading, outputs, k=10)
    assert read_ids(settings, outputs, k=10) == {"grid": ["d1", "d2"], "wires": ["d4", "d2"], UNLIKELY: ids}
    assert ("empty" in settings) is (not ids)


def test_the_lines_of_a_result_are_found_beside_its_path() -> None:
    results = [
        {"path": "src/a.rs", "start_line": 4, "end_line": 9, "content": "x"},
        {"path": "src/a.rs", "start_line": 40, "end_line": 52, "content": "y"},
    ]
    shape = shape_of([json.dumps({"results": results})], Known())
    assert shape is not None
    assert shape.extract["id"] == "path"  # it repeats within the list, and the lines tell the results apart
    assert shape.extract["span"] == "join('-', [to_string(start_line), to_string(end_line)])"


def test_numbers_beside_an_id_that_is_no_file_are_no_lines() -> None:
    shape = shape_of([json.dumps([{"id": "d1", "start": 3, "end": 4}, {"id": "d2", "start": 1, "end": 2}])], Known())
    assert shape is not None
    assert "span" not in shape.extract


def truth(grades: dict[str, int] | None = None, *targets: object, files: tuple[str, ...] = ()) -> TestSet:
    query = Query("q1", "x")
    given = {"q1": tuple(targets)} if targets else {}
    return TestSet("t", (query,), {"q1": grades} if grades else {}, targets=given, files={"q1": files} if files else {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("testset", "measures"),
    [
        (truth(None, Pattern("^a$")), ("RR@10", "P@1", "P@5", "nDCG@10")),
        (truth({"d1": 1, "d2": 0}), ("RR@10", "P@1", "P@5", "nDCG@10")),
        (truth({"d1": 1, "d2": 1}), ("nDCG@10",)),
        (truth({"d1": 2}), ("nDCG@10",)),
        (truth(None, Entity("a.py::f"), files=("a.py",)), ("RR@10", "P@1", "P@5", "R@10", "FileCoverage@5")),
        (truth(None, File("a.py")), ("RR@10", "P@1", "P@5", "R@10")),
    ],
)
def test_the_primary_measure_is_chosen_by_the_truth(testset: TestSet, measures: tuple[str, ...]) -> None:
    assert measures_for(testset) == measures

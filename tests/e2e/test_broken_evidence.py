"""Broken evidence from real systems: a program, an HTTP service, an MCP server. None of it ends in a plain verdict.

One folder holds a test set, a service and a program that answer well, and variants that are broken in one way each. Every
command that scores ends with void, a caveat or an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
import yaml

from cranfield.app.run import CompletedRun, run_job

pytestmark = pytest.mark.filterwarnings("default")
N = 12
FRAMEWORKS = ("swiftui", "foundation", "combine", "uikit")
SOURCES = r"(apple-docs|swift-evolution|hig|apple-archive|swift-org|swift-book)://[^\s\)]+"
"""The group holds the scheme alone: every id becomes `apple-docs`."""
WHOLE = r"((?:apple-docs|swift-evolution|hig|apple-archive|swift-org|swift-book)://[^\s\)]+)"

PLACES = """
def search(query, k):
    number = int(query.removeprefix("item"))
    hits = [(f"src/part{place}/other{number}.rs", f"{place * 40 + 1}-{place * 40 + 40}") for place in range(5)]
    hits.insert(1, (f"src/file{number}.rs", f"{number + 5}-{number + 30}"))
    return [{"id": path, "span": span} for path, span in hits[:k]]
"""
PROGRAM = """\
how=$1 seen=${2#item} rank=0
page=apple-docs://uikit/page item=apple-docs://swiftui/item
case $how in
silent) echo no results; exit ;;
broken) echo index not found >&2; exit 1 ;;
constant) seen=0 ;;
case) page=apple-docs://UIKIT/PAGE item=apple-docs://SWIFTUI/ITEM ;;
esac
found() {
    rank=$((rank + 1))
    echo "$rank. $1 (score $((10 - rank)))"
    [ $how$rank != short2 ] || exit 0
}
echo Results:
for place in 0 1 2 3 4 5 6 7; do
    found $page$((seen * 31 % 97 + place))
    [ $place != $((seen % 2)) ] || found $item$seen
done
"""
MCP_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("places")

@server.tool()
def search(query: str, limit: int, form: str) -> dict:
    number = int(query.removeprefix("item"))
    hits = [{"path": f"src/part{place}/other{number}.rs", "at": form.format(place * 40 + 1, place * 40 + 40)} for place in range(5)]
    hits.insert(1, {"path": f"src/file{number}.rs", "at": form.format(number + 5, number + 30)})
    return {"hits": hits[:limit]}

server.run()
"""


class Service(BaseHTTPRequestHandler):
    """Answers `/search/HOW?q=itemN` as HOW says."""

    def do_GET(self) -> None:
        """Answer a query."""
        url = urlparse(self.path)
        how, number = url.path.rsplit("/", 1)[1], int(parse_qs(url.query)["q"][0].removeprefix("item"))
        ids = [f"apple-docs://uikit/page{number * 31 % 97 + place}" for place in range(8)]
        ids.insert(number % 3, f"apple-docs://swiftui/item{number}")
        if how == "empty":
            ids = []
        if how == "constant":
            ids = [f"apple-docs://swiftui/item{place}" for place in range(8)]
        if how == "foreign":
            ids = [f"doc-{number}-{place}" for place in range(8)]
        if how == "chunks":
            ids = [ids[0]] * 6 + ids[:3]
        body = json.dumps({"results": [{"id": text, "score": 9 - rank} for rank, text in enumerate(ids)]}).encode()
        self.send_response(500 if how == "failing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/search"
    server.shutdown()
    server.server_close()


def program(how: str, regex: str = WHOLE) -> dict[str, Any]:
    """A program that prints a list of results."""
    command = ["sh", "program.sh", how, "{query}"]
    return {"command": command, "extract": {"regex": regex}, "empty": "no results", "concurrency": 2}


def http(service: str, how: str) -> dict[str, Any]:
    """A service that answers in JSON."""
    request = {"url": f"{service}/{how}", "parameters": {"q": "{query}"}}
    return {"http": request, "extract": {"json": "results", "id": "id", "score": "score"}, "retries": 0}


def mcp(form: str) -> dict[str, Any]:
    """A tool that returns places in files."""
    tool = {
        "command": [sys.executable, "mcp_server.py"],
        "tool": "search",
        "arguments": {"query": "{query}", "limit": "{k}", "form": form},
    }
    return {"mcp": tool, "extract": {"json": "hits", "id": "path", "span": "at"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The programs and the test sets."""
    (tmp_path / "program.sh").write_text(PROGRAM)
    (tmp_path / "mcp_server.py").write_text(MCP_SERVER)
    uris = [
        {"id": f"q{number}", "text": f"item{number}", "judgments": {f"apple-docs://swiftui/item{number}": 1}}
        for number in range(N)
    ]
    places = [
        {
            "id": f"q{number}",
            "text": f"item{number}",
            "spans": [f"src/file{number}.rs:{number + 1}-{number + 20}"],
        }
        for number in range(N)
    ]
    for name, queries in (("uris", uris), ("places", places)):
        text = yaml.safe_dump({"cranfield_testset": 1, "name": name, "queries": queries}, sort_keys=False)
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def configured(folder: Path, systems: Mapping[str, dict[str, Any]], *, testset: str = "uris", **more: Any) -> Path:
    """The config of systems on a test set."""
    config = {"testset": f"{testset}.yaml", "measures": ["RR@10", "nDCG@10"], "systems": dict(systems), **more}
    path = folder / "cranfield.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def ran(folder: Path, systems: Mapping[str, dict[str, Any]], **more: Any) -> CompletedRun:
    """`cranfield run` in this process."""
    return run_job(configured(folder, systems, **more), out=folder / "out")


def checks(job: CompletedRun) -> dict[str, str]:
    """Name and consequence of what was found."""
    result = job.comparison or job.many or job.evaluations[0]
    return {finding.check: finding.consequence.value for finding in result.evidence}


def cranfield(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line."""
    return subprocess.run(
        ["cranfield", *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_systems_that_work_have_a_plain_verdict(folder: Path, service: str) -> None:
    job = ran(folder, {"program": program("well"), "service": http(service, "well")})
    assert (checks(job), job.void) == ({}, ())
    assert job.comparison is not None
    assert job.comparison.verdict.code in {"better", "not_significant"}


def test_a_group_that_holds_the_scheme_alone_is_void(folder: Path, service: str) -> None:
    job = ran(folder, {"program": program("well", SOURCES), "service": http(service, "well")})
    assert job.comparison is not None
    assert job.comparison.verdict.code == "invalid"
    found = checks(job)
    assert (found["nothing-matched"], found["one-id"]) == ("void", "void")
    assert "the group of extract.regex may match only a part of the id" in " ".join(job.void)
    assert SOURCES in " ".join(job.void)


def test_a_baseline_that_is_empty_is_void(folder: Path, service: str) -> None:
    for empty in (http(service, "empty"), program("silent")):
        job = ran(folder, {"old": empty, "new": program("well")})
        assert job.comparison is not None
        assert job.comparison.verdict.code == "invalid"
        assert checks(job) == {"empty-answers": "void"}
        assert job.void == (f"old: {N} of {N} queries have no result: the score is that of an empty list",)


def test_spans_that_are_no_lines_are_void(folder: Path) -> None:
    (folder / "places.py").write_text(PLACES)
    job = ran(folder, {"right": {"python": "places:search"}, "wrong": mcp("file:{}-{}")}, testset="places")
    assert job.comparison is not None
    assert job.comparison.verdict.code == "invalid"
    assert checks(job) == {"results-without-lines": "void"}
    assert "'file:6-30'" in job.void[0] or "is not of the form `12-40`" in job.void[0]
    assert job.comparison.baseline.mean("RR@10") == 0.5


@pytest.mark.parametrize(
    ("systems", "found"),
    [
        ({"old": ("program", "constant"), "new": ("program", "well")}, {"same-list": "void"}),
        ({"old": ("program", "well"), "new": ("http", "foreign")}, {"nothing-matched": "void"}),
        pytest.param(
            {"old": ("program", "well"), "new": ("program", "case")},
            {"nothing-matched": "void"},
            marks=pytest.mark.slow,
        ),
        ({"old": ("program", "well"), "new": ("http", "failing")}, {"failed-queries": "void", "empty-answers": "void"}),
        pytest.param(
            {"old": ("program", "broken"), "new": ("http", "well")},
            {"failed-queries": "void", "empty-answers": "void"},
            marks=pytest.mark.slow,
        ),
        ({"old": ("http", "well"), "new": ("program", "short")}, {"short-lists": "caveat"}),
        pytest.param(
            {"old": ("http", "well"), "new": ("http", "chunks")}, {"duplicates": "caveat"}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"old": ("program", "well"), "new": ("program", "well")},
            {"identical-runs": "caveat"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_each_is_void_or_has_a_caveat(
    folder: Path, service: str, systems: dict[str, tuple[str, str]], found: dict[str, str]
) -> None:
    made = {name: program(how) if kind == "program" else http(service, how) for name, (kind, how) in systems.items()}
    job = ran(folder, made, collect={"keep_going": True})  # else the run stops where ten queries failed alike
    assert job.comparison is not None
    assert found.items() <= checks(job).items()
    assert (job.comparison.verdict.code == "invalid") == ("void" in found.values()) == bool(job.void)
    assert set(checks(job)) <= {*found, "few-ids", "short-lists"}


def test_every_command_ends_with_3_and_its_reason(folder: Path, service: str) -> None:
    gate = {"system": "new", "rules": [{"floor": {"measure": "RR@10", "at_least": 0}}]}
    broken = {"old": program("well"), "new": program("well", SOURCES)}
    configured(folder, broken, gate=gate)
    run = cranfield(folder, "run", "--out", "out")
    assert (run.returncode, "VERDICT: invalid" in run.stdout) == (3, True)
    assert f"no result of {N} queries is anything that the test set judges" in " ".join(run.stdout.split())
    record = json.loads((folder / "out/results.json").read_text())
    assert record["verdict"] == "invalid"
    assert {finding["check"] for finding in record["evidence"]} >= {"nothing-matched", "one-id"}
    html, markdown = ((folder / f"out/report.{form}").read_text() for form in ("html", "md"))
    assert "Invalid" in html
    assert "apple-docs" in markdown
    compared = cranfield(folder, "compare", "uris.yaml", "out/runs/old.jsonl", "out/runs/new.jsonl")
    assert (compared.returncode, "VERDICT: invalid" in compared.stdout) == (3, True)
    third = cranfield(folder, "compare", "uris.yaml", *(f"out/runs/{name}.jsonl" for name in ("old", "new", "old")))
    assert third.returncode == 3
    evaluated = cranfield(folder, "evaluate", "uris.yaml", "out/runs/new.jsonl")
    assert (evaluated.returncode, "VERDICT: invalid" in evaluated.stdout) == (3, True)
    assert evaluated.stderr == "error: void: the scores of new do not count; see the report for the reason\n"
    as_json = cranfield(folder, "evaluate", "uris.yaml", "out/runs/new.jsonl", "--format", "json")
    assert as_json.returncode == 3
    assert as_json.stderr.startswith("error: void: new: no result of ")
    assert [finding["consequence"] for finding in json.loads(as_json.stdout)["evidence"]][:2] == ["void", "void"]
    lines = (folder / ".cranfield/history.jsonl").read_text().splitlines()
    assert [json.loads(line)["system"] for line in lines] == ["old"]  # void scores are no point of a history
    assert "not added to the history, because the scores do not count: new" in run.stderr
    gated = cranfield(folder, "gate", "--out", "gate")
    assert (gated.returncode, "invalid" in gated.stdout) == (3, True)
    accepted = cranfield(folder, "baseline", "accept")
    assert accepted.returncode == 3
    assert "cannot be accepted as a baseline" in accepted.stderr
    alone = cranfield(folder, "run", "--system", "new", "--out", "alone")
    assert (alone.returncode, "VERDICT: invalid" in alone.stdout) == (3, True)
    probed = cranfield(folder, "system", "probe", "new", "item3")
    assert "9 results have 1 distinct id (apple-docs)" in " ".join(probed.stdout.split())
    more = cranfield(folder, "evaluate", "uris.yaml", "out/runs/old.jsonl")
    assert (more.returncode, "VERDICT" in more.stdout) == (0, False)


def test_a_check_is_changed_by_name_in_the_config_and_on_the_command_line(folder: Path, service: str) -> None:
    systems = {"old": http(service, "well"), "new": http(service, "constant")}
    assert checks(ran(folder, systems)) == {"same-list": "void"}
    for setting, found in ((False, {}), ("off", {}), ("caveat", {"same-list": "caveat"}), (1.1, {})):
        job = ran(folder, systems, evidence={"same-list": setting, "repeated-list": "off"})
        assert checks(job) == found
        assert job.comparison is not None
        assert job.comparison.verdict.code in {"worse", "not_significant"}
    runs = ("uris.yaml", "out/runs/old.jsonl", "out/runs/new.jsonl")
    assert cranfield(folder, "compare", *runs).returncode == 3
    assert cranfield(folder, "compare", *runs, "--evidence", "same-list=caveat").returncode == 0
    assert cranfield(folder, "evaluate", *runs, "--evidence", "same-list=off").returncode == 0
    wrong = cranfield(folder, "compare", *runs, "--evidence", "same-lists=off")
    assert (wrong.returncode, "did you mean same-list?" in wrong.stderr) == (2, True)
    configured(folder, systems, evidence={"same-lists": "off", "one-id": "maybe"})
    refused = cranfield(folder, "run")
    assert refused.returncode == 2
    assert "did you mean same-list?" in refused.stderr
    assert "evidence check one-id is set to 'maybe'" in refused.stderr


def test_of_several_test_sets_one_can_be_void(folder: Path, service: str) -> None:
    (folder / "more.yaml").write_text((folder / "uris.yaml").read_text().replace("apple-docs://", "hig://"))
    config = {
        "testsets": {"uris": {"path": "uris.yaml"}, "more": {"path": "more.yaml"}},
        "measures": ["RR@10"],
        "systems": {"old": program("well"), "new": http(service, "well")},
    }
    (folder / "cranfield.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    done = cranfield(folder, "run", "--out", "out")
    assert done.returncode == 3
    summary = " ".join((folder / "out/report.md").read_text().split())
    assert "invalid" in summary
    assert json.loads((folder / "out/uris/results.json").read_text())["verdict"] != "invalid"
    assert json.loads((folder / "out/more/results.json").read_text())["verdict"] == "invalid"


def test_three_systems_of_which_one_is_broken_are_void(folder: Path, service: str) -> None:
    job = ran(folder, {"a": program("well"), "b": http(service, "well"), "c": http(service, "empty")})
    assert job.many is not None
    assert job.many.verdict.code == "invalid"
    assert [finding.system for finding in job.many.evidence if finding.is_void] == ["c"]


def test_the_pytest_plugin_fails_the_fixture(folder: Path) -> None:
    configured(folder, {"new": program("constant")})
    (folder / "test_search.py").write_text(
        "import pytest\n\n\n"
        "@pytest.mark.cranfield(system='new')\ndef test_broken(evaluation):\n    assert evaluation.mean('RR@10') >= 0\n\n\n"
        "@pytest.mark.cranfield(system='new', evidence={'same-list': 'off'})\n"
        "def test_as_it_is(evaluation):\n    assert evaluation.mean('RR@10') >= 0\n"
    )
    command = ["quick-pytest", "-q", "-p", "cranfield.pytest_plugin", "-p", "no:cacheprovider"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "queries get the same list" in done.stdout
    assert "1 passed, 1 error" in done.stdout

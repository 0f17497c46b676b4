"""The server: its REST API, its pages, the tools of MCP; and the commands around it."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from pages import page_words

from scenes.scene import CLASSED, PAIR, TEXT_AND_JSON, UNWATCHED, Scene, forms, native, run

PROGRAMS = Path(__file__).parents[2] / "program"
ADDRESS = "http://127.0.0.1:8000"
NOON = 1_795_435_200_000
"""2026-11-23 12:00 UTC."""
TEAM_PAGES = {
    "dashboard of a book": ("lee", "/books/shop"),
    "empty book": ("lee", "/books/other"),
    "items of a book": ("lee", "/books/shop/items?rater=cas"),
    "adjudicate": ("lee", "/books/shop/adjudicate"),
    "settings of a book": ("lee", "/books/shop/settings"),
    "reopen": ("lee", "/books/shop/reopen?rater=cas"),
    "calls of models": ("lee", "/books/shop/calls"),
    "judging page": ("ann", "/books/shop/judge"),
    "refused": ("ann", "/books/shop"),
    "account": ("ann", "/account"),
    "people": ("alex", "/people"),
}
TOKENS = re.compile(r"""(name="(?:csrf|key)" (?:content|value)="|&#34;csrf&#34;: &#34;)[\w-]{20,}""")
"""What is at random in a page."""
VIEWED = {
    "home", "testset", "test set", "query of a test set", "versions", "evaluations", "evaluation", "void evaluation", "queries",
    "query", "compare two", "difference", "comparison", "query of a comparison", "jobs", "failed job", "settings", "books",
}  # fmt: skip
"""Of the pages of `tests/program/workbench.py`."""


def program(name: str) -> ModuleType:
    """A module of `tests/program`."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def team() -> SimpleNamespace:
    """A team with books and results, and the server of its pages."""
    from cranfield.books.store.store import open_store
    from cranfield.workbench.server.app import create_app
    from cranfield.workbench.server.options import ServerOptions
    from cranfield.workbench.service.service import open_service

    folder = Path(UNWATCHED)
    folder.mkdir()
    program("team_books").fill(folder / "books.db")
    store = open_store(folder / "books.db", clock=lambda: NOON)
    service = open_service(store)
    ids = program("workbench").fill(service, folder, 12)
    options = ServerOptions(port=8000, accounts=True, secret=b"k" * 32)
    return SimpleNamespace(
        app=create_app(store, options, service=service), store=store, options=options, ids=ids, browsers={}
    )


def browser(name: str) -> Any:
    """A browser in which an account of the team is signed in."""
    from starlette.testclient import TestClient

    from cranfield.workbench.server.signing import _signer

    found = team()
    if name not in found.browsers:
        headers = {"accept": "text/html", "origin": ADDRESS, "sec-fetch-site": "same-origin"}
        client = TestClient(found.app, base_url=ADDRESS, headers=headers, follow_redirects=False)
        raw = found.store.people.start_session(found.store.people.get(name).id, 86_400_000)
        client.cookies.set(found.options.cookie("session"), _signer(found.options, "session").sign(raw).decode())
        found.browsers[name] = client
    return found.browsers[name]


def page(name: str, who: str, path: str) -> Callable[[], None]:
    """A function that prints a page, named so."""

    def show() -> None:
        answer = browser(who).get(path.format(**team().ids))
        print(f"GET {path}: {answer.status_code}")
        print(TOKENS.sub(r"\1{token}", page_words(answer.text)))

    show.__name__ = f"page {name}"
    return show


def pages() -> list[Callable[[], None]]:
    chosen = {name: ("lee", path) for name, path in program("workbench").PAGES.items() if name in VIEWED}
    return [page(name, who, path) for name, (who, path) in (chosen | TEAM_PAGES).items()]


API_CONFIG = """\
testset: help.yaml
k: 3
measures: [RR, nDCG@10]
gate: {rules: [floor: {measure: RR, at_least: 0.6}, failures: {at_most: 0}]}
candidate: search
baseline: old
systems:
  old: {run: old.run}
  search:
    command: [sh, search.sh, "{query}", "{params.components}"]
    components: [title, body]
    extract: {regex: 'p\\d'}
"""
API_FILES = {
    "cranfield.yaml": API_CONFIG,
    "help.yaml": (
        "cranfield_testset: 1\nname: help\nqueries:\n"
        "  - {id: q1, text: open file, strata: {kind: easy}, judgments: {p1: 1}}\n"
        "  - {id: q2, text: sort list, strata: {kind: easy}, judgments: {p2: 1}}\n"
        "  - {id: q3, text: parse json, strata: {kind: hard}, judgments: {p3: 1}}\n"
    ),
    "search.sh": 'case "$2" in *title*) echo p1;; esac\necho p2\n',
    "old.run": "q1 Q0 p1 1 2.0 old\nq2 Q0 p9 1 2.0 old\nq3 Q0 p9 1 2.0 old\nq3 Q0 p3 2 1.0 old\n",
    "set.yaml": native(CLASSED, {"kind": ["words", "name", "none"]}),
    "a.run": run(CLASSED, 1.3, 11),
    "b.run": run(CLASSED, 0.5, 12),
}


@cache
def api() -> SimpleNamespace:
    """A server with a config, and a client that may do everything."""
    from starlette.testclient import TestClient

    from cranfield.books.store.schema import Role
    from cranfield.books.store.store import open_store
    from cranfield.workbench.server.app import create_app
    from cranfield.workbench.server.options import ServerOptions
    from cranfield.workbench.service.service import open_service

    Path(UNWATCHED).mkdir()
    store = open_store(Path(UNWATCHED) / "books.db", clock=lambda: NOON)
    service = open_service(store, Path("cranfield.yaml"))
    token = store.people.add_token(store.people.add("lee", Role.ADMIN).id, "t", "manage", 10**9)
    app = create_app(store, ServerOptions(port=8000, accounts=True, secret=b"k" * 32), service=service)
    client = TestClient(app, base_url=ADDRESS, headers={"authorization": f"Bearer {token}"})
    return SimpleNamespace(client=client, service=service)


def ask(method: str, path: str, **how: Any) -> None:
    """A request, its answer, and the work that it left to be done."""
    from cranfield.workbench.service.responses import JobState
    from cranfield.workbench.service.work import work_on

    found = api()
    answer = found.client.request(method, path, **how)
    print(f"$ {method} {path} {how.get('json', '')}\n{answer.status_code}")
    is_json = "json" in answer.headers.get("content-type", "")
    print(json.dumps(answer.json(), indent=1) if is_json else answer.text)
    for job in sorted(job.id for job in found.service.jobs.all(JobState.QUEUED)):
        claim = found.service.jobs.claim("here", job)
        if claim is not None:
            work_on(found.service, claim, Path(UNWATCHED) / f"job{job}")


def uploads() -> None:
    ask("POST", "/v1/testsets", files={"file": ("set.yaml", Path("set.yaml").read_bytes())}, data={"name": "set"})
    ask("POST", "/v1/testsets", files={"file": ("set.yaml", b"queries: [}")}, data={"name": "broken"})
    for name in ("a", "b"):
        ask(
            "POST", "/v1/runs", files={"file": (f"{name}.run", Path(f"{name}.run").read_bytes())}, data={"system": name}
        )


def evaluations() -> None:
    for number in (1, 2):
        ask("POST", "/v1/evaluate", json={"testset": "set", "runs": [number], "measures": ["nDCG@10", "RR"]})
    ask("POST", "/v1/evaluate", json={"testset": "help", "systems": ["old", "search"], "tags": ["nightly"]})
    ask("POST", "/v1/evaluate", json={"testset": "help", "systems": ["none"]})
    ask("GET", "/v1/evaluations")
    ask("GET", "/v1/evaluations?testset=help&limit=1")
    ask("GET", "/v1/evaluations/1")
    ask("GET", "/v1/evaluations/1/summary")
    ask("GET", "/v1/evaluations/1/queries?limit=4")
    ask("PATCH", "/v1/evaluations/1", json={"pinned": True, "note": "the first"})
    ask("GET", "/v1/evaluations/99")


def comparisons() -> None:
    ask("POST", "/v1/compare", json={"baseline": 1, "candidate": 2})
    ask("POST", "/v1/compare", json={"baseline": 1, "candidate": 3})
    ask("GET", "/v1/comparisons")
    ask("GET", "/v1/comparisons/1")
    ask("GET", "/v1/comparisons/1/queries?limit=4")
    ask("GET", "/v1/diff?baseline=1&candidate=2&k=3")


def report_of_an_evaluation() -> None:
    ask("GET", "/v1/evaluations/1/report?format=markdown")


def report_of_a_comparison() -> None:
    ask("GET", "/v1/comparisons/1/report?format=markdown")


def lists() -> None:
    for path in (
        "testsets",
        "testsets/set",
        "testsets/set/versions",
        "testsets/set/queries?limit=2",
        "runs",
        "runs/1",
        "systems",
    ):
        ask("GET", f"/v1/{path}")
    ask("GET", "/v1/jobs")
    ask("GET", "/v1/jobs/1")
    ask("GET", "/v1/jobs/1/result")
    ask("GET", "/v1/jobs/3/events")
    ask("GET", "/v1/measures")
    ask("GET", "/v1/queries")
    ask("GET", "/v1/books")
    ask("GET", "/metrics")


def queries_and_books() -> None:
    questions = [{"text": "dose of statins", "n": 40}, {"text": "statins for jane.roe@example.org", "n": 5}]
    ask("POST", "/v1/queries", json={"source": "app", "queries": questions})
    ask("GET", "/v1/queries")


MCP_FILES = {
    "cranfield.yaml": "testset: testset.yaml\nmeasures: [nDCG@5, RR]\nsystems:\n  search: {command: [sh, search.sh, '{query}'], extract: {regex: '\\S+'}}\n",
    "search.sh": 'echo "d0${1##* q0}"; echo d01; echo d05\n',
    "testset.yaml": PAIR["set.yaml"],
    "runs/a.trec": PAIR["a.run"],
    "runs/b.trec": PAIR["b.run"],
}


def agent_evaluates() -> None:
    """What an agent is answered, tool by tool."""
    import anyio
    from mcp.client import Client

    from cranfield.workbench.mcp.evidence import open_evidence
    from cranfield.workbench.mcp.server import make_server
    from cranfield.workbench.service.values import Claim
    from cranfield.workbench.service.work import work_on
    from cranfield.workbench.service.worker import Worker

    def work(worker: Worker, claim: Claim) -> None:  # in this process
        work_on(worker._service, claim, worker.folder / str(claim.job))

    async def talk(server: Any) -> None:
        async with Client(server) as client:

            async def call(tool: str, **arguments: object) -> Any:
                answer = await client.call_tool(tool, arguments)
                print(f"$ {tool} {json.dumps(arguments)}{' (error)' if answer.is_error else ''}")
                print(answer.content[0].text if answer.is_error else json.dumps(answer.structured_content, indent=1))
                return answer.structured_content

            await call("list_systems")
            await call("list_runs")
            await call("list_measures")
            a = await call("evaluate", testset="testset", run="runs/a.trec")
            b = await call("evaluate", testset="testset", run="runs/b.trec")
            compared = await call("compare", baseline=a["result"], candidate=b["result"])
            await call("get_result", result=a["result"])
            await call("worst_queries", result=compared["result"], limit=3)
            await call("worst_queries", result=a["result"], limit=2)
            await call("explain_query", result=compared["result"], query="q03")
            await call("get_report", result=compared["result"])
            await call("list_results")
            await call("evaluate", testset="testset", system="search")
            await call("evaluate", testset="testset", system="none")
            await call("explain_query", result=compared["result"], query="q99")

    Worker._work = work  # type: ignore[method-assign]
    with open_evidence(None, Path("cranfield.yaml")) as evidence:
        anyio.run(talk, make_server(evidence))


def people_added() -> None:
    from cranfield.cli.main import run_command_line

    for name, role in (("ann", "lead"), ("bob", "rater")):
        sys.stdin = io.StringIO("a long sentence of words\n")
        run_command_line(["people", "add", name, "--role", role, "--password-stdin"])
    sys.stdin = io.StringIO("short\n")
    run_command_line(["people", "add", "dan", "--password-stdin"])


SCENES = [
    Scene("pages", pages()),
    Scene(
        "api",
        [uploads, evaluations, comparisons, report_of_an_evaluation, report_of_a_comparison, lists, queries_and_books],
        API_FILES,
        timed=True,
    ),
    Scene("agents", [agent_evaluates], MCP_FILES, timed=True),
    Scene(
        "operations",
        [
            "intake monday.log",
            "intake monday.log",
            "intake list",
            "intake export log.jsonl --min-count 4",
            "intake parts.log --source parts --json",
            "intake export - --source parts",
            "intake purge --source parts",
            "people list",
            people_added,
            "people add cas",
            "people role bob viewer",
            "people deactivate bob",
            "people list",
            "watch --workbench wrong.yaml --list",
            "watch --workbench workbench.yaml --once nightly",
            "watch --workbench workbench.yaml --list",
            "watch --workbench workbench.yaml --list --json",
            "watch --workbench workbench.yaml --once nightly",
            "alerts",
            "init clinic.qrels a.run b.run topics.tsv --config made.yaml --yes",
            "run made.yaml --out made",
            *forms("history made.yaml", only=TEXT_AND_JSON),
            "init 'echo {query}' --config commanded.yaml --yes --query aspirin",
        ],
        {
            "monday.log": (
                "dose of aspirin\t40\nDose of aspirin\t10\nstorage of insulin\t30\nresults of jane.roe@example.org\t2\n"
                "vaccines for travel\t9\n\n4111 1111 1111 1111\n"
            ),
            "parts.log": "EAN 4006381333931\npart 415-082-0001\nSNOMED 900000000000207008\nerror -2147467259\n",
            "clinic.yaml": (
                "cranfield_testset: 1\nname: clinic\nversion: v1\nqueries:\n"
                "  - {id: q1, text: dose of aspirin, judgments: {a1: 3}}\n"
                "  - {id: q2, text: side effects of statins, judgments: {s1: 2}}\n"
            ),
            "search.sh": 'case "$1" in *aspirin*) echo a1; echo a2;; *) echo s9; echo s1;; esac\n',
            "cranfield.yaml": (
                "testset: clinic.yaml\nmeasures: [nDCG@10, P@1]\nsystems:\n"
                "  search: {command: [sh, search.sh, '{query}'], extract: {regex: '(?m)^(\\S+)'}}\n"
                "gate:\n  rules:\n    - floor: {measure: nDCG@10, at_least: 0.9}\n"
            ),
            "workbench.yaml": (
                "watch:\n  nightly:\n    cron: '30 2 * * *'\n    zone: Europe/Berlin\n    testset: clinic\n    compare: {with: previous}\n"
            ),
            "wrong.yaml": "watch:\n  nightly:\n    cron: '30 25 * * *'\n    testset: clinic\n",
            "clinic.qrels": "q1 0 a1 3\nq2 0 s1 2\n",
            "topics.tsv": "q1\tdose of aspirin\nq2\tside effects of statins\n",
            "a.run": "q1 Q0 a2 1 2 a\nq1 Q0 a1 2 1 a\nq2 Q0 s9 1 2 a\n",
            "b.run": "q1 Q0 a1 1 2 b\nq2 Q0 s1 1 2 b\n",
        },
        timed=True,
    ),
]

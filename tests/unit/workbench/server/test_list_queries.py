"""No page and no list of the API asks the database more often because there are more rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient
from tests.unit.workbench.records import CALLS, comparison_record, evaluation_record
from tests.unit.workbench.server.conftest import ADDRESS, HTML, with_store

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, Role
from cranfield.books.store.store import Store, open_store
from cranfield.books.store.values import SaveRequest
from cranfield.model import Query, TestSet
from cranfield.workbench.server.access import declared_access
from cranfield.workbench.server.signing import _signer
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.values import JobProblem, NewComparison, NewEvaluation, NewRun

FEW, MANY = 3, 30
NOON = 1_795_435_200_000
PROBLEM = JobProblem(message="no such file", where="help.yaml", hint="name another", code="input")
PLACES = {"{book}": "b0", "{name}": "t0", "{testset}": "t0", "{job_id:int}": "1", "{item_id}": "1"}
"""What stands in the address of a list in the place of a parameter."""
NO_LIST = (
    "/live", "/events", "/metrics", "/openapi", "/docs", "/image", "/file", "/frozen", "/sign-in", "/start",
    "/join", "/reset", "/systems/", "/review", "/diff", "/reveal", "/b0/measures",
)  # fmt: skip
"""Streams and files, pages without lists, and those that need a config, a book of reviews or a parameter."""


def fill(store: Store, service: Service, n: int) -> None:
    """As many rows of everything that is listed: books with items, judgments and raters, test sets, jobs, results, variants."""
    admin = store.people.add("admin", role=Role.ADMIN)
    raters = [store.people.add(f"rater {place}") for place in range(n)]
    queries = tuple(PooledQuery(id=f"q{place}", text=f"query {place}") for place in range(n))
    items = tuple(PooledItem(query=query.id, doc="d") for query in queries)
    pool = Pool(name="pool", method="depth", depth=1, runs=(), queries=queries, items=items)
    for place in range(n):
        book = store.books.create(
            f"b{place}", pool, BookSettings(raters_per_item=2, most_raters=2, overlap=1.0), by=admin.id
        )
        store.people.add_link(book.id, 86_400_000, 3)
        store.books.set_guideline(book.id, "another one", admin.id)
    first = store.books.get("b0").id
    store.people.join(first, admin.id)
    for number, rater in enumerate(raters[:2]):
        store.people.join(first, rater.id)
        for item in store.reading.items(first):
            store.log.save(SaveRequest(first, item.id, rater.id, Action.GRADE, f"k{item.id}", grade=float(number * 2)))
    for rater in raters[2:]:
        store.people.join(first, rater.id)
    for rater in raters:
        store.people.add_token(rater.id, "a token", "read", 86_400_000)
        store.people.add_token(admin.id, f"of {rater.name}", "read", 86_400_000)
    line = b'{"query": "q1", "results": [{"doc": "p1"}]}\n'
    for place, rater in enumerate(raters):
        kept = service.testsets.keep(
            f"t{place}", TestSet(f"t{place}", (Query("q1", "open"),), {"q1": {"p1": 1.0}}), by=rater.id
        )
        service.testsets.keep("t0", TestSet("t0", (Query("q1", f"open {place}"),), {"q1": {"p1": 1.0}}), by=rater.id)
        service.variants.save(f"v{place}", "search", {}, by=rater.id)
        request = EvaluateRequest(testset="t0", systems=("search",))
        service.jobs.add(request, Trigger.API, rater.id)
        claim = service.jobs.claim("one")
        new = NewEvaluation(
            kept.id,
            NewRun("search", f"sha256:{place}", line, 1),
            f"search{place}",
            {"k": 10},
            evaluation_record(),
            CALLS,
            book_id=first,
        )
        assert service.jobs.finish(claim, [new])
        if place:
            compare = CompareRequest(baseline=1, candidate=place + 1)
            service.jobs.add(compare, Trigger.API, rater.id)
            claim = service.jobs.claim("one")
            compared = NewComparison(compare, comparison_record("invalid"), CALLS)
            assert service.jobs.finish(claim, [compared])
        service.jobs.add(request, Trigger.API, rater.id)
        service.jobs.fail(service.jobs.claim("one"), [PROBLEM])
    for rater in raters:
        service.jobs.add(request, Trigger.API, rater.id)


@dataclass
class Lists:
    """A browser of an administrator, and the statements that it made the server execute."""

    client: TestClient
    statements: list[str]

    def count(self, path: str) -> int:
        self.statements.clear()
        answer = self.client.get(path)
        assert answer.status_code == 200, (path, answer.text[answer.text.find("<main") :][:600])
        return len(self.statements)


@contextmanager
def lists(app: FastAPI, empty_database: Path, folder: Path, n: int) -> Iterator[Lists]:
    store = open_store(shutil.copy(empty_database, folder / f"{n}.db"), clock=lambda: NOON)
    service = open_service(store)
    fill(store, service, n)
    found: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *call: found.append(call[2]))
    options = app.state.options
    session = _signer(options, "session").sign(store.people.start_session(store.people.get("admin").id, 86_400_000))
    client = TestClient(with_store(app, store, service), base_url=ADDRESS, headers=HTML)
    client.cookies.set(options.cookie("session"), session.decode())
    yield Lists(client, found)
    store.close()
    app.state.service = None


def paths(app: FastAPI) -> list[str]:
    """Every page and every list of the API, in one book, of one test set or one job where it needs them."""
    found = []
    for method, route in declared_access(app.routes):
        path = route
        for name, value in PLACES.items():
            path = path.replace(name, value)
        if method == "GET" and "{" not in path and not any(part in path for part in NO_LIST):
            found.append(path)
    return sorted(found)


def test_more_rows_are_no_more_queries(team_app: FastAPI, empty_database: Path, tmp_path: Path) -> None:
    """Progress is counted in each book of which the caller is a member: here that is one, however many there are."""
    counts: dict[str, list[int]] = {}
    for n in (FEW, MANY):
        with lists(team_app, empty_database, tmp_path, n) as found:
            for path in paths(team_app):
                found.count(path)  # what is read once and kept
                counts.setdefault(path, []).append(found.count(path))
    assert {path: n for path, n in counts.items() if n[0] != n[1]} == {}
    assert {"/jobs", "/evaluations", "/comparisons", "/books/b0/items", "/v1/jobs", "/v1/books", "/"} <= counts.keys()

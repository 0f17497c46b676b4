"""The server in this process, on a copy of the team's database; a client for each account."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI
from starlette.testclient import TestClient

from cranfield.books.store.store import Store, open_store
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.results import MAX_REPORTS, MAX_RESULTS, RecentValues
from cranfield.workbench.service.service import Service, open_service

ADDRESS = "http://127.0.0.1:8000"
HTML = {"accept": "text/html", "origin": ADDRESS, "sec-fetch-site": "same-origin"}


@pytest.fixture(scope="session")
def team_books(load_script: Callable[[Path], ModuleType], checkout: Path) -> ModuleType:
    return load_script(checkout / "tests" / "program" / "team_books.py")


@pytest.fixture(scope="session")
def filled(make_once: Callable[[str, Callable[[Path], object]], Path], team_books: ModuleType) -> Path:
    return make_once("team", lambda folder: team_books.fill(folder / "books.db")) / "books.db"


@dataclass
class Team:
    """The application and its store; the time is `now`."""

    app: FastAPI
    store: Store
    now: list[int]
    clients: dict[str, TestClient] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)

    def new(self) -> TestClient:
        """A browser that is not signed in."""
        return TestClient(self.app, base_url=ADDRESS, headers=HTML, follow_redirects=False)

    def browser(self, name: str) -> TestClient:
        """A browser in which an account is signed in."""
        if name not in self.clients:
            self.clients[name] = client = self.new()
            from cranfield.workbench.server.signing import _signer

            raw = self.store.people.start_session(self.store.people.get(name).id, 86_400_000)
            self.raw[name] = raw
            options = self.app.state.options
            client.cookies.set(options.cookie("session"), _signer(options, "session").sign(raw).decode())
        return self.clients[name]

    def forget(self, name: str) -> None:
        """The next browser of an account is a new one."""
        self.clients.pop(name, None)

    def csrf(self, client: TestClient, path: str = "/account") -> str:
        found = re.search(r'<meta name="csrf" content="([^"]+)">', client.get(path).text)
        assert found
        return found[1]

    def post(self, name: str, path: str, **fields: object):
        client = self.browser(name)
        return client.post(path, data={"csrf": self.csrf(client), **fields})


@pytest.fixture(scope="package", autouse=True)
def one_event_loop() -> Iterator[None]:
    """One thread with an event loop for all requests: by default a client starts one for each, a third of its time."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "portal", portal)
        yield


@pytest.fixture(scope="session")
def team_app() -> FastAPI:
    """The application without books: making it takes longer than most tests."""
    return create_app(cast("Store", None), ServerOptions(port=8000, accounts=True, secret=b"k" * 32))


def with_store(app: FastAPI, store: Store, service: Service | None = None) -> FastAPI:
    """The application, as it is made with these books."""
    app.state.store, app.state.reports = store, RecentValues(MAX_REPORTS)
    app.state.texts, app.state.rates = DocumentTexts(), {}
    app.state.service = service or open_service(store)
    return app


@pytest.fixture(scope="session")
def now() -> list[int]:
    """The time of the books, set by hand."""
    return [0]


@pytest.fixture(scope="session")
def team_store(filled: Path, tmp_path_factory: pytest.TempPathFactory, now: list[int]) -> Store:
    """The store, whose file each test has anew: the engine stays, since it compiles each statement once."""
    return open_store(shutil.copy(filled, tmp_path_factory.mktemp("team") / "books.db"), clock=lambda: now[0])


@pytest.fixture
def team(filled: Path, team_store: Store, now: list[int], team_books: ModuleType, team_app: FastAPI) -> Iterator[Team]:
    team_store.close()
    shutil.copy(filled, Path(team_store.database.where))
    now[0] = team_books.NOON
    yield Team(with_store(team_app, team_store), team_store, now)
    team_store.close()


@dataclass
class Bench:
    """A team whose database has results: ids by name, as `tests/program/workbench.py` gives them."""

    team: Team
    service: Service
    ids: dict[str, int]

    def page(self, path: str, who: str = "lee", status: int = 200) -> str:
        answer = self.team.browser(who).get(path)
        assert answer.status_code == status, answer.text[-2_000:]
        return answer.text


@pytest.fixture(scope="session")
def workbench_books(load_script: Callable[[Path], ModuleType], checkout: Path) -> ModuleType:
    return load_script(checkout / "tests" / "program" / "workbench.py")


@pytest.fixture(scope="session")
def with_results(
    make_once: Callable[[str, Callable[[Path], object]], Path],
    team_books: ModuleType,
    workbench_books: ModuleType,
    filled: Path,
) -> Path:
    """A folder with the team's database and results in it, and the ids as JSON."""

    def make(folder: Path) -> None:
        path = Path(shutil.copy(filled, folder / "books.db"))
        store = open_store(path, clock=lambda: team_books.NOON)
        ids = workbench_books.fill(open_service(store), folder)
        store.close()
        (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")

    return make_once("workbench", make)


@pytest.fixture
def bench(with_results: Path, team: Team) -> Iterator[Bench]:
    """The team's pages on the database with results."""
    team.store.close()
    shutil.copy(with_results / "books.db", Path(team.store.database.where))
    service = open_service(team.store)
    team.app.state.service = service
    team.app.state.results = RecentValues(MAX_RESULTS)
    yield Bench(team, service, json.loads((with_results / "ids.json").read_text(encoding="utf-8")))
    team.app.state.service = None


@pytest.fixture
def postgres_bench(
    postgres_address: str,
    team_books: ModuleType,
    workbench_books: ModuleType,
    team_app: FastAPI,
    now: list[int],
    tmp_path: Path,
) -> Iterator[Bench]:
    """The same on PostgreSQL."""
    team_books.fill(postgres_address)
    now[0] = team_books.NOON
    store = open_store(postgres_address, clock=lambda: now[0])
    service = open_service(store)
    ids = workbench_books.fill(service, tmp_path)
    team_app.state.results = RecentValues(MAX_RESULTS)
    yield Bench(Team(with_store(team_app, store, service), store, now), service, ids)
    team_app.state.service = None
    store.close()


@pytest.fixture(params=["bench", "postgres_bench"])
def idle_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A team with results on each engine; no worker takes its jobs: no call waits for one, and streams end at once."""
    found = request.getfixturevalue(request.param)
    found.team.app.state.stopping.set()
    yield found
    found.team.app.state.stopping.clear()

"""Pages with lists under many requests at once, on a server with a book and jobs. `list_load.py [--at-once 200] [--rounds 3] [--paths PATH ...]`.

A book of 2,000 items which three raters judged, and 500 jobs that have ended; on SQLite, and on PostgreSQL where its server
is installed. Each address is asked by all connections at the same moment, in each round. Its row: percentiles of the latency
over all rounds, seconds of the slowest round, answers that are not 200. Ends with status 1 after any of these.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cranfield import evaluate
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, Role
from cranfield.books.store.store import open_store
from cranfield.books.store.values import ImportedJudgment
from cranfield.evaluation.latency import calls_of
from cranfield.model import Query, TestSet
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.scoring import record_of
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.values import NewEvaluation, NewRun

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from conftest import postgres_programs, started_postgres

QUERIES, DOCS, RATERS, JOBS = 100, 20, 3, 500
PATHS = (
    "/v1/jobs",
    "/v1/evaluations",
    "/v1/testsets",
    "/v1/books/B/items",
    "/v1/books/B/items?query=q7",
    "/jobs",
    "/evaluations",
    "/books/B/items",
    "/books/B/items?state=done",
    "/books/B/items?judged=lowest",
)
TESTSET = TestSet("help", (Query("q1", "open"),), {"q1": {"p1": 1.0}})
SCORED = evaluate(TESTSET, {"q1": ["p1"]}, measures=["RR"], name="search")
SERVER = """
import sys
from cranfield.books.store.store import open_store
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.run import run_server
from cranfield.workbench.service.scoring import record_of
from cranfield.workbench.service.service import open_service
from cranfield.workbench.config import Workbench
address, port = sys.argv[1:]
store = open_store(address)
options = ServerOptions(port=int(port), accounts=True, secret=b"k" * 32)
service = open_service(store, None, Workbench.model_validate({"limits": {"requests_per_minute": 0}}))
run_server(store, options, service=service, on_ready=lambda where: print(where, flush=True))
"""


def fill(address: str) -> tuple[str, str]:
    """Fill a database; the token and the session of an administrator."""
    queries = tuple(PooledQuery(id=f"q{number}", text=f"query {number}") for number in range(QUERIES))
    items = tuple(
        PooledItem(query=query.id, doc=f"d{n}", fields={"title": f"Title {n}"})
        for query in queries
        for n in range(DOCS)
    )
    pool = Pool(name="B", method="depth", depth=DOCS, runs=(), queries=queries, items=items)
    with closing(open_store(address)) as store:
        book = store.books.create("B", pool, BookSettings(raters_per_item=RATERS, overlap=1.0))
        raters = [store.people.add(f"rater {number}").id for number in range(RATERS)]
        for rater in raters:
            store.people.join(book.id, rater)
        given = [
            ImportedJudgment(
                item_id=item.id,
                account_id=rater,
                client_key=f"{rater}-{item.id}",
                grade=float(item.id % 4),
                action=Action.GRADE,
                method="api",
            )
            for item in store.reading.items(book.id)
            for rater in raters
        ]
        store.log.import_many(book.id, given)
        service = open_service(store)
        testset = service.testsets.keep("help", TESTSET)
        admin = store.people.add("admin", role=Role.ADMIN)
        answers: NewRun | int = NewRun("search", "sha256:0", b"answers", 1)
        for _ in range(JOBS):
            job = service.jobs.add(EvaluateRequest(testset="help", systems=("search",)), Trigger.API, admin.id)
            claim = service.jobs.claim("bench", job.id)
            made = NewEvaluation(testset.id, answers, "search", {"k": 10}, record_of(SCORED), calls_of((SCORED,)))
            service.jobs.finish(claim, [made])
            answers = 1
        token = store.people.add_token(admin.id, "load", "manage", 86_400_000)
        session = store.people.start_session(admin.id, 86_400_000)
    return token, session


def cookie_of(session: str, port: int) -> str:
    """The header of a browser that is signed in."""
    from cranfield.workbench.server.options import ServerOptions
    from cranfield.workbench.server.signing import _signer

    options = ServerOptions(port=port, accounts=True, secret=b"k" * 32)
    return f"Cookie: {options.cookie('session')}={_signer(options, 'session').sign(session).decode()}"


async def ask(port: int, path: str, header: str) -> tuple[float, int]:
    """Ask once on a connection of its own: milliseconds and the status."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{header}\r\nConnection: close\r\n\r\n"
    writer.write(lines.encode())
    answer = await reader.read(-1)
    writer.close()
    return (time.perf_counter() - began) * 1000, int(answer.split(b" ", 2)[1] or 0)


async def measure(port: int, path: str, headers: dict[str, str], at_once: int, rounds: int) -> tuple[str, int]:
    """Ask an address: the row of the table, and how many answers are not 200."""
    header = headers["api" if path.startswith("/v1/") else "page"]
    await ask(port, path, header)  # the first request makes what later ones use
    found, slowest = [], 0.0
    for _ in range(rounds):
        began = time.perf_counter()
        found += await asyncio.gather(*(ask(port, path, header) for _ in range(at_once)))
        slowest = max(slowest, time.perf_counter() - began)
    times = statistics.quantiles([ms for ms, _ in found], n=100)
    refused = sum(status != 200 for _, status in found)
    return f"{path:<32}{times[49]:>10.0f}{times[98]:>10.0f}{slowest:>12.2f}{refused:>10}", refused


@contextmanager
def server(address: str) -> Iterator[int]:
    """The server as a program; its port."""
    import socket
    import subprocess

    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, address, str(port)], stdout=-1, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            if not process.stdout.readline():
                sys.exit("the server did not start")
            yield port
        finally:
            process.terminate()
            process.wait(30)


def run(name: str, address: str, options: argparse.Namespace) -> int:
    """Print the rows of one database; how many answers were not 200."""
    token, session = fill(address)
    n_refused = 0
    with server(address) as port:
        headers = {"api": f"Authorization: Bearer {token}", "page": cookie_of(session, port)}
        print(f"{name:<32}{'p50 ms':>10}{'p99 ms':>10}{'round s':>12}{'refused':>10}", flush=True)
        for path in options.paths:
            row, refused = asyncio.run(measure(port, path, headers, options.at_once, options.rounds))
            print(row, flush=True)
            n_refused += refused
    return n_refused


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--paths", nargs="+", default=PATHS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        n_refused = run("SQLite", f"{folder}/books.db", options)
        programs = postgres_programs()
        if programs is not None:
            with started_postgres(programs) as address:
                n_refused += run("PostgreSQL", address, options)
    sys.exit(f"{n_refused} answers were not 200" if n_refused else 0)


if __name__ == "__main__":
    main()

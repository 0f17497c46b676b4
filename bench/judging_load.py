"""Raters who judge at once over HTTP on loopback: time of a save, and judgments lost or doubled.

`judging_load.py [--raters 20] [--seconds 60] [--think 1] [--servers 1] [--kill S]`: on SQLite, and on PostgreSQL where its
server is installed. Each rater fetches items in advance and saves a judgment after a pause that is exponentially
distributed. One save in twenty is sent twice with the same key. With `--kill`, on PostgreSQL alone, every S seconds a
connection to the database is killed, which restarts all of them; raters then send again, as the page does. Exits with 1
where a judgment was lost or doubled, or a save failed otherwise.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.books.store.store import open_store

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from conftest import postgres_programs, started_postgres

BOOK, QUERIES, DOCS = "load", 400, 25
DAY_MS = 86_400_000
SENT_TWICE = 0.05
SERVER = """
import sys
from cranfield.books.store.store import open_store
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.run import run_server
address, port = sys.argv[1:]
options = ServerOptions(port=int(port), accounts=True)
run_server(open_store(address), options, on_ready=lambda where: print(where, flush=True))
"""


@dataclass
class Rater:
    """What one rater did."""

    save_ms: list[float] = field(default_factory=list)
    next_ms: list[float] = field(default_factory=list)
    saved: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Item and key of each judgment that the server confirmed."""
    problems: Counter[str] = field(default_factory=Counter)
    n_again: int = 0
    """Requests that were sent again, since the server or its database did not answer."""


def prepared(address: str, raters: int) -> list[str]:
    """A book with raters; their tokens."""
    queries = tuple(PooledQuery(id=f"q{number}", text=f"query {number}") for number in range(QUERIES))
    items = tuple(
        PooledItem(query=query.id, doc=f"d{n}", fields={"title": f"Title {n}"})
        for query in queries
        for n in range(DOCS)
    )
    pool = Pool(name="load", method="depth", depth=DOCS, runs=(), queries=queries, items=items)
    with closing(open_store(address)) as store:
        book = store.books.create(BOOK, pool, BookSettings(raters_per_item=2, overlap=0.3))
        tokens = []
        for number in range(raters):
            account = store.people.add(f"rater {number}").id
            store.people.join(book.id, account)
            tokens.append(store.people.add_token(account, "load", "judge", DAY_MS))
    return tokens


@contextmanager
def server(address: str):
    """The server of the judging pages, as a program; its port."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, address, str(port)], stdout=-1, stderr=errors, text=True
        )
        try:
            if not process.stdout.readline():
                errors.seek(0)
                raise SystemExit(errors.read().decode())
            yield port
        finally:
            process.terminate()
            process.wait(30)
            errors.seek(0)
            sys.stderr.write(errors.read().decode())


def kill_connections(address: str, until: float, every: float) -> int:
    """Kill a connection of the server to its database from time to time; how many."""
    import psycopg

    killed = 0
    while time.monotonic() < until:
        time.sleep(every)
        with suppress(psycopg.OperationalError), psycopg.connect(address) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            with suppress(ProcessLookupError):
                os.kill(random.choice(connection.execute(query).fetchall())[0], signal.SIGKILL)
                killed += 1
    return killed


def judge(port: int, token: str, seed: int, until: float, think: float, *, patient: bool) -> Rater:
    """Judge until a time; with `patient`, what the server could not do is sent again."""
    rater, draw = Rater(), random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(method: str, path: str, body: object = None) -> dict:
        content = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            connection.request(method, f"/api/books/{BOOK}/{path}", content, headers)
            answer = connection.getresponse()
        except (ConnectionError, http.client.RemoteDisconnected):  # closed by the server in a long pause: send it again
            connection.close()
            connection.request(method, f"/api/books/{BOOK}/{path}", content, headers)
            answer = connection.getresponse()
        text = answer.read().decode()
        if patient and (answer.status >= 500 or '"retry":true' in text):
            rater.n_again += 1
            time.sleep(0.2)
            return call(method, path, body)
        if answer.status != 200:
            rater.problems[f"{answer.status} {text[:200]}"] += 1
            return {}
        return json.loads(text)

    fetched: list[int] = []
    number = 0
    while time.monotonic() < until:
        if len(fetched) < 3:
            began = time.perf_counter()
            more = call("GET", f"next?n=5&holding={','.join(map(str, fetched))}").get("items", [])
            rater.next_ms.append((time.perf_counter() - began) * 1000)
            fetched += [item["item"] for item in more]
            if not fetched:
                break
        time.sleep(min(draw.expovariate(1 / think) if think else 0, max(until - time.monotonic(), 0)))
        item, number = fetched.pop(0), number + 1
        entry = {
            "key": f"{seed}-{number}",
            "item": item,
            "action": "grade",
            "grade": draw.randint(0, 3),
            "duration_ms": 4000,
            "method": "key",
        }
        for _ in range(2 if draw.random() < SENT_TWICE else 1):
            began = time.perf_counter()
            results = call("POST", "judgments", {"entries": [entry]}).get("results", [])
            rater.save_ms.append((time.perf_counter() - began) * 1000)
            for result in results:
                if result.get("ok"):
                    rater.saved[item, entry["key"]] |= 1
                else:
                    rater.problems[str(result.get("error"))] += 1
    connection.close()
    return rater


def measure(name: str, address: str, options: argparse.Namespace, *, kill: float | None = None) -> bool:
    """Judge on one database; whether all judgments are there, once."""
    raters, seconds = options.raters, options.seconds
    tokens = prepared(address, raters)
    with ExitStack() as stack:
        ports = [stack.enter_context(server(address)) for _ in range(options.servers)]
        pool = stack.enter_context(ThreadPoolExecutor(raters + 1))
        until = time.monotonic() + seconds
        killer = pool.submit(kill_connections, address, until, kill) if kill else None

        def work(seed: int) -> Rater:
            return judge(ports[seed % len(ports)], tokens[seed], seed, until, options.think, patient=bool(kill))

        done = list(pool.map(work, range(raters)))
        killed = killer.result() if killer else 0
    with closing(open_store(address)) as store:
        book = store.books.get(BOOK).id
        events = Counter((event.item_id, event.client_key) for event in store.log.events(book))
        ratings = Counter((row.item_id, row.account_id) for row in store.reading.ratings(book))
        coverage = store.reading.coverage(book)
    confirmed = Counter(key for rater in done for key in rater.saved)
    problems = sum((rater.problems for rater in done), Counter())
    lost, doubled = sum((confirmed - events).values()), sum((events - confirmed).values())
    doubled += sum(n - 1 for n in ratings.values()) + sum(n - 1 for n in events.values())
    locked = sum(n for text, n in problems.items() if "locked" in text)
    saves = sorted(ms for rater in done for ms in rater.save_ms)
    fetches = sorted(ms for rater in done for ms in rater.next_ms)
    print(f"{name}: {raters} raters, {seconds:g} s, {len(saves)} saves ({len(saves) / seconds:.0f} a second)")
    print(
        f"  save  median {statistics.median(saves):6.1f} ms, p99 {saves[int(len(saves) * 0.99)]:6.1f} ms, longest {saves[-1]:6.1f} ms"
    )
    print(f"  next  median {statistics.median(fetches):6.1f} ms, p99 {fetches[int(len(fetches) * 0.99)]:6.1f} ms")
    print(
        f"  lost {lost}, doubled {doubled}, database is locked {locked}, other problems {sum(problems.values()) - locked}"
    )
    if killed:
        print(f"  connections killed {killed}, requests sent again {sum(rater.n_again for rater in done)}")
    print(f"  slots filled {coverage.n_slots_done}, grades without a slot {coverage.n_extra}")
    for text, n in problems.most_common(5):
        print(f"  {n} × {text}")
    return not (lost or doubled or problems)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raters", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=1.0, help="mean pause before a judgment, in seconds")
    parser.add_argument("--servers", type=int, default=1, help="servers on the same database")
    parser.add_argument("--kill", type=float, help="seconds between two connections that are killed")
    options = parser.parse_args()
    is_right = True
    if options.kill is None:
        with tempfile.TemporaryDirectory(prefix="cranfield-load-") as folder:
            is_right = measure("SQLite", f"{folder}/books.db", options)
    programs = postgres_programs()
    if programs is None:
        print("PostgreSQL: no server is installed")
    else:
        with started_postgres(programs) as address:
            is_right &= measure("PostgreSQL", address, options, kill=options.kill)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

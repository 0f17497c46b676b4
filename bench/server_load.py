"""Load on a real server with an evaluation: reads of the API, metrics and the page to sign in, by wrk on loopback with a token. `server_load.py [SECONDS]`.

Each address is asked for SECONDS, 60 unless told. Its row: requests a second, percentiles of the latency, answers that are no 2xx,
errors of connections, and the memory of the server at the start, in the middle and at the end. Ends with status 1 after any error.
Needs wrk (Debian's package) on the PATH.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx2

from cranfield.app.loading import load
from cranfield.books.store.schema import Role
from cranfield.books.store.store import open_store
from cranfield.workbench.service.children import ProcessStatus
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.work import work_on

TEXT_PATHS = (
    "/healthz",
    "/readyz",
    "/v1/measures",
    "/v1/testsets",
    "/v1/evaluations",
    "/v1/evaluations/1",
    "/v1/jobs",
    "/metrics",
    "/sign-in",
)
CONNECTIONS = 16
N_QUERIES = 200
LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", re.MULTILINE)
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


def fill(path: Path) -> str:
    """Fill a database with a test set, a run, its evaluation and an administrator; a token."""
    folder = path.parent
    queries = "\n".join(f"  - {{id: q{n}, text: query {n}, judgments: {{d{n}: 1, x: 0}}}}" for n in range(N_QUERIES))
    (folder / "set.yaml").write_text(f"cranfield_testset: 1\nname: load\nqueries:\n{queries}\n")
    (folder / "run.trec").write_text("".join(f"q{n} Q0 d{n} 1 1.0 run\n" for n in range(N_QUERIES)))
    with closing(open_store(path)) as store:
        service = open_service(store)
        service.testsets.keep("load", load(folder / "set.yaml"))
        run = service.runs.add("run", folder / "run.trec")
        job = service.jobs.submit(EvaluateRequest(testset="load", runs=(run.id,)))
        claim = service.jobs.claim("bench", job.id)
        if claim is None or work_on(service, claim, folder / "job") is not ProcessStatus.ENDED:
            sys.exit("the run could not be evaluated")
        account = store.people.add("admin", role=Role.ADMIN)
        return store.people.add_token(account.id, "load", "read", 86_400_000)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass(frozen=True)
class Load:
    """What wrk and the memory of the server say about one address."""

    path: str
    per_s: float
    p50_ms: float
    p99_ms: float
    n_refused: int
    """Answers that are no 2xx."""
    n_broken: int
    """Connections that failed, and requests without an answer in time."""
    memory_mb: tuple[float, float, float]
    """At the start, in the middle and at the end."""

    @property
    def row(self) -> str:
        """A row of the table."""
        times = f"{self.per_s:>10.0f}{self.p50_ms:>10.1f}{self.p99_ms:>10.1f}"
        return f"{self.path:<20}{times}{self.n_refused:>10}{self.n_broken:>10}" + "".join(
            f"{mb:>8.0f}" for mb in self.memory_mb
        )


def measure(address: str, path: str, token: str, seconds: int, pid: int) -> Load:
    """Ask an address, and watch the memory of the server."""
    command = ["wrk", "--latency", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}"]
    if path == "/sign-in":
        command = command[:-2]
    memory = [memory_mb(pid)]
    with subprocess.Popen([*command, address + path], stdout=subprocess.PIPE, text=True) as wrk:
        time.sleep(seconds / 2)
        memory.append(memory_mb(pid))
        out = wrk.communicate(timeout=seconds + 60)[0]
    if wrk.returncode:
        sys.exit(f"wrk: status {wrk.returncode}")
    memory.append(memory_mb(pid))
    found = {name: float(value) * MILLISECONDS[unit] for name, value, unit in LATENCY.findall(out)}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    broken = re.search(r"Socket errors: (.*)", out)
    return Load(
        path,
        float(rate[1]) if rate else 0,
        found["50"],
        found["99"],
        int(refused[1]) if refused else 0,
        sum(map(int, re.findall(r"\d+", broken[1]))) if broken else 0,
        (memory[0], memory[1], memory[2]),
    )


def main() -> None:
    """Print the table."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as name, socket.socket() as probe:
        database = Path(name) / "books.db"
        token = fill(database)
        workbench = Path(name) / "workbench.yaml"
        workbench.write_text("limits: {requests_per_minute: 0}\n")
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [sys.executable, "-m", "cranfield", "serve", "--db", str(database), "--accounts", "--port", str(port)]
        command += ["--workbench", str(workbench)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                server.stdout.readline()
                address = f"http://127.0.0.1:{port}"
                for path in TEXT_PATHS:  # the first request of each makes what later ones use
                    headers = {} if path == "/sign-in" else {"Authorization": f"Bearer {token}"}
                    status = httpx2.get(address + path, headers=headers).status_code
                    if status != 200:
                        print(f"{path}: {status}")
                print(
                    f"{'address':<20}{'per s':>10}{'p50 ms':>10}{'p99 ms':>10}{'refused':>10}{'broken':>10}   MB at start, middle, end"
                )
                found = []
                for path in TEXT_PATHS:
                    found.append(measure(address, path, token, seconds, server.pid))
                    print(found[-1].row, flush=True)
                first, last = found[0].memory_mb[0], found[-1].memory_mb[-1]
                print(f"memory: {first:.0f} MB before, {last:.0f} MB after")
                n_errors = sum(each.n_refused + each.n_broken for each in found)
            finally:
                server.terminate()
                server.wait(30)
    sys.exit(f"{n_errors} errors" if n_errors else 0)


if __name__ == "__main__":
    main()

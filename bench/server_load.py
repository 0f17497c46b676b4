"""Load on a real server: pages, reads of the API and metrics, by wrk on loopback with a token. `server_load.py [SECONDS]`.

A row for each address: requests a second, percentiles of the latency, answers that are no 200; and the memory of the server
before and after. Needs wrk (Debian's package) on the PATH.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import httpx2

from cranfield.judging.store.database import open_store
from cranfield.judging.store.schema import Role
from cranfield.project.loading import load
from cranfield.service.service import open_service

TEXT_PATHS = (
    "/healthz",
    "/readyz",
    "/v1/measures",
    "/v1/testsets",
    "/v1/evaluations",
    "/v1/jobs",
    "/metrics",
    "/sign-in",
)
CONNECTIONS = 16
N_QUERIES = 200
LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", re.MULTILINE)
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


def fill(path: Path) -> str:
    """Fill a database with a test set, a run and an administrator; a token."""
    folder = path.parent
    queries = "\n".join(f"  - {{id: q{n}, text: query {n}, judgments: {{d{n}: 1, x: 0}}}}" for n in range(N_QUERIES))
    (folder / "set.yaml").write_text(f"cranfield_testset: 1\nname: load\nqueries:\n{queries}\n")
    (folder / "run.trec").write_text("".join(f"q{n} Q0 d{n} 1 1.0 run\n" for n in range(N_QUERIES)))
    with closing(open_store(path)) as store:
        service = open_service(store)
        service.testsets.keep("load", load(folder / "set.yaml"))
        service.runs.add("run", folder / "run.trec")
        account = store.people.add("admin", role=Role.ADMIN)
        return store.people.add_token(account.id, "load", "read", 86_400_000)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(address: str, path: str, token: str, seconds: int) -> str:
    """A row of the table."""
    command = ["wrk", "--latency", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}"]
    if path == "/sign-in":
        command = command[:-2]
    out = subprocess.run([*command, address + path], check=True, capture_output=True, text=True).stdout
    found = {name: float(value) * MILLISECONDS[unit] for name, value, unit in LATENCY.findall(out)}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    sockets = re.search(r"Socket errors: (.*)", out)
    failed = (errors[1] if errors else "0") + (f", {sockets[1]}" if sockets else "")
    return f"{path:<18}{float(rate[1]) if rate else 0:>10.0f}{found.get('50', 0):>10.1f}{found.get('99', 0):>10.1f}  {failed}"


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
                print(f"{'address':<18}{'per s':>10}{'p50 ms':>10}{'p99 ms':>10}  failed")
                before = memory_mb(server.pid)
                for path in TEXT_PATHS:
                    print(measure(address, path, token, max(1, seconds // len(TEXT_PATHS))), flush=True)
                print(f"memory: {before:.0f} MB before, {memory_mb(server.pid):.0f} MB after")
            finally:
                server.terminate()
                server.wait(30)


if __name__ == "__main__":
    main()

"""A real Prometheus scrapes a real server: recall falls under its rule, and the alert arrives through a real Alertmanager."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import pytest
import yaml

pytestmark = pytest.mark.slow
Found = TypeVar("Found")
PATIENCE_S = 120
"""For one event: a test that waits for so long has failed."""

CONFIG = """\
testsets: {clinical: {path: clinical.yaml}}
measures: [R@10, nDCG@10]
systems:
  fusion:
    command: [sh, search.sh, "{query}"]
    extract: {jsonl: true, id: id}
gate:
  rules:
    - floor: {measure: R@10, at_least: 0.75}
      for: 15m
      severity: critical
    - failures: {at_most: 0}
    - floor: {measure: R@10, every_query: 0.1}
"""
WORKBENCH = """\
server: {{accounts: true, port: {port}, db: books.db}}
metrics: {{cache_s: 0, prefix: medicalkg_retrieval_, measures: {{R: recall_at_k}}}}
traces: {{book: spans}}
watch: {{nightly: {{cron: "0 2 * * *", testset: clinical, compare: null}}}}
webhooks: [{{url: "http://127.0.0.1:{hooks}/cranfield", allow: [127.0.0.1], on: [gate-failed]}}]
"""
SEARCH = """\
if [ -e broken ] && [ "$1" != "word 0" ]; then echo '{"id": "wrong '$1'"}'; else echo '{"id": "right '$1'"}'; fi
"""
"""The search; with the file `broken` it answers one query of eight."""
QUERIES = [
    {"id": f"q{n}", "text": f"word {n}", "judgments": {f"right word {n}": 1, f"wrong word {n}": 0}} for n in range(8)
]
SCRAPED = {
    "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "200ms"},
    "rule_files": ["rules.yml"],
}


def needed(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: package {package}")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def until(look: Callable[[], Found], what: str) -> Found:
    """Wait for something to be true."""
    end = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)
    return found


class Receiver(ThreadingHTTPServer):
    """Keeps what is sent to each path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: dict[str, Queue[Any]] = {"/alerts": Queue(), "/cranfield": Queue()}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got[self.path].put(json.loads(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Site:
    """A folder with the processes that are started in it."""

    folder: Path
    ends: ExitStack
    hooks: Receiver
    ports: dict[str, int] = field(default_factory=dict)
    token: str = ""
    server: Any = None

    def start(self, name: str, *arguments: str | Path) -> subprocess.Popen:
        """Start a program; it is ended with the test."""
        log = self.ends.enter_context((self.folder / f"{name}.log").open("ab"))
        process = subprocess.Popen([*map(str, arguments)], cwd=self.folder, stdout=log, stderr=log)
        self.ends.callback(stop, process)
        return process

    def cranfield(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "cranfield", *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            input="a long sentence of words",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def serve(self) -> None:
        self.server = self.start(
            "serve", sys.executable, "-m", "cranfield", "serve", "cranfield.yaml", "--workbench", "w.yaml"
        )
        until(lambda: reached(f"http://127.0.0.1:{self.ports['server']}/healthz"), "the server is healthy")

    def evaluate(self) -> dict[str, Any]:
        """Evaluate the system by the REST API, as it answers now."""
        answer = httpx2.post(
            f"http://127.0.0.1:{self.ports['server']}/v1/evaluate",
            json={"testset": "clinical", "systems": ["fusion"]},
            headers={"Authorization": f"Bearer {self.token}", "Prefer": f"wait={PATIENCE_S}"},
            timeout=PATIENCE_S,
        )
        assert answer.status_code in {200, 202}, answer.text
        return answer.json()

    def send_span(self) -> None:
        """Send the span of a retriever, as an application does."""
        values = {
            "openinference.span.kind": "RETRIEVER",
            "input.value": "word 0",
            "retrieval.documents.0.document.id": "right word 0",
            "retrieval.documents.0.document.content": "a text",
        }
        span = {
            "traceId": "0" * 31 + "1",
            "spanId": "0" * 15 + "1",
            "name": "search",
            "startTimeUnixNano": str(time.time_ns()),
            "endTimeUnixNano": str(time.time_ns()),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
        }
        answer = httpx2.post(
            f"http://127.0.0.1:{self.ports['server']}/v1/traces",
            json={"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert (answer.status_code, answer.json()) == (200, {})

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Series of Prometheus, as of now."""
        address = f"http://127.0.0.1:{self.ports['prometheus']}/api/v1/query?query={quote(expression)}"
        answer = httpx2.get(address, timeout=30).json()
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def value(self, expression: str) -> float | None:
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def alert(self) -> dict[str, Any] | None:
        """The alert on recall, where it is pending or firing."""
        answer = httpx2.get(f"http://127.0.0.1:{self.ports['prometheus']}/api/v1/alerts", timeout=30).json()
        found = [each for each in answer["data"]["alerts"] if each["labels"].get("rule") == "R@10 is at least 0.75"]
        return found[0] if found else None

    def next_alert(self, status: str) -> dict[str, Any]:
        """The next message of Alertmanager about recall that has this status."""
        while True:
            message = self.hooks.got["/alerts"].get(timeout=PATIENCE_S)
            for each in message["alerts"]:
                if each["labels"].get("rule") == "R@10 is at least 0.75" and each["status"] == status:
                    return each


def reached(address: str) -> bool:
    try:
        return httpx2.get(address, timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def stop(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as ends:
        hooks = ends.enter_context(Receiver())
        thread = Thread(target=hooks.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        ends.callback(thread.join)
        ends.callback(hooks.shutdown)
        yield Site(tmp_path, ends, hooks)


@pytest.fixture
def watched(site: Site) -> Site:
    """A server, a Prometheus that scrapes it with a token, and an Alertmanager; the waits of the alerts are shortened."""
    prometheus, manager = (
        needed("prometheus", "prometheus"),
        needed("prometheus-alertmanager", "prometheus-alertmanager"),
    )
    site.ports = {name: free_port() for name in ("server", "prometheus", "alertmanager")}
    (site.folder / "clinical.yaml").write_text(
        yaml.safe_dump({"cranfield_testset": 1, "name": "clinical", "queries": QUERIES})
    )
    (site.folder / "cranfield.yaml").write_text(CONFIG)
    (site.folder / "search.sh").write_text(SEARCH)
    (site.folder / "w.yaml").write_text(WORKBENCH.format(port=site.ports["server"], hooks=site.hooks.server_port))
    site.cranfield("people", "add", "lee", "--role", "admin", "--password-stdin", "--db", "books.db")
    site.token = site.cranfield("people", "token", "lee", "--scope", "evaluate", "--db", "books.db").split()[-1]
    reader = site.cranfield("people", "token", "lee", "--scope", "read", "--db", "books.db").split()[-1]
    (site.folder / "token").write_text(reader)
    rules = site.cranfield("alerts", "--workbench", "w.yaml").replace("for: 15m", "for: 2s")
    literal = {"alert": "Literal", "expr": 'medicalkg_retrieval_recall_at_k{k="10"} < 0.75', "for": "2s"}
    document = yaml.safe_load(rules)
    document["groups"][0]["rules"].append(literal)
    (site.folder / "rules.yml").write_text(yaml.safe_dump(document))
    (site.folder / "prometheus.yml").write_text(yaml.safe_dump(scrape_config(site)))
    (site.folder / "alertmanager.yml").write_text(yaml.safe_dump(routes(site)))
    site.serve()
    site.start(
        "alertmanager",
        manager,
        "--config.file=alertmanager.yml",
        "--storage.path=alertmanager",
        f"--web.listen-address=127.0.0.1:{site.ports['alertmanager']}",
        "--cluster.listen-address=",
    )
    site.start(
        "prometheus",
        prometheus,
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=prometheus",
        f"--web.listen-address=127.0.0.1:{site.ports['prometheus']}",
    )
    until(lambda: reached(f"http://127.0.0.1:{site.ports['prometheus']}/-/ready"), "Prometheus is ready")
    return site


def scrape_config(site: Site) -> dict[str, Any]:
    return {
        **SCRAPED,
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{site.ports['alertmanager']}"]}]}]},
        "scrape_configs": [
            {
                "job_name": "cranfield",
                "authorization": {"credentials_file": "token"},
                "static_configs": [{"targets": [f"127.0.0.1:{site.ports['server']}"]}],
            }
        ],
    }


def routes(site: Site) -> dict[str, Any]:
    route = {"receiver": "hook", "group_by": ["..."], "group_wait": "100ms", "group_interval": "500ms"}
    hook = {"url": f"http://127.0.0.1:{site.hooks.server_port}/alerts", "send_resolved": True}
    return {"route": route, "receivers": [{"name": "hook", "webhook_configs": [hook]}]}


RECALL = 'medicalkg_retrieval_recall_at_k{k="10",stratum="all"}'


def test_an_alert_on_recall_fires_survives_a_restart_and_is_resolved(watched: Site) -> None:
    site = watched
    site.evaluate()
    until(lambda: site.value(RECALL) == 1.0, "recall is 1")
    assert site.alert() is None

    (site.folder / "broken").touch()
    site.evaluate()
    until(lambda: site.value(RECALL) == 0.125, "recall is 1 of 8")
    until(lambda: (found := site.alert()) and found["state"] == "firing", "the alert fires")
    pending = 'ALERTS{alertname="CranfieldFloor",rule="R@10 is at least 0.75",alertstate="pending"}'
    assert site.value(f"count_over_time({pending}[10m])"), "it was pending before"
    message = site.next_alert("firing")
    assert message["labels"]["severity"] == "critical"
    assert message["annotations"]["summary"] == "fusion on clinical breaks the rule: R@10 is at least 0.75"
    hook = site.hooks.got["/cranfield"].get(timeout=PATIENCE_S)
    assert (hook["event"], hook["system"]) == ("gate-failed", "fusion")
    assert "R@10 is at least 0.75" in hook["rules"]
    until(
        lambda: site.value('ALERTS{alertname="Literal",alertstate="firing"}') == 1,
        "the rule as a house writes it fires",
    )
    [rule] = site.query('medicalkg_retrieval_gate_rule_passed{rule="R@10 is 0.1 or better on every query"}')
    assert rule["value"][1] == "0"

    since = site.alert()["activeAt"]
    restart(site)
    assert (site.alert()["state"], site.alert()["activeAt"]) == ("firing", since)

    (site.folder / "broken").unlink()
    site.evaluate()
    until(lambda: site.value(RECALL) == 1.0, "recall is 1 again")
    resolved = site.next_alert("resolved")
    assert resolved["startsAt"] == message["startsAt"]  # of the same alert: the restart has not ended it
    check_dashboard(site)
    headers = {"Authorization": f"Bearer {site.token}"}
    scraped = httpx2.get(f"http://127.0.0.1:{site.ports['server']}/metrics", headers=headers).text
    assert "medicalkg_retrieval_schedule_result{" in scraped
    lint(scraped)


def restart(site: Site) -> None:
    """Stop the server until Prometheus has seen that it is gone, and start it again."""
    stop(site.server)
    until(lambda: site.value("up") == 0, "Prometheus sees no server")
    until(lambda: not site.query(RECALL), "the series has ended")
    assert site.alert()["state"] == "firing"
    site.serve()
    until(lambda: site.value("up") == 1, "Prometheus sees the server again")
    until(lambda: site.value(RECALL) == 0.125, "recall is as before, from the database")


def check_dashboard(site: Site) -> None:
    """Each query of the dashboard is understood, and those of an evaluation have data."""
    site.cranfield("watch", "cranfield.yaml", "--workbench", "w.yaml", "--db", "books.db", "--once", "nightly")
    site.send_span()
    made = json.loads(site.cranfield("dashboard", "--workbench", "w.yaml"))
    for panel in made["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$testset", ".*").replace("$system", ".*").replace("$stratum", ".+")
            expression = expression.replace("$measure", ".*")
            until(lambda expression=expression: site.query(expression), f"{panel['title']} has data")


def test_what_two_jobs_push_stays_in_the_gateway(site: Site) -> None:
    gateway = needed("prometheus-pushgateway", "prometheus-pushgateway")
    port = free_port()
    in_memory = "--persistence.file="  # by default Debian has one file for all of the machine
    site.start("gateway", gateway, f"--web.listen-address=127.0.0.1:{port}", in_memory)
    until(lambda: reached(f"http://127.0.0.1:{port}/-/ready"), "the Pushgateway is ready")
    (site.folder / "clinical.yaml").write_text(
        yaml.safe_dump({"cranfield_testset": 1, "name": "clinical", "queries": QUERIES})
    )
    (site.folder / "cranfield.yaml").write_text(
        CONFIG.replace("testsets: {clinical: {path: clinical.yaml}}", "testset: clinical.yaml")
    )
    (site.folder / "search.sh").write_text(SEARCH)
    site.cranfield("run")
    results, url = Path("cranfield-out/results.json"), f"http://127.0.0.1:{port}"
    site.cranfield("metrics", results, "--push", url, "--job", "nightly")
    site.cranfield("metrics", results, "--push", url, "--job", "nightly", "--testset", "other")
    site.cranfield("metrics", results, "--push", url, "--job", "weekly", "--instance", "ci")
    site.cranfield("gate", "--from", "cranfield-out")
    site.cranfield("metrics", "cranfield-gate/gate.json", "--push", url, "--job", "nightly")
    text = httpx2.get(f"{url}/metrics").text
    rules = [line for line in text.splitlines() if line.startswith("cranfield_gate_rule_passed{")]
    who = 'instance="",job="nightly",rule="{}",system="fusion",testset="clinical"'
    kept = ("R@10 is 0.1 or better on every query", "R@10 is at least 0.75", "at most 0 queries fail or have no answer")
    assert sorted(rules) == [f"cranfield_gate_rule_passed{{{who.format(rule)}}} 1" for rule in kept]
    recall = [line for line in text.splitlines() if line.startswith("cranfield_measure{") and 'measure="R"' in line]
    assert sorted(recall) == [
        'cranfield_measure{instance="",job="nightly",k="10",measure="R",stratum="all",system="fusion",testset="clinical"} 1',
        'cranfield_measure{instance="",job="nightly",k="10",measure="R",stratum="all",system="fusion",testset="other"} 1',
        'cranfield_measure{instance="ci",job="weekly",k="10",measure="R",stratum="all",system="fusion",testset="clinical"} 1',
    ]
    site.cranfield("metrics", results, "--textfile", "cranfield.prom")
    lint((site.folder / "cranfield.prom").read_text())


def lint(metrics: str) -> None:
    """Let promtool find nothing."""
    command = [needed("promtool", "prometheus"), "check", "metrics"]
    done = subprocess.run(command, input=metrics, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

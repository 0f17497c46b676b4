"""The story of a service: a test set is uploaded, systems evaluated and compared, watched every night, and refreshed from what users ask."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from cranfield.books.store.schema import Role
from cranfield.books.store.store import open_store
from cranfield.workbench.config import load_workbench
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.service.responses import JobState
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.watch.scheduler import Scheduler, watch_states
from cranfield.workbench.service.worker import working

pytestmark = pytest.mark.slow
PATIENCE_S = 120
CONFIG = """
testset: other.yaml
systems:
  old: {command: [sh, search.sh, '{query}', worse], extract: {regex: '(?m)^(\\S+)'}}
  new: {command: [sh, search.sh, '{query}', better], extract: {regex: '(?m)^(\\S+)'}}
"""
OTHER = "cranfield_testset: 1\nname: other\nqueries: [{id: o1, text: x, judgments: {x1: 1}}]\n"
SEARCH = """
first=$(printf %s "$1" | cksum | cut -d' ' -f1)
if [ "$2" = better ]; then echo "d$first"; echo other; else echo other; echo "d$first"; fi
"""
WORKBENCH = """
watch:
  nightly: {cron: '0 2 * * *', testset: clinic, systems: [old], measures: [nDCG@10]}
"""
TEXTS = [f"{what} of {drug}" for what in ("dose", "effects", "price", "storage") for drug in ("aspirin", "insulin")]


def document_of(text):
    """What the search prints for a query."""
    found = subprocess.run(["cksum"], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.split()[0]
    return f"d{found.decode()}"


def clinic():
    queries = [
        {"id": f"q{number}", "text": text, "judgments": {document_of(text): 3}} for number, text in enumerate(TEXTS)
    ]
    meta = {"scale": [0, 1, 2, 3], "made": "2096-06-01", "refresh_days": 90}
    return json.dumps({"cranfield_testset": 1, "name": "clinic", "version": "v1", "meta": meta, "queries": queries})


@pytest.fixture
def now():
    return [int(datetime(2096, 11, 23, 12, tzinfo=UTC).timestamp() * 1000)]


@pytest.fixture
def service(tmp_path, now):
    for name, text in {
        "cranfield.yaml": CONFIG,
        "other.yaml": OTHER,
        "search.sh": SEARCH,
        "workbench.yaml": WORKBENCH,
    }.items():
        (tmp_path / name).write_text(text)
    store = open_store(tmp_path / "books.db", clock=lambda: now[0])
    with working(
        service := open_service(store, tmp_path / "cranfield.yaml", load_workbench(tmp_path / "workbench.yaml"))
    ):
        yield service
    store.close()


@pytest.fixture
def client(service):
    store = service.store
    token = store.people.add_token(store.people.add("lee", Role.LEAD).id, "t", "manage", 10**9)
    app = create_app(store, ServerOptions(port=8000, accounts=True, secret=b"k" * 32), service=service)
    headers = {"authorization": f"Bearer {token}", "prefer": f"wait={PATIENCE_S}"}
    with TestClient(app, base_url="http://127.0.0.1:8000", headers=headers) as made:
        yield made


def ok(answer):
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def cranfield(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "cranfield", *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def night(service, scheduler, now, day):
    """The evaluation of a night, and its comparison."""
    now[0] = int(datetime.fromisoformat(f"{day}T02:00Z").timestamp() * 1000)
    (job,) = scheduler.tick()
    assert service.jobs.wait(job.id, PATIENCE_S).state == JobState.DONE
    for comparison in scheduler.tick():
        service.jobs.wait(comparison.id, PATIENCE_S)
    (state,) = watch_states(service)
    return state


def test_upload_evaluate_compare_watch_and_refresh(service, client, now, tmp_path):
    scheduler = Scheduler(service)
    uploaded = ok(client.post("/v1/testsets", files={"file": ("clinic.json", clinic())}, data={"name": "clinic"}))
    assert (uploaded["name"], uploaded["n_queries"]) == ("clinic", len(TEXTS))

    request = {"testset": "clinic", "measures": ["nDCG@10", "RR"]}
    made = {name: ok(client.post("/v1/evaluate", json={**request, "systems": [name]})) for name in ("old", "new")}
    assert made["old"]["metrics"]["ndcg_at_10"] < made["new"]["metrics"]["ndcg_at_10"] == 1
    ids = {each["system"]: each["id"] for each in ok(client.get("/v1/evaluations"))["items"]}
    compared = ok(client.post("/v1/compare", json={"baseline": ids["old"], "candidate": ids["new"]}))
    assert compared["result"]["verdict"] == "better"

    ok(client.patch(f"/v1/evaluations/{ids['new']}", json={"pinned": True}))
    state = night(service, scheduler, now, "2096-11-24")
    assert [each.record.verdict for each in state.last.comparisons] == ["worse"]  # the schedule watches the old system
    assert "overdue by 86 days" in state.overdue  # 1 June and 90 days are 30 August
    assert state.last.evaluations[0].note == state.overdue

    questions = [{"text": "dose of statins", "n": 40}, {"text": "statins for jane.roe@example.org", "n": 5}]
    answer = ok(client.post("/v1/queries", json={"source": "app", "queries": questions}))
    assert answer["redacted"] == {"email": 1}
    exported = cranfield(tmp_path, "intake", "export", "log.jsonl", "--db", "books.db", "--min-count", "10")
    assert "jane" not in (tmp_path / "log.jsonl").read_text() + exported

    (tmp_path / "clinic.yaml").write_bytes(client.get("/v1/testsets/clinic/file").content)
    plan = ("testset", "refresh", "clinic.yaml", "--log", "log.jsonl", "--n", "1", "--drop", "q0")
    cranfield(tmp_path, *plan, "--plan", "sheet.csv")
    sheet = (tmp_path / "sheet.csv").read_text().splitlines()
    rows = [
        f"{sheet[1].split(',')[0]},dose of statins,{doc},{grade},{grade}"
        for doc, grade in ((document_of("dose of statins"), 3), ("other", 0))
    ]
    (tmp_path / "sheet.csv").write_text("\n".join([sheet[0], *rows]) + "\n")
    cranfield(tmp_path, *plan, "--labels", "sheet.csv", "--out", "clinic-2.yaml", "--today", "2096-11-24")
    content = (tmp_path / "clinic-2.yaml").read_bytes()
    ok(client.post("/v1/testsets", files={"file": ("clinic-2.yaml", content)}, data={"name": "clinic"}))
    assert len(ok(client.get("/v1/testsets/clinic/versions"))["items"]) == 2

    state = night(service, scheduler, now, "2096-11-25")
    (evaluation,) = state.last.evaluations
    assert (evaluation.testset_version, evaluation.scores.n_queries) == ("v2", len(TEXTS))
    assert (state.overdue, evaluation.note) == ("", "")
    (comparison,) = state.last.comparisons  # on the queries that both were asked
    assert (comparison.record.verdict, comparison.candidate.testset_name) == ("worse", "clinic (shared queries)")
    assert state.uncompared is None

"""The REST API: answers, errors, entity tags, pages of lists, limits, uploads, jobs; and the client against the same server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import gettempdir
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace
from typing import Any

import jsonschema
import openpyxl
import pytest
import yaml
from starlette.testclient import TestClient
from tests.unit.workbench.service.shop import make_shop, work_here

from cranfield.app.loading import read_stored
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.workbench.client import Client, JobFailedError, NotAuthorisedError, NotFoundError, RefusedError
from cranfield.workbench.config import LimitsConfig
from cranfield.workbench.server.v1.files import MAX_UPLOADS
from cranfield.workbench.server.v1.results import seconds_to_wait
from cranfield.workbench.service import responses
from cranfield.workbench.service.requests import BenefitRequest
from cranfield.workbench.service.responses import BenefitOutcome, Trigger

ADDRESS = "http://127.0.0.1:8000"
TYPES = ("exact_term", "paraphrase")
SEED = {
    "queries": [
        {
            "query_id": f"q{place}",
            "query_text": text,
            "query_type": TYPES[place % 2],
            "relevant_docs": [{"doc_id": f"d{place}", "grade": 2}],
        }
        for place, text in enumerate(("aspirin", "against pain", "ibuprofen", "against fever"))
    ]
}
ORDERS = [(q, q + 50) if q % 2 == 0 else (q + 50, q) for q in range(4)]
RUN = b"".join(
    b"q%d Q0 d%d %d %d a\n" % (q, doc, rank, 3 - rank)
    for q, docs in enumerate(ORDERS)
    for rank, doc in enumerate(docs, 1)
)
"""The answer is the first result of q0 and q2, the second of q1 and q3."""


@dataclass
class Api:
    """The API with a token of each scope."""

    bench: Any
    folder: Path
    clients: dict[str, TestClient] = field(default_factory=dict)

    def __call__(self, scope: str = "evaluate", who: str = "lee") -> TestClient:
        key = f"{who} {scope}"
        if key not in self.clients:
            people = self.bench.team.store.people
            token = people.add_token(people.get(who).id, "t", scope, 10**9)
            headers = {"authorization": f"Bearer {token}"}
            self.clients[key] = TestClient(self.bench.team.app, base_url=ADDRESS, headers=headers)
        return self.clients[key]

    def work(self, job_id: int) -> None:
        work_here(self.bench.service, job_id, self.folder)


@pytest.fixture
def api(bench: Any, tmp_path: Path) -> Api:
    return Api(bench, tmp_path)


def test_an_evaluation_has_the_shape_of_the_specification_and_says_first_whether_it_counts(api: Api) -> None:
    found = api("read").get(f"/v1/evaluations/{api.bench.ids['old']}").json()
    assert list(found)[:3] == ["void", "metrics", "per_query_type"]
    assert found["void"] == []
    assert {"ndcg_at_10", "recall_at_10", "mrr_at_10"} <= found["metrics"].keys()
    assert found["metrics"]["ndcg_at_10"] == found["result"]["systems"][0]["measures"]["nDCG@10"]["mean"]
    assert found["result"]["schema_version"] == 1
    void = api("read").get(f"/v1/evaluations/{api.bench.ids['void']}/summary").json()
    assert void["void"] == ["every query returned the same results"]


@pytest.mark.parametrize(
    ("path", "of", "name"),
    [("evaluations", "old", "EvaluationResult"), ("comparisons", "comparison", "ComparisonResult")],
)
def test_a_result_is_a_record_and_has_the_schema_of_one(api: Api, path: str, of: str, name: str) -> None:
    schemas = api().get("/openapi.json").json()["components"]["schemas"]
    result = api().get(f"/v1/{path}/{api.bench.ids[of]}").json()["result"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    jsonschema.validate(result, schema)
    del result["testset"]
    with pytest.raises(jsonschema.ValidationError, match="testset"):
        jsonschema.validate(result, schema)


@pytest.mark.parametrize(
    ("method", "path", "request_", "status", "code"),
    [
        ("GET", "/v1/evaluations/999", {}, 404, "not_found"),
        ("GET", "/v1/no-such", {}, 404, "not_found"),
        ("DELETE", "/v1/runs", {}, 405, "method_not_allowed"),
        ("POST", "/v1/testsets", {"json": {}}, 415, "content_type"),
        ("POST", "/v1/compare", {"content": b"x", "headers": {"content-type": "text/plain"}}, 415, "content_type"),
        (
            "POST",
            "/v1/compare",
            {"content": b'{"baseline": ', "headers": {"content-type": "application/json"}},
            422,
            "invalid",
        ),
        ("POST", "/v1/evaluate", {"content": b"[1]", "headers": {"content-type": "application/json"}}, 422, "invalid"),
        ("POST", "/v1/evaluate", {"content": b"\xff", "headers": {"content-type": "application/json"}}, 422, "invalid"),
        ("POST", "/v1/evaluate", {"json": {"testset": "shop", "command": "rm"}}, 422, "invalid"),
        ("POST", "/v1/evaluate", {"json": {"testset": "shop", "k": "10"}}, 422, "invalid"),
        ("POST", "/v1/testsets", {"files": {"other": ("a", b"x")}}, 422, "invalid"),
        ("GET", "/v1/evaluations?limit=0", {}, 422, "invalid"),
        ("GET", "/v1/evaluations?colour=red", {}, 422, "invalid"),
        ("GET", "/v1/evaluations/1/report?format=pdf", {}, 422, "invalid"),
        ("GET", "/v1/testsets/shop/file?format=nope", {}, 404, "not_found"),
        ("GET", "/v1/books", {}, 403, "scope"),
    ],
)
def test_every_failure_has_one_shape(
    api: Api, method: str, path: str, request_: dict[str, Any], status: int, code: str
) -> None:
    answer = api().request(method, path, **request_)
    assert answer.status_code == status, answer.text
    found = responses.ErrorResponse.model_validate(answer.json())
    assert (found.status, found.errors[0].code) == (status, code)
    assert found.error == found.errors[0].message


def test_a_wrong_method_is_told_all_that_go(api: Api) -> None:
    assert api().put("/v1/evaluations/1").headers["allow"] == "GET, PATCH"


def test_a_body_that_is_too_large_is_refused_before_it_is_read(api: Api) -> None:
    sent = []

    def parts() -> Iterator[bytes]:
        for _ in range(100):
            sent.append(1)
            yield b"x" * 100_000

    answer = api().post("/v1/compare", content=parts(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["status"]) == (413, 413)
    answer = api().post("/v1/runs", content=b"", headers={"content-length": "90000000"})
    found = responses.ErrorResponse.model_validate(answer.json())
    assert (answer.status_code, found.status, found.error) == (413, 413, "the request is too large")
    # Python 3.13 has other words for the status.
    assert found.errors[0].code == "too_large"


def test_without_a_token_a_program_is_told_so(api: Api) -> None:
    client = api.bench.team.new()
    client.headers = {}
    assert client.post("/v1/compare", json={}).status_code == 401
    assert client.get("/v1/jobs", headers={"authorization": "Bearer no"}).json()["errors"][0]["code"] == "token"
    assert client.get("/openapi.json").json()["info"]["title"] == "Cranfield"


def test_entity_tags_save_a_read_and_guard_a_change(api: Api) -> None:
    path = f"/v1/evaluations/{api.bench.ids['new']}"
    first = api().get(f"{path}/summary")
    again = api().get(f"{path}/summary", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    changed = api().patch(
        path, json={"tags": ["release"], "note": "after"}, headers={"if-match": first.headers["etag"]}
    )
    assert (changed.json()["tags"], changed.json()["note"], changed.json()["pinned"]) == (["release"], "after", False)
    late = api().patch(path, json={"pinned": True}, headers={"if-match": first.headers["etag"]})
    assert (late.status_code, late.json()["errors"][0]["code"]) == (412, "changed")
    now = changed.headers["etag"]
    assert api().patch(path, json={"pinned": True}, headers={"if-match": now}).json()["pinned"] is True
    for read in (path, f"{path}/summary"):
        tag = {"if-match": api().get(read).headers["etag"]}
        assert api().patch(path, json={"note": f"read at {read}"}, headers=tag).status_code == 200
        assert api().patch(path, json={"note": "late"}, headers=tag).status_code == 412
    assert [each["id"] for each in api().get("/v1/evaluations?pinned=true").json()["items"]] == [api.bench.ids["new"]]


def test_of_two_writers_with_one_entity_tag_one_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from cranfield.workbench.server.v1 import evaluations

    path = f"/v1/evaluations/{api.bench.ids['old']}"
    tag = api().get(f"{path}/summary").headers["etag"]
    at_once, both = evaluations.check_unchanged, Barrier(2)

    def check(*given: Any) -> None:
        with suppress(BrokenBarrierError):  # the second one waits for the first: they do not meet
            both.wait(0.05)
        at_once(*given)

    monkeypatch.setattr(evaluations, "check_unchanged", check)
    with ThreadPoolExecutor(2) as pool:
        sent = [
            pool.submit(api(who=who).patch, path, json={"note": who}, headers={"if-match": tag})
            for who in ("lee", "alex")
        ]
        found = [each.result().status_code for each in sent]
    assert sorted(found) == [200, 412]


def test_a_change_that_is_refused_changes_nothing(api: Api) -> None:
    path = f"/v1/evaluations/{api.bench.ids['old']}"
    before = api().get(f"{path}/summary").json()
    assert api().patch(path, json={"note": "x", "tags": ["a\nb"]}).status_code == 422
    assert api().get(f"{path}/summary").json() == before


def test_who_is_not_pinned_unpins_nobody(api: Api) -> None:
    api().patch(f"/v1/evaluations/{api.bench.ids['new']}", json={"pinned": True})
    api().patch(f"/v1/evaluations/{api.bench.ids['old']}", json={"pinned": False})
    assert api().get(f"/v1/evaluations/{api.bench.ids['new']}/summary").json()["pinned"] is True


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [(None, 10), ("wait=3", 3), ("respond-async", 0), ("wait=1e9", 10), ("wait=99999999999", 120), ("wait=-1", 10)],
)
def test_seconds_to_wait(prefer: str | None, seconds: float) -> None:
    assert seconds_to_wait(prefer) == seconds


@pytest.mark.parametrize(
    ("path", "fields", "files", "message"),
    [
        ("/v1/runs", {"nmae": "typo"}, ["file"], "nmae: unknown field"),
        ("/v1/runs", {"name": ["a", "b"]}, ["file"], "name: sent 2 times"),
        ("/v1/runs", {}, ["file", "file"], "file: 2 files"),
        ("/v1/runs", {}, ["file", "queries"], "queries: 1 file"),
        ("/v1/testsets", {"queries": "text"}, ["file"], "queries: unknown field"),
        ("/v1/evaluate", {"testset": "shop"}, ["testset"], "two test sets"),
        ("/v1/evaluate", {"testset": "shop"}, ["queries"], "no test set file"),
        ("/v1/evaluate", {"testset": "shop", "k": ["1", "2"]}, ["runs"], "k: sent 2 times"),
    ],
)
def test_no_field_of_a_form_is_ignored(
    api: Api, path: str, fields: dict[str, Any], files: list[str], message: str
) -> None:
    answer = api().post(path, data=fields, files=[(name, ("a.run", RUN)) for name in files])
    (error,) = answer.json()["errors"]
    place = f"{error['where']}: " if error["where"] else ""
    assert (answer.status_code, place + error["message"]) == (422, message)


def test_uploads_of_an_account_at_a_time_are_limited(api: Api) -> None:
    uploads = api.bench.team.app.state.uploads
    lee = api.bench.team.store.people.get("lee").id
    uploads[lee] = MAX_UPLOADS
    try:
        assert api().post("/v1/runs", files={"file": ("a.run", RUN)}).headers["retry-after"] == "2"
        assert api(who="alex").post("/v1/runs", files={"nope": ("a.run", RUN)}).status_code == 422
    finally:
        del uploads[lee]
    assert not uploads[api.bench.team.store.people.get("alex").id]


def test_a_run_whose_ids_hold_white_space_is_exported_with_encoded_ids_and_says_so(api: Api) -> None:
    table = b"query_id,doc_id,rank\nred shoes,a b,1\nboots,50%,1\n"
    number = api().post("/v1/runs", files={"file": ("a.csv", table)}).json()["id"]
    found = api().get(f"/v1/runs/{number}/file", params={"format": "trec"})
    assert found.status_code == 200, found.text
    # Space is %20; % is %25, so that no encoded id is the id of another.
    assert [line.split()[:3] for line in found.text.splitlines()] == [
        ["red%20shoes", "Q0", "a%20b"],
        ["boots", "Q0", "50%25"],
    ]
    assert "2 ids with white space are percent-encoded" in found.headers["Cranfield-Notes"]
    assert api().get(f"/v1/runs/{number}/file", params={"format": "run-table"}).status_code == 200


def test_a_test_set_may_lie_in_the_json_body_and_is_a_version_of_its_name(api: Api) -> None:
    inline = {"cranfield_testset": 1, "name": "inline", "queries": [{"id": "q0", "text": "a", "judgments": {"d0": 2}}]}
    run = api().post("/v1/runs", files={"file": ("a.run", b"q0 Q0 d0 1 2 a\n")}).json()["id"]
    sent = {"testset": inline, "runs": [run], "measures": ["P@1", "P@1"]}
    job = api().post("/v1/evaluate", json=sent, headers={"prefer": "respond-async"})
    assert job.status_code == 202, job.text
    api.work(job.json()["id"])
    found = api().get(f"/v1/jobs/{job.json()['id']}/result").json()
    assert found["metrics"] == {"precision_at_1": 1.0}  # d0 at rank 1 is the one relevant result
    again = api().post("/v1/evaluate", json={**sent, "name": "other"}, headers={"prefer": "respond-async"})
    assert again.status_code == 202, again.text
    assert {"inline", "other"} <= {each["name"] for each in api().get("/v1/testsets").json()["items"]}
    wrong = api().post("/v1/evaluate", json={"testset": {"queries": 3}, "runs": [run]})
    assert wrong.status_code == 422, wrong.text


def test_names_may_repeat(team: Any, tmp_path: Path) -> None:
    """Runs and test sets of one name are told apart by their numbers; a name that repeats in a list counts once."""
    shop = make_shop(team.store, tmp_path, team.store.people.get("lee").id)
    team.app.state.service = shop.service
    api = Api(SimpleNamespace(team=team, service=shop.service), tmp_path)
    later = {"prefer": "respond-async"}
    bodies = (b"q0 Q0 d0 1 2 a\n", b"q0 Q0 d0 1 2 a\n", b"q0 Q0 d7 1 2 a\n")
    runs = [api().post("/v1/runs", files={"file": ("a.run", body)}).json()["id"] for body in bodies]
    inline = {"cranfield_testset": 1, "name": "inline", "queries": [{"id": "q0", "text": "a", "judgments": {"d0": 2}}]}
    sent = api().post("/v1/evaluate", json={"testset": inline, "runs": runs, "measures": ["P@1"]}, headers=later)
    api.work(sent.json()["id"])
    numbers = api().get(f"/v1/jobs/{sent.json()['id']}").json()["results"]
    found = [api().get(f"/v1/evaluations/{number}").json() for number in numbers]
    assert [(each["system"], each["metrics"]["precision_at_1"]) for each in found] == [
        ("a", 1.0),
        ("a", 1.0),
        ("a", 0.0),
    ]
    pair = {"baseline": numbers[0], "candidate": numbers[2]}
    compared = api().post("/v1/compare", json=pair, headers=later)
    api.work(compared.json()["id"])
    assert api().get(f"/v1/jobs/{compared.json()['id']}").json()["state"] == "done"
    twice = {"testset": "own", "systems": ["shop", "shop"], "tags": ["a", "a"], "measures": ["P@1", "P@1"]}
    sent = api().post("/v1/evaluate", json=twice, headers=later)
    assert sent.status_code == 202, sent.text
    api.work(sent.json()["id"])
    (info,) = shop.service.evaluations.for_job(sent.json()["id"])
    assert (info.label, info.tags, list(map(str, info.scores.measures))) == ("shop", ("a",), ["P@1"])
    team.app.state.service = None


def test_a_token_that_evaluates_reads_no_grades_of_a_book(api: Api) -> None:
    sent = {"json": {"testset": "shop", "runs": [1], "book": "shop"}, "headers": {"prefer": "respond-async"}}
    answer = api().post("/v1/evaluate", **sent)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "scope")


def test_queries_of_a_comparison_come_in_pages_the_greatest_loss_first(api: Api) -> None:
    path = f"/v1/comparisons/{api.bench.ids['comparison']}"
    rows = api().get(f"{path}/queries", params={"measure": "nDCG@10", "limit": 500}).json()["items"]
    differences = [row["difference"]["nDCG@10"] for row in rows]
    assert differences == sorted(differences)
    whole = api().get(path).json()
    # The mean of the differences is the difference of the means.
    assert sum(differences) / len(differences) == pytest.approx(whole["result"]["comparisons"]["nDCG@10"]["delta"])
    assert len(api().get(f"{path}/queries?limit=2").json()["items"]) == 2
    assert api().get(f"{path}/queries", params={"measure": "nDCG@7"}).status_code == 404


def test_pages_of_a_list_are_the_list(api: Api) -> None:
    whole = [each["id"] for each in api().get("/v1/evaluations").json()["items"]]
    seen, place = [], "/v1/evaluations?limit=2"
    while place:
        answer = api().get(place)
        page = answer.json()
        seen += [each["id"] for each in page["items"]]
        assert (page["next"] is None) == ("link" not in answer.headers)
        if page["next"]:
            assert answer.headers["link"] == f'<{page["next"]}>; rel="next"'
        place = page["next"]
    assert seen == whole
    queries = api().get("/v1/testsets/shop/queries?limit=1&text=wool").json()
    assert "text=wool" in queries["next"]


def test_queries_of_an_evaluation_come_worst_first(api: Api) -> None:
    path = f"/v1/evaluations/{api.bench.ids['old']}/queries"
    rows = api().get(path, params={"measure": "nDCG@10", "limit": 500}).json()["items"]
    values = [row["values"]["nDCG@10"] for row in rows]
    assert values == sorted(values)
    assert rows[0]["hits"][0]["rank"] == 1
    assert api().get(path, params={"measure": "nDCG@7"}).status_code == 404


@pytest.mark.parametrize("name", ["json", "csv", "text", pytest.param("markdown", marks=pytest.mark.slow)])
def test_reports_in_every_form(api: Api, name: str) -> None:
    one = api().get(f"/v1/evaluations/{api.bench.ids['old']}/report", params={"format": name})
    assert one.status_code == 200
    assert "nDCG@10" in one.text


def test_a_report_is_a_workbook(api: Api) -> None:
    one = api().get(f"/v1/evaluations/{api.bench.ids['old']}/report", params={"format": "xlsx"})
    assert one.headers["content-type"] == "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert openpyxl.load_workbook(BytesIO(one.content)).sheetnames[:2] == ["Report", "Measures"]


@pytest.mark.slow
def test_reports_of_a_comparison_and_as_pages(api: Api) -> None:
    two = api().get(f"/v1/comparisons/{api.bench.ids['comparison']}/report")
    assert two.headers["content-type"] == "text/html; charset=utf-8"
    assert two.headers["content-security-policy"].startswith("sandbox")
    assert "<html" in two.text


def test_the_rate_of_an_account_is_limited(api: Api) -> None:
    limits = LimitsConfig(requests_per_minute=60)
    api.bench.service.workbench = api.bench.service.workbench.model_copy(update={"limits": limits})
    clock = [0.0]
    api.bench.team.app.state.monotonic = lambda: clock[0]
    api.bench.team.app.state.rates = {}
    try:
        found = [api().get("/v1/jobs/1").status_code for _ in range(11)]
        last = api().get("/v1/jobs/1")
        assert (found, last.status_code, last.headers["retry-after"]) == ([200] * 10 + [429], 429, "2")
        clock[0] = 2.0
        assert api().get("/v1/jobs/1").status_code == 200
    finally:
        del api.bench.team.app.state.monotonic


def test_a_token_that_evaluates_changes_its_own_jobs_alone(api: Api) -> None:
    job = api().post("/v1/evaluate", json={"testset": "shop", "runs": [1]}, headers={"prefer": "respond-async"}).json()
    other = api("evaluate", "alex").post(f"/v1/jobs/{job['id']}/cancel")
    assert (other.status_code, other.json()["errors"][0]["code"]) == (403, "scope")
    assert api().post(f"/v1/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
    assert api().get(f"/v1/jobs/{job['id']}/result").status_code == 409
    retry = f"/v1/jobs/{job['id']}/retry"
    other = api("evaluate", "alex").post(retry)
    assert (other.status_code, other.json()["errors"][0]["code"]) == (403, "scope")
    assert api("manage", "alex").post(retry).json()["state"] == "queued"
    assert api().post(retry).json()["errors"][0]["code"] == "state"


def test_the_same_key_is_one_job(api: Api) -> None:
    sent = {"json": {"testset": "shop", "runs": [1]}, "headers": {"prefer": "wait=0", "idempotency-key": "k1"}}
    first, second = api().post("/v1/evaluate", **sent), api().post("/v1/evaluate", **sent)
    assert (first.status_code, first.json()["id"]) == (202, second.json()["id"])
    assert first.headers["location"] == f"/v1/jobs/{first.json()['id']}"
    sent["json"] = {"testset": "shop", "runs": [2]}
    assert api().post("/v1/evaluate", **sent).status_code == 409
    assert api("evaluate", "alex").post("/v1/evaluate", **sent).json()["id"] != first.json()["id"]


def test_the_same_key_and_the_same_file_is_one_job(api: Api) -> None:
    def send(run: bytes) -> Any:
        headers = {"prefer": "wait=0", "idempotency-key": "k2"}
        return api().post("/v1/evaluate", files={"runs": ("a.run", run)}, data={"testset": "shop"}, headers=headers)

    first, second = send(RUN), send(RUN)
    assert (first.status_code, first.json()["id"]) == (202, second.json().get("id")), second.text
    assert send(RUN.replace(b"d0", b"d9")).status_code == 409
    assert [each["name"] for each in api().get("/v1/runs").json()["items"]].count("a") == 2


def test_the_link_to_the_next_page_holds_any_name(api: Api) -> None:
    testsets = api.bench.service.testsets
    testsets.keep("日本語", testsets.load("shop"))
    first = api().get("/v1/testsets/日本語/queries", params={"limit": 1})
    following = first.links["next"]["url"]
    assert (first.status_code, following) == (200, first.json()["next"])
    assert api().get(following).json()["items"][0]["id"] == "q1"


def test_unknown_names_of_a_request_are_all_reported(api: Api) -> None:
    sent = {"testset": "nope", "runs": [99], "measures": ["nDGC@10"], "convention": "x"}
    errors = api().post("/v1/evaluate", json=sent).json()["errors"]
    assert {each["where"] for each in errors} == {"testset", "runs[0]", "measures", "convention"}


@pytest.mark.parametrize(
    ("method", "path", "given", "places"),
    [
        ("GET", "/v1/evaluations?limit=0&colour=red&since=x", {}, {"?limit", "?colour", "?since"}),
        ("GET", "/v1/testsets/shop/queries?limit=0&cursor=0", {}, {"?limit", "?cursor"}),
        ("GET", "/v1/jobs/0", {}, {"{job_id}"}),
        ("POST", "/v1/compare", {"json": {"baseline": 1, "candidate": 2, "test": "nope", "measure": "nope"}}, {"test", "measure"}),
        ("POST", "/v1/compare", {"json": {"baseline": 1, "candidate": 2, "test": "wilcoxon", "margin": 0.1}}, {"margin"}),
        ("POST", "/v1/compare", {"json": {"baseline": "1", "colour": 1}}, {"baseline", "candidate", "colour"}),
        ("POST", "/v1/compare", {"content": b"{", "headers": {"content-type": "application/json"}}, {"body"}),
        ("POST", "/v1/compare", {"json": {"baseline": 1, "candidate": 2}, "headers": {"prefer": "\x7f"}}, {"header prefer"}),
        ("POST", "/v1/evaluate", {"json": {"testset": "shop", "k": 0, "measures": ["AP", ""]}}, {"k", "measures[1]"}),
        ("POST", f"/v1/evaluate?components={'x' * 300}", {"json": {"testset": "shop"}}, {"?components"}),
        ("POST", "/v1/runs", {"files": {"file": ("a", RUN)}, "data": {"nmae": "x", "colour": "y"}}, {"nmae", "colour"}),
        ("POST", "/v1/books/shop/grades", {"json": {"grades": [{"query": "q0", "grade": "x"}]}}, {"grades[0].doc", "grades[0].grade"}),
    ],
)  # fmt: skip
def test_every_wrong_part_of_a_request_is_named_as_it_was_sent(
    api: Api, method: str, path: str, given: dict[str, Any], places: set[str]
) -> None:
    answer = api("manage").request(method, path, **given)
    assert answer.status_code == 422, answer.text
    assert {each["where"] for each in answer.json()["errors"]} == places


def test_files_are_downloaded_in_the_formats_that_are_written(api: Api) -> None:
    qrels = api("read").get("/v1/testsets/shop/file?format=qrels")
    assert qrels.text.startswith("q0 0 q0-d0 ")
    assert 'filename="shop.qrels"' in qrels.headers["content-disposition"]
    assert api("read").get("/v1/testsets/shop/file?format=beir").content[:2] == b"PK"
    assert api("read").get("/v1/runs/1/file?format=trec").text.splitlines()[0].split()[1] == "Q0"


@pytest.mark.parametrize(("charset", "status"), [("punycode", 400), ("unicode_escape", 422), ("none", 422)])
def test_a_form_in_another_character_set_is_refused(api: Api, charset: str, status: int) -> None:
    text = rb"\ud800" + b"." * 99
    body = b'--x\r\nContent-Disposition: form-data; name="testset"\r\n\r\n' + text + b"\r\n--x--\r\n"
    headers = {"content-type": f"multipart/form-data; boundary=x; charset={charset}"}
    assert api().post("/v1/evaluate", content=body, headers=headers).status_code == status


@pytest.mark.parametrize("format_name", ["beir", "qrels", "patterns"])
def test_no_message_names_a_temporary_folder(api: Api, format_name: str) -> None:
    content = "cranfield_testset: 1\nname: odd\nqueries: [{id: 'a b', text: x, judgments: {\"c\\td\": 1}}]"
    path = api.folder / "odd.yaml"
    path.write_text(content, encoding="utf-8")
    api.bench.service.testsets.keep("odd", read_stored(path))
    answer = api().get("/v1/testsets/odd/file", params={"format": format_name})
    assert answer.status_code == 422
    assert {each["where"].rpartition("/")[0] for each in answer.json()["errors"]} <= {"", "odd/qrels"}
    assert gettempdir() not in answer.text


def test_a_stream_of_a_job_ends_with_it(api: Api) -> None:
    job = api.bench.service.evaluations.get(api.bench.ids["old"]).job_id
    with api("read").stream("GET", f"/v1/jobs/{job}/events") as answer:
        lines = list(answer.iter_lines())
    assert "event: ended" in lines
    data = next(line for line in lines if line.startswith("data:"))
    assert json.loads(data[5:])["state"] == "done"
    assert api("read").get("/v1/jobs/999/events").status_code == 404


def test_books(api: Api) -> None:
    read, judge = api("read"), api("judge", "ann")
    assert {each["name"] for each in read.get("/v1/books").json()["items"]} == {"shop", "other"}
    coverage = read.get("/v1/books/shop/coverage").json()
    assert coverage["n_items"] == coverage["judged_lowest"] + coverage["judged_higher"] + coverage["unjudged"]
    item = read.get("/v1/books/shop/items?limit=1").json()["items"][0]
    grades = {"grades": [{"query": item["query"], "doc": item["doc"], "grade": 1}]}
    first = judge.post("/v1/books/shop/grades", json=grades).json()
    second = judge.post("/v1/books/shop/grades", json=grades).json()
    assert (first, second) == ({"n_saved": 1, "n_known": 0}, {"n_saved": 0, "n_known": 1})
    wrong = {
        "grades": [{"query": item["query"], "doc": "nope", "grade": 1}, {"query": "x", "doc": item["doc"], "grade": 7}]
    }
    assert len(judge.post("/v1/books/shop/grades", json=wrong).json()["errors"]) == 2
    assert judge.post("/v1/books/other/grades", json=grades).status_code == 404
    assert "not in it" not in read.get("/v1/books/shop/file?format=qrels").headers["cranfield-notes"]


def test_the_file_of_a_book_says_that_earlier_judgments_are_not_in_it(api: Api) -> None:
    pool = Pool(
        name="my set",
        method="depth",
        depth=1,
        testset="own",
        testset_digest="sha256:0",
        n_earlier=3,
        runs=(),
        queries=(PooledQuery(id="q1", text="wool socks"),),
        items=(PooledItem(query="q1", doc="a", judged=2),),
    )
    api.bench.team.store.books.create("my set", pool, BookSettings())
    sentence = (
        "not included: those of the 3 judgments of the test set 'own' that are not in the book; "
        "`cranfield book freeze 'my set' --onto SET --out FILE` writes the next version of that test set with both"
    )
    found = api("read").get("/v1/books/my%20set/file")
    assert yaml.safe_load(found.text)["meta"]["history"] == [sentence]
    for answer in (found, api("read").get("/v1/books/my%20set/file?format=qrels")):
        assert answer.headers["cranfield-notes"].startswith(sentence)


@pytest.mark.slow
@pytest.mark.parametrize("types", [TYPES * 2, ("one", "two", "three", "four")])
def test_an_uploaded_test_set_and_run_are_evaluated(api: Api, types: tuple[str, ...]) -> None:
    queries = [{**query, "query_type": kind} for query, kind in zip(SEED["queries"], types, strict=True)]
    files = [("testset", ("seed.json", json.dumps({"queries": queries}).encode())), ("runs", ("a.run", RUN))]
    sent = api().post("/v1/evaluate", files=files, data={"name": "seed"}, headers={"prefer": "respond-async"})
    assert sent.status_code == 202, sent.text
    api.work(sent.json()["id"])
    found = api().get(f"/v1/jobs/{sent.json()['id']}/result").json()
    # RR: 1, 1/2, 1, 1/2
    assert (found["metrics"]["recall_at_10"], found["metrics"]["mrr"]) == (1.0, 0.75)
    # 1 / log2(3) at rank 2
    assert found["metrics"]["ndcg_at_10"] == pytest.approx((1 + 0.6309297535714575) / 2)
    assert {kind: values["mrr"] for kind, values in found["per_query_type"].items()} == dict(
        zip(types, (1, 0.5, 1, 0.5), strict=True)
    )


@pytest.mark.slow
def test_the_client(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testset, run, other = tmp_path / "mine.json", tmp_path / "a.run", tmp_path / "b.run"
    testset.write_text(json.dumps(SEED))
    run.write_bytes(RUN)
    other.write_bytes(RUN.replace(b"q0 Q0 d0", b"q0 Q0 d8"))
    people = api.bench.team.store.people
    token = people.add_token(people.get("lee").id, "t", "evaluate", 10**9)
    with client_of(api, token) as client:
        job = client.submit(testset, runs=[run, other])
        api.work(job.id)
        first, second = client.evaluations_of(client.wait(job.id))
        assert (first.metrics["mrr"], second.metrics["mrr"]) == (0.75, 0.5)
        assert [each.state for each in client.progress(job.id)] == ["done"]
        compared = client._begin("/v1/compare", _compare(first.id, second.id))
        api.work(compared.id)
        assert client.wait(compared.id).state == "done"
        assert client.change(first.id, tags=["mine"]).tags == ["mine"]
        assert [each.id for each in client.evaluations(tag="mine")] == [first.id]
        assert next(row.id for row in client.queries(second.id, measure="nDCG@10")) == "q0"
        assert client.report(first.id, "csv").startswith("system,query,measure")
        with pytest.raises(NotFoundError):
            client.evaluation(999)
        with pytest.raises(RefusedError) as caught:
            client.submit("nope", runs=[99])
        assert [each.path for each in caught.value.problems] == ["testset", "runs[0]"]
        cancelled = client.cancel(client.submit("shop", runs=[1]).id)
        with pytest.raises(JobFailedError, match="was cancelled"):
            client.evaluations_of(cancelled)
    with client_of(api, "wrong") as client, pytest.raises(NotAuthorisedError):
        next(client.jobs())


def test_two_evaluations_are_put_side_by_side_without_judgments(api: Api) -> None:
    old, new = api.bench.ids["old"], api.bench.ids["new"]
    found = api("read").get("/v1/diff", params={"baseline": old, "candidate": new, "k": 3, "min_overlap": 1}).json()
    result = found["result"]
    lists = [
        {
            row["id"]: [hit["id"] for hit in row["hits"]][:3]
            for row in api("read").get(f"/v1/evaluations/{side}/queries", params={"limit": 500}).json()["items"]
        }
        for side in (old, new)
    ]
    shared = {query: len(set(lists[0][query]) & set(lists[1][query])) for query in lists[0]}
    assert {each["query"]: round(each["overlap"] * 3) for each in result["queries"]} == shared
    first = sum(lists[0][query][:1] != lists[1][query][:1] for query in lists[0])
    assert (result["first_changed"]["count"], result["first_changed"]["n"]) == (first, len(lists[0]))
    assert 0 < first < len(lists[0])
    assert (result["k"], result["bounds"][0]["holds"], found["of"]) == (3, False, "evaluations")
    assert [each["rbo"] for each in result["queries"]] == sorted(each["rbo"] for each in result["queries"])


def test_two_stored_runs_are_put_side_by_side_and_need_no_test_set(api: Api) -> None:
    ids = []
    for name, text in (("a", RUN), ("b", RUN.replace(b"d50 ", b"d99 "))):
        sent = api().post("/v1/runs", files={"file": (f"{name}.run", text)}, data={"name": name})
        ids.append(sent.json()["id"])
    with client_of(
        api, api.bench.team.store.people.add_token(api.bench.team.store.people.get("lee").id, "d", "read", 10**9)
    ) as client:
        found = client.diff(*ids, of="runs")
        assert [each["query"] for each in found.result["queries"] if each["first_difference"]] == ["q0"]
        assert found.result["queries"][0]["new"] == [{"doc": "d99", "rank": 2}]
        with pytest.raises(RefusedError, match="same"):
            client.diff(ids[0], ids[0], of="runs")
        with pytest.raises(NotFoundError):
            client.diff(1, 10**6)
    assert api("read").get("/v1/diff?baseline=1&candidate=2&persistence=1").status_code == 422


def _compare(baseline: int, candidate: int) -> Any:
    from cranfield.workbench.service.requests import CompareRequest

    return CompareRequest(baseline=baseline, candidate=candidate)


def client_of(api: Api, token: str) -> Client:
    """A client whose connection is the application in this process."""
    made = Client(ADDRESS, token=token)
    made._http.close()
    made._http = TestClient(api.bench.team.app, base_url=ADDRESS, headers={"authorization": f"Bearer {token}"})
    return made


def test_the_job_of_an_experiment_has_what_it_came_to(api: Api) -> None:
    jobs = api.bench.service.jobs
    number = jobs.add(BenefitRequest(schedule="quarterly"), Trigger.WATCH).id
    outcome = BenefitOutcome(
        file="benefit_v1.0.json",
        made_at="2026-11-23T12:00:00Z",
        unchanged=True,
        sentence="a <b> raised it.",
        void=[],
        caveats=[],
        verdicts={"difficulty=easy": "net cost"},
        failed_rules=["no stratum has the verdict net cost: easy"],
    )
    jobs.finish(jobs.claim("test", number), [outcome])
    assert api("read").get(f"/v1/jobs/{number}").json()["outcome"] == outcome.model_dump()
    assert api("read").get(f"/v1/jobs/{number}/result").json() == outcome.model_dump()
    page = api.bench.page(f"/jobs/{number}")
    assert "the experiment of the schedule quarterly" in page
    assert "a &lt;b&gt; raised it." in page
    assert "difficulty=easy: net cost" in page
    assert "gate failed</strong>: no stratum" in page
    assert "the experiment of the schedule quarterly" in api.bench.page("/jobs")

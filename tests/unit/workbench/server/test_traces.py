"""`/v1/traces`: spans by OTLP over HTTP, from the exporter of the OpenTelemetry SDK and as JSON."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import sys
import threading
import time

import pytest
import uvicorn
from google.protobuf.json_format import ParseDict
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from cranfield.base.errors import RunFormatError
from cranfield.books.database.engine import now_ms
from cranfield.formats.traces.spans import otlp_spans
from cranfield.workbench.config import Intake, TracesConfig, Workbench
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.service.intake import traces as receiving
from cranfield.workbench.service.intake.traces import TraceReceiver, is_sampled
from cranfield.workbench.service.metrics.scrape import Scraper
from cranfield.workbench.service.service import open_service

NOON = 1_795_435_200_000  # 2026-11-23 12:00 UTC
SECRET = "jane.roe@example.org"
PROTOBUF = "application/x-protobuf"


def span(number, text, ids=("d1", "d2"), *, trace=None, kind="RETRIEVER", name="search", **documents):
    """A span in the JSON of OTLP."""
    listed = "retrieval.documents" if kind == "RETRIEVER" else "reranker.output_documents"
    attributes = {"openinference.span.kind": kind, "input.value" if kind == "RETRIEVER" else "reranker.query": text}
    for rank, doc_id in enumerate(ids):
        attributes |= {f"{listed}.{rank}.document.id": doc_id} | {
            f"{listed}.{rank}.document.{key}": value for key, value in documents.items()
        }
    return {
        "traceId": f"{number if trace is None else trace:032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(NOON * 10**6),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


def request_of(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


@pytest.fixture
def service(team):
    """The service of the team, whose operator has chosen a book."""
    service = open_service(team.store, clock=lambda: NOON)
    service.workbench = Workbench(traces=TracesConfig(book="from production", depth=2, most_documents=5))
    team.app.state.service = service
    return service


@pytest.fixture
def send(team, service):
    """Send a body with a token of a scope."""

    def sent(body, scope="evaluate", **headers):
        raw = team.store.people.add_token(team.store.people.get("lee").id, "t", scope, 60_000)
        content = body if isinstance(body, bytes) else json.dumps(body)
        headers = {"authorization": f"Bearer {raw}", "content-type": "application/json", **headers}
        return team.new().post("/v1/traces", content=content, headers=headers)

    return sent


def test_queries_go_through_the_intake_and_documents_into_the_book(team, service, send, caplog):
    answer = send(
        request_of(
            span(1, f"order of {SECRET}", ("d1", "d2", "d3"), content="<script>alert(1)</script>"),
            span(2, "lost key", ("d4",), content="x" * 50_000),
            span(3, "lost key", ("d5", "d4"), trace=2, kind="RERANKER", name="rerank"),
            span(4, "", ("d1",)),
            {**span(5, "chat"), "attributes": []},
        )
    )
    assert (answer.status_code, answer.json()) == (200, {})
    stored = {found.text: found.n for found in service.queries.top("traces")}
    assert stored == {"lost key": 1, "order of <email>": 1}
    book = team.store.books.get("from production")
    items = team.store.reading.items(book.id)
    assert {(item.query.split("-")[0], item.doc) for item in items} == {
        ("order", "d1"), ("order", "d2"), ("lost", "d4"), ("lost", "d5"),
    }  # fmt: skip
    texts = {item.doc: item.fields.get("text", "") for item in items}
    assert (texts["d1"], len(texts["d4"])) == ("<script>alert(1)</script>", 20_000)
    assert SECRET not in str([answer.text, book, items, caplog.text])
    spans = team.browser("vic").get("/v1/traces").json()
    assert spans["spans"] == {
        "taken": 3, "other": 1, "not_sampled": 0, "repeated": 0, "no_query": 1, "dropped": 0,
    }  # fmt: skip
    assert spans["documents_added"] == 4


def test_the_book_has_no_more_documents_than_the_operator_allows_and_the_rest_is_counted(team, service, send):
    send(request_of(*(span(number, f"query {number}") for number in range(1, 5))))
    assert team.store.books.get("from production").n_items == 5
    assert service.traces.counts.documents_dropped == {"book_full": 3}
    team.store.books.close(team.store.books.get("from production").id)
    send(request_of(span(9, "another")))
    assert service.traces.counts.documents_dropped == {"book_full": 3, "book_closed": 2}
    send(request_of(span(10, "no id", ("",))))
    assert service.traces.counts.documents_dropped["no_id"] == 1


def test_a_span_that_is_sent_again_counts_once(service, send):
    body = request_of(span(1, "lost key"))
    assert [send(body).status_code for _ in range(2)] == [200, 200]
    assert [found.n for found in service.queries.top()] == [1]
    assert service.traces.counts.spans["repeated"] == 1


def test_what_cannot_be_kept_is_rejected_in_the_words_of_the_protocol(service, send):
    service.workbench = Workbench(intake=Intake(longest=20), traces=TracesConfig())
    body = request_of(span(1, "lost key"), span(2, "x" * 30), span(3, SECRET))
    assert send(body).json() == {
        "partialSuccess": {
            "rejectedSpans": "2",
            "errorMessage": "2 spans with queries that are too long, too old or only redacted",
        }
    }


@pytest.mark.parametrize("packed", [False, True])
def test_protocol_buffers_are_read_and_answered(service, send, packed):
    made = request_of(span(1, "lost key"), span(2, SECRET))
    for each in made["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId"):
            each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
    body = ParseDict(made, ExportTraceServiceRequest()).SerializeToString()
    headers = {"content-type": PROTOBUF, **({"content-encoding": "gzip"} if packed else {})}
    answer = send(gzip.compress(body, mtime=0) if packed else body, **headers)
    assert answer.headers["content-type"] == PROTOBUF
    found = ExportTraceServiceResponse.FromString(answer.content)
    assert found.partial_success.rejected_spans == 1
    assert [each.text for each in service.queries.top()] == ["lost key"]
    assert send(request_of(span(1, "lost key"))).json() == {}
    assert service.traces.counts.spans["repeated"] == 1  # the ids are the same in JSON


def test_without_the_package_the_answer_says_what_to_do(send, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    answer = send(b"\x0a", **{"content-type": PROTOBUF})
    assert answer.status_code == 415
    assert "traces" in answer.text
    assert "http/json" in answer.text


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"{}", {"content-encoding": "br"}, 415),
        (b"{}", {"content-encoding": "gzip"}, 400),
        (gzip.compress(b'{"resourceSpans": []}', mtime=0)[:-6], {"content-encoding": "gzip"}, 400),
        (gzip.compress(b" " * 17_000_000 + b"{}", mtime=0), {"content-encoding": "gzip"}, 413),
        (b"\xff\xff", {"content-type": PROTOBUF}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 3}, 4]}]}]}', {}, 200),
        (b'{"resourceSpans": 3}', {}, 200),
    ],
)
def test_what_is_no_request_is_refused(send, body, headers, status):
    assert send(body, **headers).status_code == status


@pytest.mark.parametrize(("scope", "status"), [("evaluate", 200), ("manage", 200), ("read", 403), ("judge", 403)])
def test_a_token_of_the_scope_evaluate_is_needed(send, scope, status):
    assert send(request_of(), scope).status_code == status


def test_a_page_of_another_site_and_a_caller_without_a_token_are_refused(team, send):
    assert send(request_of(), origin="https://evil.example", **{"sec-fetch-site": "cross-site"}).status_code == 403
    client = team.new()
    assert client.post("/v1/traces", json=request_of()).status_code == 401
    signed_in = team.browser("lee")
    assert signed_in.post("/v1/traces", json=request_of()).status_code == 403  # no CSRF token


def test_the_same_traces_are_sampled_whatever_the_order(service, send):
    service.workbench = Workbench(traces=TracesConfig(sample=0.3))
    ids = range(1, 201)
    expected = {f"query {number}" for number in ids if is_sampled(f"{number:032x}", 0.3)}
    send(request_of(*(span(number, f"query {number}") for number in reversed(ids))))
    assert {found.text for found in service.queries.top(limit=None)} == expected
    assert 40 < len(expected) < 80
    assert service.traces.counts.spans["not_sampled"] == 200 - len(expected)


def test_names_choose_the_spans(service, send):
    service.workbench = Workbench(traces=TracesConfig(names=["kb-*"]))
    send(request_of(span(1, "a", name="kb-search"), span(2, "b", name="web-search")))
    assert [found.text for found in service.queries.top()] == ["a"]


def test_no_more_than_some_requests_are_worked_on_at_a_time(service, send):
    for _ in range(receiving.AT_A_TIME):
        service.traces._slots.acquire()
    answer = send(request_of(span(1, "a")))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    service.traces._slots.release()
    assert send(request_of(span(1, "a"))).status_code == 200


def test_remembered_spans_are_bounded(service, monkeypatch):
    monkeypatch.setattr(receiving, "REMEMBERED", 3)
    receiver = TraceReceiver(service)
    receiver.take(otlp_spans(request_of(*(span(number, "a") for number in range(1, 10)))))
    assert len(receiver._known) == 3


def test_an_uploaded_file_of_traces_is_stored_as_a_run_with_redacted_texts(team, service, tmp_path):
    raw = team.store.people.add_token(team.store.people.get("lee").id, "t", "evaluate", 60_000)
    content = json.dumps(request_of(span(1, f"mail of {SECRET}"), span(2, "lost key"))).encode()
    answer = team.new().post(
        "/v1/runs", files={"file": ("traces.json", content)}, headers={"authorization": f"Bearer {raw}"}
    )
    assert answer.status_code in {200, 201}, answer.text
    run_id = answer.json()["id"]
    assert set(service.runs.load(run_id).answers) == {"mail of <email>", "lost key"}
    assert SECRET.encode() not in service.runs.stored(run_id)[1]
    (tmp_path / "traces.json").write_bytes(content)
    with pytest.raises(RunFormatError, match="it holds what users typed"):
        service.runs.add("traces", tmp_path / "traces.json")


@pytest.fixture
def server(team):
    """The address of a server on a socket, its service, and a token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = open_service(team.store, workbench=Workbench(traces=TracesConfig(book="live")), clock=now_ms)
    app = create_app(team.store, ServerOptions(port=port, accounts=True, secret=b"k" * 32), service=service)
    running = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    token = team.store.people.add_token(team.store.people.get("lee").id, "t", "evaluate", 10**9)
    yield f"http://127.0.0.1:{port}/v1/traces", service, token
    running.should_exit = True
    thread.join(10)


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_exporter_of_the_sdk_sends_its_spans(server, compression):
    address, service, token = server
    exporter = OTLPSpanExporter(address, headers={"Authorization": f"Bearer {token}"}, compression=compression)
    results = []
    export = exporter.export
    exporter.export = lambda spans: results.append(export(spans)) or results[-1]
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": f"mail of {SECRET}",
        "gen_ai.retrieval.documents": json.dumps([{"id": "d1", "score": 0.5}, {"id": "d2"}]),
    }
    with provider.get_tracer("app").start_as_current_span("retrieval", attributes=attributes):
        pass
    provider.shutdown()
    assert results == [SpanExportResult.SUCCESS]
    assert [found.text for found in service.queries.top()] == ["mail of <email>"]
    assert [item.doc for item in service.store.reading.items(service.store.books.get("live").id)] == ["d1", "d2"]
    lines = Scraper(service).exposition().text().decode()
    assert 'cranfield_trace_spans{fate="taken"} 1.0' in lines
    assert 'cranfield_trace_documents{fate="added"} 2.0' in lines

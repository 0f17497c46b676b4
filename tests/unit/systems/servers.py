"""Servers on 127.0.0.1 that tests start: search engines in miniature, and services that misbehave in one way each.

Every engine ranks with SQLite's FTS5 and answers in the form of the engine it stands for, so that its hits can be compared
with those of FTS5 asked directly.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import re
import socket
import sqlite3
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HANG_S = 60.0
DOCS = (
    ("d1", "Grid layout", "A grid places views in rows and columns."),
    ("d2", "Stacks", "A stack places views in a line; a lazy stack makes them as they appear."),
    ("d3", "Layout protocol", "Write a layout of your own: measure the views, then place them in a grid or a line."),
    ("d4", "Colours", "Colours adapt to light and dark, and to the contrast people ask for."),
    ("d5", "Lists", "Rows of a list are views too; a list is lazy."),
)
QUERIES = ("grid layout", "lazy list", "places views", "colours", "zebra", 'quote " and (bracket)')


@dataclass(frozen=True)
class Engine:
    """A full-text index in a file: FTS5 with titles at twice the weight."""

    path: Path

    @classmethod
    def at(cls, path: Path, docs: Sequence[tuple[str, str, str]] = DOCS) -> Engine:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body)")
            connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", docs)
        return cls(path)

    def ranked(self, query: str, k: int) -> list[tuple[str, float, str]]:
        """Id, score and title of the best k: any word counts, ties by id."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        with closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute(
                "SELECT id, -bm25(docs, 1, 2, 1), title FROM docs WHERE docs MATCH ? ORDER BY 2 DESC, 1 LIMIT ?",
                (words, k),
            )
            return rows.fetchall()


@dataclass(frozen=True)
class Received:
    """A request as it came in; names of headers in lower case."""

    method: str
    path: str
    """As on the wire: percent-encoded, with the query string."""
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Sent:
    """What is answered."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None
    """Written in place of all else, before the connection is closed."""
    hangs: bool = False
    """Nothing is answered until the server ends."""


Answerer = Callable[[Received], Sent]


def json_reply(value: object, status: int = 200, **headers: str) -> Sent:
    return Sent(status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode())


class Service:
    """A running server: its address, what it was asked, and how many connections were made."""

    def __init__(self, answer: Answerer, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Received] = []
        self.n_connections = 0
        self.asked = threading.Event()
        self.ending = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # the head and the body are two writes

            def setup(self) -> None:
                super().setup()
                service.n_connections += 1

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.command, self.path, headers, self.rfile.read(length))
                service.requests.append(received)
                service.asked.set()
                sent = answer(received)
                if sent.hangs:
                    service.ending.wait(HANG_S)
                    self.close_connection = True
                elif sent.raw is not None:
                    self.wfile.write(sent.raw)
                    self.close_connection = True
                else:
                    self.send_response(sent.status)
                    for name, value in {"Content-Length": str(len(sent.body)), **sent.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    with suppress(OSError):  # who asked may have gone
                        self.wfile.write(sent.body)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def script(*replies: Sent) -> Answerer:
    """The replies in turn; the last for all requests after it."""
    left = list(replies)

    def answer(_: Received) -> Sent:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def lucene_tree(score: float) -> dict[str, object]:
    """An explanation as Lucene writes it, of one term."""
    name = "weight(title:grid in 0) [PerFieldSimilarity], result of:"
    inner = {"value": 4.4, "description": "boost", "details": []}
    return {"value": score, "description": name, "details": [inner]}


def elasticsearch(engine: Engine) -> Answerer:
    """`POST /{index}/_search` of Elasticsearch and OpenSearch."""

    def answer(received: Received) -> Sent:
        asked = received.json()
        query = asked["query"]
        match = query["bool"]["must"][0]["multi_match"] if "bool" in query else query["multi_match"]
        hits = []
        for doc_id, score, title in engine.ranked(match["query"], asked["size"]):
            hit = {"_index": "docs", "_id": doc_id, "_score": score}
            if asked["_source"]:
                hit["_source"] = {"key": doc_id, "title": title}
            if asked.get("explain"):
                hit["_explanation"] = lucene_tree(score)
            hits.append(hit)
        total = {"value": len(hits), "relation": "eq"}
        top = max((hit["_score"] for hit in hits), default=None)
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        hits_part = {"total": total, "max_score": top, "hits": hits}
        return json_reply({"took": 1, "timed_out": False, "_shards": shards, "hits": hits_part})

    return answer


def solr(engine: Engine) -> Answerer:
    """`POST /solr/{collection}/select` of Solr."""

    def answer(received: Received) -> Sent:
        asked = received.json()
        rows = engine.ranked(asked["query"], asked["limit"])
        docs = [{"id": doc_id, "score": score, "title": title} for doc_id, score, title in rows]
        tree = "[explain style=nl]" in asked["fields"]
        docs = [
            {name: doc[name] for name in asked["fields"] if not name.startswith("[")}
            | ({"[explain]": {"match": True, **lucene_tree(doc["score"])}} if tree else {})
            for doc in docs
        ]
        response = {"numFound": len(docs), "start": 0, "maxScore": 1.0, "numFoundExact": True, "docs": docs}
        return json_reply({"responseHeader": {"status": 0, "QTime": 1}, "response": response})

    return answer


def vespa(engine: Engine) -> Answerer:
    """`POST /search/` of Vespa; a result without hits has no `children`."""

    def answer(received: Received) -> Sent:
        asked = received.json()
        assert "userInput(@text)" in asked["yql"]
        children = [
            {
                "id": f"id:docs:doc::{doc_id}",
                "relevance": score,
                "fields": {
                    "key": doc_id,
                    "title": title,
                    "matchfeatures": {"bm25(title)": score, "vespa.summaryFeatures.cached": 0.0},
                },
            }
            for doc_id, score, title in engine.ranked(asked["text"], asked["hits"])
        ]
        coverage = {"coverage": 100, "documents": 5, "full": True, "nodes": 1, "results": 1, "resultsFull": 1}
        root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(children)}, "coverage": coverage}
        return json_reply({"root": {**root, **({"children": children} if children else {})}})

    return answer


def qdrant(engine: Engine) -> Answerer:
    """`POST /collections/{collection}/points/query` of Qdrant; a point's id is a number."""

    def answer(received: Received) -> Sent:
        asked = received.json()
        points = [
            {"id": int(doc_id[1:]), "version": 0, "score": score, "payload": {"key": doc_id, "title": title}}
            for doc_id, score, title in engine.ranked(asked["query"]["nearest"]["text"], asked["limit"])
        ]
        return json_reply({"result": {"points": points}, "status": "ok", "time": 0.001})

    return answer


def certificate(folder: Path, name: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context for a certificate made now, and the file of it for who is to trust it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cranfield test")])
    now = dt.datetime.now(dt.UTC)
    try:
        shown: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        shown = x509.DNSName(name)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([shown]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "server.pem", folder / "server.key"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, key_file)
    return context, cert_file


class Http2Service:
    """A server that speaks HTTP/2 over TLS and nothing else: it answers each request with one JSON value."""

    def __init__(self, context: ssl.SSLContext, value: object) -> None:
        self.paths: list[str] = []
        self.n_connections = 0
        self._body = json.dumps(value).encode()
        context.set_alpn_protocols(["h2"])
        self._tasks: set[asyncio.Task[None]] = set()
        # The loop runs in a thread from the start: this thread may have one of its own, as where a browser is open.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import RequestReceived, StreamEnded

        self.n_connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        try:
            while True:
                writer.write(connection.data_to_send())
                await writer.drain()
                data = await reader.read(65536)
                if not data:
                    break
                for event in connection.receive_data(data):
                    if isinstance(event, RequestReceived):
                        self.paths.append(dict(event.headers)[":path"])
                    elif isinstance(event, StreamEnded):
                        headers = [(":status", "200"), ("content-type", "application/json")]
                        connection.send_headers(event.stream_id, headers)
                        connection.send_data(event.stream_id, self._body, end_stream=True)
        finally:
            self._tasks.discard(task)
            writer.close()

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def refused_port() -> int:
    """A port that nobody listens on."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])

"""HTTP answers with random changes, sent by a real server to the real client: each is an outcome, and never of another.

`python tests/fuzz/http_bodies.py` checks 20,000; see runner.py for more. What Python's own `http.client`, `gzip` and `zlib`
make of the same bytes is the reference: an answer that they cannot read to its end is not answered. After each one comes an
answer as it should be, which must be read as such.
"""

from __future__ import annotations

import asyncio
import atexit
import gzip
import http.client
import io
import json
import os
import random
import sys
import tempfile
import threading
import zlib
from functools import cache
from typing import Any

from mutate import mutate_bytes, mutate_tree
from runner import main

from cranfield.base.concurrency.loop import event_loop
from cranfield.config import system_config
from cranfield.model import Outcome, Query
from cranfield.systems.calls.extract import Extractor
from cranfield.systems.kinds.http import HttpSystem

IDLE_S = 0.01
"""A connection without a request for that long is closed: a client that waits for more sees its end."""
EXTRACTS: tuple[Any, ...] = (
    {"json": "hits", "id": "id", "score": "score", "fields": {"all": "@"}},
    {"json": "@.hits", "id": "id"},
    {"jsonl": "hits", "id": "id"},
    {"regex": r"d\d+"},
)
ENCODINGS = ("", "", "gzip", "deflate", "identity", "gzip, gzip", "br", "GZIP", "x-gzip", "deflate, gzip")
TYPES = (
    "application/json",
    "text/plain; charset=latin-1",
    "text/plain; charset=utf-16",
    'x/y; charset="UTF-8"',
    "",
    "x; charset=rot13",
)
STATUSES = ("200 OK",) * 9 + ("204 No Content", "206 Partial Content", "302 Found", "503 Unavailable", "100 Continue")
CLEAN = json.dumps({"hits": [{"id": "d1", "score": 1}]}).encode()
CLOSED = ("the connection was closed before an answer", "no connection could be made")
"""The server closed the connection as it was used again."""


class Server:
    """Answers every request with `reply`, byte for byte."""

    def __init__(self) -> None:
        self.reply, self.closes = b"", False
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self.serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, self.loop).result(10)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                async with asyncio.timeout(IDLE_S):
                    await reader.readuntil(b"\r\n\r\n")
                writer.write(self.reply)
                await writer.drain()
                if self.closes:
                    break
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@cache
def started() -> tuple[Server, list[HttpSystem]]:
    """The server, and a system for each way to read an answer."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            del os.environ[name]
    server = Server()
    systems = []
    event_loop()  # ends after the systems
    for extract in EXTRACTS:
        written = {"http": {"url": server.url, "parameters": {"q": "{query}"}}, "retries": 0, "timeout_s": 20}
        config = system_config("sut", {**written, "extract": extract})
        systems.append(HttpSystem("sut", config, tempfile.gettempdir()))
        atexit.register(systems[-1].close)
    return server, systems


def answered(body: bytes, status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    written = {"Content-Length": str(len(body) if length is None else length), **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in written.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + body


def make(draw: random.Random) -> tuple[int, bytes, bool]:
    """A way to read it, an answer, and whether the connection is closed after it."""
    hits = [{"id": f"d{draw.randrange(1000)}", "score": draw.random()} for _ in range(draw.choice((0, 1, 3, 3, 50)))]
    value: Any = {"hits": hits, "took": 3}
    if not draw.randrange(4):
        value = mutate_tree(draw, value, ("hits", "id", "error", "fields"))
    body = json.dumps(value, ensure_ascii=bool(draw.randrange(2))).encode("utf-8", "surrogatepass")
    if not draw.randrange(3):
        body = mutate_bytes(draw, body)
    encoding, status = draw.choice(ENCODINGS), draw.choice(STATUSES)
    if draw.randrange(8):  # else: it is not encoded as it says
        for name in encoding.lower().split(", "):
            body = _encode(draw, name, body)
    if not draw.randrange(3):
        body = mutate_bytes(draw, body)
    length = draw.choice((None, None, None, None, len(body) + 1, max(0, len(body) - 1), len(body) // 2, 0, 10**18))
    reply = answered(body, status, length, Content_Encoding=encoding, Content_Type=draw.choice(TYPES))
    if not draw.randrange(4):
        reply = reply.replace(b"Content-Length", b"X", 1).replace(
            b"\r\n\r\n" + body, b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        reply += _chunked(draw, body)
    if not draw.randrange(4):
        reply = mutate_bytes(draw, reply, [answered(CLEAN)])
    if not draw.randrange(8):
        reply += draw.choice((b"\r\n", b"\0", reply, answered(CLEAN), answered(CLEAN)[:30]))
    return draw.randrange(len(EXTRACTS)), reply, bool(draw.randrange(2))


def _encode(draw: random.Random, name: str, body: bytes) -> bytes:
    cut = draw.randrange(len(body) + 1)
    if name == "gzip" and not draw.randrange(3):
        return gzip.compress(body[:cut], mtime=0) + gzip.compress(body[cut:], mtime=0)
    if name == "gzip":
        return gzip.compress(body, mtime=0)
    if name == "deflate" and draw.randrange(2):
        return zlib.compress(body)
    if name == "deflate":
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return packer.compress(body) + packer.flush()
    return body


def _chunked(draw: random.Random, body: bytes) -> bytes:
    cut = draw.randrange(len(body) + 1)
    parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:cut], body[cut:]) if part]
    return b"".join(parts) + draw.choice(
        (b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b"")
    )


def reference(reply: bytes) -> str | None:
    """The text of an answer that is whole, as Python's own libraries read it; None if it is none."""

    class Socket:
        def makefile(self, _: str) -> io.BytesIO:
            return io.BytesIO(reply)

    try:
        response = http.client.HTTPResponse(Socket())  # type: ignore[arg-type]
        response.begin()
        body = response.read()
        if not 200 <= response.status < 300 or response.status == 206:
            return None
        for name in reversed((", ".join(response.headers.get_all("Content-Encoding") or [])).lower().split(",")):
            if name.strip() not in {"", "identity"}:
                body = gzip.decompress(body) if name.strip() == "gzip" else _inflated(body)
        return body.decode(response.headers.get_content_charset() or "utf-8")
    except (http.client.HTTPException, OSError, EOFError, ValueError, LookupError, zlib.error):
        return None


def _inflated(body: bytes) -> bytes:
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        unpacker = zlib.decompressobj(bits)
        try:
            whole = unpacker.decompress(body)
        except zlib.error:
            continue
        if not unpacker.eof or unpacker.unused_data:
            raise EOFError
        return whole
    raise EOFError


def check(given: tuple[int, bytes, bool]) -> str | None:
    """What is wrong with the outcome of an answer, or of the one after it."""
    number, reply, closes = given
    server, systems = started()
    system = systems[number]
    server.reply, server.closes = reply, closes
    answer, _ = system.search(Query("q1", "a"), 10)
    if answer.outcome not in set(Outcome) or (answer.outcome.is_failure and not answer.reason):
        return f"no outcome: {answer}"
    if answer.outcome in {Outcome.ANSWERED, Outcome.EMPTY}:
        text = reference(reply)
        if text is None:
            return f"answered, and it is not whole: {answer}"
        if (expected := Extractor(system.config).read(text, 10)) != answer:
            return f"answered {answer}, and not {expected}"
    server.reply, server.closes = answered(CLEAN), False
    for _ in range(20):
        answer, _ = system.search(Query("q2", "b"), 10)
        if answer.reason not in CLOSED:
            break
    if [hit.id for hit in answer.hits] != ["d1"]:
        return f"the answer after it: {answer}"
    return None


if __name__ == "__main__":
    sys.exit(main(make, check, inputs=20_000))

"""An answer is whole, or it is none: bodies cut off, damaged, doubled or mixed up, over HTTP/1.1 and HTTP/2."""

import gzip
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hpack import Encoder

from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES
from cranfield.model import Outcome, Query
from cranfield.systems.kinds.http import BodyError, decode_body

BODY = b'{"hits": [{"id": "d1"}, {"id": "d2"}]}'
LINES = b"d1\nd2\nd3\n"
OK = b"HTTP/1.1 200 OK\r\n"
RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)
DEFLATED = RAW.compress(BODY) + RAW.flush()


class RawServer:
    """Writes the given bytes for each request, and keeps the connection open unless it `closes`."""

    def __init__(self, reply: Callable[[int], bytes], *, closes: bool = False, context: ssl.SSLContext | None = None):
        self.reply, self.closes, self.context = reply, closes, context
        self.n_connections = self.n_requests = 0
        self.greeting = b""
        """Written as soon as a connection is made."""
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.listening.getsockname()[1]}"
        self.open: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.open.append(connection)
                self.n_connections += 1
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
                self.open.append(connection)
            connection.sendall(self.greeting)
            received = bytearray()
            while data := connection.recv(65536):
                received += data
                for number in self.requests(received):
                    self.n_requests += 1
                    connection.sendall(self.reply(number))
                    if self.closes:
                        connection.shutdown(socket.SHUT_RDWR)

    def requests(self, received: bytearray) -> Iterator[int]:
        """The number of each request of HTTP/1.1, which is taken away."""
        while (end := received.find(b"\r\n\r\n")) >= 0:
            del received[: end + 4]
            yield self.n_requests

    def close(self) -> None:
        for one in [self.listening, *self.open]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Http2Frames(RawServer):
    """Writes frames for each request of HTTP/2, given the number of its stream."""

    def requests(self, received: bytearray) -> Iterator[int]:
        if received.startswith(b"PRI"):
            del received[:24]
        while len(received) >= 9 and len(received) >= (end := 9 + int.from_bytes(received[:3])):
            kind, stream = received[3], int.from_bytes(received[5:9])
            del received[:end]
            if kind == 1:
                yield stream


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def head(stream: int, **headers: str) -> bytes:
    pairs = [(":status", "200"), *((name.replace("_", "-"), value) for name, value in headers.items())]
    return frame(1, 4, stream, Encoder().encode(pairs))


@pytest.fixture
def raw(serve) -> Iterator[Callable[..., RawServer]]:
    """Start a server that writes bytes; closed with the test. (`serve` clears the proxies of the environment.)"""
    started: list[RawServer] = []

    def start(reply: bytes | Callable[[int], bytes], kind: type[RawServer] = RawServer, **options) -> RawServer:
        started.append(kind(reply if callable(reply) else lambda _: reply, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


def ask(system):
    answer, _ = system.search(Query("q1", "grid"), 10)
    return answer.outcome, [hit.id for hit in answer.hits], answer.reason


def answered(body: bytes, **headers: str | int) -> bytes:
    written = {"Content-Length": len(body), **{name.replace("_", "-"): value for name, value in headers.items()}}
    return OK + "".join(f"{name}: {value}\r\n" for name, value in written.items()).encode() + b"\r\n" + body


def zipped(data: bytes) -> bytes:
    """Without the time of packing: parameters of tests are the same in every process."""
    return gzip.compress(data, 1, mtime=0)


NO_END = "the answer is cut off: its {} encoding has no end"


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (zipped(BODY)[:-1], "gzip", NO_END.format("gzip")),
        (zipped(BODY)[:-8], "gzip", NO_END.format("gzip")),  # all of the text, and no checksum
        (zipped(BODY)[:4], "gzip", NO_END.format("gzip")),
        (b"", "gzip", NO_END.format("gzip")),
        (zipped(BODY)[:-8] + b"\0" * 8, "gzip", "the answer cannot be decoded as gzip, its declared encoding"),
        (zipped(BODY) + b"more", "gzip", "4 bytes follow the end of the answer's gzip encoding"),
        (zipped(BODY) + zipped(b" ")[:-1], "gzip", NO_END.format("gzip")),
        (zipped(b"") * 400, "gzip", "the answer's gzip encoding has over 300 parts"),
        (zlib.compress(BODY)[:-1], "deflate", NO_END.format("deflate")),
        (zlib.compress(BODY) + b"more", "deflate", "4 bytes follow the end of the answer's deflate encoding"),
        (DEFLATED[:-1], "deflate", NO_END.format("deflate")),
        (DEFLATED + b"more", "deflate", "4 bytes follow the end of the answer's deflate encoding"),
        (BODY, "gzip, gzip, gzip, gzip", "the answer has over 3 content encodings, one on top of the other"),
        (zipped(b" " * (MAX_OUTPUT_BYTES + 1)), "gzip", "over 16 MB of output"),
        (zipped(b" " * MAX_OUTPUT_BYTES) * 2, "gzip", "over 16 MB of output"),
    ],
)  # fmt: skip
def test_a_compressed_body_that_is_not_whole_is_no_body(body, encoding, reason):
    with pytest.raises(BodyError) as refused:
        decode_body(body, encoding)
    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (zipped(BODY[:9]) + zipped(BODY[9:]), "gzip"),
        (zipped(zipped(BODY)), "gzip, identity, GZIP"),
        (zlib.compress(zipped(BODY)), "gzip, deflate"),
        (zlib.compress(BODY), "deflate"),
        (DEFLATED, "deflate"),
        (BODY, ""),
    ],
)
def test_a_compressed_body_that_is_whole_is_read_to_its_end(body, encoding):
    assert decode_body(body, encoding) == BODY


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (answered(zipped(LINES)[:-8], Content_Encoding="gzip"), Outcome.UNPARSABLE, NO_END.format("gzip")),
        (answered(LINES[:4], Content_Length=9), Outcome.ERROR, "the connection broke in the middle of the answer"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nd1\n\r\n", Outcome.ERROR,
         "the connection broke in the middle of the answer"),
        (answered(LINES[:6], Content_Length=3), Outcome.UNPARSABLE, "3 bytes follow the end of the answer"),
        (answered(LINES, Content_Length=3) , Outcome.UNPARSABLE, "6 bytes follow the end of the answer"),
        (answered(LINES).replace(b"200 OK", b"206 Partial Content"), Outcome.ERROR, "HTTP 206 Partial Content"),
        (answered(LINES).replace(b"200 OK", b"204 No Content"), Outcome.UNPARSABLE,
         "9 bytes follow the end of the answer"),
        (answered(LINES, Content_Length="9\r\nContent-Length: 3"), Outcome.ERROR, "the answer is not valid HTTP"),
    ],
    ids=["gzip", "length", "chunks", "more", "much more", "part", "nothing", "two lengths"],
)  # fmt: skip
def test_a_body_with_missing_bytes_is_never_an_answer(raw, http_system, reply, outcome, reason):
    system = http_system(raw(reply, closes=True).url, extract={"regex": r"d\d"}, retries=0)
    assert ask(system) == (outcome, [], reason)


def test_bytes_after_an_answer_are_never_the_next_answer(raw, http_system):
    other = answered(b'{"hits": [{"id": "of another"}]}')
    replies = [answered(BODY), answered(BODY) + other, answered(BODY), answered(BODY) + b"\r\n", answered(BODY)]
    server = raw(lambda number: replies[number])
    system = http_system(server.url)
    found = [ask(system) for _ in replies]
    assert [ids for _, ids, _ in found] == [["d1", "d2"], [], ["d1", "d2"], ["d1", "d2"], ["d1", "d2"]]
    assert found[1][2] == f"{len(other)} bytes follow the end of the answer"
    assert server.n_connections == 3  # one more after each answer with something behind it


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"hits": [{"id": "d1"}], "hits": []}', "the output has the key 'hits' twice in one object"),
        (b'{"hits": [{"id": "d1", "id": "d2"}]}', "the output has the key 'id' twice in one object"),
        (b'{"hits": [NaN]}', "the output cannot be parsed as JSON"),
        (BODY + BODY, "the output is not JSON (line 1, column 39)"),
        (BODY + b"\0", "the output is not JSON (line 1, column 39)"),
    ],
)
def test_json_that_can_be_read_in_two_ways_is_not_read(raw, http_system, body, reason):
    assert ask(http_system(raw(answered(body)).url)) == (Outcome.UNPARSABLE, [], reason)


def test_a_line_of_json_with_a_key_twice_is_not_read(raw, http_system):
    system = http_system(raw(answered(b'{"id": 1}\n{"id": 1, "id": 2}')).url, extract={"jsonl": True, "id": "id"})
    assert ask(system) == (Outcome.UNPARSABLE, [], "line 2 of the output has the key 'id' twice in one object")


@pytest.fixture(scope="module")
def http2_context(servers, tmp_path_factory):
    context, file = servers.certificate(tmp_path_factory.mktemp("http2"))
    context.set_alpn_protocols(["h2"])
    return context, file


@pytest.fixture
def http2(raw, http_system, http2_context):
    """A system, and a server that answers it with frames."""
    context, file = http2_context

    def start(reply, **config):
        server = raw(reply, Http2Frames, context=context)
        server.greeting = frame(4, 0, 0) + frame(4, 1, 0)
        return http_system(server.url, http={"http2": True, "ca": str(file)}, **{"retries": 0, **config}), server

    return start


BROKE = "HTTP/2: the service violated the protocol ({})"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda n: frame(3, 0, n, struct.pack(">I", 2)), "HTTP/2: the service reset the request (INTERNAL_ERROR)"),
        (lambda n: head(n) + frame(0, 0, n, BODY) + frame(3, 0, n, struct.pack(">I", 0)),
         "HTTP/2: the service reset the request (NO_ERROR)"),
        (lambda n: frame(3, 0, n, struct.pack(">I", 13)),
         "HTTP/2: the service reset the request (HTTP_1_1_REQUIRED); set `http2: false`"),
        (lambda _: frame(7, 0, 0, struct.pack(">II", 0, 11)),
         "HTTP/2: the service ended the connection (ENHANCE_YOUR_CALM)"),
        (lambda n: head(n, content_length="99") + frame(0, 1, n, BODY),
         "HTTP/2: the answer is longer or shorter than its Content-Length"),
        (lambda n: frame(1, 4, n, b"\xff" * 6), BROKE.format("PROTOCOL_ERROR")),
        (lambda n: frame(0, 1, n, BODY), BROKE.format("PROTOCOL_ERROR")),
        (lambda n: frame(0, 0, n, b"x" * 20_000), BROKE.format("FRAME_SIZE_ERROR")),
        (lambda n: frame(1, 4, n, Encoder().encode([(":status", "soon")])), "the answer is not valid HTTP"),
    ],
    ids=["reset", "reset late", "http/1.1", "goaway", "length", "hpack", "order", "size", "status"],
)  # fmt: skip
def test_a_failure_of_http2_says_what_happened_and_the_next_call_has_a_connection(http2, reply, reason):
    system, server = http2(
        lambda stream: reply(stream) if server.n_requests == 1 else head(stream) + frame(0, 1, stream, BODY)
    )
    assert ask(system) == (Outcome.ERROR, [], reason)
    assert ask(system) == (Outcome.ANSWERED, ["d1", "d2"], None)
    assert server.n_connections == 2


def test_a_silent_connection_of_http2_is_not_used_again(http2):
    system, server = http2(lambda n: head(n) + frame(0, 1, n, BODY) if server.n_connections > 1 else b"", timeout_s=0.2)
    assert ask(system)[0] is Outcome.TIMEOUT
    system.config = system.config.model_copy(update={"timeout_s": 30.0})
    assert ask(system)[0] is Outcome.ANSWERED

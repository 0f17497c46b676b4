"""Texts and images from web servers: which addresses are requested, and what a hostile server can do."""

import base64
import gzip
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.config.documents import UrlSource
from cranfield.judging.documents import web
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.documents.values import DocumentError, Wanted
from cranfield.judging.documents.web import AddressGuard, UrlReader, document_url
from cranfield.systems.kinds.http import decode_text
from cranfield.workbench.config import Workbench

NAMES = {
    "public.test": ["93.184.216.34"],
    "private.test": ["10.0.0.1"],
    "mixed.test": ["93.184.216.34", "169.254.169.254"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "six.test": ["2606:2800:220:1:248:1893:25c8:1946"],
    "odd.test": ["not an address"],
    "local.test": ["127.0.0.1"],
    "localhost": ["127.0.0.1"],
    "nat64.test": ["64:ff9b::a9fe:a9fe"],
    "zone.test": ["fe80::1%lo"],
}


def resolve(host, port):
    if host not in NAMES:
        raise OSError("unknown")
    return NAMES[host]


PRIVATE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[::127.0.0.1]", "[2001:0:7f00:1::]", "[fec0::1]",
    "[fe80::1%25eth0]", "[0:0:0:0:0:ffff:0a00:0001]", "[64:ff9b:1::1]", "2130706433", "0x7f000001", "0177.0.0.1",
    "017700000001", "127.1", "0x7f.1", "127.0.0.1.", "0", "0x0", "127.0.1", "localhost", "LOCALHOST",
    "private.test", "mixed.test", "mapped.test", "local.test", "private.test:8080", "192.0.0.192", "192.88.99.1",
    "168.63.129.16", "[3fff::1]", "[::ffff:0:7f00:1]", "[2001:db8::1]", "nat64.test", "zone.test", "127.0.0.1%00",
    "[::1%25lo]", "[v1.fe80::a]", "169.254.169.254.", "0xA9.0xFE.0xA9.0xFE", "127.0.0.1:22",
    "1\u30022\u30023\u30024", "\u2460\u2461\u2466.0.0.1", "127\uff0e0.0.1", "loc\u00adalhost",
]  # fmt: skip


def test_a_private_address_is_refused():
    for address in [f"{scheme}://{host}/x" for host in PRIVATE for scheme in ("http", "https")]:
        with pytest.raises(DocumentError) as caught:
            pytest.fail(f"{address}: {AddressGuard(resolver=resolve).checked(address)}")
        assert caught.value.problem.kind.value in {"refused", "failed"}
        assert "10.0.0.1" not in caught.value.problem.message


def test_an_address_that_is_none_of_http_is_refused():
    urls = [
        "ftp://public.test/",
        "file:///etc/passwd",
        "gopher://public.test/",
        "//public.test/",
        "public.test",
        "http://",
        "http://user@public.test/",
        "http://user:pw@public.test/",
        "http://public.test@127.0.0.1/",
        "http://@public.test/",
        "http://127.0.0.1#@public.test/",
        "http://127.0.0.1\\@public.test/",
        "http://public.test\\@127.0.0.1/",
        "http://public.test:0/",
        "http://public.test:99999/",
        "http://public.test:x/",
        "http://[::1/",
        "http://[x]/",
        "http://public.test/ x",
        "http://public.test/\r\nHost: x",
        "http://pub\tlic.test/",
        "jar:http://public.test!/",
        "http:///x",
        "http://?x",
        "http://.test/",
        "http://public..\0test/",
        "http://-x/",
        "http://odd.test/",
        "",
    ]
    for url in urls:
        with pytest.raises(DocumentError):
            pytest.fail(f"{url}: {AddressGuard(resolver=resolve).checked(url)}")


@given(st.text(":/@#?[]\\.%0x127localhost", max_size=30))
def test_no_spelling_of_an_address_reaches_a_private_one(text):
    try:
        _, _, address = AddressGuard(resolver=resolve).checked("http://" + text)
    except DocumentError:
        return
    assert address == "93.184.216.34" or not address.startswith(("127.", "0.", "10."))


def test_a_public_address_is_resolved_once():
    calls = []

    def counting(host, port):
        calls.append((host, port))
        return ["93.184.216.34"]

    assert AddressGuard(resolver=counting).checked("https://Public.test/x") == ("public.test", 443, "93.184.216.34")
    assert AddressGuard(resolver=counting).checked("http://93.184.216.34:8080/") == (
        "93.184.216.34",
        8080,
        "93.184.216.34",
    )
    assert calls == [("public.test", 443)]


def test_what_the_operator_allows():
    for allow, url, is_allowed in [
        ("10.0.0.0/8", "http://private.test/", True),
        ("10.0.0.0/8", "http://10.9.9.9/", True),
        ("10.0.0.0/8", "http://mixed.test/", False),
        ("127.0.0.1", "http://[::ffff:127.0.0.1]/", True),
        ("private.test", "http://private.test/", True),
        ("private.test", "http://sub.private.test/", False),
        ("private.test", "http://10.0.0.1/", False),
        ("*.test", "http://private.test/", True),
        ("*.test", "http://test/", False),
        ("*.test", "http://eviltest/", False),
        ("::1", "http://[::1]/", True),
    ]:
        guard = AddressGuard([allow], resolve)
        if is_allowed:
            guard.checked(url)
        else:
            with pytest.raises(DocumentError):
                pytest.fail(f"{allow} {url}: {guard.checked(url)}")


def test_the_address_of_a_document():
    for pattern, doc_id, url in [
        ("https://x.test/{id}", "a/b?c#d&e", "https://x.test/a%2Fb%3Fc%23d%26e"),
        ("https://x.test/{+id}", "a/b?c", "https://x.test/a/b%3Fc"),
        ("https://x.test/?q={id}", "a&b=c é", "https://x.test/?q=a%26b%3Dc%20%C3%A9"),
        ("https://x.test/{id}", "%2e%2e", "https://x.test/%252e%252e"),
        ("https://x.test/{id}", "@127.0.0.1:80", "https://x.test/%40127.0.0.1%3A80"),
        ("https://x.test/docs/{id}", "..", None),
        ("https://x.test/docs/{+id}", "../admin", None),
        ("https://x.test/docs/{+id}", "a/./b", None),
        ("https://x.test/{+id}", "/evil.test", "https://x.test//evil.test"),
    ]:
        if url is None:
            with pytest.raises(DocumentError):
                pytest.fail(document_url(pattern, {"id": doc_id}))
        else:
            assert document_url(pattern, {"id": doc_id}) == url


# A server on this machine

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, status=200, kind="text/plain", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers)))
        name = self.path.strip("/")
        port = self.server.server_port
        replies = {
            "plain": lambda: self.reply(b"plain text"),
            "html": lambda: self.reply(
                "<title>T &amp; U</title><p>é</p><script>x</script>".encode("latin-1"),
                kind="text/html; charset=latin-1",
            ),
            "pdf": lambda: self.reply(b"%PDF", kind="application/pdf"),
            "large": lambda: self.reply(b"x" * 5000),
            "bomb": lambda: self.reply(gzip.compress(b"x" * 500_000), Content_Encoding="gzip"),
            "double-bomb": lambda: self.reply(
                gzip.compress(gzip.compress(b"\0" * 20_000_000)), Content_Encoding="gzip, gzip"
            ),
            "zip": lambda: self.reply(gzip.compress(b"packed"), Content_Encoding="gzip"),
            "deflate": lambda: self.reply(zlib.compress(b"x"), Content_Encoding="br"),
            "error": lambda: self.reply(b"secret of the server", status=500),
            "gone": lambda: self.reply(b"", status=410),
            "to-plain": lambda: self.reply(b"", status=302, Location="/plain"),
            "to-metadata": lambda: self.reply(b"", status=302, Location="http://169.254.169.254/latest/meta-data"),
            "to-private": lambda: self.reply(b"", status=307, Location=f"http://private.test:{port}/plain"),
            "to-local": lambda: self.reply(b"", status=301, Location=f"http://[::1]:{port}/plain"),
            "to-file": lambda: self.reply(b"", status=302, Location="file:///etc/passwd"),
            "to-user": lambda: self.reply(b"", status=302, Location=f"http://a:b@127.0.0.1:{port}/plain"),
            "to-odd": lambda: self.reply(b"", status=302, Location="http://["),
            "loop": lambda: self.reply(b"", status=302, Location="/loop"),
            "cookie": lambda: self.reply(b"", status=302, Location="/plain", Set_Cookie="session=1"),
            "slow": lambda: (self.send_response(200), self.end_headers(), self.drip()),
            "cut": lambda: (
                self.send_response(200),
                self.send_header("Content-Length", "99"),
                self.end_headers(),
                self.close(),
            ),
            "png": lambda: self.reply(PNG, kind="text/html"),
            "svg": lambda: self.reply(b"<svg xmlns='http://www.w3.org/2000/svg'/>", kind="image/png"),
        }
        replies.get(name, lambda: self.reply(b"", status=404))()

    def drip(self):
        while not self.server.ending.wait(0.02):
            try:
                self.wfile.write(b"x")
            except OSError:
                break
        self.close_connection = True

    def close(self):
        self.close_connection = True


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.seen, server.ending = [], threading.Event()
    thread = threading.Thread(target=lambda: server.serve_forever(0.01))
    thread.start()
    yield server
    server.ending.set()
    server.shutdown()
    thread.join()
    server.server_close()


def texts_of(server, allow=("127.0.0.1",), host="local.test", **settings):
    source = UrlSource(url=f"http://{host}:{server.server_port}/{{id}}", allow=list(allow), max_bytes=2000, **settings)
    return DocumentTexts(Workbench(documents=[source]), resolver=resolve)


def test_a_page_of_a_server(server):
    document = texts_of(server).get("html")
    assert (document.title, document.text, document.format) == ("T & U", "é", "html")
    assert document.url == f"http://local.test:{server.server_port}/html"
    path, headers = server.seen[-1]
    assert path == "/html"
    assert headers["Host"] == f"local.test:{server.server_port}"
    assert not {"Cookie", "Authorization", "Referer"} & set(headers)


def test_what_a_server_may_answer(server):
    for doc_id, kind in [
        ("plain", None),
        ("zip", None),
        ("to-plain", None),
        ("cookie", None),
        ("none", "not_found"),
        ("gone", "not_found"),
        ("error", "failed"),
        ("pdf", "failed"),
        ("deflate", "failed"),
        ("large", "too_large"),
        ("bomb", "too_large"),
        ("double-bomb", "failed"),
        ("cut", "failed"),
        ("slow", "timed_out"),
        ("to-metadata", "refused"),
        ("to-private", "refused"),
        ("to-local", "refused"),
        ("to-file", "refused"),
        ("to-user", "refused"),
        ("to-odd", "failed"),
        ("loop", "failed"),
        ("..", "refused"),
    ]:
        document = texts_of(server, timeout_s=0.2 if doc_id == "slow" else 10.0).get(doc_id)
        assert (doc_id, document.problem and document.problem.kind.value) == (doc_id, kind)
        assert "secret" not in str(document)
    assert not any("Cookie" in headers for _, headers in server.seen)


def test_without_the_operator_no_private_server_is_requested(server):
    before = len(server.seen)
    for host in ("local.test", "127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
        assert texts_of(server, allow=(), host=host).get("plain").problem.kind.value == "refused"
    assert len(server.seen) == before


def test_a_name_that_resolves_to_another_address_later_is_not_resolved_again(server):
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    source = UrlSource(url=f"http://rebind.test:{server.server_port}/{{id}}", allow=["127.0.0.1"])
    reader = UrlReader(source, lambda *_: next(answers))
    assert reader.read(Wanted("plain", {"id": "plain"}, {})).text == "plain text"
    assert next(answers) == ["10.0.0.1"]


def test_a_server_that_is_not_there():
    source = UrlSource(url="http://127.0.0.1:1/{id}", allow=["127.0.0.1"])
    problem = DocumentTexts(Workbench(documents=[source])).get("x").problem
    assert (problem.kind.value, problem.message) == ("failed", "The web server of this document cannot be reached.")


def test_the_charset_of_a_page():
    for content_type, data, text in [
        ("text/html", "é".encode(), "é"),
        ("text/html", "<meta charset=iso-8859-2>ő".encode("iso-8859-2"), "ő"),
        ("text/html", "<meta content='text/html; charset=windows-1251'>Ж".encode("windows-1251"), "Ж"),
        ("text/html", "\u201ca\u201d".encode("windows-1252"), "\u201ca\u201d"),
        ("text/html; charset=latin-1", "é".encode("latin-1"), "é"),
    ]:
        assert decode_text(data, web.with_charset(content_type, data)).endswith(text)


# Images


def image_of(reference, **images):
    return DocumentTexts(Workbench.model_validate({"images": images}), resolver=resolve).image(
        "d", {"text": "t", "image": reference}
    )


def data_url(data, kind="image/png"):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def test_an_image_in_a_record():
    image = image_of(data_url(PNG, "text/html"))
    assert (image.data, image.content_type, image.problem) == (PNG, "image/png", None)


def test_an_image_of_a_host_that_the_operator_names(server):
    address = f"http://local.test:{server.server_port}"
    image = image_of(f"{address}/png", hosts=["*.test"], allow=["127.0.0.1"])
    assert (image.data, image.content_type) == (PNG, "image/png")
    assert image_of(f"{address}/svg", hosts=["*.test"], allow=["127.0.0.1"]).problem.kind.value == "refused"
    assert image_of(f"{address}/png", hosts=["cdn.test"], allow=["127.0.0.1"]).problem.kind.value == "refused"
    assert image_of(f"{address}/png", hosts=["*.test"]).problem.kind.value == "refused"
    assert image_of(f"{address}/png").problem.kind.value == "refused"


def test_what_is_no_image():
    for reference, kind in [
        ("data:image/png,raw", "refused"),
        ("data:image/png;base64,%%%", "failed"),
        ("data:image/png;base64," + "A" * 6_000_000, "too_large"),
        (data_url(b"<svg/>", "image/svg+xml"), "refused"),
        ("javascript:alert(1)", "refused"),
        ("/etc/passwd", "refused"),
        ("file:///etc/passwd", "refused"),
        ("", "no_source"),
    ]:
        assert image_of(reference).problem.kind.value == kind


@pytest.mark.slow
def test_a_certificate_must_be_that_of_the_name(tmp_path, monkeypatch):
    """The connection goes to the checked address, and the certificate is checked for the name."""
    import httpx2

    spec = spec_from_file_location("document_test_servers", Path(__file__).parents[1] / "systems" / "servers.py")
    servers = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, servers)
    spec.loader.exec_module(servers)
    context, file = servers.certificate(tmp_path, "local.test")
    trusting = httpx2.create_ssl_context()
    trusting.load_verify_locations(file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.ending = [], threading.Event()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=lambda: server.serve_forever(0.01))
    thread.start()
    try:
        kinds = []
        for host, certificates in (("local.test", trusting), ("localhost", trusting), ("local.test", None)):
            monkeypatch.setattr(web, "trusted_certificates", lambda certificates=certificates: certificates or True)
            source = UrlSource(url=f"https://{host}:{server.server_port}/{{id}}", allow=["127.0.0.1"])
            document = DocumentTexts(Workbench(documents=[source]), resolver=resolve).get("plain")
            kinds.append(document.problem and document.problem.kind.value)
        assert kinds == [None, "failed", "failed"]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

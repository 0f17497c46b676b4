"""HTTP services as systems, asked over real connections to servers on 127.0.0.1."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import threading
import time
from email.utils import formatdate
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.concurrency.retry import retry_after_s
from cranfield.base.errors import PreflightError
from cranfield.config.services import Http
from cranfield.model import Outcome, Query
from cranfield.systems.calls.deaths import MAX_UNREACHED
from cranfield.systems.calls.redact import Redactor, spellings
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.http import HttpSystem, build_request, charset_of
from cranfield.systems.system import CallInterruptedError

MB = 1024 * 1024


def ids(answer):
    return [hit.id for hit in answer.hits]


@pytest.fixture
def hit(servers):
    """A reply with one hit, d1."""
    return servers.json_reply({"hits": [{"id": "d1"}]})


def ask(system, text="grid", k=10, **params):
    return system.search(Query("q1", text, params=params), k)


# What is sent


def test_a_request_is_filled_in_part_by_part(serve, servers, http_system, hit):
    service = serve(servers.script(hit))
    http = {
        "method": "PUT",
        "headers": {"X-Query": "{query}", "X-Lang": "{params.lang}", "X-Gone": "{params.gone}"},
        "parameters": {"q": "{query}", "size": "{k}", "tag": ["a", "{params.lang}", "{params.gone}"], "no": None},
        "json": {"q": "say {query}", "size": "{k}", "deep": [{"lang": "{params.lang}"}], "gone": "{params.gone}"},
    }
    answer, log = ask(http_system(service.url + "/idx/{params.lang}", http=http), 'a "b" & c', 7, lang="sw ift")
    assert ids(answer) == ["d1"], answer
    assert log.attempts == 1
    (sent,) = service.requests
    assert (sent.method, sent.path) == (
        "PUT",
        "/idx/sw%20ift?q=a%20%22b%22%20%26%20c&size=7&tag=a&tag=sw%20ift",
    )
    assert sent.json() == {"q": 'say a "b" & c', "size": 7, "deep": [{"lang": "sw ift"}]}
    assert (sent.headers["x-query"], sent.headers["x-lang"]) == ('a "b" & c', "sw ift")
    assert "x-gone" not in sent.headers
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["accept-encoding"] == "gzip, deflate"
    assert sent.headers["user-agent"].startswith("cranfield/")


@pytest.mark.parametrize(
    ("body", "method", "content_type", "sent"),
    [
        ({}, "GET", None, b""),
        ({"form": {"q": "{query}", "k": "{k}", "f": ["a", "b"]}}, "POST", "application/x-www-form-urlencoded",
         b"q=caf%C3%A9%20%26%20%2B1&k=10&f=a&f=b"),
        ({"text": "find {query} first {k}, {not this}"}, "POST", "text/plain; charset=utf-8",
         "find café & +1 first 10, {not this}".encode()),
        ({"json": "{query}"}, "POST", "application/json", '"café & +1"'.encode()),
        ({"json": {"q": "{query}"}, "headers": {"content-type": "application/x+json"}}, "POST", "application/x+json",
         '{"q": "café & +1"}'.encode()),
    ],
    ids=["none", "form", "text", "json", "json of another name"],
)  # fmt: skip
def test_a_body_takes_a_form_of_its_own(serve, servers, http_system, hit, body, method, content_type, sent):
    service = serve(servers.script(hit))
    assert ids(ask(http_system(service.url, http=body), "café & +1")[0]) == ["d1"]
    (received,) = service.requests
    assert (received.method, received.headers.get("content-type"), received.body) == (method, content_type, sent)


@pytest.mark.parametrize(
    ("query", "on_the_wire"),
    [
        ("..", "/find/%2E%2E/end"),
        (".", "/find/%2E/end"),
        ("a/../b?c#d", "/find/a%2F..%2Fb%3Fc%23d/end"),
        ("{k}", "/find/%7Bk%7D/end"),
        ("50%25", "/find/50%2525/end"),
        ("\r\nX: y", "/find/%0D%0AX%3A%20y/end"),
        ("\U0001f600", "/find/%F0%9F%98%80/end"),
    ],
)
def test_a_query_stays_in_its_step_of_the_path(serve, servers, http_system, hit, query, on_the_wire):
    service = serve(servers.script(hit))
    system = http_system(service.url + "/find/{query}/end", http={"parameters": {}})
    assert ids(ask(system, query)[0]) == ["d1"]
    assert [received.path for received in service.requests] == [on_the_wire]


@pytest.mark.parametrize(
    ("http", "query", "reason"),
    [
        ({"headers": {"X-Q": "{query}"}}, "a\r\nEvil: yes", "header X-Q would contain a line break"),
        ({"text": "{query} {params.lang}"}, "a", "the body needs params.lang, which is missing"),
        ({"json": "{params.lang}"}, "a", "the body needs a parameter that is missing"),
        ({}, "a\ud800", "it contains a character that is not allowed in a request"),
        ({"json": {"boost": float("inf")}}, "a", "its body contains a number that JSON cannot represent"),
    ],
)
def test_what_cannot_be_sent_fails_without_a_request(serve, servers, hit, tmp_path, http_system, http, query, reason):
    service = serve(servers.script(hit))
    answer, log = ask(http_system(service.url, http=http), query)
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, f"no request was made: {reason}")
    assert (log.attempts, service.requests) == (1, [])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_query_is_what_the_service_reads_wherever_it_stands(query):
    http = Http.model_validate(
        {
            "url": "http://x.test/a/{query}/b?q={query}",
            "parameters": {"p": "{query}", "{query}": "name"},
            "json": {"whole": "{query}", "part": ["<{query}>"]},
        }
    )
    request = build_request(http, {"query": query, "k": 10})
    parts = urlsplit(request.url)
    steps = parts.path.split("/")
    assert (len(steps), unquote(steps[2]), parts.fragment) == (4, query, "")
    assert parse_qsl(parts.query, keep_blank_values=True) == [("q", query), ("p", query), ("{query}", "name")]
    assert json.loads(request.body) == {"whole": query, "part": [f"<{query}>"]}
    form = build_request(Http.model_validate({"url": "http://x.test", "form": {"f": "{query}"}}), {"query": query})
    assert parse_qsl(form.body.decode("ascii"), keep_blank_values=True) == [("f", query)]


def test_connections_are_kept_and_cookies_are_not(serve, servers, http_system):
    service = serve(servers.script(servers.json_reply({"hits": []}, **{"Set-Cookie": "session=1; Path=/"})))
    system = http_system(service.url)
    for _ in range(5):
        assert ask(system)[0].outcome is Outcome.EMPTY
    assert (len(service.requests), service.n_connections) == (5, 1)
    assert not any("cookie" in received.headers for received in service.requests)
    system.close()
    assert ask(system)[0].outcome is Outcome.EMPTY, "asked again after it was closed"
    assert service.n_connections == 2


def test_several_calls_are_under_way_at_a_time(serve, servers, http_system, hit):
    together = threading.Barrier(4)

    def answer(_):
        together.wait(30)  # breaks, and with it the call, unless four come together
        return hit

    service = serve(answer)
    system = http_system(service.url, concurrency=4)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(system)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert [ids(one) for one in answers] == [["d1"]] * 4


def test_http2_is_spoken_where_it_is_offered(servers, serve, http_system, tmp_path):
    context, file = servers.certificate(tmp_path)
    service = servers.Http2Service(context, {"hits": [{"id": "over-h2"}]})
    try:
        system = http_system(service.url + "/s", http={"ca": file.name}, concurrency=4)
        for _ in range(3):
            assert ids(ask(system, "a b")[0]) == ["over-h2"]
        assert (service.paths, service.n_connections) == (["/s?q=a%20b"] * 3, 1)
        old = http_system(service.url, http={"ca": file.name, "http2": False}, retries=0)
        assert ask(old)[0].outcome is Outcome.ERROR, "the server speaks nothing else"
        system.close()
        old.close()
    finally:
        service.close()


# What comes back


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_refused_request_is_an_error_and_is_not_tried_again(serve, servers, http_system, status):
    service = serve(servers.script(servers.json_reply({"error": "index_not_found"}, status)))
    answer, log = ask(http_system(service.url))
    assert answer.outcome is Outcome.ERROR
    assert answer.reason.startswith(f"HTTP {status} ")
    assert (log.attempts, len(service.requests), log.stdout_head) == (1, 1, '{"error": "index_not_found"}')


def test_too_many_requests_are_waited_for_and_tried_again(serve, servers, http_system, hit):
    busy = servers.Sent(429, {"Retry-After": "0"})
    service = serve(servers.script(busy, hit))
    answer, log = ask(http_system(service.url, backoff_s=30))  # it would wait 15 s and more, but for Retry-After
    assert (ids(answer), log.attempts, len(service.requests)) == (["d1"], 2, 2)


def test_a_service_that_stays_down_is_given_up_on(serve, servers, http_system):
    service = serve(servers.script(servers.Sent(503)))
    answer, log = ask(http_system(service.url, retries=2))
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "HTTP 503 Service Unavailable (tried 3 times)")
    assert (log.attempts, len(service.requests)) == (3, 3)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
def test_errors_of_the_service_may_pass(serve, servers, http_system, hit, status):
    service = serve(servers.script(servers.Sent(status, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), hit))
    answer, log = ask(http_system(service.url, backoff_s=30))
    assert (ids(answer), log.attempts) == (["d1"], 2)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("0", "", 0.0),
        (" 7 ", "", 7.0),
        ("Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:00 GMT", 30.0),  # by the service's own clock
        ("Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:30 GMT", 0.0),  # over already
        ("Wed, 21 Oct 2015 07:28:00 GMT", "", 0.0),
        ("", "", None),
        ("soon", "", None),
        ("-5", "", None),
        ("1.5", "", None),
        ("\u0665", "", None),  # a digit, but no ASCII
        ("Wed, 99 Oct 2015 07:28:00 GMT", "", None),
    ],
)
def test_a_service_says_how_long_to_wait_in_seconds_or_by_a_date(value, date, seconds):
    assert retry_after_s(value, date) == seconds


def test_a_date_without_the_service_s_clock_is_reckoned_by_ours():
    wait = retry_after_s(formatdate(time.time() + 1000, usegmt=True))
    assert 900 < wait <= 1000


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "the connection was closed before an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "the connection broke in the middle of the answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "the connection broke in the middle of the answer"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "the answer is not valid HTTP"),
    ],
    ids=["nothing", "short", "chunk", "ssh"],
)  # fmt: skip
def test_a_broken_connection_is_tried_again(serve, servers, http_system, hit, raw, reason):
    service = serve(servers.script(servers.Sent(raw=raw), hit))
    answer, log = ask(http_system(service.url))
    assert (ids(answer), log.attempts) == (["d1"], 2)
    always = serve(servers.script(servers.Sent(raw=raw)))
    answer, log = ask(http_system(always.url, retries=1))
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, f"{reason} (tried 2 times)")


def test_what_came_before_the_connection_broke_is_in_the_log(serve, servers, http_system):
    raw = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"hits": ['
    answer, log = ask(http_system(serve(servers.script(servers.Sent(raw=raw))).url, retries=0))
    assert (answer.hits, log.stdout_head) == ((), '{"hits": [')


def test_a_refused_connection_and_an_unknown_host_have_reasons_without_an_address(servers, serve, http_system):
    refused, log = ask(http_system(f"http://127.0.0.1:{servers.refused_port()}", retries=1))
    assert (refused.outcome, refused.reason) == (Outcome.ERROR, "the connection was refused (tried 2 times)")
    assert log.attempts == 2
    unknown, _ = ask(http_system("http://no-such-host.invalid", retries=0))
    assert (unknown.outcome, unknown.reason) == (Outcome.ERROR, "the host name cannot be resolved")


PORTS = [f"http://127.0.0.1:{port}" for port in ("65536", "-1", "abc", "9" * 20)]


@pytest.mark.parametrize("address", ["localhost:9200", "http://[::1", "http://x\u2488.com", *PORTS])
def test_an_address_of_the_environment_that_is_none_is_not_asked(http_system, address):
    answer, log = ask(http_system("{env.URL}/find", env={"URL": address}))
    assert (answer.outcome, log.attempts) == (Outcome.ERROR, 1)
    assert answer.reason == "no request was made: its address or a header cannot be sent"


def test_an_untrusted_certificate_is_an_error_that_no_retry_mends(servers, serve, http_system, tmp_path, hit):
    context, file = servers.certificate(tmp_path)
    service = serve(servers.script(hit), context)
    answer, log = ask(http_system(service.url))
    assert answer.reason == "TLS: the certificate is not trusted: it is self-signed"
    assert (answer.outcome, log.attempts, service.requests) == (Outcome.ERROR, 1, [])
    assert ids(ask(http_system(service.url, http={"ca": file.name}))[0]) == ["d1"]


def test_a_certificate_for_another_host_is_refused(servers, serve, http_system, tmp_path, hit):
    context, file = servers.certificate(tmp_path, "elsewhere.test")
    answer, _ = ask(http_system(serve(servers.script(hit), context).url, http={"ca": file.name}))
    assert answer.reason == "TLS: the certificate is not trusted: it is for another host"


def test_tls_with_a_server_that_speaks_plain_http_fails(servers, serve, http_system, hit):
    service = serve(servers.script(hit))
    answer, _ = ask(http_system(service.url.replace("http:", "https:"), retries=0))
    assert answer.reason == "TLS: no secure connection could be negotiated"


def test_redirects_are_not_followed_and_say_where_they_lead(servers, serve, http_system, hit):
    target = serve(servers.script(hit))
    away = servers.Sent(302, {"Location": target.url + "/login?next=hunter2-token"})
    service = serve(servers.script(away))
    system = http_system(service.url, http={"headers": {"Authorization": "Bearer {env.TOKEN}"}},
                         env={"TOKEN": "hunter2-token"})  # fmt: skip
    answer, log = ask(system)
    assert answer.outcome is Outcome.ERROR
    assert answer.reason == f"HTTP 302 Found, to '{target.url}/login?next=${{TOKEN}}'; redirects are not followed"
    assert (log.attempts, target.requests) == (1, [])


@pytest.mark.parametrize(
    ("headers", "body", "outcome", "reason"),
    [
        ({}, b"<html>sorry</html>", Outcome.UNPARSABLE, "the output is not JSON (line 1, column 1)"),
        ({}, b"", Outcome.UNPARSABLE, "the output is blank, not JSON"),
        ({}, b'{"hits": 3}', Outcome.UNPARSABLE, "extract.json gave a number, not a list"),
        ({}, b'{"hits": [{"id": "caf\xe9"}]}', Outcome.UNPARSABLE, "the answer is not text in utf-8"),
        ({"Content-Type": "text/x; charset=klingon"}, b"{}", Outcome.UNPARSABLE,
         "the charset of the answer is unknown: 'klingon'"),
        ({"Content-Type": "text/x; charset=punycode"}, b"{}", Outcome.UNPARSABLE,
         "the charset of the answer is unknown: 'punycode'"),
        ({"Content-Type": "text/x; charset=base64"}, b"{}", Outcome.UNPARSABLE,
         "the charset of the answer is unknown: 'base64'"),
        ({"Content-Encoding": "gzip"}, b"no gzip", Outcome.UNPARSABLE,
         "the answer cannot be decoded as gzip, its declared encoding"),
        ({"Content-Encoding": "br"}, b"\x8b\x02", Outcome.UNPARSABLE, "the answer has a content encoding that was not requested: 'br'"),
        ({}, b'{"hits": ["' + b"x" * 16 * MB + b'"]}', Outcome.UNPARSABLE, "over 16 MB of output"),
    ],
    ids=["html", "blank", "shape", "latin", "klingon", "punycode", "base64", "gzip", "br", "huge"],
)  # fmt: skip
def test_rubbish_is_told_apart(serve, servers, http_system, headers, body, outcome, reason):
    service = serve(servers.script(servers.Sent(200, headers, body)))
    answer, log = ask(http_system(service.url))
    assert (answer.outcome, answer.reason, answer.hits, log.attempts) == (outcome, reason, (), 1)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Type": "application/json; charset=ISO-8859-1"}, '{"hits": [{"id": "café"}]}'.encode("latin-1")),
        ({"Content-Type": 'application/json; charset="UTF-16"'}, '{"hits": [{"id": "café"}]}'.encode("utf-16")),
        ({"Content-Type": "application/json"}, '\ufeff{"hits": [{"id": "café"}]}'.encode()),
        ({"Content-Encoding": "gzip"}, gzip.compress('{"hits": [{"id": "café"}]}'.encode())),
    ],
    ids=["latin-1", "utf-16", "bom", "gzip"],
)
def test_text_in_other_charsets_and_encodings_is_read(serve, servers, http_system, headers, body):
    answer, _ = ask(http_system(serve(servers.script(servers.Sent(200, headers, body))).url))
    assert ids(answer) == ["café"], answer


def test_a_small_body_that_unpacks_to_a_huge_one_is_stopped(serve, servers, http_system):
    bomb = gzip.compress(b" " * 64 * MB, 1)
    assert len(bomb) < 4 * MB
    service = serve(servers.script(servers.Sent(200, {"Content-Encoding": "gzip"}, bomb)))
    answer, _ = ask(http_system(service.url, timeout_s=60))
    assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "over 16 MB of output")


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        ("", "utf-8"),
        ("application/json", "utf-8"),
        ("text/html; Charset = 'Windows-1252' ; x=y", "windows-1252"),
        ("text/html; charset=", "utf-8"),
    ],
)
def test_a_charset_is_the_one_named_or_utf_8(content_type, charset):
    assert charset_of(content_type) == charset


# Time


def test_an_answer_that_does_not_come_is_a_timeout_and_is_not_tried_again(serve, servers, http_system):
    service = serve(servers.script(servers.Sent(hangs=True)))
    answer, log = ask(http_system(service.url, timeout_s=0.3))
    assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, "no answer in 0.3 s")
    assert (log.attempts, len(service.requests)) == (1, 1)


def test_the_time_is_for_the_whole_answer_not_for_each_piece_of_it(servers, serve, http_system, tmp_path):
    def drip(_):
        return servers.Sent(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    # A chunk every 50 ms: no single wait is long, all of them are.
    service = serve(drip)
    original = service._server.RequestHandlerClass.answer

    def slowly(handler):
        original(handler)
        try:
            while not service.ending.wait(0.05):
                handler.wfile.write(b"1\r\n \r\n")
        except OSError:
            pass

    for method in ("do_GET", "do_POST"):
        setattr(service._server.RequestHandlerClass, method, slowly)
    answer, _ = ask(http_system(service.url, timeout_s=0.5))
    assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, "no answer in 0.5 s")


def test_interrupting_ends_a_request_under_way(serve, servers, http_system, hit):
    service = serve(servers.script(servers.Sent(hangs=True), hit))
    system = http_system(service.url, timeout_s=60)
    caught = []

    def call():
        try:
            ask(system)
        except CallInterruptedError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert service.asked.wait(20)
    system.interrupt()
    thread.join(20)
    assert (thread.is_alive(), len(caught), service.ending.is_set()) == (False, 1, False)
    assert ids(ask(system)[0]) == ["d1"], "no later call is touched"


def test_interrupting_ends_the_wait_for_a_retry(serve, servers, http_system):
    service = serve(servers.script(servers.Sent(503, {"Retry-After": "50"})))
    system = http_system(service.url)
    caught = []

    def call():
        try:
            ask(system)
        except CallInterruptedError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert service.asked.wait(20)
    time.sleep(0.2)  # the answer comes and the wait begins; interrupted before, it ends all the same
    system.interrupt()
    thread.join(20)
    assert (thread.is_alive(), len(caught), len(service.requests)) == (False, 1, 1)


# Secrets


def test_what_opens_a_door_comes_from_the_environment(serve, servers, http_system, hit, monkeypatch):
    monkeypatch.setenv("SEARCH_USER", "ada")
    monkeypatch.setenv("SEARCH_PASSWORD", "pa:ss wörd")
    service = serve(servers.script(hit))
    monkeypatch.setenv("SEARCH_URL", service.url + "/")
    http = {"basic": "{env.SEARCH_USER}:{env.SEARCH_PASSWORD}", "headers": {"X-Key": "k-{env.KEY}"}}
    system = http_system("{env.SEARCH_URL}/find/{env.KEY}", http=http, env={"KEY": "from/config"})
    assert ids(ask(system)[0]) == ["d1"]
    (sent,) = service.requests
    assert base64.b64decode(sent.headers["authorization"].removeprefix("Basic ")).decode() == "ada:pa:ss wörd"
    assert (sent.headers["x-key"], sent.path) == ("k-from/config", "/find/from%2Fconfig?q=grid")


def test_no_secret_is_seen_however_it_is_spelled(serve, servers, http_system, monkeypatch):
    secret = 'hunter2/"<é>+= x'
    monkeypatch.setenv("SEARCH_USER", "ada.lovelace")
    monkeypatch.setenv("SEARCH_PASSWORD", secret)
    said = []

    def echo(received):
        said.append(received)
        authorization = received.headers["authorization"].partition(" ")[2]
        lines = [authorization, *spellings(secret), base64.b64decode(authorization).decode(), received.path]
        return servers.Sent(500, {"Retry-After": "0", "Location": "/" + received.path}, "\n".join(lines).encode())

    service = serve(echo)
    http = {
        "basic": "{env.SEARCH_USER}:{env.SEARCH_PASSWORD}",
        "parameters": {"q": "{query}", "key": "{env.SEARCH_PASSWORD}"},
        "json": {"key": "{env.SEARCH_PASSWORD}", "q": "{query}"},
    }
    system = http_system(service.url, http=http, retries=1)
    shown = system.ask(Query("q1", "grid"), 10, is_shown=True)
    text = f"{shown.request}\n{shown.output}\n{shown.stderr}\n{shown.answer.reason}\n{shown.log.stdout_head}"
    assert len(said) == 2
    pair = base64.b64encode(f"ada.lovelace:{secret}".encode()).decode()
    assert [spelling for spelling in (*spellings(secret), pair, "ada.lovelace", "hunter2") if spelling in text] == []
    assert "Authorization: Basic ${BASIC}" in shown.request
    assert "key=${SEARCH_PASSWORD}" in shown.request
    assert json.dumps({"key": "${SEARCH_PASSWORD}", "q": "grid"}) in shown.request


def test_a_secret_is_in_no_log_of_the_library(serve, servers, http_system, hit, monkeypatch, caplog):
    monkeypatch.setenv("KEY", "hunter2-token")
    caplog.set_level(logging.INFO)
    service = serve(servers.script(hit))
    assert ids(ask(http_system(service.url, http={"parameters": {"q": "{query}", "key": "{env.KEY}"}}))[0]) == ["d1"]
    assert "key=hunter2-token" in service.requests[0].path
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named_beforehand_and_no_request_is_made(
    serve, servers, http_system, hit, monkeypatch, value
):
    monkeypatch.delenv("NO_TOKEN", raising=False)
    service = serve(servers.script(hit))
    env = {} if value is None else {"NO_TOKEN": value}
    system = http_system(service.url, http={"headers": {"Authorization": "Bearer {env.NO_TOKEN}"}}, env=env)
    with pytest.raises(PreflightError) as caught:
        preflight([system])
    (problem,) = caught.value.problems
    assert (problem.path, problem.message, problem.expected) == (
        "system service",
        "variable NO_TOKEN",
        "a variable of the environment",
    )
    answer, log = ask(system)
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "no request was made: the environment has no NO_TOKEN")
    assert (log.attempts, service.requests) == (1, [])
    assert system.ask(Query("q", "x"), 1, is_shown=True).request.startswith("(no request was made: ")


def test_what_is_needed_is_found_beforehand(serve, servers, http_system, monkeypatch, tmp_path):
    monkeypatch.setenv("TOKEN", "hunter2-token")
    held = preflight([http_system("http://x.test/{query}", http={"headers": {"Authorization": "Bearer {env.TOKEN}"}})])
    assert [(one.check, one.found) for one in held] == [
        ("cwd .", "a folder"),
        ("variable TOKEN", "set"),
        ("certificates and proxies", "can be used"),
    ]
    system = http_system("https://x.test/{query}", http={"ca": "none.pem"})
    with pytest.raises(PreflightError, match=r"certificates none\.pem; expected files in PEM form"):
        preflight([system])
    (tmp_path / "bad.pem").write_text("no certificate", encoding="utf-8")
    bad, _ = ask(http_system("https://x.test/{query}", http={"ca": "bad.pem"}))
    answer, log = ask(system)
    assert (bad.reason, log.attempts) == (answer.reason, 1)
    assert answer.reason == "no request was made: the configured proxies or certificates cannot be used"


def test_a_proxy_of_the_environment_is_used(serve, servers, http_system, hit, monkeypatch):
    proxy = serve(servers.script(hit))
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    assert ids(ask(http_system("http://search.test/find"))[0]) == ["d1"]
    assert [received.path for received in proxy.requests] == ["http://search.test/find?q=grid"]
    monkeypatch.setenv("HTTP_PROXY", "gopher://nowhere")
    unusable = http_system("http://search.test/find")
    with pytest.raises(PreflightError, match="certificates and proxies"):
        preflight([unusable])
    answer, _ = ask(unusable)
    assert answer.reason == "no request was made: the configured proxies or certificates cannot be used"


def test_a_value_too_short_to_be_a_secret_is_not_hidden():
    redactor = Redactor({"LANG": "C", "KEY": "abcd"})
    assert redactor.redact("C abcd YWJjZA== YWJjZA ABCD") == "C ${KEY} ${KEY} ${KEY} ABCD"


def test_a_system_made_in_code_needs_no_file(serve, servers, hit):
    service = serve(servers.script(hit))
    system = HttpSystem.of("s", http={"url": service.url + "?q={query}"}, extract={"json": "hits", "id": "id"})
    assert ids(ask(system)[0]) == ["d1"]
    assert system.public_config()["http"] == {"url": service.url + "?q={query}"}
    system.close()


def test_a_service_that_is_not_there_is_not_waited_for_again_and_again(servers, serve, http_system):
    system = http_system(f"http://127.0.0.1:{servers.refused_port()}", retries=1)
    answers = [ask(system) for _ in range(MAX_UNREACHED + 2)]
    assert [log.attempts for _, log in answers] == [*[2] * MAX_UNREACHED, 1, 1]  # from then on a try each
    assert answers[MAX_UNREACHED][0].reason == (
        f"the connection was refused; no retries, after {MAX_UNREACHED} queries in a row without a connection"
    )

"""A forge, or something in its place, that answers what no forge would: an error with its words, never a traceback."""

import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from cranfield.base.errors import UsageError
from cranfield.gate.forge import github, gitlab
from cranfield.gate.forge.api import Api
from cranfield.gate.forge.comment import put_comment


@pytest.fixture
def answers(monkeypatch):
    """Start a server on 127.0.0.1 that answers every request with the same body; gives the thread of a pull request."""
    started = []
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    def _answers(body: bytes, forge=github, variable="GITHUB_TOKEN"):
        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        api = Api(forge.access({variable: "t0ken"}, f"http://127.0.0.1:{server.server_port}"))
        started.append((server, api))
        return forge.thread(api, "1", 1) if forge is gitlab else forge.thread(api, "owner/name", 1)

    yield _answers
    for server, api in started:
        api.__exit__(None, None, None)
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"data": {"viewer": {"databaseId": 1e999}}}',
        b'{"data": {"viewer": []}}',
        b'"text"',
        b"\xff\xfe",
    ],
    ids=["deep", "infinity", "list", "text", "bytes"],
)
def test_an_answer_that_is_none_is_an_error_with_its_words(answers, body):
    with pytest.raises(UsageError, match="GitHub"):
        put_comment(answers(body), "<!-- cranfield: report -->\n")


def test_a_comment_whose_body_is_no_text_is_not_ours(answers):
    user = {"id": 1, "body": 7, "author": {"id": 1}}
    thread = answers(json.dumps([user]).encode(), gitlab, "GITLAB_TOKEN")
    assert [comment.body for comment in thread.comments()] == ["7"]


def test_the_event_of_a_job_that_cannot_be_read_is_said(tmp_path):
    event = tmp_path / "event.json"
    event.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(UsageError, match="valid event file"):
        github.place({"GITHUB_REPOSITORY": "owner/name", "GITHUB_EVENT_PATH": str(event)}, None, None)


# A forge that means harm, or something in its place


@pytest.fixture
def forge_that(monkeypatch):
    """Start a server that answers lists of comments as told; gives an `Api` of it and the paths that it was asked for."""
    started = []
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("cranfield.gate.forge.api.BACKOFF_S", 0.001)

    def _start(status, headers, parts):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):
                    for part in parts:
                        self.wfile.write(part)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        api = Api(github.access({"GITHUB_TOKEN": TOKEN}, f"http://127.0.0.1:{server.server_port}"))
        started.append((server, api))
        return api, asked

    yield _start
    for server, api in started:
        api.__exit__(None, None, None)
        server.shutdown()
        server.server_close()


TOKEN = "ghs_S3cr3t"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, f'{{"message": "bad header: Bearer {TOKEN}"}}'),
        (200, f"<html>{TOKEN}</html>"),
        (200, f'{{"you sent": "{TOKEN}"}}'),
        (200, f'[{{"id": "{TOKEN}"}}]'),
        (400, "x" * 55 + TOKEN),  # where messages are cut
    ],
    ids=["refused", "no JSON", "no list", "no comment", "cut"],
)
def test_a_token_that_comes_back_is_in_no_message(forge_that, status, body):
    api, _ = forge_that(status, {}, [body.encode()])
    with pytest.raises(UsageError) as refused:
        list(github.thread(api, "owner/name", 1).comments())
    assert "ghs_" not in str(refused.value)


@pytest.mark.parametrize(
    ("headers", "parts", "message"),
    [
        ({}, (b" " * 65_536 for _ in range(10**6)), "GitHub answered with over 1 MB"),
        ({"Content-Encoding": "gzip"}, [b"\x1f\x8b"], "GitHub sent an encoded response that was not requested"),
        (
            {"Link": '</repos/owner/name/issues/1/comments?per_page=100>; rel="next"'},
            [b"[]"],
            "the same page of comments",
        ),
        ({"Link": '<//elsewhere.example/x>; rel="next"'}, [b"[]"], "a next page on another server"),
        ({"Link": '<file:///etc/passwd>; rel="next"'}, [b"[]"], "a next page on another server"),
    ],
    ids=["endless", "encoded", "loop", "elsewhere", "file"],
)
def test_a_list_without_end_is_left(forge_that, monkeypatch, headers, parts, message):
    monkeypatch.setattr("cranfield.gate.forge.api.MAX_BYTES", 1024**2)
    api, asked = forge_that(200, headers, parts)
    with pytest.raises(UsageError, match=message):
        list(github.thread(api, "owner/name", 1).comments())
    assert len(asked) == 1


@pytest.mark.parametrize("ident", [0, -1, True, 1.5, "1", None])
def test_a_comment_whose_author_is_no_number_is_nobodys(forge_that, ident):
    body = json.dumps([{"id": 7, "user": {"id": ident}, "body": "<!-- cranfield: report -->"}]).encode()
    api, _ = forge_that(200, {}, [body])
    with pytest.raises(UsageError, match="did not answer with a comment"):
        list(github.thread(api, "owner/name", 1).comments())


def test_all_requests_together_have_a_time_limit(forge_that, monkeypatch):
    monkeypatch.setattr("cranfield.gate.forge.api.COMMAND_S", -1)
    api, asked = forge_that(200, {}, [b"[]"])
    with pytest.raises(UsageError, match="GitHub took over -1 s"):
        list(github.thread(api, "owner/name", 1).comments())
    assert asked == []

"""A forge, or something in its place, that answers what no forge would: an error with its words, never a traceback."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from cranfield.errors import UsageError
from cranfield.forge import github, gitlab
from cranfield.forge.api import Api
from cranfield.forge.comment import put_comment


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
    with pytest.raises(UsageError, match="event of a job"):
        github.place({"GITHUB_REPOSITORY": "owner/name", "GITHUB_EVENT_PATH": str(event)}, None, None)

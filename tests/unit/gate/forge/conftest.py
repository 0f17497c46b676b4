"""Two forges on this machine that keep comments, page lists, know who a token belongs to, and refuse what real ones do."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from cranfield import __version__
from cranfield.cli.main import command_line

BOT, PERSON, OTHER_BOT = 41, 7, 42
TOKENS = {"token-of-the-bot": BOT, "token-of-another": OTHER_BOT}
PAGE = 3
"""Most comments on a page, whatever is asked for."""
LIMITS = {"github": 65_536, "gitlab": 1_000_000}
COMMENTS = {
    "github": re.compile(r"/repos/owner/name/issues/(?:12/comments|comments/(?P<id>\d+))"),
    "gitlab": re.compile(r"/projects/(?:34|group%2Fname)/merge_requests/12/notes(?:/(?P<id>\d+))?"),
}
AUTHOR = {"github": "user", "gitlab": "author"}
JOB_VARIABLES = re.compile(r"GITHUB_.*|GITLAB_.*|CI(_.*)?|.*_proxy", re.IGNORECASE)

Reply = tuple[int, dict[str, str], Any]


@dataclass
class Forge:
    """What one forge holds, and what was asked of it."""

    kind: str
    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of every request."""
    instead: list[tuple[str, Reply | Callable[[], Reply | None]]] = field(default_factory=list)
    """Replies to the next requests of these methods, in place of what would be done."""
    first_lists: Barrier | None = None
    """Requests for a list wait here for each other, the first time."""
    url: str = ""
    lock: Lock = field(default_factory=Lock)
    last_id: int = 100

    def add(self, author: int, body: str, **more: Any) -> dict[str, Any]:
        self.last_id += 1
        comment = {"id": self.last_id, AUTHOR[self.kind]: {"id": author, "login": f"u{author}"}, "body": body, **more}
        self.comments.append(comment)
        return comment

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]

    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    def environment(self) -> dict[str, str]:
        """Of a job that runs for request 12."""
        if self.kind == "github":
            return {
                "GITHUB_ACTIONS": "true",
                "GITHUB_API_URL": self.url,
                "GITHUB_REPOSITORY": "owner/name",
                "GITHUB_REF": "refs/pull/12/merge",
                "GITHUB_TOKEN": "token-of-the-bot",
            }
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.url,
            "CI_PROJECT_ID": "34",
            "CI_MERGE_REQUEST_IID": "12",
            "GITLAB_TOKEN": "token-of-the-bot",
        }

    def run(self, *arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
        """The command in this process, which starts in no time; `start` is the real one."""
        out, err = io.StringIO(), io.StringIO()
        with environment_of(self.job(changes)), redirect_stdout(out), redirect_stderr(err):
            try:
                command_line("ci", "comment")(["ci", "comment", *arguments], prog_name="cranfield")
                code = 0
            except SystemExit as left:
                code = int(left.code or 0)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def start(self, *arguments: str, stdin: Any = subprocess.DEVNULL, **changes: str | None) -> subprocess.Popen[str]:
        """`cranfield ci comment ARGUMENTS` in the environment of a job, with changes to it."""
        command = ["cranfield", "ci", "comment", *arguments]
        pipe = subprocess.PIPE
        environment = self.job(changes)
        return subprocess.Popen(command, env=environment, stdin=stdin, stdout=pipe, stderr=pipe, text=True)

    def job(self, changes: dict[str, str | None]) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not JOB_VARIABLES.fullmatch(name)}
        return plain | {name: value for name, value in (self.environment() | changes).items() if value is not None}


@contextmanager
def environment_of(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Handler(BaseHTTPRequestHandler):
    forge: Forge
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        forge = self.forge
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        is_list = self.command == "GET" and bool(COMMENTS[forge.kind].fullmatch(parts.path))
        with forge.lock:
            forge.asked.append((self.command, parts.path))
            waits, is_first = forge.first_lists, is_list and len(forge.asked) <= 4
            planned = next((one for one in forge.instead if one[0] == self.command), None)
            reply: Reply | None = None
            if planned is not None:
                forge.instead.remove(planned)
                reply = planned[1]() if callable(planned[1]) else planned[1]
            reply = reply or self.done(parts.path, parse_qs(parts.query), body)
        if waits is not None and is_first:
            waits.wait(timeout=60)  # with what is in the list now: the other job may write as soon as it has its own
        with forge.lock:
            self.answer(*reply)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

    def done(self, path: str, query: dict[str, list[str]], body: bytes) -> Reply:
        forge = self.forge
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        token = self.headers.get("PRIVATE-TOKEN", "") if forge.kind == "gitlab" else token
        if token not in TOKENS:
            return 401, {}, {"message": "Bad credentials"}
        author = TOKENS[token]
        if self.headers["User-Agent"] != f"cranfield/{__version__}":
            return 403, {}, {"message": "Request forbidden by administrative rules"}
        if forge.kind == "github" and self.headers["Accept"] != "application/vnd.github+json":
            return 415, {}, {"message": "Unsupported media type"}
        said = None
        if body:
            if self.headers["Content-Type"] != "application/json":
                return 415, {}, {"message": "not JSON"}
            said = json.loads(body)
        if (forge.kind, self.command, path) == ("github", "POST", "/graphql"):
            return 200, {}, {"data": {"viewer": {"login": f"u{author}", "databaseId": author}}}
        if (forge.kind, self.command, path) == ("gitlab", "GET", "/user"):
            return 200, {}, {"id": author, "username": f"u{author}"}
        found = COMMENTS[forge.kind].fullmatch(path)
        if not found:
            return 404, {}, {"message": "Not Found"}
        if found["id"] is not None:
            return self.one(int(found["id"]), author, said)
        if self.command == "GET":
            return self.page(int(query.get("page", ["1"])[0]), path, query)
        return self.written(said, lambda text: forge.add(author, text, html_url=f"{forge.url}/c/{forge.last_id + 1}"))

    def one(self, comment_id: int, author: int, said: Any) -> Reply:
        comments = self.forge.comments
        comment = next((comment for comment in comments if comment["id"] == comment_id), None)
        if comment is None:
            return 404, {}, {"message": "Not Found"}
        if comment[AUTHOR[self.forge.kind]]["id"] != author:
            return 403, {}, {"message": "that is somebody else's"}
        if self.command == "DELETE":
            comments.remove(comment)
            return 204, {}, None
        if self.command != {"github": "PATCH", "gitlab": "PUT"}[self.forge.kind]:
            return 405, {}, {"message": "Method not allowed"}
        return self.written(said, lambda text: comment.update(body=text) or comment, 200)

    def written(self, said: Any, write: Callable[[str], Any], status: int = 201) -> Reply:
        if not isinstance(said, dict) or not said.get("body"):
            return 422, {}, {"message": "body is missing"}
        if len(said["body"]) > LIMITS[self.forge.kind]:
            return 422, {}, {"message": f"Body is too long (maximum is {LIMITS[self.forge.kind]} characters)"}
        return status, {}, write(said["body"])

    def page(self, number: int, path: str, query: dict[str, list[str]]) -> Reply:
        comments, size = self.forge.comments, min(PAGE, int(query["per_page"][0]))
        link = f'<{self.forge.url}{path}?per_page={size}&page={number + 1}>; rel="next"'
        more = {"Link": link} if number * size < len(comments) else {}
        return 200, more, comments[(number - 1) * size : number * size]

    def answer(self, status: int, headers: dict[str, str], body: Any) -> None:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def started() -> Iterator[Callable[[str], Forge]]:
    servers = []

    def start(kind: str) -> Forge:
        forge = Forge(kind)
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("ForgeHandler", (Handler,), {"forge": forge}))
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        servers.append((server, thread))
        forge.url = f"http://127.0.0.1:{server.server_port}"
        return forge

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, started: Callable[[str], Forge]) -> Forge:
    """Each of the two in turn."""
    return started(request.param)


@pytest.fixture
def github(started: Callable[[str], Forge]) -> Forge:
    return started("github")


@pytest.fixture
def gitlab(started: Callable[[str], Forge]) -> Forge:
    return started("gitlab")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.md"
    path.write_text("# Gate: passed\n\nnDCG@10 is 0.41, as it was.\n")
    return path


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries in this process come after milliseconds; what a forge asks to wait is waited for."""
    monkeypatch.setattr("cranfield.gate.forge.api.BACKOFF_S", 0.005)

"""What is refused before any page is asked: other hosts, other sites, routes that do not say who may use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import APIRouter, FastAPI
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from cranfield.base.errors import InternalError, UsageError
from cranfield.books.store.store import Store
from cranfield.workbench.server.access import check_routes
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.guard import refusal
from cranfield.workbench.server.options import ServerOptions, server_secret, start_page

LOCAL = ServerOptions(port=8000)
TEAM = ServerOptions(host="0.0.0.0", port=8000, accounts=True, url="https://judge.example.org")
OURS = {"host": "127.0.0.1:8000"}


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", OURS, None),
        ("GET", {"host": "localhost:8000"}, None),
        ("GET", {"host": "[::1]:8000"}, None),
        ("GET", {"host": "rebound.example:8000"}, "host"),
        ("GET", {"host": "127.0.0.1:8001"}, "host"),
        ("GET", {"host": "127.0.0.1"}, "host"),
        ("GET", {}, "host"),
        # A link of another site may open a page in the whole window, and nothing else.
        (
            "GET",
            OURS | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
            None,
        ),
        (
            "GET",
            OURS | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
            "cross_site",
        ),
        (
            "GET",
            OURS | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
            "cross_site",
        ),
        ("GET", OURS | {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, "cross_site"),
        ("GET", OURS | {"origin": "https://evil.example"}, "cross_site"),
        ("POST", OURS | {"origin": "http://127.0.0.1:8000"}, None),
        ("POST", OURS | {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}, None),
        ("POST", OURS | {"origin": "http://127.0.0.1:8001"}, "cross_site"),
        ("POST", OURS | {"origin": "http://127.0.0.1:8001", "sec-fetch-site": "same-origin"}, "cross_site"),
        ("POST", OURS | {"origin": "null"}, "cross_site"),
        ("POST", OURS | {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-site"}, "cross_site"),
        ("POST", OURS | {"sec-fetch-site": "none"}, "cross_site"),
        ("POST", OURS, "cross_site"),
        ("POST", OURS | {"authorization": "Bearer x"}, None),
    ],
)
def test_requests_of_other_hosts_and_sites_are_refused(
    method: str, headers: dict[str, str], expected: str | None
) -> None:
    found = refusal(Headers(headers), method, LOCAL)
    assert (found[0] if found else None) == expected


def test_behind_a_proxy_only_the_public_name_is_answered() -> None:
    assert TEAM.hosts == {"judge.example.org"}
    assert TEAM.origins == {"https://judge.example.org"}
    assert TEAM.secure
    assert TEAM.cookie("session").startswith("__Host-")


def test_browsers_leave_out_the_port_of_the_scheme() -> None:
    assert ServerOptions(port=80).hosts == {"127.0.0.1", "localhost", "[::1]"}
    assert "http://127.0.0.1" in ServerOptions(port=80).origins
    assert ServerOptions(accounts=True, url="https://x.example:443").hosts == {"x.example"}
    assert ServerOptions(accounts=True, url="http://x.example:443").hosts == {"x.example:443"}


@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0", "url": "http://10.0.0.5:8734"},
        {"host": "192.168.1.4"},
        {"host": "::"},
        {"url": "https://judge.example.org"},
        {"host": "0.0.0.0", "accounts": True},
        {"url": "judge.example.org", "accounts": True},
        {"url": "https://judge.example.org/books", "accounts": True},
        {"url": "https://me@judge.example.org", "accounts": True},
    ],
)
def test_an_address_that_others_reach_needs_accounts_and_a_name(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        ServerOptions(**options)
    assert refused.value.problems[0].expected


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(cast("Store", None), LOCAL), base_url="http://127.0.0.1:8000") as started:
        yield started


def test_every_response_has_the_headers_of_security(client: TestClient) -> None:
    for path in ("/sign-in", "/no-such-page", "/static/base.css", "/static/no-such-file"):
        headers = client.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_errors_have_one_shape_and_one_page(client: TestClient) -> None:
    answer = client.get("/api/no-such", headers={"accept": "application/json"})
    assert answer.status_code == 404
    assert answer.json() == {
        "ok": False,
        "error": "page not found",
        "errors": [
            {
                "message": "page not found",
                "where": "",
                "expected": "",
                "got": "",
                "hint": "",
                "code": "not_found",
            }
        ],
        "status": 404,
    }
    page = client.get("/no-such", headers={"accept": "text/html"})
    assert page.status_code == 404
    assert "<h1>Not Found</h1>" in page.text


def test_a_bug_shows_a_number_and_no_traceback(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    options = ServerOptions(port=8000, start_token="t")
    with TestClient(create_app(cast("Store", None), options), base_url="http://127.0.0.1:8000") as broken:
        answer = broken.get("/start?token=t", headers={"accept": "text/html"})
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "NoneType" not in answer.text
    number = answer.text.partition("(error ")[2].partition(")")[0]
    assert number in caplog.text


def test_a_body_that_is_too_large_is_refused(client: TestClient) -> None:
    answer = client.post(
        "/sign-in",
        data={"name": "x" * 3_000_000},
        headers=OURS | {"origin": "http://127.0.0.1:8000", "accept": "text/html"},
    )
    assert (answer.status_code, answer.headers["content-type"]) == (413, "text/html; charset=utf-8")
    assert "the request is too large" in answer.text.lower()


def test_a_route_that_declares_nothing_stops_the_start() -> None:
    router = APIRouter()
    router.add_api_route("/open", lambda: None)
    with pytest.raises(InternalError, match="/open"):
        check_routes(router.routes)
    outer = APIRouter()
    outer.include_router(router, prefix="/nested")
    with pytest.raises(InternalError, match="GET /nested/open"):
        check_routes(outer.routes)
    app = FastAPI(docs_url=None, redoc_url=None)
    with pytest.raises(InternalError, match=r"/openapi.json"):
        check_routes(app.routes)


def test_the_key_is_made_once_and_is_private(tmp_path) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    first = server_secret(environment)
    assert server_secret(environment) == first
    path = tmp_path / "cranfield" / "server.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UsageError, match="7 characters"):
        server_secret({"CRANFIELD_SECRET": "shorter"})


def test_the_token_is_no_argument_of_the_browser(tmp_path: Path) -> None:
    for token in ("first", "second&x"):
        address = start_page(f"http://127.0.0.1:8000/start?token={token}&next=%2F", {"XDG_DATA_HOME": str(tmp_path)})
    path = Path(address.removeprefix("file://"))
    assert "second" not in address
    assert path.stat().st_mode & 0o777 == 0o600
    assert 'content="0;url=http://127.0.0.1:8000/start?token=second&amp;x&amp;next=%2F"' in path.read_text()

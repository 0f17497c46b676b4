"""Sign in, join, reset: what works, and what gives nothing away."""

from __future__ import annotations

import re
from dataclasses import replace
from threading import BoundedSemaphore

import pytest
from starlette.testclient import TestClient

from cranfield.books.store.schema import Role
from cranfield.workbench.server import passwords, sign_in
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.pages import local_path
from cranfield.workbench.server.signing import reset_link


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of 8 KB and one pass: those of users take 64 MB."""
    from argon2 import PasswordHasher

    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: quick)
    passwords.no_password.cache_clear()


def sign_in_as(team, name: str, password: str, client: TestClient | None = None, **fields: str):
    client = client or team.new()
    return client, client.post(
        "/sign-in", data={"csrf": team.csrf(client, "/sign-in"), "name": name, "password": password, **fields}
    )


def test_sign_in_gives_a_new_signed_cookie_that_scripts_cannot_read(team, team_books) -> None:
    client, answer = sign_in_as(team, "lee", team_books.PASSWORD, next="/books/shop")
    assert (answer.status_code, answer.headers["location"]) == (303, "/books/shop")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie  # http on loopback
    assert client.get("/").status_code == 200
    name = team.app.state.options.cookie("session")
    first = client.cookies[name]
    raw, _, signature = first.rpartition(".")
    forged = team.new()
    forged.cookies.set(name, f"{raw}.{signature[::-1]}")
    assert forged.get("/").status_code == 303
    assert team.store.people.session(raw) is not None
    again = client.post("/sign-in", data={"csrf": team.csrf(client), "name": "lee", "password": team_books.PASSWORD})
    assert again.status_code == 303
    assert client.cookies[name] != first


@pytest.mark.slow
def test_over_https_cookies_are_secure_and_bound_to_the_host(team, team_books) -> None:
    options = ServerOptions(accounts=True, url="https://judge.example.org")
    address = "https://judge.example.org"
    with TestClient(create_app(team.store, options), base_url=address, headers={"origin": address}) as client:
        found = client.get("/sign-in", headers={"accept": "text/html"})
        csrf = re.search(r'name="csrf" content="([^"]+)"', found.text)
        data = {"csrf": csrf[1], "name": "lee", "password": team_books.PASSWORD}
        answer = client.post("/sign-in", data=data, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["set-cookie"].startswith("__Host-cranfield-session=")
    assert "Secure" in answer.headers["set-cookie"]
    assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.parametrize("name", ["lee", "no-such-person", ""])
def test_a_wrong_name_reads_like_a_wrong_password(team, name: str) -> None:
    _, answer = sign_in_as(team, name or "lee ", "wrong")
    assert answer.status_code == 403
    assert "The name or the password is wrong." in answer.text


def test_a_wrong_name_is_compared_with_a_hash_too(team, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    real = sign_in.is_password
    monkeypatch.setattr(sign_in, "is_password", lambda *given: checked.append(given[1]) or real(*given))
    sign_in_as(team, "no-such-person", "wrong")
    assert checked == [None]
    assert not real("no password", None)  # the password of the hash in its place


def test_too_many_failures_wait_also_with_the_right_password(team, team_books) -> None:
    client = team.new()
    for _ in range(10):
        sign_in_as(team, "lee", "wrong", client)
    _, answer = sign_in_as(team, "lee", team_books.PASSWORD, client)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) == 900
    assert "try again in 15 minutes" in answer.text.lower()
    assert sign_in_as(team, "vic", team_books.PASSWORD)[1].status_code == 303  # of another name
    assert sign_in_as(team, "lee", team_books.PASSWORD, elsewhere(team))[1].status_code == 303
    client.headers["x-forwarded-for"] = "10.9.9.9"  # of no proxy that is trusted
    assert sign_in_as(team, "lee", team_books.PASSWORD, client)[1].status_code == 429
    team.now[0] += 901_000
    assert sign_in_as(team, "lee", team_books.PASSWORD, client)[1].status_code == 303


def elsewhere(team) -> TestClient:
    """A browser with another address."""
    headers = dict(team.new().headers)
    base = str(team.new().base_url)
    return TestClient(team.app, base_url=base, headers=headers, follow_redirects=False, client=("10.9.9.9", 5))


def test_a_reset_link_ends_the_wait_of_a_name_that_many_addresses_tried(team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sign_in.FAILURES, "name", 3)
    for _ in range(3):
        sign_in_as(team, "bob", "wrong")
    client = elsewhere(team)
    assert sign_in_as(team, "bob", "wrong", client)[1].status_code == 429
    path = reset_link(team.app.state.options, team.store.people.get("bob"))
    client.post(path, data={"csrf": team.csrf(client, path), "password": "quite a new one"})
    assert sign_in_as(team, "bob", "quite a new one", client)[1].status_code == 303


def test_nobody_is_kept_out_of_the_browser_in_which_he_or_she_signed_in_before(team, team_books, monkeypatch) -> None:
    monkeypatch.setitem(sign_in.FAILURES, "name", 3)
    client = sign_in_as(team, "bob", team_books.PASSWORD)[0]
    other = sign_in_as(team, "lee", team_books.PASSWORD)[0]
    for each in (client, other):
        each.cookies.delete(team.app.state.options.cookie("session"))
    for _ in range(3):
        sign_in_as(team, "bob", "wrong", elsewhere(team))
    assert sign_in_as(team, "bob", team_books.PASSWORD, elsewhere(team))[1].status_code == 429
    assert sign_in_as(team, "bob", team_books.PASSWORD, other)[1].status_code == 429  # another person's
    answers = [sign_in_as(team, "bob", "wrong", client)[1].status_code for _ in range(11)]
    assert answers == [403] * 10 + [429]
    team.now[0] += 901_000
    assert sign_in_as(team, "bob", team_books.PASSWORD, client)[1].status_code == 303


def test_the_addresses_of_one_network_are_one() -> None:
    keys = sign_in.failure_keys
    assert keys("Lee", "2001:db8::1") == keys("lee", "2001:db8::ffff:2")
    assert keys("lee", "2001:db8::1") != keys("lee", "2001:db8:0:1::1")
    assert keys("lee", "10.0.0.1")["address"] != keys("lee", "10.0.0.2")["address"]
    assert keys("lee", "unix:")["name"] == keys("lee", "fe80::1%eth0")["name"]


@pytest.mark.slow
def test_an_address_that_tries_many_names_waits_too(team, team_books) -> None:
    client = team.new()
    csrf = team.csrf(client, "/sign-in")
    for place in range(30):
        client.post("/sign-in", data={"csrf": csrf, "name": f"n{place}", "password": "x"})
    assert sign_in_as(team, "lee", team_books.PASSWORD, client)[1].status_code == 429


def test_a_flood_of_sign_ins_waits_in_no_thread_and_is_counted_as_no_failure(
    team, team_books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_IN_LINE", BoundedSemaphore(1))
    client = team.new()
    with passwords._turn():
        answer = sign_in_as(team, "lee", team_books.PASSWORD, client)[1]
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert not team.store.sign_ins.failures(sign_in.failure_keys("lee", "testclient")["pair"], 0)
    assert sign_in_as(team, "lee", team_books.PASSWORD, client)[1].status_code == 303


def test_sign_out_everywhere_ends_every_session(team, team_books) -> None:
    one, _ = sign_in_as(team, "lee", team_books.PASSWORD)
    two, _ = sign_in_as(team, "lee", team_books.PASSWORD)
    assert one.post("/sign-out", data={"csrf": team.csrf(one), "everywhere": "yes"}).status_code == 303
    assert one.get("/").status_code == two.get("/").status_code == 303


def test_a_changed_password_signs_out_the_others(team, team_books) -> None:
    one, _ = sign_in_as(team, "lee", team_books.PASSWORD)
    two, _ = sign_in_as(team, "lee", team_books.PASSWORD)
    fields = {"csrf": team.csrf(one), "old": team_books.PASSWORD}
    assert "has 5 characters" in one.post("/account/password", data={**fields, "password": "short"}).text
    assert one.post("/account/password", data={**fields, "password": "another long one"}).status_code == 303
    assert one.get("/").status_code == 200
    assert two.get("/").status_code == 303
    assert sign_in_as(team, "lee", "another long one")[1].status_code == 303


def test_a_join_link_makes_a_rater_of_one_book_and_is_used_up(team) -> None:
    page = team.post("lee", "/books/shop/links", uses=1)
    path = re.search(r"http://127\.0\.0\.1:8000(/join/[\w-]+)", page.text)[1]
    client = team.new()
    csrf = team.csrf(client, path)
    taken = client.post(path, data={"csrf": csrf, "name": "lee", "password": "a long sentence"})
    assert taken.status_code == 422
    done = client.post(path, data={"csrf": csrf, "name": "newcomer", "password": "a long sentence"})
    assert (done.status_code, done.headers["location"]) == (303, "/books/shop/judge")
    account = team.store.people.get("newcomer")
    assert account.role == Role.RATER
    assert team.store.people.books_of(account.id) == (team.store.books.get("shop").id,)
    assert client.get("/books/shop/judge").status_code == 200
    assert client.get("/books/shop").status_code == 403
    assert client.get("/books/other/judge").status_code == 404
    assert team.new().get(path).status_code == 404


def test_no_name_that_looks_like_another_is_joined_by_and_a_refusal_spends_no_use(team) -> None:
    raw = team.store.people.add_link(team.store.books.get("shop").id, 60_000, 1)
    client = team.new()
    fields = {"csrf": team.csrf(client, f"/join/{raw}"), "password": "a long sentence"}
    for name in ("", "Lee", "\uff2c\uff25\uff25", "lee\u200b", "x\x1b[2J", "a\nb", "a\u202eb", "x" * 201):
        assert client.post(f"/join/{raw}", data={**fields, "name": name}).status_code == 422
    assert team.post("vic", f"/join/{raw}").status_code == 422  # a viewer cannot judge
    assert team.store.people.link(raw).uses_left == 1


def test_what_would_be_refused_to_a_viewer_or_the_last_administrator_is_not_offered(team) -> None:
    raw = team.store.people.add_link(team.store.books.get("shop").id, 86_400_000)
    page = team.browser("vic").get(f"/join/{raw}").text
    assert "vic, a viewer, and this role cannot judge" in page
    assert "<button>Join</button>" not in page
    assert "<button>Join</button>" in team.browser("ann").get(f"/join/{raw}").text
    alex = team.store.people.get("alex").id
    page = team.browser("alex").get("/people").text
    assert "the last administrator: first give the role to another account" in page
    assert [f'action="/people/{alex}/{action}"' in page for action in ("role", "deactivate", "sign-out")] == [
        False,
        False,
        True,
    ]
    team.store.people.set_role(team.store.people.get("lee").id, Role.ADMIN)
    assert f'action="/people/{alex}/role"' in team.browser("alex").get("/people").text


def test_an_account_joins_by_a_link_and_keeps_its_role(team) -> None:
    raw = team.store.people.add_link(team.store.books.get("other").id, 60_000, 1)
    assert team.post("ann", f"/join/{raw}").status_code == 303
    assert team.browser("ann").get("/books/other/judge").status_code == 200


def test_a_reset_link_holds_once_and_for_a_day(team) -> None:
    page = team.post("alex", f"/people/{team.store.people.get('bob').id}/reset")
    path = re.search(r"http://127\.0\.0\.1:8000(/reset/[\w.-]+)", page.text)[1]
    client = team.new()
    fields = {"csrf": team.csrf(client, path), "password": "quite a new one"}
    assert client.post(path, data=fields).status_code == 303
    assert client.post(path, data=fields).status_code == 404
    assert sign_in_as(team, "bob", "quite a new one")[1].status_code == 303
    assert client.get(path[:-2] + "xx").status_code == 404
    foreign = reset_link(ServerOptions(accounts=True), team.store.people.get("bob"))
    assert client.get(foreign).status_code == 404


def test_the_last_administrator_stays(team) -> None:
    alex = team.store.people.get("alex").id
    assert team.post("alex", f"/people/{alex}/deactivate").status_code == 422
    assert team.post("alex", f"/people/{alex}/role", role="rater").status_code == 422
    assert team.store.people.get("alex").active


def test_tokens_are_shown_once_and_revoked(team) -> None:
    page = team.post("lee", "/account/tokens", label="nightly", scope="read", days=1)
    raw = re.search(r'<code class="secret">([^<]+)</code>', page.text)[1]
    headers = {"authorization": f"Bearer {raw}", "accept": "application/json"}
    assert team.new().get("/api/books/other/quality", headers=headers).status_code == 200
    assert raw not in team.browser("lee").get("/account").text
    team.now[0] += 86_400_001
    assert team.new().get("/api/books/other/quality", headers=headers).status_code == 401


def test_a_token_is_never_wider_than_its_account(team) -> None:
    assert team.post("ann", "/account/tokens", label="x", scope="manage", days=1).status_code == 422
    assert team.post("ann", "/account/tokens", label="x", scope="everything", days=1).status_code == 422


@pytest.mark.slow
def test_without_accounts_the_start_token_signs_in_and_nothing_else_does(team) -> None:
    options = ServerOptions(port=8000, start_token="the token of this start")
    headers = {"accept": "text/html", "origin": "http://127.0.0.1:8000"}
    app = create_app(team.store, options)
    with TestClient(app, base_url="http://127.0.0.1:8000", headers=headers, follow_redirects=False) as client:
        assert client.get("/").status_code == 303
        assert client.get("/sign-in").status_code == 401
        assert client.get("/start?token=wrong").status_code == 403
        assert client.get("/start").status_code == 403
        done = client.get("/start?token=the+token+of+this+start&next=/books/other")
        assert (done.status_code, done.headers["location"]) == (303, "/books/other")
        assert client.get("/books/other").status_code == 200
        raw = team.store.people.add_link(team.store.books.get("shop").id, 60_000, 1)
        assert client.get(f"/join/{raw}").status_code == 404
    with TestClient(app, base_url="http://127.0.0.1:8000") as program:
        for token, status in (("the token of this start", 200), ("wrong", 401)):
            headers_of = {"authorization": f"Bearer {token}"}
            assert program.get("/v1/books", headers=headers_of).status_code == status, token
    with_accounts = create_app(team.store, replace(options, accounts=True))
    with TestClient(with_accounts, base_url="http://127.0.0.1:8000") as program:
        bearer = {"authorization": "Bearer the token of this start"}
        assert program.get("/v1/books", headers=bearer).status_code == 401
    restarted = ServerOptions(port=8000, secret=options.secret)
    with TestClient(create_app(team.store, restarted), base_url="http://127.0.0.1:8000", headers=headers) as later:
        later.cookies.update(client.cookies)
        assert (
            later.get("/books/other").status_code == 200
        )  # the cookie outlives a restart, the printed address does not
        assert later.get("/start?token=the+token+of+this+start").status_code == 403


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\\b", "", "/\t/evil"])
def test_a_sign_in_leads_to_pages_of_this_server_alone(path: str) -> None:
    assert local_path(path) == "/"
    assert local_path("/books/shop?x=1") == "/books/shop?x=1"

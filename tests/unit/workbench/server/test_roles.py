"""Every route with every role, with tokens of each scope, and without an account: one table says who passes."""

from __future__ import annotations

import re

import pytest

from cranfield.books.store.schema import Role
from cranfield.workbench.server.access import Access, declared_access

TOKENS = {"token read", "token judge", "token evaluate", "token manage"}
PASSES = {
    Access.PUBLIC: {"nobody", "alex", "lee", "ann", "vic", "oto", *TOKENS},
    Access.ACCOUNT: {"alex", "lee", "ann", "vic", "oto"},
    Access.JUDGE: {"alex", "lee", "ann", "token judge", "token manage"},
    Access.READ: {"alex", "lee", "vic", "token read", "token manage"},
    Access.MANAGE: {"alex", "lee", "token manage"},
    Access.RESULTS: {"alex", "lee", "vic", "token read", "token evaluate", "token manage"},
    Access.METRICS: {"alex", "lee", "vic", "token read", "token evaluate", "token manage"},
    Access.EVALUATE: {"alex", "lee", "token evaluate", "token manage"},
    Access.ADMIN: {"alex"},
}
"""alex: admin, lee: lead, ann: rater of the book, oto: rater of another book, vic: viewer; the tokens are lee's."""
WHO = sorted(set.union(*PASSES.values()))
ROUTES = {
    Access.PUBLIC: "/start /sign-in /join/{raw} /reset/{token} /openapi.json",
    Access.ACCOUNT: "/ /measures /account /account/password /account/tokens /account/tokens/{token_id}/revoke /sign-out /api/me/settings",
    Access.JUDGE: (
        "/books/{book}/judge /api/books/{book}/next /api/books/{book}/items/{item} /api/books/{book}/items/{item}/image "
        "/api/books/{book}/judgments /api/books/{book}/progress /api/books/{book}/guidelines /api/books/{book}/reveal "
        "/api/books/{book}/documents /books/{book}/review /books/{book}/review/{item_id}"
    ),
    Access.READ: (
        "/books /books/{book} /books/{book}/items /books/{book}/items/{item_id} "
        "/books/{book}/items/{item_id}/image /books/{book}/calls /books/{book}/live /books/{book}/frozen/{number} "
        "/api/books/{book}/quality /api/books/{book}/items /books/{book}/review/records/{item_id}"
    ),
    Access.MANAGE: (
        "/books/{book}/reopen /books/{book}/settings /books/{book}/guideline /books/{book}/state /books/{book}/members "
        "/books/{book}/links /books/{book}/links/{link_id}/revoke /books/{book}/adjudicate /books/{book}/freeze "
        "/books/{book}/adjudicate/{item_id} /settings /evaluations/{number:id}/grade "
        "/comparisons/{number:id}/grade /systems/{name}/probe /systems/{name}/try /systems/{name}/variants "
        "/systems/{name}/variants/delete /books/{book}/review/decide /books/{book}/review/decide/{item_id}"
    ),
    Access.RESULTS: (
        "/testsets /testsets/{name} /testsets/{name}/queries/{query:path} /testsets/{name}/diff /evaluations "
        "/evaluations/{evaluation_id:id} /evaluations/{number:id}/queries /evaluations/{number:id}/queries.json "
        "/evaluations/{number:id}/query.json /evaluations/{number:id}/queries/{query:path} "
        "/comparisons /diff /comparisons/{comparison_id:id} /comparisons/{number:id}/queries.json "
        "/comparisons/{number:id}/query.json /comparisons/{number:id}/queries/{query:path} "
        "/jobs /jobs/live /jobs/{job_id:id} /jobs/{job_id:id}/live /systems /systems/{name}"
    ),
    Access.EVALUATE: (
        "/testsets/upload /testsets/{name}/read /evaluations/{evaluation_id:id}/notes /evaluations/{evaluation_id:id}/pin "
        "/evaluations/{evaluation_id:id}/rerun /evaluations/{evaluation_id:id}/compare /comparisons/make "
        "/jobs/{job_id:id}/cancel /jobs/{job_id:id}/retry /evaluations/new /evaluations/{evaluation_id:id}/freeze "
        "/evaluations/{evaluation_id:id}/compare-graded /comparisons/{comparison_id:id}/recompute"
    ),
    Access.METRICS: "/metrics",
    Access.ADMIN: "/people /people/{account_id}/{action}",
}
"""A route that is not listed here fails the test: its author decides who may use it."""
API = {
    Access.JUDGE: "/v1/books/{book}/grades",
    Access.READ: (
        "/v1/books /v1/books/{book} /v1/books/{book}/coverage /v1/books/{book}/items /v1/books/{book}/measures "
        "/v1/books/{book}/file"
    ),
    Access.RESULTS: (
        "/v1/measures /v1/systems /v1/jobs /v1/jobs/{job_id} /v1/jobs/{job_id}/result /v1/jobs/{job_id}/events /v1/testsets "
        "/v1/testsets/{ref} /v1/testsets/{ref}/versions /v1/testsets/{ref}/queries /v1/testsets/{ref}/file /v1/runs "
        "/v1/runs/{run_id} /v1/runs/{run_id}/file /v1/evaluations /v1/evaluations/{evaluation_id} "
        "/v1/evaluations/{evaluation_id}/summary /v1/evaluations/{evaluation_id}/queries "
        "/v1/evaluations/{evaluation_id}/report /v1/comparisons /v1/comparisons/{comparison_id} "
        "/v1/comparisons/{comparison_id}/queries /v1/comparisons/{comparison_id}/report /v1/diff /v1/queries /v1/traces"
    ),
    Access.EVALUATE: (
        "/v1/evaluate /v1/compare /v1/jobs/{job_id}/cancel /v1/jobs/{job_id}/retry /v1/testsets /v1/runs "
        "/v1/evaluations/{evaluation_id} /v1/queries /v1/traces"
    ),
}
"""The same of the API."""


def test_every_route_is_in_the_table(team) -> None:
    found = {(path, access) for (_, path), access in declared_access(team.app.routes).items()}
    assert found == {(path, access) for access, paths in (*ROUTES.items(), *API.items()) for path in paths.split()}


def headers_of(team, who: str) -> tuple[dict[str, str], dict[str, str]]:
    """Cookies and headers."""
    if who == "nobody":
        return {}, {}
    if who.startswith("token"):
        raw = team.store.people.add_token(team.store.people.get("lee").id, "t", who.split()[1], 60_000)
        return {}, {"authorization": f"Bearer {raw}"}
    client = team.browser(who)
    session = team.store.people.session(team.raw[who])
    return dict(client.cookies), {"x-csrf-token": session.csrf}


FAST = {"nobody"}


@pytest.mark.parametrize("who", [who if who in FAST else pytest.param(who, marks=pytest.mark.slow) for who in WHO])
def test_who_passes(team, who: str) -> None:
    item = team.store.reading.items(team.store.books.get("shop").id)[0].id
    values = {"book": "shop", "item": item, "item_id": item, "account_id": 999, "action": "none"}
    wrong = []
    with team.new() as client:
        for (method, path), access in declared_access(team.app.routes).items():
            if path.endswith("/live") or (path.endswith("/judge") and who.startswith("token")):
                continue  # a stream: test_live.py; the judging page is for browsers
            team.forget(who)
            cookies, headers = headers_of(team, who)
            client.cookies.clear()
            client.cookies.update(cookies)
            address = re.sub(r"\{(\w+)(?::\w+)?\}", lambda name: str(values.get(name[1], 1)), path)
            answer = client.request(method, address, headers={**headers, "accept": "application/json"})
            error = answer.json() if answer.status_code in {401, 403, 404} else {}
            code = error.get("errors", [{}])[0].get("code", "")
            refused = (
                code in {"sign_in", "role", "scope"}
                or error.get("error") == "book not found, or you have no access to it"
            )
            if refused == (who in PASSES[access]) or answer.status_code >= 500:
                wrong.append((method, path, answer.status_code, code))
    assert wrong == []


@pytest.mark.parametrize(
    ("who", "path", "status"),
    [
        ("ann", "/books/shop/judge", 200),
        ("ann", "/books/shop", 403),
        ("ann", "/books/other/judge", 404),
        ("ann", "/books/no-such-book/judge", 404),
        ("oto", "/books/shop/judge", 404),
        ("vic", "/books/shop/items", 200),
        ("vic", "/books/shop/adjudicate", 403),
        ("vic", "/books/shop/judge", 403),
        ("lee", "/people", 403),
        ("alex", "/people", 200),
    ],
)
def test_pages_of_roles(team, who: str, path: str, status: int) -> None:
    assert team.browser(who).get(path).status_code == status


def test_without_an_account_pages_lead_to_the_sign_in_and_calls_get_401(team) -> None:
    page = team.new().get("/books/shop?x=1")
    assert (page.status_code, page.headers["location"]) == (303, "/sign-in?next=%2Fbooks%2Fshop%3Fx%3D1")
    assert team.new().get("/api/books/shop/quality").status_code == 401


def test_an_item_of_another_book_is_not_there(team) -> None:
    other = team.store.reading.items(team.store.books.get("other").id)[0].id
    assert team.browser("lee").get(f"/books/shop/items/{other}").status_code == 404
    assert team.browser("lee").get(f"/books/shop/adjudicate?item={other}").status_code == 404
    assert team.browser("lee").get(f"/books/other/items/{other}").status_code == 200


def test_raters_see_their_own_books_alone(team) -> None:
    assert "/books/other" not in team.browser("ann").get("/").text
    assert "/books/shop/judge" in team.browser("ann").get("/").text
    assert "/books/other" in team.browser("vic").get("/books").text


@pytest.mark.parametrize(
    ("sent", "expected"),
    [({}, 403), ({"csrf": "x"}, 403), ({"csrf": "of another session"}, 403), ({"csrf": "right"}, 303)],
)
def test_every_form_needs_the_token_of_its_session(team, sent: dict[str, str], expected: int) -> None:
    client = team.browser("lee")
    if sent.get("csrf") == "right":
        sent = {"csrf": team.csrf(client)}
    elif "csrf" in sent and len(sent["csrf"]) > 1:
        sent = {"csrf": team.csrf(team.browser("alex"))}
    answer = client.post("/books/shop/guideline", data={"text": "New text", **sent})
    assert answer.status_code == expected
    assert (team.store.books.get("shop").guideline == "New text") == (expected == 303)


def test_a_demoted_or_deactivated_account_is_out_at_once(team) -> None:
    assert team.browser("lee").get("/books/other").status_code == 200
    team.store.people.set_role(team.store.people.get("lee").id, Role.RATER)
    assert team.browser("lee").get("/books/other").status_code in {303, 403, 404}
    assert team.browser("vic").get("/books/other").status_code == 200
    team.store.people.set_active(team.store.people.get("vic").id, active=False)
    assert team.browser("vic").get("/books/other").status_code == 303

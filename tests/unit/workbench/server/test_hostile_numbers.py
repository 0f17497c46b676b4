"""Numbers that no database holds and values of other types: refused, and no failure of the server."""

from __future__ import annotations

import json

import pytest

from cranfield.workbench.server import streams

BIG = 10**25


def test_a_number_that_no_database_holds_is_one_that_is_not_there(team) -> None:
    api, book = "/api/books/shop", "/books/shop"
    for name, path, status in (
        ("ann", f"{api}/next?n=1&holding=1 2,,{BIG},{'9' * 5000}", 200),
        ("ann", f"{api}/items/{BIG}", 404),
        ("ann", f"{api}/items/{BIG}/image", 404),
        ("lee", f"{book}/items/{BIG}", 404),
        ("lee", f"{book}/calls?after={BIG}", 404),
        ("lee", f"{book}/adjudicate?item={BIG}", 404),
    ):
        assert team.browser(name).get(path).status_code == status, path
    assert team.post("alex", f"/people/{BIG}/reset").status_code == 404
    assert team.post("lee", f"{book}/members", account=1, quota=str(BIG)).status_code == 404


@pytest.mark.parametrize("day", ["x", "2026-13-01", "1", "0000-00-00"])
@pytest.mark.parametrize("path", ["/api/books/shop/items", "/books/shop/items", "/books/shop/reopen"])
def test_a_day_that_is_none_is_refused(team, path: str, day: str) -> None:
    answer = team.browser("lee").get(path, params={"day": day})
    assert answer.status_code == 422
    assert "day" in answer.text
    assert team.browser("lee").get(path, params={"day": "0001-01-01"}).status_code == 200


def test_an_entry_of_other_types_is_refused_alone(team) -> None:
    client = team.browser("ann")
    headers = {"x-csrf-token": team.csrf(client), "accept": "application/json"}
    item = client.get("/api/books/shop/next?n=1").json()["items"][0]["item"]
    good = {"key": "a-new-key", "item": item, "action": "grade", "grade": 1}
    odd = [{"item": [1]}, {"item": BIG}, {"guideline_version": BIG}, {"reason": "\0"}, {"key": "\0"}, {"grade": {}}]
    odd += [
        {"key": "\ud800"},
        {"reason": "\ud800"},
        {"key": {"\ud800": 1}},
        {"\ud800": "\0"},
        {"key": 10**400},
        {"grade": 10**400},
    ]
    entries = [{**good, "key": f"key {place}", **change} for place, change in enumerate(odd)]
    sent = json.dumps({"entries": [*entries, good]})
    answer = client.post(
        "/api/books/shop/judgments", content=sent, headers={**headers, "content-type": "application/json"}
    )
    results = answer.json()["results"]
    assert [(each["ok"], each.get("retry")) for each in results] == [(False, False)] * len(odd) + [(True, None)]
    assert results[7]["key"] == "key 7"  # a page knows by it which of its judgments is refused


@pytest.mark.parametrize("path", ["/jobs/99/live", "/v1/jobs/99/events"])
def test_a_stream_of_a_job_that_is_not_there_is_refused(team, path: str) -> None:
    assert team.browser("lee").get(path).status_code == 404


def test_an_account_has_a_number_of_streams(team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_STREAMS", 0)
    answer = team.browser("lee").get("/books/shop/live")  # ends at once
    assert "too many streams" in answer.text
    assert not team.app.state.streams.total()

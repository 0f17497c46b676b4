"""`/v1/queries`: redacted, counted, once for a key; nothing that was sent comes back or is logged."""

import json
import logging

import pytest

SECRET = "jane.roe@example.org 4111111111111111"
DAY = "2026-11-22"


@pytest.fixture
def send(team):
    """Send a body with a token of a scope."""

    def sent(body, scope="evaluate", **headers):
        raw = team.store.people.add_token(team.store.people.get("lee").id, "t", scope, 60_000)
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        headers = {"authorization": f"Bearer {raw}", "content-type": "application/json", **headers}
        return team.new().post("/v1/queries", content=content, headers=headers)

    return sent


@pytest.fixture
def today(team, monkeypatch):
    """The day of the service is that of the batches."""
    monkeypatch.setattr(team.app.state.service, "clock", lambda: 1_795_435_200_000)  # 2026-11-23 12:00 UTC


@pytest.mark.usefixtures("today")
def test_a_batch_is_redacted_and_counted(team, send):
    queries = [{"text": "dose of aspirin", "n": 3, "day": DAY}, {"text": f"pay {SECRET}", "day": DAY}, {"text": " "}]
    answer = send({"source": "app", "queries": queries})
    assert answer.status_code == 200
    assert answer.json() == {
        "n_read": 3,
        "n_kept": 2,
        "n_queries": 4,
        "dropped": {"blank": 1},
        "redacted": {"email": 1, "card": 1},
        "n_known": 0,
        "unfinished": False,
    }
    stored = team.app.state.service.queries.top()
    assert [(found.text, found.n) for found in stored] == [("dose of aspirin", 3), ("pay <email> <card>", 1)]
    listed = team.browser("vic").get("/v1/queries").json()
    assert listed == {"sources": [{"source": "app", "n_texts": 2, "n": 4, "first_day": DAY, "last_day": DAY}]}


@pytest.mark.usefixtures("today")
def test_a_batch_with_a_key_counts_once(team, send):
    body = {"source": "app", "queries": [{"text": "aspirin"}]}
    first, again = (send(body, **{"idempotency-key": "10:05"}).json() for _ in range(2))
    assert (first["n_kept"], again["n_kept"], again["n_known"]) == (1, 0, 1)
    assert send(body, "manage").json()["n_kept"] == 1
    assert team.app.state.service.queries.top()[0].n == 2


@pytest.mark.parametrize(
    "body",
    [
        f'{{"source": "app", "queries": [{{"text": "{SECRET}"',
        {"source": SECRET, "queries": [{"text": "x"}]},
        {"source": "app", "queries": [{"text": [SECRET]}]},
        {"source": "app", "queries": [{"text": "x", "n": SECRET}]},
        {"source": "app", "queries": [{"text": "x", "day": SECRET}]},
        {"source": "app", "queries": [{SECRET: 1}]},
        {"source": "app", "queries": SECRET},
        {"source": "app", "queries": []},
        {"source": "app", "queries": [{"text": "x"}] * 10_001},
        {"source": "app", SECRET: 1},
        SECRET,
        b'{"source": "app", "queries": [{"text": "\xff' + SECRET.encode() + b'"}]}',
    ],
    ids=range(12),
)
def test_a_refusal_holds_nothing_of_what_was_sent(send, caplog, body):
    caplog.set_level(logging.DEBUG)
    answer = send(body)
    assert answer.status_code in {400, 422}
    assert answer.json()["ok"] is False
    for part in (answer.text, caplog.text):
        for word in ("jane", "roe@", "4111"):
            assert word not in part


@pytest.mark.usefixtures("today")
def test_half_a_character_drops_its_query_alone(team, send):
    answer = send(
        b'{"source": "app", "queries": [{"text": "a \\ud800"}, {"text": "b"}, {"text": "c\\u0000d", "\\ud800": 1}]}'
    )
    assert (answer.status_code, answer.json()["dropped"]) == (200, {"unreadable": 1})
    assert [found.text for found in team.app.state.service.queries.top()] == ["b", "c d"]


def test_what_is_no_text_is_dropped(team, send):
    assert send({"source": "app", "queries": [{"text": "\ud800" + SECRET}]}).json()["dropped"] == {"unreadable": 1}
    assert team.app.state.service.queries.top() == ()


def test_who_may_send(team, send):
    body = {"source": "app", "queries": [{"text": "x"}]}
    assert send(body, "read").status_code == 403
    assert team.new().post("/v1/queries", json=body).status_code == 401

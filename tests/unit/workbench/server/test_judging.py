"""The JSON of the judging page: what a rater gets before and after grading, and batches of judgments."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient

from cranfield.base.errors import UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings, Mode, scale_of
from cranfield.books.store.schema import Action, RaterKind, Role
from cranfield.books.store.store import Store, open_store
from cranfield.books.store.values import SaveRequest
from cranfield.config.documents import Files, FileSource
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.preference import preference_result
from cranfield.workbench.config import Workbench
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.server.results import MAX_REPORTS, RecentValues

OPTIONS = ServerOptions(port=8000)
ADDRESS = "http://127.0.0.1:8000"
RUNS = tuple(PooledRun(name=name, digest="sha256:0") for name in ("SECRET-one", "SECRET-two"))
QUERIES = tuple(
    PooledQuery(id=f"q{n}", text=f"wool {n}", need=f"Need {n}", notes="Note", strata={"kind": "SECRET-stratum"})
    for n in range(3)
)
FIELDS = {"title": "Sock & <b>", "text": "A wool sock", "score": "SECRET-score", "rank": "SECRET-rank"}
GRADED = tuple(
    PooledItem(
        query=f"q{n}", doc=f"d{n}{d}", fields=FIELDS, runs={"SECRET-one": d + 1}, stratum="SECRET-s", inclusion=0.5
    )
    for n in range(3)
    for d in range(4)
)
LISTS = tuple(
    PooledItem(
        query=f"q{n}",
        doc="lists",
        fields={"a": [{"doc": "old", "title": "Old"}], "b": [{"doc": "new", "title": "New"}]},
    )
    for n in range(3)
)


def pool(items: tuple[PooledItem, ...]) -> Pool:
    return Pool(name="p", method="depth", depth=4, runs=RUNS, queries=QUERIES, items=items)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("books") / "books.db"
    store = open_store(path)
    store.books.create("shop", pool(GRADED), BookSettings(raters_per_item=2))
    store.books.create("ab", pool(LISTS), BookSettings(mode=Mode.PREFERENCE, seed=3))
    store.close()
    return path


@pytest.fixture(scope="module")
def one_store(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store, whose file each test has anew: the engine stays, since it compiles each statement once."""
    return open_store(shutil.copy(made, tmp_path_factory.mktemp("one") / "books.db"))


@pytest.fixture
def store(made: Path, one_store: Store) -> Iterator[Store]:
    one_store.close()
    shutil.copy(made, Path(one_store.database.where))
    yield one_store
    one_store.close()


@pytest.fixture(scope="session")
def app() -> FastAPI:
    return create_app(cast("Store", None), OPTIONS)


@pytest.fixture
def client(store: Store, app: FastAPI) -> Iterator[TestClient]:
    """Signed in on the judging page, with its CSRF token."""
    app.state.store, app.state.reports, app.state.texts = store, RecentValues(MAX_REPORTS), DocumentTexts()
    with TestClient(app, base_url=ADDRESS) as browser:
        page = browser.get(f"/start?token={OPTIONS.start_token}&next=/books/shop/judge")
        assert page.status_code == 200, page.text
        csrf = page.text.split('name="csrf" content="')[1].split('"')[0]
        browser.headers |= {"X-CSRF-Token": csrf, "Origin": ADDRESS}
        assert browser.get("/books/ab/judge").status_code == 200  # the lead joins
        yield browser


def fetch(client: TestClient, book: str = "shop", n: int = 5, **more: str | int) -> dict:
    answer = client.get(f"/api/books/{book}/next", params={"n": n, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def save(client: TestClient, *entries: dict, book: str = "shop") -> list[dict]:
    answer = client.post(f"/api/books/{book}/judgments", json={"entries": list(entries)})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


def test_nothing_that_could_bias_a_rater_is_sent_before_the_grade(client, store):
    store.people.add("ann", Role.RATER, RaterKind.PERSON)
    ann = store.people.get("ann").id
    book = store.books.get("shop")
    store.people.join(book.id, ann)
    for item in store.queue.next_items(book.id, ann, 12):
        store.log.save(
            SaveRequest(book.id, item.item_id, ann, Action.GRADE, f"k{item.item_id}", grade=3, reason="SECRET-reason")
        )
    found = fetch(client, n=12)
    card = found["items"][0]
    assert set(card) == {
        *("item", "query", "number", "of", "doc", "title", "html", "open_url", "digest", "problem", "pending", "mine"),
        *("reason", "flagged", "without_text"),
    }
    assert set(card["query"]) == {"id", "name", "text", "need", "notes", "number", "of"}
    assert card["query"]["need"].startswith("Need")
    assert (card["mine"], card["reason"]) == (None, "")
    page = client.get("/books/shop/judge").text
    assert "SECRET" not in json.dumps(found)
    assert "SECRET" not in page
    assert {item["mine"] for item in found["items"]} == {None}


def test_a_document_is_escaped_and_its_query_words_are_marked(client):
    card = fetch(client)["items"][0]
    assert card["title"] == "Sock & <b>"
    assert "<mark>wool</mark> sock" in card["html"]


def test_judgments_of_a_text_that_has_changed_are_stale(client, store, tmp_path, monkeypatch):
    source = FileSource(file=Files(root="."))
    config = Workbench(documents=[source], cache_s=0)
    config.set_base_dir(tmp_path)
    monkeypatch.setattr(client.app.state, "texts", DocumentTexts(config))
    book = store.books.get("shop").id
    texts = {item.doc: (tmp_path / item.doc) for item in store.reading.items(book)}
    for path in texts.values():
        path.write_text("A wool sock")
    first, second = fetch(client, n=2)["items"]
    for card in (first, second):
        save(
            client,
            {
                "key": f"k{card['item']}",
                "item": card["item"],
                "action": "grade",
                "grade": 2,
                "doc_digest": card["digest"],
            },
        )
    assert [row.stale for row in store.reading.ratings(book)] == [False, False]
    texts[first["doc"]].write_text("A woollen hat")
    assert client.get(f"/books/shop/items/{second['item']}").status_code == 200
    assert not any(row.stale for row in store.reading.ratings(book))
    fetch(client, n=0, recent=2)
    assert {row.doc: row.stale for row in store.reading.ratings(book)} == {first["doc"]: True, second["doc"]: False}
    texts[second["doc"]].write_text("A glove")
    assert client.get(f"/books/shop/items/{second['item']}").status_code == 200
    assert all(row.stale for row in store.reading.ratings(book))


def test_what_the_page_holds_is_not_given_again(client):
    first = [card["item"] for card in fetch(client, n=3)["items"]]
    second = [card["item"] for card in fetch(client, n=3, holding=",".join(map(str, first)))["items"]]
    assert len(set(first + second)) == 6


def test_each_entry_of_a_batch_is_answered_on_its_own_and_saved_once(client, store):
    a, b, c = (card["item"] for card in fetch(client, n=3)["items"])
    entries = [
        {"key": "1", "item": a, "action": "grade", "grade": 2, "duration_ms": 900, "method": "key"},
        {"key": "2", "item": b, "action": "grade", "grade": 7},
        {"key": "3", "item": b, "action": "dance"},
        {"key": "4", "item": 999, "action": "grade", "grade": 1},
        {"key": "5", "item": c, "action": "skip", "skip_reason": "broken", "reason": "torn"},
        {"key": "6", "item": b, "action": "grade", "grade": 0},
    ]
    results = {result["key"]: result for result in save(client, *entries)}
    assert [key for key, result in results.items() if result["ok"]] == ["1", "5", "6"]
    assert len(results) == 6
    assert not any(result.get("retry") for result in results.values())
    assert "0, 1, 2, 3" in results["2"]["error"] or "scale" in results["2"]["error"]
    again = save(client, *entries)
    assert [result["duplicate"] for result in again if result["ok"]] == [True, True, True]
    graded = [event for event in store.log.events(1) if event.action in {Action.GRADE, Action.SKIP}]
    assert (graded[0].item_id, graded[0].method, graded[0].duration_ms) == (a, "key", 900)
    assert len(graded) == 3


@pytest.mark.slow
def test_what_waits_is_not_overtaken_by_a_later_entry_of_its_item(client, store, monkeypatch):
    a, b = (card["item"] for card in fetch(client, n=2)["items"])
    real = store.log.save
    monkeypatch.setattr(store.log, "save", lambda request: 1 / 0 if request.client_key == "1" else real(request))
    results = save(
        client,
        {"key": "1", "item": a, "action": "grade", "grade": 1},
        {"key": "2", "item": a, "action": "undo"},
        {"key": "3", "item": b, "action": "grade", "grade": 1},
    )
    assert [(result["ok"], result.get("retry", False)) for result in results] == [
        (False, True),
        (False, True),
        (True, False),
    ]


def test_a_page_of_another_database_or_account_saves_nothing(client, store):
    item = fetch(client)["items"][0]["item"]
    entry = {"key": "1", "item": item, "action": "grade", "grade": 1}
    for other in ({"book": "0" * 16}, {"account": 999}):
        answer = client.post("/api/books/shop/judgments", json={"entries": [entry], **other})
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "other_book")
    assert not [event for event in store.log.events(1) if event.action is Action.GRADE]


@pytest.mark.slow
def test_a_closed_book_refuses_and_gives_nothing(client, store):
    item = fetch(client)["items"][0]["item"]
    store.books.close(1)
    (result,) = save(client, {"key": "1", "item": item, "action": "grade", "grade": 1})
    assert (result["ok"], result["retry"], result["code"]) == (False, False, "BookClosedError")
    assert fetch(client)["items"] == []


@pytest.mark.slow
def test_ranks_and_grades_are_revealed_for_what_was_graded_alone(client):
    found = fetch(client, n=4)["items"]
    first = found[0]
    query = first["query"]["id"]
    assert client.get("/api/books/shop/reveal", params={"query": query}).json()["rows"] == []
    save(client, {"key": "1", "item": first["item"], "action": "grade", "grade": 2})
    answer = client.get("/api/books/shop/reveal", params={"query": query}).json()
    assert answer["columns"][:3] == ["Document", "You", "SECRET-one"]
    assert [row[1] for row in answer["rows"]] == ["2"]
    assert answer["rows"][0][2] == f"rank {int(first['doc'][-1]) + 1}"
    assert client.get("/api/books/shop/reveal", params={"query": 999}).status_code == 404


@pytest.mark.slow
def test_what_was_judged_last_is_given_to_a_page_that_is_loaded_again(client):
    a, b = (card["item"] for card in fetch(client, n=2)["items"])
    save(client, {"key": "1", "item": a, "action": "grade", "grade": 2, "reason": "good"})
    save(client, {"key": "2", "item": b, "action": "skip", "skip_reason": "expert"})
    recent = fetch(client, recent=5)["recent"]
    assert [(card["item"], card["mine"]["action"], card["mine"]["grade"]) for card in recent] == [
        (a, "grade", 2),
        (b, "skip", None),
    ]
    assert (recent[0]["reason"], recent[1]["mine"]["skip_reason"]) == ("good", "expert")


def test_a_document_that_no_system_returned_is_added_and_judged(client, store):
    body = {"query": "q1", "doc": "found-elsewhere", "title": "Mine", "text": "", "url": "javascript:alert(1)"}
    card = client.post("/api/books/shop/documents", json=body).json()["item"]
    assert (card["title"], card["query"]["name"], card["open_url"]) == ("Mine", "q1", None)
    (result,) = save(client, {"key": "1", "item": card["item"], "action": "grade", "grade": 3})
    assert result["ok"]
    assert store.reading.item(card["item"]).origin == "added"
    assert client.post("/api/books/shop/documents", json=body | {"query": "nosuch"}).status_code == 404
    assert client.post("/api/books/shop/documents", json=body | {"doc": " "}).status_code == 422


def test_keys_of_a_rater_are_checked_and_kept_with_the_account(client):
    wrong = ({"next": "u"}, {"next": "7"}, {"next": "xy"}, {"dance": "x"})
    for settings in ({"layout": "cube"}, *({"keys": keys} for keys in wrong)):
        assert client.put("/api/me/settings", json=settings).status_code == 422
    assert "&#34;keys&#34;: {&#34;next&#34;" not in client.get("/books/shop/judge").text
    good = {"keys": {"next": "x"}, "enabled": False, "layout": "list", "highlight": False}
    for settings in ({"keys": {"next": ""}}, good):
        assert client.put("/api/me/settings", json=settings).status_code == 200
    assert "&#34;keys&#34;: {&#34;next&#34;: &#34;x&#34;" in client.get("/books/shop/judge").text


@pytest.mark.slow
def test_a_preference_is_saved_for_the_list_and_not_for_the_side(client, store):
    found = fetch(client, "ab", n=3)["items"]
    sides = {card["item"]: ["Old" in side for side in card["sides"]] for card in found}
    assert {each.count(True) for each in sides.values()} == {1}
    assert "doc:" not in json.dumps(found)  # the id is no text
    assert "SECRET" not in json.dumps(found)
    for card in found:  # always the list of the second run
        choice = "right" if sides[card["item"]][0] else "left"
        save(client, {"key": f"k{card['item']}", "item": card["item"], "action": "grade", "choice": choice}, book="ab")
    book = store.books.get("ab")
    assert {row.grade for row in store.reading.ratings(book.id)} == {2}
    recent = fetch(client, "ab", recent=3)["recent"]
    assert {card["item"]: card["mine"]["grade"] for card in recent} == {
        item: "right" if first_is_old else "left" for item, (first_is_old, _) in sides.items()
    }
    result = preference_result(["one", "two"], store.reading.ratings(book.id))
    assert (result.n, result.wins_a, result.wins_b, result.ties) == (3, 0, 3, 0)
    assert result.p_value == pytest.approx(0.25)  # 2 * 1/8
    assert (result.ci_low, result.ci_high) == (pytest.approx(0.025 ** (1 / 3)), 1.0)


@pytest.mark.slow
def test_leases_are_renewed_by_a_page_that_needs_no_item(client, store, monkeypatch):
    fetch(client, n=2)
    renewed = []
    real = store.queue.renew
    monkeypatch.setattr(store.queue, "renew", lambda *given: renewed.append(real(*given)))
    assert fetch(client, n=0)["items"] == []
    assert renewed == [4]  # the whole query


@pytest.mark.slow
def test_on_a_full_disk_nothing_is_saved_and_the_page_sends_it_again(client, store, caplog):
    def keep_full(connection, _record):
        connection.execute("PRAGMA max_page_count = 1")  # no less than the file has

    engine = store.database.engine
    ids = [item["item"] for item in fetch(client, n=4)["items"]]
    entries = [
        {"key": f"key {item}", "item": item, "action": "grade", "grade": 1, "reason": "long " * 1900} for item in ids
    ]
    event.listen(engine, "connect", keep_full)
    engine.dispose()
    refused = [result for result in save(client, *entries) if not result["ok"]]
    assert {(result["retry"], result["error"]) for result in refused} == {
        (True, "the database of the server does not respond")
    }
    assert {record.getMessage() for record in caplog.records} == {
        "the database does not respond: database or disk is full"
    }
    path, fields = "/books/shop/guideline", {"text": "long " * 19_000}
    answer = client.post(path, data=fields, headers={"accept": "text/html"})
    assert (answer.status_code, "atabase of the server does not respond" in answer.text) == (503, True)
    event.remove(engine, "connect", keep_full)
    engine.dispose()
    assert all(result["ok"] for result in save(client, *entries))
    book = store.books.get("shop").id
    assert sorted(each.client_key for each in store.log.events(book)) == sorted(entry["key"] for entry in entries)


RUN = "q1 Q0 a 1 2.0 old\nq1 Q0 b 2 1.0 old\nq2 Q0 c 1 1.0 old\n"
OTHER = "q1 Q0 b 1 2.0 new\nq1 Q0 a 2 1.0 new\nq2 Q0 c 1 1.0 new\n"
TESTSET = "cranfield_testset: 1\nname: t\nqueries:\n- {id: q1, text: one, need: First, judgments: {b: 1}}\n- {id: q2, text: two, judgments: {x: 0}}\n"


@pytest.mark.slow
def test_a_run_file_is_made_a_book_of_what_is_not_judged_and_two_a_book_of_lists(store, tmp_path, capsys):
    from cranfield.app.loading import load
    from cranfield.workbench.commands.judge import _is_without_text, book_of_runs

    runs = []
    for name, text in {"old": RUN, "new": OTHER}.items():
        runs.append(str(tmp_path / f"{name}.run"))
        Path(runs[-1]).write_text(text)
    (tmp_path / "t.yaml").write_text(TESTSET)
    testset = load(tmp_path / "t.yaml")
    for said in (
        "(0, 1, 2, 3): the test set declares no scale; to use the grades of its judgments, add `meta: {scale: [0, 1]}`",
        "",
    ):
        name = book_of_runs(store, runs[:1], testset, 10)  # the second time nothing is added
        assert said in (shown := capsys.readouterr().err)
        assert bool(said) == bool(shown)
        items = store.reading.items(store.books.get(name).id)
        assert sorted((item.query, item.doc) for item in items) == [("q1", "a"), ("q2", "c")]
    assert _is_without_text(store, store.books.get(name), DocumentTexts())
    assert not _is_without_text(store, store.books.get("shop"), DocumentTexts())
    name = book_of_runs(store, runs, testset, 10)
    (item,) = store.reading.items(store.books.get(name).id)
    assert [[hit["doc"] for hit in item.fields[side]] for side in "ab"] == [["a", "b"], ["b", "a"]]
    assert (item.query, item.need) == ("q1", "First")
    with pytest.raises(UsageError):
        book_of_runs(store, runs * 2, testset, 10)
    assert [level.label for level in scale_of([0.0, 1.0, 2.0]).levels] == ["not relevant", "1", "most relevant"]


@pytest.mark.slow
def test_a_run_file_needs_the_texts_of_its_queries(call, tmp_path):
    (tmp_path / "old.run").write_text(RUN)
    done = call("judge", tmp_path / "old.run", "--db", tmp_path / "new.db", "--no-open")
    assert (done.returncode, "--queries FILE" in done.stderr) == (2, True)


@pytest.mark.slow
def test_an_image_is_given_for_an_item_of_the_book_alone(client):
    item = fetch(client)["items"][0]["item"]
    assert client.get(f"/api/books/shop/items/{item}/image").status_code == 404  # it has none
    assert client.get("/api/books/shop/items/9999/image").status_code == 404
    assert client.get(f"/api/books/ab/items/{item}/image").status_code == 404

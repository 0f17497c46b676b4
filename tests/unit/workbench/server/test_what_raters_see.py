"""What a rater can find out, and save: nothing tells a calibration item from another, and only what was given is judged."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from starlette.testclient import TestClient

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.review import review_settings
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action
from cranfield.books.store.values import BookInfo
from cranfield.judging.book.grades import contents_of
from cranfield.judging.quality import book_quality
from cranfield.judging.selection import Selection, selected_items

KNOWN = 3.0
GOLD = [("q1", "d1", KNOWN, "clear"), ("q2", "d2", KNOWN, "clear")]


def pool(n_docs: int = 3, **fields: object) -> Pool:
    queries = tuple(PooledQuery(id=f"q{n}", text=f"wool {n}") for n in range(3))
    items = tuple(
        PooledItem(query=query.id, doc=f"d{doc}", runs={"bm25": doc + 1}, fields=fields or {"title": f"T{doc}"})
        for query in queries
        for doc in range(n_docs)
    )
    runs = (PooledRun(name="bm25", digest="sha256:0"),)
    return Pool(name="p", method="depth", depth=n_docs, runs=runs, queries=queries, items=items)


class Rater:
    """A browser of a rater in a book."""

    def __init__(self, team, book: BookInfo, name: str) -> None:
        self.team, self.book = team, book
        self.id = team.store.people.get(name).id
        self.client: TestClient = team.browser(name)
        self.headers = {"X-CSRF-Token": team.csrf(self.client)}
        self.n = 0

    def get(self, path: str, status: int = 200, **params: object) -> dict:
        answer = self.client.get(f"/api/books/{self.book.name}/{path}", params=params)
        assert answer.status_code == status, answer.text
        return answer.json()

    def next(self, n: int = 1, **params: object) -> list[dict]:
        return self.get("next", n=n, **params)["items"]

    def save(self, item: int, action: str = "grade", **fields: object) -> dict:
        self.n += 1
        entry = {"key": f"{self.id}-{self.n}", "item": item, "action": action, **fields}
        if action == "grade":
            entry = {"grade": 1.0} | entry
        path = f"/api/books/{self.book.name}/judgments"
        answer = self.client.post(path, json={"entries": [entry]}, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["results"][0]


def make(team, name: str, *raters: str, the_pool: Pool | None = None, **settings: object) -> list[Rater]:
    book = team.store.books.create(name, the_pool or pool(), BookSettings(**settings))
    for rater in raters:
        team.store.people.join(book.id, team.store.people.get(rater).id)
    return [Rater(team, book, rater) for rater in raters]


def golden(rater: Rater, *rows: tuple[str, str, float, str]) -> set[int]:
    rater.team.store.books.calibration(rater.book.id, rows or GOLD)
    return {item.id for item in rater.team.store.reading.items(rater.book.id) if item.gold is not None}


def observed(rater: Rater, seen: dict[str, object], what: str) -> None:
    """What changed in everything that the rater can ask for."""
    progress = rater.get("progress")["progress"]
    before = seen.get("progress", progress)
    seen["progress"] = progress
    seen[what] = {
        name: progress[name] - before[name] for name in ("n_done", "n_left", "n_skipped", "n_later", "n_seen")
    }


@pytest.mark.parametrize("quota", [None, 6])
def test_nothing_that_a_rater_can_ask_for_tells_a_calibration_item_from_another(team, quota) -> None:
    (ann,) = make(team, "secret", "ann", quota=quota, raters_per_item=2, calibration_first=2)
    known = golden(ann)
    found: dict[bool, set[str]] = defaultdict(set)
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    n_gold = 0
    while cards := ann.next():
        card, seen = cards[0], {}
        item = card["item"]
        observed(ann, seen, "given")
        places[card["query"]["id"]].append((card["number"], card["of"]))
        answers = [ann.save(item, "later")]
        observed(ann, seen, "later")
        answers += [ann.save(item, "undo"), ann.save(item), ann.save(item, "undo"), ann.save(item, "flag")]
        observed(ann, seen, "undone")
        answers += [ann.save(item, "unflag"), ann.save(item, "skip", skip_reason="broken")]
        observed(ann, seen, "skipped")
        assert [again["item"] for again in ann.next()] != [item]
        answers += [ann.save(item, "undo"), ann.save(item), ann.save(item, grade=0.0)]
        observed(ann, seen, "graded")
        kept = {
            name: card[name]
            for name in card
            if name not in {"item", "query", "number", "doc", "title", "html", "digest", "of"}
        }
        again = ann.get(f"items/{item}")["item"]
        seen |= {"card": kept, "again": sorted(again), "title": again["title"] == f"T{card['doc'][1:]}", "progress": 0}
        seen |= {"answers": [{name: value for name, value in answer.items() if name != "key"} for answer in answers]}
        found[item in known].add(repr(seen))
        n_gold += item in known
    assert n_gold == 2
    assert found[True] <= found[False]
    assert {of for given in places.values() for _, of in given} == {3}
    for given in places.values():
        assert [number for number, _ in given] == sorted({number for number, _ in given})


def test_what_was_put_off_comes_again_in_its_turn_whatever_it_is(team) -> None:
    (ann,) = make(team, "secret", "ann", calibration_first=2)
    known = golden(ann)
    given = []
    while (card := ann.next()[0])["item"] not in given:
        given.append(card["item"])
        ann.save(card["item"], "later")
    assert len(given) == 9
    assert known <= set(given)
    again = ann.next(50)
    assert {card["item"] for card in again} == set(given)
    assert ann.get("progress")["progress"]["n_left"] == 9
    for card in again:
        ann.save(card["item"])
    assert ann.next() == []


def test_a_page_that_is_loaded_again_gets_the_same_items_in_the_same_order(team) -> None:
    (ann,) = make(team, "secret", "ann", calibration_first=2)
    golden(ann)
    first = [card["item"] for card in ann.next(5)]
    assert [card["item"] for card in ann.next(5)] == first
    more = [card["item"] for card in ann.next(4, holding=",".join(map(str, first)))]
    assert not set(more) & set(first)
    assert len(more) == 4


def revealed(rater: Rater) -> list[list[str]]:
    queries = rater.team.store.reading.queries(rater.book.id)
    return [row for query in queries for row in rater.get("reveal", query=query.id)["rows"]]


def test_what_is_revealed_after_grading_does_not_tell_known_grades(team) -> None:
    ann, bob, cas = make(team, "secret", "ann", "bob", "cas", calibration_first=2, raters_per_item=2)
    known = golden(ann)
    for rater, grade in ((ann, 3.0), (bob, 3.0), (cas, 3.0)):
        while cards := rater.next():
            rater.save(cards[0]["item"], grade=grade)
    shapes: dict[bool, set[tuple[str, ...]]] = defaultdict(set)
    docs = {(item.query, item.doc): item for item in team.store.reading.items(ann.book.id)}
    for query in team.store.reading.queries(ann.book.id):
        answer = ann.get("reveal", query=query.id)
        assert answer["columns"] == ["Document", "You", "bm25", "Other persons", "Models", "Final"]
        for title, you, rank, *others in answer["rows"]:
            item = docs[query.name, f"d{title[1:]}"]
            assert (you, rank) == ("3", f"rank {int(title[1:]) + 1}")
            shapes[item.id in known].add(tuple(others))
    assert shapes[True] == {("3", "–", "–")}
    assert shapes[True] <= shapes[False]


def test_grades_of_others_beyond_the_plan_are_revealed_of_no_item(team) -> None:
    ann, bob = make(team, "secret", "ann", "bob", calibration_first=2, lease_seconds=60)
    known = golden(ann)
    mine = [card["item"] for card in ann.next(50)]
    assert known <= set(mine)
    team.now[0] += 3_600_000
    while cards := bob.next():
        bob.save(cards[0]["item"], grade=2.0)
    for item in mine:
        assert ann.save(item, grade=1.0)["ok"]
    assert len(revealed(ann)) == 9
    assert {tuple(row[3:]) for row in revealed(ann)} == {("–", "–", "–")}


def test_a_calibration_item_outside_the_pool_has_a_title_and_takes_the_ranks_away(team) -> None:
    (ann,) = make(team, "secret", "ann", calibration_first=1)
    known = golden(ann, ("q1", "d9", KNOWN, "clear"), ("q0", "d9", KNOWN, "clear"))
    team.store.books.renew_fields(ann.book.id, {min(known): {"title": "T9"}})
    golden(ann, ("q2", "d9", KNOWN, "clear"))
    assert [item.fields for item in team.store.reading.items(ann.book.id) if item.doc == "d9"][-1] == {"title": "T9"}
    while cards := ann.next():
        ann.save(cards[0]["item"], grade=1.0)
    assert {tuple(row[1:]) for row in revealed(ann)} == {("1", "–", "–", "–")}


def test_the_first_grade_of_a_calibration_item_counts(team) -> None:
    ann, _ = make(team, "secret", "ann", "bob", calibration_first=2)
    known = sorted(golden(ann))
    ann.next(25)
    assert ann.save(known[0], grade=0.0)["ok"]
    assert ann.save(known[0], "undo")["ok"]
    for item, grade in ((known[0], KNOWN), (known[1], KNOWN), (known[1], 0.0)):
        assert ann.save(item, grade=grade)["ok"]
    (line,) = book_quality(team.store, ann.book).raters
    assert (line.n_gold, line.n_gold_right) == (2, 1)
    wrong = selected_items(team.store, ann.book.id, 0, Selection(rater="ann", gold="wrong"))
    assert [item.id for item in wrong] == known[:1]
    lead = team.store.people.get("lee").id
    team.store.books.reopen(ann.book.id, known[:1], lead)
    ann.next(25)
    ann.save(known[0], grade=KNOWN)
    assert book_quality(team.store, ann.book).raters[0].n_gold_right == 2  # asked again
    final = {item.doc: item.gold for item in contents_of(team.store, ann.book.id).items if item.gold is not None}
    assert set(final.values()) == {KNOWN}


def test_the_page_of_the_book_names_raters_who_lack_calibration_items(team) -> None:
    ann, bob = make(team, "secret", "ann", "bob", calibration_first=5, raters_per_item=2)
    golden(ann)
    while cards := ann.next():
        ann.save(cards[0]["item"])
    bob.save(bob.next()[0]["item"])
    assert "Fewer than 2 calibration items graded so far: bob." in team.browser("lee").get("/books/secret").text


NOT_GIVEN = "is not assigned to ann"


def test_a_rater_judges_nothing_that_was_not_given(team) -> None:
    ann, bob = make(team, "secret", "ann", "bob")
    golden(ann)
    mine = {card["item"] for card in ann.next(5)}
    other = next(item for item in team.store.reading.items(ann.book.id) if item.id not in mine and item.query != "q1")
    actions = (
        {},
        {"action": "skip", "skip_reason": "broken"},
        {"action": "later"},
        {"action": "flag"},
        {"action": "undo"},
    )
    for entry in actions:
        result = ann.save(other.id, **entry)
        assert (result["ok"], result["retry"], result["code"]) == (False, False, "NotAllowedError")
        assert NOT_GIVEN in result["error"]
    ann.get(f"items/{other.id}", status=404)
    ann.get(f"items/{other.id}/image", status=404)
    body = {"query": other.query, "doc": other.doc}
    added = ann.client.post(f"/api/books/{ann.book.name}/documents", json=body, headers=ann.headers)
    assert (added.status_code, "already" in added.json()["error"]) == (422, True)
    token = {"authorization": f"Bearer {team.store.people.add_token(ann.id, 't', 'judge', 10**9)}"}
    grades = {"grades": [{"query": other.query, "doc": other.doc, "grade": 1}]}
    sent = TestClient(team.app, base_url="http://127.0.0.1:8000").post(
        "/v1/books/secret/grades", json=grades, headers=token
    )
    assert (sent.status_code, NOT_GIVEN in sent.text) == (422, True)
    assert team.store.log.events(ann.book.id) == ()
    assert bob.save(next(iter(mine)))["ok"] is False
    body = {"query": "q0", "doc": "mine", "title": "Mine"}
    added = ann.client.post(f"/api/books/{ann.book.name}/documents", json=body, headers=ann.headers).json()["item"]
    assert ann.save(added["item"])["ok"]
    lee = Rater(team, ann.book, "lee")
    assert lee.save(other.id)["ok"]  # a lead may


def test_a_grade_after_the_lease_was_taken_is_kept_as_one_more(team) -> None:
    ann, bob = make(team, "secret", "ann", "bob", lease_seconds=60, the_pool=pool(1))
    item = ann.next()[0]["item"]
    team.now[0] += 3_600_000
    while cards := bob.next():
        bob.save(cards[0]["item"])
    assert ann.save(item) == {"ok": True, "duplicate": False, "key": f"{ann.id}-1"}
    assert team.store.reading.coverage(ann.book.id).n_extra == 1


def test_the_quota_holds_when_grades_are_saved(team) -> None:
    (ann,) = make(team, "secret", "ann", quota=3)
    first, second, third = (card["item"] for card in ann.next(10))
    team.store.people.join(ann.book.id, ann.id, 2)
    results = [ann.save(item) for item in (first, second, third)]
    assert [result["ok"] for result in results] == [True, True, False]
    assert "the quota of ann in book secret is used up; expected 0 grades at most, got 1" in results[-1]["error"]
    assert ann.save(first, grade=2.0)["ok"]  # no further one
    assert ann.save(first, "later")["ok"]
    assert ann.save(third)["ok"]
    assert ann.save(first, "undo")["ok"] is False  # the grade would hold again
    assert ann.next(10) == []
    token = {"authorization": f"Bearer {team.store.people.add_token(ann.id, 't', 'judge', 10**9)}"}
    item = team.store.reading.item(first)
    grades = {"grades": [{"query": item.query, "doc": item.doc, "grade": 1}]}
    api = TestClient(team.app, base_url="http://127.0.0.1:8000", headers=token)
    assert (
        api.post("/v1/books/secret/grades", json=grades).status_code,
        ann.get("progress")["progress"]["n_left"],
    ) == (422, 0)
    team.store.people.join(ann.book.id, ann.id, 3)
    assert api.post("/v1/books/secret/grades", json=grades).json() == {"n_saved": 1, "n_known": 0}


def test_a_judgment_is_by_the_guidelines_that_were_shown(team) -> None:
    (ann,) = make(team, "secret", "ann")
    early, late, third = (card["item"] for card in ann.next(3))
    team.store.books.set_guideline(ann.book.id, "Be strict.")
    assert ann.save(early, guideline_version=1)["ok"]  # as it was shown
    assert ann.get("next", n=2)["guideline"] == 2
    for version in (1, 3):
        result = ann.save(late, guideline_version=version)
        assert (result["ok"], "different version of the guidelines" in result["error"]) == (False, True)
    assert ann.save(late, guideline_version=2)["ok"]
    assert ann.save(third)["ok"]
    versions = {row.item_id: row.guideline_version for row in team.store.reading.ratings(ann.book.id)}
    assert versions == {early: 1, late: 2, third: 2}


RECORD = {
    "task_type": "locate",
    "difficulty": "easy",
    "must_mention_facts": [{"fact": "It returns 1.", "citations": []}],
    "canonical_narrative": "It lives in a.py.",
}


def test_a_review_is_of_a_record_that_was_given_by_the_guidelines_of_its_page(team) -> None:
    (ann,) = make(team, "records", "ann", the_pool=pool(1, **RECORD), **review_settings(1, 0).model_dump())
    page = ann.client.get("/books/records/review").text
    own = int(re.search(r'action="/books/records/review/(\d+)"', page)[1])
    assert 'name="guideline_version" value="1"' in page
    other = next(item.id for item in team.store.reading.items(ann.book.id) if item.id != own)
    fields = {"csrf": ann.headers["X-CSRF-Token"], "grade": 1, "guideline_version": 1}
    for step in ("save", "preview", "later", "skip"):
        sent = {**fields, "key": f"key of {step}", "step": step}
        assert ann.client.post(f"/books/records/review/{other}", data=sent).status_code == 404, step
    assert ann.client.get("/books/records/review", params={"item": other}).status_code == 404
    team.store.books.set_guideline(ann.book.id, "Be strict.")
    ann.client.get("/books/records/review")
    sent = ann.client.post(f"/books/records/review/{own}", data={**fields, "key": "the old page"})
    assert (sent.status_code, "different version of the guidelines" in sent.text) == (422, True)
    sent = ann.client.post(
        f"/books/records/review/{own}", data={**fields, "key": "the new page", "guideline_version": 2}
    )
    assert sent.status_code == 303
    (row,) = team.store.reading.ratings(ann.book.id)
    assert (row.action, row.guideline_version) == (Action.GRADE, 2)

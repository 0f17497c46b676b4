"""The pages of a book: every figure leads to the items behind it; adjudication and re-opening keep the log."""

from __future__ import annotations

import html
import re
from urllib.parse import urlsplit

import pytest

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import REVIEW_SCALE, SCALES, BookSettings, Mode
from cranfield.books.store.schema import Action, ItemState
from cranfield.books.store.values import ItemFilter, SaveRequest
from cranfield.judging.quality import book_quality

LINK = re.compile(r'<a href="(/books/shop/items\?[^"]+)">(\d+)</a>')


def n_listed(page: str) -> int:
    return int(re.search(r"<strong>(\d+)</strong> item", page)[1])


@pytest.mark.slow
def test_every_figure_leads_to_as_many_items(team) -> None:
    """A cell of the dashboard, as coverage, ratings and agreement count, against the list, as the selection counts."""
    client = team.browser("lee")
    links = {(html.unescape(path), int(n)) for path, n in LINK.findall(client.get("/books/shop").text)}
    assert len(links) > 40
    wrong = [(path, n) for path, n in sorted(links) if n_listed(client.get(path).text) != n]
    assert wrong == []


@pytest.mark.slow
def test_every_link_of_the_pages_is_answered(team) -> None:
    client = team.browser("lee")
    seen, todo = set(), ["/", "/books/shop", "/account"]
    while todo:
        path = todo.pop()
        page = client.get(path)
        assert page.status_code == 200, path
        for found in re.findall(r'href="(/[^"#]*)"', page.text):
            link = html.unescape(found)
            kind = re.sub(r"\d+", "0", urlsplit(link).path) + re.sub(r"=[^&]*", "", urlsplit(link).query)
            if kind not in seen and not link.startswith(("/static", "/books/other", "/sign-in")):
                seen.add(kind)
                todo.append(link)
    assert len(seen) > 20


@pytest.mark.slow
def test_judged_0_unjudged_and_the_number_of_judgments(team) -> None:
    coverage = book_quality(team.store, team.store.books.get("shop")).coverage
    assert coverage.n_items == 120
    assert sum(coverage.by_persons.values()) == 120
    assert (coverage.by_persons[0], coverage.unjudged) == (58, 58)
    assert coverage.judged_lowest + coverage.judged_higher == 62
    page = team.browser("lee").get("/books/shop").text
    assert "In the pool, unjudged" in page
    assert "An unjudged item is not a 0" in page


@pytest.mark.slow
def test_the_figures_of_the_raters(team) -> None:
    quality = book_quality(team.store, team.store.books.get("shop"))
    lines = {line.rater: line for line in quality.raters}
    assert [*lines] == ["ann", "bob", "cas", "gpt-x"]
    assert lines["ann"].n == 62
    assert (lines["ann"].n_gold, lines["cas"].n_fast) == (3, 11)
    assert lines["ann"].kappa is None
    assert lines["gpt-x"].kappa.n == 20
    assert not quality.too_few
    alpha = quality.report.agreement.coefficients["alpha-ordinal"]
    assert alpha.ci_low < alpha.value < alpha.ci_high
    assert lines["cas"].fits is False
    assert lines["ann"].fits is True
    assert {day.day for day in quality.days} == {"2026-11-21", "2026-11-22", "2026-11-23"}
    assert "cas disagrees with the others" in team.browser("lee").get("/books/shop").text


@pytest.mark.slow
def test_the_agreement_is_that_of_cranfield_agreement(team) -> None:
    """The same numbers as the table of ratings gives by `krippendorff`, an independent implementation."""
    import krippendorff
    import numpy as np

    book = team.store.books.get("shop")
    names = ("ann", "bob", "cas")
    items = [item for item in team.store.reading.items(book.id) if item.gold is None]
    grades = np.full((3, len(items)), np.nan)
    for column, item in enumerate(items):
        for row in item.ratings:
            if row.rater in names:
                grades[names.index(row.rater), column] = row.grade
    expected = krippendorff.alpha(reliability_data=grades, level_of_measurement="ordinal")
    found = book_quality(team.store, book).report.agreement.coefficients["alpha-ordinal"].value
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_few_pairs_are_too_few_to_say(team, team_books) -> None:
    store = team.store
    book = store.books.create("small", team_books.pool("small", 2), BookSettings(raters_per_item=2))
    for name in ("ann", "bob"):
        account = store.people.get(name)
        store.people.join(book.id, account.id)
        for item in store.reading.items(book.id):
            request = SaveRequest(book.id, item.id, account.id, Action.GRADE, f"{item.id}", grade=1.0)
            store.log.save(request)
    page = team.browser("lee").get("/books/small").text
    assert page.count("insufficient data") >= 3
    assert "12 items judged twice, at least 50 needed" in page


def test_an_empty_book_has_no_agreement_and_only_null_queries(team) -> None:
    page = team.browser("lee").get("/books/other").text
    assert "insufficient data" in page
    assert "whose measures are null (6)" in page


@pytest.mark.slow
def test_grades_carried_over_are_no_rater_with_a_kappa(team, team_books) -> None:
    pool = team_books.pool("next", 2)
    items = tuple(item.model_copy(update={"judged": 1}) for item in pool.items)
    team.store.books.create("next", pool.model_copy(update={"items": items}), BookSettings())
    (carried,) = book_quality(team.store, team.store.books.get("next")).raters
    assert (carried.rater, carried.n, carried.kappa) == ("carried", 12, None)
    page = team.browser("lee").get("/books/next").text
    assert "insufficient data (0)" not in page
    assert "<caption>Persons</caption>" not in page
    assert "no grade of a person yet" in page


def test_two_raters_have_a_kappa(team, team_books) -> None:
    store = team.store
    book = store.books.create("pair", team_books.pool("pair", 10), BookSettings(raters_per_item=2, most_raters=2))
    for name, step in (("ann", 3), ("bob", 4)):
        account = store.people.get(name)
        store.people.join(book.id, account.id)
        for place, item in enumerate(store.reading.items(book.id)):
            grade = float(place % step == 0)
            store.log.save(SaveRequest(book.id, item.id, account.id, Action.GRADE, f"{item.id}", grade=grade))
    ((first, second, kappa),) = book_quality(store, book).kappas
    assert (first, second, kappa.n) == ("ann", "bob", 60)
    assert "60 items</summary>" in team.browser("lee").get("/books/pair").text


def waiting(team) -> list[int]:
    book = team.store.books.get("shop").id
    return [item.id for item in team.store.reading.items(book, ItemFilter(state=ItemState.ADJUDICATE))]


def test_adjudication_keeps_the_grades_and_wants_a_reason(team) -> None:
    client = team.browser("lee")
    page = client.get("/books/shop/adjudicate").text
    assert "thinks so" in page or "no reason given" in page
    assert "<td>ann" not in page
    item = waiting(team)[0]
    fields = {"csrf": team.csrf(client), "grade": 2, "key": "a key of the form"}
    assert client.post(f"/books/shop/adjudicate/{item}", data=fields).status_code == 422
    before = [(row.rater, row.grade) for row in team.store.reading.item(item).ratings]
    for _ in range(2):  # a form that is sent twice
        done = client.post(f"/books/shop/adjudicate/{item}", data={**fields, "reason": "as in the guideline"})
        assert done.status_code == 303
    after = team.store.reading.item(item)
    assert (after.final, after.final_by, after.final_reason) == (2.0, "lee", "as in the guideline")
    assert [(row.rater, row.grade) for row in after.ratings] == before
    assert item not in waiting(team)
    assert "final grade 2 by lee" in client.get(f"/books/shop/items/{item}").text


@pytest.mark.slow
def test_the_second_of_two_leads_is_told_of_the_first(team) -> None:
    address, item = "/books/shop/adjudicate", waiting(team)[0]
    assert 'name="seen" value=""' in team.browser("alex").get(f"{address}?item={item}").text
    first = {"grade": 2, "reason": "as in the guideline", "key": "the key of lee"}
    assert team.post("lee", f"{address}/{item}", **first).status_code == 303
    second = {"grade": 0, "reason": "only <similar>", "seen": ""}
    answer = team.post("alex", f"{address}/{item}", key="a key of alex", **second)
    assert answer.status_code == 409
    assert "lee set the final grade 2" in answer.text
    assert "Your grade is not saved." in answer.text
    assert 'value="0" required checked' in answer.text
    assert "only &lt;similar&gt;</textarea>" in answer.text
    assert team.store.reading.item(item).final_by == "lee"
    seen = re.search(r'name="seen" value="(\d+)"', answer.text)[1]
    for _ in range(2):  # a form that is sent twice
        again = team.post("alex", f"{address}/{item}", key="another key", **second | {"seen": seen})
        assert again.status_code == 303
    assert (team.store.reading.item(item).final_by, team.store.reading.item(item).final) == ("alex", 0.0)
    team.store.books.reopen(team.store.books.get("shop").id, [item], team.store.people.get("lee").id)
    answer = team.post("alex", f"{address}/{item}", key="a third key", **second | {"seen": seen})
    assert (answer.status_code, "The final grade has been withdrawn in the meantime." in answer.text) == (409, True)


def test_who_graded_an_item_does_not_adjudicate_it(team) -> None:
    store, lee = team.store, team.store.people.get("lee")
    book, item = store.books.get("shop").id, waiting(team)[0]
    store.people.join(book, lee.id)
    store.log.save(SaveRequest(book, item, lee.id, Action.GRADE, "k", grade=1.0))
    page = team.browser("lee").get(f"/books/shop/adjudicate?item={item}").text
    assert "You graded this item" in page
    assert 'id="decide"' not in page
    answer = team.post("lee", f"/books/shop/adjudicate/{item}", grade=1, reason="mine", key="a key of the form")
    assert answer.status_code == 422
    assert team.store.reading.item(item).final is None


@pytest.mark.slow
def test_reopening_withdraws_what_was_previewed(team) -> None:
    client, book = team.browser("lee"), team.store.books.get("shop").id
    page = client.get("/books/shop/reopen?rater=cas&fast=True").text
    assert "Re-open 11 items" in page
    assert "<strong>11 judgments</strong>, by cas. Other judgments of these items are kept." in page
    fields = {"csrf": team.csrf(client), "expected": 11, "judgments": 11, "reason": "not read"}
    for changed in ("expected", "judgments"):
        other = client.post("/books/shop/reopen?rater=cas&fast=True", data={**fields, changed: 8})
        assert "/reopen?" in other.headers["location"]
    assert client.post("/books/shop/reopen?rater=cas&fast=True", data=fields).status_code == 303
    assert n_listed(client.get("/books/shop/items?rater=cas&fast=True").text) == 0
    assert len(team.store.log.events(book)) > 150  # the log has them still
    lines = {line.rater: line.n for line in book_quality(team.store, team.store.books.get("shop")).raters}
    assert (lines["ann"], lines["bob"], lines["cas"]) == (62, 62, 11)


@pytest.mark.slow
def test_reopening_one_rater_leaves_the_judgments_of_the_others(team) -> None:
    client = team.browser("lee")
    assert "by cas. Other judgments of these items are kept." in client.get("/books/shop/reopen?rater=cas").text
    fields = {"csrf": team.csrf(client), "expected": 22, "judgments": 22, "reason": "at random"}
    assert client.post("/books/shop/reopen?rater=cas", data=fields).status_code == 303
    lines = {line.rater: line.n for line in book_quality(team.store, team.store.books.get("shop")).raters}
    assert "cas" not in lines
    assert (lines["ann"], lines["bob"]) == (62, 62)


@pytest.mark.slow
def test_guideline_members_links_and_state(team) -> None:
    assert team.post("lee", "/books/shop/guideline", text="Grade\r\nwell").status_code == 303
    assert team.store.books.get("shop").guideline == "Grade\nwell"
    assert n_listed(team.browser("lee").get("/books/shop/items?before_guideline=2").text) == 62
    oto = team.store.people.get("oto").id
    assert team.post("lee", "/books/shop/members", account=oto, quota="5").status_code == 303
    assert team.store.people.is_member(team.store.books.get("shop").id, oto)
    assert team.post("lee", "/books/shop/members", account=oto, quota="many").status_code == 422
    assert team.post("lee", "/books/shop/members", account=oto, action="leave").status_code == 303
    assert not team.store.people.is_member(team.store.books.get("shop").id, oto)
    assert team.post("lee", "/books/shop/state", state="closed").status_code == 303
    assert team.store.books.get("shop").state == "closed"


def test_a_link_of_another_book_is_not_revoked(team) -> None:
    other = team.store.books.get("other").id
    team.store.people.add_link(other, 60_000)
    link = team.store.people.links(other)[0].id
    assert team.post("lee", f"/books/shop/links/{link}/revoke").status_code == 404
    assert team.post("lee", f"/books/other/links/{link}/revoke").status_code == 303


def test_calls_of_models_are_shown_as_text(team) -> None:
    from cranfield.books.store.values import CallRow

    store, book = team.store, team.store.books.get("shop").id
    item = store.reading.items(book)[0].id
    call = store.calls.add(
        CallRow(
            book, store.people.get("gpt-x").id, "sha256:1", (item,),
            {"system": "Two\nlines", "messages": [{"role": "user", "text": "<script>alert(1)</script>\u202e"}], "tools": []},
            {"text": "</pre><img src=x>", "usage": {}},
            "ok", "", 100, 5, 0.001, 900,
        )
    )  # fmt: skip
    assert f"/books/shop/calls?call={call}" in team.browser("lee").get("/books/shop/calls").text
    page = team.browser("lee").get(f"/books/shop/calls?call={call}").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "Two\nlines" in page  # as it was sent, not as JSON
    assert ("\u202e" in page, "<img" in page) == (False, False)
    assert "No call has this outcome" in team.browser("lee").get("/books/shop/calls?outcome=error").text
    assert team.browser("lee").get("/books/shop/calls?outcome=other").status_code == 422
    assert team.browser("lee").get(f"/books/other/calls?call={call}").status_code == 404
    bare = store.calls.add(
        CallRow(book, store.people.get("gpt-x").id, "sha256:2", (), {}, {}, "error", "lost", None, None, None, 9)
    )
    assert "lost" in team.browser("lee").get(f"/books/shop/calls?call={bare}").text


def test_names_that_are_html_are_text(team) -> None:
    team.store.people.add('<img src=x onerror="alert(1)">')
    assert "<img" not in team.browser("alex").get("/people").text


@pytest.mark.slow
def test_a_book_is_frozen_and_the_version_is_a_file(team) -> None:
    refused = team.post("lee", "/books/shop/freeze")
    assert refused.status_code == 422
    assert "not finished" in refused.text
    assert "The box “include partly graded and undecided items” freezes the current state" in refused.text
    assert team.post("lee", "/books/shop/freeze", partial="true").status_code == 303
    assert team.post("lee", "/books/shop/freeze", partial="true", pseudonyms="true").status_code == 303
    assert "Version 1" in team.browser("lee").get("/books/shop").text
    version = team.browser("vic").get("/books/shop/frozen/1")
    assert version.headers["content-disposition"] == "attachment; filename*=UTF-8''shop-1.yaml"
    assert version.text.startswith("cranfield_testset: 1")
    assert "ann" in version.text
    unnamed = team.browser("vic").get("/books/shop/frozen/2").text
    assert "rater 1" in unnamed
    assert not re.search(r"\b(ann|bob|cas|lee)\b", unnamed)
    assert team.browser("vic").get("/books/shop/frozen/3").status_code == 404


@pytest.mark.slow
def test_a_book_without_items_and_one_of_preferences_have_a_dashboard(team, team_books) -> None:
    empty = team_books.pool("none", 1).model_copy(update={"items": ()})
    team.store.books.create("none", empty, BookSettings())
    pair = {"a": [{"doc": "x", "title": "X"}], "b": [{"doc": "y", "title": "Y"}]}
    pool = team_books.pool("sides", 1)
    items = tuple(item.model_copy(update={"fields": pair}) for item in pool.items)
    settings = BookSettings(mode="preference", raters_per_item=2)
    book = team.store.books.create("sides", pool.model_copy(update={"items": items}), settings)
    item = team.store.reading.items(book.id)[0]
    for name, grade in (("ann", 1.0), ("bob", 2.0)):
        account = team.store.people.get(name).id
        team.store.people.join(book.id, account)
        team.store.log.save(SaveRequest(book.id, item.id, account, Action.GRADE, "k", grade=grade))
    for name in ("none", "sides"):
        for path in ("", "/items", "/adjudicate", "/settings", "/calls"):
            assert team.browser("lee").get(f"/books/{name}{path}").status_code == 200, (name, path)
    page = team.browser("lee").get("/books/sides").text
    assert '<th scope="row">ties</th><td>1</td>' in page
    page = team.browser("lee").get(f"/books/sides/adjudicate?item={item.id}").text
    assert "List B is better" in page
    assert "<li>Y</li>" in page
    fields = {"grade": 2, "reason": "fuller", "key": "a key of the form"}
    assert team.post("lee", f"/books/sides/adjudicate/{item.id}", **fields).status_code == 303
    assert team.store.reading.item(item.id).final == 2.0
    page = team.browser("vic").get("/books/sides").text  # the final choice stands for those of the raters
    assert '<th scope="row">b better</th><td>1</td>' in page
    assert '<th scope="row">ties</th><td>0</td>' in page
    assert "sign test</th><td>p 1" in page


@pytest.mark.slow
def test_skips_and_stale_judgments_are_counted_by_item_as_they_are_listed(team) -> None:
    """Two raters skip one item, a third only skips; a judgment of a model, and one of a calibration item, become stale."""
    store, client = team.store, team.browser("lee")
    book = store.books.get("shop")
    ids = {name: store.people.get(name).id for name in ("ann", "bob", "oto")}
    store.people.join(book.id, ids["oto"])
    items = store.reading.items(book.id)
    free = [item for item in items if not item.ratings]
    for name, item in (("ann", free[0]), ("bob", free[0]), ("oto", free[0]), ("oto", free[1])):
        skip = SaveRequest(book.id, item.id, ids[name], Action.SKIP, f"s{name}{item.id}", skip_reason="expert")
        store.log.save(skip)
    given = [(free[2], ids["ann"]), (items[0], ids["oto"]), (free[3], store.people.get("gpt-x").id)]
    for item, account in given:
        store.books.set_digest(item.id, "sha256:old")
        grade = SaveRequest(book.id, item.id, account, Action.GRADE, f"g{item.id}", grade=1.0, doc_digest="sha256:old")
        store.log.save(grade)
        store.books.set_digest(item.id, "sha256:new")
    assert (items[0].gold, items[0].origin) != (None, "repeat")
    quality = book_quality(store, book)
    assert (quality.coverage.n_skipped, quality.coverage.n_stale) == (2, 3)
    page = client.get("/books/shop").text
    for path, n in (("skipped=any", 2), ("stale=1", 3), ("rater=oto&skipped=any", 2)):
        assert n_listed(client.get(f"/books/shop/items?{path}").text) == n
        assert f'items?{html.escape(path)}">{n}</a>' in page
    assert "<strong>2 judgments</strong>, by ann, oto." in client.get("/books/shop/reopen?stale=True").text


def test_the_page_freezes_a_book_onto_the_test_set_of_its_pool(team, tmp_path):
    file = tmp_path / "own.qrels"
    file.write_text("q1 0 a 2\nq1 0 old 1\nq2 0 x 1\n")
    pool = Pool(
        name="over",
        method="depth",
        depth=1,
        testset="own",
        testset_file=str(file),
        n_earlier=3,
        runs=(),
        queries=(PooledQuery(id="q1", text="wool socks"),),
        items=(PooledItem(query="q1", doc="a", judged=2), PooledItem(query="q1", doc="n", prefilled=1)),
    )
    team.store.books.create("over", pool, BookSettings())
    lee = team.browser("lee")
    page = lee.get("/books/over").text
    assert "which has 3 judgments and targets" in page
    assert "without the earlier judgments" in page
    assert team.post("lee", "/books/over/freeze", partial="true").status_code == 303
    assert team.post("lee", "/books/over/freeze", partial="true", without_earlier="true").status_code == 303
    kept, bare = (lee.get(f"/books/over/frozen/{number}").text for number in (1, 2))
    assert ("old: 1" in kept, "x: 1" in kept, "n: 1" in kept) == (True, True, True)
    assert ("old: 1" in bare, "x: 1" in bare, "n: 1" in bare) == (False, False, True)
    file.unlink()
    refused = team.post("lee", "/books/over/freeze", partial="true")
    assert refused.status_code == 422
    assert "leave its judgments out with the box “without the earlier judgments”" in refused.text


@pytest.mark.parametrize("mode", list(Mode))
def test_a_book_that_has_nothing_to_freeze_offers_no_freezing_and_a_review_book_speaks_of_reviews(team, mode) -> None:
    pool = Pool(
        name="x",
        method="depth",
        depth=1,
        runs=(),
        queries=(PooledQuery(id="q1", text="wool socks"),),
        items=(PooledItem(query="q1", doc="a"),),
    )
    scale = REVIEW_SCALE if mode is Mode.REVIEW else SCALES["graded"]
    team.store.books.create("x", pool, BookSettings(mode=mode, scale=scale))
    page = team.browser("lee").get("/books/x").text
    assert 'action="/books/x/freeze"' not in page
    assert team.post("lee", "/books/x/freeze", partial="true").status_code == 422
    assert ("Records by their reviews" in page, "Judged 1" in page) == (mode is Mode.REVIEW, False)

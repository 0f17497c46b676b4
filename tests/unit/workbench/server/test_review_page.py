"""The page on which records of a golden set are reviewed: what it shows, what it saves, and who decides a difference."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.review import FieldEdit, ReviewedLines, ReviewMaterial, StatedFact, review_settings
from cranfield.books.store.schema import ItemState
from cranfield.workbench.server.review import ReviewForm, decision_of, marked_edit

HOSTILE = "<script>alert(1)</script>"
RECORD = {
    "task_type": "locate",
    "difficulty": "easy",
    "expected_entities": [{"entity_id": "src/a.py::run", "role": "primary", "rationale": HOSTILE}],
    "expected_files": ["src/a.py"],
    "must_mention_facts": [
        {"fact": "It returns 1.", "citations": [{"file": "src/a.py", "start": 3, "end": 4}]},
        {"fact": "\n It raises\r\nnothing.  ", "citations": []},
    ],
    "must_not_mention_facts": [{"fact": f"It prints {HOSTILE}", "citations": []}],
    "canonical_narrative": "It lives in a.py, and returns 1.",
    "claims": [{"claim_type": "entity", "claim": "src/a.py::run", "verdict": "partial", "note": HOSTILE}],
    "sources": [
        {"file": "src/a.py", "start": 3, "end": 4, "text": f"def run():\n    return 1  # {HOSTILE}"},
        {"file": "src/b.py", "start": 9, "end": 9, "problem": "This file is not in the snapshot."},
    ],
    "commit": "0123456789abcdef",
}


@pytest.fixture
def golden(team):
    """A book of two records for two reviewers, ann and lee; alex leads."""
    queries = tuple(PooledQuery(id=f"q{n}", text=f"Where is it run? {HOSTILE}") for n in range(2))
    items = tuple(PooledItem(query=query.id, doc="attempt 1", fields=RECORD) for query in queries)
    pool = Pool(name="golden", method="depth", depth=1, runs=(), queries=queries, items=items)
    book = team.store.books.create("golden", pool, review_settings(2, 0))
    for name in ("ann", "lee"):
        team.store.people.join(book.id, team.store.people.get(name).id)
    return team


def fields_of(page: str) -> dict[str, list[str]]:
    """What a browser sends of the form as it is: line ends are CRLF, and the first line feed of a text area is dropped."""
    form = page[page.index('id="decide"') :]
    found: dict[str, list[str]] = {}
    for name, text in re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL):
        lines = unescape(text).replace("\r\n", "\n").replace("\r", "\n")
        found.setdefault(name, []).append(lines.replace("\n", "\r\n"))
    found["key"] = re.findall(r'name="key" value="([^"]+)"', form)
    found["disposition"] = re.findall(r'name="disposition" value="(\w+)" checked', form)
    found["failure_mode"] = re.findall(r'<option value="(\w+)" selected', form) or [""]
    found["seen"] = re.findall(r'name="seen" value="(\d+)"', form)
    return {name: values for name, values in found.items() if values}


def review(team, name: str, path: str = "/books/golden/review", *, open_at: str = "", **changed: object):
    """Send the form of the page with changes."""
    page = team.browser(name).get(open_at or path)
    assert page.status_code == 200, page.text
    (item,) = re.findall(r'action="[^"]*/(\d+)" class="form wide"', page.text)
    fields = fields_of(page.text) | {key: each for key, each in changed.items() if not key.startswith("at_")}
    for key, value in changed.items():
        if key.startswith("at_"):  # at_must_0: the first fact
            _, field, place = key.rsplit("_", 2) if key.count("_") == 2 else ("", "must_not", key[-1])
            fields[field][int(place)] = value
    return int(item), team.post(name, f"{path}/{item}", **fields)


def ratings(team, item: int):
    return team.store.reading.item(item).ratings


def test_the_page_shows_the_record_and_its_lines_and_escapes_everything(golden) -> None:
    page = golden.browser("ann").get("/books/golden/review").text
    assert HOSTILE not in page
    for text in (
        "src/a.py::run",
        "It returns 1.",
        "src/a.py:3-4",
        "not in the snapshot",
        'data-line="3"',
        "0123456789",
    ):
        assert text in page
    assert "1 of 1 not fully supported" in page
    assert golden.browser("ann").get("/books/golden/judge").headers["location"] == "/books/golden/review"
    assert golden.browser("ann").get("/books/shop/review").status_code == 404
    assert golden.browser("ann").get("/api/books/golden/next").status_code == 200


def test_what_the_adversary_adds_is_in_sight_also_where_it_supports_every_claim(team) -> None:
    claims = [{"claim_type": "entity", "claim": "src/a.py::run", "verdict": "supported"}]
    reason = "Jaccard index of entities 0.500, at least 0.8 needed: the adversary adds src/b.py::helper"
    fields = {**RECORD, "claims": claims, "missing": ["src/b.py::helper"], "reasons": [reason]}
    items = (PooledItem(query="q0", doc="attempt 1", fields=fields),)
    pool = Pool(
        name="adds", method="depth", depth=1, runs=(), queries=(PooledQuery(id="q0", text="Where?"),), items=items
    )
    book = team.store.books.create("adds", pool, review_settings(2, 0))
    team.store.people.join(book.id, team.store.people.get("ann").id)
    page = team.browser("ann").get("/books/adds/review").text
    assert "<details open><summary>Verdicts of the adversary: 0 of 1 not fully supported, 1 missing</summary>" in page
    assert "Missing in the answer, by the adversary: <code>src/b.py::helper</code>" in page
    assert f"To be reviewed: {reason}" in page


def test_a_form_that_is_sent_as_it_is_edits_nothing(golden) -> None:
    item, answer = review(golden, "ann", grade=1, seconds=7)
    assert (answer.status_code, answer.headers["location"]) == (303, "/books/golden/review?done=saved")
    (row,) = ratings(golden, item)
    assert (row.grade, row.duration_ms, row.data["edits"]) == (1, 7000, [])
    assert golden.browser("ann").get("/books/golden/review").text.count(f"/review/{item}") == 0  # the other one


def test_edits_are_shown_and_then_saved_with_the_text_before(golden) -> None:
    change = {
        "grade": 2,
        "reason": "A number.",
        "failure_mode": "false_fact",
        "at_must_0": "It returns 2.",
        "at_must_2": "It is new.",
        "narrative": "It lives in a.py, and returns 2.",
    }
    item, shown = review(golden, "ann", step="preview", **change)
    assert shown.status_code == 200
    assert "returns <del>1</del><ins>2</ins>." in shown.text
    assert ratings(golden, item) == ()
    item, answer = review(golden, "ann", **change)
    assert answer.status_code == 303, answer.text
    first, second = ratings(golden, item)[0].data["edits"]
    assert first["before"] == RECORD["must_mention_facts"]
    cited = RECORD["must_mention_facts"][0]["citations"]
    assert first["after"] == [
        {"fact": "It returns 2.", "citations": cited},
        RECORD["must_mention_facts"][1],
        {"fact": "It is new.", "citations": []},
    ]
    assert second["field"] == "canonical_narrative"
    again = golden.browser("ann").get(f"/books/golden/review?item={item}").text
    assert "returns <del>1</del><ins>2</ins>." in again


def test_an_emptied_fact_is_removed_and_bad_citations_are_shown_with_what_was_written(golden) -> None:
    wrong = {
        "grade": 2,
        "reason": "r",
        "failure_mode": "other",
        "at_must_1": "",
        "must_lines": ["a.py:4-3", "", "", ""],
    }
    item, refused = review(golden, "ann", **wrong)
    assert refused.status_code == 422
    assert "Not a range of lines in a file" in refused.text
    assert "a.py:4-3" in refused.text
    _, answer = review(golden, "ann", **wrong | {"must_lines": ["src/b.py:7", "", "", ""]})
    assert answer.status_code == 303
    (edit,) = ratings(golden, item)[0].data["edits"]
    place = {"file": "src/b.py", "start": 7, "end": 7}
    assert edit["after"] == [{"fact": "It returns 1.", "citations": [place]}]


@pytest.mark.parametrize(
    ("fields", "problem"), [({}, "has no verdict"), ({"grade": 1, "narrative": "Other."}, "is not correct")]
)
def test_a_decision_that_cannot_stand_is_shown_again(golden, fields, problem) -> None:
    item, answer = review(golden, "ann", **fields)
    assert answer.status_code == 422
    assert problem in answer.text
    assert "data-unsaved" in answer.text
    assert ratings(golden, item) == ()


@pytest.mark.slow  # 0.6 s: a form for each action
def test_a_record_is_put_off_or_left_to_others(golden) -> None:
    item, _ = review(golden, "ann", step="later", reason="Half way.", narrative="So far.")
    other, _ = review(golden, "ann", step="skip", reason="I do not know the code.")
    assert item != other
    assert [row.skip_reason for row in ratings(golden, other)] == ["expert"]
    page = golden.browser("ann").get("/books/golden/review").text
    assert f"/review/{item}" in page
    assert "So far." in page
    assert "Half way." in page


@pytest.mark.slow  # 1.5 s: three browsers; what the store makes of a difference is tested there
def test_a_lead_decides_where_two_reviewers_differ_and_sees_no_names(golden) -> None:
    item, _ = review(golden, "ann", grade=1)
    drop = {"grade": 4, "reason": "Another file.", "failure_mode": "wrong_target", "disposition": "drop"}
    assert ">ann<" not in golden.browser("lee").get(f"/books/golden/review?item={item}").text
    assert review(golden, "lee", open_at=f"/books/golden/review?item={item}", **drop)[1].status_code == 303
    assert golden.store.reading.item(item).state == ItemState.ADJUDICATE
    assert "You reviewed this record" in golden.browser("lee").get(f"/books/golden/review/decide?item={item}").text
    decide = "/books/golden/review/decide"
    assert golden.browser("alex").get("/books/golden/adjudicate").headers["location"] == decide
    page = golden.browser("alex").get(decide).text
    assert "Another file." in page
    assert ">lee<" not in page
    starts = [f"{decide}?item={item}&start={n}" for n in (1, 2)]
    (start,) = [each for each in starts if 'value="drop" checked' in golden.browser("alex").get(each).text]
    _, answer = review(golden, "alex", decide, open_at=start, grade=4, reason="As the second says.")
    assert answer.status_code == 303, answer.text
    found = golden.store.reading.item(item)
    assert (found.state, found.final, found.final_data["disposition"]) == (ItemState.ADJUDICATED, 4, "drop")
    shown = golden.browser("lee").get(f"/books/golden/items/{item}", follow_redirects=True).text
    assert "alex decided" in shown
    for path in ("", "/items", "/settings", "/review/decide"):
        assert golden.browser("alex").get(f"/books/golden{path}").status_code == 200, path
    assert "No record needs" in golden.browser("alex").get(decide).text


LINES = st.text(alphabet="ab <\n\r\t", min_size=1)
TEXTS = st.lists(LINES.filter(str.strip), max_size=4)


def sent(text: str) -> str:
    """A text as a browser sends it back."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


@given(TEXTS, TEXTS, LINES)
def test_a_form_that_is_sent_back_as_it_was_shown_edits_nothing(must, must_not, narrative) -> None:
    place = ReviewedLines(file="a b.py", start=1, end=2)
    material = ReviewMaterial(
        task_type="locate",
        difficulty="easy",
        must_mention_facts=[StatedFact(fact=fact, citations=[place, place]) for fact in must],
        must_not_mention_facts=[StatedFact(fact=fact) for fact in must_not],
        canonical_narrative=narrative,
    )
    form = ReviewForm(
        key="k" * 8,
        must=[*map(sent, must), "", ""],
        must_lines=[f"{place}\r\n{place}"] * len(must) + ["", ""],
        must_not=[*map(sent, must_not), "", ""],
        must_not_lines=[""] * (len(must_not) + 2),
        narrative=sent(narrative),
    )
    data, problems = decision_of(form, material)
    assert (data.edits, problems) == ([], [])


@given(LINES, LINES)
def test_a_marked_edit_holds_both_texts(before, after) -> None:
    marked = marked_edit(FieldEdit(field="canonical_narrative", before=before, after=after))
    without = {"del": "ins", "ins": "del"}
    for tag, text in (("del", before), ("ins", after)):
        kept = re.sub(rf"<{without[tag]}>.*?</{without[tag]}>", "", marked, flags=re.DOTALL)
        assert unescape(re.sub(r"</?(del|ins)>", "", kept)) == text


def test_records_that_others_hold_are_not_done(team) -> None:
    items = (PooledItem(query="q0", doc="attempt 1", fields=RECORD),)
    pool = Pool(
        name="one", method="depth", depth=1, runs=(), queries=(PooledQuery(id="q0", text="Where?"),), items=items
    )
    book = team.store.books.create("one", pool, review_settings(1, 0))
    for name in ("ann", "lee"):
        team.store.people.join(book.id, team.store.people.get(name).id)
    assert 'id="decide"' in team.browser("ann").get("/books/one/review").text
    page = team.browser("lee").get("/books/one/review").text
    assert "No record is free for you now: 1 record is reserved by other reviewers." in page
    assert "become free at 2026-11-23 13:00 UTC." in page
    assert 'href="/books/one/judge">Look again</a>' in page
    assert "left to review" not in page
    assert '0 <span class="fine">1 reserved by others</span>' in team.browser("lee").get("/books").text

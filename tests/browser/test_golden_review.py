"""The review page in Chromium: by the keyboard alone, at desk and phone width, without a finding of axe or a message of the console."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from playwright.sync_api import Browser, Page, expect

from cranfield.books.database.engine import now_ms
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.review import review_settings
from cranfield.books.store.schema import Action, ItemState, Role
from cranfield.books.store.store import Store, open_store
from cranfield.books.store.values import SaveRequest
from cranfield.golden.use_cases.review import open_second_look

from .served import check_page, new_page, serving, sign_in

pytestmark = [pytest.mark.slow, pytest.mark.browser]
PASSWORD = "a long sentence of words"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
FACTS = [
    {
        "fact": "The gate compares the score with the threshold.",
        "citations": [{"file": "src/agent.py", "start": 160, "end": 172}],
    },
    {"fact": "Below it the model is called.", "citations": [{"file": "src/agent.py", "start": 170, "end": 180}]},
]
LINES = "\n".join(
    f"    value_{n} = compare(score, threshold_{n})  # {'a long comment ' * (n % 9)}<b>" for n in range(40)
)
RECORD = {
    "task_type": "locate",
    "difficulty": "medium",
    "difficulty_rationale": "The name does not say where the decision is made.",
    "expected_entities": [
        {"entity_id": "src/agent.py::Agent.smart_answer", "role": "primary", "rationale": "It has the check."}
    ],
    "expected_files": ["src/agent.py"],
    "expected_line_ranges": [{"file": "src/agent.py", "start": 160, "end": 199}],
    "must_mention_facts": FACTS,
    "must_not_mention_facts": [{"fact": "The threshold is fixed."}],
    "canonical_narrative": "The decision is made in smart_answer, which compares the score with the threshold.",
    "confidence": "low",
    "uncertainty_notes": "Whether the threshold can be set by users.",
    "reasons": ["the oracle has low confidence"],
    "claims": [
        {"claim_type": "file", "claim": "src/agent.py", "verdict": "supported"},
        {
            "claim_type": "must_mention_fact",
            "claim": FACTS[1]["fact"],
            "verdict": "partial",
            "note": "Only without force.",
            "citation": {"file": "src/agent.py", "start": 170, "end": 180},
        },
    ],
    "sources": [
        {"file": "src/agent.py", "start": 160, "end": 199, "text": LINES},
        {"file": "src/config.py", "start": 1, "end": 2, "problem": "This file is not in the snapshot, or is not text."},
    ],
    "commit": "0123456789abcdef",
}


@dataclass
class Served:
    """A server with a book of two records."""

    address: str
    store: Store
    browser: Browser
    messages: list[str] = field(default_factory=list)

    def page(self, name: str) -> Page:
        return sign_in(new_page(self.browser, self.messages), self.address, name, PASSWORD)


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("golden")
    store = open_store(folder / "books.db")
    queries = tuple(PooledQuery(id=f"q{n}", text="Where do we decide whether a model answers?") for n in range(2))
    items = tuple(PooledItem(query=query.id, doc="attempt 1", fields=RECORD) for query in queries)
    book = store.books.create(
        "golden", Pool(name="r", method="depth", depth=1, runs=(), queries=queries, items=items), review_settings(2, 0)
    )
    for name, role in (("ann", Role.RATER), ("bob", Role.RATER), ("lee", Role.ADMIN)):
        account = store.people.add(name, role, password_hash=QUICK)
        store.people.join(book.id, account.id)
    with serving(folder, folder / "books.db") as address:
        yield Served(address, store, browser)
        store.close()


def test_two_reviewers_and_a_lead_by_the_keyboard(served: Served) -> None:
    page = served.page("ann")
    page.goto(f"{served.address}/books/golden/judge")
    expect(page.get_by_role("heading", name="Cited lines")).to_be_visible()
    left, right = page.locator("#answer").bounding_box(), page.locator("#sources").bounding_box()
    assert right["x"] > left["x"] + left["width"]  # side by side
    check_page(page, "golden-review")
    page.set_viewport_size({"width": 390, "height": 900})
    places = [page.locator(name).bounding_box()["y"] for name in ("#answer", "#sources", "#decide")]
    assert places == sorted(places)  # stacked
    page.set_viewport_size({"width": 1280, "height": 900})
    item = int(re.search(r"/review/(\d+)", page.locator("#decide").get_attribute("action"))[1])

    page.keyboard.press("2")
    expect(page.locator("[name=grade][value='2']")).to_be_checked()
    expect(page.locator("#failure")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.keyboard.press("Control+End")
    page.keyboard.type(" It is configured.")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.keyboard.type("It lacks the setting.")
    page.get_by_role("button", name="Show changes").focus()
    page.keyboard.press("Enter")
    expect(page.locator("ins")).to_have_text("It is configured.")
    check_page(page, "golden-changes")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".notice")).to_have_text("Saved.")
    (row,) = served.store.reading.item(item).ratings
    assert (row.grade, row.reason, row.data["failure_mode"]) == (2, "It lacks the setting.", "query_unclear")
    assert row.data["edits"][0]["after"] == RECORD["canonical_narrative"] + " It is configured."
    assert row.duration_ms is not None

    bob = served.store.people.get("bob").id
    book = served.store.books.get("golden").id
    served.store.log.save(SaveRequest(book, item, bob, Action.GRADE, "bob 1", 1))
    lead = served.page("lee")
    lead.goto(f"{served.address}/books/golden/adjudicate")
    check_page(lead, "golden-decide")
    lead.get_by_role("link", name="Start from this decision").first.focus()
    lead.keyboard.press("Enter")
    lead.wait_for_url(re.compile("start=1"))
    lead.keyboard.press("1")
    lead.keyboard.press("r")
    if lead.locator("#narrative").input_value() != RECORD["canonical_narrative"]:
        lead.fill("#narrative", RECORD["canonical_narrative"])
        lead.locator("#failure").select_option("")
    lead.fill("#reason", "It was correct.")
    lead.keyboard.press("Control+Enter")
    expect(lead.get_by_text("No record needs")).to_be_visible()
    assert served.store.reading.item(item).state == ItemState.ADJUDICATED
    lead.goto(f"{served.address}/books/golden/items/{item}")
    expect(lead.get_by_text("lee decided")).to_be_visible()
    check_page(lead, "golden-record")
    assert served.messages == []


@contextmanager
def judging(folder: Path, book: str, name: str) -> Iterator[str]:
    """The server of one user, who states a name; the address that it prints."""
    command = [sys.executable, "-m", "cranfield", "judge", book, "--as", name, "--no-open", "--port", "0"]
    with (folder / "judge.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--db", str(folder / "alone.db")],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "XDG_DATA_HOME": str(folder)},
        )
    try:
        line = server.stdout.readline() if server.stdout else ""
        assert line.startswith("Judge at http"), (folder / "judge.log").read_text()
        yield line.removeprefix("Judge at ").strip()
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_one_person_looks_twice_by_the_keyboard_and_the_second_time_blind(browser: Browser, tmp_path: Path) -> None:
    later: list[int] = []
    store = open_store(tmp_path / "alone.db", clock=lambda: now_ms() + sum(later))
    queries = tuple(PooledQuery(id=f"q{n}", text=f"Where is decision {n} made?") for n in range(5))
    items = tuple(PooledItem(query=query.id, doc="attempt 1", fields=RECORD) for query in queries)
    pool = Pool(name="r", method="depth", depth=1, runs=(), queries=queries, items=items)
    first = store.books.create("r", pool, review_settings(1, 0))
    messages: list[str] = []
    orders = []
    for book in ("r", "r-second-look"):
        with judging(tmp_path, book, "dee") as address:
            page = new_page(browser, messages)
            page.goto(address)
            expect(page.get_by_text("You review as dee")).to_contain_text("not verified")
            check_page(page, f"golden-alone-{book}")
            seen = []
            for n in range(len(queries)):
                page.wait_for_load_state("load")  # the keys are there
                seen.append(page.locator(".query .fine").first.inner_text().split(" ")[0])
                expect(page.locator("[name=grade]:checked")).to_have_count(0)
                assert page.locator("#reason").input_value() == ""
                if n == 0 and book == "r":
                    page.keyboard.press("2")
                    page.keyboard.press("ArrowDown")
                    page.keyboard.press("Escape")
                    page.keyboard.press("r")
                    page.keyboard.type("It lacks the setting.")
                else:
                    page.keyboard.press("1")
                expect(page.locator("[name=grade]:checked")).to_have_count(1)
                page.keyboard.press("Control+Enter")
                expect(page.get_by_text(f"{n + 1} of 5 reviewed.")).to_be_visible()
            orders.append(seen)
            assert "It lacks the setting" not in page.content() or book == "r"
            expect(page.get_by_text("cranfield golden reviewed RUN")).to_be_visible()
            check_page(page, f"golden-alone-{book}-end")
            page.context.close()
        later.append(25 * 3_600_000)
        open_second_look(store, first, 0)
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    again = store.reading.items(store.books.get("r-second-look").id)
    assert {row.rater for item in again for row in item.ratings} == {"dee"}
    store.close()
    assert messages == []

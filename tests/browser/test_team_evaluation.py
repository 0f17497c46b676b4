"""The whole day of a team in Chromium: keywords are pasted, raters grade with keys, measures move, a second run keeps the grades.

It goes on with what is frozen and compared with the pinned baseline, and ends with a night in which the search got worse.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.receiver import receiving
from tests.unit.workbench.service.shop import Shop, make_shop

from cranfield.books.store.accounts import AccountInfo
from cranfield.books.store.schema import Role
from cranfield.books.store.store import Store, open_store
from cranfield.workbench.server.passwords import hash_password
from cranfield.workbench.service.requests import CompareRequest
from cranfield.workbench.service.values import EvaluationFilter

from .served import check_page, new_page, serving, sign_in
from .test_judging_page import all_saved, grade

pytestmark = [pytest.mark.slow, pytest.mark.browser]
PASSWORD = "a long sentence of words"
DONE_MS = 60_000
NIGHTLY = [f"query {number:02}" for number in range(20)]
CONFIG = """\
testsets:
  own: {path: own.yaml}
  many: {path: many.yaml, measures: [RR@2]}
gate:
  rules:
    - floor: {measure: RR@2, at_least: 0.9}
    - drop: {measure: RR@2, at_most: 0.05}
"""


@dataclass
class Served:
    """A server with a system, a lead and two raters."""

    address: str
    store: Store
    shop: Shop
    browser: Browser
    messages: list[str]

    def page(self, name: str, path: str) -> Page:
        """A browser in which an account has signed in, at a page."""
        return sign_in(new_page(self.browser, self.messages), self.address, name, PASSWORD, path)


def account(store: Store, name: str, role: Role) -> AccountInfo:
    return store.people.add(name, role, password_hash=hash_password(PASSWORD))


@pytest.fixture
def served(browser: Browser, tmp_path: Path) -> Iterator[Served]:
    with closing(open_store(tmp_path / "books.db")) as store:
        account(store, "alex", Role.ADMIN)
        lead = account(store, "lee", Role.LEAD)
        for name in ("ann", "bob", "cas"):
            account(store, name, Role.RATER)
        shop = make_shop(store, tmp_path, lead.id)
        (tmp_path / "workbench.yaml").write_text("tunable: {shop: {params.boost: [1, 2]}}\n")
        files = [str(tmp_path / "cranfield.yaml"), "--workbench", str(tmp_path / "workbench.yaml")]
        many = [f"- {{id: q{n}, text: {text}, judgments: {{a: 1, b: 0, c: 0}}}}\n" for n, text in enumerate(NIGHTLY)]
        (tmp_path / "many.yaml").write_text(f"cranfield_testset: 1\nname: many\nqueries:\n{''.join(many)}")
        config = tmp_path / "cranfield.yaml"
        config.write_text(config.read_text().replace("testset: own.yaml\n", CONFIG))
        with serving(tmp_path, tmp_path / "books.db", files) as address:
            yield Served(address, store, shop, browser, [])


def evaluation_page(page: Page) -> int:
    """Wait for the job of the page, and open its evaluation; the id."""
    link = page.locator("main a[href^='/evaluations/']").first
    expect(link).to_be_visible(timeout=DONE_MS)
    link.click()
    page.wait_for_url(re.compile(r"/evaluations/\d+"))
    return int(page.url.rsplit("/", 1)[1])


def comparison_page(page: Page) -> None:
    """Wait for the comparison that a button makes; where it takes longer, by the page of its job."""
    page.wait_for_url(re.compile(r"/(comparisons|jobs)/\d+"), timeout=DONE_MS)
    if "/jobs/" in page.url:
        link = page.locator("#live a[href^='/comparisons/']")
        expect(link).to_be_visible(timeout=DONE_MS)
        link.click()
        page.wait_for_url(re.compile(r"/comparisons/\d+"))


def cells(page: Page, measure: str) -> list[str]:
    row = page.locator("#live tr", has=page.locator(f"th:text-is('{measure}')")).first
    return [" ".join(text.split()) for text in row.locator("td").all_inner_texts()]


def judge(served: Served, name: str, given: dict[str, str]) -> None:
    """A rater grades everything with keys."""
    page = served.page(name, "/books/shoes/judge")
    for _ in given:
        grade(page, given[page.locator(".card .doc").inner_text()])
    expect(page.locator("#finished-text")).to_contain_text("You have no items left")
    all_saved(page)
    page.context.close()


def test_the_day_of_a_team(served: Served) -> None:
    lead = served.page("lee", "/evaluations/new")
    check_page(lead, "new-evaluation")
    lead.fill("#keywords", "red shoes\n\nboots\nred shoes\n")
    lead.fill("#name", "shoes")
    lead.fill("#k", "4")
    lead.fill("#measures", "P@4 AP@4 nDCG@4")
    lead.select_option("#scale", "binary")
    lead.fill("#raters", "2")
    lead.get_by_label("shop").check()
    for name in ("ann", "bob"):
        lead.get_by_label(name).check()
    lead.get_by_role("button", name="Start").click()
    first = evaluation_page(lead)
    expect(lead.locator("p.pre").first).to_contain_text("line 2 is blank, line 4 repeats line 1: 'red shoes'")
    assert cells(lead, "P@4")[:4] == ["null", "0", "2", "0 % 0 of 6"]

    judge(served, "ann", {"a": "1", "b": "1", "c": "0", "d": "0", "x": "1", "y": "0"})
    # the page of the lead moves by itself: red shoes 2 of 4, boots 1 of 2
    expect(lead.locator("#live")).to_contain_text("100 % 6 of 6", timeout=DONE_MS)
    assert cells(lead, "P@4")[:3] == ["0.5000", "2", "0"]
    judge(served, "bob", {"a": "1", "b": "0", "c": "0", "d": "0", "x": "1", "y": "0"})
    # b is a tie now: null, and out of the denominator. P 1/3 and 1/2
    expect(lead.locator("#live")).to_contain_text("83 % 5 of 6", timeout=DONE_MS)
    assert cells(lead, "P@4") == ["0.4167", "2", "0", "83 % 5 of 6", "17 % 1 of 6", "binary"]
    expect(lead.locator("#live").get_by_role("button", name="CSV").first).to_be_visible()  # also after an update
    check_page(lead, "evaluation-judged")

    served.shop.answers(red_shoes="eab", boots="xy")
    lead.get_by_role("link", name="Run again").click()
    lead.wait_for_url(re.compile(r"/evaluations/new\?like="))
    lead.get_by_role("button", name="Start").click()
    second = evaluation_page(lead)
    # e alone is open: a 1, b a tie; AP over the relevant one that is found
    assert cells(lead, "P@4")[:4] == ["0.7500", "2", "0", "60 % 3 of 5"]
    judge(served, "ann", {"e": "0"})
    judge(served, "bob", {"e": "0"})
    expect(lead.locator("#live tr", has_text="P@4").first).to_contain_text("0.5000", timeout=DONE_MS)
    assert cells(lead, "P@4")[:4] == ["0.5000", "2", "0", "80 % 4 of 5"]

    lead.get_by_label("include partly graded and undecided items").check()  # the tie is not decided
    lead.get_by_role("button", name="Compare with these grades").click()
    comparison_page(lead)
    assert {info.id for info in served.shop.service.evaluations.all() if info.book_id is not None} == {first, second}
    assert served.messages == []


def said_first(page: Page) -> str:
    """The verdict that the page of an evaluation begins with, its sentence and its facts."""
    return " ".join(page.locator("#verdict").inner_text().split())


def test_a_day_that_ends_with_a_regression(served: Served, tmp_path: Path) -> None:
    """Three raters differ, grades are frozen and pinned, the next run is compared with the baseline, and the night is worse."""
    lead = served.page("lee", "/evaluations/new")
    for name, text in {
        "keywords": "red shoes\nboots",
        "name": "shoes",
        "k": "3",
        "measures": "P@2",
        "raters": "3",
    }.items():
        lead.fill(f"#{name}", text)
    lead.select_option("#scale", "binary")
    lead.select_option("#convention", "trec")
    for label in ("shop", "ann", "bob", "cas"):
        lead.get_by_label(label).check()
    served.shop.answers(red_shoes="abc", boots="xy")
    lead.get_by_role("button", name="Start").click()
    first = evaluation_page(lead)
    expect(lead.locator("#live")).to_contain_text("Waiting for grades: 5 results have no grade yet.")
    lead.goto(served.address)
    expect(lead.locator("main")).to_contain_text("1 new evaluation waits for grades")
    expect(lead.locator("main")).not_to_contain_text("not count")
    grades = {"a": "1", "b": "1", "c": "0", "x": "1", "y": "0"}
    judge(served, "cas", {**grades, "b": "0"})
    served.shop.grade("shoes", "red shoes", a=(1, 1), b=(1, 0), c=(0, 0))
    served.shop.grade("shoes", "boots", x=(1, 1), y=(0, 0))
    lead.goto(f"{served.address}/evaluations/{first}")
    expect(lead.locator("#live")).not_to_contain_text("Waiting for grades")
    assert cells(lead, "P@2")[0] == "0.5000"  # a x, and two of three find b not relevant
    lead.get_by_role("button", name="Freeze as a test set").click()
    lead.wait_for_url(re.compile(rf"/evaluations/(?!{first}\b)\d+"), timeout=DONE_MS)
    assert "Not compared No evaluation is pinned as the baseline of shoes" in said_first(lead)
    lead.get_by_role("button", name="Pin as baseline of its test set").click()
    expect(lead.locator(".verdict").first).to_contain_text("This evaluation is the baseline of its test set")
    frozen = int(re.search(r"/evaluations/(\d+)", lead.url)[1])

    served.shop.answers(red_shoes="bca", boots="yx")
    lead.get_by_role("button", name="Run it again").click()
    again = evaluation_page(lead)
    assert f"Not compared with the baseline shop #{frozen} yet. P@2: 0.2500, baseline: 0.5000." in said_first(lead)
    lead.get_by_role("button", name="Compare with the baseline").click()
    comparison_page(lead)
    assert served.shop.service.comparisons.all(limit=1)[0].candidate.id == again
    verdict = served.shop.service.comparisons.all(limit=1)[0].record.verdict_sentence
    lead.goto(f"{served.address}/evaluations/{again}")
    assert verdict in said_first(lead)

    the_night(served, lead, tmp_path)
    assert served.messages == []


def the_night(served: Served, lead: Page, folder: Path) -> None:
    """A nightly evaluation is pinned; the next one is worse and breaks both rules."""
    with receiving() as receiver:
        hook = f"webhooks: [{{url: '{receiver.url}', allow: [127.0.0.1]}}]\n"
        watch = "watch: {nightly: {cron: '0 2 * * *', testset: many, systems: [shop]}}\n"
        (folder / "night.yaml").write_text(hook + watch)
        files = ["--config", "cranfield.yaml", "--workbench", "night.yaml", "--db", "books.db"]
        night = [sys.executable, "-m", "cranfield", "watch", *files, "--once", "nightly"]
        served.shop.answers(**{query.replace(" ", "_"): "ab" for query in NIGHTLY})
        assert subprocess.run(night, cwd=folder, check=False).returncode == 0
        good = served.shop.service.evaluations.all(EvaluationFilter(testset="many"))[0]
        lead.goto(f"{served.address}/evaluations/{good.id}")
        lead.get_by_role("button", name="Pin as baseline of its test set").click()
        expect(lead.locator(".verdict").first).to_contain_text("This evaluation is the baseline of its test set")
        assert receiver.got == []
        served.shop.answers(**{query.replace(" ", "_"): "bc" for query in NIGHTLY[:15]})
        assert subprocess.run(night, cwd=folder, check=False).returncode == 1
        sent = [json.loads(body) for _, _, body in receiver.got]
    bad = served.shop.service.evaluations.all(EvaluationFilter(testset="many"))[0]
    (comparison,) = served.shop.service.comparisons.all(evaluation=bad.id)
    assert (comparison.record.verdict, comparison.baseline.id) == ("worse", good.id)
    assert sorted(each["event"] for each in sent) == ["gate-failed", "worse"]
    lead.goto(f"{served.address}/evaluations/{bad.id}")
    first = said_first(lead)
    assert "Worse, gate failed" in first
    assert first.index(comparison.record.verdict_sentence) < first.index("It breaks 2 of 2 rules of the gate")
    check_page(lead, "evaluation-worse")
    lead.goto(served.address)
    worse = lead.locator("section.problem")
    expect(worse).to_contain_text("Got worse")
    expect(worse).to_contain_text(f"shop #{bad.id} on many against shop #{good.id}")
    expect(worse).to_contain_text("it breaks 2 rules of the gate")
    check_page(lead, "home-worse")
    lead.goto(f"{served.address}/evaluations")
    expect(lead.locator("tr", has_text=f"shop #{bad.id}")).to_contain_text("breaks 2 of 2 rules")


def test_a_hole_is_graded_with_a_key_where_it_is_seen(served: Served) -> None:
    lead = served.page("lee", "/evaluations/new")
    found: list[int] = []
    for answers in ("abc", "cba"):
        served.shop.answers(red_shoes=answers)
        lead.goto(f"{served.address}/evaluations/new?testset=own&system=shop")
        lead.fill("#k", "3")
        lead.fill("#measures", "P@2")
        lead.select_option("#convention", "trec")
        lead.select_option("#book", "/")
        lead.get_by_role("button", name="Start").click()
        found.append(evaluation_page(lead))
    jobs = served.shop.service.jobs
    job = jobs.wait(jobs.submit(CompareRequest(baseline=found[0], candidate=found[1])).id, DONE_MS / 1000)
    base = f"{served.address}/comparisons/{job.results[0]}"
    lead.goto(f"{base}/queries/q1")
    check_page(lead, "holes")
    grade_page = lead.context.new_page()
    grade_page.goto(f"{base}/grade?query=q1&doc=c&side=candidate")
    check_page(grade_page, "grade-hole")
    grade_page.close()
    lead.get_by_role("link", name="Grade c").click()
    dialog = lead.get_by_role("dialog")
    expect(dialog).to_contain_text("Title c")
    lead.keyboard.press("1")
    expect(lead.get_by_text("graded 1")).to_be_visible()
    lead.goto(f"{served.address}/evaluations/{found[1]}/queries#q=q1")
    expect(lead.locator("#query-panel a[data-grade]")).to_have_count(2)
    lead.get_by_role("link", name="Grade b").click()
    expect(lead.get_by_label("Grade a result")).to_contain_text("Title b")
    lead.keyboard.press("Escape")
    lead.goto(base)
    expect(lead.locator("#new-grades")).to_contain_text("1 new grade")
    check_page(lead, "comparison-new-grades")
    lead.get_by_role("button", name="Recompute with the new grades").click()
    lead.wait_for_url(re.compile(rf"/jobs/\d+|/comparisons/(?!{base.rsplit('/', 1)[1]}\b)\d+"), timeout=DONE_MS)
    comparison_page(lead)
    assert served.messages == []


def test_pages_of_systems(served: Served) -> None:
    lead = served.page("lee", "/systems")
    check_page(lead, "systems")
    lead.get_by_role("link", name="shop").click()
    check_page(lead, "system")
    lead.fill("#query", "red shoes")
    lead.select_option("select[name='set:params.boost']", "2")
    lead.get_by_role("button", name="Ask").click()
    expect(lead.get_by_role("heading", name="Side by side")).to_be_visible(timeout=DONE_MS)
    check_page(lead, "system-probed")
    lead.fill("#variant", "turned")
    lead.select_option("select[name='set:params.boost']", "2")
    lead.get_by_role("button", name="Keep as a variant").click()
    expect(lead.get_by_role("link", name="turned")).to_be_visible()
    check_page(lead, "system-variants")
    lead.get_by_role("button", name="Compare with the config on the test set").click()
    comparison_page(lead)
    expect(lead.get_by_role("heading", level=1)).to_contain_text("tried: boost=2")
    assert served.messages == []

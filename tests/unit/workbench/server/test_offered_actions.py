"""No page offers what is refused: pages are crawled as each role, and every button and link is used once.

Each form is sent as a browser sends it: what is filled in, chosen and checked; one field at a time with each other choice of
a list; a plausible text in what is required. Each is sent to the database as it was.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import Cookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

import pytest
from httpx2 import Response
from starlette.testclient import TestClient
from tests.program.team_books import PASSWORD
from tests.unit.workbench.server.conftest import ADDRESS, Team
from tests.unit.workbench.service.shop import SEARCH, Shop

from cranfield.app.loading import load
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.review import review_settings
from cranfield.books.settings import BookSettings, Mode
from cranfield.model import DEFAULT_CONVENTION
from cranfield.workbench.config import Workbench
from cranfield.workbench.server.results import MAX_REPORTS, MAX_RESULTS, RecentValues
from cranfield.workbench.service.hole_grades import grade_hole
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.team_evaluation import NEW_BOOK, TeamRequest, keyword_testset, start_evaluation

ROLES = ("nobody", "lee", "alex", "vic", "ann")
UPLOAD = b"cranfield_testset: 1\nname: sent\nqueries:\n- {id: q1, text: red shoes, judgments: {a: 1}}\n"
TYPED = {
    "password": PASSWORD, "old": PASSWORD, "name": "noa", "label": "laptop",
    "keywords": "boots", "query": "red shoes", "variant": "other",
}  # fmt: skip
"""What a person writes into a field that has to be filled in."""
MIN_PAGES = {"nobody": 3, "lee": 200, "alex": 2, "vic": 120, "ann": 8}
MIN_SENT = {"nobody": 3, "lee": 280, "alex": 40, "vic": 4, "ann": 20}
"""Pages and forms of each role; of alex only those that lee does not see."""
WALKED = (
    "/comparisons/make /comparisons/N/grade /comparisons/N/recompute /evaluations/N/compare /evaluations/N/compare-graded "
    "/evaluations/N/freeze /evaluations/N/grade /evaluations/N/notes /evaluations/N/pin /evaluations/N/rerun /evaluations/new "
    "/books/*/freeze /books/*/adjudicate/N /books/*/reopen /books/*/members /books/*/links /books/*/state /books/*/guideline "
    "/books/*/review/N /jobs/N/cancel /jobs/N/retry /systems/shop/probe /systems/shop/try /systems/shop/variants "
    "/systems/shop/variants/delete /testsets/upload /testsets/*/read /vN/testsets/*/file /people /people/N/role "
    "/people/N/deactivate /account/password /account/tokens /sign-out /sign-in"
)
"""Actions that must be among them."""
VOID = {"input", "link", "meta", "img", "br", "hr", "col"}
ONE_CHOICE = {("/testsets/upload", "format"), ("/systems/shop/probe", "testset")}
"""Lists of which one choice is enough: the file that is sent has one format; a probe has no test set."""
MANY = re.compile(r"/(items|queries|reopen|adjudicate|calls|grade|diff|file|report)\b")
"""Pages of which there are many alike, as of items and queries: the first `PER_SHAPE` are read."""
PER_SHAPE = 3


@dataclass
class Form:
    """A form: each control has a name, the values that it may send (the first one is sent unless another is chosen), and
    whether it has to be filled in.
    """

    method: str
    action: str
    controls: list[tuple[str, list[str], bool]] = field(default_factory=list)
    buttons: list[dict[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, address: str, text: str) -> None:
        super().__init__()
        self.address, self.links, self.forms = address, list[str](), list[Form]()
        self.form: Form | None = None
        self.options: list[tuple[str, bool]] | None = None
        self.hidden: list[str] = []
        self.judging: dict[str, Any] = {}
        self.texts: list[tuple[str, str]] = []
        self.open = ""
        self.radios: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self.hidden or ("hidden" in given and tag not in VOID):  # nobody sees it
            self.hidden += [tag] if tag not in VOID else []
            return
        if "data-page" in given:
            self.judging = json.loads(given["data-page"])
        for name in ("href", "src"):
            if given.get(name) and not given[name].startswith(("#", "data:", "mailto:")):
                self.links.append(urljoin(self.address, given[name]).partition("#")[0])
        if tag == "form":
            action = urljoin(self.address, given.get("action") or self.address)
            self.form = Form(given.get("method", "get"), action)
            self.radios = {}
            if self.form.method != "dialog":
                self.forms.append(self.form)
        if self.form is None or "disabled" in given:
            return
        if tag == "button" and given.get("type", "submit") == "submit":
            self.form.buttons.append(given)
        elif tag == "input" and given.get("name"):
            self._input(self.form, given)
        elif tag == "select" and given.get("name"):
            self.open, self.options = given["name"], []
        elif tag == "option" and self.options is not None:
            self.options.append((given.get("value", "\0"), "selected" in given))
        elif tag == "textarea" and given.get("name"):
            self.open = given["name"]
            self.texts.append((self.open, ""))
            self.needed = "required" in given

    def _input(self, form: Form, given: dict[str, str]) -> None:
        name, kind, value = given["name"], given.get("type", "text"), given.get("value", "")
        if kind == "radio":
            known = self.radios.get(name)
            if known is None:
                self.radios[name] = known = [""]
                form.controls.append((name, known, "required" in given))
            if "checked" in given:
                known[:1] = [value, *known[:1]] if known[0] else [value]
            else:
                known.append(value)
        elif kind == "checkbox":
            if "checked" in given or "required" in given:
                first = value or "on" if "checked" in given else ""
                form.controls.append((name, [first, value or "on"][: 1 if first else 2], "required" in given))
        elif kind == "file":
            form.controls.append((name, ["\0file"], False))
        else:
            form.controls.append((name, [value], "required" in given and not value))

    def handle_data(self, data: str) -> None:
        if self.options and self.options[-1][0] == "\0":
            self.options[-1] = (data, self.options[-1][1])
        elif self.texts and self.lasttag == "textarea" and self.open == self.texts[-1][0]:
            self.texts[-1] = (self.open, self.texts[-1][1] + data)

    def handle_endtag(self, tag: str) -> None:
        if self.hidden:
            self.hidden.pop()
            return
        if tag == "select" and self.form is not None and self.options is not None:
            chosen = next((value for value, selected in self.options if selected), None)
            values = [value for value, _ in self.options if value != chosen]
            if self.options:
                self.form.controls.append((self.open, values if chosen is None else [chosen, *values], False))
            self.options = None
        elif tag == "textarea" and self.form is not None and self.texts:
            name, text = self.texts.pop()
            text = text.removeprefix("\n")
            self.form.controls.append((name, [text], self.needed and not text))
        elif tag == "form":
            self.form = None


@dataclass(frozen=True)
class Action:
    """A request that a page offers."""

    role: str
    page: str
    method: str
    address: str
    fields: tuple[tuple[str, str], ...]
    changed: tuple[str, str] | None
    """The field of a list with another choice than the one that the page shows."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what need not be done twice."""
        if self.method == "get":
            place = self.address if self.address.endswith("/file") else shape_of(self.address)
            return self.role, place, self.changed
        path = urlsplit(self.address).path
        if self.changed:
            return self.role, path, self.changed
        return self.role, path, tuple(each for each in self.fields if each[0] not in {"csrf", "key"})

    def __str__(self) -> str:
        fields = {name: value[:40] for name, value in self.fields if name not in {"csrf", "key", "guideline"}}
        return f"{self.role} {self.page.removeprefix(ADDRESS)}: {self.method} {self.address.removeprefix(ADDRESS)} {fields}"


def actions_of(role: str, page: Page) -> Iterator[Action]:
    """Every button of a page: with what is filled in, and with each other choice of a list."""
    for form in page.forms:
        for button in form.buttons or [{}]:
            address = urljoin(page.address, button.get("formaction", form.action))
            controls = [
                (name, filled(name, values) if needed and "formnovalidate" not in button else values)
                for name, values, needed in form.controls
            ]
            usual = [(name, values[0]) for name, values in controls]
            own = [(button["name"], button.get("value", ""))] if button.get("name") else []
            sets: list[tuple[tuple[str, str] | None, list[tuple[str, str]]]] = [(None, usual)]
            for at, (name, values) in enumerate(controls):
                others = [] if (urlsplit(address).path, name) in ONE_CHOICE else values[1:]
                sets += [((name, value), [*usual[:at], (name, value), *usual[at + 1 :]]) for value in others]
            for changed, fields in sets:
                sent = tuple(completed(urlsplit(address).path, [*fields, *own]))
                yield Action(role, page.address, form.method, address, sent, changed)


def filled(name: str, values: list[str]) -> list[str]:
    """The values of a control that has to be filled in."""
    return [value for value in values if value] or [TYPED.get(name, "words")]


def completed(path: str, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The fields with what a person has to write or choose besides, where HTML has no words for it."""
    found = dict(fields)
    if path == "/sign-in":
        fields = [(name, {"name": "lee"}.get(name, value)) for name, value in fields]
    if path.endswith(("/try", "/variants")):  # one of the parameters has another value; Ask needs none
        usual = {"set:params.boost": "2", "variant": "other" if path.endswith("/variants") else ""}
        fields = [(name, value or usual.get(name, "")) for name, value in fields]
    if (
        "/review/" in path and found["grade"]
    ):  # what is not correct says why, and a record with a major issue is not kept
        chosen = dict(found)
        if chosen["grade"] == "1" and (chosen["disposition"] != "keep" or chosen["failure_mode"]):
            chosen["grade"] = "2"
        if chosen["grade"] != "1":
            chosen |= {"failure_mode": chosen["failure_mode"] or "false_fact", "reason": "words", "hint": "words"}
        if chosen["grade"] in {"3", "4"} and chosen["disposition"] == "keep":
            chosen["disposition"] = "drop"
        decided = ("grade", "failure_mode", "reason", "hint", "disposition")
        fields = [(name, chosen[name] if name in decided else value) for name, value in fields]
    if path == "/evaluations/new":
        if not found.get("testset"):  # an evaluation needs keywords or a test set
            fields = [(name, {"keywords": "boots", "name": "noa"}.get(name, value)) for name, value in fields]
        if not {"systems", "variants"} & set(found):
            fields.append(("systems", "shop"))
    return fields


@dataclass
class World:
    """The server, on a database that each request finds as it was."""

    team: Team
    shop: Shop
    start: Path
    clients: dict[str, TestClient]
    pages: dict[tuple[str, str], Page] = field(default_factory=dict)
    cookies: dict[str, list[Cookie]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)

    def reset(self) -> None:
        self.team.store.close()
        shutil.copy(self.start, Path(self.team.store.database.where))
        state = self.team.app.state
        state.results, state.reports = RecentValues(MAX_RESULTS), RecentValues(MAX_REPORTS)
        self.shop.service.testsets._unpacked.cache_clear()

    def client(self, role: str) -> TestClient:
        """A browser, signed in as it was: an action before may have signed it out."""
        client, self.team.app.state.rates = self.clients[role], {}
        client.cookies.jar.clear()
        for cookie in self.cookies[role]:
            client.cookies.jar.set_cookie(cookie)
        return client

    def crawl(self, role: str, paths: list[str], known: str = "") -> None:
        """Read every page that links lead to; not those that are known from another role."""
        self.reset()
        client = self.clients[role]
        waiting, seen, shapes = [ADDRESS + path for path in paths], set[str](), Counter[str]()
        while waiting:
            address = waiting.pop(0)
            if address in seen or not address.startswith(ADDRESS) or "/static/" in address:
                continue
            seen.add(address)
            shape = shape_of(address)
            shapes[shape] += 1
            if ((known, address) in self.pages and address != f"{ADDRESS}/") or shapes[shape] > (
                PER_SHAPE if MANY.search(shape) else 99
            ):
                continue
            answer = client.get(address)
            if answer.status_code >= 400:
                self.refused.append(f"{role} link {address.removeprefix(ADDRESS)}: {words_of(answer)}")
            if answer.is_redirect:
                waiting.append(urljoin(address, answer.headers["location"]))
            is_page = answer.headers.get("content-type", "").startswith("text/html")
            if answer.status_code == 200 and is_page and "content-disposition" not in answer.headers:
                page = self.pages[role, address] = Page(address, answer.text)
                waiting += page.links
        self.cookies[role] = list(client.cookies.jar)
        self.team.store.close()
        shutil.copy(self.team.store.database.where, self.start)  # with what the pages made: a hidden repeat

    def send(self, action: Action) -> None:
        """Do what a button does, and look where it leads."""
        client = self.client(action.role)
        fields: dict[str, list[str]] = {}
        for name, value in action.fields:
            fields.setdefault(name, []).append(value)
        if action.method == "get":
            answer = client.get(action.address, params=fields)
        else:
            self.reset()
            files = {name: ("sent.yaml", UPLOAD) for name, (value, *_) in fields.items() if value == "\0file"}
            data = {name: values for name, values in fields.items() if name not in files}
            answer = client.post(action.address, data=data, files=files or None)
        target = urljoin(action.address, answer.headers.get("location", ""))
        if answer.is_redirect:
            self.shapes[shape_of(target)] += 1
            if self.shapes[shape_of(target)] <= PER_SHAPE:
                answer = client.get(target)
        if answer.status_code >= 400:
            self.refused.append(f"{action}: {words_of(answer)}")

    def judge(self, role: str, page: Page) -> int:
        """Do what the script of the judging page sends for each of its buttons; the number of requests."""
        self.reset()
        client, told = self.client(role), page.judging
        base, headers = f"{ADDRESS}/api/books/{quote(told['book'])}", {"x-csrf-token": told["csrf"], "accept": "*/*"}
        sent = [("GET", f"{base}/next?n=10&holding=&recent=20", None)]
        client.get(page.address)  # which makes a lead a member of the book
        items = client.get(sent[0][1], headers=headers).json()["items"]
        graded = told["mode"] == "grade"
        entries = [
            {"action": "grade", "grade" if graded else "choice": choice["value"], "reason": ""}
            for choice in told["choices"]
        ]
        entries += [{"action": action} for action in ("flag", "unflag", "undo")]
        entries += [{"action": "skip", "skip_reason": skip["value"], "reason": "why"} for skip in told["skips"]]
        entries += [{"action": "later"}]
        for item in items[:1]:
            common = {
                "item": item["item"], "duration_ms": 900, "order_seen": 1, "method": "click",
                "guideline_version": told["guideline"]["version"], "doc_digest": item["digest"],
            }  # fmt: skip
            about = {"book": told["uid"], "account": told["account"]}
            sent += [
                ("POST", f"{base}/judgments", about | {"entries": [common | entry | {"key": f"key {at}"}]})
                for at, entry in enumerate(entries)
            ]
            sent += [("GET", f"{base}/items/{item['item']}", None)]
            if graded:
                document = {"query": item["query"]["name"], "doc": "new", "title": "New", "text": "", "url": ""}
                sent += [("POST", f"{base}/documents", document)]
            if told["reveal"]:
                sent += [("GET", f"{base}/reveal?query={item['query']['id']}", None)]
        sent += [("PUT", f"{ADDRESS}/api/me/settings", told["settings"])]
        for method, address, body in sent:
            answer = client.request(method, address, json=body, headers=headers)
            saved = answer.json().get("results", [{"ok": True}]) if answer.status_code < 400 else []
            if not saved or not saved[0]["ok"]:
                self.refused.append(f"{role} {page.address}: {method} {address} {body}: {answer.text[-300:]}")
        return len(sent) if items else 0


def words_of(answer: Response) -> str:
    """The status and the text of an answer."""
    text = re.sub(r"<form.*", " ", answer.text.partition("</header>")[2] or answer.text, flags=re.DOTALL)
    return f"{answer.status_code} " + " ".join(re.sub(r"<[^>]+>", " ", text).split())[-300:]


def shape_of(address: str) -> str:
    """A path without numbers and names, and the names of its parameters."""
    found = urlsplit(address)
    path = re.sub(r"/(books|queries|testsets)/(?!upload$)[^/]+", r"/\1/*", re.sub(r"\d+", "N", found.path))
    return path + "?" + " ".join(sorted(name for name, _ in parse_qsl(found.query)))


CONFIG = """\
testsets:
  own: {{path: own.yaml}}
  second: {{path: second.yaml}}
  bare: {{path: bare.yaml}}
systems:
  shop: {shop}
  turned: {turned}
collect: {{cache_h: 0}}
gate: {{rules: [floor: {{measure: "P@1", at_least: 0.1}}]}}
"""


@pytest.fixture
def world(team: Team, workbench_books, tmp_path: Path) -> Iterator[World]:
    folder = tmp_path
    (folder / "answers").mkdir()
    (folder / "search.sh").write_text(SEARCH)
    judged = "cranfield_testset: 1\nname: {}\nqueries:\n- {{id: q1, text: red shoes, judgments: {{a: 1, b: 0}}}}\n- {{id: q2, text: boots, judgments: {{y: 1}}}}\n"
    for name in ("own", "second"):
        (folder / f"{name}.yaml").write_text(judged.format(name))
    (folder / "bare.yaml").write_text(
        "cranfield_testset: 1\nname: bare\nqueries:\n- {id: q1, text: red shoes, judgments: {a: -1}}\n"
    )
    (folder / "sent.yaml").write_bytes(UPLOAD)
    argv = ["sh", str(folder / "search.sh"), str(folder / "answers"), "{query}"]
    systems = {
        name: f"{{command: {json.dumps([*argv, boost])}, extract: {{jsonl: true, id: id, title: title}}, params: {{boost: 1}}}}"
        for name, boost in (("shop", "{params.boost}"), ("turned", "2"))
    }
    (folder / "cranfield.yaml").write_text(CONFIG.format(**systems))
    workbench = Workbench.model_validate(
        {
            "tunable": {"shop": {"params.boost": [1, 2]}},
            "watch": {"nightly": {"testset": "own", "systems": ["shop"], "cron": "0 3 * * *"}},
        }
    )
    service = open_service(team.store, folder / "cranfield.yaml", workbench)
    lead = team.store.people.get("lee").id
    shop = Shop(service, folder, lead)
    shop.answers(red_shoes="abcd", boots="xy", laces="")
    team.app.state.service = service
    team.app.state.results = RecentValues(MAX_RESULTS)
    jobs = service.jobs
    workbench_books.fill(
        service, folder, n_queries=4
    )  # uploaded: two versions, a comparison, jobs that failed and wait
    service.testsets.snapshot_of_config("bare")
    service.testsets.keep("uploaded", load(folder / "sent.yaml"))
    service.testsets.keep("queries", keyword_testset("queries", ("boots", "laces")))
    queued = [job.id for job in jobs.all() if not job.has_ended]
    for job in queued:
        jobs.cancel(job)

    def submit(**request: object) -> None:
        jobs.submit(EvaluateRequest.model_validate(request), by=lead)

    submit(testset="own", systems=["shop", "turned"], measures=["P@1", "nDCG@4"])
    submit(testset="second", systems=["shop"])
    shop.work()
    first, other = (info.id for info in reversed(service.evaluations.all()) if info.testset_name == "own")
    jobs.submit(CompareRequest(baseline=first, candidate=other), by=lead)
    grade_hole(service, service.evaluations.get(first), "q1", "c", 1, lead)
    service.variants.save("reversed", "shop", {"params.boost": 2}, "", lead)
    submit(testset="own", systems=["shop"], variant="reversed")
    team_request = TeamRequest(
        name="shoes", keywords="red shoes\nboots", systems=["shop"], k=4, measures="P@4, AP@4", scale="binary", raters=2
    )
    start_evaluation(service, team_request, lead)
    shop.work()
    start_evaluation(service, team_request.model_copy(update={"book": "shoes", "systems": ["turned"]}), lead)
    start_evaluation(service, team_request.model_copy(update={"name": "ungraded"}), lead)
    start_evaluation(service, team_request.model_copy(update={"name": "full", "keywords": "boots"}), lead)
    start_evaluation(
        service,
        TeamRequest(testset="queries", systems=["shop"], book=NEW_BOOK, measures="P@4", convention=DEFAULT_CONVENTION),
        lead,
    )
    shop.work()
    shop.grade("shoes", "red shoes", a=(1, 1), b=(1, 0), d=(0,))
    shop.grade("full", "boots", x=(1, 1), y=(0, 0))
    records(team, "golden", "review")
    records(team, "lists", "preference")
    team.store.books.close(team.store.books.get("other").id)
    jobs.submit(EvaluateRequest(testset="own", systems=["shop"]), by=lead)
    for name in ("alex", "lee", "vic", "ann"):
        team.browser(name)
    jobs.wait = lambda job_id, _: jobs.get(job_id)
    start = folder / "start.db"
    team.store.close()
    shutil.copy(team.store.database.where, start)
    clients = {role: team.new() if role == "nobody" else team.browser(role) for role in ROLES}
    yield World(team, shop, start, clients)
    team.app.state.service = None


def records(team: Team, name: str, mode: str) -> None:
    """A book of records to review, or of lists of which one is better."""
    queries = tuple(PooledQuery(id=f"q{n}", text=f"red shoes {n}") for n in range(2))
    record = {
        "task_type": "locate",
        "difficulty": "easy",
        "expected_files": ["a.py"],
        "canonical_narrative": "In a.py.",
    }
    lists = {"a": [{"doc": "old", "title": "Old"}], "b": [{"doc": "new", "title": "New"}]}
    fields, settings = (
        (record, review_settings(2, 0)) if mode == "review" else (lists, BookSettings(mode=Mode.PREFERENCE))
    )
    items = tuple(PooledItem(query=query.id, doc="lists", fields=fields) for query in queries)
    book = team.store.books.create(
        name, Pool(name=name, method="depth", depth=1, runs=(), queries=queries, items=items), settings
    )
    for member in ("ann", "lee"):
        team.store.people.join(book.id, team.store.people.get(member).id)


@pytest.mark.slow  # 60 s: 370 pages, 700 requests
def test_nothing_that_a_page_offers_is_refused(world: World) -> None:
    link = world.team.store.people.add_link(world.team.store.books.get("shop").id, 86_400_000)
    world.team.store.close()
    shutil.copy(world.team.store.database.where, world.start)
    for role in ROLES:
        world.crawl(role, ["/", f"/join/{link}"], known="lee" if role == "alex" else "")
    offered: dict[tuple[object, ...], Action] = {}
    for (role, _), page in world.pages.items():
        for action in actions_of(role, page):
            offered.setdefault(action.key, action)
    for action in sorted(offered.values(), key=lambda each: each.method):
        world.send(action)
    judged = {
        (role, page.judging["book"]): world.judge(role, page) for (role, _), page in world.pages.items() if page.judging
    }
    assert world.refused == []
    n_pages = Counter(role for role, _ in world.pages)
    n_sent = Counter(action.role for action in offered.values() if action.method == "post")
    assert {role: n for role, n in MIN_PAGES.items() if n_pages[role] < n} == {}
    assert {role: n for role, n in MIN_SENT.items() if n_sent[role] < n} == {}
    assert set(WALKED.split()) - {shape_of(action.address).partition("?")[0] for action in offered.values()} == set()
    assert {book for (role, book), n in judged.items() if role == "ann" and n > 10} == {"lists", "shoes", "shop"}

"""Golden sets and experiments in states that few calls lead to: people who decided, costs that were measured, checks of code."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from scenes.scene import CLASSED, FORMS, TEXT_AND_JSON, UNWATCHED, Scene, forms, judged_queries, native, run

CHECKOUT = Path(__file__).resolve().parents[3]


def unwatched(make: Callable[[], None]) -> Callable[[], None]:
    """Makes inputs in the folder whose files do not count; what it prints does not count either."""

    def call() -> None:
        Path(UNWATCHED).mkdir(exist_ok=True)
        silence = io.StringIO()
        with (
            contextlib.chdir(UNWATCHED),
            contextlib.redirect_stdout(silence),
            contextlib.redirect_stderr(silence),
        ):
            make()

    call.__name__ = f"{make.__name__}_is_there"
    return call


SHOP = """RATE = 0.2


class Cart:
    def __init__(self, items):
        self.items = items

    def total(self):
        return sum(item.price for item in self.items)


def with_tax(price):
    return price * (1 + RATE)
"""


def plan_of_the_guide() -> str:
    guide = (CHECKOUT / "docs/how-to/golden-sets.md").read_text()
    found = re.search(r"`plan.yaml`:\n\n```yaml\n(.*?)```", guide, re.DOTALL)
    return (found[1] if found else "").replace("src/cranfield", "src")


def shop() -> None:
    """A repository, a plan over it and one that costs too much, a set about it, and a run that it entered."""
    from cranfield.cli.main import run_command_line

    (source := Path("shop/src")).mkdir(parents=True)
    (source / "cart.py").write_text(SHOP)
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "one"]):
        subprocess.run(["git", "-C", "shop", *words], check=True)
    plan = plan_of_the_guide()
    Path("plan.yaml").write_text(plan)
    prices = ", prices: {currency: EUR, models: {author: {input: 3, output: 15}}}"
    Path("dear.yaml").write_text(plan.replace("budget:\n  tokens: 1000000", f"budget: {{tokens: 30000{prices}}}"))
    records = [
        {"query_id": f"q{n}", "query_text": text, "task_type": "locate", "difficulty": "easy"}
        | {"expected_entities": [f"src/cart.py::{name}"], "expected_files": ["src/cart.py"]}
        for n, (text, name) in enumerate(
            [("Where are prices added up?", "Cart.total"), ("Where is the rate applied?", "with_vat")]
        )
    ]
    Path("shop.json").write_text(json.dumps(records))
    run_command_line(["golden", "enter", "shop.json", "--repo", "shop", "--step", "people", "--out", "entered"])
    next(Path("entered").iterdir()).rename("people")


def rows() -> None:
    """Rows of a set, and the answers of a model that votes on them."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.unit.golden.test_rows import check

    check(Path())


def reviewed() -> None:
    """A run in front of two people, who decided on some of its records."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.unit.golden import test_review_book as book

    from cranfield.books.store.schema import Role
    from cranfield.books.store.store import open_store
    from cranfield.golden.index import RunFolder, Step
    from cranfield.golden.outcomes import RunManifest
    from cranfield.golden.use_cases.review import make_review_book
    from cranfield.repo.snapshot import snapshot_digest, take

    repo = Path("repo")
    repo.mkdir()
    (repo / "a.py").write_text(book.SOURCE)
    digest = snapshot_digest(take(repo))
    manifest = RunManifest(name="r", created_at=book.AT, cranfield_version="0", snapshot_digest=digest, seed=5)
    path = RunFolder.create(Path("runs"), manifest, {"plan.yaml": plan_of_the_guide().encode()})
    with RunFolder.writing(path) as folder:
        for query_id in [*(f"p{n}" for n in range(8)), "queued", "blocked", "spot"]:
            folder.append(Step.CANDIDATES, book.candidate(query_id))
            folder.append(Step.ANSWERS, book.answer(query_id))
            folder.append(Step.REPORTS, book.report(query_id))
            outcome = query_id if query_id in {"queued", "blocked"} else "passed"
            agreed = book.agreement(query_id, outcome, spot_check=query_id == "spot")
            other = {"jaccard_entities": 0.5, "missing_entities": ("a.py::f7",), "missing_files": ("b.py",)}
            folder.append(Step.AGREEMENTS, agreed.model_copy(update=other) if query_id in {"p1", "spot"} else agreed)
    path = path.rename("run")
    store = open_store("books.db")
    for name in ("ann", "bob", "lee"):
        store.people.add(name, Role.LEAD)
    made = make_review_book(path, repo, store, name="r")
    for name in ("ann", "bob"):
        book.decide(store, name, "queued", 2, f"{name}: too short.", failure_mode="narrative")
        book.decide(store, name, "spot")
        book.decide(store, name, made.sample.sampled[0], 4, "Another file.", **book.DROP)
    store.close()


def decide_rest() -> None:
    """Both people decide on the records that are left."""
    from tests.unit.golden.test_review_book import decide_rest

    from cranfield.books.store.store import open_store

    store = open_store(f"{UNWATCHED}/books.db")
    decide_rest(store, "queued", "spot")
    store.close()


def benefit() -> None:
    """An experiment that is scored, one that is invalid, one that lacks cells, their results, and one of code."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.unit.benefit import test_result as made
    from tests.unit.reporting.test_transcripts import record as transcript

    from cranfield.benefit.folder import ExperimentFolder
    from cranfield.benefit.result import BenefitResult, write_result
    from cranfield.benefit.use_cases import publish

    kept: list[dict[str, Any]] = []

    def change(record: dict[str, Any]) -> dict[str, Any]:
        number, seed, treated = int(record["key"]["task_id"][1:]), record["key"]["seed"], record["delivery"] is not None
        record["usage"] |= {"total": 1000 + 137 * number * (2 - treated) + 61 * seed, "turns": 3 + number % 3 + treated}
        record["usage"] |= {"tool_calls": {"read_file": {"ok": 2 + number % 4, "error": seed}}}
        if number == 0:
            kept.append(transcript("q0", "treatment" if treated else "control", text=f"Where? {seed}"))
            text = json.dumps(kept[-1], sort_keys=True)
            record["transcript"] = f"sha256-{sha256(text.encode()).hexdigest()}.json"
        if treated and number == 3:
            record["delivery"] = made.gave(None, "empty", "cut")
        if treated and number == 5 and seed:
            record["delivery"] = made.gave("empty", answered=0)
        return record

    def some(record: dict[str, Any]) -> Mapping[str, Any] | None:
        change(record)
        lost = made.lost("control", 1)(record)
        return None if lost["key"]["task_id"] == "q7" and lost["key"]["seed"] else lost

    rule = {"rule": {"min_tasks": 4}}
    runs = {
        "run": made.experiment(Path("1"), change=change, plan=rule),
        "some": made.experiment(Path("2"), change=some, plan=rule),
        "void": made.experiment(Path("3"), preflight=({"ok": False, "message": "another index"},), plan=rule),
    }
    for name, path in runs.items():
        renamed = path.rename(name)
        for each in kept:
            ExperimentFolder.open(renamed).keep_transcript(each)
        publish(made.result(Path(name), absent_or_stated), Path("results"))
    history = Path("results/.cranfield/benefit.jsonl")
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    dated = [json.dumps(line | {"time": f"2026-01-0{n}T03:04:05Z"}) for n, line in enumerate(lines, 1)]
    history.write_text("\n".join([*dated, "damaged"]) + "\n")
    found = json.loads(Path("results/benefit_v1.0.json").read_text())
    for place, task in enumerate(found["tasks"]):  # as tasks that want code
        for cells in task["arms"].values():
            cells[0]["checks"] = {"compiles": "passed", "tests": ("passed", "failed", "unknown", "missing")[place % 4]}
    finding = {"check": "tests", "file": "main.py", "line": 3, "symbol": "add", "message": "is not 5"}
    found["tasks"][1]["arms"]["control"][0]["findings"] = [finding, {"check": "symbols", "current": "sum"}]
    write_result(BenefitResult.model_validate(found), Path("code"))


def absent_or_stated(request: Any) -> str:
    """The vote of a judge, by the question."""
    stated = "format 2" in str(request.messages[-1].text)
    return json.dumps({"quote": "I do not know." if stated else "", "verdict": "supported" if stated else "absent"})


def cost_of_a_measured_plan() -> None:
    """What `golden plan --measure` prints after a dry run that took these tokens."""
    from cranfield.golden.plan import load_plan
    from cranfield.golden.plan_cost import RoleUse, estimate
    from cranfield.golden.reports.plan import plan_document
    from cranfield.repo.tree import source_snapshot
    from cranfield.reporting import render

    plan, snapshot = load_plan(Path(UNWATCHED) / "dear.yaml"), source_snapshot(Path(UNWATCHED) / "shop")
    uses = {
        "author": RoleUse((4100, 4500, 3900), (0.013, 0.014, 0.0125)),
        "oracle": RoleUse((8300,)),
        "adversary": RoleUse((), (), 2),
    }
    document = plan_document(estimate(plan, snapshot, uses))
    for form in ("text", "json", "csv"):
        print(render(document, form))


U = UNWATCHED
SCENES = [
    Scene(
        "golden-sets",
        [
            unwatched(shop),
            *forms(f"golden plan {U}/plan.yaml --repo {U}/shop", only=FORMS[:4]),
            *forms(f"golden plan {U}/dear.yaml --repo {U}/shop", only=TEXT_AND_JSON),
            cost_of_a_measured_plan,
            *forms(f"golden assemble {U}/people --repo {U}/shop", only=FORMS[:4]),
            *forms(f"golden models {U}/people {U}/people --acceptable 0.2", only=FORMS[:4]),
            *forms("golden batch set.yaml batch.yaml --run a.run --run b.run -m nDCG@10", only=FORMS[:3]),
        ],
        {
            "set.yaml": native(CLASSED, {"task_type": ["locate", "debug"], "difficulty": ["easy", "hard"]}),
            "batch.yaml": native(
                judged_queries(30, 3, 6), {"task_type": ["locate", "debug"], "difficulty": ["easy", "medium"]}
            ),
            "a.run": run(CLASSED, 1.3, 1),
            "b.run": run(CLASSED, 0.6, 2),
        },
    ),
    Scene(
        "golden-rows",
        [
            unwatched(rows),
            *forms(
                f"golden check {U}/code.csv --repo {U}/repo --model test:a --model test:b --out {U}/again "
                f"--replay {U}/out/calls.jsonl --today 2026-11-23",
                only=FORMS[:4],
            ),
        ],
    ),
    Scene(
        "golden-review",
        [
            unwatched(reviewed),
            *forms(f"golden status {U}/run", only=FORMS[:4]),
            *forms(f"golden reviewed {U}/run --db {U}/books.db", only=FORMS[:4]),
            decide_rest,
            *forms(f"golden reviewed {U}/run --db {U}/books.db", only=TEXT_AND_JSON),
        ],
    ),
    Scene(
        "experiments",
        [
            unwatched(benefit),
            *forms(f"benefit status {U}/some", only=FORMS[:4]),
            f"benefit report {U}/run --html report.html",
            f"benefit report {U}/run --format csv",
            *[f"benefit report {U}/{name} --full" for name in ("code", "void", "some")],
            *forms(f"benefit history {U}/results", only=FORMS[:4]),
        ],
    ),
]

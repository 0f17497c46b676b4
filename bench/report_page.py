"""The report of very many queries in a browser: bytes, seconds to make it, first paint, filter, sort, opening a query. `report_page.py [QUERIES] [SYSTEMS ...]`.

5,000 queries and 2, 5 and 10 systems unless told, 10 results a query, no two texts or titles the same. Words are those of Python's
standard library, drawn by Zipf's law. Ends with status 1 where a report of two systems is over a limit. Needs Chromium on the PATH.
"""

from __future__ import annotations

import itertools
import random
import re
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare, compare_many, evaluate
from cranfield.model import CallLog
from cranfield.reporting import comparison_document, save_report

DEPTH = 10
N_QUERIES, SYSTEMS = 5_000, (2, 5, 10)
KINDS = ("navigational", "how-to", "error message", "entity", "comparison")
FILTERS = ("time", "import error", "re", "thread pool", "zzz", "q4", "how-to", "file path", "s", "newly")
OPENED = 25
"""Queries that are opened one after the other, drawn at random."""
LIMITS = {"MB": 5.0, "first paint s": 1.0, "filter ms": 100.0, "open ms": 200.0}
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
"""Until the browser has drawn what was changed."""
FILTER = f"""async words => {{
    const field = document.querySelector('#query-view [data-part=find]');
    const began = performance.now();
    field.value = words;
    field.dispatchEvent(new Event('input', {{ bubbles: true }}));
    await {FRAME};
    return performance.now() - began;
}}"""
SORT = f"""async name => {{
    const head = [...document.querySelectorAll('#query-view thead button')].find(each => each.textContent.startsWith(name));
    const began = performance.now();
    head.click();
    await {FRAME};
    return performance.now() - began;
}}"""
OPEN = f"""async id => {{
    const title = document.querySelector('#query-panel [data-part=title]');
    const began = performance.now();
    location.hash = '#q=' + encodeURIComponent(id);
    while (!title.textContent.startsWith(id + ' ')) await {FRAME};
    await {FRAME};
    return performance.now() - began;
}}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
READY = f"""async () => {{
    while (!document.querySelector('#query-view[data-ready]')) await {FRAME};
    return performance.now();
}}"""


@dataclass(frozen=True)
class Words:
    """The vocabulary of a language, the frequent words first."""

    names: list[str]
    weights: list[float]

    def some(self, draw: random.Random, low: int, high: int) -> str:
        """So many words."""
        return " ".join(draw.choices(self.names, cum_weights=self.weights, k=draw.randint(low, high)))


def vocabulary() -> Words:
    """The words of the modules of the standard library."""
    counted: dict[str, int] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for word in re.findall(r"[A-Za-z]{2,14}", path.read_text(encoding="utf-8", errors="replace")):
            counted[word] = counted.get(word, 0) + 1
    names = sorted(counted, key=lambda word: (-counted[word], word))
    return Words(names, list(itertools.accumulate(1 / (rank + 10) for rank in range(len(names)))))


def made_up(n_queries: int, n_systems: int) -> tuple[TestSet, list[Run]]:
    """Queries with texts and judgments, and systems of which each later one is a little better; every tenth result is in other lists too."""
    draw, words = random.Random(7), vocabulary()
    documents = [
        (f"guide/{words.some(draw, 1, 1).lower()}/{n:06x}", words.some(draw, 3, 9)) for n in range(n_queries * 12)
    ]
    queries = tuple(
        Query(f"q{n}", words.some(draw, 2, 7).lower(), {"kind": draw.choice(KINDS)}) for n in range(1, n_queries + 1)
    )
    near = {query.id: draw.sample(documents, 3 * DEPTH) for query in queries}
    truth = TestSet("many", queries, {q: {doc: draw.choice((0, 1, 1, 2)) for doc, _ in near[q][:6]} for q in near})
    runs = []
    for place in range(n_systems):
        answers, logs = {}, {}
        for query in queries:
            keyed = [
                (position + draw.gauss(0, 12 - 4 * place / n_systems), doc)
                for position, doc in enumerate(near[query.id])
            ]
            hits = tuple(Hit(doc, title=title) for _, (doc, title) in sorted(keyed)[:DEPTH])
            answers[query.id] = Answer(Outcome.ANSWERED, hits)
            logs[query.id] = CallLog(draw.lognormvariate(3, 0.5))
        runs.append(Run(f"system {place + 1}", answers, depth=DEPTH, logs=logs))
    return truth, runs


def write(folder: Path, n_queries: int, n_systems: int) -> tuple[Path, float]:
    """The report, and the seconds that its document and page took."""
    truth, runs = made_up(n_queries, n_systems)
    evaluations = [evaluate(truth, run) for run in runs]
    result = compare(*evaluations, test="t") if n_systems == 2 else compare_many(evaluations, test="t")
    began = time.perf_counter()
    save_report(comparison_document(result), folder / f"{n_systems}.html")
    return folder / f"{n_systems}.html", time.perf_counter() - began


def measure(page: Page, path: Path, n_queries: int) -> dict[str, float]:
    """Times of one report, in milliseconds where not seconds; filters and openings as median, and the slowest."""
    page.goto(path.as_uri())
    ready = page.evaluate(READY)
    paint = page.evaluate(PAINT)
    first = page.evaluate(OPEN, "q57")
    draw = random.Random(1)
    opened = [page.evaluate(OPEN, f"q{number}") for number in draw.sample(range(1, n_queries + 1), OPENED)]
    page.keyboard.press("Escape")
    filtered = [page.evaluate(FILTER, words) for words in (*FILTERS, "")]
    sorted_ = [page.evaluate(SORT, name) for name in ("query", "text")]
    return {
        "first paint s": paint / 1000,
        "list ready s": ready / 1000,
        "filter ms": statistics.median(filtered),
        "slowest filter ms": max(filtered),
        "sort ms": max(sorted_),
        "first open ms": first,
        "open ms": statistics.median(opened),
        "slowest open ms": max(opened),
    }


def main() -> int:
    n_queries, *systems = [int(argument) for argument in sys.argv[1:]] or [N_QUERIES]
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for n_systems in systems or SYSTEMS:
            path, seconds = write(Path(made), n_queries, n_systems)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            size = {"MB": path.stat().st_size / 1e6, "made in s": seconds}
            rows[str(n_systems)] = size | measure(page, path, n_queries)
            page.close()
        browser.close()
    print(f"{n_queries:,} queries, {DEPTH} results each\n")
    print(f"{'':18}" + "".join(f"{name + ' systems':>12}" for name in rows) + f"{'limit':>10}")
    for name in next(iter(rows.values())):
        print(f"{name:18}" + "".join(f"{row[name]:12.4g}" for row in rows.values()) + f"{LIMITS.get(name, ''):>10}")
    return int(any(rows["2"][name] > limit for name, limit in LIMITS.items())) if "2" in rows else 0


if __name__ == "__main__":
    sys.exit(main())

"""Components and grids over real searches: SQLite FTS5 in two configurations, fused, and a program whose parts take flags."""

from __future__ import annotations

import csv
import io
import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cranfield.app.grid import run_components, run_grid
from cranfield.formats.runs.jsonl import read_run

SEARCH = """
import json, sqlite3, sys
base = sqlite3.connect("file:index.db?mode=ro", uri=True)
for line in sys.stdin:
    asked = json.loads(line)
    components = str(asked["params"].get("components") or sys.argv[1])
    with open("asked.txt", "a") as log:
        log.write(f"{components} {asked['query']}\\n")
    words = " OR ".join(f'"{word}"' for word in asked["query"].split())
    best = {}
    for table in components.split(","):
        rows = base.execute(
            f"SELECT id, -bm25({table}) FROM {table} WHERE {table} MATCH ? ORDER BY 2 DESC, id LIMIT ?", (words, asked["k"])
        )
        for doc, score in rows:
            best[doc] = best.get(doc, 0.0) + score
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))[: asked["k"]]
    print(json.dumps({"hits": [{"id": doc, "score": score} for doc, score in ranked]}), flush=True)
"""
TOPICS = ["lake", "engine", "violin", "glacier", "orchid", "bridge", "copper", "falcon"]
OTHERS = ["stone", "paper", "river", "cloud", "table", "lamp", "chair", "window", "garden", "street"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """80 documents: some say their topic in the title, some in the body; a query wants all of its topic."""
    draw = random.Random(7)
    (tmp_path / "search.py").write_text(SEARCH)
    base = sqlite3.connect(tmp_path / "index.db")
    for table in ("title", "body"):
        base.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(text, id UNINDEXED)")
    queries = []
    for topic in TOPICS:
        for number in range(10):
            doc = f"{topic}-{number}"
            words = draw.choices(OTHERS, k=12) + draw.choices(TOPICS, k=2)
            texts = {"title": ["the", "one"], "body": words}
            # Half of them say it in the title alone, the rest in the body, two in both.
            if number < 5:
                texts["title"] += [topic]
            if number >= 4:
                texts["body"] += [topic] * 2
            for table, text in texts.items():
                base.execute(f"INSERT INTO {table} VALUES (?, ?)", (" ".join(text), doc))
        for number in range(3):
            judgments = ", ".join(f"{topic}-{at}: 1" for at in range(10))
            extra = draw.choice(OTHERS)
            queries.append(
                f"  - {{id: {topic}{number}, text: {topic} {extra}, strata: {{topic: {topic}}}, judgments: {{{judgments}}}}}"
            )
    base.commit()
    base.close()
    (tmp_path / "queries.yaml").write_text("cranfield_testset: 1\nname: shop\nqueries:\n" + "\n".join(queries) + "\n")
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    return tmp_path


CONFIG = """\
testset: queries.yaml
k: 10
measures: [nDCG@10, R@10]
primary: nDCG@10
baseline: title
candidate: hybrid
systems:
  title: {lines: ["{python}", -I, -S, search.py, title]}
  body: {lines: ["{python}", -I, -S, search.py, body]}
  hybrid:
    fusion: {of: [title, body], method: rrf, depth: 20}
  switched: {lines: ["{python}", -I, -S, search.py, none], components: [title, body]}
"""
GRID = """\
grid:
  system: hybrid
  over:
    fusion.method: [rrf, sum]
    fusion.rrf_k: [10, 60]
    fusion.weights.body: [0.5, 1, 4]
  held_out: 0.25
"""


def n_requests(folder: Path) -> int:
    return len((folder / "asked.txt").read_text().splitlines())


def test_a_grid_collects_each_part_once_and_compares_its_winner_on_held_out_queries(project: Path) -> None:
    (project / "cranfield.yaml").write_text(CONFIG + GRID)
    job = run_grid(project / "cranfield.yaml", out=project / "out")
    result = job.result
    assert n_requests(project) == 24 * 2  # 24 queries, two parts; 9 systems
    # 2 x 2 x 3 points; rrf_k says nothing to sum: 6 + 3 systems are left, and one is the config as written.
    assert len(result.points) == 9
    assert sum(len(point.same) for point in result.points) == 3
    (written,) = (point for point in result.points if point.name == result.as_written)
    assert dict(written.settings) == {"fusion.method": "rrf", "fusion.rrf_k": 60, "fusion.weights.body": 1}
    tuning, held_out = (set(part) for part in (result.tuning_queries, result.held_out_queries))
    assert (len(tuning), len(held_out)) == (18, 6)
    assert not tuning & held_out
    means = [point.tuning_mean for point in result.points]
    assert means == sorted(means, reverse=True)
    assert result.optimism == pytest.approx(means[0] - result.points[0].held_out_mean)
    if result.comparison is not None:
        assert set(result.comparison.comparisons[result.primary].differences) == held_out
    payload = json.loads((project / "out" / "results.json").read_text())
    assert set(payload["held_out_queries"]) == held_out
    assert payload["winner"] == result.winner
    page = (project / "out" / "report.html").read_text()
    assert "no query is in both" in page
    assert "<svg" in page


def test_a_grid_point_equals_a_run_with_its_settings(project: Path) -> None:
    """A point run beside the others is the same as the config with its settings written out."""
    (project / "cranfield.yaml").write_text(CONFIG + GRID)
    job = run_grid(project / "cranfield.yaml", out=project / "out")
    point = next(point for point in job.result.points if dict(point.settings)["fusion.method"] == "sum")
    body = point.settings["fusion.weights.body"]
    alone = CONFIG.replace(
        "method: rrf, depth: 20", f"method: sum, rrf_k: 10, weights: {{body: {body}}}, depth: 20"
    ).replace("candidate: hybrid", "candidate: hybrid\n")
    (project / "cranfield.yaml").write_text(alone)
    printed = cranfield(project, "run", "--system", "hybrid", "--out", "alone")
    assert printed.returncode == 0, printed.stderr
    one, other = (read_run(project / path) for path in (f"out/runs/{point.name}.jsonl", "alone/runs/hybrid.jsonl"))
    assert one.answers == other.answers


def test_the_components_of_a_fusion_are_its_parts(project: Path) -> None:
    job = run_components("hybrid", project / "cranfield.yaml", out=project / "out")
    assert n_requests(project) == 24 * 2
    assert [*job.result.names] == [
        "hybrid.all",
        "hybrid.only-title",
        "hybrid.only-body",
    ]
    # Each topic is in five titles and six bodies of ten: together they find more than either.
    assert [(row.component, row.verdict) for row in job.result.components] == [("title", "helps"), ("body", "helps")]
    assert all(row.n_gained > row.n_lost for row in job.result.components)
    title, body = job.result.components
    assert title.without is body.alone
    alone = read_run(project / "out/runs/hybrid.only-title.jsonl")
    cranfield(project, "run", "--system", "title", "--out", "title")
    itself = read_run(project / "title/runs/title.jsonl")
    ids = [{q: [hit.id for hit in answer.hits] for q, answer in run.answers.items()} for run in (alone, itself)]
    assert ids[0] == ids[1]


def test_a_program_receives_its_active_components(project: Path) -> None:
    job = run_components("switched", project / "cranfield.yaml", out=project / "out")
    lines = (project / "asked.txt").read_text().splitlines()
    assert sorted({line.split()[0] for line in lines}) == ["body", "title", "title,body"]
    assert len(lines) == 24 * 3
    assert [row.verdict.text for row in job.result.components] == ["helps", "helps"]


def keep_answers(config: Path) -> None:
    text = config.read_text()
    for system in ("title", "body", "none"):
        text = text.replace(f"search.py, {system}]", f"search.py, {system}], depends: [index.db]")
    config.write_text(text + "collect: {cache_h: 24}\n")


def test_kept_answers_are_reused_where_the_config_asks_and_refresh_collects_again(project: Path) -> None:
    run_components("hybrid", project / "cranfield.yaml", out=project / "unkept")
    once = n_requests(project)
    run_components("hybrid", project / "cranfield.yaml", out=project / "unkept")
    assert n_requests(project) == 2 * once
    (project / "asked.txt").unlink()
    keep_answers(project / "cranfield.yaml")
    first = run_components("hybrid", project / "cranfield.yaml", out=project / "out")
    n = n_requests(project)
    again = run_components("hybrid", project / "cranfield.yaml", out=project / "again")
    assert n_requests(project) == n
    assert [row.p_adjusted for row in again.result.components] == [row.p_adjusted for row in first.result.components]
    run_components("hybrid", project / "cranfield.yaml", out=project / "fresh", cache="refresh")
    assert n_requests(project) == 2 * n
    run_components("hybrid", project / "cranfield.yaml", out=project / "none", cache="off")
    assert n_requests(project) == 3 * n


def test_both_commands_print_their_tables_in_every_format(project: Path) -> None:
    (project / "cranfield.yaml").write_text(CONFIG + GRID)
    components = cranfield(project, "components", "hybrid", "--format", "csv", "--pilot")
    assert components.returncode == 0, components.stderr
    rows = list(csv.DictReader(io.StringIO(components.stdout)))
    assert [row["component"] for row in rows] == ["title", "body"]
    assert "report.html, report.md in cranfield-components" in components.stderr
    grid = cranfield(project, "grid", "--pilot")
    assert grid.returncode == 0, grid.stderr
    assert "PILOT" in grid.stdout
    assert "VERDICT" in grid.stdout
    as_json = json.loads(cranfield(project, "components", "hybrid", "--format", "json").stdout)
    assert [one["component"] for one in as_json["components"]] == ["title", "body"]
    unknown = cranfield(project, "components", "hybird")
    assert unknown.returncode == 2
    assert "hybrid" in unknown.stderr


@pytest.mark.slow
def test_a_killed_grid_resumes_and_repeats_only_the_queries_under_way(project: Path) -> None:
    (project / "cranfield.yaml").write_text(CONFIG + GRID)
    slow = (project / "search.py").read_text().replace("    words = ", "    time.sleep(0.05)\n    words = ")
    (project / "search.py").write_text(slow.replace("import json", "import time, json"))
    with subprocess.Popen(
        [sys.executable, "-m", "cranfield", "grid", "--no-cache", "--out", "out"],
        cwd=project,
        stderr=subprocess.DEVNULL,
    ) as first:
        until = time.monotonic() + 60
        while time.monotonic() < until and not ((project / "asked.txt").exists() and n_requests(project) >= 14):
            time.sleep(0.01)
        first.kill()
    before = n_requests(project)
    assert 14 <= before < 48
    job = run_grid(project / "cranfield.yaml", out=project / "out", cache="off")
    assert len(job.result.points) == 9
    # The query under way is asked of both parts once more; up to two are under way beside each other.
    assert n_requests(project) <= 48 + 2 * 3


def cranfield(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cranfield", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

"""`cranfield run --explain`: explanations from the config to the report."""

import json
import sqlite3
from contextlib import closing

import pytest

from cranfield.app.run import run_job
from cranfield.ranking.collected import read_run_file
from cranfield.reporting.renderers.text import render_text

DOCS = [
    ("d1", "Grid", "rows and columns"),
    ("d2", "Layout", "a grid of rows, a grid of columns, a grid in a grid"),
    ("d3", "Rows", "how they are sorted"),
    ("d4", "Table", "rows of a table, and more rows, and rows between rows"),
    *((f"x{n}", "Other", "nothing of it") for n in range(6)),
]
SETTINGS = {
    "testset": "queries.json",
    "measures": ["RR@10"],
    "systems": {
        name: {"preset": "sqlite", "with": {"database": "docs.db", "table": "docs", "weights": {"name": weight}}}
        for name, weight in (("old", 1), ("new", 5))
    },
}


@pytest.fixture
def folder(tmp_path):
    """A config of two systems over one database, which differ in a weight."""
    with closing(sqlite3.connect(tmp_path / "docs.db")) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, name, body)")
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", DOCS)
    queries = [
        {"id": "q1", "text": "grid", "judgments": {"d2": 1, "d1": 0}},
        {"id": "q2", "text": "rows", "judgments": {"d4": 1, "d3": 0}},
    ]
    testset = {"cranfield_testset": 1, "name": "pages", "queries": queries}
    (tmp_path / "queries.json").write_text(json.dumps(testset), encoding="utf-8")
    (tmp_path / "cranfield.yaml").write_text(json.dumps(SETTINGS), encoding="utf-8")
    return tmp_path


def explained(folder, name):
    run = read_run_file(folder / "out" / "runs" / f"{name}.jsonl")
    return [hit.explanation is not None for answer in run.answers.values() for hit in answer.hits]


def test_the_report_of_explained_runs_names_the_weight_that_differs(folder):
    job = run_job(folder / "cranfield.yaml", out=folder / "out", explain=True)
    assert all(explained(folder, "old") + explained(folder, "new"))
    text = render_text(job.document)
    section = text[text.index("Why it changed") :]
    assert section.splitlines()[2] == "- weight of name is 5 on the candidate, 1 on the baseline."
    record = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))
    assert record["causes"]["weights"] == [
        {"factor": "name · weight", "baseline": 1.0, "candidate": 5.0, "n_queries": 2}
    ]
    assert record["queries"]["q1"]["sides"][1]["hits"][0]["terms"]["name · weight"] == 5.0


def test_without_the_option_nothing_is_explained(folder):
    job = run_job(folder / "cranfield.yaml", out=folder / "out")
    assert not any(explained(folder, "old") + explained(folder, "new"))
    assert "weight of name" not in render_text(job.document)
    assert "explanation" not in (folder / "out" / "results.json").read_text(encoding="utf-8")


def test_answers_without_explanations_are_not_used_for_a_run_that_has_them(folder):
    """The option is a part of the configuration of a system, and so of what its kept answers depend on."""
    settings = {**SETTINGS, "collect": {"cache_h": 24}}
    (folder / "cranfield.yaml").write_text(json.dumps(settings), encoding="utf-8")
    run_job(folder / "cranfield.yaml", out=folder / "out")
    run_job(folder / "cranfield.yaml", out=folder / "out", explain=True)
    assert all(explained(folder, "old"))


def test_one_system_of_a_config_explains(folder):
    systems = {"old": SETTINGS["systems"]["old"], "new": {**SETTINGS["systems"]["new"], "explain": True}}
    (folder / "cranfield.yaml").write_text(json.dumps({**SETTINGS, "systems": systems}), encoding="utf-8")
    run_job(folder / "cranfield.yaml", out=folder / "out")
    assert (any(explained(folder, "old")), all(explained(folder, "new"))) == (False, True)


def test_what_is_left_out_and_what_is_not_explained_is_reported(folder):
    """A function of which one result has 100 features, one a text, one nothing."""
    (folder / "ranker.py").write_text(
        "def search(query, k):\n"
        "    return [{'id': 'd1', 'explanation': {f'f{n}': n for n in range(100)}},\n"
        "            {'id': 'd2', 'explanation': 'because'}, {'id': 'd3'}]\n",
        encoding="utf-8",
    )
    settings = {**SETTINGS, "systems": {"ranker": {"python": "ranker:search"}}}
    (folder / "cranfield.yaml").write_text(json.dumps(settings), encoding="utf-8")
    text = " ".join(render_text(run_job(folder / "cranfield.yaml", out=folder / "out", explain=True).document).split())
    # Two queries: of 100 features 60 are shown.
    assert "the explanations of the scores of 2 results leave 80 parts out" in text
    assert "4 results, of 6, without an explanation that can be read" in text


def test_names_of_an_explanation_are_text_in_a_report(folder):
    (folder / "ranker.py").write_text(
        "def search(query, k):\n    return [{'id': 'd1', 'explanation': {'</script><script>alert(1)</script>': 1}}]\n",
        encoding="utf-8",
    )
    systems = {name: {"python": "ranker:search", "params": {}} for name in ("one", "two")}
    (folder / "cranfield.yaml").write_text(json.dumps({**SETTINGS, "systems": systems}), encoding="utf-8")
    run_job(folder / "cranfield.yaml", out=folder / "out", explain=True)
    assert "<script>alert" not in (folder / "out" / "report.html").read_text(encoding="utf-8")

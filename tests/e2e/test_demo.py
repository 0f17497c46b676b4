"""The demo as a user runs it: two real systems, a table for every query class, one verdict."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cranfield.app.demo.build import QUESTIONS
from cranfield.app.demo.entity import Corpus
from cranfield.formats.testsets.native import read_testset_yaml, write_testset_yaml
from cranfield.model import QUERY_CLASSES

COUNTS = {"A": 30, "B": 20, "C": 15, "D": 20, "E": 30, "F": 25, "G": 15, "H": 15, "N": 18}


@pytest.fixture(scope="module", params=["demo", pytest.param("demo_of_the_command", marks=pytest.mark.slow)])
def demo(request: pytest.FixtureRequest) -> Path:
    """The demo that all tests share, and what the command itself writes."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


@pytest.fixture(scope="module")
def results(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / "results.json").read_text())
    return found


def test_every_class_is_evaluated_with_its_own_measures_and_test(results: dict[str, Any]) -> None:
    assert len(results["classes"]) == len(COUNTS)
    for found in results["classes"]:
        recipe = QUERY_CLASSES[found["query_class"]]
        assert len(found["query_ids"]) == COUNTS[recipe.letter]
        assert tuple(measured["measure"] for measured in found["measures"]) == recipe.measures, recipe.name
        # every query of a class has a value, on both sides
        assert {measured["n"] for measured in found["measures"]} == {COUNTS[recipe.letter]}, recipe.name


@pytest.mark.parametrize("report", ["stdout.txt", "report.md", "report.html"])
def test_every_class_has_its_own_table_in_the_report(demo: Path, report: str) -> None:
    text = (demo / report).read_text()
    titles = [f"{entry.letter}, {entry.title}, {COUNTS[entry.letter]} queries" for entry in QUERY_CLASSES.values()]
    assert [title for title in titles if title not in text] == []


def test_the_classes_that_fall_without_significance_are_named_beside_the_headline(results: dict[str, Any]) -> None:
    rows = {row["label"]: row for row in results["verdict_by_class"]["rows"]}
    assert list(rows) == list(QUERY_CLASSES)
    falling = [name for name, row in rows.items() if row["move"] == "falls" and row["code"] != "worse"]
    assert {"prose", "attribute"} <= set(falling)
    assert f"{len(falling)} lower without significance ({', '.join(falling)})." in results["verdict_sentence"]
    assert results["verdict"] == "better"
    assert {row["code"] for row in rows.values()} == {"better", "not_significant"}


def test_measures_that_do_not_apply_to_a_class_are_not_computed_for_it(results: dict[str, Any]) -> None:
    """No rank is that of the right one among many, and where nothing should be found nothing but silence counts."""
    for side in results["systems"]:
        scores = {
            query_id: {name for name, value in found.items() if value is not None}
            for query_id, found in side["queries"].items()
        }
        assert {"nDCG@10", "RR@10", "P@5", "Success@5"} <= scores["A01"]
        assert scores["H01"] & {"nDCG@10", "RR@10", "P@5", "Success@5"} == {"nDCG@10", "P@5"}
        assert scores["N01"] & {"nDCG@10", "RR@10", "P@5", "Success@5"} == set()


def test_the_report_counts_predicates_and_the_ids_they_returned(demo: Path) -> None:
    assert "Database 'corpus' answered 15 predicates with " in (demo / "report.md").read_text()
    assert "(answers sha256:" in (demo / "report.md").read_text()


def test_the_systems_report_their_confidence_and_no_call_fails(demo: Path) -> None:
    for name in ("plain", "fields"):
        lines = [json.loads(line) for line in (demo / "runs" / f"{name}.jsonl").read_text().splitlines()[1:]]
        assert len(lines) == sum(COUNTS.values())
        sure = [line["fields"]["confidence"] for line in lines]
        assert all(0 <= value <= 1 for value in sure)
        assert {line["outcome"] for line in lines} <= {"answered", "empty"}


def test_the_command_builds_both_systems_asks_them_and_says_where_the_report_is(
    demo_before_its_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Four queries over a part of the library."""
    source = read_testset_yaml(QUESTIONS)
    asked = source.queries[:4]
    grades = {query.id: source.grades[query.id] for query in asked}
    few = replace(source, queries=asked, grades=grades, targets={}, legacy={})
    write_testset_yaml(few, tmp_path / "few.yaml")
    corpus, _ = pickle.loads((demo_before_its_run / "corpus.pickle").read_bytes())
    judged = {entity_id for of_query in grades.values() for entity_id in of_query}
    part = Corpus(tuple(one for place, one in enumerate(corpus) if place % 50 == 0 or one.id in judged))
    monkeypatch.setattr("cranfield.app.demo.build.build_corpus", lambda **_: part)
    monkeypatch.setattr("cranfield.app.demo.build.QUESTIONS", tmp_path / "few.yaml")
    done = call("demo", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "VERDICT" in done.stdout
    assert f"wrote results.json, report.html, report.md, calls.json in {tmp_path / 'out'}" in done.stderr
    for name in ("plain", "fields"):
        lines = (tmp_path / "out" / "runs" / f"{name}.jsonl").read_text().splitlines()[1:]
        assert [json.loads(line)["outcome"] for line in lines] == ["answered"] * 4


def test_the_terminal_page_shows_the_short_form_of_the_demo(demo: Path) -> None:
    """The figures follow the installed standard library: words, shape and number of lines are compared."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "read-a-report.md").read_text()
    shown = page.partition("## The demo\n\n```text\n")[2].partition("```")[0].splitlines()
    printed = subprocess.run(
        ["cranfield", "compare", "testset.yaml", "runs/plain.jsonl", "runs/fields.jsonl"],
        cwd=demo,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(printed) <= 20 >= len(shown)
    for line in ("Is fields better than plain?", "VERDICT: better"):
        assert line in shown
        assert line in printed
    assert printed[1] == shown[1]
    headings = [[line.split() for line in each if line.startswith("class ")] for each in (shown, printed)]
    assert headings[0] == headings[1] == [["class", "verdict", "measure", "difference", "95", "%", "CI", "n"]]

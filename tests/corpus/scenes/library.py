"""The library in Python: values, reports, cards of notebooks, frames, and the plugin of pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

from pages import page_words

from scenes.scene import PAIR, Scene


@cache
def results() -> tuple:
    from cranfield import compare, compare_many, evaluate, load

    testset = load("set.yaml")
    a, b, c = (evaluate(testset, f"{name}.run", measures=["nDCG@10", "RR", "P@5"]) for name in "abc")
    return testset, a, b, compare(a, b), compare_many([a, b, c])


def evaluating() -> None:
    from cranfield import evaluate, load

    testset, a, *_ = results()
    print(testset, a, a.warnings, sep="\n")
    for measure in a.measures:
        print(measure, a.summaries[measure], a.value(measure, "q03"))
    print(a.to_pandas().to_string())
    print(a.show("q03"))
    qrels = load({"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}})
    run = {"q1": {"d2": 9.1, "d7": 8.4, "d1": 7.7}, "q2": {"d3": 6.0, "d9": 6.0}}
    memory = evaluate(qrels, run, measures=["nDCG@10", "RR", "Success@1"])
    print(memory, memory.warnings, memory.to_polars(), sep="\n")
    print(evaluate(load({"q1": {"d1"}, "q2": ["d3"]}), {"q1": [("d1", 3.0), ("d9", 2.0)], "q2": ["d8", "d3"]}))


def comparing() -> None:
    *_, compared, _many = results()
    print(compared, compared.verdict, compared.primary, sep="\n")
    for measure, found in compared.measures.items():
        print(measure, found)
    print(compared.to_pandas().to_string())
    print(compared.show("q03"))


def comparing_many() -> None:
    *_, many = results()
    print(many, many.verdict, sep="\n")
    print(many.to_pandas().to_string())
    print(many.show("q03"))


def frames() -> None:
    from cranfield import load

    testset, a, *_ = results()
    print(testset.to_pandas().head(20).to_string())
    print(testset.to_arrow().schema)
    print(load("set.yaml").queries[:2])
    print(a.to_arrow().schema)


def reports() -> None:
    from cranfield import report

    _, a, _, compared, many = results()
    for result in (a, compared, many):
        for form in ("text", "markdown", "json", "csv"):
            text = report(result, format=form)
            print(f"{form}: {len(text.splitlines())} lines; {text.splitlines()[0][:80]}")
    print(report(compared))
    report(compared, "comparison.md")


def cards() -> None:
    testset, a, _, compared, many = results()
    for value in (testset, a, compared, many, compared.show("q03"), a.show("q03")):
        print(f"== {type(value).__name__}")
        print(page_words(value._repr_html_()))


def errors() -> None:
    from cranfield import CranfieldError, compare, evaluate, load, parse

    testset, a, b, compared, _ = results()
    for wrong in (
        lambda: load("nothing.yaml"),
        lambda: evaluate(testset, "nothing.run"),
        lambda: evaluate(testset, {"x": ["d01"]}),
        lambda: parse("nDGC@10"),
        lambda: compare(a, b, test="wilcoxon2"),
        lambda: compare(a, evaluate({"q1": {"d1": 1}}, {"q1": ["d1"]})),
        lambda: compared.show("q99"),
        lambda: evaluate({"q1": {"d1": 1}}, {"q1": {"d1": float("nan")}}),
    ):
        try:
            print(wrong())
        except CranfieldError as error:
            print(f"{type(error).__name__}: {error}")


def pytest_fails() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "test_search.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(re.sub(r"in [\d.]+s", "in {duration}", done.stdout), done.stderr)


SCENES = [
    Scene(
        "library",
        [evaluating, comparing, comparing_many, frames, reports, cards, errors],
        {name: PAIR[name] for name in ("set.yaml", "a.run", "b.run", "c.run")},
    ),
    Scene(
        "pytest",
        [pytest_fails],
        {
            "pytest.ini": "[pytest]\n",
            "golden.yaml": (
                "cranfield_testset: 1\nname: shop\nqueries:\n"
                "  - {id: q1, text: red shoes, strata: {kind: thing}, judgments: {shoe-red: 1}}\n"
                "  - {id: q2, text: rain coat, strata: {kind: thing}, judgments: {coat-rain: 1}}\n"
                "  - {id: q3, text: something warm, strata: {kind: wish}, judgments: {coat-wool: 1}}\n"
            ),
            "search.py": (
                'FOUND = {"red shoes": ["shoe-red"], "rain coat": ["coat-wool", "coat-rain"]}\n\n\n'
                "def find(query, k):\n    return FOUND.get(query, [])[:k]\n"
            ),
            "test_search.py": (
                "import pytest\n\n"
                'pytestmark = pytest.mark.cranfield(testset="golden.yaml", system="search:find", k=10)\n\n\n'
                'def test_the_first_right_result_comes_early(evaluation):\n    assert evaluation.mean("RR") >= 0.40\n\n\n'
                'def test_things_are_at_rank_one(evaluation):\n    assert evaluation.where(kind="thing").worst("P@1") == 1\n\n\n'
                "def test_no_kind_finds_nothing(evaluation):\n"
                '    for kind, queries in evaluation.by("kind").items():\n        assert queries.mean("R@10") > 0, kind\n'
            ),
        },
        timed=True,
    ),
]

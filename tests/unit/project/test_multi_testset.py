"""The summary of several test sets."""

from cranfield.model import Judging, JudgingGuideline, Meta, Query, TestSet
from cranfield.project.multi_testset import SetResult, summary_document
from cranfield.reporting import render
from cranfield.reporting.document import Document, Table


def result(name: str, guideline: str) -> SetResult:
    judging = Judging("book", 1, "median", guidelines=(JudgingGuideline(1, guideline, 4),))
    testset = TestSet(name, (Query("q"),), {}, meta=Meta(judging=judging))
    document = Document(f"report of {name}", (), (), lambda: Table((), [], "", shown=None), dict)
    return SetResult(name, testset, {}, document, "report.html", "nDCG@10", 1)


def test_figures_by_different_guidelines_are_said_first() -> None:
    text = render(summary_document([result("old", "sha256:a"), result("new", "sha256:b")]), "text")
    bullets = [line for line in text.splitlines() if line.startswith("- ")]
    assert bullets[0].startswith("- judged by different guidelines: version 1 (a) and version 1 (b)")
    same = render(summary_document([result("old", "sha256:a"), result("new", "sha256:a")]), "text")
    assert "guidelines" not in same

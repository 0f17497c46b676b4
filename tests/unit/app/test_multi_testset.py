"""The summary of several test sets."""

from pathlib import Path

from cranfield.app.run import SetResult, run_job, summary_document
from cranfield.model import Judging, JudgingGuideline, Meta, Query, TestSet
from cranfield.reporting import render
from cranfield.reporting.document import Document, Table
from cranfield.reporting.renderers.text import render_brief


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


def test_one_system_on_several_test_sets_is_a_row_of_scores_for_each(tmp_path: Path) -> None:
    (tmp_path / "one.qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    (tmp_path / "two.qrels").write_text("q1 0 d9 1\nq2 0 d2 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 1 a\nq2 Q0 d2 1 1 a\n")
    (tmp_path / "cranfield.yaml").write_text(
        "testsets:\n  one: {path: one.qrels}\n  two: {path: two.qrels}\nmeasures: [P@1, RR]\nsystems:\n  a: {run: a.run}\n"
    )
    document = run_job(tmp_path / "cranfield.yaml", out=tmp_path / "out").document
    lines = render_brief(document).splitlines()
    # one: both queries find it at rank 1; two: one of two does
    assert [line.split() for line in lines if line.startswith(("one", "two"))][:2] == [
        ["one", "a", "2", "1.0000", "1.0000"],
        ["two", "a", "2", "0.5000", "0.5000"],
    ]
    assert "nothing to compare" not in render(document, "markdown")
    assert "| two | a | 2 | 0.5000 | 0.5000 |" in render(document, "markdown")


def test_the_primary_measure_is_the_first_score_and_a_set_without_a_verdict_is_no_caveat(tmp_path: Path) -> None:
    (tmp_path / "one.qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "two.qrels").write_text("q1 0 d2 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n")
    (tmp_path / "cranfield.yaml").write_text(
        "testsets:\n  one: {path: one.qrels}\n  two: {path: two.qrels}\nmeasures: [P@1, RR]\nprimary: RR\nsystems:\n  a: {run: a.run}\n"
    )
    text = render_brief(run_job(tmp_path / "cranfield.yaml", out=tmp_path / "out").document)
    lines = [line.split() for line in text.splitlines() if line.startswith(("test set ", "one", "two", "!"))]
    # d2 at rank 2: RR 1/2, P@1 0
    assert lines == [
        ["test", "set", "system", "queries", "RR", "P@1"],
        ["one", "a", "1", "1.0000", "1.0000"],
        ["two", "a", "1", "0.5000", "0.0000"],
    ]

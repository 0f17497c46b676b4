"""Sections of reports that an installed package adds."""

from __future__ import annotations

import pytest

from cranfield import TestSet, compare, evaluate
from cranfield.model import Query
from cranfield.reporting import comparison_document, evaluation_document, render

TESTSET = TestSet("tiny", tuple(Query(f"q{n}") for n in range(6)), {f"q{n}": {"d1": 1} for n in range(6)})
COUNTING = """
from cranfield.reporting.document import Paragraph, Section

def section(subject):
    if subject.pair is None:
        return None
    n = subject.record.systems[0].n_queries
    return Section("queries", "Queries that both answered", (Paragraph(f"{n} <b>queries</b>"),))
"""


@pytest.fixture
def evaluations():
    ranks = [{f"q{n}": ["d1", "d2"] for n in range(6)}, {f"q{n}": ["d2", "d1"] for n in range(6)}]
    return [evaluate(TESTSET, run, measures=["RR@10"], name=name) for name, run in zip("ab", ranks, strict=True)]


def test_a_section_of_a_package_stands_before_provenance_and_is_escaped(install, evaluations):
    install("cranfield.report_sections", "section", COUNTING)
    document = comparison_document(compare(*evaluations))
    assert [section.name for section in document.sections][-2:] == ["queries", "provenance"]
    assert "6 <b>queries</b>" in render(document, "text")
    assert "6 &lt;b&gt;queries&lt;/b&gt;" in render(document, "html")


def test_a_package_may_have_nothing_to_add(install, evaluations):
    install("cranfield.report_sections", "section", COUNTING)
    names = [section.name for section in evaluation_document(evaluations).sections]
    assert "queries" not in names
    assert "plugins" not in names


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def section(subject):\n    1 / 0", "cranfield-toy 1.0 failed: ZeroDivisionError: division by zero."),
        ("def section(subject):\n    return 3", "cranfield_toy:section has the wrong type; expected a function of a"),
        ("section = 3", "cranfield_toy:section has the wrong type; expected a function of a"),
        ("import no_such_module", "failed: ModuleNotFoundError: No module named 'no_such_module'."),
    ],
)
def test_a_package_that_fails_is_named_in_the_report_and_does_not_end_it(install, evaluations, source, message):
    install("cranfield.report_sections", "section", source)
    document = comparison_document(compare(*evaluations))
    assert message in " ".join(render(document, "text").split())
    assert "VERDICT: worse" in render(document, "text")

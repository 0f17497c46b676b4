from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.reporting import comparison_document, evaluation_document, render
from cranfield.reporting.document import Column, Document, Link, Table
from cranfield.reporting.renderers.data import guard, render_csv


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_evaluate_is_a_row_for_every_system_query_and_measure(pair: tuple[Evaluation, Evaluation]) -> None:
    found = rows(render(evaluation_document(pair), "csv"))
    assert list(found[0]) == ["system", "query", "measure", "value", "outcome", "stratum.class"]
    assert len(found) == sum(len(each.measures) * len(each.query_ids) for each in pair)
    # q2 on plain: the grade-2 document first, the grade-1 document missing: 2 / (2 + 1/log2(3))
    row = next(r for r in found if (r["system"], r["query"], r["measure"]) == ("plain", "q2", "nDCG@10"))
    assert float(row["value"]) == pytest.approx(2 / (2 + 0.6309297535714575), abs=1e-15)
    assert row["outcome"] == "answered"


def test_an_unscored_value_is_an_empty_cell(pair: tuple[Evaluation, Evaluation]) -> None:
    found = rows(render(evaluation_document(pair), "csv"))
    row = next(r for r in found if (r["system"], r["query"], r["measure"]) == ("weighted", "q8", "Judged@10"))
    assert row["value"] == ""
    assert row["outcome"] == "timeout"


def test_compare_is_a_row_for_every_pair(comparison: Comparison) -> None:
    found = rows(render(comparison_document(comparison), "csv"))
    assert list(found[0]) == [
        "query",
        "measure",
        "baseline",
        "candidate",
        "delta",
        "bucket",
        "baseline_outcome",
        "candidate_outcome",
        "stratum.class",
    ]
    row = next(r for r in found if (r["query"], r["measure"]) == ("q1", "RR@10"))
    assert (row["baseline"], row["candidate"], row["delta"], row["bucket"]) == ("0.5", "1.0", "0.5", "improved")
    failed = next(r for r in found if (r["query"], r["measure"]) == ("q8", "RR@10"))
    assert (failed["baseline_outcome"], failed["candidate_outcome"]) == ("answered", "timeout")


def test_a_pilot_says_so_in_every_row(pilot: Comparison) -> None:
    assert {row["stamp"] for row in rows(render(comparison_document(pilot), "csv"))} == {"PILOT: not for the record"}


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1", "' =1"),
        ("-5", "-5"),
        ("+4.25", "+4.25"),
        ("q1", "q1"),
        ("", ""),
    ],
)
def test_text_that_would_be_a_formula_is_guarded(text: str, guarded: str) -> None:
    assert guard(text) == guarded


@given(st.text())
def test_no_guarded_text_begins_like_a_formula_unless_it_is_a_number(text: str) -> None:
    shown = guard(text)
    if shown.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r")):
        float(shown)


def test_negative_numbers_are_numbers(comparison: Comparison) -> None:
    deltas = [row["delta"] for row in rows(render(comparison_document(comparison), "csv"))]
    assert any(delta.startswith("-") for delta in deltas)
    assert all(isinstance(float(delta), float) for delta in deltas)


def test_wild_ids_come_back_as_one_cell(evil: Comparison) -> None:
    found = rows(render(comparison_document(evil), "csv"))
    assert {row["query"] for row in found} >= {"'=1+1 1", "<script>alert(1)</script> 0", "half \\x80 of it 4"}
    columns = {"query", "measure", "baseline", "candidate", "delta", "bucket", "baseline_outcome", "candidate_outcome"}
    assert all(set(row) >= columns for row in found)


def test_a_link_is_its_text() -> None:
    table = Table((Column("test set"),), [(Link("=code", "code/report.html"),)], "Sets")
    assert render_csv(Document("Title", (), (), lambda: table, dict)) == "test set\n'=code\n"

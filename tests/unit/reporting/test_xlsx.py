"""Excel workbooks of reports, read back with openpyxl: sheets, numbers, headings that stay, text that is no formula."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import compare, compare_many, evaluate, load
from cranfield.base.errors import MissingExtraError, UsageError
from cranfield.evaluation.values import Comparison
from cranfield.reporting import comparison_document, evaluation_document, render, save_report
from cranfield.reporting.document import (
    Bullets,
    Code,
    Column,
    Details,
    Document,
    HitLine,
    HitList,
    HitLists,
    KeyValues,
    Paragraph,
    Section,
    Table,
    TonedCell,
    VerdictBlock,
)
from cranfield.reporting.renderers import xlsx
from cranfield.reporting.renderers.xlsx import render_xlsx, sheet_name

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", '=HYPERLINK("http://a.example","x")', "\t=1", " =1"]


def document(*sections: Section, **more: Any) -> Document:
    return Document("title", (), sections, tidy=lambda: Table((), (), ""), payload=dict, **more)


def workbook(made: Document) -> Any:
    return openpyxl.load_workbook(io.BytesIO(render_xlsx(made)))


def values(sheet: Any) -> list[tuple[Any, ...]]:
    return [tuple(value for value in row if value is not None) for row in sheet.iter_rows(values_only=True)]


def test_the_verdict_is_the_first_sheet_and_each_section_has_one(comparison: Comparison) -> None:
    made = comparison_document(comparison)
    book = workbook(made)
    assert book.sheetnames == ["Verdict", *(section.title for section in made.sections)]
    assert made.verdict is not None
    first = values(book["Verdict"])
    assert first[0] == (made.verdict.sentence,)
    assert first[2] == ("verdict", made.verdict.name)


def test_numbers_are_numbers_in_full_and_an_interval_is_two(comparison: Comparison) -> None:
    sheet = workbook(comparison_document(comparison))["Measures"]
    headings = [cell.value for cell in sheet[2]]
    row = dict(zip(headings, sheet[3], strict=False))
    about = comparison.measures[comparison.primary]
    assert row["A"].value == about.baseline.mean
    assert row["difference"].value == about.delta
    assert (row["95 % CI low"].value, row["95 % CI high"].value) == (about.ci_low, about.ci_high)
    assert row["difference"].number_format == "+0.0000;-0.0000;0.0000"
    assert row["n"].number_format == "#,##0"


def test_headings_stay_in_view() -> None:
    table = Table((Column("name"), Column("n", "count")), (("a", 1),), "Caption")
    book = workbook(
        document(Section("s", "Late", (Paragraph("first"), table)), Section("t", "Words", (Paragraph("w"),)))
    )
    late = book["Late"]
    assert late.freeze_panes == "A3"
    assert values(late) == [("Caption",), ("name", "n"), ("a", 1), (), ("first",)]
    assert late["A2"].font.bold
    assert not late["A3"].font.bold
    assert book["Words"].freeze_panes is None
    plain = workbook(document(Section("s", "S", (Table((Column("name"),), (("a",),), ""),))))["S"]
    assert plain.freeze_panes == "A2"


@pytest.mark.parametrize("text", FORMULAS)
def test_text_is_never_a_formula(text: str) -> None:
    table = Table((Column(text), Column("n", "count")), ((text, 1), (TonedCell(text, "good"), 2)), text)
    made = document(
        Section("s", text, (table, Paragraph(text), Bullets((text,)), KeyValues(((text, text),)), Code(text, text))),
        verdict=VerdictBlock(text, text, "good", reasons=(text,), caveats=(text,)),
    )
    book = workbook(made)
    found = [cell for sheet in book for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]
    assert len(found) > 10
    assert {cell.data_type for cell in found} == {"s"}
    assert all(
        cell.quotePrefix for cell in found if cell.value.strip().startswith(tuple("=+-@")) and len(cell.value) > 1
    )
    import zipfile

    with zipfile.ZipFile(io.BytesIO(render_xlsx(made))) as archive:
        assert not any(b"<f>" in archive.read(name) or b"<f " in archive.read(name) for name in archive.namelist())


@given(st.lists(st.text(max_size=50), max_size=8))
def test_names_of_sheets_are_valid_and_unique(titles: list[str]) -> None:
    book = workbook(document(*(Section("s", title, (Paragraph("x"),)) for title in titles)))
    assert len(book.sheetnames) == len(titles) + 1
    assert len({name.lower() for name in book.sheetnames}) == len(book.sheetnames)
    for name in book.sheetnames:
        assert 1 <= len(name.encode("utf-16-le")) // 2 <= 31
        assert not re.search(r"[\[\]:*?/\\]|^'|'$", name)
        assert name.lower() != "history"


def test_a_name_that_is_taken_gets_a_number_inside_the_limit() -> None:
    long = "x" * 40
    assert sheet_name(long, {"x" * 31}) == "x" * 29 + " 2"
    assert sheet_name("Pairs", {"pairs", "pairs 2"}) == "Pairs 3"
    assert sheet_name("///", set()) == "Sheet"


def test_every_kind_of_block_is_there() -> None:
    hits = HitLists(
        "a (grade 1)",
        (HitList("A plain", "rank 1", (HitLine(1, "d1", "A title", "expected"),)), HitList("B", "timeout", ())),
    )
    inner = Table(
        (Column("x"), Column("95 % CI", "interval")),
        (("y", (0.1, None)), ("z", None)),
        "Inner",
        footer=("all", (0.2, 0.3)),
    )
    book = workbook(document(Section("s", "S", (hits, Details("More", (Paragraph("note"), inner))))))
    assert values(book["S"]) == [
        ("Expected: a (grade 1)",),
        ("system", "rank", "result", "title", "judged"),
        ("A plain", 1, "d1", "A title", "expected"),
        ("B", "timeout"),
        (),
        ("More",),
        (),
        ("note",),
        (),
        ("Inner",),
        ("x", "95 % CI low", "95 % CI high"),
        ("y", 0.1),
        ("z",),
        ("all", 0.2, 0.3),
    ]


def test_marks_are_fonts_and_worse_systems_stand_behind_the_number() -> None:
    cells = (TonedCell(0.9, "", mark="best", better_than=("B", "C")), TonedCell(0.8, "", mark="second"))
    table = Table((Column("m", "value"), Column("o", "value")), (cells,), "Means", marks="The best is bold")
    sheet = workbook(document(Section("s", "S", (table,))))["S"]
    assert sheet["A1"].value == "Means. The best is bold"
    assert (sheet["A3"].value, sheet["A3"].number_format) == (0.9, '0.0000" B,C"')
    assert (sheet["A3"].font.bold, sheet["B3"].font.underline) == (True, "single")


def test_rows_that_do_not_fit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MAX_ROWS", 5)
    table = Table((Column("n", "count"),), [(n,) for n in range(10)], "")
    # a heading and ten rows; four of eleven lines stay, and the fifth says how many do not
    assert values(workbook(document(Section("s", "S", (table,))))["S"]) == [
        ("n",),
        (0,),
        (1,),
        (2,),
        ("7 more rows do not fit in a sheet",),
    ]


def test_long_text_is_cut_and_says_so_and_no_character_is_refused() -> None:
    text = "\x00\x1b[31m\ud800" + "x" * 40_000
    cell = workbook(document(Section("s", "S", (Paragraph(text),))))["S"]["A1"].value
    assert len(cell) == 32_767
    assert cell.endswith("x…")
    assert cell.startswith(r"\x00\x1b[31m\ud800"[:4])


def test_numbers_that_a_sheet_cannot_hold_are_text() -> None:
    table = Table((Column("m", "value"),), ((float("inf"),), (float("nan"),)), "")
    assert values(workbook(document(Section("s", "S", (table,))))["S"])[1:] == [("inf",), ("nan",)]


def test_the_same_report_gives_the_same_bytes(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    first = render_xlsx(comparison_document(comparison))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 100_000)
    assert render_xlsx(comparison_document(comparison)) == first


def test_a_stamp_stands_before_the_verdict(comparison: Comparison) -> None:
    from dataclasses import replace

    made = replace(comparison_document(comparison), stamps=("PILOT",))
    assert values(workbook(made)["Verdict"])[0][0].startswith("PILOT · ")


def test_reports_of_one_system_and_of_many_are_workbooks(tmp_path: Any) -> None:
    testset = load({f"q{n}": {"d": 1} for n in range(12)})
    runs = [{f"q{n}": [*(f"x{m}" for m in range((n + shift) % 3)), "d"] for n in range(12)} for shift in range(3)]
    evaluations = [evaluate(testset, run, name=f"s{at}") for at, run in enumerate(runs)]
    for made in (
        evaluation_document(evaluations[:1]),
        comparison_document(compare_many(evaluations)),
        comparison_document(compare(*evaluations[:2])),
    ):
        save_report(made, tmp_path / "r.xlsx")
        book = openpyxl.load_workbook(tmp_path / "r.xlsx")
        assert len(book.sheetnames) == len(made.sections) + 1
    with pytest.raises(UsageError, match="xlsx is not text"):
        render(made, "xlsx")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match="an Excel workbook needs an extra") as caught:
        render_xlsx(document())
    assert "excel" in str(caught.value)

from __future__ import annotations

import re

import pytest

from cranfield.base.words import HIDDEN
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.reporting import comparison_document, evaluation_document, render
from cranfield.reporting.document import Column, Document, Link, Section, Table
from cranfield.reporting.renderers.markdown import MAX_ROWS, code, escape, paragraph, render_markdown

NOTHING = Table((Column("query"),), [], "nothing")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain text, 0.5", "plain text, 0.5"),
        ("<script>", "&lt;script&gt;"),
        ("a & b", "a &amp; b"),
        ("a | b", r"a \| b"),
        ("*b* _i_ ~s~ [l](x)", r"\*b\* \_i\_ \~s\~ \[l\](x)"),
        ("`code`", r"\`code\`"),
        ("![image](x)", r"\!\[image\](x)"),
        ("\x1b[1m", "\\\\x1b\\[1m"),
        ("two\nlines", "two lines"),
        ("@team a@b.org nDCG@10", f"@{HIDDEN}team a@{HIDDEN}b.org nDCG@10"),
        ("#12 !12 GH-12 no. 12", f"#{HIDDEN}12 \\!{HIDDEN}12 GH-{HIDDEN}12 no. 12"),
        ("https://a.org www.a.org mailto:x", f"https:{HIDDEN}//a.org www{HIDDEN}.a.org mailto:{HIDDEN}x"),
    ],
)
def test_text_is_never_markup(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("# head", r"\# head"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("--- rule", r"\--- rule"),
        ("0.5 is half", "0.5 is half"),
    ],
)
def test_text_at_the_start_of_a_line_begins_no_block(text: str, escaped: str) -> None:
    assert paragraph(text) == escaped


@pytest.mark.parametrize(
    ("text", "spanned"),
    [
        ("doc://a", "`doc://a`"),
        ("@MainActor on View", "`@MainActor on View`"),
        ("a`b", "``a`b``"),
        ("`a`", "`` `a` ``"),
        ("a``b`c", "```a``b`c```"),
        ("<b>", "`<b>`"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_literal_text_is_code_whatever_it_holds(text: str, spanned: str) -> None:
    assert code(text) == spanned


def test_a_pipe_does_not_end_a_cell() -> None:
    assert code("a|b", in_table=True) == r"`a\|b`"


def test_every_row_of_a_table_has_as_many_cells_as_the_head(evil: Comparison) -> None:
    text = render(comparison_document(evil), "markdown")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) > 10
    for table in tables:
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(counts) == 1, table


def test_nothing_from_outside_is_html(evil: Comparison) -> None:
    text = render(comparison_document(evil), "markdown")
    without_code = re.sub(r"^(```+)$.*?^\1$|(`+)(?!`).*?(?<!`)\2(?!`)", "", text, flags=re.MULTILINE | re.DOTALL)
    tags = set(re.findall(r"<[^>]*>", without_code))
    assert tags == {"<details>", "<details open>", "</details>", "<summary>", "</summary>"}
    assert "&lt;script&gt;" in without_code


def test_alignment_follows_the_kind_of_a_column() -> None:
    table = Table((Column("query", "code"), Column("value", "value")), [("q1", 0.5)], "Values", footer=("all", 0.5))
    text = render_markdown(Document("T", (), (Section("s", "S", (table,)),), NOTHING, {}))
    assert "| query | value |\n| :--- | ---: |\n| `q1` | 0.5000 |\n| **`all`** | **0.5000** |\n" in text


def test_long_tables_are_cut_and_say_so() -> None:
    table = Table((Column("n", "count"),), [(n,) for n in range(MAX_ROWS + 7)], "Numbers")
    text = render_markdown(Document("T", (), (Section("s", "S", (table,)),), NOTHING, {}))
    assert f"| {MAX_ROWS - 1} |" in text
    assert f"| {MAX_ROWS} |" not in text
    assert "… and 7 more." in text


def test_no_table_is_told_twice_for_want_of_its_picture(comparison: Comparison) -> None:
    captions = re.findall(r"^(?:RR|nDCG).* by .*:$", render(comparison_document(comparison), "markdown"), re.MULTILINE)
    assert captions
    assert len(captions) == len(set(captions))


def test_the_verdict_is_the_first_thing_said(comparison: Comparison) -> None:
    lines = [line for line in render(comparison_document(comparison), "markdown").splitlines() if line]
    assert lines[0] == "# Is weighted better than plain?"
    assert lines[1].startswith(
        f"> **Verdict: {comparison.verdict.name}.** No significant difference between plain and weighted: "
    )


def test_hits_are_marked_with_what_they_match(comparison: Comparison, patterned: Evaluation) -> None:
    assert "| 2 | `q1-a` | About q1-a | **expected, grade 2** |" in render(comparison_document(comparison), "markdown")
    text = render(evaluation_document([patterned]), "markdown")
    assert r"| 1 | `doc://a/1` | About doc://a/1 | **matches \^doc://a, grade 1** |" in text
    assert r"| 2 | `doc://a/2` | About doc://a/2 | duplicate match of \^doc://a, credited above |" in text
    assert "| 3 | `other` | About other | not relevant |" in text


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Link("code", "code/report.html"), "| [code](code/report.html) |"),
        (Link("a]b", "a)b"), r"| [a\]b](a%29b) |"),
        (Link("code", "/absolute"), "| code |"),
    ],
)
def test_a_link_leads_to_a_relative_path_or_nowhere(cell: Link, shown: str) -> None:
    table = Table((Column("test set"),), [(cell,)], "Sets")
    document = Document("Title", (), (Section("one", "One", (table,)),), lambda: table, dict)
    assert shown in render_markdown(document).splitlines()

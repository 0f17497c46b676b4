from __future__ import annotations

import re
import time

import pytest

from cranfield.app.evaluate import compare, evaluate
from cranfield.base.numbers import UNKNOWN
from cranfield.base.words import width
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import Query, TestSet
from cranfield.reporting import comparison_document, evaluation_document
from cranfield.reporting.document import (
    Bullets,
    Column,
    Details,
    Document,
    HitList,
    HitLists,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Table,
    VerdictBlock,
)
from cranfield.reporting.renderers.text import LINE, render_text

NOTHING = Table((Column("query"),), [], "nothing")


def document(*blocks: object, verdict: VerdictBlock | None = None, stamp: str = "") -> Document:
    return Document(
        "Title",
        ("what it is",),
        (Section("one", "One", blocks),),
        NOTHING,
        {},
        verdict=verdict,
        stamps=(stamp,) if stamp else (),
    )  # type: ignore[arg-type]


def test_the_whole_of_a_small_document() -> None:
    table = Table(
        (Column("query", "code"), Column("value", "value"), Column("p", "p")),
        [("q1", 0.5, 0.0421), ("longer", None, 0.00001)],
        "Values",
        footer=("all", 0.5, None),
    )
    verdict = VerdictBlock("better", "B is better than A.", "good", (), ("a reason",), ("AP says worse",))
    shown = render_text(
        document(
            Paragraph("A sentence."),
            table,
            Bullets(("first", "second")),
            KeyValues((("seed", "7"), ("test set", "small")), "Set"),
            Details("more", (Paragraph("Not here."),)),
            verdict=verdict,
        )
    )
    assert shown == (
        "Title\n"
        "=====\n"
        "what it is\n"
        "\n"
        "VERDICT: better\n"
        "B is better than A.\n"
        "- a reason\n"
        "But:\n"
        "- AP says worse\n"
        "\n"
        "One\n"
        "---\n"
        "A sentence.\n"
        "\n"
        "Values:\n"
        "query    value        p\n"
        "-----------------------\n"
        "q1      0.5000    .0421\n"
        f"longer       {UNKNOWN}  < .0001\n"
        "-----------------------\n"
        f"all     0.5000        {UNKNOWN}\n"
        "\n"
        "- first\n"
        "- second\n"
        "\n"
        "Set:\n"
        "seed      7\n"
        "test set  small\n"
        "\n"
        "Figures, result lists and details are in the HTML report.\n"
    )


def test_where_nothing_is_left_out_nothing_is_said_of_it() -> None:
    assert "HTML report" not in render_text(document(Paragraph("All there is.")))


def test_a_long_table_is_cut_and_says_how_much_is_left_out() -> None:
    table = Table((Column("query"),), [(f"q{n}",) for n in range(25)], "All", shown=20)
    shown = render_text(document(table))
    assert "\nq19\n" in shown
    assert "q20" not in shown
    assert "... and 5 more" in shown


def test_a_table_asked_for_in_full_is_not_cut() -> None:
    shown = render_text(document(Table((Column("query"),), [(f"q{n}",) for n in range(300)], "All", shown=None)))
    assert "q299" in shown


def test_text_gives_way_before_numbers_do() -> None:
    columns = (Column("query"), Column("text"), Column("value", "value"))
    shown = render_text(document(Table(columns, [("q1", "word " * 40, 0.1234)], "Wide")))
    line = next(line for line in shown.splitlines() if line.startswith("q1"))
    assert width(line) == LINE
    assert line.endswith("…  0.1234")


def test_a_table_whose_words_all_count_folds_them_into_lines() -> None:
    columns = (Column("rule"), Column("got"), Column("n", "count"))
    rows = [("a b " * 20, "word " * 40, 7), ("short", "", 8)]
    lines = render_text(document(Table(columns, rows, "Rules", shown=None, wrap=True))).splitlines()
    assert not any("…" in line or width(line) > LINE for line in lines)
    assert " ".join(lines).count("word") == 40
    assert [line.split()[-1] for line in lines if line.endswith((" 7", " 8"))] == ["7", "8"]  # once, in the first line


def test_words_that_fold_give_way_before_headings_do() -> None:
    columns = (Column("test"), *(Column(f"p {n} > A", "p") for n in range(6)), Column("note"))
    table = Table(columns, [("sign", *[0.5] * 6, "word " * 20)], "Tests", shown=None, wrap=True)
    lines = render_text(document(table)).splitlines()
    assert "  ".join(column.title for column in columns) in "\n".join(lines)
    assert " ".join(lines).count("word") == 20


def test_columns_that_do_not_fit_follow_below_behind_the_first_again() -> None:
    columns = (Column("system"), *(Column(f"measure{n:02}@1000", "value") for n in range(12)))
    shown = render_text(document(Table(columns, [("plain", *(n / 100 for n in range(12)))], "Many")))
    heads = [line for line in shown.splitlines() if line.startswith("system")]
    assert len(heads) == 3  # 6 + 5 * 18 = 96 columns a line, 12 measures
    assert all(f"measure{n:02}@1000" in " ".join(heads) for n in range(12))
    assert sum(line.startswith("plain") for line in shown.splitlines()) == 3


def test_wide_characters_do_not_push_columns_out_of_line() -> None:
    columns = (Column("query"), Column("value", "value"))
    shown = render_text(document(Table(columns, [("日本語", 0.5), ("abc", 0.25)], "Values"))).splitlines()
    lines = [line for line in shown if line.endswith(("0.5000", "0.2500"))]
    assert len({width(line) for line in lines}) == 1


def test_a_section_with_nothing_to_paste_is_left_out() -> None:
    lists = HitLists("d1", (HitList("A", "no result", ()),))
    shown = render_text(document(Details("more", (lists,)), lists))
    assert "One" not in shown


def test_the_report_fits_its_width_and_holds_no_control_character(evil: Comparison) -> None:
    shown = render_text(comparison_document(evil))
    assert not [character for character in shown if character != "\n" and not character.isprintable()]
    tables = [line for line in shown.splitlines() if "  " in line.strip()]
    assert tables
    assert max(width(line) for line in tables if "sha256" not in line) <= LINE
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_the_verdict_comes_before_any_table(comparison: Comparison) -> None:
    lines = render_text(comparison_document(comparison)).splitlines()
    assert lines[0] == "Is weighted better than plain?"
    verdict = lines.index(f"VERDICT: {comparison.verdict.name}")
    assert verdict < lines.index("Measures")
    assert lines[verdict + 1].startswith("No significant difference between plain and weighted: ")


def test_evaluations_show_every_query_where_asked(pair: tuple[Evaluation, Evaluation]) -> None:
    without, asked = (render_text(evaluation_document(pair, by_query=flag)) for flag in (False, True))
    row = re.compile(r"^q8 +weighted +timeout +timeout +0\.0000", re.MULTILINE)
    assert not row.search(without)
    assert row.search(asked)


def test_what_was_missed_has_a_column_where_something_was() -> None:
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1, "d3": 1}}
    whole = {"q1": {"d1": 1.0}, "q2": {"d2": 2.0, "d3": 1.0}}
    for run, shown in ((whole, 0), ({**whole, "q2": {"d2": 1.0}}, 2)):  # of the worst queries, and of all
        text = render_text(evaluation_document([evaluate(qrels, run, measures=["R@5"])], by_query=True))
        assert text.count("expected and missed") == shown


@pytest.mark.parametrize("stamp", ["PILOT: not for the record"])
def test_a_stamp_stands_at_both_ends(stamp: str) -> None:
    lines = render_text(document(Paragraph("x"), stamp=stamp)).splitlines()
    assert lines.count(f"*** {stamp} ***") == 2
    assert lines[-1] == f"*** {stamp} ***"


def test_headings_of_numbers_fold_before_a_table_is_split() -> None:
    # 25 of the name + 6 * 11 of headings + 6 gaps of 2 = 103; one heading folded to `number`, 0000: 98.
    columns = (Column("of"), *(Column(f"number {place:04}", "value") for place in range(6)))
    table = Table(columns, [("a system with a long name", *[0.5] * 6)], "Values")
    lines = render_text(document(table)).splitlines()
    above = lines.index("Values:") + 1
    assert lines[above].split() == ["number"]
    assert lines[above + 1].split()[:4] == ["of", "0000", "number", "0001"]
    assert lines[above + 3].split()[-6:] == ["0.5000"] * 6
    assert max(map(width, lines)) == 98


def test_headings_of_text_fold_before_cells_are_cut() -> None:
    # 41 + 41 + 31 of the last heading + 2 gaps of 2 = 117: it folds to 14.
    columns = (Column("a"), Column("b"), Column("what both of them were made of"))
    table = Table(columns, [("x" * 40 + "1", "y" * 40 + "2", "wood")], "Things")
    lines = render_text(document(table)).splitlines()
    assert lines[-1].split() == ["x" * 40 + "1", "y" * 40 + "2", "wood"]
    above = lines.index("Things:") + 1
    assert " ".join(line[86:].strip() for line in lines[above : above + 3]) == "what both of them were made of"


def test_a_heading_of_wide_characters_is_cut_where_it_does_not_fit() -> None:
    table = Table((Column("名" * 60), Column("b")), [("x", "y" * 60)], "Things")
    assert max(map(width, render_text(document(table)).splitlines())) <= LINE


def test_long_labels_of_values_are_whole() -> None:
    label = "lift where the tool was called (per protocol)"
    assert f"{label}  +1" in render_text(document(KeyValues(((label, "+1"),))))


def test_a_link_is_its_text() -> None:
    table = Table((Column("test set"),), [(Link("code", "code/report.html"),)], "Sets")
    assert render_text(document(table)).splitlines()[-1] == "code"


def test_cells_fold_where_they_would_be_cut_to_the_same_text() -> None:
    names = [f"a-rather-long-name-of-a-system-of-many-{n:02d}-with-all-of-its-settings-in-the-name" for n in range(3)]
    columns = (Column("system"), Column("AP", "value"))
    wide = tuple(Column(f"measure{n}", "value") for n in range(6))
    rows = [(name, 0.5, *[0.25] * 6) for name in names]
    shown = render_text(document(Table((*columns, *wide), rows, "Systems", shown=None)))
    folded = "".join(line.split("  ")[0] for line in shown.splitlines())
    assert all(name in folded for name in names)
    assert "…" not in shown
    assert max(map(width, shown.splitlines())) <= LINE
    rows = [(letter + "b" * 80, 0.5, *[0.25] * 6) for letter in "xyz"]
    cut = render_text(document(Table((*columns, *wide), rows, "Systems", shown=None)))
    assert "…" in cut  # the letter tells them apart


def test_a_name_of_a_megabyte_is_cut_and_costs_no_seconds() -> None:
    rows = [("x" * 1_000_000, "y" * 1_000_000, 0.5)]
    before = time.process_time()
    shown = render_text(document(Table((Column("query"), Column("kind"), Column("value", "value")), rows, "Values")))
    assert time.process_time() - before < 1
    assert len(shown) < 1000


def compared_queries(n: int) -> Comparison:
    queries = tuple(Query(f"q{i}", strata={"kind": "ab"[i % 2]}) for i in range(n))
    testset = TestSet("set", queries, {query.id: {"hit": 1} for query in queries})
    runs = ({query.id: ["x", "hit"] for query in queries}, {query.id: ["hit"] for query in queries})
    return compare(*(evaluate(testset, run, measures=["RR@10", "P@1"]) for run in runs))


@pytest.mark.parametrize(("n", "is_listed"), [(60, True), (61, False)])
def test_text_lists_every_query_up_to_sixty(n, is_listed):
    text = render_text(comparison_document(compared_queries(n)))
    assert all(re.search(rf"^q{i} +0\.5000 +1\.0000 ", text, re.MULTILINE) for i in range(n)) is is_listed


def test_text_has_every_measure_by_stratum():
    text = render_text(comparison_document(compared_queries(12)))
    table = text[text.index("P@1 by stratum") :]
    assert re.search(r"^kind: a +6 +0\.0000 +1\.0000 +\+1\.0000 ", table, re.MULTILINE)

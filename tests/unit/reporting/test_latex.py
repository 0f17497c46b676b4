"""LaTeX of a report: a leaderboard with its marks, text that is no command, and every table where there is no leaderboard."""

import re
from dataclasses import replace

import pytest

from cranfield import Limits, compare, compare_many, evaluate, load, report
from cranfield.measures import parse
from cranfield.reporting.document import Column, Document, Section, Table
from cranfield.reporting.renderers.latex import escape, render_latex
from cranfield.reporting.sections.subject import marks_of

QUERIES = [f"q{n}" for n in range(40)]
TESTSET = load({query: {"d": 1} for query in QUERIES})


def system(name, ranks, **options):
    """A system that has the relevant document of each query at a rank."""
    run = {
        query: [*(f"x{n}" for n in range(1, rank)), "d", *(f"x{n}" for n in range(rank, 10))]
        for query, rank in zip(QUERIES, ranks, strict=True)
    }
    return evaluate(TESTSET, run, measures=["RR", "P@1", "Judged@10"], name=name, **options)


GOOD, FAIR, POOR = system("good & new", [1] * 40), system("fair_1", [1, 2] * 20), system("poor", [4] * 40)


def rows_of(latex):
    body = latex.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    return [line.strip() for line in body.strip().splitlines()]


def test_the_best_is_bold_the_second_underlined_and_worse_systems_have_the_letters_of_the_report():
    # RR: 1, (1 + 1/2)/2 = .75, 1/4; P@1: 1, .5, 0. Judged@10 says how far the others can be trusted, and has no best value.
    latex = report(compare_many([POOR, GOOD, FAIR]), format="latex")
    assert rows_of(latex) == [
        r"B & good \& new & \textbf{1.0000}$^{A,C}$ & \textbf{1.0000} & 0.1000 \\",
        r"C & fair\_1 & \underline{0.7500}$^{A}$ & \underline{0.5000} & 0.1000 \\",
        r"A & poor & 0.2500 & 0.0000 & 0.1000 \\",
    ]
    assert "significantly worse in RR (permutation, 3 pairs, max-T" in latex


def test_of_two_systems_the_verdict_is_the_superscript():
    latex = report(compare(GOOD, POOR), format="latex")
    assert rows_of(latex)[0].startswith(r"A & good \& new & \textbf{1.0000}$^{B}$ &")
    assert rows_of(latex)[1] == r"B & poor & \underline{0.2500} & \underline{0.0000} & 0.1000 \\"
    assert "^{" not in "".join(rows_of(report(compare(FAIR, system("same", [1, 2] * 20)), format="latex")))


def test_scores_that_do_not_count_come_first_and_nothing_is_the_best():
    void = compare(GOOD, POOR, limits=Limits(min_judged_share=0.9))
    latex = report(void, format="latex")
    assert re.search(r"\\caption\{Invalid: the tables show scores that do not count\.", latex)
    assert not re.search(r"textbf|underline|\^\{", "".join(rows_of(latex)))


def test_one_system_has_no_mark():
    assert rows_of(report(GOOD, format="latex")) == [r"A & good \& new & 1.0000 & 1.0000 & 0.1000 \\"]


@pytest.mark.parametrize(
    ("means", "measure", "expected"),
    [
        ([0.5, 0.50001, 0.4], "RR", ["best", "best", "second"]),  # equal as printed
        ([0.5, 0.5], "RR", ["", ""]),
        ([0.5], "RR", [""]),
        ([2.0, None, 1.0], "RR", ["best", "", "second"]),
        ([2.0, 3.0, 1.0], "RankOfFirst", ["second", "", "best"]),  # lower is better
        ([10.0, 9.0], "RR", ["best", "second"]),  # by value, not by text
        ([0.5, 0.4], "Judged@10", ["", ""]),  # a diagnostic has no best value
    ],
)
def test_values_are_marked_as_they_are_printed(means, measure, expected):
    assert marks_of(means, parse(measure)) == expected


def test_markdown_and_html_mark_the_same_values():
    many = compare_many([POOR, GOOD, FAIR])
    markdown = report(many, format="markdown")
    lines = {line.split("|")[2].strip(): line for line in markdown.splitlines() if line.startswith("| ")}
    assert "| **1.0000**<sup>A,C</sup> |" in lines["B good &amp; new"]
    assert "| <ins>0.7500</ins><sup>A</sup> |" in lines[r"C fair\_1"]
    assert "<sup>" not in lines["A poor"]
    explained = "The best value is bold, the second underlined. Superscripts name the systems that are significantly worse in RR"
    assert markdown.count(explained) == 1
    html = report(many, format="html")
    assert html.count(explained) == 1
    assert re.search(r'<strong>1\.0000</strong><sup class="than">A,<wbr>C</sup>', html)
    assert re.search(r'<u>0\.7500</u><sup class="than">A</sup>', html)
    assert "<strong>0.1000</strong>" not in html  # a diagnostic
    assert "bold" not in report(many, format="text")


def test_reports_of_scores_that_do_not_count_mark_nothing():
    many = compare_many([POOR, GOOD, FAIR], limits=Limits(min_judged_share=0.9))
    assert not re.search("<sup>|<ins>|is bold", report(many, format="markdown"))
    assert not re.search("<sup|<u>|is bold", report(many, format="html"))


def test_systems_side_by_side_are_marked_too():
    from cranfield.reporting import evaluation_document, render

    markdown = render(evaluation_document([POOR, GOOD]), "markdown")
    assert re.search(r"\| good &amp; new \| \*\*1\.0000\*\* \| \*\*1\.0000\*\* \| 0\.1000 \|", markdown)


def test_text_in_a_superscript_is_escaped():
    from cranfield.reporting.document import TonedCell
    from cranfield.reporting.renderers.markdown import table_markdown

    cell = TonedCell(0.5, "", mark="best", better_than=("<b>",))
    table = Table((Column("m", "value"),), ((cell,),), "c", marks="m")
    assert list(table_markdown(table))[2] == "| **0.5000**<sup>&lt;b&gt;</sup> |"
    assert list(table_markdown(replace(table, marks="")))[2] == "| 0.5000 |"


@pytest.mark.parametrize("character", list("\\{}$&#%_^~<>|\"`'"))
def test_no_text_is_a_command(character):
    assert escape(f"a{character}b") != f"a{character}b"
    assert "\\" in escape(character)


def test_a_document_without_a_leaderboard_gives_its_tables():
    table = Table((Column("name"), Column("n", "count")), (("[a]", 1),), "A table of 50 %", footer=("all", 1))
    document = Document("t", (), (Section("s", "S", (table,)),), tidy=lambda: table, payload=dict)
    assert render_latex(document).endswith(
        "\\begin{table}\n\\centering\n\\caption{A table of 50 \\%}\n\\begin{tabular}{lr}\n\\toprule\nname & n \\\\\n\\midrule\n"
        "{}[a] & 1 \\\\\n\\midrule\nall & 1 \\\\\n\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def test_a_file_that_ends_in_tex_is_latex(tmp_path):
    report(GOOD, tmp_path / "board.tex")
    assert r"\toprule" in (tmp_path / "board.tex").read_text()

"""LaTeX of a report: a leaderboard with its marks, text that is no command, and every table where there is no leaderboard."""

import re

import pytest

from cranfield import Limits, compare, compare_many, evaluate, load, report
from cranfield.reporting.document import Column, Document, Leaderboard, LeaderboardRow, Section, Table
from cranfield.reporting.renderers.latex import escape, render_latex

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


def test_the_best_is_bold_the_second_underlined_and_worse_systems_are_named():
    # RR: 1, (1 + 1/2)/2 = .75, 1/4; P@1: 1, .5, 0. Judged@10 says how far the others can be trusted, and has no best value.
    latex = report(compare_many([POOR, GOOD, FAIR]), format="latex")
    assert rows_of(latex) == [
        r"A & good \& new & \textbf{1.0000}$^{B,C}$ & \textbf{1.0000} & 0.1000 \\",
        r"B & fair\_1 & \underline{0.7500}$^{C}$ & \underline{0.5000} & 0.1000 \\",
        r"C & poor & 0.2500 & 0.0000 & 0.1000 \\",
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


def board(*rows, better=(True,)):
    return Leaderboard(
        ("Means.",), ("m",), better, tuple(LeaderboardRow(str(n), "s", (value,), ()) for n, value in enumerate(rows))
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (board(0.5, 0.50001, 0.4), ["b", "b", "u"]),  # equal as printed
        (board(0.5, 0.5), ["", ""]),
        (board(2.0, None, 1.0), ["b", "", "u"]),
        (board(2.0, 3.0, 1.0, better=(False,)), ["u", "", "b"]),
        (board(10.0, 9.0), ["b", "u"]),  # by value, not by text
    ],
)
def test_values_are_marked_as_they_are_printed(found, expected):
    document = Document("t", (), (), tidy=lambda: None, payload=dict, leaderboard=lambda: found)
    marks = ["b" if "textbf" in row else "u" if "underline" in row else "" for row in rows_of(render_latex(document))]
    assert marks == expected


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

"""The short form: one screen of a terminal, the gravest caveat first, nothing left out without a word."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.app.evaluate import compare, compare_many, evaluate
from cranfield.base.words import width
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model import Query, Run, TestSet
from cranfield.reporting import comparison_document, evaluation_document, render
from cranfield.reporting.document import (
    Brief,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    Tone,
    VerdictBlock,
)
from cranfield.reporting.renderers.text import COLUMNS, MAX_LINES, render_brief

from .conftest import answered

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def lines_of(document: Document, **options: int) -> list[str]:
    """The lines, each of which fits."""
    lines = render_brief(document, **options).splitlines()
    assert len(lines) <= options.get("most", MAX_LINES)
    assert max(map(width, lines)) <= options.get("line", COLUMNS), lines
    return lines


def test_of_two_systems_the_verdict_the_measures_the_queries_and_the_caveats_are_shown(comparison):
    lines = lines_of(comparison_document(comparison))
    assert lines[0] == "Is weighted better than plain?"
    assert lines[2] == f"VERDICT: {comparison.verdict.name}"
    assert any(line.startswith("* nDCG@10") for line in lines)
    # q1 and q4 get better, q2, q5 and q8 worse: see `small_runs`; q8 timed out, and counts as 0
    assert any(line.startswith("2 queries better, 3 worse; 0 and 1 failed; Judged@10 ") for line in lines)
    (most,) = (line for line in lines if line.startswith("Most: "))
    assert most.startswith("Most: +0.3303 json dumps; −0.7602 timeout")
    assert not re.search(r"\bq\d\b", most)  # queries by their texts
    assert any(line.startswith("! ") for line in lines)
    assert lines[-1].startswith("--full prints everything: ")


def test_a_finding_is_no_caveat(runs, testset):
    from dataclasses import replace

    queries = tuple(Query(f"q{i}", f"text {i}") for i in range(20))
    easy = TestSet("easy", queries, {query.id: {"right": 1} for query in queries})
    before, after = (
        Run(name, {query.id: answered(*found) for query in queries}, depth=2)
        for name, found in (("old", ("x", "right")), ("new", ("right",)))
    )
    comparison = compare(evaluate(easy, before), evaluate(easy, after), margin=0.05)
    lines = lines_of(comparison_document(comparison))
    assert any(line.startswith("Non-inferior: a loss of 0.05 or more is ruled out") for line in lines)
    assert not any("non-inferior" in line for line in lines if line.startswith("! "))
    many = compare_many([evaluate(testset, replace(runs[0], name=name)) for name in "abc"], baseline="a", draws=200)
    lines = lines_of(comparison_document(many))
    assert "Against a, no significant difference: b, c" in lines
    assert not any(line.startswith("! against") for line in lines)


def test_figures_that_do_not_count_are_not_shown_and_the_reason_is_first(pair):
    from dataclasses import replace

    same = replace(pair[0], run=replace(pair[0].run, name="same"))
    document = comparison_document(compare(pair[0], same))
    text = render_brief(document)
    if document.stamps:
        assert "nDCG@10  " not in text
    assert "! " in text


def test_an_invalid_verdict_gives_its_reason_before_other_caveats(invalid):
    first = next(line for line in lines_of(comparison_document(invalid)) if line.startswith("! "))
    assert invalid.verdict.code is VerdictCode.INVALID
    assert " ".join(first[2:].split())[:40] in " ".join(invalid.verdict.reasons)


@pytest.mark.parametrize("n", [3, 9, 40])
def test_of_many_systems_the_first_ten_at_most_and_the_number_of_the_others(runs, testset, n):
    from dataclasses import replace

    evaluations = [evaluate(testset, replace(runs[0], name=f"system-{place}")) for place in range(n)]
    lines = lines_of(comparison_document(compare_many(evaluations, draws=200)))
    shown = sum(bool(re.match(r" *\d+  system-", line)) for line in lines)
    assert min(n, 6) <= shown <= 10
    if shown < n:
        assert f"{n - shown} rows" in lines[-1]


@pytest.mark.parametrize("n", [4, 12])
def test_of_many_classes_those_that_changed_are_first(n):
    queries = tuple(Query(f"q{i}", f"text {i}", {"class": f"c{i % n:02}"}) for i in range(n * 20))
    testset = TestSet("classes", queries, {query.id: {"right": 1} for query in queries})
    last = f"c{n - 1:02}"
    before = Run("old", {query.id: answered("x", "right") for query in queries}, depth=2)
    after = Run(
        "new",
        {q.id: answered("right") if q.strata["class"] == last else answered("x", "right") for q in queries},
        depth=2,
    )
    comparison = compare(evaluate(testset, before), evaluate(testset, after), strata="class")
    lines = lines_of(comparison_document(comparison))
    heading = next(place for place, line in enumerate(lines) if line.startswith("class "))
    assert lines[heading + 1].split()[:2] == [last, "better"]


def test_a_class_whose_interval_and_adjusted_p_disagree_says_so():
    # of 7 queries 6 are better and none worse: p 2/2^6 = .03125, and .0625 adjusted for two classes
    queries = tuple(Query(f"{kind}{n}", strata={"kind": kind}) for kind in "ab" for n in range(7))
    testset = TestSet("t", queries, {query.id: {"d": 1} for query in queries})
    behind = {query.id: ["x", "d"] for query in queries}
    better = {
        query.id: ["d"] if query.id in {*(f"a{n}" for n in range(1, 7)), "b1"} else ["x", "d"] for query in queries
    }
    sides = [evaluate(testset, run, measures=["RR"], name=name) for name, run in (("a", behind), ("b", better))]
    text = " ".join(render_brief(comparison_document(compare(*sides, strata="kind"))).split())
    assert (
        "Not significant although its interval excludes zero, because p is adjusted for the number of classes: "
        "a (adjusted p .0625)"
    ) in text


def test_one_system_and_several_side_by_side_have_n_interval_failures_and_judged_share(pair):
    alone = "\n".join(lines_of(evaluation_document([pair[0]])))
    assert re.search(r"measure +mean +95 % CI +median +n\n", alone)
    assert "0 failed; Judged@10 " in alone
    both = lines_of(evaluation_document([pair[0], pair[0]]))
    assert next(line for line in both if line.startswith("system ")).split()[-3:] == ["n", "failed", "judged"]


def test_hostile_texts_stay_in_their_line_and_reach_no_terminal(evil):
    text = render_brief(comparison_document(evil))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e]", text)
    assert max(map(width, text.splitlines())) <= COLUMNS
    assert "<script>" not in render(comparison_document(evil), "brief")


def test_colour_is_of_the_verdict_and_of_the_cells_and_changes_no_word(comparison):
    document = comparison_document(comparison)
    painted = render_brief(document, paint=lambda text, tone: f"\x1b[1m{text}\x1b[0m" if tone else text)
    assert "\x1b[1mVERDICT" in painted
    assert [line.rstrip() for line in ESCAPE.sub("", painted).splitlines()] == render_brief(document).splitlines()


def test_the_markdown_form_is_short_and_has_verdict_table_and_caveats(comparison):
    text = render(comparison_document(comparison), "brief")
    assert text.startswith("**Is weighted better than plain?**\n")
    assert "| measure | A | B |" in text
    assert "Caveats:" in text
    assert len(text.splitlines()) < 40


words = st.text(st.characters(categories=("L", "N", "Zs"), include_characters="\u65e5"), max_size=300)


@given(
    title=words,
    subtitle=st.lists(words, max_size=4),
    sentence=words,
    tone=st.sampled_from(get_args(Tone)),
    rows=st.lists(st.tuples(words, st.floats(0, 1)), max_size=60),
    changes=st.lists(words, max_size=3),
    doubts=st.lists(words.filter(str.strip), max_size=12),
    line=st.integers(80, 100),
)
def test_whatever_a_report_says_fits_on_the_screen_and_what_is_left_out_is_counted(
    title, subtitle, sentence, tone, rows, changes, doubts, line
):
    table = Table((Column("name"), Column("value", "value")), rows, "rows")
    brief = Brief(table, tuple(changes), tuple(doubts))
    document = Document(
        title,
        tuple(subtitle),
        (Section("one", "One", (Paragraph("text"),)),),
        lambda: Table((), (), ""),
        dict,
        verdict=VerdictBlock("better", sentence, tone),
        brief=lambda: brief,
    )
    lines = lines_of(document, line=line)
    shown = sum(each.startswith("! ") for each in lines)
    if shown < len(doubts):
        assert re.search(r"\d+ caveats? ", lines[-1].replace(",", " ")), lines


def short(
    *,
    rows: int,
    changes: tuple[str, ...] = (),
    doubts: tuple[str, ...] = (),
    sentence: str = "text",
    findings: tuple[str, ...] = (),
) -> Document:
    """A report with a table of some rows."""
    table = Table((Column("name"), Column("value", "value")), [(f"c{n}", 0.5) for n in range(rows)], "rows")
    return Document(
        *("Is B better?", ("about",), (Section("one", "One", (Paragraph("text"),)),), lambda: Table((), (), ""), dict),
        verdict=VerdictBlock("no significant difference", sentence, "open"),
        brief=lambda: Brief(table, changes, doubts, findings),
    )


def test_the_gravest_caveat_is_whole_before_rows_and_queries_that_changed_most():
    doubt = "no class is worse on its own, by p adjusted over 30 classes; the verdict by the mean over all queries would be: worse"
    document = short(rows=30, changes=("1 worse", "Most: +0.1 x"), doubts=(doubt,), sentence="word " * 90)
    lines = lines_of(document)
    assert "would be: worse" in "\n".join(lines)
    assert "1 worse" in lines
    assert "24 rows, 1 line, 1 section" in lines[-1]  # what gave way is counted


def test_a_finding_is_not_cut_where_lines_suffice():
    finding = (
        "Against bm25, worse: one; better: 53 (s10, s11, s12, s13, s14 and 48 more); no significant difference: six"
    )
    assert finding in " ".join(lines_of(short(rows=3, findings=(finding,))))


@pytest.mark.parametrize("name", ["検索システムの新しい版" * 6, "naïve " * 30, "x" * 140, "日" * 30 + " " + "本" * 60])
def test_sentences_of_wide_characters_and_long_names_fold_by_columns(name):
    document = short(rows=3, findings=(f"Against {name}, worse: s1",), doubts=(f"{name}: what differs",), sentence=name)
    text = "".join(line.strip(" !") for line in lines_of(document))
    assert "worse:s1" in text.replace(" ", "")  # folded, not cut


def test_one_cause_is_one_line():
    """Each result is there twice: 50 % repeat an id of their list, which the evidence check says."""
    queries = tuple(Query(f"q{n}", f"word {n}") for n in range(20))
    testset = TestSet("t", queries, {query.id: {f"d{n}": 1} for n, query in enumerate(queries)})
    once = {query.id: [f"d{n + place}" for place in range(5)] for n, query in enumerate(queries)}
    twice = {query_id: [each for doc_id in ids for each in (doc_id, doc_id)] for query_id, ids in once.items()}
    sides = [
        evaluate(testset, Run(name, {query_id: answered(*ids) for query_id, ids in run.items()}))
        for name, run in (("old", once), ("new", twice))
    ]
    for document in (comparison_document(compare(*sides)), evaluation_document(sides[1:])):
        told = [
            line for line in render(document, "text").splitlines() if "repeat an id" in line or "duplicate res" in line
        ]
        assert len(told) == 1
        assert "100 of 200 results (50.0 %) repeat an id of their list" in told[0]


def test_one_cause_in_several_systems_is_one_line():
    """Half the queries have the text of another; of one system all results are doubled, of the other those of half the queries."""
    queries = tuple(Query(f"q{n}", f"word {n // 2}") for n in range(40))
    testset = TestSet("t", queries, {query.id: {f"d{n}": 1} for n, query in enumerate(queries)})

    def run(name, step):
        lists = {}
        for n, query in enumerate(queries):
            ids = [f"d{n + place}" for place in range(10)]
            lists[query.id] = answered(*(ids if n % step else [each for each in ids[:5] for _ in range(2)]))
        return evaluate(testset, Run(name, lists))

    old, new, third = run("old", 1), run("new", 2), run("third", 1)
    what = "repeat an id of their list and are dropped"
    for document, sentence in (
        (
            comparison_document(compare(old, new)),  # 40 * 5 of 40 * 10; 20 * 5 of 40 * 10
            f"old: 200 of 400 results (50.0 %) and new: 100 of 400 results (25.0 %) {what}",
        ),
        (comparison_document(compare(old, third)), f"old and third: 200 of 400 results (50.0 %) {what}"),
        (evaluation_document([old, third]), f"old and third: 200 of 400 results (50.0 %) {what}"),
    ):
        doubts = " ".join(" ".join(lines_of(document)).split()).split("! ")[1:]
        assert [doubt.startswith(sentence) for doubt in doubts if "repeat" in doubt or "duplicate" in doubt] == [True]


def test_results_of_another_form_are_one_line():
    testset = TestSet("t", tuple(Query(f"q{n}", "") for n in range(9)), {f"q{n}": {f"d{n}": 1} for n in range(9)})
    found = evaluate(testset, Run("a", {f"q{n}": answered(f"D{n}") for n in range(9)}))
    doubts = [line for line in lines_of(evaluation_document([found])) if line.startswith("! ")]
    assert [doubt[:30] for doubt in doubts] == ["! a: no result of 9 queries is"]

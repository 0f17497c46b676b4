"""Query classes, contrasts of strata, and what is known of the test set, on every kind of report."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.unit.reporting.forms import rendered

from cranfield.app.evaluate import compare, evaluate
from cranfield.base.errors import UnknownNameError
from cranfield.evaluation.result import result_of
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import (
    QUERY_CLASSES,
    Answer,
    Hit,
    Legacy,
    Meta,
    Negative,
    Outcome,
    Pattern,
    Query,
    Run,
    Span,
    TestSet,
)
from cranfield.model.note import info
from cranfield.model.results import to_jsonable
from cranfield.reporting import RENDERERS, comparison_document, evaluation_document, render
from cranfield.reporting.document import Document, HitLists, Paragraph, Table
from cranfield.reporting.renderers.text import render_brief
from cranfield.reporting.sections.collection import side_by_side
from cranfield.stats.table import TESTS

FORMS = [f"e{n}" for n in range(3)]
SET = TestSet(
    "kinds",
    (
        *(Query(q, strata={"part": "standard"}, query_class="deprecation") for q in FORMS),
        Query("h", query_class="attribute", strata={"part": "hard"}),
        Query("h2", query_class="attribute", strata={"part": "hard"}),
        Query("n", negative=Negative()),
    ),
    {**{q: {"new": 1} for q in FORMS}, "h": {"a": 1, "b": 1}, "h2": {"a": 1}},
    legacy={q: Legacy(("old",)) for q in FORMS},
    meta=Meta(review="agent curated, pending human review", made="2026-01-01", refresh_days=90),
    notes=info("2 judgments of grade 9 were read as 3"),
)


def side(name: str, forms: list[str], **more: list[str]) -> Evaluation:
    lists = dict.fromkeys(FORMS, tuple(forms)) | {"h": (), "h2": (), "n": ()} | {q: tuple(d) for q, d in more.items()}
    answers = {
        q: Answer(Outcome.ANSWERED if docs else Outcome.EMPTY, tuple(map(Hit, docs))) for q, docs in lists.items()
    }
    return evaluate(SET, Run(name, answers))


@pytest.fixture(scope="module")
def kinds() -> Comparison:
    return compare(
        side("plain", ["old", "new"], h=["x", "a"], n=["x"]), side("weighted", ["new"], h=["a", "b"], h2=["a"])
    )


def named(document: Document, name: str) -> list[Table]:
    blocks = next(section.blocks for section in document.sections if section.name == name)
    return [block for block in blocks if isinstance(block, Table)]


def test_each_class_has_a_table_of_its_own_with_what_is_right(kinds: Comparison) -> None:
    document = comparison_document(kinds)
    captions = [table.caption for table in named(document, "classes")]
    assert [caption.split(",")[0] for caption in captions] == ["E", "H", "N"]
    assert captions[0] == "E, modern and legacy form, 3 queries. The modern form is ranked above the legacy form"
    assert [row[0] for row in named(document, "classes")[1].rows] == ["P@5", "P@10"]
    assert [section.name for section in document.sections][:5] == [
        "verdict-by-class",
        "measures",
        "causes",
        "queries",
        "warnings",
    ]
    assert document.verdict is not None


def test_systems_stand_side_by_side_within_a_class(kinds: Comparison) -> None:
    document = evaluation_document([kinds.baseline, kinds.candidate])
    table = named(document, "classes")[0]
    assert [(row[0], row[1], row[2]) for row in table.rows] == [
        ("ModernFirst", "plain", 0.0),
        ("ModernFirst", "weighted", 1.0),
    ]


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_classes_are_in_every_form_for_people(form: str, kinds: Comparison) -> None:
    for document in (comparison_document(kinds), evaluation_document([kinds.baseline])):
        page = render(document, form)
        for words in (
            "By class of question",
            "ModernFirst",
            "Silence",
            "things that share an attribute",
            "modern leads in",
        ):
            assert words in page
    assert "3 queries are too few for any p of 0.05 or less" in render(comparison_document(kinds), form)


def test_json_holds_classes_with_their_values_and_tests(kinds: Comparison) -> None:
    found = json.loads(render(comparison_document(kinds), "json"))
    assert [(one["query_class"], one["measures"][0]["measure"]) for one in found["classes"]] == [
        ("deprecation", "ModernFirst"),
        ("attribute", "P@5"),
        ("negative", "Silence"),
    ]
    first = found["classes"][0]["measures"][0]
    assert (first["baseline"]["mean"], first["candidate"]["mean"], first["delta"]) == (0.0, 1.0, 1.0)
    assert (first["ci_low"], first["ci_high"], first["n"], first["n_nonzero"]) == (1.0, 1.0, 3, 3)
    assert found["classes"][0]["test"]["p_two_sided"] == pytest.approx(2 / 2**3)
    own = found["systems"][0]["classes"]
    assert own[0]["forms"]["losses"] == 3
    assert own[2]["measures"][0]["values"] == {"n": 0.0}
    assert found["systems"][0]["unscored"]["n"]["nDCG@10"] == "nothing should be found"
    saved = to_jsonable(result_of(kinds, with_answers=True))["queries"]
    assert saved["n"]["query_class"] == "negative"


def test_a_report_without_classes_says_nothing_of_them(comparison: Comparison) -> None:
    found = json.loads(render(comparison_document(comparison), "json"))
    assert (found["classes"], found["contrasts"]) == ([], [])
    assert "By class of question" not in render(comparison_document(comparison), "text")


def test_csv_has_the_measures_of_the_classes_once(kinds: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(render(comparison_document(kinds), "csv"))))
    assert [(row["query"], row["baseline"], row["candidate"]) for row in rows if row["measure"] == "Silence"] == [
        ("n", "0.0", "1.0")
    ]
    assert [row["query"] for row in rows if row["measure"] == "P@5"].count("h") == 1  # P@5 was asked of all queries
    alone = list(csv.DictReader(io.StringIO(render(evaluation_document([kinds.baseline]), "csv"))))
    assert [(row["query"], row["value"]) for row in alone if row["measure"] == "ModernFirst"] == [
        (q, "0.0") for q in FORMS
    ]


# contrasts -------------------------------------------------------------------------------------------------------------

ASKED = [("part", "standard", "hard")]


def test_a_contrast_has_both_sides_and_the_gain(kinds: Comparison) -> None:
    document = comparison_document(kinds, contrasts=ASKED)
    (table,) = named(document, "contrasts")
    assert [row[0] for row in table.rows] == ["plain", "weighted", "B minus A"]
    assert table.caption == "nDCG@10 by part: standard minus hard"
    page = render(document, "text")
    assert "weighted, standard: at the ceiling: mean 1.000 of 1, and 3 of 3 queries have the maximum" in page
    found = json.loads(render(document, "json"))["contrasts"]
    assert [one["what"] for one in found] == ["plain", "weighted", "difference"]
    assert found[1]["ceilings"]


@pytest.mark.parametrize("form", sorted(RENDERERS))
def test_contrasts_are_in_every_form(form: str, kinds: Comparison) -> None:
    rendered(comparison_document(kinds, contrasts=ASKED), form)
    rendered(evaluation_document([kinds.baseline], contrasts=ASKED), form)


def test_a_contrast_of_nothing_is_refused_when_it_is_asked_for(kinds: Comparison) -> None:
    with pytest.raises(UnknownNameError, match="standard"):
        evaluation_document([kinds.baseline], contrasts=[("part", "standrad", "hard")])


# what is known of the test set -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_review_status_and_notes_are_on_every_report(form: str, kinds: Comparison) -> None:
    for document in (comparison_document(kinds), evaluation_document([kinds.baseline])):
        page = render(document, form)
        assert page.count("agent curated, pending human review") == 2  # under the title, and in the provenance
        assert "2 judgments of grade 9 were read as 3" in page


def test_json_holds_review_and_notes(kinds: Comparison) -> None:
    about = json.loads(render(evaluation_document([kinds.baseline]), "json"))["testset"]
    assert about["review"] == SET.meta.review
    assert [note["text"] for note in about["notes"]] == list(map(str, SET.notes))


def test_a_review_that_nobody_stated_is_not_stated(comparison: Comparison) -> None:
    provenance = render(comparison_document(comparison), "text").partition("Inputs and versions")[2]
    assert "review of the test set" in provenance
    assert "not stated" in provenance


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (None, None),
        (date(2026, 4, 1), None),  # 90 days after the 1st of January
        (date(2026, 4, 2), "overdue for new queries by 1 day: made on 2026-01-01, to be refreshed after 90 days"),
        (date(2026, 4, 11), "overdue for new queries by 10 days"),
    ],
)
def test_an_overdue_refresh_is_told_where_the_day_is_known(
    today: date | None, said: str | None, kinds: Comparison
) -> None:
    for document in (comparison_document(kinds, today=today), evaluation_document([kinds.baseline], today=today)):
        page = " ".join(render(document, "text").split())
        assert (said in page) if said else ("overdue" not in page)
        assert "overdue" not in render(document, "json")  # the same bytes on every day


@pytest.mark.parametrize("made", ["", "yesterday", "2026-13-01"])
def test_a_date_that_is_none_is_not_overdue(made: str, kinds: Comparison) -> None:
    testset = replace(SET, meta=replace(SET.meta, made=made))
    document = evaluation_document([replace(kinds.baseline, testset=testset)], today=date(2030, 1, 1))
    assert "overdue" not in render(document, "text")


def test_a_hit_list_says_which_place_was_hit_and_where_the_result_lies() -> None:
    testset = TestSet("code", (Query("q"),), targets={"q": (Span("a.rs", 41, 61, 2),)})
    hits = (Hit("a.rs", span="50-60", title="Index"), Hit("a.rs", span="55-70"), Hit("b.rs"))
    found = evaluate(testset, Run("run", {"q": Answer(Outcome.ANSWERED, hits)}))
    lists = side_by_side(result_of(found, with_answers=True), "q", [""])
    assert isinstance(lists, HitLists)
    assert [(line.title, line.note) for line in lists.lists[0].hits] == [
        ("Index, at 50-60", "matches a.rs:41-61, grade 2"),
        ("at 55-70", "duplicate match of a.rs:41-61, credited above"),
        ("", "not relevant"),
    ]
    assert to_jsonable(result_of([found], with_answers=True))["queries"]["q"]["sides"][0]["hits"][0]["span"] == "50-60"


def test_the_page_on_classes_shows_the_table_as_it_is(checkout: Path) -> None:
    page = (checkout / "docs" / "explanation" / "query-classes.md").read_text(encoding="utf-8")
    shown = [line.strip("|").split("|") for line in page.splitlines() if re.match(r"\| [A-Z] \|", line)]
    plain = [tuple(cell.strip().replace("`", "") for cell in row) for row in shown]
    assert plain == [
        (
            kind.letter,
            kind.name,
            kind.title,
            kind.sentence,
            ", ".join(kind.measures),
            TESTS[kind.test].title,
            ", ".join(kind.refused) or (f"all but {', '.join(kind.measures)}" if kind.others_refused else "none"),
        )
        for kind in QUERY_CLASSES.values()
    ]


def test_where_nothing_should_be_found_nothing_is_expected(kinds: Comparison) -> None:
    lists = side_by_side(result_of(kinds.baseline, with_answers=True), "n", [""])
    assert lists.expected == "nothing"
    assert [line.note for line in lists.lists[0].hits] == ["not relevant"]


def test_a_long_pattern_is_in_full_once_and_short_beside_each_result() -> None:
    regex = "^(" + "|".join(f"alternative{n}" for n in range(30)) + ")$"
    truth = TestSet("long", (Query("q"),), targets={"q": (Pattern(regex, credit="every", expected_count=2),)})
    lists = side_by_side(
        result_of(evaluate(truth, {"q": ["alternative1", "alternative2"]}), with_answers=True), "q", ["A"]
    )
    assert regex in lists.expected
    notes = [hit.note for hit in lists.lists[0].hits]
    assert all(note.startswith("matches ^(alternative0|") for note in notes)
    assert max(map(len, notes)) <= len("matches , grade 1") + 72


def test_the_verdict_table_is_first_and_says_what_every_class_does(kinds: Comparison) -> None:
    document = comparison_document(kinds)
    (table,) = named(document, "verdict-by-class")
    assert [column.title for column in table.columns] == [
        "class",
        "verdict",
        "measure",
        "difference",
        "95 % CI",
        "n",
        "p Holm",
    ]
    assert kinds.by_class is not None
    assert [row[0] for row in table.rows] == [row.name for row in kinds.by_class.rows]
    assert document.verdict is not None
    assert document.verdict.facts[-1].label == "Classes better"
    for form in ("text", "markdown", "html"):
        assert "Verdict by class" in render(document, form)


def by_part(groups: dict[str, list[tuple[int, int]]], test: str) -> Comparison:
    """Two systems on queries with a stratum; `groups` is its value to the ranks of its queries."""
    ranks = {f"{group}{n}": pair for group, pairs in groups.items() for n, pair in enumerate(pairs)}
    queries = tuple(Query(q, strata={"part": q.rstrip("0123456789")}) for q in ranks)
    testset = TestSet("parts", queries, {q: {"hit": 1} for q in ranks})
    runs = [{q: [*(f"x{n}" for n in range(1, of[place])), "hit"] for q, of in ranks.items()} for place in (0, 1)]
    sides = [evaluate(testset, run, measures=["RR"], name=name) for run, name in zip(runs, "AB", strict=True)]
    return compare(*sides, strata="part", test=test)


def verdict_section(comparison: Comparison) -> tuple[Table, str]:
    section = next(part for part in comparison_document(comparison).sections if part.name == "verdict-by-class")
    table, notes, *_ = section.blocks
    assert isinstance(table, Table)
    assert isinstance(notes, Paragraph)
    return table, notes.text


def test_difference_interval_and_p_of_a_class_are_of_the_same_quantity() -> None:
    groups = {"a": [(2, 1)] * 7 + [(1, 10)] * 3, "b": [(1, 2)] * 3 + [(1, 1)] * 9}
    table, notes = verdict_section(by_part(groups, "wilcoxon"))
    assert table.columns[3].title == "Hodges-Lehmann estimate"
    assert [row[3] for row in table.rows] == [pytest.approx(0.5), None]  # b is not tested: it has no such estimate
    assert "RR, Hodges-Lehmann estimate" in notes
    table, notes = verdict_section(
        by_part({"a": [(2, 1)] * 3 + [(1, 1)] * 9, "b": [(2, 1)] * 5 + [(1, 1)] * 9}, "wilcoxon")
    )
    assert table.columns[3].title == "difference"  # no class is tested: the means are shown
    assert [row[3] for row in table.rows] == [pytest.approx(0.125), pytest.approx(2.5 / 14)]
    table, notes = verdict_section(by_part(groups, "permutation"))
    assert (table.columns[3].title, "RR, mean difference" in notes) == ("difference", True)


def test_query_classes_show_means_though_another_test_is_declared(kinds: Comparison) -> None:
    table, _ = verdict_section(compare(*kinds.evaluations, test="wilcoxon"))
    assert table.columns[3].title == "difference"


def test_a_class_whose_interval_alone_excludes_zero_is_named() -> None:
    rise = {k: [(2, 1)] * 6 for k in "abc"}
    _, notes = verdict_section(by_part(rise, "permutation"))
    assert notes.endswith("Not significant after the adjustment, although the CI alone excludes zero: a, b, c.")
    _, notes = verdict_section(by_part({k: [(2, 1)] * 12 for k in "abc"}, "permutation"))
    assert "excludes zero" not in notes


def test_every_measure_by_stratum_is_in_every_form(kinds: Comparison) -> None:
    record = json.loads(render(comparison_document(kinds), "json"))
    measures = {str(measure) for measure in kinds.measures}
    assert record["by_stratum"]
    assert all(set(entry["measures"]) <= measures for entry in record["by_stratum"])
    primary = {(row.key, row.value): row.delta for row in kinds.strata}
    found = {
        (entry["key"], entry["value"]): entry["measures"][str(kinds.primary)]["delta"]
        for entry in record["by_stratum"]
        if str(kinds.primary) in entry["measures"]
    }
    assert found == primary
    assert {row["label"] for row in record["verdict_by_class"]["rows"]} == {row.label for row in kinds.by_class.rows}
    assert all(entry["measures"] for system in record["systems"] for entry in system["by_stratum"])
    assert "Other measures by stratum" in render(comparison_document(kinds), "html")
    assert "stratum.class" in render(comparison_document(kinds), "csv").splitlines()[0]


def test_with_classes_the_headline_is_their_table_and_no_mean_over_them_is_shown():
    run = {"e0": ["new"], "e1": ["x"], "e2": ["x"], "h": ["a"], "h2": ["x"], "n": []}
    document = evaluation_document([evaluate(SET, run, measures=["nDCG@10"])])
    brief, text = render_brief(document), render(document, "text")
    # ModernFirst: 1 of the 3 queries has its modern form first, 1 / 3; P@5 of h is 1 / 5 and of h2 0: .1.
    assert re.search(r"^deprecation +ModernFirst +0\.3333 ", brief, re.MULTILINE)
    assert re.search(r"^attribute +P@5 +0\.1000 ", brief, re.MULTILINE)
    assert not re.search(r"^nDCG@10", brief, re.MULTILINE)
    assert "no mean is taken over classes" in " ".join(text.split())
    assert [section.name for section in document.sections if section.name == "measures"] == []


def test_queries_without_a_class_have_a_line_with_the_first_measure():
    testset = TestSet("two", (Query("h", query_class="attribute"), Query("x")), {"h": {"a": 1, "b": 1}, "x": {"a": 1}})
    run = {"h": ["a"], "x": ["c", "a"]}
    brief = render_brief(evaluation_document([evaluate(testset, run, measures=["RR@10"])]))
    assert re.search(r"^queries without a class +RR@10 +0\.5000 ", brief, re.MULTILINE)  # rank 2

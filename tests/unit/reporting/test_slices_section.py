"""The section on which kind of query changed, in every form, and its sentence in the short form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cranfield.evaluation.result import ComparisonResult
from cranfield.evaluation.slices import QuerySlice, SliceChange, SliceSearch
from cranfield.reporting.document import Details, Paragraph, Table
from cranfield.reporting.documents.comparison import brief_of, subject_document
from cranfield.reporting.renderers.data import render
from cranfield.reporting.sections.slices import VERBS, slice_sentence, slices
from cranfield.reporting.sections.subject import Subject

EVIL = "<script>alert(1)</script>"

DIGITS = QuerySlice(
    text="with a digit",
    attributes=("digits",),
    change=SliceChange.WORSE,
    n=2,
    difference=-0.12,
    rest=0.01,
    shrunken=-0.09,
    t=-4.0,
    p=0.0002,
    p_adjusted=0.01,
    p_zero=0.003,
    also=("of 2 words",),
    n_explained=1,
    queries=("q8", "q2"),
)


def subject_of(comparison, *found: QuerySlice, **changed) -> Subject:
    subject = Subject.of(comparison)
    record = subject.record
    assert isinstance(record, ComparisonResult)
    search = SliceSearch(
        record.primary, 8, -0.05, ("digits", "words"), 12, 5, changed.pop("n_left_out", 0), 2, 0.05, 5000, found
    )
    return replace(subject, record=replace(record, slices=changed.pop("search", search)))


def test_the_sentence_has_both_means_the_number_of_queries_and_the_adjusted_p(comparison):
    search = subject_of(comparison, DIGITS).pair.slices
    assert slice_sentence(DIGITS, search) == (
        "Queries with a digit got worse (nDCG@10 −0.1200, the others +0.0100, n = 2, adjusted p .0100)"
    )


def test_every_change_has_its_words():
    assert set(VERBS) == set(SliceChange)


def test_a_slice_is_a_row_with_its_queries_folded_below(comparison):
    section = slices(subject_of(comparison, DIGITS))
    table, notes, queries, _ = section.blocks
    assert isinstance(table, Table)
    assert table.caption.startswith(
        "Kinds of query on which nDCG@10 changed differently from the rest: 1 of 12 slices tried"
    )
    assert "5 of one condition, 7 of two; 2 queries or more each" in table.caption
    assert [column.text(cell) for column, cell in zip(table.columns, table.rows[0], strict=True)] == [
        "with a digit", "got worse", "2", "−0.1200", "+0.0100", "−0.0900", ".0100",
    ]  # fmt: skip
    assert notes.text == (
        "Much the same queries as those with a digit: of 2 words. 1 further slice: different from the rest because of the "
        "queries with a digit alone."
    )
    assert isinstance(queries, Details)
    (members,) = queries.blocks
    assert [row[:2] for row in members.rows] == [("q8", "timeout"), ("q2", "how to sort")]
    assert section.key_figure.startswith("Queries with a digit got worse")


def test_nothing_found_is_one_sentence(comparison):
    section = slices(subject_of(comparison, n_left_out=3))
    (paragraph,) = section.blocks
    assert isinstance(paragraph, Paragraph)
    assert paragraph.text == (
        "No kind of query changed differently from the rest, of 12 slices tried (digits and words; 5 of one condition, 7 of two, "
        "3 smaller ones of two were not tried; 2 queries or more each)."
    )


def test_the_short_form_has_the_strongest_slice_where_one_holds(comparison):
    apart = replace(DIGITS, text="of 1 word", change=SliceChange.APART)
    assert [each for each in brief_of(subject_of(comparison, DIGITS, apart)).findings if "Queries" in each] == [
        "Queries with a digit got worse (nDCG@10 −0.1200, the others +0.0100, n = 2, adjusted p .0100)"
    ]
    assert not [each for each in brief_of(subject_of(comparison)).findings if "Queries" in each]


def test_without_a_search_and_without_scores_there_is_no_section(comparison, invalid, pair):
    assert slices(subject_of(comparison, search=None)) is None
    assert slices(Subject.of(invalid)) is None
    assert slices(Subject.of(pair)) is None


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json", "brief"])
def test_every_form_shows_it_and_escapes_what_a_column_has(comparison, form):
    evil = replace(DIGITS, text=f"with type {EVIL}", also=(EVIL,))
    shown = render(subject_document(subject_of(comparison, evil)), form)
    assert "with type" in shown
    if form != "json":
        assert "got worse" in shown
    if form in {"html", "markdown", "brief"}:
        assert EVIL not in shown

"""The CSV that SearchTweak exports of a finished evaluation: `grade,keyword,doc`.

A grade is the mean over the raters, to two decimals; raters and positions are not in the file.
"""

from __future__ import annotations

from pathlib import Path

from cranfield.formats.io.delimited import number_of, read_sheet, short, write_sheet
from cranfield.formats.testsets.trec import by_line
from cranfield.formats.tools.by_text import TextBuilder, judged, written_cells
from cranfield.model import Query, TestSet
from cranfield.model.note import info

HEADER = ("grade", "keyword", "doc")
MEANS = "grades are means over raters, to two decimals: raters and positions are not in the export"


def read_searchtweak_csv(path: Path | str) -> TestSet:
    """Read `grade,keyword,doc`.

    Raises:
        TestSetError: with every row that cannot be used, and both lines of judgments that disagree.
    """
    path = Path(path)
    sheet = read_sheet(path)
    builder = TextBuilder(path, by_line, sheet.problems)
    if tuple(name.lower() for name in sheet.names) != HEADER:
        sheet.refuse_header("not a header of SearchTweak", HEADER)
    for line, (rating, text, doc_id) in sheet.stripped_rows():
        grade = number_of(rating)
        if grade is None:
            sheet.fault(line, 0, "the grade is not a number", expected="a number", got=rating)
        for place, value in ((1, text), (2, doc_id)):
            if not value:
                sheet.fault(line, place, f"the {HEADER[place]} is empty", expected="text")
        if grade is not None and text and doc_id:
            builder.query(text, Query("", text))
            builder.judge(text, doc_id, grade, line)
    return builder.testset(info(MEANS))


def write_searchtweak_csv(testset: TestSet, path: Path | str) -> None:
    """Write `grade,keyword,doc`.

    Raises:
        TestSetError: queries without a text, or with the text of another one; ids that blanks begin or end.
    """
    path = Path(path)
    written_cells(testset, path)
    rows = ((short(grade), q.text, doc_id) for q in testset.queries for doc_id, grade in judged(testset, q).items())
    write_sheet(path, HEADER, rows, may_have_tabs=False)

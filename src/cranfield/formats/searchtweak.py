"""The CSV that SearchTweak exports of a finished evaluation: `grade,keyword,doc`.

A grade is the mean over the raters, to two decimals; who said what, and at which position, is not in the file.
"""

from __future__ import annotations

from pathlib import Path

from cranfield.errors import TestSetError, shorten
from cranfield.formats.by_text import Gathered, by_line, judged, written_cells
from cranfield.formats.csv_rows import csv_rows, csv_text, number
from cranfield.formats.files import shown, write_text
from cranfield.model import Query, TestSet

HEADER = ("grade", "keyword", "doc")
MEANS = "grades are means over raters, to two decimals: raters and positions are not in the export"


def read_searchtweak_csv(path: Path | str) -> TestSet:
    """Read `grade,keyword,doc`.

    Raises:
        TestSetError: with every row that cannot be used, and both lines of judgments that disagree.
    """
    path = Path(path)
    found = Gathered(path, by_line)
    rows = csv_rows(path, found.problems)
    line, header = next(rows, (1, []))
    if tuple(name.lower() for name in header) != HEADER:
        found.problems.raise_if_any()
        got = ",".join(header)[:80]
        raise TestSetError(
            "not a header of SearchTweak", path=shown(path), line=line, expected=",".join(HEADER), got=got
        )
    for line, cells in rows:
        if len(cells) != len(HEADER):
            hint = "a text with commas in it stands in double quotes"
            found.add(f"{len(cells)} columns", line, expected="3 (grade,keyword,doc)", got=shorten(cells), hint=hint)
            continue
        grade, (rating, text, doc_id) = number(cells[0]), cells
        if grade is None:
            found.add("the grade is not a number", line, expected="a number", got=shorten(rating))
        for name, value in (("keyword", text), ("doc", doc_id)):
            if not value:
                found.add(f"the {name} is empty", line, expected="text")
        if grade is not None and text and doc_id:
            found.query(text, Query("", text))
            found.judge(text, doc_id, grade, line)
    return found.testset([MEANS])


def write_searchtweak_csv(testset: TestSet, path: Path | str) -> None:
    """Write `grade,keyword,doc`.

    Raises:
        TestSetError: queries without a text, or with the text of another one; ids that blanks begin or end.
    """
    path = Path(path)
    written_cells(testset, path)
    rows = ((grade, q.text, doc_id) for q in testset.queries for doc_id, grade in judged(testset, q).items())
    write_text(path, csv_text(HEADER, rows))

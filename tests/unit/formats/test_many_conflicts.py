"""More conflicting judgments than a reader collects are an error with places in every format, and never another exception."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import cranfield
from cranfield.base.errors import TestSetError
from cranfield.formats.io.files import MAX_PROBLEMS

ROWS = [(f"q{n}", f"d{n}", grade) for n in range(MAX_PROBLEMS + 200) for grade in (1, 2)]
"""Each pair judged twice, differently; the last query is judged once, after reading has stopped."""
PAIRS = [(f"q{n}", f"d{n}") for n in range(MAX_PROBLEMS + 200)]


def lines(template: str, *, apart: bool) -> str:
    rows = sorted(ROWS, key=lambda row: row[2]) if apart else ROWS
    return "".join(template.format(q=query, d=document, g=grade) + "\n" for query, document, grade in rows)


FORMATS: dict[str, tuple[str, Callable[[bool], str]]] = {
    "qrels": ("set.qrels", lambda apart: lines("{q} 0 {d} {g}", apart=apart) + "late 0 x 1\n"),
    "judges": ("set.qrels", lambda apart: lines("{q} ann {d} {g}", apart=apart) + "late ann x 1\n"),
    "subtopics": ("set.qrels", lambda apart: lines("{q} 1 {d} {g}", apart=apart) + "late 1 x 1\n"),
    "preferences": ("set.prefs", lambda apart: lines("{q} g s {d} {g}", apart=apart) + "late g s x 1\n"),
    "table": ("set.csv", lambda apart: "query_id,doc_id,grade,query\n" + lines("{q},{d},{g},text {q}", apart=apart)),
    "table by rater": (
        "set.csv",
        lambda apart: "query_id,doc_id,grade,rater\n" + lines("{q},{d},{g},ann", apart=apart) + "late,x,1,\n",
    ),
    "quepid-csv": ("set.csv", lambda apart: "query,docid,rating\n" + lines("text {q},{d},{g}", apart=apart)),
    "quepid-ltr": ("set.txt", lambda apart: lines("{g} qid:{q} # {d} text {q}", apart=apart)),
    "quepid-book-csv": ("set.csv", lambda apart: "query,docid,Ann\n" + lines("text {q},{d},{g}", apart=apart)),
    "searchtweak": ("set.csv", lambda apart: "grade,keyword,doc\n" + lines("{g},text {q},{d}", apart=apart)),
    "graded-yaml": (
        "set.yaml",
        lambda _: json.dumps(
            {
                "queries": [
                    {
                        "query_id": query,
                        "query_text": query,
                        "relevant_docs": [{"doc_id": document, "grade": grade} for grade in (1, 2)],
                    }
                    for query, document in PAIRS
                ]
            }
        ),
    ),
}


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize("name", FORMATS)
def test_conflicts_beyond_the_limit_are_reported_with_their_places(tmp_path: Path, name: str, apart: bool) -> None:
    file, text = FORMATS[name]
    (tmp_path / file).write_text(text(apart))
    with pytest.raises(TestSetError) as caught:
        cranfield.load(tmp_path / file, format=name.partition(" ")[0])
    problems = caught.value.problems
    assert len(problems) >= MAX_PROBLEMS
    assert "judged twice" in problems[0].message
    assert problems[0].line is not None


def test_conflicts_of_a_folder_and_of_a_table_in_memory(tmp_path: Path) -> None:
    import pandas as pd

    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines("{q}\t{d}\t{g}", apart=True))
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": q}) + "\n" for q, _ in PAIRS))
    frame = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "grade"])
    for source in (tmp_path, frame, frame.assign(subtopic="1")):
        with pytest.raises(TestSetError, match="judged twice") as caught:
            cranfield.load(source)
        assert len(caught.value.problems) >= MAX_PROBLEMS

"""Sets of code search and IR collections, and runs in tables, are told from each other and from everything else."""

import json
from pathlib import Path

import pytest

from cranfield.base.errors import RunFormatError, TestSetError
from cranfield.formats.registry import CODE_SETS, Head
from cranfield.formats.sniff import FORMATS, read_testset, sniff_run

OWN_YAML = "cranfield_testset: 1\nname: n\nqueries:\n  - {id: q1, text: t, judgments: {d1: 1}}\n"
GRADED = [{"query_id": "q", "query_text": "t", "relevant_docs": [{"doc_id": "d", "grade": 1}]}]
GOLDEN = [{"query_id": "q", "query_text": "t", "expected_entities": ["a.py::f"]}]
SAMPLES = {
    "graded-yaml": [
        json.dumps(GRADED),
        json.dumps({"queries": GRADED}, indent=2),
        "- query_id: q\n  query_text: t\n  relevant_docs:\n    - {doc_id: d, grade: 1}\n",
        "# ours\nname: n\nqueries:\n- query_id: q\n  query_text: t\n  relevant_docs: [{doc_id: d, grade: 1}]\n",
    ],
    "golden-json": [json.dumps(GOLDEN), json.dumps(GOLDEN, indent=2), json.dumps({"queries": GOLDEN})],
    "spans-csv": ["query,result1,result2\nq,a:1-2:1,\n", '\n# line_base: 0\n"query","result1"\nq,a:1-2:1\n'],
    "patterns": ["query\tpattern\tclass\nq\tx\tA\n", "pattern,query\nx,q\n", "id;query;regex\n1;q;x\n"],
    "beir": ["query-id\tcorpus-id\tscore\nq\td\t1\n"],
    "table": [
        "query_id\tdoc_id\tgrade\nq\td\t1\n",
        "docid,query,label,note\nd,q,1,x\n",
        '{"query_id": "q", "doc_id": "d", "grade": 1}\n',
        '{"qid": "q", "docno": "d", "relevance": 1, "rater": "a"}\n',
    ],
    "run-table": ["qid\trank\tpath\tstart_line\tend_line\tscore\n1\t1\ta\t1\t2\t3\n", "query_id,doc_id,score\nq,d,1\n"],
}
OTHERS = {
    "yaml": [OWN_YAML, OWN_YAML + "    # relevant_docs: query_id: expected_entities:\n"],
    "qrels": ["q1 0 d1 1\n", "query 0 result1 1\n", "query_id 0 pattern 1\n", "query_id\t0\tdoc_id\t1\n"],
    "trec": ["q1 Q0 d1 1 0.5 tag\n", "query_id Q0 doc_id 1 0.5 rank\n"],
    "jsonl": ['{"cranfield_run": 1, "query_id": "q", "doc_id": "d", "grade": 1}\n'],
}
OURS = [(name, text) for name, texts in SAMPLES.items() for text in texts]
THEIRS = [(name, text) for name, texts in OTHERS.items() for text in texts]


@pytest.mark.parametrize("place", range(len(OURS)))
def test_a_file_fits_one_format_of_these_and_is_read_as_it(tmp_path: Path, place: int) -> None:
    name, text = OURS[place]
    assert [entry.name for entry in CODE_SETS if entry.fits(Head(text.encode()))] == [name]
    first = next(entry for entry in FORMATS.values() if entry.kind != "queries" and entry.fits(Head(text.encode())))
    assert first.name == name
    path = tmp_path / "a"
    path.write_text(text)
    if FORMATS[name].kind == "run":
        assert sniff_run(path).name == "run-table"
        with pytest.raises(TestSetError, match="not a test set"):
            read_testset(path)
    else:
        assert len(read_testset(path).queries) == 1
        with pytest.raises(RunFormatError, match="not a run"):
            sniff_run(path)


@pytest.mark.parametrize("place", range(len(THEIRS)))
def test_other_files_fit_none_of_these(place: int) -> None:
    name, text = THEIRS[place]
    assert [entry.name for entry in CODE_SETS if entry.fits(Head(text.encode()))] == [], name


def test_a_folder_is_beirs_by_what_lies_in_it(tmp_path: Path) -> None:
    fits = FORMATS["beir"].fits
    assert not fits(Head(b"", tmp_path))
    (tmp_path / "queries.jsonl").write_text("")
    assert not fits(Head(b"", tmp_path))
    (tmp_path / "qrels").mkdir()
    assert fits(Head(b"", tmp_path))

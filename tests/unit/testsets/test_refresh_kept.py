"""A refresh keeps what the file says of the queries that stay, and the sheet that people work in."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line
from cranfield.formats.sniff import read_testset

GOLDEN = [
    {
        "query_id": f"q{n}",
        "query_text": f"{word} a document somewhere",
        "task_type": "locate" if n < 3 else "debug",
        "expected_entities": [{"entity_id": f"src/a.py::f{n}", "role": "primary"}],
        "expected_files": ["src/a.py"],
        "must_mention_facts": ["x"],
        "canonical_narrative": "It is there.",
    }
    for n, word in enumerate(["find", "parse", "store", "debug", "review"])
]
MEDICAL = """\
# reviewed in May
queries:
- query_id: m1   # first
  query_text: heart attack
  relevant_docs: [{doc_id: PMC1, grade: 3, note: seen}]
- query_id: m2
  query_text: stroke of both sides
  relevant_docs: [{doc_id: PMC2, grade: 1}]   # by ann
name: clinic
"""
LOG = "where are vectors kept\t9\nhow is a query split\t7\n"


def refresh(*arguments, code=0):
    done = CliRunner().invoke(command_line("testset", "refresh"), ["testset", "refresh", *map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.json").write_text(json.dumps(GOLDEN, indent=2))
    (tmp_path / "m.yaml").write_text(MEDICAL)
    (tmp_path / "log.tsv").write_text(LOG)
    return tmp_path


def labelled(folder, name, doc_ids, *options):
    common = (name, "--log", "log.tsv", "--n", "1", "--sample", "top", *options)
    refresh(*common, "--plan", "sheet.csv", "--queries-out", "new.tsv")
    query_id = (folder / "new.tsv").read_text().split("\t")[0]
    rows = [f"{query_id},where are vectors kept,{doc_id},{grade},{grade}" for doc_id, grade in doc_ids.items()]
    (folder / "sheet.csv").write_text("\n".join(["query_id,query,doc_id,rater1,rater2", *rows]) + "\n")
    out = f"v2.{name.partition('.')[2]}"
    return query_id, refresh(*common, "--labels", "sheet.csv", "--out", out, "--today", "2026-11-21")


def test_a_golden_set_keeps_facts_and_gets_labelled_ids_as_places(folder):
    query_id, noted = labelled(folder, "g.json", {"src/v.py::Store": 1, "src/b.py": 0}, "--drop", "q4")
    written = json.loads((folder / "v2.json").read_text())
    assert written[:4] == GOLDEN[:4]
    assert written[4] == {
        "query_id": query_id,
        "query_text": "where are vectors kept",
        "expected_entities": ["src/v.py::Store"],
        "expected_files": [],
    }
    again = read_testset(folder / "v2.json")
    assert again.meta.history[-1].startswith("2026-11-21: replaced 1 of 5 queries")
    drift = "warning: strata drift: the shares of task_type changed by more than 0.1: "
    assert f"{drift}debug from 0.4000 to 0.2000, without from 0.0000 to 0.2000" in noted
    untouched = (folder / "g.json").read_text().partition('"q3"')[0]
    assert (folder / "v2.json").read_text().startswith(untouched)


def test_the_medical_form_keeps_its_comments(folder):
    query_id, noted = labelled(folder, "m.yaml", {"PMC7": 2, "PMC8": 0}, "--drop", "m2")
    kept, _, new = (folder / "v2.yaml").read_text().partition(f"- query_id: {query_id}\n")
    assert kept == MEDICAL.partition("- query_id: m2")[0]
    assert "doc_id: PMC7\n" in new
    assert new.endswith('name: clinic\nversion: "2"\n')
    assert "note: not carried over: 4 ratings by rater" in noted


def test_a_plan_over_a_sheet_keeps_its_labels_and_columns(folder):
    common = ("m.yaml", "--log", "log.tsv", "--n", "2", "--sample", "top", "--plan", "sheet.csv")
    refresh(*common)
    rows = (folder / "sheet.csv").read_text().splitlines()
    ids = [row.split(",")[0] for row in rows[1:]]
    sheet = [
        "query_id,query,doc_id,remark,rater1,rater2",
        f'{ids[0]},where are vectors kept,d1,"sure, I think",2,1',
        "",
        f"{ids[1]},how is a query split,,,,",
    ]
    (folder / "sheet.csv").write_bytes(("\ufeff" + "\r\n".join(sheet) + "\r\n").encode())
    (folder / "a.run").write_text("".join(f"{query} Q0 {doc} 1 1.0 a\n" for query in ids for doc in ("d1", "d2")))
    refresh(*common, "--run", "a.run", "--force")
    text = (folder / "sheet.csv").read_bytes().decode()
    assert text.startswith("\ufeff" + "\r\n".join(sheet[:2]) + "\r\n")
    added = {tuple(line.split(",")[:3:2]) for line in text.splitlines()[2:] if line}
    assert added == {(ids[0], "d2"), (ids[1], "d1"), (ids[1], "d2")}
    (folder / "log.tsv").write_text("another thing entirely\t9\nmore of that\t8\n")
    assert "has a label of query" in refresh(*common, "--force", code=2)
    assert (folder / "sheet.csv").read_bytes().decode() == text

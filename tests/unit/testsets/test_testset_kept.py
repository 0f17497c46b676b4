"""What commands that change a test set keep of its file: its format, and all that the file says."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.golden_json import read_golden_json
from cranfield.formats.testsets.storage import format_of

GOLDEN = [
    {"query_id": "q1", "query_text": "one", "expected_entities": ["a.py::f"]},
    {"query_id": "q2", "query_text": "two", "expected_entities": ["a.py::g"]},
]
FACTS = ["x", {"fact": "y", "seen": 1}]
FULL = [GOLDEN[0] | {"validation": {"human_reviewed": True}, "must_mention_facts": FACTS}, GOLDEN[1]]
ADD = ("--id", "q3", "--text", "three", "--entity", "a.py::h")
SPANS = "id,query,result1\nq1,one,a.py:1-2:1\nq2,two,a.py:4-5:2\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.json").write_text(json.dumps(GOLDEN))
    (tmp_path / "full.json").write_text(json.dumps(FULL))
    (tmp_path / "spans.csv").write_text(SPANS)
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("def f():\n    return 1\n\ndef g():\n    return 2\n")
    return tmp_path


def looked_after(*arguments, code=0):
    done = CliRunner().invoke(command_line("testset"), ["testset", *map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done


def test_a_query_more_leaves_a_golden_set_a_golden_set(folder):
    looked_after("add", "g.json", *ADD)
    written = json.loads((folder / "g.json").read_text())
    assert [record["expected_entities"] for record in written] == [["a.py::f"], ["a.py::g"], ["a.py::h"]]
    assert read_golden_json("g.json").meta.history[-1].endswith("added query q3 (1 judgment)")


@pytest.mark.parametrize(
    "command",
    [
        ("add", "full.json", *ADD),
        ("split", "full.json", "--share", "0.5"),
        ("rehash", "full.json", "--repo", "code"),
        ("add", "full.json", *ADD, "--out", "other.json"),
        ("split", "full.json", "--share", "0.5", "--out", "other.json"),
        ("rehash", "full.json", "--repo", "code", "--out", "other.json"),
        ("verify", "full.json", "--repo", "code", "--out", "other.json"),
    ],
)
def test_what_a_file_says_beside_its_test_set_stays(folder, command):
    looked_after(*command)
    written = json.loads((folder / ("other.json" if "--out" in command else "full.json")).read_text())
    assert written[:2] == FULL
    assert [record["query_id"] for record in written[2:]] == (["q3"] if command[0] == "add" else [])


def test_another_ending_is_another_format_and_what_it_leaves_is_said(folder):
    done = looked_after("add", "full.json", *ADD, "--out", "new.yaml")
    assert "note: not carried over: 1 unknown key of entities, line ranges and facts" in done.stderr
    assert (format_of(folder / "new.yaml").name, read_testset("new.yaml").query_ids) == ("yaml", ("q1", "q2", "q3"))
    label = read_testset("new.yaml").labels["q1"]
    assert ([fact.text for fact in label.must_mention], label.more) == (
        ["x", "y"],
        {"validation": {"human_reviewed": True}},
    )


@pytest.mark.parametrize(
    ("command", "out", "name"),
    [
        (("split", "g.json", "--share", "0.5"), "new.json", "golden-json"),
        (("rehash", "g.json", "--repo", "code"), "new.json", "golden-json"),
        (("verify", "g.json", "--repo", "code"), "new.json", "golden-json"),
        (("rehash", "g.json", "--repo", "code"), "new.yaml", "yaml"),
        (("verify", "spans.csv", "--repo", "code"), "new.csv", "spans-csv"),
        (("verify", "spans.csv", "--repo", "code"), "new.yaml", "yaml"),
    ],
)
def test_a_changed_copy_has_the_format_of_its_source_where_the_names_end_alike(folder, command, out, name):
    looked_after(*command, "--out", out)
    assert format_of(folder / out).name == name
    assert read_testset(out).digest == read_testset(command[1]).digest


@pytest.mark.parametrize("name", ["labelled.yaml", "labelled.json", "full.json"])
@pytest.mark.parametrize(
    "command",
    [
        ("add", *ADD),
        ("split", "--share", "0.5"),
        ("rehash", "--repo", "code"),
        ("verify", "--repo", "code"),
        ("convert", "out.json", "--to", "golden-json"),
    ],
    ids=lambda command: command[0],
)
def test_labels_stay_whatever_is_done(folder, command, name):
    fact = {"fact": "It is so.", "citations": [{"file": "a.py", "start": 2, "end": 2}]}
    label = {"must_mention_facts": [fact], "provenance": {"by": ["ann"]}, "odd": {"a": [1, None]}}
    queries = [
        {"id": "q1", "text": "one", "entities": ["a.py::f"], "label": label},
        {"id": "q2", "text": "two", "files": ["a.py"]},
    ]
    labelled = {"cranfield_testset": 1, "name": "s", "queries": queries}
    for other in ("labelled.yaml", "labelled.json"):
        (folder / other).write_text(json.dumps(labelled))
    (folder / "full.json").write_text(json.dumps([GOLDEN[0] | label, GOLDEN[1]]))
    before = read_testset(name).labels
    out = "out.json" if command[0] == "convert" else f"out{name[-5:]}"
    looked_after(command[0], name, *command[1:], *([] if command[0] == "convert" else ["--out", out]))
    assert read_testset(out).labels == before
    assert [fact.text for fact in before["q1"].must_mention] == ["It is so."]
    assert before["q1"].more == {"odd": {"a": [1, None]}}


@pytest.mark.parametrize(
    ("given", "doc_id", "grade"),
    [("a", "a", 1), ("a=2", "a", 2), ("a=b=2", "a=b", 2), ("a=0.5", "a", 0.5), ("a= 3", "a", 3)],
)
def test_the_last_equals_sign_begins_the_grade(folder, given, doc_id, grade):
    (folder / "x.qrels").write_text("q1 0 z 1\n")
    looked_after("add", "x.qrels", "--id", "q1", "--relevant", given)
    assert read_testset("x.qrels").grades["q1"] == {"z": 1, doc_id: grade}


@pytest.mark.parametrize("grade", ["high", "nan", "inf", "", "1,5"])
@pytest.mark.parametrize("flag", ["--relevant", "--entity", "--file", "--span"])
def test_a_grade_that_is_none_is_named(folder, flag, grade):
    said = looked_after("add", "g.json", "--id", "q1", flag, f"a={grade}", code=2).stderr
    assert f"expected a number after the last `=`, got '{grade}'" in said
    assert json.loads((folder / "g.json").read_text()) == GOLDEN


def test_help_says_where_a_grade_begins():
    assert "The grade follows the last `=`" in " ".join(looked_after("add", "--help").stdout.split())


def test_convert_counts_what_it_wrote(folder):
    (folder / "set.yaml").write_text(
        "cranfield_testset: 1\nname: s\nqueries:\n"
        "  - {id: a, text: one, judgments: {x: 1}}\n  - {id: b, text: two, negative: true}\n"
    )
    said = looked_after("convert", "set.yaml", "out.qrels").stderr
    assert f"wrote out.qrels: 1 of 2 queries, {read_testset('out.qrels').digest[:19]}\n" in said
    said = looked_after("convert", "set.yaml", "out.yaml").stderr
    assert f"wrote out.yaml: 2 queries, {read_testset('set.yaml').digest[:19]}\n" in said


def test_one_stratum_is_crossed_with_the_others(folder):
    (folder / "x.yaml").write_text(
        "cranfield_testset: 1\nname: s\nqueries:\n"
        "  - {id: a, text: one, strata: {kind: x, size: y, level: e}, judgments: {x: 1}}\n"
        "  - {id: b, text: two, strata: {kind: x, size: z, level: e}, judgments: {x: 1}}\n"
        "  - {id: c, text: three, strata: {kind: w, size: z, level: e}, judgments: {x: 1}}\n"
    )
    for keys in (["kind"], ["kind", "kind"]):
        flags = [word for key in keys for word in ("--by", key)]
        out = looked_after("stats", "x.yaml", *flags).stdout
        assert "kind by size" in out
        assert "size by level" not in out
    assert "kind by size" in looked_after("stats", "x.yaml", "--by", "kind", "--by", "size").stdout


@pytest.mark.parametrize("bound", ["3", "-1.5", "nan", "inf"])
def test_kappa_cannot_have_to_exceed_what_it_never_is(folder, bound):
    (folder / "log.tsv").write_text("three\t1\n")
    said = looked_after("refresh", "g.json", "--log", "log.tsv", "--n", 1, "--plan", "s.csv", "--kappa", bound, code=2)
    assert f"--kappa is {bound}; expected a number from -1 to 1" in said.stderr
    assert not (folder / "s.csv").exists()


@pytest.mark.parametrize("name", ["g.json", "spans.csv"])
def test_a_repository_that_has_nothing_of_a_set_does_not_hold_it(folder, name):
    (folder / "other").mkdir()
    (folder / "other/b.py").write_text("def f():\n    return 1\n")
    there = sorted(folder.rglob("*"))
    said = looked_after("rehash", name, "--repo", "other", "--allow-drift", code=2).stderr
    assert "none of 2 expected places is in " in said
    assert sorted(folder.rglob("*")) == there


def test_a_negative_query_is_called_so(folder):
    (folder / "set.yaml").write_text(
        "cranfield_testset: 1\nname: s\nqueries:\n  - {id: a, text: one, judgments: {x: 1}}\n"
    )
    said = looked_after("add", "set.yaml", "--id", "n2", "--text", "two", "--negative").stderr
    assert "wrote set.yaml: added query n2 (negative); 2 queries" in said
    assert read_testset("set.yaml").meta.history[-1].endswith("added query n2 (negative)")


@pytest.mark.parametrize(("old", "new"), [("g.json", "link.json"), ("spans.csv", "link.csv")])
def test_a_link_leads_to_what_was_written(folder, old, new):
    (folder / "away").mkdir()
    (folder / old).rename(folder / "away" / old)
    (folder / new).symlink_to(f"away/{old}")
    looked_after("split", new, "--share", "0.5")
    assert (folder / new).is_symlink()
    looked_after("convert", new, "out.yaml")
    looked_after("convert", "out.yaml", new, "--to", format_of(folder / new).name, "--force")
    assert (folder / new).is_symlink()
    assert read_testset(folder / "away" / old).query_ids == ("q1", "q2")


@pytest.mark.parametrize(("key", "value"), [("correct", True), ("schema_version", "1.0.0")])
def test_a_key_that_no_test_set_has_stays(folder, key, value):
    text = json.dumps([GOLDEN[0] | {key: value}, GOLDEN[1] | {"provenance": {}}])
    (folder / "g.json").write_text(text)
    looked_after("add", "g.json", *ADD)
    assert (folder / "g.json").read_text().startswith(text[:-1] + ", {")


def test_comments_of_columns_stay(folder):
    (folder / "x.qrels").write_text("# by ann\nq1 0 z 1\n")
    looked_after("add", "x.qrels", "--id", "q1", "--relevant", "a")
    assert (folder / "x.qrels").read_text() == "# by ann\nq1 0 z 1\nq1 0 a 1\n"


OCTO = 'query,result1\n"one, two",a.py:1-2:1\ntwo,a.py:4-5:2\n'


def test_a_query_of_a_format_without_ids_is_called_after_its_text(folder):
    (folder / "o.csv").write_text(OCTO)
    said = looked_after("add", "o.csv", "--text", "three", "--span", "a.py:1-1").stderr
    assert "query three-" in said
    assert (folder / "o.csv").read_text() == OCTO + "three,a.py:1-1:1\n"
    said = looked_after("add", "o.csv", "--id", "q9", "--text", "four", "--span", "a.py:1-1", code=2).stderr
    assert "the file has no query ids, so 'q9' cannot be written" in said
    assert "Hint: leave --id out" in said
    assert "no id of the query" in looked_after("add", "g.json", *ADD[2:], code=2).stderr
    assert (folder / "o.csv").read_text() == OCTO + "three,a.py:1-1:1\n"


def test_convert_in_one_format_copies_the_file(folder):
    looked_after("convert", "full.json", "copy.json", "--to", "golden-json")
    assert (folder / "copy.json").read_bytes() == (folder / "full.json").read_bytes()
    (folder / "set.yaml").write_text(
        "# c\ncranfield_testset: 1\nname: s\nqueries: [{id: a, text: b, judgments: {x: 1}}]"
    )
    looked_after("convert", "set.yaml", "copy.yml")
    assert (folder / "copy.yml").read_bytes() == (folder / "set.yaml").read_bytes()


def test_other_words_of_a_query_keep_what_its_record_says(folder):
    looked_after("add", "full.json", "--id", "q1", "--text", "other words")
    assert json.loads((folder / "full.json").read_text()) == [FULL[0] | {"query_text": "other words"}, FULL[1]]
    assert read_golden_json("full.json").meta.history[-1].endswith("changed query q1 (text)")
    (folder / "s.csv").write_text(SPANS.replace("result1\n", "result1,why\n").replace(":1\n", ":1,sure\n"))
    looked_after("add", "s.csv", "--id", "q1", "--text", "other words")
    assert (folder / "s.csv").read_text().splitlines()[1] == "q1,other words,a.py:1-2:1,sure"


def test_the_name_of_a_new_column_keeps_its_case(folder):
    (folder / "t.csv").write_text("query_id,query_text,doc_id,grade,note\nq1,one,d1,1,sure\nq2,two,d2,0,\n")
    looked_after("add", "t.csv", "--id", "q1", "--stratum", "Area=north")
    assert (folder / "t.csv").read_text() == (
        "query_id,query_text,doc_id,grade,note,stratum.Area\nq1,one,d1,1,sure,north\nq2,two,d2,0,\n"
    )


def test_nothing_to_add_is_an_error_and_no_history(folder):
    before = (folder / "g.json").read_bytes()
    for more in ((), ("--text", "one")):
        said = looked_after("add", "g.json", "--id", "q1", *more, code=2).stderr
        assert "nothing to add: query 'q1' is in the test set as given" in said
    assert ((folder / "g.json").read_bytes(), (folder / "g.meta.json").exists()) == (before, False)


def test_convert_to_another_format_of_the_same_ending_names_the_one_that_keeps_all(folder):
    said = looked_after("convert", "full.json", "new.json").stderr
    assert "hint: --to golden-json keeps the format and all data of full.json" in said
    said = looked_after("convert", "full.json", "same.json", "--to", "golden-json").stderr
    assert "hint" not in said
    assert (folder / "same.json").read_bytes() == (folder / "full.json").read_bytes()


def test_convert_that_another_format_of_the_same_ending_cannot_hold_names_the_one_that_can(folder):
    (folder / "spans.csv").write_text("query,result1\none,a.py:1-2:1\n")
    said = looked_after("convert", "spans.csv", "new.csv", code=2).stderr
    assert "expected graded document ids, negative queries, got 1 span of lines" in said
    assert "Hint: --to spans-csv keeps the format and all data of spans.csv" in said

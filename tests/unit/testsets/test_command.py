"""`cranfield testset` as people and scripts use it: what is printed, what is written, how it ends."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line, command_table, requested_command
from cranfield.formats.sniff import read_testset

SET = """\
# for the docs search
cranfield_testset: 1
name: docs
version: "1"
meta: {scale: [0, 1, 2], review: reviewed}
queries:
  # the first
  - {id: q1, text: rotate the log files, strata: {kind: task}, judgments: {a: 2, b: 0}}
  - {id: q2, text: who may write here, strata: {kind: task}, judgments: {c: 1}}
  - {id: q3, text: "spans \\e[2J of it", strata: {kind: code}, spans: ["src/x.py:3-9"]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set.yaml").write_text(SET)
    (tmp_path / "a.run").write_text("q1 Q0 a 1 9 a\nq2 Q0 x 1 9 a\nq3 Q0 src/x.py:5-6 1 9 a\n")
    return tmp_path


def looked_after(*arguments, code=0):
    done = CliRunner().invoke(command_line("testset"), ["testset", *map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done


def test_help_lists_every_command_with_a_sentence():
    text = looked_after("--help").stdout
    assert all(f"\n  {name} " in text for name in command_table().commands_of("testset"))
    assert re.search(r"convert +Convert a test set to another format\.", text)


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [
        (["testset", "stats", "x"], ("testset", "stats")),
        (["testset", "--help"], ("testset",)),
        (["testset", "unknown"], ("testset",)),
        (["testset"], ("testset",)),
        (["evaluate", "stats"], ("evaluate",)),
        (["--help"], ()),
        ([], ()),
    ],
)
def test_only_the_command_that_is_asked_for_is_made(arguments, modules):
    assert requested_command(arguments) == modules


def test_help_of_the_group_loads_nothing_heavy():
    code = (
        "import sys; from cranfield.cli.main import command_line\n"
        "try: command_line('testset')(['testset', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'pydantic', 'yaml', 'jinja2', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.splitlines()[-1] == "[]"


def test_show_is_safe_to_print_and_names_a_query_that_is_not_there(folder):
    text = looked_after("show", "set.yaml", "q3").stdout
    assert "spans \\x1b[2J of it" in text
    assert "src/x.py:3-9" in text
    assert "unknown query 'q9'" in looked_after("show", "set.yaml", "q1", "q9", code=2).stderr


@pytest.mark.parametrize("form", ["text", "json", "markdown", "csv"])
@pytest.mark.parametrize("command", ["show", "validate", "stats"])
def test_every_form_can_be_printed(folder, command, form):
    text = looked_after(
        command, "set.yaml", "--format", form, *(["--today", "2026-11-21"] if command == "validate" else [])
    )
    if form == "json":
        found = json.loads(text.stdout)
        assert (found["schema_version"], found["testset"]["name"], found["testset"]["n_queries"]) == (1, "docs", 3)
        assert found["testset"]["review"] == "reviewed"
    elif form == "csv":
        rows = list(csv.reader(text.stdout.splitlines()))
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
    else:
        assert "docs" in text.stdout


@pytest.mark.parametrize(
    ("change", "options", "code"),
    [
        (("", ""), [], 0),  # strata under six queries are warnings
        (("", ""), ["--strict"], 1),
        (("{a: 2, b: 0}", "{a: 3, b: 0}"), [], 2),
        (("{a: 2, b: 0}", "{a: 3, b: 0}"), ["--strict"], 2),
    ],
)
def test_validate_ends_with_two_on_errors_and_one_on_warnings_where_asked(folder, change, options, code):
    (folder / "set.yaml").write_text(SET.replace(*change) if change[0] else SET)
    looked_after("validate", "set.yaml", *options, code=code)


def test_validate_takes_several_sets_and_checks_those_after_one_that_cannot_be_read(folder):
    (folder / "broken.yaml").write_text(SET.replace("judgments", "judgmnts"))
    (folder / "other.yaml").write_text(SET.replace("name: docs", "name: other"))
    done = looked_after("validate", "broken.yaml", "set.yaml", "other.yaml", "--today", "2026-11-21", code=2)
    assert "broken.yaml:8:" in done.stderr
    assert "docs 1: 3 queries" in done.stdout
    assert "other 1: 3 queries" in done.stdout


@pytest.mark.parametrize(
    "option", [("--run", "a.run"), ("--html", "r.html"), ("--format", "json")], ids=lambda each: each[0]
)
def test_validate_refuses_for_several_sets_what_is_of_one(folder, option):
    done = looked_after("validate", "set.yaml", "set.yaml", *option, code=2)
    assert f"{option[0]}" in done.stderr
    assert "applies to a single test set; expected one SET, got 2" in done.stderr


def test_validate_with_a_run_names_what_no_result_is(folder):
    (folder / "set.yaml").write_text(SET.replace("{c: 1}", "{c: 1, gone: 2}"))
    found = json.loads(looked_after("validate", "set.yaml", "--run", "a.run", "--format", "json").stdout)
    told = [one["message"] for one in found["findings"] if one["check"] == "unseen"]
    # a is a result; c and gone are none; src/x.py is the file of one
    assert told == ["2 of 3 relevant documents are not in the results of any query of the runs: c, gone"]


def test_convert_tells_what_is_lost_and_replaces_nothing_unasked(folder):
    done = looked_after("convert", "set.yaml", "out.qrels")
    assert "not carried over: 1 span of lines" in done.stderr
    assert "left out: 1 query with judgments that the format cannot store" in done.stderr
    assert read_testset("out.qrels").grades == {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
    assert "already exists" in looked_after("convert", "set.yaml", "out.qrels", code=2).stderr
    looked_after("convert", "set.yaml", "out.qrels", "--force")


def test_convert_there_and_back_keeps_the_content(folder):
    looked_after("convert", "set.yaml", "out.json")
    assert read_testset("out.json").digest == read_testset("set.yaml").digest


def test_add_keeps_the_comments_and_the_metadata_true(folder):
    looked_after(
        "add",
        "set.yaml",
        "--id",
        "q4",
        "--text",
        "new",
        "--stratum",
        "kind=task",
        "--relevant",
        "d=2",
        "--today",
        "2026-11-21",
    )
    text = (folder / "set.yaml").read_text()
    assert "# for the docs search" in text
    assert "  # the first\n  - {id: q1, text: rotate the log files" in text
    changed = read_testset("set.yaml")
    assert changed.grades["q4"] == {"d": 2}
    assert changed.meta.counts == {"queries": 4, "kind=code": 1, "kind=task": 3}
    assert (changed.meta.made, changed.meta.review) == ("2026-11-21", "reviewed")


def test_add_takes_targets_of_every_kind(folder):
    looked_after(
        *("add", "set.yaml", "--id", "q4", "--text", "new", "--span", "a.py:1-9=2", "--entity", "a.py::F"),
        *("--pattern", "^x=", "--file", "b.py"),
    )
    changed = read_testset("set.yaml")
    assert sorted(target.label for target in changed.targets["q4"]) == ["^x=", "a.py:1-9", "a.py::F"]
    assert changed.files["q4"] == ("b.py",)  # beside an entity a file is one to cover, and no second target
    looked_after("add", "set.yaml", "--id", "q5", "--text", "newer", "--pattern", "^x=", "--file", "b.py")
    assert sorted(target.label for target in read_testset("set.yaml").targets["q5"]) == ["^x=", "b.py"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--id", "q9"], "is new and has no text"),
        (["--id", "q1", "--relevant", "a=1"], "is judged on 'a' already"),
        (["--id", "q1", "--relevant", "z=1", "--relevant", "z=2"], "'z' is given twice"),
        (["--id", "q3", "--span", "x.py:9-3"], "--span 'x.py:9-3'"),
        (["--id", "q3", "--pattern", "("], "does not compile"),
        (["--id", "q1", "--stratum", "kind"], "--stratum 'kind'"),
        (["--id", "q1", "--class", "Z"], "query class"),
    ],
)
def test_add_refuses_what_does_not_fit_and_writes_nothing(folder, arguments, message):
    assert message in looked_after("add", "set.yaml", *arguments, code=2).stderr
    assert (folder / "set.yaml").read_text() == SET


def test_add_to_qrels_writes_the_metadata_beside_them(folder):
    (folder / "x.qrels").write_text("q1 0 a 1\n")
    assert "has no text" in looked_after("add", "x.qrels", "--id", "q2", "--relevant", "b", code=2).stderr
    looked_after("add", "x.qrels", "--id", "q1", "--relevant", "b=2")
    assert read_testset("x.qrels").grades == {"q1": {"a": 1, "b": 2}}
    assert json.loads((folder / "x.qrels.meta.json").read_text())["counts"] == {"queries": 1}


def test_split_is_stored_once(folder):
    looked_after("split", "set.yaml", "--share", "0.3")
    assert len(read_testset("set.yaml").meta.split.held_out) == 1
    assert "already has a held-out part" in looked_after("split", "set.yaml", code=2).stderr
    looked_after("split", "set.yaml", "--share", "0.7", "--seed", "5", "--force")
    assert len(read_testset("set.yaml").meta.split.held_out) == 2


def test_split_of_qrels_is_found_again_by_overfit(folder):
    (folder / "x.qrels").write_text("".join(f"q{i} 0 a 1\n" for i in range(20)))
    (folder / "x.run").write_text("".join(f"q{i} Q0 {'a' if i % 2 else 'x'} 1 1 r\n" for i in range(20)))
    looked_after("split", "x.qrels")
    found = json.loads(looked_after("overfit", "x.qrels", "x.run", "-m", "P@1", "--format", "json").stdout)
    (row,) = found["measures"]
    assert (row["contrast"]["a"]["n"], row["contrast"]["b"]["n"], row["is_overfit"]) == (16, 4, False)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "csv"])
def test_diff_with_a_run_shows_how_its_means_move(folder, form):
    (folder / "new.yaml").write_text(SET.replace("{c: 1}", "{x: 1}"))
    text = looked_after("diff", "set.yaml", "new.yaml", "--run", "a=a.run", "-m", "P@1", "--format", form).stdout
    if form == "json":
        found = json.loads(text)
        (score,) = found["scores"]
        assert (score["old"], score["new"]) == (pytest.approx(2 / 3), 1.0)
        assert [(one["label"], one["old"], one["new"]) for one in found["judged"]] == [
            ("c", 1, None),
            ("x", None, 1),
        ]
    else:
        assert "P@1" in text


def refresh(*arguments, code=0):
    return looked_after("refresh", "set.yaml", "--log", "log.tsv", "--n", "1", *arguments, code=code)


def test_refresh_in_two_steps(folder):
    (folder / "log.tsv").write_text("query\tcount\nwhere are backups\t7\nWHO may write  here\t9\n")
    done = refresh("--plan", "sheet.csv", "--queries-out", "new.tsv", "--sample", "top")
    assert "sampled (top, seed 0): 1 of 2" in done.stderr
    assert "skipped: 1" in done.stderr
    query_id, text = (folder / "new.tsv").read_text().strip().split("\t")
    assert text == "where are backups"
    (folder / "new.run").write_text("".join(f"{query_id} Q0 d{i} {i} {9 - i} r\n" for i in range(1, 9)))
    assert "already exists" in refresh("--plan", "sheet.csv", "--sample", "top", code=2).stderr
    refresh("--plan", "sheet.csv", "--sample", "top", "--run", "new.run", "--depth", "6", "--force")
    rows = list(csv.reader((folder / "sheet.csv").read_text().splitlines()))
    assert [row[2] for row in rows[1:]] == [f"d{i}" for i in range(1, 7)]

    def label(pairs):
        lines = [",".join((*row[:3], *pair)) for row, pair in zip(rows[1:], pairs, strict=True)]
        (folder / "sheet.csv").write_text("\n".join([",".join(rows[0]), *lines]) + "\n")

    label(["12", "21", "10", "01", "22", "11"])
    done = refresh("--labels", "sheet.csv", "--out", "v2.yaml", "--sample", "top", code=1)
    assert "kappa must be above 0.6" in done.stderr
    assert not (folder / "v2.yaml").exists()
    label(["22", "11", "00", "00", "22", "11"])
    done = refresh("--labels", "sheet.csv", "--out", "v2.yaml", "--sample", "top")
    assert "Cohen's kappa of rater1 and rater2 is 1.0000" in done.stderr
    new, old = read_testset("v2.yaml"), read_testset("set.yaml")
    assert (new.version, new.meta.previous, len(new.queries)) == ("2", old.digest, 3)
    assert (folder / "set.yaml").read_text() == SET
    looked_after("validate", "v2.yaml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "two steps"),
        (["--plan", "a.csv", "--labels", "b.csv"], "two steps"),
        (["--labels", "b.csv"], "no output file for the next version"),
        (["--labels", "b.csv", "--out", "set.yaml"], "the old version is kept"),
        (["--plan", "a.csv", "--raters", "ann"], "two names"),
    ],
)
def test_refresh_says_which_step_is_which(folder, arguments, message):
    (folder / "log.tsv").write_text("where are backups\n")
    assert message in refresh(*arguments, code=2).stderr


def test_the_file_of_an_added_entity_fills_expected_files(folder):
    golden = folder / "golden.json"
    golden.write_text(
        '[{"query_id": "q1", "query_text": "one", "expected_entities": ["a.py::f"], "expected_files": ["a.py"]}]'
    )
    looked_after("add", golden, "--id", "q2", "--text", "two", "--entity", "b.py::g", "--file", "b.py")
    new = json.loads(golden.read_text())[1]
    assert (new["expected_entities"], new["expected_files"]) == (["b.py::g"], ["b.py"])
    assert "expected_targets" not in new  # the entity alone is what a search has to find


def test_a_grade_of_a_file_is_kept_or_refused_by_name(folder):
    golden = folder / "golden.json"
    before = '[{"query_id": "q1", "query_text": "one", "expected_entities": ["a.py::f"], "expected_files": ["a.py"]}]'
    golden.write_text(before)
    new = ("add", golden, "--id", "q2", "--text", "two", "--file", "b.py=2")
    refused = looked_after(*new, "--entity", "b.py::g", code=2)
    assert "expected --file b.py, got grade 2" in refused.stderr
    assert golden.read_text() == before
    looked_after(*new)
    assert json.loads(golden.read_text())[1]["expected_targets"] == [{"file": "b.py", "grade": 2}]


def test_add_keeps_the_line_ends_of_a_file(folder):
    (folder / "set.yaml").write_bytes(SET.replace("\n", "\r\n").encode())
    looked_after("add", "set.yaml", "--id", "q1", "--relevant", "z")
    text = (folder / "set.yaml").read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n")
    assert b"  # the first\r\n" in text


def test_add_to_a_file_whose_name_does_not_say_what_it_is(folder):
    (folder / "questions").write_text(SET)
    looked_after("add", "questions", "--id", "q1", "--relevant", "z")
    assert "  # the first\n" in (folder / "questions").read_text()


def test_comments_that_cannot_be_kept_are_said(folder):
    (folder / "flow.yaml").write_text(
        "# mine\n{cranfield_testset: 1, name: s, queries: [{id: q1, text: &a one, judgments: {a: 1}, params: {b: *a}}]}\n"
    )
    done = looked_after("add", "flow.yaml", "--id", "q1", "--relevant", "z")
    assert "note: the comments of flow.yaml are not in flow.yaml" in done.stderr
    assert read_testset("flow.yaml").grades == {"q1": {"a": 1, "z": 1}}


def test_add_writes_beside_where_asked_and_replaces_nothing_unasked(folder):
    looked_after("add", "set.yaml", "--id", "q1", "--relevant", "z", "--out", "new.json")
    assert (folder / "set.yaml").read_text() == SET
    assert read_testset("new.json").grades["q1"]["z"] == 1
    refused = looked_after("add", "set.yaml", "--id", "q1", "--relevant", "z", "--out", "new.json", code=2)
    assert "already exists" in refused.stderr


def test_a_format_without_room_is_refused_and_nothing_written(folder):
    refused = looked_after("add", "set.yaml", "--id", "q1", "--relevant", "z", "--out", "x.qrels", code=2)
    assert "the format cannot store all content of the test set" in refused.stderr
    assert not (folder / "x.qrels").exists()


def test_a_packed_set_and_a_stream_are_not_changed_in_place(folder):
    import gzip

    (folder / "set.yaml.gz").write_bytes(gzip.compress(SET.encode()))
    refused = looked_after("add", "set.yaml.gz", "--id", "q1", "--relevant", "z", code=2)
    assert "cannot be changed in place" in refused.stderr
    looked_after("add", "set.yaml.gz", "--id", "q1", "--relevant", "z", "--out", "plain.yaml")
    assert read_testset("plain.yaml").grades["q1"]["z"] == 1


def test_a_collected_run_is_tried_as_a_trec_run_is(folder):
    from cranfield.formats.runs.jsonl import write_run
    from cranfield.model import Answer, Hit, Outcome, Run

    answers = {
        "q1": Answer(Outcome.ANSWERED, (Hit("a"), Hit("z"))),
        "q3": Answer(Outcome.ANSWERED, (Hit("src/x.py", span="5-6"),)),
    }
    write_run(Run("mine", answers), folder / "mine.jsonl")
    found = json.loads(looked_after("validate", "set.yaml", "--run", "mine.jsonl", "--format", "json").stdout)
    told = [one["message"] for one in found["findings"] if one["check"] == "unseen"]
    assert told == ["1 of 2 relevant documents are not in the results of any query of the runs: c"]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (".", "error: .: this is a folder"),
        ("none/new.yaml", "error: none: no such folder"),
        ("pipe", "error: pipe: a device or a pipe cannot be replaced"),
        ("new.odd", "error: new.odd: not written: the format cannot be derived from the file name"),
    ],
)
def test_what_cannot_become_the_file_is_refused_by_its_own_name(folder, out, message):
    os.mkfifo(folder / "pipe")
    done = looked_after("add", "set.yaml", "--id", "q1", "--relevant", "z", "--out", out, "--force", code=2)
    assert message in done.stderr


def test_a_link_to_a_set_stays_a_link(folder):
    (folder / "link.yaml").symlink_to("set.yaml")
    looked_after("add", "link.yaml", "--id", "q1", "--relevant", "z")
    assert (folder / "link.yaml").is_symlink()
    assert read_testset("set.yaml").grades["q1"]["z"] == 1


def test_a_set_out_of_a_pipe_is_read_once(folder):
    os.mkfifo(folder / "pipe")
    with subprocess.Popen(["sh", "-c", "cat set.yaml > pipe"]):
        looked_after("add", "pipe", "--id", "q1", "--relevant", "z", "--out", "new.yaml")
    assert read_testset("new.yaml").grades["q1"]["z"] == 1


def test_commands_at_the_same_time_lose_no_change(folder):
    command = ["cranfield", "testset", "add", "set.yaml", "--text", "new", "--relevant", "z"]
    together = [subprocess.Popen([*command, "--id", f"n{n}"], stderr=subprocess.DEVNULL) for n in range(4)]
    assert [process.wait(60) for process in together] == [0] * 4
    assert {f"n{n}" for n in range(4)} <= set(read_testset("set.yaml").query_ids)


def test_comments_in_what_is_changed_stay(folder):
    text = SET.replace("meta: {scale: [0, 1, 2], review: reviewed}", "meta:\n  review: reviewed  # by Ann")
    (folder / "set.yaml").write_text(text.replace("{a: 2, b: 0}}", "{a: 2, b: 0}}  # old"))
    looked_after("add", "set.yaml", "--id", "q1", "--relevant", "z")
    written = (folder / "set.yaml").read_text()
    assert "review: reviewed  # by Ann\n" in written
    assert "{a: 2, b: 0, z: 1}}  # old\n" in written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plan", "set.yaml", "--force"), "SET and --plan are the same file"),
        (("--plan", "new.csv", "--queries-out", "./new.csv"), "--plan and --queries-out are the same file"),
        (("--plan", "log.tsv", "--force"), "--log and --plan are the same file"),
    ],
)
def test_a_plan_is_not_written_over_what_it_is_made_of(folder, arguments, message):
    (folder / "log.tsv").write_text("where are backups\n")
    done = looked_after("refresh", "set.yaml", "--log", "log.tsv", "--n", "1", *arguments, code=2)
    assert message in done.stderr
    assert (folder / "set.yaml").read_text() == SET

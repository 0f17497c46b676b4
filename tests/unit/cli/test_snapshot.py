"""`cranfield snapshot`: results as a file in git."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cranfield.cli.main import command_line

RUN = {"q1": ["a", "b", "c", "d"], "q2": ["e"], "q3": []}
TESTSET = """cranfield_testset: 1
name: shop
queries:
  - {id: q1, text: red shoes, judgments: {a: 1, d: 2, z: 1}}
  - {id: q2, text: blue hat, judgments: {e: 0}}
  - {id: q3, text: nothing, negative: true}
"""
SNAPSHOT = """# Snapshot of results: the first 2 of each query; * marks an expected one. Written by Cranfield.
# test set: shop
# system: old
# written anew by: cranfield snapshot set.yaml old.json -k 2 --accept

q1  red shoes
  1 * a
  2   b
  expected at rank 4: d
  expected, not found: z

q2  blue hat
  1   e

q3  nothing
  nothing is expected
  no results
"""
PROGRAM = """import json, sys
text = sys.argv[1]
if text in {failing!r}:
    sys.exit(3)
hits = [{{"id": each, "title": f"Title of {{each}}", "score": 1 / rank}} for rank, each in enumerate({found!r}.get(text, []), start=1)]
print(json.dumps(hits))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set.yaml").write_text(TESTSET)
    write_run(RUN)
    return tmp_path


def write_run(run):
    Path("old.json").write_text(json.dumps(run))


def snapshot(*arguments, code=0):
    done = CliRunner().invoke(command_line("snapshot"), ["snapshot", *map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done


def kept(name="cranfield-snapshot.txt"):
    return Path(name).read_bytes().decode()


def changes(*arguments, code=1):
    done = snapshot("set.yaml", "old.json", "--check", *arguments, "--format", "json", code=code)
    return json.loads(done.stdout)["snapshots"][0]["changes"]


def config(systems, *, failing=(), testset="set.yaml"):
    """A config of programs: name to what they find for each text."""
    described = {}
    for name, found in systems.items():
        Path(f"{name}.py").write_text(PROGRAM.format(failing=set(failing), found=found))
        described[name] = {
            "command": [sys.executable, f"{name}.py", "{query}"],
            "extract": {"json": "[]", "id": "id", "score": "score", "title": "title"},
        }
    Path("cranfield.yaml").write_text(yaml.safe_dump({"testset": testset, "systems": described}))


def test_the_file_of_a_run(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    assert kept() == SNAPSHOT


def test_a_check_of_the_same_results_is_quiet_in_any_line_ends_and_under_any_name(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    Path("cranfield-snapshot.txt").write_bytes(kept().replace("\n", "\r\n").encode())
    Path("new.json").write_bytes(Path("old.json").read_bytes())
    assert "VERDICT: unchanged" in snapshot("set.yaml", "new.json", "--check").stdout  # k is that of the file


def test_a_change_is_a_diff_of_whole_queries_with_what_was_lost_and_won(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    write_run({**RUN, "q1": ["b", "d", "a"]})
    found = changes()
    assert (found["changed"], found["lost"], found["won"]) == (
        ["q1  red shoes"],
        [["q1  red shoes", "a"]],
        [["q1  red shoes", "d"]],
    )
    assert found["diff"].splitlines() == [
        "--- cranfield-snapshot.txt",
        "+++ cranfield-snapshot.txt",
        "@@ -6,5 +6,5 @@ q1  red shoes",
        " q1  red shoes",
        "-  1 * a",
        "-  2   b",
        "-  expected at rank 4: d",
        "+  1   b",
        "+  2 * d",
        "+  expected at rank 3: a",
        "   expected, not found: z",
    ]
    text = snapshot("set.yaml", "old.json", "--check", code=1).stdout
    assert "1 of 3 queries changed. Expected results among the first 2: 1 lost, 1 won." in text
    assert "  -  1 * a\n" in text


def test_a_diff_is_one_that_other_programs_apply(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    before = kept()
    write_run({"q1": ["b", "d", "a"], "q2": ["x", "e", "y"], "q3": ["n"]})
    diff = changes()["diff"] + "\n"
    snapshot("set.yaml", "old.json", "--accept")
    after = kept()
    Path("cranfield-snapshot.txt").write_text(before)
    subprocess.run(["git", "apply", "-p0", "--unidiff-zero", "--unsafe-paths", "-"], input=diff, text=True, check=True)
    assert kept() == after != before


def test_a_result_that_moves_within_the_first_is_neither_lost_nor_won(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    write_run({**RUN, "q1": ["b", "a", "c", "d"]})
    found = changes()
    assert (found["lost"], found["won"], found["changed"]) == ([], [], ["q1  red shoes"])


def test_a_file_that_differs_is_replaced_on_request_only(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    write_run({**RUN, "q2": ["f"]})
    for arguments in ([], ["--check"]):
        snapshot("set.yaml", "old.json", *arguments, code=1)
        assert kept() == SNAPSHOT
    snapshot("set.yaml", "old.json", "--accept")
    assert kept() == SNAPSHOT.replace("1   e", "1   f")


def test_queries_that_come_and_go_are_counted(folder):
    snapshot("set.yaml", "old.json", "-k", 2)
    Path("set.yaml").write_text(TESTSET.replace("blue hat", "blue cap"))
    found = changes()
    assert (found["added"], found["removed"], found["changed"]) == (["q2  blue cap"], ["q2  blue hat"], [])
    lines = TESTSET.splitlines()
    Path("set.yaml").write_text("\n".join([*lines[:3], *reversed(lines[3:])]))
    assert changes()["reordered"] is True


def test_a_list_of_queries_without_judgments_is_enough(folder):
    Path("queries.txt").write_text("red shoes\nblue hat\nred shoes\n")
    write_run({"red shoes": ["a"], "blue hat": []})
    snapshot("queries.txt", "old.json")
    assert kept().split("\n\n")[1:] == ["red shoes\n  1   a", "blue hat\n  no results\n"]


def test_systems_of_a_config_have_a_file_each_with_titles_and_failures(folder):
    config({"plain": {"red shoes": ["a", "b"]}, "titles": {"red shoes": ["b"], "nothing": ["n"]}}, failing=["blue hat"])
    snapshot()
    plain = kept("cranfield-snapshot-plain.txt")
    assert "# written anew by: cranfield snapshot --system plain --accept\n" in plain
    assert "  1 * a  Title of a\n  2   b  Title of b\n" in plain
    assert "q2  blue hat\n  failed: nonzero exit: exit status 3\n" in plain
    assert "q3  nothing\n  nothing is expected\n  1   n  Title of n\n" in kept("cranfield-snapshot-titles.txt")
    config({"plain": {"red shoes": ["b"]}, "titles": {"red shoes": ["b"], "nothing": ["n"]}}, failing=["blue hat"])
    done = snapshot("--check", "--system", "plain", "--system", "titles", code=1)
    assert "2 snapshots: 1 changed and 1 unchanged." in done.stdout
    assert "lost in q1  red shoes: a" in done.stdout


def test_a_config_may_have_a_list_of_queries(folder):
    Path("queries.tsv").write_text("q1\tred shoes\n")
    config({"plain": {"red shoes": ["a", "b"]}}, testset="queries.tsv")
    snapshot("--scores", "-k", 1, "--out", "plain.txt")
    assert kept("plain.txt").endswith("q1  red shoes\n  1   a  1  Title of a\n")
    snapshot("--check", "--out", "plain.txt")


def test_nothing_of_the_machine_and_nothing_that_a_terminal_obeys_is_written(folder):
    config({"plain": {"red shoes": ["a\nq9  other", "b\x1b[31m", "c  d", "e\u0301"]}})
    snapshot(folder / "cranfield.yaml", "--out", folder / "plain.txt")
    text = kept("plain.txt")
    assert str(folder) not in text
    assert text.isprintable() is False
    assert all(line.isprintable() for line in text.split("\n"))
    assert [line for line in text.split("\n") if line.startswith("  ") and "Title" in line] == [
        r"  1   'a\nq9  other'  Title of a q9 other".replace("q9  ", r"q9 \x20"),
        r"  2   'b\x1b[31m'  Title of b\x1b[31m",
        r"  3   c \x20d  Title of c d",
        "  4   'e\\u0301'  Title of e\u0301",
    ]
    assert text.count("\n\n") == 3
    snapshot("--check", "--out", "plain.txt")


def test_everything_that_is_wrong_is_named_at_once(folder):
    wrong = snapshot("gone.yaml", "lost.json", "--check", "--out", "nowhere/s.txt", code=2).stderr
    assert all(name in wrong for name in ("gone.yaml", "lost.json", "nowhere"))
    wrong = snapshot("set.yaml", "old.json", "--check", "--accept", "--system", "plain", "--no-cache", code=2).stderr
    assert all(name in wrong for name in ("--check", "--accept", "--system", "--no-cache"))


def test_a_check_without_a_file_names_the_command_that_writes_it(folder):
    wrong = snapshot("set.yaml", "old.json", "--check", "-k", 2, code=2).stderr
    assert "cranfield snapshot set.yaml old.json -k 2" in wrong
    assert not Path("cranfield-snapshot.txt").exists()


def test_another_file_is_not_replaced(folder):
    wrong = snapshot("set.yaml", "old.json", "--accept", "--out", "set.yaml", code=2).stderr
    assert "this is no snapshot of results" in wrong
    assert kept("set.yaml") == TESTSET


def test_results_that_must_not_be_found_and_the_parameters_of_queries_are_shown(folder):
    Path("golden.json").write_text(
        json.dumps(
            [
                {"id": "q1", "query": "install", "library": "router", "relevant": ["a"], "must_not": ["old"]},
                {"id": "q2", "query": "install", "library": "store", "relevant": ["b"]},
            ]
        )
    )
    write_run({"q1": ["a", "c"], "q2": ["old"]})
    snapshot("golden.json", "old.json", "-k", "2")
    head, *blocks = kept().split("\n\n")
    assert "; * marks an expected one, ! one that must not be found. " in head
    assert blocks == [
        "q1  install  library=router\n  1 * a\n  2   c",
        "q2  install  library=store\n  1   old\n  expected, not found: b\n",
    ]
    write_run({"q1": ["old", "a", "old-2"], "q2": ["old"]})
    changed = snapshot("golden.json", "old.json", "--check", code=1).stdout
    assert "- must not be found in q1  install  library=router: old\n" in changed
    assert "+  1 ! old\n" in changed
    found = json.loads(snapshot("golden.json", "old.json", "--format", "json", code=1).stdout)["snapshots"][0]
    assert found["changes"]["forbidden"] == [["q1  install  library=router", "old"]]
    assert (found["changes"]["lost"], found["changes"]["won"]) == ([], [])
    assert [row["forbidden"] for row in found["queries"][0]["results"]] == [True, False]
